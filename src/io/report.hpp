// SPDX-License-Identifier: Apache-2.0
// Reports of a solve: as JSON, whole, for programs; and the numbers of a table, for people.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "krilu/distributed.hpp"
#include "krilu/matrix.hpp"
#include "krilu/solver.hpp"

namespace krilu::io {

/// What a report says of the system beside the solver's own result.
struct SystemFacts {
  std::string name, rhs;
  std::int64_t rows = 0;
  std::int64_t nnz = 0;
  bool pattern_symmetric = false, symmetric = false;
  std::size_t matrix_bytes = 0;
  double read_seconds = 0;
  std::vector<std::string> notes;  // of reading: duplicates, say
};

/// ranks: of a solve over several.
nlohmann::ordered_json to_json(const Result& result, const SystemFacts& system, const Options& asked,
                               const std::vector<RankCost>& ranks = {});

/// Writes JSON, indented, to a file or to standard output ("-"). Throws krilu::Error where it cannot.
void write_json(const std::string& path, const nlohmann::ordered_json& json);

/// 1234567 as "1,234,567".
std::string thousands(std::int64_t n);
/// Bytes as "12.3 MB" (decimal).
std::string megabytes(std::size_t bytes);

}  // namespace krilu::io
