// SPDX-License-Identifier: Apache-2.0
// LduOperator on a GPU. Included by .cu files only.
#pragma once

#include "exec/cuda.cuh"
#include "krilu/face_loops.cuh"
#include "mesh/ldu_operator.hpp"

namespace krilu::mesh {

template <>
struct LoopsOn<exec::Cuda> {
  using Type = CudaFaceLoops;
};

}  // namespace krilu::mesh
