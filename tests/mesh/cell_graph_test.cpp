// SPDX-License-Identifier: Apache-2.0
// The faces of each cell against lists that are filled face after face, on small graphs that are known and on large
// ones, in both orders of cells, whichever way the threads share them.
#include "mesh/cell_graph.hpp"

#include "krilu/error.hpp"
#include "support/support.hpp"

namespace krilu::test {

using namespace mesh;
namespace {

using Indices = std::vector<Index>;

struct Faces {
  Index cells = 0;
  Indices owner, neighbour;
};

void expect_faces_of_cells(const CellFaces& g, const Faces& m) {
  std::vector<Indices> face(static_cast<std::size_t>(m.cells)), cell(face);
  for (std::size_t f = 0; f < m.owner.size(); ++f) {
    const auto a = std::size_t(m.owner[f]), b = std::size_t(m.neighbour[f]);
    face[a].push_back(Index(f));
    cell[a].push_back(Index(b));
    face[b].push_back(Index(f));
    cell[b].push_back(Index(a));
  }
  ASSERT_EQ(g.cells(), m.cells);
  ASSERT_EQ(g.offsets[0], 0);
  ASSERT_EQ(g.face.size(), 2 * m.owner.size());
  ASSERT_EQ(g.cell.size(), 2 * m.owner.size());
  for (std::size_t c = 0; c < face.size(); ++c) {
    const auto begin = std::ptrdiff_t(g.offsets[c]), end = std::ptrdiff_t(g.offsets[c + 1]);
    ASSERT_EQ(Indices(g.face.begin() + begin, g.face.begin() + end), face[c]) << "cell " << c;
    ASSERT_EQ(Indices(g.cell.begin() + begin, g.cell.begin() + end), cell[c]) << "cell " << c;
  }
}

/// Each cell with up to three before it, at distances 1, `row` and `plane`; cells renamed by `name` unless it is empty.
Faces lattice(Index cells, Index row, Index plane, const Indices& name = {}) {
  Faces m;
  m.cells = cells;
  for (Index c = 0; c < cells; ++c)
    for (Index step : {1, row, plane}) {
      if (c < step) continue;
      m.owner.push_back(name.empty() ? c - step : name[std::size_t(c - step)]);
      m.neighbour.push_back(name.empty() ? c : name[std::size_t(c)]);
    }
  return m;
}

TEST(CellFaces, AreThoseOfASmallGraphInBothDirections) {
  const Faces m{4, {2, 0, 1}, {1, 3, 0}};
  const CellFaces g = cell_faces(exec::Host(1), m.cells, m.owner, m.neighbour);
  EXPECT_EQ(Indices(g.offsets.begin(), g.offsets.end()), (Indices{0, 2, 4, 5, 6}));
  EXPECT_EQ(Indices(g.face.begin(), g.face.end()), (Indices{1, 2, 0, 2, 0, 1}));
  EXPECT_EQ(Indices(g.cell.begin(), g.cell.end()), (Indices{3, 1, 2, 0, 1, 0}));
}

TEST(CellFaces, AreEmptyWithoutFacesAndWithoutCells) {
  for (Index cells : {0, 1, 5}) {
    const CellFaces g = cell_faces(exec::Host(2), cells, {}, {});
    EXPECT_EQ(g.cells(), cells);
    EXPECT_EQ(Indices(g.offsets.begin(), g.offsets.end()), Indices(std::size_t(cells) + 1, 0));
    EXPECT_TRUE(g.face.empty());
    EXPECT_TRUE(g.cell.empty());
  }
}

TEST(CellFaces, MayBeManyOfOneCellAndSeveralOfTheSameTwo) {
  Faces m{10001, {}, {}};
  for (Index c = 1; c < m.cells; ++c) {
    m.owner.push_back(c % 2 ? 0 : c);
    m.neighbour.push_back(c % 2 ? c : 0);
  }
  m.owner.insert(m.owner.end(), {17, 18, 17});
  m.neighbour.insert(m.neighbour.end(), {18, 17, 18});
  expect_faces_of_cells(cell_faces(exec::Host(2), m.cells, m.owner, m.neighbour), m);
}

TEST(CellFaces, AreTheSameOnLargeMeshesForAnyOrderAndAnyNumberOfThreads) {
  constexpr Index cells = 400003;  // faces enough for ranges, the last range not full
  for (const Indices& name : {Indices{}, random_names(cells, 7)}) {
    const Faces m = lattice(cells, 70, 4900, name);
    for (int threads : {1, 2, 3, 4, 7})
      expect_faces_of_cells(cell_faces(exec::Host(threads), m.cells, m.owner, m.neighbour), m);
  }
}

TEST(CellFaces, RefuseListsOfDifferentLengths) {
  const Indices owner{0, 1}, neighbour{1};
  EXPECT_THROW(cell_faces(exec::Host(1), 2, owner, neighbour), Error);
}

TEST(CellFaces, RefuseMoreFacesThanPositionsCount) {
  const Index none = 0;  // the count is looked at before any face
  const std::span<const Index> faces(&none, std::size_t(1) << 30);
  EXPECT_THROW(cell_faces(exec::Host(1), 2, faces, faces), Error);
}

}  // namespace
}  // namespace krilu::test
