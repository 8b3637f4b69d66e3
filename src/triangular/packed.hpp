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
// Made on the host: integers only.
//
// Values that were rounded stand two or four to a word, in the same steps: their places follow from the rows of each
// step (place_steps), their words from those of the doubles (round_update), so that nothing is analysed again. Widths
// are chosen for doubles; smaller values favour wider updates a little more. Bytes that an application reads, at a
// width of 3: 32 an update and 32 a row in double; 24 an update for floats, 16 for values of 16 bits, and 16 a row for
// both.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>
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
/// Those that hold its values, of this many bytes each.
KRILU_INLINE constexpr unsigned packed_value_words(unsigned width, unsigned value_bytes) {
  return (width * value_bytes + 7) / 8;
}
/// Units of 16 bytes that so many updates take, side by side.
KRILU_INLINE constexpr std::uint64_t packed_units(unsigned width, unsigned value_bytes, std::uint64_t updates) {
  return (updates * (packed_column_words(width) + packed_value_words(width, value_bytes)) + 1) / 2;
}
constexpr std::size_t packed_most_shared = 220 << 10;  // of shared memory, that a part may take
constexpr unsigned packed_widths[] = {3, 7, 15};       // columns and the row fill their words

/// What all parts have in common, whatever their values are stored in.
struct PackedShape {
  unsigned width = 3, threads = 128;
  Index most_rows = 0, most_steps = 0;  // of a part
  std::uint32_t most_updates = 0;       // of a step

  /// Length of the ring for values of this many bytes, in units of 16 bytes: four of the largest steps, and more where
  /// four parts still fit a multiprocessor, up to as many steps ahead as 32 KB of doubles are. A power of two.
  std::uint32_t ring_for(unsigned value_bytes) const;
  /// Shared memory that a part takes: the ring, x and the steps with two empty ones behind. x stands in double where
  /// values do, else in single precision.
  std::size_t shared_bytes(std::uint32_t ring_units, unsigned value_bytes) const {
    const std::size_t x_bytes = value_bytes < 8 ? 4 : 8;
    return 16 * (std::size_t(ring_units) + std::size_t(most_steps) + 2 + (std::size_t(most_rows) * x_bytes + 15) / 16);
  }
};

struct Packed : PackedShape {
  std::vector<Index> part_row, part_step;  // parts + 1
  std::vector<std::uint32_t> part_unit;    // parts + 1: where each part's stream begins, in units of 16 bytes
  std::vector<PackedStep> steps;
  Buffer<std::uint64_t> words;   // columns are in place, values are zero
  Buffer<Offset> from;           // of each word: the position of its value in the factors, or -1
  std::uint32_t ring_units = 0;  // ring_for doubles

  Index parts() const { return part_row.empty() ? 0 : Index(part_row.size()) - 1; }
  std::size_t shared_bytes() const { return PackedShape::shared_bytes(ring_units, sizeof(double)); }
};

/// factors: in local rows, with every diagonal entry (`diagonal`: its position). order: schedule::by_parts's. asked: 1
/// for each row whose x is asked for, or empty: for all; updates that lead to none of them are left out, and rows that
/// are not asked for have no x then. Of overlap in natural order that is the part before the rows that are owned, in
/// the backward sweep. Width and threads 0: what should be fastest. Returns nothing (no parts) where a part has 2^16
/// rows or more or does not fit shared memory, or where all parts together have 2^31 words.
Packed pack(const exec::Host& host, const CsrView& factors, const Offset* diagonal, const sparse::RowOrder& order,
            const std::vector<std::uint8_t>& asked = {}, unsigned width = 0, unsigned threads = 0);

/// Gives a part's steps, of which `rows` is looked at in `from`, their places in a stream of values of this many bytes.
/// Returns the stream's length in units of 16 bytes. `to` may be `from`.
KRILU_INLINE std::uint32_t place_steps(const PackedStep* from, Index count, unsigned width, unsigned value_bytes,
                                       std::uint32_t ring_units, PackedStep* to) {
  std::uint32_t at = 0;
  for (Index q = 0; q < count; ++q) {
    const std::uint32_t rows = from[q].rows, length = std::uint32_t(packed_units(width, value_bytes, rows));
    const std::uint32_t left = ring_units - at % ring_units;
    if (length > left) at += left;
    to[q] = {at % ring_units * 16, rows, at + length, at};
    at += length;
  }
  return at;
}

/// A value's bits as they stand in a word.
template <class S>
using PackedBits =
    std::conditional_t<sizeof(S) == 8, std::uint64_t, std::conditional_t<sizeof(S) == 4, std::uint32_t, std::uint16_t>>;

/// Brings update t of a step of `rows` from doubles to values of type S; `from` and `to` are where the step begins in
/// either stream. round(i, j, v) is what becomes of v in row i and column j, counted from the part's first row; padding
/// is a zero on the diagonal.
template <class S, class Round>
KRILU_INLINE void round_update(const std::uint64_t* from, unsigned width, unsigned rows, unsigned t, const Round& round,
                               std::uint64_t* to) {
  constexpr unsigned in_a_word = 8 / sizeof(S);
  const unsigned columns = packed_column_words(width);
  const auto place = [=](unsigned k) { return Index(from[k / 4 * rows + t] >> k % 4 * 16 & 0xffffu); };
  for (unsigned k = 0; k < columns; ++k) to[k * rows + t] = from[k * rows + t];
  for (unsigned k = 0; k < width; k += in_a_word) {
    std::uint64_t word = 0;
    for (unsigned q = k; q < width && q < k + in_a_word; ++q) {
      const double v = std::bit_cast<double>(from[(columns + q) * rows + t]);
      const S value = round(place(width), place(q), v);
      word |= std::uint64_t(std::bit_cast<PackedBits<S>>(value)) << (q - k) * 8 * sizeof(S);
    }
    to[(columns + k / in_a_word) * rows + t] = word;
  }
}

}  // namespace krilu::triangular
