// SPDX-License-Identifier: Apache-2.0
// Files of grids, by their ending. The formats are a file each: write_cgns.cpp, write_plot3d.cpp.
#pragma once

#include <string>

#include "krilu/grid.hpp"

namespace krilu::grid {

/// Writes the format that the ending names: .cgns, or .xyz, .p3d and .fmt for Plot3D. Throws krilu::Error as
/// write_cgns and write_plot3d do, and for another ending.
void write_by_ending(const Grid& grid, const std::string& path);

/// Throws krilu::Error where write_by_ending could never write there: another ending, no such folder, no CGNS in this
/// build. To refuse before long work and not after it.
void require_writable(const std::string& path);

/// Throws krilu::Error, naming `path`, where krilu was built without the CGNS library.
void require_cgns(const std::string& path);

/// Throws krilu::Error, naming `path`, where the sizes and the nodes do not belong together or a node is not finite.
void require_whole(const Grid& grid, const std::string& path);

}  // namespace krilu::grid
