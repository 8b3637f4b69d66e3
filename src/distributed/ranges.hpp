// SPDX-License-Identifier: Apache-2.0
// Who owns which rows: a range of consecutive ones each, in the order of ranks. Rows and columns of the whole matrix
// are counted in 64 bits, those of one rank in 32.
#pragma once

#include <cstdint>
#include <vector>

#include "krilu/distributed.hpp"
#include "krilu/ranks.hpp"

namespace krilu::distributed {

struct RowRanges {
  std::int64_t all = 0;                  // rows of the whole matrix
  std::vector<std::int64_t> first, end;  // of each rank; equal where it has no rows

  int ranks() const { return int(first.size()); }
  std::int64_t count(int rank) const { return end[std::size_t(rank)] - first[std::size_t(rank)]; }
  bool has(int rank, std::int64_t row) const { return row >= first[std::size_t(rank)] && row < end[std::size_t(rank)]; }
  /// The rank that owns the row, or -1. O(log ranks).
  int owner(std::int64_t row) const;
  bool operator==(const RowRanges&) const = default;
};

/// Whether rows may be nobody's. A matrix that is only looked at in parts may have such rows; a system that is solved
/// may not.
enum class Gaps { refused, allowed };

/// Collective: the ranges that the ranks say they have. `first` counts for nothing where a rank has no rows. Throws
/// krilu::Error on all ranks where they name different sizes of the whole matrix, or ranges that overlap, stand in
/// another order than the ranks, leave the matrix, or (Gaps::refused) do not cover it.
RowRanges gather_ranges(Ranks& ranks, std::int64_t all, std::int64_t first, Index count, Gaps gaps = Gaps::refused);

/// The ranges that begin at `starts` (one more than ranks): rank r has starts[r] .. starts[r + 1] - 1.
RowRanges ranges_of(const std::vector<std::int64_t>& starts);

/// Throws krilu::Error, naming the row (from 1), unless the view is as RowsView says: offsets that rise from 0, columns
/// from 0 to all - 1 that ascend within a row. No collective call.
void require_valid(const RowsView& a);

}  // namespace krilu::distributed
