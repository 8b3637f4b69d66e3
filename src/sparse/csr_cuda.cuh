// SPDX-License-Identifier: Apache-2.0
// The caller's CSR matrix on a GPU, and what an analysis asks of it: the facts of csr.hpp in one pass.
#pragma once

#include "exec/cuda.cuh"
#include "krilu/matrix.hpp"
#include "sparse/csr.hpp"

namespace krilu::sparse {

struct DeviceCsr {
  Index rows = 0;
  Offset nnz = 0;
  exec::Array<Offset> offsets;
  exec::Array<Index> columns;
  exec::Array<double> values;  // empty where only the pattern was brought

  CsrView view() const { return {rows, rows, offsets.data(), columns.data(), values.data()}; }
};

/// Brings a square matrix to the device, with its values where a.values is not null and they are asked for.
DeviceCsr upload(const exec::Cuda& space, const CsrView& a, bool values);

struct CsrFacts {
  bool valid = true;  // offsets and columns are as krilu/matrix.hpp says; if not, the rest is not to be read
  Symmetry symmetry;  // without its `largest`
  DiagonalFacts
      diagonal;  // missing, zero, first_bad, negative, least_dominance; without values only what is not stored
  Index first_not_finite = -1;     // the first row with NaN or infinity
  std::uint64_t pattern_hash = 0;  // sparse::pattern_hash
};
CsrFacts facts(const exec::Cuda& space, const DeviceCsr& a);

/// The first row with NaN or infinity among the values, or -1.
Index first_not_finite(const exec::Cuda& space, const DeviceCsr& a);

}  // namespace krilu::sparse
