// SPDX-License-Identifier: Apache-2.0
// The rare cases of reading numbers and lines; see scan.hpp.
#include "io/scan.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace krilu::io {

namespace {

/// True if the decimal number in [p, end) is below 1 in magnitude. Of a number that no double holds, that tells
/// whether it is too small or too large.
bool below_one(const char* p, const char* end) {
  std::int64_t before_point = 0;  // digits from the first that is not zero to the point; negative: zeros after it
  bool point = false, leading = true;
  for (; p != end && (is_digit(*p) || *p == '.' || *p == '-'); ++p) {
    if (*p == '-') continue;
    if (*p == '.') {
      point = true;
    } else if (leading && *p == '0') {
      if (point) --before_point;
    } else {
      leading = false;
      if (!point) ++before_point;
    }
  }
  std::int64_t exponent = 0;
  if (p != end) {
    ++p;  // the letter
    scan_long_integer(p, end, exponent);
  }
  return before_point + exponent <= 0;
}

}  // namespace

const char* scan_long_integer(const char* p, const char* end, std::int64_t& value) {
  const bool negative = p != end && *p == '-';
  if (p != end && (*p == '-' || *p == '+')) ++p;
  const char* const start = p;
  std::int64_t v = 0;
  for (; p != end && is_digit(*p); ++p) v = std::min(huge_integer, v * 10 + (*p - '0'));
  if (p == start) return nullptr;
  value = negative ? -v : v;
  return p;
}

const char* scan_odd_double(const char* p, const char* end, double& value) {
  const char* const stop = std::find_if(p, end, [](char c) { return is_blank(c) || c == '\n'; });
  std::string field(p, stop);
  const std::size_t letter = field.find_first_of("dD");
  if (letter != std::string::npos) field[letter] = 'e';
  const char* const first = field.data();
  const auto [after, ec] = std::from_chars(first, first + field.size(), value);
  if (ec == std::errc::result_out_of_range) {
    const double magnitude = below_one(first, after) ? 0.0 : std::numeric_limits<double>::infinity();
    value = field[0] == '-' ? -magnitude : magnitude;
  } else if (ec != std::errc()) {
    return nullptr;
  }
  return p + (after - first);
}

const char* next_line(const char* p, const char* end) {
  if (p == end) return end;
  const void* newline = std::memchr(p, '\n', static_cast<std::size_t>(end - p));
  return newline ? static_cast<const char*>(newline) + 1 : end;
}

const char* scan_idle_line(const char* p, const char* end, std::string_view comment) {
  p = skip_blanks(p, end);
  if (p == end) return end;
  if (*p == '\n') return p + 1;
  return comment.find(*p) != std::string_view::npos ? next_line(p, end) : nullptr;
}

std::string_view line_at(const char* p, const char* end) {
  const char* stop = next_line(p, end);
  while (stop != p && (stop[-1] == '\n' || stop[-1] == '\r')) --stop;
  return {p, static_cast<std::size_t>(stop - p)};
}

std::int64_t line_number(std::string_view text, const char* p) { return 1 + std::count(text.data(), p, '\n'); }

std::string in_quotes(std::string_view field) {
  constexpr std::size_t most = 40;
  std::string out = "'";
  for (char c : field.substr(0, most)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (field.size() > most ? "...'" : "'");
}

std::vector<std::string_view> cut_at_lines(std::string_view text, int threads) {
  constexpr std::size_t largest = std::size_t(512) << 10;
  const std::size_t share = text.size() / (4 * static_cast<std::size_t>(threads));
  const std::size_t length = std::clamp<std::size_t>(share, 1, largest);
  std::vector<std::string_view> pieces;
  const char* p = text.data();
  const char* const end = p + text.size();
  // One after another, so that a text of a single endless line is still searched only once.
  while (p != end) {
    const std::size_t rest = static_cast<std::size_t>(end - p);
    const char* stop = rest <= length ? end : next_line(p + length - 1, end);
    pieces.emplace_back(p, static_cast<std::size_t>(stop - p));
    p = stop;
  }
  return pieces;
}

}  // namespace krilu::io
