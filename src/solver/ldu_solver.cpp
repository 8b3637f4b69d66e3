// SPDX-License-Identifier: Apache-2.0
// The public LduSolver: checks what it is given, chooses what was left to `auto`, and reports what it did.
#include "solver/ldu_solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/names.hpp"
#include "exec/emulated.hpp"
#include "exec/host.hpp"
#include "krilu/error.hpp"
#include "mesh/cell_blocks.hpp"
#include "mesh/face_plan.hpp"
#include "solver/engine.hpp"
#include "solver/requests.hpp"

namespace krilu {

namespace {

using solver::cells_from_0;

/// Names that krilu::Solver has are refused with what is had here; others with the nearest name.
void require_had(const char* what, const std::string& given, const std::vector<std::string>& names,
                 const std::vector<std::string>& elsewhere) {
  if (std::find(elsewhere.begin(), elsewhere.end(), given.substr(0, given.find(':'))) == elsewhere.end())
    return require_name(what, given, names);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  throw Error(
      fmt::format("{} {}: over faces there are {}; krilu::Solver has it, for matrices in CSR", what, given, list));
}

void require_options(const Options& o, const FaceLoopOptions& loops) {
  require_had("solver", o.solver, {"auto", "cg", "bicgstab", "gmres"}, {"fgmres", "gmres-ir"});
  require_had("preconditioner", o.precond, {"auto", "none", "jacobi", "dilu", "dic"},
              {"ilu0", "ic0", "iluk", "ilut", "block-ilu", "ras"});
  solver::require_device(o.device);
  precond::require_face_strategy(triangular::strategy_by_name(o.triangular), !o.device.starts_with("cuda"));
  if (o.ordering != "auto")
    throw Error(fmt::format("ordering {}: over faces the cells are numbered by FaceLoopOptions::renumber", o.ordering));
  if ((o.precision != "auto" && o.precision != "fp64") || (o.basis != "auto" && o.basis != "fp64") ||
      o.inner_iterations != 0 || o.outer_iterations != 0 || o.inner_tolerance != 0)
    throw Error(
        "precision, basis and what is inner or outer are for mixed precision: over faces all is computed in fp64");
  if (o.shift != 0) throw Error("shift: dilu over faces has none");
  if (o.scaling != "none") throw Error(fmt::format("scaling {}: over faces there is none", o.scaling));
  solver::require_numbers(o);
  solver::require_norm(o);
  if (loops.threads != 0 && o.threads != 0 && loops.threads != o.threads)
    throw Error(fmt::format("threads is {} in Options and {} in FaceLoopOptions: give it in one of them", o.threads,
                            loops.threads));
  exec::require_threads(loops.threads);
  if (loops.strategy != "auto") mesh::strategy_by_name(loops.strategy);
  if (loops.renumber != "auto") mesh::renumber_by_name(loops.renumber);
}

/// What a choice depends on, and what stands in the way of a division.
struct DiagonalSigns {
  Index zero = 0, negative = 0, first_zero = -1;
};
DiagonalSigns signs_of(std::span<const double> diagonal) {
  DiagonalSigns s;
  for (std::size_t c = 0; c < diagonal.size(); ++c) {
    if (std::abs(diagonal[c]) < std::numeric_limits<double>::min()) {
      if (s.zero++ == 0) s.first_zero = Index(c);
    } else if (diagonal[c] < 0) {
      ++s.negative;
    }
  }
  return s;
}

}  // namespace

struct LduSolver::Body {
  Options options;
  FaceLoopOptions loop_options;
  std::unique_ptr<solver::LduEngine> engine;
  bool on_gpu = false;
  std::string device_note;  // why `auto` did not take the GPU that is there
  std::string method, precond;
  Solver::Counts counts;
  Index cells = 0, faces = 0;
  bool analysed = false, factored = false;
  Seconds seconds;
  std::vector<std::string> analysis;            // what the analysis found
  std::vector<std::string> notes, explanation;  // of the last factor

  void choose_device();
  void choose(const DiagonalSigns& diagonal, bool symmetric);
};

LduSolver::LduSolver(Options options, FaceLoopOptions loops) : body_(std::make_unique<Body>()) {
  require_options(options, loops);
  if (options.threads == 0) options.threads = loops.threads;
  body_->options = std::move(options);
  body_->loop_options = std::move(loops);
  body_->choose_device();
}
LduSolver::~LduSolver() = default;
LduSolver::LduSolver(LduSolver&&) noexcept = default;
LduSolver& LduSolver::operator=(LduSolver&&) noexcept = default;

/// `auto` takes the first GPU where there is one, unless something was asked for that only the host has.
void LduSolver::Body::choose_device() {
  const std::string& d = options.device;
  on_gpu = d.starts_with("cuda") || (d == "auto" && options.triangular != "serial" && solver::cuda_devices() > 0);
  if (on_gpu) {
    try {
      engine = solver::make_cuda_ldu_engine(options, loop_options, d == "auto" ? 0 : solver::gpu_number(d));
    } catch (const Error& e) {
      if (d != "auto") throw;
      on_gpu = false;
      device_note = fmt::format("device auto: the host, since the GPU cannot be used ({})", e.what());
    }
  }
  if (on_gpu) return;
  if (d == "emulated")
    engine = std::make_unique<solver::LduEngineOn<exec::Emulated>>(exec::Emulated(options.threads), "emulated", options,
                                                                   loop_options);
  else
    engine =
        std::make_unique<solver::LduEngineOn<exec::Host>>(exec::Host(options.threads), "host", options, loop_options);
}

/// As krilu::Solver chooses: cg with dic for a symmetric matrix whose diagonal has one sign, else bicgstab with dilu;
/// where the diagonal has zeros, gmres without a preconditioner.
void LduSolver::Body::choose(const DiagonalSigns& diagonal, bool symmetric) {
  const bool full = diagonal.zero == 0;
  const bool one_sign = diagonal.negative == 0 || diagonal.negative == cells;
  method = options.solver;
  precond = options.precond;
  const auto chose = [&](const char* what, std::string& name, const char* value, const std::string& why) {
    name = value;
    explanation.push_back(fmt::format("{} {}: {}", what, value, why));
  };
  if (method == "auto") {
    if (symmetric && one_sign && full && precond != "dilu")
      chose("solver", method, "cg", "the matrix is symmetric with a diagonal of one sign");
    else if (full || options.norm == Norm::openfoam)
      chose("solver", method, "bicgstab",
            symmetric && one_sign && full ? "the preconditioner asked for is not a symmetric one"
                                          : "the matrix is not symmetric definite");
    else
      chose("solver", method, "gmres",
            fmt::format("{} cells have a zero on the diagonal, where GMRES is the safest", diagonal.zero));
  }
  if (precond == "auto") {
    if (!full) {
      chose("preconditioner", precond, "none",
            fmt::format("{} cells have a zero on the diagonal, the first is cell {}", diagonal.zero,
                        diagonal.first_zero));
      notes.push_back(fmt::format("precond auto: no preconditioner, since the diagonal has zeros (first at cell {})",
                                  diagonal.first_zero));
    } else if (method == "cg") {
      chose("preconditioner", precond, "dic", "the symmetric partner of dilu");
    } else {
      chose("preconditioner", precond, "dilu", "as good as ilu0 on flow problems, and cheaper to form");
    }
  }
}

void LduSolver::analyse(const Mesh& mesh) {
  solver::Timer timer;
  Body& s = *body_;
  s.analysed = s.factored = false;
  s.analysis.clear();
  s.notes.clear();
  s.explanation.clear();
  const bool sweeps = s.options.precond == "auto" || s.options.precond == "dilu" || s.options.precond == "dic";
  s.engine->analyse(mesh, sweeps);
  s.cells = mesh.cells;
  s.faces = mesh.faces();
  if (s.options.device == "auto" && s.on_gpu)
    s.analysis.push_back(fmt::format("device {}: this machine has a GPU", s.engine->device()));
  const FaceLoopReport& loops = s.engine->loops();
  s.analysis.push_back(fmt::format("loops over faces by {}, cells numbered by {}", loops.strategy, loops.renumber));
  if (sweeps) s.analysis.push_back("dilu: " + s.engine->preconditioner());
  s.analysed = true;
  ++s.counts.analyses;
  s.seconds = {timer.seconds(), 0, 0};
}

void LduSolver::analyse(Index cells, std::span<const Index> owner, std::span<const Index> neighbour) {
  Mesh mesh;
  mesh.cells = cells;
  mesh.owner.assign(owner.begin(), owner.end());
  mesh.neighbour.assign(neighbour.begin(), neighbour.end());
  analyse(mesh);
}

void LduSolver::factor(const LduView& a) {
  solver::Timer timer;
  Body& s = *body_;
  if (!s.analysed) throw Error("factor comes after analyse");
  const exec::Host host(s.options.threads);
  s.factored = false;
  s.notes.clear();
  s.explanation = s.analysis;
  if (!s.device_note.empty()) s.notes.push_back(s.device_note);
  solver::largest_of(host, a.diagonal, "the diagonal", cells_from_0);
  for (const auto& [values, what] : {std::pair(a.lower, "lower"), std::pair(a.upper, "upper")})
    solver::largest_of(host, values, what, solver::faces_from_0);
  const bool symmetric = a.lower.empty() || std::ranges::equal(a.lower, a.upper);
  s.engine->set_values({a.diagonal, symmetric ? std::span<const double>() : a.lower, a.upper});
  const DiagonalSigns diagonal = signs_of(a.diagonal);
  s.choose(diagonal, symmetric);
  if (s.precond == "dic" && !symmetric) throw Error("dic needs a symmetric matrix, and lower is not upper: take dilu");
  const bool may_replace = s.options.precond == "auto";
  for (;;) {
    try {
      if (s.precond == "jacobi" && diagonal.zero > 0)
        throw ZeroPivot(fmt::format(
            "jacobi: the diagonal is zero in {} cell{}, the first is cell {} (counting from 0): take precond none",
            diagonal.zero, diagonal.zero == 1 ? "" : "s", diagonal.first_zero));
      s.engine->prepare(s.precond, s.method);
      break;
    } catch (const ZeroPivot& e) {
      if (!may_replace) throw;
      const char* next = s.precond == "jacobi" ? "none" : "jacobi";
      s.notes.push_back(fmt::format("precond auto: {} in place of {} ({})", next, s.precond, e.what()));
      s.precond = next;
    }
  }
  s.factored = true;
  ++s.counts.factorisations;
  s.seconds.factor = timer.seconds();
}

Result LduSolver::solve(std::span<const double> b, std::span<double> x, Monitor* monitor) {
  solver::Timer timer;
  Body& s = *body_;
  if (!s.factored) throw Error("solve comes after analyse and factor");
  const exec::Host host(s.options.threads);
  const bool from_zero = solver::begin_from(host, std::size_t(s.cells), s.options.norm, b, x, cells_from_0);
  Monitor own;
  krylov::Outcome out = s.engine->solve(b, x, from_zero, monitor ? *monitor : own);
  ++s.counts.solves;
  Result r = solver::result_of(out, std::size_t(s.cells));
  r.solver = s.method;
  r.precond = s.precond;
  const std::optional<triangular::Report> sweeps = s.engine->triangular();
  r.triangular = sweeps ? triangular::to_string(sweeps->used) : "none";
  r.ordering = s.engine->loops().renumber;
  r.device = s.engine->device();
  r.threads = host.threads();
  r.notes = s.notes;
  r.notes.insert(r.notes.end(), out.notes.begin(), out.notes.end());
  s.seconds.solve = timer.seconds();
  r.seconds = s.seconds;
  r.bytes = s.engine->bytes();
  return r;
}

Solver::Counts LduSolver::counts() const { return body_->counts; }
Index LduSolver::cells() const { return body_->cells; }
Index LduSolver::faces() const { return body_->faces; }
std::size_t LduSolver::bytes() const { return body_->engine->bytes(); }
const FaceLoopReport& LduSolver::loops() const {
  if (!body_->analysed) throw Error("loops comes after analyse");
  return body_->engine->loops();
}
std::vector<std::string> LduSolver::explanation() const {
  return body_->explanation.empty() ? body_->analysis : body_->explanation;
}

}  // namespace krilu
