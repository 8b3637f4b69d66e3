// SPDX-License-Identifier: Apache-2.0
#include "mesh/face_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/names.hpp"
#include "krilu/error.hpp"
#include "mesh/dealt_faces.hpp"

namespace krilu::mesh {

namespace {

/// By name; auto is what suits the mesh.
Renumber renumbering(const FaceLoopOptions& options, const Mesh& mesh) {
  if (options.renumber == "auto") return mesh.centre.empty() ? Renumber::growth : Renumber::bisection;
  return renumber_by_name(options.renumber);
}

bool by_tiles(FaceStrategy s) { return s == FaceStrategy::tiles || s == FaceStrategy::diagonal; }

}  // namespace

Index cells_that_fit(const Mesh& mesh, TileBytes bytes, std::size_t fast, Index least, Index most) {
  const double faces = mesh.cells ? double(mesh.faces()) / mesh.cells : 0;
  const double fit = double(fast) / (bytes.cell + bytes.face * faces);
  return std::clamp(Index(std::min(fit, 1e6)) / 32 * 32, least, most);
}

PlanData choose_plan(const exec::Host& host, const Mesh& mesh, const FaceLoopOptions& options, const FaceTuning& tuning,
                     std::span<const FaceStrategy> candidates, const Trials& trials) {
  const auto start = std::chrono::steady_clock::now();
  require_valid(mesh, false);
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
  if (options.block_cells > 0)
    tuned.block_cells = in_tiles ? std::min(options.block_cells, TileFace::most_cells) : options.block_cells;
  const Renumber how = renumbering(options, mesh);
  const bool serial = options.strategy == "serial";
  const CellBlocks blocks = cell_blocks(host, mesh, tuned.block_cells, serial ? Renumber::none : how);
  std::vector<FaceLoopReport::Candidate> measured, finalists;
  FaceStrategy best = candidates.empty() ? FaceStrategy::serial : candidates.front();
  FaceStrategy rival = best;  // best: there is none
  if (options.strategy != "auto") {
    best = rival = strategy_by_name(options.strategy);
  } else if (candidates.size() > 1 && mesh.faces() > 0) {
    const Piece sample = piece_of(mesh, blocks, trials.piece);
    double least = 1e300, least_in_tiles = 1e300;
    for (const FaceStrategy s : candidates) {
      PlanData plan = face_plan(host, sample.mesh, sample.blocks, s, tuned, options.orders);
      const double seconds = trials.seconds(plan);
      measured.push_back({name_of(s), 1e3 * seconds});
      if (seconds < least) {
        least = seconds;
        best = s;
      }
      if (by_tiles(s) && seconds < least_in_tiles) {
        least_in_tiles = seconds;
        rival = s;
      }
    }
    if (!trials.final_on_whole_mesh || by_tiles(best) || sample.mesh.cells == mesh.cells) rival = best;
    // A mesh of many pieces is not likely to stand in a cache where one does. What may have won by that alone is not
    // set up for all of it: if it does, little is lost.
    constexpr Index many_pieces = 4;
    constexpr double clearly = 1.25;
    if (mesh.cells / many_pieces >= sample.mesh.cells && least_in_tiles < clearly * least) best = rival;
  }
  PlanData plan = face_plan(host, mesh, blocks, best, tuned, options.orders);
  if (rival != best) {
    PlanData other = face_plan(host, mesh, blocks, rival, tuned, options.orders);
    const double seconds = trials.seconds(plan), of_other = trials.seconds(other);
    finalists = {{name_of(best), 1e3 * seconds}, {name_of(rival), 1e3 * of_other}};
    if (of_other < seconds) plan = std::move(other);
  }
  plan.report.measured = std::move(measured);
  plan.report.finalists = std::move(finalists);
  plan.report.renumber = serial ? "none" : renumber_names()[std::size_t(how)];
  plan.report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

}  // namespace krilu::mesh
