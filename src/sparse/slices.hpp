// SPDX-License-Identifier: Apache-2.0
// What one slice of a split matrix comes to: the inner loop of products, triangular sweeps and DILU's construction on
// the host. Entries are taken a register at a time, side by side: rows of a slice, or where a slice is one row (height
// 1), entries of that row. x is gathered, except where the columns of a slice's rows follow one another
// (PartPattern::run): there it is loaded, and the columns are not read. Slices that are nodes: nodes.hpp.
#pragma once

#include <type_traits>

#include "exec/simd.hpp"
#include "sparse/nodes.hpp"
#include "sparse/split.hpp"

namespace krilu::sparse {

/// Adds an entry of each of H rows, value * x[column], at every step of a slice, to `sum` or (anew) to nothing. Columns
/// are counted from `base`.
template <int H, bool anew, class T, class S, class C>
[[gnu::always_inline]] inline void accumulate_rows(const PartPattern& part, const S* value, Index slice,
                                                   const C* column, Index base, const T* x, T* sum) {
  constexpr int W = exec::simd_width<T>(H), registers = H / W;
  exec::Simd<T, W> s[registers];
  for (int m = 0; m < registers; ++m) s[m] = anew ? exec::zeros<T, W>() : exec::load<T, W>(sum + m * W);
  const Offset begin = part.offset[slice], end = part.offset[slice + 1];
  const Index* run = part.run ? part.run + unsigned(begin) / H : nullptr;
  for (Offset k = begin; k < end; k += H) {
    exec::Simd<T, W> xs[registers];
    const Index first = run ? *run++ : -1;
    if (first >= 0)
      for (int m = 0; m < registers; ++m) xs[m] = exec::load<T, W>(x + first + m * W);
    else
      for (int m = 0; m < registers; ++m) xs[m] = exec::gather<T, W>(x + base, column + k + m * W);
    for (int m = 0; m < registers; ++m) s[m] += exec::load<T, W>(value + k + m * W) * xs[m];
  }
  for (int m = 0; m < registers; ++m) exec::store<T, W>(sum + m * W, s[m]);
}

/// Adds all entries of a row.
template <class T, class S, class C>
[[gnu::always_inline]] inline void accumulate_row(const PartPattern& part, const S* value, Index row, const C* column,
                                                  const T* x, T* sum) {
  constexpr int W = exec::simd_width<T>(8);
  exec::Simd<T, W> s = {};
  Offset k = part.offset[row];
  const Offset end = part.offset[row + 1];
  for (; k + W <= end; k += W) s += exec::load<T, W>(value + k) * exec::gather<T, W>(x, column + k);
  T rest = exec::sum_of<T, W>(s);
  for (; k < end; ++k) rest += T(value[k]) * x[column[k]];
  *sum += rest;
}

/// Sum over the entries of one slice and triangle: sum[q] += value * x[column], lane by lane, or (anew) the sum itself.
/// row: the slice's first; lanes: its rows.
template <int H, bool anew = false, class T, class S>
[[gnu::always_inline]] inline void accumulate(const PartPattern& part, const S* value, Index slice, Index row,
                                              Index lanes, const T* x, T* sum) {
  const bool narrow = !std::is_same_v<S, double> && part.narrow;
  if constexpr (anew && H < 2)
    for (int q = 0; q < lanes_of<H>; ++q) sum[q] = 0;
  if constexpr (H == 0) {
    if (lanes == 1)
      accumulate_row(part, value, slice, part.column, x, sum);
    else
      accumulate_node(part, value, slice, row, lanes, x, sum);
  } else if constexpr (H == 1) {
    if (narrow)
      accumulate_row(part, value, slice, part.narrow, x + part.base[slice], sum);
    else
      accumulate_row(part, value, slice, part.column, x, sum);
  } else {
    if (narrow)
      accumulate_rows<H, anew>(part, value, slice, part.narrow, part.base[slice], x, sum);
    else
      accumulate_rows<H, anew>(part, value, slice, part.column, 0, x, sum);
  }
}

/// f(q) for the lanes of a slice that are rows, side by side.
template <int H, class F>
inline void for_lanes(Index lanes, const F& f) {
  if (H > 0 && lanes == H) {
#pragma omp simd
    for (Index q = 0; q < H; ++q) f(q);
  } else {
    for (Index q = 0; q < lanes; ++q) f(q);
  }
}

}  // namespace krilu::sparse
