// SPDX-License-Identifier: Apache-2.0
// The part of a face plan that looks at tiles: strategies tiles and diagonal.
#pragma once

#include "mesh/face_plan.hpp"

namespace krilu::mesh {

/// Faces in order, and everything that the two strategies ask for. place: of the mesh's cells in the plan's order; tile
/// t holds places offsets[t] .. offsets[t+1]-1.
void arrange_tiles(const exec::Host& host, PlanData& plan, const Mesh& mesh, const Buffer<Index>& place,
                   std::span<const Index> offsets, const FaceTuning& tuning, int orders);

}  // namespace krilu::mesh
