// SPDX-License-Identifier: Apache-2.0
// Estimates of a matrix's condition number.
#pragma once

#include <string>

#include "krilu/matrix.hpp"

namespace krilu {

enum class ConditionNorm { one, infinity };

struct Condition {
  double value = 0;         // ||A|| ||A^-1||, a lower bound that is nearly always within a factor of 3; infinite where
                            // A is singular to working precision
  double norm = 0;          // ||A||, exact
  double inverse_norm = 0;  // the estimate of ||A^-1||
  int solves = 0;           // systems with A or A^T that were solved
  std::string by;           // what solved them, for people
};

/// The condition number of a square matrix by the block 1-norm estimator of Higham and Tisseur (SIAM J. Matrix Anal.
/// Appl. 21, 2000, Algorithm 2.4), on A^-1. Throws krilu::Error where a is no valid square matrix, holds NaN or
/// infinity, or where neither a direct factorisation nor an iteration solves its systems well enough.
Condition estimate_condition(const CsrView& a, ConditionNorm norm = ConditionNorm::infinity, int threads = 0);

}  // namespace krilu
