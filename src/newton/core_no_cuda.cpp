// SPDX-License-Identifier: Apache-2.0
// In place of core_cuda.cu, where krilu is built without CUDA.
#include "krilu/error.hpp"
#include "newton/core.hpp"

namespace krilu::newton {

std::unique_ptr<Core> make_cuda_core(const Equations&, const NewtonOptions&, std::shared_ptr<Communicator>) {
  throw Error("device cuda: this build of krilu has no GPU support: take --device host, or build it where nvcc is");
}

}  // namespace krilu::newton
