// SPDX-License-Identifier: Apache-2.0
// Some rows of a generated system, made without the others: what one of many ranks needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "krilu/distributed.hpp"

namespace krilu::io {

/// The number of rows of a generator that is a stencil, fewer than 2^60; nothing for the others (gen:spe10 and such),
/// whose rows are not made one by one. Throws krilu::Error as generate() does.
std::optional<std::int64_t> generated_rows(const std::string& text);

/// Rows first .. first + count - 1 of generate(text), number for number, for stencils. Throws krilu::Error as
/// generate() does, for rows that are not there, and for 2^31 or more entries in these rows.
RowsMatrix generate_rows(const std::string& text, std::int64_t first, Index count);

}  // namespace krilu::io
