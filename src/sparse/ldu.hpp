// SPDX-License-Identifier: Apache-2.0
// LDU: OpenFOAM's storage by faces. Face f joins cells owner[f] < neighbour[f] and holds two coefficients: lower[f] is
// a_(neighbour, owner), upper[f] is a_(owner, neighbour); a symmetric matrix holds one of them. 16 or 24 bytes a face.
// The pattern is always symmetric.
#pragma once

#include "krilu/matrix.hpp"

namespace krilu::sparse {

struct Ldu {
  Index cells = 0;
  Buffer<Index> owner, neighbour;  // faces, sorted by owner and then neighbour
  Buffer<double> diagonal, upper;
  Buffer<double> lower;  // empty: symmetric, lower is upper

  Index faces() const { return Index(owner.size()); }
  bool symmetric() const { return lower.empty(); }
  const Buffer<double>& lower_or_upper() const { return symmetric() ? upper : lower; }
};

/// Throws krilu::Error, naming the row, where an entry has no partner across the diagonal.
Ldu to_ldu(const CsrView& a);
/// Faces in any sequence. Every diagonal is stored. Throws krilu::Error for a face whose cells are out of range or not
/// in ascending order, and for two faces between the same cells.
CsrMatrix to_csr(const Ldu& a);
/// y = A x by a loop over faces, one thread: two faces of one cell may not be added at the same time.
void multiply(const Ldu& a, const double* x, double* y);

}  // namespace krilu::sparse
