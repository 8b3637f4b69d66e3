// SPDX-License-Identifier: Apache-2.0
#include "mesh/block_growth.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace krilu::mesh {

namespace {

/// First in, first out; an entry may have become void.
class Queue {
 public:
  void push(Index cell) { cells_.push_back(cell); }
  void clear() {
    cells_.clear();
    head_ = 0;
  }
  /// The first cell that is valid, taken out with all before it, or -1.
  template <class Valid>
  Index pop(Valid valid) {
    while (head_ < cells_.size())
      if (const Index c = cells_[head_++]; valid(c)) return c;
    clear();
    return -1;
  }

 private:
  std::vector<Index> cells_;
  std::size_t head_ = 0;
};

void prefetch([[maybe_unused]] const void* p) {
#if defined(__GNUC__)
  __builtin_prefetch(p);
#endif
}

class Growth {
 public:
  Growth(const CellFaces& faces, Index most)
      : g_(faces), most_(most), state_(static_cast<std::size_t>(faces.cells()), untouched) {}

  CellBlocks run() {
    const Index cells = g_.cells();
    blocks_.order.reserve(std::size_t(cells));
    while (placed() < cells) {
      const Index begin = placed();
      blocks_.offsets.push_back(begin);
      do grow(begin + most_);
      while (placed() < cells && placed() - begin < (most_ + 3) / 4);
      // Neighbours that found no place are where further blocks begin.
      for (Index c : met_) {
        if (state_[std::size_t(c)] == taken) continue;
        state_[std::size_t(c)] = untouched;
        seeds_.push(c);
      }
      met_.clear();
    }
    blocks_.offsets.push_back(cells);
    return std::move(blocks_);
  }

 private:
  // The state of a cell that is free is how many faces it has into the block that grows.
  static constexpr Index untouched = 0, taken = -1;
  static constexpr std::size_t levels = 8;  // more faces than that count alike

  static std::size_t level(Index faces) { return std::min(std::size_t(faces), levels) - 1; }
  Index placed() const { return Index(blocks_.order.size()); }

  Index next_seed() {
    const Index c = seeds_.pop([&](Index cell) { return state_[std::size_t(cell)] == untouched; });
    if (c >= 0) return c;
    while (state_[std::size_t(first_free_)] != untouched) ++first_free_;
    return first_free_;
  }

  /// Places cells from a seed on until there are `end`, or none is left that can be reached.
  void grow(Index end) {
    for (Index c = next_seed(); c >= 0 && placed() < end; c = next_cell()) {
      state_[std::size_t(c)] = taken;
      blocks_.order.push_back(c);
      for (Offset k = g_.offsets[std::size_t(c)]; k < g_.offsets[std::size_t(c) + 1]; ++k) {
        const Index d = g_.cell[std::size_t(k)];
        Index& faces = state_[std::size_t(d)];
        if (faces == taken) continue;
        if (++faces == 1) {
          met_.push_back(d);
          prefetch(&g_.offsets[std::size_t(d)]);
        } else {
          prefetch(&g_.cell[std::size_t(g_.offsets[std::size_t(d)])]);
        }
        reached_[level(faces)].push(d);
      }
    }
    for (Queue& q : reached_) q.clear();
  }

  Index next_cell() {
    for (std::size_t l = levels; l-- > 0;) {
      const auto still = [&](Index c) {
        const Index faces = state_[std::size_t(c)];
        return faces > 0 && level(faces) == l;
      };
      if (const Index c = reached_[l].pop(still); c >= 0) return c;
    }
    return -1;
  }

  const CellFaces& g_;
  Index most_;
  Buffer<Index> state_;
  std::array<Queue, levels> reached_;  // by their faces into the block
  Queue seeds_;
  Index first_free_ = 0;
  std::vector<Index> met_;
  CellBlocks blocks_;
};

}  // namespace

CellBlocks grow_blocks(const CellFaces& faces, Index most) {
  if (faces.cells() == 0) return {{}, {0}};
  return Growth(faces, most).run();
}

}  // namespace krilu::mesh
