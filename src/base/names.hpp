// SPDX-License-Identifier: Apache-2.0
// Names that a user gives: what is refused, and the nearest name that exists.
#pragma once

#include <string>
#include <vector>

namespace krilu {

/// The nearest of `known` by edit distance, or an empty text where none is near.
std::string nearest_name(const std::string& given, const std::vector<std::string>& known);

/// Throws krilu::Error "unknown WHAT 'given': did you mean 'x'? It is one of a, b, c" unless given is among known.
void require_name(const std::string& what, const std::string& given, const std::vector<std::string>& known);

}  // namespace krilu
