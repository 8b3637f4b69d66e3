// SPDX-License-Identifier: Apache-2.0
// Index types. Rows, columns and positions of nonzeros are 32 bits wide: index traffic is a third of what a sparse
// method moves. One matrix on one device therefore holds fewer than 2^31 nonzeros; larger ones are refused in a
// sentence when they are read.
#pragma once

#include <cstdint>

namespace krilu {

using Index = std::int32_t;   // a row or a column
using Offset = std::int32_t;  // a position among the nonzeros

}  // namespace krilu
