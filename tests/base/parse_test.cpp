// SPDX-License-Identifier: Apache-2.0
// Texts cut at separators, and numbers that are the whole text.
#include "base/parse.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using krilu::parse;
using krilu::split;
using Parts = std::vector<std::string_view>;

TEST(Split, HasOnePartMoreThanSeparators) {
  EXPECT_EQ(split("30x20x10", 'x'), (Parts{"30", "20", "10"}));
  EXPECT_EQ(split("30", 'x'), Parts{"30"});
  EXPECT_EQ(split("", 'x'), Parts{""});
  EXPECT_EQ(split("x30x", 'x'), (Parts{"", "30", ""}));
  EXPECT_EQ(split("a:bxc:d", ':'), (Parts{"a", "bxc", "d"}));
}

TEST(Parse, TakesNothingButTheNumber) {
  std::int64_t n = 5;
  EXPECT_TRUE(parse("-12", n));
  EXPECT_EQ(n, -12);
  for (const char* text : {"", " 1", "1 ", "+1", "1.5", "0x10", "a", "9223372036854775808"})
    EXPECT_FALSE(parse(text, n)) << text;
  std::uint64_t seed = 0;
  EXPECT_TRUE(parse("18446744073709551615", seed));
  EXPECT_EQ(seed, 18446744073709551615u);
  EXPECT_FALSE(parse("-1", seed));
}

}  // namespace
