// SPDX-License-Identifier: Apache-2.0
// The public Solver as a caller meets it: what it chooses when nothing is named and how it says so, what it refuses and
// in which words, factoring anew without a new analysis, the solution in the caller's row order whatever the ordering,
// and every combination of its names on one small system, held against the tolerance and Gaussian elimination.
#include "krilu/solver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "krilu/io.hpp"
#include "solver/sparse_lu.hpp"
#include "support/not_finite.hpp"
#include "support/refusal.hpp"
#include "support/support.hpp"

namespace {

using namespace krilu;
using test::any_has;
using test::expect_words;
using test::from_dense;
using test::infinity;
using test::nan;
using test::refusal;

Result solve_ones(Solver& solver, const CsrMatrix& a, std::vector<double>* x_out = nullptr) {
  std::vector<double> b(std::size_t(a.rows), 1.0), x(std::size_t(a.rows), 0.0);
  Result r = solver.solve(b, x);
  if (x_out) *x_out = x;
  return r;
}
struct Chosen {
  Result r;
  std::vector<std::string> explanation;
};
Chosen choose(const CsrMatrix& a, const Options& o = {}) {
  Solver solver(o);
  solver.analyse(a);
  solver.factor(a);
  Result r = solve_ones(solver, a);
  return {std::move(r), solver.explanation()};
}

// --- choices -------------------------------------------------------------------------------------------------------

TEST(Auto, SymmetricTakesCgWithDic) {
  CsrMatrix a = generate("gen:poisson2d:8x8");
  for (const double sign : {1.0, -1.0}) {
    for (double& v : a.values) v = sign * std::abs(v) * (v < 0 ? -1 : 1);
    const Chosen c = choose(a);
    EXPECT_EQ(c.r.solver, "cg");
    EXPECT_EQ(c.r.precond, "dic");
    EXPECT_EQ(c.r.ordering, "natural");
    EXPECT_EQ(c.r.device, "host");
    EXPECT_EQ(c.r.status, Status::converged);
    EXPECT_TRUE(any_has(c.explanation, "solver cg: "));
    EXPECT_TRUE(any_has(c.explanation, "preconditioner dic: "));
  }
}

TEST(Auto, OneDifferingEntryOrADiagonalOfTwoSignsTakesBicgstabWithDilu) {
  CsrMatrix a = generate("gen:poisson2d:8x8");
  a.values[1] *= 1.5;
  CsrMatrix two_signs = generate("gen:poisson2d:8x8");
  for (Offset k = 0; k < two_signs.nnz(); ++k)
    if (two_signs.columns[std::size_t(k)] == 0 && k == 0) two_signs.values[std::size_t(k)] *= -1;
  for (const CsrMatrix& m : {a, two_signs, generate("gen:convdiff2d:8x8")}) {
    const Chosen c = choose(m);
    EXPECT_EQ(c.r.solver, "bicgstab");
    EXPECT_EQ(c.r.precond, "dilu");
    EXPECT_EQ(c.r.status, Status::converged);
  }
}

TEST(Auto, AnUnsymmetricPreconditionerIsNotGivenToCg) {
  const CsrMatrix a = generate("gen:poisson2d:8x8");
  EXPECT_EQ(choose(a, {.precond = "ilu0"}).r.solver, "bicgstab");
  EXPECT_EQ(choose(a, {.precond = "jacobi"}).r.solver, "cg");
  EXPECT_EQ(choose(a, {.solver = "gmres"}).r.precond, "dilu");
}

TEST(Auto, ZerosOnTheDiagonalTakeGmresAlone) {
  const CsrMatrix missing = from_dense({{2, 1, 0}, {1, 0, 1}, {0, 1, 3}});
  CsrMatrix stored = from_dense({{2, 1, 0}, {1, 9, 1}, {0, 1, 3}});
  stored.values[3] = 0;
  for (const CsrMatrix& a : {missing, stored}) {
    const Chosen c = choose(a);
    EXPECT_EQ(c.r.solver, "gmres");
    EXPECT_EQ(c.r.precond, "none");
    EXPECT_EQ(c.r.triangular, "none");
    EXPECT_EQ(c.r.status, Status::converged);
    EXPECT_TRUE(any_has(c.r.notes, "no preconditioner, since the diagonal has zeros (first in row 2)"));
    EXPECT_TRUE(any_has(c.explanation, "solver gmres: "));
  }
  // OpenFOAM's norm is not for GMRES, and a shift fills the diagonal.
  EXPECT_EQ(choose(missing, {.norm = Norm::openfoam}).r.solver, "bicgstab");
  EXPECT_EQ(choose(missing, {.shift = 0.5}).r.precond, "dilu");
}

TEST(Auto, AZeroPivotFallsBackToJacobiWithANote) {
  // A full diagonal, and elimination meets 1 - 1 * 1 in the second row.
  const CsrMatrix a = from_dense({{1, 1, 0}, {1, 1, 2}, {0, 1, 1}});
  for (const char* device : {"host", "emulated"}) {
    const Chosen c = choose(a, {.device = device});
    EXPECT_EQ(c.r.precond, "jacobi");
    EXPECT_TRUE(any_has(c.r.notes, "precond auto: jacobi in place of dilu (dilu: zero pivot in row 2"));
    const std::string named = refusal([&] { choose(a, {.precond = "dilu", .device = device}); });
    expect_words(named, {"dilu: zero pivot in row 2 (counting from 1)", "--shift", "--precond jacobi"});
  }
  EXPECT_THROW(choose(a, {.precond = "ilu0"}), ZeroPivot);
  EXPECT_EQ(choose(a, {.precond = "dilu", .shift = 0.1}).r.precond, "dilu");
}

TEST(Auto, AZeroPivotIsNamedInTheCallersRows) {
  // A long path whose last two rows are linearly dependent once the rest is cut off.
  test::Dense d(40, std::vector<double>(40, 0.0));
  for (std::size_t i = 0; i < 40; ++i) d[i][i] = 3;
  for (std::size_t i = 0; i + 1 < 38; ++i) d[i][i + 1] = d[i + 1][i] = -1;
  d[38][38] = d[39][39] = d[38][39] = d[39][38] = 1;
  for (const char* ordering : {"natural", "multicolour"})
    for (const char* device : {"host", "emulated"})
      expect_words(refusal([&] { choose(from_dense(d), {.precond = "dilu", .ordering = ordering, .device = device}); }),
                   {"zero pivot in row 40"});
}

TEST(Auto, JacobiNamesTheFirstZeroOfTheDiagonal) {
  const CsrMatrix a = from_dense({{1, 2, 0, 0}, {2, 1, 0, 3}, {0, 0, 0, 1}, {0, 3, 1, 0}});
  expect_words(refusal([&] { choose(a, {.precond = "jacobi"}); }),
               {"jacobi", "2 rows", "first is row 3", "--precond none"});
}

TEST(Auto, SymmetricPreconditionersRefuseOtherMatrices) {
  CsrMatrix a = generate("gen:poisson2d:5x5");
  a.values[std::size_t(a.offsets[7])] *= 2;  // row 8's first entry has a partner in an earlier row
  expect_words(refusal([&] { choose(a, {.precond = "dic"}); }), {"dic needs a symmetric matrix", "row 8", "use dilu"});
  expect_words(refusal([&] { choose(a, {.precond = "ic0"}); }), {"ic0 needs a symmetric matrix", "row 8", "use ilu0"});
}

// --- names and numbers ---------------------------------------------------------------------------------------------

TEST(Options, UnknownNamesGiveTheNearest) {
  const auto sentence = [](Options o) { return refusal([&] { const Solver refused(std::move(o)); }); };
  expect_words(sentence({.solver = "bicgstap"}), {"unknown solver 'bicgstap'", "did you mean 'bicgstab'?", "fgmres"});
  expect_words(sentence({.solver = "gmress"}), {"did you mean 'gmres'?"});
  expect_words(sentence({.precond = "dilo"}), {"unknown preconditioner 'dilo'", "did you mean 'dilu'?"});
  expect_words(sentence({.precond = "jacoby"}), {"did you mean 'jacobi'?"});
  expect_words(sentence({.triangular = "levelset"}),
               {"unknown triangular strategy 'levelset'", "did you mean 'level-set'?"});
  expect_words(sentence({.ordering = "naturel"}), {"unknown ordering 'naturel'", "did you mean 'natural'?"});
  expect_words(sentence({.device = "emulate"}), {"unknown device 'emulate'", "did you mean 'emulated'?"});
  const std::string far = sentence({.solver = "a name that is like none"});
  expect_words(far, {"unknown solver", "cg, bicgstab, gmres, fgmres"});
  EXPECT_EQ(far.find("did you mean"), std::string::npos);
  EXPECT_THROW(Solver({.precond = "DILU"}), Error);
  EXPECT_THROW(Solver({.solver = ""}), Error);
  EXPECT_THROW(Solver({.ordering = "metis:x"}), Error);
}

TEST(Options, NumbersOutsideTheirRangeAreRefusedInASentence) {
  const auto sentence = [](Options o) { return refusal([&] { const Solver refused(std::move(o)); }); };
  expect_words(sentence({.rtol = -1e-8}), {"rtol and atol are numbers from 0"});
  expect_words(sentence({.rtol = nan}), {"rtol and atol are numbers from 0"});
  expect_words(sentence({.atol = -1}), {"rtol and atol are numbers from 0"});
  expect_words(sentence({.restart = 0}), {"restart is 0", "at least 1"});
  expect_words(sentence({.max_iterations = -1}), {"max-iters"});
  expect_words(sentence({.threads = -2}), {"threads"});
  expect_words(sentence({.shift = -0.5}), {"shift is a number from 0"});
  expect_words(sentence({.shift = nan}), {"shift"});
  expect_words(sentence({.solver = "gmres", .norm = Norm::openfoam}), {"gmres", "2-norm", "bicgstab"});
  expect_words(sentence({.solver = "fgmres", .norm = Norm::openfoam}), {"fgmres", "--norm openfoam"});
  EXPECT_NO_THROW(Solver({.rtol = 0, .max_iterations = 0}));
}

// --- systems that are refused --------------------------------------------------------------------------------------

TEST(Input, LengthsMustBeTheMatrixs) {
  const CsrMatrix a = generate("gen:poisson2d:3x3");
  Solver solver;
  solver.analyse(a);
  solver.factor(a);
  std::vector<double> nine(9, 1.0), ten(10, 1.0), none;
  expect_words(refusal([&] { solver.solve(ten, nine); }), {"right-hand side has 10 entries", "9 rows"});
  expect_words(refusal([&] { solver.solve(none, nine); }), {"right-hand side has 0 entries"});
  expect_words(refusal([&] { solver.solve(nine, ten); }), {"initial guess has 10 entries", "9 rows"});
  EXPECT_EQ(solver.counts().solves, 0);
  EXPECT_EQ(solver.solve(nine, nine).status, Status::converged);
}

TEST(Input, NumbersMustBeFinite) {
  const CsrMatrix a = generate("gen:poisson2d:3x3");
  Solver solver;
  solver.analyse(a);
  solver.factor(a);
  std::vector<double> b(9, 1.0), x(9, 0.0), bad(9, 1.0);
  bad[4] = nan;
  expect_words(refusal([&] { solver.solve(bad, x); }), {"right-hand side holds NaN in row 5"});
  expect_words(refusal([&] { solver.solve(b, bad); }), {"initial guess holds NaN in row 5"});
  bad[4] = -infinity;
  expect_words(refusal([&] { solver.solve(bad, x); }), {"right-hand side holds infinity in row 5"});
  bad.assign(bad.size(), 1e-160);
  expect_words(refusal([&] { solver.solve(bad, x); }), {"1.0e-160", "squares", "zero", "scale"});
  bad[3] = 1e160;
  expect_words(refusal([&] { solver.solve(bad, x); }), {"1.0e+160", "squares", "more than a double holds", "scale"});
  for (const char* device : {"host", "emulated"})
    for (const double value : {nan, infinity})
      for (Offset k = 0; k < a.nnz(); ++k) {  // in either triangle, and on the diagonal
        Index row = 0;
        while (a.offsets[std::size_t(row) + 1] <= k) ++row;
        CsrMatrix m = a;
        m.values[std::size_t(k)] = value;
        Solver one({.solver = "bicgstab", .precond = "none", .device = device});
        one.analyse(m);
        expect_words(refusal([&] { one.factor(m); }), {"row " + std::to_string(row + 1)});
        EXPECT_EQ(one.counts().factorisations, 0);
        EXPECT_THROW(solve_ones(one, m), Error) << "nothing was factored";
      }
}

TEST(Input, TheMatrixMustBeSquareAndOrdered) {
  const auto analyse = [](const CsrView& a) { return refusal([&] { Solver().analyse(a); }); };
  CsrMatrix wide = from_dense({{1, 0, 2}, {0, 1, 0}});
  expect_words(analyse(wide), {"2 rows and 3 columns", "square"});
  CsrMatrix a = generate("gen:poisson2d:3x3");
  CsrMatrix m = a;
  std::swap(m.columns[1], m.columns[2]);
  expect_words(analyse(m), {"row 1", "ascend"});
  m = a;
  m.columns[1] = m.columns[0];
  expect_words(analyse(m), {"row 1", "each once"});
  m = a;
  m.columns[std::size_t(m.nnz() - 1)] = 9;
  expect_words(analyse(m), {"row 9", "column 10", "1 to 9"});
  m = a;
  m.columns[0] = -1;
  expect_words(analyse(m), {"row 1", "column 0"});
  m = a;
  m.offsets[0] = 1;
  expect_words(analyse(m), {"first row offset is 1"});
  m = a;
  m.offsets[4] = 1 << 30;  // and no column is read there
  expect_words(analyse(m), {"row 5", "descend"});
  CsrView bare = a;
  bare.values = nullptr;
  expect_words(analyse(bare), {"no values", "name solver and preconditioner"});
  Solver named({.solver = "bicgstab", .precond = "dilu"});
  named.analyse(bare);
  expect_words(refusal([&] { named.factor(bare); }), {"no values"});
  named.factor(a);
  EXPECT_EQ(solve_ones(named, a).status, Status::converged);
}

TEST(Input, StepsHaveAnOrder) {
  const CsrMatrix a = generate("gen:poisson2d:3x3");
  std::vector<double> b(9, 1.0), x(9, 0.0);
  Solver solver;
  EXPECT_EQ(solver.bytes(), 0u);
  expect_words(refusal([&] { solver.factor(a); }), {"factor comes after analyse"});
  expect_words(refusal([&] { solver.solve(b, x); }), {"solve comes after analyse and factor"});
  solver.analyse(a);
  expect_words(refusal([&] { solver.solve(b, x); }), {"solve comes after analyse and factor"});
  solver.factor(a);
  EXPECT_EQ(solver.solve(b, x).status, Status::converged);
  solver.analyse(a);  // forgets the factorisation
  expect_words(refusal([&] { solver.solve(b, x); }), {"solve comes after analyse and factor"});
}

TEST(Input, FactorNeedsTheAnalysedPattern) {
  const CsrMatrix a = generate("gen:poisson2d:4x4");
  Solver solver;
  solver.analyse(a);
  solver.factor(a);
  CsrMatrix moved = a;  // as many entries in each row, one of them elsewhere
  ASSERT_EQ(moved.columns[2], 4);
  moved.columns[2] = 5;
  CsrMatrix longer = generate("gen:poisson2d:4x5"), shaped = generate("gen:poisson2d:2x8");
  for (const CsrMatrix* other : {&moved, &longer, &shaped})
    expect_words(refusal([&] { solver.factor(*other); }), {"another pattern", "analyse"});
  EXPECT_EQ(solve_ones(solver, a).status, Status::converged) << "the old factorisation is still there";
  EXPECT_EQ(solver.counts().factorisations, 1);
}

TEST(Input, AFailedFactorisationLeavesNothingToSolveWith) {
  CsrMatrix a = from_dense({{2, 1}, {1, 2}});
  Solver solver({.solver = "bicgstab", .precond = "dilu"});
  solver.analyse(a);
  solver.factor(a);
  CsrMatrix bad = a;
  bad.values = from_dense({{1, 1}, {1, 1}}).values;
  EXPECT_THROW(solver.factor(bad), ZeroPivot);
  EXPECT_THROW(solve_ones(solver, a), Error);
  solver.factor(a);
  EXPECT_EQ(solve_ones(solver, a).status, Status::converged);
}

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
  EXPECT_EQ(solve_ones(second, a).status, Status::converged);
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
    const Result r = solve_ones(s, a);
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

TEST(Seconds, CoverTheWork) {
  const CsrMatrix a = generate("gen:convdiff3d:24x24x24");
  const auto start = std::chrono::steady_clock::now();
  Solver s;
  s.analyse(a);
  s.factor(a);
  const Result r = solve_ones(s, a);
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
      std::vector<double> first, second;
      solve_ones(s, a, &first);
      const auto start = std::chrono::steady_clock::now();
      const Costs c = s.costs();
      const double all = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
      EXPECT_GT(c.product, 0);
      EXPECT_GT(c.application, 0);
      EXPECT_LT(c.product + c.application, all);
      const Result r = solve_ones(s, a, &second);
      EXPECT_EQ(second, first);
      EXPECT_EQ(r.status, Status::converged);
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
