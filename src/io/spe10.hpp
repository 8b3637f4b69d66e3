// SPDX-License-Identifier: Apache-2.0
// The second model of the tenth SPE comparative solution project (SPE10): its box of cells with their permeabilities,
// and its pressure system by two-point fluxes, with the pressure fixed at both ends in y. The two-phase system is in
// spe10_two_phase.hpp. The size is a parameter for tests only.
// Source: Christie and Blunt (2001), Tenth SPE comparative solution project, model 2.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "krilu/matrix.hpp"

namespace krilu::io {

constexpr std::array<Index, 3> spe10_cells{60, 220, 85};
constexpr std::array<double, 3> spe10_feet{20, 10, 2};  // the size of a cell

/// A permeability in millidarcy for each cell, x fastest, then y, then z; Ky is Kx. All must be positive. Between two
/// cells of a row, a distance d apart, with the face area S:
///
///   T = S / (d/2/k1 + d/2/k2),
///
/// which is S/d times the harmonic mean of the permeabilities, in millidarcy feet.
struct Spe10Grid {
  std::array<Index, 3> cells = spe10_cells;
  std::vector<double> kx, kz;

  /// f(neighbour, T) for the cells that share a face with this one, in ascending sequence; f(cell, 0) in their midst.
  /// Both sides of a face get the same T, bit for bit.
  template <class F>
  void for_neighbours(Index cell, F f) const {
    const auto visit = [&](std::size_t d, Index other) {
      f(other, area(d) / (half_cell(d, cell) + half_cell(d, other)));
    };
    for (std::size_t d = 3; d-- > 0;)
      if (place(cell, d) > 0) visit(d, cell - stride(d));
    f(cell, 0.0);
    for (std::size_t d = 0; d < 3; ++d)
      if (place(cell, d) + 1 < cells[d]) visit(d, cell + stride(d));
  }

  Index size() const { return stride(2) * cells[2]; }
  /// How many cells for_neighbours visits, the cell itself among them.
  Index neighbours(Index cell) const {
    Index count = 1;
    for (std::size_t d = 0; d < 3; ++d) count += (place(cell, d) > 0) + (place(cell, d) + 1 < cells[d]);
    return count;
  }
  /// Which row of cells in y: the pressure is fixed before row 0 and behind the last.
  Index row_in_y(Index cell) const { return place(cell, 1); }
  /// T between a cell and its face in y.
  double half_cell_in_y(Index cell) const { return area(1) / half_cell(1, cell); }

 private:
  static double area(std::size_t d) { return spe10_feet[(d + 1) % 3] * spe10_feet[(d + 2) % 3]; }
  Index stride(std::size_t d) const { return d == 0 ? 1 : d == 1 ? cells[0] : cells[0] * cells[1]; }
  Index place(Index cell, std::size_t d) const { return cell / stride(d) % cells[d]; }
  /// What a half cell puts in the way of the flow, for a face of area 1.
  double half_cell(std::size_t d, Index cell) const {
    return spe10_feet[d] / 2 / (d == 2 ? kz : kx)[std::size_t(cell)];
  }
};

/// The grid from two files, one value a line, plain or gzip. Throws krilu::Error where a file cannot be read, has not a
/// value for each cell, or has one that is not a permeability.
Spe10Grid read_spe10(const std::string& kx_path, const std::string& kz_path,
                     const std::array<Index, 3>& cells = spe10_cells);

/// The pressure system; entries are in millidarcy feet.
CsrMatrix spe10_matrix(const Spe10Grid& grid);

}  // namespace krilu::io
