// SPDX-License-Identifier: Apache-2.0
// How a solve ends: every status on a system that is made for it, on the host and the emulated device. What is reported
// is held against the true residual in long double, and OpenFOAM's norm against a plain transcription of its PCG and
// PBiCGStab: residuals, counts, and the exit at the half step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "support/refusal.hpp"
#include "support/solved.hpp"
#include "support/support.hpp"

namespace {

using namespace krilu;
using test::any_has;
using test::from_dense;
using test::Solved;

class Stopping : public ::testing::TestWithParam<const char*> {
 protected:
  Options options(const std::string& solver, const std::string& precond, double rtol = 1e-8) const {
    Options o;
    o.solver = solver;
    o.precond = precond;
    o.device = GetParam();
    o.rtol = rtol;
    o.threads = 1;
    return o;
  }
};
INSTANTIATE_TEST_SUITE_P(Spaces, Stopping, ::testing::Values("host", "emulated"),
                         [](const auto& space) { return std::string(space.param); });

Solved solve_from(const CsrMatrix& a, const std::vector<double>& b, std::vector<double> x, const Options& o,
                  Monitor* monitor = nullptr) {
  Solver solver(o);
  solver.analyse(a);
  solver.factor(a);
  Result r = solver.solve(b, x, monitor);
  return {std::move(r), std::move(x)};
}
Solved solve_zero(const CsrMatrix& a, const std::vector<double>& b, const Options& o, Monitor* monitor = nullptr) {
  return solve_from(a, b, std::vector<double>(b.size(), 0.0), o, monitor);
}

/// What must hold of every result, however it ended.
void expect_honest(const CsrMatrix& a, const std::vector<double>& b, const Solved& s) {
  for (double v : s.x) ASSERT_TRUE(std::isfinite(v));
  for (double h : s.r.history) ASSERT_TRUE(std::isfinite(h));
  const double truth = test::true_residual(a, s.x, b);
  EXPECT_NEAR(s.r.relative_residual, truth, 1e-6 * truth + 1e-15);
  long double norm_b = 0;
  for (double v : b) norm_b += static_cast<long double>(v) * v;
  const double rmse = truth * double(std::sqrt(norm_b / static_cast<long double>(b.size())));
  EXPECT_NEAR(s.r.rmse, rmse, 1e-6 * rmse + 1e-15);
  EXPECT_EQ(s.r.history.size(), std::size_t(s.r.iterations) + 1);
}

// --- breakdown -----------------------------------------------------------------------------------------------------

TEST_P(Stopping, BicgstabBreaksDownOnASkewMatrixAfterOneRestart) {
  const CsrMatrix a = from_dense({{0, 1}, {-1, 0}});
  const std::vector<double> b{1, 0}, x0{0.25, 0.5};
  for (const auto& start : {std::vector<double>{0, 0}, x0}) {
    const Solved s = solve_from(a, b, start, options("bicgstab", "none"));
    EXPECT_EQ(s.r.status, Status::breakdown);
    EXPECT_EQ(s.r.iterations, 0);
    EXPECT_EQ(s.x, start);
    ASSERT_EQ(s.r.notes.size(), 1u);
    EXPECT_EQ(s.r.notes[0], "breakdown after 0 iterations: restarted once");
    expect_honest(a, b, s);
  }
  // GMRES does not mind.
  const Solved g = solve_zero(a, b, options("gmres", "none"));
  EXPECT_EQ(g.r.status, Status::converged);
  EXPECT_EQ(g.r.iterations, 2);
}

TEST_P(Stopping, BicgstabSurvivesABreakdownByItsRestart) {
  // After one step (r0, r) is zero exactly: a12 a21 + a13 a31 = 0 with b = e1.
  const test::Dense d{{1, 1, 1}, {1, 2, 0}, {-1, 0, 1}};
  const std::vector<double> b{1, 0, 0};
  const Solved s = solve_zero(from_dense(d), b, options("bicgstab", "none", 1e-12));
  EXPECT_EQ(s.r.status, Status::converged);
  EXPECT_TRUE(any_has(s.r.notes, "breakdown after 1 iterations: restarted once"));
  const auto expected = test::dense_solve(d, b);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(s.x[i], expected[i], 1e-11);
  expect_honest(from_dense(d), b, s);
}

TEST_P(Stopping, CgBreaksDownOnAnIndefiniteMatrix) {
  const CsrMatrix a = from_dense({{1, 0}, {0, -1}});  // (p, A p) is zero at once
  const Solved s = solve_zero(a, {1, 1}, options("cg", "none"));
  EXPECT_EQ(s.r.status, Status::breakdown);
  EXPECT_EQ(s.x, (std::vector<double>{0, 0}));
  expect_honest(a, {1, 1}, s);
}

// --- numbers that leave the range ----------------------------------------------------------------------------------

TEST_P(Stopping, ProductsThatOverflowEndWithTheBestFiniteAnswer) {
  // Of finite vectors (A v, A v) is infinite, or (p, A p), which makes CG's step zero for good.
  for (const auto& [scale, size] : {std::pair{1e200, 1.0}, {1e200, 1e120}, {1e100, 1e120}})
    for (const std::string method : {"cg", "bicgstab", "gmres"}) {
      SCOPED_TRACE(method + " " + std::to_string(std::log10(scale)) + " " + std::to_string(std::log10(size)));
      CsrMatrix a = generate("gen:poisson2d:5x5");
      for (double& v : a.values) v *= scale;
      std::vector<double> b = test::random_values(25, 3);
      for (double& v : b) v *= size;
      const Solved s = solve_zero(a, b, options(method, "none"));
      for (double v : s.x) EXPECT_TRUE(std::isfinite(v));
      EXPECT_TRUE(std::isfinite(s.r.relative_residual));
      EXPECT_LE(s.r.relative_residual, 1.0);
      EXPECT_LT(s.r.iterations, 200);
      EXPECT_EQ(s.r.status == Status::converged, s.r.relative_residual <= 1e-8);
      const bool overflows = method == "cg" ? size > 1 : method == "gmres" ? scale == 1e200 : true;
      EXPECT_EQ(s.r.status == Status::breakdown || s.r.status == Status::diverged, overflows) << to_string(s.r.status);
    }
}

TEST_P(Stopping, AnInfiniteResidualEndsAsDivergedWithTheGuess) {
  // The first step is 1e170 long, and the square of what it leaves is infinite.
  const CsrMatrix a = from_dense({{1e-170, 1}, {-1, 1e-170}});
  const std::vector<double> b{1, 0};
  for (const char* method : {"cg", "bicgstab"}) {
    SCOPED_TRACE(method);
    const Solved s = solve_zero(a, b, options(method, "none"));
    EXPECT_EQ(s.r.status, Status::diverged);
    EXPECT_EQ(s.r.iterations, 2) << "one, and one more after the restart";
    EXPECT_EQ(s.x, (std::vector<double>{0, 0}));
    expect_honest(a, b, s);
  }
}

TEST_P(Stopping, GrowthIsCalledDivergedAndTheGuessReturned) {
  // CG has no business on this matrix: its residual grows.
  const CsrMatrix a = from_dense({{1, 3, 0, 0}, {-3, 1, 3, 0}, {0, -3, 1, 3}, {0, 0, -3, 1}});
  const std::vector<double> b{1, 2, 3, 4}, x0{0.5, -0.5, 0.25, 0.125};
  Options o = options("cg", "none");
  o.max_iterations = 2000;
  const Solved whole = solve_from(a, b, x0, o);
  const auto grown = std::find_if(whole.r.history.begin(), whole.r.history.end(),
                                  [&](double h) { return h > 2e3 * whole.r.history[0]; });
  ASSERT_NE(grown, whole.r.history.end());
  for (const bool far : {false, true}) {
    o.max_iterations = far ? int(grown - whole.r.history.begin()) : 1;
    const Solved s = solve_from(a, b, x0, o);
    EXPECT_EQ(s.r.status, far ? Status::diverged : Status::max_iterations);
    EXPECT_EQ(s.r.iterations, o.max_iterations);
    EXPECT_EQ(s.r.history.back(), s.r.relative_residual);
    if (far) {
      EXPECT_EQ(s.x, x0);
    }
    expect_honest(a, b, s);
  }
}

// A right-hand side whose norm does is refused: Input.NumbersMustBeFinite.
TEST_P(Stopping, AFirstResidualWhoseNormOverflowsIsNotCalledSolved) {
  const std::vector<double> b(16, 1.0), guess(16, 1e200);
  const Solved s = solve_from(generate("gen:poisson2d:4x4"), b, guess, options("cg", "dic"));
  EXPECT_EQ(s.r.status, Status::diverged);
  EXPECT_TRUE(any_has(s.r.notes, "too large"));
  EXPECT_EQ(s.x, guess);
}

// --- tolerances ----------------------------------------------------------------------------------------------------

TEST_P(Stopping, AToleranceBelowRoundingStagnates) {
  const CsrMatrix sym = generate("gen:poisson2d:20x20"), uns = generate("gen:convdiff2d:20x20");
  const auto b = test::random_values(400, 5);
  for (const char* method : {"cg", "bicgstab", "gmres"}) {
    SCOPED_TRACE(method);
    const CsrMatrix& a = std::string(method) == "cg" ? sym : uns;
    const Solved s = solve_zero(a, b, options(method, "jacobi", 1e-18));
    EXPECT_EQ(s.r.status, Status::stagnated);
    EXPECT_LT(s.r.relative_residual, 1e-14);
    EXPECT_GT(s.r.relative_residual, 1e-18);
    EXPECT_LT(s.r.iterations, 1000);
    EXPECT_TRUE(any_has(s.r.notes, "the true one did not"));
    EXPECT_EQ(s.r.history.back(), s.r.relative_residual);
    // The residual's own rounding is of the size of the residual.
    EXPECT_LT(test::true_residual(a, s.x, b), 1e-14);
  }
}

TEST_P(Stopping, GmresGoesOnFromAFalseClaimWithWhatItKnows) {
  // Condition 4e8: what the recurrence claims is five decades below the truth. Anew it would take most of its
  // iterations again.
  const CsrMatrix a = generate("gen:femflow2d:16x16");
  const std::vector<double> b(std::size_t(a.rows), 1.0);
  for (const char* method : {"gmres", "fgmres"}) {
    SCOPED_TRACE(method);
    Options o = options(method, "ilu0", 1e-11);
    o.restart = 300;
    const Solved s = solve_zero(a, b, o);
    EXPECT_EQ(s.r.status, Status::converged);
    const double truth = test::true_residual(a, s.x, b);  // a residual's rounding is 1e-15 here
    EXPECT_LE(truth, 1.001e-11);
    EXPECT_NEAR(s.r.relative_residual, truth, 1e-3 * truth);
    ASSERT_EQ(s.r.history.size(), std::size_t(s.r.iterations) + 1);
    EXPECT_EQ(s.r.history.back(), s.r.relative_residual);
    ASSERT_TRUE(any_has(s.r.notes, "the true one did not"));
    const std::string& note = s.r.notes.front();
    const int claimed_after = std::stoi(note.substr(note.find("after ") + 6));
    EXPECT_GT(claimed_after, 100);
    EXPECT_LT(s.r.iterations, 1.25 * claimed_after);
  }
}

TEST_P(Stopping, ConvergedIsSaidOfTheTrueResidual) {
  // Rows scaled up to 4 orders of magnitude apart: the recurrence and the truth part ways near 1e-13.
  CsrMatrix a = generate("gen:convdiff2d:20x20");
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      a.values[std::size_t(k)] *= std::pow(10.0, i % 5);
  const auto b = test::random_values(400, 6);
  int converged = 0;
  for (const char* method : {"bicgstab", "gmres"})
    for (const double rtol : {1e-4, 1e-8, 1e-11, 1e-13, 1e-15}) {
      SCOPED_TRACE(std::string(method) + " " + std::to_string(-std::log10(rtol)));
      const Solved s = solve_zero(a, b, options(method, "dilu", rtol));
      const double truth = test::true_residual(a, s.x, b);
      EXPECT_NEAR(s.r.relative_residual, truth, 1e-6 * truth + 1e-12);
      EXPECT_EQ(s.r.status == Status::converged, s.r.relative_residual <= rtol);
      converged += s.r.status == Status::converged;
    }
  EXPECT_GE(converged, 4);
}

TEST_P(Stopping, AnAbsoluteToleranceCounts) {
  const CsrMatrix a = generate("gen:poisson2d:12x12");
  const auto b = test::random_values(144, 7);
  Options o = options("cg", "dic", 0);
  o.atol = 1e-3;
  const Solved s = solve_zero(a, b, o);
  EXPECT_EQ(s.r.status, Status::converged);
  EXPECT_LE(s.r.rmse * 12, 1e-3);
  EXPECT_GT(s.r.rmse * 12, 1e-6) << "it is to stop at atol, not far below";
}

TEST_P(Stopping, IterationsAreLimited) {
  const CsrMatrix a = generate("gen:convdiff2d:20x20");
  const auto b = test::random_values(400, 8), x0 = test::random_values(400, 9);
  for (const char* method : {"bicgstab", "gmres", "fgmres"})
    for (const int limit : {0, 1, 2, 5, 31, 33}) {
      SCOPED_TRACE(std::string(method) + " " + std::to_string(limit));
      Options o = options(method, "none", 1e-14);
      o.max_iterations = limit;
      const Solved s = solve_from(a, b, x0, o);
      EXPECT_EQ(s.r.status, Status::max_iterations);
      EXPECT_EQ(s.r.iterations, limit);
      if (limit == 0) {
        EXPECT_EQ(s.x, x0);
      }
      EXPECT_LE(s.r.relative_residual, s.r.history[0]);
      EXPECT_EQ(s.r.history.back(), s.r.relative_residual);
      EXPECT_EQ(s.r.initial_residual, s.r.history[0]);
      expect_honest(a, b, s);
    }
}

TEST_P(Stopping, AnIterateWorseThanTheGuessIsNotReturned) {
  // CG's first steps from here go up; the guess is then the best that was looked at.
  const CsrMatrix a = from_dense({{0.1, 2, 0}, {-2, 0.1, 2}, {0, -2, 0.1}});
  const std::vector<double> b{1, 1, 1}, x0{0.2, 0.1, 0.3};
  const double before = test::true_residual(a, x0, b);
  int worse = 0;
  for (int limit = 1; limit <= 2; ++limit) {
    Options o = options("cg", "none", 1e-14);
    o.max_iterations = limit;
    const Solved s = solve_from(a, b, x0, o);
    EXPECT_LE(s.r.relative_residual, before * (1 + 1e-14));
    worse += s.x == x0;
    expect_honest(a, b, s);
  }
  EXPECT_GT(worse, 0);
}

// --- interruption --------------------------------------------------------------------------------------------------

TEST_P(Stopping, InterruptedBeforeTheStart) {
  const CsrMatrix a = generate("gen:poisson2d:12x12");
  const auto b = test::random_values(144, 10), x0 = test::random_values(144, 11);
  for (const char* method : {"cg", "bicgstab", "gmres"}) {
    Monitor monitor;
    monitor.interrupt();
    const Solved s = solve_from(a, b, x0, options(method, "none"), &monitor);
    EXPECT_EQ(s.r.status, Status::interrupted);
    EXPECT_EQ(s.r.iterations, 0);
    EXPECT_EQ(s.x, x0);
    expect_honest(a, b, s);
  }
}

TEST_P(Stopping, InterruptedByAnotherThread) {
  const CsrMatrix a = generate("gen:poisson2d:150x150");
  const auto b = test::random_values(150 * 150, 12);
  for (const char* method : {"gmres", "cg", "bicgstab"}) {
    SCOPED_TRACE(method);
    Options o = options(method, "none", 0);  // without an end of its own
    o.restart = 2;
    o.max_iterations = 1000000;
    Monitor monitor;
    std::thread other([&] {
      while (monitor.iteration() < 25) std::this_thread::yield();
      monitor.interrupt();
    });
    const Solved s = solve_zero(a, b, o, &monitor);
    other.join();
    EXPECT_EQ(s.r.status, Status::interrupted);
    EXPECT_GE(s.r.iterations, 25);
    EXPECT_LT(s.r.iterations, 100000);
    EXPECT_LE(s.r.relative_residual, 1);
    EXPECT_EQ(monitor.iteration(), s.r.iterations);
    expect_honest(a, b, s);
  }
}

// --- OpenFOAM's norm, transcribed from its sources -------------------------------------------------------------------

/// lduMatrix::solver::normFactor, PCG::solve and PBiCGStab::solve of OpenFOAM with the preconditioner `diagonal`, over
/// a dense matrix.
class Foam {
 public:
  using Field = std::vector<double>;
  Foam(test::Dense a, Field source, Field psi) : a_(std::move(a)), source_(std::move(source)), psi_(std::move(psi)) {
    const Field wA = amul(psi_);
    rA_ = source_;
    for (std::size_t i = 0; i < n(); ++i) rA_[i] -= wA[i];
    const double average = std::accumulate(psi_.begin(), psi_.end(), 0.0) / double(n());
    const Field pA = amul(Field(n(), average));
    norm_factor = 1e-20;
    for (std::size_t i = 0; i < n(); ++i) norm_factor += std::abs(wA[i] - pA[i]) + std::abs(source_[i] - pA[i]);
    residuals.push_back(residual(rA_));
  }
  bool converged(double tolerance, double rel_tol) const {
    return residuals.back() < tolerance || residuals.back() < rel_tol * residuals.front();
  }
  void pcg(double tolerance, double rel_tol) {
    Field pA(n(), 0.0);
    double wArA = 0;
    do {
      const double wArAold = wArA;
      const Field wA = precondition(rA_);
      wArA = dot(wA, rA_);
      for (std::size_t i = 0; i < n(); ++i) pA[i] = wA[i] + (iterations ? wArA / wArAold : 0) * pA[i];
      const Field ApA = amul(pA);
      const double alpha = wArA / dot(ApA, pA);
      for (std::size_t i = 0; i < n(); ++i) psi_[i] += alpha * pA[i], rA_[i] -= alpha * ApA[i];
      residuals.push_back(residual(rA_));
      ++iterations;
    } while (!converged(tolerance, rel_tol));
  }
  void pbicgstab(double tolerance, double rel_tol) {
    const Field rA0 = rA_;
    Field pA(n()), AyA(n());
    double rA0rA = 0, alpha = 0, omega = 0;
    do {
      const double old = rA0rA;
      rA0rA = dot(rA0, rA_);
      if (iterations == 0) {
        pA = rA_;
      } else {
        const double beta = (rA0rA / old) * (alpha / omega);
        for (std::size_t i = 0; i < n(); ++i) pA[i] = rA_[i] + beta * (pA[i] - omega * AyA[i]);
      }
      const Field yA = precondition(pA);
      AyA = amul(yA);
      alpha = rA0rA / dot(rA0, AyA);
      Field sA = rA_;
      for (std::size_t i = 0; i < n(); ++i) sA[i] -= alpha * AyA[i];
      residuals.push_back(residual(sA));
      if (converged(tolerance, rel_tol)) {
        for (std::size_t i = 0; i < n(); ++i) psi_[i] += alpha * yA[i];
        ++iterations;
        half_step = true;
        return;
      }
      residuals.pop_back();
      const Field zA = precondition(sA), tA = amul(zA);
      omega = dot(tA, sA) / dot(tA, tA);
      for (std::size_t i = 0; i < n(); ++i) psi_[i] += alpha * yA[i] + omega * zA[i], rA_[i] = sA[i] - omega * tA[i];
      residuals.push_back(residual(rA_));
      ++iterations;
    } while (!converged(tolerance, rel_tol));
  }

  double norm_factor = 0;
  std::vector<double> residuals;  // normalised, one an iteration
  int iterations = 0;
  bool half_step = false;
  const Field& psi() const { return psi_; }

 private:
  std::size_t n() const { return source_.size(); }
  Field amul(const Field& x) const {
    Field y(n(), 0.0);
    for (std::size_t i = 0; i < n(); ++i) y[i] = dot(a_[i], x);
    return y;
  }
  Field precondition(const Field& r) const {
    Field w(n());
    for (std::size_t i = 0; i < n(); ++i) w[i] = r[i] / a_[i][i];
    return w;
  }
  static double dot(const Field& x, const Field& y) { return std::inner_product(x.begin(), x.end(), y.begin(), 0.0); }
  double residual(const Field& r) const {
    double sum = 0;
    for (double v : r) sum += std::abs(v);
    return sum / norm_factor;
  }
  test::Dense a_;
  Field source_, psi_, rA_;
};

TEST_P(Stopping, OpenfoamNormIsOpenfoams) {
  int half_steps = 0, whole_steps = 0;
  for (const char* method : {"cg", "bicgstab"})
    for (const bool zero_guess : {true, false})
      for (const double rel_tol : {0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7}) {
        SCOPED_TRACE(std::string(method) + " relTol " + std::to_string(-std::log10(rel_tol)) +
                     (zero_guess ? " zero" : ""));
        const bool cg = std::string(method) == "cg";
        const CsrMatrix a = cg ? generate("gen:poisson2d:9x7") : generate("gen:convdiff2d:9x7");
        const auto b = random_vector(63, 13, 0, 1);
        const auto x0 = zero_guess ? std::vector<double>(63, 0.0) : random_vector(63, 14, 1, 2);
        Options o = options(method, "jacobi", rel_tol);
        o.norm = Norm::openfoam;
        const Solved s = solve_from(a, b, x0, o);
        Foam foam(test::to_dense(a), b, x0);
        cg ? foam.pcg(0, rel_tol) : foam.pbicgstab(0, rel_tol);

        EXPECT_EQ(s.r.status, Status::converged);
        ASSERT_EQ(s.r.iterations, foam.iterations);
        ASSERT_EQ(s.r.history.size(), foam.residuals.size());
        EXPECT_NEAR(s.r.initial_residual, foam.residuals[0], 1e-13 * foam.residuals[0]);
        for (std::size_t k = 0; k < foam.residuals.size(); ++k)
          EXPECT_NEAR(s.r.history[k], foam.residuals[k], 1e-6 * foam.residuals[k]) << k;
        for (std::size_t i = 0; i < 63; ++i) EXPECT_NEAR(s.x[i], foam.psi()[i], 1e-9 * std::abs(foam.psi()[i]) + 1e-12);
        expect_honest(a, b, s);
        half_steps += !cg && foam.half_step;
        whole_steps += !cg && !foam.half_step;
      }
  EXPECT_GT(half_steps, 1) << "the exit at the half step is to be seen";
  EXPECT_GT(whole_steps, 1) << "and the other one";
}

TEST_P(Stopping, OpenfoamNormTakesAnAbsoluteToleranceOfTheNormalisedResidual) {
  const CsrMatrix a = generate("gen:convdiff2d:9x7");
  const auto b = random_vector(63, 15, 0, 1), x0 = random_vector(63, 16, 1, 2);
  Options o = options("bicgstab", "jacobi", 0);
  o.norm = Norm::openfoam;
  o.atol = 1e-5;
  const Solved s = solve_from(a, b, x0, o);
  Foam foam(test::to_dense(a), b, x0);
  foam.pbicgstab(1e-5, 0);
  EXPECT_EQ(s.r.status, Status::converged);
  EXPECT_EQ(s.r.iterations, foam.iterations);
  EXPECT_LE(s.r.history.back(), 1e-5);
}

}  // namespace
