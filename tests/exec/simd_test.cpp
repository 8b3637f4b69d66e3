// SPDX-License-Identifier: Apache-2.0
// Numbers side by side against the same one by one: loads from every format and at any address, all values of 16 bits
// among them, gathers, stores and sums, for the widths of every processor that krilu is compiled for.
#include "exec/simd.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

namespace krilu::exec {
namespace {

template <class T>
constexpr int widest = simd_width<T>(64);

TEST(Simd, IsAsWideAsARegisterAndNoWiderThanAsked) {
  EXPECT_GE(simd_width<float>(8), 4);
  EXPECT_EQ(simd_width<float>(2), 2);
  EXPECT_EQ(simd_width<double>(1), 1);
  EXPECT_EQ(2 * widest<double>, widest<float>);
}

/// Every number that S has, but NaN and infinity, which are not stored.
template <class S, int W>
void loads_are_conversions() {
  std::vector<S> all;
  for (unsigned b = 0; b < 1u << 16; ++b) {
    S s;
    s.bits = std::uint16_t(b);
    const unsigned exponent = std::is_same_v<S, Half> ? 0x7c00u : 0x7f80u;
    if ((b & exponent) != exponent) all.push_back(s);
  }
  for (std::size_t at = 0; at + W <= all.size(); ++at) {
    const Simd<float, W> v = load<float, W>(all.data() + at);
    for (int q = 0; q < W; ++q)
      ASSERT_EQ(v[q], float(all[at + std::size_t(q)])) << "bits " << all[at + std::size_t(q)].bits;
  }
}
template <class S>
void loads_of_any_width_are_conversions() {
  loads_are_conversions<S, 4>();
  loads_are_conversions<S, widest<float>>();
#if defined(__AVX512F__)  // elsewhere there is no register so wide
  loads_are_conversions<S, 16>();
#endif
}
TEST(Simd, LoadsOfHalvesAreConversions) { loads_of_any_width_are_conversions<Half>(); }
TEST(Simd, LoadsOfBfloat16sAreConversions) { loads_of_any_width_are_conversions<Bfloat16>(); }

template <class T, int W>
void reads_and_writes() {
  std::vector<T> x(3 * W + 1);
  std::iota(x.begin(), x.end(), T(0.5));
  std::vector<int> far(x.size());
  std::vector<std::uint16_t> near(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    far[i] = int((7 * i + 3) % x.size());
    near[i] = std::uint16_t(far[i]);
  }
  for (std::size_t at = 0; at + W <= x.size(); ++at) {
    const Simd<T, W> v = load<T, W>(x.data() + at), w = gather<T, W>(x.data(), far.data() + at),
                     u = gather<T, W>(x.data(), near.data() + at);
    std::vector<T> back(x.size(), T(-1));
    store<T, W>(back.data() + at, v);
    T sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool inside = i >= at && i < at + W;
      EXPECT_EQ(back[i], inside ? x[i] : T(-1));
      if (!inside) continue;
      EXPECT_EQ(v[i - at], x[i]);
      EXPECT_EQ(w[i - at], x[std::size_t(far[i])]);
      EXPECT_EQ(u[i - at], x[std::size_t(far[i])]);
      sum += x[i];  // exact, as all of these are
    }
    EXPECT_EQ((sum_of<T, W>(v)), sum);
  }
}
TEST(Simd, ReadsWritesAndSumsAtAnyAddress) {
  reads_and_writes<float, widest<float>>();
  reads_and_writes<float, 4>();
  reads_and_writes<float, 1>();
  reads_and_writes<double, widest<double>>();
  reads_and_writes<double, 2>();
  reads_and_writes<double, 1>();
}

TEST(Simd, GathersFromTheEndOfWhatAnIndexReaches) {
  std::vector<float> x(70'000);
  std::iota(x.begin(), x.end(), 0.5f);  // exact, all of them
  const std::vector<int> far{69'999, 0, 65'536, 1};
  const std::vector<std::uint16_t> near{65'535, 0, 32'768, 1};
  const Simd<float, 4> v = gather<float, 4>(x.data(), far.data()), w = gather<float, 4>(x.data(), near.data());
  for (std::size_t q = 0; q < 4; ++q) {
    EXPECT_EQ(v[q], x[std::size_t(far[q])]);
    EXPECT_EQ(w[q], x[near[q]]);
  }
}

}  // namespace
}  // namespace krilu::exec
