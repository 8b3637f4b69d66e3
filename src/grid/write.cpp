// SPDX-License-Identifier: Apache-2.0
// What all files of grids share: endings, and what is refused (write.hpp).
#include "grid/write.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "io/output_file.hpp"
#include "krilu/error.hpp"

namespace krilu::grid {

namespace {

enum class Format { cgns, plot3d };

Format format_of(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending == ".cgns") return Format::cgns;
  if (ending == ".xyz" || ending == ".p3d" || ending == ".fmt") return Format::plot3d;
  throw Error(fmt::format("{}: a grid's name ends in .cgns, or in .xyz, .p3d or .fmt for Plot3D", path));
}

}  // namespace

void write_by_ending(const Grid& grid, const std::string& path) {
  if (format_of(path) == Format::cgns)
    write_cgns(grid, path);
  else
    write_plot3d(grid, path);
}

void require_writable(const std::string& path) {
  if (format_of(path) == Format::cgns) require_cgns(path);
  io::require_writable(path);
}

void require_whole(const Grid& grid, const std::string& path) {
  const auto ni = std::size_t(grid.ni), nj = std::size_t(grid.nj);
  if (grid.ni < 3 || grid.nj < 2)
    throw Error(
        fmt::format("could not write {}: a grid of {} x {} nodes; it has at least 3 x 2", path, grid.ni, grid.nj));
  if (grid.node.size() != ni * nj)
    throw Error(fmt::format("could not write {}: the grid holds {} nodes; {} x {} are {}", path, grid.node.size(),
                            grid.ni, grid.nj, ni * nj));
  const bool c = grid.topology == Grid::Topology::C;
  if (c ? grid.wake < 1 || 2 * std::int64_t(grid.wake) >= grid.ni - 1 : grid.wake != 0)
    throw Error(fmt::format("could not write {}: {} grid with {} nodes round the curve and {} cells of a cut", path,
                            c ? "a C" : "an O", grid.ni, grid.wake));
  for (std::size_t k = 0; k < grid.node.size(); ++k)
    if (!std::isfinite(grid.node[k].x) || !std::isfinite(grid.node[k].y))
      throw Error(fmt::format("could not write {}: node ({}, {}) of the grid, counted from 1, is not finite", path,
                              k % ni + 1, k / ni + 1));
}

}  // namespace krilu::grid
