// SPDX-License-Identifier: Apache-2.0
// W numbers side by side in the host's vector registers, for inner loops that compilers otherwise make scalars of:
// gathers, short loops, sums. Arithmetic is elementwise: the vector extension of GCC and Clang.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

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

/// Whether this is compiled for cores that have an instruction for numbers in fp16.
#if defined(__F16C__)
constexpr bool reads_half = true;
#else
constexpr bool reads_half = false;
#endif

/// W zeros. GCC writes some constants to memory in halves and reads them back as a whole, which no core forwards.
template <class T, int W>
[[gnu::always_inline]] inline Simd<T, W> zeros() {
  Simd<T, W> v = {};
#if defined(__SSE2__)
  if constexpr (sizeof v == 16) asm("" : "+x"(v));
#endif
  return v;
}

/// Keeps v in a register where it is used more than once: without that GCC makes each use read memory, where an
/// instruction may, and with registers of 32 bytes reading is what loops over columns wait for.
template <class V>
[[gnu::always_inline]] inline void keep([[maybe_unused]] V& v) {
#if defined(__AVX__)
  if constexpr (sizeof v == 16 || sizeof v == 32) asm("" : "+x"(v));
#endif
}

/// at[0 .. W-1], which may be stored in another type.
template <class T, int W, class S>
[[gnu::always_inline]] inline Simd<T, W> load(const S* at) {
  Simd<T, W> v;
  if constexpr (std::is_same_v<S, T>) {
    std::memcpy(&v, at, sizeof v);
    return v;
  } else if constexpr (std::is_same_v<S, Bfloat16> && W > 1) {
    Simd<std::uint16_t, W> bits;
    std::memcpy(&bits, at, sizeof bits);
    return (Simd<T, W>)(__builtin_convertvector(bits, Simd<std::uint32_t, W>) << 16);
  }
#if defined(__F16C__)  // the processor's own conversion, which no compiler makes of Half's
  else if constexpr (std::is_same_v<S, Half> && W == 4) {
    return _mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
  } else if constexpr (std::is_same_v<S, Half> && W == 8) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
#endif
#if defined(__F16C__) && defined(__AVX512F__)
  else if constexpr (std::is_same_v<S, Half> && W == 16) {
    // Masked, though by ones: of the other form GCC 12 says that it may be used uninitialised.
    return _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  }
#endif
  else {
    for (int q = 0; q < W; ++q) v[q] = T(at[q]);
    return v;
  }
}
/// x[i[0]] .. x[i[W-1]], none of i negative. Two of i are read at once: a core reads two or three times a cycle, and
/// gathers do little else.
template <class T, int W, class I>
[[gnu::always_inline]] inline Simd<T, W> gather(const T* x, const I* i) {
  Simd<T, W> v;
  if constexpr (W % 2 == 0 && std::endian::native == std::endian::little) {
    using Two = std::conditional_t<sizeof(I) == 2, std::uint32_t, std::uint64_t>;
    for (int q = 0; q < W; q += 2) {
      Two two;
      std::memcpy(&two, i + q, sizeof two);
      v[q] = x[std::make_unsigned_t<I>(two)];
      v[q + 1] = x[two >> 8 * sizeof(I)];
    }
  } else {
    for (int q = 0; q < W; ++q) v[q] = x[i[q]];
  }
  return v;
}
template <class T, int W>
[[gnu::always_inline]] inline void store(T* at, Simd<T, W> v) {
  std::memcpy(at, &v, sizeof v);
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
