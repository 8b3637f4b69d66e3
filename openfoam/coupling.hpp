// SPDX-License-Identifier: GPL-3.0-or-later
// OpenFOAM's communicator and coupled interfaces (processor, cyclic, AMI) as krilu's Ranks and Coupling.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "krilu/ranks.hpp"
#include "lduMatrix.H"

namespace Foam {

/// The ranks of a communicator. Without a parallel run there is one, and MPI, which is not initialised then, is not
/// called.
class kriluRanks final : public krilu::Ranks {
 public:
  explicit kriluRanks(label comm) : comm_(comm) {}
  int rank() const override { return UPstream::parRun() ? int(UPstream::myProcNo(comm_)) : 0; }
  int size() const override { return UPstream::parRun() ? int(UPstream::nProcs(comm_)) : 1; }
  void all_gather(const void* mine, std::size_t bytes, void* all) override;
  void sum(std::span<double> values) override;

 private:
  label comm_;
};

/// The product with what lies behind a matrix's interfaces, by the interfaces' own updates. Of one mesh; the matrix and
/// the coefficients are those of the last attach().
class kriluCoupling final : public krilu::Coupling {
 public:
  explicit kriluCoupling(const lduMesh& mesh);
  /// The arguments are read until the next call.
  void attach(const lduMatrix& matrix, const FieldField<Field, scalar>& coefficients,
              const lduInterfaceFieldPtrsList& interfaces, direction cmpt);
  std::span<const krilu::Index> rows() const override { return rows_; }
  bool symmetric() const override { return matrix_ && matrix_->symmetric(); }
  void start(const double* x) override;
  void finish(double* y) override;

 private:
  std::vector<krilu::Index> rows_;  // the cells at interfaces
  solveScalarField psi_, result_;   // of all cells; what is not at an interface stays zero
  const lduMatrix* matrix_ = nullptr;
  const FieldField<Field, scalar>* coefficients_ = nullptr;
  const lduInterfaceFieldPtrsList* interfaces_ = nullptr;
  direction cmpt_ = 0;
  label requests_ = 0;  // that were under way before
};

/// matrix.updateMatrixInterfaces, which later releases tell how many requests were under way before
/// initMatrixInterfaces.
template <class Matrix>
void kriluUpdateInterfaces(const Matrix& matrix, bool add, const FieldField<Field, scalar>& coefficients,
                           const lduInterfaceFieldPtrsList& interfaces, const solveScalarField& psi,
                           solveScalarField& result, direction cmpt, label requests) {
  if constexpr (requires { matrix.updateMatrixInterfaces(add, coefficients, interfaces, psi, result, cmpt, requests); })
    matrix.updateMatrixInterfaces(add, coefficients, interfaces, psi, result, cmpt, requests);
  else
    matrix.updateMatrixInterfaces(add, coefficients, interfaces, psi, result, cmpt);
}

/// Whether cells of the mesh have neighbours that are not behind its internal faces.
bool kriluHasInterfaces(const lduMesh& mesh);

}  // namespace Foam
