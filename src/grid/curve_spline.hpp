// SPDX-License-Identifier: Apache-2.0
// A Curve between its points: cubic splines over the chord length, one from each corner to the next, with continuous
// curvature; periodic where there is no corner. At a corner the second derivative is that of the next point
// ("parabolic run-out"): zero there would flatten an arc, and not-a-knot wiggles at trailing edges of coarse files.
// Chord length and not its root: of real sections (NACA 0012 and 4412 in 69 points, RAE 2822 in 129) it gives
// curvatures that vary less, by a tenth for RAE 2822. Source: de Boor, A Practical Guide to Splines (1978), chapter IV.
// Cost: O(n) to make, O(log n) for a point.
#pragma once

#include <vector>

#include "grid/curve.hpp"

namespace krilu::grid {

class CurveSpline {
 public:
  explicit CurveSpline(const Curve& curve);

  /// Chord length from point 0 to each of curve.point.
  const std::vector<double>& knot() const { return knot_; }
  double length() const { return knot_.back(); }

  /// A point at 0 <= u <= length(); that of the curve, bit for bit, at a knot.
  Point at(double u) const;
  /// Its derivative; the one ahead at a corner.
  Point derivative(double u) const;

 private:
  std::size_t interval(double u) const;
  /// Slopes of the points first .. first + sides, modulo the number of points.
  void run_between_corners(std::size_t first, std::size_t sides);
  void run_round();

  std::vector<Point> point_;
  std::vector<double> knot_;
  std::vector<Point> after_, before_;  // derivatives at the start and the end of each side
};

}  // namespace krilu::grid
