// SPDX-License-Identifier: Apache-2.0
// The public NewtonSolver as a caller meets it: solutions against dense Newton in long double, every way to form the
// Jacobian with every linear solver, orders of convergence that the theory of inexact Newton methods gives to each
// forcing term, the line search, and a history that adds up.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "newton/newton_solves.hpp"
#include "support/not_finite.hpp"
#include "support/split_matrix.hpp"

namespace krilu::test {
namespace {

/// Newton's method with Gaussian elimination, in long double.
std::vector<double> dense_newton(const Bratu& b, std::vector<double> start) {
  const auto n = std::size_t(b.rows());
  std::vector<long double> u(start.begin(), start.end());
  for (int step = 0; step < 30; ++step) {
    std::vector<std::vector<long double>> m(n, std::vector<long double>(n + 1, 0));
    for (std::size_t k = 0; k < n; ++k) {
      const long double source = b.lambda / ((b.n + 1.0L) * (b.n + 1.0L)) * std::exp(u[k]);
      m[k][n] = source;
      b.columns(Index(k), [&](Index c) {
        const long double a = c == Index(k) ? 4 : -1;
        m[k][std::size_t(c)] = c == Index(k) ? a - source : a;
        m[k][n] -= a * u[std::size_t(c)];
      });
    }
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t i = p + 1; i < n; ++i)
        if (const long double f = m[i][p] / m[p][p]; f != 0)
          for (std::size_t j = p; j <= n; ++j) m[i][j] -= f * m[p][j];
    for (std::size_t i = n; i-- > 0;) {
      long double s = m[i][n];
      for (std::size_t j = i + 1; j < n; ++j) s -= m[i][j] * m[j][n];
      m[i][n] = s / m[i][i];
      u[i] += m[i][n];
    }
  }
  return {u.begin(), u.end()};
}

// --- solutions -----------------------------------------------------------------------------------------------------

INSTANTIATE_TEST_SUITE_P(Spaces, NewtonOn, ::testing::Values("host", "emulated"), name_of_space);

TEST_P(NewtonOn, BratusSolutionIsDenseNewtons) {
  for (const double lambda : {1.0, 6.0}) {
    const Bratu bratu{6, lambda};
    const std::vector<double> zero(36, 0.0), expected = dense_newton(bratu, zero);
    const NewtonSolved s = solve(RowEquations(bratu), zero, options({.rtol = 1e-13}));
    expect_converged(s, 1e-13);
    EXPECT_LE(difference(s.x, expected), 1e-12);
    EXPECT_LE(s.r.iterations, 8);
  }
}

TEST_P(NewtonOn, AWeakSourceGivesPoissonsMaximum) {
  // e^u is 1 then: -(w_xx + w_yy) = 1 has its maximum 0.07367 in the middle of the square.
  const NewtonSolved s = solve(RowEquations(Bratu{31, 1e-3}), std::vector<double>(31 * 31, 0.0), options());
  expect_converged(s, 1e-8);
  EXPECT_NEAR(*std::max_element(s.x.begin(), s.x.end()) / 1e-3, 0.07367, 1e-4);
}

TEST_P(NewtonOn, EveryJacobianWithEverySolverAndPreconditionerFindsTheSameRoot) {
  const std::vector<double> root = random_values(150, 91);
  const Tangled t = tangled(150, 0.1, 0.05, root, 91);
  const RowEquations own(t);
  const RowEquations bare(Bare<Tangled>{t});
  for (const char* jacobian : {"own", "finite-differences", "matrix-free"})
    for (const char* solver : {"gmres", "bicgstab", "fgmres"})
      for (const char* precond : {"none", "jacobi", "dilu", "ilu0", "iluk:1", "ilut", "block-ilu:3", "ras:3"}) {
        SCOPED_TRACE(std::string(jacobian) + " " + solver + " " + precond);
        NewtonOptions o = options({.rtol = 1e-10, .jacobian = jacobian});
        o.linear.solver = solver;
        o.linear.precond = precond;
        const NewtonSolved s = solve(own, std::vector<double>(150, 0.0), o);
        expect_converged(s, 1e-10);
        EXPECT_LE(difference(s.x, root), 1e-8);
        EXPECT_EQ(s.r.solver, solver);
        EXPECT_EQ(s.r.precond, precond);
        EXPECT_EQ(s.r.jacobian, jacobian);
        EXPECT_EQ(s.r.device, GetParam());
        EXPECT_EQ(s.r.forcing, "eisenstat-walker-2");
        EXPECT_EQ(s.r.threads, 1);
      }
  for (const char* jacobian : {"finite-differences", "matrix-free", "auto"}) {
    SCOPED_TRACE(std::string("without a Jacobian, ") + jacobian);
    const NewtonSolved s = solve(bare, std::vector<double>(150, 0.0), options({.rtol = 1e-10, .jacobian = jacobian}));
    expect_converged(s, 1e-10);
    EXPECT_LE(difference(s.x, root), 1e-8);
  }
}

TEST_P(NewtonOn, EveryPrecisionInsideFindsTheSameRoot) {
  const std::vector<double> root = random_values(150, 92);
  const Tangled t = tangled(150, 0.1, 0.05, root, 92);
  const RowEquations equations(t);
  struct Inside {
    const char *solver, *precision;
  };
  for (const char* jacobian : {"own", "finite-differences"})
    for (const Inside in : {Inside{"gmres-ir", "auto"},
                            {"gmres-ir", "fp32/fp16"},
                            {"gmres", "fp32"},
                            {"gmres", "fp32/bf16"},
                            {"bicgstab", "fp32"},
                            {"fgmres", "fp32"}}) {
      SCOPED_TRACE(std::string(jacobian) + " " + in.solver + " " + in.precision);
      NewtonOptions o = options({.rtol = 1e-11, .jacobian = jacobian});
      o.linear.solver = in.solver;
      o.linear.precision = in.precision;
      const NewtonSolved s = solve(equations, std::vector<double>(150, 0.0), o);
      expect_converged(s, 1e-11);
      EXPECT_LE(difference(s.x, root), 1e-9);
    }
}

TEST_P(NewtonOn, EveryForcingTermFindsTheSameRoot) {
  const Bratu bratu{12, 6};
  const std::vector<double> zero(144, 0.0), expected = dense_newton(bratu, zero);
  for (const char* forcing : {"eisenstat-walker-1", "eisenstat-walker-2", "fixed:0.5", "fixed:1e-3", "fixed:1e-10"})
    for (const char* search : {"backtracking", "none"}) {
      SCOPED_TRACE(std::string(forcing) + " " + search);
      const NewtonSolved s =
          solve(RowEquations(bratu), zero, options({.rtol = 1e-12, .forcing = forcing, .line_search = search}));
      expect_converged(s, 1e-12);
      EXPECT_LE(difference(s.x, expected), 1e-10);
      EXPECT_EQ(s.r.forcing, forcing);
    }
}

TEST_P(NewtonOn, AutoNamesItsLinearSolver) {
  const RowEquations equations(Bratu{12, 3});
  NewtonOptions o;
  o.linear.device = GetParam();
  NewtonSolver newton(equations, o);
  EXPECT_EQ(newton.options().linear.solver, "bicgstab");
  EXPECT_EQ(newton.options().linear.precond, "ilu0");
  std::vector<double> x(144, 0.0);
  const NewtonResult r = newton.solve(x);
  EXPECT_EQ(r.status, Status::converged);
  EXPECT_EQ(r.solver, "bicgstab");
  EXPECT_EQ(r.precond, "ilu0");
}

TEST_P(NewtonOn, UnknownsOfARowInAnySequence) {
  const std::vector<double> root = random_values(120, 93);
  const Tangled t = tangled(120, 0.1, 0.05, root, 93);
  const NewtonSolved a = solve(RowEquations(t), std::vector<double>(120, 0.0), options());
  const NewtonSolved b = solve(RowEquations(Disordered<Tangled>{t}), std::vector<double>(120, 0.0), options());
  EXPECT_EQ(bits(a.x), bits(b.x));
}

TEST_P(NewtonOn, AutoTakesTheOwnJacobianWhereThereIsOne) {
  const std::vector<double> zero(16, 0.0);
  EXPECT_EQ(solve(RowEquations(Bratu{4, 1}), zero, options()).r.jacobian, "own");
  EXPECT_EQ(solve(RowEquations(Bare<Bratu>{{4, 1}}), zero, options()).r.jacobian, "finite-differences");
}

// --- orders of convergence -----------------------------------------------------------------------------------------

/// log(r_{k+1} / r_k) / log(r_k / r_{k-1}) at the last three residuals above `floor`.
double order_of(const std::vector<NewtonStep>& history, double floor) {
  std::size_t last = 0;
  while (last + 1 < history.size() && history[last + 1].residual > floor) ++last;
  if (last < 2) return nan;
  const auto r = [&](std::size_t k) { return history[k].residual; };
  return std::log(r(last) / r(last - 1)) / std::log(r(last - 1) / r(last - 2));
}
std::string residuals(const std::vector<NewtonStep>& history) {
  std::string s;
  for (const NewtonStep& h : history) s += std::to_string(std::log10(h.residual)) + " ";
  return s;
}

TEST(Convergence, IsQuadraticWhereEachSystemIsSolved) {
  const std::vector<double> root = random_values(100, 94);
  const RowEquations equations(tangled(100, 0.5, 0.2, root, 94));
  std::vector<double> error;
  for (int steps = 1; steps <= 8; ++steps) {
    const NewtonSolved s = solve(equations, std::vector<double>(100, 0.0),
                                 one_thread({.rtol = 1e-15, .max_iterations = steps, .forcing = "fixed:1e-12"}));
    double sum = 0;
    for (std::size_t i = 0; i < root.size(); ++i) sum += (s.x[i] - root[i]) * (s.x[i] - root[i]);
    error.push_back(std::sqrt(sum));
  }
  int seen = 0;
  for (std::size_t k = 0; k + 1 < error.size(); ++k)
    if (error[k] < 0.5 && error[k] > 1e-7) {
      EXPECT_LE(error[k + 1], 2 * error[k] * error[k]) << "step " << k + 2;
      ++seen;
    }
  EXPECT_GE(seen, 2);
  EXPECT_LE(error.back(), 1e-13);
}

TEST(Convergence, IsSuperlinearWithBothChoices) {
  const RowEquations equations(Bratu{40, 6.5});
  for (const char* forcing : {"eisenstat-walker-1", "eisenstat-walker-2"}) {
    const NewtonSolved s =
        solve(equations, std::vector<double>(1600, 0.0), one_thread({.rtol = 1e-12, .forcing = forcing}));
    SCOPED_TRACE(std::string(forcing) + ": " + residuals(s.r.history));
    expect_converged(s, 1e-12);
    // The last step is asked for half of what remained: it is no part of the order.
    const double floor = 4e-12 * s.r.initial_residual;
    EXPECT_GT(order_of(s.r.history, floor), 1.3);
    double before = 1;
    for (std::size_t k = 1; k < s.r.history.size() && s.r.history[k].residual > floor; ++k) {
      const double ratio = s.r.history[k].residual / s.r.history[k - 1].residual;
      EXPECT_LT(ratio, before) << "step " << k;
      before = ratio;
    }
    EXPECT_LT(before, 1e-2);
  }
}

TEST(Convergence, IsOnlyLinearWithAFixedTerm) {
  const RowEquations equations(Bratu{40, 6.5});
  const NewtonSolved s =
      solve(equations, std::vector<double>(1600, 0.0), one_thread({.rtol = 1e-12, .forcing = "fixed:0.1"}));
  expect_converged(s, 1e-12);
  EXPECT_GE(s.r.iterations, 10);
  for (std::size_t k = 1; k < s.r.history.size(); ++k) {
    const double ratio = s.r.history[k].residual / s.r.history[k - 1].residual;
    EXPECT_GT(ratio, 5e-3) << "step " << k;
    EXPECT_LT(ratio, 0.11 + (k < 3 ? 0.5 : 0)) << "step " << k;
    EXPECT_EQ(s.r.history[k].forcing, 0.1);
    EXPECT_LE(s.r.history[k].linear_residual, 0.1);
  }
}

TEST(Convergence, OfALinearSystemTakesOneStepPerForcingTerm) {
  const CsrMatrix a = random_matrix({.rows = 100, .per_row = 4, .symmetric_pattern = false, .seed = 95});
  const Tangled t{std::make_shared<const CsrMatrix>(a), 0, 0, std::vector<double>(100, 1.0)};
  const NewtonSolved s = solve(RowEquations(t), std::vector<double>(100, 0.0), one_thread({.forcing = "fixed:1e-10"}));
  expect_converged(s, 1e-8);
  EXPECT_EQ(s.r.iterations, 1);
  EXPECT_LE(true_residual(a, s.x, t.b), 1.1e-10);
  EXPECT_NEAR(s.r.history[1].residual / s.r.initial_residual, s.r.history[1].linear_residual, 1e-12);
}

TEST(Convergence, ForcingTermsSaveInnerIterations) {
  const RowEquations equations(Bratu{100, 6.5});
  const std::vector<double> zero(10000, 0.0);
  const NewtonSolved fixed = solve(equations, zero, {.forcing = "fixed:1e-6"});
  expect_converged(fixed, 1e-8);
  for (const char* forcing : {"eisenstat-walker-1", "eisenstat-walker-2"}) {
    const NewtonSolved s = solve(equations, zero, {.forcing = forcing});
    expect_converged(s, 1e-8);
    EXPECT_LE(s.r.inner_iterations, 0.65 * fixed.r.inner_iterations) << forcing;
  }
}

TEST(Convergence, EachLinearSystemIsSolvedAsWellAsItWasAsked) {
  const RowEquations equations(Bratu{30, 6});
  for (const char* jacobian : {"own", "finite-differences", "matrix-free"}) {
    const NewtonSolved s = solve(equations, std::vector<double>(900, 0.0), one_thread({.jacobian = jacobian}));
    for (std::size_t k = 1; k < s.r.history.size(); ++k)
      EXPECT_LE(s.r.history[k].linear_residual, s.r.history[k].forcing * (1 + 1e-12));
    EXPECT_EQ(s.r.history[1].forcing, 0.3);
  }
  const NewtonSolved s =
      solve(equations, std::vector<double>(900, 0.0), one_thread({.first_forcing = 0.05, .most_forcing = 0.06}));
  EXPECT_EQ(s.r.history[1].forcing, 0.05);
  for (const NewtonStep& step : s.r.history) EXPECT_LE(step.forcing, 0.06);
}

// --- line search ---------------------------------------------------------------------------------------------------

TEST_P(NewtonOn, FullStepsLeadAwayWhereBacktrackingDoesNot) {
  const RowEquations equations(Arctangents{50});
  for (const double start : {2.0, 3.0, 20.0}) {
    const std::vector<double> x(50, start);
    const NewtonSolved full =
        solve(equations, x, options({.max_iterations = 5, .forcing = "fixed:1e-10", .line_search = "none"}));
    EXPECT_NE(full.r.status, Status::converged);
    EXPECT_GT(full.r.history.back().residual, full.r.initial_residual);
    EXPECT_EQ(full.x, x) << "the start is the best that was found";
    EXPECT_EQ(full.r.residual, full.r.initial_residual);
    for (const NewtonStep& step : full.r.history)
      if (step.iteration > 0) {
        EXPECT_EQ(step.length, 1);
      }
    for (const char* forcing : {"eisenstat-walker-1", "eisenstat-walker-2", "fixed:1e-10"})
      for (const char* jacobian : {"own", "finite-differences", "matrix-free"}) {
        SCOPED_TRACE(std::string(forcing) + " " + jacobian + " from " + std::to_string(start));
        const NewtonSolved s = solve(equations, x, options({.forcing = forcing, .jacobian = jacobian}));
        expect_converged(s, 1e-8);
        EXPECT_LT(s.r.history[1].length, 1);
        EXPECT_GT(s.r.evaluations, s.r.iterations + 1);
        for (std::size_t k = 1; k < s.r.history.size(); ++k)
          EXPECT_LT(s.r.history[k].residual, s.r.history[k - 1].residual);
      }
  }
}

TEST_P(NewtonOn, TheFirstLengthIsTheParabolasMinimum) {
  // arctan x from 3: the full step leads to 3 - 10 arctan 3 = -9.49.
  const double here = std::atan(3.0), there = std::atan(3 - 10 * here);
  const double g0 = here * here, slope = -2 * g0, bend = there * there - g0 - slope;
  const NewtonSolved s = solve(RowEquations(Arctangents{1}), {3.0}, options({.forcing = "fixed:1e-10"}));
  expect_converged(s, 1e-8);
  EXPECT_NEAR(s.r.history[1].length, -slope / (2 * bend), 1e-9);  // 0.42
  EXPECT_NEAR(s.r.history[1].residual, std::abs(std::atan(3 + s.r.history[1].length * -10 * here)), 1e-8);
}

TEST_P(NewtonOn, OfFullStepsTheBestIsKeptWhereverItStands) {
  // v^3 - 2 v + 2 from a start near its cycle between 0 and 1: |F| rises and falls.
  const RowEquations equations(
      Each{20, [](double v) { return v * v * v - 2 * v + 2; }, [](double v) { return 3 * v * v - 2; }});
  for (const double start : {-0.4, 0.05, 0.6, 1.2}) {
    const NewtonSolved s =
        solve(equations, std::vector<double>(20, start),
              options({.max_iterations = 4, .forcing = "fixed:1e-12", .line_search = "none", .jacobian = "own"}));
    double least = s.r.initial_residual;
    for (const NewtonStep& step : s.r.history) least = std::min(least, step.residual);
    EXPECT_EQ(s.r.residual, least) << start;
    const double v = s.x[0];
    EXPECT_NEAR(std::abs(v * v * v - 2 * v + 2) * std::sqrt(20.0), least, 1e-9 * least) << start;
  }
}

TEST_P(NewtonOn, FullStepsDoWhereTheyLeadThere) {
  const RowEquations equations(Arctangents{50});
  const NewtonSolved s = solve(equations, std::vector<double>(50, 1.2), options({.line_search = "none"}));
  expect_converged(s, 1e-8);
}

TEST_P(NewtonOn, WhereFIsNoNumberTheStepIsShortened) {
  // From 3 the full step of log x = 0 goes to 3 - 3 log 3 = -0.3.
  const RowEquations equations(Each{40, [](double v) { return std::log(v); }, [](double v) { return 1 / v; }});
  const std::vector<double> three(40, 3.0);
  const NewtonSolved s = solve(equations, three, options());
  expect_converged(s, 1e-8);
  EXPECT_EQ(s.r.history[1].length, 0.5);
  for (double v : s.x) EXPECT_NEAR(v, 1, 1e-7);
  const NewtonSolved full = solve(equations, three, options({.line_search = "none"}));
  EXPECT_EQ(full.r.status, Status::diverged);
  EXPECT_EQ(full.r.iterations, 0);
  EXPECT_EQ(full.x, three);
  EXPECT_TRUE(any_has(full.r.notes, "F became NaN or infinite"));
}

}  // namespace
}  // namespace krilu::test
