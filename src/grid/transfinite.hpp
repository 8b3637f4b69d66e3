// SPDX-License-Identifier: Apache-2.0
// The grid that Newton's method starts from: lines from wall to far field that are nearly straight in a conformally
// mapped plane, with nodes along them at distances that grow by one factor from the spacing at the wall; in C grids
// transfinite interpolation [Gordon and Hall 1973] bends those beside the two outflow lines to them.
// Cost: O(nodes), and a table of 512 places a line.
#pragma once

#include <vector>

#include "grid/conformal.hpp"
#include "grid/wall_points.hpp"
#include "krilu/grid.hpp"

namespace krilu::grid {

struct Start {
  Grid grid;
  ConformalMap map;
  std::vector<Complex> zeta;    // of every node, as grid.node
  std::vector<double> spacing;  // wanted, of the first line j at node (i, 0); grows along the cut
  std::vector<Index> corner;    // i of nodes (i, 0), rising; where the trailing edge of an O grid is one, 0 and ni - 1
};

/// Cells of the cut of a C grid with that many nodes around: about a fifth of them, a multiple of four.
Index wake_cells(Index around);

/// All cells around are the wall's (O), or the cut has half of those that are not (C). Throws krilu::Error where that
/// leaves none or half a cell, and where wall and spacing do not fit into the far field.
Start start_grid(const WallPoints& wall, const GridOptions& options);

}  // namespace krilu::grid
