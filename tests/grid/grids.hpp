// SPDX-License-Identifier: Apache-2.0
// Grids made by hand, without equations: round an ellipse (O), and round a parabolic arc with its cut (C); and the area
// inside a curve.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "krilu/grid.hpp"

namespace krilu::test {

/// Round an ellipse of half axes 0.5 and thickness / 2 about (0.5, 0), clockwise from (1, 0), out to a circle of radius
/// `far`; the spacing grows geometrically from `spacing`.
inline Grid ellipse_grid(Index ni, Index nj, double thickness = 0.2, double far = 10, double spacing = 1e-3) {
  Grid g;
  g.topology = Grid::Topology::O;
  g.ni = ni, g.nj = nj;
  g.node.resize(std::size_t(ni) * std::size_t(nj));
  const double length = far - 0.5;
  double growth = 1.01;  // spacing (growth^(nj - 1) - 1) / (growth - 1) = length, by fixed-point iteration
  for (int k = 0; k < 200 && nj > 2; ++k) growth = std::pow(1 + length * (growth - 1) / spacing, 1.0 / (nj - 1));
  for (Index j = 0; j < nj; ++j) {
    const double r = nj > 2 ? spacing * (std::pow(growth, j) - 1) / (growth - 1) : j * length;
    for (Index i = 0; i < ni; ++i) {
      const double a = -2 * 3.14159265358979323846 * (i % (ni - 1)) / (ni - 1);
      const double blunt = 0.5 * thickness + (0.5 - 0.5 * thickness) * r / length;
      g.at(i, j) = {0.5 + (0.5 + r) * std::cos(a), (blunt + r) * std::sin(a)};
    }
  }
  return g;
}

/// A C grid of parabolas, x + i y = (u + i v)^2: the wall from u = -1 (lower side) over the nose to 1 is as thick as
/// 0.4 sqrt(x) (1 - x), the cut reaches from x = 1 to far^2.
inline Grid parabola_grid(Index ni, Index nj, Index wake, double far = 3) {
  Grid g;
  g.topology = Grid::Topology::C;
  g.ni = ni, g.nj = nj, g.wake = wake;
  g.node.resize(std::size_t(ni) * std::size_t(nj));
  const Index body = ni - 1 - 2 * wake;
  for (Index i = 0; i < ni; ++i) {
    double u = 2.0 * (i - wake) / body - 1;
    if (i < wake) u = -1 - (far - 1) * (wake - i) / wake;
    if (i > ni - 1 - wake) u = 1 + (far - 1) * (i - (ni - 1 - wake)) / wake;
    // The same x above and below, bit for bit.
    const double s = std::abs(u), half = s < 1 ? 0.2 * s * (1 - s * s) : 0;
    const Point wall{s * s, u < 0 ? -half : half};
    for (Index j = 0; j < nj; ++j) {
      const double v = 3.0 * std::pow(double(j) / (nj - 1), 2);
      g.at(i, j) = {wall.x - v * v, wall.y + 2 * u * v};
    }
  }
  for (Index i = 0; i <= wake; ++i) g.at(i, 0) = g.at(ni - 1 - i, 0) = {g.at(i, 0).x, 0};
  return g;
}

/// Of a polygon that ends where it begins; negative where it goes round clockwise.
inline double area(const std::vector<Point>& p) {
  double sum = 0;
  for (std::size_t k = 0; k + 1 < p.size(); ++k) sum += p[k].x * p[k + 1].y - p[k + 1].x * p[k].y;
  return sum / 2;
}

}  // namespace krilu::test
