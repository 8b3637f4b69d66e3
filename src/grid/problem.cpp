// SPDX-License-Identifier: Apache-2.0
#include "grid/problem.hpp"

#include <cmath>
#include <limits>

#include "exec/host.hpp"
#include "grid/quality.hpp"
#include "grid/wall_points.hpp"

namespace krilu::grid {

namespace {

Grid image_of(const Start& start) {
  Grid plane = start.grid;
  for (std::size_t k = 0; k < plane.node.size(); ++k) plane.node[k] = point_of(start.zeta[k]);
  return plane;
}

}  // namespace

Level finest_level(const GridOptions& options) {
  constexpr double fading = 0.25;
  const Index wake = options.topology == "O" ? 0 : wake_cells(options.around);
  return {options, options.around - 1 - 2 * wake, fading};
}

Problem::Problem(const Level& level, const Curve& curve)
    : start(start_grid(wall_points(curve, level.cells), level.options)),
      grid(start.grid),
      plane(image_of(start)),
      control(start, level.options.control, level.fading),
      threads_(level.options.newton.linear.threads),
      mirrored_(mirrors_itself(grid)),
      fixed_(plane.node),
      scale_(row_scale(plane, start.map.turn())),
      rows_(place_rows(rows(), level.options.newton.linear.device)),
      newton_(equations(), level.options.newton) {
  x_ = unknowns_of(plane);
  std::vector<double> F(x_.size());
  equations().residual(0, Index(F.size()), {x_.data()}, {F.data()});
  double sum = 0;
  for (const double f : F) sum += f * f;
  start_residual = std::sqrt(sum);
  // A row is about the distance, in sides of its own cell, by which its node is off: scale is side^-3 (row_scale).
  double rounded = 0;
  for (std::size_t k = 0; k < x_.size(); ++k) {
    const double off = x_[k] * std::cbrt(scale_[k / 2]);
    rounded += off * off;
  }
  rounding = std::numeric_limits<double>::epsilon() * std::sqrt(rounded);
}

NewtonResult Problem::solve(double rtol, double atol, bool impatient) {
  rows_->show(rows());
  x_ = unknowns_of(plane);
  newton_.set_tolerances(rtol, atol);
  int inner = 0;
  const int most_inner = newton_.options().linear.precond == "jacobi" ? 2000 : 500;
  NewtonResult r = newton_.solve(x_, [&](const NewtonStep& s) {
    inner += s.inner_iterations;
    return !impatient || (s.iteration < 20 && inner < most_inner);
  });
  set_unknowns(x_, plane, start.map.turn());
  show_plane();
  return r;
}

void Problem::show_plane() {
  const bool periodic = plane.topology == Grid::Topology::O;
  const exec::Host host(threads_);
  host.for_each(std::size_t(grid.nj - 2), [&](Index line) {
    const Index j = line + 1;
    for (Index i = periodic ? 0 : 1; i + 1 < grid.ni; ++i)
      grid.at(i, j) = point_of(start.map.to_z(complex_of(plane.at(i, j))));
    if (periodic) grid.at(grid.ni - 1, j) = grid.at(0, j);
  });
  // Of a wall that mirrors itself the equations do too: what is left of the solver's tolerance need not.
  if (mirrored_) mirror(grid);
}

PoissonRows Problem::rows() const {
  return {grid.ni,
          grid.nj,
          grid.topology == Grid::Topology::O,
          start.map.turn(),
          {fixed_.data()},
          {control.phi().data()},
          {control.psi().data()},
          {scale_.data()}};
}

}  // namespace krilu::grid
