// SPDX-License-Identifier: Apache-2.0
// The Jacobian of a fully implicit oil and water model on the grid of SPE10 model 2: two unknowns a cell, the first
// Newton step of a time step of one day, with that project's fluids. Beside the flow from end to end in y there are no
// wells; gravity and capillary pressure are left out, and the porosity is 0.2 everywhere.
// Sources: Christie and Blunt (2001), Tenth SPE comparative solution project, model 2, for grid and fluids; Aziz and
// Settari (1979), Petroleum Reservoir Simulation, for the discretisation.
#pragma once

#include <array>
#include <vector>

#include "io/spe10.hpp"
#include "krilu/matrix.hpp"

namespace krilu::io {

/// One of each for a cell: the pressure in psi, which both phases have, and the part of the pores that water fills.
struct TwoPhaseState {
  std::vector<double> pressure, saturation;
};

/// What the Jacobian of gen:spe10-2p is taken at: the pressure falls linearly between the fixed pressures at the ends,
/// 6000 psi before y = 0 and 4000 psi behind the last cell, and the saturation is 0.25. At 0.2, with which the project
/// begins, water would not move anywhere, and its rows would have no neighbours.
TwoPhaseState spe10_two_phase_start(const std::array<Index, 3>& cells);

/// Rows 2 c and 2 c + 1 are the balances of oil and of water in cell c, in surface barrels a day; columns 2 c and
/// 2 c + 1 are its pressure and its water saturation. Blocks of 2 x 2 are stored whole, with the zeros that upstream
/// weighting leaves in them. Diagonals are positive wherever a cell holds some oil: it is a little compressible, and
/// water fills the cell that it enters. (Water against pressure would have hardly any diagonal where water stands
/// still.) `state` has a value for each cell, with saturations from 0 to 1. Throws krilu::Error for a grid whose matrix
/// would have 2^31 nonzeros or more.
CsrMatrix spe10_two_phase_matrix(const Spe10Grid& grid, const TwoPhaseState& state);

}  // namespace krilu::io
