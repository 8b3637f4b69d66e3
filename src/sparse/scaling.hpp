// SPDX-License-Identifier: Apache-2.0
// Scales of rows and columns that bring a matrix into the range of a storage format: powers of two, so that they round
// nothing. Simultaneous scaling by square roots of the rows' and columns' maxima, a few times over [Ruiz 2001], in
// whole exponents; a symmetric matrix stays so. Cost: a pass over A each time, up to twelve.
#pragma once

#include <vector>

#include "base/half.hpp"
#include "exec/host.hpp"
#include "krilu/matrix.hpp"

namespace krilu::sparse {

struct Scales {
  std::vector<double> row, column;  // of the caller's rows; empty: all 1
  double typical_row = 1;           // the geometric mean of `row`, to a power of two
};

/// What A needs before it is rounded to `storage`: nothing where the range is that of a float and A keeps well within.
Scales scales_for(const exec::Host& host, const CsrView& a, Format storage);

/// What brings the largest entry of every row and column near 1, whatever the range of A.
Scales equilibrating_scales(const exec::Host& host, const CsrView& a);

}  // namespace krilu::sparse
