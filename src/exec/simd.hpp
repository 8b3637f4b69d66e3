// SPDX-License-Identifier: Apache-2.0
// W numbers side by side in the host's vector registers, for inner loops that compilers otherwise make scalars of:
// gathers, short loops, sums. Arithmetic is elementwise: the vector extension of GCC and Clang.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/half.hpp"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace krilu::exec {

template <class T, int W>
struct SimdOf {
  typedef T type __attribute__((vector_size(W * sizeof(T))));
};
template <class T, int W>
using Simd = typename SimdOf<T, W>::type;

/// As many of `most` as a register holds.
template <class T>
constexpr int simd_width(int most) {
#if defined(__AVX__)
  constexpr int bytes = 32;
#else
  constexpr int bytes = 16;
#endif
  return std::min(most, bytes / int(sizeof(T)));
}

/// W zeros. GCC writes some constants to memory in halves and reads them back as a whole, which no core forwards.
template <class T, int W>
[[gnu::always_inline]] inline Simd<T, W> zeros() {
  Simd<T, W> v = {};
#if defined(__SSE2__)
  if constexpr (sizeof v == 16) asm("" : "+x"(v));
#endif
  return v;
}

/// at[0 .. W-1], which may be stored in another type.
template <class T, int W, class S>
[[gnu::always_inline]] inline Simd<T, W> load(const S* at) {
#if defined(__F16C__)  // the processor's own conversion, which no compiler makes of Half's
  if constexpr (std::is_same_v<S, Half> && W == 16) {
    const Simd<T, 8> half[2] = {load<T, 8>(at), load<T, 8>(at + 8)};
    Simd<T, W> v;
    std::memcpy(&v, half, sizeof v);
    return v;
  } else if constexpr (std::is_same_v<S, Half> && W == 8) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  } else if constexpr (std::is_same_v<S, Half> && W == 4) {
    return _mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
  } else
#endif
  {
    Simd<T, W> v;
    if constexpr (std::is_same_v<S, T>)
      std::memcpy(&v, at, sizeof v);
    else
      for (int q = 0; q < W; ++q) v[q] = T(at[q]);
    return v;
  }
}
/// x[i[0]] .. x[i[W-1]].
template <class T, int W, class I>
[[gnu::always_inline]] inline Simd<T, W> gather(const T* x, const I* i) {
  Simd<T, W> v;
  for (int q = 0; q < W; ++q) v[q] = x[i[q]];
  return v;
}
template <class T, int W>
[[gnu::always_inline]] inline void store(T* at, Simd<T, W> v) {
  std::memcpy(at, &v, sizeof v);
}
/// v[at] .. v[at+W-1].
template <class T, int W, int at, class V>
[[gnu::always_inline]] inline Simd<T, W> part_of(V v) {
  return [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(v, v, (at + i)...);
  }
  (std::make_integer_sequence<int, W>{});
}
/// v with these lanes taken from `lanes`.
template <class T, int L, int at, class V>
[[gnu::always_inline]] inline Simd<T, L> with_lanes(Simd<T, L> v, V lanes) {
  constexpr int W = int(sizeof lanes / sizeof(T));
  return [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    const Simd<T, L> wide = __builtin_shufflevector(lanes, lanes, (i < W ? i : -1)...);
    return __builtin_shufflevector(v, wide, (i < at || i >= at + W ? i : L + i - at)...);
  }
  (std::make_integer_sequence<int, L>{});
}
/// x[0] in K lanes, then x[1] in all others of L.
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
/// v[0] + .. + v[W-1], halves first.
template <class T, int W>
[[gnu::always_inline]] inline T sum_of(Simd<T, W> v) {
  if constexpr (W == 1) {
    return v[0];
  } else {
    Simd<T, W / 2> half[2];
    std::memcpy(half, &v, sizeof v);
    return sum_of<T, W / 2>(half[0] + half[1]);
  }
}

}  // namespace krilu::exec
