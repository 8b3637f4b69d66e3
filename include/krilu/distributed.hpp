// SPDX-License-Identifier: Apache-2.0
// One system over many ranks: each has consecutive rows of the matrix and the entries of b and x that go with them.
//
//   krilu::DistributedSolver solver(options, communicator);
//   solver.setup(rows);                  // this rank's; calls are collective
//   krilu::Result r = solver.solve(b, x);
//
// Methods are krilu::Solver's own. What is distributed is the product (neighbours' unknowns travel while a rank's own
// block is worked on), sums, and the preconditioner: each rank's is made of its own block, or, with overlap, of rows of
// its neighbours beside.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "krilu/communicator.hpp"
#include "krilu/matrix.hpp"
#include "krilu/solver.hpp"

namespace krilu {

/// Borrowed: rows first .. first + count - 1 of a square matrix of `all` rows, as CSR. Columns are those of the whole
/// matrix, ascending within a row and without duplicates.
struct RowsView {
  std::int64_t all = 0;
  std::int64_t first = 0;
  Index count = 0;
  const Offset* offsets = nullptr;        // count + 1
  const std::int64_t* columns = nullptr;  // nnz
  const double* values = nullptr;         // nnz

  Offset nnz() const { return offsets ? offsets[count] : 0; }
};

/// Owning.
struct RowsMatrix {
  std::int64_t all = 0;
  std::int64_t first = 0;
  Index count = 0;
  Buffer<Offset> offsets;
  Buffer<std::int64_t> columns;
  Buffer<double> values;

  Offset nnz() const { return offsets.empty() ? 0 : offsets[static_cast<std::size_t>(count)]; }
  RowsView view() const { return {all, first, count, offsets.data(), columns.data(), values.data()}; }
  operator RowsView() const { return view(); }
};

}  // namespace krilu
