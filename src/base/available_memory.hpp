// SPDX-License-Identifier: Apache-2.0
// How much memory this process may still take without the machine running out of it.
#pragma once

#include <cstddef>

namespace krilu {

/// Bytes that Linux calls available, or what the process's control group or its limit of addresses (ulimit -v) leave
/// where that is less. The largest number where the system does not say.
std::size_t available_memory();

}  // namespace krilu
