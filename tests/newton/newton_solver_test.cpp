// SPDX-License-Identifier: Apache-2.0
// The public NewtonSolver as a caller meets it: solutions against dense Newton in long double, orders of convergence
// that the theory of inexact Newton methods gives to each forcing term, the line search, every way to form the Jacobian
// with every linear solver, each status on a system made for it, what is refused and in which words, and a history that
// adds up.
#include <algorithm>
#include <atomic>

#include "krilu/newton.hpp"
#include "newton/systems.hpp"
#include "support/not_finite.hpp"
#include "support/split_matrix.hpp"

namespace krilu::test {
namespace {

/// What must hold of every result, however it ended: the residual is that of x, and the history adds up.
void expect_honest(const Equations& equations, const NewtonSolved& s) {
  const NewtonResult& r = s.r;
  for (double v : s.x) ASSERT_TRUE(std::isfinite(v));
  const double truth = norm_of(residual_of(equations, s.x));
  EXPECT_NEAR(r.residual, truth, 1e-12 * truth);
  ASSERT_FALSE(r.history.empty());
  EXPECT_EQ(r.history.back().iteration, r.iterations);
  EXPECT_EQ(r.history.front().residual, r.initial_residual);
  EXPECT_EQ(r.history.front().length, 0);
  EXPECT_EQ(r.history.front().inner_iterations, 0);
  EXPECT_EQ(r.history.back().residual, r.residual);
  int inner = 0, taken = 0;
  for (std::size_t k = 0; k < r.history.size(); ++k) {
    const NewtonStep& step = r.history[k];
    EXPECT_TRUE(std::isfinite(step.residual));
    inner += step.inner_iterations;
    taken += step.length > 0;
    EXPECT_EQ(step.iteration, taken);
    if (k == 0) continue;
    EXPECT_GE(step.length, 0);
    EXPECT_LE(step.length, 1);
    EXPECT_GT(step.forcing, 0);
    EXPECT_LT(step.forcing, 1);
    EXPECT_GE(step.linear_residual, 0);
  }
  EXPECT_EQ(inner, r.inner_iterations);
  EXPECT_GE(r.evaluations, r.iterations + 1);
  EXPECT_GE(r.threads, 1);
  EXPECT_GT(r.seconds.total, 0);
  const NewtonSeconds& t = r.seconds;
  EXPECT_LE(t.residual + t.jacobian + t.factor + t.linear, t.total);
  for (const double part : {t.analyse, t.residual, t.jacobian, t.factor, t.linear}) EXPECT_GE(part, 0);
}

NewtonSolved solve(const Equations& equations, std::vector<double> x, const NewtonOptions& options) {
  NewtonSolver newton(equations, options);
  NewtonResult r = newton.solve(x);
  EXPECT_EQ(r.bytes, newton.bytes());
  NewtonSolved s{std::move(r), std::move(x)};
  expect_honest(equations, s);
  return s;
}
void expect_converged(const NewtonSolved& s, double rtol) {
  EXPECT_EQ(s.r.status, Status::converged) << (s.r.notes.empty() ? "" : s.r.notes.front());
  EXPECT_LE(s.r.residual, rtol * s.r.initial_residual);
}

NewtonOptions one_thread(NewtonOptions o = {}) {
  o.linear.threads = 1;
  return o;
}

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

class NewtonOn : public ::testing::TestWithParam<const char*> {
 protected:
  NewtonOptions options(NewtonOptions o = {}) const {
    o.linear.device = GetParam();
    return one_thread(std::move(o));
  }
};
INSTANTIATE_TEST_SUITE_P(Spaces, NewtonOn, ::testing::Values("host", "emulated"),
                         [](const auto& space) { return std::string(space.param); });

TEST_P(NewtonOn, BratusSolutionIsDenseNewtons) {
  for (const double lambda : {1.0, 6.0}) {
    const Bratu bratu{6, lambda};
    const std::vector<double> zero(36, 0.0), expected = dense_newton(bratu, zero);
    const NewtonSolved s = solve(RowEquations(bratu), zero, options({.rtol = 1e-13}));
    expect_converged(s, 1e-13);
    EXPECT_LE(apart(s.x, expected), 1e-12);
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
        EXPECT_LE(apart(s.x, root), 1e-8);
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
    EXPECT_LE(apart(s.x, root), 1e-8);
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
      EXPECT_LE(apart(s.x, root), 1e-9);
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
      EXPECT_LE(apart(s.x, expected), 1e-10);
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
    EXPECT_GT(full.r.residual, full.r.initial_residual);
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

// --- how it ends ---------------------------------------------------------------------------------------------------

TEST_P(NewtonOn, WithoutARootItStagnatesAndSaysSo) {
  // Steps may end where the slope vanishes, by rounding's leave: a zero pivot there would be a breakdown.
  const RowEquations equations(Each{30, [](double v) { return v * v + 1; }, [](double v) { return 2 * v + 1e-12; }});
  std::vector<double> start;
  for (int i = 0; i < 30; ++i) start.push_back(1 + 1e-3 * i);
  NewtonOptions o = options({.max_iterations = 1000});
  o.linear.solver = "gmres";
  const NewtonSolved s = solve(equations, start, o);
  EXPECT_EQ(s.r.status, Status::stagnated);
  EXPECT_LT(s.r.iterations, 1000);
  EXPECT_TRUE(any_has(s.r.notes, "no length of the last step lowers ||F||"));
  EXPECT_GE(s.r.residual, std::sqrt(30.0));
  EXPECT_LT(s.r.residual, s.r.initial_residual);
}

TEST_P(NewtonOn, StepsThatAreUsedUp) {
  const RowEquations equations(Bratu{10, 6});
  const std::vector<double> zero(100, 0.0);
  const int all = solve(equations, zero, options()).r.iterations;
  ASSERT_GE(all, 3);
  for (int most = 1; most < all; ++most) {
    const NewtonSolved s = solve(equations, zero, options({.max_iterations = most}));
    EXPECT_EQ(s.r.status, Status::max_iterations);
    EXPECT_EQ(s.r.iterations, most);
  }
  EXPECT_EQ(solve(equations, zero, options({.max_iterations = all})).r.status, Status::converged);
}

TEST_P(NewtonOn, NoStepsAllowedAreNone) {
  const std::vector<double> zero(100, 0.0);
  const NewtonSolved s = solve(RowEquations(Bratu{10, 6}), zero, options({.max_iterations = 0}));
  EXPECT_EQ(s.r.status, Status::max_iterations);
  EXPECT_EQ(s.r.iterations, 0);
  EXPECT_EQ(s.x, zero);
  EXPECT_EQ(s.r.residual, s.r.initial_residual);
  const NewtonSolved there = solve(RowEquations(Bratu{10, 0}), zero, options({.max_iterations = 0}));
  EXPECT_EQ(there.r.status, Status::converged) << "none was needed";
}

TEST_P(NewtonOn, StepsShorterThanTheStepToleranceEndIt) {
  const RowEquations equations(Bratu{10, 6});
  const double tolerance = 1e-3;
  int enough = 0;  // steps until one is short enough
  for (std::vector<double> before(100, 0.0);; ++enough) {
    const NewtonSolved s =
        solve(equations, std::vector<double>(100, 0.0), options({.rtol = 0, .max_iterations = enough + 1}));
    std::vector<double> step;
    for (std::size_t i = 0; i < before.size(); ++i) step.push_back(s.x[i] - before[i]);
    before = s.x;
    if (norm_of(step) <= tolerance * norm_of(before)) break;
  }
  const NewtonSolved s =
      solve(equations, std::vector<double>(100, 0.0), options({.rtol = 0, .step_tolerance = tolerance}));
  EXPECT_EQ(s.r.status, Status::stagnated);
  EXPECT_TRUE(any_has(s.r.notes, "step tolerance"));
  EXPECT_EQ(s.r.iterations, enough + 1);
}

TEST_P(NewtonOn, ProgressSeesEveryStepAndMayEndIt) {
  const RowEquations equations(Bratu{10, 6});
  NewtonSolver newton(equations, options({.rtol = 1e-12}));
  std::vector<double> x(100, 0.0);
  std::vector<NewtonStep> seen;
  const NewtonResult all = newton.solve(x, [&](const NewtonStep& step) {
    seen.push_back(step);
    return true;
  });
  EXPECT_EQ(all.status, Status::converged);
  ASSERT_EQ(seen.size() + 1, all.history.size());
  for (std::size_t k = 0; k < seen.size(); ++k) {
    EXPECT_EQ(seen[k].iteration, int(k) + 1);
    EXPECT_EQ(seen[k].residual, all.history[k + 1].residual);
    EXPECT_EQ(seen[k].inner_iterations, all.history[k + 1].inner_iterations);
  }
  NewtonSolved stopped{{}, std::vector<double>(100, 0.0)};
  stopped.r = newton.solve(stopped.x, [](const NewtonStep& step) { return step.iteration < 2; });
  EXPECT_EQ(stopped.r.status, Status::interrupted);
  EXPECT_EQ(stopped.r.iterations, 2);
  EXPECT_EQ(stopped.r.residual, all.history[2].residual);
  expect_honest(equations, stopped);
  // The step that converges is the last one anyway.
  std::vector<double> y(100, 0.0);
  const NewtonResult last = newton.solve(y, [&](const NewtonStep& step) { return step.iteration < all.iterations; });
  EXPECT_EQ(last.status, Status::converged);
}

TEST_P(NewtonOn, AStartThatIsASolutionTakesNoStep) {
  const RowEquations equations(Each{20, [](double v) { return v - 1; }, [](double) { return 1.0; }});
  for (const double rtol : {1e-8, 0.0}) {
    const NewtonSolved s = solve(equations, std::vector<double>(20, 1.0), options({.rtol = rtol}));
    EXPECT_EQ(s.r.status, Status::converged);
    EXPECT_EQ(s.r.iterations, 0);
    EXPECT_EQ(s.r.evaluations, 1);
    EXPECT_EQ(s.x, std::vector<double>(20, 1.0));
  }
  const NewtonSolved near = solve(equations, std::vector<double>(20, 1.001), options({.atol = 0.01}));
  EXPECT_EQ(near.r.status, Status::converged);
  EXPECT_EQ(near.r.iterations, 0);
  EXPECT_EQ(near.x, std::vector<double>(20, 1.001));
}

TEST_P(NewtonOn, TheAbsoluteToleranceEndsItToo) {
  const RowEquations equations(Bratu{10, 6});
  const NewtonSolved s = solve(equations, std::vector<double>(100, 0.0), options({.rtol = 0, .atol = 1e-4}));
  EXPECT_EQ(s.r.status, Status::converged);
  EXPECT_LE(s.r.residual, 1e-4);
  EXPECT_GT(s.r.residual, 1e-12);
}

TEST_P(NewtonOn, ToleranceZeroEndsAtRoundingWithoutNaN) {
  const RowEquations equations(Bratu{10, 6});
  for (const char* forcing : {"eisenstat-walker-1", "eisenstat-walker-2", "fixed:1e-8"}) {
    const NewtonSolved s = solve(equations, std::vector<double>(100, 0.0), options({.rtol = 0, .forcing = forcing}));
    EXPECT_TRUE(s.r.status == Status::stagnated || s.r.status == Status::converged) << to_string(s.r.status);
    EXPECT_LE(s.r.residual, 1e-13 * s.r.initial_residual);
  }
}

TEST_P(NewtonOn, NoRowsAreSolvedAtOnce) {
  for (const char* jacobian : {"auto", "finite-differences", "matrix-free"}) {
    const NewtonSolved s = solve(RowEquations(Bratu{0, 1}), {}, options({.jacobian = jacobian}));
    EXPECT_EQ(s.r.status, Status::converged);
    EXPECT_EQ(s.r.iterations, 0);
    EXPECT_EQ(s.r.residual, 0);
  }
}

TEST_P(NewtonOn, OneRowIsASystemToo) {
  // x^2 = 2
  const RowEquations equations(Each{1, [](double v) { return v * v - 2; }, [](double v) { return 2 * v; }});
  for (const char* jacobian : {"own", "finite-differences", "matrix-free"}) {
    const NewtonSolved s = solve(equations, {1.0}, options({.rtol = 1e-14, .jacobian = jacobian}));
    expect_converged(s, 1e-14);
    EXPECT_NEAR(s.x[0], std::sqrt(2.0), 1e-14);
  }
}

TEST_P(NewtonOn, LinearSolvesThatFallShortAreCounted) {
  const RowEquations equations(Bratu{12, 6});
  NewtonOptions o = options({.max_iterations = 200});
  o.linear.max_iterations = 3;
  o.linear.precond = "jacobi";
  const NewtonSolved s = solve(equations, std::vector<double>(144, 0.0), o);
  expect_converged(s, 1e-8);
  EXPECT_TRUE(any_has(s.r.notes, "linear solves ended before they met their forcing term"));
  for (const NewtonStep& step : s.r.history) EXPECT_LE(step.inner_iterations, 3);
}

TEST_P(NewtonOn, ALinearSolverThatDoesNothingIsNoStep) {
  const std::vector<double> zero(100, 0.0);
  NewtonOptions o = options();
  o.linear.max_iterations = 0;
  const NewtonSolved s = solve(RowEquations(Bratu{10, 6}), zero, o);
  EXPECT_EQ(s.r.status, Status::stagnated) << to_string(s.r.status);
  EXPECT_EQ(s.r.iterations, 0);
  EXPECT_LE(s.r.evaluations, 50);
  EXPECT_EQ(s.x, zero);
}

TEST_P(NewtonOn, AJacobianThatIsNoNumberIsNamedByItsRow) {
  const RowEquations equations(
      Each{4, [](double v) { return std::sqrt(v) - 0.1; }, [](double v) { return 0.5 / std::sqrt(v); }});
  NewtonSolver newton(equations, options());
  std::vector<double> x{1, 1, 0, 1};
  expect_words(refusal([&] { newton.solve(x); }), {"row 3", "NaN or infinity"});
}

TEST_P(NewtonOn, AZeroPivotIsNamedByItsRow) {
  // F_0 = x_1 - 1, F_1 = x_0 - 2: the diagonal is part of the pattern, and zero.
  CsrMatrix a = from_dense({{9, 1}, {1, 9}});
  a.values[0] = a.values[3] = 0;
  const Tangled t{std::make_shared<const CsrMatrix>(a), 0, 0, {1, 2}};
  const RowEquations equations(t);
  NewtonSolver newton(equations, options());
  std::vector<double> x{0.5, 0.5};
  expect_words(refusal([&] { newton.solve(x); }), {"row 1"});
  EXPECT_EQ(x, (std::vector<double>{0.5, 0.5}));
  NewtonOptions o = options();
  o.linear.precond = "none";
  const NewtonSolved s = solve(equations, {0.5, 0.5}, o);
  expect_converged(s, 1e-8);
  EXPECT_NEAR(s.x[0], 2, 1e-7);
  EXPECT_NEAR(s.x[1], 1, 1e-7);
}

TEST_P(NewtonOn, ASolverGoesOnAfterAnError) {
  RowEquations equations(Each{10, [](double v) { return std::log(v); }, [](double v) { return 1 / v; }});
  NewtonSolver newton(equations, options());
  std::vector<double> bad(10, -1.0), x(10, 2.0);
  refusal([&] { newton.solve(bad); });
  EXPECT_EQ(newton.solve(x).status, Status::converged);
  const NewtonSolved fresh = solve(equations, std::vector<double>(10, 2.0), options());
  EXPECT_EQ(bits(x), bits(fresh.x));
}

// --- many solves ---------------------------------------------------------------------------------------------------

TEST_P(NewtonOn, ParametersMayChangeBetweenSolves) {
  for (const char* jacobian : {"own", "finite-differences", "matrix-free"}) {
    RowEquations equations(Bratu{15, 1});
    NewtonSolver newton(equations, options({.jacobian = jacobian}));
    for (const double lambda : {1.0, 6.0, 2.0}) {
      equations.row().lambda = lambda;
      std::vector<double> x(225, 0.0);
      const NewtonResult r = newton.solve(x);
      EXPECT_EQ(r.status, Status::converged);
      const NewtonSolved fresh =
          solve(RowEquations(Bratu{15, lambda}), std::vector<double>(225, 0.0), options({.jacobian = jacobian}));
      EXPECT_EQ(bits(x), bits(fresh.x)) << jacobian << ", lambda " << lambda;
      EXPECT_EQ(r.inner_iterations, fresh.r.inner_iterations);
      EXPECT_EQ(r.evaluations, fresh.r.evaluations);
    }
  }
}

TEST_P(NewtonOn, TolerancesMayChangeBetweenSolves) {
  const RowEquations equations(Bratu{15, 6});
  NewtonSolver newton(equations, options({.rtol = 1e-3}));
  std::vector<double> x(225, 0.0);
  const NewtonResult loose = newton.solve(x);
  EXPECT_GT(loose.residual, 1e-9 * loose.initial_residual);
  newton.set_tolerances(1e-10, 0);
  std::fill(x.begin(), x.end(), 0.0);
  const NewtonResult tight = newton.solve(x);
  EXPECT_LE(tight.residual, 1e-10 * tight.initial_residual);
  newton.set_tolerances(0, 0.5 * tight.initial_residual);
  std::fill(x.begin(), x.end(), 0.0);
  EXPECT_EQ(newton.solve(x).iterations, 1);
  for (const auto& [rtol, atol] : {std::pair{-1.0, 0.0}, {0.0, -1.0}, {nan, 0.0}, {0.0, nan}})
    expect_words(refusal([&, r = rtol, a = atol] { newton.set_tolerances(r, a); }), {"rtol and atol", "from 0"});
  std::fill(x.begin(), x.end(), 0.0);
  EXPECT_EQ(newton.solve(x).iterations, 1) << "what was refused changed nothing";
}

TEST_P(NewtonOn, ASolverThatMovedSolves) {
  const RowEquations equations(Bratu{8, 3});
  NewtonSolver first(equations, options());
  NewtonSolver second = std::move(first);
  std::vector<double> x(64, 0.0);
  EXPECT_EQ(second.solve(x).status, Status::converged);
  EXPECT_EQ(second.rows(), 64);
}

TEST_P(NewtonOn, TheSameBitsOnAnyNumberOfThreadsAndSpaces) {
  const RowEquations equations(Bratu{80, 6});  // enough rows for three threads to share
  for (const char* jacobian : {"own", "finite-differences", "matrix-free"}) {
    const NewtonSolved one =
        solve(equations, std::vector<double>(6400, 0.0), one_thread({.rtol = 1e-2, .jacobian = jacobian}));
    for (const int threads : {1, 2, 3}) {
      NewtonOptions o = options({.rtol = 1e-2, .jacobian = jacobian});
      o.linear.threads = threads;
      const NewtonSolved s = solve(equations, std::vector<double>(6400, 0.0), o);
      EXPECT_EQ(bits(s.x), bits(one.x)) << jacobian << ", " << threads << " threads";
      EXPECT_EQ(s.r.threads, threads);
      ASSERT_EQ(s.r.history.size(), one.r.history.size());
      for (std::size_t k = 0; k < s.r.history.size(); ++k)
        EXPECT_EQ(s.r.history[k].residual, one.r.history[k].residual);
    }
  }
}

// --- what is asked of the equations --------------------------------------------------------------------------------

/// Counts what it is asked; few rows, so that each call is one piece.
class Counted final : public Equations {
 public:
  explicit Counted(const Bratu& bratu, bool with_values = true) : rows_(bratu), with_values_(with_values) {}
  Index rows() const override { return rows_.rows(); }
  CsrMatrix pattern() const override {
    CsrMatrix a = rows_.pattern();
    if (!with_values_) a.values = Buffer<double>();
    return a;
  }
  void residual(Index begin, Index end, View<const double> x, View<double> F) const override {
    evaluations += begin == 0;
    rows_.residual(begin, end, x, F);
  }
  bool has_jacobian() const override { return true; }
  void jacobian(Index begin, Index end, View<const double> x, View<double> values) const override {
    jacobians += begin == 0;
    rows_.jacobian(begin, end, x, values);
  }
  mutable std::atomic<int> evaluations{0}, jacobians{0};

 private:
  RowEquations<Bratu> rows_;
  bool with_values_;
};

TEST_P(NewtonOn, EvaluationsAreWhatIsReported) {
  Counted equations(Bratu{10, 6.5});
  NewtonSolver own(equations, options());
  EXPECT_EQ(equations.evaluations, 0) << "nothing is evaluated before there is a start";
  std::vector<double> x(100, 0.0);
  const NewtonResult r = own.solve(x);
  EXPECT_EQ(equations.evaluations, r.evaluations);
  EXPECT_EQ(r.evaluations, r.iterations + 1) << "full steps all the way";
  EXPECT_EQ(equations.jacobians, r.iterations);

  equations.evaluations = equations.jacobians = 0;
  NewtonSolver differences(equations, options({.jacobian = "finite-differences"}));
  std::fill(x.begin(), x.end(), 0.0);
  const NewtonResult d = differences.solve(x);
  EXPECT_EQ(equations.jacobians, 0);
  EXPECT_EQ((equations.evaluations - d.evaluations) % d.iterations, 0) << "as many for each step";
  const int colours = (equations.evaluations - d.evaluations) / d.iterations;
  EXPECT_GE(colours, 5);
  EXPECT_LE(colours, 8);
}

TEST_P(NewtonOn, AMatrixFreePreconditionerServesAsManyStepsAsItIsToldTo) {
  for (const int lag : {1, 2, 3, 100}) {
    Counted equations(Bratu{10, 6.5});
    const NewtonSolved s = solve(equations, std::vector<double>(100, 0.0),
                                 options({.rtol = 1e-12, .jacobian = "matrix-free", .lag = lag}));
    expect_converged(s, 1e-12);
    ASSERT_GE(s.r.iterations, 4);
    EXPECT_EQ(equations.jacobians, (s.r.iterations + lag - 1) / lag) << "lag " << lag;
  }
}

TEST_P(NewtonOn, APatternNeedsNoValues) {
  const Counted with(Bratu{10, 6}), without(Bratu{10, 6}, false);
  for (const char* jacobian : {"own", "finite-differences", "matrix-free"}) {
    const std::vector<double> zero(100, 0.0);
    const NewtonSolved a = solve(with, zero, options({.jacobian = jacobian}));
    const NewtonSolved b = solve(without, zero, options({.jacobian = jacobian}));
    EXPECT_EQ(bits(a.x), bits(b.x));
  }
}

/// Equations that say another number of rows than their pattern has.
class Mistaken final : public Equations {
 public:
  Mistaken(Index rows, Index in_pattern) : rows_(rows), each_(Each{in_pattern, identity, one}) {}
  Index rows() const override { return rows_; }
  CsrMatrix pattern() const override { return each_.pattern(); }
  void residual(Index begin, Index end, View<const double> x, View<double> F) const override {
    each_.residual(begin, end, x, F);
  }

 private:
  static double identity(double v) { return v; }
  static double one(double) { return 1; }
  Index rows_;
  RowEquations<Each> each_;
};

TEST_P(NewtonOn, APatternOfOtherRowsIsRefused) {
  for (const auto& [rows, in_pattern] : {std::pair{5, 4}, {4, 5}, {3, 0}}) {
    const Mistaken equations(rows, in_pattern);
    expect_words(refusal([&] { NewtonSolver newton(equations, options()); }),
                 {std::to_string(rows), std::to_string(in_pattern), "rows"});
  }
}

// --- refusals ------------------------------------------------------------------------------------------------------

TEST_P(NewtonOn, StartsThatAreNoneAreRefused) {
  const RowEquations equations(Each{5, [](double v) { return std::log(v); }, [](double v) { return 1 / v; }});
  NewtonSolver newton(equations, options());
  std::vector<double> few(4, 1.0), many(6, 1.0), none;
  for (auto* x : {&few, &many, &none})
    expect_words(refusal([&] { newton.solve(*x); }), {std::to_string(x->size()) + " entries", "5 rows"});
  for (const double bad : {nan, infinity, -infinity}) {
    std::vector<double> x(5, 2.0);
    x[2] = bad;
    expect_words(refusal([&] { newton.solve(x); }), {"the start", "row 3"});
  }
  for (const double outside : {-1.0, 0.0}) {  // NaN, and minus infinity
    std::vector<double> x(5, 2.0);
    x[3] = outside;
    expect_words(refusal([&] { newton.solve(x); }), {"F(x) is NaN, infinite", "at the start"});
    EXPECT_EQ(x[3], outside) << "x stays as it was";
  }
}

void expect_refused(NewtonOptions o, const std::vector<std::string>& words) {
  const RowEquations equations(Bratu{3, 1});
  expect_words(refusal([&] { NewtonSolver newton(equations, o); }), words);
}

TEST(NewtonOptions, ThatAreNoneAreRefused) {
  for (const double bad : {-1.0, nan}) {
    expect_refused({.rtol = bad}, {"rtol and atol of Newton's method"});
    expect_refused({.atol = bad}, {"rtol and atol of Newton's method"});
    expect_refused({.step_tolerance = bad}, {"step tolerance"});
  }
  expect_refused({.max_iterations = -1}, {"number of Newton steps"});
  for (const double bad : {-0.1, 0.0, 1.0, 2.0, nan}) {
    expect_refused({.first_forcing = bad}, {"forcing terms are numbers between 0 and 1"});
    expect_refused({.most_forcing = bad}, {"forcing terms are numbers between 0 and 1"});
  }
  expect_refused({.lag = 0}, {"1 step or more"});
  expect_refused({.forcing = "eisenstat"}, {"unknown forcing term 'eisenstat'"});
  expect_refused({.forcing = "fixed:2"}, {"fixed:2", "between 0 and 1"});
  expect_refused({.line_search = "backtrack"}, {"unknown line search 'backtrack'", "did you mean 'backtracking'"});
  expect_refused({.jacobian = "matrixfree"}, {"unknown Jacobian 'matrixfree'", "did you mean 'matrix-free'"});
}

TEST(NewtonOptions, LinearOnesThatAreNoneAreRefused) {
  const auto refused = [](const std::function<void(NewtonOptions&)>& change, const std::vector<std::string>& words) {
    NewtonOptions o;
    change(o);
    expect_refused(o, words);
  };
  refused([](auto& o) { o.linear.solver = "gmrs"; }, {"'gmrs'", "gmres"});
  refused([](auto& o) { o.linear.precond = "ilu"; }, {"'ilu'"});
  refused([](auto& o) { o.linear.device = "gpu"; }, {"gpu"});
  refused([](auto& o) { o.linear.norm = Norm::openfoam; }, {"true2"});
  refused([](auto& o) { o.linear.restart = 0; }, {"restart"});
  refused([](auto& o) { o.linear.threads = -1; }, {"threads"});
}

TEST(NewtonOptions, AGpuIsRefusedForRowsOfTheHostAlone) {
  for (const char* device : {"cuda", "cuda:0", "cuda:3"}) {
    NewtonOptions o;
    o.linear.device = device;
    expect_refused(o, {device, "host"});
  }
}

TEST(NewtonOptions, AMatrixFreeJacobianIsNotRounded) {
  NewtonOptions o{.jacobian = "matrix-free"};
  o.linear.solver = "gmres-ir";
  expect_refused(o, {"matrix-free", "fp64"});
  for (const char* precision : {"fp32", "fp32/fp16", "fp32/bf16"}) {
    o.linear.solver = "gmres";
    o.linear.precision = precision;
    expect_refused(o, {"matrix-free", "fp64"});
  }
  o.linear.precision = "fp64";
  const RowEquations equations(Bratu{3, 1});
  EXPECT_NO_THROW(NewtonSolver(equations, o));
}

TEST(NewtonOptions, AnOwnJacobianThatIsNotThereIsRefused) {
  const RowEquations bare(Bare<Bratu>{{3, 1}});
  expect_words(refusal([&] { NewtonSolver newton(bare, {.jacobian = "own"}); }),
               {"no Jacobian of their own", "finite-differences", "matrix-free"});
}

}  // namespace
}  // namespace krilu::test
