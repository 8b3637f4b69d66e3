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

/// Rows that follow one another in `order` and have the same columns, their own among them, are the unknowns of a node:
/// velocities and pressure at a point, say. Offsets into the order, single rows included; no node has more than
/// sparse::most_node_rows.
std::vector<Index> nodes_of(const CsrView& a, const Order& order);

/// What a solver stores its rows in: node after node (RowOrder::node) where most rows are nodes', which spares reading
/// each column once for every row; else by_levels. Levels of nodes are those of the graph of nodes.
sparse::RowOrder for_sweeps(const exec::Host& host, const CsrView& a, const CsrView& adjacency, const Order& order);
/// The same for products alone: nodes in the given order, else by_windows.
sparse::RowOrder for_products(const CsrView& a, const Order& order);

}  // namespace krilu::schedule
