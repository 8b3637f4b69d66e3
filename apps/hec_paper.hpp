// SPDX-License-Identifier: Apache-2.0
// Liu, Chen et al., parallel triangular solvers on GPUs (about 2012): the block ILU(0), block ILUT and restricted
// additive Schwarz preconditioners of its section 4, and what is measured here for each of its systems. hec_paper.cpp
// measures, hec_paper_tables.cpp shows.
#pragma once

#include <string>
#include <vector>

#include "bench.hpp"

namespace krilu::app::hec_paper {

/// A line of the paper's tables: Xeon X5570 and Tesla C2050/C2070. The speed-ups are those that it prints.
struct PaperLine {
  const char* kind;  // bilu, bilut or ras, as it names them
  int blocks;
  double cpu, gpu, speed_up;              // of the solve, seconds
  double pre_cpu, pre_gpu, pre_speed_up;  // of one application of the preconditioner, seconds
};

/// A system of the paper, or one of ours that stands for it.
struct PaperSystem {
  int table;
  const char *name, *title;
  const char* what;  // the paper had, and how ours differs
  Index rows;        // of the paper's
  std::int64_t nnz;
  const char* generator;  // of ours; SPE10's want the folder's two files behind it
  bool spe10;
  const char* ilut;  // entries and tolerance
  bool from_text;    // the paper's table is lost, and the speed-ups are those in its text
  std::vector<PaperLine> lines;
};

const std::vector<PaperSystem>& paper_systems();

/// A preconditioner on one device: set up once, solved from zero several times.
struct Run {
  bool done = false;
  std::string error;                             // why it is not done; empty where it was interrupted or not tried
  Result result;                                 // of the first solve
  double set_up = not_known, solve = not_known;  // seconds; the median of the solves
  double product = not_known, application = not_known;  // milliseconds; medians
  std::vector<double> solves;
  double iteration() const { return done && result.iterations > 0 ? solve / result.iterations : not_known; }
};

struct Line {
  const PaperLine* paper = nullptr;
  std::string precond;  // krilu's name for it
  Run one_core, all_cores, gpu;
  /// Seconds of one core for as many iterations as all cores took. The bits are the same on either.
  double one_core_solve() const {
    return all_cores.done && all_cores.result.iterations > 0 ? one_core.iteration() * all_cores.result.iterations
                                                             : not_known;
  }
};

struct Row {
  const PaperSystem* paper = nullptr;
  std::string from;  // file name or generator; empty: the system is missing
  bool generated = false;
  Index rows = 0;
  std::int64_t nnz = 0;
  std::vector<Line> lines;
  std::vector<std::string> remarks;

  bool at_hand() const { return !from.empty(); }
};

struct Machine {
  std::string device, cpu;  // device: "host" where there is no GPU
  int threads = 1;
};

constexpr int restart = 20;
/// What the paper does not state.
constexpr double tolerance = 1e-6;
constexpr int most_iterations = 500, most_on_one_core = 40;  // the latter: two cycles of GMRES(20)
constexpr std::uint64_t seed = 1;

std::string tables(const std::vector<Row>& rows, const Machine& machine, const BenchOptions& options);
io::Picture speed_ups(const std::vector<Row>& rows);

}  // namespace krilu::app::hec_paper
