// SPDX-License-Identifier: Apache-2.0
// Levels of triangular matrices: patterns whose levels are known by hand, the definition (a row's level is one more
// than the highest that it depends on) row by row on random ones, and the two algorithms of the paper against each
// other for teams of one to four, both triangles, natural and random order.
#include "schedule/levels.hpp"

#include <numeric>

#include "support/split_matrix.hpp"

namespace krilu::test {
namespace {

using namespace schedule;

/// Both algorithms on small teams; they must agree before a test looks at the levels.
std::vector<Index> levels(const TriangleOf& t) {
  const std::vector<Index> one = levels_sync_free(exec::Host(1), t);
  for (int threads : {1, 2, 3, 4}) {
    EXPECT_EQ(levels_sync_free(exec::Host(threads), t), one) << threads << " threads, without synchronisation";
    EXPECT_EQ(levels_by_rounds(exec::Host(threads), t), one) << threads << " threads, in rounds";
  }
  return one;
}

/// The rows with a diagonal and these entries (row, column).
CsrMatrix pattern(Index n, const std::vector<std::pair<Index, Index>>& entries) {
  Dense d(std::size_t(n), std::vector<double>(std::size_t(n), 0.0));
  for (std::size_t i = 0; i < std::size_t(n); ++i) d[i][i] = 1;
  for (auto [i, j] : entries) d[std::size_t(i)][std::size_t(j)] = 1;
  return from_dense(d);
}

TEST(Levels, ByHand) {
  const CsrMatrix none = pattern(0, {});
  EXPECT_EQ(levels({none, Triangle::lower}), std::vector<Index>{});
  const CsrMatrix diagonal = pattern(5, {});
  EXPECT_EQ(levels({diagonal, Triangle::lower}), std::vector<Index>(5, 0));
  EXPECT_EQ(levels({diagonal, Triangle::upper}), std::vector<Index>(5, 0));
  const CsrMatrix chain = pattern(5, {{1, 0}, {2, 1}, {3, 2}, {4, 3}});
  EXPECT_EQ(levels({chain, Triangle::lower}), (std::vector<Index>{0, 1, 2, 3, 4}));
  EXPECT_EQ(levels({chain, Triangle::upper}), std::vector<Index>(5, 0)) << "the other triangle is passed over";
  // Seven rows in three levels: 0 and 1 stand alone, 2, 3 and 6 read them, 4 and 5 read those.
  const CsrMatrix seven = pattern(7, {{2, 0}, {3, 0}, {3, 1}, {4, 2}, {4, 0}, {5, 2}, {5, 3}, {6, 1}});
  EXPECT_EQ(levels({seven, Triangle::lower}), (std::vector<Index>{0, 0, 1, 1, 2, 2, 1}));
  const CsrMatrix mirrored = sparse::transpose(seven);
  EXPECT_EQ(levels({mirrored, Triangle::lower}), std::vector<Index>(7, 0));
  // Backwards over the same edges: 4, 5 and 6 first, then 2 and 3, then 0 and 1.
  EXPECT_EQ(levels({mirrored, Triangle::upper}), (std::vector<Index>{2, 2, 1, 1, 0, 0, 0}));
}

TEST(Levels, AnOrderMakesItTheTriangleOfTheReorderedMatrix) {
  const CsrMatrix path = pattern(4, {{0, 1}, {1, 0}, {1, 2}, {2, 1}, {2, 3}, {3, 2}});
  const Order red_black{0, 2, 1, 3}, rank = inverse(red_black);
  EXPECT_EQ(levels({path, Triangle::lower, &red_black, &rank}), (std::vector<Index>{0, 1, 0, 1}));
  EXPECT_EQ(levels({path, Triangle::upper, &red_black, &rank}), (std::vector<Index>{1, 0, 1, 0}));
  const Order backwards{3, 2, 1, 0};
  EXPECT_EQ(levels({path, Triangle::lower, &backwards, &backwards}), (std::vector<Index>{3, 2, 1, 0}));
}

TEST(Levels, OfAGridAreItsAntidiagonals) {
  for (auto [nx, ny] : {std::pair<Index, Index>{1, 1}, {8, 1}, {1, 8}, {13, 7}, {60, 50}}) {
    const CsrMatrix a = grid(nx, ny);
    const std::vector<Index> lower = levels({a, Triangle::lower}), upper = levels({a, Triangle::upper});
    for (Index i = 0; i < a.rows; ++i) {
      ASSERT_EQ(lower[std::size_t(i)], i % nx + i / nx);
      ASSERT_EQ(upper[std::size_t(i)], nx + ny - 2 - i % nx - i / nx);
    }
    EXPECT_EQ(sort_by_level(lower).count(), nx + ny - 1);
  }
}

TEST(Levels, AreOneMoreThanTheHighestDependency) {
  for (Index n : {100, 3000})
    for (double per_row : {0.7, 4.0})
      for (Triangle triangle : {Triangle::lower, Triangle::upper})
        for (bool ordered : {false, true}) {
          const std::uint64_t seed = std::uint64_t(n) + std::uint64_t(per_row);
          SCOPED_TRACE(seed);
          const CsrMatrix a = random_matrix({.rows = n, .per_row = per_row, .symmetric_pattern = false, .seed = seed});
          const Order order = ordered ? shuffled_order(n, seed) : natural_order(n), rank = inverse(order);
          const TriangleOf t{a, triangle, ordered ? &order : nullptr, ordered ? &rank : nullptr};
          const std::vector<Index> level = levels(t);
          for (Index i = 0; i < n; ++i) {
            Index highest = -1;
            for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
              const Index j = a.columns[std::size_t(k)];
              const Index mine = rank[std::size_t(i)], other = rank[std::size_t(j)];
              if (triangle == Triangle::lower ? other < mine : other > mine)
                highest = std::max(highest, level[std::size_t(j)]);
            }
            ASSERT_EQ(level[std::size_t(i)], highest + 1) << "row " << i;
          }
        }
}

TEST(Levels, LargeTeamsShareTheRoundsToo) {
  // Above 2 * 4 * 1024 rows a round is shared by four threads; rows may get their level while a neighbour looks.
  const CsrMatrix a = random_matrix({.rows = 9000, .per_row = 2, .seed = 71});
  levels({a, Triangle::lower});
  levels({a, Triangle::upper});
}

TEST(Levels, AChainAcrossThreads) {
  const Index n = 20000;  // each row waits for the one before: the worst case of chunks dealt in turn
  CsrMatrix a;
  a.rows = a.cols = n;
  a.offsets.push_back(0);
  for (Index i = 0; i < n; ++i) {
    if (i > 0) a.columns.push_back(i - 1);
    a.columns.push_back(i);
    a.offsets.push_back(Offset(a.columns.size()));
  }
  for (int threads : {1, 2, 4})
    EXPECT_EQ(levels_sync_free(exec::Host(threads), {a, Triangle::lower}), natural_order(n)) << threads;
}

TEST(SortByLevel, KeepsTheSequenceWithinALevel) {
  const std::vector<Index> level{0, 2, 1, 0, 1, 2, 0};
  const LevelOrder natural = sort_by_level(level);
  EXPECT_EQ(natural.rows, (Order{0, 3, 6, 2, 4, 1, 5}));
  EXPECT_EQ(natural.offsets, (std::vector<Index>{0, 3, 5, 7}));
  EXPECT_EQ(natural.count(), 3);
  const Order sequence{6, 5, 4, 3, 2, 1, 0};
  const LevelOrder reversed = sort_by_level(level, &sequence);
  EXPECT_EQ(reversed.rows, (Order{6, 3, 0, 4, 2, 5, 1}));
  EXPECT_EQ(reversed.offsets, natural.offsets);
  EXPECT_EQ(sort_by_level({}).count(), 0);
}

}  // namespace
}  // namespace krilu::test
