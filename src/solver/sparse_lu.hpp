// SPDX-License-Identifier: Apache-2.0
// A sparse matrix's LU factorisation with row exchanges, by SuperLU [Demmel, Eisenstat, Gilbert, Li and Liu 1999] where
// krilu was built with it. Rows and columns are scaled by powers of two first. Columns are ordered by nested
// dissection, and pivots taken from the diagonal while they are not below a hundredth of the column, where the diagonal
// has no zeros; otherwise by COLAMD, with partial pivoting. On three-dimensional meshes the first needs a quarter of
// the entries that COLAMD leaves. Cost for a cube of n cells: 5 to 8 n^(4/3) entries in each factor.
//
// Where memory ends SuperLU prints a line ("Can't expand MemType", "Not enough memory") and fails, which is caught
// here. What is not: for its work arrays of a vector's size it ends the process, and some BLAS wait for ever for
// theirs. So the factors' size is foreseen from the pattern, and what would not fit is not begun. Row exchanges may
// make the factors larger than was foreseen, where the diagonal is full but weak.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "krilu/matrix.hpp"

namespace krilu::solver {

class SparseLu {
 public:
  /// "SuperLU 5.3", or an empty text where krilu was built without it.
  static std::string name();

  enum class Outcome {
    ready,
    singular,   // no pivot in some column
    too_large,  // for the memory or for 32-bit positions
    missing     // built without a library
  };

  /// Factors a square matrix of at least one row that holds neither NaN nor infinity, within `memory` bytes.
  SparseLu(const CsrView& a, std::size_t memory);
  ~SparseLu();
  SparseLu(const SparseLu&) = delete;
  SparseLu& operator=(const SparseLu&) = delete;

  Outcome outcome() const;
  /// Bytes that the factors hold, or were expected to need where they are too large.
  std::size_t bytes() const;

  /// Replaces each of `columns` vectors, which stand one behind the other, by A^-1 (or A^-T) times it. Only when ready.
  void solve(double* block, Index columns, bool transposed) const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace krilu::solver
