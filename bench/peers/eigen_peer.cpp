// SPDX-License-Identifier: Apache-2.0
// Eigen's iterative solvers as a peer.
//
// The matrix is mapped where the caller has it, row-major, the one layout whose products Eigen runs on several
// threads; its preconditioners and vector updates are serial whatever the thread count. Setup is compute(), the solve
// solveWithGuess() from zero. Conjugate gradients take both triangles (Lower | Upper), which the threaded product
// needs.
#include <Eigen/Core>
#include <Eigen/IterativeLinearSolvers>
#include <Eigen/SparseCore>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "peer.hpp"

namespace krilu::bench {
namespace {

using Matrix = Eigen::SparseMatrix<double, Eigen::RowMajor, Index>;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

template <class P>
using BiCgStab = Eigen::BiCGSTAB<Matrix, P>;
template <class P>
using Cg = Eigen::ConjugateGradient<Matrix, Eigen::Lower | Eigen::Upper, P>;
using Jacobi = Eigen::DiagonalPreconditioner<double>;
using Ilut = Eigen::IncompleteLUT<double, Index>;
using Ic = Eigen::IncompleteCholesky<double, Eigen::Lower, Eigen::AMDOrdering<Index>>;
using IcNatural = Eigen::IncompleteCholesky<double, Eigen::Lower, Eigen::NaturalOrdering<Index>>;

struct Task {
  CsrView a;
  std::span<const double> b;
  double rtol;
  int max_iterations;
  int repeat;
};

template <class Solver, class Configure>
void run_with(PeerRun& run, const Task& task, Configure configure) {
  const CsrView& a = task.a;
  const Eigen::Map<const Matrix> matrix(a.rows, a.cols, a.nnz(), a.offsets, a.columns, a.values);
  const Eigen::Map<const Eigen::VectorXd> b(task.b.data(), a.rows);
  const Eigen::VectorXd zero = Eigen::VectorXd::Zero(a.rows);
  Eigen::VectorXd x(a.rows);

  std::optional<Solver> fresh;
  measure_setup(run, task.repeat, [&] {
    fresh.emplace();
    configure(*fresh);
    const auto start = Clock::now();
    fresh->compute(matrix);
    return seconds_since(start);
  });
  Solver& solver = *fresh;
  solver.setMaxIterations(task.max_iterations);
  if (solver.info() != Eigen::Success) {
    add_note(run, "the preconditioner could not be formed");
    return;
  }
  measure(run, task.rtol, task.repeat, [&](double rtol) {
    solver.setTolerance(rtol);
    Attempt attempt;
    const auto begin = Clock::now();
    x = solver.solveWithGuess(b, zero);
    attempt.seconds = seconds_since(begin);
    attempt.iterations = static_cast<int>(solver.iterations());
    attempt.stopped_by_test = solver.info() == Eigen::Success;
    attempt.true_residual = relative_residual(a, task.b, {x.data(), static_cast<std::size_t>(x.size())});
    return attempt;
  });
}

// Eigen's incomplete Cholesky and its scaling want a positive diagonal: OpenFOAM's pressure matrices have the other
// sign, and -A x = -b has the same solution.
template <class Solver>
void run_cg(PeerRun& run, const Task& task) {
  if (!is_symmetric(task.a)) {
    add_note(run, "the matrix is not symmetric");
    return;
  }
  if (!all_diagonals_negative(task.a)) return run_with<Solver>(run, task, [](Solver&) {});
  add_note(run, "solved as -A x = -b");
  std::vector<double> values(task.a.values, task.a.values + task.a.nnz());
  std::vector<double> b(task.b.begin(), task.b.end());
  for (double& v : values) v = -v;
  for (double& v : b) v = -v;
  Task negated = task;
  negated.a.values = values.data();
  negated.b = b;
  run_with<Solver>(run, negated, [](Solver&) {});
}

using Runner = std::function<void(PeerRun&, const Task&)>;

const std::vector<std::pair<std::string, Runner>>& runners() {
  static const std::vector<std::pair<std::string, Runner>> table = {
      // Eigen's defaults: fill factor 10, drop tolerance 1e-12.
      {"bicgstab+ilut", [](PeerRun& r, const Task& t) { run_with<BiCgStab<Ilut>>(r, t, [](auto&) {}); }},
      // About as many entries as the matrix has: the nearest that Eigen offers to ILU(0).
      {"bicgstab+ilut1",
       [](PeerRun& r, const Task& t) {
         run_with<BiCgStab<Ilut>>(r, t, [](auto& s) { s.preconditioner().setFillfactor(1); });
       }},
      {"bicgstab+jacobi", [](PeerRun& r, const Task& t) { run_with<BiCgStab<Jacobi>>(r, t, [](auto&) {}); }},
      // Eigen's default reorders by approximate minimum degree, which an incomplete factor may suffer from: both.
      {"cg+ic", run_cg<Cg<Ic>>},
      {"cg+ic-natural", run_cg<Cg<IcNatural>>},
      {"cg+jacobi", run_cg<Cg<Jacobi>>},
  };
  return table;
}

}  // namespace

std::vector<std::string> eigen_methods() {
  std::vector<std::string> names;
  for (const auto& [name, runner] : runners()) names.push_back(name);
  return names;
}

PeerRun run_eigen(const std::string& method, const CsrView& a, std::span<const double> b, double rtol,
                  int max_iterations, int threads, int repeat) {
  const auto& table = runners();
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& entry) { return entry.first == method; });
  if (found == table.end()) throw Error("Eigen has no method '" + method + "' here");
  PeerRun run;
  run.name = "Eigen";
  run.method = method;
  run.threads_or_ranks = threads;
  run.asked_rtol = rtol;
  run.version = std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
                std::to_string(EIGEN_MINOR_VERSION);
#ifndef _OPENMP
  add_note(run, "compiled without OpenMP: one thread");
  run.threads_or_ranks = 1;
#endif
  const int threads_before = Eigen::nbThreads();
  Eigen::setNbThreads(threads);
  try {
    found->second(run, Task{a, b, rtol, max_iterations, repeat});
  } catch (const std::exception& e) {  // out of memory, mostly: ILUT with its default fill is large
    run.converged = false;
    add_note(run, e.what());
  }
  Eigen::setNbThreads(threads_before);
  return run;
}

}  // namespace krilu::bench
