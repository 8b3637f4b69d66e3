// SPDX-License-Identifier: Apache-2.0
// splitmix64 against the first numbers of its sequence as they are published: state k of the sequence from a seed is
// the seed plus k golden gammas.
#include "base/random.hpp"

#include <gtest/gtest.h>

namespace {

constexpr std::uint64_t gamma = 0x9e3779b97f4a7c15u;

TEST(RandomBits, AreSplitmix64) {
  EXPECT_EQ(krilu::random_bits(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(krilu::random_bits(gamma), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(krilu::random_bits(2 * gamma), 0x06c45d188009454fu);
  EXPECT_EQ(krilu::random_bits(1234567), 6457827717110365317u);
  EXPECT_EQ(krilu::random_bits(1234567 + gamma), 3203168211198807973u);
}

TEST(UnitRandom, IsTheHigh53BitsBelowOne) {
  double sum = 0;
  for (std::uint64_t k = 0; k < 10000; ++k) {
    const double u = krilu::unit_random(k);
    EXPECT_EQ(u, double(krilu::random_bits(k) >> 11) / 9007199254740992.0);
    EXPECT_LT(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.01);
}

}  // namespace
