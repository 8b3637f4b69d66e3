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
      plane(start.grid),
      control(start, level.options.control, level.fading),
      mirrored_(mirrors_itself(grid)),
      fixed_(grid.node.size()),
      equations_(PoissonRows{
          grid.ni, grid.nj, grid.topology == Grid::Topology::O, start.map.turn(), {fixed_.data()}, {}, {}, {}}),
      newton_(equations_, level.options.newton) {
  for (std::size_t k = 0; k < fixed_.size(); ++k) fixed_[k] = point_of(start.zeta[k]);
  plane.node = fixed_;
  scale_ = row_scale(plane, start.map.turn());
  show_control();
  x_ = unknowns_of(plane);
  std::vector<double> F(x_.size());
  equations_.residual(0, Index(F.size()), {x_.data()}, {F.data()});
  double sum = 0;
  for (const double f : F) sum += f * f;
  start_residual = std::sqrt(sum);
}

NewtonResult Problem::solve(double rtol, double atol, bool impatient) {
  show_control();
  x_ = unknowns_of(plane);
  newton_.set_tolerances(rtol, atol);
  int inner = 0;
  NewtonResult r = newton_.solve(x_, [&](const NewtonStep& s) {
    inner += s.inner_iterations;
    return !impatient || (s.iteration < 20 && inner < 500);
  });
  set_unknowns(x_, plane, start.map.turn());
  show_plane();
  return r;
}

void Problem::show_plane() {
  const bool periodic = plane.topology == Grid::Topology::O;
  for (Index j = 1; j + 1 < grid.nj; ++j)
    for (Index i = periodic ? 0 : 1; i + 1 < grid.ni; ++i)
      grid.at(i, j) = point_of(start.map.to_z(complex_of(plane.at(i, j))));
  if (periodic)
    for (Index j = 1; j + 1 < grid.nj; ++j) grid.at(grid.ni - 1, j) = grid.at(0, j);
  // Of a wall that mirrors itself the equations do too: what is left of the solver's tolerance need not.
  if (mirrored_) mirror(grid);
}

void Problem::show_control() {
  PoissonRows& rows = equations_.row();
  rows.phi = {control.phi().data()};
  rows.psi = {control.psi().data()};
  rows.scale = {scale_.data()};
}

}  // namespace krilu::grid
