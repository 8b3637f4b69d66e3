// SPDX-License-Identifier: Apache-2.0
// HEC scaled and rounded (rounding.hpp), on a GPU: products in single precision over values of 4 or 2 bytes, a thread a
// row as in hec.cuh. Three things are not as they are in double:
//
//   The diagonal stands in a vector of its own, in floats. It takes up the rounding errors of its row's other entries,
//   so that constant vectors of the unscaled variables are multiplied as before: where S is the storage and
//   e_ij = a_ij - S(R_i a_ij C_j) / (R_i C_j), it is R_i C_i (a_ii + sum over j of e_ij), within the limit of
//   with_missing(). Without that fp16 would change the row sums of a diffusion operator, and with them its smallest
//   eigenvalues, beyond recognition.
//
//   Entries stand in pairs, so that a warp's load of two values of 2 bytes a row is 128 bytes.
//
//   Columns are short by slots that leave the diagonal out, whatever they are in the matrix that is rounded; where that
//   takes more bytes than columns of 32 bits do, as on random patterns, those are stored.
//
// Bytes of y = A x, stencils of 7 points in fp16: 31 a row, each x fetched once, where double takes 81.
// Included by .cu files only.
#pragma once

#include <cstddef>
#include <memory>

#include "exec/cuda.cuh"
#include "sparse/hec.hpp"
#include "sparse/rounding.hpp"

namespace krilu::sparse {

/// R A C as an operator in single precision, with arrays of its own.
class RoundedHec : public Operator<exec::Cuda, float> {
 public:
  virtual std::size_t bytes() const = 0;
  /// Bytes that a product moves where each x is fetched once.
  virtual std::size_t traffic() const = 0;
  /// Bytes of a column of the ELL part: 1, 2 or 4.
  virtual int column_bytes() const = 0;
  /// Places of a row for entries off the diagonal, outside of the CSR part.
  virtual Index slots() const = 0;
};

/// a: square, in the product form; R and C in its own order of rows. What a row lost counts once for each entry, the
/// diagonal included.
std::unique_ptr<const RoundedHec> rounded_product(const exec::Cuda& space, const Hec<exec::Cuda, double>& a,
                                                  const Rounding& rounding);

}  // namespace krilu::sparse
