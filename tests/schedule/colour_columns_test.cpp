// SPDX-License-Identifier: Apache-2.0
// Colours of columns against the definition, entry by entry: no two columns of a colour stand in one row; few of them
// where the pattern is known, and none that nobody has.
#include <map>
#include <set>

#include "krilu/io.hpp"
#include "schedule/ordering.hpp"
#include "support/matrices.hpp"

namespace krilu::test {
namespace {

using schedule::colour_columns;

/// The number of colours, which all are used and of which each row has none twice.
Index expect_colours(const CsrMatrix& a) {
  Index count = -1;
  const std::vector<Index> colour = colour_columns(a, count);
  EXPECT_EQ(colour.size(), std::size_t(a.cols));
  std::set<Index> used(colour.begin(), colour.end());
  EXPECT_EQ(Index(used.size()), count);
  for (const Index c : used) EXPECT_TRUE(c >= 0 && c < count) << "colour " << c << " of " << count;
  for (Index i = 0; i < a.rows; ++i) {
    std::map<Index, Index> seen;
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
      const Index j = a.columns[std::size_t(k)];
      const auto [other, first] = seen.emplace(colour[std::size_t(j)], j);
      EXPECT_TRUE(first) << "columns " << j << " and " << other->second << " of row " << i << " share a colour";
    }
  }
  return count;
}
/// Columns that stand in a row with j, j apart, at most; the greedy sequence never needs more and one for itself.
Index most_companions(const CsrMatrix& a) {
  std::vector<std::set<Index>> with(std::size_t(a.cols));
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      for (Offset e = a.offsets[std::size_t(i)]; e < a.offsets[std::size_t(i) + 1]; ++e)
        if (e != k) with[std::size_t(a.columns[std::size_t(k)])].insert(a.columns[std::size_t(e)]);
  std::size_t most = 0;
  for (const auto& w : with) most = std::max(most, w.size());
  return Index(most);
}
Index longest_row(const CsrMatrix& a) {
  Index longest = 0;
  for (Index i = 0; i < a.rows; ++i)
    longest = std::max(longest, a.offsets[std::size_t(i) + 1] - a.offsets[std::size_t(i)]);
  return longest;
}

TEST(ColourColumns, OfARowAllDiffer) {
  for (const GpuCase& c : small_cases()) {
    SCOPED_TRACE(c.name);
    const Index count = expect_colours(c.a);
    EXPECT_GE(count, longest_row(c.a));
    EXPECT_LE(count, most_companions(c.a) + 1);
  }
}

TEST(ColourColumns, OfRandomPatterns) {
  for (std::uint64_t seed = 81; seed < 87; ++seed)
    for (const double per_row : {0.3, 2.0, 8.0}) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      const CsrMatrix a =
          random_matrix({.rows = 500, .per_row = per_row, .symmetric_pattern = seed % 2 == 0, .seed = seed});
      const Index count = expect_colours(a);
      EXPECT_GE(count, longest_row(a));
      EXPECT_LE(count, most_companions(a) + 1);
    }
}

TEST(ColourColumns, AsManyAsIsKnown) {
  EXPECT_EQ(expect_colours(diagonal(50)), 1);
  EXPECT_EQ(expect_colours(grid(60, 1)), 3) << "tridiagonal";
  EXPECT_EQ(expect_colours(grid(2, 1)), 2);
  EXPECT_EQ(expect_colours(chain(40)), 2) << "two diagonals";
  const Index five_points = expect_colours(grid(30, 20));
  EXPECT_GE(five_points, 5);
  EXPECT_LE(five_points, 8);
  EXPECT_LE(expect_colours(generate("gen:poisson3d:9x8x7")), 16) << "7 at best";
  EXPECT_LE(expect_colours(generate("gen:convdiff3d27:8x8x8")), 64) << "27 at best, 125 that the bound allows";
}

TEST(ColourColumns, OnATorusToo) {
  const Index nx = 12, ny = 10;
  RowMaps rows(std::size_t(nx * ny));
  for (Index y = 0; y < ny; ++y)
    for (Index x = 0; x < nx; ++x)
      for (const auto& [u, v] :
           {std::pair{x, y}, {(x + 1) % nx, y}, {(x + nx - 1) % nx, y}, {x, (y + 1) % ny}, {x, (y + ny - 1) % ny}})
        rows[std::size_t(y * nx + x)][v * nx + u] = 1;
  const Index count = expect_colours(from_rows(rows));
  EXPECT_GE(count, 5);
  EXPECT_LE(count, 9);
}

TEST(ColourColumns, ADenseRowNeedsOneForEach) {
  EXPECT_EQ(expect_colours(arrow(70, 69)), 70);
  EXPECT_EQ(expect_colours(arrow(70, 0)), 70);
  RowMaps row(30);
  for (Index j = 0; j < 30; ++j) row[4][j] = 1;
  EXPECT_EQ(expect_colours(from_rows(row)), 30);
  RowMaps column(30);
  for (auto& r : column) r[4] = 1;
  EXPECT_EQ(expect_colours(from_rows(column)), 1) << "a dense column shares no row";
}

TEST(ColourColumns, ColumnsThatNobodyReadsHaveOneToo) {
  EXPECT_EQ(expect_colours(from_rows(RowMaps(7))), 1);
  EXPECT_EQ(expect_colours(from_rows(RowMaps(1))), 1);
  RowMaps rows(20);  // rows and columns of 5 to 9 empty
  for (Index i = 0; i < 20; ++i)
    for (Index j : {i - 1, i, i + 1})
      if (j >= 0 && j < 20 && (i < 5 || i > 9) && (j < 5 || j > 9)) rows[std::size_t(i)][j] = 1;
  EXPECT_EQ(expect_colours(from_rows(rows)), 3);
}

TEST(ColourColumns, OfNoRowsThereAreNone) {
  CsrMatrix none;
  none.offsets.push_back(0);
  EXPECT_EQ(expect_colours(none), 0);
}

TEST(ColourColumns, PatternsNeedNotBeSquare) {
  CsrMatrix wide;
  wide.rows = 2;
  wide.cols = 5;
  for (const Offset o : {0, 3, 5}) wide.offsets.push_back(o);
  for (const Index j : {0, 2, 4, 1, 2}) wide.columns.push_back(j);
  EXPECT_EQ(expect_colours(wide), 3);
  CsrMatrix tall;
  tall.rows = 3;
  tall.cols = 2;
  for (const Offset o : {0, 1, 2, 4}) tall.offsets.push_back(o);
  for (const Index j : {0, 1, 0, 1}) tall.columns.push_back(j);
  EXPECT_EQ(expect_colours(tall), 2);
}

TEST(ColourColumns, ValuesAreNotLookedAt) {
  CsrMatrix a = grid(9, 7);
  Index with = 0, without = 0;
  const std::vector<Index> colour = colour_columns(a, with);
  CsrView v = a;
  v.values = nullptr;
  EXPECT_EQ(colour_columns(v, without), colour);
  EXPECT_EQ(with, without);
}

}  // namespace
}  // namespace krilu::test
