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
#include <vector>

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

/// What a rank has, and what its solves have cost so far.
struct RankCost {
  std::string device;
  std::int64_t rows = 0;
  std::int64_t nonzeros = 0;
  std::int64_t halo = 0;  // unknowns of other ranks that a product needs
  std::int64_t neighbours = 0;
  std::int64_t messages = 0;        // sent through the host
  std::int64_t bytes = 0;           // sent so
  double seconds = 0;               // in solve()
  double seconds_in_sums = 0;       // of them, waiting for sums over the ranks through the host
  double seconds_in_exchanges = 0;  // and for neighbours
};

class DistributedSolver {
 public:
  /// Collective, as every call is. The options are those of krilu::Solver, the same on all ranks but for threads and
  /// the GPU's number: give each rank of a machine a GPU of its own, since `auto` is the first one everywhere. `ras`
  /// reaches into the rows of neighbouring ranks; every other preconditioner is made of a rank's own block, and so
  /// depends on the number of ranks. `auto` climbs no ladder here. Throws krilu::Error as
  /// krilu::Solver does, on all ranks at once; rows in its sentences are the rank's own.
  DistributedSolver(Options options, std::shared_ptr<Communicator> ranks);
  ~DistributedSolver();
  DistributedSolver(DistributedSolver&&) noexcept;
  DistributedSolver& operator=(DistributedSolver&&) noexcept;

  /// Takes this rank's rows, which together are a square matrix, and forms the preconditioner.
  void setup(const RowsView& a);
  /// New values in the same pattern.
  void factor(const RowsView& a);
  /// b and x of as many entries as this rank has rows; x holds the initial guess. Status, history and residuals are
  /// those of the whole system, the same on all ranks.
  Result solve(std::span<const double> b, std::span<double> x, Monitor* monitor = nullptr);

  /// Of all ranks, in their order.
  std::vector<RankCost> costs() const;
  std::vector<std::string> explanation() const;
  /// After setup: whether the whole matrix is symmetric, where its values were looked at for `auto`.
  bool symmetric() const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace krilu
