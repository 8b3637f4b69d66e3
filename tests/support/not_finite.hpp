// SPDX-License-Identifier: Apache-2.0
// NaN and infinity, for tests of what is refused and of what goes no further.
#pragma once

#include <limits>

namespace krilu::test {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace krilu::test
