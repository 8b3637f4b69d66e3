// SPDX-License-Identifier: Apache-2.0
// Sweeps over an ordering in coloured blocks on a GPU (schedule/blocks.hpp): a launch a colour, a warp a slice of one
// or more blocks. Rows of a slice may depend on each other: each lane first adds up what it reads from other slices,
// which are done; then the warp goes through the slice's few inner steps, values passing from lane to lane by shuffles.
// So launches are as few as colours, and a sweep is a matter of bandwidth. The last colour's two sweeps are one launch,
// and each launch asks for its shapes, entries and diagonals while the one before it ends (exec/overlap.cuh).
#pragma once

#include "exec/overlap.cuh"
#include "exec/warp.cuh"
#include "triangular/recurrence.cuh"

namespace krilu::triangular {

/// A slice's inner steps, one after another; `inner` and `from`: the lane's entries within the slice and whose x they
/// meet, oldest first, the last M of N. Every lane finds its x anew at each step: it is right from the lane's own step
/// on, since nothing that it depends on changes any more, and no lane has to know when that is. A pivot that cannot be
/// divided by is told of, and so a pivot is found at the lane's own step alone.
template <int M, int N, class R>
__device__ __forceinline__ typename R::Value solve_inner(const R& r, int steps, int own, Index row, typename R::Value b,
                                                         typename R::Value d, typename R::Value sum,
                                                         const int (&from)[N], const typename R::Value (&inner)[N]) {
  using T = typename R::Value;
  constexpr bool once = R::form == Diagonal::pivot;
  steps = exec::uniform(steps);
  T x = !once || (row >= 0 && own == 0) ? r.finish(row, b, sum, d) : T(0);
#pragma unroll 1
  for (int n = 1; n < steps; ++n) {
    T all = sum;
#pragma unroll
    for (int q = N - M; q < N; ++q) all += inner[q] * __shfl_sync(0xffffffffu, x, from[q]);
    if (!once || (row >= 0 && own == n)) x = r.finish(row, b, all, d);
  }
  return x;
}
/// By the least M of 1, 2, 3, 4, 8, 12 .. that is enough for `most`, the entries of the lane that has most.
template <int M, int N, class R, class... Rest>
__device__ __forceinline__ typename R::Value solve_inner(int most, const R& r, const Rest&... rest) {
  if constexpr (M < N) {
    constexpr int more = M < 4 ? M + 1 : M + 4;
    if (most > M) return solve_inner<more, N>(most, r, rest...);
  }
  return solve_inner<M>(r, rest...);
}

/// One slice; x of the lane's row, whatever where it has none. own: the lane's step. B: entries asked for before any is
/// used; N: the most entries of a row within its slice. ask_b() once the slice's first entries are on their way; x is
/// there when it returns.
template <int B, int N, class R, class AskB>
__device__ __forceinline__ typename R::Value solve_block(const R& r, const sparse::Slice& s, sparse::Lane l, int own,
                                                         const AskB& ask_b, typename R::Value d, int me) {
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
  const auto round = [&](int k, const auto& meanwhile) {
    constexpr bool paired = R::form == Diagonal::pivot;
    Index c[B];
    typename R::Stored v[B];
    [[maybe_unused]] Offset partner[B];
    [[maybe_unused]] T mirror[B];
    T x[B];
#pragma unroll
    for (int j = 0; j < B; ++j) {
      const Offset at = sparse::step(l, k + j, me);
      const bool have = k + j < l.count;
      c[j] = exec::ask_streamed(r.triangle.column + at, have);
      v[j] = sparse::ask_streamed(r.value + at, have);
      if constexpr (paired) partner[j] = exec::ask_streamed(r.partner + at, have, -1);
    }
    meanwhile();
#pragma unroll
    for (int j = 0; j < B; ++j) {
      x[j] = exec::ask(r.x + c[j], k + j < l.count && c[j] >= 0);
      if constexpr (paired) mirror[j] = r.mirrored(partner[j]);
    }
#pragma unroll
    for (int j = 0; j < B; ++j) {
      T value = T(v[j]);
      if constexpr (paired) value *= mirror[j];
      const bool inside = c[j] < 0;  // kept, oldest first, for the inner steps
      within += inside;
#pragma unroll
      for (int q = 0; q + 1 < N; ++q) {
        from[q] = inside ? from[q + 1] : from[q];
        inner[q] = inside ? inner[q + 1] : inner[q];
      }
      from[N - 1] = inside ? ~c[j] : from[N - 1];
      inner[N - 1] = inside ? value : inner[N - 1];
      if (!inside) sum += value * x[j];
    }
  };
  T b;
  round(0, [&] { b = ask_b(); });
  for (int k = B; k < s.width(); k += B) round(k, [] {});
  return solve_inner<1, N>(__reduce_max_sync(0xffffffffu, within), r, s.inner, own, l.row, b, d, sum, from, inner);
}

/// Larger thread blocks leave a multiprocessor half empty at the end of a colour; twice as many small ones take longer
/// to let the next colour begin than they save.
constexpr unsigned block_sweep_threads = 128;
/// Thread blocks that a multiprocessor should hold: waiting for memory is half of what these kernels do. What few
/// registers hold in single precision spills in double.
template <class T, int N>
constexpr int resident = N <= 3    ? (sizeof(T) == 8 ? 10 : 12)
                         : N <= 8  ? 6
                         : N <= 16 ? 4
                                   : 2;
template <class T, int N>
constexpr int resident_turning = N <= 3   ? (sizeof(T) == 8 ? 8 : 10)
                                 : N <= 8 ? 4
                                          : 2;

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

/// Of the lane's row, where it has one.
template <class R>
__device__ __forceinline__ typename R::Value ask_diagonal(const R& r, Index row) {
  if constexpr (R::form == Diagonal::unit || R::form == Diagonal::pivot) return 0;
  return exec::ask(r.d + row, row >= 0);
}

/// Slices begin .. end-1, all of one colour.
template <int B, int N, class R>
__global__ void __launch_bounds__(block_sweep_threads, resident<typename R::Value, N>)
    block_sweep(R r, const std::uint8_t* inner, Index begin, Index end) {
  exec::let_next_begin();
  const Index k = begin + exec::warp_in_grid();
  if (k >= end) return;
  const int me = int(threadIdx.x % 32);
  sparse::Head head = sparse::load_head(r.triangle, k, me);
  int own = 0;
  if constexpr (R::form == Diagonal::pivot) own = __ldg(inner + (std::size_t(k) * 32 + unsigned(me)));
  head = sparse::arrived(head);
  const sparse::Slice& s = head.slice;
  if (me == 0 && s.width() > B) prefetch_entries(r, s);
  const sparse::Lane l = sparse::open_lane(r.triangle, head, me, 0);
  const auto d = ask_diagonal(r, l.row);
  const auto ask_b = [&] {
    exec::await_former();
    return exec::ask(r.b + l.row, l.row >= 0);
  };
  const auto x = solve_block<B, N>(r, s, l, R::lower ? own : s.inner - 1 - own, ask_b, d, me);
  if (l.row >= 0) r.x[l.row] = x;
}

/// The last colour: the forward sweep's end and the backward sweep's beginning at once.
template <int B, int N, class F, class R>
__global__ void __launch_bounds__(block_sweep_threads, resident_turning<typename F::Value, N>)
    block_turn(F f, R r, Index begin, Index end) {
  using T = typename F::Value;
  static_assert(F::form != Diagonal::pivot && R::form != Diagonal::pivot);
  exec::let_next_begin();
  const Index k = begin + exec::warp_in_grid();
  if (k >= end) return;
  const int me = int(threadIdx.x % 32);
  sparse::Head head = sparse::load_head(f.triangle, k, me), back = sparse::load_head(r.triangle, k, me);
  head = sparse::arrived(head);
  back = sparse::arrived(back);
  const sparse::Lane l = sparse::open_lane(f.triangle, head, me, 0), u = sparse::open_lane(r.triangle, back, me, 0);
  const T d = exec::ask(f.d + l.row, l.row >= 0);  // for both sweeps, where the backward one has any
  const auto ask_b = [&] {
    exec::await_former();
    return exec::ask(f.b + l.row, l.row >= 0);
  };
  const T y = solve_block<B, N>(f, head.slice, l, 0, ask_b, d, me);
  const T x = solve_block<B, N>(
      r, back.slice, u, 0, [&] { return y; }, d, me);
  if (l.row >= 0) {
    f.x[l.row] = y;
    r.x[l.row] = x;
  }
}

}  // namespace krilu::triangular
