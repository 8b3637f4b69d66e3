// SPDX-License-Identifier: Apache-2.0
// What all pictures ask of gnuplot: texts and files by name in its scripts, and a run of one.
#pragma once

#include <string>

namespace krilu::io {

/// A text as a gnuplot string, between single quotes and on one line.
std::string gnuplot_string(const std::string& text);

/// The command after which gnuplot draws into `path`, of one line. A name that begins with | is a file's too, not a
/// shell command.
std::string gnuplot_output(const std::string& path);

/// Has gnuplot go through a script that draws into `path`. Throws krilu::Error where it cannot be started or fails.
void run_gnuplot(const std::string& script, const std::string& path);

}  // namespace krilu::io
