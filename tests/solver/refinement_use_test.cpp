// SPDX-License-Identifier: Apache-2.0
// Mixed precision in use, on the host and on the emulated device: how solves end, in a zero right-hand side, an exact
// guess, at limits, interrupted, or without a solution; new values and right-hand sides from step to step; and names
// and numbers that are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "krilu/io.hpp"
#include "refinement.hpp"

namespace krilu::test::refinement {
namespace {

// --- ends ----------------------------------------------------------------------------------------------------------

TEST(Ends, AZeroRightHandSideHasTheZeroSolution) {
  const CsrMatrix a = generate("gen:poisson2d:6x6");
  const std::vector<double> b(36, 0.0);
  for (const char* solver : {"gmres-ir", "cg", "bicgstab", "gmres", "fgmres"})
    for (const Case& c : cases)
      for (const bool guess : {false, true}) {
        const Options o = options(solver, "auto", c, 1e-8);
        SCOPED_TRACE(words(o));
        const Solved s = judged(a, b, o, guess ? random_values(36, 4) : b);
        EXPECT_STREQ(to_string(s.r.status), "converged");
        EXPECT_EQ(s.r.iterations, 0);
        EXPECT_EQ(s.r.outer_iterations, 0);
        EXPECT_EQ(s.r.relative_residual, 0);
        EXPECT_EQ(s.x, b);
      }
}

TEST(Ends, AGuessThatIsTheSolutionIsLeftAsItIs) {
  const CsrMatrix a = generate("gen:poisson2d:8x8");
  std::vector<double> exact(64);
  for (std::size_t i = 0; i < 64; ++i) exact[i] = double(int(i * 13 % 17) - 8);
  const auto b = product(a, exact);  // of small integers: no rounding
  for (const char* solver : {"gmres-ir", "cg", "bicgstab", "gmres", "fgmres"})
    for (const Case& c : cases) {
      const Options o = options(solver, "auto", c, 1e-12);
      SCOPED_TRACE(words(o));
      const Solved s = judged(a, b, o, exact);
      EXPECT_STREQ(to_string(s.r.status), "converged");
      EXPECT_EQ(s.r.iterations, 0);
      EXPECT_EQ(s.r.outer_iterations, 0);
      EXPECT_EQ(s.x, exact);
      // A guess that is near saves steps, and one that is worse than nothing does no harm.
      const Solved cold = judged(a, b, o);
      std::vector<double> near = exact;
      near[5] += 1e-8;
      const Solved warm = judged(a, b, o, near), far = judged(a, b, o, times(1e6, random_values(64, 9)));
      EXPECT_STREQ(to_string(warm.r.status), "converged");
      EXPECT_LT(warm.r.iterations, cold.r.iterations);
      EXPECT_STREQ(to_string(far.r.status), "converged");
    }
}

TEST(Ends, NanIsRefused) {
  const CsrMatrix a = generate("gen:poisson2d:5x5");
  for (const std::string& device : devices)
    for (const char* solver : {"gmres-ir", "cg"})
      for (const double bad : {nan, infinity, -infinity}) {
        Solver s(options(solver, "auto", {"fp32", device}, 1e-8));
        s.setup(a);
        std::vector<double> b(25, 1.0), x(25, 0.0), spoilt(25, 1.0);
        spoilt[7] = bad;
        EXPECT_THROW(s.solve(spoilt, x), Error);
        EXPECT_EQ(x, std::vector<double>(25, 0.0));
        EXPECT_THROW(s.solve(b, spoilt), Error);
        CsrMatrix m = a;
        m.values[9] = bad;
        EXPECT_THROW(s.factor(m), Error);
        s.factor(a);
        EXPECT_STREQ(to_string(s.solve(b, x).status), "converged") << "and goes on after that";
      }
}

TEST(Ends, AtTheLimitOfIterations) {
  const CsrMatrix a = generate("gen:poisson2d:30x30");
  const auto b = random_values(900, 18);
  for (const std::string& device : devices)
    for (const char* solver : {"gmres-ir", "cg", "bicgstab", "gmres", "fgmres"})
      for (const int most : {0, 1, 7}) {
        Options o = options(solver, "jacobi", {"fp32", device}, 1e-10);
        o.max_iterations = most;
        SCOPED_TRACE(words(o) + ", at most " + std::to_string(most));
        const Solved s = judged(a, b, o);
        EXPECT_STREQ(to_string(s.r.status), "max_iterations");
        EXPECT_EQ(s.r.iterations, most);
        EXPECT_FALSE(raised(s.r)) << "no reason to";
      }
}

TEST(Ends, WhenInterrupted) {
  const CsrMatrix a = generate("gen:poisson2d:30x30");
  const auto b = random_values(900, 18);
  for (const std::string& device : devices)
    for (const char* solver : {"gmres-ir", "cg", "gmres"}) {
      const Options o = options(solver, "auto", {"fp32", device}, 1e-8);
      SCOPED_TRACE(words(o));
      Solver s(o);
      s.setup(a);
      std::vector<double> x(900, 0.0);
      Monitor monitor;
      monitor.interrupt();
      const Result r = s.solve(b, x, &monitor);
      EXPECT_STREQ(to_string(r.status), "interrupted");
      EXPECT_LE(r.iterations, 1);
      EXPECT_FALSE(raised(r));
      EXPECT_STREQ(to_string(s.solve(b, x).status), "converged");
    }
}

TEST(Ends, ASingularSystemWithoutASolutionIsNotSaidToBeSolved) {
  // Row sums of zero, and a right-hand side that is not in the range: the residual of the best x is b's mean.
  Dense d(40, std::vector<double>(40, 0.0));
  for (std::size_t i = 0; i < 40; ++i)
    for (const std::size_t j : {(i + 39) % 40, (i + 1) % 40}) {
      d[i][i] += 1;
      d[i][j] -= 1;
    }
  const CsrMatrix a = from_dense(d);
  std::vector<double> b = random_values(40, 19);
  for (double& v : b) v += 1;
  for (const auto& [solver, precond] :
       Pairs{{"gmres-ir", "none"}, {"gmres-ir", "jacobi"}, {"cg", "none"}, {"bicgstab", "jacobi"}, {"gmres", "none"}})
    for (const Case& c : cases) {
      Options o = options(solver, precond, c, 1e-8);
      o.max_iterations = 500;
      SCOPED_TRACE(words(o));
      const Solved s = judged(a, b, o);
      EXPECT_STRNE(to_string(s.r.status), "converged");
      EXPECT_LE(s.r.relative_residual, 1) << "no worse than the guess";
    }
}

TEST(Ends, OfTheSmallestSystems) {
  CsrMatrix empty;
  empty.offsets.push_back(0);
  const CsrMatrix one = from_dense({{3e-7}}), swap = from_dense({{0, 2}, {1, 0}});
  for (const Case& c : cases) {
    const Options o = options("gmres-ir", "none", c, 1e-14);
    SCOPED_TRACE(words(o));
    std::vector<double> none;
    const Result r = solve(empty, none, none, o);
    EXPECT_STREQ(to_string(r.status), "converged");
    EXPECT_EQ(r.iterations, 0);
    EXPECT_NEAR(judged(one, {0.1}, o).x[0], 0.1 / 3e-7, 1e-8);
    const Solved s = judged(swap, {0.1, 0.7}, o);
    EXPECT_NEAR(s.x[0], 0.7, 1e-13);
    EXPECT_NEAR(s.x[1], 0.05, 1e-13);
  }
}

// --- use over time -------------------------------------------------------------------------------------------------

TEST(Steps, ValuesAndRightHandSidesChange) {
  // Of one pattern, and of sizes far apart: an old copy or an old scaling, and the step is lost.
  struct Step {
    CsrMatrix a;
    std::vector<std::vector<double>> right_hand_sides;
    std::vector<std::vector<Real>> solutions;
  };
  std::vector<Step> steps;
  for (std::size_t step = 1; step <= 3; ++step) {
    Step next{generate("gen:convdiff2d:9x9"), {}, {}};
    CsrMatrix& a = next.a;
    for (std::size_t i = 0; i < 81; ++i)
      for (auto k = std::size_t(a.offsets[i]); k < std::size_t(a.offsets[i + 1]); ++k)
        a.values[k] *= std::pow(1e4, double(step)) * (1 + 0.1 * double((k * 7 + step) % 5)) *
                       (a.columns[k] == Index(i) ? 1.5 : 1) * std::exp2(double((i + step) % 5));
    const Elimination reference(a);
    for (const std::uint64_t rhs : {0u, 1u}) {
      next.right_hand_sides.push_back(product(a, random_values(81, 10 * step + rhs)));
      next.solutions.push_back(reference.solve(next.right_hand_sides.back()));
    }
    steps.push_back(std::move(next));
  }
  for (const auto& [solver, precond] : Pairs{{"gmres-ir", "none"},
                                             {"gmres-ir", "dilu"},
                                             {"gmres-ir", "ilu0"},
                                             {"gmres-ir", "iluk:1"},
                                             {"gmres-ir", "ilut:10,0.001"},
                                             {"gmres-ir", "ras:3,1"},
                                             {"bicgstab", "dilu"},
                                             {"fgmres", "ilu0"}})
    for (const Case& c : cases) {
      Options o = options(solver, precond, c, 1e-11);
      o.ordering = "rcm";
      SCOPED_TRACE(words(o));
      Solver s(o);
      s.analyse(steps[0].a);
      bool was_raised = false;
      for (const Step& step : steps) {
        s.factor(step.a);
        for (std::size_t k = 0; k < 2; ++k) {
          const std::vector<double>& b = step.right_hand_sides[k];
          std::vector<double> x(81, 0.0);
          const Result r = s.solve(b, x);
          expect_honest({r, x}, step.a, b, o);
          EXPECT_STREQ(to_string(r.status), "converged");
          EXPECT_EQ(r.bytes, s.bytes());
          EXPECT_LE(forward_error(x, step.solutions[k]), 1e-8);
          // Nothing of the steps before is left but a precision that was raised: a new solver takes the same path.
          was_raised = was_raised || raised(r);
          if (was_raised) continue;
          const Solved anew = judged(step.a, b, o);
          EXPECT_EQ(anew.r.history, r.history);
          EXPECT_EQ(anew.x, x);
        }
      }
      EXPECT_EQ(s.counts().analyses, 1);
      EXPECT_EQ(s.counts().factorisations, 3);
      EXPECT_EQ(s.counts().solves, 6);
      EXPECT_GT(s.costs().product, 0);
    }
}

TEST(Steps, ThreadsAndDevicesChangeNoBit) {
  const CsrMatrix a = generate("gen:convdiff3d:16x16x16");
  const auto b = random_values(4096, 20);
  for (const auto& [solver, precond] :
       Pairs{{"gmres-ir", "dilu"}, {"gmres-ir", "block-ilu:4"}, {"bicgstab", "ilu0"}, {"fgmres", "dilu"}})
    for (const std::string& precision : low_precisions) {
      std::vector<double> first, first_history;
      for (const std::string& device : devices)
        for (const int threads : {1, 2}) {
          Options o = options(solver, precond, {precision, device}, 1e-10);
          o.threads = threads;
          SCOPED_TRACE(words(o) + ", threads " + std::to_string(threads));
          const Solved s = judged(a, b, o);
          EXPECT_STREQ(to_string(s.r.status), "converged");
          if (first.empty()) {
            first = s.x;
            first_history = s.r.history;
          }
          ASSERT_EQ(s.r.history, first_history);
          ASSERT_EQ(s.x, first);
        }
    }
}

TEST(Steps, OrderingsArePrivateToTheSolver) {
  const CsrMatrix a = random_matrix({.rows = 70, .per_row = 4, .symmetric_pattern = false, .seed = 9});
  const auto b = random_values(70, 10), guess = random_values(70, 11);
  const auto expected = Elimination(a).solve(b);
  for (const char* ordering : {"natural", "rcm", "multicolour", "metis:4"})
    for (const char* precond : {"none", "jacobi", "dilu", "ilu0"})
      for (const Case& c : cases) {
        Options o = options("gmres-ir", precond, c, 1e-12);
        o.ordering = ordering;
        SCOPED_TRACE(words(o) + " " + ordering);
        const Solved s = judged(a, b, o, guess);
        EXPECT_STREQ(to_string(s.r.status), "converged");
        for (std::size_t i = 0; i < 70; ++i) ASSERT_NEAR(s.x[i], double(expected[i]), 1e-10) << "row " << i;
      }
}

// --- names and numbers ---------------------------------------------------------------------------------------------

TEST(Names, UnknownOnesAreRefused) {
  const auto sentence = [](const Options& o) -> std::string {
    try {
      const Solver refused(o);
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_NE(sentence({.solver = "gmres-it"}).find("'gmres-ir'"), std::string::npos);
  EXPECT_NE(sentence({.precision = "fp3"}).find("fp32/bf16"), std::string::npos);
  EXPECT_NE(sentence({.basis = "fp17"}).find("fp16"), std::string::npos);
  for (const char* precision : {"", "single", "fp16", "fp32/fp64", "FP32"})
    EXPECT_NE(sentence({.precision = precision}), "accepted") << precision;
  for (const char* basis : {"", "half", "fp32/fp16"}) EXPECT_NE(sentence({.basis = basis}), "accepted") << basis;
  for (const char* precision : {"auto", "fp64", "fp32", "fp32/fp16", "fp32/bf16"})
    EXPECT_EQ(sentence({.solver = "gmres-ir", .precision = precision}), "accepted") << precision;
}

TEST(Names, NumbersOutsideTheirRangeAreRefused) {
  EXPECT_THROW(Solver({.inner_iterations = -1}), Error);
  EXPECT_THROW(Solver({.outer_iterations = -1}), Error);
  EXPECT_THROW(Solver({.inner_tolerance = -0.1}), Error);
  EXPECT_THROW(Solver({.inner_tolerance = nan}), Error);
  EXPECT_THROW(Solver({.solver = "gmres-ir", .norm = Norm::openfoam}), Error);
  EXPECT_NO_THROW(Solver({.solver = "gmres-ir", .inner_iterations = 1, .outer_iterations = 1, .inner_tolerance = 0.5}));
}

}  // namespace
}  // namespace krilu::test::refinement
