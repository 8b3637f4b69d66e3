// SPDX-License-Identifier: Apache-2.0
// One row of a triangular recurrence on a GPU, whatever strategy runs it: the forms of strategy.hpp over one triangle
// of a sliced matrix. What does not depend on other rows (shape, columns, values, b and d) is asked for one slice
// ahead, so that no load from device memory stands between a row and the rows that wait for it; only x is fetched when
// it is needed. Cost of a sweep: 12 bytes a nonzero of its triangle, or 24 where pivots are found, 24 bytes a row and
// 48 a slice. All strategies add the same numbers in the same sequence: their results are equal bit for bit.
#pragma once

#include <type_traits>

#include "sparse/sliced.cuh"
#include "triangular/strategy.hpp"
#include "triangular/waiting.cuh"

namespace krilu::triangular {

/// T: what is computed in; S: what the triangle is stored in.
template <class T, Diagonal of_form, bool of_lower, class S = T>
struct Recurrence {
  using Value = T;
  using Stored = S;
  static constexpr Diagonal form = of_form;
  static constexpr bool lower = of_lower;

  sparse::SlicedTriangle triangle;
  const S* value = nullptr;         // t_ij of this triangle; pivot: a_ij, which meets a_ji
  const T* b = nullptr;             // may be the x of the sweep before
  const T* d = nullptr;             // unit and pivot have none; null: all 1
  T* x = nullptr;                   // not b, unless no strategy that waits is used
  Index* zero_pivot = nullptr;      // pivot: the first row whose pivot cannot be divided by
  T* next = nullptr;                // x of the sweep after this one: set to `awaited` where strategies wait
  const S* mirror = nullptr;        // pivot: the other triangle, where
  const Offset* partner = nullptr;  // pivot: a_ji of each a_ij stands, or -1

  __device__ __forceinline__ T mirrored(Offset at) const { return T(exec::ask(mirror + at, at >= 0)); }
  __device__ __forceinline__ T finish(Index row, T b_row, T sum, T d_row) const {
    if constexpr (form == Diagonal::unit) return b_row - sum;
    if constexpr (form == Diagonal::reciprocal) return (b_row - sum) * d_row;
    if constexpr (form == Diagonal::dilu) return b_row - d_row * sum;
    const T rd = T(1) / (b_row - sum);
    if (isfinite(rd) && rd != T(0)) return rd;
    atomicMin(zero_pivot, row);
    return T(1);
  }
};

/// A slice on its way: what one lane holds of it before the rows that it reads are done.
template <int N, class R>
struct Pending {
  using T = typename R::Value;
  static constexpr bool paired = R::form == Diagonal::pivot;
  struct Mirrors {
    Offset partner[N];
    T value[N];
  };
  struct Nothing {};
  sparse::Slice slice;
  sparse::Lane lane;
  Index column[N];
  typename R::Stored value[N];
  std::conditional_t<paired, Mirrors, Nothing> mirror;
  T b = 0, d = 0;

  __device__ __forceinline__ void open(const R& r, const sparse::Head& head, int me) {
    open_lane(r, head, me);
    ask_b(r);
    ask_entries(r, me);
  }
  /// The parts of open(), in any sequence after the first.
  __device__ __forceinline__ void open_lane(const R& r, const sparse::Head& head, int me) {
    slice = head.slice;
    lane = sparse::open_lane(r.triangle, head, me);
  }
  __device__ __forceinline__ void ask_b(const R& r) { b = exec::ask_streamed(r.b + lane.row, lane.row >= 0); }
  __device__ __forceinline__ void ask_entries(const R& r, int me) {
    if constexpr (R::form != Diagonal::unit && R::form != Diagonal::pivot)
      d = exec::ask_streamed(r.d + lane.row, r.d && lane.row >= 0, 1);
    take(r, 0, me);
  }
  /// Entries k .. k+N-1 of the lane; column -1 where it has no more.
  __device__ __forceinline__ void take(const R& r, int k, int me) {
    // Rows of one length and a lane each, as most are: places are plain arithmetic.
    const bool even = __all_sync(0xffffffffu, lane.row < 0 || lane.count == slice.width());
    const int lanes = slice.rows() << lane.lanes_log2;
    for_entries<N>(slice.width() - k, [&](int j) {
      const Offset at = even ? slice.entry + (k + j) * lanes + me : sparse::step(lane, k + j, me);
      const bool have = k + j < lane.count;
      column[j] = exec::ask_streamed(r.triangle.column + at, have, -1);
      value[j] = sparse::ask_streamed(r.value + at, have);
      if constexpr (paired) mirror.partner[j] = exec::ask_streamed(r.partner + at, have, -1);
    });
  }
  /// Asks for the entries' mirrors, whose places have arrived since open(): a slice later than those, so that nothing
  /// waits for two loads one after another.
  __device__ __forceinline__ void ask_mirrors(const R& r, int k = 0) {
    if constexpr (paired)
      for_entries<N>(slice.width() - k, [&](int j) { mirror.value[j] = r.mirrored(mirror.partner[j]); });
  }
  template <class Access>
  __device__ __forceinline__ void solve(const R& r, const Access& access, bool waits, int me) {
    if (waits && r.next && lane.row >= 0 && lane.sub == 0) r.next[lane.row] = Awaited<T>::pattern();
    T sum = 0;
    for (int k = 0;;) {
      if constexpr (paired) for_entries<N>(slice.width() - k, [&](int j) { value[j] *= mirror.value[j]; });
      T x[N];
      access.fetch(r.x, column, slice.width() - k, x);
      for_entries<N>(slice.width() - k, [&](int j) { sum += T(value[j]) * x[j]; });
      k += N;
      if (k >= slice.width()) break;
      take(r, k, me);
      ask_mirrors(r, k);
    }
    sum = sparse::sum_over_lanes(sum, lane.lanes_log2);
    if (lane.row >= 0 && lane.sub == 0) access.put(r.x, lane.row, r.finish(lane.row, b, sum, d));
  }
};

}  // namespace krilu::triangular
