// SPDX-License-Identifier: Apache-2.0
// The faces within one tile by their lower cells: a row for each cell, sorted by how far away the other cell is. What
// is at work of a tile should stay in a core's cache: 8 bytes a face, 4 a cell.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <span>
#include <vector>

#include "krilu/types.hpp"
#include "mesh/dealt_faces.hpp"

namespace krilu::mesh {

/// A face in the row of its lower cell: how far away the other cell is, the face, and whether it is turned, its lower
/// cell being the neighbour. Rows are sorted by this.
struct InRow {
  InRow() = default;
  explicit InRow(const TileFace& f)
      : word(std::uint64_t(std::abs(f.owner - f.neighbour)) << 32 | std::uint64_t(f.face) << 1 |
             std::uint32_t(f.neighbour - f.owner) >> 31) {}
  Index step() const { return Index(word >> 32); }
  Index face() const { return Index((word & 0xffffffffu) >> 1); }
  bool turned() const { return word & 1; }
  FaceCells of(Index lower) const {
    return turned() ? FaceCells{face(), lower + step(), lower} : FaceCells{face(), lower, lower + step()};
  }
  bool operator<(InRow o) const { return word < o.word; }

  std::uint64_t word;
};

/// Work space of one thread.
class TileRows {
 public:
  /// A tile's faces, of all that were dealt; it has so many cells. Rows are not sorted yet.
  void fill(std::span<const DealtFaces> all, Index tile, Index cells) {
    end_.assign(std::size_t(cells) + 1, 0);
    const auto for_faces = [&](auto f) {
      for (const DealtFaces& dealt : all) dealt.for_each(tile, f);
    };
    Index* const end = end_.data();
    for_faces([=](const TileFace& f) { ++end[f.lower() + 1]; });
    std::partial_sum(end_.begin(), end_.end(), end_.begin());
    face_.resize(std::size_t(end_.back()));
    InRow* const face = face_.data();
    for_faces([=](const TileFace& f) { face[end[f.lower()]++] = InRow(f); });
  }
  /// The row of the tile's cell i.
  std::span<InRow> of(Index i) { return {face_.data() + begin_of(i), face_.data() + end_[std::size_t(i)]}; }
  /// Faces in rows first .. last-1, which are some.
  Index count(Index first, Index last) const { return end_[std::size_t(last) - 1] - begin_of(first); }
  /// Sorts rows first .. last-1: to be called for a few, just before they are read.
  void sort(Index first, Index last) {
    for (Index i = first; i < last; ++i) sort_row(of(i));
  }

 private:
  Index begin_of(Index i) const { return i > 0 ? end_[std::size_t(i) - 1] : 0; }
  /// Up to four without a branch: which of two is the lesser no processor foresees.
  static void sort_row(std::span<InRow> row) {
    const auto exchange = [](std::uint64_t& a, std::uint64_t& b) {
      const std::uint64_t swapped = (a ^ b) & (0 - std::uint64_t(b < a));
      a ^= swapped;
      b ^= swapped;
    };
    if (row.size() <= 1) return;
    if (row.size() == 2) return exchange(row[0].word, row[1].word);
    if (row.size() > 4) return std::sort(row.begin(), row.end());
    std::uint64_t a = row[0].word, b = row[1].word, c = row[2].word;
    exchange(a, b);
    exchange(b, c);
    exchange(a, b);
    if (row.size() == 4) {
      std::uint64_t d = row[3].word;
      exchange(c, d);
      exchange(b, c);
      exchange(a, b);
      row[3].word = d;
    }
    row[0].word = a;
    row[1].word = b;
    row[2].word = c;
  }

  std::vector<InRow> face_;
  std::vector<Index> end_;  // of each cell's row
};

}  // namespace krilu::mesh
