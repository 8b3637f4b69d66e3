// SPDX-License-Identifier: Apache-2.0
#include "krilu/face_loops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "exec/cache_size.hpp"
#include "exec/host.hpp"
#include "exec/threads.hpp"
#include "krilu/error.hpp"
#include "mesh/dealt_faces.hpp"
#include "mesh/face_chooser.hpp"

namespace krilu {

namespace detail {

void run_team(int threads, void (*f)(void*, int, int), void* context) {
  exec::Host(threads).parallel(threads, [=](int thread, int team) { f(context, thread, team); });
}

void wait_for(const std::atomic<Index>& counter, Index value) {
  exec::spin_until([&] { return counter.load(std::memory_order_acquire) >= value; });
}

}  // namespace detail

struct FaceLoops::Body {
  mesh::PlanData data;
};

namespace {

/// Tiles as large as the second-level cache holds, but enough of them for many threads. Not by how many there are:
/// results would depend on it.
mesh::FaceTuning host_tuning(const Mesh& mesh) {
  constexpr Index least = 4096, most = mesh::TileFace::most_cells, enough = 64;
  constexpr mesh::TileBytes bytes{.cell = 16, .face = 0};  // state and sum; faces pass through
  mesh::FaceTuning tuning{};
  tuning.block_cells = std::clamp(mesh.cells / enough, least,
                                  mesh::cells_that_fit(mesh, bytes, exec::second_level_cache(), least, most));
  tuning.parcels = false;
  return tuning;
}

}  // namespace

FaceLoops::FaceLoops(const Mesh& mesh, const FaceLoopOptions& options) {
  exec::require_threads(options.threads);
  const exec::Host host(options.threads);
  threads_ = host.threads();
  // Not atomics: what auto takes gives the same bits each time.
  constexpr FaceStrategy several[] = {FaceStrategy::tiles, FaceStrategy::diagonal, FaceStrategy::gather,
                                      FaceStrategy::colours};
  constexpr FaceStrategy alone[] = {FaceStrategy::tiles, FaceStrategy::diagonal, FaceStrategy::gather,
                                    FaceStrategy::colours, FaceStrategy::serial};
  const std::span<const FaceStrategy> candidates =
      threads_ > 1 ? std::span<const FaceStrategy>(several) : std::span<const FaceStrategy>(alone);
  const mesh::FaceTuning tuning = host_tuning(mesh);
  // Cells of the piece that is measured: more than caches hold, and several tiles a thread.
  const Index piece = std::max<Index>(300000, 4 * threads_ * tuning.block_cells);
  const auto seconds_of = [&](mesh::PlanData& data) {
    FaceLoops loops;
    loops.threads_ = threads_;
    loops.plan_ = data.view;
    const auto n = std::size_t(loops.cells());
    Field<double> a(std::size_t(loops.faces())), x(n), y(n);
    loops.for_each_cell([x = x.view()](Index c) { x[c] = 1; });
    loops.shared(loops.faces(), [a = a.view()](Index f) { a[f] = 1; });
    double best = 1e30;
    for (int k = 0; k < 4; ++k) {
      const auto start = std::chrono::steady_clock::now();
      const auto av = a.view(), xv = x.view(), yv = y.view();
      loops.sum_over_faces<double, double>([=](Index c) { return xv[c]; },
                                           [=](Face f, double o, double q) {
                                             return Both<double>{av[f.id] * q, av[f.id] * o};
                                           },
                                           [=](Index c, double own, double sum) { yv[c] = own + sum; });
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (k > 0) best = std::min(best, seconds);
    }
    return best;
  };
  auto body = std::make_shared<Body>();
  body->data = mesh::choose_plan(host, mesh, options, tuning, candidates, {piece, true, seconds_of});
  plan_ = body->data.view;
  body_ = std::move(body);
}

const FaceLoopReport& FaceLoops::report() const { return body_->data.report; }
std::span<const Index> FaceLoops::cell_order() const { return body_->data.cell_order; }
std::span<const Index> FaceLoops::face_order() const { return body_->data.face_order; }

void FaceLoops::require_size(std::size_t given, std::size_t needed) {
  if (given != needed) throw Error(fmt::format("a field of {} values was given where the mesh has {}", given, needed));
}

}  // namespace krilu
