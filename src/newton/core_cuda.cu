// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda.cuh"
#include "newton/core_on.hpp"

namespace krilu::newton {

std::unique_ptr<Core> make_cuda_core(const Equations& equations, const NewtonOptions& options) {
  return std::make_unique<CoreOn<exec::Cuda>>(equations, options);
}

}  // namespace krilu::newton
