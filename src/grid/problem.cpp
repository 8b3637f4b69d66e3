// SPDX-License-Identifier: Apache-2.0
#include "grid/problem.hpp"

#include <cmath>

#include "grid/quality.hpp"
#include "grid/wall_points.hpp"

namespace krilu::grid {

Level finest_level(const GridOptions& options) {
  constexpr double fading = 0.25;
  const Index wake = options.topology == "O" ? 0 : wake_cells(options.around);
  return {options, options.around - 1 - 2 * wake, fading};
}

Problem::Problem(const Level& level, const Curve& curve)
    : start(start_grid(wall_points(curve, level.cells), level.options)),
      grid(start.grid),
      control(start, level.options.control, level.fading),
      mirrored_(mirrors_itself(grid)),
      scale_(row_scale(grid)),
      equations_(
          PoissonRows{grid.ni, grid.nj, grid.topology == Grid::Topology::O, {start.grid.node.data()}, {}, {}, {}}),
      newton_(equations_, level.options.newton) {
  show_control();
  x_ = unknowns_of(grid);
  std::vector<double> F(x_.size());
  equations_.residual(0, Index(F.size()), {x_.data()}, {F.data()});
  double sum = 0;
  for (const double f : F) sum += f * f;
  start_residual = std::sqrt(sum);
}

NewtonResult Problem::solve(double rtol, double atol) {
  show_control();
  x_ = unknowns_of(grid);
  newton_.set_tolerances(rtol, atol);
  NewtonResult r = newton_.solve(x_);
  set_unknowns(x_, grid);
  // Of a wall that mirrors itself the equations do too: what is left of the solver's tolerance need not.
  if (mirrored_) mirror(grid);
  return r;
}

void Problem::show_control() {
  PoissonRows& rows = equations_.row();
  rows.phi = {control.phi().data()};
  rows.psi = {control.psi().data()};
  rows.scale = {scale_.data()};
}

}  // namespace krilu::grid
