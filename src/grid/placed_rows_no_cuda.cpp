// SPDX-License-Identifier: Apache-2.0
// In place of placed_rows.cu, where krilu is built without CUDA.
#include "grid/placed_rows.hpp"
#include "krilu/error.hpp"

namespace krilu::grid {

std::unique_ptr<PlacedRows> place_rows_on_gpu(const PoissonRows&, const Stretch&, int) {
  throw Error("device cuda: this build of krilu has no GPU support: take --device host, or build it where nvcc is");
}

}  // namespace krilu::grid
