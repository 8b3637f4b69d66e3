// SPDX-License-Identifier: Apache-2.0
// ILUT(p, tol) [Saad 1994]: Gaussian elimination row by row (IKJ) that drops by value. With ||a_i|| the 2-norm of row i
// of A:
//   - a multiplier l_ik = w_k / u_kk with |l_ik| <= tol is dropped before it eliminates anything;
//   - at the row's end, entries of U with |u_ij| <= tol ||a_i|| are dropped;
//   - then the p entries of largest magnitude stay in each part, multipliers in L; of equal ones the smaller column.
// The pivot stays in any case. The test of multipliers has no norm in it (Saad's does), so that scaling the whole
// matrix drops nothing else; SPARSKIT and Eigen have it so too, and the three rules together are Eigen's
// IncompleteLUT's, whose U holds one entry less. With tol = 0 and p = n this is LU without pivoting. Cost for n rows:
// at most n (2p + 1) entries, beside them 24 n bytes while it works and 20 bytes a thread for each row of the largest
// block.
#pragma once

#include <span>

#include "exec/host.hpp"
#include "krilu/matrix.hpp"

namespace krilu::precond {

struct IlutOptions {
  int most = 10;            // p: entries in each of a row's two parts, beside the pivot
  double tolerance = 0.01;  // tol
  double shift = 0;         // |a_ii| grows by shift times the row's largest entry, in the sign of a_ii (plus for 0)
};

/// The factors of one matrix as elimination.hpp has them: M = (I + L) U, the multipliers L, and U with its pivots.
struct IlutFactors {
  CsrMatrix factors;      // L and U; columns ascending, and each row has its pivot
  Index zero_pivot = -1;  // first row (0-based) whose pivot cannot be divided by; -1: none
};

/// ILUT of a square matrix (columns ascending, as require_valid has it) whose diagonal blocks are factored on their
/// own, by as many threads as there are blocks. blocks: the first row of each block, then a.rows; blocks may be empty.
/// A diagonal entry that A has not counts as zero. A pivot of zero is replaced by 1; a row that meets NaN or infinity
/// becomes a row of the identity; the first of all these is reported. Throws krilu::Error where options or blocks make
/// no sense, where an entry of A couples two blocks, and where the factors would have 2^31 entries or more.
IlutFactors ilut(const exec::Host& host, const CsrView& a, std::span<const Index> blocks, const IlutOptions& options);

}  // namespace krilu::precond
