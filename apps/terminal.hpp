// SPDX-License-Identifier: Apache-2.0
// What a person at a terminal sees while and after a command works: colours (on a terminal only), a progress line, and
// what Ctrl-C does.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "krilu/solver.hpp"

namespace krilu::app {

/// Text in green, red or bold where standard output is a terminal; NO_COLOR is honoured.
std::string green(const std::string& text);
std::string red(const std::string& text);
std::string bold(const std::string& text);
/// Text broken at spaces so that no line is wider than 80 columns, where its first line begins in column `indent` and
/// so do the others. A word that is longer stays whole.
std::string wrapped(const std::string& text, std::size_t indent);
/// Prints "  name    value", the value wrapped.
void print_row(const std::string& name, const std::string& value, int indent = 18);

/// From construction to destruction, the first Ctrl-C stops the solve behind `monitor` at its next iteration and a
/// second one ends the process. Outside of one, Ctrl-C ends the process at once with exit status 3.
class InterruptGuard {
 public:
  explicit InterruptGuard(Monitor& monitor);
  ~InterruptGuard();
};
void install_interrupt_handler();
/// Of ranks that a launcher ends when one of them failed, that one has said why.
void leave_last_words_to_others();

/// A line on standard error, renewed a few times a second while a solve runs: iteration, residual, rate.
class ProgressLine {
 public:
  ProgressLine(const Monitor& monitor, std::string label, bool enabled);
  ~ProgressLine();

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

/// "text ..." on standard error while a step without iterations runs, wiped afterwards; only on a terminal.
class StepLine {
 public:
  StepLine(const std::string& text, bool enabled);
  ~StepLine();

 private:
  bool shown_;
};

}  // namespace krilu::app
