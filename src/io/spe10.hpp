// SPDX-License-Identifier: Apache-2.0
// The pressure system of the second model of the tenth SPE comparative solution project (SPE10), from its permeability
// files: two-point fluxes on a box of cells, pressure fixed at both ends in y. The size is a parameter for tests only.
// Source: Christie and Blunt (2001), Tenth SPE comparative solution project, model 2.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "krilu/matrix.hpp"

namespace krilu::io {

constexpr std::array<Index, 3> spe10_cells{60, 220, 85};

/// kx and kz hold a permeability in millidarcy for each cell, x fastest, then y, then z; Ky is Kx. Entries are in
/// millidarcy feet. Every permeability must be positive.
CsrMatrix spe10_matrix(const std::array<Index, 3>& cells, const std::vector<double>& kx, const std::vector<double>& kz);

/// The same from two files, one value a line, plain or gzip. Throws krilu::Error where a file cannot be read, has not a
/// value for each cell, or has one that is not a permeability.
CsrMatrix read_spe10(const std::string& kx_path, const std::string& kz_path,
                     const std::array<Index, 3>& cells = spe10_cells);

}  // namespace krilu::io
