// SPDX-License-Identifier: Apache-2.0
// krilu-bench-factorisation: ILU(k) against PETSc's and ILUT against Eigen's on one thread, on the same systems in the
// same order of rows. Prints Markdown; writes JSON with machine, commit and command. bench/run-factorisation runs it.
//
// The numeric phase of ILU(k) begins with A's values in A's own arrays, as PETSc's does; beside it stands krilu's where
// they already lie over the pattern. ILUT has one phase only. Sides take turns; medians of the rounds, in processor
// time. That the sides formed the same factors is told by what they make of one vector.
#include "peers/factorisation.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "exec/host.hpp"
#include "io/report.hpp"
#include "krilu/error.hpp"
#include "krilu/io.hpp"
#include "peers/peer.hpp"
#include "precond/ilut.hpp"
#include "precond/local_problem.hpp"
#include "precond/spec.hpp"

namespace krilu::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::vector<std::string> matrices;
  std::vector<std::string> names = {"iluk:0", "iluk:1", "iluk:2", "ilut:7,0.1", "ilut:7,0.01", "ilut:14,0.01"};
  std::string json, commit;
  int rounds = 5;
};

/// x = U^-1 (I + L)^-1 b, with multipliers, pivots and U in one CSR.
std::vector<double> applied(const CsrView& factors, std::vector<double> x) {
  for (Index i = 0; i < factors.rows; ++i)
    for (Offset k = factors.offsets[i]; factors.columns[k] < i; ++k)
      x[std::size_t(i)] -= factors.values[k] * x[std::size_t(factors.columns[k])];
  for (Index i = factors.rows; i-- > 0;) {
    Offset k = factors.offsets[i + 1] - 1;
    for (; factors.columns[k] > i; --k) x[std::size_t(i)] -= factors.values[k] * x[std::size_t(factors.columns[k])];
    x[std::size_t(i)] /= factors.values[k];
  }
  return x;
}

/// ||x - y|| / ||x|| for what two factorisations make of the same vector.
double difference(PeerFactorisation& peer, const std::vector<double>& b, const std::vector<double>& x) {
  std::vector<double> y(b.size());
  peer.apply(b, y);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] -= x[i];
  return std::sqrt(squared_norm(y) / squared_norm(x));
}

/// The times of krilu and of the peer, the medians' ratio and the least and largest within a round.
void add_times(Json& row, const std::string& peer, const std::vector<double>& ours, const std::vector<double>& theirs) {
  row["krilu_s"] = median(ours);
  if (theirs.empty()) return;
  std::vector<double> ratios;
  for (std::size_t k = 0; k < ours.size(); ++k) ratios.push_back(ours[k] / theirs[k]);
  row["peer"] = peer;
  row["peer_s"] = median(theirs);
  row["ratio"] = median(ratios);
  row["ratio_least"] = *std::min_element(ratios.begin(), ratios.end());
  row["ratio_most"] = *std::max_element(ratios.begin(), ratios.end());
}

Json bench_iluk(const CsrMatrix& a, const precond::Spec& spec, int rounds) {
  const exec::Host host(1);
  precond::LocalProblem p;
  std::vector<double> symbolic, ours, laid_before, theirs;
  for (int k = 0; k < rounds; ++k) symbolic.push_back(timed([&] { p = precond::local_problem(host, a, spec); }));
  std::unique_ptr<PeerFactorisation> peer;
#if defined(KRILU_HAS_PETSC)
  peer = petsc_iluk(a, spec.level, std::int64_t(p.pattern.columns.size()));
#endif
  Buffer<double> value(p.pattern.columns.size());
  Index zero_pivot = -1;
  for (int k = -1; k < rounds; ++k) {  // the first round warms both sides up
    const double whole = timed([&] {
      zero_pivot = precond::eliminate(host, p.elimination(), p.pattern.source.data(), a.values.data(), value.data());
    });
    const double peer_took = peer ? peer->run() : 0;
    p.gather(host, a, 0, value.data());
    const double laid =
        timed([&] { precond::eliminate(host, p.elimination(), precond::Updated::pattern, value.data()); });
    if (k < 0) continue;
    ours.push_back(whole);
    laid_before.push_back(laid);
    if (peer) theirs.push_back(peer_took);
  }
  if (zero_pivot >= 0) throw Error(fmt::format("row {} of {} has no pivot", zero_pivot + 1, a.rows));
  Json row{
      {"entries", p.pattern.columns.size()}, {"symbolic_s", median(symbolic)}, {"laid_before_s", median(laid_before)}};
  add_times(row, "PETSc", ours, theirs);
  if (peer) {
    const std::vector<double> b = random_vector(std::size_t(a.rows), 1, -1, 1);
    CsrView factors = p.pattern.view(a.rows);
    factors.values = value.data();
    row["peer_version"] = peer->version;
    row["peer_entries"] = peer->entries;
    row["peer_symbolic_s"] = peer->symbolic_seconds;
    row["difference"] = difference(*peer, b, applied(factors, b));
  }
  return row;
}

Json bench_ilut(const CsrMatrix& a, const precond::Spec& spec, int rounds) {
  const exec::Host host(1);
  const std::vector<Index> blocks{0, a.rows};
  std::vector<double> ours, theirs;
  std::unique_ptr<PeerFactorisation> peer;
#if defined(KRILU_HAS_EIGEN)
  peer = eigen_ilut(a, int(spec.most), spec.tolerance);
#endif
  precond::IlutFactors f;
  for (int k = 0; k < rounds; ++k) {
    f = {};  // both sides begin with no factors
    ours.push_back(timed([&] { f = precond::ilut(host, a, blocks, {int(spec.most), spec.tolerance}); }));
    if (peer) theirs.push_back(peer->run());
  }
  if (f.zero_pivot >= 0) throw Error(fmt::format("row {} of {} has no pivot", f.zero_pivot + 1, a.rows));
  Json row{{"entries", f.factors.nnz()}};
  add_times(row, "Eigen", ours, theirs);
  if (peer) {
    const std::vector<double> b = random_vector(std::size_t(a.rows), 1, -1, 1);
    row["peer_version"] = peer->version;
    row["peer_entries"] = peer->entries;
    row["peer_copy_s"] = peer->copy_seconds;
    row["difference"] = difference(*peer, b, applied(f.factors, b));
  }
  return row;
}

void print(const Json& report) {
  fmt::print("Machine: {}; commit {}; `{}`; one thread, medians of {} rounds, processor time\n\n",
             report["machine"]["cpu"].get<std::string>(), report["commit"].get<std::string>(),
             report["command"].get<std::string>(), report["rounds"].get<int>());
  fmt::print(
      "| system | | entries | symbolic, s | numeric, s | values laid before, s | peer | its entries | its symbolic, s "
      "| "
      "its numeric, s | numeric over its (least to most) | differ by |\n"
      "|---|---|--:|--:|--:|--:|---|--:|--:|--:|--:|--:|\n");
  const auto seconds = [](const Json& row, const char* key) {
    return row.contains(key) ? fmt::format("{:.3f}", row[key].get<double>()) : std::string("-");
  };
  for (const Json& r : report["factorisations"]) {
    fmt::print("| {} | {} | {} | {} | {} | {} |", r["matrix"].get<std::string>(), r["name"].get<std::string>(),
               io::thousands(r["entries"].get<std::int64_t>()), seconds(r, "symbolic_s"), seconds(r, "krilu_s"),
               seconds(r, "laid_before_s"));
    if (r.contains("peer"))
      fmt::print(" {} {} | {} | {} | {} | {:.2f} ({:.2f} to {:.2f}) | {:.1e} |\n", r["peer"].get<std::string>(),
                 r["peer_version"].get<std::string>(), io::thousands(r["peer_entries"].get<std::int64_t>()),
                 seconds(r, "peer_symbolic_s"), seconds(r, "peer_s"), r["ratio"].get<double>(),
                 r["ratio_least"].get<double>(), r["ratio_most"].get<double>(), r["difference"].get<double>());
    else
      fmt::print(" - | - | - | - | - | - |\n");
  }
  fmt::print("\n| worst ratio over the systems | | bar |\n|---|--:|--:|\n");
  for (const auto& [peer, what, bar] : {std::tuple{"PETSc", "ILU(k), numeric phase, over PETSc's", 1.0},
                                        std::tuple{"Eigen", "ILUT over Eigen's IncompleteLUT", 1.2}}) {
    double worst = 0;
    for (const Json& r : report["factorisations"])
      if (r.value("peer", "") == peer) worst = std::max(worst, r["ratio"].get<double>());
    if (worst > 0) fmt::print("| {} | {:.2f} | at most {:.2f} |\n", what, worst, bar);
  }
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(": ") + 2);
  return "unknown";
}

int run(const Arguments& arguments, const std::string& command) {
  Json report{{"machine", {{"cpu", processor()}, {"cores", exec::available_threads()}}},
              {"commit", arguments.commit},
              {"command", command},
              {"rounds", arguments.rounds}};
  for (const std::string& given : arguments.matrices) {
    const CsrMatrix a = is_generator(given) ? generate(given) : read_matrix_market(given).matrix;
    for (const std::string& name : arguments.names) {
      fmt::print(stderr, "{} {}\n", given, name);
      const precond::Spec spec = precond::parse_spec(name);
      if (spec.local != "iluk" && spec.local != "ilut")
        throw Error(fmt::format("'{}' is not measured here; name iluk:K or ilut:P,TOL", name));
      Json row{{"matrix", given}, {"name", name}, {"rows", a.rows}, {"nnz", a.nnz()}};
      row.update(spec.local == "iluk" ? bench_iluk(a, spec, arguments.rounds) : bench_ilut(a, spec, arguments.rounds));
      report["factorisations"].push_back(row);
    }
  }
  print(report);
  if (!arguments.json.empty()) io::write_json(arguments.json, report);
  return 0;
}

}  // namespace
}  // namespace krilu::bench

int main(int argc, char** argv) {
  krilu::bench::Arguments arguments;
  CLI::App app("krilu's ILU(k) and ILUT against PETSc's and Eigen's on one thread", "krilu-bench-factorisation");
  app.add_option("MATRIX", arguments.matrices, "Generators or Matrix Market files")->required();
  app.add_option("--precond", arguments.names, "Factorisations: iluk:K, ilut:P,TOL; give it once for each");
  app.add_option("--json", arguments.json, "Write all figures here");
  app.add_option("--commit", arguments.commit, "What was built, for the record");
  app.add_option("--rounds", arguments.rounds, "Rounds in which the sides take turns")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::string command = "krilu-bench-factorisation";
  for (int k = 1; k < argc; ++k) command += std::string(" ") + argv[k];
  if (const char* given = std::getenv("KRILU_BENCH_COMMAND")) command = given;
  try {
    return krilu::bench::run(arguments, command);
  } catch (const krilu::Error& e) {
    fmt::print(stderr, "krilu-bench-factorisation: {}\n", e.what());
    return 2;
  }
}
