// SPDX-License-Identifier: Apache-2.0
// Generated meshes of any size, the same on every machine to rounding and the same bits for any number of threads.
//
// A lattice of cubes, each cut into the same cells in the same way: itself, six tetrahedra [Kuhn 1960; also known as
// Freudenthal's triangulation], or two triangles. Faces between cells of one cube, and to the cubes beyond it in x, y
// and z, belong to that cube, and the cells of a cube are numbered one after another; so the number of a cube's first
// face is a formula in its place, and faces come out in upper triangular order without sorting. Cost: one pass over the
// cubes, which writes the arrays of the mesh; beside these there are only the corners of moved lattices, 24 bytes each.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/names.hpp"
#include "base/parse.hpp"
#include "base/random.hpp"
#include "exec/host.hpp"
#include "krilu/error.hpp"
#include "krilu/mesh.hpp"
#include "mesh/cell_order.hpp"
#include "mesh/renumbered.hpp"

namespace krilu {

namespace {

constexpr std::string_view mesh_prefix = "mesh:";

using Place = std::array<Index, 3>;  // of a cube or a corner in the lattice

constexpr int in_one_cube = -1;  // the direction of a face between two cells of one cube

/// A face of a cube's cell: to cell `neighbour` of the same cube, or of the next cube in direction x, y or z. Corner b
/// of a cube is the one that is farther in x, y, z where bits 0, 1, 2 of b are set.
struct CubeFace {
  int owner, neighbour, direction;
  std::array<int, 3> corner;  // counterclockwise, seen from the neighbour; unused by boxes
};

/// The cubes, numbered x fastest, then y, then z; a shape says what cells and faces each of them has.
struct CubeLattice {
  std::array<std::int64_t, 3> size;
  double side;  // of a cube

  explicit CubeLattice(const std::array<std::int64_t, 3>& cubes)
      : size(cubes), side(1 / double(*std::max_element(cubes.begin(), cubes.end()))) {}

  std::int64_t cubes() const { return size[0] * size[1] * size[2]; }
  std::int64_t step(int direction) const { return direction == 0 ? 1 : direction == 1 ? size[0] : size[0] * size[1]; }
  /// Cubes before this one, of number b, that have a next one in each direction.
  std::array<std::int64_t, 3> joined_before(const Place& p, std::int64_t b) const {
    const auto [nx, ny, nz] = size;
    const std::int64_t in_plane = p[1] < ny - 1 ? p[0] + nx * p[1] : nx * (ny - 1);
    return {(nx - 1) * (p[1] + ny * p[2]) + p[0], nx * (ny - 1) * p[2] + in_plane, std::min(b, nx * ny * (nz - 1))};
  }
  std::int64_t joined(int direction) const { return cubes() - cubes() / size[std::size_t(direction)]; }
  bool has_next(const Place& p, int direction) const {
    return p[std::size_t(direction)] + 1 < size[std::size_t(direction)];
  }
};

/// f(number, place) for all cubes.
template <class F>
void for_cubes(const exec::Host& host, const CubeLattice& lattice, F f) {
  const auto nx = Index(lattice.size[0]), ny = Index(lattice.size[1]);
  host.for_each_range(std::size_t(lattice.cubes()), [&](Index begin, Index end) {
    Place p{begin % nx, begin / nx % ny, begin / nx / ny};
    for (Index b = begin; b < end; ++b) {
      f(b, p);
      if (++p[0] < nx) continue;
      p[0] = 0;
      if (++p[1] < ny) continue;
      p[1] = 0;
      ++p[2];
    }
  });
}

/// One cell a cube.
class Box {
 public:
  static constexpr int cells = 1, inner = 0;
  static constexpr std::array<int, 3> on_side{1, 1, 1};
  static constexpr std::array<CubeFace, 3> faces{{{0, 0, 0, {}}, {0, 0, 1, {}}, {0, 0, 2, {}}}};

  Box(const exec::Host&, const CubeLattice& lattice) : h_(lattice.side) {}

  void cell(const Place& p, int, Vector3& centre, double& volume) const {
    centre = {h_ * (p[0] + 0.5), h_ * (p[1] + 0.5), h_ * (p[2] + 0.5)};
    volume = h_ * h_ * h_;
  }
  void face(const Place& p, const CubeFace& f, Vector3& centre, Vector3& area) const {
    const double x = f.direction == 0, y = f.direction == 1, z = f.direction == 2;
    centre = {h_ * (p[0] + 0.5 + 0.5 * x), h_ * (p[1] + 0.5 + 0.5 * y), h_ * (p[2] + 0.5 + 0.5 * z)};
    area = {h_ * h_ * x, h_ * h_ * y, h_ * h_ * z};
  }

 private:
  double h_;
};

/// The corners of all cubes. Those inside are moved, in the first `dimensions` directions, by a random vector of up to
/// 0.2 sides. No cell is turned inside out: its edges from corner to corner are the columns of side (P + E), P being a
/// permutation, and a column of E is the difference of two such vectors, at most 0.4 long. So the norm of E is at most
/// 0.4 sqrt(3) < 1, P + E is regular on the whole way from E = 0, and its determinant keeps its sign.
class MovedCorners {
 public:
  MovedCorners(const exec::Host& host, const CubeLattice& lattice, int dimensions)
      : row_(lattice.size[0] + 1), plane_(row_ * (lattice.size[1] + 1)) {
    const CubeLattice corners({row_, lattice.size[1] + 1, dimensions == 3 ? lattice.size[2] + 1 : 1});
    corner_.resize(std::size_t(corners.cubes()));
    for_cubes(host, corners, [&](Index c, const Place& p) {
      std::array<double, 3> x{}, move{};
      bool moves = true;
      double square = 0, largest = 0;
      for (std::size_t d = 0; d < 3; ++d) {
        x[d] = lattice.side * p[d];
        if (d >= std::size_t(dimensions)) continue;
        moves = moves && p[d] > 0 && p[d] < lattice.size[d];
        move[d] = 2 * unit_random(first_state + 3 * std::uint64_t(c) + d) - 1;
        square += move[d] * move[d];
        largest = std::max(largest, std::abs(move[d]));
      }
      // From the cube [-1, 1]^3 to the ball: each sphere of the largest component to one of the length.
      const double scale = moves && square > 0 ? 0.2 * lattice.side * largest / std::sqrt(square) : 0;
      corner_[std::size_t(c)] = {x[0] + scale * move[0], x[1] + scale * move[1], x[2] + scale * move[2]};
    });
  }

  /// Corner b (bits as in CubeFace) of the cube at p.
  const Vector3& operator()(const Place& p, int b) const {
    return corner_[std::size_t(p[0] + (b & 1) + row_ * (p[1] + (b >> 1 & 1)) + plane_ * (p[2] + (b >> 2)))];
  }

 private:
  static constexpr std::uint64_t first_state = 20260101;
  std::int64_t row_, plane_;
  Buffer<Vector3> corner_;
};

/// Six cells a cube, one for each sequence abc of the directions: from corner 0 a step in a, one in b, one in c. Two
/// sequences that differ in neighbouring places share a face inside; abc meets bca of the next cube in direction a.
class Tetrahedra {
 public:
  static constexpr int cells = 6, inner = 6;
  static constexpr std::array<int, 3> on_side{2, 2, 2};
  // xyz, xzy, yxz, yzx, zxy, zyx; odd sequences with two corners exchanged, so that volumes are positive.
  static constexpr std::array<std::array<int, 4>, 6> corners{
      {{0, 1, 3, 7}, {0, 5, 1, 7}, {0, 3, 2, 7}, {0, 2, 6, 7}, {0, 4, 5, 7}, {0, 6, 4, 7}}};
  static constexpr std::array<CubeFace, 12> faces{{{0, 1, in_one_cube, {0, 1, 7}},
                                                   {0, 2, in_one_cube, {0, 7, 3}},
                                                   {0, 3, 0, {1, 3, 7}},
                                                   {1, 4, in_one_cube, {0, 5, 7}},
                                                   {1, 5, 0, {1, 7, 5}},
                                                   {2, 3, in_one_cube, {0, 7, 2}},
                                                   {2, 1, 1, {2, 7, 3}},
                                                   {3, 5, in_one_cube, {0, 7, 6}},
                                                   {3, 4, 1, {2, 6, 7}},
                                                   {4, 5, in_one_cube, {0, 4, 7}},
                                                   {4, 0, 2, {4, 5, 7}},
                                                   {5, 2, 2, {4, 7, 6}}}};

  Tetrahedra(const exec::Host& host, const CubeLattice& lattice) : corner_(host, lattice, 3) {}

  void cell(const Place& p, int t, Vector3& centre, double& volume) const {
    const std::array<int, 4>& own = corners[std::size_t(t)];
    const Vector3 &o = corner_(p, own[0]), &a = corner_(p, own[1]), &b = corner_(p, own[2]), &c = corner_(p, own[3]);
    centre = 0.25 * (o + a + b + c);
    volume = dot(a - o, cross(b - o, c - o)) / 6;
  }
  void face(const Place& p, const CubeFace& f, Vector3& centre, Vector3& area) const {
    const Vector3 &a = corner_(p, f.corner[0]), &b = corner_(p, f.corner[1]), &c = corner_(p, f.corner[2]);
    centre = (1.0 / 3) * (a + b + c);
    area = 0.5 * cross(b - a, c - a);
  }

 private:
  MovedCorners corner_;
};

/// Two prisms a square, below and above the diagonal from corner 0 to corner 3, from z = 0 to z = 1. Faces within the
/// plane have two corners, from the first to the second with the owner on the left.
class Triangles {
 public:
  static constexpr int cells = 2, inner = 1;
  static constexpr std::array<int, 3> on_side{1, 1, 2};
  static constexpr std::array<std::array<int, 3>, 2> corners{{{0, 1, 3}, {0, 3, 2}}};
  static constexpr std::array<CubeFace, 5> faces{
      {{0, 1, in_one_cube, {3, 0}}, {0, 1, 0, {1, 3}}, {0, 0, 2, {0, 1, 3}}, {1, 0, 1, {3, 2}}, {1, 1, 2, {0, 3, 2}}}};

  Triangles(const exec::Host& host, const CubeLattice& lattice) : corner_(host, lattice, 2) {}

  void cell(const Place& p, int t, Vector3& centre, double& volume) const {
    Vector3 area;
    triangle(p, corners[std::size_t(t)], centre, area);
    centre.z = 0.5;
    volume = area.z;
  }
  void face(const Place& p, const CubeFace& f, Vector3& centre, Vector3& area) const {
    if (f.direction == 2) {
      triangle({p[0], p[1], 0}, f.corner, centre, area);
      centre.z = p[2] + 1;
      return;
    }
    const Vector3 &a = corner_(p, f.corner[0]), &b = corner_(p, f.corner[1]);
    centre = {0.5 * (a.x + b.x), 0.5 * (a.y + b.y), 0.5};
    area = {b.y - a.y, a.x - b.x, 0};
  }

 private:
  void triangle(const Place& p, const std::array<int, 3>& at, Vector3& centre, Vector3& area) const {
    const Vector3 &a = corner_(p, at[0]), &b = corner_(p, at[1]), &c = corner_(p, at[2]);
    centre = (1.0 / 3) * (a + b + c);
    area = {0, 0, 0.5 * ((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x))};
  }

  MovedCorners corner_;
};

template <class Shape>
std::int64_t internal_faces(const CubeLattice& lattice) {
  std::int64_t sum = Shape::inner * lattice.cubes();
  for (int d = 0; d < 3; ++d) sum += Shape::on_side[std::size_t(d)] * lattice.joined(d);
  return sum;
}

template <class Shape>
std::int64_t boundary_faces(const CubeLattice& lattice) {
  std::int64_t sum = 0;
  for (std::size_t d = 0; d < 3; ++d) sum += 2 * Shape::on_side[d] * (lattice.cubes() / lattice.size[d]);
  return sum;
}

template <class Shape>
void fill_cells_and_faces(const exec::Host& host, const CubeLattice& lattice, const Shape& shape, Mesh& mesh) {
  for_cubes(host, lattice, [&](Index b, const Place& p) {
    for (int t = 0; t < Shape::cells; ++t) {
      const std::size_t c = std::size_t(b) * Shape::cells + std::size_t(t);
      shape.cell(p, t, mesh.centre[c], mesh.volume[c]);
    }
    const auto before = lattice.joined_before(p, b);
    auto at = std::size_t(Shape::inner) * std::size_t(b);
    for (std::size_t d = 0; d < 3; ++d) at += std::size_t(Shape::on_side[d] * before[d]);
    for (const CubeFace& f : Shape::faces) {
      if (f.direction != in_one_cube && !lattice.has_next(p, f.direction)) continue;
      const std::int64_t beyond = f.direction == in_one_cube ? b : b + lattice.step(f.direction);
      mesh.owner[at] = Index(std::int64_t(b) * Shape::cells + f.owner);
      mesh.neighbour[at] = Index(beyond * Shape::cells + f.neighbour);
      shape.face(p, f, mesh.face_centre[at], mesh.area[at]);
      ++at;
    }
  });
}

/// The side of the box at the low or high end of direction d. At the low end faces are those of cubes that would stand
/// one place before it, seen from their neighbours.
template <class Shape>
void fill_side(const exec::Host& host, const CubeLattice& lattice, const Shape& shape, int d, bool high, Index first,
               Mesh& mesh) {
  const int u = d == 0 ? 1 : 0, v = d == 2 ? 1 : 2;
  const std::int64_t nu = lattice.size[std::size_t(u)];
  host.for_each_range(std::size_t(lattice.cubes() / lattice.size[std::size_t(d)]), [&](Index begin, Index end) {
    for (Index q = begin; q < end; ++q) {
      Place p{};
      p[std::size_t(u)] = Index(q % nu);
      p[std::size_t(v)] = Index(q / nu);
      if (high) p[std::size_t(d)] = Index(lattice.size[std::size_t(d)] - 1);
      const std::int64_t cube = p[0] * lattice.step(0) + p[1] * lattice.step(1) + p[2] * lattice.step(2);
      if (!high) p[std::size_t(d)] = -1;
      auto at = std::size_t(first) + std::size_t(q) * std::size_t(Shape::on_side[std::size_t(d)]);
      for (const CubeFace& f : Shape::faces) {
        if (f.direction != d) continue;
        mesh.boundary[at] = Index(cube * Shape::cells + (high ? f.owner : f.neighbour));
        Vector3& area = mesh.boundary_area[at];
        shape.face(p, f, mesh.boundary_centre[at], area);
        if (!high) area = {0 - area.x, 0 - area.y, 0 - area.z};  // no zeros with a sign
        ++at;
      }
    }
  });
}

template <class Shape>
Mesh build(const exec::Host& host, const CubeLattice& lattice) {
  Mesh mesh;
  mesh.cells = Index(Shape::cells * lattice.cubes());
  const auto cells = std::size_t(mesh.cells), faces = std::size_t(internal_faces<Shape>(lattice));
  mesh.owner.resize(faces);
  mesh.neighbour.resize(faces);
  mesh.area.resize(faces);
  mesh.face_centre.resize(faces);
  mesh.centre.resize(cells);
  mesh.volume.resize(cells);
  const auto boundary = std::size_t(boundary_faces<Shape>(lattice));
  mesh.boundary.resize(boundary);
  mesh.boundary_area.resize(boundary);
  mesh.boundary_centre.resize(boundary);

  const Shape shape(host, lattice);
  fill_cells_and_faces(host, lattice, shape, mesh);
  constexpr bool plane = std::is_same_v<Shape, Triangles>;
  const char* const names[] = {"xmin", "xmax", "ymin", "ymax", plane ? "back" : "zmin", plane ? "front" : "zmax"};
  Index first = 0;
  for (int side = 0; side < 6; ++side) {
    const int d = side / 2;
    fill_side(host, lattice, shape, d, side % 2 == 1, first, mesh);
    const auto n = Index(Shape::on_side[std::size_t(d)] * (lattice.cubes() / lattice.size[std::size_t(d)]));
    mesh.patches.push_back({names[side], plane && d == 2 ? "empty" : "patch", first, n});
    first += n;
  }
  return mesh;
}

struct Generator {
  const char* name;
  std::size_t dimensions;
  std::int64_t cells_per_cube;
  std::int64_t (*internal)(const CubeLattice&);
  std::int64_t (*boundary)(const CubeLattice&);
  Mesh (*build)(const exec::Host&, const CubeLattice&);
};

template <class Shape>
constexpr Generator generator(const char* name, std::size_t dimensions) {
  return {name, dimensions, Shape::cells, internal_faces<Shape>, boundary_faces<Shape>, build<Shape>};
}

constexpr std::array generators{generator<Box>("box", 3), generator<Tetrahedra>("tetrahedra", 3),
                                generator<Triangles>("triangles", 2)};

}  // namespace

bool is_mesh_generator(std::string_view text) { return text.starts_with(mesh_prefix); }

Mesh generate_mesh(const std::string& text) {
  std::vector<std::string> names;
  std::string list;
  for (const Generator& g : generators) {
    names.emplace_back(g.name);
    list += (list.empty() ? "" : ", ") + names.back();
  }
  const auto usage = [&](const std::string& why) {
    return Error(
        fmt::format("'{}': {}. A generated mesh is mesh:NAME:SIZE[:ORDER], such as mesh:box:100x100x100 or "
                    "mesh:triangles:300x200:random:1; NAME is one of {}, ORDER natural, random[:SEED] or "
                    "shuffled[:SEED]",
                    text, why, list));
  };
  if (!is_mesh_generator(text)) throw usage("not a generator of a mesh");
  const auto parts = split(std::string_view(text).substr(mesh_prefix.size()), ':');
  const auto chosen = std::find(names.begin(), names.end(), parts[0]);
  if (chosen == names.end()) {
    const std::string near = nearest_name(std::string(parts[0]), names);
    throw usage("unknown generator" + (near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near)));
  }
  const Generator& g = generators[std::size_t(chosen - names.begin())];
  if (parts.size() < 2 || parts.size() > 4) throw usage("needs a size, and perhaps an order and its seed");

  const auto sizes = split(parts[1], 'x');
  if (sizes.size() != g.dimensions) throw usage(fmt::format("SIZE has {} numbers", g.dimensions));
  constexpr std::int64_t most = std::numeric_limits<Index>::max();
  std::array<std::int64_t, 3> size{1, 1, 1};
  std::int64_t cells = g.cells_per_cube;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (!parse(sizes[d], size[d]) || size[d] < 1 || size[d] > most)
      throw usage("each number of SIZE is a whole number from 1 to 2147483647");
    cells *= size[d];
    if (cells > most) throw usage("this size has 2^31 cells or more");
  }
  const CubeLattice lattice(size);
  if (g.internal(lattice) + g.boundary(lattice) > most) throw usage("this size has 2^31 faces or more");

  mesh::CellOrder order;
  if (parts.size() > 2) {
    const std::string wrong = mesh::read_cell_order({parts.begin() + 2, parts.end()}, order);
    if (!wrong.empty()) throw usage(wrong);
  }

  const exec::Host host;
  Mesh mesh = g.build(host, lattice);
  if (order.name == mesh::CellOrder::Name::natural) return mesh;
  return mesh::renumbered(host, mesh, order.of(mesh.cells));
}

}  // namespace krilu
