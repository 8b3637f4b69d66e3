// SPDX-License-Identifier: Apache-2.0
// krilu bench hec-paper: the three tables of Liu, Chen et al. with the paper's figures beside ours, each as one of
// solves and one of the preconditioner alone, and the speed-ups as a picture.
#include <fmt/format.h>

#include <cmath>

#include "hec_paper.hpp"
#include "io/report.hpp"
#include "krilu/version.hpp"

namespace krilu::app::hec_paper {

namespace {

std::string name_of(const Row& row) {
  return row.generated ? fmt::format("{} (gen)", row.paper->name) : row.paper->name;
}

std::string iterations(const Run& run) {
  Measured m;
  m.done = run.done;
  m.result = run.result;
  return iterations_of(m);
}

/// What the text says in round numbers is marked so.
std::string paper_speed_up(const PaperSystem& p, double value) {
  return p.from_text ? "~" + figure(value) : figure(value);
}

std::string systems(const std::vector<Row>& rows) {
  MarkdownTable table({"system", "taken from", "table", "rows", "paper's", "nonzeros", "paper's", "bilut"}, 2);
  std::string missing, stands;
  for (const Row& row : rows) {
    const PaperSystem& p = *row.paper;
    const auto count = [](std::int64_t n) { return n ? io::thousands(n) : "-"; };
    table.add({name_of(row), row.at_hand() ? row.from : "missing", std::to_string(p.table), count(row.rows),
               count(p.rows), count(row.nnz), count(p.nnz), p.ilut});
    if (!row.at_hand()) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", p.name);
    if (row.generated && row.at_hand() && p.name == std::string("atmosmodd"))
      stands = fmt::format(
          "\natmosmodd is not at hand: {} stands for it, with its pattern and other values. `tools/fetch-matrices "
          "--to FOLDER atmosmodd` gets it; then `--matrices FOLDER`, or KRILU_MATRICES.\n",
          row.from);
  }
  std::string text = "\n## Systems\n\n" + table.text() + stands;
  if (!missing.empty())
    text += fmt::format(
        "\nMissing: {}. SPE10 is made from spe10/spe10_model2_kx.txt.gz and spe10/spe10_model2_kz.txt.gz in the folder "
        "of `--matrices` or KRILU_MATRICES.\n",
        missing);
  return text;
}

std::string lines(const Row& row) {
  const PaperSystem& p = *row.paper;
  MarkdownTable solves({"preconditioner", "blocks", "iterations, CPU", "GPU", "1 core, s", "all cores", "GPU",
                        "speed-up", "X5570, s", "C2050", "speed-up"});
  MarkdownTable applications(
      {"preconditioner", "blocks", "1 core, ms", "all cores", "GPU", "speed-up", "X5570, ms", "C2050", "speed-up"});
  for (const Line& line : row.lines) {
    const PaperLine& q = *line.paper;
    const double one = line.one_core_solve();
    solves.add({q.kind, std::to_string(q.blocks), iterations(line.all_cores), iterations(line.gpu), figure(one),
                figure(line.all_cores.solve), figure(line.gpu.solve), figure(one / line.gpu.solve), figure(q.cpu),
                figure(q.gpu), paper_speed_up(p, q.speed_up)});
    const double apply = line.one_core.application;
    applications.add({q.kind, std::to_string(q.blocks), figure(apply), figure(line.all_cores.application),
                      figure(line.gpu.application), figure(apply / line.gpu.application), figure(1e3 * q.pre_cpu),
                      figure(1e3 * q.pre_gpu), paper_speed_up(p, q.pre_speed_up)});
  }
  std::string words;
  if (p.from_text)
    words =
        "The paper's table is lost. Its text gives speed-ups (bilu \"around 8\", its preconditioner \"over 3\"; bilut "
        "\"around 6\" and \"around 2\"; ras \"around 9\" and \"around 6\") and no block counts: they are Table "
        "2's.\n\n";
  else if (p.what[0])
    words = fmt::format("{}\n\n", p.what);
  return fmt::format("\n## Table {}: {}, solve\n\n{}{}\n### One application of the preconditioner\n\n{}", p.table,
                     p.title, words, solves.text(), applications.text());
}

}  // namespace

std::string tables(const std::vector<Row>& rows, const Machine& machine, const BenchOptions& o) {
  std::string text = "# Liu, Chen et al. (about 2012), parallel triangular solvers on GPUs, repeated\n\n";
  const std::string cpu = fmt::format("{}, {} thread{}", machine.cpu, machine.threads, machine.threads == 1 ? "" : "s");
  const bool gpu = machine.device != "host";
  text += fmt::format("Ours: krilu {} on {}{}. The paper's: Tesla C2050/C2070, and Xeon X5570. `{}`\n", version, cpu,
                      gpu ? fmt::format(" and {}", machine.device) : ", no GPU", o.command);
  text += fmt::format(
      "\nThe paper's rules: GMRES({}); bilu is block ILU(0), bilut block ILUT with the entries and the tolerance "
      "below, ras restricted additive Schwarz with ILU(0), here of overlap 1; its blocks are METIS's, ours boxes where "
      "rows are a lattice's. It states neither overlap, right-hand side nor stopping rule: ours are 1, uniform in -1 "
      "to 1 (random:{}), and {:.0e} of the first residual from zero, {} iterations at most.\n",
      restart, seed, tolerance, most_iterations);
  text += fmt::format(
      "\nSeconds are of the solve, without the set-up. One core runs once and for {} iterations at most; its seconds "
      "are those of an iteration times the iterations of all cores, whose bits are the same. Speed-up is one core "
      "over GPU, each over its own iterations; where both end at the limit it is that of an iteration. All else is "
      "the median of {}.\n",
      most_on_one_core, o.repeat);
  text += systems(rows);
  for (const Row& row : rows)
    if (!row.lines.empty()) text += lines(row);
  std::string remarks;
  for (const Row& row : rows)
    for (const std::string& remark : row.remarks) remarks += fmt::format("- {}: {}\n", name_of(row), remark);
  if (!remarks.empty()) text += "\n## Remarks\n\n" + remarks;
  return text;
}

io::Picture speed_ups(const std::vector<Row>& rows) {
  io::Picture p;
  p.y_label = "speed-up, 1 core to GPU";
  p.log_y = true;
  for (const Row& row : rows) {
    std::vector<io::Curve> curves{
        {"solve", {}}, {"solve, paper's", {}, true}, {"application", {}}, {"application, paper's", {}, true}};
    std::vector<std::string> names;
    bool any = false;
    for (const Line& line : row.lines) {
      const double values[] = {line.one_core_solve() / line.gpu.solve, line.paper->speed_up,
                               line.one_core.application / line.gpu.application, line.paper->pre_speed_up};
      any = any || std::isfinite(values[0]);
      for (std::size_t k = 0; k < curves.size(); ++k) curves[k].points.emplace_back(double(names.size()), values[k]);
      names.push_back(fmt::format("{} {}", line.paper->kind, line.paper->blocks));
    }
    if (!any) continue;
    p.panels.push_back(std::move(curves));
    p.panel_titles.push_back(row.generated ? row.paper->title + std::string(", generated") : row.paper->title);
    p.groups.push_back(std::move(names));
  }
  p.columns = p.panels.size() > 2 ? 2 : 1;
  return p;
}

}  // namespace krilu::app::hec_paper
