// SPDX-License-Identifier: Apache-2.0
// What the face loops of all spaces share before a plan stands: which blocks, which strategy, how large.
#pragma once

#include <functional>
#include <span>

#include "mesh/face_plan.hpp"

namespace krilu::mesh {

/// What a tile needs in fast memory, in bytes.
struct TileBytes {
  double cell, face;
};

/// Cells in a tile so that it fits `fast` bytes with the mesh's faces a cell, as Algorithm 2 of the SW26010 paper has
/// it. Even in numbers of 32, from least to most.
Index cells_that_fit(const Mesh& mesh, TileBytes bytes, std::size_t fast, Index least, Index most);

/// Seconds that one product with a symmetric matrix takes by a plan, on a piece of the mesh.
using Trial = std::function<double(PlanData&& plan)>;

/// The plan that the options ask for; where they leave the strategy open, the fastest of `candidates` by trial. Throws
/// krilu::Error for an invalid mesh and for options that it does not know.
PlanData choose_plan(const exec::Host& host, const Mesh& mesh, const FaceLoopOptions& options, const FaceTuning& tuning,
                     std::span<const FaceStrategy> candidates, Index piece, const Trial& trial);

}  // namespace krilu::mesh
