// SPDX-License-Identifier: Apache-2.0
// ELL: all rows padded to the longest, entries stored column by column, so that consecutive rows stand together. For
// rows of nearly equal length; 12 bytes an entry, padding included. Padding points at the row's own place with value 0.
#pragma once

#include "exec/host.hpp"
#include "krilu/matrix.hpp"

namespace krilu::sparse {

struct Ell {
  Index rows = 0, cols = 0, width = 0;
  Buffer<Index> column;  // width * rows: entry k of row i at k * rows + i
  Buffer<double> value;
};

/// Throws krilu::Error where the padded entries would not fit 32-bit positions.
Ell to_ell(const CsrView& a);
/// Padding is left out; stored zeros of the matrix itself go with it.
CsrMatrix to_csr(const Ell& a);
void multiply(const exec::Host& host, const Ell& a, const double* x, double* y);

}  // namespace krilu::sparse
