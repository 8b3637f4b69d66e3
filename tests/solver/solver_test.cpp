// SPDX-License-Identifier: Apache-2.0
// The public Solver as a caller meets it: what it chooses when nothing is named and how it says so, and what it refuses
// and in which words.
#include "krilu/solver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "krilu/io.hpp"
#include "support/not_finite.hpp"
#include "support/refusal.hpp"
#include "support/solved.hpp"
#include "support/support.hpp"

namespace {

using namespace krilu;
using test::any_has;
using test::expect_words;
using test::from_dense;
using test::infinity;
using test::nan;
using test::ones;
using test::refusal;
using test::solved;

struct Chosen {
  Result r;
  std::vector<std::string> explanation;
};
Chosen choose(const CsrMatrix& a, const Options& o = {}) {
  Solver solver(o);
  solver.analyse(a);
  solver.factor(a);
  Result r = solved(solver, ones(a)).r;
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
        EXPECT_THROW(solved(one, ones(m)).r, Error) << "nothing was factored";
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
  EXPECT_EQ(solved(named, ones(a)).r.status, Status::converged);
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
  EXPECT_EQ(solved(solver, ones(a)).r.status, Status::converged) << "the old factorisation is still there";
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
  EXPECT_THROW(solved(solver, ones(a)).r, Error);
  solver.factor(a);
  EXPECT_EQ(solved(solver, ones(a)).r.status, Status::converged);
}

}  // namespace
