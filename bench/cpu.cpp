// SPDX-License-Identifier: Apache-2.0
// The CPU benchmark: krilu against PETSc and Eigen on the same systems, machine and tolerance on the true residual, one
// core against one core and all against all, in one run. Prints Markdown; writes JSON with machine, commit and command.
//
//   krilu-bench-cpu [--json FILE] [--rounds N] [--petsc PATH] [MATRIX...]
//
// Sides take turns, and what is stated is the median over rounds of the ratio within a round. Bytes of a product count
// each input read once and each output written once, over the machine's own STREAM triad.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "exec/host.hpp"
#include "io/report.hpp"
#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "peers/peer.hpp"
#include "schedule/row_order.hpp"
#include "sparse/csr.hpp"
#include "sparse/split.hpp"
#include "stream.hpp"

namespace krilu::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::vector<std::string> matrices;
  std::string json, petsc, program, memory_of;
  int threads = 0;
  int rounds = 5;
  double rtol = 1e-8;
};

struct Timer {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }
};

std::string output_of(const std::string& command) {
  std::string text;
  if (std::FILE* pipe = ::popen(command.c_str(), "r")) {
    char line[4096];
    while (std::fgets(line, sizeof line, pipe)) text += line;
    ::pclose(pipe);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// Resident bytes of this process.
std::size_t resident() {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0, held = 0;
  statm >> pages >> held;
  return held * std::size_t(::sysconf(_SC_PAGESIZE));
}

struct System {
  std::string name, given;
  CsrMatrix a;
  std::vector<double> b;
  bool symmetric = false;
};

System load(const std::string& name) {
  System s;
  s.given = name;
  if (is_generator(name)) {
    s.a = generate(name);
    s.name = name.substr(4);
  } else {
    ReadMatrix read = read_matrix_market(name);
    s.name = read.facts.name;
    s.a = std::move(read.matrix);
  }
  s.b = random_vector(std::size_t(s.a.rows), 1, -1, 1);
  s.symmetric = sparse::symmetry(s.a).values;
  return s;
}

// --- products
// ---------------------------------------------------------------------------------------------------------

Json bench_product(const System& s, int threads, double triad) {
  const exec::Host host(threads);
  const CsrMatrix graph = sparse::symmetry(s.a).pattern ? CsrMatrix{} : sparse::adjacency(s.a);
  const auto order = schedule::by_levels(host, s.a, graph.rows ? graph.view() : s.a.view(), {});
  const auto pattern = std::make_shared<const sparse::SplitPattern>(host, host, s.a, order);
  const auto m = sparse::fill_values<double>(host, pattern, s.a, order);
  Buffer<double> x(s.b.begin(), s.b.end()), y(x.size());
  const auto median_of = [&](auto product) {
    std::vector<double> t;
    for (int k = 0; k < 25; ++k) {
      const Timer timer;
      product();
      if (k >= 5) t.push_back(timer.seconds());
    }
    return t;
  };
  const auto split = median_of([&] { sparse::multiply(host, m.view(), x.data(), y.data()); });
  const auto csr = median_of([&] { sparse::multiply(host, s.a, x.data(), y.data()); });
  const double bytes = 12.0 * s.a.nnz() + 20.0 * s.a.rows + 4;
  const double rate = bytes / median(split) * 1e-9;
  return {{"matrix", s.name},
          {"threads", threads},
          {"ms", 1e3 * median(split)},
          {"ms_least", 1e3 * *std::min_element(split.begin(), split.end())},
          {"ms_most", 1e3 * *std::max_element(split.begin(), split.end())},
          {"csr_ms", 1e3 * median(csr)},
          {"gigabytes_per_second", rate},
          {"of_triad", rate / triad}};
}

// --- solves
// -----------------------------------------------------------------------------------------------------------

struct Ours {
  double setup = 0, solve = 0, residual = 0;
  int iterations = 0;
  bool converged = false;
};

Ours run_krilu(const System& s, const Options& o) {
  std::vector<double> x(s.b.size(), 0.0);
  Solver solver(o);
  solver.analyse(s.a);
  solver.factor(s.a);
  const Result r = solver.solve(s.b, x);
  return {r.seconds.analyse + r.seconds.factor, r.seconds.solve, r.relative_residual, r.iterations,
          r.status == Status::converged};
}

std::vector<PeerRun> run_petsc(const Arguments& arguments, const std::string& file, const std::string& methods,
                               int ranks, int max_iterations = 10000) {
  std::vector<PeerRun> runs;
  if (arguments.petsc.empty()) return runs;
  const std::string launch =
      ranks > 1 ? fmt::format("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n {} ", ranks) : "";
  // PETSc's arrays on huge pages too, as krilu's are.
  const std::string lines = output_of(fmt::format(
      "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 {}{} {} --methods {} --rtol {} --max-it {} --repeat 1 2>/dev/null", launch,
      arguments.petsc, file, methods, arguments.rtol, max_iterations));
  std::size_t at = 0;
  while (at < lines.size()) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    const Json j = Json::parse(lines.substr(at, end - at), nullptr, false);
    at = end + 1;
    if (j.is_discarded() || !j.contains("method")) continue;
    PeerRun r;
    r.name = "PETSc";
    r.method = j["method"];
    r.threads_or_ranks = ranks;
    r.converged = j["converged"];
    r.iterations = j["iterations"];
    r.setup_seconds = j["setup_seconds"];
    r.solve_seconds = j["solve_seconds"];
    r.relative_residual = j["relative_residual"].is_number() ? j["relative_residual"].get<double>() : 1.0;
    r.version = j.value("version", "");
    runs.push_back(r);
  }
  return runs;
}

/// What a process of its own grew by while it analysed, factored and solved, against what the solver says that it
/// holds. Temporary memory that was freed is handed back to the system before either look.
int print_memory(const System& s, const Options& o) {
  std::vector<double> x(s.b.size(), 0.0);
  ::malloc_trim(0);
  const std::size_t before = resident();
  Solver solver(o);
  solver.analyse(s.a);
  solver.factor(s.a);
  solver.solve(s.b, x);
  ::malloc_trim(0);
  fmt::print("{} {}\n", solver.bytes(), resident() - before);
  return 0;
}

Json bench_solve(const Arguments& arguments, const System& s, int threads) {
  const std::string method = s.symmetric ? "cg" : "bicgstab", precond = s.symmetric ? "dic" : "dilu";
  const std::string file = fmt::format("/tmp/krilu-bench-{}.bin", ::getpid());
  write_system(file, s.a, s.b);

  const auto options = [&](const char* solver, const char* preconditioner) {
    Options o;
    o.solver = solver;
    o.precond = preconditioner;
    o.threads = threads;
    o.rtol = arguments.rtol;
    return o;
  };
  // Every side once a round.
  std::map<std::string, std::vector<Ours>> ours;
  std::map<std::string, std::vector<PeerRun>> peers;
  for (int round = 0; round < arguments.rounds; ++round) {
    ours["bicgstab+dilu"].push_back(run_krilu(s, options("bicgstab", "dilu")));
    for (const PeerRun& r : run_petsc(arguments, file, s.symmetric ? "bcgs+ilu,cg+icc" : "bcgs+ilu", threads))
      peers["PETSc " + r.method].push_back(r);
    if (s.symmetric) ours["cg+dic"].push_back(run_krilu(s, options("cg", "dic")));
    ours["bicgstab+ilu0"].push_back(run_krilu(s, options("bicgstab", "ilu0")));
  }
  // GMRES is far behind BiCGStab wherever it needs many restarts: once, and 300 iterations at most.
  if (!s.symmetric) {
    Options o = options("gmres", "dilu");
    o.max_iterations = 300;
    ours["gmres+dilu"].push_back(run_krilu(s, o));
    for (const PeerRun& r : run_petsc(arguments, file, "gmres+ilu", threads, 300))
      peers["PETSc " + r.method].push_back(r);
  }
#if defined(KRILU_HAS_EIGEN)
  // IncompleteLUT takes minutes a million rows at its defaults: filled to the matrix's own size here. Eigen is far from
  // the front, so one round of it is enough, and its serial preconditioners run with one thread only.
  const std::vector<const char*> eigen = threads > 1
                                             ? std::vector<const char*>{s.symmetric ? "cg+jacobi" : "bicgstab+jacobi"}
                                         : s.symmetric ? std::vector<const char*>{"cg+ic-natural", "cg+jacobi"}
                                                       : std::vector<const char*>{"bicgstab+ilut1", "bicgstab+jacobi"};
  for (const char* name : eigen)
    peers[std::string("Eigen ") + name].push_back(run_eigen(name, s.a, s.b, arguments.rtol, 10000, threads, 1));
#endif
  std::filesystem::remove(file);

  Json rows = Json::array();
  const auto row = [&](const std::string& who, int iterations, double setup, double solve, double residual, bool good) {
    rows.push_back({{"who", who},
                    {"iterations", iterations},
                    {"setup_s", setup},
                    {"solve_s", solve},
                    {"total_s", setup + solve},
                    {"ms_per_iteration", 1e3 * solve / std::max(1, iterations)},
                    {"relative_residual", residual},
                    {"converged", good}});
  };
  const auto medians = [&](const auto& runs, auto part) {
    std::vector<double> v;
    for (const auto& r : runs) v.push_back(part(r));
    return median(v);
  };
  for (const auto& [name, runs] : ours)
    row("krilu " + name, runs[0].iterations, medians(runs, [](const Ours& r) { return r.setup; }),
        medians(runs, [](const Ours& r) { return r.solve; }), runs[0].residual, runs[0].converged);
  for (const auto& [name, runs] : peers)
    row(name, runs[0].iterations, medians(runs, [](const PeerRun& r) { return r.setup_seconds; }),
        medians(runs, [](const PeerRun& r) { return r.solve_seconds; }), runs[0].relative_residual, runs[0].converged);

  Json j{{"matrix", s.name}, {"rows", s.a.rows}, {"nnz", s.a.nnz()}, {"threads", threads}, {"runs", rows}};
  // Ratios within a round.
  const auto& mine = ours["bicgstab+dilu"];
  const auto& whole = ours[method + "+" + precond];
  std::vector<double> per_iteration, total;
  for (int round = 0; round < arguments.rounds; ++round) {
    const auto at = std::size_t(round);
    if (const auto found = peers.find("PETSc bcgs+ilu"); found != peers.end() && found->second.size() > at) {
      const PeerRun& p = found->second[at];
      per_iteration.push_back(mine[at].solve / mine[at].iterations / (p.solve_seconds / std::max(1, p.iterations)));
    }
    double best = 1e300;
    for (const auto& [name, runs] : peers) {
      const PeerRun& p = runs[std::min(at, runs.size() - 1)];
      if (p.converged) best = std::min(best, p.setup_seconds + p.solve_seconds);
    }
    if (best < 1e300) total.push_back((whole[at].setup + whole[at].solve) / best);
  }
  if (!per_iteration.empty()) j["per_iteration_over_petsc_bcgs_ilu"] = median(per_iteration);
  if (!total.empty()) j["whole_over_best_peer"] = median(total);
  j["whole_is"] = method + "+" + precond;
  std::istringstream memory(output_of(
      fmt::format("{} --memory-of {}+{} --threads {} {}", arguments.program, method, precond, threads, s.given)));
  double bytes = 0, measured = 0;
  memory >> bytes >> measured;
  j["bytes"] = bytes;
  j["measured_bytes"] = measured;
  return j;
}

// --- the report
// -------------------------------------------------------------------------------------------------------

void print(const Json& report) {
  fmt::print("Machine: {}, {} cores; commit {}; `{}`\n\n", report["machine"]["cpu"].get<std::string>(),
             report["machine"]["cores"].get<int>(), report["commit"].get<std::string>(),
             report["command"].get<std::string>());
  fmt::print("STREAM triad:");
  for (const Json& t : report["triad"])
    fmt::print(" {:.1f} GB/s on {} thread{}", t["gigabytes_per_second"].get<double>(), t["threads"].get<int>(),
               t["threads"] == 1 ? "," : "s\n\n");
  fmt::print(
      "| y = A x | threads | ms (least to most) | GB/s | of triad | plain CSR, ms |\n|---|--:|--:|--:|--:|--:|\n");
  for (const Json& p : report["products"])
    fmt::print("| {} | {} | {:.2f} ({:.2f} to {:.2f}) | {:.1f} | {:.2f} | {:.2f} |\n", p["matrix"].get<std::string>(),
               p["threads"].get<int>(), p["ms"].get<double>(), p["ms_least"].get<double>(), p["ms_most"].get<double>(),
               p["gigabytes_per_second"].get<double>(), p["of_triad"].get<double>(), p["csr_ms"].get<double>());
  for (const Json& s : report["solves"]) {
    fmt::print(
        "\n**{}**, {} rows, {} core{}: time per iteration over PETSc's bcgs with ilu {:.2f}; whole solve ({}) over the "
        "best peer's {:.2f}; `bytes()` {} against {} measured\n\n",
        s["matrix"].get<std::string>(), io::thousands(s["rows"].get<std::int64_t>()), s["threads"].get<int>(),
        s["threads"] == 1 ? "" : "s", s.value("per_iteration_over_petsc_bcgs_ilu", 0.0),
        s["whole_is"].get<std::string>(), s.value("whole_over_best_peer", 0.0),
        io::megabytes(std::size_t(s["bytes"].get<double>())),
        io::megabytes(std::size_t(s["measured_bytes"].get<double>())));
    fmt::print(
        "| | iterations | set-up, s | solve, s | whole, s | ms an iteration | true residual |\n"
        "|---|--:|--:|--:|--:|--:|--:|\n");
    for (const Json& r : s["runs"])
      fmt::print("| {} | {}{} | {:.3f} | {:.3f} | {:.3f} | {:.2f} | {:.1e} |\n", r["who"].get<std::string>(),
                 r["iterations"].get<int>(), r["converged"].get<bool>() ? "" : " (not converged)",
                 r["setup_s"].get<double>(), r["solve_s"].get<double>(), r["total_s"].get<double>(),
                 r["ms_per_iteration"].get<double>(), r["relative_residual"].get<double>());
  }
  const Json& m = report["medians"];
  fmt::print("\n| median over the systems | | bar |\n|---|--:|--:|\n");
  fmt::print("| products, all threads, of triad | {:.2f} | at least 0.85 |\n",
             m["product_of_triad_all_threads"].get<double>());
  fmt::print("| time per iteration over PETSc's bcgs with ilu, one core | {:.2f} | at most 0.90 |\n",
             m["per_iteration_one_core"].get<double>());
  fmt::print("| whole solve over the best peer, a million rows, worst | {:.2f} | at most 1.00 |\n",
             m["whole_worst_million_rows"].get<double>());
  fmt::print("| bytes() over measured, farthest from 1 | {:.2f} | 0.90 to 1.10 |\n", m["bytes_farthest"].get<double>());
}

int run(const Arguments& arguments, const std::string& command) {
  const int all = exec::available_threads();
  Json report;
  report["machine"] = {{"cpu", output_of("sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1")}, {"cores", all}};
  report["commit"] = output_of(
      "git rev-parse --short HEAD | tr -d '\\n'; "
      "git diff --quiet HEAD -- . ':!bench/results' || printf -- -dirty");
  report["command"] = command;
  report["rtol"] = arguments.rtol;
  report["rounds"] = arguments.rounds;
  std::vector<int> counts{1};
  if (all > 1) counts.push_back(all);
  std::map<int, double> triad;
  for (int threads : counts) {
    triad[threads] = measure_bandwidth(threads).triad_best;
    report["triad"].push_back({{"threads", threads}, {"gigabytes_per_second", triad[threads]}});
  }
  std::vector<double> of_triad, per_iteration;
  double worst = 0, bytes_farthest = 1;
  for (const std::string& name : arguments.matrices) {
    const System s = load(name);
    for (int threads : counts) {
      fmt::print(stderr, "{} on {} thread(s)\n", s.name, threads);
      report["products"].push_back(bench_product(s, threads, triad[threads]));
      report["solves"].push_back(bench_solve(arguments, s, threads));
      const Json& solve = report["solves"].back();
      if (threads == all) of_triad.push_back(report["products"].back()["of_triad"]);
      if (threads == 1) per_iteration.push_back(solve.value("per_iteration_over_petsc_bcgs_ilu", 0.0));
      if (s.a.rows >= 1000000) worst = std::max(worst, solve.value("whole_over_best_peer", 0.0));
      const double bytes = solve["bytes"].get<double>() / solve["measured_bytes"].get<double>();
      if (std::abs(std::log(bytes)) > std::abs(std::log(bytes_farthest))) bytes_farthest = bytes;
    }
  }
  report["medians"] = {{"product_of_triad_all_threads", median(of_triad)},
                       {"per_iteration_one_core", median(per_iteration)},
                       {"whole_worst_million_rows", worst},
                       {"bytes_farthest", bytes_farthest}};
  print(report);
  if (!arguments.json.empty()) io::write_json(arguments.json, report);
  return 0;
}

}  // namespace
}  // namespace krilu::bench

int main(int argc, char** argv) {
  krilu::bench::Arguments arguments;
  CLI::App app("krilu against PETSc and Eigen on this machine", "krilu-bench-cpu");
  app.add_option("MATRIX", arguments.matrices, "Generators or Matrix Market files")->required();
  app.add_option("--json", arguments.json, "Write all figures here");
  app.add_option("--rounds", arguments.rounds, "Rounds in which the sides take turns")->capture_default_str();
  app.add_option("--rtol", arguments.rtol, "Tolerance on the true residual")->capture_default_str();
  app.add_option("--petsc", arguments.petsc, "The program petsc-peer");
  app.add_option("--memory-of", arguments.memory_of, "Only: bytes said and bytes grown by for METHOD+PRECOND");
  app.add_option("--threads", arguments.threads, "Threads of --memory-of");
  CLI11_PARSE(app, argc, argv);
  arguments.program = argv[0];
  std::string command = "krilu-bench-cpu";
  for (int k = 1; k < argc; ++k) command += std::string(" ") + argv[k];
  if (const char* given = std::getenv("KRILU_BENCH_COMMAND")) command = given;
  try {
    if (const std::size_t plus = arguments.memory_of.find('+'); plus != std::string::npos) {
      krilu::Options o;
      o.solver = arguments.memory_of.substr(0, plus);
      o.precond = arguments.memory_of.substr(plus + 1);
      o.threads = arguments.threads;
      return krilu::bench::print_memory(krilu::bench::load(arguments.matrices.front()), o);
    }
    return krilu::bench::run(arguments, command);
  } catch (const krilu::Error& e) {
    fmt::print(stderr, "krilu-bench-cpu: {}\n", e.what());
    return 2;
  }
}
