// SPDX-License-Identifier: Apache-2.0
// What a krilu::Error says, and whether one of several notes says something.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <source_location>
#include <string>
#include <vector>

#include "krilu/error.hpp"

namespace krilu::test {

/// The sentence of the krilu::Error that f throws; nothing where it throws none.
inline std::string complaint(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
/// The same, and a failure where it throws none.
inline std::string refusal(const std::function<void()>& f,
                           const std::source_location& asked = std::source_location::current()) {
  std::string sentence = complaint(f);
  if (sentence.empty()) ADD_FAILURE_AT(asked.file_name(), int(asked.line())) << "nothing was refused";
  return sentence;
}
inline void expect_words(const std::string& sentence, const std::vector<std::string>& words,
                         const std::source_location& asked = std::source_location::current()) {
  for (const std::string& word : words)
    if (sentence.find(word) == std::string::npos)
      ADD_FAILURE_AT(asked.file_name(), int(asked.line())) << "'" << word << "' is not in: " << sentence;
}

inline bool any_has(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& l) { return l.find(part) != std::string::npos; });
}

}  // namespace krilu::test
