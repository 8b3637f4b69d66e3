// SPDX-License-Identifier: Apache-2.0
// What is conserved in a closed box: A's columns sum to zero, and no x solves for a b with a mean. The ladder leaves it
// out, and says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "krilu/solver.hpp"
#include "solver/honest.hpp"
#include "support/refusal.hpp"
#include "support/solved.hpp"
#include "support/support.hpp"

namespace {

using namespace krilu;
using test::any_has;
using test::expect_honest;
using test::from_dense;
using test::neumann;
using test::solved;
using test::Solved;

double mean_of(const std::vector<double>& b) { return std::accumulate(b.begin(), b.end(), 0.0) / double(b.size()); }
std::vector<double> without_mean(std::vector<double> b) {
  const double mean = mean_of(b);
  for (double& v : b) v -= mean;
  return b;
}
/// What no x solves of b, as a relative residual.
double least_of(const std::vector<double>& b) {
  return std::abs(mean_of(b)) * std::sqrt(double(b.size()) / std::inner_product(b.begin(), b.end(), b.begin(), 0.0));
}

TEST(ClosedBox, ASingularMatrixOfFullPatternEndsWithItsBestIterate) {
  const CsrMatrix a = neumann(0);  // and a right-hand side with a mean
  const std::vector<double> solvable = without_mean(test::random_values(std::size_t(a.rows), 2));
  const double n = double(a.rows);
  for (double more : {1e-6, 1e-2, 1.0, -30.0, 1e9}) {
    SCOPED_TRACE(more);
    std::vector<double> b = solvable;
    for (double& v : b) v += more;
    const Solved s = solved(a, b);
    expect_honest(a, b, s);
    EXPECT_EQ(s.r.status, Status::stagnated);
    const double least = std::abs(more) * std::sqrt(n / std::inner_product(b.begin(), b.end(), b.begin(), 0.0));
    EXPECT_NEAR(s.r.relative_residual, least, 1e-7 * least + 1e-8);
    for (double v : s.x) ASSERT_LE(std::abs(v), 1e3) << "a constant beyond use";
    EXPECT_LE(test::true_residual(a, s.x, solvable), 1e-6);
    EXPECT_TRUE(any_has(s.r.notes, "not solved: the matrix is singular, since its columns sum to zero"));
    EXPECT_EQ(std::ranges::count_if(s.r.notes, [](const std::string& note) { return note.starts_with("not solved"); }),
              1);
  }
  // One that is nothing else: rounding is no right-hand side.
  const Solved mean_alone = solved(a, std::vector<double>(std::size_t(a.rows), 0.1));
  EXPECT_EQ(mean_alone.r.status, Status::stagnated);
  EXPECT_EQ(mean_alone.x, std::vector<double>(std::size_t(a.rows), 0.0));
  // One without is solved at the first rung.
  EXPECT_EQ(solved(a, solvable).r.rungs.size(), 1u);
  EXPECT_EQ(solved(a, solvable).r.status, Status::converged);
}

/// What is carried through a closed box, and spreads: what one cell gives its neighbour has. The flow has sources and
/// sinks, so that a constant is no solution. A face's value is that of the cell upwind, or the mean of both.
CsrMatrix closed_box(double speed, bool upwind = true) {
  test::Dense d = test::to_dense(neumann(0));
  const std::vector<double> flow = test::random_values(d.size() * d.size(), 31);
  for (std::size_t i = 0; i < d.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      if (d[i][j] == 0) continue;
      const double f = speed * flow[i * d.size() + j];
      const double of_i = upwind ? std::max(f, 0.0) : f / 2, of_j = upwind ? std::min(f, 0.0) : f / 2;
      d[i][i] += of_i;
      d[j][i] -= of_i;
      d[i][j] += of_j;
      d[j][j] -= of_j;
    }
  return from_dense(d);
}

TEST(ClosedBox, WhatIsConservedInAClosedBoxHasNoMean) {
  const CsrMatrix a = closed_box(3);
  const std::vector<double> b = test::random_values(std::size_t(a.rows), 5);
  const Solved s = solved(a, b);
  expect_honest(a, b, s);
  EXPECT_EQ(s.r.status, Status::stagnated);
  const double least = least_of(b);
  EXPECT_NEAR(s.r.relative_residual, least, 1e-7 * least);
  for (double v : s.x) ASSERT_LE(std::abs(v), 1e3);
  EXPECT_TRUE(any_has(s.r.notes, "not solved: the matrix is singular, since its columns sum to zero"));
  EXPECT_EQ(s.r.rungs.back().why_left, "of b without its mean: no x leaves less of the whole");
  // As far as rounding lets it is what can be done, too.
  const Solved further = solved(a, b, {.rtol = 1e-18});
  expect_honest(a, b, further);
  EXPECT_NEAR(further.r.relative_residual, least, 1e-7 * least);
  EXPECT_TRUE(any_has(further.r.notes, "this x is that of b without its mean"));
}

TEST(ClosedBox, ARungThatStandsLeavesTheMeanOutToo) {
  const CsrMatrix a = closed_box(30, false);
  std::vector<double> b = test::random_values(std::size_t(a.rows), 5), x(b.size(), 0.0);
  const std::vector<double> solvable = without_mean(b);
  Solver solver(Options{});
  solver.setup(a);
  const Result first = solver.solve(solvable, x);
  EXPECT_EQ(first.status, Status::converged);
  ASSERT_GT(first.rungs.size(), 1u);
  const double least = least_of(b);
  for (int times = 0; times < 2; ++times) {
    std::fill(x.begin(), x.end(), 0.0);
    const Result r = solver.solve(b, x);
    expect_honest(a, b, {r, x});
    EXPECT_EQ(r.status, Status::stagnated);
    EXPECT_NEAR(r.relative_residual, least, 1e-7 * least);
    EXPECT_EQ(r.rungs.back().what, first.rungs.back().what);
    EXPECT_EQ(r.rungs.back().why_left, "of b without its mean: no x leaves less of the whole");
    EXPECT_EQ(r.rungs.size(), 1u) << "the climb before saw that columns sum to zero";
  }
}

// Its equations in another sequence: zeros on the diagonal, and no first rung to fail.
TEST(ClosedBox, TheMeanIsLeftOutWhereTheFirstRungIs) {
  test::Dense d = test::to_dense(closed_box(3));
  std::rotate(d.begin(), d.begin() + 7, d.end());
  const CsrMatrix a = from_dense(d);
  const std::vector<double> b = test::random_values(std::size_t(a.rows), 5);
  const Solved s = solved(a, b);
  expect_honest(a, b, s);
  EXPECT_EQ(s.r.status, Status::stagnated);
  const double least = least_of(b);
  EXPECT_NEAR(s.r.relative_residual, least, 1e-7 * least);
  EXPECT_TRUE(any_has(s.r.notes, "its columns sum to zero"));
}

// Its transpose: a constant is a solution of A x = 0, and what A gives is nothing that a look at A tells.
TEST(ClosedBox, RowsThatSumToZeroAreSaidToBeSingularWhereNothingArrived) {
  const test::Dense box = test::to_dense(closed_box(3));
  test::Dense d = box;
  for (std::size_t i = 0; i < d.size(); ++i)
    for (std::size_t j = 0; j < d.size(); ++j) d[i][j] = box[j][i];
  const CsrMatrix a = from_dense(d);
  const std::vector<double> b = test::random_values(std::size_t(a.rows), 5);
  const Solved s = solved(a, b);
  expect_honest(a, b, s);
  EXPECT_EQ(s.r.status, Status::stagnated);
  EXPECT_LT(s.r.relative_residual, 1);
  EXPECT_TRUE(any_has(s.r.notes, "not solved: the matrix is singular, since its rows sum to zero"));
  // What it gives is solved.
  std::vector<double> given(d.size(), 0.0);
  const std::vector<double> x = test::random_values(d.size(), 6);
  for (std::size_t i = 0; i < d.size(); ++i) given[i] = std::inner_product(d[i].begin(), d[i].end(), x.begin(), 0.0);
  EXPECT_EQ(solved(a, given).r.status, Status::converged);
}

// A rung stands for a symmetric matrix; the values after it are symmetric no longer, and no rung solves them.
TEST(ClosedBox, ASolverOutlivesValuesThatAreNeitherSymmetricNorSolvable) {
  const CsrMatrix a = neumann(-1.5);
  Solver solver({.device = "host"});
  solver.setup(a);
  const std::vector<double> b = test::random_values(std::size_t(a.rows), 5);
  std::vector<double> x(b.size(), 0.0);
  const Result first = solver.solve(b, x);
  ASSERT_EQ(first.status, Status::converged);
  ASSERT_GT(first.rungs.size(), 1u);
  ASSERT_TRUE(first.rungs[0].what.starts_with("cg with dic")) << first.rungs[0].what;
  const test::Dense box = test::to_dense(closed_box(3));
  test::Dense d = box;
  for (std::size_t i = 0; i < d.size(); ++i)
    for (std::size_t j = 0; j < d.size(); ++j) d[i][j] = box[j][i];
  const CsrMatrix transposed = from_dense(d);
  ASSERT_TRUE(std::ranges::equal(transposed.columns, a.columns));
  solver.factor(transposed);
  for (int times = 0; times < 3; ++times) {
    std::fill(x.begin(), x.end(), 0.0);
    const Result r = solver.solve(b, x);
    expect_honest(transposed, b, {r, x});
    EXPECT_EQ(r.status, Status::stagnated);
    if (times > 0) {
      EXPECT_TRUE(r.rungs[0].what.starts_with("bicgstab with dilu")) << r.rungs[0].what;
    }
  }
  solver.factor(a);
  EXPECT_EQ(solver.solve(b, x).status, Status::converged);
}

TEST(ClosedBox, IsRememberedAndAnalysedOnce) {
  const CsrMatrix a = closed_box(3);
  Solver solver(Options{});
  solver.setup(a);
  std::vector<double> x(std::size_t(a.rows));
  for (unsigned side = 5; side < 8; ++side) {
    const std::vector<double> b = test::random_values(x.size(), side);
    std::fill(x.begin(), x.end(), 0.0);
    const Result r = solver.solve(b, x);
    expect_honest(a, b, {r, x});
    EXPECT_NEAR(r.relative_residual, least_of(b), 1e-7 * least_of(b));
    EXPECT_EQ(r.rungs.size(), side == 5 ? 2u : 1u) << "b with its mean is not tried again";
    EXPECT_DOUBLE_EQ(r.initial_residual, 1);
    EXPECT_DOUBLE_EQ(r.history.front(), 1);
    EXPECT_EQ(r.rungs.back().arguments, "") << "no options of the command take a mean out";
  }
  EXPECT_EQ(solver.counts().analyses, 1);
  // A b without a mean is solved as any other.
  const std::vector<double> b = without_mean(test::random_values(x.size(), 9));
  std::fill(x.begin(), x.end(), 0.0);
  EXPECT_EQ(solver.solve(b, x).status, Status::converged);
  // So are values of no closed box.
  CsrMatrix open = a;
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      if (a.columns[std::size_t(k)] == i) open.values[std::size_t(k)] += 1;
  solver.factor(open);
  const std::vector<double> any = test::random_values(x.size(), 5);
  const Result r = solver.solve(any, x);
  expect_honest(open, any, {r, x});
  EXPECT_EQ(r.status, Status::converged);
}

TEST(ClosedBox, TolerancesThatChangeAreThoseOfBWithoutItsMeanToo) {
  const CsrMatrix a = closed_box(3);
  const std::vector<double> b = test::random_values(std::size_t(a.rows), 5);
  const std::vector<double> without = without_mean(b);
  Solver solver(Options{});
  solver.setup(a);
  double last = 1;
  for (const double rtol : {1e-2, 1e-5, 1e-11}) {
    solver.set_tolerances(rtol, 0);
    std::vector<double> x(b.size(), 0.0);
    solver.solve(b, x);
    const double left = test::true_residual(a, x, without);
    EXPECT_LE(left, 1.01 * rtol);
    EXPECT_LT(left, last) << "no more is done than is asked";
    if (rtol > 1e-10) {
      EXPECT_GT(left, 1e-3 * rtol);
    }
    last = left;
  }
}

TEST(ClosedBox, TheLimitOfIterationsIsThatOfBothRightHandSides) {
  const CsrMatrix a = closed_box(3);
  const std::vector<double> b = test::random_values(std::size_t(a.rows), 5);
  const int first = solved(a, b).r.rungs.front().iterations;
  for (int most = 1; most <= first + 1; ++most) {
    const Solved s = solved(a, b, {.max_iterations = most});
    expect_honest(a, b, s);
    EXPECT_LE(s.r.iterations, most);
    EXPECT_EQ(s.r.rungs.size(), most <= first ? 1u : 2u) << most;
    EXPECT_NE(s.r.status, Status::converged);
  }
}

}  // namespace
