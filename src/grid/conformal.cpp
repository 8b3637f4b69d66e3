// SPDX-License-Identifier: Apache-2.0
#include "grid/conformal.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "grid/plane.hpp"

namespace krilu::grid {

namespace {

using std::size_t;
using std::numbers::pi;

/// Radius of curvature at an end of a body, by the parabola y^2 = 2 r x as wide as the body is at a fiftieth of its
/// length; 0 where it ends sharply. `inwards` has length 1.
double end_radius(const std::vector<Point>& wall, Complex end, Complex inwards, double length) {
  const double x = 0.02 * length;
  double low = 0, high = 0;
  bool any = false;
  for (size_t i = 0; i + 1 < wall.size(); ++i) {
    const Complex a = (complex_of(wall[i]) - end) / inwards, b = (complex_of(wall[i + 1]) - end) / inwards;
    if ((a.real() - x) * (b.real() - x) > 0 || a.real() == b.real()) continue;
    const double y = a.imag() + (x - a.real()) / (b.real() - a.real()) * (b.imag() - a.imag());
    low = any ? std::min(low, y) : y;
    high = any ? std::max(high, y) : y;
    any = true;
  }
  return 0.125 * (high - low) * (high - low) / x;
}

}  // namespace

Complex ConformalMap::to_z(Complex zeta) const {
  if (kind == Kind::parabola) return centre + zeta * zeta;
  const Complex w = std::exp(Complex(zeta.imag(), -zeta.real()));
  return centre + 0.5 * (w + focus * focus / w);
}

double ConformalMap::stretch(Complex zeta) const {
  if (kind == Kind::parabola) return 2 * std::abs(zeta);
  const Complex w = std::exp(Complex(zeta.imag(), -zeta.real()));
  return 0.5 * std::abs(w - focus * focus / w);
}

Complex ConformalMap::to_zeta(Complex z, Complex near) const {
  if (kind == Kind::parabola) {
    const Complex root = std::sqrt(z - centre);
    return std::abs(root - near) <= std::abs(root + near) ? root : -root;
  }
  const Complex y = z - centre;
  Complex root = std::sqrt(y - focus) * std::sqrt(y + focus);
  if (std::abs(y - focus) < 1e-13 * std::abs(focus)) root = 0;  // an edge that is the focus, but for rounding
  // The larger of the two without cancellation; their product is focus^2.
  if (std::abs(y + root) < std::abs(y - root)) root = -root;
  const Complex large = y + root, small = focus * focus / large;
  const auto zeta_of = [&](Complex w) {
    const Complex l = std::log(w);
    const double turn = std::round((near.real() + l.imag()) / (2 * pi));
    return Complex(-l.imag() + 2 * pi * turn, l.real());
  };
  const Complex outside = zeta_of(large);
  if (std::abs(small) == 0) return outside;
  const Complex inside = zeta_of(small);
  return std::abs(inside - near) < std::abs(outside - near) ? inside : outside;
}

Index nose_of(const std::vector<Point>& wall) {
  size_t nose = 0;
  double most = -1;
  for (size_t i = 0; i < wall.size(); ++i) {
    const double d = length(wall[i] - wall[0]);
    if (d > most) {
      most = d;
      nose = i;
    }
  }
  return Index(nose);
}

ConformalMap ellipse_of(const std::vector<Point>& wall, bool sharp) {
  const Complex tail = complex_of(wall[0]), nose = complex_of(wall[size_t(nose_of(wall))]);
  const double half = 0.5 * std::abs(tail - nose);
  const Complex forwards = (nose - tail) / (2 * half);
  // An ellipse with half axes a and b has r = b^2 / a at its ends and its foci sqrt(a^2 - b^2) from its centre.
  const auto inset = [&](Complex end, Complex inwards) {
    const double r = end_radius(wall, end, inwards, 2 * half);
    return half - std::sqrt(std::max(0.0, half * half - half * r));
  };
  const Complex first = sharp ? tail : tail + inset(tail, forwards) * forwards,
                second = nose - inset(nose, -forwards) * forwards;
  return {ConformalMap::Kind::ellipse, 0.5 * (first + second), 0.5 * (first - second)};
}

ConformalMap parabola_of(const std::vector<Point>& wall) {
  const Complex tail = complex_of(wall[0]), nose = complex_of(wall[size_t(nose_of(wall))]);
  const double length = std::abs(tail - nose);
  const Complex inwards = (tail - nose) / length;
  const double r = std::min(end_radius(wall, nose, inwards, length), 0.5 * length);
  return {ConformalMap::Kind::parabola, nose + 0.5 * r * inwards, 0};
}

std::vector<Complex> follow(const ConformalMap& map, const std::vector<Point>& points, Index start, Complex near) {
  std::vector<Complex> zeta(points.size());
  const auto s = size_t(start);
  zeta[s] = map.to_zeta(complex_of(points[s]), near);
  for (size_t i = s + 1; i < points.size(); ++i) zeta[i] = map.to_zeta(complex_of(points[i]), zeta[i - 1]);
  for (size_t i = s; i-- > 0;) zeta[i] = map.to_zeta(complex_of(points[i]), zeta[i + 1]);
  return zeta;
}

}  // namespace krilu::grid
