// SPDX-License-Identifier: Apache-2.0
// Backtracking along a Newton step: the length s that meets ||F(x + s d)|| <= (1 - t s (1 - eta)) ||F(x)||, by the
// minimum of the parabola through what is known of ||F||^2, between a tenth and a half of the last length.
//
// Source: Eisenstat, Walker, Globally convergent inexact Newton methods, SIAM J. Optim. 4 (1994); Dennis, Schnabel
// (1983).
#pragma once

#include <algorithm>
#include <cmath>

namespace krilu::newton {

class Backtracking {
 public:
  /// norm: ||F(x)||; eta: ||F + J d|| / ||F||, as the linear solver reached it.
  Backtracking(double norm, double eta) : norm_(norm), eta_(std::min(eta, 1 - 1e-4)) {}

  double length() const { return s_; }
  /// Whether the norm at x + length() d will do.
  bool accepts(double norm) const { return norm < norm_ && norm <= (1 - sufficient * s_ * (1 - eta_)) * norm_; }
  /// It will not: a shorter length. False where there is none left to try.
  bool shorten(double norm) {
    double next = 0.5 * s_;
    if (std::isfinite(norm)) {
      // g(s) = ||F(x + s d)||^2 has g(0), g'(0) <= -2 (1 - eta) g(0), and g(s_).
      const double g0 = norm_ * norm_, slope = -2 * (1 - eta_) * g0;
      const double bend = norm * norm - g0 - slope * s_;
      if (bend > 0) next = std::clamp(-slope * s_ * s_ / (2 * bend), 0.1 * s_, 0.5 * s_);
    }
    s_ = next;
    return s_ >= shortest;
  }

 private:
  static constexpr double sufficient = 1e-4, shortest = 1e-12;
  double norm_, eta_;
  double s_ = 1;
};

}  // namespace krilu::newton
