// SPDX-License-Identifier: Apache-2.0
// PETSc's SNES on equations written for krilu: the same functions give F and the Jacobian, straight into the arrays of
// an AIJ matrix.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "krilu/equations.hpp"

namespace krilu::bench {

struct PeerNewton {
  virtual ~PeerNewton() = default;
  /// From the start in x to ||F|| <= rtol ||F(x0)||; x holds the solution on return.
  virtual void run(std::span<double> x, double rtol) = 0;

  std::string version;
  std::string trouble;                  // why the last run did not converge; empty where it did
  int steps = 0, inner_iterations = 0;  // of the last run
  std::vector<double> residuals;        // ||F|| after 0, 1, 2, ... steps
};

/// newtonls with backtracking, -snes_ksp_ew, gmres(30) or bcgs, ilu with no fill: PETSc's own defaults in all else. The
/// equations must outlive the result.
std::unique_ptr<PeerNewton> petsc_newton(const Equations& equations, const std::string& method);

}  // namespace krilu::bench
