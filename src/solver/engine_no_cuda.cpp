// SPDX-License-Identifier: Apache-2.0
// In place of engine_cuda.cu, where krilu is built without CUDA.
#include "krilu/error.hpp"
#include "solver/engine.hpp"

namespace krilu::solver {

std::unique_ptr<Engine> make_cuda_engine(const Options&, int, const Team&) {
  throw Error("device cuda: this build of krilu has no GPU support: take --device host, or build it where nvcc is");
}

int gpu_of(const void*) { return -1; }

int cuda_devices() { return 0; }

}  // namespace krilu::solver
