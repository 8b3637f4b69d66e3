// SPDX-License-Identifier: GPL-3.0-or-later
// The smoother kriluSymGaussSeidel, for smoothSolver and GAMG: a sweep over the cells forward and one backward, on the
// LDU matrix as it stands; what is behind interfaces is taken from before the sweep. The results are those of
// OpenFOAM's symGaussSeidel bit for bit, with a quarter of its work left out: what the backward sweep hands on to cells
// that it has passed already is read by nobody.
#include "PrecisionAdaptor.H"
#include "addToRunTimeSelectionTable.H"
#include "coupling.hpp"
#include "lduMatrix.H"

namespace Foam {

class kriluSymGaussSeidelSmoother : public lduMatrix::smoother {
 public:
  TypeName("kriluSymGaussSeidel");
  kriluSymGaussSeidelSmoother(const word& fieldName, const lduMatrix& matrix,
                              const FieldField<Field, scalar>& interfaceBouCoeffs,
                              const FieldField<Field, scalar>& interfaceIntCoeffs,
                              const lduInterfaceFieldPtrsList& interfaces)
      : lduMatrix::smoother(fieldName, matrix, interfaceBouCoeffs, interfaceIntCoeffs, interfaces) {}

  void smooth(solveScalarField& psi, const scalarField& source, const direction cmpt,
              const label nSweeps) const override {
    scalarSmooth(psi, ConstPrecisionAdaptor<solveScalar, scalar>(source), cmpt, nSweeps);
  }
  void scalarSmooth(solveScalarField& psi, const solveScalarField& source, const direction cmpt,
                    const label nSweeps) const override;
};

void kriluSymGaussSeidelSmoother::scalarSmooth(solveScalarField& psi, const solveScalarField& source,
                                               const direction cmpt, const label nSweeps) const {
  const label cells = psi.size();
  const label* const begin = matrix_.lduAddr().ownerStartAddr().begin();
  const label* const neighbour = matrix_.lduAddr().upperAddr().begin();
  const scalar* const diagonal = matrix_.diag().begin();
  const scalar* const upper = matrix_.upper().begin();
  const scalar* const lower = matrix_.lower().begin();
  solveScalarField rest(cells);  // the source, less what cells before have brought
  solveScalar* const x = psi.begin();
  solveScalar* const b = rest.begin();

  // By the cells that come after: what is left divided by the diagonal.
  const auto solved = [=](label c) {
    solveScalar sum = b[c];
    for (label f = begin[c]; f < begin[c + 1]; ++f) sum -= upper[f] * x[neighbour[f]];
    return sum / diagonal[c];
  };
  for (label sweep = 0; sweep < nSweeps; ++sweep) {
    rest = source;
    const label requests = UPstream::nRequests();
    matrix_.initMatrixInterfaces(false, interfaceBouCoeffs_, interfaces_, psi, rest, cmpt);
    kriluUpdateInterfaces(matrix_, false, interfaceBouCoeffs_, interfaces_, psi, rest, cmpt, requests);
    for (label c = 0; c < cells; ++c) {
      const solveScalar now = x[c] = solved(c);
      for (label f = begin[c]; f < begin[c + 1]; ++f) b[neighbour[f]] -= lower[f] * now;
    }
    for (label c = cells; c-- > 0;) x[c] = solved(c);
  }
}

defineTypeNameAndDebug(kriluSymGaussSeidelSmoother, 0);
lduMatrix::smoother::addsymMatrixConstructorToTable<kriluSymGaussSeidelSmoother>
    addkriluSymGaussSeidelSmootherSymMatrixConstructorToTable_;
lduMatrix::smoother::addasymMatrixConstructorToTable<kriluSymGaussSeidelSmoother>
    addkriluSymGaussSeidelSmootherAsymMatrixConstructorToTable_;

}  // namespace Foam
