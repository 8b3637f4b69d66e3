// SPDX-License-Identifier: Apache-2.0
// Geometry of polyhedra; see polyhedra.hpp. Faces are independent of each other, and so are cells once each knows its
// faces: a cell adds up the faces that it owns and then those that it does not, both ascending, which is the sequence
// of OpenFOAM's loops over faces. So the result has the same bits on any number of threads.
#include "mesh/polyhedra.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "krilu/error.hpp"

namespace krilu::mesh {

namespace {

constexpr Index least_corners = 3, least_faces = 4;

/// What the area vectors of a cell may add up to beside their magnitudes; OpenFOAM's checkMesh asks the same.
constexpr double open_beyond = 1e-6;

/// Faces of less area have no centre of area; OpenFOAM's bound.
constexpr double no_area = 1e-150;

double norm(const Vector3& v) { return std::sqrt(dot(v, v)); }
double sum_of_magnitudes(const Vector3& v) { return std::abs(v.x) + std::abs(v.y) + std::abs(v.z); }

struct FaceGeometry {
  Vector3 centre, area;
};

FaceGeometry face_geometry(const Vector3* points, const Index* corners, Index n) {
  if (n == 3) {
    const Vector3 &a = points[corners[0]], &b = points[corners[1]], &c = points[corners[2]];
    return {(1.0 / 3) * (a + b + c), 0.5 * cross(b - a, c - a)};
  }
  Vector3 middle{0, 0, 0};
  for (Index i = 0; i < n; ++i) middle += points[corners[i]];
  middle = (1.0 / n) * middle;
  Vector3 twice_area{0, 0, 0}, moment{0, 0, 0};  // the moment about the middle
  double weight = 0;
  for (Index i = 0; i < n; ++i) {
    const Vector3 a = points[corners[i]] - middle, b = points[corners[i + 1 < n ? i + 1 : 0]] - middle;
    const Vector3 triangle = cross(a, b);
    const double w = norm(triangle);
    twice_area += triangle;
    moment += w * (a + b);
    weight += w;
  }
  if (!(weight >= no_area)) return {middle, {0, 0, 0}};
  return {middle + (1 / (3 * weight)) * moment, 0.5 * twice_area};
}

/// The faces of each cell: those that it owns, then the others as ~face.
struct OrientedFaces {
  Buffer<Offset> offsets;
  Buffer<Index> faces;
};

OrientedFaces faces_of_cells(const Polyhedra& p) {
  OrientedFaces out;
  out.offsets.assign(std::size_t(p.cells) + 1, 0);
  for (const Index c : p.owner) ++out.offsets[std::size_t(c) + 1];
  for (const Index c : p.neighbour) ++out.offsets[std::size_t(c) + 1];
  for (std::size_t c = 1; c < out.offsets.size(); ++c) out.offsets[c] += out.offsets[c - 1];
  out.faces.resize(std::size_t(out.offsets.back()));
  Buffer<Offset> next(out.offsets.begin(), out.offsets.end() - 1);
  for (std::size_t f = 0; f < p.owner.size(); ++f)
    out.faces[std::size_t(next[std::size_t(p.owner[f])]++)] = static_cast<Index>(f);
  for (std::size_t f = 0; f < p.neighbour.size(); ++f)
    out.faces[std::size_t(next[std::size_t(p.neighbour[f])]++)] = ~static_cast<Index>(f);
  return out;
}

struct CellGeometry {
  Vector3 centre;
  double volume;
  bool closed;

  bool finite() const { return std::isfinite(volume) && std::isfinite(sum_of_magnitudes(centre)); }
};

CellGeometry cell_geometry(const Mesh& m, const Index* faces, Index n) {
  const auto geometry = [&m](Index face) -> FaceGeometry {
    const Index f = face < 0 ? ~face : face;
    if (f >= m.faces())
      return {m.boundary_centre[std::size_t(f - m.faces())], m.boundary_area[std::size_t(f - m.faces())]};
    const Vector3& area = m.area[std::size_t(f)];
    return {m.face_centre[std::size_t(f)], face < 0 ? -area : area};
  };
  Vector3 apex{0, 0, 0};
  for (Index i = 0; i < n; ++i) apex += geometry(faces[i]).centre;
  apex = (1.0 / n) * apex;
  Vector3 moment{0, 0, 0}, sum{0, 0, 0};
  double thrice_volume = 0, surface = 0;
  for (Index i = 0; i < n; ++i) {
    const FaceGeometry face = geometry(faces[i]);
    const Vector3 height = face.centre - apex;
    const double pyramid = dot(face.area, height);
    thrice_volume += pyramid;
    moment += pyramid * height;  // a pyramid's centre stands at 3/4 of the way from its apex to its base
    sum += face.area;
    surface += sum_of_magnitudes(face.area);
  }
  return {apex + (0.75 / thrice_volume) * moment, thrice_volume / 3, sum_of_magnitudes(sum) <= open_beyond * surface};
}

/// The least i of 0 .. n-1 for which bad(i) holds, or n.
template <class F>
Index first_bad(const exec::Host& host, std::size_t n, F bad) {
  std::atomic<Index> first{static_cast<Index>(n)};
  host.for_each_range(n, [&first, &bad](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      if (!bad(i)) continue;
      Index seen = first.load();
      while (i < seen && !first.compare_exchange_weak(seen, i)) {
      }
      return;
    }
  });
  return first;
}

void require_sound(const exec::Host& host, const Polyhedra& p) {
  const std::size_t faces = p.offsets.empty() ? 0 : p.offsets.size() - 1, internal = p.neighbour.size();
  if (p.owner.size() != faces || internal > faces || p.cells < 0)
    throw Error(
        fmt::format("the mesh has {} faces, {} owners and {} neighbours; give every face an owner, and the "
                    "internal ones, which come first, a neighbour",
                    faces, p.owner.size(), internal));
  if (faces + internal > std::size_t(std::numeric_limits<Index>::max()))
    throw Error(
        fmt::format("the mesh has {} faces, {} of them internal, which is beyond the 2147483647 sides of faces "
                    "that one mesh may have; split it over several processes",
                    faces, internal));
  if (faces > 0 && (p.offsets.front() != 0 || std::size_t(p.offsets.back()) != p.corners.size()))
    throw Error(fmt::format("the faces of the mesh take up corners {} to {} of {}; give them all from 0 on",
                            p.offsets.front(), p.offsets.back(), p.corners.size()));
  // Offsets first, since corners are looked at through them.
  Index f = first_bad(host, faces, [&p](Index i) {
    const auto k = std::size_t(i);
    return p.offsets[k + 1] < p.offsets[k] || p.offsets[k + 1] - p.offsets[k] < least_corners;
  });
  if (std::size_t(f) < faces) throw Error(fmt::format("face {} has fewer than three corners; correct the mesh", f));
  const std::size_t points = p.points.size();
  f = first_bad(host, faces, [&p, points](Index i) {
    for (Offset k = p.offsets[std::size_t(i)]; k < p.offsets[std::size_t(i) + 1]; ++k) {
      const Index corner = p.corners[std::size_t(k)];
      if (corner < 0 || std::size_t(corner) >= points) return true;
    }
    return false;
  });
  if (std::size_t(f) < faces)
    throw Error(fmt::format("face {} has a corner that is none of the {} points; correct the mesh", f, points));
  const auto exists = [&p](Index cell) { return cell >= 0 && cell < p.cells; };
  f = first_bad(host, faces, [&](Index i) {
    const auto k = std::size_t(i);
    return !exists(p.owner[k]) || (k < internal && (!exists(p.neighbour[k]) || p.neighbour[k] == p.owner[k]));
  });
  if (std::size_t(f) < faces) {
    const auto k = std::size_t(f);
    throw Error(fmt::format("face {} has the owner {}{}; it must be one of the {} cells, and its neighbour another", f,
                            p.owner[k], k < internal ? fmt::format(" and the neighbour {}", p.neighbour[k]) : "",
                            p.cells));
  }
}

[[noreturn]] void refuse_count(Index cell, Index faces) {
  throw Error(fmt::format("cell {} has {} faces, and a cell that is closed has four at least; correct the mesh", cell,
                          faces == 0 ? "no" : std::to_string(faces)));
}

[[noreturn]] void refuse_cell(Index cell, Index faces, const CellGeometry& g) {
  if (g.volume <= 0)
    throw Error(
        fmt::format("cell {} has the volume {:.6g} m^3, which must be positive: it is flat or folded, or its "
                    "faces do not turn outwards from their owner; correct the mesh",
                    cell, g.volume));
  if (!g.finite())
    throw Error(fmt::format("cell {} has a volume or a centre that no double holds; give the points in metres", cell));
  throw Error(
      fmt::format("cell {} is not closed: the area vectors of its {} faces do not add up to zero; one is "
                  "missing, too many, or turned the wrong way",
                  cell, faces));
}

}  // namespace

Mesh to_mesh(const exec::Host& host, Polyhedra&& polyhedra) {
  Polyhedra p = std::move(polyhedra);
  require_sound(host, p);
  Mesh m;
  m.cells = p.cells;
  const std::size_t faces = p.owner.size(), internal = p.neighbour.size();
  m.face_centre.resize(internal);
  m.area.resize(internal);
  m.boundary_centre.resize(faces - internal);
  m.boundary_area.resize(faces - internal);
  host.for_each_range(faces, [&](Index begin, Index end) {
    for (auto f = std::size_t(begin); f < std::size_t(end); ++f) {
      const Offset first = p.offsets[f];
      const FaceGeometry g = face_geometry(p.points.data(), p.corners.data() + first, p.offsets[f + 1] - first);
      (f < internal ? m.face_centre[f] : m.boundary_centre[f - internal]) = g.centre;
      (f < internal ? m.area[f] : m.boundary_area[f - internal]) = g.area;
    }
  });
  Buffer<Vector3>().swap(p.points);
  Buffer<Offset>().swap(p.offsets);
  Buffer<Index>().swap(p.corners);

  const OrientedFaces of = faces_of_cells(p);
  m.boundary.assign(p.owner.begin() + std::ptrdiff_t(internal), p.owner.end());
  p.owner.resize(internal);
  p.owner.shrink_to_fit();
  m.owner = std::move(p.owner);
  m.neighbour = std::move(p.neighbour);
  m.patches = std::move(p.patches);

  const auto cells = std::size_t(m.cells);
  m.centre.resize(cells);
  m.volume.resize(cells);
  const auto count = [&of](Index c) { return of.offsets[std::size_t(c) + 1] - of.offsets[std::size_t(c)]; };
  const auto geometry = [&](Index c) {
    return cell_geometry(m, of.faces.data() + of.offsets[std::size_t(c)], count(c));
  };
  // A cell without faces explains others that are not closed, and is named before them.
  Index bad = first_bad(host, cells, [&](Index c) { return count(c) < least_faces; });
  if (bad < m.cells) refuse_count(bad, count(bad));
  bad = first_bad(host, cells, [&](Index c) {
    const CellGeometry g = geometry(c);
    m.centre[std::size_t(c)] = g.centre;
    m.volume[std::size_t(c)] = g.volume;
    return !(g.finite() && g.volume > 0 && g.closed);
  });
  if (bad < m.cells) refuse_cell(bad, count(bad), geometry(bad));
  return m;
}

}  // namespace krilu::mesh
