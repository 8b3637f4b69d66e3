// SPDX-License-Identifier: Apache-2.0
// The symbolic phase of ILU(k): which entries elimination with levels of fill keeps [Gustafsson 1978; Watts 1981; Saad
// 2003, section 10.3.3]. An entry of A and the diagonal have level 0; another has the least lev_im + lev_mj + 1 over
// m < min(i, j), which is the length of the shortest path from i to j through vertices below both, less one [Hysom and
// Pothen 2002]; levels up to k are kept.
//
// They are found level by level: an entry of level p comes from a pair of levels q + r = p - 1, both known from earlier
// rounds, so that all rows of a round are independent of one another, whatever the order of the elimination, and need
// not be gone through in sequence. A search along the paths of one row, which shares no more than A, finds only the
// upper triangle by distance alone and goes through each path vertex by vertex; a row merge in the elimination's order
// forms the same pairs as the rounds do, but a row waits for those above it.
// Cost: each pair l_im, u_mj with levels q + r < k is looked at once, as in the elimination itself, and each row once a
// round. Beside the result 4 bytes an entry of fill and 8 a row and round while it runs, and 4 bytes a row and thread.
#pragma once

#include <cstdint>
#include <limits>

#include "exec/host.hpp"
#include "krilu/buffer.hpp"
#include "krilu/matrix.hpp"

namespace krilu::precond {

/// Pattern of an incomplete factorisation with levels of fill, and where its entries come from.
struct FilledPattern {
  Buffer<Offset> offsets;  // rows + 1
  Buffer<Index> columns;   // ascending within a row; the diagonal is always there
  Buffer<Offset> source;   // position among a's nonzeros, or -1 where a has no entry

  /// Without values.
  CsrView view(Index rows) const { return {rows, rows, offsets.data(), columns.data(), nullptr}; }
};

/// The entries of level `level` or less; rows are eliminated in a's own order. a is a valid square matrix, of which the
/// pattern alone is read. The result does not depend on the number of threads. Throws krilu::Error where the level is
/// negative, and where more than `most` entries would be kept.
FilledPattern fill_pattern(const exec::Host& host, const CsrView& a, int level,
                           Offset most = std::numeric_limits<Offset>::max());

}  // namespace krilu::precond
