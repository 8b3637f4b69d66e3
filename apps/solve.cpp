// SPDX-License-Identifier: Apache-2.0
// krilu solve: one system, its table, its residual curve, its answer.
#include "solve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "commands.hpp"
#include "io/plot.hpp"
#include "io/report.hpp"
#include "krilu/version.hpp"
#include "solver/ladder.hpp"
#include "solver/unseen_rows.hpp"
#include "terminal.hpp"

namespace krilu::app {

namespace {

io::Curve residual_curve(const Result& r, std::string label) {
  io::Curve curve{std::move(label), {}};
  for (std::size_t k = 0; k < r.history.size(); ++k) curve.points.emplace_back(double(k), r.history[k]);
  return curve;
}

/// What went before the rung that worked, and the command that goes straight to it.
void print_ladder(const Result& r) {
  if (r.rungs.size() < 2) return;
  fmt::print("\n");
  for (std::size_t k = 0; k < r.rungs.size(); ++k) {
    const Rung& rung = r.rungs[k];
    std::string text = fmt::format("{}: {} iteration{}, residual {:.1e}, {:.3f} s", rung.what, rung.iterations,
                                   rung.iterations == 1 ? "" : "s", rung.relative_residual, rung.seconds);
    if (!rung.why_left.empty()) text += "; " + rung.why_left;
    print_row(fmt::format("rung {}", k + 1), text);
  }
}
/// As a shell takes it for one word.
std::string quoted(const std::string& word) {
  const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_-./:,+=@%", c); };
  if (std::all_of(word.begin(), word.end(), plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}
void print_shortcut(const SolveOptions& o, const Result& r) {
  if (r.rungs.size() < 2 || r.status != Status::converged) return;
  const Options usual;
  const std::string& matrix = o.system.matrix;
  std::string text = fmt::format("krilu solve {} {}", quoted(matrix.starts_with('-') ? "./" + matrix : matrix),
                                 r.rungs.back().arguments);
  const auto add = [&](const char* name, const auto& value, const auto& unless) {
    if (value != unless) text += fmt::format(" {} {}", name, quoted(fmt::format("{}", value)));
  };
  const std::string none;
  add("--rhs", o.system.rhs, none);
  add("--x0", o.system.x0, none);
  add("--rtol", o.solver.rtol, usual.rtol);
  add("--atol", o.solver.atol, usual.atol);
  add("--max-iters", o.solver.max_iterations, usual.max_iterations);
  if (text.find(" --device ") == std::string::npos) add("--device", o.solver.device, usual.device);
  add("--threads", o.solver.threads, usual.threads);
  add("-o", o.output, none);
  add("--json", o.json, none);
  add("--plot", o.plot, none);
  fmt::print("  {:<16}{}\n", "next time", text);  // one line, for a shell
}

/// A residual that rounding leaves is smaller, but where x is some 1e12 times as large as b.
constexpr double beyond_rounding = 1e-4;

std::string status_sentence(const Result& r, const Options& asked, bool over_ranks) {
  const std::string after = fmt::format("after {} iteration{}", r.iterations, r.iterations == 1 ? "" : "s");
  Options unnamed = asked;
  unnamed.solver = unnamed.precond = "auto";
  const std::string neither =
      !over_ranks && solver::Ladder::serves(unnamed) ? ", or name neither --solver nor --precond" : "";
  const bool is_gmres = r.solver.find("gmres") != std::string::npos;
  const std::string others = is_gmres ? "another --precond" + neither : "--solver gmres, or another --precond";
  const bool in_double = asked.solver != "gmres-ir" && (asked.precision == "auto" || asked.precision == "fp64");
  const bool may_scale = in_double && !asked.device.starts_with("cuda");
  const std::string near_singular =
      fmt::format("the preconditioner's solves are unstable or the matrix is close to singular; try {}{}",
                  may_scale ? "--precond ilut --scaling both" : "another --precond", neither);
  switch (r.status) {
    case Status::converged: return green("converged") + " " + after;
    case Status::max_iterations:
      return red("not converged") + fmt::format(" {}: that is the limit, --max-iters {}", after, asked.max_iterations);
    case Status::stagnated:
      if (r.rungs.size() > 1) return red("not converged") + " " + after + ": the last note says why";
      if (r.relative_residual > beyond_rounding)
        return red("stagnated") +
               fmt::format(" {}: the true residual does not follow the recurrence's, since {}", after, near_singular);
      return red("stagnated") +
             fmt::format(" {}: rounding allows no smaller residual here; a larger --rtol is met", after);
    case Status::breakdown:
      return red("broke down") +
             (is_gmres ? fmt::format(" {}, twice: the basis grows no further, since {}", after, near_singular)
                       : fmt::format(" {}, twice: try {}", after, others));
    case Status::diverged: return red("diverged") + fmt::format(" {}: try {}", after, others);
    case Status::interrupted: return red("interrupted") + " " + after;
  }
  return "";
}

void print_system(const io::SystemFacts& facts) {
  fmt::print("{}  {}\n\n", bold(fmt::format("krilu {}", version)), facts.name);
  print_row("matrix", fmt::format("{} rows, {} nonzeros ({:.1f} a row), {}", io::thousands(facts.rows),
                                  io::thousands(facts.nnz), facts.rows ? double(facts.nnz) / facts.rows : 0.0,
                                  facts.symmetric           ? "symmetric"
                                  : facts.pattern_symmetric ? "symmetric pattern"
                                                            : "unsymmetric"));
  print_row("right side", facts.rhs);
}

/// --explain: the choice, without a solve.
int explain(const System& s, const SolveOptions& o, Solver& solver) {
  solver.analyse(s.a);
  if (o.quiet) return 0;
  print_system(s.facts);
  bool first = true;
  for (const std::string& line : solver.explanation()) print_row(std::exchange(first, false) ? "choice" : "", line);
  for (const std::string& path : {o.output, o.json, o.plot})
    if (!path.empty() && path != "-") print_row("note", path + " is not written: with --explain nothing is solved");
  return 0;
}

/// What each rank had, did and waited for.
void print_ranks(const std::vector<RankCost>& ranks) {
  if (ranks.empty()) return;
  fmt::print("\n  {:<6}{:>12}{:>14}{:>10}{:>10}{:>10}{:>10}{:>12}\n", "rank", "rows", "nonzeros", "halo", "sent MB",
             "solve s", "sums s", "exchange s");
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    const RankCost& c = ranks[k];
    fmt::print("  {:<6}{:>12}{:>14}{:>10}{:>10.1f}{:>10.3f}{:>10.3f}{:>12.3f}\n", k, io::thousands(c.rows),
               io::thousands(c.nonzeros), io::thousands(c.halo), 1e-6 * double(c.bytes), c.seconds, c.seconds_in_sums,
               c.seconds_in_exchanges);
  }
  fmt::print("\n");
}

void print_table(const SolveOptions& o, const Answer& answer) {
  const io::SystemFacts& facts = answer.facts;
  const Result& r = answer.result;
  print_system(facts);
  print_row("method", fmt::format("{} with {}, {} ordering{}", r.solver, r.precond, r.ordering,
                                  r.scaling == "none" ? "" : ", scaling " + r.scaling));
  if (r.outer_iterations > 0)
    print_row("precision",
              fmt::format("{}, {} inner solve{}", r.precision, r.outer_iterations, r.outer_iterations == 1 ? "" : "s"));
  print_row("device", fmt::format("{}, {} thread{}{}", r.device, r.threads, r.threads == 1 ? "" : "s",
                                  r.triangular == "none" ? "" : ", triangular solves " + r.triangular));
  print_ladder(r);
  if (r.history.size() > 1) {
    fmt::print("\n  residual against iterations\n");
    fmt::print("{}", io::text_chart(residual_curve(r, ""), 66, 11, true));
  }
  fmt::print("\n  {}\n\n", wrapped(status_sentence(r, o.solver, !answer.ranks.empty()), 2));
  if (o.solver.norm == Norm::openfoam)
    print_row("OpenFOAM",
              fmt::format("{:.3e} at first, {:.3e} at last (reduced by {:.1e}, asked {:.1e})", r.initial_residual,
                          r.history.back(), r.history.back() / std::max(r.initial_residual, 1e-300), o.solver.rtol));
  print_row("true residual",
            o.solver.norm == Norm::openfoam
                ? fmt::format("{:.3e} of the right-hand side", r.relative_residual)
                : fmt::format("{:.3e} of the right-hand side (asked {:.1e})", r.relative_residual, o.solver.rtol));
  print_row("RMSE", fmt::format("{:.3e}", r.rmse));

  const double total = facts.read_seconds + r.seconds.analyse + r.seconds.factor + r.seconds.solve;
  fmt::print("\n  {:<16}{:>9}  {:>6}\n", "part", "seconds", "share");
  const auto part = [&](const char* name, double seconds, const std::string& remark = "") {
    fmt::print("  {:<16}{:>9.3f}  {:>5.0f}%{}\n", name, seconds, total > 0 ? 100 * seconds / total : 0, remark);
  };
  part(is_generator(o.system.matrix) ? "generate" : "read", facts.read_seconds);
  part("analyse", r.seconds.analyse);
  part("factor", r.seconds.factor);
  part("solve", r.seconds.solve,
       r.iterations ? fmt::format("  {:.3f} ms an iteration", 1e3 * r.seconds.solve / r.iterations) : "");
  print_ranks(answer.ranks);
  if (answer.ranks.empty()) fmt::print("\n");
  print_row("memory", fmt::format("{} in the solver, {} in the matrix{}", io::megabytes(r.bytes),
                                  io::megabytes(facts.matrix_bytes), answer.ranks.empty() ? "" : ", on rank 0"));
  for (const std::string& note : facts.notes) print_row("note", note);
  for (const std::string& note : r.notes) print_row("note", note);
}

int run(const SolveOptions& o) {
  if (wants_ranks(o)) return run_over_ranks(o);
  if (o.partition != "auto") throw Error("--partition is for several ranks: add --ranks N, or start them with mpirun");
  require_outputs(o);
  Solver solver(o.solver);  // refuses bad names before any work
  System s = load_system(o.system, o.solver.threads, !o.quiet);
  if (o.explain) return explain(s, o, solver);
  Monitor monitor;
  Result r;
  {
    const StepLine step("analysing", !o.quiet);
    solver.setup(s.a);
  }
  {
    const InterruptGuard guard(monitor);
    const ProgressLine progress(monitor, "solving", !o.quiet);
    r = solver.solve(s.b, s.x, &monitor);
  }
  if (r.status == Status::converged && o.solver.norm == Norm::true2)
    if (std::string unseen = solver::unseen_rows(s.a, s.b, s.x, o.solver.rtol); !unseen.empty())
      r.notes.push_back(std::move(unseen));
  return report(o, {std::move(s.facts), std::move(s.x), std::move(r), {}});
}

}  // namespace

void require_outputs(const SolveOptions& o) {
  require_outputs({o.system.matrix, right_hand_side_of(o.system)}, {o.output, o.json, o.plot});
  if (!o.plot.empty()) io::require_drawable(o.plot);
}

int report(const SolveOptions& o, const Answer& answer) {
  const Result& r = answer.result;
  const bool silent = o.quiet || o.json == "-" || o.output == "-";  // no table in what another program reads
  if (!silent) print_table(o, answer);

  // What was asked for as files. One that fails does not take the others with it.
  std::string trouble;
  const auto attempt = [&](const std::string& path, const char* what, auto write) {
    if (path.empty()) return;
    try {
      write();
      if (!silent) print_row(what, path);
    } catch (const Error& e) {
      trouble += (trouble.empty() ? "" : "\nkrilu: ") + std::string(e.what());
    }
  };
  attempt(o.output, "solution", [&] { write_vector(o.output, answer.x); });
  attempt(o.json, "report", [&] { io::write_json(o.json, io::to_json(r, answer.facts, o.solver, answer.ranks)); });
  attempt(o.plot, "picture", [&] {
    io::Picture p;
    p.title = answer.facts.name + ", " + r.solver + " with " + r.precond;
    p.x_label = "iterations";
    p.y_label = o.solver.norm == Norm::openfoam ? "OpenFOAM residual" : "||b - A x|| / ||b||";
    p.log_y = true;
    p.target = o.solver.norm == Norm::openfoam ? o.solver.rtol * r.initial_residual : o.solver.rtol;
    p.target_label = "tolerance";
    p.panels = {{residual_curve(r, r.precond)}};
    io::draw(p, o.plot);
  });
  if (!silent) print_shortcut(o, r);
  if (!trouble.empty()) throw Error(trouble);
  return exit_status(r.status);
}

Run add_solve(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("solve", "Solve A x = b and show how it converged");
  auto o = std::make_shared<SolveOptions>();
  add_system_options(command, o->system);
  add_solver_options(command, o->solver);
  command
      .add_option(
          "--precond", o->solver.precond,
          "auto, none, jacobi, dilu, dic, ilu0, ic0, iluk[:LEVEL], ilut[:MOST,TOLERANCE], "
          "block-ilu[:PARTS[,LOCAL]], ras[:PARTS[,OVERLAP[,LOCAL]]]; LOCAL is dilu, ilu0, iluk.. or ilut..; lu, "
          "a direct factorisation refined by gmres")
      ->capture_default_str();
  command.add_option("--ranks", o->ranks,
                     "Ranks in this process, a thread or, with --device cuda:0-3, a GPU each; mpirun starts ranks as "
                     "processes [1]");
  command
      .add_option("--partition", o->partition,
                  "Rows of the ranks: blocks (consecutive rows), metis, or auto (blocks, unless they cut too much)")
      ->capture_default_str();
  command
      .add_option("-o,--output", o->output, "Write the solution here, a Matrix Market array (- for standard output)")
      ->check(a_name());
  command.add_option("--json", o->json, "Write the whole report here as JSON (- for standard output)")->check(a_name());
  command.add_option("--plot", o->plot, "Draw the residual curve here (.png or .svg)")->check(a_name());
  command.add_flag("--explain", o->explain, "Say what would be chosen and why, and do not solve");
  command.add_flag("--quiet", o->quiet, "Print nothing but errors");
  return [o] { return run(*o); };
}

}  // namespace krilu::app
