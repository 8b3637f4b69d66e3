// SPDX-License-Identifier: Apache-2.0
// In place of ldu_solver.cu, where krilu is built without CUDA.
#include "krilu/error.hpp"
#include "solver/ldu_solver.hpp"

namespace krilu::solver {

std::unique_ptr<LduEngine> make_cuda_ldu_engine(const Options&, const FaceLoopOptions&, int) {
  throw Error("device cuda: this build of krilu has no GPU support: take device host, or build it where nvcc is");
}

}  // namespace krilu::solver
