// SPDX-License-Identifier: Apache-2.0
// The public Solver in use: factoring anew without a new analysis, the solution in the caller's row order whatever the
// ordering, every combination of its names on one small system, held against the tolerance and Gaussian elimination;
// and its accounts of bytes, seconds and costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "solver/sparse_lu.hpp"
#include "support/not_finite.hpp"
#include "support/refusal.hpp"
#include "support/solved.hpp"
#include "support/support.hpp"

namespace {

using namespace krilu;
using test::expect_words;
using test::from_dense;
using test::nan;
using test::ones;
using test::refusal;
using test::solved;
using test::Solved;

// --- use over time -------------------------------------------------------------------------------------------------

TEST(Rounds, ValuesChangeWithoutANewAnalysis) {
  for (const char* device : {"host", "emulated"})
    for (const char* precond : {"none", "jacobi", "dilu", "ilu0"}) {
      SCOPED_TRACE(std::string(device) + " " + precond);
      CsrMatrix a = generate("gen:convdiff2d:9x9");
      Solver solver({.precond = precond, .ordering = "rcm", .device = device, .rtol = 1e-11});
      solver.analyse(a);
      for (int round = 1; round <= 5; ++round) {
        for (Offset k = 0; k < a.nnz(); ++k) a.values[std::size_t(k)] *= 1 + 0.1 * double((k * 7 + round) % 5);
        for (Index i = 0; i < a.rows; ++i)
          for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
            if (a.columns[std::size_t(k)] == i) a.values[std::size_t(k)] *= 1.5;
        solver.factor(a);
        for (int rhs = 0; rhs < 2; ++rhs) {
          const auto b = test::random_values(81, std::uint64_t(10 * round + rhs));
          std::vector<double> x(81, 0.0);
          const Result r = solver.solve(b, x);
          EXPECT_EQ(r.status, Status::converged);
          const auto expected = test::dense_solve(test::to_dense(a), b);
          for (std::size_t i = 0; i < 81; ++i) ASSERT_NEAR(x[i], expected[i], 1e-9);
          // Nothing of the rounds before is left: a new solver takes the same path.
          Solver anew({.precond = precond, .ordering = "rcm", .device = device, .rtol = 1e-11});
          anew.analyse(a);
          anew.factor(a);
          std::vector<double> y(81, 0.0);
          EXPECT_EQ(anew.solve(b, y).history, r.history);
          EXPECT_EQ(y, x);
        }
      }
      EXPECT_EQ(solver.counts().analyses, 1);
      EXPECT_EQ(solver.counts().factorisations, 5);
      EXPECT_EQ(solver.counts().solves, 10);
      EXPECT_EQ(solver.rows(), 81);
    }
}

TEST(Rounds, ValuesThatAreNoLongerSymmetricAreChosenForAnew) {
  for (const char* device : {"host", "emulated"}) {
    SCOPED_TRACE(device);
    CsrMatrix a = generate("gen:poisson2d:12x12");
    const auto b = test::random_values(144, 3);
    Solver solver({.device = device});
    solver.setup(a);
    std::vector<double> x(144, 0.0);
    EXPECT_EQ(solver.solve(b, x).solver, "cg");
    a.values[1] *= 1 + 1e-15;  // of assembly
    for (int times = 0; times < 2; ++times) {
      solver.factor(a);
      std::fill(x.begin(), x.end(), 0.0);
      const Result r = solver.solve(b, x);
      EXPECT_EQ(r.status, Status::converged);
      EXPECT_EQ(r.solver, "bicgstab");
      EXPECT_EQ(r.precond, "dilu");
      EXPECT_TRUE(test::any_has(r.notes, "bicgstab with dilu in place of cg with dic"));
      EXPECT_LT(test::true_residual(a, x, b), 1.01e-8);
    }
    EXPECT_EQ(solver.counts().analyses, 2);
    EXPECT_EQ(solver.counts().factorisations, 3);
    // What was named stays, and says what is wrong.
    Solver named({.solver = "cg", .precond = "dic", .device = device});
    named.analyse(a);
    expect_words(refusal([&] { named.factor(a); }), {"dic", "symmetric"});
    Solver half({.solver = "cg", .device = device});
    half.analyse(a);
    expect_words(refusal([&] { half.factor(a); }), {"dic", "symmetric"});
  }
}

TEST(Rounds, TheGuessIsUsed) {
  const CsrMatrix a = generate("gen:convdiff2d:12x12");
  const auto b = test::random_values(144, 3);
  Solver solver;
  solver.analyse(a);
  solver.factor(a);
  std::vector<double> x(144, 0.0);
  const Result cold = solver.solve(b, x);
  EXPECT_GT(cold.iterations, 3);
  EXPECT_EQ(solver.solve(b, x).iterations, 0);
  for (double& v : x) v += 1e-6;
  const Result warm = solver.solve(b, x);
  EXPECT_GT(warm.iterations, 0);
  EXPECT_LT(warm.iterations, cold.iterations);
}

TEST(Rounds, AZeroRightHandSideHasTheZeroSolutionFromAnyGuess) {
  const CsrMatrix a = generate("gen:convdiff2d:5x5");
  for (const char* device : {"host", "emulated"}) {
    std::vector<double> x = test::random_values(25, 4);
    const Result r = solve(a, std::vector<double>(25, 0.0), x, {.device = device});
    EXPECT_EQ(r.status, Status::converged);
    EXPECT_EQ(r.iterations, 0);
    EXPECT_EQ(r.relative_residual, 0);
    EXPECT_EQ(x, std::vector<double>(25, 0.0));
  }
}

TEST(Rounds, AnEmptySystemIsSolved) {
  CsrMatrix a;
  a.offsets.push_back(0);
  std::vector<double> none;
  for (const char* precond : {"auto", "none", "jacobi", "dilu", "ilu0", "dic", "ic0"})
    for (const char* device : {"host", "emulated"}) {
      const Result r = solve(a, none, none, {.precond = precond, .device = device});
      EXPECT_EQ(r.status, Status::converged) << precond;
      EXPECT_EQ(r.iterations, 0);
      EXPECT_EQ(r.rmse, 0);
    }
}

TEST(Rounds, ASolverMoves) {
  const CsrMatrix a = generate("gen:poisson2d:6x6");
  Solver first;
  first.analyse(a);
  first.factor(a);
  Solver second = std::move(first);
  EXPECT_EQ(solved(second, ones(a)).r.status, Status::converged);
}

TEST(Rounds, TheOneCallIsTheThree) {
  const CsrMatrix a = generate("gen:convdiff2d:7x7");
  const auto b = test::random_values(49, 5);
  std::vector<double> x(49, 0.0), y(49, 0.0);
  const Result one = solve(a, b, x);
  Solver solver;
  solver.analyse(a);
  solver.factor(a);
  EXPECT_EQ(solver.solve(b, y).history, one.history);
  EXPECT_EQ(x, y);
}

// --- orderings and combinations ------------------------------------------------------------------------------------

TEST(Orderings, ArePrivateToTheSolver) {
  // Unsymmetric pattern: the caller's row i must meet the caller's b and x.
  const CsrMatrix a = test::random_matrix({.rows = 70, .per_row = 4, .symmetric_pattern = false, .seed = 9});
  const auto b = test::random_values(70, 10), x0 = test::random_values(70, 11);
  const auto expected = test::dense_solve(test::to_dense(a), b);
  for (const char* ordering : {"auto", "natural", "rcm", "multicolour", "metis", "metis:4"})
    for (const char* precond : {"none", "jacobi", "dilu", "ilu0"})
      for (const char* device : {"host", "emulated"}) {
        SCOPED_TRACE(std::string(ordering) + " " + precond + " " + device);
        std::vector<double> x = x0;
        const Result r = solve(a, b, x, {.precond = precond, .ordering = ordering, .device = device, .rtol = 1e-12});
        EXPECT_EQ(r.status, Status::converged);
        EXPECT_EQ(r.ordering, std::string(ordering) == "auto" ? "natural" : ordering);
        for (std::size_t i = 0; i < 70; ++i) ASSERT_NEAR(x[i], expected[i], 1e-10) << "row " << i;
        // The guess, too, is the caller's: from the solution there is nothing to do.
        EXPECT_EQ(solve(a, b, x, {.precond = precond, .ordering = ordering, .device = device, .rtol = 1e-9}).iterations,
                  0);
      }
}

TEST(Orderings, ChangeTheEliminationAndNotTheAnswer) {
  // Were the ordering ignored, the steps would be the same.
  const CsrMatrix a = generate("gen:convdiff2d:30x30");
  const auto b = test::random_values(900, 12);
  const auto history = [&](const char* ordering) {
    std::vector<double> x(900, 0.0);
    return solve(a, b, x, {.precond = "dilu", .ordering = ordering}).history;
  };
  const auto natural = history("natural"), colours = history("multicolour");
  EXPECT_NE(natural[1], colours[1]);
  EXPECT_GT(colours.size(), natural.size()) << "few levels cost iterations";
}

TEST(Orderings, ThatNothingDependsOnAreSaidNotToBeUsed) {
  const CsrMatrix a = generate("gen:convdiff2d:20x20");
  const auto notes_of = [&](const Options& o) { return solved(a, ones(a), o).r.notes; };
  const auto said = [&](const Options& o) { return test::any_has(notes_of(o), "ordering multicolour: not used"); };
  for (const char* precond : {"block-ilu:4", "ras:4", "lu"}) {
    if (std::string(precond) == "lu" && solver::SparseLu::name().empty()) continue;
    const Options o{.solver = "gmres", .precond = precond, .ordering = "multicolour", .device = "host"};
    EXPECT_TRUE(said(o)) << precond;
    EXPECT_EQ(solved(a, ones(a), o).r.ordering, "natural") << precond;
  }
  EXPECT_TRUE(said({.solver = "gmres-ir", .precond = "iluk:1", .ordering = "multicolour", .device = "host"}));
  for (const char* precond : {"iluk:1", "ilu0", "dilu", "jacobi"})
    EXPECT_FALSE(said({.solver = "gmres", .precond = precond, .ordering = "multicolour", .device = "host"})) << precond;
}

TEST(Shift, IsSaidNotToBeUsedWhereThereAreNoPivots) {
  const CsrMatrix a = generate("gen:convdiff2d:20x20");
  for (const char* precond : {"jacobi", "none", "lu"}) {
    if (std::string(precond) == "lu" && solver::SparseLu::name().empty()) continue;
    const Options o{.solver = "gmres", .precond = precond, .device = "host", .shift = 0.5};
    EXPECT_TRUE(test::any_has(solved(a, ones(a), o).r.notes, "shift 0.5: not used")) << precond;
  }
  EXPECT_FALSE(test::any_has(
      solved(a, ones(a), {.solver = "gmres", .precond = "dilu", .device = "host", .shift = 0.5}).r.notes, "shift"));
}

TEST(Combinations, AllMeetTheirTolerance) {
  const CsrMatrix general = generate("gen:convdiff2d:14x11"), symmetric = generate("gen:poisson2d:14x11");
  const auto b = test::random_values(154, 13);
  const double rtol = 1e-9;
  for (const char* solver : {"cg", "bicgstab", "gmres", "fgmres"})
    for (const char* precond : {"none", "jacobi", "dilu", "dic", "ilu0", "ic0"}) {
      const std::string name = precond;
      const bool needs_symmetry = std::string(solver) == "cg" || name == "dic" || name == "ic0";
      const CsrMatrix& a = needs_symmetry ? symmetric : general;
      const bool sweeps = name != "none" && name != "jacobi";
      for (const char* ordering : {"natural", "rcm", "multicolour", "metis:5"}) {
        std::vector<double> first_history;
        for (const char* triangular : {"auto", "serial", "level-set", "sync-free"})
          for (const char* device : {"host", "emulated"})
            for (const int threads : {1, 2}) {
              SCOPED_TRACE(std::string(solver) + " " + precond + " " + ordering + " " + triangular + " " + device +
                           " " + std::to_string(threads));
              std::vector<double> x(154, 0.0);
              const Result r = solve(a, b, x,
                                     {.solver = solver,
                                      .precond = precond,
                                      .triangular = triangular,
                                      .ordering = ordering,
                                      .device = device,
                                      .threads = threads,
                                      .rtol = rtol});
              ASSERT_EQ(r.status, Status::converged);
              ASSERT_LE(test::true_residual(a, x, b), rtol * (1 + 1e-6));
              EXPECT_EQ(r.solver, solver);
              EXPECT_EQ(r.precond, precond);
              EXPECT_EQ(r.ordering, ordering);
              EXPECT_EQ(r.device, device);
              EXPECT_EQ(r.threads, threads);
              if (!sweeps) {
                EXPECT_EQ(r.triangular, "none");
              } else if (std::string(triangular) != "auto") {
                EXPECT_EQ(r.triangular, triangular);
              }
              // Strategies, devices and threads change no bit.
              if (first_history.empty()) first_history = r.history;
              ASSERT_EQ(r.history, first_history);
            }
      }
    }
}

// --- accounts ------------------------------------------------------------------------------------------------------

TEST(Bytes, AreCountedAndRoughlyRight) {
  const CsrMatrix a = generate("gen:convdiff3d:20x20x20");
  const double n = a.rows, nnz = a.nnz();
  const auto bytes = [&](const char* solver, const char* precond, int restart, const char* device) {
    Solver s({.solver = solver, .precond = precond, .device = device, .restart = restart});
    s.analyse(a);
    s.factor(a);
    const Result r = solved(s, ones(a)).r;
    EXPECT_EQ(r.bytes, s.bytes());
    return double(s.bytes());
  };
  for (const char* device : {"host", "emulated"}) {
    SCOPED_TRACE(device);
    // Values and columns off the diagonal, the diagonal, b, x and two vectors of the driver, six of BiCGStab; indices
    // of the order and lengths a row; a fifth of padding at most.
    const double least = 12 * (nnz - n) + 8 * n * 11;
    const double none = bytes("bicgstab", "none", 30, device);
    EXPECT_GT(none, least);
    EXPECT_LT(none, 1.2 * 12 * (nnz - n) + 8 * n * 11 + 40 * n + 200000);
    // Jacobi adds one vector; ILU(0) the values of both triangles; a longer basis its vectors.
    EXPECT_NEAR(bytes("bicgstab", "jacobi", 30, device) - none, 8 * n, 64);
    const double dilu = bytes("bicgstab", "dilu", 30, device), ilu0 = bytes("bicgstab", "ilu0", 30, device);
    EXPECT_GE(ilu0 - dilu, 8 * (nnz - n));
    EXPECT_LE(ilu0 - dilu, 1.2 * 8 * (nnz - n));
    EXPECT_GT(dilu, none);
    const double grows = bytes("gmres", "none", 40, device) - bytes("gmres", "none", 20, device);
    EXPECT_NEAR(grows, 20 * 8 * n, 8 * 60 * 60);
    EXPECT_NEAR(bytes("fgmres", "none", 20, device) - bytes("gmres", "none", 20, device), 20 * 8 * n, 64);
  }
}

TEST(Bytes, AreNotThoseOfALimitThatIsNone) {
  const CsrMatrix a = generate("gen:poisson2d:12x12");
  for (const char* device : {"host", "emulated"}) {
    const Solved s = solved(a, ones(a), {.device = device, .max_iterations = std::numeric_limits<int>::max()});
    EXPECT_EQ(s.r.status, Status::converged);
    EXPECT_LT(s.r.bytes, 100'000'000u);
  }
}

TEST(Seconds, CoverTheWork) {
  const CsrMatrix a = generate("gen:convdiff3d:24x24x24");
  const auto start = std::chrono::steady_clock::now();
  Solver s;
  s.analyse(a);
  s.factor(a);
  const Result r = solved(s, ones(a)).r;
  const double all = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GT(r.seconds.analyse, 0);
  EXPECT_GT(r.seconds.factor, 0);
  EXPECT_GT(r.seconds.solve, 0);
  EXPECT_LE(r.seconds.analyse + r.seconds.factor + r.seconds.solve, all);
}

// A tridiagonal matrix has no fill: its factors are exact, M^-1 A is the identity, and any renumbering must be undone.
TEST(Apply, IsThePreconditionerInTheCallersOrder) {
  const CsrMatrix a = from_dense({{4, -1, 0, 0}, {-2, 5, -1, 0}, {0, -1, 6, -2}, {0, 0, -3, 7}});
  const std::vector<double> x{1, -2, 3, 0.5}, b{6, -15, 19, -5.5};  // b = A x
  for (const char* precond : {"ilu0", "dilu", "iluk:1", "ilut:5,0", "lu"}) {
    if (std::string(precond) == "lu" && solver::SparseLu::name().empty()) continue;
    Solver solver({.solver = "gmres", .precond = precond, .device = "host"});
    solver.setup(a);
    std::vector<double> z(4, nan);
    solver.apply(b, z);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(z[i], x[i], 1e-14) << precond;
    solver.apply(z, z);  // in place
    std::vector<double> again(4);
    solver.apply(x, again);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(z[i], again[i], 1e-13) << precond;
  }
  for (const char* ordering : {"rcm", "multicolour", "metis:2"}) {
    Solver solver({.solver = "gmres", .precond = "jacobi", .ordering = ordering, .device = "host"});
    solver.setup(a);
    std::vector<double> z(4);
    solver.apply(b, z);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(z[i], b[i] / (4.0 + double(i))) << ordering;
  }
}

TEST(Apply, NeedsFactorsAndLengths) {
  const CsrMatrix a = from_dense({{2, 1}, {1, 3}});
  Solver solver({.device = "host"});
  std::vector<double> two(2, 1), three(3);
  solver.analyse(a);
  expect_words(refusal([&] { solver.apply(two, two); }), {"analyse and factor"});
  solver.factor(a);
  expect_words(refusal([&] { solver.apply(three, two); }), {"2 entries", "3 and 2"});
}

TEST(Costs, AreThoseOfAnIterationAndDisturbNothing) {
  const CsrMatrix a = generate("gen:convdiff3d:24x24x24");
  for (const std::string device : {"host", "emulated"})
    for (const std::string precond : {"none", "dilu", "block-ilu:4"}) {
      SCOPED_TRACE(device + " " + precond);
      Options o;
      o.solver = "bicgstab";
      o.precond = precond;
      o.device = device;
      o.threads = 2;
      Solver s(o);
      expect_words(refusal([&] { s.costs(); }), {"costs comes after analyse and factor"});
      s.setup(a);
      const std::vector<double> first = solved(s, ones(a)).x;
      const auto start = std::chrono::steady_clock::now();
      const Costs c = s.costs();
      const double all = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
      EXPECT_GT(c.product, 0);
      EXPECT_GT(c.application, 0);
      EXPECT_LT(c.product + c.application, all);
      const Solved second = solved(s, ones(a));
      EXPECT_EQ(second.x, first);
      EXPECT_EQ(second.r.status, Status::converged);
      EXPECT_EQ(s.counts().solves, 2);
    }
}

TEST(Costs, OfAnEmptySystemAreZero) {
  CsrMatrix a;
  a.offsets = {0};
  Solver s;
  s.setup(a);
  EXPECT_EQ(s.costs().product, 0);
  EXPECT_EQ(s.costs().application, 0);
}

TEST(Costs, GrowWithTheWork) {
  Options o;
  o.precond = "dilu";
  o.device = "host";
  o.threads = 1;
  const auto costs = [&](const char* matrix) {
    Solver s(o);
    s.setup(generate(matrix));
    return s.costs();
  };
  const Costs small = costs("gen:convdiff3d:8x8x8"), large = costs("gen:convdiff3d:40x40x40");  // 125 times the rows
  EXPECT_GT(large.product, 5 * small.product);
  EXPECT_GT(large.application, 5 * small.application);
}

TEST(Status, HasNames) {
  EXPECT_STREQ(to_string(Status::converged), "converged");
  EXPECT_STREQ(to_string(Status::max_iterations), "max_iterations");
  EXPECT_STREQ(to_string(Status::stagnated), "stagnated");
  EXPECT_STREQ(to_string(Status::breakdown), "breakdown");
  EXPECT_STREQ(to_string(Status::diverged), "diverged");
  EXPECT_STREQ(to_string(Status::interrupted), "interrupted");
}

TEST(Parts, AreToldWhereTheyWereChosen) {
  const CsrMatrix a = generate("gen:poisson2d:80x80");
  const auto b = random_vector(std::size_t(a.rows), 1, -1, 1);
  for (const char* name : {"ras", "block-ilu", "ras:0,2", "ras:25,1", "block-ilu:25"}) {
    Options options;
    options.device = "host";
    options.precond = name;
    Solver solver(options);
    solver.setup(a);
    std::vector<double> x(b.size(), 0.0);
    const Result r = solver.solve(b, x);
    EXPECT_EQ(r.status, Status::converged) << name;
    EXPECT_EQ(r.solver, "bicgstab") << name;
    EXPECT_EQ(r.triangular, "parts") << name;
    const std::string told = std::string(name) + ": 25 parts of up to ";
    const auto tells = [&](const std::string& note) { return note.starts_with(told); };
    const bool chosen = std::string(name).find("25") == std::string::npos;
    EXPECT_EQ(std::count_if(r.notes.begin(), r.notes.end(), tells), chosen ? 1 : 0) << name;
    const std::vector<std::string> reasons = solver.explanation();
    EXPECT_EQ(std::count_if(reasons.begin(), reasons.end(), tells), chosen ? 0 : 1) << name;
  }
}

}  // namespace
