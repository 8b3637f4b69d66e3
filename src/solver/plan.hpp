// SPDX-License-Identifier: Apache-2.0
// What the public solver and its engines tell each other: what was chosen, and what is known of a matrix before.
#pragma once

#include <cstdint>
#include <string>

#include "base/half.hpp"
#include "krilu/solver.hpp"
#include "precond/spec.hpp"
#include "sparse/csr.hpp"

namespace krilu::solver {

/// What the names of Options became.
struct Plan {
  Precision precision;           // of the inner solves; fp64: there are none
  Format basis = Format::fp64;   // of an inner GMRES
  int restart = 30;              // basis vectors of one in double
  std::string method;            // cg, bicgstab, gmres, fgmres
  std::string precond;           // a name of the registry
  std::string ordering;          // a name of schedule::order_by_name
  bool triangular = false;       // the preconditioner sweeps over triangles
  std::int64_t rows_in_all = 0;  // of all ranks of a team
  precond::Rearrangement form;   // of what is factored, where the preconditioner has factors of its own
  bool rearranged() const { return form.scaling != "none" || form.ordering != "natural"; }
};

struct Facts {
  sparse::Symmetry symmetry;
  sparse::DiagonalFacts diagonal;  // where values were looked at
  std::uint64_t pattern = 0;       // its hash
  bool one_sign = false;           // of the diagonal
};

}  // namespace krilu::solver
