// SPDX-License-Identifier: Apache-2.0
// How a grid leaves its wall, and where it is folded.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "krilu/grid.hpp"

namespace krilu::grid {

/// Of each i, whether spacing and angle are asked for at node (i, 0). Not on the cut of a C grid; not at corners, which
/// turn by more than 25 degrees, and the two nodes on either side of each; and not between two corners less than a
/// twentieth of a chord apart along the wall, such as those of a trailing edge's base. Where that leaves none, all
/// count.
std::vector<char> counted_at_wall(const Grid& grid);

/// At the wall's node i: the first spacing, and by how many degrees the line leans towards growing i off the
/// perpendicular of both neighbours' connection.
struct Leaving {
  double spacing = 0, lean = 0;
};
Leaving leaving(const Grid& grid, Index i);

/// Whether the boundary of the grid mirrors itself at the x axis, to rounding: node (ni - 1 - i, j) is node (i, j) with
/// -y.
bool mirrors_itself(const Grid& grid);
/// Makes it mirror itself wholly, by averages.
void mirror(Grid& grid);

/// The first folded cell, if there is any: it lies between (i, j) and (i + 1, j + 1).
std::optional<std::pair<Index, Index>> first_fold(const Grid& grid);

}  // namespace krilu::grid
