// SPDX-License-Identifier: Apache-2.0
// The options that subcommands share, and the system that they name: matrix, right-hand side, initial guess.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
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

/// Of options that name a file: an empty name, as of a shell's variable that is not set, is refused.
CLI::Validator a_name();

void add_system_options(CLI::App& command, SystemOptions& options);
/// All of Options but the preconditioner, which `solve` takes one of and `compare` several.
void add_solver_options(CLI::App& command, Options& options);

/// The right-hand side's name: what was asked for, the file beside the matrix, or random:1.
std::string right_hand_side_of(const SystemOptions& options);
/// As reports have it: of a file without its folders.
std::string file_name_of(const std::string& rhs);
/// Entries first .. first + count - 1 of that right-hand side, `rows` in all; of a vector in a file. Throw
/// krilu::Error.
std::vector<double> make_right_hand_side(const std::string& name, std::int64_t rows, std::size_t first,
                                         std::size_t count, int threads);
std::vector<double> part_of_file(const std::string& path, std::int64_t rows, std::size_t first, std::size_t count,
                                 const char* what, int threads);

/// Reads or generates what the options name. Throws krilu::Error.
System load_system(const SystemOptions& options, int threads, bool show_steps);

/// Before any work: throws krilu::Error where one of the outputs could not be written, is one of the inputs, or is
/// named twice. "" is none, "-" standard output.
void require_outputs(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

/// Exit status by the command's contract: 0 converged, 3 not.
int exit_status(Status status);

}  // namespace krilu::app
