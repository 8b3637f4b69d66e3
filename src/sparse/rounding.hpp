// SPDX-License-Identifier: Apache-2.0
// How a matrix, or a preconditioner made for it, is scaled and rounded: R A C in place of A, R and C diagonal and
// powers of two, so that scaling rounds nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/half.hpp"

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
};

}  // namespace krilu::sparse
