// SPDX-License-Identifier: Apache-2.0
// The names of the triangular strategies, and what a runner says of the one that it used.
#pragma once

#include <string>
#include <vector>

namespace krilu::triangular {

/// `parts` is what sweeps over independent parts (block ILU, RAS) do by themselves; it is no name that a user gives.
enum class Strategy { automatic, serial, level_set, sync_free, tiled, parts };
const char* to_string(Strategy s);
/// Throws krilu::Error for an unknown name.
Strategy strategy_by_name(const std::string& name);
const std::vector<std::string>& strategy_names();

/// The forms of the diagonal: of triangular solves
///
///   unit        x_i =  b_i - sum_j t_ij x_j
///   reciprocal  x_i = (b_i - sum_j t_ij x_j) d_i           d_i = 1 / t_ii
///   dilu        x_i =  b_i - d_i sum_j t_ij x_j            the backward half of (E+L) E^-1 (E+U)
///
/// and of DILU's construction, which is a solve of the same shape
///
///   pivot       x_i = 1 / (b_i - sum_j t_ij t_ji x_j)
enum class Diagonal { unit, reciprocal, dilu, pivot };

/// What ran, and what a chooser saw: "level-set 0.80 ms, tiled 0.31 ms", or nothing where it timed nothing.
struct Report {
  Strategy used = Strategy::serial;
  std::string seen;
  bool settled = true;
};

}  // namespace krilu::triangular
