// SPDX-License-Identifier: Apache-2.0
#include "triangular/strategy.hpp"

#include <utility>

#include "base/names.hpp"

namespace krilu::triangular {

namespace {
const std::vector<std::pair<std::string, Strategy>>& table() {
  static const std::vector<std::pair<std::string, Strategy>> rows{{"auto", Strategy::automatic},
                                                                  {"serial", Strategy::serial},
                                                                  {"level-set", Strategy::level_set},
                                                                  {"sync-free", Strategy::sync_free},
                                                                  {"tiled", Strategy::tiled}};
  return rows;
}
}  // namespace

const char* to_string(Strategy s) {
  if (s == Strategy::parts) return "parts";
  for (const auto& [name, strategy] : table())
    if (strategy == s) return name.c_str();
  return "?";
}

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> n;
    for (const auto& row : table()) n.push_back(row.first);
    return n;
  }();
  return names;
}

Strategy strategy_by_name(const std::string& name) {
  require_name("triangular strategy", name, strategy_names());
  for (const auto& [known, strategy] : table())
    if (known == name) return strategy;
  return Strategy::automatic;
}

}  // namespace krilu::triangular
