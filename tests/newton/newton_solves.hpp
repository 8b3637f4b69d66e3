// SPDX-License-Identifier: Apache-2.0
// A Newton solve that is held to what must be true of each, however it ended, and the spaces that it is tested on.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "krilu/newton.hpp"
#include "newton/systems.hpp"

namespace krilu::test {

/// What must hold of every result, however it ended: the residual is that of x, and the history adds up.
inline void expect_honest(const Equations& equations, const NewtonSolved& s) {
  const NewtonResult& r = s.r;
  for (double v : s.x) ASSERT_TRUE(std::isfinite(v));
  const double truth = norm_of(residual_of(equations, s.x));
  EXPECT_NEAR(r.residual, truth, 1e-12 * truth);
  ASSERT_FALSE(r.history.empty());
  EXPECT_EQ(r.history.back().iteration, r.iterations);
  EXPECT_EQ(r.history.front().residual, r.initial_residual);
  EXPECT_EQ(r.history.front().length, 0);
  EXPECT_EQ(r.history.front().inner_iterations, 0);
  EXPECT_EQ(r.residual, std::ranges::min(r.history, {}, &NewtonStep::residual).residual);
  int inner = 0, taken = 0;
  for (std::size_t k = 0; k < r.history.size(); ++k) {
    const NewtonStep& step = r.history[k];
    EXPECT_TRUE(std::isfinite(step.residual));
    inner += step.inner_iterations;
    taken += step.length > 0;
    EXPECT_EQ(step.iteration, taken);
    if (k == 0) continue;
    EXPECT_GE(step.length, 0);
    EXPECT_LE(step.length, 1);
    EXPECT_GT(step.forcing, 0);
    EXPECT_LT(step.forcing, 1);
    EXPECT_GE(step.linear_residual, 0);
  }
  EXPECT_EQ(inner, r.inner_iterations);
  EXPECT_GE(r.evaluations, r.iterations + 1);
  EXPECT_GE(r.threads, 1);
  EXPECT_GT(r.seconds.total, 0);
  const NewtonSeconds& t = r.seconds;
  EXPECT_LE(t.residual + t.jacobian + t.factor + t.linear, t.total);
  for (const double part : {t.analyse, t.residual, t.jacobian, t.factor, t.linear}) EXPECT_GE(part, 0);
}

inline NewtonSolved solve(const Equations& equations, std::vector<double> x, const NewtonOptions& options) {
  NewtonSolver newton(equations, options);
  NewtonResult r = newton.solve(x);
  EXPECT_EQ(r.bytes, newton.bytes());
  NewtonSolved s{std::move(r), std::move(x)};
  expect_honest(equations, s);
  return s;
}
inline void expect_converged(const NewtonSolved& s, double rtol) {
  EXPECT_EQ(s.r.status, Status::converged) << (s.r.notes.empty() ? "" : s.r.notes.front());
  EXPECT_LE(s.r.residual, rtol * s.r.initial_residual);
}

inline NewtonOptions one_thread(NewtonOptions o = {}) {
  o.linear.threads = 1;
  return o;
}

/// In a space by name.
class NewtonOn : public ::testing::TestWithParam<const char*> {
 protected:
  NewtonOptions options(NewtonOptions o = {}) const {
    o.linear.device = GetParam();
    return one_thread(std::move(o));
  }
};
inline std::string name_of_space(const ::testing::TestParamInfo<const char*>& space) { return space.param; }

}  // namespace krilu::test
