// SPDX-License-Identifier: Apache-2.0
// The part of a face plan that looks at tiles: strategies tiles and diagonal.
#pragma once

#include "mesh/face_plan.hpp"
#include "mesh/tile_places.hpp"

namespace krilu::mesh {

/// Faces in order, and everything that the two strategies ask for. Tile t holds places offsets[t] .. offsets[t+1]-1.
void arrange_tiles(const exec::Host& host, PlanData& plan, const Mesh& mesh, const TilePlaces& places,
                   std::span<const Index> offsets, const FaceTuning& tuning, int orders);

}  // namespace krilu::mesh
