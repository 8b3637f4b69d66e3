// SPDX-License-Identifier: Apache-2.0
// Coloured blocks on the host and the emulated device: what blocks and colours have to be, whatever the pattern and the
// limit; lattices are found and boxes lie along strong couplings; blocks grown on a shuffled grid follow them too; the
// same blocks on every run, team and space; and what they are for, convergence near natural order's.
#include "schedule/blocks.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "sparse/csr.hpp"
#include "support/blocks.hpp"

namespace krilu::test {
namespace {

template <class Space>
class Blocks : public ::testing::Test {};
TYPED_TEST_SUITE(Blocks, Spaces);

TYPED_TEST(Blocks, CoverTheRowsWithinTheLimitAndNeighboursDifferInColour) {
  for (const BlockCase& c : block_cases())
    for (Index rows : {1, 2, 8, 20, 32}) {
      SCOPED_TRACE(fmt::format("{}, up to {} rows", c.name, rows));
      expect_blocks(blocks_on(make_space<TypeParam>(2), c.a, rows), c.a, rows);
    }
}

TYPED_TEST(Blocks, AreTheSameOnEveryRunTeamAndSpace) {
  for (const BlockCase& c : block_cases()) {
    SCOPED_TRACE(c.name);
    const HostBlocks expected = host_blocks(c.a);
    for (int threads : {1, 3})
      for (int run = 0; run < 2; ++run)
        EXPECT_EQ(blocks_on(make_space<TypeParam>(threads), c.a), expected) << threads << " threads, run " << run;
  }
}

TYPED_TEST(Blocks, LatticesAreFoundAndNothingElseIs) {
  for (const BlockCase& c : block_cases()) {
    const HostBlocks b = blocks_on(make_space<TypeParam>(1), c.a);
    EXPECT_EQ(b.box[0] > 0, c.lattice) << c.name;
    if (!c.lattice) continue;
    EXPECT_LE(b.box[0] * b.box[1] * b.box[2], 32) << c.name;
    EXPECT_LE(b.colours, c.name.find("27") == std::string::npos ? 3 : 8) << c.name;
  }
}

TEST(LatticeBlocks, KnowTheLattice) {
  using Lattice = schedule::Lattice;
  const auto lattice_of = [](const CsrMatrix& a) {
    return schedule::BlockBuilder<exec::Host>(exec::Host(1), a, a).lattice();
  };
  const auto is = [&](const Lattice& found, Index nx, Index ny, Index nz, bool diagonals) {
    return found && found.nx == nx && found.ny == ny && found.nz == nz && found.diagonals == diagonals;
  };
  EXPECT_TRUE(is(lattice_of(generate("gen:convdiff2d:31x17")), 31, 17, 1, false));
  EXPECT_TRUE(is(lattice_of(generate("gen:poisson3d:9x8x7")), 9, 8, 7, false));
  EXPECT_TRUE(is(lattice_of(generate("gen:poisson3d27:9x8x7")), 9, 8, 7, true));
  EXPECT_TRUE(is(lattice_of(generate("gen:poisson2d:40x1")), 40, 1, 1, false));
  // One entry too far: the middle of the matrix suggests a lattice that the rest is not.
  CsrMatrix a = generate("gen:poisson2d:31x17");
  a.columns[1] = 2;
  EXPECT_FALSE(lattice_of(a));
  EXPECT_FALSE(lattice_of(CsrMatrix{}));
  // It is the graph's, where A alone has one side of it.
  CsrMatrix lower = generate("gen:poisson2d:31x17");
  lower.columns.clear();
  lower.values.clear();
  const CsrMatrix whole = generate("gen:poisson2d:31x17");
  for (Index i = 0; i < whole.rows; ++i) {
    for (Offset k = whole.offsets[std::size_t(i)]; k < whole.offsets[std::size_t(i) + 1]; ++k)
      if (whole.columns[std::size_t(k)] <= i) {
        lower.columns.push_back(whole.columns[std::size_t(k)]);
        lower.values.push_back(whole.values[std::size_t(k)]);
      }
    lower.offsets[std::size_t(i) + 1] = Offset(lower.columns.size());
  }
  const CsrMatrix both = sparse::adjacency(lower);
  EXPECT_FALSE(lattice_of(lower));
  EXPECT_GT(schedule::BlockBuilder<exec::Host>(exec::Host(1), lower, both).build().box[0], 0);
  // Given, it is not looked for again.
  const CsrMatrix plane = generate("gen:convdiff2d:31x17"), graph = sparse::adjacency(plane);
  schedule::BlockBuilder<exec::Host> builder(exec::Host(1), plane, graph);
  const auto own = builder.build(), given = builder.build(lattice_of(plane));
  EXPECT_EQ(own.box, given.box);
  EXPECT_EQ(own.colours, given.colours);
  for (std::size_t i = 0; i < own.block.size(); ++i) {
    EXPECT_EQ(own.block.data()[i], given.block.data()[i]);
    EXPECT_EQ(own.colour.data()[i], given.colour.data()[i]);
  }
}

TEST(LatticeBlocks, AreEvenWhereCouplingsAre) {
  const HostBlocks plane = host_blocks(generate("gen:poisson2d:64x64"));
  EXPECT_EQ(plane.box, (std::array<Index, 3>{8, 4, 1}));
  EXPECT_EQ(plane.colours, 3);
  const HostBlocks cube = host_blocks(generate("gen:poisson3d:16x16x16"));
  EXPECT_EQ(cube.box[0] * cube.box[1] * cube.box[2], 32);
  for (Index side : cube.box) EXPECT_TRUE(side == 2 || side == 4) << side;
  EXPECT_EQ(host_blocks(generate("gen:poisson3d27:16x16x16")).colours, 8);
  EXPECT_EQ(host_blocks(generate("gen:poisson2d:320x1")).box, (std::array<Index, 3>{32, 1, 1}));
}

TEST(LatticeBlocks, LieAlongTheStrongDirection) {
  using Box = std::array<Index, 3>;
  EXPECT_EQ(host_blocks(stretched(64, 64, 1, 100, 1, 0)).box, (Box{32, 1, 1}));
  EXPECT_EQ(host_blocks(stretched(64, 64, 1, 1, 100, 0)).box, (Box{1, 32, 1}));
  EXPECT_EQ(host_blocks(stretched(16, 16, 64, 1, 1, 1000)).box, (Box{1, 1, 32}));
  EXPECT_EQ(host_blocks(stretched(64, 64, 1, 8, 1, 0)).box, (Box{16, 2, 1})) << "a little stronger, a little longer";
  // Without values all couplings are alike.
  const CsrMatrix a = stretched(64, 64, 1, 1, 100, 0);
  CsrView pattern = a;
  pattern.values = nullptr;
  EXPECT_EQ(host_blocks(pattern).box, (Box{8, 4, 1}));
}

/// Of the entries that are strong, the share that leads from block to block.
double strong_share_cut(const HostBlocks& b, const CsrView& a, double strong) {
  double all = 0, cut = 0;
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const Index j = a.columns[k];
      if (i == j || std::abs(a.values[k]) < strong) continue;
      ++all;
      cut += b.block[std::size_t(i)] != b.block[std::size_t(j)];
    }
  return cut / all;
}

TEST(GrownBlocks, FollowTheStrongCouplingsOfAShuffledGrid) {
  for (std::uint64_t seed : {311, 312, 313}) {
    SCOPED_TRACE(seed);
    const CsrMatrix grid = stretched(96, 40, 1, 100, 1, 0), a = permuted(grid, shuffled_order(grid.rows, seed));
    const HostBlocks b = host_blocks(a);
    ASSERT_EQ(b.box[0], 0);
    std::set<Index> blocks(b.block.begin(), b.block.end());
    EXPECT_LT(Index(blocks.size()), a.rows / 12) << "blocks are small";
    const double with_values = strong_share_cut(b, a, 50);
    CsrView pattern = a;
    pattern.values = nullptr;
    const double without = strong_share_cut(host_blocks(pattern), a, 50);
    // Lines of 16 cut one coupling in 16; blocks that do not look at values, one in four or so.
    EXPECT_LT(with_values, 0.12);
    EXPECT_GT(without, 2 * with_values);
  }
}

/// A shuffled grid of 96 x 40 whose couplings are strength(i, j), by rows of the grid before.
template <class Strength>
CsrMatrix shuffled_grid(const Strength& strength) {
  CsrMatrix grid = generate("gen:poisson2d:96x40");
  for (Index i = 0; i < grid.rows; ++i)
    for (Offset k = grid.offsets[std::size_t(i)]; k < grid.offsets[std::size_t(i) + 1]; ++k)
      if (const Index j = grid.columns[std::size_t(k)]; j != i) grid.values[std::size_t(k)] = -strength(i, j);
  return permuted(grid, shuffled_order(grid.rows, 321));
}

TEST(GrownBlocks, AreFullWhicheverWayItFlowsAndHoweverCouplingsGrow) {
  const auto rows_a_block = [](const CsrMatrix& a) {
    const HostBlocks b = host_blocks(a);
    return double(a.rows) / double(std::set<Index>(b.block.begin(), b.block.end()).size());
  };
  // Each row is coupled to those that it flows from: what is strong from one side is weak from the other.
  EXPECT_GT(rows_a_block(shuffled_grid([](Index i, Index j) { return j < i ? 10 : 0.1; })), 12);
  // As in layers at a wall: each row of cells is coupled a little more to the next than to the one before.
  EXPECT_GT(rows_a_block(shuffled_grid([](Index i, Index j) { return std::pow(1.1, std::min(i, j) / 96); })), 12);
}

TEST(GrownBlocks, GoByTheStrongerSideOfACoupling) {
  // Three times as strong from one side along x, where it flows, as from both along y. By their sums, 3 and 2, they
  // would count as equal, and blocks cut 0.23 of the strong ones.
  const CsrMatrix a = shuffled_grid([](Index i, Index j) { return std::abs(i - j) > 1 ? 1 : j < i ? 3 : 0.01; });
  const HostBlocks b = host_blocks(a);
  ASSERT_EQ(b.box[0], 0);
  EXPECT_LT(strong_share_cut(b, a, 2), 0.18);
}

TEST(GrownBlocks, AreSmallWhereRowsHaveManyNeighbours) {
  const auto largest = [](const CsrMatrix& a) {
    const HostBlocks b = host_blocks(a, 0);
    std::map<Index, Index> rows;
    for (const Index block : b.block) ++rows[block];
    Index most = 0;
    for (const auto& [block, count] : rows) most = std::max(most, count);
    return most;
  };
  const auto mixed = [](const std::string& system) {
    const CsrMatrix a = generate(system);
    return permuted(a, shuffled_order(a.rows, 322));
  };
  EXPECT_EQ(largest(mixed("gen:poisson2d:40x30")), 16);
  CsrMatrix cube = mixed("gen:poisson3d:14x13x12");
  EXPECT_EQ(largest(cube), 8);
  // An entry without its mirror: the graph is that of A + A^T, which has no diagonal, and the neighbours are the same.
  const Offset gone = cube.columns[0] == 0 ? 1 : 0;
  cube.columns.erase(cube.columns.begin() + gone);
  cube.values.erase(cube.values.begin() + gone);
  for (std::size_t i = 1; i < cube.offsets.size(); ++i) --cube.offsets[i];
  ASSERT_FALSE(sparse::symmetry(cube).pattern);
  EXPECT_EQ(largest(cube), 8);
}

TEST(GrownBlocks, KeepTheRowsOfANodeTogether) {
  // A point's unknowns have the same neighbours, whatever their couplings are.
  const auto rows = [](Index i) { return 1 + i % 5; };
  const CsrMatrix a = with_nodes(random_matrix({.rows = 500, .per_row = 6, .seed = 323}), rows);
  const HostBlocks b = host_blocks(a, 8);
  for (Index i = 0, first = 0; i < 500; first += rows(i++))
    for (Index q = 1; q < rows(i); ++q)
      EXPECT_EQ(b.block[std::size_t(first + q)], b.block[std::size_t(first)]) << "node " << i;
  // Nodes that are larger than a block are cut.
  const HostBlocks pairs = host_blocks(a, 2);
  for (Index i = 0, first = 0; i < 500; first += rows(i++))
    for (Index q = 1; q < rows(i); q += 2)
      EXPECT_EQ(pairs.block[std::size_t(first + q)], pairs.block[std::size_t(first + q - 1)]) << "node " << i;
}

TEST(GrownBlocks, AreFullWhereRowsHaveMoreNeighboursThanOneCanKeepInMind) {
  // Some 73 neighbours a row, and those that a row is coupled to most are not the first.
  constexpr Index n = 3000, half = 40;
  CsrMatrix a;
  a.rows = a.cols = n;
  a.offsets.push_back(0);
  for (Index i = 0; i < n; ++i) {
    for (Index j = std::max<Index>(0, i - half); j <= std::min(n - 1, i + half); ++j)
      if (i == j || (i * 7 + j * 7) % 13 != 0) {
        a.columns.push_back(j);
        a.values.push_back(i == j ? 100.0 : -1.0 / (1 + std::abs(i - j)));
      }
    a.offsets.push_back(Offset(a.columns.size()));
  }
  ASSERT_TRUE(sparse::symmetry(a).pattern);
  const HostBlocks b = host_blocks(a, 8);
  ASSERT_EQ(b.box[0], 0);
  EXPECT_LT(std::set<Index>(b.block.begin(), b.block.end()).size(), n / 6);
}

TEST(BlockOrdering, StandsByColourThenBlockThenRow) {
  for (const BlockCase& c : block_cases()) {
    SCOPED_TRACE(c.name);
    const CsrMatrix graph = sparse::adjacency(c.a);
    for (const char* name : {"block-multicolour", "block-multicolour:5"}) {
      const schedule::Order order = schedule::order_by_name(name, c.a, graph);
      std::vector<Index> sorted = order;
      std::sort(sorted.begin(), sorted.end());
      ASSERT_EQ(sorted, natural_order(c.a.rows)) << "not a permutation";
      EXPECT_EQ(schedule::order_by_name(name, c.a, graph), order);
    }
    const HostBlocks b = blocks_on(exec::Host(1), c.a);
    if (!c.lattice) continue;
    const schedule::Order order = schedule::order_by_name("block-multicolour", c.a, graph);
    const auto key = [&](Index i) { return std::tuple{b.colour[std::size_t(i)], b.block[std::size_t(i)], i}; };
    for (std::size_t k = 1; k < order.size(); ++k) ASSERT_LT(key(order[k - 1]), key(order[k])) << "place " << k;
  }
}

/// The solver's ordering is told to look at the couplings (ordering.hpp), which on this matrix makes all the
/// difference.
TEST(BlockOrdering, LooksAtCouplingsWhereThePatternIsSymmetric) {
  const CsrMatrix grid = stretched(96, 40, 1, 100, 1, 0), a = permuted(grid, shuffled_order(grid.rows, 314));
  const HostBlocks b = host_blocks(a);
  const schedule::Order order = schedule::order_by_name("block-multicolour:32", a, a);
  const auto key = [&](Index i) { return std::tuple{b.colour[std::size_t(i)], b.block[std::size_t(i)], i}; };
  std::size_t out_of_place = 0;
  for (std::size_t k = 1; k < order.size(); ++k) out_of_place += !(key(order[k - 1]) < key(order[k]));
  EXPECT_EQ(out_of_place, 0u) << "the blocks are not those of the values";
}

int iterations(const std::string& system, const std::string& ordering) {
  const CsrMatrix a = generate(system);
  Options o;
  o.solver = "bicgstab";
  o.precond = "dilu";
  o.ordering = ordering;
  o.device = "host";
  o.threads = 2;
  Solver solver(o);
  solver.analyse(a);
  solver.factor(a);
  const std::vector<double> b = random_values(std::size_t(a.rows), 315);
  std::vector<double> x(b.size(), 0.0);
  const Result r = solver.solve(b, x);
  EXPECT_EQ(r.status, Status::converged) << system << ", " << ordering;
  EXPECT_LE(true_residual(a, x, b), 1e-8 * (1 + 1e-6));
  return r.iterations;
}

TEST(BlockOrdering, ConvergesNearlyAsNaturalOrderDoes) {
  for (const char* system : {"gen:convdiff3d:40x40x40", "gen:convdiff2d:150x150"}) {
    const int natural = iterations(system, "natural"), blocks = iterations(system, "block-multicolour");
    RecordProperty(system, fmt::format("natural {}, block-multicolour {}", natural, blocks));
    EXPECT_LE(blocks, 1.25 * natural) << system;
  }
}

}  // namespace
}  // namespace krilu::test
