// SPDX-License-Identifier: Apache-2.0
// Arithmetic of points and vectors in the plane.
#pragma once

#include <cmath>

#include "krilu/grid.hpp"

namespace krilu::grid {

inline Point operator+(const Point& a, const Point& b) { return {a.x + b.x, a.y + b.y}; }
inline Point operator-(const Point& a, const Point& b) { return {a.x - b.x, a.y - b.y}; }
inline Point operator*(double s, const Point& a) { return {s * a.x, s * a.y}; }
inline double dot(const Point& a, const Point& b) { return a.x * b.x + a.y * b.y; }
/// The area of the parallelogram, positive where b is on a's left.
inline double cross(const Point& a, const Point& b) { return a.x * b.y - a.y * b.x; }
inline double length(const Point& a) { return std::hypot(a.x, a.y); }

}  // namespace krilu::grid
