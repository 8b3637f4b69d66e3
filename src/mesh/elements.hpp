// SPDX-License-Identifier: Apache-2.0
// Elements: a mesh by the corners of its cells, as mesh generators write it, and the way from there to faces.
//
// The corners of each shape are numbered as VTK numbers them; which way an element is turned does not matter. Faces are
// found by their corners: sides of cells are dealt to their least corner and sorted there by the others, and two with
// the same corners are one internal face. Meshes of the plane become a layer of prisms, from z = 0 to z = 1.
// Cost: O(sides) on one thread; 28 bytes a side while it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "krilu/buffer.hpp"
#include "krilu/types.hpp"
#include "krilu/vector3.hpp"
#include "mesh/polyhedra.hpp"

namespace krilu::mesh {

enum class Shape : std::uint8_t { line, triangle, quadrilateral, tetrahedron, hexahedron, prism, pyramid };

/// How many corners a shape has.
std::size_t corners_of(Shape shape);

/// Elements of mixed shapes, the corners of one behind those of another.
struct ElementList {
  Buffer<Shape> shape;
  Buffer<Index> corners;

  std::size_t size() const { return shape.size(); }
  void add(Shape s, const Index* of) {
    shape.push_back(s);
    corners.insert(corners.end(), of, of + corners_of(s));
  }
};

struct Elements {
  int dimensions = 3;      // 2: z is not looked at
  Buffer<Vector3> points;  // m
  ElementList cells;       // triangles and quadrilaterals in two dimensions, solids in three
  ElementList boundary;    // of one dimension less
  Buffer<Index> patch;     // of each element of the boundary
  std::vector<std::string> patches;
};

/// Thrown for an element that cannot be; the caller knows its line.
struct WrongElement {
  bool boundary;  // of the boundary, or a cell
  std::size_t number;
  std::string what;
};

/// Cells keep their numbers, internal faces are in upper triangular order, the faces of a patch ascend by their cells.
/// Faces of the boundary that no element names make up the patch `unmarked`; a layer of prisms has the patches `back`
/// and `front`, of type empty, behind all others. All corners must exist, and those of an element differ. Throws
/// WrongElement for a cell without volume, cells that overlap, and an element of the boundary that is no face of it or
/// stands in two patches; krilu::Error for 2^31 sides or more.
Polyhedra to_polyhedra(Elements&& elements);

}  // namespace krilu::mesh
