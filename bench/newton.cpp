// SPDX-License-Identifier: Apache-2.0
// krilu-bench-newton: inexact Newton on the equations of elliptic grids, against PETSc's SNES on the same discrete
// equations, start and final residual, on one thread. Beside it: what a step is made of, and what forcing terms save
// against linear solves to 1e-6. Prints Markdown; writes JSON with machine, commit and command. bench/run-newton runs
// it.
//
// Sides take turns; medians of the rounds with the least and the largest, in processor time of one thread. Both use the
// same linear method with ILU(0) and stop at the same ||F||; F and the Jacobian are the same functions.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "exec/host.hpp"
#include "grid/problem.hpp"
#include "io/report.hpp"
#include "krilu/grid.hpp"
#include "peers/factorisation.hpp"
#include "peers/peer.hpp"
#include "peers/petsc_newton.hpp"

namespace krilu::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::vector<std::string> sizes{"257x129", "513x257"}, topologies{"O", "C"}, solvers{"gmres", "bicgstab"};
  std::string shape = "naca:0012", json, commit;
  double wall_spacing = 1e-3, rtol = 1e-8;
  int rounds = 21;
};

struct Times {
  std::vector<double> all;
  Json json() const {
    return {{"median", median(all)},
            {"least", *std::min_element(all.begin(), all.end())},
            {"largest", *std::max_element(all.begin(), all.end())}};
  }
};

NewtonOptions options_of(const std::string& solver, const std::string& forcing, double rtol) {
  NewtonOptions o;
  o.rtol = rtol;
  o.forcing = forcing;
  o.linear.solver = solver;
  o.linear.precond = "ilu0";
  o.linear.max_iterations = 10000;
  o.linear.threads = 1;
  o.linear.device = "host";
  return o;
}

/// krilu and PETSc with one linear method, from the same start.
Json bench(const Arguments& a, const Equations& equations, const std::vector<double>& start,
           const std::string& solver) {
  const std::unique_ptr<PeerNewton> peer = petsc_newton(equations, solver == "bicgstab" ? "bcgs" : solver);
  NewtonSolver newton(equations, options_of(solver, "eisenstat-walker-2", a.rtol));
  NewtonSolver fixed(equations, options_of(solver, "fixed:1e-6", a.rtol));
  Times ours, theirs;
  std::vector<double> assembly, ratio;
  NewtonResult r;
  for (int round = 0; round <= a.rounds; ++round) {  // the first is not counted
    std::vector<double> x = start;
    const double we = timed([&] { r = newton.solve(x); });
    x = start;
    const double they = timed([&] { peer->run(x, a.rtol); });
    if (round == 0) continue;
    ours.all.push_back(we);
    theirs.all.push_back(they);
    ratio.push_back(they / we);
    assembly.push_back((r.seconds.jacobian + r.seconds.factor) / r.seconds.total);
  }
  std::vector<double> x = start;
  const NewtonResult f = fixed.solve(x);
  Json j{{"solver", solver}};
  j["krilu"] = {{"status", to_string(r.status)},
                {"steps", r.iterations},
                {"inner", r.inner_iterations},
                {"seconds", ours.json()},
                {"residual", r.residual},
                {"initial", r.initial_residual},
                {"assembly_share", median(assembly)},
                {"residual_s", r.seconds.residual},
                {"jacobian_s", r.seconds.jacobian},
                {"factor_s", r.seconds.factor},
                {"linear_s", r.seconds.linear}};
  for (const NewtonStep& s : r.history)
    j["krilu"]["history"].push_back({s.iteration, s.residual, s.length, s.inner_iterations, s.forcing});
  j["petsc"] = {{"version", peer->version},        {"trouble", peer->trouble}, {"steps", peer->steps},
                {"inner", peer->inner_iterations}, {"seconds", theirs.json()}, {"residual", peer->residuals.back()},
                {"history", peer->residuals}};
  if (peer->trouble.empty()) j["petsc_over_krilu"] = median(ratio);
  j["fixed"] = {{"steps", f.iterations}, {"inner", f.inner_iterations}, {"residual", f.residual}};
  j["inner_saved"] = 1 - double(r.inner_iterations) / double(f.inner_iterations);
  return j;
}

Json bench(const Arguments& a, const std::string& topology, const std::string& size) {
  GridOptions g;
  g.shape = a.shape;
  g.topology = topology;
  g.wall_spacing = a.wall_spacing;
  if (std::sscanf(size.c_str(), "%dx%d", &g.around, &g.outward) != 2)
    throw Error("a size is NIxNJ, as in 257x129, not " + size);
  const grid::Problem problem(g);
  const std::vector<double> start = grid::unknowns_of(problem.plane);
  const auto rows = grid::place_rows(problem.rows(), grid::stretch_of(problem.rows(), 0, 1), "host");
  Json j{{"grid", a.shape + " " + topology + " " + size}, {"unknowns", start.size()}, {"rtol", a.rtol}};
  for (const std::string& solver : a.solvers) {
    fmt::print(stderr, "{} {} {} {}\n", a.shape, topology, size, solver);
    j["solves"].push_back(bench(a, rows->equations(), start, solver));
  }
  return j;
}

void print(const Json& report) {
  fmt::print("Machine: {}, one thread; commit {}; `{}`; medians of {} rounds (least to largest), processor time\n\n",
             report["machine"]["cpu"].get<std::string>(), report["commit"].get<std::string>(),
             report["command"].get<std::string>(), report["rounds"].get<int>());
  fmt::print(
      "| grid | unknowns | with ILU(0) and | krilu: steps, inner, \\|\\|F\\|\\| | seconds | PETSc: steps, inner, "
      "\\|\\|F\\|\\| | seconds | PETSc over krilu | Jacobian and ILU(0), share of a step | inner at fixed 1e-6 | inner "
      "saved |\n|---|--:|---|---|--:|---|--:|--:|--:|--:|--:|\n");
  const auto seconds = [](const Json& t) {
    return fmt::format("{:.3f} ({:.3f} to {:.3f})", t["median"].get<double>(), t["least"].get<double>(),
                       t["largest"].get<double>());
  };
  const auto outcome = [](const Json& side) {
    return fmt::format("{}, {}, {:.1e}", side["steps"].get<int>(), side["inner"].get<int>(),
                       side["residual"].get<double>());
  };
  for (const Json& g : report["grids"])
    for (const Json& s : g["solves"]) {
      const std::string trouble = s["petsc"]["trouble"].get<std::string>();
      fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {:.1f} % | {} | {:.0f} % |\n", g["grid"].get<std::string>(),
                 io::thousands(g["unknowns"].get<std::int64_t>()), s["solver"].get<std::string>(), outcome(s["krilu"]),
                 seconds(s["krilu"]["seconds"]), outcome(s["petsc"]),
                 trouble.empty() ? seconds(s["petsc"]["seconds"]) : trouble,
                 trouble.empty() ? fmt::format("{:.2f}", s["petsc_over_krilu"].get<double>()) : "-",
                 100 * s["krilu"]["assembly_share"].get<double>(), s["fixed"]["inner"].get<int>(),
                 100 * s["inner_saved"].get<double>());
    }
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(": ") + 2);
  return "unknown";
}

int run(const Arguments& a, const std::string& command) {
  Json report{{"machine", {{"cpu", processor()}, {"cores", exec::available_threads()}}},
              {"commit", a.commit},
              {"command", command},
              {"rounds", a.rounds}};
  for (const std::string& size : a.sizes)
    for (const std::string& topology : a.topologies) report["grids"].push_back(bench(a, topology, size));
  print(report);
  if (!a.json.empty()) io::write_json(a.json, report);
  return 0;
}

}  // namespace
}  // namespace krilu::bench

int main(int argc, char** argv) {
  krilu::bench::Arguments a;
  CLI::App app("krilu's inexact Newton against PETSc's SNES on one thread", "krilu-bench-newton");
  app.add_option("--shape", a.shape, "What the grids go round")->capture_default_str();
  app.add_option("--size", a.sizes, "NIxNJ; give it once for each");
  app.add_option("--topology", a.topologies, "O, C");
  app.add_option("--solver", a.solvers, "gmres, bicgstab: of the linear systems, on both sides");
  app.add_option("--wall-spacing", a.wall_spacing, "Of the first line, chords")->capture_default_str();
  app.add_option("--rtol", a.rtol, "||F|| at the end, over the start's")->capture_default_str();
  app.add_option("--json", a.json, "Write all figures here");
  app.add_option("--commit", a.commit, "What was built, for the record");
  app.add_option("--rounds", a.rounds, "Rounds in which the sides take turns")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::string command = "krilu-bench-newton";
  for (int k = 1; k < argc; ++k) command += std::string(" ") + argv[k];
  if (const char* given = std::getenv("KRILU_BENCH_COMMAND")) command = given;
  try {
    return krilu::bench::run(a, command);
  } catch (const krilu::Error& e) {
    fmt::print(stderr, "krilu-bench-newton: {}\n", e.what());
    return 2;
  }
}
