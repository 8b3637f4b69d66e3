// SPDX-License-Identifier: Apache-2.0
// What a rank sends and receives, and what it does with it: y += B x', x' the unknowns of other ranks that this rank's
// rows have entries for, each in a slot of its own.
#pragma once

#include <span>
#include <vector>

#include "krilu/buffer.hpp"
#include "krilu/ranks.hpp"

namespace krilu::sparse {

struct HaloPlan {
  struct Neighbour {
    int rank = 0;
    Index send = 0, sends = 0;  // rows send_rows[send .. send + sends - 1] go there
    Index slot = 0, slots = 0;  // its unknowns come to these slots
    Index slot_there = 0;       // what goes there begins at this slot of it
  };
  std::vector<Neighbour> neighbours;  // ascending; who sends to a rank hears from it too
  Buffer<Index> send_rows;            // of the rank's own block
  Index slots = 0;
  // B, of the rows that are sent or have entries outside the block: rows[k] has entries offsets[k] .. offsets[k+1]-1.
  Buffer<Index> rows;  // ascending
  Buffer<Offset> offsets;
  Buffer<Index> columns;  // slots
  Buffer<double> values;
};

/// A coupling whose plan is known, so that GPUs can follow it by themselves.
class PlannedCoupling : public Coupling {
 public:
  virtual HaloPlan plan() const = 0;
  /// B's, as they are now.
  virtual std::span<const double> values() const = 0;
};

}  // namespace krilu::sparse
