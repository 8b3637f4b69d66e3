// SPDX-License-Identifier: Apache-2.0
// The factor e^t is where 1 + e^t + .. + e^((cells - 1) t) is length / first, a rising function of t: bisection, which
// takes 60 steps of a few operations and cannot fail.
#include "grid/stretching.hpp"

#include <fmt/format.h>

#include <cmath>

#include "krilu/error.hpp"

namespace krilu::grid {

namespace {

/// 1 + e^t + .. + e^((n - 1) t).
double geometric_sum(double t, double n) { return t == 0 ? n : std::expm1(n * t) / std::expm1(t); }

}  // namespace

std::vector<double> stretched(double first, double length, Index cells) {
  if (!(first > 0) || !(first < length) || !std::isfinite(length))
    throw Error(
        fmt::format("a spacing that begins with {} cannot reach a length of {}: it must be positive and less than the "
                    "length",
                    first, length));
  if (cells < 2) throw Error(fmt::format("{} cells cannot be stretched: two or more are needed", cells));
  const double n = cells, sum = length / first;
  // Each term but the last is less than the whole sum; and without an end the sum is 1 / (1 - e^t).
  double low = std::log1p(-1 / sum), high = std::log(sum) / (n - 1);
  for (int step = 0; step < 200; ++step) {
    const double t = low + (high - low) / 2;
    if (t <= low || t >= high) break;
    (geometric_sum(t, n) < sum ? low : high) = t;
  }
  std::vector<double> distance(std::size_t(cells) + 1);
  const double scale = length / geometric_sum(high, n);  // `first`, but for rounding
  for (Index j = 0; j <= cells; ++j) distance[std::size_t(j)] = scale * geometric_sum(high, j);
  distance.back() = length;
  for (std::size_t j = 1; j < distance.size(); ++j)
    if (!(distance[j] > distance[j - 1]))
      throw Error(
          fmt::format("a spacing that begins with {} leaves nothing of a length of {} for cell {} of {}: begin with "
                      "less, near {:.3g}, or take fewer cells",
                      first, length, j, cells, length / n));
  return distance;
}

}  // namespace krilu::grid
