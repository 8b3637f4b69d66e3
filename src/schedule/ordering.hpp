// SPDX-License-Identifier: Apache-2.0
// Orderings: in which sequence a factorisation eliminates the rows. Integers only. Each takes the adjacency of a square
// matrix (the pattern of A + A^T without its diagonal, see sparse/csr.hpp) and returns `order`, where order[k] is the
// row that stands at place k.
#pragma once

#include <string>
#include <vector>

#include "krilu/matrix.hpp"

namespace krilu::schedule {

using Order = std::vector<Index>;

/// rank[order[k]] = k.
Order inverse(const Order& order);

/// Reverse Cuthill-McKee, each component from a pseudo-peripheral row [George and Liu 1979]. Keeps neighbours near:
/// a small bandwidth, long narrow levels.
Order reverse_cuthill_mckee(const CsrView& adjacency);

/// Greedy colouring in the given row order; colours one after another, natural order within. Few levels (one a colour),
/// at the price of more iterations.
Order multicolour(const CsrView& adjacency);
/// The colours themselves: colour[row] < count, and no two neighbours share one.
std::vector<Index> colour_greedily(const CsrView& adjacency, Index& count);

/// Of columns: none of a colour stand in the same row, so that one difference of a function gives all their entries of
/// its Jacobian. Source: Curtis, Powell, Reid, On the estimation of sparse Jacobian matrices (1974).
std::vector<Index> colour_columns(const CsrView& pattern, Index& count);

/// Rows grouped by the parts of a METIS k-way partition, natural order within a part. parts 0: one per 512 rows.
Order metis_parts(const CsrView& adjacency, Index parts = 0);
/// The partition itself: part[row] < parts.
std::vector<Index> partition(const CsrView& adjacency, Index parts);

/// Blocks of up to `rows` rows (0: as blocks.hpp tunes them) in colours, natural order within a block: blocks.hpp, on
/// the host. Couplings are a's values where adjacency is a itself (its pattern being symmetric); else all neighbours
/// count alike.
Order block_multicolour(const CsrView& a, const CsrView& adjacency, Index rows = 0);

/// By name: natural (an empty order), rcm, multicolour, block-multicolour, block-multicolour:ROWS, metis, metis:PARTS.
/// a is the matrix itself, or the adjacency again. Throws krilu::Error for another name.
Order order_by_name(const std::string& name, const CsrView& a, const CsrView& adjacency);
/// Whether the name is one of the block orderings; their rows, 0 where the name leaves them open.
bool is_block_ordering(const std::string& name);
Index block_rows_of(const std::string& name);
/// The names above, for help texts and suggestions.
const std::vector<std::string>& ordering_names();
void require_ordering_name(const std::string& name);

}  // namespace krilu::schedule
