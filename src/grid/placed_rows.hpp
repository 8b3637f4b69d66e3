// SPDX-License-Identifier: Apache-2.0
// The rows of a grid's equations where Newton's method evaluates them: in the host's memory, or in a GPU's, to which
// what they show is brought.
#pragma once

#include <memory>
#include <string>

#include "grid/poisson.hpp"
#include "krilu/equations.hpp"

namespace krilu::grid {

class PlacedRows {
 public:
  virtual ~PlacedRows() = default;
  virtual const Equations& equations() const = 0;
  /// In place of those before: rows of the same pattern, all of them, their views in the host's memory, as what they
  /// show is now.
  virtual void show(const PoissonRows& rows) = 0;
};

/// Rows first .. first + count - 1, of whole nodes.
struct Stretch {
  Index first = 0, count = 0;
};
/// Those of a rank: whole lines of nodes, about as many on each.
Stretch stretch_of(const PoissonRows& rows, int rank, int ranks);

/// On the GPU that `device` names; "auto": on one where there is one; else on the host.
std::unique_ptr<PlacedRows> place_rows(const PoissonRows& rows, const Stretch& stretch, const std::string& device);

/// On GPU `number`. Throws krilu::Error where there is none.
std::unique_ptr<PlacedRows> place_rows_on_gpu(const PoissonRows& rows, const Stretch& stretch, int number);

}  // namespace krilu::grid
