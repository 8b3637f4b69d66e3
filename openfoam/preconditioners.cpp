// SPDX-License-Identifier: GPL-3.0-or-later
// The preconditioners kriluDIC (of symmetric matrices) and kriluDILU (of others) for OpenFOAM's own solvers, on the LDU
// matrix as it stands:
//
//   d_u -= upper lower / d_l,  rd = 1 / d        faces in turn; of a face l is the owner, u the neighbour
//   w    = rd r
//   w_u -= rd_u lower w_l                        faces forward
//   w_l -= rd_l upper w_u                        faces backward
//
// Every number is that of OpenFOAM's DIC and DILU, bit for bit. Its forward loop goes by neighbours, which changes
// nothing for any one cell; by owners, as here, a cell's value stays in a register while its faces pass. The loops of
// krilu's own DILU in face addressing (src/precond/face_dilu.cpp) would serve but for fused multiplications, which they
// may be compiled to.
#include <algorithm>

#include "addToRunTimeSelectionTable.H"
#include "lduMatrix.H"

namespace Foam {

class kriluFacePreconditioner : public lduMatrix::preconditioner {
 public:
  explicit kriluFacePreconditioner(const lduMatrix::solver& sol)
      : lduMatrix::preconditioner(sol), rD_(sol.matrix().diag().size()) {
    const lduMatrix& a = sol.matrix();
    const labelUList &owner = a.lduAddr().lowerAddr(), &neighbour = a.lduAddr().upperAddr();
    const scalar *const upper = a.upper().begin(), *const lower = a.lower().begin();
    scalar* const d = rD_.begin();
    std::copy(a.diag().begin(), a.diag().end(), d);
    const label faces = owner.size();
    for (label f = 0; f < faces; ++f) d[neighbour[f]] -= upper[f] * lower[f] / d[owner[f]];
    for (label c = 0; c < rD_.size(); ++c) d[c] = 1.0 / d[c];
  }
  void precondition(scalarField& wA, const scalarField& rA, const direction = 0) const override {
    const lduMatrix& a = solver_.matrix();
    sweep(a.lower().begin(), a.upper().begin(), rA, wA);
  }
  void preconditionT(scalarField& wT, const scalarField& rT, const direction = 0) const override {
    const lduMatrix& a = solver_.matrix();
    sweep(a.upper().begin(), a.lower().begin(), rT, wT);
  }

 private:
  void sweep(const scalar* lower, const scalar* upper, const scalarField& from, scalarField& to) const {
    const lduAddressing& addressing = solver_.matrix().lduAddr();
    const label* const __restrict__ begin = addressing.ownerStartAddr().begin();
    const label* const __restrict__ neighbour = addressing.upperAddr().begin();
    const scalar* const __restrict__ rd = rD_.begin();
    const scalar* const __restrict__ r = from.begin();
    scalar* const __restrict__ w = to.begin();
    const label cells = to.size();
    for (label c = 0; c < cells; ++c) w[c] = rd[c] * r[c];
    for (label c = 0; c < cells; ++c) {
      const scalar now = w[c];
      for (label f = begin[c]; f < begin[c + 1]; ++f) w[neighbour[f]] -= rd[neighbour[f]] * lower[f] * now;
    }
    for (label c = cells; c-- > 0;) {
      const scalar rd_c = rd[c];
      scalar sum = w[c];
      for (label f = begin[c + 1]; f-- > begin[c];) sum -= rd_c * upper[f] * w[neighbour[f]];
      w[c] = sum;
    }
  }
  scalarField rD_;
};

class kriluDICPreconditioner : public kriluFacePreconditioner {
 public:
  TypeName("kriluDIC");
  kriluDICPreconditioner(const lduMatrix::solver& sol, const dictionary&) : kriluFacePreconditioner(sol) {}
};
class kriluDILUPreconditioner : public kriluFacePreconditioner {
 public:
  TypeName("kriluDILU");
  kriluDILUPreconditioner(const lduMatrix::solver& sol, const dictionary&) : kriluFacePreconditioner(sol) {}
};

defineTypeNameAndDebug(kriluDICPreconditioner, 0);
defineTypeNameAndDebug(kriluDILUPreconditioner, 0);
lduMatrix::preconditioner::addsymMatrixConstructorToTable<kriluDICPreconditioner>
    addkriluDICPreconditionerSymMatrixConstructorToTable_;
lduMatrix::preconditioner::addasymMatrixConstructorToTable<kriluDILUPreconditioner>
    addkriluDILUPreconditionerAsymMatrixConstructorToTable_;

}  // namespace Foam
