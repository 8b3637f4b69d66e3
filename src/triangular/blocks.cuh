// SPDX-License-Identifier: Apache-2.0
// Sweeps over an ordering in coloured blocks on a GPU (schedule/blocks.hpp): a launch a colour, a warp a slice of one
// or more blocks. Rows of a slice may depend on each other: each lane first adds up what it reads from other slices,
// which are done; then the warp goes through the slice's few inner steps, values passing from lane to lane by shuffles.
// So launches are as few as colours, and a sweep is a matter of bandwidth. The last colour's two sweeps are one launch.
#pragma once

#include "triangular/recurrence.cuh"

namespace krilu::triangular {

/// One slice; x of the lane's row, 0 where it has none. B: entries asked for before any is used; N: the most entries of
/// a row within its slice.
template <int B, int N, class R>
__device__ __forceinline__ typename R::Value solve_block(const R& r, const sparse::Slice& s, sparse::Lane l, int step,
                                                         typename R::Value b, typename R::Value d, int me) {
  using T = typename R::Value;
  T sum = 0;
  int from[N];
  T inner[N];
  int within = 0;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    from[j] = me;
    inner[j] = 0;
  }
  for (int k = 0; k < s.width(); k += B) {
    Index c[B];
    T v[B];
#pragma unroll
    for (int j = 0; j < B; ++j) {
      const Offset at = sparse::step(l, k + j, me);
      const bool have = k + j < l.count;
      c[j] = have ? __ldcs(r.triangle.column + at) : 0;
      v[j] = have ? r.entry(at) : T(0);
    }
#pragma unroll
    for (int j = 0; j < B; ++j) {
      if (k + j >= l.count) continue;
      if (c[j] >= 0) {
        sum += v[j] * r.x[c[j]];
      } else {  // kept, oldest first, for the steps below
        ++within;
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
  const int most = __reduce_max_sync(0xffffffffu, within);
  T x = 0;
  for (int n = 0; n < s.inner; ++n) {
    T all = sum;
#pragma unroll
    for (int q = 0; q < N; ++q)
      if (q >= N - most) all += inner[q] * __shfl_sync(0xffffffffu, x, from[q]);
    if (l.row >= 0 && step == n) x = r.finish(l.row, b, all, d);
  }
  return x;
}

/// Small thread blocks end one by one, where large ones leave a multiprocessor half empty at the end of a colour.
constexpr unsigned block_sweep_threads = 64;
/// Thread blocks that a multiprocessor should hold: waiting for memory is what these kernels mostly do.
template <int N>
constexpr int resident = N <= 3    ? 24
                         : N <= 8  ? 12
                         : N <= 16 ? 8
                                   : 4;
template <int N>
constexpr int resident_turning = N <= 3   ? 20
                                 : N <= 8 ? 8
                                          : 4;

/// Asks for all entries of a slice at once, whatever the number of rounds in which they will be used.
template <class R>
__device__ __forceinline__ void prefetch_entries(const R& r, const sparse::Slice& s) {
#if __CUDA_ARCH__ >= 900
  const auto fetch = [&](const auto* array) {
    const auto begin = reinterpret_cast<std::uintptr_t>(array + s.entry) & ~std::uintptr_t(15);
    const auto bytes = unsigned(s.width() * s.rows()) * unsigned(sizeof(*array)) & ~15u;
    if (bytes > 0)
      asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;"
                   :
                   : "l"(__cvta_generic_to_global(reinterpret_cast<const void*>(begin))), "r"(bytes)
                   : "memory");
  };
  fetch(r.triangle.column);
  fetch(r.value);
#endif
}

/// Slices begin .. end-1, all of one colour.
template <int B, int N, class R>
__global__ void __launch_bounds__(block_sweep_threads, resident<N>)
    block_sweep(R r, const std::uint8_t* inner, Index begin, Index end) {
  const Index k = begin + Index((blockIdx.x * blockDim.x + threadIdx.x) / 32);
  if (k >= end) return;
  const int me = int(threadIdx.x % 32);
  const int own = __ldg(inner + (std::size_t(k) * 32 + unsigned(me)));
  const sparse::Head head = sparse::load_head(r.triangle, k, me);
  const sparse::Slice& s = head.slice;
  if (me == 0 && s.width() > B) prefetch_entries(r, s);
  const sparse::Lane l = sparse::open_lane(r.triangle, head, me);
  typename R::Value b = 0, d = 0;
  if (l.row >= 0) {
    b = r.b[l.row];
    if constexpr (R::form != Diagonal::unit && R::form != Diagonal::pivot) d = __ldg(r.d + l.row);
  }
  const auto x = solve_block<B, N>(r, s, l, R::lower ? own : s.inner - 1 - own, b, d, me);
  if (l.row >= 0) r.x[l.row] = x;
}

/// The last colour: the forward sweep's end and the backward sweep's beginning at once.
template <int B, int N, class F, class R>
__global__ void __launch_bounds__(block_sweep_threads, resident_turning<N>)
    block_turn(F f, R r, const std::uint8_t* inner, Index begin, Index end) {
  using T = typename F::Value;
  const Index k = begin + Index((blockIdx.x * blockDim.x + threadIdx.x) / 32);
  if (k >= end) return;
  const int me = int(threadIdx.x % 32);
  const int own = __ldg(inner + (std::size_t(k) * 32 + unsigned(me)));
  const sparse::Slice s = sparse::load_slice(f.triangle.slice + k), back = sparse::load_slice(r.triangle.slice + k);
  const sparse::Lane l = sparse::open_lane(f.triangle, k, s, me), u = sparse::open_lane(r.triangle, k, back, me);
  T b = 0, d = 0;
  if (l.row >= 0) {
    b = f.b[l.row];
    d = __ldg(f.d + l.row);  // for both sweeps, where the backward one has any
  }
  const T y = solve_block<B, N>(f, s, l, own, b, d, me);
  const T x = solve_block<B, N>(r, back, u, s.inner - 1 - own, y, d, me);
  if (l.row >= 0) {
    f.x[l.row] = y;
    r.x[l.row] = x;
  }
}

}  // namespace krilu::triangular
