// SPDX-License-Identifier: Apache-2.0
// In place of mesh_paper.cu, where krilu is built without CUDA.
#include "krilu/error.hpp"
#include "mesh_paper_measure.hpp"

namespace krilu::app::mesh_paper {

std::unique_ptr<Device> cuda_device(int, int) {
  throw Error("device cuda: this build of krilu has no GPU support: take --device host, or build it where nvcc is");
}

}  // namespace krilu::app::mesh_paper
