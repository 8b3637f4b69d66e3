// SPDX-License-Identifier: Apache-2.0
// The row order that the solver's storage is built in (sparse::RowOrder): an ordering of the rows, then its levels one
// after another. Sorting by level changes no factorisation and no triangular solve, since rows that depend on each
// other keep their sequence; it only makes rows that may be worked on together stand together.
#pragma once

#include "exec/host.hpp"
#include "schedule/ordering.hpp"
#include "sparse/split.hpp"

namespace krilu::schedule {

/// Rows by level of the graph `adjacency` under `order` (empty: natural), so that both triangles may be swept level by
/// level, the upper one backwards; within a level, rows of equal length stand together.
sparse::RowOrder by_levels(const exec::Host& host, const CsrView& a, const CsrView& adjacency, const Order& order);

/// The same for a block diagonal matrix in natural order, part by part and by levels within each: `parts` (offsets,
/// parts
/// + 1) cuts its rows into ranges that share no entry.
sparse::RowOrder by_parts(const exec::Host& host, const CsrView& a, const CsrView& adjacency,
                          const std::vector<Index>& parts);

/// For operators without a triangular solve: the given order, rows of equal length together within short windows.
sparse::RowOrder by_windows(const CsrView& a, const Order& order);

}  // namespace krilu::schedule
