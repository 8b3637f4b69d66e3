// SPDX-License-Identifier: Apache-2.0
#include "grid/problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "base/together.hpp"
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

Problem::Problem(const Level& level, const Curve& curve, std::shared_ptr<Communicator> ranks)
    : start(start_grid(wall_points(curve, level.cells), level.options)),
      grid(start.grid),
      plane(image_of(start)),
      control(start, level.options.control, level.fading),
      options_(level.options.newton),
      ranks_(std::move(ranks)),
      mirrored_(mirrors_itself(grid)),
      fixed_(plane.node),
      scale_(row_scale(plane, start.map.turn())),
      x_(unknowns_of(plane)) {
  const exec::Host host(options_.linear.threads);
  const PoissonRows all = rows();
  const View<const double> x{x_.data()};
  // A row is about the distance, in sides of its own cell, by which its node is off: scale is side^-3 (row_scale).
  exec::Sums<double, 2> sums;
  host.reduce(
      x_.size(),
      [&](Index row) {
        const double f = all.residual(row, x), off = x[row] * std::cbrt(scale_[std::size_t(row / 2)]);
        return exec::Sums<double, 2>{{f * f, off * off}};
      },
      [&](const exec::Sums<double, 2>& all_rows) { sums = all_rows; });
  start_residual = std::sqrt(sums[0]);
  rounding = std::numeric_limits<double>::epsilon() * std::sqrt(sums[1]);
}

void Problem::prepare() {
  if (newton_) return;
  const PoissonRows all = rows();
  stretch_ = stretch_of(all, ranks_ ? ranks_->rank() : 0, ranks_ ? ranks_->size() : 1);
  const auto place = [&] { rows_ = place_rows(all, stretch_, options_.linear.device); };
  ranks_ ? together(*ranks_, place) : place();
  newton_.emplace(rows_->equations(), options_, ranks_);
}

void Problem::gather() {
  if (!ranks_ || ranks_->size() == 1) return;
  const PoissonRows all = rows();
  const int ranks = ranks_->size();
  std::size_t most = 0;
  for (int r = 0; r < ranks; ++r) most = std::max(most, std::size_t(stretch_of(all, r, ranks).count));
  std::vector<double> mine(most), together(most * std::size_t(ranks));
  std::copy_n(x_.begin() + stretch_.first, stretch_.count, mine.begin());
  ranks_->all_gather(mine.data(), most * sizeof(double), together.data());
  for (int r = 0; r < ranks; ++r) {
    const Stretch his = stretch_of(all, r, ranks);
    std::copy_n(together.begin() + std::ptrdiff_t(most) * r, his.count, x_.begin() + his.first);
  }
}

NewtonResult Problem::solve(double rtol, double atol, bool impatient, const std::function<bool()>& go_on) {
  prepare();
  rows_->show(rows());
  x_ = unknowns_of(plane);
  newton_->set_tolerances(rtol, atol);
  int inner = 0;
  const int most_inner = newton_->options().linear.precond == "jacobi" ? 2000 : 500;
  const std::span<double> mine(x_.data() + stretch_.first, std::size_t(stretch_.count));
  NewtonResult r = newton_->solve(mine, [&](const NewtonStep& s) {
    inner += s.inner_iterations;
    return (!go_on || go_on()) && (!impatient || (s.iteration < 20 && inner < most_inner));
  });
  gather();
  set_unknowns(x_, plane, start.map.turn());
  show_plane();
  return r;
}

void Problem::show_plane() {
  const bool periodic = plane.topology == Grid::Topology::O;
  const exec::Host host(options_.linear.threads);
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
