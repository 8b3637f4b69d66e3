// SPDX-License-Identifier: Apache-2.0
// One size of a grid: its start, its control terms and its equations, ready for Newton's method. The equations do not
// change where the plane is mapped conformally, and are solved in the mapped plane of the start, where the grid is
// nearly a rectangle. Over ranks each has the whole grid, and solves for the unknowns of its lines.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "grid/control.hpp"
#include "grid/curve.hpp"
#include "grid/placed_rows.hpp"
#include "grid/poisson.hpp"
#include "grid/transfinite.hpp"
#include "krilu/grid.hpp"

namespace krilu::grid {

struct Level {
  GridOptions options;  // around, outward and wall_spacing are this level's
  Index cells = 0;      // of the wall
  double fading = 0;    // of spacing's control, a line
};
/// The grid that the options ask for.
Level finest_level(const GridOptions& options);

/// Views inside point into it: it stays where it is.
class Problem {
 public:
  Problem(const Level& level, const Curve& curve, std::shared_ptr<Communicator> ranks = nullptr);
  explicit Problem(const GridOptions& options)
      : Problem(finest_level(options), curve_by_name(options.shape, options.trailing_edge)) {}
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  /// From the nodes of `plane`, with the control terms as they are now, into `plane` and `grid`. An impatient solve
  /// ends where it takes so long that the control terms must be wrong. `go_on` is asked after each step; where it says
  /// no, on any rank, the solve ends.
  NewtonResult solve(double rtol, double atol, bool impatient, const std::function<bool()>& go_on = {});
  /// The grid from its image.
  void show_plane();

  /// With the control terms as they are now, in the host's memory; unknowns are those of `plane`.
  PoissonRows rows() const;

  Start start;
  Grid grid;
  Grid plane;  // its image in the mapped plane
  Control control;
  double start_residual = 0;  // ||F|| of the start
  double rounding = 0;        // what rounding of the nodes alone makes of ||F||: none less can be asked for

 private:
  /// Rows and solver, where they are not there yet.
  void prepare();
  /// The unknowns of all ranks, each of which has brought its own.
  void gather();

  NewtonOptions options_;
  std::shared_ptr<Communicator> ranks_;
  bool mirrored_;
  std::vector<Point> fixed_;  // the start's image
  std::vector<double> scale_, x_;
  Stretch stretch_;  // this rank's
  std::unique_ptr<PlacedRows> rows_;
  std::optional<NewtonSolver> newton_;
};

}  // namespace krilu::grid
