// SPDX-License-Identifier: Apache-2.0
#include "exec/host.hpp"
#include "krylov/methods_on.hpp"

namespace krilu::krylov {

KRILU_METHODS(exec::Host)

}  // namespace krilu::krylov
