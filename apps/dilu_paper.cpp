// SPDX-License-Identifier: Apache-2.0
// krilu bench dilu-paper: measures what section 4 of Wang and Liu (2022) measured, matrix by matrix. Figures of the
// paper: Tables 1 to 5. Every figure is one of the public Solver's, but for the levels, which are timed on the host.
#include "dilu_paper.hpp"

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

namespace dilu_paper {

const std::vector<PaperRow>& paper_rows() {
  constexpr double no = not_known;
  static const std::vector<PaperRow> all{
      {1,
       "apache2",
       715176,
       4817870,
       "structural problem",
       nullptr,
       false,
       {74.1647, 84.9158, 96.5731, 372.747, 122.293},
       500,
       {1.91441, 0.082271, 15.3906, 158.273, 37.9984}},
      {2,
       "ASIC_320ks",
       321671,
       1316085,
       "circuit simulation",
       nullptr,
       true,
       {34.587, 28.4623, 31.735, 25.7219, 56.4922},
       18,
       {0.037312, 0.011654, 0.156014, 0.278192, 0.46231}},
      {3,
       "atmosmodd",
       1270432,
       8814880,
       "atmospheric models",
       "gen:convdiff3d:148x148x58",
       false,
       {87.833, 106.772, 125.096, 377.572, 214.364},
       175,
       {1.18575, 0.086148, 6.1872, 54.3196, 23.7162}},
      {4,
       "cage13",
       445315,
       7479343,
       "DNA electrophoresis",
       nullptr,
       false,
       {62.0161, 55.429, 71.174, 59.629, 201.472},
       7,
       {0.028656, 0.014765, 0.120256, 0.261664, 0.393182}},
      {5,
       "G3_circuit",
       1585478,
       7660826,
       "circuit simulation",
       nullptr,
       false,
       {134.923, 130.096, 163.396, 715.119, 214.483},
       500,
       {4.07218, 0.114982, 52.0622, 234.352, 79.348}},
      {6,
       "parabolic_fem",
       525825,
       3674625,
       "CFD",
       nullptr,
       false,
       {34.7684, 29.4419, 34.0866, 28.8091, 106.6},
       500,
       {1.60733, 0.008473, 3.70219, 3.59605, 21.0894}},
      {0, "offshore", 0, 0, "in section 4.1 only", nullptr, false, {no, no, no, no, no}, 0, {no, no, no, no, no}},
  };
  return all;
}

namespace {

using Json = nlohmann::ordered_json;

/// What is measured for each matrix, in this order. Table 3's unpreconditioned run, which needs DILU's iterations,
/// comes after it.
struct Kind {
  const char *key, *label;
  Measured Row::*to;
  const char *precond, *triangular, *ordering;
  bool cpu, once, set_up_alone, history;
};
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"none", "no preconditioner", &Row::none, "none", "auto", "natural", false, true, false, true},
      {"dilu_levels", "dilu, level-set", &Row::dilu_levels, "dilu", "level-set", "natural", false, false, false, true},
      {"dilu_free", "dilu, sync-free", &Row::dilu_free, "dilu", "sync-free", "natural", false, false, false, false},
      {"ilu_levels", "ilu0, level-set", &Row::ilu_levels, "ilu0", "level-set", "natural", false, false, false, true},
      {"ilu_free", "ilu0, sync-free", &Row::ilu_free, "ilu0", "sync-free", "natural", false, false, true, false},
      {"choice", "dilu, krilu's choice", &Row::choice, "dilu", "auto", "auto", false, false, false, false},
      // As the paper's CPU program: DILU serial, all else on all cores.
      {"dilu_cpu", "dilu, serial on the host", &Row::dilu_cpu, "dilu", "serial", "natural", true, false, false, false},
  };
  return all;
}

Options options_of(const Kind& kind, const BenchOptions& o) {
  Options s;
  s.solver = "bicgstab";
  s.precond = kind.precond;
  s.triangular = kind.triangular;
  s.ordering = kind.ordering;
  s.device = kind.cpu ? "host" : o.device;
  s.threads = o.threads;
  s.rtol = tolerance;
  s.max_iterations = kind.set_up_alone ? 0 : most_iterations;
  return s;
}

std::vector<const PaperRow*> chosen(const std::vector<std::string>& only) {
  std::vector<std::string> names;
  for (const PaperRow& p : paper_rows()) names.emplace_back(p.name);
  for (const std::string& name : only) require_name("matrix of dilu-paper", name, names);
  std::vector<const PaperRow*> out;
  for (const PaperRow& p : paper_rows())
    if (only.empty() || std::find(only.begin(), only.end(), p.name) != only.end()) out.push_back(&p);
  return out;
}

/// Every kind once on a small system, so that no measurement pays for what a process does once.
Machine warm_up(const BenchOptions& o, Monitor& monitor) {
  const CsrMatrix a = generate("gen:convdiff3d:16x16x16");
  const std::vector<double> b = random_vector(std::size_t(a.rows), seed, 0, 1);
  Machine machine{o.device, processor(), exec::Host(o.threads).threads()};
  for (const Kind& kind : kinds()) {
    const Measured m = measure(a, b, options_of(kind, o), 1, "warming up", monitor);
    if (!m.error.empty()) throw Error(m.error);
    if (m.done && !kind.cpu) machine.device = m.result.device;
  }
  return machine;
}

void measure_all(const CsrMatrix& a, const BenchOptions& o, Monitor& monitor, Row& row) {
  const std::vector<double> b = random_vector(std::size_t(a.rows), seed, 0, 1);
  const auto remark = [&](const char* label, const std::string& text) {
    row.remarks.push_back(fmt::format("{}: {}", label, text));
  };
  for (const Kind& kind : kinds()) {
    if (monitor.interrupted()) return;
    Measured& m = row.*kind.to;
    const std::string label = fmt::format("{}: {}", row.paper->name, kind.label);
    m = measure(a, b, options_of(kind, o), kind.once ? 1 : o.repeat, label, monitor);
    if (!m.error.empty()) remark(kind.label, m.error);
    if (!kind.set_up_alone)
      for (const std::string& note : m.result.notes) remark(kind.label, note);
    if (kind.to != &Row::dilu_levels || !m.done) continue;
    Options as_long = options_of(kinds()[0], o);
    as_long.max_iterations = m.result.iterations;
    row.none_as_long = measure(a, b, as_long, o.repeat, fmt::format("{}: Table 3, none", row.paper->name), monitor);
  }
  if (monitor.interrupted()) return;
  row.levels = time_levels(a, o.threads, o.repeat, fmt::format("{}: levels", row.paper->name));
  if (!row.levels.remark.empty()) row.remarks.push_back(row.levels.remark);
}

/// Reads or generates the matrix of row.from and measures on it.
void fill(Row& row, const std::string& file, const BenchOptions& o, Monitor& monitor) {
  CsrMatrix a;
  {
    const StepLine step(fmt::format("{} {}", row.generated ? "generating" : "reading", row.from), true);
    a = row.generated ? generate(row.paper->generator) : read_matrix_market(file, o.threads).matrix;
  }
  require_valid(a);
  row.rows = a.rows;
  row.nnz = a.nnz();
  if (row.paper->rows && row.paper->rows != a.rows)
    row.remarks.push_back(fmt::format("not the paper's matrix: {} rows, where the paper has {}", io::thousands(a.rows),
                                      io::thousands(row.paper->rows)));
  measure_all(a, o, monitor, row);
}

Json paper_json(const PaperRow& p) {
  const auto& c = p.construction;
  const auto& s = p.solve;
  return {{"number", p.number},
          {"rows", p.rows},
          {"nnz", p.nnz},
          {"construction_ms",
           {{"dilu_levels", c.dilu_levels},
            {"dilu_free", c.dilu_free},
            {"ilu_levels", c.ilu_levels},
            {"ilu_free", c.ilu_free},
            {"dilu_cpu", c.dilu_cpu}}},
          {"iterations", p.iterations},
          {"solve_s",
           {{"none", s.none}, {"colouring", s.colouring}, {"levels", s.levels}, {"free", s.free}, {"cpu", s.cpu}}}};
}

Json row_json(const Row& row) {
  Json j{{"matrix", row.paper->name},
         {"source", !row.at_hand()  ? "missing"
                    : row.generated ? "generated"
                                    : "file"},
         {"paper", paper_json(*row.paper)}};
  if (!row.at_hand()) return j;
  j["from"] = row.from;
  j["rows"] = row.rows;
  j["nnz"] = row.nnz;
  Json& runs = j["runs"] = Json::object();
  const auto add = [&](const char* key, const Measured& m, bool history) {
    if (m.done || !m.error.empty()) runs[key] = to_json(m, history);
  };
  for (const Kind& kind : kinds()) add(kind.key, row.*kind.to, kind.history);
  add("none_as_long", row.none_as_long, false);
  if (!row.levels.lower.empty())
    j["levels"] = {{"lower", row.levels.lower.size()},
                   {"upper", row.levels.upper.size()},
                   {"seconds_algorithm_2", row.levels.rounds},
                   {"seconds_algorithm_7", row.levels.sync_free},
                   {"rows_per_level", row.levels.lower}};
  j["remarks"] = row.remarks;
  return j;
}

}  // namespace
}  // namespace dilu_paper

BenchReport run_dilu_paper(const BenchOptions& o, Monitor& monitor) {
  using namespace dilu_paper;
  BenchReport report;
  std::vector<Row> rows;
  std::vector<std::string> files;
  const std::vector<const PaperRow*> wanted = chosen(o.only);
  const std::string folder = matrix_folder(o);
  for (const PaperRow* paper : wanted) {
    Row& row = rows.emplace_back();
    row.paper = paper;
    files.push_back(matrix_file(folder, paper->name));
    row.generated = files.back().empty() && paper->generator;
    row.from = row.generated ? paper->generator : std::filesystem::path(files.back()).filename().string();
  }
  if (std::none_of(rows.begin(), rows.end(), [](const Row& r) { return r.at_hand(); })) {
    std::string names;
    for (const Row& r : rows) names += fmt::format(" {}", r.paper->name);
    throw Error(fmt::format("nothing to measure: none of the matrices is {}; tools/fetch-matrices{}{} gets them",
                            folder.empty() ? "at hand, and neither --matrices nor KRILU_MATRICES names a folder"
                                           : "in the folder " + folder,
                            folder.empty() ? " --to FOLDER" : " --to " + folder, names));
  }

  const Machine machine = warm_up(o, monitor);
  for (std::size_t k = 0; k < rows.size() && !monitor.interrupted(); ++k) {
    if (!rows[k].at_hand()) continue;
    try {
      fill(rows[k], files[k], o, monitor);
    } catch (const Error& e) {
      rows[k].from += " (unreadable)";
      rows[k].remarks.push_back(e.what());
      report.trouble += (report.trouble.empty() ? "" : "\nkrilu: ") + std::string(e.what());
    }
  }

  report.markdown = tables(rows, machine, o);
  report.pictures = {{"-fig6.png", figure_6(rows)}, {"-fig7.png", figure_7(rows)}};
  report.json = {{"krilu", version},
                 {"paper",
                  "Wang and Liu, GPU-based parallel DILU preconditioning technique, Computer Science 49(6), "
                  "108-118, 2022"},
                 {"command", o.command},
                 {"machine", {{"device", machine.device}, {"cpu", machine.cpu}, {"threads", machine.threads}}},
                 {"rules",
                  {{"solver", "bicgstab"},
                   {"rhs", fmt::format("uniform01:{}", seed)},
                   {"rtol", tolerance},
                   {"max_iterations", most_iterations},
                   {"repeat", o.repeat}}},
                 {"rows", nlohmann::ordered_json::array()}};
  for (const Row& row : rows) report.json["rows"].push_back(row_json(row));
  return report;
}

}  // namespace krilu::app
