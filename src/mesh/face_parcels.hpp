// SPDX-License-Identifier: Apache-2.0
// Parcels: what the threads of a GPU have to know of a tile, in one piece (krilu/face_plan.hpp says what stands where).
//
// On an H200 with 8 million cells slots with a barrier after each took 1.6 times as long as a loop through each cell's
// faces, and that one was held up by what it reads twice. With a place for each sum there are two barriers a tile, a
// face is computed once, and addresses are never waited for.
#pragma once

#include "mesh/face_plan.hpp"

namespace krilu::mesh {

/// Most places of one cell: a byte counts them, with those for an accumulator and for a row of the rest.
constexpr Index most_slots = 253;

/// Fills plan.parcel and what goes with it, from tiles that are arranged and all of whose faces are listed.
void make_parcels(const exec::Host& host, PlanData& plan);

}  // namespace krilu::mesh
