// SPDX-License-Identifier: Apache-2.0
// Which rank should have which rows: blocks of consecutive rows of even work, or METIS parts that cut few couplings.
// Cost: blocks, a few numbers from each rank. METIS: the pattern of all rows on rank 0, 12 bytes a nonzero there, and
// METIS's own time, about a microsecond a row.
#pragma once

#include <cstdint>
#include <vector>

#include "distributed/ranges.hpp"
#include "krilu/communicator.hpp"
#include "krilu/distributed.hpp"

namespace krilu::distributed {

/// Collective: starts (one more than ranks) of blocks of consecutive rows with about as many entries each, a row
/// counting as one entry more. All rows must be a rank's.
std::vector<std::int64_t> balanced_starts(Ranks& ranks, const RowsView& a);

/// Collective: the rank that each of this rank's rows should go to, by METIS's k-way cut of the graph of A + A^T.
/// Throws krilu::Error on all ranks where there are 2^31 - 1 rows or more, or that many entries: METIS is asked on one
/// rank.
std::vector<int> metis_ranks(Communicator& c, const RowsView& a);

}  // namespace krilu::distributed
