// SPDX-License-Identifier: Apache-2.0
// krilu-bench-gpu: what krilu takes on a GPU, piece by piece and as whole solves. Pieces are timed as graphs of several
// launches, so that the launch itself, which a solve does not pay, is left out; medians of 21. Whole solves are the
// public Solver's in a process that has run before, medians of --repeat. The peers' figures come from
// krilu-cusparse-peer on the same machine; bench/run-gpu runs both and joins them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "precond/factors.cuh"
#include "precond/registry.hpp"
#include "schedule/blocks.hpp"
#include "schedule/layout.cuh"
#include "sparse/hec.cuh"

namespace {

using krilu::CsrMatrix;
using krilu::Index;
using krilu::exec::Cuda;
using krilu::exec::require_cuda;
using krilu::triangular::Diagonal;
using krilu::triangular::Strategy;
using nlohmann::json;
using Times = std::vector<double>;

double median(Times t) {
  std::sort(t.begin(), t.end());
  return t.empty() ? 0 : t[t.size() / 2];
}

/// Milliseconds of one call of `work`, which only launches: a graph of `times` calls, median of 21.
double launched_ms(const Cuda& space, int times, const std::function<void()>& work) {
  work();
  space.synchronise();
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  require_cuda(cudaStreamBeginCapture(space.stream(), cudaStreamCaptureModeRelaxed), "recording");
  for (int k = 0; k < times; ++k) work();
  require_cuda(cudaStreamEndCapture(space.stream(), &graph), "recording");
  require_cuda(cudaGraphInstantiate(&ready, graph, 0), "recording");
  cudaEvent_t begin, end;
  require_cuda(cudaEventCreate(&begin), "timing");
  require_cuda(cudaEventCreate(&end), "timing");
  Times t;
  for (int k = 0; k < 24; ++k) {
    require_cuda(cudaEventRecord(begin, space.stream()), "timing");
    require_cuda(cudaGraphLaunch(ready, space.stream()), "timing");
    require_cuda(cudaEventRecord(end, space.stream()), "timing");
    require_cuda(cudaEventSynchronize(end), "timing");
    float ms = 0;
    require_cuda(cudaEventElapsedTime(&ms, begin, end), "timing");
    if (k >= 3) t.push_back(ms / times);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  return median(t);
}

/// Milliseconds of host time of one call that waits for the device; median of 9.
double called_ms(const Cuda& space, const std::function<void()>& work) {
  Times t;
  for (int k = 0; k < 11; ++k) {
    space.synchronise();
    const auto start = std::chrono::steady_clock::now();
    work();
    space.synchronise();
    if (k >= 2) t.push_back(1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return median(t);
}

double called_ms_once(const Cuda& space, const std::function<void()>& work) {
  space.synchronise();
  const auto start = std::chrono::steady_clock::now();
  work();
  space.synchronise();
  return 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double copy_bandwidth(const Cuda& space) {
  const std::size_t n = std::size_t(1) << 30;
  const auto a = space.allocate<char>(n), b = space.allocate<char>(n);
  space.clear(a);
  const double ms = launched_ms(space, 4, [&] {
    require_cuda(cudaMemcpyAsync(b.data(), a.data(), n, cudaMemcpyDeviceToDevice, space.stream()), "copying");
  });
  return 2 * double(n) / ms * 1e-9;  // TB/s
}

struct Case {
  Cuda space;
  krilu::sparse::DeviceCsr a, symmetrised;  // the second: the pattern of A + A^T, where A's is not symmetric
  std::shared_ptr<const krilu::schedule::Plan> plan;
  std::shared_ptr<const krilu::sparse::SlicedPattern> pattern;
  krilu::sparse::SlicedMatrix<double> m;
  krilu::exec::Array<double> x, y, z;

  Case(const Cuda& s, const CsrMatrix& matrix) : space(s) {
    a = krilu::sparse::upload(s, matrix, true);
    if (!krilu::sparse::facts(s, a).symmetry.pattern)
      symmetrised = krilu::sparse::upload(s, krilu::sparse::adjacency(matrix), false);
    const auto n = std::size_t(a.rows);
    x = s.allocate<double>(n);
    y = s.allocate<double>(n);
    z = s.allocate<double>(n);
    const auto values = krilu::random_vector(n, 1, -1, 1);
    s.copy_in(x, values.data(), n);
  }
  /// What levels and blocks are those of.
  const krilu::sparse::DeviceCsr& graph() const { return symmetrised.rows > 0 ? symmetrised : a; }
  void take(krilu::schedule::Plan p) {
    plan = std::make_shared<const krilu::schedule::Plan>(std::move(p));
    pattern = std::make_shared<const krilu::sparse::SlicedPattern>(space, a, plan->layout);
    krilu::sparse::fill_values(space, pattern, a.values.data(), m);
  }
  krilu::precond::Context<Cuda> context(Strategy s) const { return {space, s, {}, plan, &a}; }
};

json product(Case& c) {
  const krilu::sparse::SplitOperator<Cuda, double> A(c.space, c.m);
  const double ms = launched_ms(c.space, 10, [&] { A.apply(c.x.data(), c.y.data()); });
  const double entries = double(c.pattern->lower_entries()) + double(c.pattern->upper_entries());
  const double bytes = 12 * entries + 24 * double(c.a.rows);  // values and columns; diagonal, x and y
  return {{"ms", ms}, {"TB_per_s", bytes / ms * 1e-9}};
}

json hec(Case& c, const CsrMatrix& a) {
  const krilu::sparse::Hec<Cuda, double> m = krilu::sparse::shortened(
      c.space, krilu::sparse::Hec<Cuda, double>(c.space, krilu::exec::Host(), a, krilu::sparse::HecForm::product));
  const krilu::sparse::HecOperator<Cuda, double> A(c.space, m);
  const double ms = launched_ms(c.space, 10, [&] { A.apply(c.x.data(), c.y.data()); });
  return {{"ms", ms},
          {"width", m.width()},
          {"csr_entries", m.csr_entries()},
          {"column_bytes", m.column_bytes()},
          {"lanes", A.lanes()}};
}

/// A preconditioner that factors a matrix of its own.
json own(Case& c, const CsrMatrix& a, const std::string& name) {
  json out;
  try {
    auto context = c.context(Strategy::automatic);
    context.caller = a;
    std::unique_ptr<krilu::precond::Preconditioner<Cuda, double>> m;
    out["analyse_ms"] =
        called_ms_once(c.space, [&] { m = krilu::precond::make<Cuda, double>(name, context, c.pattern); });
    const auto factor = [&] { m->factor({c.m, a}, 0); };
    out["factor_ms"] =
        name.find("ilut") == std::string::npos ? called_ms(c.space, factor) : called_ms_once(c.space, factor);
    while (m->trials_left() > 0) m->apply(c.x.data(), c.z.data());
    out["apply_ms"] = launched_ms(c.space, 5, [&] { m->apply(c.x.data(), c.z.data()); });
    out["what"] = m->description();
    out["strategy"] = krilu::triangular::to_string(m->triangular()->used);
    out["bytes"] = m->bytes();
  } catch (const std::exception& e) {
    out["error"] = e.what();
  }
  return out;
}

/// A pair of sweeps over coloured blocks and the product after it, by stencils where slices read alike, and by columns.
template <class T, class S>
json in_blocks(Case& c, const krilu::triangular::WarpRunner& runner, krilu::sparse::SlicedView<T, S> a) {
  const auto n = std::size_t(a.pattern.rows);
  const std::vector<double> values = krilu::random_vector(n, 1, 0.5, 1);
  const auto r = c.space.brought(std::vector<T>(values.begin(), values.end())),
             rd = c.space.brought(std::vector<T>(values.begin(), values.end()));
  const auto y = c.space.allocate<T>(n), z = c.space.allocate<T>(n), Az = c.space.allocate<T>(n);
  json out;
  const auto times = [&](const std::string& by) {
    out["sweeps_by_" + by + "_ms"] = launched_ms(c.space, 5, [&] {
      krilu::precond::solve_dilu_form(runner, a.pattern, a.lower, a.upper, rd.data(), r.data(), y.data(), z.data());
    });
    out["product_by_" + by + "_ms"] = launched_ms(c.space, 5, [&] {
      krilu::precond::product_after_sweeps(c.space, a, c.pattern->widest(), rd.data(), y.data(), z.data(), Az.data());
    });
  };
  if (a.pattern.lower.stencil) times("stencils");
  a.pattern.lower.stencil = a.pattern.upper.stencil = {};
  times("columns");
  return out;
}

json sweeps(Case& c, Strategy s) {
  const krilu::triangular::WarpRunner runner(c.space, c.plan, *c.pattern, s);
  const auto v = c.m.view();
  krilu::precond::Dilu<Cuda, double> dilu(c.context(s), c.pattern, "dilu", false);
  krilu::triangular::Recurrence<double, Diagonal::reciprocal, true> lower{v.pattern.lower, v.lower, c.x.data(),
                                                                          v.diagonal, c.y.data()};
  krilu::triangular::Recurrence<double, Diagonal::reciprocal, false> upper{v.pattern.upper, v.upper, c.x.data(),
                                                                           v.diagonal, c.y.data()};
  json out;
  // Times of sweeps whatever the values: columns of zeros would be as fast. Infinities are, too.
  out["lower_ms"] = launched_ms(c.space, 5, [&] { runner.sweep(lower); });
  out["upper_ms"] = launched_ms(c.space, 5, [&] { runner.sweep(upper); });
  out["lower_called_ms"] = called_ms(c.space, [&] { runner.sweep(lower); });
  out["dilu_factor_ms"] = called_ms(c.space, [&] { dilu.factor(c.m, 0); });
  out["dilu_apply_ms"] = launched_ms(c.space, 5, [&] { dilu.apply(c.x.data(), c.z.data()); });
  krilu::precond::Ilu0<Cuda, double> ilu(c.context(s), c.pattern, "ilu0", false);
  out["ilu0_factor_ms"] = called_ms(c.space, [&] { ilu.factor(c.m, 0); });
  if (runner.blocks()) {
    out["fp64"] = in_blocks(c, runner, v);
    const auto single = krilu::sparse::rounded_matrix<float>(c.space, c.pattern, v, {.storage = krilu::Format::fp32});
    out["fp32"] = in_blocks(c, runner, single.view());
    const auto half =
        krilu::sparse::rounded_matrix<krilu::Bfloat16>(c.space, c.pattern, v, {.storage = krilu::Format::bf16});
    out["fp32/bf16"] = in_blocks(c, runner, half.view());
  }
  return out;
}

/// `others`: right-hand sides random:2 and on that are solved for too. One alone says little of an ordering: methods
/// that are not monotonic may need a fifth more iterations, or fewer, for the next.
json solve(const CsrMatrix& a, const std::vector<double>& b, krilu::Options o, int repeat, int others = 0) {
  json out;
  try {
    krilu::Solver solver(o);
    Times analyse, factor, solve_, total;
    krilu::Result r;
    for (int k = -1; k <= repeat; ++k) {
      std::vector<double> x(b.size(), 0.0);
      const auto start = std::chrono::steady_clock::now();
      solver.setup(a);
      r = solver.solve(b, x);
      const double ms = 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (k < 1) {  // kernels are loaded and memory is had for the first time
        if (k < 0) out["first_total_ms"] = ms;
        if (ms > 3000) repeat = 1;
        continue;
      }
      analyse.push_back(1e3 * r.seconds.analyse);
      factor.push_back(1e3 * r.seconds.factor);
      solve_.push_back(1e3 * r.seconds.solve);
      total.push_back(ms);
    }
    out["status"] = krilu::to_string(r.status);
    out["iterations"] = r.iterations;
    out["true_residual"] = r.relative_residual;
    out["solver"] = r.solver + "+" + r.precond + ", " + r.ordering + ", " + r.triangular;
    out["analyse_ms"] = median(analyse);
    out["factor_ms"] = median(factor);
    out["solve_ms"] = median(solve_);
    out["total_ms"] = median(total);
    out["total_spread_ms"] = {*std::min_element(total.begin(), total.end()),
                              *std::max_element(total.begin(), total.end())};
    out["notes"] = r.notes;
    std::vector<double> x(b.size(), 0.0);
    std::vector<int> iterations{r.iterations};
    const auto begun = std::chrono::steady_clock::now();
    constexpr std::chrono::seconds enough(4);
    for (int k = 0; k < others && r.status == krilu::Status::converged; ++k) {
      if (std::chrono::steady_clock::now() - begun > enough) break;
      std::fill(x.begin(), x.end(), 0.0);
      const krilu::Result other = solver.solve(krilu::random_vector(b.size(), std::uint64_t(k) + 2, -1, 1), x);
      if (other.status == krilu::Status::converged) iterations.push_back(other.iterations);
    }
    if (others > 0) out["iterations_of_each"] = iterations;
    // The cost of an iteration apart from what a solve costs once: two lengths of the same solve.
    const int few = std::max(1, r.iterations / 4);
    Times t;
    for (int k = 0; k < 5; ++k) {
      krilu::Options cut = o;
      cut.max_iterations = few;
      krilu::Solver shorter(cut);
      shorter.setup(a);
      for (int again = 0; again < 2; ++again) {
        std::fill(x.begin(), x.end(), 0.0);
        const krilu::Result q = shorter.solve(b, x);
        if (again == 1) t.push_back(1e3 * q.seconds.solve);
      }
    }
    if (r.iterations > few) out["ms_per_iteration"] = (median(solve_) - median(t)) / (r.iterations - few);
  } catch (const std::exception& e) {
    out["error"] = e.what();
  }
  return out;
}

/// Time steps: other values and a solve, then a solve of the same matrix again.
json steps(CsrMatrix a, const std::vector<double>& b, const krilu::Options& o, int repeat) {
  json out;
  try {
    krilu::Solver solver(o);
    Times factor, solve_, again;
    krilu::Result r;
    const auto solve_anew = [&](Times& times) {
      std::vector<double> x(b.size(), 0.0);
      r = solver.solve(b, x);
      times.push_back(1e3 * r.seconds.solve);
      if (r.status != krilu::Status::converged) out["status"] = krilu::to_string(r.status);
    };
    solver.setup(a);
    for (int k = -1; k < repeat; ++k) {
      for (double& v : a.values) v *= 1.01;
      solver.factor(a);
      solve_anew(solve_);
      factor.push_back(1e3 * r.seconds.factor);
      solve_anew(again);
      if (k < 0)  // kernels are loaded
        for (Times* times : {&factor, &solve_, &again}) times->clear();
    }
    out["iterations"] = r.iterations;
    out["factor_ms"] = median(factor);
    out["solve_ms"] = median(solve_);
    out["again_ms"] = median(again);
  } catch (const std::exception& e) {
    out["error"] = e.what();
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"What krilu takes on a GPU, piece by piece and as whole solves"};
  std::vector<std::string> systems;
  std::string json_path, parts = "spmv,sweeps,solve";
  std::vector<std::string> names{"block-ilu", "block-ilu:512", "ras", "ras:512,1"};
  int repeat = 5;
  app.add_option("systems", systems, "Matrix Market files or generators")->required();
  app.add_option("--json", json_path, "Where results go");
  app.add_option("--parts", parts, "Of spmv, sweeps, own, solve, steps")->capture_default_str();
  app.add_option("--precond", names, "Preconditioners of `own`, one after another");
  app.add_option("--repeat", repeat, "Solves to take the median of")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto wanted = [&](const char* part) { return parts.find(part) != std::string::npos; };
  try {
    const Cuda space;
    json report{{"device", space.device_name()}, {"copy_TB_per_s", copy_bandwidth(space)}};
    std::printf("%s, copy %.2f TB/s\n", space.device_name().c_str(), report["copy_TB_per_s"].get<double>());
    for (const std::string& name : systems) {
      const CsrMatrix a = krilu::is_generator(name) ? krilu::generate(name) : krilu::read_matrix_market(name).matrix;
      std::vector<double> b;
      std::string rhs = name;
      if (const auto dot = rhs.find(".mtx"); !krilu::is_generator(name) && dot != std::string::npos) {
        rhs.insert(dot, "_b");
        if (std::ifstream(rhs).good()) b = krilu::read_vector(rhs);
      }
      if (b.empty()) b = krilu::random_vector(std::size_t(a.rows), 1, -1, 1);
      json& out = report["systems"][name];
      out["rows"] = a.rows;
      out["nonzeros"] = a.nnz();
      std::printf("== %s: %d rows, %d nonzeros\n", name.c_str(), int(a.rows), int(a.nnz()));
      {
        Case c(space, a);
        if (wanted("spmv")) {
          c.take(krilu::schedule::as_given(space, c.a));
          out["spmv"]["as_given"] = product(c);
          out["spmv"]["hec"] = hec(c, a);
        }
        if (wanted("own")) {
          c.take(krilu::schedule::as_given(space, c.a));
          for (const std::string& own_name : names) out["own"][own_name] = own(c, a, own_name);
        }
        if (wanted("sweeps")) {
          out["levels_sync_free_ms"] =
              called_ms(space, [&] { krilu::schedule::levels_sync_free(space, c.graph(), nullptr, nullptr); });
          out["levels_by_rounds_ms"] =
              called_ms(space, [&] { krilu::schedule::levels_by_rounds(space, c.graph(), nullptr, nullptr); });
          c.take(krilu::schedule::by_levels(space, c.a, c.graph(), {}));
          out["natural"]["levels"] = c.plan->levels();
          out["natural"]["spmv"] = product(c);
          for (Strategy s : {Strategy::level_set, Strategy::sync_free, Strategy::tiled})
            if (s != Strategy::level_set || c.plan->levels() <= 1000)
              out["natural"][krilu::triangular::to_string(s)] = sweeps(c, s);
          using Builder = krilu::schedule::BlockBuilder<Cuda>;
          out["blocks"]["build_ms"] = called_ms(space, [&] { Builder(space, c.a.view(), c.graph().view()).build(); });
          const auto blocks = Builder(space, c.a.view(), c.graph().view()).build();
          const auto lay = [&] { return krilu::schedule::by_blocks(space, c.a, blocks); };
          out["blocks"]["layout_ms"] = called_ms(space, [&] { lay(); });
          c.take(lay());
          out["blocks"]["pattern_ms"] =
              called_ms(space, [&] { krilu::sparse::SlicedPattern(space, c.a, c.plan->layout); });
          out["blocks"]["values_ms"] =
              called_ms(space, [&] { krilu::sparse::fill_values(space, c.pattern, c.a.values.data(), c.m); });
          out["blocks"]["facts_ms"] = called_ms(space, [&] { krilu::sparse::facts(space, c.a); });
          out["blocks"]["upload_ms"] = called_ms(space, [&] { krilu::sparse::upload(space, a, true); });
          out["blocks"]["partner_ms"] = called_ms(space, [&] {
            krilu::precond::Dilu<Cuda, double>(c.context(Strategy::automatic), c.pattern, "dilu", false);
          });
          out["blocks"]["colours"] = blocks.colours;
          out["blocks"]["slices"] = c.pattern->slices();
          out["blocks"]["steps"] = c.pattern->most_inner();
          out["blocks"]["widest"] = c.pattern->widest();
          out["blocks"]["widest_inner"] = c.pattern->widest_inner();
          out["blocks"]["spmv"] = product(c);
          out["blocks"]["level-set"] = sweeps(c, Strategy::level_set);
        }
      }
      const auto write = [&] {
        if (!json_path.empty()) std::ofstream(json_path) << report.dump(1) << "\n";
      };
      if (wanted("solve")) {
        write();  // whatever solves take
        krilu::Options o;
        o.device = "cuda";
        o.max_iterations = 4000;
        json& s = out["solve"];
        s["auto"] = solve(a, b, o, repeat);
        o.solver = "bicgstab";
        o.precond = "dilu";
        constexpr int others = 7;
        s["bicgstab dilu blocks"] = solve(a, b, o, repeat, others);
        o.ordering = "natural";
        s["bicgstab dilu natural"] = solve(a, b, o, repeat, others);
        if (krilu::sparse::symmetry(a).values) {  // as auto would solve it
          o.solver = "cg";
          o.precond = "dic";
          s["cg dic natural"] = solve(a, b, o, 1, others);
          o.ordering = "auto";
          s["cg dic blocks"] = solve(a, b, o, 1, others);
          o.solver = "bicgstab";
        }
        o.ordering = "auto";
        o.precond = "jacobi";
        s["bicgstab jacobi"] = solve(a, b, o, repeat);
      }
      if (wanted("steps")) {
        const bool symmetric = krilu::sparse::symmetry(a).values;
        for (const auto& [solver, precond, precision] :
             {std::tuple("bicgstab", "dilu", "fp64"), std::tuple("bicgstab", "dilu", "fp32"),
              std::tuple("bicgstab", "jacobi", "fp64"), std::tuple("gmres", "dilu", "fp64"),
              std::tuple("gmres", "dilu", "fp32"), std::tuple("gmres", "dilu", "fp32/bf16"),
              std::tuple("cg", "dic", "fp64"), std::tuple("cg", "jacobi", "fp64")}) {
          if (!symmetric && solver == std::string("cg")) continue;
          const krilu::Options o{
              .solver = solver, .precond = precond, .device = "cuda", .restart = 50, .precision = precision};
          out["steps"][std::string(solver) + " " + precond + " " + precision] = steps(a, b, o, 3 * repeat);
        }
      }
      std::printf("%s\n", out.dump(1).c_str());
      std::fflush(stdout);
      write();
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "krilu-bench-gpu: %s\n", e.what());
    return 2;
  }
  return 0;
}
