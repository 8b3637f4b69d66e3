// SPDX-License-Identifier: Apache-2.0
// The pattern of ILU(k) against the sum rule spelled out on a dense matrix of levels, against the shortest paths that
// define the same levels, and against the exact LU factorisation where the level is high; small patterns that can be
// worked out by hand; any number of threads against one.
#include "precond/fill.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "krilu/error.hpp"
#include "krilu/io.hpp"
#include "support/matrices.hpp"

namespace krilu::test {
namespace {

using precond::fill_pattern;
using precond::FilledPattern;

constexpr int no_level = std::numeric_limits<int>::max() / 4;
using Levels = std::vector<std::vector<int>>;

/// lev_ij of every place, by the sum rule: no_level where elimination never puts anything.
Levels levels_of_fill(const CsrView& a) {
  const auto n = std::size_t(a.rows);
  Levels lev(n, std::vector<int>(n, no_level));
  for (std::size_t i = 0; i < n; ++i) {
    lev[i][i] = 0;
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) lev[i][std::size_t(a.columns[k])] = 0;
  }
  for (std::size_t m = 0; m < n; ++m)
    for (std::size_t i = m + 1; i < n; ++i)
      if (lev[i][m] != no_level)
        for (std::size_t j = m + 1; j < n; ++j) lev[i][j] = std::min(lev[i][j], lev[i][m] + lev[m][j] + 1);
  return lev;
}

/// The same by breadth-first searches from each i: through vertices below min(i, j), once for each such bound.
Levels levels_of_paths(const CsrView& a) {
  const auto n = std::size_t(a.rows);
  Levels lev(n, std::vector<int>(n, no_level));
  for (Index i = 0; i < a.rows; ++i) {
    lev[std::size_t(i)][std::size_t(i)] = 0;
    for (Index bound = 0; bound <= i; ++bound) {
      std::vector<int> length(n, no_level);
      std::vector<Index> queue{i};
      length[std::size_t(i)] = 0;
      for (std::size_t q = 0; q < queue.size(); ++q) {
        const Index v = queue[q];
        if (v != i && v >= bound) continue;
        for (Offset k = a.offsets[v]; k < a.offsets[v + 1]; ++k)
          if (const auto j = std::size_t(a.columns[k]); length[j] == no_level) {
            length[j] = length[std::size_t(v)] + 1;
            queue.push_back(Index(j));
          }
      }
      for (Index j = 0; j < a.rows; ++j)
        if (j != i && std::min(i, j) == bound && length[std::size_t(j)] != no_level)
          lev[std::size_t(i)][std::size_t(j)] = length[std::size_t(j)] - 1;
    }
  }
  return lev;
}

/// The places with levels up to `level`, and where a's entries stand in a.
FilledPattern pattern_of_levels(const CsrView& a, const Levels& lev, int level) {
  FilledPattern f;
  f.offsets.push_back(0);
  for (Index i = 0; i < a.rows; ++i) {
    for (Index j = 0; j < a.rows; ++j) {
      if (lev[std::size_t(i)][std::size_t(j)] > level) continue;
      const auto found = std::find(a.columns + a.offsets[i], a.columns + a.offsets[i + 1], j);
      f.columns.push_back(j);
      f.source.push_back(found == a.columns + a.offsets[i + 1] ? -1 : Offset(found - a.columns));
    }
    f.offsets.push_back(Offset(f.columns.size()));
  }
  return f;
}

void expect_equal(const FilledPattern& f, const FilledPattern& expected) {
  EXPECT_EQ(f.offsets, expected.offsets);
  EXPECT_EQ(f.columns, expected.columns);
  EXPECT_EQ(f.source, expected.source);
}

struct Case {
  std::string name;
  CsrMatrix a;
};
std::vector<Case> cases() {
  std::vector<Case> c;
  for (const auto& [rows, per_row] : std::vector<std::pair<Index, double>>{
           {2, 1}, {9, 1}, {30, 1.5}, {64, 1}, {65, 2}, {150, 1.2}, {200, 3}, {60, 20}})
    for (bool symmetric : {false, true})
      for (std::uint64_t seed : {501, 502})
        c.push_back({fmt::format("random, {} rows, {} a row, {}, seed {}", rows, per_row,
                                 symmetric ? "symmetric" : "unsymmetric", seed),
                     random_matrix({.rows = rows, .per_row = per_row, .symmetric_pattern = symmetric, .seed = seed})});
  c.push_back({"gen:poisson2d:13x11", generate("gen:poisson2d:13x11")});
  c.push_back({"gen:poisson3d:6x5x7", generate("gen:poisson3d:6x5x7")});
  c.push_back({"gen:convdiff3d27:5x4x4", generate("gen:convdiff3d27:5x4x4")});
  c.push_back({"shuffled grid, seed 503", permuted(grid(12, 12), shuffled_order(144, 503))});
  c.push_back({"empty rows and missing diagonals, seed 504", with_empty_rows(150, 504)});
  c.push_back({"long rows, seed 505", with_long_rows(180, {20, 60}, false, 505)});
  c.push_back({"dense first row and column", arrow(80, 0)});
  c.push_back({"dense middle row and column", arrow(80, 41)});
  c.push_back({"chain", chain(70)});
  c.push_back({"diagonal", diagonal(70)});
  c.push_back({"lower triangle, seed 506", triangle_of(with_long_rows(120, {20, 60}, false, 506), true)});
  return c;
}

TEST(FillPattern, IsTheSumRuleOnADenseMatrixOfLevels) {
  for (const auto& [name, a] : cases()) {
    const Levels lev = levels_of_fill(a);
    for (int level : {0, 1, 2, 3, 4, 7, int(a.rows), std::numeric_limits<int>::max()})
      for (int threads : {1, 2, 4}) {
        SCOPED_TRACE(fmt::format("{}, level {}, {} threads", name, level, threads));
        expect_equal(fill_pattern(exec::Host(threads), a, level),
                     pattern_of_levels(a, lev, std::min(level, no_level - 1)));
      }
  }
}

TEST(FillPattern, IsWhatTheShortestPathsThroughLowerVerticesSay) {
  for (const auto& [name, a] : cases()) {
    const Levels lev = levels_of_paths(a);
    for (int level : {1, 2, 4}) {
      SCOPED_TRACE(fmt::format("{}, level {}", name, level));
      expect_equal(fill_pattern(exec::Host(1), a, level), pattern_of_levels(a, lev, level));
    }
  }
}

TEST(FillPattern, AtAHighLevelIsThePatternOfTheExactFactors) {
  for (const CsrMatrix& a : {random_matrix({.rows = 70, .per_row = 2, .symmetric_pattern = false, .seed = 507}),
                             random_matrix({.rows = 70, .per_row = 1.5, .seed = 508}), grid(8, 7)}) {
    Dense d = to_dense(a);  // random numbers: nothing cancels
    const std::size_t n = d.size();
    for (std::size_t m = 0; m < n; ++m)
      for (std::size_t i = m + 1; i < n; ++i) {
        if (d[i][m] == 0) continue;
        d[i][m] /= d[m][m];
        for (std::size_t j = m + 1; j < n; ++j) d[i][j] -= d[i][m] * d[m][j];
      }
    const CsrMatrix lu = from_dense(d);
    EXPECT_GT(lu.nnz(), a.nnz()) << "nothing fills in: nothing was tested";
    const FilledPattern f = fill_pattern(exec::Host(2), a, a.rows);
    EXPECT_EQ(f.offsets, lu.offsets);
    EXPECT_EQ(f.columns, lu.columns);
  }
}

TEST(FillPattern, IsTheSameForAnyNumberOfThreads) {
  for (const CsrMatrix& a :
       {generate("gen:poisson3d:21x20x19"), random_matrix({.rows = 9000, .per_row = 3, .seed = 509}),
        random_matrix({.rows = 9000, .per_row = 2, .symmetric_pattern = false, .seed = 510})})
    for (int level : {0, 1, 3}) {
      const FilledPattern one = fill_pattern(exec::Host(1), a, level);
      EXPECT_GT(one.columns.size(), level == 0 ? 0 : a.columns.size());
      for (int threads : {2, 4, 7}) {
        SCOPED_TRACE(fmt::format("{} rows, level {}, {} threads", a.rows, level, threads));
        expect_equal(fill_pattern(exec::Host(threads), a, level), one);
      }
    }
}

TEST(FillPattern, OfLevelZeroIsTheMatrixsOwnWhereTheDiagonalIsFull) {
  for (const CsrMatrix& a : {grid(9, 8), random_matrix({.rows = 3000, .symmetric_pattern = false, .seed = 511})})
    for (int threads : {1, 2}) {
      const FilledPattern f = fill_pattern(exec::Host(threads), a, 0);
      EXPECT_EQ(f.offsets, a.offsets);
      EXPECT_EQ(f.columns, a.columns);
      for (std::size_t k = 0; k < f.source.size(); ++k) ASSERT_EQ(f.source[k], Offset(k));
    }
}

TEST(FillPattern, AddsAMissingDiagonalThatComesFromNowhere) {
  // Row 1 (from 0) has no diagonal, row 2 nothing at all.
  const CsrMatrix a = from_rows({{{0, 4.0}, {3, 1.0}}, {{0, 1.0}, {3, 2.0}}, {}, {{1, 3.0}, {3, 5.0}}});
  FilledPattern f = fill_pattern(exec::Host(2), a, 0);
  EXPECT_EQ(f.offsets, (Buffer<Offset>{0, 2, 5, 6, 8}));
  EXPECT_EQ(f.columns, (Buffer<Index>{0, 3, 0, 1, 3, 2, 1, 3}));
  EXPECT_EQ(f.source, (Buffer<Offset>{0, 1, 2, -1, 3, -1, 4, 5}));
  // A diagonal that is missing counts as an entry of level 0, not as fill.
  f = fill_pattern(exec::Host(2), from_rows({{{1, 1.0}}, {{0, 1.0}}}), 1);
  EXPECT_EQ(f.columns, (Buffer<Index>{0, 1, 0, 1}));
  EXPECT_EQ(f.source, (Buffer<Offset>{-1, 0, 1, -1}));
}

TEST(FillPattern, SkipsALevelThatHasNoEntries) {
  // Path 4 - 0 - 2 - 1 - 3, of four edges through 0, 2 and 1: (4, 2) and (2, 3) have level 1, (4, 3) has 3, none has 2.
  RowMaps rows(5);
  const std::vector<std::pair<Index, Index>> edges{{4, 0}, {0, 2}, {2, 1}, {1, 3}};
  for (const auto& [i, j] : edges) rows[std::size_t(i)][j] = rows[std::size_t(j)][i] = -1;
  const CsrMatrix a = dominant(rows);
  std::vector<Offset> entries;
  for (int level : {0, 1, 2, 3, 4}) entries.push_back(fill_pattern(exec::Host(1), a, level).offsets[5]);
  EXPECT_EQ(entries, (std::vector<Offset>{13, 17, 17, 19, 19}));
}

TEST(FillPattern, OfTheSmallestMatrices) {
  const std::vector<CsrMatrix> single{from_dense({{2.0}}), from_rows(RowMaps(1))};
  for (const CsrMatrix& a : single)
    for (int level : {0, 5}) {
      const FilledPattern f = fill_pattern(exec::Host(4), a, level);
      EXPECT_EQ(f.offsets, (Buffer<Offset>{0, 1}));
      EXPECT_EQ(f.columns, (Buffer<Index>{0}));
      EXPECT_EQ(f.source, (Buffer<Offset>{a.nnz() ? 0 : -1}));
      const CsrView v = f.view(1);
      EXPECT_EQ(v.rows, 1);
      EXPECT_EQ(v.cols, 1);
      EXPECT_EQ(v.nnz(), 1);
      EXPECT_EQ(v.values, nullptr);
    }
  for (int level : {0, 5}) EXPECT_EQ(fill_pattern(exec::Host(2), CsrView{}, level).offsets, (Buffer<Offset>{0}));
}

std::string complaint_of(const CsrView& a, int level, Offset most, int threads = 2) {
  try {
    fill_pattern(exec::Host(threads), a, level, most);
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

TEST(FillPattern, OfMoreEntriesThanAllowedIsRefused) {
  const Index n = 1200;  // full after the first elimination
  const CsrMatrix a = arrow(n, 0);
  for (int threads : {1, 2, 4}) {
    EXPECT_EQ(complaint_of(a, 0, a.nnz(), threads), "");
    EXPECT_EQ(complaint_of(a, 1, n * n, threads), "");
    EXPECT_EQ(complaint_of(a, 1, n * n - 1, threads),
              "ILU(k) with level 1 would keep more than 1439999 entries: take a smaller level");
    EXPECT_EQ(complaint_of(a, 3, a.nnz(), threads),
              fmt::format("ILU(k) with level 3 would keep more than {} entries: take a smaller level", a.nnz()));
  }
  // A diagonal that has to be added counts.
  EXPECT_EQ(complaint_of(from_rows(RowMaps(3)), 0, 3), "");
  EXPECT_EQ(complaint_of(from_rows(RowMaps(3)), 0, 2),
            "ILU(k) with level 0 would keep more than 2 entries: take a smaller level");
}

TEST(FillPattern, ANegativeLevelIsRefused) {
  EXPECT_EQ(complaint_of(from_dense({{2.0}}), -1, 10), "ILU(k) with level -1: take a level of 0 or more");
}

}  // namespace
}  // namespace krilu::test
