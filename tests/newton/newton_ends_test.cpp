// SPDX-License-Identifier: Apache-2.0
// How the public NewtonSolver ends, each status on a system made for it; many solves with one solver; what it asks of
// the equations, and how often; what is refused and in which words.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "newton/newton_solves.hpp"
#include "support/not_finite.hpp"
#include "support/split_matrix.hpp"

namespace krilu::test {
namespace {

class NewtonEnds : public NewtonOn {};
INSTANTIATE_TEST_SUITE_P(Spaces, NewtonEnds, ::testing::Values("host", "emulated"), name_of_space);

// --- how it ends ---------------------------------------------------------------------------------------------------

TEST_P(NewtonEnds, WithoutARootItStagnatesAndSaysSo) {
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

TEST_P(NewtonEnds, StepsThatAreUsedUp) {
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

TEST_P(NewtonEnds, NoStepsAllowedAreNone) {
  const std::vector<double> zero(100, 0.0);
  const NewtonSolved s = solve(RowEquations(Bratu{10, 6}), zero, options({.max_iterations = 0}));
  EXPECT_EQ(s.r.status, Status::max_iterations);
  EXPECT_EQ(s.r.iterations, 0);
  EXPECT_EQ(s.x, zero);
  EXPECT_EQ(s.r.residual, s.r.initial_residual);
  const NewtonSolved there = solve(RowEquations(Bratu{10, 0}), zero, options({.max_iterations = 0}));
  EXPECT_EQ(there.r.status, Status::converged) << "none was needed";
}

TEST_P(NewtonEnds, StepsShorterThanTheStepToleranceEndIt) {
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

TEST_P(NewtonEnds, ProgressSeesEveryStepAndMayEndIt) {
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

TEST_P(NewtonEnds, AStartThatIsASolutionTakesNoStep) {
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

TEST_P(NewtonEnds, TheAbsoluteToleranceEndsItToo) {
  const RowEquations equations(Bratu{10, 6});
  const NewtonSolved s = solve(equations, std::vector<double>(100, 0.0), options({.rtol = 0, .atol = 1e-4}));
  EXPECT_EQ(s.r.status, Status::converged);
  EXPECT_LE(s.r.residual, 1e-4);
  EXPECT_GT(s.r.residual, 1e-12);
}

TEST_P(NewtonEnds, ToleranceZeroEndsAtRoundingWithoutNaN) {
  const RowEquations equations(Bratu{10, 6});
  for (const char* forcing : {"eisenstat-walker-1", "eisenstat-walker-2", "fixed:1e-8"}) {
    const NewtonSolved s = solve(equations, std::vector<double>(100, 0.0), options({.rtol = 0, .forcing = forcing}));
    EXPECT_TRUE(s.r.status == Status::stagnated || s.r.status == Status::converged) << to_string(s.r.status);
    EXPECT_LE(s.r.residual, 1e-13 * s.r.initial_residual);
  }
}

TEST_P(NewtonEnds, NoRowsAreSolvedAtOnce) {
  for (const char* jacobian : {"auto", "finite-differences", "matrix-free"}) {
    const NewtonSolved s = solve(RowEquations(Bratu{0, 1}), {}, options({.jacobian = jacobian}));
    EXPECT_EQ(s.r.status, Status::converged);
    EXPECT_EQ(s.r.iterations, 0);
    EXPECT_EQ(s.r.residual, 0);
  }
}

TEST_P(NewtonEnds, OneRowIsASystemToo) {
  // x^2 = 2
  const RowEquations equations(Each{1, [](double v) { return v * v - 2; }, [](double v) { return 2 * v; }});
  for (const char* jacobian : {"own", "finite-differences", "matrix-free"}) {
    const NewtonSolved s = solve(equations, {1.0}, options({.rtol = 1e-14, .jacobian = jacobian}));
    expect_converged(s, 1e-14);
    EXPECT_NEAR(s.x[0], std::sqrt(2.0), 1e-14);
  }
}

TEST_P(NewtonEnds, LinearSolvesThatFallShortAreCounted) {
  const RowEquations equations(Bratu{12, 6});
  NewtonOptions o = options({.max_iterations = 200});
  o.linear.max_iterations = 3;
  o.linear.precond = "jacobi";
  const NewtonSolved s = solve(equations, std::vector<double>(144, 0.0), o);
  expect_converged(s, 1e-8);
  EXPECT_TRUE(any_has(s.r.notes, "linear solves ended before they met their forcing term"));
  for (const NewtonStep& step : s.r.history) EXPECT_LE(step.inner_iterations, 3);
}

TEST_P(NewtonEnds, ALinearSolverThatDoesNothingIsNoStep) {
  const std::vector<double> zero(100, 0.0);
  NewtonOptions o = options();
  o.linear.max_iterations = 0;
  const NewtonSolved s = solve(RowEquations(Bratu{10, 6}), zero, o);
  EXPECT_EQ(s.r.status, Status::stagnated) << to_string(s.r.status);
  EXPECT_EQ(s.r.iterations, 0);
  EXPECT_LE(s.r.evaluations, 50);
  EXPECT_EQ(s.x, zero);
}

TEST_P(NewtonEnds, AJacobianThatIsNoNumberIsNamedByItsRow) {
  const RowEquations equations(
      Each{4, [](double v) { return std::sqrt(v) - 0.1; }, [](double v) { return 0.5 / std::sqrt(v); }});
  NewtonSolver newton(equations, options());
  std::vector<double> x{1, 1, 0, 1};
  expect_words(refusal([&] { newton.solve(x); }), {"row 3", "NaN or infinity"});
}

TEST_P(NewtonEnds, AZeroPivotIsNamedByItsRow) {
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

TEST_P(NewtonEnds, ASolverGoesOnAfterAnError) {
  RowEquations equations(Each{10, [](double v) { return std::log(v); }, [](double v) { return 1 / v; }});
  NewtonSolver newton(equations, options());
  std::vector<double> bad(10, -1.0), x(10, 2.0);
  refusal([&] { newton.solve(bad); });
  EXPECT_EQ(newton.solve(x).status, Status::converged);
  const NewtonSolved fresh = solve(equations, std::vector<double>(10, 2.0), options());
  EXPECT_EQ(bits(x), bits(fresh.x));
}

// --- many solves ---------------------------------------------------------------------------------------------------

TEST_P(NewtonEnds, ParametersMayChangeBetweenSolves) {
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

TEST_P(NewtonEnds, TolerancesMayChangeBetweenSolves) {
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

TEST_P(NewtonEnds, ASolverThatMovedSolves) {
  const RowEquations equations(Bratu{8, 3});
  NewtonSolver first(equations, options());
  NewtonSolver second = std::move(first);
  std::vector<double> x(64, 0.0);
  EXPECT_EQ(second.solve(x).status, Status::converged);
  EXPECT_EQ(second.rows(), 64);
}

TEST_P(NewtonEnds, TheSameBitsOnAnyNumberOfThreadsAndSpaces) {
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

TEST_P(NewtonEnds, EvaluationsAreWhatIsReported) {
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

TEST_P(NewtonEnds, AMatrixFreePreconditionerServesAsManyStepsAsItIsToldTo) {
  for (const int lag : {1, 2, 3, 100}) {
    Counted equations(Bratu{10, 6.5});
    const NewtonSolved s = solve(equations, std::vector<double>(100, 0.0),
                                 options({.rtol = 1e-12, .jacobian = "matrix-free", .lag = lag}));
    expect_converged(s, 1e-12);
    ASSERT_GE(s.r.iterations, 4);
    EXPECT_EQ(equations.jacobians, (s.r.iterations + lag - 1) / lag) << "lag " << lag;
  }
}

TEST_P(NewtonEnds, APatternNeedsNoValues) {
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

TEST_P(NewtonEnds, APatternOfOtherRowsIsRefused) {
  for (const auto& [rows, in_pattern] : {std::pair{5, 4}, {4, 5}, {3, 0}}) {
    const Mistaken equations(rows, in_pattern);
    expect_words(refusal([&] { NewtonSolver newton(equations, options()); }),
                 {std::to_string(rows), std::to_string(in_pattern), "rows"});
  }
}

// --- refusals ------------------------------------------------------------------------------------------------------

TEST_P(NewtonEnds, StartsThatAreNoneAreRefused) {
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
