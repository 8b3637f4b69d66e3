// SPDX-License-Identifier: Apache-2.0
// The caches of this machine's cores.
#pragma once

#include <cstddef>

namespace krilu::exec {

/// Bytes of second-level cache that one core has: by hwloc where the build found it, else as the system says; 1 MiB
/// where neither knows.
std::size_t second_level_cache();

}  // namespace krilu::exec
