// SPDX-License-Identifier: Apache-2.0
// krilu-cusparse-peer: what a good user would build from cuSPARSE and cuBLAS on one GPU, as the baseline for krilu's
// CUDA space. Everything in double with 32-bit indices, rows in the order that they come in.
//
//   krilu-cusparse-peer SYSTEM... [--json OUT.json] [--repeat 30] [--seconds 20] [--parts LIST]
//
// Of each system: products by each algorithm (spmv), triangular solves (spsv), ILU(0) (ilu0), and BiCGStab with DILU
// (dilu) and Jacobi (jacobi) to a true relative residual of 1e-8. Results are held against a serial host reference.
#define FMT_USE_CONSTEXPR 1  // fmt 9 believes that nvcc knows no constexpr, and then uses it all the same
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cusparse_bicgstab.cuh"
#include "cusparse_host.hpp"
#include "peer.hpp"

namespace krilu::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double rtol = 1e-8;
constexpr int max_iterations = 5000;

const char* const usage =
    "krilu-cusparse-peer SYSTEM... [--json OUT.json] [--repeat 30] [--seconds 20] [--parts LIST]\n"
    "  SYSTEM     Matrix Market file, plain or gzip, or a generator such as gen:aniso3d:100x100x100\n"
    "  --json     writes what was measured, anew after every part\n"
    "  --repeat   samples of a measurement\n"
    "  --seconds  no measurement takes more samples after so long; a solve that lasts longer is ended\n"
    "  --parts    of spmv,spsv,ilu0,dilu,jacobi (default: these), and sell: triangular solves in sliced ELLPACK too\n";

struct Arguments {
  std::vector<std::string> systems;
  std::string json, command;
  std::set<std::string> parts{"spmv", "spsv", "ilu0", "dilu", "jacobi"};
  Effort effort;
};

Arguments parse(int argc, char** argv) {
  Arguments args;
  const auto number = [](const std::string& option, const std::string& text, auto& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value > 0))
      throw Error(option + " wants a positive number, not '" + text + "'");
  };
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    args.command += (i > 1 ? " " : "") + word;
    if (word.rfind("--", 0) != 0) {
      args.systems.push_back(word);
      continue;
    }
    if (i + 1 == argc) throw Error(word + " wants a value");
    const std::string value = argv[++i];
    args.command += " " + value;
    if (word == "--json") {
      args.json = value;
    } else if (word == "--repeat") {
      number(word, value, args.effort.repeat);
    } else if (word == "--seconds") {
      number(word, value, args.effort.seconds);
    } else if (word == "--parts") {
      const std::set<std::string> known{"spmv", "spsv", "ilu0", "dilu", "jacobi", "sell"};
      args.parts.clear();
      for (std::size_t at = 0; at <= value.size();) {
        const std::size_t comma = std::min(value.find(',', at), value.size());
        const std::string part = value.substr(at, comma - at);
        if (!known.count(part)) throw Error("--parts: there is no part '" + part + "'");
        args.parts.insert(part);
        at = comma + 1;
      }
    } else {
      throw Error("there is no option " + word);
    }
  }
  if (args.systems.empty()) throw Error("no system was named");
  return args;
}

void forget(const Vector& v) {
  // All bits one is a NaN: a result that was not written shows.
  check(cudaMemset(v.data(), 0xff, v.size() * sizeof(double)), "clearing a vector");
}

// --- the report

Json to_json(const Timing& t) {
  Json j{{"ms", t.median}, {"ms_least", t.least}, {"ms_most", t.most}, {"samples", t.samples}, {"batch", t.batch}};
  if (!t.refusal.empty()) j["launched_singly_because"] = t.refusal;
  return j;
}

std::string to_text(const Timing& t) { return fmt::format("{:.4f} ms ({:.4f} to {:.4f})", t.median, t.least, t.most); }

void progress(const System& s, const char* what) {
  fmt::print(stderr, "krilu-cusparse-peer: {}: {}\n", s.name, what);
  std::fflush(stderr);
}

void line(const std::string& text) {
  fmt::print("  {}\n", text);
  std::fflush(stdout);
}

/// One system on the GPU, and what its parts share.
struct Bench {
  const Gpu& gpu;
  const Arguments& args;
  const System& s;
  double copy_rate;  // GB/s
  Vector b{s.b};
  Vector y{s.b.size()};
  std::shared_ptr<const Arrays> csr = std::make_shared<const Arrays>(s.a.view());
  std::unique_ptr<Product> product{};  // the fastest
  std::string product_name{};

  bool wants(const char* part) const { return args.parts.count(part) != 0; }
};

/// Times work that leaves `wanted` in y. Where its replay does not, it is timed again in single launches.
template <class Work>
Timing time_checked(const Bench& t, const std::vector<double>& wanted, double& error, Work&& work) {
  forget(t.y);
  Timing ms = time_work(t.gpu, t.args.effort, work);
  error = relative_error(t.y.values.download(), wanted);
  if (error < 1e-6 || !ms.refusal.empty()) return ms;
  forget(t.y);
  const double replayed = error;
  Timing single = time_work(t.gpu, t.args.effort, work, false);
  error = relative_error(t.y.values.download(), wanted);
  if (!(error < 1e-6)) return ms;  // wrong in both ways, and none the slower for it
  single.refusal = fmt::format("its replay gives a wrong result, relative error {:.1e}", replayed);
  return single;
}

// --- parts

Json bench_products(Bench& t, bool show) {
  struct Candidate {
    const char* name;
    cusparseSpMVAlg_t algorithm;
    bool sliced, preprocess;
  };
  const Candidate candidates[] = {{"CSR_ALG1", CUSPARSE_SPMV_CSR_ALG1, false, false},
                                  {"CSR_ALG1 preprocessed", CUSPARSE_SPMV_CSR_ALG1, false, true},
                                  {"CSR_ALG2 preprocessed", CUSPARSE_SPMV_CSR_ALG2, false, true},
                                  {"SELL_ALG1", CUSPARSE_SPMV_SELL_ALG1, true, false}};
  const std::vector<double> wanted = host_product(t.s.a, t.s.b);
  const double bytes = 12.0 * t.s.a.nnz() + 20.0 * t.s.a.rows + 4;  // each input read once, each output written once
  double best = std::numeric_limits<double>::infinity();
  Json runs = Json::array();
  for (const Candidate& c : candidates) {
    Json j{{"algorithm", c.name}};
    try {
      const auto arrays = c.sliced ? std::make_shared<const Arrays>(Arrays::sell(t.s.a)) : t.csr;
      auto product = std::make_unique<Product>(t.gpu, arrays, c.algorithm, c.preprocess, t.b, t.y);
      double error = 0;
      const Timing ms = time_checked(t, wanted, error, [&] { product->run(t.b, t.y); });
      const double rate = bytes / ms.median * 1e-6;
      j.update(to_json(ms));
      j["gigabytes_per_second"] = rate;
      j["of_copy"] = rate / t.copy_rate;
      j["stored_entries"] = arrays->values.size();
      j["buffer_bytes"] = product->buffer_bytes();
      j["relative_error"] = error;
      if (!(error < 1e-10)) throw Error(fmt::format("its result is wrong, relative error {:.1e}", error));
      if (show)
        line(fmt::format("SpMV {:22} {}  {:.0f} GB/s, {:.2f} of copy", c.name, to_text(ms), rate, rate / t.copy_rate));
      if (ms.median < best) {
        best = ms.median;
        t.product = std::move(product);
        t.product_name = c.name;
      }
    } catch (const Error& e) {
      j["note"] = e.what();
      line(fmt::format("SpMV {:22} left out: {}", c.name, e.what()));
      check(cudaDeviceSynchronize(), "carrying on after that");
    }
    runs.push_back(j);
  }
  if (!t.product) throw Error("no algorithm of SpMV gave a right result");
  if (show) line(fmt::format("SpMV best: {}", t.product_name));
  return {{"bytes", bytes}, {"best", t.product_name}, {"best_ms", best}, {"runs", runs}};
}

/// The faster of the stored forms of one triangle of `a`: cuSPARSE takes a triangle out of the whole matrix, or gets
/// nothing but the triangle. Null where none gave a right result. Fills `runs`.
std::unique_ptr<Sweep> best_sweep(Bench& t, const char* name, const CsrView& a, bool lower, bool unit, Json& runs) {
  const std::vector<double> wanted = host_sweep(a, lower, unit, t.s.b);
  std::vector<const char*> forms{"whole matrix", "triangle"};
  if (t.wants("sell")) forms.push_back("triangle, SELL");
  std::unique_ptr<Sweep> best;
  double best_ms = std::numeric_limits<double>::infinity();
  runs = Json::array();
  for (std::size_t form = 0; form < forms.size(); ++form) {
    Json j{{"stored", forms[form]}};
    try {
      std::shared_ptr<const Arrays> arrays;
      if (form == 0) {
        arrays = std::make_shared<const Arrays>(a);
      } else {
        const CsrMatrix triangle =
            copy_of(a, lower ? Take::lower : Take::upper, [&](Index, Offset k) { return a.values[k]; });
        arrays = form == 1 ? std::make_shared<const Arrays>(triangle.view())
                           : std::make_shared<const Arrays>(Arrays::sell(triangle));
      }
      std::unique_ptr<Sweep> sweep;
      std::vector<double> analysis;
      for (int k = 0; k < 3; ++k) {  // the first loads kernels
        sweep.reset();
        sweep = std::make_unique<Sweep>(t.gpu, arrays, lower ? CUSPARSE_FILL_MODE_LOWER : CUSPARSE_FILL_MODE_UPPER,
                                        unit ? CUSPARSE_DIAG_TYPE_UNIT : CUSPARSE_DIAG_TYPE_NON_UNIT, t.b, t.y);
        analysis.push_back(sweep->analysis_ms());
      }
      double error = 0;
      const Timing ms = time_checked(t, wanted, error, [&] { sweep->run(t.b, t.y); });
      j.update(to_json(ms));
      j["analysis_ms"] = median(analysis);
      j["analysis_first_ms"] = analysis.front();
      j["buffer_bytes"] = sweep->buffer_bytes();
      j["relative_error"] = error;
      line(fmt::format("SpSV {:16} {:14} {}, analysis {:.2f} ms, buffer {:.1f} MB, error {:.0e}", name, forms[form],
                       to_text(ms), median(analysis), 1e-6 * double(sweep->buffer_bytes()), error));
      if (!ms.refusal.empty()) line("     launched singly: " + ms.refusal);
      const bool overflows = !std::all_of(wanted.begin(), wanted.end(), [](double v) { return std::isfinite(v); });
      if (!(error < 1e-6) && !overflows) throw Error(fmt::format("its result is wrong, relative error {:.1e}", error));
      if (ms.median < best_ms) {
        best_ms = ms.median;
        best = std::move(sweep);
      }
    } catch (const Error& e) {
      j["note"] = e.what();
      line(fmt::format("SpSV {:16} {:14} left out: {}", name, forms[form], e.what()));
      check(cudaDeviceSynchronize(), "carrying on after that");
    }
    runs.push_back(j);
  }
  return best;
}

Json bench_sweeps(Bench& t) {
  Json j;
  best_sweep(t, "lower", t.s.a, true, false, j["lower"]);
  best_sweep(t, "upper", t.s.a, false, false, j["upper"]);
  return j;
}

Json bench_ilu0(Bench& t) {
  const Gpu& gpu = t.gpu;
  const int n = t.s.a.rows, nnz = t.s.a.nnz();
  const int *offsets = t.csr->offsets.data(), *columns = t.csr->columns.data();
  const DeviceArray<double> values(t.s.a.values.data(), t.s.a.values.size());
  Owned<cusparseMatDescr_t, cusparseDestroyMatDescr> descriptor;
  check(cusparseCreateMatDescr(descriptor.out()), "describing a matrix");
  Json j;
  for (const auto policy : {CUSPARSE_SOLVE_POLICY_NO_LEVEL, CUSPARSE_SOLVE_POLICY_USE_LEVEL}) {
    const char* name = policy == CUSPARSE_SOLVE_POLICY_NO_LEVEL ? "no_level" : "use_level";
    Owned<csrilu02Info_t, cusparseDestroyCsrilu02Info> info;
    DeviceArray<char> buffer;
    std::vector<double> analysis;
    for (int k = 0; k < 3; ++k) {  // the first loads kernels
      info = {};
      check(cusparseCreateCsrilu02Info(info.out()), "describing csrilu02");
      int bytes = 0;
      check(cusparseDcsrilu02_bufferSize(gpu.sparse, n, nnz, descriptor, values.data(), offsets, columns, info, &bytes),
            "asking csrilu02's buffer");
      if (bytes < 0) throw Error("csrilu02's buffer is larger than the 2 GB that its interface can say");
      buffer = DeviceArray<char>(static_cast<std::size_t>(bytes));
      gpu.synchronise();
      const double start = now_ms();
      check(cusparseDcsrilu02_analysis(gpu.sparse, n, nnz, descriptor, values.data(), offsets, columns, info, policy,
                                       buffer.data()),
            "analysing for csrilu02");
      gpu.synchronise();
      analysis.push_back(now_ms() - start);
    }
    const auto restore = [&] {
      check(cudaMemcpyAsync(values.data(), t.csr->values.data(), values.size() * sizeof(double),
                            cudaMemcpyDeviceToDevice, gpu.stream),
            "restoring the values");
    };
    const auto factor = [&] {
      check(cusparseDcsrilu02(gpu.sparse, n, nnz, descriptor, values.data(), offsets, columns, info, policy,
                              buffer.data()),
            "factoring by csrilu02");
    };
    restore();
    factor();
    int row = -1;
    const cusparseStatus_t pivots = cusparseXcsrilu02_zeroPivot(gpu.sparse, info, &row);
    if (pivots == CUSPARSE_STATUS_ZERO_PIVOT)
      throw ZeroPivot(fmt::format("csrilu02 met a zero pivot in row {}", row + 1));
    check(pivots, "looking for zero pivots");
    const Timing ms = time_samples(gpu, t.args.effort, restore, factor);
    j[name] = to_json(ms);
    j[name]["analysis_ms"] = median(analysis);
    j[name]["analysis_first_ms"] = analysis.front();
    j[name]["buffer_bytes"] = buffer.size();
    line(fmt::format("csrilu02 {:9}  numeric {}, analysis {:.2f} ms, buffer {:.1f} MB", name, to_text(ms),
                     median(analysis), 1e-6 * double(buffer.size())));
  }
  return j;
}

Json bench_solve(Bench& t, const char* name, const Preconditioner& preconditioner) {
  Bicgstab method(t.gpu, *t.product, preconditioner, t.b, max_iterations);
  const SolveOutcome r = method.run(rtol, t.args.effort);
  const std::vector<double> x = method.solution().values.download();
  const double residual = relative_residual(t.s.a, {t.s.b.data(), t.s.b.size()}, {x.data(), x.size()});
  const bool converged = r.status == "converged" && residual <= rtol * (1 + 1e-6);  // sums in another order
  const double each = r.launched ? r.ms.median / r.launched : 0;
  line(fmt::format(
      "BiCGStab {:12} {}: {} iterations ({} launched), {:.3f} ms ({:.3f} to {:.3f}), {:.4f} ms each, {}, true "
      "residual {:.2e}",
      name, r.status, r.iterations, r.launched, r.ms.median, r.ms.least, r.ms.most, each,
      r.refusal.empty() ? fmt::format("a graph of {} nodes", r.nodes) : "launched singly", residual));
  if (!r.refusal.empty()) line("     no graph: " + r.refusal);
  Json j{{"status", r.status},
         {"converged", converged},
         {"iterations", r.iterations},
         {"iterations_launched", r.launched},
         {"restarts", r.restarts},
         {"solve_ms", r.ms.median},
         {"solve_ms_least", r.ms.least},
         {"solve_ms_most", r.ms.most},
         {"solves", r.ms.samples},
         {"ms_per_iteration", each},
         {"relative_residual", residual},
         {"relative_residual_on_device", r.residual},
         {"product", t.product_name},
         {"graph", r.refusal.empty()},
         {"graph_nodes", r.nodes},
         {"record_ms", r.record_ms}};
  if (!r.refusal.empty()) j["launched_singly_because"] = r.refusal;
  return j;
}

__global__ void scale_kernel(int n, const double* e, double* y) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] *= e[i];
}

/// M = (E + L) E^-1 (E + U). In three steps, (E + L) y = r, w = E y, (E + U) z = w; or `folded` in two,
/// (I + L E^-1) w = r, (E + U) z = w, which spares the scaling and the lower sweep's divisions.
Json bench_dilu(Bench& t, const std::vector<double>& rd, bool folded) {
  const CsrView a = t.s.a;
  const CsrMatrix with_e =
      copy_of(a, Take::all, [&](Index i, Offset k) { return a.columns[k] == i ? 1 / rd[i] : a.values[k]; });
  Json sweeps;
  const char* lower_name = folded ? "lower, L E^-1" : "lower, E + L";
  std::unique_ptr<Sweep> lower;
  if (folded) {
    const CsrMatrix scaled = copy_of(a, Take::all, [&](Index, Offset k) { return a.values[k] * rd[a.columns[k]]; });
    lower = best_sweep(t, lower_name, scaled, true, true, sweeps["lower"]);
  } else {
    lower = best_sweep(t, lower_name, with_e, true, false, sweeps["lower"]);
  }
  const std::unique_ptr<Sweep> upper = best_sweep(t, "upper, E + U", with_e, false, false, sweeps["upper"]);

  if (!lower || !upper) throw Error("SpSV solved no form of a triangle of DILU rightly");

  std::vector<double> e(rd);
  for (double& v : e) v = 1 / v;
  const DeviceArray<double> scale(e.data(), e.size());
  const Vector between(e.size());
  const Preconditioner m{nullptr, [&](const Vector& from, const Vector& to) {
                           lower->run(from, between);
                           if (!folded) {
                             const int n = a.rows;
                             scale_kernel<<<(n + 255) / 256, 256, 0, t.gpu.stream>>>(n, scale.data(), between.data());
                             check(cudaGetLastError(), "scaling between the sweeps");
                           }
                           upper->run(between, to);
                         }};
  std::vector<double> wanted = host_sweep(with_e, true, false, t.s.b);
  for (std::size_t i = 0; i < e.size(); ++i) wanted[i] *= e[i];
  wanted = host_sweep(with_e, false, false, std::move(wanted));
  double error = 0;
  const Timing apply = time_checked(t, wanted, error, [&] { m.apply(t.b, t.y); });
  line(fmt::format("DILU {}: apply {}, error {:.0e}", folded ? "folded" : "in three steps", to_text(apply), error));

  Json j = bench_solve(t, folded ? "DILU folded" : "DILU", m);
  j["analysis_ms"] = lower->analysis_ms() + upper->analysis_ms();
  j["apply"] = to_json(apply);
  j["apply"]["relative_error"] = error;
  j["sweeps"] = sweeps;
  return j;
}

Json bench_jacobi(Bench& t) {
  std::vector<double> reciprocal(t.s.b.size());
  for (Index i = 0; i < t.s.a.rows; ++i) reciprocal[i] = 1 / t.s.a.values[diagonal_of(t.s.a, i)];
  const DeviceArray<double> diagonal(reciprocal.data(), reciprocal.size());
  return bench_solve(t, "Jacobi", {diagonal.data(), {}});
}

/// GB/s read and written, by the better of a kernel and cudaMemcpy.
__global__ void copy_kernel(std::size_t n, const double2* from, double2* to) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}
Json bench_copy(const Gpu& gpu, const Effort& effort) {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for free memory");
  const std::size_t n = std::min(std::size_t{1} << 28, free / 32) / 512 * 512, bytes = n * sizeof(double);
  const DeviceArray<double> from(n), to(n);
  check(cudaMemset(from.data(), 0, bytes), "clearing a vector");
  const auto by_kernel = [&] {
    copy_kernel<<<static_cast<unsigned>(n / 512), 256, 0, gpu.stream>>>(
        n / 2, reinterpret_cast<const double2*>(from.data()), reinterpret_cast<double2*>(to.data()));
    check(cudaGetLastError(), "copying");
  };
  const auto by_memcpy = [&] {
    check(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, gpu.stream), "copying");
  };
  const double kernel = 2e-6 * double(bytes) / time_work(gpu, effort, by_kernel).median;
  const double memcpy = 2e-6 * double(bytes) / time_work(gpu, effort, by_memcpy).median;
  return {{"bytes_read_and_written", 2 * bytes},
          {"kernel_gigabytes_per_second", kernel},
          {"memcpy_gigabytes_per_second", memcpy},
          {"gigabytes_per_second", std::max(kernel, memcpy)}};
}

// --- the run

Json machine(const Gpu& gpu) {
  cudaDeviceProp p{};
  int device = 0, driver = 0, runtime = 0, sparse = 0, blas = 0;
  check(cudaGetDevice(&device), "asking for the GPU");
  check(cudaGetDeviceProperties(&p, device), "asking for the GPU");
  check(cudaDriverGetVersion(&driver), "asking for versions");
  check(cudaRuntimeGetVersion(&runtime), "asking for versions");
  check(cusparseGetVersion(gpu.sparse, &sparse), "asking for versions");
  check(cublasGetVersion(gpu.blas, &blas), "asking for versions");
  return {{"gpu", p.name},
          {"multiprocessors", p.multiProcessorCount},
          {"l2_bytes", p.l2CacheSize},
          {"memory_bytes", p.totalGlobalMem},
          {"driver", driver},
          {"runtime", runtime},
          {"cusparse", sparse},
          {"cublas", blas}};
}

void write(const Arguments& args, const Json& report) {
  if (args.json.empty()) return;
  std::ofstream file(args.json);
  file << report.dump(1) << "\n";
  if (!file.flush()) throw Error(args.json + ": could not be written whole");
}

/// False where a part failed. Throws where the device is lost.
bool bench_system(const Gpu& gpu, const Arguments& args, const std::string& given, double copy_rate, Json& report) {
  fmt::print(stderr, "krilu-cusparse-peer: {}: {}\n", given, is_generator(given) ? "generating" : "reading");
  const System s = load(given);
  report["systems"].push_back({{"matrix", s.name}, {"rows", s.a.rows}, {"nnz", s.a.nnz()}});
  Json& j = report["systems"].back();
  fmt::print("{}: {} rows, {} nonzeros\n", s.name, s.a.rows, s.a.nnz());
  Bench t{gpu, args, s, copy_rate};
  bool good = true;
  const auto part = [&](const char* name, const char* what, auto&& measure) {
    progress(s, what);
    try {
      j[name] = measure();
    } catch (const std::exception& e) {
      good = false;
      j[name] = {{"error", e.what()}};
      line(std::string(name) + ": " + e.what());
      check(cudaDeviceSynchronize(), "carrying on after that");
    }
    write(args, report);
  };
  const auto divides = [&](const char* name) {
    if (!t.wants(name) || s.no_diagonal.empty()) return t.wants(name);
    j[name] = {{"skipped", s.no_diagonal}};
    line(std::string(name) + ": skipped, " + s.no_diagonal);
    return false;
  };
  const bool solves = (t.wants("dilu") || t.wants("jacobi")) && s.no_diagonal.empty();
  if (t.wants("spmv") || solves) part("spmv", "products", [&] { return bench_products(t, t.wants("spmv")); });
  if (divides("spsv")) part("spsv", "triangular solves", [&] { return bench_sweeps(t); });
  if (divides("ilu0")) part("ilu0", "ILU(0)", [&] { return bench_ilu0(t); });
  if (divides("dilu") && t.product) {
    std::vector<double> rd;
    part("dilu", "BiCGStab with DILU", [&] {
      rd = dilu_pivots(s.a);
      return bench_dilu(t, rd, false);
    });
    if (!rd.empty())
      part("dilu_folded", "BiCGStab with DILU, scaling folded into the lower sweep",
           [&] { return bench_dilu(t, rd, true); });
  }
  if (divides("jacobi") && t.product) part("jacobi", "BiCGStab with Jacobi", [&] { return bench_jacobi(t); });
  write(args, report);
  return good;
}

int run(const Arguments& args) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0)
    throw Error("this machine has no NVIDIA GPU that CUDA can use");
  const Gpu gpu;
  Json report;
  report["machine"] = machine(gpu);
  const char* command = std::getenv("KRILU_BENCH_COMMAND");  // the script's that runs this, where there is one
  report["command"] = command ? command : "krilu-cusparse-peer " + without_folders(args.command);
  report["rtol"] = rtol;
  report["repeat"] = args.effort.repeat;
  report["seconds"] = args.effort.seconds;
  report["copy"] = bench_copy(gpu, args.effort);
  report["systems"] = Json::array();
  const double rate = report["copy"]["gigabytes_per_second"];
  fmt::print("{}: copies {:.0f} GB/s (kernel {:.0f}, cudaMemcpy {:.0f})\n", report["machine"]["gpu"].get<std::string>(),
             rate, report["copy"]["kernel_gigabytes_per_second"].get<double>(),
             report["copy"]["memcpy_gigabytes_per_second"].get<double>());
  int status = 0;
  for (const std::string& given : args.systems) {
    try {
      if (!bench_system(gpu, args, given, rate, report)) status = 1;
    } catch (const std::exception& e) {
      status = 1;
      fmt::print(stderr, "krilu-cusparse-peer: {}: {}\n", given, e.what());
      report["failures"].push_back(without_folders(e.what()));
      write(args, report);
      check(cudaDeviceSynchronize(), "carrying on after that");
    }
  }
  write(args, report);
  return status;
}

}  // namespace
}  // namespace krilu::bench

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--help" || std::string(argv[i]) == "-h") {
      std::fputs(krilu::bench::usage, stdout);
      return 0;
    }
  }
  krilu::bench::Arguments args;
  try {
    args = krilu::bench::parse(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "krilu-cusparse-peer: %s\n%s", e.what(), krilu::bench::usage);
    return 2;
  }
  try {
    return krilu::bench::run(args);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "krilu-cusparse-peer: %s\n", e.what());
    return 1;
  }
}
