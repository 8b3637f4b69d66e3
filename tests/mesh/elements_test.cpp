// SPDX-License-Identifier: Apache-2.0
// From elements to faces: each shape alone, turned either way, with its volume by hand; boxes cut into each of the
// shapes, whose volumes add up and whose cells are closed; numberings at random; what is refused.
#include "mesh/elements.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "exec/host.hpp"
#include "krilu/mesh.hpp"
#include "mesh_checks.hpp"

namespace {

using krilu::Index;
using krilu::Mesh;
using krilu::Vector3;
using krilu::mesh::Elements;
using krilu::mesh::Shape;
using krilu::mesh::WrongElement;

Mesh mesh_of_elements(Elements e) {
  return krilu::mesh::to_mesh(krilu::exec::Host(1), krilu::mesh::to_polyhedra(std::move(e)));
}

/// The unit cube's corners in VTK's sequence, and the middle of its top side raised to z = 2.
Elements cube_corners() {
  Elements e;
  for (const double z : {0.0, 1.0})
    for (const auto& [x, y] : {std::pair{0.0, 0.0}, {1.0, 0.0}, {1.0, 1.0}, {0.0, 1.0}}) e.points.push_back({x, y, z});
  e.points.push_back({0.5, 0.5, 2});
  return e;
}

void add_cell(Elements& e, Shape shape, const std::vector<Index>& corners) { e.cells.add(shape, corners.data()); }

struct Solid {
  Shape shape;
  std::vector<Index> corners, turned;
  double volume;
  Vector3 centre;
  std::size_t faces;
};

const std::vector<Solid>& solids() {
  static const std::vector<Solid> all{
      {Shape::tetrahedron, {0, 1, 3, 4}, {1, 0, 3, 4}, 1.0 / 6, {0.25, 0.25, 0.25}, 4},
      {Shape::hexahedron, {0, 1, 2, 3, 4, 5, 6, 7}, {4, 5, 6, 7, 0, 1, 2, 3}, 1, {0.5, 0.5, 0.5}, 6},
      {Shape::prism, {0, 1, 3, 4, 5, 7}, {4, 5, 7, 0, 1, 3}, 0.5, {1.0 / 3, 1.0 / 3, 0.5}, 5},
      {Shape::pyramid, {4, 5, 6, 7, 8}, {7, 6, 5, 4, 8}, 1.0 / 3, {0.5, 0.5, 1.25}, 5},
  };
  return all;
}

TEST(Elements, EachSolidTurnedEitherWay) {
  for (const Solid& s : solids())
    for (const auto& corners : {s.corners, s.turned}) {
      SCOPED_TRACE(int(s.shape));
      Elements e = cube_corners();
      add_cell(e, s.shape, corners);
      const Mesh m = mesh_of_elements(e);
      ASSERT_EQ(m.cells, 1);
      EXPECT_EQ(m.faces(), 0);
      EXPECT_EQ(m.boundary.size(), s.faces);
      EXPECT_NEAR(m.volume[0], s.volume, 1e-15);
      krilu::test::expect_near(m.centre[0], s.centre, 1e-15);
      krilu::test::expect_closed_cells(m);
      ASSERT_EQ(m.patches.size(), 1u);
      EXPECT_EQ(m.patches[0].name, "unmarked");
      EXPECT_EQ(m.patches[0].type, "patch");
      EXPECT_EQ(m.patches[0].faces, Index(s.faces));
    }
}

TEST(Elements, PyramidOnAHexahedron) {
  Elements e = cube_corners();
  add_cell(e, Shape::pyramid, {7, 6, 5, 4, 8});
  add_cell(e, Shape::hexahedron, {0, 1, 2, 3, 4, 5, 6, 7});
  const Mesh m = mesh_of_elements(e);
  ASSERT_EQ(m.faces(), 1);
  EXPECT_EQ(m.owner[0], 0);
  EXPECT_EQ(m.neighbour[0], 1);
  krilu::test::expect_near(m.area[0], {0, 0, -1}, 1e-15);
  krilu::test::expect_near(m.face_centre[0], {0.5, 0.5, 1}, 1e-15);
  EXPECT_EQ(m.boundary.size(), 9u);
  krilu::test::expect_closed_cells(m);
}

/// A box of cubes whose cells are cut into the shapes of `parts`, corners of a cube in VTK's sequence and 8 its middle.
/// Cells stand in random order, and half of them are turned.
Elements box_of(const std::vector<std::pair<Shape, std::vector<Index>>>& parts, Index nx, Index ny, Index nz,
                int seed) {
  Elements e;
  const auto point = [&](Index i, Index j, Index k) { return i + (nx + 1) * (j + (ny + 1) * k); };
  for (Index k = 0; k <= nz; ++k)
    for (Index j = 0; j <= ny; ++j)
      for (Index i = 0; i <= nx; ++i) e.points.push_back({double(i), double(j), double(k)});
  std::vector<std::pair<Shape, std::vector<Index>>> cells;
  for (Index k = 0; k < nz; ++k)
    for (Index j = 0; j < ny; ++j)
      for (Index i = 0; i < nx; ++i) {
        const auto middle = Index(e.points.size());
        e.points.push_back({i + 0.5, j + 0.5, k + 0.5});
        const std::array<Index, 9> cube{point(i, j, k),
                                        point(i + 1, j, k),
                                        point(i + 1, j + 1, k),
                                        point(i, j + 1, k),
                                        point(i, j, k + 1),
                                        point(i + 1, j, k + 1),
                                        point(i + 1, j + 1, k + 1),
                                        point(i, j + 1, k + 1),
                                        middle};
        for (const auto& [shape, corners] : parts) {
          std::vector<Index> own;
          for (const Index c : corners) own.push_back(cube[std::size_t(c)]);
          cells.emplace_back(shape, own);
        }
      }
  std::mt19937_64 engine(static_cast<std::uint64_t>(seed));
  std::shuffle(cells.begin(), cells.end(), engine);
  for (auto& [shape, corners] : cells) {
    if (engine() & 1) {
      if (shape == Shape::tetrahedron) std::swap(corners[0], corners[1]);
      if (shape == Shape::pyramid) std::swap(corners[1], corners[3]);
      if (shape == Shape::prism || shape == Shape::hexahedron)
        std::rotate(corners.begin(), corners.begin() + std::ptrdiff_t(corners.size() / 2), corners.end());
    }
    add_cell(e, shape, corners);
  }
  return e;
}

TEST(Elements, BoxesOfEachShape) {
  const std::vector<std::vector<std::pair<Shape, std::vector<Index>>>> cuts{
      {{Shape::hexahedron, {0, 1, 2, 3, 4, 5, 6, 7}}},
      {{Shape::prism, {0, 1, 2, 4, 5, 6}}, {Shape::prism, {0, 2, 3, 4, 6, 7}}},
      {{Shape::pyramid, {0, 1, 2, 3, 8}},
       {Shape::pyramid, {4, 5, 6, 7, 8}},
       {Shape::pyramid, {0, 1, 5, 4, 8}},
       {Shape::pyramid, {1, 2, 6, 5, 8}},
       {Shape::pyramid, {2, 3, 7, 6, 8}},
       {Shape::pyramid, {3, 0, 4, 7, 8}}},
      {{Shape::tetrahedron, {0, 1, 2, 6}},
       {Shape::tetrahedron, {0, 1, 5, 6}},
       {Shape::tetrahedron, {0, 3, 2, 6}},
       {Shape::tetrahedron, {0, 3, 7, 6}},
       {Shape::tetrahedron, {0, 4, 5, 6}},
       {Shape::tetrahedron, {0, 4, 7, 6}}}};
  // The sides of the 4 x 3 x 2 box are 52 squares. Of prisms the 24 in z are cut in two, of tetrahedra all.
  const std::size_t boundary[] = {52, 28 + 48, 52, 104};
  for (std::size_t k = 0; k < cuts.size(); ++k) {
    SCOPED_TRACE(k);
    const std::size_t n = cuts[k].size();
    const Mesh m = mesh_of_elements(box_of(cuts[k], 4, 3, 2, 5));
    ASSERT_EQ(std::size_t(m.cells), 24 * n);
    krilu::test::expect_closed_cells(m);
    krilu::test::expect_upper_triangular_order(m);
    EXPECT_NEAR(std::accumulate(m.volume.begin(), m.volume.end(), 0.0), 24, 1e-12);
    for (const double v : m.volume) EXPECT_NEAR(v, 1.0 / double(n), 1e-14);
    EXPECT_EQ(m.boundary.size(), boundary[k]);
    double surface = 0;
    for (const Vector3& area : m.boundary_area) surface += krilu::test::length(area);
    EXPECT_NEAR(surface, 52, 1e-12);
  }
}

/// Two triangles below and above the diagonal of the unit square, the second clockwise, and a square beside them.
Elements plane() {
  Elements e;
  e.dimensions = 2;
  e.points = {{0, 0, 7}, {1, 0, 7}, {1, 1, 7}, {0, 1, 7}, {3, 0, 7}, {3, 1, 7}};
  add_cell(e, Shape::triangle, {0, 1, 2});
  add_cell(e, Shape::triangle, {0, 3, 2});
  add_cell(e, Shape::quadrilateral, {1, 4, 5, 2});
  return e;
}

TEST(Elements, ThePlaneIsALayerOfPrisms) {
  Elements e = plane();
  e.patches = {"nothing", "left"};
  const std::array<Index, 2> left{3, 0};
  e.boundary.add(Shape::line, left.data());
  e.patch = {1};
  const Mesh m = mesh_of_elements(e);
  EXPECT_EQ(std::vector<Index>(m.owner.begin(), m.owner.end()), (std::vector<Index>{0, 0}));
  EXPECT_EQ(std::vector<Index>(m.neighbour.begin(), m.neighbour.end()), (std::vector<Index>{1, 2}));
  krilu::test::expect_near(m.area[0], {-1, 1, 0}, 1e-15);
  krilu::test::expect_near(m.area[1], {1, 0, 0}, 1e-15);
  krilu::test::expect_near(m.face_centre[0], {0.5, 0.5, 0.5}, 1e-15);
  const std::vector<double> volumes{0.5, 0.5, 2};
  for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(m.volume[c], volumes[c], 1e-15);
  krilu::test::expect_near(m.centre[0], {2.0 / 3, 1.0 / 3, 0.5}, 1e-15);
  krilu::test::expect_near(m.centre[2], {2, 0.5, 0.5}, 1e-15);
  krilu::test::expect_closed_cells(m);

  ASSERT_EQ(m.patches.size(), 5u);
  const std::vector<krilu::Patch> expected{{"nothing", "patch", 0, 0},
                                           {"left", "patch", 0, 1},
                                           {"unmarked", "patch", 1, 5},
                                           {"back", "empty", 6, 3},
                                           {"front", "empty", 9, 3}};
  for (std::size_t p = 0; p < 5; ++p) {
    EXPECT_EQ(m.patches[p].name, expected[p].name);
    EXPECT_EQ(m.patches[p].type, expected[p].type) << expected[p].name;
    EXPECT_EQ(m.patches[p].first, expected[p].first) << expected[p].name;
    EXPECT_EQ(m.patches[p].faces, expected[p].faces) << expected[p].name;
  }
  EXPECT_EQ(std::vector<Index>(m.boundary.begin(), m.boundary.end()),
            (std::vector<Index>{1, 0, 1, 2, 2, 2, 0, 1, 2, 0, 1, 2}));
  krilu::test::expect_near(m.boundary_area[0], {-1, 0, 0}, 1e-15);
  krilu::test::expect_near(m.boundary_area[8], {0, 0, -2}, 1e-15);
  krilu::test::expect_near(m.boundary_area[11], {0, 0, 2}, 1e-15);
  krilu::test::expect_near(m.boundary_centre[11], {2, 0.5, 1}, 1e-15);
}

void expect_wrong(Elements e, bool boundary, std::size_t number, const std::string& words) {
  try {
    krilu::mesh::to_polyhedra(std::move(e));
    ADD_FAILURE() << "nothing was refused: " << words;
  } catch (const WrongElement& wrong) {
    EXPECT_EQ(wrong.boundary, boundary) << wrong.what;
    EXPECT_EQ(wrong.number, number) << wrong.what;
    EXPECT_NE(wrong.what.find(words), std::string::npos) << wrong.what;
  }
}

TEST(Elements, WhatCannotBe) {
  Elements e = plane();
  e.points[2] = {0.5, 0, 0};
  expect_wrong(e, false, 0, "no area");
  e = cube_corners();
  add_cell(e, Shape::hexahedron, {0, 1, 2, 3, 4, 5, 6, 7});
  add_cell(e, Shape::tetrahedron, {0, 1, 2, 3});
  expect_wrong(e, false, 1, "no volume");

  e = plane();
  add_cell(e, Shape::triangle, {0, 2, 4});
  expect_wrong(e, false, 3, "shares a face with elements 0 and 1");
  e = plane();
  e.points.push_back({2, 0.5, 0});
  add_cell(e, Shape::triangle, {4, 5, 6});
  expect_wrong(e, false, 3, "shares a face with element 2, counted from 0, and stands on the same side");

  const std::vector<std::array<Index, 2>> lines{{0, 1}, {1, 0}, {0, 2}, {0, 4}};
  const auto marked = [&](const std::vector<std::size_t>& which, const std::vector<Index>& patch) {
    Elements out = plane();
    out.patches = {"a", "b"};
    for (const std::size_t k : which) out.boundary.add(Shape::line, lines[k].data());
    out.patch.assign(patch.begin(), patch.end());
    return out;
  };
  expect_wrong(marked({0, 1}, {0, 0}), true, 1, "in the marker 'a' already");
  expect_wrong(marked({0, 1}, {0, 1}), true, 1, "in the marker 'a' as well");
  expect_wrong(marked({0, 2}, {0, 1}), true, 1, "between elements 0 and 1");
  expect_wrong(marked({0, 3}, {0, 1}), true, 1, "no cell has a face with these corners");
}

}  // namespace
