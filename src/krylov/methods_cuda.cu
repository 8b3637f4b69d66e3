// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda.cuh"
#include "krylov/methods_on.hpp"

namespace krilu::krylov {

KRILU_METHODS(exec::Cuda)

}  // namespace krilu::krylov
