// SPDX-License-Identifier: Apache-2.0
// Generated meshes: small boxes number by number; tetrahedra and triangles against faces found by comparing corners,
// and corners worked out from the centres; orders; the same bits for any number of threads; what is refused.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "krilu/error.hpp"
#include "mesh_checks.hpp"

namespace krilu::test {
namespace {

std::vector<Index> list(const Buffer<Index>& b) { return {b.begin(), b.end()}; }

std::string sentence(const std::string& text) {
  try {
    generate_mesh(text);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

void expect_patches(const Mesh& m, const std::vector<std::pair<std::string, Index>>& due) {
  ASSERT_EQ(m.patches.size(), due.size());
  Index first = 0;
  for (std::size_t p = 0; p < due.size(); ++p) {
    const Patch& patch = m.patches[p];
    EXPECT_EQ(patch.name, due[p].first);
    EXPECT_EQ(patch.faces, due[p].second) << patch.name;
    EXPECT_EQ(patch.first, first) << patch.name;
    EXPECT_EQ(patch.type, patch.name == "front" || patch.name == "back" ? "empty" : "patch");
    first += patch.faces;
  }
  EXPECT_EQ(std::size_t(first), m.boundary.size());
}

double total_volume(const Mesh& m) {
  double sum = 0;
  for (double v : m.volume) sum += v;
  return sum;
}

TEST(GenerateBox, OneCell) {
  const Mesh m = generate_mesh("mesh:box:1x1x1");
  EXPECT_EQ(m.cells, 1);
  EXPECT_EQ(m.faces(), 0);
  expect_near(m.centre[0], {0.5, 0.5, 0.5}, 0);
  EXPECT_EQ(m.volume[0], 1);
  expect_patches(m, {{"xmin", 1}, {"xmax", 1}, {"ymin", 1}, {"ymax", 1}, {"zmin", 1}, {"zmax", 1}});
  const std::vector<Vector3> normals{{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
  for (std::size_t s = 0; s < 6; ++s) {
    EXPECT_EQ(m.boundary[s], 0);
    expect_near(m.boundary_area[s], normals[s], 0);
    expect_near(m.boundary_centre[s], m.centre[0] + 0.5 * normals[s], 0);
  }
}

TEST(GenerateBox, TwoCells) {
  const Mesh m = generate_mesh("mesh:box:2x1x1");
  EXPECT_EQ(m.cells, 2);
  EXPECT_EQ(list(m.owner), std::vector<Index>{0});
  EXPECT_EQ(list(m.neighbour), std::vector<Index>{1});
  expect_near(m.area[0], {0.25, 0, 0}, 0);
  expect_near(m.face_centre[0], {0.5, 0.25, 0.25}, 0);
  expect_near(m.centre[1], {0.75, 0.25, 0.25}, 0);
  EXPECT_EQ(m.volume[0], 0.125);
  EXPECT_EQ(m.volume[1], 0.125);
  EXPECT_EQ(list(m.boundary), (std::vector<Index>{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}));
  expect_patches(m, {{"xmin", 1}, {"xmax", 1}, {"ymin", 2}, {"ymax", 2}, {"zmin", 2}, {"zmax", 2}});
}

TEST(GenerateBox, EightCells) {
  const Mesh m = generate_mesh("mesh:box:2x2x2");
  EXPECT_EQ(m.cells, 8);
  EXPECT_EQ(list(m.owner), (std::vector<Index>{0, 0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 6}));
  EXPECT_EQ(list(m.neighbour), (std::vector<Index>{1, 2, 4, 3, 5, 3, 6, 7, 5, 6, 7, 7}));
  const Vector3 x{0.25, 0, 0}, y{0, 0.25, 0}, z{0, 0, 0.25};
  const std::vector<Vector3> areas{x, y, z, y, z, x, z, z, x, y, y, x};
  for (std::size_t f = 0; f < 12; ++f) expect_near(m.area[f], areas[f], 0);
  expect_near(m.face_centre[7], {0.75, 0.75, 0.5}, 0);
  for (double v : m.volume) EXPECT_EQ(v, 0.125);
  EXPECT_EQ(list(m.boundary),
            (std::vector<Index>{0, 2, 4, 6, 1, 3, 5, 7, 0, 1, 4, 5, 2, 3, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(GenerateBox, FacesJoinTheNeighboursInAnyShapeOfBox) {
  for (const auto& [text, nx, ny, nz] :
       std::vector<std::tuple<std::string, Index, Index, Index>>{{"mesh:box:4x3x2", 4, 3, 2},
                                                                 {"mesh:box:1x5x3", 1, 5, 3},
                                                                 {"mesh:box:3x1x4", 3, 1, 4},
                                                                 {"mesh:box:5x2x1", 5, 2, 1},
                                                                 {"mesh:box:1x1x6", 1, 1, 6},
                                                                 {"mesh:box:17x16x15", 17, 16, 15}}) {
    SCOPED_TRACE(text);
    std::vector<Index> owner, neighbour;
    for (Index c = 0; c < nx * ny * nz; ++c) {
      const Index i = c % nx, j = c / nx % ny, k = c / (nx * ny);
      const auto join = [&](bool there, Index other) {
        if (!there) return;
        owner.push_back(c);
        neighbour.push_back(other);
      };
      join(i + 1 < nx, c + 1);
      join(j + 1 < ny, c + nx);
      join(k + 1 < nz, c + nx * ny);
    }
    const Mesh m = generate_mesh(text);
    EXPECT_EQ(list(m.owner), owner);
    EXPECT_EQ(list(m.neighbour), neighbour);
    require_valid(m);
    expect_upper_triangular_order(m);
    expect_closed_cells(m);
    EXPECT_EQ(faces_of_cells(m), std::vector<int>(std::size_t(nx * ny * nz), 6));
    const double side = 1.0 / std::max({nx, ny, nz});
    EXPECT_NEAR(total_volume(m), nx * ny * nz * side * side * side, 1e-13);
    for (std::size_t f = 0; f < owner.size(); ++f) {
      const Vector3 apart = m.centre[std::size_t(neighbour[f])] - m.centre[std::size_t(owner[f])];
      expect_near(apart, (1 / side) * m.area[f], 1e-15);
      expect_near(0.5 * (m.centre[std::size_t(neighbour[f])] + m.centre[std::size_t(owner[f])]), m.face_centre[f],
                  1e-15);
    }
  }
}

/// Simplices by the corners' numbers in a lattice: all faces by comparing corners, and the corners' places, which the
/// centres of a cell and of its faces give away.
struct Simplices {
  std::vector<std::vector<int>> corners;                    // of each cell
  std::map<std::vector<int>, std::vector<Index>> cells_of;  // of each face, by its corners, ascending

  explicit Simplices(std::vector<std::vector<int>> all) : corners(std::move(all)) {
    for (std::size_t c = 0; c < corners.size(); ++c)
      for (int left_out : corners[c]) cells_of[face_without(c, left_out)].push_back(Index(c));
  }
  std::vector<int> face_without(std::size_t cell, int left_out) const {
    std::vector<int> face;
    for (int v : corners[cell])
      if (v != left_out) face.push_back(v);
    std::sort(face.begin(), face.end());
    return face;
  }
  /// Owner, neighbour and corners of the internal faces in upper triangular order; the faces of the boundary.
  std::map<std::pair<Index, Index>, std::vector<int>> internal() const {
    std::map<std::pair<Index, Index>, std::vector<int>> faces;
    for (const auto& [face, cells] : cells_of)
      if (cells.size() == 2) faces[{cells[0], cells[1]}] = face;
    return faces;
  }
  std::multiset<Index> boundary() const {
    std::multiset<Index> cells;
    for (const auto& [face, of] : cells_of)
      if (of.size() == 1) cells.insert(of[0]);
    return cells;
  }
};

/// Six tetrahedra a cube: paths from its first corner to its last, in lexicographic sequence of their directions.
Simplices kuhn(int nx, int ny, int nz) {
  std::vector<std::vector<int>> cells;
  const int step[] = {1, nx + 1, (nx + 1) * (ny + 1)};
  for (int k = 0; k < nz; ++k)
    for (int j = 0; j < ny; ++j)
      for (int i = 0; i < nx; ++i) {
        int way[] = {0, 1, 2};
        do {
          std::vector<int> cell{i + j * step[1] + k * step[2]};
          for (int d : way) cell.push_back(cell.back() + step[d]);
          cells.push_back(cell);
        } while (std::next_permutation(way, way + 3));
      }
  return Simplices(cells);
}

Simplices halved_squares(int nx, int ny) {
  std::vector<std::vector<int>> cells;
  for (int j = 0; j < ny; ++j)
    for (int i = 0; i < nx; ++i) {
      const int c = i + j * (nx + 1);
      cells.push_back({c, c + 1, c + nx + 2});
      cells.push_back({c, c + nx + 1, c + nx + 2});
    }
  return Simplices(cells);
}

/// Cells and faces against the reference. `corner` gets the place of each corner by its number: c being the centre of a
/// simplex of n corners and f that of a face, the corner opposite is n c - (n - 1) f; all cells must agree.
void expect_simplices(const Mesh& m, const Simplices& s, std::map<int, Vector3>& corner) {
  ASSERT_EQ(std::size_t(m.cells), s.corners.size());
  const auto internal = s.internal();
  ASSERT_EQ(m.owner.size(), internal.size());
  const double n = double(s.corners[0].size());
  const auto look_at = [&](Index cell, const std::vector<int>& face, const Vector3& centre) {
    for (int v : s.corners[std::size_t(cell)]) {
      if (std::find(face.begin(), face.end(), v) != face.end()) continue;
      const Vector3 at = n * m.centre[std::size_t(cell)] - (n - 1) * centre;
      const auto [known, first] = corner.insert({v, at});
      if (!first) expect_near(at, known->second, 1e-14);
    }
  };
  std::size_t f = 0;
  for (const auto& [cells, face] : internal) {
    ASSERT_EQ(m.owner[f], cells.first) << "face " << f;
    ASSERT_EQ(m.neighbour[f], cells.second) << "face " << f;
    look_at(cells.first, face, m.face_centre[f]);
    look_at(cells.second, face, m.face_centre[f]);
    ++f;
  }
}

/// Inner corners are moved, by up to 0.2 sides; the others are not. Returns the farthest move.
double expect_moved_corners(const std::map<int, Vector3>& corner, std::array<int, 3> size, double side) {
  double most = 0;
  for (const auto& [v, at] : corner) {
    std::array<int, 3> p{v % (size[0] + 1), v / (size[0] + 1) % (size[1] + 1), v / ((size[0] + 1) * (size[1] + 1))};
    bool inner = true;
    for (std::size_t d = 0; d < 3; ++d) inner = inner && (size[d] == 0 || (p[d] > 0 && p[d] < size[d]));
    const Vector3 still{side * p[0], side * p[1], size[2] == 0 ? at.z : side * p[2]};
    const double moved = length(at - still) / side;
    most = std::max(most, moved);
    if (inner) {
      EXPECT_GT(moved, 1e-4);
      EXPECT_LT(moved, 0.2 + 1e-12);
    } else {
      EXPECT_LT(moved, 1e-13);
    }
  }
  return most;
}

TEST(GenerateTetrahedra, AreThoseOfAComparisonOfCorners) {
  for (const auto& [text, nx, ny, nz] :
       std::vector<std::tuple<std::string, int, int, int>>{{"mesh:tetrahedra:4x3x5", 4, 3, 5},
                                                           {"mesh:tetrahedra:2x2x2", 2, 2, 2},
                                                           {"mesh:tetrahedra:1x1x1", 1, 1, 1},
                                                           {"mesh:tetrahedra:1x4x2", 1, 4, 2},
                                                           {"mesh:tetrahedra:3x1x2", 3, 1, 2},
                                                           {"mesh:tetrahedra:2x3x1", 2, 3, 1}}) {
    SCOPED_TRACE(text);
    const Mesh m = generate_mesh(text);
    const Simplices s = kuhn(nx, ny, nz);
    std::map<int, Vector3> corner;
    expect_simplices(m, s, corner);
    EXPECT_EQ(std::multiset<Index>(m.boundary.begin(), m.boundary.end()), s.boundary());
    require_valid(m);
    expect_upper_triangular_order(m);
    expect_closed_cells(m);
    EXPECT_EQ(faces_of_cells(m), std::vector<int>(std::size_t(m.cells), 4));
    const double side = 1.0 / std::max({nx, ny, nz});
    EXPECT_NEAR(total_volume(m), nx * ny * nz * side * side * side, 1e-13);
    expect_patches(m, {{"xmin", 2 * ny * nz},
                       {"xmax", 2 * ny * nz},
                       {"ymin", 2 * nx * nz},
                       {"ymax", 2 * nx * nz},
                       {"zmin", 2 * nx * ny},
                       {"zmax", 2 * nx * ny}});
    const double moved = expect_moved_corners(corner, {nx, ny, nz}, side);
    if (nx > 3) {
      EXPECT_GT(moved, 0.15);
    }

    std::size_t f = 0;
    int looked_at = 0;
    for (const auto& [cells, face] : s.internal()) {
      const std::size_t own = f++;
      if (!corner.count(face[0]) || !corner.count(face[1]) || !corner.count(face[2])) continue;  // opposite to none
      const Vector3 a = corner[face[0]], b = corner[face[1]], c = corner[face[2]];
      Vector3 area = 0.5 * cross(b - a, c - a);
      const Vector3 outwards = m.centre[std::size_t(cells.second)] - m.centre[std::size_t(cells.first)];
      if (dot(area, outwards) < 0) area = -area;
      expect_near(m.area[own], area, 1e-14);
      expect_near(m.face_centre[own], (1.0 / 3) * (a + b + c), 1e-14);
      ++looked_at;
    }
    if (nx > 1 && ny > 1 && nz > 1) {
      EXPECT_EQ(looked_at, m.faces());
    }
  }
}

TEST(GenerateTetrahedra, SidesOfTheBoxAreFlatAndWhole) {
  const Mesh m = generate_mesh("mesh:tetrahedra:4x3x2");
  const Vector3 box{1, 0.75, 0.5};
  const std::vector<Vector3> areas{{-0.375, 0, 0}, {0.375, 0, 0}, {0, -0.5, 0},
                                   {0, 0.5, 0},    {0, 0, -0.75}, {0, 0, 0.75}};
  for (std::size_t s = 0; s < 6; ++s) {
    Vector3 sum{0, 0, 0};
    for (Index b = m.patches[s].first; b < m.patches[s].first + m.patches[s].faces; ++b) {
      sum += m.boundary_area[std::size_t(b)];
      const Vector3& at = m.boundary_centre[std::size_t(b)];
      const double place = s / 2 == 0 ? at.x : s / 2 == 1 ? at.y : at.z;
      EXPECT_NEAR(place, s % 2 == 0 ? 0 : s / 2 == 0 ? box.x : s / 2 == 1 ? box.y : box.z, 1e-15);
      if (b > m.patches[s].first) {
        EXPECT_LE(m.boundary[std::size_t(b) - 1], m.boundary[std::size_t(b)]);
      }
    }
    expect_near(sum, areas[s], 1e-14);
  }
}

TEST(GenerateTetrahedra, NoneIsTurnedInsideOut) {
  const Mesh m = generate_mesh("mesh:tetrahedra:40x40x40");
  const auto [least, most] = std::minmax_element(m.volume.begin(), m.volume.end());
  const double even = 1.0 / (6 * 40.0 * 40 * 40);
  EXPECT_GT(*least, 0.02 * even);  // (1 - 0.4 sqrt 3)^3 of it
  EXPECT_LT(*most, 5 * even);
  EXPECT_LT(*least, 0.7 * even) << "corners are moved";
  EXPECT_NEAR(total_volume(m), 1, 1e-11);
}

TEST(GenerateTriangles, AreThoseOfAComparisonOfCorners) {
  for (const auto& [text, nx, ny] : std::vector<std::tuple<std::string, int, int>>{{"mesh:triangles:6x5", 6, 5},
                                                                                   {"mesh:triangles:1x1", 1, 1},
                                                                                   {"mesh:triangles:1x4", 1, 4},
                                                                                   {"mesh:triangles:3x1", 3, 1}}) {
    SCOPED_TRACE(text);
    const Mesh m = generate_mesh(text);
    const Simplices s = halved_squares(nx, ny);
    std::map<int, Vector3> corner;
    expect_simplices(m, s, corner);
    require_valid(m);
    expect_upper_triangular_order(m);
    expect_closed_cells(m);
    EXPECT_EQ(faces_of_cells(m), std::vector<int>(std::size_t(m.cells), 5)) << "three and front and back";
    const double side = 1.0 / std::max(nx, ny);
    EXPECT_NEAR(total_volume(m), nx * ny * side * side, 1e-13);
    expect_patches(m, {{"xmin", ny}, {"xmax", ny}, {"ymin", nx}, {"ymax", nx}, {"back", m.cells}, {"front", m.cells}});
    std::multiset<Index> sides(m.boundary.begin(), m.boundary.begin() + m.patches[4].first);
    EXPECT_EQ(sides, s.boundary());
    const double moved = expect_moved_corners(corner, {nx, ny, 0}, side);
    if (nx > 4) {
      EXPECT_GT(moved, 0.15);
    }
    for (const Vector3& c : m.centre) EXPECT_EQ(c.z, 0.5);
    for (Index c = 0; c < m.cells; ++c) {
      for (int front : {0, 1}) {
        const auto b = std::size_t(m.patches[std::size_t(4 + front)].first + c);
        EXPECT_EQ(m.boundary[b], c);
        EXPECT_EQ(m.boundary_centre[b].z, front);
        expect_near(m.boundary_area[b], {0, 0, (front ? 1 : -1) * m.volume[std::size_t(c)]}, 1e-16);
      }
    }
  }
}

/// Cells by their centres, and the faces between them: what a renumbering must keep.
std::map<std::vector<double>, std::vector<double>> connections(const Mesh& m) {
  std::map<std::vector<double>, std::vector<double>> all;
  const auto key = [](const Vector3& a, const Vector3& b) { return std::vector<double>{a.x, a.y, a.z, b.x, b.y, b.z}; };
  for (std::size_t f = 0; f < m.owner.size(); ++f) {
    const auto o = std::size_t(m.owner[f]), n = std::size_t(m.neighbour[f]);
    const Vector3 &a = m.area[f], &c = m.face_centre[f];
    all[key(m.centre[o], m.centre[n])] = {a.x, a.y, a.z, c.x, c.y, c.z, m.volume[o], m.volume[n]};
    all[key(m.centre[n], m.centre[o])] = {0 - a.x, 0 - a.y, 0 - a.z, c.x, c.y, c.z, m.volume[n], m.volume[o]};
  }
  return all;
}

TEST(GenerateOrders, AreTheSameMeshInAnotherSequence) {
  for (const std::string text : {"mesh:box:13x12x11", "mesh:tetrahedra:7x6x5", "mesh:triangles:31x29"}) {
    const Mesh natural = generate_mesh(text);
    EXPECT_TRUE(same_bits(generate_mesh(text + ":natural"), natural));
    for (const char* order : {":random", ":random:7", ":shuffled", ":shuffled:7"}) {
      SCOPED_TRACE(text + order);
      const Mesh m = generate_mesh(text + order);
      EXPECT_FALSE(same_bits(m.owner, natural.owner));
      require_valid(m);
      expect_upper_triangular_order(m);
      expect_closed_cells(m);
      EXPECT_EQ(connections(m), connections(natural));
    }
    EXPECT_TRUE(same_bits(generate_mesh(text + ":random:1"), generate_mesh(text + ":random"))) << "the seed is 1";
    EXPECT_FALSE(same_bits(generate_mesh(text + ":random:2"), generate_mesh(text + ":random")));
    EXPECT_FALSE(same_bits(generate_mesh(text + ":shuffled:7"), generate_mesh(text + ":shuffled:8")));
  }
}

/// Old cells in their new order, by the centres of a row of cells.
std::vector<int> old_cells(const std::string& order) {
  std::vector<int> cells;
  for (const Vector3& c : generate_mesh("mesh:box:1000x1x1:" + order).centre) cells.push_back(int(c.x * 1000));
  return cells;
}

TEST(GenerateOrders, RandomLeavesNothingInPlaceAndShuffledKeepsRunsOf64) {
  const std::vector<int> random = old_cells("random");
  int near = 0;
  for (std::size_t k = 0; k < 1000; ++k) near += std::abs(random[k] - int(k)) < 10;
  EXPECT_LT(near, 60) << "of which there are 19 on average";

  const std::vector<int> shuffled = old_cells("shuffled");
  std::vector<int> runs;
  for (std::size_t k = 0; k < 1000; ++k) {
    if (shuffled[k] % 64 == 0) {
      runs.push_back(shuffled[k] / 64);
    } else {
      ASSERT_GT(k, 0u);
      EXPECT_EQ(shuffled[k], shuffled[k - 1] + 1);
    }
  }
  EXPECT_FALSE(std::is_sorted(runs.begin(), runs.end()));
  std::sort(runs.begin(), runs.end());
  EXPECT_EQ(runs, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})) << "the last one is of 40";
}

TEST(Generate, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const char* text : {"mesh:box:25x24x23", "mesh:box:25x24x23:random", "mesh:tetrahedra:22x23x24",
                           "mesh:tetrahedra:22x23x24:shuffled:4", "mesh:triangles:110x120:random:3"}) {
    SCOPED_TRACE(text);
    const auto with = [&](int threads) {
      const Threads set(threads);
      return generate_mesh(text);
    };
    const Mesh one = with(1);
    EXPECT_TRUE(same_bits(with(3), one));
    EXPECT_TRUE(same_bits(with(4), one));
    EXPECT_NO_THROW(require_valid(one));
  }
}

TEST(Generate, KnowsItsTexts) {
  EXPECT_TRUE(is_mesh_generator("mesh:box:2x2x2"));
  EXPECT_TRUE(is_mesh_generator("mesh:anything"));
  EXPECT_FALSE(is_mesh_generator("mesh"));
  EXPECT_FALSE(is_mesh_generator("cases/mesh:box"));
  EXPECT_FALSE(is_mesh_generator("gen:poisson2d:3x3"));
}

TEST(Generate, RefusesInASentenceThatListsTheGenerators) {
  const auto refused = [](const std::string& text, const std::string& why) {
    EXPECT_EQ(sentence(text), "'" + text + "': " + why +
                                  ". A generated mesh is mesh:NAME:SIZE[:ORDER], such as mesh:box:100x100x100 or "
                                  "mesh:triangles:300x200:random:1; NAME is one of box, tetrahedra, triangles, ORDER "
                                  "natural, random[:SEED] or shuffled[:SEED]");
  };
  refused("gen:box:2x2x2", "not a generator of a mesh");
  refused("mesh:bxo:2x2x2", "unknown generator (did you mean 'box'?)");
  refused("mesh:tetrahedron:2x2x2", "unknown generator (did you mean 'tetrahedra'?)");
  refused("mesh:polyhedralcells:2x2x2", "unknown generator");
  refused("mesh:box", "needs a size, and perhaps an order and its seed");
  refused("mesh:box:2x2x2:random:1:2", "needs a size, and perhaps an order and its seed");
  refused("mesh:box:2x2", "SIZE has 3 numbers");
  refused("mesh:triangles:2x2x2", "SIZE has 2 numbers");
  for (const char* size : {"0x2x2", "2x-1x2", "2x2x", "2x2x2.5", "ax2x2", "2x2x3000000000", "2x 2x2"})
    refused(std::string("mesh:box:") + size, "each number of SIZE is a whole number from 1 to 2147483647");
  refused("mesh:box:2000x2000x2000", "this size has 2^31 cells or more");
  refused("mesh:box:2147483647x2147483647x2147483647", "this size has 2^31 cells or more");
  refused("mesh:tetrahedra:711x711x711", "this size has 2^31 cells or more");
  refused("mesh:box:900x900x900", "this size has 2^31 faces or more");
  refused("mesh:box:1x1x450000000", "this size has 2^31 faces or more");  // most of them on the boundary
  refused("mesh:tetrahedra:600x600x600", "this size has 2^31 faces or more");
  refused("mesh:triangles:30000x30000", "this size has 2^31 faces or more");
  refused("mesh:box:2x2x2:rnadom", "unknown order (did you mean 'random'?)");
  refused("mesh:box:2x2x2:", "unknown order");
  refused("mesh:box:2x2x2:natural:1", "the natural order has no seed");
  refused("mesh:box:2x2x2:random:-1", "SEED is a whole number from 0");
  refused("mesh:box:2x2x2:shuffled:", "SEED is a whole number from 0");
}

}  // namespace
}  // namespace krilu::test
