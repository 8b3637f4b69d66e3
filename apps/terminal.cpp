// SPDX-License-Identifier: Apache-2.0
#include "terminal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace krilu::app {

namespace {

std::string painted(const char* code, const std::string& text) {
  static const bool colours = ::isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR");
  return colours ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}

std::atomic<Monitor*> running{nullptr};

double seconds_now() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);  // one of the calls that a signal handler may make
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

std::atomic<bool> others_speak{false};

extern "C" void on_interrupt(int) {
  static std::atomic<double> first{0};
  Monitor* monitor = running.load();
  if (monitor && !monitor->interrupted()) {
    first = seconds_now();
    monitor->interrupt();
    return;
  }
  // One key press may arrive twice: timeout(1), for one, signals its child and then its whole group. The second may
  // come when the solve has ended already.
  if (seconds_now() - first < 0.5) return;
  constexpr char sentence[] = "\nkrilu: interrupted before there was a result\n";
  const auto written = others_speak ? 0 : ::write(STDERR_FILENO, sentence, sizeof sentence - 1);
  static_cast<void>(written);
  ::_exit(3);
}

constexpr const char* wipe = "\r\033[K";

}  // namespace

std::string green(const std::string& text) { return painted("32", text); }
std::string red(const std::string& text) { return painted("31", text); }
std::string bold(const std::string& text) { return painted("1", text); }

std::string wrapped(const std::string& text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::size_t length = end - begin;
    if (begin > 0 && column + 1 + length > 80) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (begin > 0) {
      out += ' ';
      ++column;
    }
    out.append(text, begin, length);
    column += length;
    begin = end + 1;
  }
  return out;
}

void print_row(const std::string& name, const std::string& value, int indent) {
  fmt::print("  {:<{}}{}\n", name, indent - 2, wrapped(value, std::size_t(indent)));
}

void leave_last_words_to_others() { others_speak = true; }

void install_interrupt_handler() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
}
InterruptGuard::InterruptGuard(Monitor& monitor) { running = &monitor; }
InterruptGuard::~InterruptGuard() { running = nullptr; }

ProgressLine::ProgressLine(const Monitor& monitor, std::string label, bool enabled) {
  if (!enabled || !::isatty(STDERR_FILENO)) return;
  thread_ = std::thread([this, &monitor, label = std::move(label)] {
    using namespace std::chrono;
    const auto start = steady_clock::now();
    int last_iteration = 0;
    double last_residual = 1;
    while (!done_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      const double elapsed = duration<double>(steady_clock::now() - start).count();
      const int iteration = monitor.iteration();
      const double residual = monitor.relative_residual();
      if (elapsed < 0.5 || iteration == last_iteration) continue;
      const double rate = std::pow(residual / last_residual, 1.0 / (iteration - last_iteration));
      fmt::print(stderr, "{}{}  iteration {}  residual {:.2e}  x {:.3f} an iteration  {:.1f} s", wipe, label, iteration,
                 residual, rate, elapsed);
      std::fflush(stderr);
      last_iteration = iteration;
      last_residual = residual;
    }
    fmt::print(stderr, "{}", wipe);
    std::fflush(stderr);
  });
}
ProgressLine::~ProgressLine() {
  done_ = true;
  if (thread_.joinable()) thread_.join();
}

StepLine::StepLine(const std::string& text, bool enabled) : shown_(enabled && ::isatty(STDERR_FILENO)) {
  if (!shown_) return;
  fmt::print(stderr, "{} ...", text);
  std::fflush(stderr);
}
StepLine::~StepLine() {
  if (!shown_) return;
  fmt::print(stderr, "{}", wipe);
  std::fflush(stderr);
}

}  // namespace krilu::app
