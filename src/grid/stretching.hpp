// SPDX-License-Identifier: Apache-2.0
// Points on a line whose spacing grows by the same factor from one to the next: along the cut of a C grid, and
// outwards.
#pragma once

#include <vector>

#include "krilu/types.hpp"

namespace krilu::grid {

/// Distances from 0 to exactly `length`, cells + 1 of them, rising; the first spacing is `first` and each of the others
/// one factor times the one before it, which is less than 1 where first > length / cells. Throws krilu::Error unless
/// 0 < first < length and cells >= 2, and where `first` leaves the last cells no length that a double can hold.
std::vector<double> stretched(double first, double length, Index cells);

/// The same along the cut behind a trailing edge.
inline std::vector<double> cut_spacing(double first, double length, Index cells) {
  return stretched(first, length, cells);
}

}  // namespace krilu::grid
