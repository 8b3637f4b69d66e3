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

/// What is due: lists that are filled face after face, one behind the other.
struct Lists {
  explicit Lists(const Faces& m) {
    std::vector<Indices> faces(static_cast<std::size_t>(m.cells)), cells(faces);
    for (std::size_t f = 0; f < m.owner.size(); ++f) {
      const auto a = std::size_t(m.owner[f]), b = std::size_t(m.neighbour[f]);
      faces[a].push_back(Index(f));
      cells[a].push_back(Index(b));
      faces[b].push_back(Index(f));
      cells[b].push_back(Index(a));
    }
    for (std::size_t c = 0; c < faces.size(); ++c) {
      face.insert(face.end(), faces[c].begin(), faces[c].end());
      cell.insert(cell.end(), cells[c].begin(), cells[c].end());
      offsets.push_back(Index(face.size()));
    }
  }
  Indices offsets{0}, face, cell;
};

void expect_lists(const CellFaces& g, const Lists& due) {
  const auto expect = [](const char* what, const auto& got, const Indices& list) {
    ASSERT_EQ(got.size(), list.size()) << what;
    const auto differ = std::mismatch(list.begin(), list.end(), got.begin());
    EXPECT_TRUE(differ.first == list.end()) << what << " " << differ.first - list.begin();
  };
  expect("offset", g.offsets, due.offsets);
  expect("face", g.face, due.face);
  expect("cell", g.cell, due.cell);
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
  expect_lists(cell_faces(exec::Host(2), m.cells, m.owner, m.neighbour), Lists(m));
}

TEST(CellFaces, AreTheSameOnLargeMeshesForAnyOrderAndAnyNumberOfThreads) {
  constexpr Index cells = 400003;  // faces enough for ranges, the last range not full
  for (const Indices& name : {Indices{}, shuffled_order(cells, 7)}) {
    const Faces m = lattice(cells, 70, 4900, name);
    const Lists due(m);
    for (int threads : {1, 2, 3, 4, 7})
      expect_lists(cell_faces(exec::Host(threads), m.cells, m.owner, m.neighbour), due);
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
