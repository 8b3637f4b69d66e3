// SPDX-License-Identifier: Apache-2.0
// krilu solve, on one rank (solve.cpp) and on several (solve_ranks.cpp): what it is asked, and what it reports.
#pragma once

#include <string>
#include <vector>

#include "io/report.hpp"
#include "krilu/distributed.hpp"
#include "krilu/solver.hpp"
#include "system.hpp"

namespace krilu::app {

struct SolveOptions {
  SystemOptions system;
  Options solver;
  std::string output, json, plot;
  int ranks = 0;  // in this process; 0: as the device says, or one
  std::string partition = "auto";
  bool explain = false, quiet = false;
};

struct Answer {
  io::SystemFacts facts;
  std::vector<double> x;  // empty where it was not asked for
  Result result;
  std::vector<RankCost> ranks;  // none where there was one alone
};

/// Throws krilu::Error where an output could not be written, before any work.
void require_outputs(const SolveOptions& options);
/// Prints the table and writes the files that were asked for. Returns the exit status; throws krilu::Error for a file
/// that cannot be written.
int report(const SolveOptions& options, const Answer& answer);

/// Whether several ranks are to solve: started by mpirun, or asked for.
bool wants_ranks(const SolveOptions& options);
int run_over_ranks(const SolveOptions& options);

}  // namespace krilu::app
