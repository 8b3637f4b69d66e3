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

/// The inner steps of P slices that have the same ones, one after another; `inner` and `from`: the lane's entries
/// within its slice and whose x they meet, oldest first, the last M of N. Every lane finds its x anew at each step: it
/// is right from the lane's own step on, since nothing that it depends on changes any more, and no lane has to know
/// when that is. A pivot that cannot be divided by is told of, and so a pivot is found at the lane's own step alone. x:
/// of the lane's rows, whatever where it has none.
template <int M, int P, int N, class R, class T = typename R::Value>
__device__ __forceinline__ void solve_inner(const R& r, int steps, int own, const Index (&row)[P], const T (&b)[P],
                                            const T (&d)[P], const T (&sum)[P], const int (&from)[N],
                                            const T (&inner)[P][N], T (&x)[P]) {
  constexpr bool once = R::form == Diagonal::pivot;
  steps = exec::uniform(steps);
#pragma unroll
  for (int p = 0; p < P; ++p) x[p] = !once || (row[p] >= 0 && own == 0) ? r.finish(row[p], b[p], sum[p], d[p]) : T(0);
#pragma unroll 1
  for (int n = 1; n < steps; ++n) {
#pragma unroll
    for (int p = 0; p < P; ++p) {
      T all = sum[p];
#pragma unroll
      for (int q = N - M; q < N; ++q) all += inner[p][q] * __shfl_sync(0xffffffffu, x[p], from[q]);
      if (!once || (row[p] >= 0 && own == n)) x[p] = r.finish(row[p], b[p], all, d[p]);
    }
  }
}
/// By the least M of 1, 2, 3, 4, 8, 12 .. that is enough for `most`, the entries of the lane that has most.
template <int M, int P, int N, class R, class... Rest>
__device__ __forceinline__ void solve_inner_of(int most, const R& r, Rest&&... rest) {
  if constexpr (M < N) {
    constexpr int more = M < 4 ? M + 1 : M + 4;
    if (most > M) return solve_inner_of<more, P, N>(most, r, rest...);
  }
  solve_inner<M, P, N>(r, rest...);
}

/// One slice; x of the lane's row, whatever where it has none. own: the lane's step. B: entries asked for before any is
/// used; N: the most entries of a row within its slice. ask_b() once the slice's first entries are on their way; x is
/// there when it returns.
template <int B, int N, class R, class AskB>
__device__ __forceinline__ typename R::Value solve_block(const R& r, const sparse::Slice& s, sparse::Lane l, int own,
                                                         const AskB& ask_b, typename R::Value d, int me) {
  using T = typename R::Value;
  T sum[1] = {0}, inner[1][N];
  int from[N], within = 0;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    from[j] = me;
    inner[0][j] = 0;
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
        inner[0][q] = inside ? inner[0][q + 1] : inner[0][q];
      }
      from[N - 1] = inside ? ~c[j] : from[N - 1];
      inner[0][N - 1] = inside ? value : inner[0][N - 1];
      if (!inside) sum[0] += value * x[j];
    }
  };
  T b[1];
  round(0, [&] { b[0] = ask_b(); });
  for (int k = B; k < s.width(); k += B) round(k, [] {});
  const Index row[1] = {l.row};
  const T diagonal[1] = {d};
  T found[1];
  solve_inner_of<1, 1, N>(__reduce_max_sync(0xffffffffu, within), r, s.inner, own, row, b, diagonal, sum, from, inner,
                          found);
  return found[0];
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

/// Asks for entries to be brought to the second-level cache.
template <class V>
__device__ __forceinline__ void prefetch(const V* first, unsigned count) {
#if __CUDA_ARCH__ >= 900
  const auto begin = reinterpret_cast<std::uintptr_t>(first) & ~std::uintptr_t(15);
  const unsigned bytes = count * unsigned(sizeof(V)) & ~15u;
  if (bytes > 0)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;"
                 :
                 : "l"(__cvta_generic_to_global(reinterpret_cast<const void*>(begin))), "r"(bytes)
                 : "memory");
#endif
}
/// All entries of a slice at once, whatever the number of rounds in which they will be used.
template <class R>
__device__ __forceinline__ void prefetch_entries(const R& r, const sparse::Slice& s) {
  const auto count = unsigned(s.width() * s.rows());
  prefetch(r.triangle.column + s.entry, count);
  prefetch(r.value + s.entry, count);
}

/// Of the lane's row, where it has one.
template <class R>
__device__ __forceinline__ typename R::Value ask_diagonal(const R& r, Index row) {
  if constexpr (R::form == Diagonal::unit || R::form == Diagonal::pivot) return 0;
  return exec::ask(r.d + row, r.d && row >= 0, 1);
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
  const T d = exec::ask(f.d + l.row, f.d && l.row >= 0, 1);  // for both sweeps, where the backward one has any
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
