// SPDX-License-Identifier: Apache-2.0
// The storage formats of 16 bits against slow references: every bit pattern decoded by ldexp from its three fields, and
// rounding by a search for the two neighbours among all decoded numbers, whose distances are compared in double, where
// they are exact. The numbers tried are all halfway points and what stands beside them, and a walk over all floats.
// Names of formats and precisions, there and back.
#include "base/half.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "krilu/error.hpp"
#include "support/refusal.hpp"

namespace {

using namespace krilu;

const float infinity = std::numeric_limits<float>::infinity();
const float nan = std::numeric_limits<float>::quiet_NaN();

/// IEEE 754: a sign, `exponent_bits` of exponent, `fraction_bits` of fraction.
template <class S>
struct Shape;
template <>
struct Shape<Half> {
  static constexpr int exponent_bits = 5, fraction_bits = 10;
};
template <>
struct Shape<Bfloat16> {
  static constexpr int exponent_bits = 8, fraction_bits = 7;
};
template <class S>
constexpr int bias = (1 << (Shape<S>::exponent_bits - 1)) - 1;
/// The pattern of infinity. Those below are the finite numbers from 0 in ascending order, those above NaN.
template <class S>
constexpr int infinite = ((1 << Shape<S>::exponent_bits) - 1) << Shape<S>::fraction_bits;

/// The number of a pattern without its sign; of infinity's, the power of two that would come next.
template <class S>
double decoded(int pattern) {
  constexpr int fraction_bits = Shape<S>::fraction_bits;
  const int exponent = pattern >> fraction_bits, fraction = pattern & ((1 << fraction_bits) - 1);
  if (exponent == 0) return std::ldexp(double(fraction), 1 - bias<S> - fraction_bits);
  return std::ldexp(double((1 << fraction_bits) + fraction), exponent - bias<S> - fraction_bits);
}

template <class S>
const std::vector<double>& numbers() {
  static const std::vector<double> all = [] {
    std::vector<double> v;
    for (int pattern = 0; pattern <= infinite<S>; ++pattern) v.push_back(decoded<S>(pattern));
    return v;
  }();
  return all;
}

/// The pattern that a finite v is rounded to: the nearer neighbour, of two equally near ones the even one.
template <class S>
int nearest(double v) {
  const auto& all = numbers<S>();
  const int sign = std::signbit(v) ? 0x8000 : 0;
  v = std::abs(v);
  const auto above = std::lower_bound(all.begin(), all.end(), v);
  if (above == all.end()) return sign | infinite<S>;
  int pattern = int(above - all.begin());
  if (*above != v) {
    const double up = *above - v, down = v - all[std::size_t(pattern - 1)];
    if (down < up || (down == up && pattern % 2 == 1)) --pattern;
  }
  return sign | pattern;
}

template <class S>
std::string name() {
  return std::is_same_v<S, Half> ? "fp16" : "bf16";
}

template <class S>
class Stored : public testing::Test {};
using Formats = testing::Types<Half, Bfloat16>;
TYPED_TEST_SUITE(Stored, Formats);

/// Many at a time, as loops over vectors round them, and one by one.
TYPED_TEST(Stored, IsAssignedInALoopAsOneByOne) {
  std::vector<float> v{0.0f, -0.0f, infinity, -infinity, nan, 65504.0f, 65520.0f, 1e-8f, -6e-5f, 6.2e-5f};
  for (int k = 0; k < 1000; ++k) v.push_back(std::ldexp(1 + 0.001f * float(k * 37 % 1000), k % 60 - 30));
  std::vector<TypeParam> many(v.size());
  TypeParam* const to = many.data();
  const float* const from = v.data();
  const auto n = int(v.size());
#pragma omp simd
  for (int k = 0; k < n; ++k) assign(to[k], from[k]);
  for (std::size_t k = 0; k < v.size(); ++k) EXPECT_EQ(many[k].bits, TypeParam(v[k]).bits) << v[k];
  float number = 0;
  assign(number, 0.1f);
  EXPECT_EQ(number, 0.1f);
}

TYPED_TEST(Stored, EveryFinitePatternIsTheNumberOfItsFields) {
  using S = TypeParam;
  for (int pattern = 0; pattern < infinite<S>; ++pattern)
    for (const int sign : {0, 0x8000}) {
      S s;
      s.bits = std::uint16_t(pattern | sign);
      const float v = s;
      const double expected = sign ? -decoded<S>(pattern) : decoded<S>(pattern);
      ASSERT_EQ(double(v), expected) << name<S>() << " pattern " << pattern << " sign " << sign;
      ASSERT_EQ(std::signbit(v), sign != 0) << name<S>() << " pattern " << pattern;
      ASSERT_EQ(S(v).bits, s.bits) << name<S>() << ": there and back";
    }
}

TYPED_TEST(Stored, PatternsBeyondTheFiniteOnesPassForNoFiniteNumber) {
  // Half decodes them to numbers from 65536 on, since they are not stored; what matters is that none looks ordinary.
  using S = TypeParam;
  const double largest = decoded<S>(infinite<S> - 1);
  for (int pattern = infinite<S>; pattern < 0x8000; ++pattern)
    for (const int sign : {0, 0x8000}) {
      S s;
      s.bits = std::uint16_t(pattern | sign);
      const float v = s;
      ASSERT_FALSE(double(std::abs(v)) <= largest) << name<S>() << " pattern " << pattern;
      if (std::is_same_v<S, Bfloat16>) {
        ASSERT_EQ(std::isnan(v), pattern > infinite<S>) << pattern;
        ASSERT_EQ(std::isinf(v), pattern == infinite<S>) << pattern;
      }
    }
}

TYPED_TEST(Stored, HalfwayPointsGoToTheEvenNeighbourAndOthersToTheNearer) {
  using S = TypeParam;
  const auto& all = numbers<S>();
  for (int pattern = 0; pattern < infinite<S>; ++pattern) {
    const double low = all[std::size_t(pattern)], high = all[std::size_t(pattern) + 1], middle = low / 2 + high / 2;
    const auto m = float(middle), h = float(high);  // of bfloat16 the last `high` is 2^128, which no float is
    ASSERT_EQ(double(m), middle);
    const int even = pattern % 2 == 0 ? pattern : pattern + 1;
    ASSERT_EQ(S(m).bits, even) << name<S>() << " halfway above pattern " << pattern;
    ASSERT_EQ(S(std::nextafter(m, 0.0f)).bits, pattern) << name<S>() << " just below halfway above " << pattern;
    ASSERT_EQ(S(std::nextafter(m, infinity)).bits, pattern + 1) << name<S>() << " just above halfway above " << pattern;
    for (const float v : {m, std::nextafter(m, 0.0f), std::nextafter(m, infinity), float(low / 2 + middle / 2),
                          float(middle / 2 + high / 2), std::nextafter(float(low), infinity), std::nextafter(h, 0.0f)})
      for (const float signed_v : {v, -v})
        ASSERT_EQ(S(signed_v).bits, nearest<S>(double(signed_v))) << name<S>() << " of " << signed_v;
  }
}

TYPED_TEST(Stored, FloatsOfAllExponentsAreRoundedToTheNearest) {
  using S = TypeParam;
  // A prime stride from pattern 0 to that of infinity meets every exponent, subnormal floats among them.
  for (std::uint32_t bits = 0; bits < 0x7f800000u; bits += 1511) {
    const auto v = std::bit_cast<float>(bits);
    ASSERT_EQ(S(v).bits, nearest<S>(double(v))) << name<S>() << " of " << v;
    ASSERT_EQ(S(-v).bits, nearest<S>(-double(v))) << name<S>() << " of " << -v;
  }
}

TYPED_TEST(Stored, EndsOfTheRange) {
  using S = TypeParam;
  const auto largest = float(decoded<S>(infinite<S> - 1)), smallest = float(decoded<S>(1));
  const double beyond = decoded<S>(infinite<S>);
  for (const int sign : {0, 0x8000}) {
    const float one = sign ? -1.0f : 1.0f;
    const auto bits_of = [&](float v) { return int(S(one * v).bits); };
    EXPECT_EQ(bits_of(0.0f), sign);
    EXPECT_EQ(bits_of(1.0f), sign | bias<S> << Shape<S>::fraction_bits);
    EXPECT_EQ(bits_of(infinity), sign | infinite<S>);
    EXPECT_EQ(bits_of(std::numeric_limits<float>::max()), sign | infinite<S>) << "overflow gives infinity";
    EXPECT_EQ(bits_of(largest), sign | (infinite<S> - 1));
    EXPECT_EQ(bits_of(float(double(largest) / 2 + beyond / 2)), sign | infinite<S>);
    EXPECT_EQ(bits_of(smallest), sign | 1);
    EXPECT_EQ(bits_of(0.75f * smallest), sign | 1);
    EXPECT_EQ(bits_of(0.5f * smallest), sign) << "halfway to zero is zero, with its sign";
    EXPECT_EQ(bits_of(std::numeric_limits<float>::denorm_min()), sign);
  }
}

TYPED_TEST(Stored, NanStaysNan) {
  using S = TypeParam;
  for (const std::uint32_t bits : {0x7fc00000u, 0x7f800001u, 0x7fffffffu, 0x7f80ffffu, 0x7fbfffffu})
    for (const std::uint32_t sign : {0u, 0x80000000u}) {
      const int pattern = S(std::bit_cast<float>(bits | sign)).bits & 0x7fff;
      EXPECT_GT(pattern, infinite<S>) << name<S>() << " of the NaN " << bits;
    }
  EXPECT_GT(S(nan).bits & 0x7fff, infinite<S>);
}

TYPED_TEST(Stored, AreTwoPlainBytes) {
  using S = TypeParam;
  EXPECT_EQ(sizeof(S), 2u);
  EXPECT_TRUE(std::is_trivially_copyable_v<S>);
  EXPECT_TRUE(std::is_trivially_default_constructible_v<S>);
}

// --- doubles into storage ------------------------------------------------------------------------------------------

TYPED_TEST(Stored, DoublesBeyondTheRangeBecomeTheLargestNumber) {
  using S = TypeParam;
  const double largest = decoded<S>(infinite<S> - 1);
  for (const double v : {largest * 1.001, 1e39, 1e100, 1e308, std::numeric_limits<double>::infinity()}) {
    const float up = rounded<S>(v), down = rounded<S>(-v);
    EXPECT_TRUE(std::isfinite(up)) << v;
    // Of bfloat16 the bound is a little below its largest number.
    EXPECT_GE(double(up), 0.97 * largest) << v;
    EXPECT_LE(double(up), largest) << v;
    EXPECT_EQ(down, -up) << v;
    EXPECT_LT(rounded<S>(v).bits & 0x7fff, infinite<S>) << v;
  }
  EXPECT_GT(rounded<S>(std::numeric_limits<double>::quiet_NaN()).bits & 0x7fff, infinite<S>) << "NaN is not hidden";
}

TYPED_TEST(Stored, DoublesAreOffByHalfASpacingAtMost) {
  using S = TypeParam;
  const auto& all = numbers<S>();
  for (int pattern = 0; pattern + 2 < infinite<S>; pattern += 3) {
    const double low = all[std::size_t(pattern)], spacing = all[std::size_t(pattern) + 1] - low;
    if (low > 3.2e38) break;
    for (const double part : {0.0, 1e-9, 0.1, 0.4999999, 0.5, 0.5000001, 0.9, 1 - 1e-9})
      for (const double sign : {1.0, -1.0}) {
        const double v = sign * (low + part * spacing);
        // On the way the double becomes a float, which can move it over a halfway point.
        ASSERT_LE(std::abs(double(float(rounded<S>(v))) - v), spacing * (0.5 + 1e-3)) << name<S>() << " of " << v;
      }
  }
  for (const double v : {1e-50, 5e-324}) {
    EXPECT_EQ(rounded<S>(v).bits, 0);
    EXPECT_EQ(rounded<S>(-v).bits, 0x8000);
  }
}

TEST(Rounded, FloatsAreClampedAndDoublesAreLeftAlone) {
  for (const double v : {1e39, 1e308, std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(std::isfinite(rounded<float>(v)));
    EXPECT_GE(rounded<float>(v), 3.29e38f);
    EXPECT_EQ(rounded<float>(-v), -rounded<float>(v));
    EXPECT_EQ(rounded<double>(v), v);
  }
  for (const double v : {0.1, -1.0 / 3, 1e-40, 1e38, 0.0}) {
    EXPECT_EQ(rounded<float>(v), float(v));
    EXPECT_EQ(rounded<double>(v), v);
  }
  EXPECT_TRUE(std::isnan(rounded<float>(std::numeric_limits<double>::quiet_NaN())));
}

TEST(Rounded, TheLargestHalfIs65504) {
  EXPECT_EQ(float(rounded<Half>(65504.0)), 65504.0f);
  EXPECT_EQ(float(rounded<Half>(65520.0)), 65504.0f) << "where Half(65520) is infinity";
  EXPECT_EQ(float(rounded<Half>(-1e6)), -65504.0f);
}

// --- names ---------------------------------------------------------------------------------------------------------

TEST(Formats, HaveNamesThereAndBack) {
  EXPECT_STREQ(to_string(Format::fp64), "fp64");
  EXPECT_STREQ(to_string(Format::fp32), "fp32");
  EXPECT_STREQ(to_string(Format::fp16), "fp16");
  EXPECT_STREQ(to_string(Format::bf16), "bf16");
  for (const Format f : {Format::fp64, Format::fp32, Format::fp16, Format::bf16})
    EXPECT_EQ(format_by_name(to_string(f)), f);
}

TEST(Formats, GiveTheirTypes) {
  const auto bytes_and_digits = [](Format f) {
    return with_format(f, [](auto s) {
      // A third in the format: how near it is tells the format apart.
      using S = decltype(s);
      return std::pair{sizeof(S), float(S(1.0f / 3))};
    });
  };
  EXPECT_EQ(bytes_and_digits(Format::fp32), std::pair(std::size_t(4), 1.0f / 3));
  EXPECT_EQ(bytes_and_digits(Format::fp16), std::pair(std::size_t(2), float(1365.0 / 4096)));
  EXPECT_EQ(bytes_and_digits(Format::bf16), std::pair(std::size_t(2), float(171.0 / 512)));
}

TEST(Precisions, HaveNamesThereAndBack) {
  const std::vector<std::pair<std::string, Precision>> all{{"fp64", {Format::fp64, Format::fp64}},
                                                           {"fp32", {Format::fp32, Format::fp32}},
                                                           {"fp32/fp16", {Format::fp32, Format::fp16}},
                                                           {"fp32/bf16", {Format::fp32, Format::bf16}}};
  for (const auto& [text, precision] : all) {
    EXPECT_EQ(precision_by_name(text), precision) << text;
    EXPECT_EQ(to_string(precision), text);
  }
}

TEST(Precisions, OthersAreRefusedInASentence) {
  EXPECT_EQ(test::refusal([] { precision_by_name("fp3"); }),
            "unknown precision 'fp3': did you mean 'fp32'? It is one of fp64, fp32, fp32/fp16, fp32/bf16");
  EXPECT_EQ(test::refusal([] { format_by_name("quadruple"); }),
            "unknown format 'quadruple': one of fp64, fp32, fp16, bf16");
  for (const char* text : {"", "auto", "FP32", "fp32/", "/fp16", "fp16", "bf16", "fp64/fp32", "fp64/fp16", "fp32/fp32",
                           "fp32/fp64", "fp16/fp16", "fp32/fp16 ", "double", "float"})
    EXPECT_THROW(precision_by_name(text), Error) << text;
  for (const char* text : {"", "auto", "fp8", "FP16", "fp32/fp16", "half", "double"})
    EXPECT_THROW(format_by_name(text), Error) << text;
}

}  // namespace
