// SPDX-License-Identifier: Apache-2.0
// The faces within one tile, or a part of its lower cells, by those: a row for each cell, sorted by how far away the
// other cell is. What is at work should stay in a core's cache: 16 bytes a face, 4 a cell.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "krilu/types.hpp"
#include "mesh/dealt_faces.hpp"

namespace krilu::mesh {

/// Work space of one thread.
class TileRows {
 public:
  /// What was dealt to a hand, where that is the faces of a tile's lower cells first .. last-1. Not sorted yet.
  void fill(std::span<const DealtFaces> all, Index hand, Index first, Index last) {
    first_ = first;
    last_ = last;
    end_.assign(std::size_t(last - first) + 1, 0);
    const auto for_faces = [&](auto f) {
      for (const DealtFaces& dealt : all) dealt.for_each(hand, f);
    };
    Index* const end = end_.data();
    for_faces([=](TileFace f) { ++end[f.lower() - first + 1]; });
    std::partial_sum(end_.begin(), end_.end(), end_.begin());
    face_.resize(std::size_t(end_.back()));
    TileFace* const face = face_.data();
    for_faces([=](TileFace f) { face[end[f.lower() - first]++] = f; });
  }
  Index first() const { return first_; }
  Index last() const { return last_; }
  /// The rows of the tile's cells begin .. end-1, one after the other.
  std::span<TileFace> of(Index begin, Index end) {
    return {face_.data() + begin_of(begin), face_.data() + begin_of(end)};
  }
  std::span<TileFace> of(Index cell) { return of(cell, cell + 1); }
  /// Sorts rows begin .. end-1: to be called for a few, just before they are read.
  void sort(Index begin, Index end) {
    for (Index i = begin; i < end; ++i) sort_row(of(i));
  }

 private:
  Index begin_of(Index i) const { return i > first_ ? end_[std::size_t(i - first_) - 1] : 0; }
  /// Up to four without a branch: which of two is the lesser no processor foresees.
  static void sort_row(std::span<TileFace> row) {
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

  Index first_ = 0, last_ = 0;
  std::vector<TileFace> face_;
  std::vector<Index> end_;  // of each cell's row
};

}  // namespace krilu::mesh
