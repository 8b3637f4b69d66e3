// SPDX-License-Identifier: Apache-2.0
// Formats of 16 bits that values are stored in and never computed in: IEEE binary16 (fp16: 11 significant bits, 6e-8 to
// 65504) and bfloat16 (bf16: 8 bits, the range of a float). Conversions are plain integer operations, so that they
// vectorise with any compiler; a GPU has instructions for them. Rounding is to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "krilu/kernel.hpp"

#if defined(__CUDA_ARCH__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace krilu {

/// Formats of stored values.
enum class Format { fp64, fp32, fp16, bf16 };

/// All bits where a < b, else none; both below 2^31.
KRILU_INLINE std::uint32_t ones_where_less(std::uint32_t a, std::uint32_t b) {
  return std::uint32_t(std::int32_t(a - b) >> 31);
}

struct Half {
  std::uint16_t bits;

  Half() = default;
  /// Overflow gives infinity, underflow zero.
  KRILU_INLINE explicit Half(float v) {
#if defined(__CUDA_ARCH__)
    bits = __half_as_ushort(__float2half_rn(v));
#else
    const std::uint32_t all = std::bit_cast<std::uint32_t>(v), sign = all >> 16 & 0x8000u, size = all & 0x7fffffffu;
    // Below 2^-14: adding 1/2 leaves the rounded multiple of 2^-24 in the last bits of the sum.
    const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000u;
    const std::uint32_t normal = (size + 0xfffu + (size >> 13 & 1u) - 0x38000000u) >> 13;
    // Masks, since no loop takes choices between 32 bits side by side that end in 16.
    const std::uint32_t is_small = ones_where_less(size, 0x38800000u), is_nan = ones_where_less(0x7f800000u, size);
    const std::uint32_t is_large = ones_where_less(0x7c00u, normal) & ~is_small;  // infinity, and NaN too
    const std::uint32_t out =
        (small & is_small) | (normal & ~is_small & ~is_large) | (0x7c00u & is_large) | (0x0200u & is_nan);
    bits = std::uint16_t(out | sign);
#endif
  }
  KRILU_INLINE operator float() const {
#if defined(__CUDA_ARCH__)
    return __half2float(__ushort_as_half(bits));
#else
    // The product sets the exponent right, of subnormal numbers too. Infinity and NaN are not stored.
    const float size = std::bit_cast<float>((bits & 0x7fffu) << 13) * 0x1p112f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | (bits & 0x8000u) << 16);
#endif
  }
};

struct Bfloat16 {
  std::uint16_t bits;

  Bfloat16() = default;
  KRILU_INLINE explicit Bfloat16(float v) {
#if defined(__CUDA_ARCH__)
    bits = __bfloat16_as_ushort(__float2bfloat16_rn(v));
#else
    const auto all = std::bit_cast<std::uint32_t>(v);
    bits = std::uint16_t((all & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : (all + 0x7fffu + (all >> 16 & 1u)) >> 16);
#endif
  }
  KRILU_INLINE operator float() const {
#if defined(__CUDA_ARCH__)
    return __bfloat162float(__ushort_as_bfloat16(bits));
#else
    return std::bit_cast<float>(std::uint32_t(bits) << 16);
#endif
  }
};

/// Calls f(S{}) with the type of a format below fp64.
template <class F>
decltype(auto) with_format(Format format, F&& f) {
  switch (format) {
    case Format::fp16: return f(Half{});
    case Format::bf16: return f(Bfloat16{});
    default: return f(float{});
  }
}

/// to = S(v), for loops over many: an assignment of structs no loop takes side by side.
template <class S, class T>
KRILU_INLINE void assign(S& to, T v) {
  if constexpr (sizeof(S) == 2)
    to.bits = S(v).bits;
  else
    to = S(v);
}

/// A double in storage S. What is too large becomes the largest number there: a factor that is off is of use, one that
/// is infinite is not.
template <class S>
KRILU_INLINE S rounded(double v) {
  if constexpr (std::is_same_v<S, double>) {
    return v;
  } else {
    const double most = std::is_same_v<S, Half> ? 65504.0 : 3.3e38;
    return S(float(v > most ? most : v < -most ? -most : v));
  }
}

const char* to_string(Format f);

/// What inner solves compute in, and what their matrix and factors are stored in.
struct Precision {
  Format arithmetic = Format::fp64, storage = Format::fp64;
  bool operator==(const Precision&) const = default;
};
/// "fp64", "fp32", "fp32/fp16" or "fp32/bf16". Throws krilu::Error for another.
Precision precision_by_name(const std::string& name);
/// Throws krilu::Error for what is no format.
Format format_by_name(const std::string& name);
std::string to_string(const Precision& p);

}  // namespace krilu
