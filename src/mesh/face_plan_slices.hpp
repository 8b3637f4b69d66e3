// SPDX-License-Identifier: Apache-2.0
// The part of a face plan for strategy slices: each cell through its faces, in slices of 32 cells, so that a warp reads
// its addresses as one piece; 4 bytes an entry where faces and cells beyond stand near, 12 elsewhere.
#pragma once

#include "mesh/cell_graph.hpp"
#include "mesh/face_plan.hpp"

namespace krilu::mesh {

/// Faces slice by slice of their lower cells; within a slice the first faces of all its cells, then the second, and so
/// on: what the lanes of a warp read at once stands together. `order`: faces by lower and then higher cell; a, b: their
/// cells.
Buffer<Index> by_slices(const Buffer<Index>& order, Index cells, const Buffer<Index>& a, const Buffer<Index>& b);

/// plan.owner and plan.neighbour are those of all faces, in that order; `around`: the faces of each
/// cell in that order.
void arrange_slices(const exec::Host& host, PlanData& plan, const CellFaces& around, const FaceTuning& tuning);

}  // namespace krilu::mesh
