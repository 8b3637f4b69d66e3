// SPDX-License-Identifier: Apache-2.0
// Sweeps over coloured blocks (blocks.cuh) whose slices read alike (sparse/stencils.cuh), as on lattices: the same
// launches, and of finite numbers the same sums in the same sequence, from less memory and with fewer instructions.
// Entries within the slice are known as such, so that they go straight to where the inner steps want them, and all
// loads of a slice are on their way at once. A warp takes two slices side by side where there are enough: mostly they
// have one stencil, whose words are read once then, and the inner steps of one pass while those of the other wait.
#pragma once

#include "triangular/blocks.cuh"

namespace krilu::triangular {

/// Slices a warp, where rows have no more than N entries within their slice.
template <int N>
constexpr int most_at_once = N <= 3 ? 2 : 1;
/// As `resident`, of P slices a warp.
template <class T, int N, int P>
constexpr int resident_stencils = P == 1           ? resident<T, N>
                                  : sizeof(T) == 8 ? 6
                                                   : 8;
template <class T, int N, int P>
constexpr int resident_stencils_turning = P == 1           ? resident_turning<T, N>
                                          : sizeof(T) == 8 ? 5
                                                           : 6;

/// As solve_block, of P slices of one stencil. B: entries of other slices that are asked for before any is used.
template <int P, int B, int N, class R, class AskB, class T = typename R::Value>
__device__ __forceinline__ void solve_stencil(const R& r, const sparse::StencilLane<P>& l, const AskB& ask_b,
                                              const T (&d)[P], T (&x)[P]) {
  const int others = l.slice.others(), within = l.slice.within();
  std::int32_t other[B], inside[N];
  typename R::Stored value[P][B], inner_value[P][N];
  l.ask(r.value, 0, 0, others, other, value);
  l.ask(r.value, others + within - N, others, others + within, inside, inner_value);
  T b[P], sum[P] = {};
  ask_b(b);
  l.add(r.value, r.x, 0, others, other, value, sum);
  int from[N];
  T inner[P][N];
#pragma unroll
  for (int q = 0; q < N; ++q) {
    from[q] = sparse::StencilWord::row(inside[q]);
#pragma unroll
    for (int p = 0; p < P; ++p) inner[p][q] = T(inner_value[p][q]);
  }
  solve_inner_of<1, P, N>(within, r, l.slice.inner(), 0, l.row, b, d, sum, from, inner, x);
}

/// v[row[p]], or 0 where the lane has no row.
template <int P, class T>
__device__ __forceinline__ void ask_rows(const T* v, const Index (&row)[P], T (&of_row)[P]) {
#pragma unroll
  for (int p = 0; p < P; ++p) of_row[p] = exec::ask(v + row[p], row[p] >= 0);
}
template <int P, class R>
__device__ __forceinline__ void ask_diagonals(const R& r, const Index (&row)[P], typename R::Value (&d)[P]) {
#pragma unroll
  for (int p = 0; p < P; ++p) d[p] = exec::ask(r.d + row[p], r.d && row[p] >= 0, 1);
}
template <int P, class T>
__device__ __forceinline__ void put_rows(T* v, const Index (&row)[P], const T (&of_row)[P]) {
#pragma unroll
  for (int p = 0; p < P; ++p)
    if (row[p] >= 0) v[row[p]] = of_row[p];
}

/// Slices begin .. end-1, all of one colour.
template <int P, int B, int N, class R>
__global__ void __launch_bounds__(block_sweep_threads, resident_stencils<typename R::Value, N, P>)
    stencil_sweep(R r, Index begin, Index end) {
  using T = typename R::Value;
  exec::let_next_begin();
  const Index first = begin + P * exec::warp_in_grid();
  if (first >= end) return;
  const int me = int(threadIdx.x % 32);
  const auto sweep = [&]<int Q>(const sparse::StencilHead<Q>& head) {
    const sparse::StencilLane<Q> l(r.triangle.stencil, head, me);
    if (me == 0 && l.slice.others() > B)  // values of all rounds at once
      prefetch(r.value + l.slice.entry, unsigned(max(l.slice.others(), l.slice.within()) * l.slice.rows() * Q));
    T d[Q] = {}, x[Q];
    if constexpr (R::form != Diagonal::unit) ask_diagonals(r, l.row, d);
    solve_stencil<Q, B, N>(
        r, l,
        [&](T(&b)[Q]) {
          exec::await_former();
          ask_rows(r.b, l.row, b);
        },
        d, x);
    put_rows(r.x, l.row, x);
  };
  sparse::for_alike<P>(first, end, sweep, sparse::load_head<P>(r.triangle.stencil, first, end, me));
}

/// The last colour: the forward sweep's end and the backward sweep's beginning at once.
template <int P, int B, int N, class F, class R>
__global__ void __launch_bounds__(block_sweep_threads, resident_stencils_turning<typename F::Value, N, P>)
    stencil_turn(F f, R r, Index begin, Index end) {
  using T = typename F::Value;
  exec::let_next_begin();
  const Index first = begin + P * exec::warp_in_grid();
  if (first >= end) return;
  const int me = int(threadIdx.x % 32);
  const auto turn = [&]<int Q>(const sparse::StencilHead<Q>& head, const sparse::StencilHead<Q>& back) {
    const sparse::StencilLane<Q> l(f.triangle.stencil, head, me), u(r.triangle.stencil, back, me);
    T d[Q], y[Q], x[Q];
    ask_diagonals(f, l.row, d);  // for both sweeps, where the backward one has any
    solve_stencil<Q, B, N>(
        f, l,
        [&](T(&b)[Q]) {
          exec::await_former();
          ask_rows(f.b, l.row, b);
        },
        d, y);
    solve_stencil<Q, B, N>(
        r, u,
        [&](T(&b)[Q]) {
#pragma unroll
          for (int p = 0; p < Q; ++p) b[p] = y[p];
        },
        d, x);
    put_rows(f.x, l.row, y);
    put_rows(r.x, l.row, x);
  };
  sparse::for_alike<P>(first, end, turn, sparse::load_head<P>(f.triangle.stencil, first, end, me),
                       sparse::load_head<P>(r.triangle.stencil, first, end, me));
}

}  // namespace krilu::triangular
