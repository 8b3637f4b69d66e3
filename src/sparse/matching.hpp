// SPDX-License-Identifier: Apache-2.0
// The pairing of rows with columns whose entries have the largest product of magnitudes, and the scales that come with
// it: row i of the paired entry becomes row j of a matrix with a large diagonal. Source: Duff and Koster, On algorithms
// for permuting large entries to the diagonal of a sparse matrix (2001), MC64's job 5.
//
// With c_ij = log2 (max_k |a_kj|) - log2 |a_ij| >= 0 it is the pairing of least total cost. Rows take columns cheaply
// first (the diagonal before all others, then along tight entries, then by exchanges of one); the others find the
// shortest augmenting path by Dijkstra's algorithm over reduced costs c_ij - u_i - v_j, which the duals u and v keep
// from being negative. At the end u_i + v_j <= c_ij everywhere, with equality where i and j are paired, so that with
// scales 2^u_i of rows and 2^v_j / max_k |a_kj| of columns paired entries are 1 and no other is more. Cost: a few
// passes over A as a rule; O(n (nnz + n) log n) at worst.
#pragma once

#include <vector>

#include "krilu/matrix.hpp"
#include "sparse/scaling.hpp"

namespace krilu::sparse {

struct Matching {
  std::vector<Index> column_of;  // of each row: its partner; -1: none
  std::vector<Index> row_of;     // of each column; -1: none
  std::vector<double> u, v;      // duals of rows and columns, powers of two
  std::vector<double> top;       // of each column: log2 of its largest magnitude
  Index size = 0;                // pairs: less than a.rows where A is singular whatever its values are

  /// Rows without a partner, ascending.
  std::vector<Index> unpaired_rows() const;
  /// Every row's column, those without a partner paired among themselves in ascending order.
  std::vector<Index> permutation() const;
  /// The scales above, rounded to powers of two: paired entries are then within [1/2, 2], and no other above 2.
  Scales scales() const;
};

/// Of a square matrix with values. Stored zeros are no entries.
Matching maximum_product_matching(const CsrView& a);

}  // namespace krilu::sparse
