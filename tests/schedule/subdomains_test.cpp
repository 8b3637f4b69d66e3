// SPDX-License-Identifier: Apache-2.0
// Subdomains against what they are by definition: parts that own each row once, extended by all rows within `overlap`
// couplings and no other, found here by a search from every row; graphs in pieces, without couplings, of one row and of
// none; parts that are even and cut little, on lattices that are known.
#include "schedule/subdomains.hpp"

#include <set>
#include <thread>
#include <tuple>

#include "krilu/error.hpp"
#include "schedule/nested_dissection.hpp"
#include "support/matrices.hpp"
#include "support/split_matrix.hpp"

namespace krilu::test {
namespace {

using namespace schedule;

/// The adjacency of a seven-point lattice.
CsrMatrix lattice(Index nx, Index ny, Index nz) {
  CsrMatrix g;
  g.rows = g.cols = nx * ny * nz;
  g.offsets.push_back(0);
  for (Index i = 0; i < g.rows; ++i) {
    const Index x = i % nx, y = i / nx % ny, z = i / nx / ny;
    if (z > 0) g.columns.push_back(i - nx * ny);
    if (y > 0) g.columns.push_back(i - nx);
    if (x > 0) g.columns.push_back(i - 1);
    if (x + 1 < nx) g.columns.push_back(i + 1);
    if (y + 1 < ny) g.columns.push_back(i + nx);
    if (z + 1 < nz) g.columns.push_back(i + nx * ny);
    g.offsets.push_back(Offset(g.columns.size()));
  }
  return g;
}

/// All rows within `steps` couplings of the given ones, by looking at every row of the matrix in every step.
std::set<Index> within(const CsrView& g, const std::set<Index>& rows, int steps) {
  std::vector<char> reached(std::size_t(g.rows), 0);
  for (Index i : rows) reached[std::size_t(i)] = 1;
  for (int step = 0; step < steps; ++step) {
    const std::vector<char> before = reached;
    const char* is_before = before.data();
    for (Index i = 0; i < g.rows; ++i)
      for (Offset k = g.offsets[i]; k < g.offsets[i + 1]; ++k)
        if (is_before[g.columns[k]]) reached[std::size_t(i)] = 1;
  }
  std::set<Index> all;
  for (Index i = 0; i < g.rows; ++i)
    if (reached[std::size_t(i)]) all.insert(all.end(), i);
  return all;
}

/// The rows of each part that it owns, or all of them.
std::vector<std::set<Index>> rows_of(const Subdomains& s, bool owned_only) {
  std::vector<std::set<Index>> rows(std::size_t(s.parts()));
  for (std::size_t p = 0; p < rows.size(); ++p)
    for (auto l = std::size_t(s.offsets[p]); l < std::size_t(s.offsets[p + 1]); ++l)
      if (!owned_only || s.owned[l]) {
        EXPECT_TRUE(rows[p].insert(s.row[l]).second) << "row " << s.row[l] << " stands twice in part " << p;
      }
  return rows;
}

void expect_subdomains(const Subdomains& s, const CsrView& g, Index parts, int overlap, const Order& order = {}) {
  ASSERT_EQ(s.offsets.front(), 0);
  ASSERT_EQ(std::size_t(s.offsets.back()), s.row.size());
  ASSERT_EQ(s.row.size(), s.owned.size());
  EXPECT_LE(s.parts(), std::max(parts, Index(1)));
  const auto own = rows_of(s, true), all = rows_of(s, false);
  std::vector<int> owners(std::size_t(g.rows), 0);
  const Order rank = inverse(order.empty() ? natural_order(g.rows) : order);
  for (std::size_t p = 0; p < own.size(); ++p) {
    EXPECT_FALSE(own[p].empty()) << "part " << p;
    for (Index i : own[p]) ++owners[std::size_t(i)];
    EXPECT_EQ(all[p], within(g, own[p], overlap)) << "part " << p;
    for (Index l = s.offsets[p] + 1; l < s.offsets[p + 1]; ++l)
      EXPECT_LT(rank[std::size_t(s.row[std::size_t(l) - 1])], rank[std::size_t(s.row[std::size_t(l)])]) << "at " << l;
  }
  for (int count : owners) EXPECT_EQ(count, 1);
}

bool same(const Subdomains& a, const Subdomains& b) {
  return a.offsets == b.offsets && a.row == b.row && a.owned == b.owned;
}

std::vector<CsrMatrix> small_graphs() {
  std::vector<CsrMatrix> graphs;
  graphs.push_back(lattice(6, 5, 4));
  graphs.push_back(lattice(57, 1, 1));
  graphs.push_back(
      sparse::adjacency(random_matrix({.rows = 150, .per_row = 3, .symmetric_pattern = false, .seed = 1})));
  graphs.push_back(sparse::adjacency(random_matrix({.rows = 150, .per_row = 0.7, .seed = 2})));  // pieces, lone rows
  graphs.push_back(sparse::adjacency(random_matrix({.rows = 40, .per_row = 0, .seed = 3})));     // lone rows only
  graphs.push_back(sparse::adjacency(arrow(60, 17)));
  graphs.push_back(lattice(1, 1, 1));
  return graphs;
}

TEST(Subdomains, AreTheRowsWithinTheOverlapOfPartsThatOwnEachRowOnce) {
  const auto graphs = small_graphs();
  for (std::size_t m = 0; m < graphs.size(); ++m)
    for (Index parts : {0, 1, 2, 7, 25, 1000})
      for (int overlap : {0, 1, 2, 4}) {
        SCOPED_TRACE(testing::Message() << "graph " << m << ", " << parts << " parts, overlap " << overlap);
        const CsrMatrix& g = graphs[m];
        expect_subdomains(subdomains(exec::Host(2), g, parts, overlap), g, parts, overlap);
        const Order order = shuffled_order(g.rows, 11);
        const Subdomains s = subdomains(exec::Host(2), g, parts, overlap, order);
        expect_subdomains(s, g, parts, overlap, order);
        EXPECT_EQ(rows_of(s, false), rows_of(subdomains(exec::Host(1), g, parts, overlap), false));
      }
}

TEST(Subdomains, WithoutOverlapAreThePartition) {
  const CsrMatrix g = lattice(12, 11, 3);
  const std::vector<Index> part = partition(g, 9);
  const Subdomains s = subdomains(exec::Host(1), g, 9, 0);
  ASSERT_EQ(s.parts(), 9);
  ASSERT_EQ(s.row.size(), std::size_t(g.rows));
  for (Index p = 0; p < 9; ++p)
    for (Index l = s.offsets[std::size_t(p)]; l < s.offsets[std::size_t(p) + 1]; ++l) {
      EXPECT_EQ(part[std::size_t(s.row[std::size_t(l)])], p);
      EXPECT_EQ(s.owned[std::size_t(l)], 1);
    }
}

TEST(Subdomains, OnePartIsTheMatrixAndManyAreSingleRows) {
  const CsrMatrix g = lattice(5, 4, 3);
  for (Index parts : {-3, 0, 1}) {
    const Subdomains s = subdomains(exec::Host(2), g, parts, 3);
    EXPECT_EQ(s.offsets, (std::vector<Index>{0, 60}));
    EXPECT_EQ(s.row, natural_order(60));
  }
  for (Index parts : {60, 61, 5000}) {
    const Subdomains s = subdomains(exec::Host(2), g, parts, 0);
    EXPECT_EQ(s.parts(), 60);
    EXPECT_EQ(s.row, natural_order(60));
  }
  CsrMatrix none;
  none.offsets.push_back(0);
  const Subdomains s = subdomains(exec::Host(2), none, 4, 1);
  EXPECT_EQ(s.parts(), 0);
  EXPECT_TRUE(s.row.empty());
}

TEST(Subdomains, OverlapGoesByCouplingsNotByRowNumbers) {
  // A path whose neighbours stand far apart: 0 - 3 - 1 - 4 - 2. One row a part: the overlap is read off.
  CsrMatrix g = from_dense({{0, 0, 0, 1, 0}, {0, 0, 0, 1, 1}, {0, 0, 0, 0, 1}, {1, 1, 0, 0, 0}, {0, 1, 1, 0, 0}});
  const Subdomains s = subdomains(exec::Host(1), g, 5, 1);
  EXPECT_EQ(s.row, (std::vector<Index>{0, 3, 1, 3, 4, 2, 4, 0, 1, 3, 1, 2, 4}));
  EXPECT_EQ(s.owned, (std::vector<std::uint8_t>{1, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1}));
}

/// Rows of a lattice in an order that hides it.
CsrMatrix hidden(const CsrMatrix& lattice) {
  return sparse::adjacency(permuted(lattice, shuffled_order(lattice.rows, 3)));
}

TEST(Subdomains, AreTheSameForAnyNumberOfThreads) {
  const CsrMatrix known = lattice(40, 33, 21), unknown = hidden(known);
  const Order order = shuffled_order(known.rows, 5);
  for (const CsrMatrix* g : {&known, &unknown})
    for (int overlap : {0, 2}) {
      const Subdomains one = subdomains(exec::Host(1), *g, 150, overlap, order);
      for (int threads : {2, 3, 8}) EXPECT_TRUE(same(subdomains(exec::Host(threads), *g, 150, overlap, order), one));
    }
}

TEST(Subdomains, OfManyRowsAreThePartitionOfTheLatticeWhereThereIsOne) {
  const CsrMatrix g = lattice(40, 33, 21);
  for (const Index parts : {2, 150}) {
    const std::vector<Index> part = partition_of_lattice(exec::Host(1), {40, 33, 21}, parts);
    const Subdomains s = subdomains(exec::Host(2), g, parts, 1);
    expect_subdomains(s, g, parts, 1);
    ASSERT_EQ(s.parts(), parts);
    for (Index p = 0; p < parts; ++p)
      for (auto l = std::size_t(s.offsets[std::size_t(p)]); l < std::size_t(s.offsets[std::size_t(p) + 1]); ++l)
        ASSERT_EQ(part[std::size_t(s.row[l])] == p, s.owned[l] == 1);
  }
}

TEST(Subdomains, OfManyRowsAreThePartitionByClusters) {
  const CsrMatrix g = hidden(lattice(40, 33, 21));
  const std::vector<Index> part = partition_by_clusters(g, 150);
  ASSERT_NE(part, partition(g, 150));
  const Subdomains s = subdomains(exec::Host(2), g, 150, 1);
  expect_subdomains(s, g, 150, 1);
  ASSERT_EQ(s.parts(), 150);
  for (Index p = 0; p < 150; ++p)
    for (auto l = std::size_t(s.offsets[std::size_t(p)]); l < std::size_t(s.offsets[std::size_t(p) + 1]); ++l)
      ASSERT_EQ(part[std::size_t(s.row[l])] == p, s.owned[l] == 1);
}

TEST(Subdomains, RefuseWhatTheyCannotMean) {
  const CsrMatrix g = lattice(3, 3, 1);
  EXPECT_THROW(subdomains(exec::Host(1), g, 2, -1), Error);
  EXPECT_THROW(subdomains(exec::Host(1), g, 2, 0, {0, 1, 2}), Error);
}

struct Cut {
  std::int64_t couplings = 0;
  Index largest = 0, smallest = 0;
};
Cut cut_of(const CsrView& g, const std::vector<Index>& part, Index parts) {
  std::vector<Index> size(std::size_t(parts), 0);
  Cut cut;
  for (Index i = 0; i < g.rows; ++i) {
    ++size.at(std::size_t(part[std::size_t(i)]));
    for (Offset k = g.offsets[i]; k < g.offsets[i + 1]; ++k)
      cut.couplings += part[std::size_t(i)] < part[std::size_t(g.columns[k])];
  }
  cut.largest = *std::max_element(size.begin(), size.end());
  cut.smallest = *std::min_element(size.begin(), size.end());
  return cut;
}

TEST(PartitionOfLattice, IsEvenToARowAndCutsHardlyMoreThanMetis) {
  struct Sides {
    Index x, y, z;
  };
  for (const auto [x, y, z] : {Sides{40, 40, 40}, {180, 170, 1}, {2, 2, 8000}, {9000, 3, 1}, {30000, 1, 1}})
    for (const Index parts : {2, 3, 10, 128, 301}) {
      SCOPED_TRACE(testing::Message() << x << " x " << y << " x " << z << ", " << parts << " parts");
      const CsrMatrix g = lattice(x, y, z);
      const std::vector<Index> part = partition_of_lattice(exec::Host(1), {x, y, z}, parts);
      const Cut ours = cut_of(g, part, parts), metis = cut_of(g, partition(g, parts), parts);
      EXPECT_GE(ours.smallest, g.rows / parts);
      EXPECT_LE(ours.largest, (g.rows + parts - 1) / parts);
      // A cut within a plane meets a coupling or two more than METIS's, which need not be even.
      EXPECT_LE(double(ours.couplings), 1.1 * double(metis.couplings) + 1.2 * parts);
      EXPECT_EQ(partition_of_lattice(exec::Host(3), {x, y, z}, parts), part);
    }
}

TEST(PartitionByClusters, IsEvenAndCutsLittleMoreThanMetisAlone) {
  const CsrMatrix cube = lattice(40, 40, 40), plane = lattice(180, 170, 1);
  const CsrMatrix mixed = hidden(cube);
  for (const CsrMatrix* g : {&cube, &plane, &mixed})
    for (Index parts : {2, 10, 128, 301}) {
      SCOPED_TRACE(testing::Message() << g->rows << " rows, " << g->nnz() << " couplings, " << parts << " parts");
      const Cut metis = cut_of(*g, partition(*g, parts), parts);
      const Cut ours = cut_of(*g, partition_by_clusters(*g, parts), parts);
      const double mean = double(g->rows) / parts;
      EXPECT_LE(ours.largest, 1.03 * mean + 1);
      EXPECT_GE(ours.smallest, 0.7 * mean);
      // Clusters of rows in random order are ragged, which few and long cuts pay most for.
      EXPECT_LE(double(ours.couplings), (parts < 128 ? 1.35 : 1.15) * double(metis.couplings));
    }
}

TEST(Partition, IsTheSameWhereThreadsAskAtOnce) {
  const CsrMatrix g = lattice(20, 9, 1), other = lattice(11, 7, 5);
  const auto found = [&] {
    return std::tuple{partition(g, 3), partition_by_clusters(other, 4), nested_dissection(other.view())};
  };
  const auto alone = found();
  for (int again = 0; again < 10; ++again) {
    std::vector<decltype(found())> all(4);
    std::vector<std::thread> threads;
    for (auto& one : all) threads.emplace_back([&] { one = found(); });
    for (std::thread& t : threads) t.join();
    for (const auto& one : all) ASSERT_EQ(one, alone);
  }
}

TEST(PartitionByClusters, CutsABarAcross) {
  // 2 x 2 x 8000: each cut of a good partition is through four couplings.
  const CsrMatrix bar = lattice(2, 2, 8000);
  const Cut cut = cut_of(bar, partition_by_clusters(bar, 16), 16);
  EXPECT_LE(cut.couplings, 15 * 8);
  EXPECT_LE(cut.largest, 2060);
}

TEST(PartitionByClusters, ComesToTermsWithPiecesLoneRowsAndStars) {
  std::vector<CsrMatrix> graphs;
  graphs.push_back(sparse::adjacency(random_matrix({.rows = 30000, .per_row = 0.8, .seed = 4})));
  graphs.push_back(sparse::adjacency(arrow(30000, 29000)));
  graphs.push_back(sparse::adjacency(random_matrix({.rows = 30000, .per_row = 0, .seed = 5})));
  graphs.push_back(sparse::adjacency(random_matrix({.rows = 25000, .per_row = 6, .seed = 6})));  // no geometry at all
  for (std::size_t m = 0; m < graphs.size(); ++m) {
    SCOPED_TRACE(testing::Message() << "graph " << m);
    const Index parts = 50;
    const Cut cut = cut_of(graphs[m], partition_by_clusters(graphs[m], parts), parts);
    EXPECT_LE(cut.largest, 1.1 * graphs[m].rows / parts);
    EXPECT_GT(cut.smallest, 0);
  }
}

}  // namespace
}  // namespace krilu::test
