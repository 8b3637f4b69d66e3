// SPDX-License-Identifier: Apache-2.0
// The unknowns that a rank's rows see, as one stretch of the whole vector: from the lowest to the highest that they
// name, so that rows find them under their own numbers. Its own stand in it; those of other ranks are the halo of its
// Jacobian and travel as that does, to be added where zeros stand. What lies between and nobody names stays zero.
// Cost: an exchange, 8 bytes an unknown of the halo each way.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "distributed/halo.hpp"

namespace krilu::distributed {

class Window final : public sparse::PlannedCoupling {
 public:
  Window(std::shared_ptr<Communicator> c, const Halo& halo);

  Index first() const { return first_; }
  Index size() const { return size_; }
  /// Where the rank's own begin in it.
  Index own() const { return own_; }

  // Coupling, of places in the window: y += what stands there on the ranks that own them.
  std::span<const Index> rows() const override { return places_; }
  void start(const double* x) override { exchange_.start(x); }
  void finish(double* y) override;
  sparse::HaloPlan plan() const override;
  std::span<const double> values() const override { return ones_; }

 private:
  sparse::HaloPlan exchanged_;   // who sends what; B is not used
  std::vector<Index> slots_;     // the place of each
  std::vector<Index> places_;    // sent or received, ascending
  std::vector<Index> received_;  // of each slot: its place in places_
  std::vector<double> ones_;
  Exchange exchange_;
  Index first_ = 0, size_ = 0, own_ = 0;
};

}  // namespace krilu::distributed
