// SPDX-License-Identifier: Apache-2.0
// The subcommands: each registers itself and returns what runs it. What runs it returns the exit status.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace krilu::app {

using Run = std::function<int()>;

Run add_solve(CLI::App& app);
Run add_info(CLI::App& app);
Run add_compare(CLI::App& app);
Run add_grid(CLI::App& app);
Run add_bench(CLI::App& app);

}  // namespace krilu::app
