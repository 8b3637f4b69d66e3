// SPDX-License-Identifier: Apache-2.0
// From elements to faces; see elements.hpp. Three passes: the sides of all cells with their corners in ascending order,
// the matching of equal ones, and the faces, cell by cell, so that they come out in upper triangular order.
#include "mesh/elements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "krilu/error.hpp"

namespace krilu::mesh {

namespace {

constexpr std::size_t most_corners = 4;  // of a side

/// A side by its places in the element, anticlockwise as seen from outside; -1: it has fewer.
using Side = std::array<int, most_corners>;

struct ShapeTable {
  std::size_t corners;
  std::vector<Side> sides;
};

/// In VTK's numbering. An element whose corners run the other way has all its sides turned.
const ShapeTable& table(Shape shape) {
  static const std::array<ShapeTable, 7> tables{{
      {2, {}},
      {3, {{0, 1, -1, -1}, {1, 2, -1, -1}, {2, 0, -1, -1}}},
      {4, {{0, 1, -1, -1}, {1, 2, -1, -1}, {2, 3, -1, -1}, {3, 0, -1, -1}}},
      {4, {{0, 2, 1, -1}, {0, 1, 3, -1}, {1, 2, 3, -1}, {2, 0, 3, -1}}},
      {8, {{0, 3, 2, 1}, {4, 5, 6, 7}, {0, 1, 5, 4}, {1, 2, 6, 5}, {2, 3, 7, 6}, {3, 0, 4, 7}}},
      {6, {{0, 2, 1, -1}, {3, 4, 5, -1}, {0, 1, 4, 3}, {1, 2, 5, 4}, {2, 0, 3, 5}}},
      {5, {{0, 3, 2, 1}, {0, 1, 4, -1}, {1, 2, 4, -1}, {2, 3, 4, -1}, {3, 0, 4, -1}}},
  }};
  return tables[std::size_t(shape)];
}

/// The corners of a side, in sequence.
struct Corners {
  std::array<Index, most_corners> corner{-1, -1, -1, -1};
  std::size_t count = 0;

  Corners(const Side& side, const Index* element, bool turned) {
    for (const int place : side)
      if (place >= 0) corner[count++] = element[place];
    if (turned) std::reverse(corner.begin(), corner.begin() + std::ptrdiff_t(count));
  }
};

/// A side of a cell, or an element of the boundary. Two that are the same face have equal keys.
struct SideOrElement {
  std::array<Index, most_corners> key;  // the corners, ascending; what is behind the last is the largest number
  Index cell;                           // -1: an element of the boundary
  std::uint32_t place;                  // twice the number of the side or element, sides first; + 1: see forwards()

  std::uint32_t number() const { return place >> 1; }
  bool operator<(const SideOrElement& o) const { return std::tie(key, place) < std::tie(o.key, o.place); }
};

/// By insertion: std::sort of a few makes GCC 12 see accesses that there are none of.
template <class T>
void sort_few(T* items, std::size_t count) {
  for (std::size_t k = 1; k < count; ++k)
    for (std::size_t j = k; j > 0 && items[j] < items[j - 1]; --j) std::swap(items[j], items[j - 1]);
}

std::array<Index, most_corners> key_of(const Index* corners, std::size_t count) {
  std::array<Index, most_corners> key;
  key.fill(std::numeric_limits<Index>::max());
  std::copy_n(corners, count, key.begin());
  sort_few(key.data(), count);
  return key;
}

/// Which way round the corners run: the two cells of a face see it differently.
bool forwards(const Corners& c) {
  if (c.count == 2) return c.corner[0] < c.corner[1];
  const auto least =
      std::size_t(std::min_element(c.corner.begin(), c.corner.begin() + std::ptrdiff_t(c.count)) - c.corner.begin());
  return c.corner[(least + 1) % c.count] < c.corner[(least + c.count - 1) % c.count];
}

/// Twice the area, in two dimensions, or six times the volume, of an element whose corners run the way of the tables.
/// Of a solid it is the sum over its sides, each cut into triangles round the mean m of its corners, of m . (a x b).
double signed_size(const Elements& e, Shape shape, const Index* corners) {
  const Vector3 origin = e.points[std::size_t(corners[0])];
  const auto at = [&](Index corner) {
    Vector3 v = e.points[std::size_t(corner)] - origin;
    if (e.dimensions == 2) v.z = 0;
    return v;
  };
  double sum = 0;
  for (const Side& side : table(shape).sides) {
    const Corners c(side, corners, false);
    Vector3 middle{0, 0, 1};
    if (c.count > 2) {
      middle = {0, 0, 0};
      for (std::size_t i = 0; i < c.count; ++i) middle += (1.0 / double(c.count)) * at(c.corner[i]);
    }
    const std::size_t edges = c.count > 2 ? c.count : 1;
    for (std::size_t i = 0; i < edges; ++i) sum += dot(middle, cross(at(c.corner[i]), at(c.corner[(i + 1) % c.count])));
  }
  return sum;
}

/// f(cell, shape, its corners, number of its first side).
template <class F>
void for_cells(const Elements& e, F f) {
  const Index* corners = e.cells.corners.data();
  std::uint32_t first = 0;
  for (std::size_t c = 0; c < e.cells.size(); ++c) {
    const Shape shape = e.cells.shape[c];
    f(Index(c), shape, corners, first);
    corners += corners_of(shape);
    first += std::uint32_t(table(shape).sides.size());
  }
}

/// All sides and elements of the boundary, sorted, with those of equal keys next to each other.
Buffer<SideOrElement> sorted_entries(const Elements& e, const Buffer<char>& turned, std::size_t sides) {
  // next[p]: how many have p as their least corner, then where these start.
  Buffer<std::uint32_t> next(e.points.size() + 1);
  std::fill(next.begin(), next.end(), 0u);
  const auto for_entries = [&](auto f) {
    for_cells(e, [&](Index c, Shape shape, const Index* corners, std::uint32_t side) {
      for (const Side& s : table(shape).sides) {
        const Corners own(s, corners, turned[std::size_t(c)] != 0);
        f(SideOrElement{key_of(own.corner.data(), own.count), c, side++ << 1 | std::uint32_t(forwards(own))});
      }
    });
    const Index* corners = e.boundary.corners.data();
    for (std::size_t b = 0; b < e.boundary.size(); ++b) {
      const std::size_t count = corners_of(e.boundary.shape[b]);
      f(SideOrElement{key_of(corners, count), -1, std::uint32_t(sides + b) << 1});
      corners += count;
    }
  };
  for_entries([&](const SideOrElement& entry) { ++next[std::size_t(entry.key[0])]; });
  std::uint32_t sum = 0;
  for (std::uint32_t& n : next) n = std::exchange(sum, sum + n);
  Buffer<SideOrElement> entries(sides + e.boundary.size());
  for_entries([&](const SideOrElement& entry) { entries[next[std::size_t(entry.key[0])]++] = entry; });
  std::uint32_t begin = 0;
  for (const std::uint32_t end : next) {
    if (end > begin) std::sort(entries.data() + begin, entries.data() + end);
    begin = std::max(begin, end);
  }
  return entries;
}

/// beyond[side]: the cell on its other side, or ~patch.
Buffer<Index> match(const Elements& e, const Buffer<SideOrElement>& entries, std::size_t sides) {
  const auto unmarked = Index(e.patches.size());
  Buffer<Index> beyond(sides);
  std::fill(beyond.begin(), beyond.end(), ~unmarked);
  for (std::size_t k = 0; k < entries.size();) {
    const SideOrElement *const a = &entries[k], *const b = a + 1, *end = b;
    while (++k < entries.size() && entries[k].key == a->key) ++end;
    const auto of_boundary = [&](const SideOrElement* entry) { return std::size_t(entry->number()) - sides; };
    const SideOrElement* const marks = std::find_if(a, end, [](const SideOrElement& entry) { return entry.cell < 0; });
    if (marks == a)
      throw WrongElement{true, of_boundary(a), "no cell has a face with these corners, so that no patch can have it"};
    if (marks - a > 2)
      throw WrongElement{false, std::size_t(a[2].cell),
                         fmt::format("the element shares a face with elements {} and {}, counted from 0, and a face "
                                     "has two cells at most",
                                     a->cell, b->cell)};
    if (marks - a == 2) {
      if (((a->place ^ b->place) & 1) == 0)
        throw WrongElement{false, std::size_t(b->cell),
                           fmt::format("the element shares a face with element {}, counted from 0, and stands on the "
                                       "same side of it: the two overlap",
                                       a->cell)};
      if (marks != end)
        throw WrongElement{true, of_boundary(marks),
                           fmt::format("the face lies between elements {} and {}, counted from 0; only faces of the "
                                       "boundary belong to a marker",
                                       a->cell, b->cell)};
      beyond[a->number()] = b->cell;
      beyond[b->number()] = a->cell;
      continue;
    }
    if (end - marks > 1) {
      const Index first = e.patch[of_boundary(marks)], second = e.patch[of_boundary(marks + 1)];
      throw WrongElement{true, of_boundary(marks + 1),
                         fmt::format("the face stands in the marker '{}' {}", e.patches[std::size_t(first)],
                                     first == second ? "already" : "as well; a face belongs to one")};
    }
    if (marks != end) beyond[a->number()] = ~e.patch[of_boundary(marks)];
  }
  return beyond;
}

/// Faces one behind another, with the cell of each.
struct FaceList {
  Buffer<Index> owner, corners;
  Buffer<std::uint8_t> count;

  void add(Index cell, const Index* of, std::size_t n) {
    owner.push_back(cell);
    corners.insert(corners.end(), of, of + n);
    count.push_back(std::uint8_t(n));
  }
};

}  // namespace

std::size_t corners_of(Shape shape) { return table(shape).corners; }

Polyhedra to_polyhedra(Elements&& elements) {
  Elements e = std::move(elements);
  constexpr std::size_t most = std::numeric_limits<Index>::max();
  const bool plane = e.dimensions == 2;
  std::size_t sides = 0;
  for (const Shape s : e.cells.shape) sides += table(s).sides.size();
  // A face takes up to four corners, and offsets among these have 31 bits.
  if (4 * (sides + e.boundary.size() + (plane ? 2 * e.cells.size() : 0)) > most)
    throw Error(fmt::format("the mesh has {} cells with {} sides, and four corners for each are 2^31 or more; split it",
                            e.cells.size(), sides));
  if (e.points.size() * (plane ? 2 : 1) > most)
    throw Error(fmt::format("the mesh has {} points, which is 2^31 or more{}", e.points.size(),
                            plane ? " with those of its other side" : ""));

  Buffer<char> turned(e.cells.size());
  for_cells(e, [&](Index c, Shape shape, const Index* corners, std::uint32_t) {
    const double size = signed_size(e, shape, corners);
    if (!(size != 0 && std::isfinite(size)))
      throw WrongElement{false, std::size_t(c),
                         fmt::format("the element has {}: it is flat or folded, or its points are too far away",
                                     plane ? "no area" : "no volume")};
    turned[std::size_t(c)] = size < 0;
  });
  const Buffer<Index> beyond = match(e, sorted_entries(e, turned, sides), sides);

  // Patches, then `unmarked`, back and front.
  const std::size_t unmarked = e.patches.size(), back = unmarked + 1, front = unmarked + 2;
  FaceList internal;
  Buffer<Index> neighbours;
  std::vector<FaceList> lists(front + 1);
  const auto other_side = Index(e.points.size());
  const auto add_face = [&](FaceList& list, Index c, const Corners& side) {
    std::array<Index, most_corners> corner = side.corner;
    if (plane) {
      corner[2] = corner[1] + other_side;
      corner[3] = corner[0] + other_side;
    }
    list.add(c, corner.data(), plane ? most_corners : side.count);
  };
  for_cells(e, [&](Index c, Shape shape, const Index* corners, std::uint32_t first) {
    const bool turn = turned[std::size_t(c)] != 0;
    const std::vector<Side>& own = table(shape).sides;
    std::array<std::pair<Index, std::size_t>, 6> ahead;  // cells above this one, with the side between
    std::size_t count = 0;
    for (std::size_t s = 0; s < own.size(); ++s) {
      const Index other = beyond[first + s];
      if (other > c) ahead[count++] = {other, s};
      if (other < 0) add_face(lists[std::size_t(~other)], c, Corners(own[s], corners, turn));
    }
    sort_few(ahead.data(), count);
    for (std::size_t k = 0; k < count; ++k) {
      add_face(internal, c, Corners(own[ahead[k].second], corners, turn));
      neighbours.push_back(ahead[k].first);
    }
    if (!plane) return;
    std::array<Index, most_corners> corner{};
    const std::size_t n = corners_of(shape);
    std::copy_n(corners, n, corner.begin());
    const auto end = corner.begin() + std::ptrdiff_t(n);
    if (!turn) std::reverse(corner.begin(), end);
    lists[back].add(c, corner.data(), n);
    std::reverse(corner.begin(), end);
    for (auto i = corner.begin(); i != end; ++i) *i += other_side;
    lists[front].add(c, corner.data(), n);
  });

  Polyhedra p;
  p.cells = Index(e.cells.size());
  p.points = std::move(e.points);
  if (plane) {
    p.points.resize(2 * std::size_t(other_side));
    for (std::size_t k = 0; k < std::size_t(other_side); ++k) {
      p.points[k].z = 0;
      p.points[k + std::size_t(other_side)] = {p.points[k].x, p.points[k].y, 1};
    }
  }
  p.offsets.push_back(0);
  const auto append = [&p](FaceList& list) {
    p.owner.insert(p.owner.end(), list.owner.begin(), list.owner.end());
    p.corners.insert(p.corners.end(), list.corners.begin(), list.corners.end());
    for (const std::uint8_t n : list.count) p.offsets.push_back(p.offsets.back() + n);
    list = {};
  };
  append(internal);
  p.neighbour = std::move(neighbours);
  e.patches.insert(e.patches.end(), {"unmarked", "back", "front"});
  Index first = 0;
  for (std::size_t k = 0; k < lists.size(); ++k) {
    const auto faces = Index(lists[k].owner.size());
    append(lists[k]);
    if (faces > 0 || k < unmarked) p.patches.push_back({e.patches[k], k >= back ? "empty" : "patch", first, faces});
    first += faces;
  }
  return p;
}

}  // namespace krilu::mesh
