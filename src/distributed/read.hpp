// SPDX-License-Identifier: Apache-2.0
// Each rank's rows of a file or a generated system, without the others' rows.
// Cost: every rank reads all places in the text, and only its own rows' values; memory is the text (mapped where the
// file is plain, inflated where it is gzip) and the rank's own rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "krilu/communicator.hpp"
#include "krilu/distributed.hpp"
#include "krilu/io.hpp"

namespace krilu::distributed {

struct ReadRows {
  RowsMatrix rows;
  MatrixFacts facts;          // of the whole file
  std::int64_t nonzeros = 0;  // of the whole matrix
};

/// Blocks of rows that are even in number: starts, one more than ranks.
std::vector<std::int64_t> even_starts(std::int64_t rows, int ranks);

/// Collective: this rank's block of rows (even_starts) of what read_matrix_market(path) or generate(path) would return,
/// number for number. `threads` as there. The file may have 2^31 entries and more, fewer than that a rank. Throws
/// krilu::Error on all ranks for whatever read_matrix_market refuses on any, and for a matrix that is not square; the
/// line that is named is the first one at fault among those that concern one rank's rows. Arrays, and generators that
/// are no stencils, are made whole on each rank and cut.
ReadRows read_rows(Ranks& ranks, const std::string& path, int threads = 0);

/// The same from text in memory; `label` stands for the file's name in messages.
ReadRows parse_rows(Ranks& ranks, std::string_view text, const std::string& label, int threads = 0);

}  // namespace krilu::distributed
