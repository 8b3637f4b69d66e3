// SPDX-License-Identifier: Apache-2.0
// Subdomains for block ILU and restricted additive Schwarz: a matrix's rows in even parts that cut few couplings, each
// extended by layers of neighbours. Paper: Liu, Chen et al., parallel triangular solvers on GPU (about 2012), section 3
// (METIS parts, extended along the graph), after Cai and Sarkis (1999); lattices are cut by coordinates. Integers only.
//
// Cost: the partition; of a lattice a few passes over the rows for each doubling of the parts, shared by the threads
// but for the first few doublings; of other graphs, serial, from 0.3 (512 parts) to 2 (8192 parts) microseconds a row,
// up to three times that where rows stand in random order. Then O(rows + couplings) of the extended parts, shared by
// the threads, and one array of all rows a thread.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/host.hpp"
#include "krilu/matrix.hpp"
#include "schedule/blocks.hpp"
#include "schedule/ordering.hpp"

namespace krilu::schedule {

/// A matrix's rows in parts, each extended by `overlap` layers of graph neighbours. Local rows stand part after part;
/// within a part ascending in the caller's rows, or in the order that was given. No part is empty.
struct Subdomains {
  std::vector<Index> offsets;       // parts + 1: local rows of each part
  std::vector<Index> row;           // of each local row: the caller's
  std::vector<std::uint8_t> owned;  // 1 where the part owns the row; each of the caller's rows is owned once
  Index parts() const { return offsets.empty() ? 0 : Index(offsets.size()) - 1; }
};

/// `adjacency`: pattern of A + A^T without its diagonal. `order` (empty: natural): local rows of a part stand in this
/// order instead. parts <= 1: one part; parts >= rows: one row a part; in between up to `parts` of them: from 20 000
/// rows on by partition_of_lattice where they are those of a lattice, or by partition_by_clusters where there are 128
/// parts and 64 rows a part, else by partition(). The same for any number of threads. Throws krilu::Error for a
/// negative overlap, an order of another length, and where the parts together would have 2^31 rows.
Subdomains subdomains(const exec::Host& host, const CsrView& adjacency, Index parts, int overlap,
                      const Order& order = {});

/// part[row] < parts, none of which has a row more than another, but for what does not divide: the lattice is cut in
/// two across its longest direction, again and again, each time between two rows of a plane if it must be. parts is at
/// least 1 and the sides are below 2^21.
std::vector<Index> partition_of_lattice(const exec::Host& host, const Lattice& lattice, Index parts);

/// part[row] < parts, as partition() gives it, in half to a quarter of its time where parts are many: neighbours are
/// matched in up to four rounds, METIS bisects the graph of the clusters recursively, and on the way back rows on the
/// cuts are moved one by one, towards parts of at most 1.03 times the mean: seen up to 1.04 with 64 rows a part and
/// more, while smaller parts may be far larger, or empty. The cut is METIS's or less on lattices in their own row
/// order; elsewhere up to 17 % more, and up to 30 % more where rows stand in random order and parts are few.
std::vector<Index> partition_by_clusters(const CsrView& adjacency, Index parts);

}  // namespace krilu::schedule
