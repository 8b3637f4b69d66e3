// SPDX-License-Identifier: Apache-2.0
#include "base/names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "krilu/error.hpp"

namespace krilu {

namespace {
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t(0));
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}
}  // namespace

std::string nearest_name(const std::string& given, const std::vector<std::string>& known) {
  std::string nearest;
  std::size_t least = std::max<std::size_t>(2, given.size() / 2) + 1;
  for (const std::string& name : known)
    if (const std::size_t d = edit_distance(given, name); d < least) {
      least = d;
      nearest = name;
    }
  return nearest;
}

void require_name(const std::string& what, const std::string& given, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), given) != known.end()) return;
  const std::string near = nearest_name(given, known);
  throw Error(fmt::format("unknown {} '{}': {}one of {}", what, given,
                          near.empty() ? "" : fmt::format("did you mean '{}'? It is ", near), fmt::join(known, ", ")));
}

}  // namespace krilu
