// SPDX-License-Identifier: Apache-2.0
// What runs when on a GPU: levels found there, rows laid out in slices, slices listed by level and gathered in tiles. A
// tile is a contiguous range of the order, so tiles never wait for one another in a circle. Rows stand tile by tile,
// level by level within a tile, and slices cross neither: level-set and sync-free go through the slices in the list's
// sequence, the tiled strategy as they stand. Integers only.
#pragma once

#include <memory>
#include <vector>

#include "exec/cuda.cuh"
#include "schedule/blocks.hpp"
#include "schedule/ordering.hpp"
#include "sparse/csr_cuda.cuh"
#include "sparse/sliced.cuh"

namespace krilu::schedule {

/// level[row] of the lower triangle of `graph` in an order (rank is its inverse; null: natural), on the device. Paper:
/// Wang and Liu (2022), Algorithm 7: each row waits for the rows before it. Faster than the rounds below on every
/// matrix tried, and the default.
exec::Array<Index> levels_sync_free(const exec::Cuda& space, const sparse::DeviceCsr& graph, const Index* order,
                                    const Index* rank);
/// The same by their Algorithm 2: round after round, rows whose neighbours before them are all done.
exec::Array<Index> levels_by_rounds(const exec::Cuda& space, const sparse::DeviceCsr& graph, const Index* order,
                                    const Index* rank);

/// The plan of triangular solves.
struct Plan {
  std::shared_ptr<const sparse::Layout> layout;
  exec::Array<Index> list;   // slices level by level; empty where they stand so
  std::vector<Index> level;  // levels + 1 offsets into that sequence
  exec::Array<Index> level_there;
  exec::Array<Index> tile;  // tiles + 1: first slice of each
  Index tiles = 0, tile_rows = 0;

  Index levels() const { return Index(level.size()) - 1; }
  std::size_t bytes() const {
    return layout->bytes() + list.bytes() + level.capacity() * sizeof(Index) + level_there.bytes() + tile.bytes();
  }
};

/// Levels of `graph` (a, or the pattern of A + A^T where a's is not symmetric) in the given order (empty: natural).
/// tile_rows 0: about 16 rows of a tile to a level, so that warps have work while others wait, and not a trip through
/// the second-level cache at each step of a deep order; at least 16 tiles of a small matrix, and none whose x would not
/// fit the shared memory of a multiprocessor.
Plan by_levels(const exec::Cuda& space, const sparse::DeviceCsr& a, const sparse::DeviceCsr& graph, const Order& order,
               Index tile_rows = 0);

/// No levels: slices for products only, in the caller's order where the rows' lengths allow.
Plan as_given(const exec::Cuda& space, const sparse::DeviceCsr& a);

/// Rows block by block, colour by colour: block[row] is any number below rows that names the row's block, colour[row]
/// its colour. The blocks of a colour are independent; up to `together` small ones share a slice, a power of two.
Plan by_blocks(const exec::Cuda& space, const sparse::DeviceCsr& a, const Index* block, const Index* colour,
               Index colours, Index together = 32, bool lattice = false);
inline Plan by_blocks(const exec::Cuda& space, const sparse::DeviceCsr& a, const Blocks<exec::Cuda>& blocks) {
  return by_blocks(space, a, blocks.block.data(), blocks.colour.data(), blocks.colours, blocks.together,
                   blocks.box[0] > 0);
}

}  // namespace krilu::schedule
