// SPDX-License-Identifier: Apache-2.0
// PETSc's ILU(k) of a sequential AIJ matrix, its numeric phase by itself. That phase takes A's values over the pattern
// as it goes, so what it is compared with must do so too.
#include <petscmat.h>

#include "factorisation.hpp"
#include "petsc_tools.hpp"

namespace krilu::bench {
namespace {

struct PetscIluk : PeerFactorisation {
  PetscIluk(const CsrMatrix& a, int level, std::int64_t expected) {
    version = begin_petsc();
    // PETSc wants pointers to arrays that may be written, yet only reads these.
    check(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, a.rows, a.cols, const_cast<Offset*>(a.offsets.data()),
                                    const_cast<Index*>(a.columns.data()), const_cast<double*>(a.values.data()), &mat));
    check(MatGetOrdering(mat, MATORDERINGNATURAL, &row, &column));
    check(MatGetFactor(mat, MATSOLVERPETSC, MAT_FACTOR_ILU, &factor));
    check(MatFactorInfoInitialize(&info));
    info.levels = level;
    info.fill = 1.01 * double(expected) / double(a.nnz());
    symbolic_seconds = timed([&] { check(MatILUFactorSymbolic(factor, mat, row, column, &info)); });
  }
  ~PetscIluk() override {
    MatDestroy(&factor);
    ISDestroy(&row);
    ISDestroy(&column);
    MatDestroy(&mat);
  }

  double run() override {
    const double seconds = timed([&] { check(MatLUFactorNumeric(factor, mat, &info)); });
    MatInfo held;
    check(MatGetInfo(factor, MAT_LOCAL, &held));
    entries = std::int64_t(held.nz_used);
    return seconds;
  }

  void apply(std::span<const double> b, std::span<double> x) override {
    Vec from = nullptr, to = nullptr;
    const auto n = PetscInt(b.size());
    check(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, n, b.data(), &from));
    check(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, n, x.data(), &to));
    check(MatSolve(factor, from, to));
    check(VecDestroy(&from));
    check(VecDestroy(&to));
  }

  Mat mat = nullptr, factor = nullptr;
  IS row = nullptr, column = nullptr;
  MatFactorInfo info;
};

}  // namespace

std::unique_ptr<PeerFactorisation> petsc_iluk(const CsrMatrix& a, int level, std::int64_t entries) {
  return std::make_unique<PetscIluk>(a, level, entries);
}

}  // namespace krilu::bench
