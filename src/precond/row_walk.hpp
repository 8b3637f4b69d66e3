// SPDX-License-Identifier: Apache-2.0
// How a factorisation walks through the rows of a slice, and what it does about a bad one. Host bodies only.
#pragma once

#include <atomic>
#include <cmath>

#include "sparse/split.hpp"

namespace krilu::precond {

/// f(i) for the entries of row `row` (lane `lane` of `slice`) in one triangle: i is a position, padding left out.
template <class F>
inline void for_row_entries(const sparse::PatternView& p, const sparse::PartPattern& part, Index slice, Index lane,
                            F f) {
  const sparse::PatternView::Entries e = p.entries(part, slice, lane);
  for (Offset k = e.begin; k < e.end; k += e.stride) f(k);
}

/// The diagonal with its shift: |a_ii| grows by shift times the row's largest entry, in the sign of a_ii (plus for 0).
template <class T>
inline T shifted_diagonal(const sparse::SplitView<T>& a, Index slice, Index lane, double shift) {
  const Index row = a.pattern.slice_row[slice] + lane;
  const T d = a.diagonal[row];
  if (shift == 0) return d;
  T largest = std::abs(d);
  for_row_entries(a.pattern, a.pattern.lower, slice, lane,
                  [&](Offset k) { largest = std::max(largest, std::abs(a.lower[k])); });
  for_row_entries(a.pattern, a.pattern.upper, slice, lane,
                  [&](Offset k) { largest = std::max(largest, std::abs(a.upper[k])); });
  return d + std::copysign(T(shift) * largest, d);
}

/// Keeps the first row in the solver's order: rows are met in any sequence.
inline void note_row(Index& first, Index row) {
  std::atomic_ref<Index> kept(first);
  Index seen = kept.load(std::memory_order_relaxed);
  while (row < seen && !kept.compare_exchange_weak(seen, row, std::memory_order_relaxed)) {
  }
}

/// 1 / pivot; a pivot of zero, NaN or infinity is noted and its row left alone (rd = 1).
template <class T>
inline T reciprocal_pivot(T pivot, Index row, Index& zero_pivot) {
  const T rd = T(1) / pivot;
  if (std::isfinite(rd) && rd != 0) return rd;
  note_row(zero_pivot, row);
  return T(1);
}

}  // namespace krilu::precond
