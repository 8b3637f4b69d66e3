// SPDX-License-Identifier: Apache-2.0
// What a krilu::Error says, and whether one of several notes says something.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "krilu/error.hpp"

namespace krilu::test {

/// The sentence of the krilu::Error that f throws; a failure where it throws none.
inline std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}
inline void expect_words(const std::string& sentence, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    EXPECT_NE(sentence.find(word), std::string::npos) << "'" << word << "' is not in: " << sentence;
}

inline bool any_has(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& l) { return l.find(part) != std::string::npos; });
}

}  // namespace krilu::test
