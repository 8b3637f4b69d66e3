// SPDX-License-Identifier: Apache-2.0
// With h the lengths of sides, e their directions (differences over lengths) and d the derivatives at points, a second
// derivative that is continuous at point k asks for
//   h_k d_{k-1} + 2 (h_{k-1} + h_k) d_k + h_{k-1} d_{k+1} = 3 (h_k e_{k-1} + h_{k-1} e_k),
// and one that is constant along the first side for d_0 + d_1 = 2 e_0. Gaussian elimination, which needs no pivoting
// here; the periodic system by the formula of Sherman and Morrison.
#include "grid/curve_spline.hpp"

#include <algorithm>

#include "grid/plane.hpp"

namespace krilu::grid {

namespace {

using std::size_t;

/// lower_k v_{k-1} + diagonal_k v_k + upper_k v_{k+1} = right_k, solved in place of right.
template <class V>
void solve_tridiagonal(const std::vector<double>& lower, std::vector<double> diagonal, const std::vector<double>& upper,
                       std::vector<V>& right) {
  const size_t n = right.size();
  for (size_t k = 1; k < n; ++k) {
    const double factor = lower[k] / diagonal[k - 1];
    diagonal[k] -= factor * upper[k - 1];
    right[k] = right[k] - factor * right[k - 1];
  }
  right[n - 1] = (1 / diagonal[n - 1]) * right[n - 1];
  for (size_t k = n - 1; k-- > 0;) right[k] = (1 / diagonal[k]) * (right[k] - upper[k] * right[k + 1]);
}

}  // namespace

CurveSpline::CurveSpline(const Curve& curve) : point_(curve.point), knot_(curve.point.size()) {
  const size_t n = point_.size() - 1;
  for (size_t k = 0; k < n; ++k) knot_[k + 1] = knot_[k] + grid::length(point_[k + 1] - point_[k]);
  after_.resize(n);
  before_.resize(n);
  if (curve.corner.empty()) run_round();
  for (size_t c = 0; c < curve.corner.size(); ++c) {
    const size_t first = size_t(curve.corner[c]);
    const size_t last = c + 1 < curve.corner.size() ? size_t(curve.corner[c + 1]) : size_t(curve.corner[0]) + n;
    run_between_corners(first, last - first);
  }
}

void CurveSpline::run_between_corners(size_t first, size_t sides) {
  const size_t n = after_.size();
  const auto side = [&](size_t k) { return (first + k) % n; };
  const auto length = [&](size_t k) { return knot_[side(k) + 1] - knot_[side(k)]; };
  const auto direction = [&](size_t k) { return (1 / length(k)) * (point_[side(k) + 1] - point_[side(k)]); };
  std::vector<Point> d(sides + 1);
  if (sides == 1) {
    d[0] = d[1] = direction(0);
  } else {
    std::vector<double> lower(sides + 1), diagonal(sides + 1), upper(sides + 1);
    diagonal[0] = upper[0] = diagonal[sides] = lower[sides] = 1;
    d[0] = 2 * direction(0);
    d[sides] = 2 * direction(sides - 1);
    for (size_t k = 1; k < sides; ++k) {
      lower[k] = length(k);
      diagonal[k] = 2 * (length(k - 1) + length(k));
      upper[k] = length(k - 1);
      d[k] = 3 * (length(k) * direction(k - 1) + length(k - 1) * direction(k));
    }
    solve_tridiagonal(lower, diagonal, upper, d);
  }
  for (size_t k = 0; k < sides; ++k) {
    after_[side(k)] = d[k];
    before_[side(k)] = d[k + 1];
  }
}

void CurveSpline::run_round() {
  const size_t n = after_.size();
  const auto length = [&](size_t k) { return knot_[k + 1] - knot_[k]; };
  const auto direction = [&](size_t k) { return (1 / length(k)) * (point_[k + 1] - point_[k]); };
  std::vector<double> lower(n), diagonal(n), upper(n), corner(n, 0.0);
  std::vector<Point> d(n);
  for (size_t k = 0; k < n; ++k) {
    const size_t last = k == 0 ? n - 1 : k - 1;
    lower[k] = length(k);
    diagonal[k] = 2 * (length(last) + length(k));
    upper[k] = length(last);
    d[k] = 3 * (length(k) * direction(last) + length(last) * direction(k));
  }
  // A = T + u v^T with u = (g, 0, .., 0, upper_n), v = (1, 0, .., 0, lower_1 / g); g = -diagonal_1.
  const double g = -diagonal[0], tail = lower[0] / g;
  diagonal[0] -= g;
  diagonal[n - 1] -= upper[n - 1] * tail;
  corner[0] = g;
  corner[n - 1] = upper[n - 1];
  solve_tridiagonal(lower, diagonal, upper, d);
  solve_tridiagonal(lower, diagonal, upper, corner);
  const Point factor = (1 / (1 + corner[0] + tail * corner[n - 1])) * (d[0] + tail * d[n - 1]);
  for (size_t k = 0; k < n; ++k) d[k] = d[k] - corner[k] * factor;
  for (size_t k = 0; k < n; ++k) {
    after_[k] = d[k];
    before_[k] = d[k + 1 < n ? k + 1 : 0];
  }
}

size_t CurveSpline::interval(double u) const {
  const auto above = std::upper_bound(knot_.begin() + 1, knot_.end() - 1, u);
  return size_t(above - knot_.begin()) - 1;
}

Point CurveSpline::at(double u) const {
  const size_t k = interval(u);
  const double h = knot_[k + 1] - knot_[k], t = (u - knot_[k]) / h, s = (knot_[k + 1] - u) / h;
  if (t <= 0) return point_[k];
  if (s <= 0) return point_[k + 1];
  // The chord, and what the derivatives at its ends add to it.
  const Point chord = point_[k + 1] - point_[k];
  return point_[k] + t * chord + s * t * (s * (h * after_[k] - chord) - t * (h * before_[k] - chord));
}

Point CurveSpline::derivative(double u) const {
  const size_t k = interval(u);
  const double h = knot_[k + 1] - knot_[k], t = (u - knot_[k]) / h, s = 1 - t;
  const Point e = (1 / h) * (point_[k + 1] - point_[k]);
  return s * (1 - 3 * t) * after_[k] + t * (1 - 3 * s) * before_[k] + 6 * s * t * e;
}

}  // namespace krilu::grid
