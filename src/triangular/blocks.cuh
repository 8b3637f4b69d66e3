// SPDX-License-Identifier: Apache-2.0
// Sweeps over an ordering in coloured blocks on a GPU (schedule/blocks.hpp): a launch a colour, a warp a slice of one
// or more blocks. Rows of a slice may depend on each other: each lane first adds up what it reads from other slices,
// which are done; then the warp goes through the slice's few inner steps, values passing from lane to lane by shuffles.
// So launches are as few as colours, and a sweep is a matter of bandwidth. The last colour's two sweeps are one launch.
#pragma once

#include "triangular/recurrence.cuh"

namespace krilu::triangular {

/// One slice; x of the lane's row, 0 where it has none. N: the most entries of a row within its slice.
template <int N, class R>
__device__ __forceinline__ typename R::Value solve_block(const R& r, const sparse::Slice& s, sparse::Lane l, int step,
                                                         typename R::Value b, typename R::Value d, int me) {
  using T = typename R::Value;
  constexpr int batch = 4;
  T sum = 0;
  int from[N];
  T inner[N];
#pragma unroll
  for (int j = 0; j < N; ++j) {
    from[j] = me;
    inner[j] = 0;
  }
  for (int k = 0; k < s.width(); k += batch) {
    Index c[batch];
    T v[batch];
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      const Offset at = sparse::step(l, k + j, me);
      const bool have = k + j < l.count;
      c[j] = have ? __ldcs(r.triangle.column + at) : 0;
      v[j] = have ? r.entry(at) : T(0);
    }
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      if (k + j >= l.count) continue;
      if (c[j] >= 0) {
        sum += v[j] * r.x[c[j]];
      } else {  // kept, oldest first, for the steps below
#pragma unroll
        for (int q = 0; q + 1 < N; ++q) {
          from[q] = from[q + 1];
          inner[q] = inner[q + 1];
        }
        from[N - 1] = ~c[j];
        inner[N - 1] = v[j];
      }
    }
  }
  T x = 0;
  for (int n = 0; n < s.inner; ++n) {
    T all = sum;
#pragma unroll
    for (int q = 0; q < N; ++q) all += inner[q] * __shfl_sync(0xffffffffu, x, from[q]);
    if (l.row >= 0 && step == n) x = r.finish(l.row, b, all, d);
  }
  return x;
}

/// Slices begin .. end-1, all of one colour.
template <int N, class R>
__global__ void __launch_bounds__(256) block_sweep(R r, const std::uint8_t* inner, Index begin, Index end) {
  const Index k = begin + Index((blockIdx.x * blockDim.x + threadIdx.x) / 32);
  if (k >= end) return;
  const int me = int(threadIdx.x % 32);
  const sparse::Slice s = sparse::load_slice(r.triangle.slice + k);
  const sparse::Lane l = sparse::open_lane(r.triangle, s, me);
  typename R::Value b = 0, d = 0;
  int step = 0;
  if (l.row >= 0) {
    b = r.b[l.row];
    if constexpr (R::form != Diagonal::unit && R::form != Diagonal::pivot) d = r.d[l.row];
    step = R::lower ? inner[l.row] : s.inner - 1 - inner[l.row];
  }
  const auto x = solve_block<N>(r, s, l, step, b, d, me);
  if (l.row >= 0) r.x[l.row] = x;
}

/// The last colour: the forward sweep's end and the backward sweep's beginning at once.
template <int N, class F, class B>
__global__ void __launch_bounds__(256) block_turn(F f, B r, const std::uint8_t* inner, Index begin, Index end) {
  using T = typename F::Value;
  const Index k = begin + Index((blockIdx.x * blockDim.x + threadIdx.x) / 32);
  if (k >= end) return;
  const int me = int(threadIdx.x % 32);
  const sparse::Slice s = sparse::load_slice(f.triangle.slice + k), back = sparse::load_slice(r.triangle.slice + k);
  const sparse::Lane l = sparse::open_lane(f.triangle, s, me);
  T b = 0, d = 0;
  int step = 0;
  if (l.row >= 0) {
    b = f.b[l.row];
    d = f.d[l.row];
    step = inner[l.row];
  }
  const T y = solve_block<N>(f, s, l, step, b, d, me);
  const T x = solve_block<N>(r, back, sparse::open_lane(r.triangle, back, me), s.inner - 1 - step, y, d, me);
  if (l.row >= 0) r.x[l.row] = x;
}

}  // namespace krilu::triangular
