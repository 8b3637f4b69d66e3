// SPDX-License-Identifier: Apache-2.0
// METIS draws its random numbers from rand(), which threads share: ranks in one process that ask it at once would mix
// theirs, and get another partition each time. So they ask it one after another.
#pragma once

#include <metis.h>

#include <mutex>

namespace krilu::schedule {

inline std::mutex metis_in_use;

}  // namespace krilu::schedule
