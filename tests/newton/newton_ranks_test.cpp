// SPDX-License-Identifier: Apache-2.0
// Newton's method over ranks: steps, residuals and solutions of one rank, for every cut of the rows, every way to form
// the Jacobian, and unknowns that a row sees at any distance; nobody stops or fails alone.
#include <atomic>
#include <mutex>

#include "distributed/rows.hpp"
#include "krilu/grid.hpp"
#include "krilu/newton.hpp"
#include "newton/systems.hpp"

namespace krilu::test {
namespace {

NewtonOptions options_with(const char* device, const char* precond, const char* jacobian) {
  NewtonOptions o;
  o.rtol = 1e-10;
  o.jacobian = jacobian;
  o.linear.device = device;
  o.linear.solver = "gmres";
  o.linear.precond = precond;
  o.linear.threads = 1;
  return o;
}

template <class R>
NewtonSolved alone(const R& rows, const NewtonOptions& o) {
  const RowEquations<R> equations(rows);
  NewtonSolver newton(equations, o);
  NewtonSolved s{{}, std::vector<double>(std::size_t(rows.rows()), 0.1)};
  s.r = newton.solve(s.x);
  return s;
}
/// The results of all ranks, and x put together.
template <class R>
std::vector<NewtonResult> together(const R& rows, const NewtonOptions& o, const Starts& starts,
                                   std::vector<double>& x) {
  std::vector<NewtonResult> results(starts.size() - 1);
  x.assign(std::size_t(rows.rows()), 0.1);
  run_ranks(ranks_of(starts), [&](const std::shared_ptr<Communicator>& c) {
    const auto r = std::size_t(c->rank());
    const auto first = Index(starts[r]), count = Index(starts[r + 1] - starts[r]);
    const RowEquations<R> equations(rows, first, count);
    NewtonSolver newton(equations, o, c);
    EXPECT_EQ(newton.rows(), rows.rows());
    results[r] = newton.solve({x.data() + first, std::size_t(count)});
  });
  return results;
}

template <class R>
void expect_those_of_one(const R& rows, const NewtonOptions& o, const std::vector<Starts>& all) {
  const NewtonSolved one = alone(rows, o);
  ASSERT_EQ(one.r.status, Status::converged);
  for (const Starts& starts : all) {
    SCOPED_TRACE(text_of(starts) + " " + o.linear.device + " " + o.linear.precond + " " + o.jacobian);
    std::vector<double> x;
    const auto results = together(rows, o, starts, x);
    for (const NewtonResult& r : results) {
      EXPECT_EQ(r.status, Status::converged);
      ASSERT_EQ(r.history.size(), results[0].history.size());
      for (std::size_t k = 0; k < r.history.size(); ++k) {
        EXPECT_EQ(r.history[k].residual, results[0].history[k].residual);  // bit for bit
        EXPECT_EQ(r.history[k].inner_iterations, results[0].history[k].inner_iterations);
      }
      EXPECT_NEAR(r.initial_residual, one.r.initial_residual, 1e-13 * one.r.initial_residual);
      EXPECT_NEAR(r.iterations, one.r.iterations, 1);
      if (o.linear.precond == std::string("jacobi") && r.history.size() > 1) {
        EXPECT_EQ(r.history[1].inner_iterations, one.r.history[1].inner_iterations);
        EXPECT_NEAR(r.history[1].residual / one.r.history[1].residual, 1, 1e-4);
      }
    }
    double most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(x[i] - one.x[i]));
    EXPECT_LT(most, 1e-7);
  }
}

TEST(NewtonRanks, StepsAreThoseOfOneRankForEveryCut) {
  const Bratu bratu{12, 6};
  for (const char* device : {"host", "emulated"})
    expect_those_of_one(bratu, options_with(device, "jacobi", "own"), cuts(bratu.rows()));
}

TEST(NewtonRanks, EveryWayToFormTheJacobian) {
  const Bratu bratu{11, 6};
  for (const char* device : {"host", "emulated"})
    for (const char* jacobian : {"own", "finite-differences", "matrix-free"})
      for (const char* precond : {"ilu0", "jacobi", "ras:2,1"})
        expect_those_of_one(bratu, options_with(device, precond, jacobian), {{0, 50, 121}, {0, 30, 30, 121}});
}

TEST(NewtonRanks, RowsSeeUnknownsAtAnyDistance) {
  const Disordered<Tangled> rows{tangled(60, 0.1, 0.05, random_vector(60, 3, -1, 1), 5)};
  for (const char* jacobian : {"auto", "finite-differences"})
    expect_those_of_one(rows, options_with("host", "jacobi", jacobian), {{0, 20, 60}, {0, 7, 31, 60}});
}

TEST(NewtonRanks, OverlapReachesIntoTheRowsOfOtherRanks) {
  const Bratu bratu{24, 6};
  for (const char* device : {"host", "emulated"})
    for (const char* precision : {"fp64", "fp32"}) {
      const auto inner = [&](const char* precond) {
        NewtonOptions o = options_with(device, precond, "own");
        o.forcing = "fixed:1e-6";
        o.linear.precision = precision;
        std::vector<double> x;
        const auto results = together(bratu, o, {0, 200, 390, 576}, x);
        EXPECT_EQ(results[0].status, Status::converged);
        EXPECT_TRUE(results[0].notes.empty());
        return results[0].inner_iterations;
      };
      EXPECT_LT(inner("ras:1,4"), inner("block-ilu:1")) << device << " " << precision;
    }
}

TEST(NewtonRanks, MixedPrecision) {
  const Bratu bratu{12, 6};
  NewtonOptions o = options_with("host", "jacobi", "own");
  o.linear.solver = "gmres-ir";
  o.linear.precision = "fp32";
  expect_those_of_one(bratu, o, {{0, 70, 144}});
}

TEST(NewtonRanks, ARankThatIsToldToStopStopsAll) {
  const Bratu bratu{16, 6};
  NewtonOptions o = options_with("host", "jacobi", "own");
  o.forcing = "fixed:0.9";
  std::vector<NewtonResult> results(3);
  run_ranks(3, [&](const std::shared_ptr<Communicator>& c) {
    const Index first = 256 * c->rank() / 3, count = 256 * (c->rank() + 1) / 3 - first;
    const RowEquations equations(bratu, first, count);
    NewtonSolver newton(equations, o, c);
    std::vector<double> x(std::size_t(count), 0.0);
    results[std::size_t(c->rank())] =
        newton.solve(x, [&](const NewtonStep& s) { return !(c->rank() == 2 && s.iteration == 2); });
  });
  for (const NewtonResult& r : results) {
    EXPECT_EQ(r.status, Status::interrupted);
    EXPECT_EQ(r.iterations, 2);
  }
}

/// What all of three ranks say that is refused.
template <class F>
void expect_all_refuse(F f, const std::vector<std::string>& words) {
  std::mutex mutex;
  std::vector<std::string> said;
  run_ranks(3, [&](const std::shared_ptr<Communicator>& c) {
    const std::string sentence = refusal([&] { f(c); });
    const std::lock_guard lock(mutex);
    said.push_back(sentence);
  });
  ASSERT_EQ(said.size(), 3u);
  for (const std::string& sentence : said) expect_words(sentence, words);
}

TEST(NewtonRanks, WhatOneRankFindsWrongAllRefuse) {
  const Bratu bratu{9, 6};
  const auto rows_from = [&](int rank) { return RowEquations(bratu, 27 * rank, 27); };
  const NewtonOptions o = options_with("host", "ilu0", "own");
  expect_all_refuse(
      [&](const auto& c) {
        NewtonOptions own = o;
        if (c->rank() == 1) own.forcing = "guessed";
        const auto equations = rows_from(c->rank());
        NewtonSolver(equations, own, c);
      },
      {"rank 1 of 3", "forcing"});
  expect_all_refuse(
      [&](const auto& c) {
        NewtonOptions own = o;
        if (c->rank() == 1) own.linear.precond = "jacobi";
        const auto equations = rows_from(c->rank());
        NewtonSolver(equations, own, c);
      },
      {"equations and options", "rank 1"});
  expect_all_refuse(
      [&](const auto& c) {
        const RowEquations equations(bratu, 20 * c->rank(), 27);  // some twice, some never
        NewtonSolver(equations, o, c);
      },
      {"row"});
  expect_all_refuse(
      [&](const auto& c) {
        const auto equations = rows_from(c->rank());
        NewtonSolver newton(equations, o, c);
        std::vector<double> x(27, 0.0);
        if (c->rank() == 2) x[4] = std::nan("");
        newton.solve(x);
      },
      {"rank 2 of 3", "row 5"});
  expect_all_refuse(
      [&](const auto& c) {
        const auto equations = rows_from(c->rank());
        NewtonSolver newton(equations, o, c);
        std::vector<double> x(27, c->rank() == 0 ? 1e4 : 0.0);  // e^x overflows there
        newton.solve(x);
      },
      {"NaN, infinite or too large"});
}

/// Bratu, its Jacobian's row 27 not a number left of the diagonal: what couples rank 1 of three to rank 0.
struct Spoilt : Bratu {
  template <class Put>
  void jacobian(Index k, View<const double> u, Put put) const {
    const double bad = k == 27 ? std::nan("") : 1.0;
    Bratu::jacobian(k, u, [&](Index entry, double v) { put(entry, v < 0 ? bad * v : v); });
  }
};

TEST(NewtonRanks, ACouplingThatIsNoNumberIsEverybodysWhateverThePreconditioner) {
  for (const char* precond : {"jacobi", "ras:1,1"})
    for (const char* precision : {"fp64", "fp32"}) {
      SCOPED_TRACE(std::string(precond) + " " + precision);
      NewtonOptions o = options_with("host", precond, "own");
      o.linear.precision = precision;
      expect_all_refuse(
          [&](const auto& c) {
            const RowEquations equations(Spoilt{{9, 6}}, 27 * c->rank(), 27);
            NewtonSolver newton(equations, o, c);
            std::vector<double> x(27, 0.0);
            newton.solve(x);
          },
          {"NaN"});
    }
}

TEST(NewtonRanks, OverlapWithScalesOfValuesIsRefusedOnAllRanks) {
  NewtonOptions o = options_with("host", "ras:1,1", "own");
  o.linear.scaling = "matching";
  expect_all_refuse(
      [&](const auto& c) {
        const RowEquations equations(Bratu{9, 6}, 27 * c->rank(), 27);
        NewtonSolver newton(equations, o, c);
      },
      {"matching", "values"});
}

TEST(NewtonRanks, RowsOfALargerSystemAreRefusedWithoutTheirRanks) {
  const RowEquations equations(Bratu{9, 6}, 0, 27);
  expect_words(refusal([&] { NewtonSolver newton(equations); }), {"other ranks", "communicator"});
  expect_words(refusal([] { RowEquations(Bratu{9, 6}, 60, 27); }), {"27 rows", "row 61", "81"});
}

}  // namespace
}  // namespace krilu::test
