// SPDX-License-Identifier: Apache-2.0
// Sparse matrices as callers hand them over: compressed sparse rows (CSR), 0-based, columns ascending within a row and
// without duplicates. A CsrView borrows three arrays; a CsrMatrix owns them.
#pragma once

#include <cstddef>

#include "krilu/buffer.hpp"
#include "krilu/types.hpp"

namespace krilu {

/// Borrowed CSR. Row i holds entries offsets[i] .. offsets[i+1]-1 of `columns` and `values`.
struct CsrView {
  Index rows = 0;
  Index cols = 0;
  const Offset* offsets = nullptr;  // rows + 1
  const Index* columns = nullptr;   // nnz
  const double* values = nullptr;   // nnz; may be null where only the pattern is used

  Offset nnz() const { return offsets ? offsets[rows] : 0; }
};

/// Owning CSR.
struct CsrMatrix {
  Index rows = 0;
  Index cols = 0;
  Buffer<Offset> offsets;
  Buffer<Index> columns;
  Buffer<double> values;

  Offset nnz() const { return offsets.empty() ? 0 : offsets[static_cast<std::size_t>(rows)]; }
  CsrView view() const { return {rows, cols, offsets.data(), columns.data(), values.data()}; }
  operator CsrView() const { return view(); }
  std::size_t bytes() const {
    return offsets.size() * sizeof(Offset) + columns.size() * sizeof(Index) + values.size() * sizeof(double);
  }
};

/// Throws krilu::Error, naming the row, unless the view is a square CSR matrix as described above.
void require_valid(const CsrView& a);

}  // namespace krilu
