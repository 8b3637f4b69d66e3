// SPDX-License-Identifier: Apache-2.0
// Faces within tiles dealt out by one thread and without counting first: to the tile that holds both of their cells, or
// to the part of it that holds the lower one. What one hand gets stands in chunks, which are taken from one piece of
// memory as they are needed. Cost: 8 bytes a face written, and what is read together stands together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "krilu/buffer.hpp"
#include "krilu/types.hpp"

namespace krilu::mesh {

/// A face and its cells. Which of them is the lower one no core foresees: neither function is to become a branch, which
/// compilers make of a minimum and a maximum side by side.
struct FaceCells {
  Index face, owner, neighbour;
  Index lower() const { return std::min(owner, neighbour); }
  Index higher() const { return owner ^ neighbour ^ lower(); }
};

/// The same within a tile, in one word: the lower cell, counted from the tile's first, how far away the higher one is,
/// the face, and whether it is turned, its lower cell being the neighbour. Faces are sorted by this.
struct TileFace {
  static constexpr Index most_cells = 1 << 16;  // of a tile

  TileFace() = default;
  TileFace(Index face, Index lower, Index step, bool turned)
      : word(std::uint64_t(lower) << 48 | std::uint64_t(step) << 32 | std::uint64_t(face) << 1 |
             std::uint64_t(turned)) {}
  Index lower() const { return Index(word >> 48); }
  Index step() const { return Index(word >> 32 & 0xffff); }
  Index face() const { return Index((word & 0xffffffff) >> 1); }
  bool turned() const { return word & 1; }
  /// first: the tile's first cell.
  FaceCells of(Index first) const {
    const Index low = first + lower(), high = low + step();
    return turned() ? FaceCells{face(), high, low} : FaceCells{face(), low, high};
  }
  bool operator<(TileFace o) const { return word < o.word; }

  std::uint64_t word;
};

class DealtFaces {
 public:
  /// most: faces that may come.
  DealtFaces(Index most, Index hands) : chunk_(std::clamp<Index>(most / std::max<Index>(1, hands) / 4, 8, 512)) {
    const auto chunks = std::size_t(most / chunk_) + std::size_t(hands);
    memory_.resize(chunks * std::size_t(chunk_));
    next_.resize(chunks);
    first_.assign(std::size_t(hands), -1);
    hand_.resize(std::size_t(hands));
  }
  void deal(Index to, const TileFace& face) {
    Hand& hand = hand_[std::size_t(to)];
    if (hand.at == hand.end) [[unlikely]]
      begin_chunk(to);
    *hand.at++ = face;
  }
  Index dealt_to(Index to) const {
    const Hand& hand = hand_[std::size_t(to)];
    return hand.full - Index(hand.end - hand.at);
  }
  /// f(face) for those dealt to one hand, in the sequence in which they came.
  template <class F>
  void for_each(Index to, F f) const {
    Index left = dealt_to(to);
    for (Index c = first_[std::size_t(to)]; left > 0; left -= chunk_, c = next_[std::size_t(c)]) {
      if (left > chunk_) ask_for(next_[std::size_t(c)]);
      const TileFace* const at = begin_of(c);
      std::for_each(at, at + std::min(left, chunk_), f);
    }
  }

 private:
  struct Hand {
    TileFace *at = nullptr, *end = nullptr;  // of its last chunk
    Index full = 0;                          // faces that its chunks hold when all are full
  };
  const TileFace* begin_of(Index chunk) const { return memory_.data() + std::size_t(chunk) * std::size_t(chunk_); }
  TileFace* begin_of(Index chunk) { return memory_.data() + std::size_t(chunk) * std::size_t(chunk_); }
  /// The first lines of a chunk, after which a core sees by itself how it goes on.
  void ask_for(Index chunk) const {
    constexpr Index first = 64, line = 8;
    for (Index k = 0; k < std::min(first, chunk_); k += line) __builtin_prefetch(begin_of(chunk) + k);
  }
  void begin_chunk(Index to) {
    Hand& hand = hand_[std::size_t(to)];
    Index* link = &first_[std::size_t(to)];
    if (hand.full > 0) link = &next_[std::size_t((hand.end - memory_.data()) / chunk_) - 1];
    *link = taken_;
    hand.at = begin_of(taken_++);
    hand.end = hand.at + chunk_;
    hand.full += chunk_;
  }

  Index chunk_, taken_ = 0;
  Buffer<TileFace> memory_;
  Buffer<Index> next_;  // of each chunk: the one that follows it in its hand
  std::vector<Index> first_;
  std::vector<Hand> hand_;
};

}  // namespace krilu::mesh
