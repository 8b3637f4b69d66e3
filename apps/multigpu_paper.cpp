// SPDX-License-Identifier: Apache-2.0
// krilu bench multigpu-paper: what section 5 of Liu, Zhong and Chen (2011) measured, BiCGStab and inexact Newton on the
// equations of elliptic grids round NACA 0012, over the number of unknowns: Figures 7, 9 and 10, on one device, and
// beside it one core of the same machine. Every solve begins from the same nodes, with control terms held fixed.
// Figures 7 and 8 on several GPUs, or over two threads of the host: iterations on the first step's linear system.
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
#include "krilu/distributed.hpp"
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
  bool iterations_only = false;  // Newton's steps would take minutes
};
/// 2.8M is the paper's largest on one card.
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"16k", 129, 65, false},   {"65k", 257, 129, false},  {"260k", 513, 257, false},      {"1M", 1025, 513, false},
      {"2.8M", 1673, 841, true}, {"16M", 4097, 2049, true}, {"32M", 5793, 2897, true, true}};
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
struct Row {
  const Case* grid;
  std::int64_t unknowns = 0;
  std::vector<Line> lines;
  std::vector<double> over_ranks;  // seconds of an iteration, for each of rank_counts()
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

constexpr double enough_seconds = 20;  // of one solve on one core: it ends with the step that passes them

constexpr std::int64_t most_unknowns_on_a_core = 4'000'000;  // above, a step alone takes minutes there

Run run(const Equations& equations, const std::vector<double>& start, const Method& method, const std::string& device,
        int threads, bool brief, Monitor& monitor) {
  Run run;
  NewtonOptions o;
  o.linear.solver = method.solver;
  o.linear.precond = method.precond;
  o.linear.max_iterations = 20000;
  o.linear.device = device;
  o.linear.threads = threads;
  try {
    NewtonSolver newton(equations, o);
    using Clock = std::chrono::steady_clock;
    const auto go = [&](auto go_on) {
      std::vector<double> x = start;
      run.at = {0};
      run.inner = {0};
      const Clock::time_point begin = Clock::now();
      run.r = newton.solve(x, [&](const NewtonStep& s) {
        run.at.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
        run.inner.push_back(run.inner.back() + s.inner_iterations);
        return !monitor.interrupted() && go_on();
      });
    };
    if (!brief) go([] { return false; });  // a step in which everything is done that is done once
    go([&] { return !brief || run.at.back() < enough_seconds; });
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

struct LinearSystem {
  CsrMatrix a;
  std::vector<double> b;
};
/// J d = -F at the start, evaluated on the host.
LinearSystem first_system(GridOptions g) {
  g.newton.linear.device = "host";
  const grid::Problem problem(g);
  const Equations& equations = problem.equations();
  const std::vector<double> x = grid::unknowns_of(problem.plane);
  LinearSystem s{equations.pattern(), std::vector<double>(x.size())};
  exec::Host(g.newton.linear.threads).for_each_range(x.size(), [&](Index begin, Index end) {
    equations.residual(begin, end, {x.data()}, {s.b.data()});
    equations.jacobian(begin, end, {x.data()}, {s.a.values.data()});
    for (Index i = begin; i < end; ++i) s.b[std::size_t(i)] *= -1;
  });
  return s;
}

RowsMatrix rows_of(const CsrMatrix& a, std::int64_t first, std::int64_t last) {
  const Offset *offsets = a.offsets.data() + first, begin = offsets[0], end = offsets[last - first];
  RowsMatrix rows;
  rows.all = a.rows;
  rows.first = first;
  rows.count = Index(last - first);
  rows.offsets.resize(std::size_t(rows.count) + 1);
  std::transform(offsets, offsets + rows.offsets.size(), rows.offsets.begin(), [=](Offset k) { return k - begin; });
  rows.columns.assign(a.columns.begin() + begin, a.columns.begin() + end);
  rows.values.assign(a.values.begin() + begin, a.values.begin() + end);
  return rows;
}

/// Seconds of an iteration of BiCGStab with Jacobi, the median of `repeat` solves.
double time_over_ranks(const LinearSystem& s, const std::string& device, int ranks, int repeat) {
  constexpr int iterations = 100;
  std::vector<double> seconds;
  run_ranks(ranks, [&](const std::shared_ptr<Communicator>& c) {
    const std::int64_t n = s.a.rows, first = n * c->rank() / ranks, last = n * (c->rank() + 1) / ranks;
    Options o;
    o.solver = methods[0].solver;
    o.precond = methods[0].precond;
    o.device = device == "cuda" ? fmt::format("cuda:{}", c->rank()) : device;
    o.threads = 1;
    o.rtol = 0;
    o.max_iterations = iterations;
    DistributedSolver solver(o, c);
    solver.setup(rows_of(s.a, first, last));
    for (int k = 0; k <= repeat; ++k) {  // the first warms up
      std::vector<double> x(std::size_t(last - first));
      double all_are_here = 0;
      c->sum({&all_are_here, 1});
      const Result r = solver.solve({s.b.data() + first, x.size()}, x);
      if (k > 0 && c->rank() == 0) seconds.push_back(r.seconds.solve / std::max(1, r.iterations));
    }
  });
  return median(seconds);
}

std::string label_of(const Method& m) { return fmt::format("{} with {}", m.solver, m.precond); }
std::string milliseconds(double seconds) { return figure(1e3 * seconds); }
std::string steps_of(const Run& r) {
  if (!r.done()) return "-";
  return fmt::format("{} ({}){}", r.steps(), r.inner.back(), r.r.status == Status::converged ? "" : " cut short");
}

std::string table_over_ranks(const std::vector<Row>& rows, const std::vector<int>& counts, bool gpu) {
  if (counts.size() < 2) return gpu ? "\nOne GPU: nothing is measured on several.\n" : "";
  const char *one = gpu ? "GPU" : "rank", *many = gpu ? "GPUs" : "ranks, a thread each";
  std::vector<std::string> head{"unknowns"};
  for (const int ranks : counts) head.push_back(fmt::format("an iteration on {} {}", ranks, ranks == 1 ? one : many));
  for (const int ranks : counts)
    if (ranks > 1) head.push_back(fmt::format("speed-up on {}", ranks));
  MarkdownTable table(head);
  for (const Row& row : rows) {
    if (row.over_ranks.size() != counts.size()) continue;
    std::vector<std::string> cells{io::thousands(row.unknowns)};
    for (const double seconds : row.over_ranks) cells.push_back(milliseconds(seconds));
    for (std::size_t k = 1; k < counts.size(); ++k) cells.push_back(figure(row.over_ranks[0] / row.over_ranks[k]));
    table.add(cells);
  }
  return fmt::format(
      "\nFigures 7 and 8: {} on the first step's linear system, milliseconds.\n\n{}\nThe paper: 1.5 on two GPUs, "
      "2.2 on four.\n",
      label_of(methods[0]), table.text());
}

std::string tables(const std::vector<Row>& rows, const std::string& device, const std::string& core, bool gpu) {
  std::string text = fmt::format(
      "# Inexact Newton on elliptic grids, after Liu, Zhong and Chen (2011)\n\nO grids round NACA 0012, nine nodes a "
      "row, Newton's method to 1e-8 of the first residual, forcing by Eisenstat and Walker 2. Device: {}.{} "
      "Milliseconds; iterations of the linear solver in brackets.\n\n",
      device,
      gpu ? fmt::format(" Core: one of {}, its solves end with the step that passes {} s.", core, enough_seconds) : "");
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
    if (c->iterations_only && counts.size() < 2) continue;
    Row& row = rows.emplace_back();
    row.grid = c;
    GridOptions g;
    g.around = c->around;
    g.outward = c->outward;
    g.wall_spacing = 1e-3 * 128 / (c->outward - 1);  // finer everywhere
    g.newton.linear.device = device;
    g.newton.linear.threads = o.threads;
    try {
      if (counts.size() > 1) {
        const StepLine step(fmt::format("{}: iterations over {}", c->name, gpu ? "GPUs" : "ranks"), true);
        const LinearSystem system = first_system(g);
        row.unknowns = system.a.rows;
        for (const int ranks : counts)
          if (!monitor.interrupted()) row.over_ranks.push_back(time_over_ranks(system, device, ranks, o.repeat));
      }
      if (c->iterations_only) continue;
      std::unique_ptr<grid::Problem> problem;
      {
        const StepLine step(fmt::format("{}: nodes, equations", c->name), true);
        problem = std::make_unique<grid::Problem>(g);
      }
      const Equations& equations = problem->equations();
      const std::vector<double> start = grid::unknowns_of(problem->plane);
      row.unknowns = std::int64_t(start.size());
      for (const Method& m : methods) {
        if (monitor.interrupted()) break;
        Line& line = row.lines.emplace_back();
        {
          const StepLine step(fmt::format("{}: {}", c->name, label_of(m)), true);
          line.device = run(equations, start, m, device, o.threads, false, monitor);
        }
        if (!line.device.r.device.empty()) device_name = line.device.r.device;
        if (gpu && row.unknowns <= most_unknowns_on_a_core && !monitor.interrupted()) {
          const StepLine step(fmt::format("{}: {} on one core", c->name, label_of(m)), true);
          line.core = run(equations, start, m, "host", 1, true, monitor);
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
      {"-fig10.png", picture(rows, "A Newton step", "milliseconds", [](const Run& r) { return 1e3 * r.step(); })}};
  report.json = {
      {"krilu", version},
      {"paper", "Liu, Zhong and Chen, multi-GPU solvers for large sparse linear and nonlinear systems, 2011"},
      {"command", o.command},
      {"machine", {{"device", device_name}, {"cpu", processor()}}},
      {"rules", {{"enough_seconds_on_a_core", enough_seconds}}},
      {"rows", Json::array()}};
  for (const Row& row : rows) {
    Json j{
        {"size", row.grid->name}, {"unknowns", row.unknowns}, {"best_core_over_device", row.best_core_over_device()}};
    for (std::size_t k = 0; k < row.over_ranks.size(); ++k)
      j["over_ranks"].push_back({{"ranks", counts[k]}, {"iteration_seconds", row.over_ranks[k]}});
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
