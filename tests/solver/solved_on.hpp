// SPDX-License-Identifier: Apache-2.0
// A solve on a device that is named.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/solved.hpp"

namespace krilu::test {

inline Solved solved_on(const std::string& device, const CsrMatrix& a, const std::vector<double>& b, Options o) {
  o.device = device;
  Solver solver(o);
  solver.setup(a);
  const Solved out = solved(solver, b);
  EXPECT_EQ(out.r.bytes, solver.bytes());
  return out;
}

}  // namespace krilu::test
