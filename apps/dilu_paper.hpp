// SPDX-License-Identifier: Apache-2.0
// Wang and Liu, GPU-based parallel DILU preconditioning, Computer Science 49(6), 2022: what its section 4 measured, and
// what is measured here for each of its matrices. dilu_paper.cpp measures, dilu_paper_tables.cpp shows.
#pragma once

#include <string>
#include <vector>

#include "bench.hpp"

namespace krilu::app::dilu_paper {

/// A matrix of the paper with the paper's figures: Tesla K20m, and two Xeon E5-2620 with 12 threads.
struct PaperRow {
  int number;  // in Table 1; 0: named in section 4.1 only
  const char* name;
  Index rows;  // 0: not stated
  std::int64_t nnz;
  const char* kind;
  const char* generator;  // has the same pattern; null: none
  bool log_levels;        // Figure 7 has its rows on a logarithmic axis
  struct {
    double dilu_levels, dilu_free, ilu_levels, ilu_free, dilu_cpu;
  } construction;  // milliseconds; Tables 2 and 4
  int iterations;  // of DILU-BiCGStab; Tables 3 and 5
  struct {
    double none, colouring, levels, free, cpu;  // Table 5's level-set column is colouring + levels
  } solve;                                      // seconds; Tables 3 and 5
};

const std::vector<PaperRow>& paper_rows();

/// A row of ours. The paper's rules, but for `choice`: BiCGStab, natural ordering.
struct Row {
  const PaperRow* paper = nullptr;
  std::string from;  // file name or generator; empty: the matrix is missing
  bool generated = false;
  Index rows = 0;
  std::int64_t nnz = 0;
  LevelTimes levels;
  Measured none;          // without a preconditioner, to the end: Figure 6
  Measured none_as_long;  // the same for as many iterations as DILU took: Table 3
  Measured dilu_levels, dilu_free, dilu_cpu;
  Measured ilu_levels;
  Measured ilu_free;  // set-up alone
  Measured choice;    // DILU with krilu's own ordering and sweeps
  std::vector<std::string> remarks;

  bool at_hand() const { return !from.empty(); }
};

struct Machine {
  std::string device, cpu;
  int threads = 1;
};

/// The rules that the paper states, and the tolerance that it does not.
constexpr int most_iterations = 500;
constexpr double tolerance = 1e-8;
constexpr std::uint64_t seed = 1;

std::string tables(const std::vector<Row>& rows, const Machine& machine, const BenchOptions& options);
io::Picture figure_6(const std::vector<Row>& rows);
io::Picture figure_7(const std::vector<Row>& rows);

}  // namespace krilu::app::dilu_paper
