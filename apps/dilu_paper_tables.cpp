// SPDX-License-Identifier: Apache-2.0
// krilu bench dilu-paper: Tables 1 to 5 of Wang and Liu (2022) with the paper's figures beside ours, their Figures 6
// and 7 as pictures and in numbers, and what follows from them.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "dilu_paper.hpp"
#include "io/report.hpp"
#include "krilu/version.hpp"

namespace krilu::app::dilu_paper {

namespace {

using Cells = std::vector<std::string>;

std::string name_of(const Row& row) {
  return row.generated ? fmt::format("{} (gen)", row.paper->name) : row.paper->name;
}

double factor_ms(const Measured& m) { return m.done ? 1e3 * m.seconds.factor : not_known; }
double whole_s(const Measured& m) { return m.done ? m.whole() : not_known; }
double iteration_ms(const Measured& m) { return m.done && m.result.iterations > 0 ? 1e3 * m.iteration() : not_known; }
/// Seconds of the solve, with its iterations where they are not those of `like`.
std::string solve_s(const Measured& m, const Measured& like) {
  if (!m.done) return "-";
  const std::string seconds = figure(m.seconds.solve);
  return m.result.iterations == like.result.iterations ? seconds : fmt::format("{} ({})", seconds, m.result.iterations);
}
/// A BiCGStab iteration applies its preconditioner twice; all else is as without one.
double application_ms(double with, double without) { return (with - without) / 2; }
double paper_iteration_ms(const PaperRow& p, double seconds) {
  return p.iterations ? 1e3 * seconds / p.iterations : not_known;
}
std::string paper_iterations(const PaperRow& p) { return p.iterations ? std::to_string(p.iterations) : "-"; }

/// A section: title, a sentence, a table with one line for each matrix at hand.
std::string section(const std::string& title, const std::string& words, Cells head, const std::vector<Row>& rows,
                    const std::function<Cells(const Row&)>& cells) {
  head.insert(head.begin(), "matrix");
  MarkdownTable table(std::move(head));
  for (const Row& row : rows) {
    if (!row.at_hand()) continue;
    Cells line = cells(row);
    line.insert(line.begin(), name_of(row));
    table.add(std::move(line));
  }
  return fmt::format("\n## {}\n\n{}{}{}", title, words, words.empty() ? "" : "\n\n", table.text());
}

std::string matrices(const std::vector<Row>& rows) {
  MarkdownTable table({"matrix", "kind", "taken from", "no.", "rows", "nonzeros"}, 3);
  for (const Row& row : rows) {
    const PaperRow& p = *row.paper;
    const auto count = [](std::int64_t n) { return n ? io::thousands(n) : "-"; };
    table.add({name_of(row), p.kind, row.at_hand() ? row.from : "missing", p.number ? std::to_string(p.number) : "-",
               count(row.rows ? row.rows : p.rows), count(row.nnz ? row.nnz : p.nnz)});
  }
  std::string text = "\n## Table 1: matrices\n\n" + table.text();
  std::string missing, fetched;
  for (const Row& row : rows) {
    if (row.generated)
      text += fmt::format("\n{} is not at hand: {} stands for it, with its pattern and other values.\n",
                          row.paper->name, row.from);
    if (!row.at_hand()) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", row.paper->name);
    if (!row.at_hand() || row.generated) fetched += fmt::format(" {}", row.paper->name);
  }
  if (!missing.empty()) text += fmt::format("\nMissing: {}.\n", missing);
  if (!fetched.empty())
    text += fmt::format(
        "\n`tools/fetch-matrices --to FOLDER{}` gets what is not at hand; then `--matrices FOLDER`, or "
        "KRILU_MATRICES.\n",
        fetched);
  return text;
}

std::string construction(const std::vector<Row>& rows) {
  return section("Table 2: construction of the preconditioners, ms",
                 "The paper's ILU is cuSPARSE's csrilu02. Ours takes the values and forms the factors. The analysis "
                 "(ordering, levels, storage), once for a "
                 "pattern, is the "
                 "last column.",
                 {"DILU levels, K20m", "ours", "DILU no levels, K20m", "ours", "ILU levels, K20m", "ours",
                  "ILU no levels, K20m", "ours", "analysis"},
                 rows, [](const Row& r) -> Cells {
                   const auto& p = r.paper->construction;
                   return {figure(p.dilu_levels),
                           figure(factor_ms(r.dilu_levels)),
                           figure(p.dilu_free),
                           figure(factor_ms(r.dilu_free)),
                           figure(p.ilu_levels),
                           figure(factor_ms(r.ilu_levels)),
                           figure(p.ilu_free),
                           figure(factor_ms(r.ilu_free)),
                           figure(r.dilu_levels.done ? 1e3 * r.dilu_levels.seconds.analyse : not_known)};
                 });
}

std::string strategies(const std::vector<Row>& rows) {
  return section("Table 3: DILU-BiCGStab under two strategies, s",
                 "None runs without a preconditioner for as many iterations; other numbers of iterations stand in "
                 "brackets. Colouring is Algorithm 7 on both triangles, "
                 "ours on the host.",
                 {"iterations, K20m", "ours", "none, K20m", "ours", "colouring, K20m", "ours", "levels, K20m", "ours",
                  "no levels, K20m", "ours"},
                 rows, [](const Row& r) -> Cells {
                   const auto& p = r.paper->solve;
                   return {paper_iterations(*r.paper),
                           iterations_of(r.dilu_levels),
                           figure(p.none),
                           solve_s(r.none_as_long, r.dilu_levels),
                           figure(p.colouring),
                           figure(r.levels.sync_free),
                           figure(p.levels),
                           solve_s(r.dilu_levels, r.dilu_levels),
                           figure(p.free),
                           solve_s(r.dilu_free, r.dilu_levels)};
                 });
}

std::string applications(const std::vector<Row>& rows) {
  return section(
      "From Table 3: one application of DILU, ms",
      "Half of what an iteration takes longer than without a preconditioner. This does not depend on how many "
      "iterations the values ask for.",
      {"levels, K20m", "ours", "no levels, K20m", "ours", "iteration without, K20m", "ours"}, rows,
      [](const Row& r) -> Cells {
        const PaperRow& p = *r.paper;
        const double theirs = paper_iteration_ms(p, p.solve.none), ours = iteration_ms(r.none_as_long);
        return {figure(application_ms(paper_iteration_ms(p, p.solve.levels), theirs)),
                figure(application_ms(iteration_ms(r.dilu_levels), ours)),
                figure(application_ms(paper_iteration_ms(p, p.solve.free), theirs)),
                figure(application_ms(iteration_ms(r.dilu_free), ours)),
                figure(theirs),
                figure(ours)};
      });
}

std::string cpu_construction(const std::vector<Row>& rows) {
  return section("Table 4: construction of DILU, ms", "On the CPU it is serial, in the paper as here.",
                 {"levels, K20m", "ours", "no levels, K20m", "ours", "CPU, 2x E5-2620", "ours"}, rows,
                 [](const Row& r) -> Cells {
                   const auto& p = r.paper->construction;
                   return {figure(p.dilu_levels), figure(factor_ms(r.dilu_levels)),
                           figure(p.dilu_free),   figure(factor_ms(r.dilu_free)),
                           figure(p.dilu_cpu),    figure(factor_ms(r.dilu_cpu))};
                 });
}

std::string cpu_solves(const std::vector<Row>& rows) {
  return section(
      "Table 5: DILU-BiCGStab, s",
      "Ours is whole: analysis, construction and solve. The paper's is the solve, with the colouring where levels are "
      "used. On the CPU DILU is serial and all else runs on all cores.",
      {"iterations, K20m", "ours", "levels, K20m", "ours", "no levels, K20m", "ours", "CPU, 2x E5-2620", "ours"}, rows,
      [](const Row& r) -> Cells {
        const auto& p = r.paper->solve;
        return {paper_iterations(*r.paper),
                iterations_of(r.dilu_levels),
                figure(p.levels + p.colouring),
                figure(whole_s(r.dilu_levels)),
                figure(p.free),
                figure(whole_s(r.dilu_free)),
                figure(p.cpu),
                figure(whole_s(r.dilu_cpu))};
      });
}

std::string own_choice(const std::vector<Row>& rows) {
  return section(
      "Beyond the paper: DILU-BiCGStab with krilu's own ordering and sweeps",
      "The paper's column is the faster of its two on the K20m, as in Table 5.",
      {"ordering", "sweeps", "iterations", "analysis, ms", "construction, ms", "solve, s", "whole, s", "K20m, s"}, rows,
      [](const Row& r) -> Cells {
        const Measured& m = r.choice;
        const auto& p = r.paper->solve;
        const std::string paper = figure(std::min(p.levels + p.colouring, p.free));
        if (!m.done) return {"-", "-", "-", "-", "-", "-", "-", paper};
        return {m.result.ordering,    m.result.triangular, iterations_of(m),   milliseconds(m.seconds.analyse),
                figure(factor_ms(m)), solve_s(m, m),       figure(whole_s(m)), paper};
      });
}

std::string convergence(const std::vector<Row>& rows) {
  return section("Figure 6 in numbers: iterations of BiCGStab, and the true residual at the end",
                 "Section 4.1 says of offshore that BiCGStab converges neither without a preconditioner nor with DILU, "
                 "and very well with ILU.",
                 {"none", "residual", "DILU", "residual", "ILU", "residual"}, rows, [](const Row& r) -> Cells {
                   Cells line;
                   for (const Measured* m : {&r.none, &r.dilu_levels, &r.ilu_levels}) {
                     line.push_back(iterations_of(*m));
                     line.push_back(m->done ? fmt::format("{:.1e}", m->result.relative_residual) : "-");
                   }
                   return line;
                 });
}

std::string levels(const std::vector<Row>& rows) {
  return section("Figure 7 in numbers: levels, and how long the host looks for them in both triangles, ms",
                 "Rows in one are those of the lower triangle.",
                 {"levels below", "above", "rows in one: least", "median", "most", "Algorithm 7", "Algorithm 2"}, rows,
                 [](const Row& r) -> Cells {
                   const std::vector<Index>& in = r.levels.lower;
                   if (in.empty()) return {"-", "-", "-", "-", "-", "-", "-"};
                   return {std::to_string(in.size()),
                           std::to_string(r.levels.upper.size()),
                           std::to_string(*std::min_element(in.begin(), in.end())),
                           figure(median({in.begin(), in.end()})),
                           std::to_string(*std::max_element(in.begin(), in.end())),
                           milliseconds(r.levels.sync_free),
                           milliseconds(r.levels.rounds)};
                 });
}

std::string panel_title(const Row& row) {
  const std::string number = row.paper->number ? fmt::format("({}) ", row.paper->number) : "";
  return number + (row.generated ? fmt::format("{}, generated", row.paper->name) : row.paper->name);
}

}  // namespace

std::string tables(const std::vector<Row>& rows, const Machine& machine, const BenchOptions& o) {
  std::string text = "# Wang and Liu (2022), GPU-based parallel DILU preconditioning, repeated\n\n";
  const std::string cpu = fmt::format("{}, {} thread{}", machine.cpu, machine.threads, machine.threads == 1 ? "" : "s");
  const bool on_cpu = machine.device == "host";
  text += fmt::format("Ours: krilu {} on {}. The paper's: Tesla K20m{}. `{}`\n", version,
                      on_cpu ? cpu : fmt::format("{}; CPU columns on {}", machine.device, cpu),
                      ", CPU columns on two Xeon E5-2620 with 12 threads", o.command);
  text += fmt::format(
      "\nThe paper's rules: BiCGStab in natural ordering, right-hand side uniform in 0 to 1 (uniform01:{}), from zero, "
      "{} "
      "iterations at most. To {:.0e} of the first residual: the paper states no tolerance. Ours is the median of {}.\n",
      seed, most_iterations, tolerance, o.repeat);
  text += matrices(rows);
  for (const auto& part :
       {construction, strategies, applications, cpu_construction, cpu_solves, own_choice, convergence, levels})
    text += part(rows);
  std::string remarks;
  for (const Row& row : rows)
    for (const std::string& remark : row.remarks) remarks += fmt::format("- {}: {}\n", name_of(row), remark);
  if (!remarks.empty()) text += "\n## Remarks\n\n" + remarks;
  return text;
}

io::Picture figure_6(const std::vector<Row>& rows) {
  io::Picture p;
  p.x_label = "iterations";
  p.y_label = "||r_k|| / ||r_0||";
  p.log_y = true;
  p.target = tolerance;
  p.target_label = "tolerance";
  for (const Row& row : rows) {
    std::vector<io::Curve> curves;
    for (const auto& [label, m] :
         {std::pair{"None", &row.none}, {"DILU", &row.dilu_levels}, {"ILU", &row.ilu_levels}}) {
      if (!m->done) continue;
      io::Curve& curve = curves.emplace_back(io::Curve{label, {}});
      for (std::size_t k = 0; k < m->result.history.size(); ++k)
        curve.points.emplace_back(double(k), m->result.history[k]);
      curve.dashed = m == &row.ilu_levels;  // DILU and ILU are one on stencils without triangles
    }
    if (curves.empty()) continue;
    p.panels.push_back(std::move(curves));
    p.panel_titles.push_back(panel_title(row));
  }
  p.columns = p.panels.size() > 2 ? 2 : 1;
  return p;
}

io::Picture figure_7(const std::vector<Row>& rows) {
  io::Picture p;
  p.x_label = "level";
  p.y_label = "rows";
  p.steps = true;
  for (const Row& row : rows) {
    if (row.levels.lower.empty()) continue;
    io::Curve curve;
    for (std::size_t l = 0; l < row.levels.lower.size(); ++l)
      curve.points.emplace_back(double(l), double(row.levels.lower[l]));
    curve.points.emplace_back(double(row.levels.lower.size()), double(row.levels.lower.back()));  // the last bar's end
    p.panels.push_back({std::move(curve)});
    p.panel_titles.push_back(fmt::format("{}: {} levels", panel_title(row), row.levels.lower.size()));
    p.panel_log_y.push_back(row.paper->log_levels);
  }
  p.columns = p.panels.size() > 2 ? 2 : 1;
  return p;
}

}  // namespace krilu::app::dilu_paper
