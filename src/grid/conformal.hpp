// SPDX-License-Identifier: Apache-2.0
// A plane in which the flow domain round a slender body is nearly a rectangle: O grids by the logarithm of Joukowski's
// map, C grids by a square root. A grid that is nearly rectangular there is smooth and nearly orthogonal here, and the
// scale of the plane is fine where a body's ends are sharp. Sources: Jameson (1974) for the root; Ives (1976) for the
// use of such maps in making grids.
#pragma once

#include <complex>
#include <numbers>
#include <vector>

#include "krilu/grid.hpp"

namespace krilu::grid {

using Complex = std::complex<double>;

inline Complex complex_of(const Point& p) { return {p.x, p.y}; }
inline Point point_of(const Complex& z) { return {z.real(), z.imag()}; }

/// Points of the plane are z, those of the mapped plane zeta, whose real part grows along the wall (with i) and whose
/// imaginary part grows outwards (with j).
///   ellipse: z = centre + (w + focus^2 / w) / 2, w = exp(-i zeta)
///   parabola: z = centre + zeta^2
struct ConformalMap {
  enum class Kind { ellipse, parabola };
  Kind kind = Kind::ellipse;
  Complex centre, focus;

  Complex to_z(Complex zeta) const;
  /// |dz / d zeta|.
  double stretch(Complex zeta) const;
  /// What zeta gains on the way round an O grid.
  Point turn() const { return kind == Kind::ellipse ? Point{2 * std::numbers::pi, 0} : Point{}; }
  /// The point of all that map to z which is nearest to `near`.
  Complex to_zeta(Complex z, Complex near) const;
};

/// Foci stand inside the body, where an ellipse with its ends' curvature has them; one of them at the trailing edge
/// where that is sharp, so that it opens to nearly a straight angle. `wall` begins at the trailing edge and ends there.
ConformalMap ellipse_of(const std::vector<Point>& wall, bool sharp);
/// The focus stands inside the nose, the point farthest from the trailing edge.
ConformalMap parabola_of(const std::vector<Point>& wall);

/// Place in `wall` of the point farthest from its first.
Index nose_of(const std::vector<Point>& wall);

/// zeta of points along a continuous line, beginning with points[start] nearest to `near`.
std::vector<Complex> follow(const ConformalMap& map, const std::vector<Point>& points, Index start, Complex near);

}  // namespace krilu::grid
