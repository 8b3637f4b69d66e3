// SPDX-License-Identifier: Apache-2.0
// The texts that name something with numbers in it, such as gen:poisson2d:30x30:1.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>
#include <vector>

namespace krilu {

/// The parts between the separators: one more than there are of these.
inline std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Whether the whole text is one number, which is then set.
template <class N>
bool parse(std::string_view text, N& number) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  return status == std::errc() && end == text.data() + text.size();
}

}  // namespace krilu
