// SPDX-License-Identifier: Apache-2.0
// Factors of a block diagonal matrix as one thread block of a GPU reads them from start to end (packed.cuh). They are
// scaled so that both sweeps have a unit diagonal,
//
//   M^-1 r = (I + U)^-1 (I + L)^-1 D^-1 r,
//
// and so a part is nothing but a sequence of updates x_i -= sum_j t_ij x_j. A step is up to `threads` of them, a thread
// each, of rows of one level and of `width` entries at most (longer rows come again in the next step); the words of 8
// bytes of its rows stand one after another: columns, four to a word, counted from the part's first row, with the row
// itself as the last; then values. Steps stand in the sequence of the two sweeps, each within one turn of the ring that
// they go through. Which value of the factors goes to which word is kept beside: new values are brought in by one pass.
// Bytes that an application reads, at a width of 3: 32 an update, and 32 a row. Made on the host: integers only.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/host.hpp"
#include "krilu/matrix.hpp"
#include "sparse/split.hpp"

namespace krilu::triangular {

struct PackedStep {
  std::uint32_t at;  // bytes from the ring's beginning
  std::uint32_t rows;
  std::uint32_t end;    // of the step, from the part's beginning, in units of 16 bytes
  std::uint32_t begin;  // the same
};

/// Words of a row's update that hold its columns and its own place.
KRILU_INLINE constexpr unsigned packed_column_words(unsigned width) { return (width + 4) / 4; }
constexpr std::size_t packed_most_shared = 220 << 10;  // of shared memory, that a part may take
constexpr unsigned packed_widths[] = {3, 7, 15};       // columns and the row fill their words

/// Shared memory that a part takes: the ring, x and the steps with two empty ones behind.
constexpr std::size_t packed_shared_bytes(std::uint32_t ring_units, Index steps, Index rows) {
  return 16 * (std::size_t(ring_units) + std::size_t(steps) + 2 + (std::size_t(rows) + 1) / 2);
}

struct Packed {
  unsigned width = 3, threads = 128;
  std::vector<Index> part_row, part_step;  // parts + 1
  std::vector<std::uint32_t> part_unit;    // parts + 1: where each part's stream begins, in units of 16 bytes
  std::vector<PackedStep> steps;
  Buffer<std::uint64_t> words;          // columns are in place, values are zero
  Buffer<Offset> from;                  // of each word: the position of its value in the factors, or -1
  Index most_rows = 0, most_steps = 0;  // of a part
  std::uint32_t ring_units = 0;         // a power of two

  Index parts() const { return part_row.empty() ? 0 : Index(part_row.size()) - 1; }
  std::size_t shared_bytes() const { return packed_shared_bytes(ring_units, most_steps, most_rows); }
};

/// factors: in local rows, with every diagonal entry (`diagonal`: its position). order: schedule::by_parts's. Width and
/// threads 0: what should be fastest. Returns nothing (no parts) where a part has 2^16 rows or more or does not fit
/// shared memory, or where all parts together have 2^31 words.
Packed pack(const exec::Host& host, const CsrView& factors, const Offset* diagonal, const sparse::RowOrder& order,
            unsigned width = 0, unsigned threads = 0);

}  // namespace krilu::triangular
