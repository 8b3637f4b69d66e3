// SPDX-License-Identifier: Apache-2.0
// What the tests of the ladder share: what must hold of every result, and the Neumann problem.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "krilu/io.hpp"
#include "support/solved.hpp"
#include "support/support.hpp"

namespace krilu::test {

/// What rounding may change in ||b - A x|| / ||b|| when it is formed in double.
inline double rounding_of_residual(const CsrMatrix& a, const std::vector<double>& x, const std::vector<double>& b) {
  double sum = 0, rhs = 0;
  for (Index i = 0; i < a.rows; ++i) {
    double terms = std::abs(b[std::size_t(i)]);
    const auto begin = std::size_t(a.offsets[std::size_t(i)]), end = std::size_t(a.offsets[std::size_t(i) + 1]);
    for (auto k = begin; k < end; ++k) terms += std::abs(a.values[k] * x[std::size_t(a.columns[k])]);
    sum += std::pow(terms * double(end - begin + 1), 2);
    rhs += b[std::size_t(i)] * b[std::size_t(i)];
  }
  return std::numeric_limits<double>::epsilon() * std::sqrt(sum / rhs);
}

/// What must hold of every result, however it ended.
inline void expect_honest(const CsrMatrix& a, const std::vector<double>& b, const Solved& s) {
  for (double v : s.x) ASSERT_TRUE(std::isfinite(v));
  const double truth = true_residual(a, s.x, b);
  EXPECT_NEAR(s.r.relative_residual, truth, 1e-6 * truth + rounding_of_residual(a, s.x, b));
  ASSERT_EQ(s.r.history.size(), std::size_t(s.r.iterations) + 1);
  EXPECT_EQ(s.r.history.back(), s.r.relative_residual);
  int iterations = 0;
  for (const Rung& rung : s.r.rungs) iterations += rung.iterations;
  if (!s.r.rungs.empty()) {
    EXPECT_EQ(iterations, s.r.iterations);
  }
  for (std::size_t k = 0; k + 1 < s.r.rungs.size(); ++k) EXPECT_FALSE(s.r.rungs[k].why_left.empty());
  if (s.r.status == Status::converged && !s.r.rungs.empty()) {
    EXPECT_TRUE(s.r.rungs.back().why_left.empty());
  }
}

/// The Neumann problem, and so much more on the diagonal.
inline CsrMatrix neumann(double more) {
  CsrMatrix a = generate("gen:poisson2d:15x15");
  for (Index i = 0; i < a.rows; ++i) {
    double sum = more;
    std::size_t diagonal = 0;
    for (auto k = std::size_t(a.offsets[std::size_t(i)]); k < std::size_t(a.offsets[std::size_t(i) + 1]); ++k) {
      if (a.columns[k] == i)
        diagonal = k;
      else
        sum -= a.values[k];
    }
    a.values[diagonal] = sum;
  }
  return a;
}

}  // namespace krilu::test
