// SPDX-License-Identifier: Apache-2.0
// What `krilu bench` and the papers that it repeats have in common: options, the matrices at hand, measurements
// repeated for their median, Markdown tables. A paper is one file with one function, and one row of the table in
// bench.cpp.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/plot.hpp"
#include "krilu/matrix.hpp"
#include "krilu/solver.hpp"

namespace krilu::app {

struct BenchOptions {
  std::string paper;
  std::string device = "auto";
  int threads = 0;
  int repeat = 3;
  std::string precision = "fp32";  // of inner solves, where the paper has any
  std::string matrices;            // the folder; empty: KRILU_MATRICES says
  std::vector<std::string> only;
  std::string json, markdown, plot;
  std::string command;  // as it was given, for the report
};

/// What repeating a paper gives. A file that could not be read stands in `trouble` and does not take the others with
/// it.
struct BenchReport {
  std::string markdown;
  nlohmann::ordered_json json;
  std::vector<std::pair<std::string, io::Picture>> pictures;  // by what stands behind PREFIX in their names
  std::string trouble;
};

/// All solves are given `monitor`, and between them `monitor.interrupted()` ends the work with what there is.
BenchReport run_dilu_paper(const BenchOptions& options, Monitor& monitor);
BenchReport run_hec_paper(const BenchOptions& options, Monitor& monitor);
BenchReport run_gmres_ir_paper(const BenchOptions& options, Monitor& monitor);
BenchReport run_multigpu_paper(const BenchOptions& options, Monitor& monitor);
BenchReport run_mesh_paper(const BenchOptions& options, Monitor& monitor);

// --- matrices
// ---------------------------------------------------------------------------------------------------------

/// Throws krilu::Error where a folder was named that is none. Empty where none was named.
std::string matrix_folder(const BenchOptions& options);
/// The file of the matrix in the folder, or an empty text.
std::string matrix_file(const std::string& folder, const std::string& name);

// --- measuring
// --------------------------------------------------------------------------------------------------------

struct Measured {
  bool done = false;
  std::string error;          // why it is not done; empty where it was interrupted or not tried
  Result result;              // of the first repetition
  Seconds seconds;            // the median of each part
  std::vector<Seconds> each;  // repetition by repetition
  double whole() const { return seconds.analyse + seconds.factor + seconds.solve; }
  double iteration() const { return seconds.solve / result.iterations; }
};

constexpr double not_known = std::numeric_limits<double>::quiet_NaN();
double median(std::vector<double> values);

/// Sets up and solves from zero, `repeat` times with a new Solver each. A krilu::Error becomes Measured::error.
Measured measure(const CsrView& a, std::span<const double> b, const Options& options, int repeat,
                 const std::string& label, Monitor& monitor);
nlohmann::ordered_json to_json(const Measured& m, bool with_history);

/// Levels of both triangles, found by Algorithms 2 and 7 of Wang and Liu (schedule/levels.hpp) on this host.
struct LevelTimes {
  std::vector<Index> lower, upper;                   // rows in each level
  double rounds = not_known, sync_free = not_known;  // seconds for both triangles: Algorithm 2, Algorithm 7
  std::string remark;                                // why Algorithm 2 was left out
};
LevelTimes time_levels(const CsrView& a, int threads, int repeat, const std::string& label);

/// The processor's name as the system has it, else "host".
std::string processor();

// --- tables
// -----------------------------------------------------------------------------------------------------------

/// A Markdown table that reads well as it is: columns padded, all but the first `left` aligned to the right.
class MarkdownTable {
 public:
  explicit MarkdownTable(std::vector<std::string> head, std::size_t left = 1);
  void add(std::vector<std::string> row);
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::size_t left_;
};

/// Four significant digits; "-" where it is not known.
std::string figure(double value);
/// Seconds as milliseconds, by figure().
inline std::string milliseconds(double seconds) { return figure(1e3 * seconds); }
/// "35", or with what went otherwise than converging: "500 (limit)". "-" where there is none.
std::string iterations_of(const Measured& m);

}  // namespace krilu::app
