// SPDX-License-Identifier: Apache-2.0
// PETSc's bcgs on a system from files, with PETSc's own ilu and with krilu's preconditioners from the plug-in, in turn,
// so that what else the machine does meets them alike. One line of JSON on standard output.
//   krilu-petsc-bench PLUGIN MATRIX RHS GUESS|- ROUNDS RTOL PC... [PETSc's options]
// PC: ilu, or krilu/TYPE. The residual is b - A x in the 2-norm, relative to its first. petsc/bench/run runs it.
#include <fmt/format.h>
#include <petscksp.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <type_traits>
#include <vector>

#include "krilu/error.hpp"
#include "krilu/io.hpp"

namespace {

static_assert(std::is_same_v<PetscInt, krilu::Index>, "this needs a PETSc with 32-bit indices");

void check(PetscErrorCode code) {
  if (code) throw krilu::Error("PETSc met an error");
}

struct Run {
  std::string pc;
  KSP ksp = nullptr;
  std::vector<double> setups, updates, solves;  // seconds: the first setup, one for new values, the iterations
  int iterations = 0;
  std::string reason;
  double residual = 0;  // true, relative to the first
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

struct System {
  Mat A = nullptr;
  Vec b = nullptr, x0 = nullptr, x = nullptr, r = nullptr;
  double residual() {
    double norm = 0;
    check(MatMult(A, x, r));
    check(VecAYPX(r, -1, b));
    check(VecNorm(r, NORM_2, &norm));
    return norm;
  }
};

void set_up(Run& run, System& s, double rtol) {
  check(KSPDestroy(&run.ksp));
  check(KSPCreate(PETSC_COMM_SELF, &run.ksp));
  check(KSPSetOperators(run.ksp, s.A, s.A));
  check(KSPSetType(run.ksp, KSPBCGS));
  check(KSPSetPCSide(run.ksp, PC_RIGHT));
  check(KSPSetNormType(run.ksp, KSP_NORM_UNPRECONDITIONED));
  check(KSPSetTolerances(run.ksp, rtol, 1e-300, 1e100, 10000));
  check(KSPSetInitialGuessNonzero(run.ksp, PETSC_TRUE));
  check(KSPConvergedDefaultSetUIRNorm(run.ksp));
  PC pc = nullptr;
  check(KSPGetPC(run.ksp, &pc));
  const std::size_t slash = run.pc.find('/');
  check(PCSetType(pc, run.pc.substr(0, slash).c_str()));
  if (slash != std::string::npos)
    check(PetscOptionsSetValue(nullptr, "-pc_krilu_type", run.pc.substr(slash + 1).c_str()));
  check(KSPSetFromOptions(run.ksp));
  const auto timed_setup = [&](std::vector<double>& seconds) {
    const double start = MPI_Wtime();
    check(KSPSetUp(run.ksp));
    seconds.push_back(MPI_Wtime() - start);
  };
  timed_setup(run.setups);
  PetscScalar* values = nullptr;  // as if they had changed
  check(MatSeqAIJGetArray(s.A, &values));
  check(MatSeqAIJRestoreArray(s.A, &values));
  check(KSPSetOperators(run.ksp, s.A, s.A));
  timed_setup(run.updates);
}

void work(int argc, char** argv) {
  if (argc < 8) throw krilu::Error("PLUGIN MATRIX RHS GUESS|- ROUNDS RTOL PC... are wanted");
  check(PetscDLLibraryAppend(PETSC_COMM_SELF, &PetscDLLibrariesLoaded, argv[1]));
  krilu::CsrMatrix a = krilu::read_matrix_market(argv[2]).matrix;
  std::vector<double> b = krilu::read_vector(argv[3]), x0(b.size(), 0.0);
  if (std::string(argv[4]) != "-") x0 = krilu::read_vector(argv[4]);
  const int rounds = std::stoi(argv[5]);
  const double rtol = std::stod(argv[6]);
  System s;
  const PetscInt n = a.rows;
  check(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, n, n, a.offsets.data(), a.columns.data(), a.values.data(), &s.A));
  check(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, n, b.data(), &s.b));
  check(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, n, x0.data(), &s.x0));
  check(VecDuplicate(s.b, &s.x));
  check(VecDuplicate(s.b, &s.r));

  std::vector<Run> runs;
  for (int k = 7; k < argc && argv[k][0] != '-'; ++k) runs.emplace_back().pc = argv[k];
  double first = 0;
  for (int round = 0; round < rounds; ++round)
    for (Run& run : runs) {
      set_up(run, s, rtol);
      check(VecCopy(s.x0, s.x));
      if (first == 0) first = s.residual();
      const double start = MPI_Wtime();
      check(KSPSolve(run.ksp, s.b, s.x));
      run.solves.push_back(MPI_Wtime() - start);
      PetscInt iterations = 0;
      KSPConvergedReason reason;
      check(KSPGetIterationNumber(run.ksp, &iterations));
      check(KSPGetConvergedReason(run.ksp, &reason));
      run.iterations = int(iterations);
      run.reason = KSPConvergedReasons[reason];
      run.residual = s.residual() / first;
    }
  std::string list;
  for (Run& run : runs) {
    std::vector<double> ratios;  // round by round, since both met the same machine there
    for (std::size_t k = 0; k < run.solves.size(); ++k)
      ratios.push_back(run.solves[k] / std::max(run.iterations, 1) /
                       (runs[0].solves[k] / std::max(runs[0].iterations, 1)));
    const double solve = median(run.solves), best = *std::min_element(run.solves.begin(), run.solves.end());
    list += fmt::format(R"({}{{"pc": "{}", "iterations": {}, "reason": "{}", "residual": {:.3e}, "setup": {:.6f}, )"
                        R"("update": {:.6f}, "solve": {:.6f}, )"
                        R"("per_iteration_ms": {:.4f}, "fastest_per_iteration_ms": {:.4f}, "over_first": {:.4f}}})",
                        list.empty() ? "" : ", ", run.pc, run.iterations, run.reason, run.residual, median(run.setups),
                        median(run.updates), solve, 1e3 * solve / std::max(run.iterations, 1),
                        1e3 * best / std::max(run.iterations, 1), median(ratios));
    check(KSPDestroy(&run.ksp));
  }
  std::printf(R"({"rows": %d, "nnz": %d, "rounds": %d, "rtol": %g, "runs": [%s]})"
              "\n",
              int(n), int(a.nnz()), rounds, rtol, list.c_str());
  for (Vec* v : {&s.b, &s.x0, &s.x, &s.r}) check(VecDestroy(v));
  check(MatDestroy(&s.A));
}

}  // namespace

int main(int argc, char** argv) {
  if (PetscInitialize(&argc, &argv, nullptr, nullptr)) return 1;
  int status = 0;
  try {
    work(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "krilu-petsc-bench: %s\n", e.what());
    status = 2;
  }
  PetscFinalize();
  return status;
}
