// SPDX-License-Identifier: Apache-2.0
// Meshes with their cells in another order, against a sort of all faces by a comparison: connections, areas and centres
// go along, faces stand in upper triangular order, and the way back gives the mesh that there was.
#include "mesh/renumbered.hpp"

#include <algorithm>
#include <random>

#include "krilu/error.hpp"
#include "mesh_checks.hpp"
#include "support/support.hpp"

namespace krilu::test {

using namespace mesh;
namespace {

/// Random pairs of cells, the lower one first or not, some of them several times; all geometry is random too.
Mesh random_mesh(Index cells, std::size_t faces, std::size_t boundary, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_int_distribution<Index> cell(0, cells - 1);
  std::uniform_real_distribution<double> value(0.1, 1);
  const auto vector = [&] { return Vector3{value(engine), value(engine), value(engine)}; };
  Mesh m;
  m.cells = cells;
  while (m.owner.size() < faces) {
    const Index o = cell(engine) % 7 == 0 ? 0 : cell(engine), n = cell(engine);  // cell 0 has many
    for (int times = o % 11 == 1 ? 2 : 1; o != n && times > 0; --times) {
      m.owner.push_back(o);
      m.neighbour.push_back(n);
      m.area.push_back(vector());
      m.face_centre.push_back(vector());
    }
  }
  for (Index c = 0; c < cells; ++c) {
    m.centre.push_back(vector());
    m.volume.push_back(value(engine));
  }
  for (std::size_t b = 0; b < boundary; ++b) {
    m.boundary.push_back(cell(engine));
    m.boundary_area.push_back(vector());
    m.boundary_centre.push_back(vector());
  }
  m.patches = {{"all", "wall", 0, Index(boundary)}};
  return m;
}

Mesh reference(const Mesh& m, schedule::Order order) {
  if (order.empty()) order = natural_order(m.cells);
  const schedule::Order rank = schedule::inverse(order);
  struct Face {
    Index owner, neighbour;
    Vector3 area, centre;
  };
  std::vector<Face> faces;
  for (std::size_t f = 0; f < m.owner.size(); ++f) {
    Face face{rank[std::size_t(m.owner[f])], rank[std::size_t(m.neighbour[f])], m.area[f], m.face_centre[f]};
    if (face.owner > face.neighbour) {
      std::swap(face.owner, face.neighbour);
      face.area = -face.area;
    }
    faces.push_back(face);
  }
  std::stable_sort(faces.begin(), faces.end(), [](const Face& a, const Face& b) {
    return std::pair(a.owner, a.neighbour) < std::pair(b.owner, b.neighbour);
  });
  Mesh out;
  out.cells = m.cells;
  out.patches = m.patches;
  for (const Face& f : faces) {
    out.owner.push_back(f.owner);
    out.neighbour.push_back(f.neighbour);
    out.area.push_back(f.area);
    out.face_centre.push_back(f.centre);
  }
  for (Index c : order) {
    out.centre.push_back(m.centre[std::size_t(c)]);
    out.volume.push_back(m.volume[std::size_t(c)]);
  }
  for (Index c : m.boundary) out.boundary.push_back(rank[std::size_t(c)]);
  out.boundary_area = m.boundary_area;
  out.boundary_centre = m.boundary_centre;
  return out;
}

TEST(Renumbered, IsWhatASortOfAllFacesGivesForAnyNumberOfThreads) {
  for (int threads : {1, 3}) {
    const exec::Host host(threads);
    for (const auto& [cells, faces] : {std::pair<Index, std::size_t>(2, 1), {3, 40}, {500, 1500}, {9000, 40000}}) {
      const Mesh m = random_mesh(cells, faces, 2 * std::size_t(cells), 17);
      for (const schedule::Order& order : {shuffled_order(cells, 5), schedule::Order{}}) {
        const Mesh r = renumbered(host, m, order);
        EXPECT_NO_THROW(require_valid(r));
        expect_upper_triangular_order(r);
        EXPECT_TRUE(same_bits(r, reference(m, order))) << cells << " cells, " << threads << " threads";
      }
    }
  }
}

TEST(Renumbered, GeneratedMeshesStayClosed) {
  for (const char* text : {"mesh:box:5x4x3", "mesh:tetrahedra:3x2x4", "mesh:triangles:5x4"}) {
    const Mesh m = generate_mesh(text);
    const Mesh r = renumbered(exec::Host(2), m, shuffled_order(m.cells, 3));
    expect_closed_cells(r);
    expect_upper_triangular_order(r);
  }
}

TEST(Renumbered, ThereAndBackIsTheSameMesh) {
  const Mesh m = renumbered(exec::Host(2), random_mesh(700, 2000, 90, 4), {});
  const schedule::Order order = shuffled_order(m.cells, 8);
  const Mesh r = renumbered(exec::Host(2), m, order);
  EXPECT_FALSE(same_bits(r, m));
  EXPECT_TRUE(same_bits(renumbered(exec::Host(2), r, schedule::inverse(order)), m));
}

TEST(Renumbered, MeshesWithoutGeometryOrFacesOrCells) {
  Mesh m = random_mesh(50, 200, 20, 9);
  const Mesh with = renumbered(exec::Host(2), m, shuffled_order(50, 2));
  m.centre = m.face_centre = m.area = m.boundary_centre = m.boundary_area = {};
  m.volume = {};
  const Mesh without = renumbered(exec::Host(2), m, shuffled_order(50, 2));
  EXPECT_TRUE(same_bits(without.owner, with.owner));
  EXPECT_TRUE(same_bits(without.neighbour, with.neighbour));
  EXPECT_TRUE(same_bits(without.boundary, with.boundary));
  EXPECT_FALSE(without.has_geometry());

  Mesh apart;
  apart.cells = 3;
  EXPECT_EQ(renumbered(exec::Host(1), apart, {2, 0, 1}).cells, 3);
  EXPECT_EQ(renumbered(exec::Host(1), Mesh{}, {}).cells, 0);
}

TEST(Renumbered, RefusesWhatIsNoOrderOfTheCells) {
  const Mesh m = generate_mesh("mesh:box:3x1x1");
  const auto sentence = [&](const schedule::Order& order) -> std::string {
    try {
      renumbered(exec::Host(1), m, order);
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(sentence({2, 1, 0}), "accepted");
  EXPECT_EQ(sentence({1, 0}), "an order of 2 cells for a mesh of 3: it must have each cell once");
  EXPECT_EQ(sentence({1, 0, 3}), "place 2 of the order has cell 3, but cells are numbered 0 to 2");
  EXPECT_EQ(sentence({-1, 0, 1}), "place 0 of the order has cell -1, but cells are numbered 0 to 2");
  EXPECT_EQ(sentence({2, 0, 2}), "cell 2 stands twice in the order, at places 0 and 2");
}

}  // namespace
}  // namespace krilu::test
