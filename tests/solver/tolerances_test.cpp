// SPDX-License-Identifier: Apache-2.0
// Tolerances changed between solves: the next ones are held against the new, whatever the space and the precision;
// negative ones are refused and change nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "support/not_finite.hpp"
#include "support/support.hpp"

namespace {

using namespace krilu;
using test::nan;

class Tolerances : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Spaces, Tolerances, ::testing::Values("host", "emulated"),
                         [](const auto& space) { return std::string(space.param); });

Result solve(Solver& solver, const CsrMatrix& a) {
  const std::vector<double> b(std::size_t(a.rows), 1.0);
  std::vector<double> x(b.size(), 0.0);
  const Result r = solver.solve(b, x);
  EXPECT_NEAR(r.relative_residual, test::true_residual(a, x, b), 1e-6 * r.relative_residual + 1e-15);
  return r;
}

TEST_P(Tolerances, TheNextSolvesFollow) {
  const CsrMatrix a = generate("gen:convdiff2d:25x20");
  struct Inside {
    const char *solver, *precision;
  };
  for (const Inside in : {Inside{"gmres", "fp64"},
                          {"bicgstab", "fp64"},
                          {"fgmres", "fp64"},
                          {"gmres", "fp32"},
                          {"bicgstab", "fp32"},
                          {"gmres-ir", "auto"}}) {
    SCOPED_TRACE(std::string(in.solver) + " " + in.precision);
    Solver solver({.solver = in.solver,
                   .precond = "ilu0",
                   .device = GetParam(),
                   .threads = 1,
                   .rtol = 1e-3,
                   .precision = in.precision});
    solver.setup(a);
    const Result loose = solve(solver, a);
    solver.set_tolerances(1e-10, 0);
    const Result tight = solve(solver, a);
    solver.set_tolerances(0, 1e-3 * std::sqrt(double(a.rows)));  // the same as 1e-3, b being ones
    const Result absolute = solve(solver, a);
    for (const Result* r : {&loose, &tight, &absolute}) EXPECT_EQ(r->status, Status::converged);
    EXPECT_LE(loose.relative_residual, 1e-3);
    EXPECT_GT(loose.relative_residual, 1e-8);
    EXPECT_LE(tight.relative_residual, 1e-10);
    EXPECT_GT(tight.iterations, loose.iterations);
    EXPECT_LE(absolute.relative_residual, 1e-3 * (1 + 1e-12));
    EXPECT_LT(absolute.iterations, tight.iterations);
    EXPECT_EQ(solver.counts().analyses, 1);
    EXPECT_EQ(solver.counts().factorisations, 1);
  }
}

TEST_P(Tolerances, AreKeptThroughAnotherAnalysis) {
  const CsrMatrix a = generate("gen:convdiff2d:25x20"), other = generate("gen:convdiff2d:18x11");
  Solver solver({.solver = "gmres", .precond = "ilu0", .device = GetParam(), .threads = 1, .rtol = 1e-3});
  solver.set_tolerances(1e-9, 0);  // before there is any matrix
  solver.setup(a);
  EXPECT_LE(solve(solver, a).relative_residual, 1e-9);
  solver.setup(other);
  EXPECT_LE(solve(solver, other).relative_residual, 1e-9);
}

TEST_P(Tolerances, SoIsTheLimitOfIterations) {
  const CsrMatrix a = generate("gen:convdiff2d:25x20");
  for (const char* method : {"gmres", "auto"}) {
    Solver solver({.solver = method, .device = GetParam(), .threads = 1, .max_iterations = 3});
    solver.setup(a);
    for (const int most : {3, 5, 0, 1, 1000, 2}) {
      solver.set_max_iterations(most);
      const Result r = solve(solver, a);
      EXPECT_EQ(r.status, most == 1000 ? Status::converged : Status::max_iterations) << most;
      EXPECT_TRUE(most == 1000 ? r.iterations > 5 : r.iterations == most) << r.iterations;
    }
    EXPECT_THROW(solver.set_max_iterations(-1), Error);
    EXPECT_EQ(solve(solver, a).iterations, 2);
    EXPECT_EQ(solver.counts().analyses, 1);
  }
}

TEST_P(Tolerances, NegativeOnesAreRefusedAndChangeNothing) {
  const CsrMatrix a = generate("gen:convdiff2d:25x20");
  Solver solver({.solver = "gmres", .precond = "ilu0", .device = GetParam(), .threads = 1, .rtol = 1e-6});
  solver.setup(a);
  const int iterations = solve(solver, a).iterations;
  for (const auto& [rtol, atol] : {std::pair{-1e-3, 0.0}, {1e-3, -1.0}, {nan, 0.0}, {1e-3, nan}}) {
    try {
      solver.set_tolerances(rtol, atol);
      ADD_FAILURE() << rtol << ", " << atol << " was not refused";
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "rtol and atol are numbers from 0");
    }
    EXPECT_EQ(solve(solver, a).iterations, iterations);
  }
}

}  // namespace
