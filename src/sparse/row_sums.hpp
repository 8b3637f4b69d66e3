// SPDX-License-Identifier: Apache-2.0
// A sum for each row of a slice, in the host's vector registers from the first entry to what is made of it. In memory
// they would be written register by register, and compilers read them back in other pieces, which no core forwards: a
// product with rows of five entries took 1.7 times as long.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "exec/shuffle.hpp"
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

  /// Row q's number, in all lanes of a register.
  template <int q>
  [[gnu::always_inline]] Register each() const {
    if constexpr (lanes == 1)
      return part[q];
    else
      return exec::all_of_lane<T, lanes, q % lanes>(part[q / lanes]);
  }
  /// The numbers of K rows, in a row at `at`.
  [[gnu::always_inline]] static RowSums of(const T* at) {
    RowSums all;
    all.update(
        K, [&](Index q, auto v) __attribute__((always_inline)) { return numbers_at<decltype(v)>(at + q); });
    return all;
  }

  /// f(q, s): s, a number or a register, being the sums of rows q, q + 1, .. of the first `rows`.
  template <class F>
  [[gnu::always_inline]] void for_each(Index rows, const F& f) const {
    if constexpr (K != width) {
      pieces([&](auto q, auto s) __attribute__((always_inline)) { f(Index(q), s); });
    } else if (rows == K) {
      for (int m = 0; m < registers; ++m) f(Index(m * lanes), part[m]);
    } else {
      T all[width];
      std::memcpy(all, part, sizeof all);
      for (Index q = 0; q < K && q < rows; ++q) f(q, all[q]);
    }
  }
  /// s = f(q, s) in the same way.
  template <class F>
  [[gnu::always_inline]] void update(Index rows, const F& f) {
    if constexpr (K != width) {
      pieces([&](auto q, auto s) __attribute__((always_inline)) {
        Register& r = part[q / lanes];
        const auto v = f(Index(q), s);
        if constexpr (sizeof v == sizeof r)
          r = v;
        else if constexpr (sizeof v == sizeof(T))
          r[q % lanes] = v;
        else
          r = exec::with_lanes<T, lanes, q % lanes>(r, v);
      });
    } else if (rows == K) {
      for (int m = 0; m < registers; ++m) part[m] = f(Index(m * lanes), part[m]);
    } else {
      T all[width];
      std::memcpy(all, part, sizeof all);
      for (Index q = 0; q < K && q < rows; ++q) all[q] = f(q, all[q]);
      std::memcpy(part, all, sizeof all);
    }
  }

 private:
  /// f(integral_constant<int, q>, s) for K rows that do not fill their registers: halves and single lanes of them.
  template <int q = 0, class F>
  [[gnu::always_inline]] void pieces(const F& f) const {
    constexpr int left = std::min(K - q, lanes);
    constexpr int W = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    constexpr std::integral_constant<int, q> first;
    const Register& r = part[q / lanes];
    if constexpr (W == lanes)
      f(first, r);
    else if constexpr (W == 1)
      f(first, T(r[q % lanes]));
    else
      f(first, exec::part_of<T, W, q % lanes>(r));
    if constexpr (q + W < K) pieces<q + W>(f);
  }
};

}  // namespace krilu::sparse
