// SPDX-License-Identifier: Apache-2.0
// The level-set strategy on a GPU [Anderson and Saad 1989; Wang and Liu 2022, Algorithms 3 and 4]: a launch a level, a
// warp a slice. A run of narrow levels is one launch of a single block, with a barrier between levels. A launch begins
// while the one before it ends (exec/overlap.cuh). A small level takes 1.2 to 1.6 us on an H200, narrow or not.
#pragma once

#include "exec/overlap.cuh"
#include "exec/warp.cuh"
#include "triangular/recurrence.cuh"

namespace krilu::triangular {

struct LevelSetTuning {
  Index narrow_slices = 32;  // a level of this many, or fewer, is left to one block
  unsigned wide_threads = 128;
};

template <int N, class R>
__global__ void __launch_bounds__(128) wide_level(R r, const Index* list, Index begin, Index end) {
  exec::let_next_begin();
  const Index k = begin + exec::warp_in_grid();
  if (k >= end) return;
  const int me = int(threadIdx.x % 32);
  Pending<N, R> p;
  p.open_lane(r, sparse::arrived(sparse::load_head(r.triangle, list ? __ldg(list + k) : k, me)), me);
  p.ask_entries(r, me);
  p.ask_mirrors(r);
  exec::await_former();
  p.ask_b(r);
  p.solve(r, Ready<typename R::Value>{}, false, me);
}

/// Threads of the one block: registers are what there is least of.
template <int N>
constexpr unsigned narrow_threads = N <= 4   ? 1024
                                    : N <= 8 ? 512
                                             : 256;

/// Levels first .. last-1, ascending for the lower triangle and descending for the upper one. Of one slice a warp and
/// level, as many are, the latency is all that counts: to have its shape said to be uniform takes longer than it saves.
template <int N, class R>
__global__ void __launch_bounds__(narrow_threads<N>)
    narrow_levels(R r, const Index* list, const Index* level, Index first, Index last) {
  exec::let_next_begin();
  exec::await_former();
  const int me = int(threadIdx.x % 32);
  const Index warp = Index(threadIdx.x / 32), warps = Index(blockDim.x / 32);
  for (Index n = 0; n < last - first; ++n) {
    const Index l = R::lower ? first + n : last - 1 - n;
    for (Index k = level[l] + warp; k < level[l + 1]; k += warps) {
      Pending<N, R> p;
      p.open(r, sparse::load_head(r.triangle, list ? __ldg(list + k) : k, me), me);
      p.ask_mirrors(r);
      p.solve(r, Ready<typename R::Value>{}, false, me);
    }
    __syncthreads();
  }
}

}  // namespace krilu::triangular
