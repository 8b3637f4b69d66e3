// SPDX-License-Identifier: Apache-2.0
// One rank's part of a system of equations: of its Jacobian the square block and what couples it to other ranks, and
// the unknowns that its rows see. Alone, the block is all and x is seen as it is.
// Cost: the pattern twice while it is divided; over ranks 4 bytes an entry of the Jacobian stay.
#pragma once

#include <memory>

#include "distributed/halo.hpp"
#include "distributed/overlap.hpp"
#include "distributed/window.hpp"
#include "krilu/communicator.hpp"
#include "krilu/equations.hpp"
#include "krilu/solver.hpp"

namespace krilu::newton {

class Part {
 public:
  /// Collective. No ranks, or one: alone. Throws krilu::Error on all ranks where the equations' pattern is none.
  Part(const Equations& equations, std::shared_ptr<Communicator> ranks, const Options& linear);

  bool alone() const { return !halo_; }
  Ranks* ranks() const { return ranks_.get(); }
  /// For the solver of the linear systems.
  Team team() const { return alone() ? Team{} : Team{ranks_, halo_, {}, overlap_}; }
  Index first() const { return first_; }
  Index rows() const { return block_.rows; }
  /// Entries of the Jacobian, as the equations' pattern has them.
  Offset entries() const { return entries_; }

  /// The pattern of the rank's own block, without values.
  const CsrMatrix& block() const { return block_; }
  /// Not alone: where the pattern has the block's entries, and those outside of it; in the block's order and the
  /// halo's.
  const Buffer<Offset>& inside() const { return inside_; }
  const Buffer<Offset>& outside() const { return outside_; }
  /// Lets both go.
  void forget_entries() { inside_ = outside_ = {}; }
  /// Whether the preconditioner reaches into rows of other ranks: then it is told of new values.
  bool overlaps() const { return overlap_ != nullptr; }
  /// Collective. The Jacobian's, as the equations' pattern has them.
  void take_overlap(const double* values);
  /// Without what the halo, the window and the overlap hold, which is theirs to send.
  std::size_t bytes() const {
    return block_.bytes() + (inside_.size() + outside_.size() + offsets_.size()) * sizeof(Offset);
  }
  distributed::Halo& halo() const { return *halo_; }
  const std::shared_ptr<distributed::Window>& window() const { return window_; }

  /// The stretch of unknowns that rows see: its first number and its length.
  Index first_seen() const { return window_ ? window_->first() : 0; }
  Index seen() const { return window_ ? window_->size() : block_.cols; }
  /// The equations' pattern, its columns counted from the first that is seen. Made anew.
  CsrMatrix pattern_seen(const Equations& equations) const;

 private:
  void divide(const CsrMatrix& pattern, std::int64_t all, const Options& linear);

  std::shared_ptr<Communicator> ranks_;
  std::shared_ptr<distributed::Halo> halo_;
  std::shared_ptr<distributed::Window> window_;
  std::shared_ptr<distributed::Overlap> overlap_;
  Buffer<Offset> offsets_;  // of the equations' pattern, where there is an overlap
  CsrMatrix block_;
  Buffer<Offset> inside_, outside_;
  Index first_ = 0;
  Offset entries_ = 0;
};

}  // namespace krilu::newton
