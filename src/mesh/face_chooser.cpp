// SPDX-License-Identifier: Apache-2.0
#include "mesh/face_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/names.hpp"
#include "krilu/error.hpp"

namespace krilu::mesh {

namespace {

/// By name; auto is what suits the mesh.
Renumber renumbering(const FaceLoopOptions& options, const Mesh& mesh) {
  if (options.renumber == "auto") return mesh.centre.empty() ? Renumber::growth : Renumber::bisection;
  return renumber_by_name(options.renumber);
}

}  // namespace

Index cells_that_fit(const Mesh& mesh, TileBytes bytes, std::size_t fast, Index least, Index most) {
  const double faces = mesh.cells ? double(mesh.faces()) / mesh.cells : 0;
  const double fit = double(fast) / (bytes.cell + bytes.face * faces);
  return std::clamp(Index(std::min(fit, 1e6)) / 32 * 32, least, most);
}

PlanData choose_plan(const exec::Host& host, const Mesh& mesh, const FaceLoopOptions& options, const FaceTuning& tuning,
                     std::span<const FaceStrategy> candidates, Index piece, const Trial& trial) {
  const auto start = std::chrono::steady_clock::now();
  require_valid(mesh);
  // To the others blocks are but an order of the cells.
  const bool in_tiles = options.strategy == "tiles" || options.strategy == "diagonal" || options.strategy == "auto";
  const Index most = in_tiles ? tuning.most_cells : FaceTuning{}.most_cells;
  if (options.block_cells < 0 || options.block_cells > most)
    throw Error(fmt::format("blocks have 1 to {} cells (0: as many as suit the fast memory), not {}", most,
                            options.block_cells));
  if (options.orders < -1)
    throw Error(fmt::format("orders are counted from 0 (-1: those dense enough), not {}", options.orders));
  if (options.strategy != "auto") strategy_by_name(options.strategy);  // refuses before any work
  FaceTuning tuned = tuning;
  if (options.block_cells > 0) tuned.block_cells = options.block_cells;
  const Renumber how = renumbering(options, mesh);
  const bool serial = options.strategy == "serial";
  const CellBlocks blocks = cell_blocks(host, mesh, tuned.block_cells, serial ? Renumber::none : how);
  FaceLoopReport found;
  FaceStrategy best = candidates.empty() ? FaceStrategy::serial : candidates.front();
  if (options.strategy != "auto") {
    best = strategy_by_name(options.strategy);
  } else if (candidates.size() > 1 && mesh.faces() > 0) {
    const Piece sample = piece_of(mesh, blocks, piece);
    double least = 0;
    for (const FaceStrategy s : candidates) {
      const double seconds = trial(face_plan(host, sample.mesh, sample.blocks, s, tuned, options.orders));
      found.measured.push_back({name_of(s), 1e3 * seconds});
      if (found.measured.size() == 1 || seconds < least) {
        least = seconds;
        best = s;
      }
    }
  }
  PlanData plan = face_plan(host, mesh, blocks, best, tuned, options.orders);
  plan.report.measured = std::move(found.measured);
  plan.report.renumber = serial ? "none" : renumber_names()[std::size_t(how)];
  plan.report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

}  // namespace krilu::mesh
