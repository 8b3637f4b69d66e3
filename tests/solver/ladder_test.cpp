// SPDX-License-Identifier: Apache-2.0
// The ladder behind `auto`: easy systems pay nothing for it, hard ones are solved by a rung that is reported and
// remembered, systems that cannot be solved end with a reason; each held against the true residual.
#include "solver/ladder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "solver/honest.hpp"
#include "solver/moved.hpp"
#include "solver/sparse_lu.hpp"
#include "support/refusal.hpp"
#include "support/solved.hpp"
#include "support/support.hpp"

namespace {

using namespace krilu;
using test::any_has;
using test::disordered;
using test::expect_honest;
using test::expect_words;
using test::from_dense;
using test::moved;
using test::natural_order;
using test::neumann;
using test::ones;
using test::random_powers;
using test::shuffled_order;
using test::solved;
using test::Solved;

/// [A B^T; B 0]: a five-point A and constraints between neighbouring pairs; zeros on the diagonal of all of them.
CsrMatrix saddle_point(Index side, bool stores_zeros) {
  const CsrMatrix a = generate("gen:poisson2d:" + std::to_string(side) + "x" + std::to_string(side));
  const Index n = a.rows, m = n / 3;
  CsrMatrix s;
  s.rows = s.cols = n + m;
  s.offsets.push_back(0);
  const auto put = [&](Index j, double v) {
    s.columns.push_back(j);
    s.values.push_back(v);
  };
  for (Index i = 0; i < n; ++i) {
    for (auto k = std::size_t(a.offsets[std::size_t(i)]); k < std::size_t(a.offsets[std::size_t(i) + 1]); ++k)
      put(a.columns[k], a.values[k]);
    if (i / 3 < m && i % 3 < 2) put(n + i / 3, i % 3 == 0 ? 1.0 : -2.0);
    s.offsets.push_back(Offset(s.columns.size()));
  }
  for (Index c = 0; c < m; ++c) {
    put(3 * c, 1);
    put(3 * c + 1, -2);
    if (stores_zeros) put(n + c, 0);
    s.offsets.push_back(Offset(s.columns.size()));
  }
  return s;
}

// --- what is easy ----------------------------------------------------------------------------------------------------

TEST(Ladder, EasySystemsAreSolvedByTheFirstRungAsIfItHadBeenNamed) {
  for (const auto& [name, method, precond] :
       std::vector<std::array<const char*, 3>>{{"gen:poisson3d:12x12x12", "cg", "dic"},
                                               {"gen:convdiff3d:12x11x10", "bicgstab", "dilu"},
                                               {"gen:poisson2d:90x90", "cg", "dic"}}) {
    SCOPED_TRACE(name);
    CsrMatrix a = generate(name);
    for (double sign : {1.0, -1.0}) {  // OpenFOAM's pressure systems are negative definite
      for (double& v : a.values) v *= sign;
      const auto b = test::random_values(std::size_t(a.rows), 1);
      const Solved free = solved(a, b), named = solved(a, b, {.solver = method, .precond = precond});
      expect_honest(a, b, free);
      ASSERT_EQ(free.r.rungs.size(), 1u);
      EXPECT_EQ(free.r.rungs[0].arguments, std::string("--solver ") + method + " --precond " + precond);
      EXPECT_EQ(free.r.status, Status::converged);
      EXPECT_EQ(free.r.iterations, named.r.iterations);
      EXPECT_EQ(free.x, named.x);
      EXPECT_TRUE(named.r.rungs.empty());
    }
  }
}

TEST(Ladder, WhatIsNamedIsDoneAndNothingElse) {
  const CsrMatrix a = saddle_point(12, false);
  const Result r = solved(a, ones(a), {.solver = "gmres", .restart = 5, .max_iterations = 60}).r;
  EXPECT_EQ(r.status, Status::max_iterations);
  EXPECT_TRUE(r.rungs.empty());
  EXPECT_TRUE(solved(a, ones(a), {.precond = "none", .max_iterations = 10}).r.rungs.empty());
}

// --- what is not -----------------------------------------------------------------------------------------------------

TEST(Ladder, SaddlePointsAreSolvedByPairingRowsWithColumns) {
  for (const char* device : {"host", "emulated"})
    for (bool stores_zeros : {false, true}) {
      SCOPED_TRACE(std::string(device) + (stores_zeros ? ", zeros stored" : ""));
      const CsrMatrix a = saddle_point(20, stores_zeros);
      const Solved s = solved(a, ones(a), {.device = device});
      expect_honest(a, ones(a), s);
      EXPECT_EQ(s.r.status, Status::converged);
      expect_words(s.r.rungs.back().what, {"matching"});
      EXPECT_EQ(s.r.solver, "gmres");
    }
}

TEST(Ladder, TheNamedRungDoesWhatTheLadderDidThere) {
  const CsrMatrix a = saddle_point(20, false);
  const Solved s = solved(a, ones(a));
  ASSERT_EQ(s.r.rungs.size(), 1u) << "zeros on the diagonal are seen beforehand";
  Options o;
  o.solver = "gmres";
  o.restart = 50;
  o.precond = s.r.precond;
  o.scaling = "matching";
  o.ordering = "rcm";
  EXPECT_EQ(solver::arguments_of(o), s.r.rungs[0].arguments);
  const Solved named = solved(a, ones(a), o);
  EXPECT_EQ(named.r.iterations, s.r.iterations);
  EXPECT_EQ(named.x, s.x);
}

TEST(Ladder, IsTheSameEachTimeAndForAnyNumberOfThreads) {
  const CsrMatrix a = saddle_point(25, false);
  const Solved one = solved(a, ones(a), {.threads = 1});
  for (int threads : {1, 2, 3}) {
    const Solved again = solved(a, ones(a), {.threads = threads});
    EXPECT_EQ(again.x, one.x) << threads;
    EXPECT_EQ(again.r.history, one.r.history) << threads;
  }
}

/// Neighbours that differ by twelve orders of magnitude and a row order of no sense: neither DILU nor DIC will do.
TEST(Ladder, SystemsInAnyOrderAndScaleAreStillSolved) {
  for (const char* name : {"gen:convdiff2d:25x25", "gen:poisson2d:25x25", "gen:convdiff3d:9x9x9"})
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(std::string(name) + " seed " + std::to_string(seed));
      const CsrMatrix a = generate(name);
      const std::vector<double> none(std::size_t(a.rows), 1.0);
      const auto p = shuffled_order(a.rows, seed), q = shuffled_order(a.rows, seed + 10);
      const auto r = random_powers(std::size_t(a.rows), 6, seed + 20),
                 c = random_powers(std::size_t(a.rows), 6, seed + 30);
      const auto same = natural_order(a.rows);
      for (const CsrMatrix& m : {moved(a, p, p, none, none), moved(a, p, q, none, none), moved(a, same, same, r, c),
                                 moved(a, same, same, r, r), moved(a, p, q, r, c)}) {
        const auto b = test::random_values(std::size_t(a.rows), seed);
        const Solved s = solved(m, b);
        expect_honest(m, b, s);
        EXPECT_EQ(s.r.status, Status::converged);
      }
    }
}

TEST(Ladder, GoesOnFromTheBestIterateAndSaysWhyItLeft) {
  // Convection far beyond what a mesh resolves, against the row order: DILU's recurrences grow.
  CsrMatrix a = generate("gen:poisson2d:40x40");
  for (Index i = 0; i < a.rows; ++i)
    for (auto k = std::size_t(a.offsets[std::size_t(i)]); k < std::size_t(a.offsets[std::size_t(i) + 1]); ++k)
      if (a.columns[k] != i) a.values[k] *= a.columns[k] < i ? -9 : 10;
  const Solved s = solved(a, ones(a));
  expect_honest(a, ones(a), s);
  EXPECT_EQ(s.r.status, Status::converged);
  ASSERT_GT(s.r.rungs.size(), 1u);
  EXPECT_EQ(s.r.rungs[0].arguments, "--solver bicgstab --precond dilu");
  EXPECT_LE(s.r.rungs[0].iterations, 100);
}

// --- time steps ------------------------------------------------------------------------------------------------------

TEST(Ladder, ASolverRemembersTheRungForLaterValuesAndRightHandSides) {
  CsrMatrix a = disordered(5);
  Solver solver;
  solver.analyse(a);
  EXPECT_EQ(solver.counts().analyses, 1);
  int analyses = 0;
  for (int step = 0; step < 4; ++step) {
    SCOPED_TRACE(step);
    if (step > 0)
      for (double& v : a.values) v *= 1 + 0.01 * step;
    solver.factor(a);
    for (std::uint64_t rhs = 1; rhs <= 2; ++rhs) {
      const auto b = test::random_values(std::size_t(a.rows), rhs);
      std::vector<double> x(b.size(), 0.0);
      const Result r = solver.solve(b, x);
      EXPECT_EQ(r.status, Status::converged);
      EXPECT_LE(test::true_residual(a, x, b), 1.01e-8);
      if (analyses == 0) analyses = solver.counts().analyses;
      EXPECT_EQ(r.rungs.size(), 1u) << "a disordered matrix has zeros on its diagonal";
      EXPECT_EQ(solver.counts().analyses, analyses);
    }
    EXPECT_EQ(solver.counts().factorisations, step + 1);
  }
  EXPECT_EQ(solver.counts().solves, 8);
  EXPECT_GT(solver.costs().application, 0);
  solver.set_tolerances(1e-4, 0);
  std::vector<double> x(std::size_t(a.rows), 0.0);
  const Result loose = solver.solve(ones(a), x);
  EXPECT_LE(loose.relative_residual, 1e-4);
  EXPECT_GT(loose.relative_residual, 1e-9);
  // Values that the rung cannot factor: the ladder begins anew, and NaN is refused as ever.
  CsrMatrix bad = a;
  bad.values[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(solver.factor(bad), Error);
  solver.factor(a);
  EXPECT_EQ(solver.solve(ones(a), x).status, Status::converged);
}

TEST(Ladder, TheRightHandSideMayBeWhatXTakesThePlaceOf) {
  CsrMatrix a = generate("gen:convdiff2d:12x12");
  a.values[std::size_t(a.offsets[5])] = 1e4;  // no longer dominant
  for (const CsrMatrix& system : {disordered(9), a}) {
    std::vector<double> both = ones(system);
    Solver solver;
    solver.setup(system);
    EXPECT_EQ(solver.solve(both, both).status, Status::converged);
    EXPECT_LE(test::true_residual(system, both, ones(system)), 1.01e-8);
  }
}

TEST(Ladder, AnalysesAreCountedOnOverNewPatterns) {
  Solver solver;
  int before = 0;
  for (std::uint64_t seed : {5, 6, 7}) {
    const CsrMatrix a = disordered(seed);
    solver.setup(a);
    std::vector<double> x(std::size_t(a.rows), 0.0);
    solver.solve(ones(a), x);
    EXPECT_GE(solver.counts().analyses, before + 2) << "its own, and a rung's";
    before = solver.counts().analyses;
  }
}

TEST(Ladder, ValuesThatNoRungSolvesAreThoseOfTheNextSolveToo) {
  // A rung above the first stands; the values that only it was given then have no solution.
  CsrMatrix a = generate("gen:poisson2d:40x40");
  for (Index i = 0; i < a.rows; ++i)
    for (auto k = std::size_t(a.offsets[std::size_t(i)]); k < std::size_t(a.offsets[std::size_t(i) + 1]); ++k)
      if (a.columns[k] != i) a.values[k] *= a.columns[k] < i ? -9 : 10;
  Solver solver({.device = "host"});
  solver.setup(a);
  std::vector<double> x(std::size_t(a.rows), 0.0), z(x.size()), first(x.size());
  solver.apply(ones(a), first);
  ASSERT_EQ(solver.solve(ones(a), x).status, Status::converged);
  solver.apply(ones(a), z);
  EXPECT_NE(z, first) << "of the rung that stands";
  // A Laplacian without a boundary: ones stand across all that it maps to.
  for (Index i = 0; i < a.rows; ++i)
    for (auto k = std::size_t(a.offsets[std::size_t(i)]); k < std::size_t(a.offsets[std::size_t(i) + 1]); ++k)
      a.values[k] = a.columns[k] != i ? -1 : double(a.offsets[std::size_t(i) + 1] - a.offsets[std::size_t(i)] - 1);
  solver.factor(a);
  for (int again = 0; again < 3; ++again) {
    SCOPED_TRACE(again);
    Solved s{{}, std::vector<double>(x.size(), 0.0)};
    s.r = solver.solve(ones(a), s.x);
    expect_honest(a, ones(a), s);
    EXPECT_NE(s.r.status, Status::converged);
    EXPECT_GE(s.r.relative_residual, 1 - 1e-6);
  }
}

TEST(Ladder, TheMatrixIsHadBackFromWhatIsStored) {
  for (const char* ordering : {"natural", "rcm", "multicolour"})
    for (const char* device : {"host", "emulated"})
      for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        CsrMatrix a = test::random_matrix(
            {.rows = 90, .per_row = double(seed), .symmetric_pattern = seed % 2 == 0, .seed = seed});
        if (seed > 3)
          a = moved(a, shuffled_order(90, seed), shuffled_order(90, seed + 1), random_powers(90, 2, 1),
                    random_powers(90, 2, 2));
        std::vector<Index> missing;
        for (Index i = 0; i < a.rows; ++i)
          if (!std::binary_search(a.columns.data() + a.offsets[std::size_t(i)],
                                  a.columns.data() + a.offsets[std::size_t(i) + 1], i))
            missing.push_back(i);
        Solver solver({.solver = "gmres", .precond = "none", .ordering = ordering, .device = device});
        solver.setup(a);
        const CsrMatrix back = solver::Inside::engine(solver).matrix(missing);
        EXPECT_EQ(back.offsets, a.offsets);
        EXPECT_EQ(back.columns, a.columns);
        EXPECT_EQ(back.values, a.values);
      }
}

// --- what cannot be solved -------------------------------------------------------------------------------------------

TEST(Ladder, AStructurallySingularMatrixEndsWithItsRowsNamed) {
  // Rows 40, 41 and 42 have entries in two columns only.
  CsrMatrix easy = generate("gen:convdiff2d:10x10");
  test::Dense d = test::to_dense(easy);
  for (std::size_t i = 39; i < 42; ++i) {
    std::fill(d[i].begin(), d[i].end(), 0.0);
    d[i][3] = double(i);
    d[i][77] = 2 + double(i % 2);
  }
  const CsrMatrix a = from_dense(d);
  const Solved s = solved(a, ones(a));
  expect_honest(a, ones(a), s);
  EXPECT_EQ(s.r.status, Status::stagnated);
  EXPECT_LT(s.r.relative_residual, 1);
  EXPECT_GT(s.r.relative_residual, 1e-6);
  ASSERT_TRUE(any_has(s.r.notes, "structurally singular: 1 row"));
  EXPECT_TRUE(any_has(s.r.notes, "(40,") || any_has(s.r.notes, "(41,") || any_has(s.r.notes, "(42,"));
  // A right-hand side that such a matrix does reach is met all the same.
  std::vector<double> b(std::size_t(a.rows), 0.0);
  for (Index i = 0; i < a.rows; ++i)
    for (auto k = std::size_t(a.offsets[std::size_t(i)]); k < std::size_t(a.offsets[std::size_t(i) + 1]); ++k)
      b[std::size_t(i)] += a.values[k];
  const Solved reached = solved(a, b);
  expect_honest(a, b, reached);
  EXPECT_EQ(reached.r.status, Status::converged);
}

TEST(Ladder, KeepsToTheLimitOfIterationsOverAllRungs) {
  const CsrMatrix a = disordered(9);
  for (int most : {0, 1, 7, 15}) {
    const Solved s = solved(a, ones(a), {.max_iterations = most});
    expect_honest(a, ones(a), s);
    EXPECT_LE(s.r.iterations, most);
    EXPECT_TRUE(s.r.status == Status::max_iterations || s.r.status == Status::converged);
  }
}

// After an x whose residual is rounding alone the next rung begins from zero: what ends it is the end even so.
TEST(Ladder, SaysThatIterationsRanOutWhereAnEarlierRungHasTheBestX) {
  const CsrMatrix a = neumann(4e-14);
  const Solved whole = solved(a, ones(a));
  ASSERT_GE(whole.r.rungs.size(), 2u);
  ASSERT_EQ(whole.r.rungs[0].why_left, "rounding allows no smaller residual with this x");
  const int most = whole.r.rungs[0].iterations + 1;
  const Solved s = solved(a, ones(a), {.max_iterations = most});
  expect_honest(a, ones(a), s);
  EXPECT_EQ(s.r.status, Status::max_iterations);
  EXPECT_EQ(s.r.iterations, most);
  ASSERT_EQ(s.r.rungs.size(), 2u);
  EXPECT_EQ(s.r.relative_residual, s.r.rungs[0].relative_residual);
}

TEST(Ladder, AnInterruptEndsIt) {
  const CsrMatrix a = disordered(9);
  Solver solver;
  solver.setup(a);
  Monitor monitor;
  monitor.interrupt();
  std::vector<double> x(std::size_t(a.rows), 0.0);
  EXPECT_EQ(solver.solve(ones(a), x, &monitor).status, Status::interrupted);
}

// --- real systems ----------------------------------------------------------------------------------------------------

TEST(Ladder, RealSystemsAreSolvedOrAsWellAsADirectSolveCan) {
  KRILU_REQUIRE_MATRIX(one, "add32.mtx.gz");
  const bool has_lu = !solver::SparseLu::name().empty();
  int met = 0, direct = 0, all = 0;
  for (const auto& entry : std::filesystem::directory_iterator(one.parent_path())) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".mtx.gz") || name.ends_with("_b.mtx.gz") || name.ends_with("_x.mtx.gz")) continue;
    SCOPED_TRACE(name);
    const CsrMatrix a = read_matrix_market(entry.path().string()).matrix;
    const auto b = ones(a);
    const Solved s = solved(a, b, {.device = "host", .threads = 1});
    expect_honest(a, b, s);
    double enough = 1e-8;
    if (s.r.relative_residual > enough && has_lu)
      enough = 10 * solved(a, b, {.precond = "lu", .device = "host", .threads = 1}).r.relative_residual;
    ++all;
    const bool good = s.r.relative_residual <= std::max(1e-8, enough);
    met += good;
    direct += good && s.r.precond == "lu";
    if (!good) std::printf("%s: %.1e, %s\n", name.c_str(), s.r.relative_residual, s.r.rungs.back().what.c_str());
  }
  EXPECT_GE(met, has_lu ? all * 47 / 49 : all * 45 / 49);
  EXPECT_GE(met - direct, all * 40 / 49);
}

TEST(Ladder, PressureSystemsOfOpenFoamStayOnTheFirstRung) {
  KRILU_REQUIRE_MATRIX(file, "openfoam/foam_pitzDaily110k_p.mtx.gz");
  const CsrMatrix a = read_matrix_market(file.string()).matrix;
  const auto b = read_vector((file.parent_path() / "foam_pitzDaily110k_p_b.mtx.gz").string());
  const Solved s = solved(a, b, {.device = "host"});
  EXPECT_EQ(s.r.status, Status::converged);
  ASSERT_EQ(s.r.rungs.size(), 1u);
  EXPECT_EQ(s.r.rungs[0].arguments, "--solver cg --precond dic");
}

}  // namespace
