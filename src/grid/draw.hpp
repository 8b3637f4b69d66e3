// SPDX-License-Identifier: Apache-2.0
// A picture of a grid, drawn by gnuplot into PNG or SVG by the file's ending: the whole grid, its nose and its tail.
#pragma once

#include <string>

#include "krilu/grid.hpp"

namespace krilu::grid {

/// Three panels side by side: all of it, and a window round the nodes of the wall that stand furthest forward and
/// furthest back. Where more than about a hundred lines of a family would be seen, every n-th is drawn, so that a
/// picture's size does not grow with the grid's. Throws krilu::Error as io::draw does (io/plot.hpp).
void draw_grid(const Grid& grid, const std::string& title, const std::string& path);

}  // namespace krilu::grid
