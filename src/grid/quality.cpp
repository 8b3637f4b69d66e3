// SPDX-License-Identifier: Apache-2.0
#include "grid/quality.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>

#include "grid/curve.hpp"
#include "grid/plane.hpp"
#include "krilu/error.hpp"

namespace krilu::grid {

namespace {

using std::size_t;

double degrees(double radians) { return radians * 180 / std::numbers::pi; }

/// The neighbours of (i, j) along its line; on the two ends of a C grid's lines the node itself stands for one.
std::pair<Point, Point> along(const Grid& grid, Index i, Index j) {
  if (grid.topology == Grid::Topology::O) {
    const Index n = grid.ni - 1;
    return {grid.at(i == 0 ? n - 1 : i - 1, j), grid.at(i % n + 1, j)};
  }
  return {grid.at(std::max(Index(0), i - 1), j), grid.at(std::min(Index(grid.ni - 1), i + 1), j)};
}

/// The least of the areas of the parallelograms at the corners of cell (i, j).
double least_jacobian(const Grid& grid, Index i, Index j) {
  const Point &a = grid.at(i, j), &b = grid.at(i + 1, j), &c = grid.at(i + 1, j + 1), &d = grid.at(i, j + 1);
  double least = std::numeric_limits<double>::infinity();
  for (const double area : {cross(b - a, d - a), cross(c - b, a - b), cross(d - c, b - c), cross(a - d, c - d)})
    least = std::isnan(area) ? -std::numeric_limits<double>::infinity() : std::min(least, area);
  return least;
}

}  // namespace

std::vector<char> counted_at_wall(const Grid& grid) {
  const Index begin = grid.wake, end = grid.ni - 1 - grid.wake, cells = end - begin;
  std::vector<char> counted(size_t(grid.ni), 0);
  const std::vector<Point> wall(grid.node.begin() + begin, grid.node.begin() + end + 1);
  for (Index i = begin; i <= end; ++i) counted[size_t(i)] = 1;
  std::vector<Index> corner;
  for (Index c = 0; c < cells; ++c) {
    const auto at = size_t(c);
    if (turning(wall[c == 0 ? size_t(cells) - 1 : at - 1], wall[at], wall[at + 1]) > 25) corner.push_back(c);
  }
  // What turns so fast at each of several nodes is a coarsely divided bend.
  const std::vector<Index> sharp = corners_of(wall);
  std::erase_if(corner, [&](Index c) { return !std::binary_search(sharp.begin(), sharp.end(), c); });
  const auto leave_out = [&](Index c) {  // counted from the trailing edge, either way round
    c = (c % cells + cells) % cells;
    counted[size_t(begin + c)] = 0;
    if (c == 0) counted[size_t(end)] = 0;
  };
  if (grid.wake > 0)  // the cut makes a corner even of a round trailing edge
    for (Index beside = -2; beside <= 2; ++beside) leave_out(beside);
  for (size_t k = 0; k < corner.size(); ++k) {
    for (Index beside = -2; beside <= 2; ++beside) leave_out(corner[k] + beside);
    const Index next = k + 1 < corner.size() ? corner[k + 1] : corner[0] + cells;
    double between = 0;
    for (Index c = corner[k]; c < next; ++c) between += length(wall[size_t(c % cells) + 1] - wall[size_t(c % cells)]);
    if (between < 0.05)
      for (Index c = corner[k]; c < next; ++c) leave_out(c);
  }
  if (std::find(counted.begin(), counted.end(), 1) == counted.end())  // a grid so coarse that it is all corners
    std::fill(counted.begin() + begin, counted.begin() + end + 1, char(1));
  return counted;
}

Leaving leaving(const Grid& grid, Index i) {
  const auto [before, after] = along(grid, i, 0);
  const Point tangent = after - before, line = grid.at(i, 1) - grid.at(i, 0);
  return {length(line), degrees(std::atan2(dot(tangent, line), cross(tangent, line)))};
}

bool mirrors_itself(const Grid& grid) {
  for (const Index j : {Index(0), Index(grid.nj - 1)})
    for (Index i = 0; i < grid.ni; ++i) {
      const Point &a = grid.at(i, j), &b = grid.at(grid.ni - 1 - i, j);
      const double rounding = 1e-14 * (std::abs(a.x) + std::abs(a.y));
      if (!(std::abs(a.x - b.x) <= rounding && std::abs(a.y + b.y) <= rounding)) return false;
    }
  return true;
}

void mirror(Grid& grid) {
  for (Index j = 1; j + 1 < grid.nj; ++j)
    for (Index i = 0; 2 * i < grid.ni; ++i) {
      Point &a = grid.at(i, j), &b = grid.at(grid.ni - 1 - i, j);
      const Point both = {0.5 * (a.x + b.x), 0.5 * (a.y - b.y)};
      a = both;
      b = {both.x, -both.y};
    }
}

std::optional<std::pair<Index, Index>> first_fold(const Grid& grid) {
  for (Index j = 0; j + 1 < grid.nj; ++j)
    for (Index i = 0; i + 1 < grid.ni; ++i)
      if (!(least_jacobian(grid, i, j) > 0)) return std::pair(i, j);
  return std::nullopt;
}

}  // namespace krilu::grid

namespace krilu {

GridQuality quality_of(const Grid& grid, double wall_spacing) {
  using namespace krilu::grid;
  if (grid.ni < 3 || grid.nj < 2 || grid.node.size() != std::size_t(grid.ni) * std::size_t(grid.nj) || grid.wake < 0 ||
      2 * std::int64_t(grid.wake) + 3 > grid.ni)
    throw Error("a grid has 3 nodes around and 2 outward, or more, and ni nj nodes in all");
  GridQuality q;
  q.wall_spacing = wall_spacing;
  q.smallest_jacobian = std::numeric_limits<double>::infinity();
  for (Index j = 0; j + 1 < grid.nj; ++j)
    for (Index i = 0; i + 1 < grid.ni; ++i) {
      const double jacobian = least_jacobian(grid, i, j);
      q.smallest_jacobian = std::min(q.smallest_jacobian, jacobian);
      if (!(jacobian > 0)) ++q.folded_cells;
      const double around =
          length(grid.at(i + 1, j) - grid.at(i, j)) + length(grid.at(i + 1, j + 1) - grid.at(i, j + 1));
      const double outward =
          length(grid.at(i, j + 1) - grid.at(i, j)) + length(grid.at(i + 1, j + 1) - grid.at(i + 1, j));
      q.largest_aspect = std::max({q.largest_aspect, around / outward, outward / around});
    }

  q.worst_angle = 90;
  double sum = 0;
  std::int64_t inner = 0;
  const bool o = grid.topology == Grid::Topology::O;
  for (Index j = 1; j + 1 < grid.nj; ++j)
    for (Index i = o ? 0 : 1; i + 1 < grid.ni; ++i) {
      const auto [before, after] = along(grid, i, j);
      const Point x = after - before, e = grid.at(i, j + 1) - grid.at(i, j - 1);
      const double deviation = std::abs(degrees(std::atan2(dot(x, e), cross(x, e))));
      q.worst_angle = std::min(q.worst_angle, 90 - deviation);
      sum += deviation;
      ++inner;
    }
  q.worst_angle = std::max(q.worst_angle, 0.0);
  q.mean_deviation = inner > 0 ? sum / double(inner) : 0;

  const std::vector<char> counted = counted_at_wall(grid);
  q.least_wall_spacing = std::numeric_limits<double>::infinity();
  for (Index i = grid.wake; i <= grid.ni - 1 - grid.wake; ++i) {
    const Leaving l = leaving(grid, i);
    q.wall_deviation_anywhere = std::max(q.wall_deviation_anywhere, std::abs(l.lean));
    if (!counted[std::size_t(i)]) continue;
    q.wall_deviation = std::max(q.wall_deviation, std::abs(l.lean));
    q.least_wall_spacing = std::min(q.least_wall_spacing, l.spacing);
    q.largest_wall_spacing = std::max(q.largest_wall_spacing, l.spacing);
  }

  for (Index i = 0; i < grid.ni; ++i)
    for (Index j = 1; j + 1 < grid.nj; ++j) {
      const double below = length(grid.at(i, j) - grid.at(i, j - 1)), above = length(grid.at(i, j + 1) - grid.at(i, j));
      q.largest_growth = std::max({q.largest_growth, above / below, below / above});
    }
  return q;
}

}  // namespace krilu
