// SPDX-License-Identifier: Apache-2.0
// schedule::by_parts against its definition: rows stand part by part, within a part by level, each level as early as it
// may be; groups and parts tile the rows, and nothing of an entry crosses a part. One part is by_levels itself.
#include <fmt/format.h>

#include "schedule/row_order.hpp"
#include "support/matrices.hpp"

namespace krilu::test {
namespace {

/// A random matrix without the entries that couple two parts.
CsrMatrix cut_into(const CsrView& a, const std::vector<Index>& parts) {
  RowMaps rows(std::size_t(a.rows));
  for (std::size_t p = 0; p + 1 < parts.size(); ++p)
    for (Index i = parts[p]; i < parts[p + 1]; ++i)
      for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
        if (a.columns[k] >= parts[p] && a.columns[k] < parts[p + 1]) rows[std::size_t(i)][a.columns[k]] = a.values[k];
  return from_rows(rows);
}

struct Case {
  std::string name;
  CsrMatrix a;
  std::vector<Index> parts;
};
const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> c;
    const auto add = [&](const std::string& name, const CsrMatrix& a, const std::vector<Index>& parts) {
      c.push_back({name, cut_into(a, parts), parts});
    };
    add("random", random_matrix({.rows = 700, .per_row = 12, .seed = 921}), {0, 100, 101, 350, 500, 700});
    add("unsymmetric", random_matrix({.rows = 700, .per_row = 9, .symmetric_pattern = false, .seed = 922}),
        {0, 300, 310, 650, 700});
    add("grid", grid(20, 30), {0, 200, 400, 600});
    add("chains", grid(900, 1), {0, 1, 2, 500, 900});
    add("a row each", grid(6, 5), natural_order(31));
    add("diagonal", random_matrix({.rows = 300, .per_row = 0}), {0, 17, 300});
    add("a part without rows", grid(10, 10), {0, 0, 50, 50, 100, 100});
    return c;
  }();
  return all;
}

sparse::RowOrder order_of(const Case& c, int threads) {
  return schedule::by_parts(exec::Host(threads), c.a, sparse::adjacency(c.a), c.parts);
}

TEST(ByParts, GroupsAndPartsTileTheRows) {
  for (const Case& c : cases())
    for (int threads : {1, 3}) {
      SCOPED_TRACE(c.name);
      const sparse::RowOrder o = order_of(c, threads);
      std::vector<Index> sorted = o.rows;
      std::sort(sorted.begin(), sorted.end());
      ASSERT_EQ(sorted, natural_order(c.a.rows));
      for (Index k = 0; k < c.a.rows; ++k) ASSERT_EQ(o.place[std::size_t(o.rows[std::size_t(k)])], k);
      EXPECT_EQ(o.group.front(), 0);
      EXPECT_EQ(o.group.back(), c.a.rows);
      for (std::size_t g = 1; g < o.group.size(); ++g) ASSERT_LT(o.group[g - 1], o.group[g]) << "group " << g;
      // Parts are runs of groups, and the rows of each are its own.
      ASSERT_EQ(o.part.size(), c.parts.size());
      for (std::size_t p = 0; p < c.parts.size(); ++p)
        ASSERT_EQ(o.group[std::size_t(o.part[p])], c.parts[p]) << "part " << p;
      for (std::size_t p = 0; p + 1 < c.parts.size(); ++p)
        for (Index k = c.parts[p]; k < c.parts[p + 1]; ++k) {
          ASSERT_GE(o.rows[std::size_t(k)], c.parts[p]);
          ASSERT_LT(o.rows[std::size_t(k)], c.parts[p + 1]);
        }
      EXPECT_TRUE(o.keeps_sequence);
      EXPECT_TRUE(o.rank.empty()) << "elimination in natural order";
    }
}

TEST(ByParts, LevelsAscendWithinAPartAndAreAsEarlyAsTheyMayBe) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const sparse::RowOrder o = order_of(c, 2);
    const CsrMatrix graph = sparse::adjacency(c.a);
    const auto part_of = [&](Index row) {
      return std::size_t(std::upper_bound(c.parts.begin(), c.parts.end(), row) - c.parts.begin()) - 1;
    };
    for (Index i = 0; i < c.a.rows; ++i) {
      const Index own = group_of(o, o.place[std::size_t(i)]);
      Index latest = o.part[part_of(i)] - 1;  // the group before the part's first
      for (Offset k = graph.offsets[std::size_t(i)]; k < graph.offsets[std::size_t(i) + 1]; ++k) {
        const Index j = graph.columns[std::size_t(k)], other = group_of(o, o.place[std::size_t(j)]);
        ASSERT_EQ(i < j, own < other) << "rows " << i << " and " << j;
        ASSERT_NE(own, other) << "rows " << i << " and " << j << " share a level";
        if (j < i) latest = std::max(latest, other);
      }
      ASSERT_EQ(own, latest + 1) << "row " << i << " might stand in an earlier level";
    }
  }
}

TEST(ByParts, RowsOfALevelStandByLength) {
  const Case& c = cases().front();
  const sparse::RowOrder o = order_of(c, 2);
  const auto key = [&](Index row) {
    std::pair<Index, Index> n{0, 0};
    for (Offset k = c.a.offsets[std::size_t(row)]; k < c.a.offsets[std::size_t(row) + 1]; ++k) {
      n.first += c.a.columns[std::size_t(k)] < row;
      n.second += c.a.columns[std::size_t(k)] > row;
    }
    return n;
  };
  for (std::size_t g = 0; g + 1 < o.group.size(); ++g)
    for (Index k = o.group[g] + 1; k < o.group[g + 1]; ++k)
      ASSERT_LE(key(o.rows[std::size_t(k) - 1]), key(o.rows[std::size_t(k)])) << "place " << k;
}

TEST(ByParts, OnePartIsByLevels) {
  const CsrMatrix a = random_matrix({.rows = 400, .per_row = 4, .seed = 923}), graph = sparse::adjacency(a);
  const sparse::RowOrder levels = schedule::by_levels(exec::Host(2), a, graph, {});
  const sparse::RowOrder one = schedule::by_parts(exec::Host(2), a, graph, {0, 400});
  EXPECT_EQ(one.rows, levels.rows);
  EXPECT_EQ(one.group, levels.group);
  EXPECT_EQ(one.place, levels.place);
  EXPECT_TRUE(one.part.empty());
}

TEST(ByParts, ThePatternKnowsThePartsSlicesAndNoneReadsAnothersRows) {
  for (const Case& c : cases())
    for (int height : {1, 4, 8}) {
      SCOPED_TRACE(fmt::format("{}, height {}", c.name, height));
      const SplitOn<exec::Host> s(exec::Host(2), c.a, order_of(c, 1), height);
      const std::vector<Index>& slices = s.pattern->part_slices();
      ASSERT_EQ(slices.size(), c.parts.size());
      EXPECT_EQ(slices.front(), 0);
      EXPECT_EQ(slices.back(), s.pattern->slices());
      const auto p = s.pattern->view();
      for (std::size_t q = 0; q + 1 < slices.size(); ++q) {
        ASSERT_EQ(p.slice_row[slices[q]], c.parts[q]);
        for (const auto* part : {&p.lower, &p.upper})  // padding included
          for (Offset k = part->offset[slices[q]]; k < part->offset[slices[q + 1]]; ++k) {
            ASSERT_GE(part->column[k], c.parts[q]);
            ASSERT_LT(part->column[k], c.parts[q + 1]);
          }
      }
    }
}

}  // namespace
}  // namespace krilu::test
