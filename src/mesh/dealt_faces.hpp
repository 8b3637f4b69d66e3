// SPDX-License-Identifier: Apache-2.0
// Faces dealt out to the tiles that hold both of their cells, by one thread and without counting first: a tile's stand
// in chunks, which are taken from one piece of memory as they are needed. Cost: 8 bytes a face written, and what a
// tile reads of them stands together.
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

/// The same within a tile, its cells being counted from the tile's first.
struct TileFace {
  static constexpr Index most_cells = 1 << 16;  // of a tile

  TileFace() = default;
  TileFace(const FaceCells& f, Index first)
      : face(f.face), owner(std::uint16_t(f.owner - first)), neighbour(std::uint16_t(f.neighbour - first)) {}
  Index lower() const { return std::min(owner, neighbour); }

  Index face;
  std::uint16_t owner, neighbour;
};

class DealtFaces {
 public:
  /// most: faces that may come.
  DealtFaces(Index most, Index tiles) : chunk_(std::clamp<Index>(most / std::max<Index>(1, tiles) / 4, 8, 512)) {
    const auto chunks = std::size_t(most / chunk_) + std::size_t(tiles);
    memory_.resize(chunks * std::size_t(chunk_));
    next_.resize(chunks);
    first_.assign(std::size_t(tiles), -1);
    hand_.resize(std::size_t(tiles));
  }
  void deal(Index tile, const TileFace& face) {
    Hand& hand = hand_[std::size_t(tile)];
    if (hand.at == hand.end) [[unlikely]]
      begin_chunk(tile);
    *hand.at++ = face;
  }
  Index dealt_to(Index tile) const {
    const Hand& hand = hand_[std::size_t(tile)];
    return hand.full - Index(hand.end - hand.at);
  }
  /// f(face) for those of a tile, in the sequence in which they came.
  template <class F>
  void for_each(Index tile, F f) const {
    Index left = dealt_to(tile);
    for (Index c = first_[std::size_t(tile)]; left > 0; left -= chunk_, c = next_[std::size_t(c)]) {
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
  void begin_chunk(Index tile) {
    Hand& hand = hand_[std::size_t(tile)];
    Index* link = &first_[std::size_t(tile)];
    if (hand.full > 0) link = &next_[std::size_t((hand.end - memory_.data()) / chunk_) - 1];
    *link = taken_;
    hand.at = begin_of(taken_++);
    hand.end = hand.at + chunk_;
    hand.full += chunk_;
  }

  Index chunk_, taken_ = 0;
  Buffer<TileFace> memory_;
  Buffer<Index> next_;  // of each chunk: the one that follows it in its tile
  std::vector<Index> first_;
  std::vector<Hand> hand_;
};

}  // namespace krilu::mesh
