// SPDX-License-Identifier: Apache-2.0
// The local problems of block ILU and restricted additive Schwarz as one block diagonal matrix, which is factorised and
// solved as any other is. Paper: Liu, Chen et al., parallel triangular solvers on GPU (about 2012), section 3. Costs
// two passes over the blocks' rows of the matrix, and one array of all rows a thread.
#pragma once

#include <span>

#include "exec/host.hpp"
#include "krilu/matrix.hpp"

namespace krilu::sparse {

/// The block diagonal matrix of the local problems, in the numbering of the local rows, columns ascending within a row.
struct BlockDiagonal {
  Index rows = 0;
  Buffer<Offset> offsets;  // rows + 1
  Buffer<Index> columns;   // local rows of the same block
  Buffer<Offset> source;   // of each entry: where its value stands in the caller's matrix

  Offset nnz() const { return offsets.empty() ? 0 : offsets[std::size_t(rows)]; }
  CsrView pattern() const { return {rows, rows, offsets.data(), columns.data(), nullptr}; }
  std::size_t bytes() const {
    return offsets.size() * sizeof(Offset) + columns.size() * sizeof(Index) + source.size() * sizeof(Offset);
  }
};

/// Rows `row` of the square matrix a, restricted to the columns of their own block. Block b is the local rows
/// offsets[b] .. offsets[b+1]-1 (blocks + 1 offsets, the first 0), as in schedule::Subdomains; within a block, a row of
/// a stands once and in any place; it may stand in several blocks. a.values may be null. The same for any number of
/// threads, which share the blocks. Throws krilu::Error where the blocks would have 2^31 entries or more.
BlockDiagonal block_diagonal(const exec::Host& host, const CsrView& a, std::span<const Index> offsets,
                             std::span<const Index> row);

}  // namespace krilu::sparse
