// SPDX-License-Identifier: Apache-2.0
// Blocks of cells: for every way of renumbering each cell stands in one block of at most the size asked for, on meshes
// of all shapes, for any number of threads; cuts against those of boxes that are known; bisection against a slow one
// that sorts, planes of lattices that rounding or a random numbering must not tear, and the sequence within a block.
#include "mesh/cell_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>

#include "krilu/error.hpp"
#include "mesh/cell_graph.hpp"
#include "support/support.hpp"

namespace krilu::test {

using namespace mesh;
namespace {

constexpr Renumber ways[] = {Renumber::none, Renumber::bisection, Renumber::growth, Renumber::rcm, Renumber::metis};

/// A mesh of cells at these places with these faces, cell c under the name name[c].
Mesh mesh_of_cells(const std::vector<Vector3>& centre, const std::vector<std::pair<Index, Index>>& faces,
                   const schedule::Order& name) {
  Mesh m;
  m.cells = Index(centre.size());
  m.centre.resize(centre.size());
  m.volume.assign(centre.size(), 1.0);
  for (std::size_t c = 0; c < centre.size(); ++c) m.centre[std::size_t(name[c])] = centre[c];
  std::vector<std::pair<Index, Index>> named;
  for (const auto& [a, b] : faces) {
    const Index i = name[std::size_t(a)], j = name[std::size_t(b)];
    named.emplace_back(std::min(i, j), std::max(i, j));
  }
  std::sort(named.begin(), named.end());
  for (const auto& [a, b] : named) {
    m.owner.push_back(a);
    m.neighbour.push_back(b);
  }
  return m;
}

/// A box of unit cubes whose centres are moved by up to `noise` along each axis.
Mesh box_of_cubes(Index nx, Index ny, Index nz, const schedule::Order& name = {}, double noise = 0) {
  std::vector<Vector3> centre;
  std::vector<std::pair<Index, Index>> faces;
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> move(-noise, noise);
  for (Index z = 0; z < nz; ++z)
    for (Index y = 0; y < ny; ++y)
      for (Index x = 0; x < nx; ++x) {
        const auto i = Index(centre.size());
        centre.push_back({x + 0.5 + move(random), y + 0.5 + move(random), z + 0.5 + move(random)});
        if (x + 1 < nx) faces.emplace_back(i, i + 1);
        if (y + 1 < ny) faces.emplace_back(i, i + nx);
        if (z + 1 < nz) faces.emplace_back(i, i + nx * ny);
      }
  return mesh_of_cells(centre, faces, name.empty() ? natural_order(Index(centre.size())) : name);
}

void expect_blocks(const CellBlocks& b, const Mesh& m, Index most) {
  ASSERT_EQ(b.order.size(), std::size_t(m.cells));
  schedule::Order sorted = b.order;
  std::sort(sorted.begin(), sorted.end());
  ASSERT_EQ(sorted, natural_order(m.cells)) << "a cell is missing, or twice";
  ASSERT_FALSE(b.offsets.empty());
  ASSERT_EQ(b.offsets.front(), 0);
  ASSERT_EQ(b.offsets.back(), m.cells);
  for (std::size_t k = 1; k < b.offsets.size(); ++k) {
    ASSERT_LT(b.offsets[k - 1], b.offsets[k]) << "block " << k - 1 << " is empty";
    ASSERT_LE(b.offsets[k] - b.offsets[k - 1], most) << "block " << k - 1;
  }
}

std::vector<std::set<Index>> sets(const CellBlocks& b, const schedule::Order& rank = {}) {
  std::vector<std::set<Index>> s(static_cast<std::size_t>(b.blocks()));
  for (std::size_t k = 0; k < s.size(); ++k)
    for (auto i = std::size_t(b.offsets[k]); i < std::size_t(b.offsets[k + 1]); ++i)
      s[k].insert(rank.empty() ? b.order[i] : rank[std::size_t(b.order[i])]);
  return s;
}

/// Cut faces one by one, with the blocks as sets.
double cut_by_sets(const Mesh& m, const CellBlocks& b) {
  double cut = 0;
  const auto s = sets(b);
  for (std::size_t f = 0; f < m.owner.size(); ++f)
    cut += std::none_of(s.begin(), s.end(),
                        [&](const auto& block) { return block.count(m.owner[f]) && block.count(m.neighbour[f]); });
  return m.owner.empty() ? 0 : cut / double(m.owner.size());
}

/// The mean distance within a block between the two cells of a face.
double mean_distance(const Mesh& m, const CellBlocks& b) {
  const schedule::Order place = schedule::inverse(b.order);
  const Buffer<Index> block = block_of_cells(exec::Host(1), b);
  double sum = 0, faces = 0;
  for (std::size_t f = 0; f < m.owner.size(); ++f) {
    const auto i = std::size_t(m.owner[f]), j = std::size_t(m.neighbour[f]);
    if (block[i] != block[j]) continue;
    sum += std::abs(place[i] - place[j]);
    ++faces;
  }
  return sum / faces;
}

/// Meshes of every shape that may be met.
std::vector<std::pair<std::string, Mesh>> all_meshes() {
  std::vector<std::pair<std::string, Mesh>> meshes;
  meshes.emplace_back("no cells", Mesh{});
  meshes.emplace_back("one cell", mesh_of_cells({{1, 2, 3}}, {}, natural_order(1)));
  meshes.emplace_back("isolated cells", mesh_of_cells(std::vector<Vector3>(50, {1, 1, 1}), {}, shuffled_order(50, 5)));
  meshes.emplace_back("a row", box_of_cubes(301, 1, 1));
  meshes.emplace_back("a plane", box_of_cubes(40, 1, 25, shuffled_order(1000, 5)));
  meshes.emplace_back("a box", box_of_cubes(11, 12, 13));
  meshes.emplace_back("a box at random", box_of_cubes(11, 12, 13, shuffled_order(11 * 12 * 13, 5), 0.4));
  std::vector<Vector3> centre(10001, {0, 0, 0});
  std::vector<std::pair<Index, Index>> faces;
  for (Index c = 1; c < 10001; ++c) {
    centre[std::size_t(c)] = {std::cos(c), std::sin(c), 1e-9 * c};
    faces.emplace_back(0, c);
  }
  meshes.emplace_back("a cell with 10 000 faces", mesh_of_cells(centre, faces, shuffled_order(10001, 5)));
  centre.clear();
  faces.clear();
  for (Index c = 0; c < 700; ++c) {  // rows of 7, far from each other, and every second face twice
    centre.push_back({c % 7 + 1e6 * (c / 7), 0, 0});
    if (c % 7) faces.emplace_back(c - 1, c);
    if (c % 7 && c % 2) faces.emplace_back(c, c - 1);
  }
  meshes.emplace_back("many parts", mesh_of_cells(centre, faces, shuffled_order(700, 5)));
  return meshes;
}

TEST(CellBlocks, HoldEachCellOnceAndNoMoreThanAskedForAnyThreads) {
  for (const auto& [what, m] : all_meshes())
    for (Renumber how : ways)
      for (Index most : {1, 2, 3, 5, 64, 1000, 1 << 30}) {
        SCOPED_TRACE(what + " by " + renumber_names()[std::size_t(how)] + ", at most " + std::to_string(most));
        const CellBlocks one = cell_blocks(exec::Host(1), m, most, how);
        expect_blocks(one, m, most);
        const CellBlocks three = cell_blocks(exec::Host(3), m, most, how);
        EXPECT_EQ(three.order, one.order);
        EXPECT_EQ(three.offsets, one.offsets);
      }
}

TEST(CellBlocks, CountCutFacesAsSetsDo) {
  for (const auto& [what, m] : all_meshes())
    for (Renumber how : {Renumber::none, Renumber::growth}) {
      const CellBlocks b = cell_blocks(exec::Host(2), m, 300, how);
      EXPECT_EQ(cut_faces(exec::Host(1), m, b), cut_by_sets(m, b)) << what;
      EXPECT_EQ(cut_faces(exec::Host(3), m, b), cut_by_sets(m, b)) << what;
    }
}

TEST(CellBlocks, OfNoRenumberingAreEvenRanges) {
  const CellBlocks b = cell_blocks(exec::Host(1), box_of_cubes(10, 1, 1), 4, Renumber::none);
  EXPECT_EQ(b.order, natural_order(10));
  EXPECT_EQ(b.offsets, (std::vector<Index>{0, 3, 6, 10}));
}

TEST(CellBlocks, OfBisectionAreTheBoxesOfALattice) {
  const Mesh m = box_of_cubes(16, 8, 32);
  const CellBlocks b = cell_blocks(exec::Host(1), m, 64, Renumber::bisection);
  ASSERT_EQ(b.blocks(), 64);
  for (const std::set<Index>& block : sets(b)) {
    ASSERT_EQ(block.size(), 64u);
    const Index first = *block.begin();
    for (Index z = 0; z < 4; ++z)
      for (Index y = 0; y < 4; ++y)
        for (Index x = 0; x < 4; ++x) EXPECT_TRUE(block.count(first + x + 16 * y + 128 * z));
  }
  // Each half of the numbers is a half of the box.
  for (Index i = 0; i < m.cells; ++i)
    EXPECT_EQ(m.centre[std::size_t(b.order[std::size_t(i)])].z < 16, i < m.cells / 2) << i;
}

/// Cells sorted along the longest side, and then along the others, at every bisection.
void bisect_by_sorting(const Mesh& m, std::vector<Index> cells, Index blocks, std::vector<std::set<Index>>& result) {
  if (blocks == 1) {
    result.emplace_back(cells.begin(), cells.end());
    return;
  }
  const auto x = [&](Index c, std::size_t d) {
    const Vector3& v = m.centre[std::size_t(c)];
    return d == 0 ? v.x : d == 1 ? v.y : v.z;
  };
  std::vector<std::pair<double, std::size_t>> sides;  // longest first, the last axis first among equals
  for (std::size_t d = 0; d < 3; ++d) {
    const auto [low, high] =
        std::minmax_element(cells.begin(), cells.end(), [&](Index a, Index b) { return x(a, d) < x(b, d); });
    sides.emplace_back(-std::round(1e6 * (x(*high, d) - x(*low, d))), 2 - d);
  }
  std::sort(sides.begin(), sides.end());
  const auto key = [&](Index c) {
    return std::tuple(x(c, 2 - sides[0].second), x(c, 2 - sides[1].second), x(c, 2 - sides[2].second), c);
  };
  std::sort(cells.begin(), cells.end(), [&](Index a, Index b) { return key(a) < key(b); });
  const auto left = std::ptrdiff_t(std::int64_t(cells.size()) * (blocks / 2) / blocks);
  bisect_by_sorting(m, {cells.begin(), cells.begin() + left}, blocks / 2, result);
  bisect_by_sorting(m, {cells.begin() + left, cells.end()}, blocks - blocks / 2, result);
}

TEST(CellBlocks, OfBisectionAreThoseOfSortingAgainAndAgain) {
  for (const Mesh& m : {box_of_cubes(17, 23, 19), box_of_cubes(50, 3, 41, shuffled_order(50 * 3 * 41, 5)),
                        box_of_cubes(1, 60, 70), box_of_cubes(999, 1, 1)})
    for (Index most : {30, 100, 2000}) {
      std::vector<std::set<Index>> expected;
      bisect_by_sorting(m, natural_order(m.cells), (m.cells + most - 1) / most, expected);
      EXPECT_TRUE(sets(cell_blocks(exec::Host(2), m, most, Renumber::bisection)) == expected) << "at most " << most;
    }
}

TEST(CellBlocks, OfBisectionAreTheSameForAnyThreadsOnALargeMesh) {
  const Mesh m = box_of_cubes(61, 62, 63, shuffled_order(61 * 62 * 63, 5), 0.3);
  const CellBlocks one = cell_blocks(exec::Host(1), m, 500, Renumber::bisection);
  expect_blocks(one, m, 500);
  for (int threads : {2, 3, 5, 8}) {
    const CellBlocks b = cell_blocks(exec::Host(threads), m, 500, Renumber::bisection);
    EXPECT_EQ(b.order, one.order);
    EXPECT_EQ(b.offsets, one.offsets);
  }
}

TEST(CellBlocks, OfBisectionDoNotDependOnNumbersNorOnRounding) {
  constexpr Index nx = 33, ny = 32, nz = 31, cells = nx * ny * nz;
  const auto expected = sets(cell_blocks(exec::Host(1), box_of_cubes(nx, ny, nz), 1000, Renumber::bisection));
  const schedule::Order name = shuffled_order(cells, 5);
  for (double noise : {0.0, 1e-14, 1e-9, 1e-6}) {
    const CellBlocks b = cell_blocks(exec::Host(1), box_of_cubes(nx, ny, nz, name, noise), 1000, Renumber::bisection);
    EXPECT_TRUE(sets(b, schedule::inverse(name)) == expected) << "centres moved by " << noise;
  }
}

TEST(CellBlocks, OfBisectionDivideLayersThatCrowdAtAWall) {
  // Layers grow by a quarter each: half of them stand in the first of 800 parts of the height.
  Mesh m = box_of_cubes(12, 60, 12, shuffled_order(12 * 60 * 12, 5));
  for (Vector3& v : m.centre) v = {30 * v.x, 0.1 * std::pow(1.25, v.y), 30 * v.z};
  const CellBlocks halves = cell_blocks(exec::Host(1), m, 12 * 30 * 12, Renumber::bisection);
  EXPECT_EQ(cut_faces(exec::Host(1), m, halves) * m.faces(), 12 * 12);
  // Where a layer itself is divided, coordinates that crowd are taken for equal, at little cost.
  std::vector<std::set<Index>> expected;
  bisect_by_sorting(m, natural_order(m.cells), 27, expected);
  CellBlocks sorted;
  for (const std::set<Index>& block : expected) {
    sorted.offsets.push_back(Index(sorted.order.size()));
    sorted.order.insert(sorted.order.end(), block.begin(), block.end());
  }
  sorted.offsets.push_back(m.cells);
  const CellBlocks b = cell_blocks(exec::Host(1), m, 320, Renumber::bisection);
  EXPECT_LT(cut_faces(exec::Host(1), m, b), 1.05 * cut_faces(exec::Host(1), m, sorted));
}

TEST(CellBlocks, KeepTheOwnSequenceUnlessItIsPoor) {
  const Mesh own = box_of_cubes(40, 40, 40);
  const CellBlocks b = cell_blocks(exec::Host(1), own, 1000, Renumber::bisection);
  for (std::size_t k = 0; k < std::size_t(b.blocks()); ++k)
    EXPECT_TRUE(std::is_sorted(b.order.begin() + b.offsets[k], b.order.begin() + b.offsets[k + 1])) << "block " << k;
  const Mesh random = box_of_cubes(40, 40, 40, shuffled_order(40 * 40 * 40, 5));
  const CellBlocks r = cell_blocks(exec::Host(1), random, 1000, Renumber::bisection);
  EXPECT_LT(mean_distance(random, r), 1.01 * mean_distance(own, b));
  const CellBlocks metis = cell_blocks(exec::Host(1), random, 1000, Renumber::metis);
  EXPECT_LT(mean_distance(random, metis), 3 * mean_distance(own, b));
}

TEST(CellBlocks, CutFewFaces) {
  constexpr Index n = 48, most = 1728;  // 64 cubes of 12 at best
  const double cubes = 3.0 * 3 / (3 * (n - 1));
  for (const schedule::Order& name : {natural_order(n * n * n), shuffled_order(n * n * n, 5)}) {
    const Mesh m = box_of_cubes(n, n, n, name);
    const auto cut = [&](Renumber how) {
      return cut_faces(exec::Host(2), m, cell_blocks(exec::Host(2), m, most, how));
    };
    EXPECT_NEAR(cut(Renumber::bisection), cubes, 1e-12);
    EXPECT_LT(cut(Renumber::growth), 1.5 * cubes);
    EXPECT_LT(cut(Renumber::metis), 1.5 * cubes);
    EXPECT_LT(cut(Renumber::rcm), 0.8);
  }
}

TEST(CellBlocks, OfGrowthLeaveFewSmallOnes) {
  for (const schedule::Order& name : {natural_order(60 * 60 * 60), shuffled_order(60 * 60 * 60, 5)}) {
    const CellBlocks b = cell_blocks(exec::Host(1), box_of_cubes(60, 60, 60, name), 1024, Renumber::growth);
    EXPECT_LE(b.blocks(), 216 * 1.05);
    Index small = 0;
    for (std::size_t k = 1; k < b.offsets.size(); ++k) small += b.offsets[k] - b.offsets[k - 1] < 256;
    EXPECT_LE(small, 1);
  }
}

TEST(CellBlocks, OfGrowthFillUpWithIsolatedCells) {
  const CellBlocks b = cell_blocks(
      exec::Host(1), mesh_of_cells(std::vector<Vector3>(100, {0, 0, 0}), {}, natural_order(100)), 40, Renumber::growth);
  EXPECT_EQ(b.offsets, (std::vector<Index>{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}));
}

TEST(CellBlocks, RefuseWhatCannotBe) {
  Mesh m = box_of_cubes(3, 3, 3);
  EXPECT_THROW(cell_blocks(exec::Host(1), m, 0, Renumber::none), Error);
  EXPECT_THROW(cell_blocks(exec::Host(1), m, -7, Renumber::growth), Error);
  m.volume.clear();
  m.centre.clear();
  EXPECT_THROW(cell_blocks(exec::Host(1), m, 4, Renumber::bisection), Error);
  expect_blocks(cell_blocks(exec::Host(1), m, 4, Renumber::growth), m, 4);
}

TEST(CellBlocks, AreAskedForByName) {
  for (Renumber how : ways) EXPECT_EQ(renumber_by_name(renumber_names()[std::size_t(how)]), how);
  EXPECT_THROW(renumber_by_name("bisect"), Error);
  EXPECT_THROW(renumber_by_name(""), Error);
}

}  // namespace
}  // namespace krilu::test
