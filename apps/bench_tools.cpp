// SPDX-License-Identifier: Apache-2.0
// The common part of `krilu bench`: finds matrices, measures, formats (bench.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "bench.hpp"
#include "exec/host.hpp"
#include "io/report.hpp"
#include "krilu/error.hpp"
#include "schedule/levels.hpp"
#include "terminal.hpp"

namespace krilu::app {

namespace {

namespace fs = std::filesystem;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

nlohmann::ordered_json to_json(const Seconds& s) {
  return {{"analyse", s.analyse}, {"factor", s.factor}, {"solve", s.solve}};
}

std::vector<Index> rows_in_levels(const std::vector<Index>& level) {
  const schedule::LevelOrder sorted = schedule::sort_by_level(level);
  std::vector<Index> rows;
  for (std::size_t l = 0; l + 1 < sorted.offsets.size(); ++l) rows.push_back(sorted.offsets[l + 1] - sorted.offsets[l]);
  return rows;
}

/// Rows times levels above which Algorithm 2, which looks at every row in each round, would take minutes.
constexpr double most_looks = 2e10;

}  // namespace

std::string matrix_folder(const BenchOptions& o) {
  const char* set = std::getenv("KRILU_MATRICES");
  const std::string folder = !o.matrices.empty() ? o.matrices : set ? set : "";
  std::error_code ignored;
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    throw Error(fmt::format("{} {}: there is no such folder; tools/fetch-matrices --to FOLDER makes one with matrices",
                            o.matrices.empty() ? "KRILU_MATRICES is set to" : "--matrices", folder));
  return folder;
}

std::string matrix_file(const std::string& folder, const std::string& name) {
  if (folder.empty()) return "";
  for (const char* ending : {".mtx.gz", ".mtx"}) {
    const fs::path path = fs::path(folder) / (name + ending);
    std::error_code ignored;
    if (fs::exists(path, ignored)) return path.string();
  }
  return "";
}

double median(std::vector<double> v) {
  if (v.empty()) return not_known;
  std::sort(v.begin(), v.end());
  const std::size_t half = v.size() / 2;
  return v.size() % 2 ? v[half] : (v[half - 1] + v[half]) / 2;
}

Measured measure(const CsrView& a, std::span<const double> b, const Options& options, int repeat,
                 const std::string& label, Monitor& monitor) {
  Measured m;
  try {
    std::vector<double> x(b.size());
    for (int k = 0; k < repeat && !monitor.interrupted(); ++k) {
      Solver solver(options);
      {
        const StepLine step(label + ": setting up", true);
        solver.setup(a);
      }
      if (monitor.interrupted()) break;
      std::fill(x.begin(), x.end(), 0.0);
      const ProgressLine progress(monitor, label, true);
      Result r = solver.solve(b, x, &monitor);
      if (r.status == Status::interrupted) break;
      m.each.push_back(r.seconds);
      if (!m.done) m.result = std::move(r);
      m.done = true;
    }
  } catch (const Error& e) {
    m.done = false;
    m.error = e.what();
  }
  const auto middle = [&](double Seconds::*part) {
    std::vector<double> v;
    for (const Seconds& s : m.each) v.push_back(s.*part);
    return median(v);
  };
  m.seconds = {middle(&Seconds::analyse), middle(&Seconds::factor), middle(&Seconds::solve)};
  return m;
}

nlohmann::ordered_json to_json(const Measured& m, bool with_history) {
  if (!m.error.empty()) return {{"error", m.error}};
  const Result& r = m.result;
  nlohmann::ordered_json j{
      {"status", to_string(r.status)}, {"iterations", r.iterations},   {"relative_residual", r.relative_residual},
      {"triangular", r.triangular},    {"ordering", r.ordering},       {"device", r.device},
      {"threads", r.threads},          {"seconds", to_json(m.seconds)}};
  for (const Seconds& s : m.each) j["each"].push_back(to_json(s));
  j["notes"] = r.notes;
  if (with_history) j["history"] = r.history;
  return j;
}

LevelTimes time_levels(const CsrView& a, int threads, int repeat, const std::string& label) {
  using schedule::Triangle;
  const StepLine step(label, true);
  const exec::Host host(threads);
  LevelTimes t;
  std::vector<double> sync_free, rounds;
  for (int k = 0; k < repeat; ++k) {
    const auto start = std::chrono::steady_clock::now();
    const auto lower = schedule::levels_sync_free(host, {a, Triangle::lower, nullptr, nullptr});
    const auto upper = schedule::levels_sync_free(host, {a, Triangle::upper, nullptr, nullptr});
    sync_free.push_back(seconds_since(start));
    if (k > 0) continue;
    t.lower = rows_in_levels(lower);
    t.upper = rows_in_levels(upper);
  }
  t.sync_free = median(sync_free);
  const double looks = double(a.rows) * double(t.lower.size() + t.upper.size());
  if (looks > most_looks) {
    t.remark = fmt::format("Algorithm 2 was left out: it looks at {} rows in each of {} rounds", io::thousands(a.rows),
                           io::thousands(std::int64_t(t.lower.size() + t.upper.size())));
    return t;
  }
  for (int k = 0; k < repeat; ++k) {
    const auto start = std::chrono::steady_clock::now();
    schedule::levels_by_rounds(host, {a, Triangle::lower, nullptr, nullptr});
    schedule::levels_by_rounds(host, {a, Triangle::upper, nullptr, nullptr});
    rounds.push_back(seconds_since(start));
  }
  t.rounds = median(rounds);
  return t;
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const std::size_t at = line.find(": "); at != std::string::npos) return line.substr(at + 2);
  return "host";
}

MarkdownTable::MarkdownTable(std::vector<std::string> head, std::size_t left) : left_(left) {
  rows_.push_back(std::move(head));
}

void MarkdownTable::add(std::vector<std::string> row) {
  row.resize(rows_[0].size());
  rows_.push_back(std::move(row));
}

std::string MarkdownTable::text() const {
  std::vector<std::size_t> width(rows_[0].size(), 3);
  for (const auto& row : rows_)
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  std::string out;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t c = 0; c < width.size(); ++c)
      out +=
          c < left_ ? fmt::format("| {:<{}} ", rows_[r][c], width[c]) : fmt::format("| {:>{}} ", rows_[r][c], width[c]);
    out += "|\n";
    if (r > 0) continue;
    for (std::size_t c = 0; c < width.size(); ++c)
      out += fmt::format("|{}{}", std::string(width[c] + 1, '-'), c < left_ ? '-' : ':');
    out += "|\n";
  }
  return out;
}

std::string figure(double value) { return std::isfinite(value) ? fmt::format("{:.4g}", value) : "-"; }

std::string iterations_of(const Measured& m) {
  if (!m.done) return "-";
  const char* word = m.result.status == Status::max_iterations ? "limit" : to_string(m.result.status);
  return m.result.status == Status::converged ? std::to_string(m.result.iterations)
                                              : fmt::format("{} ({})", m.result.iterations, word);
}

}  // namespace krilu::app
