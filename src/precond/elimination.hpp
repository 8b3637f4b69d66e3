// SPDX-License-Identifier: Apache-2.0
// Gaussian elimination over a pattern that is given [Saad 2003, Algorithm 10.4], row by row: A ~ (I + L) U, with the
// multipliers L, and U with its pivots, in the places of one CSR. The pattern says which factorisation it is: A's own
// is ILU(0), one with levels of fill ILU(k). DILU is the same with nothing updated but the pivots. This is the host's;
// a GPU's is elimination.cuh. Cost: 12 bytes and two operations for each entry of U that a row passes over.
#pragma once

#include <span>
#include <vector>

#include "exec/host.hpp"
#include "krilu/matrix.hpp"

namespace krilu::precond {

/// Of each row, where its diagonal entry stands: columns ascend, and no row is without one.
std::vector<Offset> diagonal_positions(const exec::Host& host, const CsrView& a);

enum class Updated { pattern, pivots };

/// Columns ascending; every row has its diagonal. `blocks` (offsets, blocks + 1): row ranges that share no entry.
struct EliminationPattern {
  CsrView rows;            // values are not looked at
  const Offset* diagonal;  // of each row: its position
  std::span<const Index> blocks;
};

/// value: on entry A's over the pattern, on return the factors'. A pivot of zero, NaN or infinity becomes 1; the first
/// row with one is returned, or -1. The same bits on any number of threads, which share the blocks or, where those are
/// too few, deal rows in turn and wait for those that they read.
Index eliminate(const exec::Host& host, const EliminationPattern& pattern, Updated updated, double* value);

/// Updated::pattern from A's values where they are, to the same bits: source (one for each place of the pattern) has
/// their positions in `a`, -1 where A has none. What `value` holds on entry is not looked at; to lay A's values there
/// first takes a fifth longer.
Index eliminate(const exec::Host& host, const EliminationPattern& pattern, const Offset* source, const double* a,
                double* value);

}  // namespace krilu::precond
