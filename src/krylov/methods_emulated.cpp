// SPDX-License-Identifier: Apache-2.0
#include "exec/emulated.hpp"
#include "krylov/methods_on.hpp"

namespace krilu::krylov {

KRILU_METHODS(exec::Emulated)

}  // namespace krilu::krylov
