// SPDX-License-Identifier: Apache-2.0
// Closed curves from files of coordinates, two numbers a line. What a file is in is found out:
//   Selig's order: a title, then points from the trailing edge over the upper side to the leading edge and back below;
//   Lednicer's order: a title, the numbers of points of the two sides, then each side from the leading edge;
//   a closed curve: points one after another, from anywhere and either way round; the first again as the last, or not.
// The title may be missing, a comment opens with '#' and goes to the end of its line, and a comma may stand between the
// numbers. Plain or gzip.
#pragma once

#include <string>

#include "grid/curve.hpp"

namespace krilu::grid {

/// The curve, clockwise, scaled by one factor and moved so that x goes from 0 to 1 and y is 0 where it starts. That is
/// the file's first point where the curve is sharp there, x being largest to a hundredth of the chord; else the place
/// of the largest x, in the middle of the side if that is a straight base. An edge open by less than 1e-9 chords is
/// closed to a point; any other, up to a tenth of the chord, by a straight base.
/// Throws krilu::Error, with the file and its line, where there is no file or nothing in it, for what is no number or
/// not finite, fewer than three points, points that are the same as the one before them, curves that are open, cross
/// or touch themselves or enclose no area, and numbers of points in Lednicer's order that do not fit.
/// Cost: O(n log n); 0.1 s for 10^5 points.
Curve read_curve(const std::string& path);

}  // namespace krilu::grid
