// SPDX-License-Identifier: Apache-2.0
// Orderings against what each is for: all are permutations, Cuthill-McKee narrows the band (to one on a path), colours
// differ between neighbours (two suffice on a grid), parts are even and stand together; graphs without edges, in
// pieces, of one row and of none; names that are refused.
#include "schedule/ordering.hpp"

#include <set>

#include "krilu/error.hpp"
#include "support/split_matrix.hpp"

namespace krilu::test {
namespace {

using namespace schedule;

const std::vector<std::string> all_names{"rcm",     "multicolour", "metis",       "metis:1",
                                         "metis:2", "metis:7",     "metis:100000"};

void expect_permutation(const Order& order, Index n) {
  std::vector<Index> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  ASSERT_EQ(sorted, natural_order(n));
}

CsrMatrix shuffled(const CsrMatrix& a, std::uint64_t seed) { return permuted(a, shuffled_order(a.rows, seed)); }

TEST(Orderings, ArePermutations) {
  std::vector<CsrMatrix> matrices;
  matrices.push_back(shuffled(grid(20, 15), 1));
  matrices.push_back(random_matrix({.rows = 600, .per_row = 3, .symmetric_pattern = false, .seed = 2}));
  matrices.push_back(random_matrix({.rows = 600, .per_row = 0.5, .seed = 3}));  // many pieces, many isolated rows
  matrices.push_back(random_matrix({.rows = 50, .per_row = 0, .seed = 4}));
  matrices.push_back(from_dense({{1.0, 2.0}, {3.0, 4.0}}));
  matrices.push_back(from_dense({{1.0}}));
  CsrMatrix none;
  none.offsets.push_back(0);
  matrices.push_back(none);
  for (std::size_t m = 0; m < matrices.size(); ++m) {
    const CsrMatrix graph = sparse::adjacency(matrices[m]);
    EXPECT_TRUE(order_by_name("natural", graph, graph).empty());
    for (const std::string& name : all_names) {
      SCOPED_TRACE(name + " of matrix " + std::to_string(m));
      const Order order = order_by_name(name, graph, graph);
      expect_permutation(order, graph.rows);
      EXPECT_EQ(order_by_name(name, graph, graph), order) << "the same graph gave another order";
      const Order rank = inverse(order);
      for (std::size_t k = 0; k < order.size(); ++k) ASSERT_EQ(rank[std::size_t(order[k])], Index(k));
    }
  }
}

TEST(ReverseCuthillMcKee, WalksAPathFromEndToEnd) {
  for (std::uint64_t seed : {5, 6, 7}) {
    const CsrMatrix path = shuffled(grid(57, 1), seed);
    const Order order = reverse_cuthill_mckee(sparse::adjacency(path));
    EXPECT_EQ(sparse::bandwidth(permuted(path, order)), 1) << "seed " << seed;
  }
}

TEST(ReverseCuthillMcKee, NarrowsTheBandOfAShuffledGrid) {
  const CsrMatrix natural = grid(40, 9), a = shuffled(natural, 8);
  const Index before = sparse::bandwidth(a);
  ASSERT_GT(before, 300);
  const Index after = sparse::bandwidth(permuted(a, reverse_cuthill_mckee(sparse::adjacency(a))));
  EXPECT_LE(after, 10) << "an antidiagonal of the short side, and one";
  EXPECT_GE(after, 9) << "narrower than a 40 x 9 grid can be";
}

TEST(ReverseCuthillMcKee, KeepsPiecesTogether) {
  // Three paths and two isolated rows, shuffled.
  Dense d(32, std::vector<double>(32, 0.0));
  for (std::size_t i = 0; i < 32; ++i) d[i][i] = 2;
  for (std::size_t i = 0; i + 1 < 30; ++i)
    if (i != 9 && i != 19) d[i][i + 1] = d[i + 1][i] = -1;
  const CsrMatrix a = shuffled(from_dense(d), 9);
  EXPECT_EQ(sparse::bandwidth(permuted(a, reverse_cuthill_mckee(sparse::adjacency(a)))), 1);
}

TEST(ReverseCuthillMcKee, IsReversedWithNeighboursByDegree) {
  // A root 0 with neighbours 1 (degree 3), 2 (degree 2) and 3 (degree 1), as a tree that starts at a leaf: 5.
  //   5 - 1 - 0 - 2 - 6,  1 - 4,  0 - 3
  const std::vector<std::pair<int, int>> edges{{5, 1}, {1, 0}, {0, 2}, {2, 6}, {1, 4}, {0, 3}};
  Dense d(7, std::vector<double>(7, 0.0));
  for (auto [i, j] : edges) d[std::size_t(i)][std::size_t(j)] = d[std::size_t(j)][std::size_t(i)] = 1;
  // From row 0 the last level is {5, 4, 6} = by row number 4 first; from 4 the far end is 6, no deeper from there.
  // Cuthill-McKee from 4: 4 | 1 | 5 (degree 1) 0 (degree 3) | 3 (1) 2 (2) | 6.
  EXPECT_EQ(reverse_cuthill_mckee(sparse::adjacency(from_dense(d))), (Order{6, 2, 3, 0, 5, 1, 4}));
}

TEST(Multicolour, NeighboursDifferAndColoursAreFew) {
  for (std::uint64_t seed : {10, 11}) {
    const CsrMatrix a = random_matrix({.rows = 800, .per_row = 6, .symmetric_pattern = false, .seed = seed});
    const CsrMatrix g = sparse::adjacency(a);
    Index count = 0, most = 0;
    const std::vector<Index> colour = colour_greedily(g, count);
    std::set<Index> used;
    for (Index i = 0; i < g.rows; ++i) {
      used.insert(colour[std::size_t(i)]);
      most = std::max(most, g.offsets[std::size_t(i) + 1] - g.offsets[std::size_t(i)]);
      std::set<Index> earlier;
      for (Offset k = g.offsets[std::size_t(i)]; k < g.offsets[std::size_t(i) + 1]; ++k) {
        const Index j = g.columns[std::size_t(k)];
        ASSERT_NE(colour[std::size_t(i)], colour[std::size_t(j)]) << "rows " << i << " and " << j;
        if (j < i) earlier.insert(colour[std::size_t(j)]);
      }
      for (Index c = 0; c < colour[std::size_t(i)]; ++c)
        ASSERT_TRUE(earlier.count(c)) << "row " << i << " took a later colour";
    }
    EXPECT_EQ(Index(used.size()), count);
    EXPECT_LE(count, most + 1);
    const Order order = multicolour(g);
    for (std::size_t k = 1; k < order.size(); ++k) {
      const auto key = [&](Index i) { return std::pair{colour[std::size_t(i)], i}; };
      ASSERT_LT(key(order[k - 1]), key(order[k]));
    }
  }
}

TEST(Multicolour, TwoColoursOnAGridAndOneWithoutEdges) {
  Index count = 0;
  const std::vector<Index> colour = colour_greedily(sparse::adjacency(grid(21, 14)), count);
  EXPECT_EQ(count, 2);
  for (Index i = 0; i < 21 * 14; ++i) ASSERT_EQ(colour[std::size_t(i)], (i % 21 + i / 21) % 2);
  colour_greedily(sparse::adjacency(random_matrix({.rows = 9, .per_row = 0})), count);
  EXPECT_EQ(count, 1);
  CsrMatrix none;
  none.offsets.push_back(0);
  colour_greedily(none, count);
  EXPECT_EQ(count, 0);
}

TEST(MetisParts, AreEvenAndStandTogether) {
  const CsrMatrix g = sparse::adjacency(shuffled(grid(60, 40), 12));
  for (Index parts : {2, 5, 16}) {
    const std::vector<Index> part = partition(g, parts);
    std::vector<Index> size(std::size_t(parts), 0);
    Index cut = 0;
    for (Index i = 0; i < g.rows; ++i) {
      ASSERT_TRUE(part[std::size_t(i)] >= 0 && part[std::size_t(i)] < parts);
      ++size[std::size_t(part[std::size_t(i)])];
      for (Offset k = g.offsets[std::size_t(i)]; k < g.offsets[std::size_t(i) + 1]; ++k)
        cut += part[std::size_t(i)] != part[std::size_t(g.columns[std::size_t(k)])];
    }
    for (Index s : size) EXPECT_NEAR(s, double(g.rows) / parts, 0.1 * g.rows / parts) << parts << " parts";
    EXPECT_LT(cut, g.nnz() / 8) << "a cut of " << parts << " parts crosses many edges";
    const Order order = metis_parts(g, parts);
    for (std::size_t k = 1; k < order.size(); ++k) {
      const auto key = [&](Index i) { return std::pair{part[std::size_t(i)], i}; };
      ASSERT_LT(key(order[k - 1]), key(order[k])) << "parts apart, or out of natural order within one";
    }
  }
  EXPECT_EQ(metis_parts(g), metis_parts(g, 60 * 40 / 512));
}

TEST(MetisParts, WithoutEdgesAreRanges) {
  const CsrMatrix g = sparse::adjacency(random_matrix({.rows = 10, .per_row = 0}));
  EXPECT_EQ(partition(g, 5), (std::vector<Index>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4}));
  EXPECT_EQ(partition(g, 1), std::vector<Index>(10, 0));
}

TEST(MetisParts, MorePartsThanRows) {
  const CsrMatrix g = sparse::adjacency(grid(3, 2));
  for (Index p : partition(g, 1000)) EXPECT_TRUE(p >= 0 && p < 6);
  expect_permutation(metis_parts(g, 2000000000), 6);  // within memory
}

std::string refusal(const std::string& name) {
  try {
    require_ordering_name(name);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(OrderingNames, AreKnownOrGetASentence) {
  for (const std::string& name : ordering_names()) EXPECT_EQ(refusal(name), "accepted");
  for (const std::string& name : all_names) EXPECT_EQ(refusal(name), "accepted");
  EXPECT_EQ(refusal("rmc"),
            "unknown ordering 'rmc': did you mean 'rcm'? It is one of natural, rcm, multicolour, block-multicolour, "
            "metis");
  for (const char* name : {"metis:", "metis:0", "metis:-3", "metis:4x", "metis: 4", "metis:1e3", "metis:99999999999"})
    EXPECT_EQ(refusal(name), std::string("ordering '") + name + "': PARTS in metis:PARTS is a whole number from 1");
  EXPECT_NE(refusal("metis4"), "accepted");
  EXPECT_NE(refusal(""), "accepted");
  EXPECT_THROW(order_by_name("zigzag", grid(2, 2), grid(2, 2)), Error);
}

}  // namespace
}  // namespace krilu::test
