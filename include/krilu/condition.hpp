// SPDX-License-Identifier: Apache-2.0
// Estimates of a matrix's condition number.
#pragma once

#include <string>

#include "krilu/matrix.hpp"

namespace krilu {

enum class ConditionNorm { one, infinity };

struct Condition {
  double value = 0;         // ||A|| ||A^-1||, a lower bound that is nearly always within a factor of 3; infinite where
                            // A is singular: by its pattern, or by a pivot of zero. Rounding mostly makes that pivot
                            // a tiny one: from 1e16 on A may be singular as well
  double norm = 0;          // ||A||, exact
  double inverse_norm = 0;  // the estimate of ||A^-1||
  int solves = 0;           // systems with A or A^T that were solved
  std::string by;           // what solved them, for people: "SuperLU 5.3", "krilu gmres with ilu0"; "the pattern" where
                            // that alone makes A singular
};

/// The condition number of a square matrix by the block 1-norm estimator of Higham and Tisseur (SIAM J. Matrix Anal.
/// Appl. 21, 2000, Algorithm 2.4), on A^-1. A^-1 is applied by a sparse LU factorisation where krilu was built with
/// SuperLU and the factors fit into memory, else by GMRES(300) on the host; what GMRES leaves of a right-hand side
/// makes the bound lower, not wrong. A matrix without rows has 0. Throws krilu::Error where a is no valid square
/// matrix, holds NaN or infinity, or where GMRES, too, is left with more than a hundredth of a right-hand side.
Condition estimate_condition(const CsrView& a, ConditionNorm norm = ConditionNorm::infinity, int threads = 0);

}  // namespace krilu
