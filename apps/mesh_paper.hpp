// SPDX-License-Identifier: Apache-2.0
// Unstructured-mesh computing on the SW26010 (2022), N-order diagonal colouring: what its section 4 measured (Figures
// 11 to 15), repeated with krilu's loops over faces. mesh_paper.cpp measures, mesh_paper_host.cpp has the plain loops
// and the host, mesh_paper.cu a GPU, mesh_paper_tables.cpp shows.
#pragma once

#include <string>
#include <vector>

#include "bench.hpp"
#include "mesh_paper_measure.hpp"

namespace krilu::app::mesh_paper {

// --- the plain loops, on the host ------------------------------------------------------------------------------------

/// One run of operator k; what it makes stands in f.results[k].
void plain_loop(int k, Fields& f);
/// All operators on one core, in the mesh's own order. Leaves their results in f.
PerOperator<std::vector<double>> plain_times(Fields& f, const Sampling& how);

struct PartTimes {
  int parts = 0;
  double cut_fraction = 0;  // of the faces: between parts, and left out
  PerOperator<std::vector<double>> seconds;
};
/// The plain loops on `threads` threads, each on a part of the mesh by bisection, with vectors of its own.
PartTimes plain_times_in_parts(const Mesh& mesh, const Fields& whole, int threads, const Sampling& how);

Bandwidth host_bandwidth(int threads);

// --- what is measured ------------------------------------------------------------------------------------------------

struct Operator {
  const char *key, *label, *figure;
  int cell_words, face_words;  // of 8 bytes, beside 8 bytes of addressing a face
  double paper_mean;           // speed-up over one core; not_known where the paper has none
  double bytes(double cells, double faces) const { return 8 * (cell_words * cells + (face_words + 1) * faces); }
};
const PerOperator<Operator>& operator_table();
constexpr double paper_best_spmv = 24;

/// Face loops with some options.
struct Variant {
  const char *key, *label;
  FaceLoopOptions options;
};
/// Strategies, auto at the end.
std::vector<Variant> strategies(bool gpu);
/// Figure 15: diagonal colouring without its parts; as it should be is strategy diagonal. paper: its mean speed-up.
struct Ablation : Variant {
  double paper;
};
std::vector<Ablation> ablations(bool gpu);

struct Case {
  std::string name;  // "box-1M-random"
  std::string shape, size, numbering;
  std::string generator;
  bool large = false;  // more than a million cells
};
const std::vector<Case>& cases();

struct Row {
  const Case* mesh = nullptr;
  Index cells = 0, faces = 0;
  PerOperator<std::vector<double>> plain;  // on one core
  PartTimes in_parts;
  std::vector<Times> strategies, ablations;  // in the order of the functions above
  std::string error;
};

/// Median of the samples.
double seconds(const std::vector<double>& samples);
double speed_up(const Row& row, const Times& times, int k);
/// What reading each input once and writing each output once takes at the device's triad rate, over what it took.
double fraction_of_bound(const Row& row, const Times& times, int k, const Bandwidth& bandwidth);
/// Set-up over a product in symmetric storage.
double set_up_in_products(const Times& times);

struct Machine {
  std::string device, cpu;
  bool gpu = false;
  int threads = 0;
  Bandwidth bandwidth, host_bandwidth;  // of the device; of the host's memory
};

/// Of speed-ups over one core, over the rows that have them.
struct Mean {
  int rows = 0;
  double mean = not_known, best = not_known, least = not_known;
};
/// place: in strategies(), or -1: the fastest of each mesh, serial and auto apart.
Mean mean_speed_up(const std::vector<Row>& rows, int k, int place, const std::string& numbering);
Mean mean_of_ablation(const std::vector<Row>& rows, int place, const std::string& numbering);

std::string tables(const std::vector<Row>& rows, const Machine& machine, const BenchOptions& options);
io::Picture figure_11(const std::vector<Row>& rows, const Machine& machine);
/// Figures 12 to 14.
io::Picture figure_of_speed_ups(const std::vector<Row>& rows, const Machine& machine, int k);
io::Picture figure_15(const std::vector<Row>& rows, const Machine& machine);

}  // namespace krilu::app::mesh_paper
