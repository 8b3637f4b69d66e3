// SPDX-License-Identifier: Apache-2.0
// Where the nodes of a grid stand along its wall. Their spacing is fine at edges and corners and where the curve turns,
// grows from there by a bounded ratio, and is constant elsewhere; it is equidistributed (de Boor 1974) between nodes
// that have to stand where they stand: the trailing edge, the leading edge and corners.
#pragma once

#include <vector>

#include "grid/curve.hpp"

namespace krilu::grid {

/// Spacings wanted, in chords, on a wall of 256 cells. k times as many cells divide all of them by k, so that every
/// k-th node of the finer wall is nearly a node of the coarser one; fewer cells make edges and corners coarser in
/// proportion. Where cells do not suffice, spacings may grow faster first, and then all of them become coarser.
struct WallSpacing {
  double trailing_edge = 3e-3;   // where it is sharp or a base
  double leading_edge = 2.5e-3;  // of curves that have such a trailing edge: the point farthest from it
  double corner = 3e-3;          // at any other corner
  double turning = 5.5;          // at most, degrees a cell
  double growth = 1.1;           // at most, from one spacing to the next
  double largest_growth = 1.18;  // where cells do not suffice for that
};

/// Where nodes stand along the curve: cells + 1 points, the first and the last at the trailing edge.
struct WallPoints {
  std::vector<Point> point;   // cells + 1
  std::vector<Index> corner;  // places of corners among them, rising; 0 stands for the last point as well
};

/// Corners are nodes bit for bit. Points of a curve that mirrors itself mirror themselves bit for bit where `cells` is
/// even. Every piece between two nodes that are given has two cells or more, each half of a base one.
/// Throws krilu::Error for fewer cells than that needs, or spacings that are not positive. Cost: O(cells + points).
WallPoints wall_points(const Curve& curve, Index cells, const WallSpacing& how = {});

}  // namespace krilu::grid
