// SPDX-License-Identifier: Apache-2.0
// Zheng, Kou and Zhang, a mixed-precision GMRES acceleration algorithm for large sparse matrices in fluid dynamics
// simulation, Applied Mathematics and Mechanics 46(1), 40-54, 2025: what its section 2 measured, and what is measured
// here for matrices of that kind. gmres_ir_paper.cpp measures, gmres_ir_paper_tables.cpp shows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench.hpp"
#include "krilu/condition.hpp"

namespace krilu::app::gmres_ir_paper {

/// A line of Table 3: seconds of one core of an Intel i7-7700, and the RMSE that was reached.
struct PaperLine {
  double ilu, in_double, mixed, rmse_double, rmse_mixed;
  double speed_up() const { return in_double / mixed; }
};

/// Where a matrix can be had, where it is not in the folder.
enum class Origin { collection, elsewhere, generator };

struct System {
  std::string file;  // in the folder, without its ending; of a generated one the generator
  Origin origin;
  std::optional<PaperLine> paper;
  bool hard = false;  // Table 4's
  /// Without the folder within the folder.
  std::string name() const { return origin == Origin::generator ? file : file.substr(file.rfind('/') + 1); }
};

/// The paper's own where they are known by name, others of the kind, and generated ones.
const std::vector<System>& systems();

/// A line of Table 4: ex20 under other limits. outer 0: double.
struct PaperCase {
  int outer, inner;
  double rmse;
  int iterations;
  double seconds;
};
const std::vector<PaperCase>& paper_cases();

struct Row {
  const System* system = nullptr;
  std::string from;  // file name or generator; empty: the matrix is missing
  Index rows = 0;
  std::int64_t nnz = 0;
  double largest = not_known, smallest = not_known;  // magnitudes of entries that are not zero
  std::optional<Condition> condition;                // in the infinity norm
  std::string precond;                               // ilu0, or what is left where that cannot be formed
  Measured in_double, mixed;
  std::vector<Measured> cases;  // one for each of paper_cases() where the system is hard; the first two are those above
  std::vector<std::string> remarks;

  bool generated() const { return system->origin == Origin::generator; }
  bool at_hand() const { return !from.empty(); }
  bool tried() const { return in_double.done || mixed.done; }
  double density() const { return double(nnz) / (double(rows) * double(rows)); }
  double cond() const { return condition ? condition->value : not_known; }
};

bool converged(const Measured& m);
/// Double over mixed, of the solves; not known unless both converged.
double speed_up(const Measured& in_double, const Measured& mixed);
/// The precision that the inner solves begin in.
std::string first_precision(const BenchOptions& options);
/// Longer inner solves in the same precision are no raise.
bool was_raised(const Measured& mixed, const BenchOptions& options);

struct Machine {
  std::string cpu;
};

/// What the paper states.
constexpr double target_rmse = 1e-11;
constexpr int restart = 300, most_iterations = 600;      // of double
constexpr int most_inner = 100, most_outer = 10;         // of mixed
constexpr Index paper_fewest_rows = 1080, large = 3000;  // above the latter all of its matrices were faster in mixed
constexpr double easy_condition = 1e6;                   // below it mixed is said to be faster
/// What it does not: solves that are too short to tell a speed-up by were left out of its Figure 8.
constexpr double shortest = 0.01;

struct Named {
  std::string name;
  double value = not_known;
};

struct Summary {
  int tried = 0, in_double = 0, mixed = 0;              // systems; those that converged
  std::vector<std::string> lost, won;                   // converged in double alone, in mixed alone
  int compared = 0, faster = 0, large = 0, raised = 0;  // speed-ups; those above 1, of large systems, after a raise
  double mean = not_known;                              // geometric, of the speed-ups of large systems
  Named best, slowest_large, slowest_sufficed, slowest_raised;
};
Summary summary(const std::vector<Row>& rows, const BenchOptions& options);

/// Pearson's coefficients of a quantity x and the speed-up y, as in Figure 8.
struct Correlation {
  const char *key, *label;
  int samples = 0;
  double plain = not_known, log_x = not_known, log_y = not_known;
};
std::vector<Correlation> correlations(const std::vector<Row>& rows);

std::string tables(const std::vector<Row>& rows, const Machine& machine, const BenchOptions& options);
io::Picture figure_3(const std::vector<Row>& rows);
io::Picture figure_4(const std::vector<Row>& rows);
io::Picture figure_6(const std::vector<Row>& rows, const BenchOptions& options);
io::Picture figure_9(const std::vector<Row>& rows, const BenchOptions& options);
io::Picture figure_10(const std::vector<Row>& rows);

}  // namespace krilu::app::gmres_ir_paper
