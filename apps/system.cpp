// SPDX-License-Identifier: Apache-2.0
#include "system.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <filesystem>

#include "io/output_file.hpp"
#include "sparse/csr.hpp"
#include "terminal.hpp"

namespace krilu::app {

namespace {

/// A seed behind `name:`, or nothing where rhs is something else.
bool has_seed(const std::string& rhs, std::string_view name, std::uint64_t& seed) {
  if (!rhs.starts_with(name) || rhs.size() <= name.size() || rhs[name.size()] != ':') return false;
  const char* begin = rhs.data() + name.size() + 1;
  const char* end = rhs.data() + rhs.size();
  const auto [stop, status] = std::from_chars(begin, end, seed);
  if (status != std::errc() || stop != end)
    throw Error(fmt::format("--rhs {}: the seed is a whole number from 0", rhs));
  return true;
}

/// The right-hand side that belongs to a matrix file: NAME_b.mtx or NAME_b.mtx.gz beside it.
std::string neighbouring_rhs(const std::string& matrix) {
  namespace fs = std::filesystem;
  const fs::path path(matrix);
  std::string name = path.filename().string();
  for (const char* ending : {".gz", ".mtx"})
    if (name.ends_with(ending)) name.resize(name.size() - std::string_view(ending).size());
  for (const char* ending : {"_b.mtx", "_b.mtx.gz"}) {
    const fs::path candidate = path.parent_path() / (name + ending);
    std::error_code ignored;
    if (fs::exists(candidate, ignored)) return candidate.string();
  }
  return "";
}

}  // namespace

CLI::Validator a_name() {
  return CLI::Validator([](const std::string& name) { return std::string(name.empty() ? "the name is empty" : ""); },
                        "");
}

std::string file_name_of(const std::string& rhs) {
  std::error_code ignored;
  return std::filesystem::exists(rhs, ignored) ? std::filesystem::path(rhs).filename().string() : rhs;
}

void require_outputs(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  std::error_code ignored;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const std::string& path = outputs[k];
    if (path.empty()) continue;
    io::require_writable(path);
    for (const std::string& input : inputs)
      if (std::filesystem::exists(input, ignored) && io::same_destination(path, input))
        throw Error(fmt::format("{} is what is read ({}), which would be lost: name another file", path, input));
    for (std::size_t before = 0; before < k; ++before)
      if (!outputs[before].empty() && io::same_destination(path, outputs[before]))
        throw Error(fmt::format("{} is named for two outputs: give each its own", path));
  }
}

std::string right_hand_side_of(const SystemOptions& o) {
  std::string rhs = o.rhs;
  if (rhs.empty() && !is_generator(o.matrix)) rhs = neighbouring_rhs(o.matrix);
  return rhs.empty() ? "random:1" : rhs;
}

std::vector<double> part_of_file(const std::string& path, std::int64_t rows, std::size_t first, std::size_t count,
                                 const char* what, int threads) {
  std::vector<double> v = read_vector(path, threads);
  if (std::int64_t(v.size()) != rows)
    throw Error(fmt::format("{}: the {} has {} entries and the matrix {} rows", path, what, v.size(), rows));
  if (count == v.size()) return v;
  return {v.begin() + std::ptrdiff_t(first), v.begin() + std::ptrdiff_t(first + count)};
}

std::vector<double> make_right_hand_side(const std::string& name, std::int64_t rows, std::size_t first,
                                         std::size_t count, int threads) {
  std::uint64_t seed = 0;
  if (name == "ones") return std::vector<double>(count, 1.0);
  if (has_seed(name, "random", seed)) return random_vector(count, seed + first, -1, 1);
  if (has_seed(name, "uniform01", seed)) return random_vector(count, seed + first, 0, 1);
  return part_of_file(name, rows, first, count, "right-hand side", threads);
}

void add_system_options(CLI::App& command, SystemOptions& o) {
  command
      .add_option("MATRIX", o.matrix, "Matrix Market file, plain or gzip, or a generator (gen:convdiff3d:148x148x58)")
      ->check(a_name())
      ->required();
  command
      .add_option("--rhs", o.rhs,
                  "Right-hand side: ones, random:SEED (uniform in [-1, 1]), uniform01:SEED, or a file "
                  "[NAME_b.mtx beside the matrix where there is one, else random:1]")
      ->check(a_name());
  command.add_option("--x0", o.x0, "Initial guess, a file [zero]")->check(a_name());
}

void add_solver_options(CLI::App& command, Options& o) {
  command
      .add_option("--solver", o.solver,
                  "auto, cg, bicgstab, gmres, fgmres, gmres-ir (double answers from inner solves in lower precision)")
      ->capture_default_str();
  command
      .add_option("--precision", o.precision,
                  "Arithmetic[/storage] of inner solves: auto (fp32 for gmres-ir, else fp64), fp64, fp32, fp32/fp16, "
                  "fp32/bf16; raised where it does not do")
      ->capture_default_str();
  command.add_option("--basis", o.basis, "What an inner GMRES keeps its basis in: auto, fp32, fp16, bf16")
      ->capture_default_str();
  command.add_option(
      "--inner-iters", o.inner_iterations,
      "Most iterations of an inner solve [100 for gmres-ir, --restart for gmres, else --max-iters / 8, at most 2000]");
  command.add_option("--outer-iters", o.outer_iterations,
                     "Most inner solves in one precision [10 for gmres-ir, 2000 for gmres, else 40]");
  command.add_option("--inner-rtol", o.inner_tolerance,
                     "Tolerance of an inner solve [follows the outer residual, as far as the precision carries]");
  command
      .add_option("--restart", o.restart,
                  "Basis vectors of gmres and fgmres; gmres-ir has these or --inner-iters, whichever is more")
      ->capture_default_str();
  command.add_option("--rtol", o.rtol, "Tolerance on the true residual, relative to the right-hand side")
      ->capture_default_str();
  command.add_option("--atol", o.atol, "Absolute tolerance")->capture_default_str();
  command.add_option_function<std::string>(
      "--norm",
      [&o](const std::string& name) {
        if (name != "true2" && name != "openfoam")
          throw CLI::ValidationError("--norm", "'" + name + "' is neither true2 nor openfoam");
        o.norm = name == "openfoam" ? Norm::openfoam : Norm::true2;
      },
      "true2: ||b - Ax|| / ||b||; openfoam: OpenFOAM's residual, --rtol being its reduction from x0 [true2]");
  command.add_option("--max-iters", o.max_iterations, "Iterations at most")->capture_default_str();
  command
      .add_option("--shift", o.shift, "Added to the diagonal in the preconditioner, in units of a row's largest entry")
      ->capture_default_str();
  command.add_option("--triangular", o.triangular, "auto, serial (host), level-set, sync-free, tiled (GPU)")
      ->capture_default_str();
  command
      .add_option("--ordering", o.ordering, "auto, natural, rcm, multicolour, block-multicolour[:ROWS], metis[:PARTS]")
      ->capture_default_str();
  command
      .add_option("--scaling", o.scaling,
                  "Of what ilu0, iluk and ilut factor: none, rows, both, matching (rows permuted for a large diagonal)")
      ->capture_default_str();
  command
      .add_option(
          "--device", o.device,
          "auto (a GPU where there is one), host, cuda[:N], emulated; solve takes cuda:A-B too, GPUs with a rank each")
      ->capture_default_str();
  command.add_option("--threads", o.threads, "Threads [all]");
}

System load_system(const SystemOptions& o, int threads, bool show_steps) {
  const auto start = std::chrono::steady_clock::now();
  const StepLine step(fmt::format("{} {}", is_generator(o.matrix) ? "generating" : "reading", o.matrix), show_steps);
  System s;
  if (is_generator(o.matrix)) {
    s.a = generate(o.matrix);
    s.facts.name = o.matrix;
  } else {
    ReadMatrix read = read_matrix_market(o.matrix, threads);
    s.a = std::move(read.matrix);
    s.facts.name = read.facts.name;
    if (read.facts.duplicates > 0)
      s.facts.notes.push_back(
          fmt::format("{} duplicate entries were added to earlier ones of the same place", read.facts.duplicates));
  }
  require_valid(s.a);
  const sparse::DiagonalFacts diagonal = sparse::diagonal_facts(s.a);
  if (diagonal.empty_rows > 0)
    throw Error(fmt::format("{}: row {} is empty{}: the matrix is singular, and no solver can mend that", s.facts.name,
                            diagonal.first_empty + 1,
                            diagonal.empty_rows > 1 ? fmt::format(", as are {} more", diagonal.empty_rows - 1) : ""));
  const sparse::Symmetry symmetry = sparse::symmetry(s.a);
  s.facts.rows = s.a.rows;
  s.facts.nnz = s.a.nnz();
  s.facts.symmetric = symmetry.values;
  s.facts.pattern_symmetric = symmetry.pattern;
  s.facts.matrix_bytes = s.a.bytes();

  const std::string rhs = right_hand_side_of(o);
  s.facts.rhs = file_name_of(rhs);
  const auto n = std::size_t(s.a.rows);
  s.b = make_right_hand_side(rhs, s.a.rows, 0, n, threads);
  s.x = o.x0.empty() ? std::vector<double>(n, 0.0) : part_of_file(o.x0, s.a.rows, 0, n, "initial guess", threads);
  s.facts.read_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return s;
}

int exit_status(Status status) { return status == Status::converged ? 0 : 3; }

}  // namespace krilu::app
