// SPDX-License-Identifier: Apache-2.0
#include "mesh/cell_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "exec/tasks.hpp"
#include "krilu/error.hpp"

namespace krilu::mesh {

namespace {

struct Faces {
  std::span<const Index> owner, neighbour;
  std::size_t size() const { return owner.size(); }
};

/// Faces in their order, each to its two cells.
void scatter(const Faces& faces, std::size_t cells, CellFaces& g) {
  // Of each cell, at cell + 1: its faces, then where they begin, at last where they end.
  std::fill(g.offsets.begin(), g.offsets.end(), 0);
  Offset* next = g.offsets.data() + 1;
  for (std::size_t f = 0; f < faces.size(); ++f) {
    ++next[faces.owner[f]];
    ++next[faces.neighbour[f]];
  }
  Offset sum = 0;
  for (std::size_t c = 0; c < cells; ++c) {
    const Offset count = next[c];
    next[c] = sum;
    sum += count;
  }
  for (std::size_t f = 0; f < faces.size(); ++f) {
    const Index a = faces.owner[f], b = faces.neighbour[f];
    const Offset i = next[a]++, j = next[b]++;
    g.face[std::size_t(i)] = g.face[std::size_t(j)] = Index(f);
    g.cell[std::size_t(i)] = b;
    g.cell[std::size_t(j)] = a;
  }
}

/// The same, by ranges of cells: threads share the faces first, and then the ranges. A piece of the faces keeps its
/// order, and pieces stand in theirs, so that the outcome is that of scatter().
void scatter_by_ranges(const exec::Host& host, const Faces& faces, std::size_t cells, CellFaces& g) {
  struct Entry {
    Index cell, face, beyond;
  };
  constexpr int shift = 15;  // of 2^15 cells, faces and cells beyond are 1.5 MB on a lattice
  const std::size_t ranges = ((cells - 1) >> shift) + 1, pieces = std::size_t(host.threads());
  const auto first_face = [&](std::size_t p) { return faces.size() * p / pieces; };
  std::vector<std::vector<Offset>> next(pieces);  // of each piece and range: its entries, then where they begin
  for_each_task(host, pieces, [&](std::size_t p) {
    std::vector<Offset> count(ranges, 0);
    for (std::size_t f = first_face(p); f < first_face(p + 1); ++f) {
      ++count[std::size_t(faces.owner[f] >> shift)];
      ++count[std::size_t(faces.neighbour[f] >> shift)];
    }
    next[p] = std::move(count);
  });
  std::vector<Offset> begin(ranges + 1);
  Offset sum = 0;
  for (std::size_t r = 0; r < ranges; ++r) {
    begin[r] = sum;
    for (std::vector<Offset>& of_piece : next) sum += std::exchange(of_piece[r], sum);
  }
  begin[ranges] = g.offsets[cells] = sum;

  Buffer<Entry> entries(2 * faces.size());
  for_each_task(host, pieces, [&](std::size_t p) {
    Offset* to = next[p].data();
    for (std::size_t f = first_face(p); f < first_face(p + 1); ++f) {
      const Index a = faces.owner[f], b = faces.neighbour[f];
      entries[std::size_t(to[a >> shift]++)] = {a, Index(f), b};
      entries[std::size_t(to[b >> shift]++)] = {b, Index(f), a};
    }
  });
  for_each_task(host, ranges, [&](std::size_t r) {
    const std::span<const Entry> mine{entries.data() + begin[r], entries.data() + begin[r + 1]};
    const std::size_t first = r << shift, last = std::min(cells, first + (std::size_t(1) << shift));
    std::vector<Offset> place(last - first, 0);
    for (const Entry& e : mine) ++place[std::size_t(e.cell) - first];
    Offset at = begin[r];
    for (std::size_t c = first; c < last; ++c) {
      g.offsets[c] = at;
      at += std::exchange(place[c - first], at);
    }
    for (const Entry& e : mine) {
      const auto to = std::size_t(place[std::size_t(e.cell) - first]++);
      g.face[to] = e.face;
      g.cell[to] = e.beyond;
    }
  });
}

/// Whether most faces have a neighbour that lies far from those of the faces before, by samples: scatter() would then
/// miss the caches once or twice a face.
bool scattered(const Faces& faces) {
  constexpr std::size_t samples = 512, back = 8;
  constexpr Index near = 16;
  std::size_t far = 0;
  for (std::size_t s = 0; s < samples; ++s) {
    const std::size_t f = back + (faces.size() - back) / samples * s;
    bool found = false;
    for (std::size_t k = 1; k <= back; ++k)
      found = found || std::abs(std::int64_t(faces.neighbour[f]) - faces.neighbour[f - k]) <= near;
    far += !found;
  }
  return far > samples / 2;
}

}  // namespace

CellFaces cell_faces(const exec::Host& host, Index cells, std::span<const Index> owner,
                     std::span<const Index> neighbour) {
  if (owner.size() != neighbour.size())
    throw Error(
        fmt::format("a mesh gives owners for {} internal faces and neighbours for {}: each face has one of each",
                    owner.size(), neighbour.size()));
  if (2 * owner.size() > std::size_t(std::numeric_limits<Offset>::max()))
    throw Error(
        fmt::format("the cells of a mesh with {} internal faces have 2^31 faces or more together, which 32-bit "
                    "positions cannot count: divide the mesh",
                    owner.size()));
  CellFaces g;
  g.offsets.resize(std::size_t(cells) + 1);
  g.face.resize(2 * owner.size());
  g.cell.resize(2 * owner.size());
  const Faces faces{owner, neighbour};
  // Measured at 8 million cells on a lattice, seconds of scatter() and of ranges with one thread and with two: 0.14 and
  // 0.46, 0.25; its cells in random order: 0.8 and 0.6, 0.3.
  const bool many = faces.size() > (std::size_t(1) << 20);
  if (many && (host.threads() > 3 || scattered(faces)))
    scatter_by_ranges(host, faces, std::size_t(cells), g);
  else
    scatter(faces, std::size_t(cells), g);
  return g;
}

}  // namespace krilu::mesh
