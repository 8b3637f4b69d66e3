// SPDX-License-Identifier: Apache-2.0
// A rank's share of a system: rows read or generated, moved where the partition puts them, with b and x.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "distributed/redistribute.hpp"
#include "krilu/distributed.hpp"
#include "system.hpp"

namespace krilu::app {

struct RankSystem {
  RowsMatrix rows;
  std::vector<double> b, x;
  io::SystemFacts facts;                      // of the whole
  std::string partition;                      // as it was chosen, for people
  std::optional<distributed::Carrier> moved;  // from the rows as they were read
  std::vector<std::int64_t> starts;           // of those
};

/// Collective. partition: auto, blocks, metis. Throws krilu::Error on all ranks.
RankSystem load_rank_system(const std::shared_ptr<Communicator>& ranks, const SystemOptions& options,
                            const std::string& partition, int threads, bool show_steps);

/// Collective: x of all ranks in the order of the matrix, on rank 0; empty elsewhere.
std::vector<double> gather_solution(Communicator& ranks, const RankSystem& system);

}  // namespace krilu::app
