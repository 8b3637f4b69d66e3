// SPDX-License-Identifier: Apache-2.0
// The generator: a curve, nodes on it, a start, and then solves of the Poisson equations by Newton's method with
// updates of the control terms between them; on coarser grids first, whose displacements off their own start, in the
// mapped plane, and control terms are a good beginning for the next.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "base/names.hpp"
#include "base/together.hpp"
#include "grid/problem.hpp"
#include "grid/quality.hpp"
#include "grid/stretching.hpp"
#include "krilu/error.hpp"

namespace krilu::grid {

namespace {

using std::size_t;

// Where updates of the control terms end, and what a grid must keep to be called converged.
constexpr double enough_spacing = 0.01, enough_angle = 1;
constexpr double bar_spacing = 0.05, bar_angle = 5;

void require_options(const GridOptions& o) {
  require_name("topology", o.topology, {"O", "C"});
  require_name("control", o.control, {"sorenson", "hilgenstock", "none"});
  const Index least = o.topology == "O" ? 9 : 17;
  if (o.around < least)
    throw Error(fmt::format("{} nodes around make no {} grid: take {} or more", o.around, o.topology, least));
  if (o.outward < 5) throw Error(fmt::format("{} nodes outward make no grid: take 5 or more", o.outward));
  if (!(o.far_field >= 1) || !std::isfinite(o.far_field))
    throw Error(fmt::format("a far field {} chords from mid-chord: take 1 or more", o.far_field));
  if (!(o.wall_spacing > 0)) throw Error(fmt::format("a wall spacing of {}: it must be positive", o.wall_spacing));
  if (!(o.wall_spacing * double(o.outward - 1) < o.far_field))
    throw Error(
        fmt::format("a wall spacing of {} is not less than the {:.3g} of {} equal cells up to the far field: "
                    "take a smaller one or fewer nodes outward",
                    o.wall_spacing, o.far_field / double(o.outward - 1), o.outward - 1));
  if (o.max_updates < 0) throw Error("the number of updates of the control terms is 0 or more");
  if (!(o.tolerance > 0)) throw Error("the tolerance of the grid's equations is positive");
  // Thirteen entries a row, two rows a node.
  if (26 * std::int64_t(o.around) * std::int64_t(o.outward) > std::int64_t(2147483647))
    throw Error(fmt::format("a grid of {} x {} nodes has a Jacobian with 2^31 or more entries: take fewer nodes",
                            o.around, o.outward));
}

/// What has to be the same on all ranks; Newton's method looks after its own.
std::string common_text(const GridOptions& o) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {}", o.shape, o.trailing_edge, o.topology, o.around, o.outward,
                     o.far_field, o.wall_spacing, o.control, o.max_updates, o.tolerance);
}

/// From the finest to the coarsest; nodes of each are every second one of the level before.
std::vector<Level> levels_of(const GridOptions& options) {
  std::vector<Level> levels{finest_level(options)};
  for (;;) {
    const Level& fine = levels.back();
    const Index around = fine.options.around - 1, outward = fine.options.outward - 1;
    const Index halves = (around - fine.cells) / 2;
    if (around % 2 != 0 || outward % 2 != 0 || fine.cells % 2 != 0 || halves % 2 != 0) break;
    if (around < 128 || outward < 64) break;
    Level coarse = fine;
    coarse.options.around = around / 2 + 1;
    coarse.options.outward = outward / 2 + 1;
    coarse.options.wall_spacing = stretched(fine.options.wall_spacing, fine.options.far_field, outward)[2];
    coarse.cells = fine.cells / 2;
    coarse.fading = 2 * fine.fading;
    levels.push_back(std::move(coarse));
  }
  return levels;
}

/// The finer grid: its start, displaced in the mapped plane as the coarser one was.
void take_displacements(const Problem& coarse, Problem& fine) {
  const Index ni = coarse.grid.ni, nj = coarse.grid.nj;
  const auto moved = [&](Index i, Index j) {
    const auto k = size_t(j) * size_t(ni) + size_t(i);
    return complex_of(coarse.plane.node[k]) - coarse.start.zeta[k];
  };
  for (Index j = 1; j + 1 < fine.grid.nj; ++j)
    for (Index i = 0; i < fine.grid.ni; ++i) {
      const Index i0 = i / 2, i1 = (i + 1) / 2, j0 = j / 2, j1 = std::min((j + 1) / 2, nj - 1);
      const Complex by = 0.25 * (moved(i0, j0) + moved(i1, j0) + moved(i0, j1) + moved(i1, j1));
      fine.plane.at(i, j) = point_of(fine.start.zeta[size_t(j) * size_t(fine.grid.ni) + size_t(i)] + by);
    }
  fine.show_plane();
}

void add(NewtonSeconds& sum, const NewtonSeconds& s) {
  sum.analyse += s.analyse;
  sum.residual += s.residual;
  sum.jacobian += s.jacobian;
  sum.factor += s.factor;
  sum.linear += s.linear;
  sum.total += s.total;
}

class Generator {
 public:
  Generator(const GridOptions& options, const std::function<bool(const GridUpdate&)>& progress,
            std::shared_ptr<Communicator> ranks, const std::function<bool()>& go_on)
      : options_(options), progress_(progress), ranks_(std::move(ranks)), go_on_(go_on) {}

  GridResult run() {
    const auto begin = std::chrono::steady_clock::now();
    const Curve curve = curve_by_name(options_.shape, options_.trailing_edge);
    const std::vector<Level> levels = levels_of(options_);
    std::unique_ptr<Problem> problem;
    for (size_t k = levels.size(); k-- > 0;) {
      std::unique_ptr<Problem> finer = make(levels[k], curve, k == 0);
      if (!finer) continue;
      if (problem) {
        take_displacements(*problem, *finer);
        finer->control.take(problem->control);
      }
      problem = std::move(finer);
      k == 0 ? finest(*problem) : coarse(*problem);
    }
    if (interrupted_) result_.status = Status::interrupted;
    result_.total_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::move(result_);
  }

 private:
  std::unique_ptr<Problem> make(const Level& level, const Curve& curve, bool must) {
    if (must) return std::make_unique<Problem>(level, curve, ranks_);
    try {
      return std::make_unique<Problem>(level, curve, ranks_);
    } catch (const Error&) {
      return nullptr;  // too few cells for this wall: begin finer
    }
  }

  /// One solve and what it did. False where the user ends it.
  bool step(Problem& p, double rtol, double atol, bool impatient = false) {
    bool told_to_end = false;
    const NewtonResult r = p.solve(rtol, atol, impatient, [&] {
      told_to_end = go_on_ && !go_on_();
      return !told_to_end;
    });
    add(result_.seconds, r.seconds);
    result_.device = r.device;
    result_.solver = r.solver;
    result_.precond = r.precond;
    last_ = r;
    const Control::Deviation d = deviation_ = deviation_of(p);
    result_.history.push_back({update_, d.spacing, d.angle, r.residual, r.iterations, r.inner_iterations});
    double ends = told_to_end || (progress_ && !progress_(result_.history.back()));
    if (ranks_) ranks_->sum({&ends, 1});
    if (ends != 0) interrupted_ = true;
    return !interrupted_;
  }

  static double worst(const Control::Deviation& d, double spacing, double angle) {
    return std::max(d.spacing / spacing, d.angle / angle);
  }

  /// Updates and solves until spacing and angle are met, no longer come nearer, or updates end: then back to the best.
  void adjust(Problem& p, double spacing, double angle, int most) {
    double nearest = worst(deviation_, spacing, angle), best = nearest;
    // Better a far grid than a folded one.
    const auto folded = [&] { return of_first(ranks_.get(), first_fold(p.grid) ? 1000.0 : 0.0); };
    best += folded();
    Control control = p.control;
    Grid plane = p.plane;
    for (int since = 0; best > 1 && since < 20 && most > 0 && update_ < options_.max_updates; --most) {
      p.control.update(p.grid, p.plane);
      ++update_;
      const bool go_on = step(p, 0.1, 1e-3 * options_.tolerance * p.start_residual, true);
      const double now = worst(deviation_, spacing, angle);
      since = now < 0.95 * nearest ? 0 : since + 1;
      nearest = std::min(nearest, now);
      if (now + folded() < best) {
        best = now + folded();
        control = p.control;
        plane = p.plane;
      } else if (last_.status != Status::converged) {
        control.calm();
        p.control = control;
        p.plane = plane;
        p.show_plane();
      }
      if (!go_on) break;
    }
    p.control = std::move(control);
    p.plane = std::move(plane);
    p.show_plane();
    deviation_ = deviation_of(p);
  }
  /// What decides is the first rank's, whose machine may round in another way.
  Control::Deviation deviation_of(const Problem& p) const {
    return of_first(ranks_.get(), p.control.deviation(p.grid));
  }

  void coarse(Problem& p) {
    if (interrupted_ || !step(p, 0.02, 0) || options_.control == "none") return;
    adjust(p, 0.03, 3, 15);
  }

  void finest(Problem& p) {
    const double atol = std::max(options_.tolerance * p.start_residual, p.rounding);
    if (!interrupted_ && step(p, 0.02, atol) && options_.control != "none")
      adjust(p, enough_spacing, enough_angle, options_.max_updates);
    if (!interrupted_) step(p, 0, atol);
    result_.newton = last_.history;
    result_.grid = p.grid;
    result_.quality = quality_of(p.grid, options_.wall_spacing);
    judge(p);
  }

  void judge(const Problem& p) {
    for (const std::string& n : last_.notes) result_.notes.push_back(n);
    result_.status = interrupted_ ? Status::interrupted : last_.status;
    if (const auto fold = first_fold(p.grid)) {
      result_.notes.push_back(fmt::format(
          "{} cells are folded, the first between nodes ({}, {}) and ({}, {}): more nodes around or a smaller "
          "wall spacing may help",
          result_.quality.folded_cells, fold->first, fold->second, fold->first + 1, fold->second + 1));
      if (result_.status == Status::converged) result_.status = Status::stagnated;
    }
    if (options_.control != "none" && worst(deviation_, bar_spacing, bar_angle) > 1) {
      result_.notes.push_back(
          fmt::format("after {} updates the spacing at the wall is off by {:.3g} % and the angle by {:.3g} degrees",
                      update_, 100 * deviation_.spacing, deviation_.angle));
      if (result_.status == Status::converged)
        result_.status = update_ >= options_.max_updates ? Status::max_iterations : Status::stagnated;
    }
  }

  const GridOptions& options_;
  const std::function<bool(const GridUpdate&)>& progress_;
  std::shared_ptr<Communicator> ranks_;
  const std::function<bool()>& go_on_;
  GridResult result_;
  NewtonResult last_;
  Control::Deviation deviation_;
  int update_ = 0;
  bool interrupted_ = false;
};

}  // namespace

}  // namespace krilu::grid

namespace krilu {

GridResult elliptic_grid(const GridOptions& options, const std::function<bool(const GridUpdate&)>& progress,
                         std::shared_ptr<Communicator> ranks, const std::function<bool()>& go_on) {
  grid::require_options(options);
  if (ranks) require_same(*ranks, "options of the grid", grid::common_text(options));
  return grid::Generator(options, progress, std::move(ranks), go_on).run();
}

}  // namespace krilu
