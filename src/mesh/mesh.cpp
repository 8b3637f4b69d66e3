// SPDX-License-Identifier: Apache-2.0
// What a mesh must be before anything is built on it. Each array is read once, by all threads; of several faults in an
// array the first is named, whatever the number of threads.
#include "krilu/mesh.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include "exec/host.hpp"
#include "krilu/error.hpp"

namespace krilu {

namespace {

/// The least i < n with wrong(i), or n.
template <class Wrong>
Index first_wrong(const exec::Host& host, std::size_t n, Wrong wrong) {
  std::atomic<Index> first{Index(n)};
  host.for_each_range(n, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      if (wrong(std::size_t(i))) {
        Index seen = first.load(std::memory_order_relaxed);
        while (i < seen && !first.compare_exchange_weak(seen, i, std::memory_order_relaxed)) {
        }
        return;
      }
  });
  return first;
}

bool is_finite(const Vector3& v) { return std::isfinite(v.x) && std::isfinite(v.y) && std::isfinite(v.z); }

std::string text_of(const Vector3& v) { return fmt::format("({} {} {})", v.x, v.y, v.z); }

void require_lengths(const Mesh& mesh) {
  constexpr auto most = std::size_t(std::numeric_limits<Index>::max());
  if (mesh.cells < 0) throw Error(fmt::format("the mesh has {} cells: there cannot be fewer than 0", mesh.cells));
  for (const auto& [what, count] :
       {std::pair("internal faces", mesh.owner.size()), std::pair("boundary faces", mesh.boundary.size())})
    if (count > most) throw Error(fmt::format("the mesh has {} {}: at most 2147483647 can be numbered", count, what));
  if (mesh.owner.size() != mesh.neighbour.size())
    throw Error(fmt::format("the mesh has {} owners and {} neighbours: each internal face has one of both",
                            mesh.owner.size(), mesh.neighbour.size()));

  const auto cells = std::size_t(mesh.cells), faces = mesh.owner.size(), boundary = mesh.boundary.size();
  struct Length {
    const char* name;
    std::size_t given, due;
    const char* each;
  };
  const Length lengths[] = {{"centre", mesh.centre.size(), cells, "cells"},
                            {"volume", mesh.volume.size(), cells, "cells"},
                            {"face_centre", mesh.face_centre.size(), faces, "internal faces"},
                            {"area", mesh.area.size(), faces, "internal faces"},
                            {"boundary_centre", mesh.boundary_centre.size(), boundary, "boundary faces"},
                            {"boundary_area", mesh.boundary_area.size(), boundary, "boundary faces"}};
  bool any = false;
  for (const Length& l : lengths) any = any || l.given != 0;
  for (const Length& l : lengths)
    if (any && l.given != l.due)
      throw Error(
          fmt::format("the mesh has {} entries in {} for {} {}: the six arrays of geometry are all given or all empty",
                      l.given, l.name, l.due, l.each));

  for (const Patch& p : mesh.patches)
    if (p.first < 0 || p.faces < 0 || std::size_t(p.first) + std::size_t(p.faces) > boundary)
      throw Error(fmt::format("patch '{}' begins at boundary face {} and has {}: the mesh has {} boundary faces",
                              p.name, p.first, p.faces, boundary));
}

}  // namespace

std::size_t Mesh::bytes() const {
  std::size_t sum = 0;
  const auto add = [&](const auto&... arrays) { sum += ((arrays.size() * sizeof(arrays[0])) + ...); };
  add(owner, neighbour, boundary, patches, centre, volume, face_centre, area, boundary_centre, boundary_area);
  for (const Patch& p : patches) add(p.name, p.type);
  return sum;
}

void require_valid(const Mesh& mesh, bool of_faces) {
  require_lengths(mesh);
  const exec::Host host;
  const Index cells = mesh.cells;
  const bool geometry = !mesh.volume.empty(), look = geometry && of_faces;
  const auto is_cell = [cells](Index c) { return c >= 0 && c < cells; };
  const auto no_cell = [&](const char* face, Index f, const char* what, Index c) {
    return Error(fmt::format("{} {}: its {} is cell {}, but cells are numbered 0 to {}", face, f, what, c,
                             std::int64_t(cells) - 1));
  };
  const auto not_finite = [](const char* what, Index f, const char* value, const Vector3& v) {
    return Error(fmt::format("{} {}: its {} is {}, which is not finite", what, f, value, text_of(v)));
  };

  const std::size_t faces = mesh.owner.size();
  const Index f = first_wrong(host, faces, [&](std::size_t i) {
    const Index o = mesh.owner[i], n = mesh.neighbour[i];
    return !is_cell(o) || !is_cell(n) || o == n ||
           (look && !(is_finite(mesh.area[i]) && is_finite(mesh.face_centre[i])));
  });
  if (const auto i = std::size_t(f); i < faces) {
    const Index o = mesh.owner[i], n = mesh.neighbour[i];
    if (!is_cell(o)) throw no_cell("internal face", f, "owner", o);
    if (!is_cell(n)) throw no_cell("internal face", f, "neighbour", n);
    if (o == n) throw Error(fmt::format("internal face {}: cell {} is both its owner and its neighbour", f, o));
    if (!is_finite(mesh.area[i])) throw not_finite("internal face", f, "area", mesh.area[i]);
    throw not_finite("internal face", f, "centre", mesh.face_centre[i]);
  }

  const std::size_t boundary = mesh.boundary.size();
  const Index b = first_wrong(host, boundary, [&](std::size_t i) {
    return !is_cell(mesh.boundary[i]) ||
           (look && !(is_finite(mesh.boundary_area[i]) && is_finite(mesh.boundary_centre[i])));
  });
  if (const auto i = std::size_t(b); i < boundary) {
    if (!is_cell(mesh.boundary[i])) throw no_cell("boundary face", b, "owner", mesh.boundary[i]);
    if (!is_finite(mesh.boundary_area[i])) throw not_finite("boundary face", b, "area", mesh.boundary_area[i]);
    throw not_finite("boundary face", b, "centre", mesh.boundary_centre[i]);
  }

  if (!geometry) return;
  const Index c = first_wrong(host, std::size_t(cells), [&](std::size_t i) {
    return !(mesh.volume[i] > 0 && std::isfinite(mesh.volume[i]) && is_finite(mesh.centre[i]));
  });
  if (const auto i = std::size_t(c); c < cells) {
    if (!is_finite(mesh.centre[i])) throw not_finite("cell", c, "centre", mesh.centre[i]);
    throw Error(fmt::format("cell {}: its volume is {}, which must be finite and above 0", c, mesh.volume[i]));
  }
}

}  // namespace krilu
