// SPDX-License-Identifier: Apache-2.0
// How a matrix, or a preconditioner made for it, is scaled and rounded: R A C in place of A, R and C diagonal: powers
// of two, so that scaling rounds nothing, or C what a preconditioner asks for, of which less is left then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/half.hpp"
#include "krilu/kernel.hpp"

namespace krilu::sparse {

/// A rounded matrix, whatever its space and storage (storage.hpp).
struct RoundedMatrix {
  virtual ~RoundedMatrix() = default;
  virtual std::size_t bytes() const = 0;
};

struct Rounding {
  Format storage = Format::fp32;  // of values off the diagonal; diagonals are kept in the arithmetic's own
  const double* row = nullptr;    // R and C of the rows in the solver's order, in the space's memory; null: all 1
  const double* column = nullptr;
  std::int64_t* lost = nullptr;  // in the space's memory: entries that were not zero and became so are added here
  bool folded = false;           // C is what the preconditioner asked for (its folds())
};

/// A row's diagonal entry with what rounding the others to S took from the row, so that it keeps its sum; both scaled.
/// Not where that is more than a row can miss whose diagonal outweighs the others: where columns differ widely in
/// scale, as unknowns in different units do, a sum over them says nothing, and would drown small diagonals.
template <class S>
KRILU_INLINE double with_missing(double diagonal, double missing) {
  constexpr double most = std::is_same_v<S, Bfloat16> ? 0x1p-7 : std::is_same_v<S, Half> ? 0x1p-10 : 0x1p-23;
  const double size = diagonal < 0 ? -diagonal : diagonal, change = missing < 0 ? -missing : missing;
  return change <= most * size ? diagonal + missing : diagonal;
}

}  // namespace krilu::sparse
