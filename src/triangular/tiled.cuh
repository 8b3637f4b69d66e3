// SPDX-License-Identifier: Apache-2.0
// The tiled strategy on a GPU: a tile is a contiguous range of the order, one thread block works on it, and its x lives
// in shared memory, so that a step from row to row within a tile costs a shared-memory access in place of a trip
// through the second-level cache. Values are their own flags within a tile and across tiles (waiting.cuh). Tiles are
// taken by ticket in ascending order (descending for the upper triangle), so none waits for one that has not begun.
// Warps of a tile take its slices in turn, each with the next one's matrix entries on their way.
#pragma once

#include "triangular/recurrence.cuh"

namespace krilu::triangular {

struct TiledTuning {
  unsigned threads = 256;
};

/// Shared memory of the kernel beside a tile's x.
constexpr std::size_t tiled_own_bytes = 64;

template <int N, class R>
__global__ void __launch_bounds__(256) tiled_sweep(R r, const Index* tile_slice, Index tiles, unsigned* ticket) {
  using T = typename R::Value;
  extern __shared__ double shared[];
  __shared__ unsigned taken;
  if (threadIdx.x == 0) {
    taken = atomicAdd(ticket, 1u);
    if (taken == unsigned(tiles) - 1) *ticket = 0;
  }
  __syncthreads();
  const Index t = R::lower ? Index(taken) : tiles - 1 - Index(taken);
  const int me = int(threadIdx.x % 32);
  const Index warp = Index(threadIdx.x / 32), warps = Index(blockDim.x / 32);
  const Index begin = tile_slice[t], count = tile_slice[t + 1] - begin;
  const sparse::Slice front = sparse::load_slice(r.triangle.slice + begin);
  const sparse::Slice back = sparse::load_slice(r.triangle.slice + begin + count - 1);
  const Index first = front.row, last = back.row + back.rows();
  const auto slice_of = [&](Index k) { return R::lower ? begin + k : begin + count - 1 - k; };

  // Three slices on their way: one asked for, one with its entries asked for, one at work. A warp issues in order, so
  // nothing that it is about to use may still be far away.
  sparse::Head ahead;
  Pending<N, R> now, then;
  const auto ask = [&](Index k) {
    if (k < count) ahead = sparse::load_head(r.triangle, slice_of(k), me);
  };
  Index k = warp;
  ask(k);
  if (k < count) now.open(r, ahead, me);
  ask(k + warps);
  T* const x = reinterpret_cast<T*>(shared);
  for (Index i = Index(threadIdx.x); i < last - first; i += Index(blockDim.x)) x[i] = Awaited<T>::pattern();
  __syncthreads();
  const WaitingInTile<T> access{unsigned(__cvta_generic_to_shared(x)), first, last};
  for (; k < count; k += warps) {
    now.ask_mirrors(r);
    if (k + warps < count) then.open(r, ahead, me);
    ask(k + 2 * warps);
    now.solve(r, access, true, me);
    now = then;
  }
}

}  // namespace krilu::triangular
