// SPDX-License-Identifier: Apache-2.0
// What can be said of, and done with, a caller's CSR matrix: checks, symmetry, dominance, conversion, products. Facts
// cost one pass over the nonzeros each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/host.hpp"
#include "krilu/matrix.hpp"

namespace krilu::sparse {

/// y = A x, or y = b - A x where b is given, in `host`'s threads. x has cols entries, y and b rows. 12 bytes a nonzero.
void multiply(const exec::Host& host, const CsrView& a, const double* x, double* y);
void residual(const exec::Host& host, const CsrView& a, const double* x, const double* b, double* r);

/// A^T, rows ascending in each column.
CsrMatrix transpose(const CsrView& a);

/// The pattern of A + A^T with the diagonal left out: offsets and columns only, `values` empty. Square matrices only.
CsrMatrix adjacency(const CsrView& a);

struct Symmetry {
  bool pattern = false;  // a_ij is stored where a_ji is
  bool values = false;   // and they are equal
  double largest = 0;    // largest |a_ij - a_ji| over the largest |a_ij|
};
/// A square matrix only. One serial pass, one cursor a row.
Symmetry symmetry(const CsrView& a);

struct DiagonalFacts {
  Index missing = 0;           // rows whose diagonal is not stored
  Index zero = 0;              // rows whose stored diagonal is zero
  Index first_bad = -1;        // the first such row, 0-based, or -1
  Index empty_rows = 0;        // rows without any entry
  Index first_empty = -1;      // the first such row
  Index dominant_rows = 0;     // rows with |a_ii| >= sum over j != i of |a_ij|
  double least_dominance = 0;  // the least |a_ii| / sum |a_ij|; infinity where no row has other entries
  Index negative = 0;          // rows with a negative diagonal
};
DiagonalFacts diagonal_facts(const CsrView& a);

/// Position of a row's entry in `column`, or -1.
KRILU_INLINE Offset find_entry(const CsrView& a, Index row, Index column) {
  Offset low = a.offsets[row], high = a.offsets[row + 1];
  while (low < high) {
    const Offset mid = low + (high - low) / 2;
    if (a.columns[mid] < column)
      low = mid + 1;
    else
      high = mid;
  }
  return low < a.offsets[row + 1] && a.columns[low] == column ? low : -1;
}

/// Largest |i - j| over the stored entries.
Index bandwidth(const CsrView& a);

/// A hash of the pattern: the sum of the scrambled columns, by their positions, and of the scrambled ends of rows,
/// which any space may form in any order. In two plain loops, for vectors.
std::uint64_t pattern_hash(const exec::Host& host, const CsrView& a);
KRILU_INLINE std::uint64_t scrambled(Index position, Index value) {
  std::uint64_t z = (std::uint64_t(std::uint32_t(position)) << 32 | std::uint32_t(value)) + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9u;
  return z ^ (z >> 32);
}
KRILU_INLINE std::uint64_t scrambled_end(Index row, Offset end) { return scrambled(~row, end); }
KRILU_INLINE std::uint64_t pattern_hash_of(Index rows, std::uint64_t sum) {
  return std::uint64_t(rows) * 0x9e3779b97f4a7c15u + sum;
}

}  // namespace krilu::sparse
