// SPDX-License-Identifier: Apache-2.0
// krilu-bench-mixed: what lower precision gains. Systems by preconditioners by precisions, GMRES(R) in fp64 against
// refinement by GMRES(R) in fp32, stored in fp32, fp16 and bf16, and BiCGStab in fp64 against its refinement in fp32,
// all to the same true residual. Prints Markdown; writes JSON with machine, commit and command, anew after each
// combination.
//
// The precisions of a combination are set up together and take turns, so that what else the machine does meets all;
// where the device's memory does not hold them together they run one after another. A solve's time is the public
// Solver's, the copies of b and x to a GPU and back included; the first solve of each is not counted, and where it
// raises the precision the later ones begin in the raised one. Set-up is counted once and apart. Speed-ups are fp64's
// median time over the row's; of rows that did not converge there is none.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/host.hpp"
#include "io/report.hpp"
#include "krilu/error.hpp"
#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "peers/peer.hpp"

namespace krilu::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::vector<std::string> systems = {"gen:poisson3d:100x100x100", "gen:convdiff3d:148x148x58",
                                      "gen:aniso3d:128x128x128", "gen:convdiff3d:200x200x200"};
  std::string preconds, solvers = "gmres;bicgstab", precisions = "fp64;fp32;fp32/fp16;fp32/bf16";
  std::string json, commit, device = "host", basis = "auto";
  int restart = 50, repeat = 5, threads = 0;
  double rtol = 1e-10, seconds = 1e9;
};

constexpr int most_outer = 200, most_iterations = 5000;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// What the precisions of a combination have in common.
struct Combination {
  std::string system, solver, precond, ordering;  // ordering: auto, or what stands after '@'
};

Options options_of(const Arguments& arguments, const Combination& c, const std::string& precision) {
  Options o;
  o.solver = c.solver;
  o.precond = c.precond;
  o.ordering = c.ordering;
  o.device = arguments.device;
  o.threads = arguments.threads;
  o.precision = precision;
  o.restart = arguments.restart;
  o.rtol = arguments.rtol;
  o.max_iterations = most_iterations;
  if (precision != "fp64") {
    o.outer_iterations = most_outer;
    if (c.solver == "gmres") {
      o.solver = "gmres-ir";
      o.inner_iterations = arguments.restart;
      o.basis = arguments.basis;
    }
  }
  return o;
}

// --- bytes

/// Bytes of a value: of the vectors that are computed with, of the matrix and of the factors off the diagonal, of a
/// basis.
struct Widths {
  double word = 8, matrix = 8, factors = 8, basis = 8;
};

double width(const std::string& format) { return format == "fp64" ? 8 : format == "fp32" ? 4 : 2; }

/// Of a Result::precision; none where it is neither all double nor all lower.
std::optional<Widths> widths_of(const std::string& precision) {
  if (precision == "fp64") return Widths{};
  if (precision.rfind("fp32", 0) != 0) return std::nullopt;
  const std::string name = precision.substr(0, precision.find(' '));
  const double stored = width(name.substr(name.find('/') + 1));
  Widths w{4, stored, stored, 4};
  if (precision.find("with its matrix in fp32") != std::string::npos) w.matrix = 4;
  constexpr std::string_view basis = "with its basis in ";
  if (const auto at = precision.find(basis); at != std::string::npos)
    w.basis = width(precision.substr(at + basis.size(), 4));
  return w;
}

bool noted(const Result& r, const char* beginning) {
  return std::any_of(r.notes.begin(), r.notes.end(),
                     [&](const std::string& note) { return note.rfind(beginning, 0) == 0; });
}

/// Bytes that an iteration moves on average, each input of a step read once and each output written once, n rows and
/// k entries off the diagonal, v bytes a value and 4 an index:
///   product A z: k (v + 4), and 3 words a row (diagonal, z, A z). Where columns are kept in less, as in HEC, in
///     stencils and in slices of 16 bits, that is not visible here: 4 are counted.
///   Jacobi: 3 words a row; of GMRES in low precision, but for fp16, it is in the matrix. No preconditioner: 2 words
///     for z, which GMRES does not ask for.
///   DILU, DIC, ILU(0), IC(0): both triangles, k (v + 4), and 6 words a row (r, E, y and y, E, z). In coloured blocks
///     on a GPU A z of DILU and DIC is had from what the forward sweep left: L alone is read again, k / 2 (v + 4), and
///     5 words a row, in place of the product. In low precision, but for fp16 and CG, E is in the matrix on a GPU: a
///     word less each time.
///   RAS and block ILU with their default local factors: about a product and 4 words a row more; what overlap adds to
///     the factors is not counted.
///   GMRES: of step j of a cycle 2 j + 1 words of the basis (dot products with it, a combination of it, two new
///     vectors) and 5 others a row, averaged over cycles of R steps and one of the rest.
///   BiCGStab: two products, two applications, 19 words a row.
///   The end of a cycle or of an inner solve, by its share of an iteration: a product and 6 words in double; for GMRES
///     also an application and the basis once. That a basis which goes on is brought up to date is not counted.
/// None for other preconditioners and for precisions that are not the one asked for.
std::optional<double> bytes_per_iteration(double n, double k, const Result& r, int restart) {
  const auto widths = widths_of(r.precision);
  if (!widths || noted(r, "precision raised") || noted(r, "begun in") || r.iterations == 0) return std::nullopt;
  const Widths w = *widths;
  const std::string precond = r.precond.substr(0, r.precond.find(':'));
  const double product = k * (w.matrix + 4) + 3 * w.word * n, triangles = k * (w.factors + 4);
  double application = 0, following = product;  // the product after an application
  const bool folds = w.word == 4 && r.solver != "cg" && r.precision.rfind("fp32/fp16", 0) == std::string::npos;
  const bool on_gpu = r.device.rfind("cuda", 0) == 0;
  if (precond == "none" || (precond == "jacobi" && folds && r.solver != "bicgstab")) {
    application = r.solver == "bicgstab" ? 2 * w.word * n : 0;
  } else if (precond == "jacobi") {
    application = 3 * w.word * n;
  } else if (precond == "dilu" || precond == "dic" || precond == "ilu0" || precond == "ic0") {
    const int pivots = on_gpu && folds ? 0 : 1;  // words
    application = triangles + (4 + 2 * pivots) * w.word * n;
    const bool blocks = on_gpu && r.ordering.rfind("block-multicolour", 0) == 0;
    if (blocks && (precond == "dilu" || precond == "dic") && w.matrix == w.factors)
      following = triangles / 2 + (4 + pivots) * w.word * n;
  } else if (precond == "ras" || precond == "block-ilu") {
    application = triangles + (3 + 4) * w.word * n;
  } else {
    return std::nullopt;
  }
  const double iterations = r.iterations, in_double = k * 12 + (3 + 6) * 8 * n;
  if (r.solver == "bicgstab")
    return 2 * (application + following) + 19 * w.word * n + r.outer_iterations / iterations * in_double;
  const double full = r.iterations / restart, rest = r.iterations % restart;
  const double steps = (full * restart * (restart + 1.0) + rest * (rest + 1)) / 2;
  const double cycles = full + (rest > 0), ends = std::max(cycles, double(r.outer_iterations));
  return application + following + ((2 * steps / iterations + 1) * w.basis + 5 * w.word) * n +
         ends / iterations * (in_double + application + iterations / cycles * w.basis * n);
}

// --- one combination

/// One precision of a combination.
struct Side {
  std::string precision;
  std::unique_ptr<Solver> solver;
  Result first, last;
  std::vector<double> seconds;
  Costs costs;
  double setup = 0, residual = 0;
  std::string error;
};

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Runs f for a side that has not failed, and keeps the sentence where it fails now. Too little memory is not the
/// side's own failure where others hold some: it is thrown.
struct TooLittleMemory {};
template <class F>
void guarded(Side& side, bool alone, F f) {
  if (!side.error.empty()) return;
  try {
    f();
    return;
  } catch (const Error& e) {
    side.error = e.what();
    if (!alone && side.error.find("memory") != std::string::npos) throw TooLittleMemory();
  } catch (const std::bad_alloc&) {
    side.error = "out of memory";
    if (!alone) throw TooLittleMemory();
  }
  side.solver.reset();
}

void measure_together(const Arguments& arguments, const Combination& c, const CsrMatrix& a,
                      const std::vector<double>& b, std::vector<double>& x, std::span<Side> sides) {
  const bool alone = sides.size() == 1;
  for (Side& side : sides)
    guarded(side, alone, [&] {
      const auto start = Clock::now();
      side.solver = std::make_unique<Solver>(options_of(arguments, c, side.precision));
      side.solver->setup(a);
      side.setup = since(start);
    });
  for (int k = -1; k < arguments.repeat; ++k)
    for (Side& side : sides)
      guarded(side, alone, [&] {
        std::fill(x.begin(), x.end(), 0.0);
        side.last = side.solver->solve(b, x);
        if (k < 0)
          side.first = side.last;
        else
          side.seconds.push_back(side.last.seconds.solve);
        if (k + 1 == arguments.repeat) side.residual = relative_residual(a, b, x);
      });
  for (Side& side : sides) guarded(side, alone, [&] { side.costs = side.solver->costs(); });
}

Json to_json(const Arguments& arguments, const CsrMatrix& a, const Side& side) {
  Json row{{"precision", side.precision}};
  if (!side.error.empty()) {
    row["error"] = side.error;
    return row;
  }
  const Result& r = side.last;
  const double solve = median(side.seconds);
  row.update({{"status", to_string(r.status)},
              {"solve_s", solve},
              {"solve_least_s", *std::min_element(side.seconds.begin(), side.seconds.end())},
              {"solve_most_s", *std::max_element(side.seconds.begin(), side.seconds.end())},
              {"times_s", side.seconds},
              {"iterations", r.iterations},
              {"outer_iterations", r.outer_iterations},
              {"relative_residual", side.residual},
              {"raised", noted(side.first, "precision raised") || noted(r, "begun in") || noted(r, "precision raised")},
              {"ended_in", r.precision},
              {"values_lost", r.values_lost},
              {"setup_s", side.setup},
              {"analyse_s", r.seconds.analyse},
              {"factor_s", r.seconds.factor},
              {"product_ms", side.costs.product},
              {"application_ms", side.costs.application},
              {"bytes", r.bytes},
              {"ordering", r.ordering},
              {"triangular", r.triangular},
              {"device", r.device},
              {"threads", r.threads},
              {"notes", r.notes},
              {"first_solve",
               {{"solve_s", side.first.seconds.solve},
                {"iterations", side.first.iterations},
                {"outer_iterations", side.first.outer_iterations},
                {"ended_in", side.first.precision},
                {"notes", side.first.notes}}}});
  const double rows = a.rows, off_diagonal = double(a.nnz()) - rows;
  if (const auto bytes = bytes_per_iteration(rows, off_diagonal, r, arguments.restart)) {
    row["bytes_per_iteration"] = *bytes;
    row["gigabytes_per_s"] = *bytes * r.iterations / solve * 1e-9;
  }
  return row;
}

Json bench(const Arguments& arguments, const Combination& c, const CsrMatrix& a, const std::vector<double>& b) {
  std::vector<Side> sides;
  for (const std::string& precision : split(arguments.precisions, ';'))
    if (c.solver == "gmres" || precision == "fp64" || precision == "fp32") sides.emplace_back().precision = precision;
  std::vector<double> x(b.size());
  bool together = true;
  try {
    measure_together(arguments, c, a, b, x, sides);
  } catch (const TooLittleMemory&) {
    together = false;
    for (Side& side : sides) {
      side.solver.reset();
      Side anew;
      anew.precision = side.precision;
      side = std::move(anew);
    }
    for (Side& side : sides) {
      measure_together(arguments, c, a, b, x, {&side, 1});
      side.solver.reset();
    }
  }
  Json group{{"system", c.system},   {"rows", a.rows},         {"nnz", a.nnz()},       {"solver", c.solver},
             {"precond", c.precond}, {"ordering", c.ordering}, {"together", together}, {"sides", Json::array()}};
  for (const Side& side : sides) group["sides"].push_back(to_json(arguments, a, side));
  // Over fp64, of the whole solve and of an iteration.
  const auto converged = [](const Json& side) { return side.value("status", "") == "converged"; };
  const auto base = std::find_if(group["sides"].begin(), group["sides"].end(),
                                 [](const Json& side) { return side["precision"] == "fp64"; });
  if (base == group["sides"].end() || !converged(*base)) return group;
  const auto seconds = [](const Json& side) { return side["solve_s"].get<double>(); };
  const auto each = [&](const Json& side) { return seconds(side) / std::max(1, side["iterations"].get<int>()); };
  const double whole_time = seconds(*base), iteration_time = each(*base);
  for (Json& side : group["sides"]) {
    if (!converged(side)) continue;
    side["speed_up"] = whole_time / seconds(side);
    side["speed_up_of_iteration"] = iteration_time / each(side);
  }
  return group;
}

// --- the report

std::string number(const Json& row, const char* key, const char* format, double factor = 1) {
  return row.contains(key) ? fmt::format(fmt::runtime(format), factor * row[key].get<double>()) : std::string("-");
}

std::string remarks(const Json& side, bool together) {
  std::string text;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (side.contains("error")) return side["error"].get<std::string>();
  if (side["status"] != "converged") add(side["status"].get<std::string>());
  if (side["raised"].get<bool>()) {
    const Json& first = side["first_solve"];
    add(fmt::format("raised to {} (first solve: {} it., {:.1f} ms)", side["ended_in"].get<std::string>(),
                    first["iterations"].get<int>(), 1e3 * first["solve_s"].get<double>()));
  }
  if (const auto lost = side["values_lost"].get<std::int64_t>(); lost > 0) add(io::thousands(lost) + " values lost");
  if (!together) add("alone");
  return text;
}

/// The groups with an ordering of their own, or those without.
void print_table(const Json& groups, bool apart) {
  std::string system;
  for (const Json& g : groups) {
    if ((g["ordering"] != "auto") != apart) continue;
    if (g["system"] != system) {
      system = g["system"].get<std::string>();
      fmt::print("\n### {}{}\n\n", system,
                 g.contains("rows") ? fmt::format(": {} rows, {} nonzeros", io::thousands(g["rows"].get<Index>()),
                                                  io::thousands(g["nnz"].get<Offset>()))
                                    : std::string());
      fmt::print(
          "| solver | precond | precision | solve, ms (least to most) | speed-up | of an it. | it. | outer | residual "
          "| set-up, s | A, ms | M, ms | MB/it. | GB/s | remarks |\n"
          "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n");
    }
    for (const Json& s : g["sides"]) {
      const std::string time = s.contains("solve_s") ? fmt::format("{} ({} to {})", number(s, "solve_s", "{:.1f}", 1e3),
                                                                   number(s, "solve_least_s", "{:.1f}", 1e3),
                                                                   number(s, "solve_most_s", "{:.1f}", 1e3))
                                                     : "-";
      fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                 g["solver"].get<std::string>(),
                 g["precond"].get<std::string>() + (apart ? ", " + g["ordering"].get<std::string>() : ""),
                 s["precision"].get<std::string>(), time, number(s, "speed_up", "{:.2f}"),
                 number(s, "speed_up_of_iteration", "{:.2f}"), number(s, "iterations", "{:.0f}"),
                 number(s, "outer_iterations", "{:.0f}"), number(s, "relative_residual", "{:.1e}"),
                 number(s, "setup_s", "{:.2f}"), number(s, "product_ms", "{:.3f}"),
                 number(s, "application_ms", "{:.3f}"), number(s, "bytes_per_iteration", "{:.1f}", 1e-6),
                 number(s, "gigabytes_per_s", "{:.0f}"), remarks(s, g["together"].get<bool>()));
    }
  }
}

void print(const Json& report) {
  fmt::print("# Mixed precision\n\nMachine: {}, {} cores{}; commit {}; `{}`\n\n",
             report["machine"]["cpu"].get<std::string>(), report["machine"]["cores"].get<int>(),
             report["machine"].contains("device") ? "; " + report["machine"]["device"].get<std::string>() : "",
             report["commit"].get<std::string>(), report["command"].get<std::string>());
  fmt::print(
      "To {:.0e} of a random right-hand side; GMRES({}), gmres-ir below fp64 with as many inner iterations; medians of "
      "{} solves that take turns. Speed-up: fp64's time over the row's, of the whole solve and of an iteration. "
      "MB/it.: counted, each input of a step read once and each output written once; GB/s: that over the time. Jacobi "
      "of GMRES below fp64, fp16 apart, is in A: M is a copy then, which an iteration does without.\n",
      report["rtol"].get<double>(), report["restart"].get<int>(), report["repeat"].get<int>());
  print_table(report["groups"], false);
  const auto& groups = report["groups"];
  if (std::any_of(groups.begin(), groups.end(), [](const Json& g) { return g["ordering"] != "auto"; })) {
    fmt::print("\n## In a given ordering: on a GPU the sweeps wait on latency, not on memory\n");
    print_table(groups, true);
  }
  if (!report["left_out"].empty()) {
    fmt::print("\nLeft out for want of time:\n\n");
    for (const Json& what : report["left_out"]) fmt::print("- {}\n", what.get<std::string>());
  }
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(": ") + 2);
  return "unknown";
}

int run(const Arguments& arguments, const std::string& command) {
  const auto start = Clock::now();
  Json report{{"machine", {{"cpu", processor()}, {"cores", exec::available_threads()}}},
              {"commit", arguments.commit},
              {"command", command},
              {"rtol", arguments.rtol},
              {"restart", arguments.restart},
              {"repeat", arguments.repeat},
              {"groups", Json::array()},
              {"left_out", Json::array()}};
  const std::string natural = arguments.device.rfind("cuda", 0) == 0 ? ";dilu@natural" : "";
  const std::string preconds = arguments.preconds.empty() ? "jacobi;ras;dilu" + natural : arguments.preconds;
  for (const std::string& system : arguments.systems) {
    CsrMatrix a;
    std::vector<double> b;
    std::string unreadable;
    for (const std::string& entry : split(preconds, ';')) {
      for (const std::string& solver : split(arguments.solvers, ';')) {
        const std::string name = fmt::format("{} {} {}", system, solver, entry);
        if (since(start) >= arguments.seconds) {
          report["left_out"].push_back(name);
          continue;
        }
        if (!unreadable.empty()) continue;
        fmt::print(stderr, "{:6.1f} s  {}\n", since(start), name);
        const std::size_t at = entry.find('@');
        const Combination c{system, solver, entry.substr(0, at),
                            at == std::string::npos ? "auto" : entry.substr(at + 1)};
        try {
          if (b.empty()) {
            a = is_generator(system) ? generate(system) : read_matrix_market(system).matrix;
            b = random_vector(std::size_t(a.rows), 1, -1, 1);
          }
          report["groups"].push_back(bench(arguments, c, a, b));
        } catch (const Error& e) {
          unreadable = e.what();
          report["groups"].push_back({{"system", system},
                                      {"solver", "-"},
                                      {"precond", "-"},
                                      {"ordering", "auto"},
                                      {"together", true},
                                      {"sides", Json::array({{{"precision", "-"}, {"error", unreadable}}})}});
        }
        for (const Json& side : report["groups"].back()["sides"])
          if (side.contains("device")) report["machine"]["device"] = side["device"];
        if (!arguments.json.empty()) io::write_json(arguments.json, report);
      }
    }
  }
  if (!arguments.json.empty()) io::write_json(arguments.json, report);
  print(report);
  return 0;
}

}  // namespace
}  // namespace krilu::bench

int main(int argc, char** argv) {
  krilu::bench::Arguments arguments;
  CLI::App app("Solves in mixed precision against solves in double, iteration by iteration and as a whole",
               "krilu-bench-mixed");
  app.add_option("MATRIX", arguments.systems, "Generators or Matrix Market files")->capture_default_str();
  app.add_option("--precond", arguments.preconds,
                 "Preconditioners, separated by ';', each with @ORDERING where it is to have one [jacobi;ras;dilu, "
                 "on a GPU dilu@natural too]");
  app.add_option("--solver", arguments.solvers, "gmres, bicgstab or both, separated by ';'")->capture_default_str();
  app.add_option("--precision", arguments.precisions,
                 "Precisions, separated by ';'; bicgstab takes those of fp64 and fp32 that are named")
      ->capture_default_str();
  app.add_option("--basis", arguments.basis, "What an inner GMRES keeps its basis in")->capture_default_str();
  app.add_option("--device", arguments.device, "host or cuda")->capture_default_str();
  app.add_option("--threads", arguments.threads, "Of the host; 0: all")->capture_default_str();
  app.add_option("--restart", arguments.restart, "Of GMRES, and inner iterations of gmres-ir")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rtol", arguments.rtol, "Of the true residual")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--repeat", arguments.repeat, "Solves that are counted")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seconds", arguments.seconds, "No combination is begun after that many");
  app.add_option("--json", arguments.json, "Write all figures here, anew after each combination");
  app.add_option("--commit", arguments.commit, "What was built, for the record");
  CLI11_PARSE(app, argc, argv);
  std::string command = "krilu-bench-mixed";
  for (int k = 1; k < argc; ++k) command += std::string(" ") + argv[k];
  if (const char* given = std::getenv("KRILU_BENCH_COMMAND")) command = given;
  try {
    return krilu::bench::run(arguments, command);
  } catch (const krilu::Error& e) {
    fmt::print(stderr, "krilu-bench-mixed: {}\n", e.what());
    return 2;
  }
}
