// SPDX-License-Identifier: Apache-2.0
// What a direct factorisation asks of a pattern: an ordering with little fill (nested dissection [George 1973],
// METIS's), how many entries its factors will have, and whether there is a factorisation at all. Integers only.
#pragma once

#include <cstdint>

#include "krilu/matrix.hpp"
#include "schedule/ordering.hpp"

namespace krilu::schedule {

/// order[k] is the row that stands at place k, from the adjacency of a square matrix (sparse/csr.hpp).
Order nested_dissection(const CsrView& adjacency);

/// Entries of the Cholesky factor of a matrix with this adjacency, its diagonal included, eliminated in this order:
/// what L and U have each where every pivot is taken from the diagonal. Walks the row subtrees of the elimination tree
/// [Liu 1990], in as many steps as it counts, and ends where the count passes `most`.
std::int64_t factor_entries(const CsrView& adjacency, const Order& order, std::int64_t most);

/// The same for the factor of A^T A with columns in this order: a bound for L and U each, whatever rows are exchanged
/// [George and Ng 1987]. transpose is A^T.
std::int64_t factor_entries_with_exchanges(const CsrView& a, const CsrView& transpose, const Order& order,
                                           std::int64_t most);

/// Whether every row can be given a column of its own in which it has an entry. Without that a square matrix is
/// singular, whatever its values. Depth-first search for augmenting paths with a look ahead [Duff 1981]: at most one
/// pass over the entries a row, a few altogether as a rule.
bool has_full_structural_rank(const CsrView& a);

}  // namespace krilu::schedule
