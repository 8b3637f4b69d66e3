// SPDX-License-Identifier: Apache-2.0
#include "mesh/cell_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/names.hpp"
#include "base/parse.hpp"
#include "base/random.hpp"

namespace krilu::mesh {

namespace {

/// Each number 0 .. n-1 once [Fisher and Yates 1938, in Durstenfeld's form].
schedule::Order random_order(Index n, std::uint64_t seed) {
  schedule::Order order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const std::uint64_t first = random_bits(seed);  // so that the sequences of two seeds do not run in step
  for (std::size_t k = order.size(); k > 1; --k) {
    const std::uint64_t bits = random_bits(first + k) >> 32;
    std::swap(order[k - 1], order[std::size_t(bits * k >> 32)]);
  }
  return order;
}

/// Runs of 64 numbers in random order.
schedule::Order shuffled_order(Index n, std::uint64_t seed) {
  constexpr Index run = 64;
  schedule::Order order;
  order.reserve(std::size_t(n));
  for (Index r : random_order((n - 1) / run + 1, seed))
    for (Index c = r * run; c < n && c - r * run < run; ++c) order.push_back(c);
  return order;
}

}  // namespace

schedule::Order CellOrder::of(Index n) const {
  if (name == Name::random) return random_order(n, seed);
  if (name == Name::shuffled) return shuffled_order(n, seed);
  return {};
}

std::string read_cell_order(const std::vector<std::string_view>& words, CellOrder& order) {
  static const std::vector<std::string> names{"natural", "random", "shuffled"};
  const std::string name(words.empty() ? "" : words[0]);
  const auto known = std::find(names.begin(), names.end(), name);
  if (known == names.end()) {
    const std::string near = nearest_name(name, names);
    return "unknown order" + (near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near));
  }
  order = {CellOrder::Name(known - names.begin())};
  if (words.size() == 1) return {};
  if (order.name == CellOrder::Name::natural) return "the natural order has no seed";
  return words.size() == 2 && parse(words[1], order.seed) ? "" : "SEED is a whole number from 0";
}

}  // namespace krilu::mesh
