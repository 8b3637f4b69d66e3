// SPDX-License-Identifier: Apache-2.0
// krilu bench gmres-ir-paper: measures what section 2 of Zheng, Kou and Zhang (2025) measured, GMRES in double against
// GMRES-based refinement with its inner solves in lower precision, both with ILU(0), on one core, matrix by matrix.
// Figures of the paper: Tables 2 to 4. Every figure is one of the public Solver's, but for the condition numbers.
#include "gmres_ir_paper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/names.hpp"
#include "io/report.hpp"
#include "krilu/io.hpp"
#include "krilu/version.hpp"
#include "terminal.hpp"

namespace krilu::app {

namespace gmres_ir_paper {

const std::vector<System>& systems() {
  using enum Origin;
  static const std::vector<System> all{
      // Table 3, in its order; then ex20 of Table 4, and those that the extremes in Table 2 tell.
      {"poisson3Db", collection, PaperLine{0.695, 55.039, 40.5, 1.91e-11, 4.59e-12}},
      {"venkat01", collection, PaperLine{0.189, 34.801, 13.726, 9.60e-14, 3.54e-14}},
      {"raefsky1", collection, PaperLine{0.092, 2.526, 1.757, 6.91e-12, 4.62e-12}},
      {"poisson3Da", collection, PaperLine{0.09, 7.855, 4.426, 1.85e-12, 8.76e-13}},
      {"Goodwin_013", collection, PaperLine{0.013, 1.133, 0.772, 3.20e-11, 2.92e-13}},
      {"shallow_water1", collection, PaperLine{0.012, 40.603, 19.853, 3.51e-13, 6.14e-13}},
      {"shallow_water2", collection, PaperLine{0.012, 40.087, 19.937, 2.30e-12, 1.27e-13}},
      {"ex20", collection, {}, true},
      {"lung2", collection, {}},
      {"orsreg_1", collection, {}},
      {"sherman2", collection, {}},
      // Others of flow, transport and fields.
      {"pde900", collection, {}},
      {"gr_30_30", collection, {}},
      {"opm_spe1", elsewhere, {}},
      {"sherman1", collection, {}},
      {"olm1000", collection, {}},
      {"cavity_pc_32x32_i10", elsewhere, {}},
      {"cavity05", collection, {}},
      {"pores_2", collection, {}},
      {"epb0", collection, {}},
      {"watt_1", collection, {}},
      {"bcsstk13", collection, {}},
      {"rdb2048", collection, {}},
      {"cz2548", collection, {}},
      {"cavity10", collection, {}},
      {"wang2", collection, {}},
      {"hifir_stokes", elsewhere, {}},
      {"sherman5", collection, {}},
      {"hifir_adfdm4", elsewhere, {}},
      {"cavity_pc_64x64_i10", elsewhere, {}},
      {"e20r0000", elsewhere, {}},
      {"sherman3", collection, {}},
      {"ex15", collection, {}},
      {"GT01R", collection, {}},
      {"Dubcova1", collection, {}},
      {"cavity_pc_128x128_i10", elsewhere, {}},
      {"af23560", collection, {}},
      {"openfoam/foam_motorBike66k_Ux", elsewhere, {}},
      {"openfoam/foam_pitzDaily110k_p", elsewhere, {}},
      {"openfoam/foam_pitzDaily110k_Ux", elsewhere, {}},
      // A right-hand side of ones is an eigenvector of the three after the first. With ILU(0) that makes them no
      // easier:
      // iterations are those of a random one.
      {"gen:poisson2d:128x128", generator, {}},
      {"gen:convdiff3d:24x24x24", generator, {}},
      {"gen:convdiff3d:48x48x48", generator, {}},
      {"gen:aniso3d:32x32x32", generator, {}},
      // Finite elements for flow, as the ex matrices are; the first stands for ex20.
      {"gen:femflow2d:16x16", generator, {}, true},
      {"gen:femflow2d:32x32", generator, {}},
      {"gen:femflow2d:64x64", generator, {}},
  };
  return all;
}

const std::vector<PaperCase>& paper_cases() {
  static const std::vector<PaperCase> all{
      {0, 300, 8.18e-12, 433, 1.688},   {most_outer, most_inner, 3.51e-4, 1000, 2.203},
      {10, 200, 8.49e-12, 1554, 5.484}, {20, 100, 9.36e-12, 1600, 3.859},
      {40, 50, 9.289, 2000, 3.248},     {4, 500, 2.415e-5, 1988, 14.8125},
  };
  return all;
}

bool converged(const Measured& m) { return m.done && m.result.status == Status::converged; }

double speed_up(const Measured& in_double, const Measured& mixed) {
  return converged(in_double) && converged(mixed) ? in_double.seconds.solve / mixed.seconds.solve : not_known;
}

std::string first_precision(const BenchOptions& o) { return o.precision == "auto" ? "fp32" : o.precision; }

bool was_raised(const Measured& mixed, const BenchOptions& o) {
  if (!mixed.done) return false;
  const std::string &last = mixed.result.precision, first = first_precision(o);
  const bool more_of_the_same = last.starts_with(first + " with ") && last.ends_with(" inner iterations");
  return last != first && !more_of_the_same;
}

namespace {

using Json = nlohmann::ordered_json;

/// Limits of the mixed solver in one precision. outer 0: double.
struct Limits {
  int outer, inner;
};

struct Kind {
  const char *key, *label;
  Measured Row::*to;
  Limits limits;
};
constexpr Kind kinds[] = {{"double", "double", &Row::in_double, {0, 0}},
                          {"mixed", "mixed", &Row::mixed, {most_outer, most_inner}}};

Options options_of(const Limits& limits, const std::string& precond, Index rows, const BenchOptions& o) {
  Options s;
  s.solver = "gmres";
  s.precond = precond;
  s.device = "host";
  s.threads = 1;
  s.restart = restart;
  s.rtol = 0;
  s.atol = target_rmse * std::sqrt(double(rows));
  s.max_iterations = most_iterations;
  if (limits.outer == 0) return s;
  s.solver = "gmres-ir";
  s.precision = o.precision;
  s.outer_iterations = limits.outer;
  s.inner_iterations = limits.inner;
  s.restart = std::max(restart, limits.inner);
  // What the paper allows, and as much as double has for when that did not do and the precision is raised.
  s.max_iterations += limits.outer * limits.inner;
  return s;
}

std::vector<const System*> chosen(const std::vector<std::string>& only) {
  std::vector<std::string> names;
  for (const System& s : systems()) names.emplace_back(s.name());
  for (const std::string& name : only) require_name("matrix of gmres-ir-paper", name, names);
  std::vector<const System*> out;
  for (const System& s : systems())
    if (only.empty() || std::find(only.begin(), only.end(), s.name()) != only.end()) out.push_back(&s);
  return out;
}

/// Both kinds once on a small system: what they refuse is refused before any work, and no measurement pays for what a
/// process does once.
void warm_up(const BenchOptions& o, Monitor& monitor) {
  const CsrMatrix a = generate("gen:convdiff3d:8x8x8");
  const std::vector<double> b(std::size_t(a.rows), 1.0);
  for (const Kind& kind : kinds) {
    const Measured m = measure(a, b, options_of(kind.limits, "ilu0", a.rows, o), 1, "warming up", monitor);
    if (!m.error.empty()) throw Error(m.error);
  }
}

/// ILU(0) where it can be formed, else what can.
std::string precond_for(const CsrView& a, const BenchOptions& o, Row& row) {
  const char* const names[] = {"ilu0", "jacobi", "none"};
  const StepLine step(row.system->name() + ": looking for a preconditioner", true);
  for (int k = 0; k < 2; ++k) {
    try {
      Options s = options_of(kinds[0].limits, names[k], a.rows, o);
      s.restart = 1;  // no basis for this
      Solver(s).setup(a);
      return names[k];
    } catch (const Error& e) {
      row.remarks.push_back(fmt::format("{} in place of {}: {}", names[k + 1], names[k], e.what()));
    }
  }
  return names[2];
}

void remark_on(const Measured& m, const std::string& label, Row& row) {
  if (!m.error.empty()) row.remarks.push_back(fmt::format("{}: {}", label, m.error));
  // Restarts are no news of GMRES, nor is the choice of sweeps; both are in the JSON.
  for (const std::string& note : m.result.notes)
    if (!note.starts_with("triangular auto") && !note.starts_with("the recurrence's residual met"))
      row.remarks.push_back(fmt::format("{}: {}", label, note));
}

/// What is to be measured, and where it goes.
struct Turn {
  std::string label;
  Options options;
  Measured* to;
};

/// As measure(), but repetition by repetition all of them by turns, so that they see the same machine. A Solver of its
/// own for each solve: one that has raised its precision would begin there the next time.
void measure_by_turns(const CsrView& a, std::span<const double> b, std::span<const Turn> turns, int repeat,
                      Monitor& monitor, Row& row) {
  std::vector<double> x(b.size());
  for (int k = 0; k < repeat; ++k)
    for (const Turn& turn : turns) {
      Measured& m = *turn.to;
      if (!m.error.empty() || monitor.interrupted()) continue;
      const std::string label = fmt::format("{}: {}", row.system->name(), turn.label);
      try {
        Solver solver(turn.options);
        {
          const StepLine step(label + ": setting up", true);
          solver.setup(a);
        }
        if (monitor.interrupted()) continue;
        std::fill(x.begin(), x.end(), 0.0);
        const ProgressLine progress(monitor, label, true);
        Result r = solver.solve(b, x, &monitor);
        if (r.status == Status::interrupted) continue;
        m.each.push_back(r.seconds);
        if (!m.done) m.result = std::move(r);
        m.done = true;
      } catch (const Error& e) {
        m.done = false;
        m.error = e.what();
      }
    }
  for (const Turn& turn : turns) {
    for (double Seconds::*part : {&Seconds::analyse, &Seconds::factor, &Seconds::solve}) {
      std::vector<double> values;
      for (const Seconds& s : turn.to->each) values.push_back(s.*part);
      turn.to->seconds.*part = median(values);
    }
    remark_on(*turn.to, turn.label, row);
  }
}

void measure_all(const CsrView& a, const BenchOptions& o, Monitor& monitor, Row& row) {
  std::vector<Turn> turns;
  for (const Kind& kind : kinds)
    turns.push_back({kind.label, options_of(kind.limits, row.precond, a.rows, o), &(row.*kind.to)});
  if (row.system->hard) row.cases.resize(paper_cases().size());
  for (std::size_t k = std::size(kinds); k < row.cases.size(); ++k) {
    const PaperCase& c = paper_cases()[k];
    turns.push_back({fmt::format("mixed, {} x {}", c.outer, c.inner),
                     options_of({c.outer, c.inner}, row.precond, a.rows, o), &row.cases[k]});
  }
  measure_by_turns(a, std::vector<double>(std::size_t(a.rows), 1.0), turns, o.repeat, monitor, row);
  for (std::size_t k = 0; k < std::size(kinds) && k < row.cases.size(); ++k) row.cases[k] = row.*kinds[k].to;
}

void study(const CsrMatrix& a, const BenchOptions& o, Row& row) {
  row.rows = a.rows;
  row.nnz = a.nnz();
  for (const double value : a.values) {
    const double size = std::abs(value);
    if (!(size > 0)) continue;
    row.largest = std::fmax(row.largest, size);
    row.smallest = std::fmin(row.smallest, size);
  }
  const StepLine step(row.system->name() + ": condition number", true);
  try {
    row.condition = estimate_condition(a, ConditionNorm::infinity, o.threads);
  } catch (const Error& e) {
    row.remarks.push_back(fmt::format("condition number: {}", e.what()));
  }
}

/// Reads or generates the matrix and measures on it.
void fill(Row& row, const std::string& source, const BenchOptions& o, Monitor& monitor) {
  CsrMatrix a;
  {
    const StepLine step(fmt::format("{} {}", row.generated() ? "generating" : "reading", row.from), true);
    a = row.generated() ? generate(source) : read_matrix_market(source, o.threads).matrix;
  }
  require_valid(a);
  study(a, o, row);
  if (monitor.interrupted()) return;
  row.precond = precond_for(a, o, row);
  measure_all(a, o, monitor, row);
}

Json run_json(const Measured& m) {
  Json j = to_json(m, false);
  if (!m.error.empty()) return j;
  j["rmse"] = m.result.rmse;
  j["outer_iterations"] = m.result.outer_iterations;
  j["precision"] = m.result.precision;
  j["values_lost"] = m.result.values_lost;
  j["bytes"] = m.result.bytes;
  return j;
}

Json cases_json(const Row& row) {
  Json j = Json::array();
  for (std::size_t k = 0; k < row.cases.size(); ++k) {
    const PaperCase& c = paper_cases()[k];
    const Measured& m = row.cases[k];
    Json& out = j.emplace_back(
        Json{{"outer", c.outer},
             {"inner", c.inner},
             {"paper", {{"system", "ex20"}, {"rmse", c.rmse}, {"iterations", c.iterations}, {"seconds", c.seconds}}}});
    if (m.done || !m.error.empty()) out["run"] = run_json(m);
    out["speed_up"] = speed_up(row.in_double, m);
  }
  return j;
}

Json row_json(const Row& row, const BenchOptions& o) {
  Json j{{"matrix", row.system->name()},
         {"source", !row.at_hand()    ? "missing"
                    : row.generated() ? "generated"
                                      : "file"}};
  if (const auto& p = row.system->paper)
    j["paper"] = {{"seconds", {{"ilu", p->ilu}, {"double", p->in_double}, {"mixed", p->mixed}}},
                  {"speed_up", p->speed_up()},
                  {"rmse", {{"double", p->rmse_double}, {"mixed", p->rmse_mixed}}}};
  if (!row.at_hand()) return j;
  j["from"] = row.from;
  j["rows"] = row.rows;
  j["nnz"] = row.nnz;
  j["density"] = row.density();
  j["magnitudes"] = {{"largest", row.largest}, {"smallest", row.smallest}};
  if (const auto& c = row.condition)
    j["condition"] = {{"value", c->value},
                      {"norm", c->norm},
                      {"inverse_norm", c->inverse_norm},
                      {"solves", c->solves},
                      {"by", c->by}};
  j["precond"] = row.precond;
  for (const Kind& kind : kinds)
    if (const Measured& m = row.*kind.to; m.done || !m.error.empty()) j["runs"][kind.key] = run_json(m);
  j["speed_up"] = speed_up(row.in_double, row.mixed);
  j["raised"] = was_raised(row.mixed, o);
  if (!row.cases.empty()) j["cases"] = cases_json(row);
  j["remarks"] = row.remarks;
  return j;
}

Json summary_json(const std::vector<Row>& rows, const BenchOptions& o) {
  const Summary s = summary(rows, o);
  const auto named = [](const Named& n) { return Json{{"matrix", n.name}, {"speed_up", n.value}}; };
  Json j{{"tried", s.tried},
         {"converged", {{"double", s.in_double}, {"mixed", s.mixed}}},
         {"in_double_alone", s.lost},
         {"in_mixed_alone", s.won},
         {"speed_ups", {{"all", s.compared}, {"above_1", s.faster}, {"large", s.large}, {"raised", s.raised}}},
         {"geometric_mean_large", s.mean},
         {"best", named(s.best)},
         {"slowest",
          {{"large", named(s.slowest_large)},
           {"sufficed", named(s.slowest_sufficed)},
           {"raised", named(s.slowest_raised)}}}};
  for (const Correlation& c : correlations(rows))
    j["pearson"][c.key] = {{"samples", c.samples}, {"x_y", c.plain}, {"lgx_y", c.log_x}, {"x_lgy", c.log_y}};
  return j;
}

}  // namespace
}  // namespace gmres_ir_paper

BenchReport run_gmres_ir_paper(const BenchOptions& o, Monitor& monitor) {
  using namespace gmres_ir_paper;
  if (o.device != "auto" && o.device != "host")
    throw Error(
        fmt::format("gmres-ir-paper measures on one core of the host, and --device is {}: leave it out", o.device));
  BenchReport report;
  std::vector<Row> rows;
  std::vector<std::string> sources;
  const std::vector<const gmres_ir_paper::System*> wanted = chosen(o.only);
  const std::string folder = matrix_folder(o);
  for (const gmres_ir_paper::System* system : wanted) {
    Row& row = rows.emplace_back();
    row.system = system;
    sources.push_back(row.generated() ? system->file : matrix_file(folder, system->file));
    row.from = row.generated() ? system->file : std::filesystem::path(sources.back()).filename().string();
  }
  if (std::none_of(rows.begin(), rows.end(), [](const Row& r) { return r.at_hand(); })) {
    std::string names;
    for (const Row& r : rows)
      if (r.system->origin == Origin::collection) names += " " + r.system->name();
    throw Error(fmt::format("nothing to measure: none of the matrices is {}{}",
                            folder.empty() ? "at hand, and neither --matrices nor KRILU_MATRICES names a folder"
                                           : "in the folder " + folder,
                            names.empty() ? ""
                                          : fmt::format("; tools/fetch-matrices --to {}{} gets them",
                                                        folder.empty() ? "FOLDER" : folder, names)));
  }

  warm_up(o, monitor);
  for (std::size_t k = 0; k < rows.size() && !monitor.interrupted(); ++k) {
    if (!rows[k].at_hand()) continue;
    try {
      fill(rows[k], sources[k], o, monitor);
    } catch (const Error& e) {
      rows[k].from += " (unreadable)";
      rows[k].remarks.push_back(e.what());
      report.trouble += (report.trouble.empty() ? "" : "\nkrilu: ") + std::string(e.what());
    }
  }

  const Machine machine{processor()};
  report.markdown = tables(rows, machine, o);
  report.pictures = {{"-fig3.png", figure_3(rows)},
                     {"-fig4.png", figure_4(rows)},
                     {"-fig6.png", figure_6(rows, o)},
                     {"-fig9.png", figure_9(rows, o)},
                     {"-fig10.png", figure_10(rows)}};
  report.json = {{"krilu", version},
                 {"paper",
                  "Zheng, Kou and Zhang, a mixed-precision GMRES acceleration algorithm for large sparse matrices in "
                  "fluid dynamics simulation, Applied Mathematics and Mechanics 46(1), 40-54, 2025"},
                 {"command", o.command},
                 {"machine", {{"device", "host"}, {"cpu", machine.cpu}, {"threads", 1}}},
                 {"rules",
                  {{"rhs", "ones"},
                   {"rmse", target_rmse},
                   {"double", {{"solver", "gmres"}, {"restart", restart}, {"max_iterations", most_iterations}}},
                   {"mixed",
                    {{"solver", "gmres-ir"},
                     {"precision", o.precision},
                     {"inner_iterations", most_inner},
                     {"outer_iterations", most_outer},
                     {"max_iterations", options_of(kinds[1].limits, "ilu0", 1, o).max_iterations}}},
                   {"repeat", o.repeat}}},
                 {"rows", nlohmann::ordered_json::array()}};
  for (const Row& row : rows) report.json["rows"].push_back(row_json(row, o));
  report.json["summary"] = summary_json(rows, o);
  return report;
}

}  // namespace krilu::app
