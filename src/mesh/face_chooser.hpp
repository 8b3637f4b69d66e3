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

/// How candidates are told apart.
struct Trials {
  Index piece;  // cells of the part of the mesh that all of them go through
  /// Where other loops than tiles are the fastest there, the best of those goes through the whole mesh against it: what
  /// reaches far stands in a cache with a piece, and not with the mesh. `seconds` leaves the plan as it is then. Of a
  /// mesh of at least four pieces they are to win by a quarter, or tiles are taken at once.
  bool final_on_whole_mesh;
  std::function<double(PlanData& plan)> seconds;  // of a product with a symmetric matrix
};

/// The plan that the options ask for; where they leave the strategy open, the fastest of `candidates` by trial. Throws
/// krilu::Error for an invalid mesh and for options that it does not know.
PlanData choose_plan(const exec::Host& host, const Mesh& mesh, const FaceLoopOptions& options, const FaceTuning& tuning,
                     std::span<const FaceStrategy> candidates, const Trials& trials);

}  // namespace krilu::mesh
