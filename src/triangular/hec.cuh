// SPDX-License-Identifier: Apache-2.0
// HecSolver on a GPU (hec.hpp): what differs from the spaces whose kernels are host code. Included by .cu files only.
#pragma once

#include "exec/cuda.cuh"
#include "triangular/hec.hpp"

namespace krilu::triangular {

/// A launch costs about as much as a level of this many rows in one block.
template <>
struct HecNarrow<exec::Cuda> {
  static Index rows(const exec::Cuda&) { return 1025; }
};

template <>
void HecSolver<exec::Cuda, double>::solve(const double* b, double* x) const;

}  // namespace krilu::triangular
