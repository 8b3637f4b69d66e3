// SPDX-License-Identifier: Apache-2.0
// What petsc/tests/plugin_test.py asks of PETSc and of krilu; all arguments are PETSc's options, and these:
//   -system gen:...|FILE   the matrix, spread over the ranks; the right-hand side is random in [-1, 1)
//   -own PRECOND           krilu's own bicgstab in place of PETSc, to -ksp_rtol; -own_ordering
//   -plugin FILE           by PetscDLLibraryAppend (-dll_append does without)
//   -linked                calls the plug-in's function itself, as a program that links it would
//   -steps N               N solves, each with another diagonal; -new_pattern: the last with one entry more;
//                          -set_operators: KSPSetOperators before each
//   -again "OPTION VALUE"  one more solve of the last system, with this option (without its dash) added
//   -zero_row R, -nan_row R, -drop_diagonal R   spoils the diagonal of row R, from 0
//   -transpose             PCApplyTranspose at the end
// Prints a line a solve, "iterations I reason NAME residual R", and "error CODE SENTENCE" where PETSc met one.
#include <dlfcn.h>
#include <petscksp.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "krilu/io.hpp"
#include "krilu/solver.hpp"

namespace {

constexpr PetscErrorCode fine = PetscErrorCode(0);

std::string text_of(const char* option) {
  std::array<char, 1024> text{};
  PetscBool set = PETSC_FALSE;
  PetscCallAbort(PETSC_COMM_SELF, PetscOptionsGetString(nullptr, nullptr, option, text.data(), text.size(), &set));
  return set ? text.data() : std::string();
}
bool asked(const char* option) {
  PetscBool set = PETSC_FALSE;
  PetscCallAbort(PETSC_COMM_SELF, PetscOptionsHasName(nullptr, nullptr, option, &set));
  return set == PETSC_TRUE;
}
PetscInt number_of(const char* option, PetscInt otherwise) {
  PetscInt value = otherwise;
  PetscCallAbort(PETSC_COMM_SELF, PetscOptionsGetInt(nullptr, nullptr, option, &value, nullptr));
  return value;
}

/// Where the error begins it is said, once; the callers' lines are left out.
PetscErrorCode say(MPI_Comm, int, const char*, const char*, PetscErrorCode code, PetscErrorType type,
                   const char* sentence, void*) {
  if (type == PETSC_ERROR_INITIAL) std::printf("error %d %s\n", int(code), sentence);
  std::fflush(stdout);
  return code;
}

PetscErrorCode run_own(const krilu::CsrMatrix& a, const std::vector<double>& b) {
  krilu::Options options;
  options.solver = "bicgstab";
  options.precond = text_of("-own");
  options.device = "host";
  options.threads = 1;
  if (const std::string ordering = text_of("-own_ordering"); !ordering.empty()) options.ordering = ordering;
  PetscReal rtol = 1e-5;
  PetscCall(PetscOptionsGetReal(nullptr, nullptr, "-ksp_rtol", &rtol, nullptr));
  options.rtol = rtol;
  std::vector<double> x(b.size(), 0.0);
  const krilu::Result r = krilu::solve(a, b, x, options);
  std::printf("iterations %d reason %s residual %.3e\n", r.iterations, krilu::to_string(r.status), r.relative_residual);
  return fine;
}

PetscErrorCode assemble(const krilu::CsrMatrix& a, Mat* A) {
  const PetscInt zero = number_of("-zero_row", -1), nan = number_of("-nan_row", -1),
                 dropped = number_of("-drop_diagonal", -1);
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, a.rows, a.cols));
  PetscCall(MatSetFromOptions(*A));
  PetscInt longest = 0;  // for each row: PETSc copies the whole matrix where one has no room
  for (krilu::Index i = 0; i < a.rows; ++i)
    longest = std::max(longest, PetscInt(a.offsets[std::size_t(i) + 1] - a.offsets[std::size_t(i)]));
  PetscCall(MatSeqAIJSetPreallocation(*A, longest, nullptr));
  PetscCall(MatMPIAIJSetPreallocation(*A, longest, nullptr, longest, nullptr));
  PetscCall(MatSetUp(*A));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscInt begin = 0, end = 0;
  PetscCall(MatGetOwnershipRange(*A, &begin, &end));
  for (PetscInt i = begin; i < end; ++i)
    for (krilu::Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
      const PetscInt j = a.columns[std::size_t(k)];
      double v = a.values[std::size_t(k)];
      if (i == j && i == dropped) continue;
      if (i == j && i == zero) v = 0;
      if (i == j && i == nan) v = std::numeric_limits<double>::quiet_NaN();
      PetscCall(MatSetValue(*A, i, j, v, INSERT_VALUES));
    }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  return fine;
}

PetscErrorCode solve(KSP ksp, Mat A, Vec b, Vec x) {
  PetscCall(VecSet(x, 0));
  PetscCall(KSPSolve(ksp, b, x));
  PetscInt iterations = 0;
  KSPConvergedReason reason;
  PetscCall(KSPGetIterationNumber(ksp, &iterations));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  Vec r = nullptr;
  PetscReal norm = 0, of_b = 0;
  PetscCall(VecDuplicate(b, &r));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1, b));
  PetscCall(VecNorm(r, NORM_2, &norm));
  PetscCall(VecNorm(b, NORM_2, &of_b));
  PetscCall(VecDestroy(&r));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "iterations %d reason %s residual %.3e\n", int(iterations),
                        KSPConvergedReasons[reason], double(norm / of_b)));
  return fine;
}

PetscErrorCode change(Mat A, PetscInt step, bool new_pattern) {
  Vec diagonal = nullptr;
  PetscCall(MatCreateVecs(A, &diagonal, nullptr));
  PetscCall(MatGetDiagonal(A, diagonal));
  PetscCall(VecShift(diagonal, 0.5 * PetscReal(step)));
  PetscCall(MatDiagonalSet(A, diagonal, INSERT_VALUES));
  PetscCall(VecDestroy(&diagonal));
  if (!new_pattern) return fine;
  PetscInt begin = 0, end = 0;
  PetscCall(MatGetOwnershipRange(A, &begin, &end));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
  PetscCall(MatSetValue(A, begin, end - 1, -0.25, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  return fine;
}

PetscErrorCode run_petsc(const krilu::CsrMatrix& a, const std::vector<double>& values) {
  Mat A = nullptr;
  Vec b = nullptr, x = nullptr;
  KSP ksp = nullptr;
  PC pc = nullptr;
  PetscCall(assemble(a, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscInt begin = 0, end = 0;
  PetscCall(VecGetOwnershipRange(b, &begin, &end));
  for (PetscInt i = begin; i < end; ++i) PetscCall(VecSetValue(b, i, values[std::size_t(i)], INSERT_VALUES));
  PetscCall(VecAssemblyBegin(b));
  PetscCall(VecAssemblyEnd(b));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetFromOptions(ksp));
  const PetscInt steps = number_of("-steps", 1);
  for (PetscInt step = 0; step < steps; ++step) {
    if (step > 0) PetscCall(change(A, step, asked("-new_pattern") && step == steps - 1));
    if (step > 0 && asked("-set_operators")) PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(solve(ksp, A, b, x));
  }
  if (const std::string more = text_of("-again"); !more.empty()) {
    PetscCall(PetscOptionsInsertString(nullptr, ("-" + more).c_str()));
    PetscCall(KSPSetFromOptions(ksp));
    PetscCall(solve(ksp, A, b, x));
  }
  PetscCall(KSPGetPC(ksp, &pc));
  if (asked("-transpose")) PetscCall(PCApplyTranspose(pc, b, x));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  return fine;
}

PetscErrorCode run() {
  const std::string plugin = text_of("-plugin");
  if (asked("-linked")) {
    void* library = dlopen(plugin.c_str(), RTLD_NOW);
    using Function = PetscErrorCode (*)();
    const auto registers =
        library ? reinterpret_cast<Function>(dlsym(library, "PetscDLLibraryRegister_kriluPetsc")) : nullptr;
    PetscCheck(registers, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", dlerror());
    PetscCall(registers());
  } else if (!plugin.empty()) {
    PetscCall(PetscDLLibraryAppend(PETSC_COMM_WORLD, &PetscDLLibrariesLoaded, plugin.c_str()));
  }
  const std::string system = text_of("-system");
  if (system.empty()) return fine;
  const krilu::CsrMatrix a =
      krilu::is_generator(system) ? krilu::generate(system) : krilu::read_matrix_market(system).matrix;
  const std::vector<double> b = krilu::random_vector(std::size_t(a.rows), 1, -1, 1);
  return text_of("-own").empty() ? run_petsc(a, b) : run_own(a, b);
}

}  // namespace

int main(int argc, char** argv) {
  if (PetscInitialize(&argc, &argv, nullptr, nullptr)) return 1;
  PetscErrorCode code = PetscPushErrorHandler(say, nullptr);
  try {
    code = run();
  } catch (const std::exception& e) {
    std::printf("exception %s\n", e.what());
    return 3;
  }
  int ranks = 1;
  MPI_Comm_size(PETSC_COMM_WORLD, &ranks);
  if (code != 0 && ranks > 1) MPI_Abort(PETSC_COMM_WORLD, 4);  // the others may wait for this one
  PetscFinalize();
  return code == 0 ? 0 : 4;
}
