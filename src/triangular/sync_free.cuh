// SPDX-License-Identifier: Apache-2.0
// The sync-free strategy on a GPU [Liu et al. 2016; Wang and Liu 2022, Algorithms 5 and 6]: one launch, warps take
// slices in level order by ticket, and each row waits for the values that it reads (waiting.cuh). Short rows have a
// thread each, long ones several lanes or a warp (sparse::lanes_log2_of). Tickets go out in an order in which no slice
// depends on a later one, so whatever is running can finish. Cost beside the sweep: about 0.7 us a level on an H200.
#pragma once

#include "triangular/recurrence.cuh"

namespace krilu::triangular {

struct SyncFreeTuning {
  unsigned threads = 128;
  int warps_per_multiprocessor = 16;       // more of them spin more, and are in the way of those at work
  int warps_per_multiprocessor_wide = 32;  // for levels that fill the device
  Index wide_level_slices = 1000;          // mean slices a level from which on a level does
};

template <int N, class R>
__global__ void __launch_bounds__(128) sync_free_sweep(R r, const Index* list, Index slices, unsigned* ticket) {
  const int me = int(threadIdx.x % 32);
  const unsigned warps = gridDim.x * (blockDim.x / 32);
  const auto next = [&] {
    unsigned t = 0;
    if (me == 0) {
      t = atomicAdd(ticket, 1u);
      if (t == unsigned(slices) + warps - 1) *ticket = 0;  // the last ticket of this launch: ready for the next one
    }
    return Index(__shfl_sync(0xffffffffu, t, 0));
  };
  const auto head_of = [&](Index k) {
    k = R::lower ? k : slices - 1 - k;
    return sparse::load_head(r.triangle, list ? __ldg(list + k) : k, me);
  };
  const Waiting<typename R::Value> access;
  Pending<N, R> now, then;
  Index k = next();
  if (k < slices) now.open(r, head_of(k), me);
  while (k < slices) {
    now.ask_mirrors(r);
    k = next();
    if (k < slices) then.open(r, head_of(k), me);
    now.solve(r, access, true, me);
    now = then;
  }
}

}  // namespace krilu::triangular
