// SPDX-License-Identifier: Apache-2.0
// Lanes of the host's vector registers (simd.hpp) put elsewhere, without memory between. nvcc, which cannot read such
// builtins, sees declarations: texts that have host loops beside kernels include them.
#pragma once

#include <cstring>
#include <utility>

#include "exec/simd.hpp"

namespace krilu::exec {

/// v[at] .. v[at+W-1].
template <class T, int W, int at, class V>
Simd<T, W> part_of(V v);
/// v with the lanes from `at` on taken from `lanes`.
template <class T, int L, int at, class V>
Simd<T, L> with_lanes(Simd<T, L> v, V lanes);
/// x[0] in K lanes, then x[1] in all others of L.
template <class T, int K, int L>
Simd<T, L> each_of_two(const T* x);
/// v[at] in all lanes.
template <class T, int L, int at>
Simd<T, L> all_of_lane(Simd<T, L> v);

#if !defined(__CUDACC__)

template <class T, int W, int at, class V>
[[gnu::always_inline]] inline Simd<T, W> part_of(V v) {
  return [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(v, v, (at + i)...);
  }
  (std::make_integer_sequence<int, W>{});
}
template <class T, int L, int at, class V>
[[gnu::always_inline]] inline Simd<T, L> with_lanes(Simd<T, L> v, V lanes) {
  constexpr int W = int(sizeof lanes / sizeof(T));
  return [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    const Simd<T, L> wide = __builtin_shufflevector(lanes, lanes, (i < W ? i : -1)...);
    return __builtin_shufflevector(v, wide, (i < at || i >= at + W ? i : L + i - at)...);
  }
  (std::make_integer_sequence<int, L>{});
}
template <class T, int L, int at>
[[gnu::always_inline]] inline Simd<T, L> all_of_lane(Simd<T, L> v) {
  return [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(v, v, (at + 0 * i)...);
  }
  (std::make_integer_sequence<int, L>{});
}
template <class T, int K, int L>
[[gnu::always_inline]] inline Simd<T, L> each_of_two(const T* x) {
  Simd<T, L> pairs;  // x[0], x[1], x[0], x[1] and so on, which is one instruction
  if constexpr (sizeof(T) == 4) {
    double two;
    std::memcpy(&two, x, sizeof two);
    Simd<double, L / 2> all;
    for (int q = 0; q < L / 2; ++q) all[q] = two;
    std::memcpy(&pairs, &all, sizeof pairs);
  } else {
    for (int q = 0; q < L; ++q) pairs[q] = x[q % 2];
  }
  return [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(pairs, pairs, (i / 2 * 2 + int(i >= K))...);
  }
  (std::make_integer_sequence<int, L>{});
}

#endif

}  // namespace krilu::exec
