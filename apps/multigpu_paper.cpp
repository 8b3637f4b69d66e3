// SPDX-License-Identifier: Apache-2.0
// krilu bench multigpu-paper: what section 5 of Liu, Zhong and Chen (2011) measured, BiCGStab and inexact Newton on the
// equations of elliptic grids round NACA 0012, over the number of unknowns: Figures 7, 9 and 10, on one device, and
// beside it one core of the same machine; Figures 7, 8, 10 and 11 over the GPUs that there are, or over two threads of
// the host. Every solve begins from the same nodes, with control terms held fixed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>

#include "base/names.hpp"
#include "bench.hpp"
#include "exec/host.hpp"
#include "grid/problem.hpp"
#include "io/report.hpp"
#include "krilu/communicator.hpp"
#include "krilu/error.hpp"
#include "krilu/version.hpp"
#include "solver/engine.hpp"
#include "terminal.hpp"

namespace krilu::app {

namespace {

using Json = nlohmann::ordered_json;

struct Case {
  const char* name;
  Index around, outward;
  bool large;                    // left out on a host where it is not asked for
  bool over_ranks_only = false;  // one device alone would take minutes
};
/// 2.8M is the paper's largest on one card.
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"16k", 129, 65, false},  {"65k", 257, 129, false},  {"100k", 321, 158, false}, {"260k", 513, 257, false},
      {"1M", 1025, 513, false}, {"2.8M", 1673, 841, true}, {"16M", 4097, 2049, true}, {"32M", 5793, 2897, true, true}};
  return all;
}

struct Method {
  const char *solver, *precond;
};
/// The paper's own first.
constexpr Method methods[] = {{"bicgstab", "jacobi"}, {"bicgstab", "dilu"}, {"gmres", "ilu0"}};

/// One solve, with the time at the end of each step.
struct Run {
  std::string error;
  NewtonResult r;
  std::vector<double> at;      // seconds after 0, 1, 2, ... steps
  std::vector<long> inner{0};  // iterations until then
  bool done() const { return error.empty() && at.size() > 1; }
  int steps() const { return int(at.size()) - 1; }
  double assembly() const { return (r.seconds.jacobian + r.seconds.factor) / steps(); }
  double step() const { return at.back() / steps(); }
  double iteration() const { return r.seconds.linear / double(std::max(1L, inner.back())); }
};
struct Line {
  Run device, core;  // core: not there where the device is one
  int common() const { return std::min(device.steps(), core.steps()); }
  double core_over_device() const {
    return device.done() && core.done() ? core.at[std::size_t(common())] / device.at[std::size_t(common())] : not_known;
  }
};
/// The paper's method on so many ranks.
struct OverRanks {
  int ranks = 1;
  double iteration = not_known, step = not_known;  // seconds, where a step's solve takes fixed_iterations
  Run run;                                         // as a user would have it
};
struct Row {
  const Case* grid;
  std::int64_t unknowns = 0;
  std::vector<Line> lines;
  std::vector<OverRanks> over_ranks;  // for each of rank_counts()
  /// Of the fastest method on each side, up to the last step that all of them took.
  double best_core_over_device() const {
    int steps = std::numeric_limits<int>::max();
    for (const Line& line : lines) {
      if (!line.device.done() || !line.core.done()) return not_known;
      steps = std::min(steps, line.common());
    }
    double core = not_known, device = not_known;
    for (const Line& line : lines) {
      core = std::fmin(core, line.core.at[std::size_t(steps)]);
      device = std::fmin(device, line.device.at[std::size_t(steps)]);
    }
    return core / device;
  }
};

constexpr int fixed_iterations = 400;  // the same work for all: what BiCGStab takes to a tolerance depends on rounding

constexpr double enough_seconds = 20;  // of one solve on one core: it ends with the step that passes them

constexpr std::int64_t most_unknowns_on_a_core = 4'000'000;  // above, a step alone takes minutes there

NewtonOptions options_of(const Method& method, const std::string& device, int threads) {
  NewtonOptions o;
  o.linear.solver = method.solver;
  o.linear.precond = method.precond;
  o.linear.max_iterations = 20000;
  o.linear.device = device;
  o.linear.threads = threads;
  return o;
}

/// One solve from `start`, until it is done or go_on() says no.
template <class GoOn>
void take_steps(Run& run, NewtonSolver& newton, std::vector<double> x, GoOn go_on) {
  using Clock = std::chrono::steady_clock;
  run.at = {0};
  run.inner = {0};
  const Clock::time_point begin = Clock::now();
  run.r = newton.solve(x, [&](const NewtonStep& s) {
    run.at.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    run.inner.push_back(run.inner.back() + s.inner_iterations);
    return go_on();
  });
}

Run run(const Equations& equations, const std::vector<double>& start, const Method& method, const std::string& device,
        int threads, bool brief, Monitor& monitor) {
  Run run;
  try {
    NewtonSolver newton(equations, options_of(method, device, threads));
    // A step first in which everything is done that is done once.
    if (!brief) take_steps(run, newton, start, [] { return false; });
    take_steps(run, newton, start,
               [&] { return !monitor.interrupted() && (!brief || run.at.back() < enough_seconds); });
  } catch (const Error& e) {
    run.error = e.what();
  }
  return run;
}

/// GPUs or threads that iterations are shared by; one where a device is named that has no others beside it.
std::vector<int> rank_counts(const std::string& device) {
  const int most = device == "host" ? 2 : device == "cuda" ? solver::cuda_devices() : 1;
  std::vector<int> counts;
  for (const int ranks : {1, 2, 4})
    if (ranks <= most) counts.push_back(ranks);
  return counts;
}

/// Each rank evaluates and solves for its own lines of the grid. At most `most_steps` steps.
OverRanks run_over(int ranks, const grid::Problem& problem, const std::vector<double>& start, const std::string& device,
                   int repeat, int most_steps, Monitor& monitor) {
  OverRanks out;
  out.ranks = ranks;
  const grid::PoissonRows rows = problem.rows();
  run_ranks(ranks, [&](const std::shared_ptr<Communicator>& c) {
    const bool first = c->rank() == 0;
    const std::string own = device == "cuda" ? fmt::format("cuda:{}", c->rank()) : device;
    const int threads = device == "cuda" ? std::max(1, exec::Host(0).threads() / ranks) : 1;
    const grid::Stretch stretch = grid::stretch_of(rows, c->rank(), ranks);
    const std::unique_ptr<grid::PlacedRows> placed = grid::place_rows(rows, stretch, own);
    const auto begin = start.begin() + stretch.first;
    const std::vector<double> mine(begin, begin + stretch.count);
    NewtonOptions o = options_of(methods[0], own, threads);
    o.max_iterations = most_steps;
    {
      NewtonOptions fixed = o;
      fixed.forcing = "fixed:1e-100";
      fixed.line_search = "none";
      fixed.max_iterations = 1;
      fixed.linear.max_iterations = fixed_iterations;
      NewtonSolver newton(placed->equations(), fixed, c);
      std::vector<double> iteration, step;
      for (int k = 0; k <= repeat; ++k) {  // the first warms up
        std::vector<double> x = mine;
        const NewtonResult r = newton.solve(x);
        if (k == 0) continue;
        const NewtonSeconds& s = r.seconds;
        iteration.push_back(s.linear / std::max(1, r.inner_iterations));
        // One evaluation of F is the start's.
        step.push_back(s.jacobian + s.factor + s.linear + s.residual * (r.evaluations - 1) / r.evaluations);
      }
      if (first) {
        out.iteration = median(iteration);
        out.step = median(step);
      }
    }
    NewtonSolver newton(placed->equations(), o, c);
    Run run;
    take_steps(run, newton, mine, [&] { return !monitor.interrupted() && (!first || run.at.back() < enough_seconds); });
    if (first) out.run = std::move(run);
  });
  return out;
}

std::string label_of(const Method& m) { return fmt::format("{} with {}", m.solver, m.precond); }
std::string steps_of(const Run& r) {
  if (!r.done()) return "-";
  return fmt::format("{} ({}){}", r.steps(), r.inner.back(), r.r.status == Status::converged ? "" : " cut short");
}

std::string table_over_ranks(const std::vector<Row>& rows, const std::vector<int>& counts, bool gpu) {
  if (counts.size() < 2) return gpu ? "\nOne GPU: nothing is measured on several.\n" : "";
  const char *one = gpu ? "GPU" : "rank", *many = gpu ? "GPUs" : "ranks, a thread each";
  const auto table = [&](const std::string& what, bool same_work, auto seconds, auto beside) {
    std::vector<std::string> head{"unknowns"};
    for (const int ranks : counts) head.push_back(fmt::format("{} on {} {}", what, ranks, ranks == 1 ? one : many));
    for (const int ranks : counts)
      if (same_work && ranks > 1) head.push_back(fmt::format("speed-up on {}", ranks));
    MarkdownTable text(head);
    for (const Row& row : rows) {
      if (row.over_ranks.size() != counts.size()) continue;
      std::vector<std::string> cells{io::thousands(row.unknowns)};
      for (const OverRanks& o : row.over_ranks) cells.push_back(milliseconds(seconds(o)) + beside(o));
      for (std::size_t k = 1; same_work && k < counts.size(); ++k)
        cells.push_back(figure(seconds(row.over_ranks[0]) / seconds(row.over_ranks[k])));
      text.add(cells);
    }
    return text.text();
  };
  const auto nothing = [](const OverRanks&) { return std::string(); };
  return fmt::format(
      "\nFigures 7 and 8: iterations of {}, milliseconds.\n\n{}\nThe paper: 1.5 on two GPUs, 2.2 on four.\n\n"
      "Figures 10 and 11: a step of Newton's method whose linear solve has {} iterations, milliseconds: the same work "
      "for all.\n\n{}\nThe paper: 1.6 on two GPUs, 2.5 on four.\n\nNewton's method as it goes by itself, a step of it, "
      "milliseconds; in brackets its steps and their iterations, which rounding changes.\n\n{}",
      label_of(methods[0]),
      table(
          "an iteration", true, [](const OverRanks& o) { return o.iteration; }, nothing),
      fixed_iterations,
      table(
          "a step", true, [](const OverRanks& o) { return o.step; }, nothing),
      table(
          "a step", false, [](const OverRanks& o) { return o.run.step(); },
          [](const OverRanks& o) { return fmt::format(" ({}, {})", o.run.steps(), o.run.inner.back()); }));
}

std::string tables(const std::vector<Row>& rows, const std::string& device, const std::string& core, bool gpu) {
  std::string text = fmt::format(
      "# Inexact Newton on elliptic grids, after Liu, Zhong and Chen (2011)\n\nO grids round NACA 0012, nine nodes a "
      "row, Newton's method to 1e-8 of the first residual, forcing by Eisenstat and Walker 2. Device: {}.{} "
      "Milliseconds; iterations of the linear solver in brackets.\n\n",
      device,
      gpu ? fmt::format(" Core: one of {}. Solves end with the step that passes {} s, there and over several GPUs.",
                        core, enough_seconds)
          : "");
  const bool alone = std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.lines.empty(); });
  if (!alone) return text;
  std::vector<std::string> head{
      "unknowns",        "method",          "steps", "an iteration (Fig. 7)", "assembly and preconditioner (Fig. 9)",
      "share of a step", "a step (Fig. 10)"};
  if (gpu) head.insert(head.end(), {"steps on the core", "an iteration there", "core / device"});
  MarkdownTable table(head, 2);
  for (const Row& row : rows)
    for (std::size_t m = 0; m < row.lines.size(); ++m) {
      const Line& line = row.lines[m];
      const Run& r = line.device;
      std::vector<std::string> cells{io::thousands(row.unknowns), label_of(methods[m]), steps_of(r)};
      if (r.done())
        cells.insert(cells.end(), {milliseconds(r.iteration()), milliseconds(r.assembly()),
                                   fmt::format("{:.1f} %", 100 * r.assembly() / r.step()), milliseconds(r.step())});
      else
        cells.insert(cells.end(), {"-", "-", "-", "-"});
      if (gpu)
        cells.insert(cells.end(), {steps_of(line.core), line.core.done() ? milliseconds(line.core.iteration()) : "-",
                                   figure(line.core_over_device())});
      table.add(cells);
    }
  text += table.text();
  if (gpu) {
    text += "\nCore / device: time of the same number of steps, from the first on. Of the fastest method on each side:";
    for (const Row& row : rows)
      if (std::isfinite(row.best_core_over_device()))
        text += fmt::format(" {} at {} unknowns,", figure(row.best_core_over_device()), io::thousands(row.unknowns));
    text.back() = '.';
    text += "\n";
  }
  text += "The paper: assembly and preconditioner are 9 % of a step, with Jacobi's.\n";
  for (const Row& row : rows)
    for (std::size_t m = 0; m < row.lines.size(); ++m)
      if (const std::string& e = row.lines[m].device.error; !e.empty())
        text += fmt::format("\n{}, {}: {}\n", row.grid->name, label_of(methods[m]), e);
  return text;
}

template <class Value>
io::Picture picture(const std::vector<Row>& rows, const std::string& title, const std::string& y, Value value) {
  io::Picture p;
  p.title = title;
  p.x_label = "unknowns";
  p.y_label = y;
  p.log_x = p.log_y = true;
  p.panels.emplace_back();
  for (std::size_t m = 0; m < std::size(methods); ++m) {
    io::Curve curve{label_of(methods[m]), {}};
    for (const Row& row : rows)
      if (m < row.lines.size() && row.lines[m].device.done())
        curve.points.emplace_back(double(row.unknowns), value(row.lines[m].device));
    if (!curve.points.empty()) p.panels.back().push_back(std::move(curve));
  }
  if (p.panels.back().empty()) p.panels.clear();
  return p;
}

/// Speed-up over one rank; seconds(of): of a count of ranks.
template <class Seconds>
io::Picture speed_ups(const std::vector<Row>& rows, const std::string& title, bool gpu, Seconds seconds) {
  io::Picture p;
  p.title = title;
  p.x_label = "unknowns";
  p.y_label = "speed-up";
  p.log_x = true;
  p.panels.emplace_back();
  for (std::size_t k = 1; k < 3; ++k) {
    io::Curve curve;
    for (const Row& row : rows)
      if (row.over_ranks.size() > k) {
        curve.label = fmt::format("{} {}", row.over_ranks[k].ranks, gpu ? "GPUs" : "ranks");
        curve.points.emplace_back(double(row.unknowns), seconds(row.over_ranks[0]) / seconds(row.over_ranks[k]));
      }
    if (!curve.points.empty()) p.panels.back().push_back(std::move(curve));
  }
  if (p.panels.back().empty()) p.panels.clear();
  return p;
}

Json run_json(const Run& r) {
  if (!r.error.empty()) return {{"error", r.error}};
  if (!r.done()) return nullptr;
  return {{"status", to_string(r.r.status)},
          {"steps", r.steps()},
          {"inner_iterations", r.inner.back()},
          {"residual", r.r.residual / r.r.initial_residual},
          {"iteration_seconds", r.iteration()},
          {"assembly_seconds", r.assembly()},
          {"assembly_share", r.assembly() / r.step()},
          {"step_seconds", r.step()},
          {"seconds",
           {{"residual", r.r.seconds.residual},
            {"jacobian", r.r.seconds.jacobian},
            {"factor", r.r.seconds.factor},
            {"linear", r.r.seconds.linear},
            {"total", r.r.seconds.total}}},
          {"after_step", r.at}};
}

std::vector<const Case*> chosen(const std::vector<std::string>& only, bool gpu) {
  std::vector<std::string> names{"all"};
  for (const Case& c : cases()) names.emplace_back(c.name);
  for (const std::string& name : only) require_name("size of multigpu-paper", name, names);
  const auto named = [&](const char* name) { return std::count(only.begin(), only.end(), name) > 0; };
  std::vector<const Case*> out;
  for (const Case& c : cases())
    if (only.empty() ? gpu || !c.large : named(c.name) || named("all")) out.push_back(&c);
  return out;
}

}  // namespace

BenchReport run_multigpu_paper(const BenchOptions& o, Monitor& monitor) {
  std::string device = o.device;
  if (device == "auto") device = solver::cuda_devices() > 0 ? "cuda" : "host";
  const bool gpu = device.starts_with("cuda");
  const std::vector<const Case*> wanted = chosen(o.only, gpu);
  const std::vector<int> counts = rank_counts(device);
  std::vector<Row> rows;
  std::string device_name = device;
  BenchReport report;
  for (const Case* c : wanted) {
    if (monitor.interrupted()) break;
    const bool several = counts.size() > 1, one = !several || !gpu;
    if (c->over_ranks_only && !several) continue;
    Row& row = rows.emplace_back();
    row.grid = c;
    GridOptions g;
    g.around = c->around;
    g.outward = c->outward;
    g.wall_spacing = 1e-3 * 128 / (c->outward - 1);  // finer everywhere
    g.newton.linear.device = device;
    g.newton.linear.threads = o.threads;
    try {
      std::unique_ptr<grid::Problem> problem;
      {
        const StepLine step(fmt::format("{}: nodes, equations", c->name), true);
        problem = std::make_unique<grid::Problem>(g);
      }
      const std::vector<double> start = grid::unknowns_of(problem->plane);
      row.unknowns = std::int64_t(start.size());
      int most_steps = g.newton.max_iterations;
      for (const int ranks : counts) {
        if (!several || monitor.interrupted()) break;
        const StepLine step(fmt::format("{}: on {} {}", c->name, ranks, gpu ? "GPUs" : "ranks"), true);
        row.over_ranks.push_back(run_over(ranks, *problem, start, device, o.repeat, most_steps, monitor));
        most_steps = std::max(1, row.over_ranks.back().run.steps());
        device_name = row.over_ranks.back().run.r.device;
      }
      if (!one || c->over_ranks_only) continue;
      const grid::PoissonRows all = problem->rows();
      const grid::Stretch whole = grid::stretch_of(all, 0, 1);
      const auto placed = grid::place_rows(all, whole, device), on_core = grid::place_rows(all, whole, "host");
      for (const Method& m : methods) {
        if (monitor.interrupted()) break;
        Line& line = row.lines.emplace_back();
        {
          const StepLine step(fmt::format("{}: {}", c->name, label_of(m)), true);
          line.device = run(placed->equations(), start, m, device, o.threads, false, monitor);
        }
        if (!line.device.r.device.empty()) device_name = line.device.r.device;
        if (gpu && row.unknowns <= most_unknowns_on_a_core && !monitor.interrupted()) {
          const StepLine step(fmt::format("{}: {} on one core", c->name, label_of(m)), true);
          line.core = run(on_core->equations(), start, m, "host", 1, true, monitor);
        }
      }
    } catch (const Error& e) {
      report.trouble += fmt::format("{}{}: {}", report.trouble.empty() ? "" : "\nkrilu: ", c->name, e.what());
    }
  }
  if (!gpu) device_name = fmt::format("{}, {} threads", processor(), exec::Host(o.threads).threads());
  report.markdown = tables(rows, device_name, processor(), gpu) + table_over_ranks(rows, counts, gpu);
  report.pictures = {
      {"-fig7.png", picture(rows, "An iteration of the linear solver", "milliseconds",
                            [](const Run& r) { return 1e3 * r.iteration(); })},
      {"-fig9.png", picture(rows, "Assembly and preconditioner, of a Newton step", "milliseconds",
                            [](const Run& r) { return 1e3 * r.assembly(); })},
      {"-fig8.png", speed_ups(rows, "Iterations of the linear solver, over one", gpu,
                              [](const OverRanks& of) { return of.iteration; })},
      {"-fig11.png", speed_ups(rows, "A Newton step, over one", gpu, [](const OverRanks& of) { return of.step; })},
      {"-fig10.png", picture(rows, "A Newton step", "milliseconds", [](const Run& r) { return 1e3 * r.step(); })}};
  report.json = {
      {"krilu", version},
      {"paper", "Liu, Zhong and Chen, multi-GPU solvers for large sparse linear and nonlinear systems, 2011"},
      {"command", o.command},
      {"machine", {{"device", device_name}, {"cpu", processor()}}},
      {"rules", {{"enough_seconds", enough_seconds}, {"fixed_iterations", fixed_iterations}}},
      {"rows", Json::array()}};
  for (const Row& row : rows) {
    Json j{
        {"size", row.grid->name}, {"unknowns", row.unknowns}, {"best_core_over_device", row.best_core_over_device()}};
    for (const OverRanks& of : row.over_ranks)
      j["over_ranks"].push_back({{"ranks", of.ranks},
                                 {"iteration_seconds", of.iteration},
                                 {"step_seconds", of.step},
                                 {"newton", run_json(of.run)}});
    for (std::size_t m = 0; m < row.lines.size(); ++m) {
      const Line& line = row.lines[m];
      j["methods"].push_back({{"solver", methods[m].solver},
                              {"precond", methods[m].precond},
                              {"device", run_json(line.device)},
                              {"core", run_json(line.core)},
                              {"core_over_device", line.core_over_device()}});
    }
    report.json["rows"].push_back(std::move(j));
  }
  return report;
}

}  // namespace krilu::app
