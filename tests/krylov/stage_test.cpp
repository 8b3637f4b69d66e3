// SPDX-License-Identifier: Apache-2.0
// Stages under their driver, the first of them wrong on purpose: it is found out, nothing that was gained is lost, and
// the next one ends the work. How far some go: policy_test.cpp has what they are asked for.
#include "krylov/stage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "krilu/io.hpp"
#include "krylov/driver.hpp"
#include "krylov/make_method.hpp"
#include "precond/jacobi.hpp"
#include "stage_parts.hpp"
#include "support/refusal.hpp"

namespace krilu::test {
namespace {

using krylov::Criterion;
using krylov::Outcome;
using krylov::Stage;
using krylov::StagePolicy;
using krylov::Stop;

// --- stages under the driver ---------------------------------------------------------------------------------------

template <class Space>
class Stages : public ::testing::Test {};
TYPED_TEST_SUITE(Stages, Spaces);

/// A refinement in float of whatever matrix, preconditioner and scales, and double behind it.
template <class Space>
struct Pair {
  Pair(const CsrMatrix& matrix, const CsrMatrix& low_matrix, const std::vector<float>& low_precond)
      : space(2),
        a(matrix),
        n(std::size_t(a.rows)),
        A(space, a),
        none(space, n),
        A_low(space, low_matrix),
        M_low(space, low_precond),
        low(krylov::make_method<Space, float>(space, "gmres", a.rows, 30)),
        high(krylov::make_method<Space, double>(space, "gmres", a.rows, 30)),
        driver(space, a.rows) {}

  struct Answer {
    Outcome out;
    std::vector<double> x;
  };
  /// `good`: whether there is a stage in double.
  Answer run(const std::vector<double>& b, const std::vector<double>& x0, const Criterion& criterion,
             bool good = true) {
    const exec::Array<double> R = to_device(space, row), C = to_device(space, column);
    krylov::Refinement<Space, double, float> first(space, policy, a.rows, *low, A_low, M_low,
                                                   row.empty() ? nullptr : R.data(),
                                                   column.empty() ? nullptr : C.data());
    krylov::Direct<Space, double> second(space, {.name = "high"}, *high, A, none);
    std::vector<Stage<Space, double>*> stages{&first};
    if (good) stages.push_back(&second);
    std::size_t at = 0;
    const auto next = [&]() -> Stage<Space, double>* { return at < stages.size() ? stages[at++] : nullptr; };
    const auto there_b = to_device(space, b), x = to_device(space, x0);
    Monitor monitor;
    Answer answer{driver.run(next, A, there_b, x, criterion, monitor), {}};
    answer.x = to_host(space, x);
    return answer;
  }
  /// What every outcome promises.
  void expect_honest(const Answer& r, const std::vector<double>& b, const std::vector<double>& x0) const {
    for (const double e : r.x) ASSERT_TRUE(std::isfinite(e));
    const double truth = norm(residual_of(a, b, r.x)), first = norm(residual_of(a, b, x0));
    double sizes = 0;  // of what a residual is the small difference of
    for (const double v : a.values) sizes = std::max(sizes, std::abs(v));
    const double rounding = 1e-10 * truth + 1e-14 * (norm(b) + sizes * norm(r.x));
    EXPECT_NEAR(r.out.residual, truth, rounding);
    EXPECT_LE(truth, first * (1 + 1e-12)) << "worse than the guess";
    ASSERT_EQ(r.out.history.size(), std::size_t(r.out.iterations) + 1);
    EXPECT_NEAR(r.out.history.back(), truth / norm(b), rounding / norm(b));
    EXPECT_NEAR(r.out.history.front(), first / norm(b), 1e-10 * first / norm(b) + 1e-14);
  }

  Space space;
  CsrMatrix a;
  std::size_t n;
  Product<Space, double> A;
  precond::None<Space, double> none;
  Product<Space, float> A_low;
  Diagonal<Space, float> M_low;
  std::unique_ptr<krylov::Method<Space, float>> low;
  std::unique_ptr<krylov::Method<Space, double>> high;
  krylov::Driver<Space, double> driver;
  StagePolicy policy{
      .name = "low", .most_inner = 60, .most_goes = 20, .floor = 1e-4, .least_floor = 1e-5, .refines = true};
  std::vector<double> row, column;
};

CsrMatrix model() { return generate("gen:convdiff2d:12x11"); }
CsrMatrix times(CsrMatrix a, double factor) {
  for (double& v : a.values) v *= factor;
  return a;
}
Criterion until(double rtol, int most = 2000) { return {rtol, 0, Norm::true2, most}; }

TYPED_TEST(Stages, RefinementInFloatReachesWhatDoubleDoes) {
  const CsrMatrix a = model();
  Pair<TypeParam> pair(a, a, std::vector<float>(std::size_t(a.rows), 1));
  const std::vector<double> b = random_values(pair.n, 31), x0 = random_values(pair.n, 32);
  const auto r = pair.run(b, x0, until(1e-13));
  EXPECT_EQ(r.out.status, Status::converged);
  EXPECT_EQ(r.out.precision, "low");
  EXPECT_TRUE(r.out.notes.empty()) << r.out.notes[0];
  EXPECT_GE(r.out.outer_iterations, 3);
  EXPECT_LE(r.out.outer_iterations, 6);
  pair.expect_honest(r, b, x0);
  EXPECT_LE(norm(residual_of(a, b, r.x)), 1.01e-13 * norm(b));
  // One go less: not there yet. What the driver looked at is what it says.
  for (int most = 1; most < r.out.iterations; most += 7) {
    const auto part = pair.run(b, x0, until(1e-13, most));
    const bool there = norm(residual_of(a, b, part.x)) <= 1e-13 * norm(b);
    EXPECT_EQ(part.out.status, there ? Status::converged : Status::max_iterations);
    EXPECT_TRUE(!there || most + 2 > r.out.iterations) << "what was asked of the last go was too much";
    EXPECT_EQ(part.out.iterations, most);
    pair.expect_honest(part, b, x0);
  }
}

TYPED_TEST(Stages, RefinementScalesByRowsAndColumns) {
  // A = R^-1 S C^-1 spans what no float holds; S, which the stage is given, is tame.
  const CsrMatrix s = model();
  Pair<TypeParam> pair(s, s, std::vector<float>(std::size_t(s.rows), 1));
  std::vector<double> R(pair.n), C(pair.n);
  CsrMatrix a = s;
  for (std::size_t i = 0; i < pair.n; ++i) {
    R[i] = std::ldexp(1.0, int(i % 5) - 2);
    C[i] = std::ldexp(1.0, 300 - int(i % 7));
  }
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      a.values[std::size_t(k)] /= R[std::size_t(i)] * C[std::size_t(a.columns[std::size_t(k)])];
  Pair<TypeParam> scaled(a, s, std::vector<float>(std::size_t(s.rows), 1));
  scaled.row = R;
  scaled.column = C;
  const std::vector<double> b = random_values(pair.n, 33), zero(pair.n, 0.0);
  const auto r = scaled.run(b, zero, until(1e-12), false);
  EXPECT_EQ(r.out.status, Status::converged);
  EXPECT_TRUE(r.out.notes.empty());
  scaled.expect_honest(r, b, zero);
}

TYPED_TEST(Stages, AWrongOneIsFoundOutAndTheNextEndsTheWork) {
  const CsrMatrix a = model();
  const auto n = std::size_t(a.rows);
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> ones(n, 1);
  std::vector<float> one_nan = ones;
  one_nan[n / 2] = nan;
  CsrMatrix singular = times(a, 0), other = hard(a.rows, 34);
  struct Liar {
    const char* name;
    CsrMatrix a;
    std::vector<float> m;
  };
  for (const Liar& liar : {Liar{"the wrong sign", times(a, -1), ones}, Liar{"a third of A", times(a, 1.0 / 3), ones},
                           Liar{"another matrix", other, ones}, Liar{"zero", singular, ones},
                           Liar{"NaN in one row of M", a, one_nan}, Liar{"NaN", a, std::vector<float>(n, nan)},
                           Liar{"infinity", a, std::vector<float>(n, infinity)}, Liar{"overflow", times(a, 1e38), ones},
                           Liar{"underflow", times(a, 1e-42), ones}, Liar{"M of zeros", a, std::vector<float>(n, 0)}}) {
    SCOPED_TRACE(liar.name);
    Pair<TypeParam> pair(a, liar.a, liar.m);
    const std::vector<double> b = random_values(n, 35), x0 = random_values(n, 36);
    const auto r = pair.run(b, x0, until(1e-11));
    EXPECT_EQ(r.out.status, Status::converged);
    EXPECT_EQ(r.out.precision, "high");
    EXPECT_TRUE(any_has(r.out.notes, "precision raised from low to high after "));
    EXPECT_GE(r.out.outer_iterations, 1);
    EXPECT_LE(r.out.outer_iterations, 20);
    pair.expect_honest(r, b, x0);
    // Where nothing better is left, it says so and returns the best.
    const auto alone = pair.run(b, x0, until(1e-11, 500), false);
    EXPECT_NE(alone.out.status, Status::converged);
    EXPECT_EQ(alone.out.precision, "low");
    pair.expect_honest(alone, b, x0);
    // From a good guess a wrong stage spoils nothing.
    const auto polished = pair.run(b, r.x, until(1e-15, 40), false);
    EXPECT_LE(norm(residual_of(a, b, polished.x)), norm(residual_of(a, b, r.x)) * (1 + 1e-12));
    for (int most : {1, 2, 7, 30}) pair.expect_honest(pair.run(b, x0, until(1e-11, most)), b, x0);
  }
}

TYPED_TEST(Stages, TooLittlePrecisionIsRaisedAndWhatWasGainedIsKept) {
  // Condition about 1e10: single precision gains little or nothing, double ends it.
  CsrMatrix a = from_dense([] {
    Dense d(60, std::vector<double>(60, 0.0));
    for (std::size_t i = 0; i < 60; ++i)
      for (std::size_t j = 0; j < 60; ++j)
        d[i][j] = i == j ? 1 + 1e-9 * double(i) : 1 - 1e-9 * double((i * 7 + j * 3) % 5);
    for (std::size_t i = 0; i < 60; ++i) d[i][i] += 1e-8 * double(1 + i);
    return d;
  }());
  Pair<TypeParam> pair(a, a, std::vector<float>(60, 1));
  const std::vector<double> b = random_values(60, 37), zero(60, 0.0);
  const auto r = pair.run(b, zero, until(1e-7, 5000));
  EXPECT_TRUE(any_has(r.out.notes, "raised"));
  pair.expect_honest(r, b, zero);
  const auto alone = pair.run(b, zero, until(1e-7, 5000), false);
  pair.expect_honest(alone, b, zero);
  EXPECT_LE(r.out.residual, alone.out.residual * (1 + 1e-12));
}

TYPED_TEST(Stages, AreRaisedWhereTheirGoesWillNotDo) {
  const CsrMatrix a = model();
  Pair<TypeParam> pair(a, a, std::vector<float>(std::size_t(a.rows), 1));
  const std::vector<double> b = random_values(pair.n, 38), zero(pair.n, 0.0);
  pair.policy.floor = 0.1;
  pair.policy.least_floor = 0;
  pair.policy.most_goes = 3;
  const auto few = pair.run(b, zero, until(1e-10));
  EXPECT_EQ(few.out.status, Status::converged);
  EXPECT_EQ(few.out.precision, "high");
  EXPECT_TRUE(any_has(few.out.notes, "its refinements will not do"));
  EXPECT_EQ(few.out.outer_iterations, 1) << "seen after the first, not after the last";
  pair.expect_honest(few, b, zero);
  pair.policy.most_goes = 11;
  const auto enough = pair.run(b, zero, until(1e-10));
  EXPECT_EQ(enough.out.precision, "low");
  EXPECT_EQ(enough.out.status, Status::converged);
  EXPECT_GE(enough.out.outer_iterations, 10);
  EXPECT_LE(enough.out.outer_iterations, 11);
  // Goes stopped by their limit of iterations whose claims are true are no reason, until there are no more, where
  // nothing is forgotten in between.
  pair.policy = {.name = "low", .most_inner = 4, .most_goes = 5, .floor = 1e-4, .keeps = true, .refines = true};
  const auto limited = pair.run(b, zero, until(1e-10));
  EXPECT_EQ(limited.out.outer_iterations, 5);
  EXPECT_TRUE(
      any_has(limited.out.notes, "precision raised from low to high after 20 iterations: its iterations did not do"));
  EXPECT_EQ(limited.out.status, Status::converged);
  pair.expect_honest(limited, b, zero);
  // A look on the way is none of the goes.
  pair.policy.first_look = 2;
  const auto looked_at = pair.run(b, zero, until(1e-10));
  EXPECT_EQ(looked_at.out.outer_iterations, 5);
  EXPECT_TRUE(
      any_has(looked_at.out.notes, "precision raised from low to high after 22 iterations: its iterations did not do"));
  pair.expect_honest(looked_at, b, zero);
}

TYPED_TEST(Stages, AWrongOneIsFoundOutAtTheFirstLook) {
  const CsrMatrix a = model();
  Pair<TypeParam> pair(a, times(a, -1), std::vector<float>(std::size_t(a.rows), 1));
  const std::vector<double> b = random_values(pair.n, 40), zero(pair.n, 0.0);
  pair.policy = {.name = "low", .most_inner = 40, .first_look = 3, .floor = 1e-6, .keeps = true, .refines = true};
  const auto r = pair.run(b, zero, until(1e-10));
  EXPECT_EQ(r.out.status, Status::converged);
  EXPECT_TRUE(any_has(r.out.notes, "precision raised from low to high after 3 iterations: the residual grew"));
  pair.expect_honest(r, b, zero);
}

TYPED_TEST(Stages, ATargetOfZeroEnds) {
  const CsrMatrix a = model();
  Pair<TypeParam> pair(a, a, std::vector<float>(std::size_t(a.rows), 1));
  const std::vector<double> b = random_values(pair.n, 39), zero(pair.n, 0.0);
  for (const bool good : {true, false}) {
    const auto r = pair.run(b, zero, until(0, 400), good);
    EXPECT_NE(r.out.status, Status::converged);
    pair.expect_honest(r, b, zero);
    if (good) {
      EXPECT_LE(r.out.residual, 1e-13 * norm(b));
    }
  }
}

// --- how far goes go -----------------------------------------------------------------------------------------------

/// Another stage, whose goes are written down.
class Watched final : public Stage<exec::Host, double> {
 public:
  explicit Watched(Stage<exec::Host, double>& stage) : Stage(stage.policy()), stage_(stage) {}
  void go(const double* b, double* x, double* r, double* before, double two, krylov::Control<double>& control,
          const std::function<void()>& then) override {
    const int begun = control.iteration;
    stage_.go(b, x, r, before, two, control, then);
    claims.push_back(control.norm / two);
    iterations.push_back(control.iteration - begun);
  }
  bool forget() override { return stage_.forget(); }
  std::size_t bytes() const override { return stage_.bytes(); }
  std::vector<double> claims;  // of each go, of the residual that it began with
  std::vector<int> iterations;

 private:
  Stage<exec::Host, double>& stage_;
};

/// What GMRES in single precision, as this policy has it, makes of A x = b, without a preconditioner.
struct InFloat {
  Outcome out;
  int on_the_way;              // residuals that GMRES formed itself
  std::vector<double> claims;  // as Watched has them
  std::vector<int> iterations;
};
InFloat refined_in_float(const CsrMatrix& a, const std::vector<double>& b, const StagePolicy& policy, int restart,
                         double rtol) {
  const exec::Host space(2);
  const auto n = std::size_t(a.rows);
  const Product<exec::Host, double> A(space, a);
  const Product<exec::Host, float> A_low(space, a);
  precond::None<exec::Host, float> none(space, n);
  const auto gmres = krylov::make_method<exec::Host, float>(space, "gmres", a.rows, restart);
  krylov::Refinement<exec::Host, double, float> stage(space, policy, a.rows, *gmres, A_low, none, nullptr, nullptr);
  Watched watched(stage);
  Stage<exec::Host, double>* next = &watched;
  const auto there_b = to_device(space, b), x = to_device(space, std::vector<double>(n, 0.0));
  Monitor monitor;
  krylov::Driver<exec::Host, double> driver(space, a.rows);
  Outcome out = driver.run([&] { return std::exchange(next, nullptr); }, A, there_b, x, until(rtol), monitor);
  EXPECT_EQ(out.status, Status::converged);
  EXPECT_LE(norm(residual_of(a, b, to_host(space, x))), rtol * norm(b) * (1 + 1e-9));
  return {std::move(out), A_low.residuals, watched.claims, watched.iterations};
}
StagePolicy of_float() {
  return {
      .name = "p", .most_goes = 50, .floor = 1e-5, .least_floor = 1e-6, .keeps = true, .fills = true, .refines = true};
}

// What refinement asks of GMRES: no go begins the basis anew on its way where the one before can fill it.
TEST(Goes, OfRefinementEndWithTheirBasis) {
  const CsrMatrix a = generate("gen:convdiff2d:20x20");
  const std::vector<double> b = random_values(std::size_t(a.rows), 6);
  const InFloat whole = refined_in_float(a, b, of_float(), 400, 1e-12);
  EXPECT_EQ(whole.on_the_way, 0);
  ASSERT_EQ(whole.out.outer_iterations, 3);
  for (const int restart : {52, 53, 54, 56, 58}) {  // whose rest a go does not pass through at its pace
    SCOPED_TRACE(restart);
    const InFloat r = refined_in_float(a, b, of_float(), restart, 1e-12);
    EXPECT_EQ(r.on_the_way, 0);
    EXPECT_EQ(r.out.outer_iterations, 3);
    EXPECT_LE(r.out.iterations, 160);
  }
}

// The first two goes of GMRES in single precision where digits are slow to come, and how many iterations they save.
TEST(Goes, OfRefinementOpenWhereTheFirstIsSlow) {
  const CsrMatrix a = generate("gen:poisson2d:40x40");
  const std::vector<double> b(std::size_t(a.rows), 1.0);
  const auto solved = [&](double opening, int slow) {
    StagePolicy policy = of_float();
    policy.opening = opening;
    policy.slow = slow;
    return refined_in_float(a, b, policy, 400, 1e-10);
  };
  const InFloat straight = solved(0, 12), open = solved(0.1, 12);
  EXPECT_LT(straight.claims.at(0), 1e-3);
  EXPECT_GE(open.iterations.at(0), 12);
  EXPECT_LE(open.claims.at(0), 0.1);
  EXPECT_GT(open.claims.at(0), 0.05) << "the first iteration that does";
  EXPECT_LE(open.claims.at(1), 1e-3);
  EXPECT_GT(open.claims.at(1), 3e-4) << "not the step of 3e-5 to the target";
  EXPECT_LT(open.out.iterations, straight.out.iterations);
  const int first = open.iterations.at(0);
  EXPECT_EQ(solved(0.1, first).iterations, open.iterations);
  EXPECT_EQ(solved(0.1, first + 1).iterations, straight.iterations) << "not slow enough";
}

// Half an iteration of BiCGStab counts as one only where it is the last: not where a target is met that moves on.
TEST(Goes, ThatGoFurtherTakeTheIterationsOfAStraightOne) {
  const exec::Host space(1);
  const CsrMatrix a = generate("gen:poisson2d:12x11");
  const auto n = std::size_t(a.rows);
  const Product<exec::Host, double> A(space, a);
  precond::None<exec::Host, double> none(space, n);
  const std::vector<double> side = random_values(n, 4);
  const auto b = to_device(space, side);
  std::vector<double> history(200);
  Monitor::Feed feed;
  int wish = 0;
  for (const char* name : {"cg", "bicgstab", "gmres"}) {
    const auto method = krylov::make_method<exec::Host, double>(space, name, a.rows, 100);
    const auto iterations = [&](double reduction, int early) {
      const auto x = to_device(space, std::vector<double>(n, 0.0)), r = to_device(space, side);
      krylov::Control<double> c;
      c.target = reduction * norm(side);
      c.further = 1e-10 * norm(side);
      c.early = early;
      c.max_iterations = 199;
      c.history = history.data();
      c.feed = &feed;
      c.wish = &wish;
      method->iterate({A, none, b.data(), x.data(), r.data(), false}, {&c});
      EXPECT_EQ(c.reason, Stop::target);
      return c.iteration;
    };
    const int straight = iterations(1e-10, 0);
    EXPECT_GT(straight, 10) << name;
    for (double reduction = 0.9; reduction > 1e-9; reduction *= 0.9)
      EXPECT_EQ(iterations(reduction, 1000), straight) << name << " by way of " << reduction;
  }
}

// On a device the iterations are spoken once, whatever the right-hand side, the guess and the target of the next solve.
TEST(Kept, TheNextSolveDoesWhatWasRecorded) {
  for (const char* name : {"cg", "bicgstab", "gmres", "fgmres"}) {
    SCOPED_TRACE(name);
    const exec::Emulated space(2);
    const CsrMatrix a = generate("gen:poisson2d:12x11");
    const auto n = std::size_t(a.rows);
    const Product<exec::Emulated, double> A(space, a);
    precond::None<exec::Emulated, double> none(space, n);
    const auto method = krylov::make_method<exec::Emulated, double>(space, name, a.rows, 30);
    krylov::Driver<exec::Emulated, double> driver(space, a.rows);
    const auto b = space.allocate<double>(n), x = space.allocate<double>(n);
    using Kept = krylov::Kept<exec::Emulated, double>;
    const auto kept = std::make_shared<Kept>(space);
    const auto solve = [&](std::uint64_t seed, double rtol, const std::shared_ptr<Kept>& known) {
      const std::vector<double> side = random_values(n, seed), guess(n, double(seed));
      space.copy_in(b, side.data(), n);
      space.copy_in(x, guess.data(), n);
      Monitor monitor;
      Outcome out = driver.run(*method, A, none, b, x, until(rtol), monitor, known);
      EXPECT_EQ(out.status, Status::converged);
      EXPECT_LE(norm(residual_of(a, side, to_host(space, x))), rtol * norm(side) * (1 + 1e-9));
      return out.history;
    };
    solve(1, 1e-10, kept);
    const int spoken = A.products;
    EXPECT_GT(spoken, 0);
    const auto other = solve(2, 1e-6, kept);
    EXPECT_EQ(A.products, spoken);
    kept->iterations.renew();
    EXPECT_EQ(solve(2, 1e-6, kept), other);
    EXPECT_EQ(A.products, 2 * spoken);
    EXPECT_EQ(solve(2, 1e-6, nullptr), other);
    EXPECT_EQ(A.products, 3 * spoken);
  }
}

}  // namespace
}  // namespace krilu::test
