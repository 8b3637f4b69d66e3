// SPDX-License-Identifier: Apache-2.0
// krilu bench hec-paper: measures what section 4 of Liu, Chen et al. (about 2012) measured, system by system, on one
// core, on all cores and on the GPU. Figures of the paper: its tables for atmosmodd and SPE10, and its text where the
// table for the Poisson equation is lost. Every figure is one of the public Solver's.
#include "hec_paper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/names.hpp"
#include "exec/host.hpp"
#include "io/report.hpp"
#include "krilu/io.hpp"
#include "krilu/version.hpp"
#include "terminal.hpp"

namespace krilu::app {

namespace hec_paper {

const std::vector<PaperSystem>& paper_systems() {
  constexpr double no = not_known;
  static const std::vector<PaperLine> spe10{
      {"bilu", 16, 92.80, 12.78, 7.25, 0.0421, 0.0118, 3.54},  {"bilu", 128, 86.22, 12.05, 7.14, 0.0423, 0.0119, 3.56},
      {"bilu", 512, 92.82, 12.87, 7.20, 0.0424, 0.0119, 3.56}, {"bilut", 16, 32.00, 7.17, 4.46, 0.0645, 0.0747, 0.86},
      {"bilut", 128, 42.51, 7.82, 5.42, 0.0647, 0.0747, 0.86}, {"bilut", 512, 47.44, 8.80, 5.37, 0.0645, 0.0747, 0.86},
      {"ras", 256, 106.61, 14.36, 7.41, 0.100, 0.0198, 5.07},  {"ras", 1024, 110.36, 16.36, 6.73, 0.124, 0.0242, 5.11},
  };
  static const std::vector<PaperSystem> all{
      {1,
       "poisson3d",
       "3-D Poisson equation",
       "",
       1000000,
       6940000,
       "gen:poisson3d:100x100x100",
       false,
       "7,0.1",
       true,
       {{"bilu", 16, no, no, 8, no, no, 3},
        {"bilu", 128, no, no, 8, no, no, 3},
        {"bilu", 512, no, no, 8, no, no, 3},
        {"bilut", 16, no, no, 6, no, no, 2},
        {"bilut", 128, no, no, 6, no, no, 2},
        {"bilut", 512, no, no, 6, no, no, 2},
        {"ras", 256, no, no, 9, no, no, 6},
        {"ras", 2048, no, no, 9, no, no, 6}}},
      {2,
       "atmosmodd",
       "atmosmodd",
       "",
       1270432,
       8814880,
       "gen:convdiff3d:148x148x58",
       false,
       "7,0.01",
       false,
       {{"bilu", 16, 20.61, 2.63, 7.79, 0.0248, 0.0072, 3.45},
        {"bilu", 128, 23.94, 2.80, 8.50, 0.0244, 0.0072, 3.40},
        {"bilu", 512, 24.13, 2.72, 8.82, 0.0241, 0.0070, 3.46},
        {"bilut", 16, 14.70, 2.37, 6.16, 0.028669, 0.0114, 2.51},
        {"bilut", 128, 16.58, 2.43, 6.79, 0.028380, 0.0100, 2.84},
        {"bilut", 512, 19.91, 2.64, 7.50, 0.027945, 0.0113, 2.47},
        {"ras", 256, 23.45, 2.66, 8.75, 0.0428, 0.0072, 5.96},
        {"ras", 2048, 25.75, 3.28, 7.81, 0.0546, 0.0083, 6.59}}},
      {3, "spe10", "SPE10, one phase",
       "The paper does not say which equations its SPE10 matrix is of. This is the pressure system of a single phase, "
       "one unknown a cell, where the paper's has nearly two: compare speed-ups, not times.",
       2188851, 29915573, "gen:spe10:", true, "14,0.01", false, spe10},
      {3, "spe10-2p", "SPE10, two phases",
       "This is the Jacobian of a fully implicit oil and water model, two unknowns a cell with full blocks of 2 x 2, "
       "at "
       "the first Newton step of 1 day, without gravity, capillary pressure and wells, and with porosity 0.2 "
       "throughout "
       "(docs/generators.md). The paper's matrix may be another model's.",
       2188851, 29915573, "gen:spe10-2p:", true, "14,0.01", false, spe10},
  };
  return all;
}

namespace {

using Json = nlohmann::ordered_json;

std::string precond_of(const PaperSystem& system, const PaperLine& line) {
  const std::string kind = line.kind;
  if (kind == "ras") return fmt::format("ras:{},1", line.blocks);
  return fmt::format("block-ilu:{}{}", line.blocks, kind == "bilut" ? fmt::format(",ilut:{}", system.ilut) : "");
}

struct Place {
  const char *key, *label;
  Run Line::*to;
};
constexpr Place places[] = {
    {"one_core", "1 core", &Line::one_core}, {"all_cores", "all cores", &Line::all_cores}, {"gpu", "GPU", &Line::gpu}};

Options options_of(const std::string& precond, const Place& place, const BenchOptions& o) {
  const bool one = place.to == &Line::one_core;
  Options s;
  s.solver = "gmres";
  s.restart = restart;
  s.precond = precond;
  s.device = place.to == &Line::gpu ? o.device : "host";
  s.threads = one ? 1 : o.threads;
  s.rtol = tolerance;
  s.max_iterations = one ? most_on_one_core : most_iterations;
  return s;
}

/// Sets up once, since parts of a graph are dear to find, and solves `repeat` times. A krilu::Error becomes Run::error.
Run run_one(const CsrView& a, std::span<const double> b, const Options& options, int repeat, const std::string& label,
            Monitor& monitor) {
  Run run;
  try {
    Solver solver(options);
    {
      const StepLine step(label + ": setting up", true);
      solver.setup(a);
    }
    std::vector<double> x(b.size()), products, applications;
    for (int k = 0; k < repeat && !monitor.interrupted(); ++k) {
      std::fill(x.begin(), x.end(), 0.0);
      const ProgressLine progress(monitor, label, true);
      Result r = solver.solve(b, x, &monitor);
      if (r.status == Status::interrupted) break;
      run.solves.push_back(r.seconds.solve);
      if (!run.done) run.result = std::move(r);
      run.done = true;
    }
    for (int k = 0; k < repeat && run.done && !monitor.interrupted(); ++k) {
      const Costs c = solver.costs();
      products.push_back(c.product);
      applications.push_back(c.application);
    }
    run.set_up = run.result.seconds.analyse + run.result.seconds.factor;
    run.solve = median(run.solves);
    run.product = median(products);
    run.application = median(applications);
  } catch (const Error& e) {
    run.done = false;
    run.error = e.what();
  }
  return run;
}

std::vector<const PaperSystem*> chosen(const std::vector<std::string>& only) {
  std::vector<std::string> names;
  for (const PaperSystem& p : paper_systems()) names.emplace_back(p.name);
  for (const std::string& name : only) require_name("system of hec-paper", name, names);
  std::vector<const PaperSystem*> out;
  for (const PaperSystem& p : paper_systems())
    if (only.empty() || std::find(only.begin(), only.end(), p.name) != only.end()) out.push_back(&p);
  return out;
}

/// Every kind once on a small system, so that no measurement pays for what a process does once.
Machine warm_up(const BenchOptions& o, Monitor& monitor) {
  const CsrMatrix a = generate("gen:convdiff3d:16x16x16");
  const std::vector<double> b = random_vector(std::size_t(a.rows), seed, -1, 1);
  Machine machine{o.device, processor(), exec::Host(o.threads).threads()};
  for (const char* precond : {"block-ilu:16", "block-ilu:16,ilut:7,0.01", "ras:16,1"})
    for (const Place& place : places) {
      const Run run = run_one(a, b, options_of(precond, place, o), 1, "warming up", monitor);
      if (!run.error.empty()) throw Error(run.error);
      if (run.done && place.to == &Line::gpu) machine.device = run.result.device;
    }
  return machine;
}

void measure_all(const CsrMatrix& a, const BenchOptions& o, bool gpu, Monitor& monitor, Row& row) {
  const std::vector<double> b = random_vector(std::size_t(a.rows), seed, -1, 1);
  for (const PaperLine& paper : row.paper->lines) {
    Line& line = row.lines.emplace_back(Line{&paper, precond_of(*row.paper, paper), {}, {}, {}});
    for (const Place& place : places) {
      if (monitor.interrupted()) return;
      if (place.to == &Line::gpu && !gpu) continue;
      const std::string label = fmt::format("{} {}, {}", paper.kind, paper.blocks, place.label);
      Run& run = line.*place.to;
      run = run_one(a, b, options_of(line.precond, place, o), place.to == &Line::one_core ? 1 : o.repeat,
                    fmt::format("{}: {}", row.paper->name, label), monitor);
      if (!run.error.empty()) row.remarks.push_back(fmt::format("{}: {}", label, run.error));
      // Which sweeps a chooser took is in the JSON.
      for (const std::string& note : run.result.notes)
        if (!note.starts_with("triangular auto")) row.remarks.push_back(fmt::format("{}: {}", label, note));
    }
  }
}

/// Reads or generates the system of `source` and measures on it.
void fill(Row& row, const std::string& source, const BenchOptions& o, bool gpu, Monitor& monitor) {
  CsrMatrix a;
  {
    const StepLine step(fmt::format("{} {}", row.generated ? "generating" : "reading", row.from), true);
    a = row.generated ? generate(source) : read_matrix_market(source, o.threads).matrix;
  }
  require_valid(a);
  row.rows = a.rows;
  row.nnz = a.nnz();
  if (!row.paper->spe10 && row.paper->rows != a.rows)
    row.remarks.push_back(fmt::format("not the paper's matrix: {} rows, where the paper has {}", io::thousands(a.rows),
                                      io::thousands(row.paper->rows)));
  measure_all(a, o, gpu, monitor, row);
}

/// A file NAME.mtx in the folder comes before what is generated. Empty where SPE10's files are not there.
std::string source_of(const PaperSystem& system, const std::string& folder, Row& row) {
  namespace fs = std::filesystem;
  if (const std::string file = matrix_file(folder, system.name); !file.empty()) {
    row.from = fs::path(file).filename().string();
    return file;
  }
  row.generated = true;
  row.from = system.generator;
  if (!system.spe10) return system.generator;
  const auto permeability = [&](const char* which) -> std::string {
    const std::string name = fmt::format("spe10_model2_k{}.txt", which);
    for (const char* ending : {".gz", ""}) {
      const fs::path path = fs::path(folder) / "spe10" / (name + ending);
      std::error_code ignored;
      if (fs::exists(path, ignored)) return path.string();
    }
    return "";
  };
  const std::string kx = folder.empty() ? "" : permeability("x"), kz = folder.empty() ? "" : permeability("z");
  if (kx.empty() || kz.empty()) {
    row.from.clear();
    return "";
  }
  row.from += fmt::format("{},{}", fs::path(kx).filename().string(), fs::path(kz).filename().string());
  return fmt::format("{}{},{}", system.generator, kx, kz);
}

Json run_json(const Run& run) {
  if (!run.error.empty()) return {{"error", run.error}};
  const Result& r = run.result;
  return {{"status", to_string(r.status)},
          {"iterations", r.iterations},
          {"relative_residual", r.relative_residual},
          {"triangular", r.triangular},
          {"device", r.device},
          {"threads", r.threads},
          {"seconds", {{"set_up", run.set_up}, {"solve", run.solve}}},
          {"each", run.solves},
          {"ms", {{"product", run.product}, {"application", run.application}}},
          {"notes", r.notes}};
}

Json row_json(const Row& row) {
  const PaperSystem& p = *row.paper;
  Json j{{"system", p.name},
         {"source", !row.at_hand()  ? "missing"
                    : row.generated ? "generated"
                                    : "file"},
         {"paper", {{"table", p.table}, {"rows", p.rows}, {"nnz", p.nnz}, {"from_text", p.from_text}}}};
  if (!row.at_hand()) return j;
  j["from"] = row.from;
  j["rows"] = row.rows;
  j["nnz"] = row.nnz;
  j["lines"] = Json::array();
  for (const Line& line : row.lines) {
    const PaperLine& q = *line.paper;
    Json& out = j["lines"].emplace_back(Json{{"preconditioner", q.kind},
                                             {"blocks", q.blocks},
                                             {"precond", line.precond},
                                             {"paper",
                                              {{"solve_s", {{"cpu", q.cpu}, {"gpu", q.gpu}}},
                                               {"speed_up", q.speed_up},
                                               {"application_s", {{"cpu", q.pre_cpu}, {"gpu", q.pre_gpu}}},
                                               {"application_speed_up", q.pre_speed_up}}}});
    for (const Place& place : places)
      if (const Run& run = line.*place.to; run.done || !run.error.empty()) out[place.key] = run_json(run);
    out["speed_up"] = line.one_core_solve() / line.gpu.solve;
    out["application_speed_up"] = line.one_core.application / line.gpu.application;
  }
  j["remarks"] = row.remarks;
  return j;
}

}  // namespace
}  // namespace hec_paper

BenchReport run_hec_paper(const BenchOptions& o, Monitor& monitor) {
  using namespace hec_paper;
  BenchReport report;
  std::vector<Row> rows;
  std::vector<std::string> sources;
  const std::vector<const PaperSystem*> wanted = chosen(o.only);
  const std::string folder = matrix_folder(o);
  for (const PaperSystem* paper : wanted) {
    Row& row = rows.emplace_back();
    row.paper = paper;
    sources.push_back(source_of(*paper, folder, row));
  }
  if (std::none_of(rows.begin(), rows.end(), [](const Row& r) { return r.at_hand(); }))
    throw Error(
        fmt::format("nothing to measure: SPE10 needs its permeabilities, spe10/spe10_model2_kx.txt.gz and "
                    "spe10/spe10_model2_kz.txt.gz, and {} (docs/generators.md says what is in them)",
                    folder.empty() ? "neither --matrices nor KRILU_MATRICES names a folder"
                                   : "they are not in the folder " + folder));

  const Machine machine = warm_up(o, monitor);
  for (std::size_t k = 0; k < rows.size() && !monitor.interrupted(); ++k) {
    if (!rows[k].at_hand()) continue;
    try {
      fill(rows[k], sources[k], o, machine.device != "host", monitor);
    } catch (const Error& e) {
      rows[k].from += " (unreadable)";
      rows[k].remarks.push_back(e.what());
      report.trouble += (report.trouble.empty() ? "" : "\nkrilu: ") + std::string(e.what());
    }
  }

  report.markdown = tables(rows, machine, o);
  report.pictures = {{"-speedups.png", speed_ups(rows)}};
  report.json = {{"krilu", version},
                 {"paper", "Liu, Chen et al., parallel triangular solvers on GPUs, about 2012"},
                 {"command", o.command},
                 {"machine", {{"device", machine.device}, {"cpu", machine.cpu}, {"threads", machine.threads}}},
                 {"rules",
                  {{"solver", "gmres"},
                   {"restart", restart},
                   {"rhs", fmt::format("random:{}", seed)},
                   {"rtol", tolerance},
                   {"max_iterations", most_iterations},
                   {"max_iterations_one_core", most_on_one_core},
                   {"repeat", o.repeat}}},
                 {"rows", nlohmann::ordered_json::array()}};
  for (const Row& row : rows) report.json["rows"].push_back(row_json(row));
  return report;
}

}  // namespace krilu::app
