// SPDX-License-Identifier: Apache-2.0
// krilu grid: an elliptic grid round a shape, how Newton's method came to it, how good it is, its files and its
// picture. Exit status 0 where it converged and no cell is folded, 3 where not.
#include "krilu/grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/parse.hpp"
#include "base/together.hpp"
#include "commands.hpp"
#include "grid/draw.hpp"
#include "grid/write.hpp"
#include "io/plot.hpp"
#include "io/report.hpp"
#include "krilu/error.hpp"
#include "krilu/mpi.hpp"
#include "krilu/version.hpp"
#include "ranks.hpp"
#include "system.hpp"
#include "terminal.hpp"

namespace krilu::app {

namespace {

struct GridCommand {
  GridOptions grid;
  std::string size = "257x129";
  std::vector<std::string> outputs;
  std::string json, plot;
  int ranks = 0;  // in this process; 0: as the device says, or one
  bool quiet = false;
};

void read_size(const std::string& text, GridOptions& o) {
  const auto parts = split(text, 'x');
  if (parts.size() != 2 || !parse(parts[0], o.around) || !parse(parts[1], o.outward))
    throw Error(fmt::format("--size {}: nodes round the shape and outwards, such as 257x129", text));
}

const char* plural(std::int64_t n) { return n == 1 ? "" : "s"; }

std::string status_sentence(const GridResult& r, const GridOptions& asked) {
  const int updates = r.history.empty() ? 0 : r.history.back().update;
  const std::string after = fmt::format("after {} update{} of the control terms", updates, plural(updates));
  if (r.quality.folded_cells > 0)
    return red("folded") +
           fmt::format(" {}: {} cell{} without a positive area at every corner; docs/grids.md says what to try", after,
                       io::thousands(r.quality.folded_cells), plural(r.quality.folded_cells));
  switch (r.status) {
    case Status::converged: return green("converged") + " " + after;
    case Status::max_iterations:
      return red("not converged") + fmt::format(" {}: {}", after,
                                                updates >= asked.max_updates
                                                    ? fmt::format("that is the limit, --max-updates {}", updates)
                                                    : "Newton's method or its linear solver met its limit");
    case Status::stagnated:
      return red("stagnated") +
             fmt::format(" {}: what is not met yet comes no nearer; docs/grids.md says what to try", after);
    case Status::breakdown: return red("broke down") + fmt::format(" {}: try another --precond", after);
    case Status::diverged: return red("diverged") + fmt::format(" {}: docs/grids.md says what to try", after);
    case Status::interrupted: return red("interrupted") + " " + after;
  }
  return "";
}

/// Rows of a table, those in the middle left out where there are many.
template <class Row, class Print>
void print_some(const std::vector<Row>& rows, const Print& print) {
  constexpr std::size_t first = 4, last = 8;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (rows.size() > first + last + 1 && k == first) {
      fmt::print("  {:>6}\n", "...");
      k = rows.size() - last;
    }
    print(rows[k]);
  }
}

void print_history(const GridResult& r) {
  if (!r.history.empty()) {
    fmt::print("\n  {:>6}  {:>14}  {:>13}  {:>10}  {:>8}  {:>10}\n", "update", "spacing is off", "angle is off",
               "residual", "Newton", "inner");
    print_some(r.history, [](const GridUpdate& u) {
      fmt::print("  {:>6}  {:>12.3g} %  {:>9.3g} deg  {:>10.2e}  {:>8}  {:>10}\n", u.update, 100 * u.wall_spacing_error,
                 u.wall_angle_error, u.residual, u.newton_steps, u.inner_iterations);
    });
  }
  if (!r.newton.empty()) {
    fmt::print("\n  Newton's last solve\n");
    fmt::print("  {:>6}  {:>14}  {:>13}  {:>10}  {:>8}  {:>10}\n", "step", "||F||", "length", "forcing", "inner",
               "linear");
    print_some(r.newton, [](const NewtonStep& s) {
      if (s.forcing == 0)  // the start
        fmt::print("  {:>6}  {:>14.6e}\n", 0, s.residual);
      else
        fmt::print("  {:>6}  {:>14.6e}  {:>13.4g}  {:>10.2e}  {:>8}  {:>10.2e}\n", s.iteration, s.residual, s.length,
                   s.forcing, s.inner_iterations, s.linear_residual);
    });
  }
}

void print_quality(const GridQuality& q) {
  print_row("angles",
            fmt::format("{:.2f} degrees at least, {:.2f} off 90 on average", q.worst_angle, q.mean_deviation));
  print_row("at the wall", fmt::format("{:.3g} degrees off 90 at most, {:.3g} with trailing edge and corners",
                                       q.wall_deviation, q.wall_deviation_anywhere));
  print_row("wall spacing", fmt::format("{:.4g} to {:.4g} chords, {:.4g} asked", q.least_wall_spacing,
                                        q.largest_wall_spacing, q.wall_spacing));
  print_row("growth", fmt::format("{:.3g} from one spacing to the next at most", q.largest_growth));
  print_row("aspect ratio", fmt::format("{:.4g} at most", q.largest_aspect));
  print_row("Jacobian", fmt::format("{:.3e} chords^2 at least", q.smallest_jacobian));
  print_row("folded cells", q.folded_cells == 0 ? "none" : red(io::thousands(q.folded_cells)));
}

struct Part {
  const char* name;
  double seconds;
};

/// Of the total; the last is what no other part has.
std::vector<Part> parts_of(const GridResult& r) {
  const NewtonSeconds& s = r.seconds;
  const double known = s.analyse + s.residual + s.jacobian + s.factor + s.linear;
  return {{"analyse", s.analyse}, {"residual", s.residual}, {"jacobian", s.jacobian},
          {"factor", s.factor},   {"linear", s.linear},     {"other", std::max(0.0, r.total_seconds - known)}};
}

void print_table(const GridCommand& o, const GridResult& r) {
  const Grid& g = r.grid;
  fmt::print("{}  {}\n\n", bold(fmt::format("krilu {}", version)), o.grid.shape);
  const std::string cut = g.wake > 0 ? fmt::format(", {} cells along the cut", io::thousands(g.wake)) : "";
  print_row("grid", fmt::format("{}, {} x {} nodes{}, far field at {:.4g} chords", o.grid.topology, io::thousands(g.ni),
                                io::thousands(g.nj), cut, o.grid.far_field));
  print_row("control", o.grid.control);
  print_row("method", fmt::format("Newton, forcing {}, {} with {}", o.grid.newton.forcing, r.solver, r.precond));
  print_row("device", r.device);
  print_history(r);
  fmt::print("\n  {}\n\n", wrapped(status_sentence(r, o.grid), 2));
  if (g.node.empty())
    fmt::print("  no grid was there yet: nothing is written but the report\n");
  else
    print_quality(r.quality);

  fmt::print("\n  {:<16}{:>9}  {:>6}\n", "part", "seconds", "share");
  const auto line = [&](const char* name, double seconds) {
    fmt::print("  {:<16}{:>9.3f}  {:>5.0f}%\n", name, seconds,
               r.total_seconds > 0 ? 100 * seconds / r.total_seconds : 0);
  };
  for (const Part& p : parts_of(r)) line(p.name, p.seconds);
  line("all", r.total_seconds);
  fmt::print("\n");
  for (const std::string& note : r.notes) print_row("note", note);
}

nlohmann::ordered_json to_json(const GridCommand& o, const GridResult& r) {
  nlohmann::ordered_json j;
  const GridOptions& asked = o.grid;
  const GridQuality& q = r.quality;
  j["krilu"] = version;
  j["shape"] = asked.shape;
  j["trailing_edge"] = asked.trailing_edge;
  j["topology"] = asked.topology;
  j["size"] = {{"around", r.grid.ni}, {"outward", r.grid.nj}, {"wake", r.grid.wake}};
  j["asked"] = {{"far_field", asked.far_field},
                {"wall_spacing", asked.wall_spacing},
                {"control", asked.control},
                {"max_updates", asked.max_updates},
                {"tolerance", asked.tolerance},
                {"forcing", asked.newton.forcing},
                {"line_search", asked.newton.line_search},
                {"jacobian", asked.newton.jacobian},
                {"max_steps", asked.newton.max_iterations},
                {"solver", asked.newton.linear.solver},
                {"precond", asked.newton.linear.precond},
                {"device", asked.newton.linear.device}};
  j["device"] = r.device;
  j["status"] = to_string(r.status);
  j["quality"] = {{"smallest_jacobian", q.smallest_jacobian},
                  {"folded_cells", q.folded_cells},
                  {"worst_angle", q.worst_angle},
                  {"mean_deviation", q.mean_deviation},
                  {"wall_deviation", q.wall_deviation},
                  {"wall_deviation_anywhere", q.wall_deviation_anywhere},
                  {"largest_aspect", q.largest_aspect},
                  {"wall_spacing", q.wall_spacing},
                  {"least_wall_spacing", q.least_wall_spacing},
                  {"largest_wall_spacing", q.largest_wall_spacing},
                  {"largest_growth", q.largest_growth}};
  j["history"] = nlohmann::ordered_json::array();
  for (const GridUpdate& u : r.history)
    j["history"].push_back({{"update", u.update},
                            {"wall_spacing_error", u.wall_spacing_error},
                            {"wall_angle_error", u.wall_angle_error},
                            {"residual", u.residual},
                            {"newton_steps", u.newton_steps},
                            {"inner_iterations", u.inner_iterations}});
  j["newton"] = nlohmann::ordered_json::array();
  for (const NewtonStep& s : r.newton)
    j["newton"].push_back({{"iteration", s.iteration},
                           {"residual", s.residual},
                           {"length", s.length},
                           {"inner_iterations", s.inner_iterations},
                           {"forcing", s.forcing},
                           {"linear_residual", s.linear_residual}});
  for (const Part& p : parts_of(r)) j["seconds"][p.name] = p.seconds;
  j["seconds"]["all"] = r.total_seconds;
  j["notes"] = r.notes;
  return j;
}

std::string picture_title(const GridCommand& o, const GridResult& r) {
  const GridQuality& q = r.quality;
  return fmt::format("{}, {} grid, {} x {}: angles from {:.1f}°, aspect ratio up to {:.3g}{}",
                     std::filesystem::path(o.grid.shape).filename().string(), o.grid.topology, r.grid.ni, r.grid.nj,
                     q.worst_angle, q.largest_aspect,
                     q.folded_cells > 0 ? fmt::format(", {} folded", io::thousands(q.folded_cells)) : "");
}

GridResult make_grid(const GridCommand& o, const std::shared_ptr<Communicator>& ranks) {
  const bool first = !ranks || ranks->rank() == 0, show = first && !o.quiet;
  GridOptions here = o.grid;
  if (ranks) here.newton.linear = options_here(o.grid.newton.linear, *ranks);
  Monitor monitor;
  std::optional<InterruptGuard> guard;
  if (first || started_by_mpirun()) guard.emplace(monitor);  // threads share one Ctrl-C
  std::optional<StepLine> line;
  line.emplace("first solve", show);
  const auto progress = [&](const GridUpdate& u) {
    line.emplace(
        fmt::format("update {}  spacing {:.2g} %  angle {:.2g} deg  residual {:.1e}  Newton {}  inner {}", u.update,
                    100 * u.wall_spacing_error, u.wall_angle_error, u.residual, u.newton_steps, u.inner_iterations),
        show);
    return !monitor.interrupted();
  };
  GridResult r = elliptic_grid(here, progress, ranks, [&] { return !monitor.interrupted(); });
  if (ranks) r.device += fmt::format(", {} ranks", ranks->size());
  return r;
}

/// The grid, reported; over ranks, by the first of them.
int run(const GridCommand& o, const std::shared_ptr<Communicator>& ranks) {
  const GridResult r = make_grid(o, ranks);
  const int status = r.quality.folded_cells > 0 ? 3 : exit_status(r.status);
  if (ranks && ranks->rank() != 0) return status;
  const bool table_to_stderr = o.json == "-";
  const bool none = r.grid.node.empty();  // interrupted before there was one
  if (!o.quiet && !table_to_stderr) print_table(o, r);

  // One file that fails does not take the others with it.
  std::string trouble;
  const auto attempt = [&](const std::string& path, const char* what, auto write) {
    try {
      {
        const StepLine step("writing " + path, !o.quiet);
        write();
      }
      if (!o.quiet && !table_to_stderr) print_row(what, path);
    } catch (const Error& e) {
      trouble += (trouble.empty() ? "" : "\nkrilu: ") + std::string(e.what());
    }
  };
  if (!none)
    for (const std::string& path : o.outputs) attempt(path, "written", [&] { grid::write_by_ending(r.grid, path); });
  if (!o.json.empty()) attempt(o.json, "report", [&] { io::write_json(o.json, to_json(o, r)); });
  if (!o.plot.empty() && !none)
    attempt(o.plot, "picture", [&] { grid::draw_grid(r.grid, picture_title(o, r), o.plot); });
  if (!trouble.empty()) throw Error(trouble);
  return status;
}

/// What can be refused is refused before any work.
GridCommand checked(GridCommand o) {
  read_size(o.size, o.grid);
  for (const std::string& path : o.outputs) grid::require_writable(path);
  std::vector<std::string> outputs = o.outputs;
  outputs.insert(outputs.end(), {o.json, o.plot});
  require_outputs({o.grid.shape}, outputs);
  if (!o.plot.empty()) io::require_drawable(o.plot);
  return o;
}

int run(const GridCommand& o) {
  const std::string& device = o.grid.newton.linear.device;
  if (!wants_ranks(o.ranks, device)) return run(checked(o), nullptr);
  return over_ranks(o.ranks, device,
                    [&](const auto& ranks) { return run(together(*ranks, [&] { return checked(o); }), ranks); });
}

}  // namespace

Run add_grid(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("grid", "An elliptic grid round an airfoil or another closed curve");
  auto o = std::make_shared<GridCommand>();
  GridOptions& g = o->grid;
  Options& linear = g.newton.linear;
  command
      .add_option("--shape", g.shape,
                  "naca:DDDD, or a file of coordinates: Selig, Lednicer, or the points of a closed curve")
      ->capture_default_str();
  command
      .add_option("--trailing-edge", g.trailing_edge,
                  "Of NACA shapes: closed (the last coefficient changed), open (a short base)")
      ->capture_default_str();
  command.add_option("--topology", g.topology, "O (round the shape), C (round it and along a cut behind it)")
      ->capture_default_str();
  command.add_option("--size", o->size, "Nodes round the shape and outwards, the repeated ones included")
      ->type_name("NIxNJ")
      ->capture_default_str();
  command.add_option("--far-field", g.far_field, "Distance of the outer boundary from mid-chord, in chords")
      ->capture_default_str();
  command.add_option("--wall-spacing", g.wall_spacing, "Distance of the first line from the wall, in chords")
      ->capture_default_str();
  command.add_option("--control", g.control, "Of spacing and angle at the wall: sorenson, hilgenstock, none")
      ->capture_default_str();
  command.add_option("--max-updates", g.max_updates, "Updates of the control terms at most")->capture_default_str();
  command
      .add_option("--tolerance", g.tolerance,
                  "Of the equations' residual, relative to the start's, control terms held fixed")
      ->capture_default_str();
  command
      .add_option("--forcing", g.newton.forcing,
                  "How well a Newton step is solved for: eisenstat-walker-1, eisenstat-walker-2, fixed:ETA")
      ->capture_default_str();
  command.add_option("--jacobian", g.newton.jacobian, "auto, own, finite-differences, matrix-free")
      ->capture_default_str();
  command.add_option("--line-search", g.newton.line_search, "Along a Newton step: backtracking, none")
      ->capture_default_str();
  command.add_option("--max-steps", g.newton.max_iterations, "Newton steps at most, in one solve")
      ->capture_default_str();
  command.add_option("--solver", linear.solver, "Of a step's linear system: auto, bicgstab, gmres, fgmres, gmres-ir")
      ->capture_default_str();
  command
      .add_option("--precond", linear.precond,
                  "auto, none, jacobi, dilu, ilu0, iluk[:LEVEL], ilut[:MOST,TOLERANCE], block-ilu.., ras..: as krilu "
                  "solve has them")
      ->capture_default_str();
  command
      .add_option("--ordering", linear.ordering,
                  "auto, natural, rcm, multicolour, block-multicolour[:ROWS], metis[:PARTS]")
      ->capture_default_str();
  command.add_option("--restart", linear.restart, "Basis vectors of gmres and fgmres")->capture_default_str();
  command.add_option("--max-iters", linear.max_iterations, "Iterations of a linear solve at most")
      ->capture_default_str();
  command
      .add_option(
          "--device", linear.device,
          "Where Newton's method runs: auto (a GPU where there is one), host, cuda[:N], cuda:A-B (a rank each), "
          "emulated")
      ->capture_default_str();
  command.add_option("--ranks", o->ranks, "Ranks in this process, a thread or a GPU each; mpirun starts processes [1]");
  command.add_option("--threads", linear.threads, "Threads [all]");
  command
      .add_option("-o,--output", o->outputs,
                  "Write the grid here, by its ending: .cgns, or .xyz, .p3d or .fmt for Plot3D; may be given again")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command.add_option("--plot", o->plot, "Draw the grid here (.png or .svg)")->type_name("FILE")->check(a_name());
  command.add_option("--json", o->json, "Write the whole report here as JSON (- for standard output)")
      ->type_name("FILE")
      ->check(a_name());
  command.add_flag("--quiet", o->quiet, "Print nothing but errors");
  command.footer(
      "Examples:\n"
      "  krilu grid --shape naca:2412 -o airfoil.cgns --plot airfoil.png\n"
      "  krilu grid --shape rae2822.dat --topology C --size 513x129 --wall-spacing 1e-5\n"
      "Lengths are in chords. Ends with 0 where the grid converged and no cell is\n"
      "folded, and with 3 where not. More is in docs/grids.md.");
  return [o] { return run(*o); };
}

}  // namespace krilu::app
