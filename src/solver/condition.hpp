// SPDX-License-Identifier: Apache-2.0
// The condition number's estimate with a say in what solves its systems.
#pragma once

#include <cstddef>

#include "base/available_memory.hpp"
#include "krilu/condition.hpp"

namespace krilu::solver {

enum class ConditionBy { any, direct, gmres };

/// krilu::estimate_condition. any: directly where that goes within `memory` bytes, by GMRES otherwise. Throws
/// krilu::Error, too, where direct is asked for and does not go.
Condition estimate_condition(const CsrView& a, ConditionNorm norm, int threads, ConditionBy by,
                             std::size_t memory = available_memory());

}  // namespace krilu::solver
