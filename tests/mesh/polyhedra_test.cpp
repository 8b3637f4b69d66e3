// SPDX-License-Identifier: Apache-2.0
// Geometry of polyhedra: volumes, centres and areas worked out by hand, and of distorted hexahedra against loops over
// faces in long double; closed cells; the same bits on any number of threads; the refusals.
#include "mesh/polyhedra.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "krilu/error.hpp"
#include "mesh_checks.hpp"
#include "support/poly_mesh.hpp"
#include "support/support.hpp"

namespace {

using krilu::Index;
using krilu::Mesh;
using krilu::Offset;
using krilu::Vector3;
using krilu::mesh::Polyhedra;
using krilu::test::add_face;
using krilu::test::box;
using krilu::test::same_bits;

Mesh mesh_of(Polyhedra p, int threads = 2) { return krilu::mesh::to_mesh(krilu::exec::Host(threads), std::move(p)); }

void expect_near(const Vector3& found, const Vector3& expected, double tolerance = 1e-14) {
  EXPECT_NEAR(found.x, expected.x, tolerance);
  EXPECT_NEAR(found.y, expected.y, tolerance);
  EXPECT_NEAR(found.z, expected.z, tolerance);
}

/// Corners at the origin and at 1 on each axis.
Polyhedra tetrahedron() {
  Polyhedra p;
  p.cells = 1;
  p.points = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  add_face(p, {0, 2, 1}, 0);
  add_face(p, {0, 1, 3}, 0);
  add_face(p, {0, 3, 2}, 0);
  add_face(p, {1, 2, 3}, 0);
  p.patches = {{"all", "wall", 0, 4}};
  return p;
}

/// A regular n-gon of radius 1 about (x, 0), from z = 0 to z = height, or to an apex at that height.
Polyhedra over_polygon(Index n, double x, double height, bool pointed) {
  Polyhedra p;
  p.cells = 1;
  std::vector<Index> bottom, top;
  for (Index i = 0; i < n; ++i) {
    const double angle = 2 * M_PI * i / n;
    p.points.push_back({x + std::cos(angle), std::sin(angle), 0});
    bottom.insert(bottom.begin(), i);
  }
  for (Index i = 0; i < n && !pointed; ++i) {
    const Vector3 v = p.points[std::size_t(i)];
    p.points.push_back({v.x, v.y, height});
    top.push_back(n + i);
  }
  if (pointed) p.points.push_back({x, 0, height});
  add_face(p, bottom, 0);
  if (!pointed) add_face(p, top, 0);
  for (Index i = 0; i < n; ++i) {
    const Index next = (i + 1) % n;
    add_face(p, pointed ? std::vector<Index>{i, next, n} : std::vector<Index>{i, next, n + next, n + i}, 0);
  }
  p.patches = {{"all", "wall", 0, p.faces()}};
  return p;
}

Polyhedra distorted_box(Index nx, Index ny, Index nz) {
  Polyhedra p = box(nx, ny, nz);
  std::mt19937_64 engine(7);
  std::uniform_real_distribution<double> move(-0.2, 0.2);
  for (Vector3& v : p.points) v = {1e-3 * (v.x + move(engine)), 3 * (v.y + move(engine)), v.z + move(engine) + 100};
  return p;
}

TEST(Polyhedra, BoxOfCubes) {
  const Mesh m = mesh_of(box(2, 2, 1));
  EXPECT_EQ(m.cells, 4);
  EXPECT_EQ(m.faces(), 4);
  EXPECT_EQ(std::vector<Index>(m.owner.begin(), m.owner.end()), (std::vector<Index>{0, 0, 1, 2}));
  EXPECT_EQ(std::vector<Index>(m.neighbour.begin(), m.neighbour.end()), (std::vector<Index>{1, 2, 3, 3}));
  ASSERT_EQ(m.volume.size(), 4u);
  ASSERT_EQ(m.centre.size(), 4u);
  for (std::size_t c = 0; c < 4; ++c) {
    EXPECT_NEAR(m.volume[c], 1, 1e-15);
    expect_near(m.centre[c], {0.5 + double(c % 2), 0.5 + double(c / 2), 0.5});
  }
  expect_near(m.face_centre[0], {1, 0.5, 0.5});
  expect_near(m.area[0], {1, 0, 0});
  expect_near(m.face_centre[1], {0.5, 1, 0.5});
  expect_near(m.area[1], {0, 1, 0});
  ASSERT_EQ(m.boundary.size(), 16u);
  ASSERT_EQ(m.boundary_area.size(), 16u);
  ASSERT_EQ(m.patches.size(), 6u);
  // left is cells 0 and 2, top all four.
  EXPECT_EQ(m.patches[0].name, "left");
  EXPECT_EQ(m.patches[0].faces, 2);
  EXPECT_EQ(m.boundary[1], 2);
  expect_near(m.boundary_area[1], {-1, 0, 0});
  expect_near(m.boundary_centre[1], {0, 1.5, 0.5});
  EXPECT_EQ(m.patches[5].first, 12);
  EXPECT_EQ(m.boundary[15], 3);
  expect_near(m.boundary_area[15], {0, 0, 1});
  expect_near(m.boundary_centre[15], {1.5, 1.5, 1});
}

TEST(Polyhedra, Tetrahedron) {
  const Mesh m = mesh_of(tetrahedron());
  EXPECT_NEAR(m.volume[0], 1.0 / 6, 1e-16);
  expect_near(m.centre[0], {0.25, 0.25, 0.25}, 1e-16);
  expect_near(m.boundary_area[0], {0, 0, -0.5}, 0);
  expect_near(m.boundary_area[3], {0.5, 0.5, 0.5}, 0);
  expect_near(m.boundary_centre[3], {1.0 / 3, 1.0 / 3, 1.0 / 3}, 1e-16);
}

TEST(Polyhedra, PrismAndPyramidOverAPolygon) {
  const double area = 7.0 / 2 * std::sin(2 * M_PI / 7);  // of the heptagon
  const Mesh prism = mesh_of(over_polygon(7, 5, 2, false));
  EXPECT_NEAR(prism.volume[0], 2 * area, 1e-14);
  expect_near(prism.centre[0], {5, 0, 1}, 1e-14);
  expect_near(prism.boundary_area[1], {0, 0, area});
  expect_near(prism.boundary_centre[1], {5, 0, 2});
  const Mesh pyramid = mesh_of(over_polygon(7, 5, 2, true));
  EXPECT_NEAR(pyramid.volume[0], 2 * area / 3, 1e-14);
  expect_near(pyramid.centre[0], {5, 0, 0.5}, 1e-14);
}

/// The trapezium (0,0) (4,0) (2,2) (0,2): the average of its corners is not its centre of area, (14/9, 8/9).
TEST(Polyhedra, CentresAreWeightedByArea) {
  Polyhedra p = box(1, 1, 1);
  for (Vector3& v : p.points) v = {v.x > 0 ? (v.y > 0 ? 2.0 : 4.0) : 0.0, 2 * v.y, v.z};
  const Mesh m = mesh_of(p);
  EXPECT_NEAR(m.volume[0], 6, 1e-14);
  expect_near(m.centre[0], {14.0 / 9, 8.0 / 9, 0.5}, 1e-14);
  expect_near(m.boundary_centre[4], {14.0 / 9, 8.0 / 9, 0}, 1e-14);
  expect_near(m.boundary_area[4], {0, 0, -6}, 1e-14);
}

using Long = std::array<long double, 3>;
Long operator-(const Long& a, const Long& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
long double dot(const Long& a, const Long& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
void add(Long& to, long double s, const Long& v) {
  for (std::size_t d = 0; d < 3; ++d) to[d] += s * v[d];
}

/// Loops over faces, each adding to both its cells.
TEST(Polyhedra, DistortedHexahedraAgainstLoopsOverFaces) {
  const Polyhedra p = distorted_box(5, 4, 3);
  const auto faces = std::size_t(p.faces()), cells = std::size_t(p.cells);
  std::vector<Long> face_centre(faces), area(faces), apex(cells), centre(cells);
  std::vector<long double> volume(cells), count(cells);
  for (std::size_t f = 0; f < faces; ++f) {
    std::vector<Long> corner;
    Long middle{};
    for (Offset k = p.offsets[f]; k < p.offsets[f + 1]; ++k) {
      const Vector3& v = p.points[std::size_t(p.corners[std::size_t(k)])];
      corner.push_back({v.x, v.y, v.z});
      add(middle, 0.25L, corner.back());
    }
    Long moment{};
    long double weight = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const Long a = corner[i] - middle, b = corner[(i + 1) % 4] - middle;
      const Long n{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
      const long double w = std::sqrt(dot(n, n));
      add(area[f], 0.5L, n);
      for (const Long& x : {corner[i], corner[(i + 1) % 4], middle}) add(moment, w / 3, x);
      weight += w;
    }
    add(face_centre[f], 1 / weight, moment);
  }
  const auto for_sides = [&](auto visit) {
    for (std::size_t f = 0; f < faces; ++f) {
      visit(f, std::size_t(p.owner[f]), 1);
      if (f < p.neighbour.size()) visit(f, std::size_t(p.neighbour[f]), -1);
    }
  };
  for_sides([&](std::size_t, std::size_t c, int) { count[c] += 1; });
  for_sides([&](std::size_t f, std::size_t c, int) { add(apex[c], 1 / count[c], face_centre[f]); });
  for_sides([&](std::size_t f, std::size_t c, int sign) {
    const long double pyramid = sign * dot(area[f], face_centre[f] - apex[c]) / 3;
    volume[c] += pyramid;
    add(centre[c], 0.75L * pyramid, face_centre[f]);
    add(centre[c], 0.25L * pyramid, apex[c]);
  });
  const Mesh m = mesh_of(p);
  long double total = 0;
  for (std::size_t c = 0; c < cells; ++c) {
    EXPECT_NEAR(m.volume[c], double(volume[c]), 1e-13 * double(volume[c]));
    EXPECT_NEAR(m.centre[c].x, double(centre[c][0] / volume[c]), 1e-15);
    EXPECT_NEAR(m.centre[c].y, double(centre[c][1] / volume[c]), 1e-12);
    EXPECT_NEAR(m.centre[c].z, double(centre[c][2] / volume[c]), 1e-12);
    total += volume[c];
  }
  const std::size_t internal = p.neighbour.size();
  for (std::size_t f = 0; f < faces; ++f) {
    const Vector3 a = f < internal ? m.area[f] : m.boundary_area[f - internal];
    const Vector3 c = f < internal ? m.face_centre[f] : m.boundary_centre[f - internal];
    expect_near(a, {double(area[f][0]), double(area[f][1]), double(area[f][2])}, 1e-13);
    expect_near(c, {double(face_centre[f][0]), double(face_centre[f][1]), double(face_centre[f][2])}, 1e-12);
  }
  EXPECT_GT(total, 0);
}

TEST(Polyhedra, AreaVectorsOfACellAddUpToZero) {
  const Mesh m = mesh_of(distorted_box(9, 8, 7));
  std::vector<Vector3> sum(std::size_t(m.cells), Vector3{0, 0, 0});
  std::vector<double> surface(std::size_t(m.cells), 0);
  const auto visit = [&](Index cell, double sign, const Vector3& area) {
    sum[std::size_t(cell)] += sign * area;
    surface[std::size_t(cell)] += std::sqrt(krilu::dot(area, area));
  };
  for (std::size_t f = 0; f < m.owner.size(); ++f) {
    visit(m.owner[f], 1, m.area[f]);
    visit(m.neighbour[f], -1, m.area[f]);
  }
  for (std::size_t f = 0; f < m.boundary.size(); ++f) visit(m.boundary[f], 1, m.boundary_area[f]);
  for (std::size_t c = 0; c < sum.size(); ++c) {
    EXPECT_GT(surface[c], 1);
    EXPECT_LE(std::sqrt(krilu::dot(sum[c], sum[c])), 1e-15 * 10 * surface[c]) << "cell " << c;
  }
}

TEST(Polyhedra, SameBitsOnAnyNumberOfThreads) {
  const Mesh one = mesh_of(distorted_box(23, 22, 21), 1);
  for (const int threads : {2, 3, 7}) {
    const Mesh m = mesh_of(distorted_box(23, 22, 21), threads);
    EXPECT_TRUE(same_bits(m.centre, one.centre) && same_bits(m.volume, one.volume)) << threads;
    EXPECT_TRUE(same_bits(m.face_centre, one.face_centre) && same_bits(m.area, one.area)) << threads;
    EXPECT_TRUE(same_bits(m.boundary_centre, one.boundary_centre)) << threads;
    EXPECT_TRUE(same_bits(m.boundary_area, one.boundary_area) && same_bits(m.boundary, one.boundary)) << threads;
  }
}

TEST(Polyhedra, NothingGivesAnEmptyMesh) {
  const Mesh m = mesh_of({});
  EXPECT_EQ(m.cells, 0);
  EXPECT_EQ(m.faces(), 0);
  EXPECT_TRUE(m.boundary.empty());
}

TEST(Polyhedra, FacesWithoutAreaHaveTheirMiddle) {
  // A cube with a flat face between two of its edges' ends: a line there and back.
  Polyhedra p = box(1, 1, 1);
  add_face(p, {0, 1, 1, 0}, 0);
  const Mesh m = mesh_of(p);
  EXPECT_NEAR(m.volume[0], 1, 1e-15);
  expect_near(m.boundary_centre[6], {0.5, 0, 0});
  expect_near(m.boundary_area[6], {0, 0, 0});
}

/// The mesh is refused with these words, whatever the number of threads.
void expect_refused(const Polyhedra& p, const std::vector<std::string>& words) {
  for (const int threads : {1, 3}) {
    std::string message = "no error";
    try {
      mesh_of(p, threads);
    } catch (const krilu::Error& e) {
      message = e.what();
    }
    for (const std::string& word : words) EXPECT_NE(message.find(word), std::string::npos) << word << "\n" << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(Polyhedra, RefusesCells) {
  Polyhedra p = box(2, 2, 1);
  p.cells = 6;
  expect_refused(p, {"cell 4 has no faces", "four at least"});

  p = tetrahedron();
  p.offsets.pop_back();
  p.corners.resize(9);
  p.owner.pop_back();
  expect_refused(p, {"cell 0 has 3 faces"});

  p = tetrahedron();
  for (Vector3& v : p.points) v.z = -v.z;
  expect_refused(p, {"cell 0 has the volume -0.1666", "must be positive"});

  p = box(3, 1, 1);
  for (Vector3& v : p.points) v.x = v.x == 1 ? 2 : v.x;  // cell 1 is flat
  expect_refused(p, {"cell 1 has the volume 0 m^3"});

  p = box(2, 2, 1);
  std::swap(p.corners[std::size_t(p.offsets[2]) + 1], p.corners[std::size_t(p.offsets[2]) + 3]);  // face 2 turned round
  expect_refused(p, {"cell 1 is not closed", "6 faces"});

  p = tetrahedron();
  for (Vector3& v : p.points) v = 1e150 * v;
  expect_refused(p, {"cell 0 has", "no double holds"});
  p = tetrahedron();
  p.points[2].y = std::numeric_limits<double>::quiet_NaN();
  expect_refused(p, {"cell 0 has", "no double holds"});
}

TEST(Polyhedra, RefusesFaces) {
  Polyhedra p = box(2, 2, 1);
  p.owner[7] = 4;
  expect_refused(p, {"face 7 has the owner 4;", "4 cells"});
  p = box(2, 2, 1);
  p.neighbour[3] = -1;
  expect_refused(p, {"face 3 has the owner 2 and the neighbour -1"});
  p = box(2, 2, 1);
  p.neighbour[3] = 2;
  expect_refused(p, {"face 3 has the owner 2 and the neighbour 2", "another"});
  p = box(2, 2, 1);
  p.corners[4 * 9 + 2] = 18;
  expect_refused(p, {"face 9 has a corner that is none of the 18 points"});
  p.corners[4 * 9 + 2] = -1;
  expect_refused(p, {"face 9 has a corner"});
  p = box(2, 2, 1);
  p.offsets[5] = p.offsets[4] + 2;
  expect_refused(p, {"face 4 has fewer than three corners"});
  p = box(2, 2, 1);
  p.offsets[5] = std::numeric_limits<Offset>::min();
  expect_refused(p, {"face 4 has fewer than three corners"});
  p = box(2, 2, 1);
  p.corners.pop_back();
  expect_refused(p, {"the faces of the mesh take up corners 0 to 80 of 79"});
  p = box(2, 2, 1);
  p.owner.pop_back();
  expect_refused(p, {"20 faces, 19 owners and 4 neighbours"});
}

}  // namespace
