// SPDX-License-Identifier: Apache-2.0
// Row orders against their definition: each is a permutation cut into groups; level order keeps the sequence of rows
// that depend on each other and puts no two of them into one group, whatever the ordering beneath; windows keep rows
// near their place. Within a group, rows stand by length.
#include "schedule/row_order.hpp"

#include <numeric>

#include "support/split_matrix.hpp"

namespace krilu::test {
namespace {

void expect_row_order(const sparse::RowOrder& order, Index n) {
  std::vector<Index> sorted = order.rows;
  std::sort(sorted.begin(), sorted.end());
  ASSERT_EQ(sorted, natural_order(n));
  for (Index k = 0; k < n; ++k) ASSERT_EQ(order.place[std::size_t(order.rows[std::size_t(k)])], k);
  ASSERT_FALSE(order.group.empty());
  EXPECT_EQ(order.group.front(), 0);
  EXPECT_EQ(order.group.back(), n);
  for (std::size_t g = 1; g < order.group.size(); ++g) EXPECT_LT(order.group[g - 1], order.group[g]);
}

std::vector<NamedMatrix> row_order_matrices() {
  std::vector<NamedMatrix> all;
  all.push_back({"grid", grid(23, 17)});
  all.push_back({"symmetric pattern", random_matrix({.rows = 700, .per_row = 4, .seed = 81})});
  all.push_back(
      {"unsymmetric pattern", random_matrix({.rows = 700, .per_row = 3, .symmetric_pattern = false, .seed = 82})});
  all.push_back({"long rows", random_matrix({.rows = 400, .per_row = 300, .seed = 83})});
  all.push_back({"diagonal", random_matrix({.rows = 30, .per_row = 0, .seed = 84})});
  all.push_back({"one row", from_dense({{1.0}})});
  CsrMatrix none;
  none.offsets.push_back(0);
  all.push_back({"no rows", none});
  return all;
}

TEST(ByLevels, KeepsTheSequenceOfRowsThatDependOnEachOther) {
  for (const NamedMatrix& m : row_order_matrices())
    for (const char* ordering : {"natural", "rcm", "multicolour", "metis:3"})
      for (int threads : {1, 3}) {
        SCOPED_TRACE(m.name + ", " + ordering);
        const Index n = m.a.rows;
        const CsrMatrix graph = sparse::adjacency(m.a);
        const schedule::Order order = schedule::order_by_name(ordering, m.a, graph);
        const sparse::RowOrder rows = schedule::by_levels(exec::Host(threads), m.a, graph, order);
        expect_row_order(rows, n);
        const std::vector<Index> rank = order.empty() ? natural_order(n) : schedule::inverse(order);
        EXPECT_EQ(rows.rank, order.empty() ? std::vector<Index>{} : rank);
        for (Index i = 0; i < n; ++i)
          for (Offset k = graph.offsets[std::size_t(i)]; k < graph.offsets[std::size_t(i) + 1]; ++k) {
            const Index j = graph.columns[std::size_t(k)];
            const Index a = rows.place[std::size_t(i)], b = rows.place[std::size_t(j)];
            ASSERT_EQ(rank[std::size_t(i)] < rank[std::size_t(j)], a < b) << "rows " << i << " and " << j;
            ASSERT_NE(group_of(rows, a), group_of(rows, b)) << "rows " << i << " and " << j << " share a level";
          }
      }
}

TEST(ByLevels, LevelsAreAsEarlyAsTheyMayBe) {
  // Each row of a level but the first reads some row of the level before: fewer levels there cannot be.
  const CsrMatrix a = random_matrix({.rows = 500, .per_row = 3, .seed = 85}), graph = sparse::adjacency(a);
  const sparse::RowOrder rows = schedule::by_levels(exec::Host(2), a, graph, schedule::order_by_name("rcm", a, graph));
  for (Index i = 0; i < a.rows; ++i) {
    const Index level = group_of(rows, rows.place[std::size_t(i)]);
    Index highest = -1;
    for (Offset k = graph.offsets[std::size_t(i)]; k < graph.offsets[std::size_t(i) + 1]; ++k)
      if (const Index p = rows.place[std::size_t(graph.columns[std::size_t(k)])]; p < rows.place[std::size_t(i)])
        highest = std::max(highest, group_of(rows, p));
    EXPECT_EQ(level, highest + 1) << "row " << i;
  }
}

TEST(ByLevels, SlicesOfALevelReadNothingOfIt) {
  for (const NamedMatrix& m : row_order_matrices())
    for (int height : {1, 4, 8}) {
      SCOPED_TRACE(m.name);
      const SplitOn<exec::Host> s(exec::Host(2), m.a, "natural", height);
      const auto p = s.pattern->view();
      const auto& level = s.pattern->group_slices();
      for (std::size_t l = 0; l + 1 < level.size(); ++l)
        for (Index slice = level[l]; slice < level[l + 1]; ++slice) {
          // Padding included: it must read what is ready before the level starts.
          for (Offset k = p.lower.offset[slice]; k < p.lower.offset[slice + 1]; ++k)
            ASSERT_LT(p.lower.column[k], p.slice_row[level[l]]);
          for (Offset k = p.upper.offset[slice]; k < p.upper.offset[slice + 1]; ++k)
            ASSERT_GE(p.upper.column[k], p.slice_row[level[l + 1]]);
        }
    }
}

TEST(ByLevels, RowsOfALevelStandByLength) {
  const CsrMatrix a = random_matrix({.rows = 2000, .per_row = 3, .seed = 86});
  const SplitOn<exec::Host> s(exec::Host(2), a, "multicolour", 1);
  const auto length = [&](const std::vector<Offset>& offset, Index i) {
    return offset[std::size_t(i) + 1] - offset[std::size_t(i)];
  };
  for (std::size_t g = 0; g + 1 < s.order.group.size(); ++g)
    for (Index i = s.order.group[g] + 1; i < s.order.group[g + 1]; ++i) {
      const auto key = [&](Index p) {
        return std::pair{length(s.pattern->lower_offsets(), p), length(s.pattern->upper_offsets(), p)};
      };
      ASSERT_LE(key(i - 1), key(i)) << "place " << i;
    }
}

TEST(ByWindows, SortsByLengthWithinShortWindowsOnly) {
  const CsrMatrix a = random_matrix({.rows = 2500, .per_row = 5, .seed = 87});
  for (bool ordered : {false, true}) {
    const schedule::Order order = ordered ? shuffled_order(2500, 88) : schedule::Order{};
    const sparse::RowOrder rows = schedule::by_windows(a, order);
    expect_row_order(rows, 2500);
    EXPECT_EQ(rows.group, (std::vector<Index>{0, 1024, 2048, 2500}));
    EXPECT_EQ(rows.rank, ordered ? schedule::inverse(order) : schedule::Order{});
    const std::vector<Index> rank = ordered ? rows.rank : natural_order(2500);
    for (Index k = 0; k < 2500; ++k) {
      const Index row = rows.rows[std::size_t(k)];
      ASSERT_EQ(rank[std::size_t(row)] / 1024, k / 1024) << "row " << row << " left its window";
      if (k % 1024 == 0) continue;
      const Index before = rows.rows[std::size_t(k) - 1];
      const auto length = [&](Index i) { return a.offsets[std::size_t(i) + 1] - a.offsets[std::size_t(i)]; };
      ASSERT_TRUE(length(before) < length(row) ||
                  (length(before) == length(row) && rank[std::size_t(before)] < rank[std::size_t(row)]));
    }
  }
  CsrMatrix none;
  none.offsets.push_back(0);
  EXPECT_EQ(schedule::by_windows(none, {}).group, (std::vector<Index>{0}));
}

TEST(Nodes, AreRowsThatFollowOneAnotherAndHaveTheSameColumns) {
  const auto sizes = [](Index i) { return 1 + i % 3; };
  const CsrMatrix a = with_nodes(grid(5, 4), sizes);
  std::vector<Index> expected{0};
  for (Index i = 0; i < 20; ++i) expected.push_back(expected.back() + sizes(i));
  EXPECT_EQ(schedule::nodes_of(a, {}), expected);
  EXPECT_EQ(schedule::nodes_of(grid(5, 4), {}), natural_order(21)) << "each row by itself";
  // More rows than a node holds are several.
  EXPECT_EQ(schedule::nodes_of(with_nodes(from_dense({{1.0}}), [](Index) { return 19; }), {}),
            (std::vector<Index>{0, 8, 16, 19}));
  // The same columns, but not their own.
  EXPECT_EQ(schedule::nodes_of(from_dense({{1, 0, 1}, {1, 0, 1}, {1, 0, 1}}), {}), (std::vector<Index>{0, 1, 2, 3}));
  EXPECT_EQ(schedule::nodes_of(from_dense({{1, 1, 0}, {1, 1, 0}, {1, 1, 0}}), {}), (std::vector<Index>{0, 2, 3}));
  EXPECT_EQ(schedule::nodes_of(from_dense({{0, 1, 1}, {0, 1, 1}, {0, 1, 1}}), {}), (std::vector<Index>{0, 1, 3}));
  // In another order they may stand apart, or together.
  const CsrMatrix two = with_nodes(from_dense({{1, 0}, {0, 1}}), [](Index) { return 2; });
  EXPECT_EQ(schedule::nodes_of(two, {0, 2, 1, 3}), natural_order(5));
  EXPECT_EQ(schedule::nodes_of(two, {3, 2, 1, 0}), (std::vector<Index>{0, 2, 4}));
}

TEST(Nodes, StandTogetherInLevelsOfTheirOwnGraph) {
  const CsrMatrix points = random_matrix({.rows = 150, .per_row = 4, .symmetric_pattern = false, .seed = 87});
  const CsrMatrix a = with_nodes(points, [](Index i) { return 1 + i * 3 % 5; }), graph = sparse::adjacency(a);
  for (const char* ordering : {"natural", "rcm"}) {
    SCOPED_TRACE(ordering);
    const schedule::Order order = schedule::order_by_name(ordering, a, graph);
    const sparse::RowOrder rows = schedule::for_sweeps(exec::Host(2), a, graph, order);
    expect_row_order(rows, a.rows);
    ASSERT_FALSE(rows.node.empty());
    const std::vector<Index> rank = order.empty() ? natural_order(a.rows) : schedule::inverse(order);
    std::vector<Index> node(std::size_t(a.rows));
    for (std::size_t k = 0; k + 1 < rows.node.size(); ++k)
      for (Index p = rows.node[k]; p < rows.node[k + 1]; ++p) {
        node[std::size_t(p)] = Index(k);
        if (p > rows.node[k]) {
          EXPECT_EQ(rank[std::size_t(rows.rows[std::size_t(p)])], rank[std::size_t(rows.rows[std::size_t(p) - 1])] + 1);
        }
        EXPECT_EQ(group_of(rows, p), group_of(rows, rows.node[k])) << "a node crosses a level";
      }
    for (Index i = 0; i < a.rows; ++i) {
      Index highest = -1;
      for (Index r = 0; r < a.rows; ++r) {  // of all rows of its node
        const Index p = rows.place[std::size_t(r)], own = rows.place[std::size_t(i)];
        if (node[std::size_t(p)] != node[std::size_t(own)]) continue;
        for (Offset k = graph.offsets[std::size_t(r)]; k < graph.offsets[std::size_t(r) + 1]; ++k) {
          const Index j = graph.columns[std::size_t(k)], q = rows.place[std::size_t(j)];
          EXPECT_EQ(rank[std::size_t(r)] < rank[std::size_t(j)], p < q);
          if (node[std::size_t(q)] == node[std::size_t(p)]) continue;
          EXPECT_NE(group_of(rows, p), group_of(rows, q));
          if (q < p) highest = std::max(highest, group_of(rows, q));
        }
      }
      EXPECT_EQ(group_of(rows, rows.place[std::size_t(i)]), highest + 1) << "a level later than it may be";
    }
  }
  EXPECT_TRUE(schedule::for_sweeps(exec::Host(1), points, sparse::adjacency(points), {}).node.empty());
  EXPECT_FALSE(schedule::for_products(a, {}).node.empty());
  EXPECT_TRUE(schedule::for_products(points, {}).node.empty());
}

}  // namespace
}  // namespace krilu::test
