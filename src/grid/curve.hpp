// SPDX-License-Identifier: Apache-2.0
// The closed curve that a grid goes round: a NACA section of four digits by its formula, or points from a file, and
// what holds of any of them: where its corners are, whether it mirrors itself, whether it crosses itself.
// Source of the sections: Jacobs, Ward, Pinkerton, NACA Report 460 (1933).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "krilu/grid.hpp"
#include "krilu/types.hpp"

namespace krilu::grid {

/// A closed curve in the plane, clockwise, from the trailing edge over the lower side: what a grid goes round.
struct Curve {
  std::string name;           // e.g. "NACA 0012", the title line of a file
  std::vector<Point> point;   // the first is the last again: the trailing edge, or the middle of a base
  std::vector<Index> corner;  // places in `point` where the tangent jumps, rising; 0 where the trailing edge is sharp
  bool open_edge = false;     // the trailing edge is a straight base, whose two ends are corners
};

/// naca:DDDD, or the path of a file (read_curve.hpp). `trailing_edge` is closed or open and goes for NACA sections
/// only. NACA sections are as their formula has them: the chord from (0, 0) to (1, 0), the thickness perpendicular to
/// the camber line; those without camber are mirrored bit for bit. Throws krilu::Error for digits that make no section,
/// names that are none, and whatever read_curve refuses.
Curve curve_by_name(const std::string& shape, const std::string& trailing_edge);

/// By how much the direction changes at b on the way from a over b to c, in degrees, 0 to 180.
double turning(const Point& a, const Point& b, const Point& c);

/// Places where a closed polygon (the first point is the last again) has a corner: where it turns by
///   85 degrees or more; or 25 and four times what the turning of a neighbour lets expect; or 10 between pieces of very
///   different length; or 5 between pieces that are straight.
/// Of regular polygons those of up to four sides have corners, the others are circles.
std::vector<Index> corners_of(const std::vector<Point>& closed);

/// Whether point[n - k] is point[k] mirrored at the x axis, bit for bit, and corners go with it.
bool mirrors_itself(const Curve& curve);

/// Two sides of a closed polygon that meet other than at the point that neighbours share, if there are any: side k
/// goes from closed[k] to closed[k + 1]. Cost: O(n log n) for curves; a tree of boxes.
std::optional<std::pair<Index, Index>> crossing_sides(const std::vector<Point>& closed);

}  // namespace krilu::grid
