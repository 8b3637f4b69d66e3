// SPDX-License-Identifier: Apache-2.0
// Plot3D grids, formatted: one block of two dimensions. Source: Walatka, Buning, Pierce, Elson, PLOT3D User's Manual
// (NASA TM 101067, 1990). Written through OutputFile, so about 60 ns a number.
#include <cstdint>

#include "grid/write.hpp"
#include "io/output_file.hpp"
#include "krilu/grid.hpp"

namespace krilu {

namespace {
constexpr std::size_t numbers_a_line = 4;
}

void write_plot3d(const Grid& grid, const std::string& path) {
  grid::require_whole(grid, path);
  io::OutputFile file(path);
  file.add(std::int64_t(grid.ni));
  file.add(" ");
  file.add(std::int64_t(grid.nj));
  file.add("\n");
  for (double Point::*const coordinate : {&Point::x, &Point::y}) {
    const std::size_t n = grid.node.size();
    for (std::size_t k = 0; k < n; ++k) {
      file.add(grid.node[k].*coordinate);
      file.add((k + 1) % numbers_a_line == 0 || k + 1 == n ? "\n" : " ");
    }
  }
  file.commit();
}

}  // namespace krilu
