// SPDX-License-Identifier: Apache-2.0
// What the tests of readers share: texts with a change, and the numbers of threads that share a text.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace krilu::test {

inline const std::vector<int> team_sizes{1, 2, 5};

/// The text with its only `from` replaced.
inline std::string with(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_EQ(text.find(from, at + 1), std::string::npos) << from;
  return at == std::string::npos ? text : text.substr(0, at) + to + text.substr(at + from.size());
}

}  // namespace krilu::test
