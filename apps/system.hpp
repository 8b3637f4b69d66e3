// SPDX-License-Identifier: Apache-2.0
// The options that subcommands share, and the system that they name: matrix, right-hand side, initial guess.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "io/report.hpp"
#include "krilu/io.hpp"
#include "krilu/solver.hpp"

namespace krilu::app {

struct SystemOptions {
  std::string matrix, rhs, x0;
};

struct System {
  CsrMatrix a;
  std::vector<double> b, x;
  io::SystemFacts facts;
};

void add_system_options(CLI::App& command, SystemOptions& options);
/// All of Options but the preconditioner, which `solve` takes one of and `compare` several.
void add_solver_options(CLI::App& command, Options& options);

/// Reads or generates what the options name. Throws krilu::Error.
System load_system(const SystemOptions& options, int threads, bool show_steps);

/// Exit status by the command's contract: 0 converged, 3 not.
int exit_status(Status status);

}  // namespace krilu::app
