// SPDX-License-Identifier: Apache-2.0
// krilu compare: several preconditioners on one system. Paper of the picture: Wang and Liu (2022), Figure 6.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "io/plot.hpp"
#include "io/report.hpp"
#include "krilu/version.hpp"
#include "precond/registry.hpp"
#include "system.hpp"
#include "terminal.hpp"

namespace krilu::app {

namespace {

struct CompareOptions {
  SystemOptions system;
  Options solver;
  std::vector<std::string> preconds;
  std::string json, plot;
};

/// "none,ras:64,1,dilu" is none, ras:64,1 and dilu: what begins with a digit belongs to the name before. Where a
/// semicolon stands, that alone separates: "dilu;ras:64,1,dilu".
std::vector<std::string> names_of(const std::vector<std::string>& given) {
  std::vector<std::string> names;
  for (const std::string& text : given) {
    const char separator = text.find(';') == std::string::npos ? ',' : ';';
    bool goes_on = false;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(separator, begin), text.size());
      const std::string part = text.substr(begin, end - begin);
      if (goes_on && separator == ',' && !part.empty() &&
          (std::isdigit(static_cast<unsigned char>(part[0])) || part[0] == '.'))
        names.back() += "," + part;
      else
        names.push_back(part);
      goes_on = true;
      begin = end + 1;
    }
  }
  return names;
}

int run(const CompareOptions& given) {
  CompareOptions o = given;
  o.preconds = names_of(given.preconds);
  require_outputs({o.system.matrix, right_hand_side_of(o.system)}, {o.json, o.plot});
  if (!o.plot.empty()) io::require_drawable(o.plot);
  std::vector<Options> asked;
  for (const std::string& name : o.preconds) {
    asked.push_back(o.solver);
    asked.back().precond = name;
    const Solver refuses_bad_names(asked.back());
  }
  System s = load_system(o.system, o.solver.threads, true);
  // One method for all, or the curves would not compare: the one that suits the matrix.
  if (o.solver.solver == "auto") {
    const bool symmetric_only = std::none_of(o.preconds.begin(), o.preconds.end(), [](const std::string& p) {
      return p == "dilu" || p == "ilu0" || p == "auto" || precond::sweeps_of(p) == precond::Sweeps::of_its_own;
    });
    for (Options& one : asked) one.solver = s.facts.symmetric && symmetric_only ? "cg" : "bicgstab";
  }

  const bool to_stdout = o.json == "-";
  const auto print = [&](const std::string& text) {
    if (!to_stdout) fmt::print("{}", text);
  };
  print(fmt::format("{}  {}\n\n", bold(fmt::format("krilu {}", version)), s.facts.name));
  if (!to_stdout) {
    print_row("system", fmt::format("{} rows, {} nonzeros, right side {}", io::thousands(s.facts.rows),
                                    io::thousands(s.facts.nnz), s.facts.rhs));
    print_row("method", fmt::format("{}, tolerance {:.1e}", asked.front().solver, o.solver.rtol));
  }
  std::size_t width = 12;
  for (const std::string& name : o.preconds) width = std::max(width, name.size() + 2);
  print("\n");
  print(bold(fmt::format("  {:<{}}{:<16}{:>10}{:>10}{:>10}{:>18}\n", "precond", width, "status", "iterations",
                         "set-up s", "solve s", "true residual")));

  Monitor monitor;
  std::vector<Result> results;
  nlohmann::ordered_json reports = nlohmann::ordered_json::array();
  io::Picture picture;
  picture.title = s.facts.name + ", " + asked.front().solver;
  picture.x_label = "iterations";
  picture.y_label = o.solver.norm == Norm::openfoam ? "OpenFOAM residual" : "||b - A x|| / ||b||";
  picture.log_y = true;
  if (o.solver.norm == Norm::true2) picture.target = o.solver.rtol, picture.target_label = "tolerance";
  picture.panels.emplace_back();
  int status = 0;
  for (const Options& one : asked) {
    std::vector<double> x = s.x;
    Result r;
    try {
      Solver solver(one);
      solver.setup(s.a);
      const InterruptGuard guard(monitor);
      const ProgressLine progress(monitor, one.precond, true);
      r = solver.solve(s.b, x, &monitor);
    } catch (const Error& e) {  // one that cannot be formed does not take the others with it
      if (!to_stdout) print_row(one.precond, e.what(), 14);
      reports.push_back({{"precond", one.precond}, {"error", e.what()}});
      status = 3;
      continue;
    }
    status = std::max(status, exit_status(r.status));
    const bool good = r.status == Status::converged;
    const std::string word = fmt::format("{:<16}", to_string(r.status));
    print(fmt::format("  {:<{}}{}{:>10}{:>10.3f}{:>10.3f}{:>18.3e}\n", r.precond, width, good ? green(word) : red(word),
                      r.iterations, r.seconds.analyse + r.seconds.factor, r.seconds.solve, r.relative_residual));
    io::Curve curve{r.precond, {}};
    for (std::size_t k = 0; k < r.history.size(); ++k) curve.points.emplace_back(double(k), r.history[k]);
    picture.panels[0].push_back(std::move(curve));
    reports.push_back(io::to_json(r, s.facts, one));
    const bool stop = r.status == Status::interrupted;
    results.push_back(std::move(r));
    if (stop) break;
  }
  if (!o.plot.empty() && !results.empty()) {
    io::draw(picture, o.plot);
    print("\n");
    if (!to_stdout) print_row("picture", o.plot);
  }
  if (!o.json.empty()) io::write_json(o.json, reports);
  return status;
}

}  // namespace

Run add_compare(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("compare", "Several preconditioners on one system: curves, times, residuals");
  auto o = std::make_shared<CompareOptions>();
  add_system_options(command, o->system);
  add_solver_options(command, o->solver);
  command
      .add_option("--precond", o->preconds,
                  "A list: none,jacobi,dilu,dic,ilu0,ic0,iluk:1,ilut:10,0.01,block-ilu,ras:64,1; with semicolons where "
                  "a name has a letter after a comma: dilu;ras:64,1,dilu")
      ->allow_extra_args(false)
      ->required();
  command.add_option("--json", o->json, "Write all reports here as JSON (- for standard output)")->check(a_name());
  command.add_option("--plot", o->plot, "Draw the residual curves here (.png or .svg)")->check(a_name());
  return [o] { return run(*o); };
}

}  // namespace krilu::app
