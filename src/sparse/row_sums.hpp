// SPDX-License-Identifier: Apache-2.0
// A sum for each row of a slice, in the host's vector registers from the first entry to what is made of it. In memory
// they would be written register by register, and compilers read them back in other pieces, which no core forwards: a
// product with rows of five entries took 1.7 times as long.
#pragma once

#include <cstring>
#include <type_traits>

#include "exec/simd.hpp"
#include "krilu/types.hpp"

namespace krilu::sparse {

/// As many numbers as V has, V being a number or a register.
template <class V, class T>
[[gnu::always_inline]] inline V numbers_at(const T* at) {
  V v;
  std::memcpy(&v, at, sizeof v);
  return v;
}
template <class V, class T>
[[gnu::always_inline]] inline void put(T* at, V v) {
  std::memcpy(at, &v, sizeof v);
}

/// K rows. Lanes beyond them hold what nobody reads.
template <int K, class T>
struct RowSums {
  static constexpr int least = 16 / int(sizeof(T)), width = K == 1 ? 1 : K <= least ? least : K <= 4 ? 4 : 8;
  static constexpr int lanes = exec::simd_width<T>(width), registers = width / lanes;
  using Register = std::conditional_t<lanes == 1, T, exec::Simd<T, lanes>>;
  Register part[registers];

  /// Zeros.
  [[gnu::always_inline]] RowSums() {
    for (Register& p : part)
      if constexpr (lanes == 1)
        p = 0;
      else
        p = exec::zeros<T, lanes>();
  }
  [[gnu::always_inline]] T operator[](int q) const {
    if constexpr (lanes == 1)
      return part[q];
    else
      return part[q / lanes][q % lanes];
  }
  [[gnu::always_inline]] void add(const RowSums& other) {
    for (int m = 0; m < registers; ++m) part[m] += other.part[m];
  }
  /// Adds a value of each row times one number.
  template <class S>
  [[gnu::always_inline]] void add(const S* value, T x) {
    for (int m = 0; m < registers; ++m) part[m] += exec::load<T, lanes>(value + m * lanes) * x;
  }

  /// f(q, s): s, a number or a register, being the sums of rows q, q + 1, .. of the first `rows`.
  template <class F>
  [[gnu::always_inline]] void for_each(Index rows, const F& f) const {
    if (K == width && rows == K) {
      for (int m = 0; m < registers; ++m) f(Index(m * lanes), part[m]);
    } else {
      T all[width];
      std::memcpy(all, part, sizeof all);
      for (Index q = 0; q < rows; ++q) f(q, all[q]);
    }
  }
  /// s = f(q, s) in the same way.
  template <class F>
  [[gnu::always_inline]] void update(Index rows, const F& f) {
    if (K == width && rows == K) {
      for (int m = 0; m < registers; ++m) part[m] = f(Index(m * lanes), part[m]);
    } else {
      T all[width];
      std::memcpy(all, part, sizeof all);
      for (Index q = 0; q < rows; ++q) all[q] = f(q, all[q]);
      std::memcpy(part, all, sizeof all);
    }
  }
};

}  // namespace krilu::sparse
