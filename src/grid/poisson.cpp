// SPDX-License-Identifier: Apache-2.0
#include "grid/poisson.hpp"

#include <cmath>
#include <cstddef>

#include "grid/plane.hpp"

namespace krilu::grid {

namespace {

using std::size_t;

/// Inner nodes (i, j) in the rows' order.
template <class Each>
void for_inner(const Grid& grid, Each each) {
  const bool periodic = grid.topology == Grid::Topology::O;
  const Index begin = periodic ? 0 : 1, end = grid.ni - 1;
  size_t k = 0;
  for (Index j = 1; j + 1 < grid.nj; ++j)
    for (Index i = begin; i < end; ++i) each(i, j, k++);
}

size_t inner_nodes(const Grid& grid) {
  const Index around = grid.topology == Grid::Topology::O ? grid.ni - 1 : grid.ni - 2;
  return size_t(around) * size_t(grid.nj - 2);
}

}  // namespace

std::vector<double> row_scale(const Grid& grid, const Point& turn) {
  std::vector<double> scale(inner_nodes(grid));
  for_inner(grid, [&](Index i, Index j, size_t k) {
    Point w = grid.at(i > 0 ? i - 1 : grid.ni - 2, j);
    if (i == 0) w = w - turn;
    const Point& e = grid.at(i + 1, j);
    const Point &s = grid.at(i, j - 1), &n = grid.at(i, j + 1);
    const double x_x = 0.5 * (e.x - w.x), y_x = 0.5 * (e.y - w.y), x_e = 0.5 * (n.x - s.x), y_e = 0.5 * (n.y - s.y);
    const double sides = x_x * x_x + y_x * y_x + x_e * x_e + y_e * y_e;
    scale[k] = 1 / (sides * std::sqrt(sides));
  });
  return scale;
}

std::vector<double> unknowns_of(const Grid& grid) {
  std::vector<double> x(2 * inner_nodes(grid));
  for_inner(grid, [&](Index i, Index j, size_t k) {
    x[2 * k] = grid.at(i, j).x;
    x[2 * k + 1] = grid.at(i, j).y;
  });
  return x;
}

void set_unknowns(const std::vector<double>& x, Grid& grid, const Point& turn) {
  for_inner(grid, [&](Index i, Index j, size_t k) { grid.at(i, j) = {x[2 * k], x[2 * k + 1]}; });
  if (grid.topology == Grid::Topology::O)
    for (Index j = 1; j + 1 < grid.nj; ++j) grid.at(grid.ni - 1, j) = grid.at(0, j) + turn;
}

}  // namespace krilu::grid
