// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda.cuh"
#include "newton/core_on.hpp"
#include "solver/links.cuh"

namespace krilu::newton {

std::unique_ptr<Core> make_cuda_core(const Equations& equations, const NewtonOptions& options,
                                     std::shared_ptr<Communicator> ranks) {
  return std::make_unique<CoreOn<exec::Cuda>>(equations, options, std::move(ranks));
}

}  // namespace krilu::newton
