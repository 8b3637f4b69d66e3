// SPDX-License-Identifier: Apache-2.0
// Where a mesh's cells stand among a plan's, as loops over tiles see it: the tile and the cell's number within it in
// one word, which is all that has to be read of a cell to deal out its faces. Cost: 4 bytes a cell.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "exec/host.hpp"
#include "exec/tasks.hpp"
#include "krilu/buffer.hpp"
#include "krilu/error.hpp"
#include "krilu/types.hpp"

namespace krilu::mesh {

class TilePlaces {
 public:
  using Word = std::uint32_t;

  /// The mesh's cell order[k] stands at place k; tile t has places first[t] .. first[t+1]-1.
  TilePlaces(const exec::Host& host, std::span<const Index> order, std::span<const Index> first)
      : first_(first), word_(order.size()) {
    const std::size_t tiles = first.empty() ? 0 : first.size() - 1;
    Index most = 1;
    for (std::size_t t = 0; t < tiles; ++t) most = std::max(most, first[t + 1] - first[t]);
    shift_ = std::bit_width(std::uint32_t(most - 1));
    if (tiles > 0 && std::uint64_t(tiles - 1) << shift_ > ~Word(0))
      throw Error("the mesh's blocks are too many and too uneven for 32-bit places of their cells: divide the mesh");
    exec::for_each_task(host, tiles, [&](std::size_t t) {
      Word word = Word(t) << shift_;
      for (auto k = std::size_t(first[t]); k < std::size_t(first[t + 1]); ++k) word_[std::size_t(order[k])] = word++;
    });
  }

  /// What words say; by value, so that a loop that writes does not read it again and again.
  class View {
   public:
    /// Of one of the mesh's cells. Words are in the sequence of places.
    const Word& operator[](Index cell) const { return word_[cell]; }
    Index tile(Word word) const { return Index(word >> shift_); }
    Index within(Word word) const { return Index(word & mask_); }
    Index place(Word word) const { return first_[tile(word)] + within(word); }
    /// Tiles are divided in parts of at most 2^14 cells, numbered throughout.
    Index part(Word word) const { return Index(word >> part_shift_); }

   private:
    friend TilePlaces;
    explicit View(const TilePlaces& p)
        : first_(p.first_.data()),
          word_(p.word_.data()),
          mask_((Word(1) << p.shift_) - 1),
          shift_(p.shift_),
          part_shift_(std::min(p.shift_, part_bits)) {}
    const Index* first_;
    const Word* word_;
    Word mask_;
    int shift_, part_shift_;
  };
  View view() const { return View(*this); }
  Index parts_of_a_tile() const { return 1 << std::max(0, shift_ - part_bits); }
  static constexpr Index most_in_a_part() { return 1 << part_bits; }

 private:
  static constexpr int part_bits = 14;
  std::span<const Index> first_;
  int shift_;
  Buffer<Word> word_;
};

}  // namespace krilu::mesh
