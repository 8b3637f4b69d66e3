// SPDX-License-Identifier: Apache-2.0
// The 1-norm of a matrix B that is known by its products only, B times a block of vectors and B^T times a block:
// Higham and Tisseur, A block algorithm for matrix 1-norm estimation, SIAM J. Matrix Anal. Appl. 21 (2000),
// Algorithm 2.4. A power method on the unit ball of the 1-norm, whose corners are the unit vectors: the signs of B x
// point to the corner where ||B x||_1 grows fastest. Two columns at once give an estimate that is rarely below a third
// of the norm and mostly the norm itself. Cost: usually 8 products, at most 22; four vectors of n
// numbers.
#pragma once

#include <functional>

#include "krilu/types.hpp"

namespace krilu::solver {

/// Replaces each of `columns` vectors of n numbers, which stand one behind the other, by its product.
using BlockProduct = std::function<void(double* block, Index columns)>;

struct BlockNorm {
  double value = 0;  // a lower bound of ||B||_1; infinity where a product holds infinity or NaN
  int products = 0;  // vectors that were multiplied, by B or by B^T
};

/// For n up to 8 the norm itself. Random signs are the same in every run.
BlockNorm estimate_norm1(Index n, const BlockProduct& multiply, const BlockProduct& multiply_transposed);

}  // namespace krilu::solver
