// SPDX-License-Identifier: Apache-2.0
// A rank's rows with layers of its neighbours' rows beside: the matrix that restricted additive Schwarz factors on each
// rank, and the exchange that brings r to the rows beside.
// Paper: Cai and Sarkis, A restricted additive Schwarz preconditioner for general sparse linear systems (1999).
// Cost: a question and an answer a layer; then an exchange of 8 bytes a row beside and application, and of 8 bytes an
// entry of those rows for new values. Memory: the rows beside, and 8 bytes a nonzero while it is made.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "distributed/exchange.hpp"
#include "distributed/ranges.hpp"
#include "krilu/communicator.hpp"
#include "krilu/distributed.hpp"
#include "sparse/halo_plan.hpp"

namespace krilu::distributed {

class Overlap final : public RowsBeside {
 public:
  /// Collective. `depth` layers (0 or more) of the graph of A + A^T beyond this rank's rows. Throws krilu::Error on all
  /// ranks for a negative depth, another one on another rank, columns that are nobody's rows, and where the extended
  /// matrix would have 2^31 rows or entries.
  Overlap(std::shared_ptr<Communicator> c, const RowsView& a, const RowRanges& ranges, int depth);

  /// Square: this rank's rows first, in their order, then the rows beside by their global number; columns likewise,
  /// those that are neither left out.
  CsrView matrix() const override { return matrix_; }
  Index own() const { return own_; }

  /// Collective: new values of the same pattern, of which `columns` are not looked at. The caller sees to it that the
  /// pattern is the same (Halo::refresh).
  void refresh(const RowsView& a);

  std::shared_ptr<Coupling> coupling() override { return boundary_; }

  const ExchangePlan& plan() const { return plan_; }
  const ExchangeCost& cost() const { return boundary_->cost(); }

 private:
  /// Slot k comes to row own() + k.
  class Boundary final : public sparse::PlannedCoupling {
   public:
    Boundary(std::shared_ptr<Communicator> c, const ExchangePlan& plan, Index own);
    std::span<const Index> rows() const override { return plan_.rows; }
    void start(const double* x) override { exchange_.start(x); }
    void finish(double* y) override;
    sparse::HaloPlan plan() const override { return plan_; }
    std::span<const double> values() const override { return plan_.values; }
    const ExchangeCost& cost() const { return exchange_.cost(); }

   private:
    sparse::HaloPlan plan_;
    Exchange exchange_;
  };

  std::shared_ptr<Communicator> communicator_;
  ExchangePlan plan_;
  std::shared_ptr<Boundary> boundary_;
  CsrMatrix matrix_;
  Index own_ = 0;
  // Values go to these places among the matrix's, or to none (-1), in the order in which they stand in this rank's rows
  // and in which the neighbours send them.
  Buffer<Offset> place_of_own_, place_of_received_;
  std::vector<std::size_t> sent_entries_, received_entries_;  // to and from each neighbour
};

}  // namespace krilu::distributed
