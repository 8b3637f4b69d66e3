// SPDX-License-Identifier: Apache-2.0
// How generated meshes and systems number their cells: as they come, at random, or in runs of 64 exchanged at random,
// as a mesh has it that several processes wrote. The same on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/ordering.hpp"

namespace krilu::mesh {

struct CellOrder {
  enum class Name { natural, random, shuffled } name = Name::natural;
  std::uint64_t seed = 1;

  /// The cell, of n, that stands at each place; empty is natural.
  schedule::Order of(Index n) const;
};

/// Sets `order` from its words: natural, random or shuffled, and for these two perhaps a seed. What is wrong with them,
/// or an empty text.
std::string read_cell_order(const std::vector<std::string_view>& words, CellOrder& order);

}  // namespace krilu::mesh
