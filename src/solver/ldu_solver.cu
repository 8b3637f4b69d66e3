// SPDX-License-Identifier: Apache-2.0
#include "mesh/ldu_operator.cuh"
#include "precond/face_dilu.cuh"
#include "solver/ldu_solver.hpp"
#include "sparse/sliced.cuh"

namespace krilu::solver {

std::unique_ptr<LduEngine> make_cuda_ldu_engine(const Options& options, const FaceLoopOptions& loops, int number) {
  const exec::Cuda space(number, options.threads);
  const std::string device = "cuda:" + std::to_string(number) + " (" + space.device_name() + ")";
  return std::make_unique<LduEngineOn<exec::Cuda>>(space, device, options, loops);
}

}  // namespace krilu::solver
