// SPDX-License-Identifier: Apache-2.0
// krilu bench: repeats the measurements of a paper on this machine and sets them beside the paper's own.
#include "bench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "base/names.hpp"
#include "commands.hpp"
#include "io/output_file.hpp"
#include "io/report.hpp"
#include "krilu/error.hpp"
#include "system.hpp"
#include "terminal.hpp"

namespace krilu::app {

namespace {

struct Paper {
  const char* name;
  const char* what;
  BenchReport (*run)(const BenchOptions&, Monitor&);
  std::vector<const char*> pictures;  // what stands behind PREFIX
};

const std::vector<Paper>& papers() {
  static const std::vector<Paper> all{{"dilu-paper",
                                       "Wang and Liu (2022), parallel DILU on GPUs: Tables 2 to 5, Figures 6 and 7",
                                       run_dilu_paper,
                                       {"-fig6.png", "-fig7.png"}},
                                      {"hec-paper",
                                       "Liu, Chen et al., block ILU(0), block ILUT and RAS on GPUs: its three tables",
                                       run_hec_paper,
                                       {"-speedups.png"}},
                                      {"gmres-ir-paper",
                                       "Zheng, Kou and Zhang (2025), mixed-precision GMRES: Tables 2 to 4, Figures 3, "
                                       "4, 6 and 8 to 10",
                                       run_gmres_ir_paper,
                                       {"-fig3.png", "-fig4.png", "-fig6.png", "-fig9.png", "-fig10.png"}},
                                      {"multigpu-paper",
                                       "Liu, Zhong and Chen (2011), inexact Newton on elliptic grids: Figures 7 to "
                                       "11, over GPUs or ranks where there are several",
                                       run_multigpu_paper,
                                       {"-fig7.png", "-fig8.png", "-fig9.png", "-fig10.png", "-fig11.png"}},
                                      {"mesh-paper",
                                       "unstructured meshes on the SW26010 (2022), loops over faces: Figures 11 to 15",
                                       run_mesh_paper,
                                       {"-fig11.png", "-fig12.png", "-fig13.png", "-fig14.png", "-fig15.png"}}};
  return all;
}

std::vector<std::string> paper_names() {
  std::vector<std::string> names;
  for (const Paper& p : papers()) names.emplace_back(p.name);
  return names;
}

/// The command line, put together from what was parsed.
std::string as_given(const CLI::App& command) {
  std::string text = "krilu " + command.get_name();
  std::set<const CLI::Option*> seen;  // one that was given twice stands there twice, with all of its values each time
  for (const CLI::Option* option : command.parse_order())
    if (seen.insert(option).second)
      text += fmt::format("{} {}", option->get_positional() ? "" : " " + option->get_name(),
                          fmt::join(option->results(), ","));
  return text;
}

int run(const BenchOptions& o) {
  require_name("paper", o.paper, paper_names());
  const Paper& paper =
      *std::find_if(papers().begin(), papers().end(), [&](const Paper& p) { return o.paper == p.name; });
  // What can be refused is refused before any work.
  if (o.repeat < 1) throw Error("repeat is a whole number from 1");
  require_outputs({}, {o.json, o.markdown});
  if (!o.plot.empty())
    for (const char* ending : paper.pictures) io::require_drawable(o.plot + ending);
  {
    Options asked;
    asked.device = o.device;
    asked.threads = o.threads;
    const Solver refuses_bad_options(asked);
  }

  Monitor monitor;
  const InterruptGuard guard(monitor);
  BenchReport report = paper.run(o, monitor);
  report.json["interrupted"] = monitor.interrupted();
  if (monitor.interrupted()) report.markdown += "\nInterrupted: what was measured until then is above.\n";
  const bool to_stdout = o.json == "-";
  if (!to_stdout) fmt::print("{}", report.markdown);

  std::string trouble = report.trouble;
  const auto attempt = [&](const std::string& path, const char* what, auto write) {
    try {
      write();
      if (!to_stdout) print_row(what, path);
    } catch (const Error& e) {
      trouble += (trouble.empty() ? "" : "\nkrilu: ") + std::string(e.what());
    }
  };
  if (!to_stdout && !(o.json + o.markdown + o.plot).empty()) fmt::print("\n");
  if (!o.json.empty()) attempt(o.json, "report", [&] { io::write_json(o.json, report.json); });
  if (!o.markdown.empty())
    attempt(o.markdown, "tables", [&] {
      io::OutputFile file(o.markdown);
      file.add(report.markdown);
      file.commit();
    });
  if (!o.plot.empty())
    for (const auto& [ending, picture] : report.pictures)
      if (!picture.panels.empty()) attempt(o.plot + ending, "picture", [&] { io::draw(picture, o.plot + ending); });
  if (!trouble.empty()) throw Error(trouble);
  return monitor.interrupted() ? 3 : 0;
}

}  // namespace

Run add_bench(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("bench", "Repeat a paper's measurements here, beside the paper's own");
  auto o = std::make_shared<BenchOptions>();
  std::string names = "The paper:";
  for (const Paper& p : papers()) names += fmt::format(" {} ({})", p.name, p.what);
  command.add_option("NAME", o->paper, names)->required();
  command.add_option("--only", o->only, "Of the paper's matrices or meshes these only, a list")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--matrices", o->matrices,
                     "The folder with the matrices [$KRILU_MATRICES]; tools/fetch-matrices --set NAME fills one");
  command.add_option("--repeat", o->repeat, "Measure so often, and take the median")->capture_default_str();
  command.add_option("--device", o->device, "auto (a GPU where there is one), host, cuda[:N], emulated")
      ->capture_default_str();
  command.add_option("--threads", o->threads, "Threads of the host [all]");
  command
      .add_option("--precision", o->precision,
                  "Of gmres-ir-paper's inner solves, before it is raised: fp32, fp32/fp16, fp32/bf16")
      ->capture_default_str();
  command.add_option("--json", o->json, "Write all of it here as JSON (- for standard output)")->check(a_name());
  command.add_option("--markdown", o->markdown, "Write the tables here")->check(a_name());
  command.add_option("--plot", o->plot, "Draw the figures as PREFIX-fig6.png and so on")->type_name("PREFIX");
  command.footer("Example: krilu bench dilu-paper --only atmosmodd --repeat 5 --plot out");
  return [o, &command] {
    o->command = as_given(command);
    return run(*o);
  };
}

}  // namespace krilu::app
