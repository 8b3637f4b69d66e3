// SPDX-License-Identifier: Apache-2.0
// Coordinates (COO): one (row, column, value) an entry, in any sequence. What assembly loops write; 16 bytes an entry.
#pragma once

#include "exec/host.hpp"
#include "krilu/matrix.hpp"

namespace krilu::sparse {

struct Coo {
  Index rows = 0, cols = 0;
  Buffer<Index> row, column;
  Buffer<double> value;

  std::size_t entries() const { return row.size(); }
};

Coo to_coo(const CsrView& a);
/// Entries of the same place are added, in their sequence. Throws krilu::Error for an entry outside of the matrix.
CsrMatrix to_csr(const Coo& a);
/// y = A x, one thread: entries of one row may stand anywhere.
void multiply(const Coo& a, const double* x, double* y);

}  // namespace krilu::sparse
