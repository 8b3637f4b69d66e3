// SPDX-License-Identifier: Apache-2.0
// How a command comes to its ranks: processes that mpirun started, threads of this process, or GPUs of this machine.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "krilu/communicator.hpp"
#include "krilu/solver.hpp"

namespace krilu::app {

/// Whether several ranks are to work: started by mpirun, or asked for by --ranks (0: not), or by --device cuda:A-B.
bool wants_ranks(int ranks, const std::string& device);

using RankRun = std::function<int(const std::shared_ptr<Communicator>& ranks)>;
/// run() on every rank; the exit status of rank 0. What is thrown on one ends all, with its sentence.
int over_ranks(int asked, const std::string& device, const RankRun& run);

/// Collective. What was asked for as this rank has it: a GPU of its own, and its share of the machine's cores.
Options options_here(const Options& asked, Ranks& ranks);

}  // namespace krilu::app
