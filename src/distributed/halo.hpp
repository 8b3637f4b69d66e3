// SPDX-License-Identifier: Apache-2.0
// A rank's rows as a square block of its own and what couples them to other ranks: y = A x is block x + B x', x' being
// the entries of x that neighbours send (the halo). B keeps only rows that have such entries.
// Cost: analysis O(nonzeros), O(k log k) for k entries outside the block, one all_to_all; a product 8 bytes a halo
// entry each way and 12 a nonzero of B, beside what the block costs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "distributed/exchange.hpp"
#include "distributed/ranges.hpp"
#include "exec/host.hpp"
#include "krilu/communicator.hpp"
#include "krilu/distributed.hpp"
#include "sparse/halo_plan.hpp"

namespace krilu::distributed {

/// Everything about the coupling as plain data.
struct Outside {
  ExchangePlan exchange;
  std::vector<Index> rows;         // local rows that are sent or have entries outside the block, ascending
  std::vector<Index> send_places;  // exchange.send_rows as places in `rows`
  // B: a row for each of `rows`, columns are slots.
  Buffer<Offset> offsets;
  Buffer<Index> columns;
  Buffer<double> values;
};

class Halo final : public sparse::PlannedCoupling {
 public:
  /// Collective: divides this rank's rows of the matrix. Throws krilu::Error on all ranks where the rows of any are not
  /// as RowsView says, where ranges do not fit together (gather_ranges), and where a column is nobody's row.
  Halo(std::shared_ptr<Communicator> c, const RowsView& a, const exec::Host& host, Gaps gaps = Gaps::refused);

  /// The square block: local rows and columns, values included. Once: its memory goes with it.
  CsrMatrix take_block() { return std::move(block_); }
  const CsrMatrix& block() const { return block_; }

  /// Collective: new values of the same pattern, those of the block (in its order) to `block_values`. Throws
  /// krilu::Error on all ranks where the pattern of any is another one.
  void refresh(const RowsView& a, double* block_values);
  /// New values outside the block alone, as many as there are: in the order of rows, and of columns within. Throws
  /// krilu::Error, on this rank, where one is not finite.
  void take_outside(std::span<const double> values);

  // Coupling
  std::span<const Index> rows() const override { return plan_.rows; }
  bool symmetric() const override { return symmetric_; }
  void start(const double* x) override { exchange_.start(x); }
  void finish(double* y) override;

  sparse::HaloPlan plan() const override;
  std::span<const double> values() const override { return plan_.values; }

  const RowRanges& ranges() const { return ranges_; }
  const Outside& outside() const { return plan_; }
  Offset block_nnz() const { return block_nnz_; }
  const ExchangeCost& cost() const { return exchange_.cost(); }

 private:
  std::uint64_t pattern_hash(const RowsView& a) const;
  /// Entries outside the block before local row i.
  Offset outside_before(Index i) const;
  void copy_values(const RowsView& a, double* block_values);
  void require_finite() const;
  bool find_symmetry(const RowsView& a) const;

  std::shared_ptr<Communicator> communicator_;
  exec::Host host_;
  RowRanges ranges_;
  Outside plan_;
  Exchange exchange_;
  CsrMatrix block_;
  Offset block_nnz_ = 0;
  std::uint64_t hash_ = 0;
  bool symmetric_ = false;  // of B and those of the others, when it was analysed
};

}  // namespace krilu::distributed
