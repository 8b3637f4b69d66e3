// SPDX-License-Identifier: Apache-2.0
// Entries of a distributed vector that a rank needs from others, again and again: planned once, then one message each
// way between neighbours. The plan is plain data, which a GPU's kernels can follow as well.
// Cost: the plan is one all_to_all of row numbers; an exchange is 8 bytes an entry and a message a neighbour.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "distributed/ranges.hpp"
#include "krilu/communicator.hpp"
#include "sparse/halo_plan.hpp"

namespace krilu::distributed {

/// What each neighbour is sent, and where what it sends stands: in slots, sorted by the global number of their rows,
/// which sorts them by owner too. Neighbours are so of one another, although one of the two may send nothing.
struct ExchangePlan {
  std::vector<int> neighbours;          // ranks, ascending
  std::vector<Index> send_offsets;      // neighbours + 1
  std::vector<Index> send_rows;         // local rows for each neighbour, ascending
  std::vector<Index> slot_offsets;      // neighbours + 1: the slots that each neighbour fills
  std::vector<Index> remote_slots;      // of each neighbour: the first of its slots that this rank fills
  std::vector<std::int64_t> slot_rows;  // of each slot: its row in the whole matrix

  Index slots() const { return Index(slot_rows.size()); }
};

/// Collective. `needed`: rows of other ranks, ascending and each once. Throws krilu::Error on all ranks where a needed
/// row is nobody's.
ExchangePlan plan_exchange(Communicator& c, const RowRanges& ranges, std::vector<std::int64_t> needed);

/// Neighbours, what is sent and slots; B is left empty.
sparse::HaloPlan halo_plan(const ExchangePlan& e);

/// What an exchange has cost so far on this rank.
struct ExchangeCost {
  std::int64_t exchanges = 0;
  std::int64_t messages = 0;  // sent
  std::int64_t bytes = 0;     // sent
  double seconds_waited = 0;  // in finish()
};

class Exchange {
 public:
  Exchange() = default;
  /// `places`: what start() is given stands at these, one for each of send_rows; empty: at the rows themselves.
  Exchange(std::shared_ptr<Communicator> c, const ExchangePlan& plan, std::vector<Index> places = {});
  Exchange(Exchange&&) = default;  // the messages' buffers stay where they are
  Exchange& operator=(Exchange&&) = default;

  /// Sends entries of x.
  void start(const double* x);
  /// Waits for those of the others; returns them, one a slot.
  const double* finish();

  const ExchangeCost& cost() const { return cost_; }

 private:
  std::shared_ptr<Communicator> communicator_;
  std::vector<Index> places_;
  std::vector<double> out_, slots_;
  std::vector<Communicator::Sent> sends_;
  std::vector<Communicator::Received> receives_;
  ExchangeCost cost_;
};

}  // namespace krilu::distributed
