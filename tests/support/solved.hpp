// SPDX-License-Identifier: Apache-2.0
// A solve from zero: what it says of itself, and where it ends.
#pragma once

#include <utility>
#include <vector>

#include "krilu/solver.hpp"

namespace krilu::test {

/// A right-hand side of ones.
inline std::vector<double> ones(const CsrView& a) { return std::vector<double>(std::size_t(a.rows), 1.0); }

struct Solved {
  Result r;
  std::vector<double> x;
};
inline Solved solved(Solver& solver, const std::vector<double>& b) {
  std::vector<double> x(b.size(), 0.0);
  Result r = solver.solve(b, x);
  return {std::move(r), std::move(x)};
}
inline Solved solved(const CsrMatrix& a, const std::vector<double>& b, const Options& o = {}) {
  Solver solver(o);
  solver.setup(a);
  return solved(solver, b);
}

}  // namespace krilu::test
