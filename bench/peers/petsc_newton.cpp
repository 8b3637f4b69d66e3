// SPDX-License-Identifier: Apache-2.0
#include "petsc_newton.hpp"

#include <petscsnes.h>

#include <algorithm>

#include "petsc_tools.hpp"

namespace krilu::bench {
namespace {

struct PetscNewton : PeerNewton {
  PetscNewton(const Equations& given, const std::string& method) : equations(given), pattern(given.pattern()) {
    version = begin_petsc();
    const PetscInt n = pattern.rows;
    check(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, n, n, pattern.offsets.data(), pattern.columns.data(),
                                    pattern.values.data(), &J));
    check(VecCreateSeq(PETSC_COMM_SELF, n, &x));
    check(VecDuplicate(x, &F));
    check(SNESCreate(PETSC_COMM_SELF, &snes));
    check(SNESSetType(snes, SNESNEWTONLS));
    check(SNESSetFunction(snes, F, residual, this));
    check(SNESSetJacobian(snes, J, J, jacobian, this));
    check(SNESMonitorSet(snes, monitor, this, nullptr));
    KSP ksp = nullptr;
    PC pc = nullptr;
    check(SNESGetKSP(snes, &ksp));
    check(KSPSetType(ksp, method.c_str()));
    check(KSPGetPC(ksp, &pc));
    check(PCSetType(pc, PCILU));
    check(SNESKSPSetUseEW(snes, PETSC_TRUE));
    check(SNESSetFromOptions(snes));
  }
  ~PetscNewton() override {
    SNESDestroy(&snes);
    VecDestroy(&F);
    VecDestroy(&x);
    MatDestroy(&J);
  }

  void run(std::span<double> start, double rtol) override {
    residuals.clear();
    double* to = nullptr;
    check(VecGetArray(x, &to));
    std::copy(start.begin(), start.end(), to);
    check(VecRestoreArray(x, &to));
    check(SNESSetTolerances(snes, 0, rtol, 0, 100, 1000000));
    check(SNESSolve(snes, nullptr, x));
    SNESConvergedReason reason;
    check(SNESGetConvergedReason(snes, &reason));
    trouble = reason < 0 ? SNESConvergedReasons[reason] : "";
    PetscInt count = 0;
    check(SNESGetIterationNumber(snes, &count));
    steps = int(count);
    check(SNESGetLinearSolveIterations(snes, &count));
    inner_iterations = int(count);
    const double* from = nullptr;
    check(VecGetArrayRead(x, &from));
    std::copy(from, from + start.size(), start.begin());
    check(VecRestoreArrayRead(x, &from));
  }

  static PetscErrorCode residual(SNES, Vec x, Vec F, void* me) {
    const auto& self = *static_cast<PetscNewton*>(me);
    const double* from = nullptr;
    double* to = nullptr;
    VecGetArrayRead(x, &from);
    VecGetArray(F, &to);
    self.equations.residual(0, self.pattern.rows, {from}, {to});
    VecRestoreArray(F, &to);
    VecRestoreArrayRead(x, &from);
    return 0;
  }
  static PetscErrorCode jacobian(SNES, Vec x, Mat J, Mat, void* me) {
    auto& self = *static_cast<PetscNewton*>(me);
    const double* from = nullptr;
    VecGetArrayRead(x, &from);
    double* values = nullptr;
    MatSeqAIJGetArray(J, &values);
    self.equations.jacobian(0, self.pattern.rows, {from}, {values});
    MatSeqAIJRestoreArray(J, &values);
    VecRestoreArrayRead(x, &from);
    MatAssemblyBegin(J, MAT_FINAL_ASSEMBLY);
    MatAssemblyEnd(J, MAT_FINAL_ASSEMBLY);
    return 0;
  }
  static PetscErrorCode monitor(SNES, PetscInt, PetscReal norm, void* me) {
    static_cast<PetscNewton*>(me)->residuals.push_back(norm);
    return 0;
  }

  const Equations& equations;
  CsrMatrix pattern;
  Mat J = nullptr;
  Vec x = nullptr, F = nullptr;
  SNES snes = nullptr;
};

}  // namespace

std::unique_ptr<PeerNewton> petsc_newton(const Equations& equations, const std::string& method) {
  return std::make_unique<PetscNewton>(equations, method);
}

}  // namespace krilu::bench
