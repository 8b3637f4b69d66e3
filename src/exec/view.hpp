// SPDX-License-Identifier: Apache-2.0
// What a kernel sees of an array: a pointer that copies with the kernel. KRILU_FN opens a kernel: it captures by value,
// so every view, number and scalar that a kernel uses travels with it.
#pragma once

#include <array>
#include <cstddef>

#include "krilu/kernel.hpp"
#include "krilu/view.hpp"

namespace krilu::exec {

using krilu::View;

/// One number where the vectors live: written and read by kernels as alpha().
template <class T>
struct Scalar {
  T* data = nullptr;
  KRILU_INLINE T& operator()() const { return *data; }
};

/// Vectors of equal length side by side, each `stride` entries after the one before.
template <class T>
struct Columns {
  T* data = nullptr;
  std::size_t stride = 0;
  KRILU_INLINE T* operator[](Index k) const { return data + std::size_t(k) * stride; }
  /// For vectors of n entries that all begin on a boundary of 32 bytes or more: what a space asks of their memory.
  static constexpr std::size_t stride_of(std::size_t n) { return (n + 15) / 16 * 16; }
};

/// Givens rotations of the last of several columns, which follow one another: number k, first() <= k < end(), makes of
/// column place[k] and the next one, x and y, c[k] x + s[k] y and c[k] y - s[k] x; place[k + 1] is place[k] + 1, and
/// the last place is that of the last column but one.
template <class T>
struct Rotations {
  Scalar<Index> first, end;
  View<Index> place;
  View<T> c, s;
  /// The first column that is turned; `last`, the last column, where none is.
  KRILU_INLINE Index turned(Index last) const { return first() < end() ? place[first()] : last; }
};

/// N sums of one pass: what the function of a reduction returns when it has more than one.
template <class T, int N>
struct Sums {
  T value[N];
  KRILU_INLINE T& operator[](int k) { return value[k]; }
  KRILU_INLINE const T& operator[](int k) const { return value[k]; }
};

/// What columns are combined with in a row: the entries there of R vectors, as f(i, s, x) takes them; f(i, s) where
/// there are none.
template <class T, std::size_t R>
using RowOf = Sums<T, R == 0 ? 1 : int(R)>;
template <class T, std::size_t R>
KRILU_INLINE RowOf<T, R> row_of(const std::array<View<T>, R>& x, Index i) {
  RowOf<T, R> row{};
  for (int l = 0; l < int(R); ++l) row[l] = x[std::size_t(l)][i];
  return row;
}
template <std::size_t R, class F, class S, class X>
KRILU_INLINE auto in_row(const F& f, Index i, const S& s, const X& x) {
  if constexpr (R == 0)
    return f(i, s);
  else
    return f(i, s, x);
}

template <class V>
struct SumTraits {
  using Value = V;
  static constexpr int count = 1;
  static KRILU_INLINE V get(const V& v, int) { return v; }
};
template <class T, int N>
struct SumTraits<Sums<T, N>> {
  using Value = T;
  static constexpr int count = N;
  static KRILU_INLINE T get(const Sums<T, N>& v, int k) { return v.value[k]; }
};

}  // namespace krilu::exec
