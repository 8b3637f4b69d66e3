// SPDX-License-Identifier: Apache-2.0
// What one slice of a split matrix comes to: the inner loop of products, triangular sweeps and DILU's construction on
// the host. Entries are taken several at a time, side by side: rows of a slice, or where a slice is one row (height 1),
// entries of that row. x is gathered, except where the columns of a slice's rows follow one another
// (PartPattern::run): there it is loaded, and the columns are not read. Slices that are nodes: nodes.hpp.
#pragma once

#include <type_traits>

#include "sparse/nodes.hpp"
#include "sparse/read_ahead.hpp"
#include "sparse/row_sums.hpp"
#include "sparse/split.hpp"

namespace krilu::sparse {

/// Adds an entry of each of H rows, value * x[column], at every step of a slice. Columns are counted from `base`.
template <int H, Way way, class T, class S, class C>
[[gnu::always_inline]] inline void accumulate_rows(const PartPattern& part, const S* value, Index slice,
                                                   const C* column, Index base, const T* x, RowSums<H, T>& sum) {
  using Sums = RowSums<H, T>;
  constexpr int W = Sums::lanes;
  const Offset begin = part.offset[slice], end = part.offset[slice + 1];
  const Index* run = part.run ? part.run + unsigned(begin) / H : nullptr;
  for (Offset k = begin; k < end; k += H) {
    read_ahead<way, T>(value + k);
    typename Sums::Register xs[Sums::registers];
    const Index first = run ? *run++ : -1;
    if (first >= 0) {
      for (int m = 0; m < Sums::registers; ++m) xs[m] = exec::load<T, W>(x + first + m * W);
    } else {
      read_ahead<way, T>(column + k);
      for (int m = 0; m < Sums::registers; ++m) xs[m] = exec::gather<T, W>(x + base, column + k + m * W);
    }
    for (int m = 0; m < Sums::registers; ++m) sum.part[m] += exec::load<T, W>(value + k + m * W) * xs[m];
  }
}

/// Adds all entries of a row, four at a time: most are short, and what is left over waits for itself.
template <Way way, class T, class S, class C>
[[gnu::always_inline]] inline void accumulate_row(const PartPattern& part, const S* value, Index slice, const C* column,
                                                  const T* x, RowSums<1, T>& sum) {
  constexpr int W = exec::simd_width<T>(4);
  exec::Simd<T, W> s = {};
  Offset k = part.offset[slice];
  const Offset end = part.offset[slice + 1];
  for (; k + W <= end; k += W) {
    read_ahead<way, T>(value + k);
    read_ahead<way, T>(column + k);
    s += exec::load<T, W>(value + k) * exec::gather<T, W>(x, column + k);
  }
  T rest = exec::sum_of<T, W>(s);
  for (; k < end; ++k) rest += T(value[k]) * x[column[k]];
  sum.part[0] += rest;
}

/// f(std::integral_constant<int, K>): the rows that a slice of a pattern of height H is worked on as, `rows` being what
/// it has.
template <int H, class F>
[[gnu::always_inline]] inline void with_rows(Index rows, const F& f) {
  if constexpr (H > 0)
    f(std::integral_constant<int, H>{});
  else
    with_node_rows(rows, f);
}

/// Adds all entries of one slice and triangle: sum[q] += value * x[column], lane by lane. row: the slice's first.
template <int H, Triangle triangle, Way way = Way::ascending, int K, class T, class S>
[[gnu::always_inline]] inline void accumulate(const SplitView<T, S>& a, Index slice, Index row, const T* x,
                                              RowSums<K, T>& sum) {
  const PartPattern& part = a.template part<triangle>();
  const S* const value = a.template values<triangle>();
  const bool narrow = !std::is_same_v<S, double> && part.narrow;
  if constexpr (K == 1) {
    if (narrow)
      accumulate_row<way>(part, value, slice, part.narrow, x + part.base[slice], sum);
    else
      accumulate_row<way>(part, value, slice, part.column, x, sum);
  } else if constexpr (H == 0) {
    sum.add(Node<K, triangle, S>(a, slice, row).template all<way>(x));
  } else {
    if (narrow)
      accumulate_rows<H, way>(part, value, slice, part.narrow, part.base[slice], x, sum);
    else
      accumulate_rows<H, way>(part, value, slice, part.column, 0, x, sum);
  }
}

}  // namespace krilu::sparse
