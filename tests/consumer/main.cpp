// SPDX-License-Identifier: Apache-2.0
// What a user writes first: a system from their own arrays, analysed once and solved for two sets of values.
#include <cstdio>
#include <vector>

#include "krilu/io.hpp"
#include "krilu/solver.hpp"

int main() {
  krilu::CsrMatrix a = krilu::generate("gen:convdiff2d:40x30");
  const std::vector<double> b = krilu::random_vector(1200, 1, -1, 1);
  krilu::Solver solver({.solver = "bicgstab", .precond = "dilu", .rtol = 1e-10});
  solver.analyse(a);
  for (int step = 0; step < 2; ++step) {
    solver.factor(a);
    std::vector<double> x(1200, 0.0);
    const krilu::Result r = solver.solve(b, x);
    std::printf("%s after %d iterations, true residual %.1e\n", krilu::to_string(r.status), r.iterations,
                r.relative_residual);
    if (r.status != krilu::Status::converged || r.relative_residual > 1e-10) return 1;
    for (double& v : a.values) v *= 2;
  }
  return solver.counts().analyses == 1 && solver.counts().factorisations == 2 ? 0 : 1;
}
