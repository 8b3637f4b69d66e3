// SPDX-License-Identifier: Apache-2.0
// Levels: sets of rows of a triangular matrix that depend only on earlier levels, so that the rows of one can be worked
// on at the same time. Paper: Wang and Liu, GPU-based parallel DILU preconditioning (2022), Algorithm 2 (in rounds) and
// Algorithm 7 (without global synchronisation). Algorithm 7 reads each nonzero once and is the default; Algorithm 2
// looks at every uncoloured row in each round.
#pragma once

#include <span>
#include <vector>

#include "exec/host.hpp"
#include "krilu/matrix.hpp"
#include "schedule/ordering.hpp"

namespace krilu::schedule {

enum class Triangle { lower, upper };

/// The triangle of a whose levels are wanted: strictly below the diagonal, or strictly above. Entries of the other
/// triangle are passed over. An order (and its inverse) makes it the triangle of the reordered matrix.
struct TriangleOf {
  CsrView a;
  Triangle triangle = Triangle::lower;
  const Order* order = nullptr;  // null: natural
  const Order* rank = nullptr;
};

/// level[row], by Algorithm 7: each row waits for the rows it depends on.
std::vector<Index> levels_sync_free(const exec::Host& host, const TriangleOf& t);
/// level[row], by Algorithm 2: round after round, rows whose dependencies all have a level get the next one.
std::vector<Index> levels_by_rounds(const exec::Host& host, const TriangleOf& t);

/// Rows sorted by level: rows[offsets[l]] .. rows[offsets[l+1]-1] form level l.
struct LevelOrder {
  Order rows;
  std::vector<Index> offsets;
  Index count() const { return Index(offsets.size()) - 1; }
};
/// Within a level, rows stand in `sequence` (null: natural).
LevelOrder sort_by_level(const std::vector<Index>& level, const Order* sequence = nullptr);

}  // namespace krilu::schedule
