// SPDX-License-Identifier: GPL-3.0-or-later
// `dump yes;`: the systems of a running case as Matrix Market files.
#pragma once

#include "krilu/matrix.hpp"
#include "lduMatrix.H"

namespace Foam {

/// Writes A, b and the initial guess to krilu/TIME of the case: FIELD_1.mtx, FIELD_1_b.mtx, FIELD_1_x0.mtx, FIELD_2.mtx
/// and so on, as solves of the field follow each other within the time. `a` has the pattern; rows in OpenFOAM's order
/// of cells, lower triangle alone where the matrix is symmetric. A warning in place of files where the matrix is
/// coupled, since its interfaces are no entries. Throws krilu::Error where files cannot be written.
void kriluDump(const lduMatrix& matrix, bool coupled, const word& fieldName, const scalarField& psi,
               const scalarField& source, const krilu::CsrView& a);

}  // namespace Foam
