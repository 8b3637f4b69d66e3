// SPDX-License-Identifier: Apache-2.0
// Sorting of rows by column and summing of duplicates; see coordinates.hpp.
#include "io/coordinates.hpp"

namespace krilu::io {

namespace {

/// Sorts one row and adds up duplicates. Returns the number of entries left at its front; `lower` grows by the
/// duplicates on or below the diagonal.
Offset sort_row(Index row, Index* columns, double* values, Offset n, std::vector<std::pair<Index, double>>& scratch,
                std::int64_t& lower) {
  Offset sorted = 1;
  while (sorted < n && columns[sorted - 1] < columns[sorted]) ++sorted;
  if (sorted >= n) return n;

  // By value within a column, so that the sum of duplicates does not hang on the order in which threads placed them.
  scratch.resize(static_cast<std::size_t>(n));
  for (Offset k = 0; k < n; ++k) scratch[static_cast<std::size_t>(k)] = {columns[k], values[k]};
  std::sort(scratch.begin(), scratch.end());
  Offset kept = 0;
  for (const auto& [column, value] : scratch) {
    if (kept > 0 && columns[kept - 1] == column) {
      values[kept - 1] += value;
      lower += column <= row;
    } else {
      columns[kept] = column;
      values[kept++] = value;
    }
  }
  if (kept < n) {
    for (Offset k = 0; k < kept; ++k) {
      if (!std::isfinite(values[k])) throw SumTooLarge{row, columns[k]};
    }
  }
  return kept;
}

/// Splits the rows into ranges of about equal work; the k-th is ranges[k] .. ranges[k+1]-1.
std::vector<Index> balanced_rows(const Buffer<Offset>& offsets, int threads) {
  const std::size_t rows = offsets.size() - 1;
  const std::size_t ranges = threads > 1 ? 4 * static_cast<std::size_t>(threads) : 1;
  std::vector<Index> first(ranges + 1);
  for (std::size_t k = 0; k <= ranges; ++k) {
    // Rows and entries count alike, so that long stretches of empty rows are split as well.
    const std::size_t work = (rows + static_cast<std::size_t>(offsets[rows])) * k / ranges;
    std::size_t low = 0, high = rows;
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (middle + static_cast<std::size_t>(offsets[middle]) < work) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    first[k] = static_cast<Index>(low);
  }
  return first;
}

}  // namespace

std::int64_t sort_rows(CsrMatrix& a, bool lower_only, int threads) {
  const std::vector<Index> ranges = balanced_rows(a.offsets, threads);
  Buffer<Offset> kept;  // entries that stay in each row; made by the first row that loses any
  std::mutex guard;
  std::atomic<bool> any{false};
  std::atomic<std::int64_t> lower_duplicates{0};
  for_pieces(threads, ranges.size() - 1, [&](std::size_t k) {
    std::vector<std::pair<Index, double>> scratch;
    std::int64_t lower = 0;
    for (Index r = ranges[k]; r < ranges[k + 1]; ++r) {
      const std::size_t row = static_cast<std::size_t>(r);
      const Offset begin = a.offsets[row], n = a.offsets[row + 1] - begin;
      const Offset left = sort_row(r, a.columns.data() + begin, a.values.data() + begin, n, scratch, lower);
      if (left == n) continue;
      if (!any.load(std::memory_order_acquire)) {
        const std::lock_guard<std::mutex> lock(guard);
        if (!any.load(std::memory_order_relaxed)) {
          kept = Buffer<Offset>(static_cast<std::size_t>(a.rows));
          std::fill(kept.begin(), kept.end(), -1);
          any.store(true, std::memory_order_release);
        }
      }
      kept[row] = left;
    }
    lower_duplicates += lower;
  });
  if (!any) return 0;

  Offset to = 0;
  for (std::size_t r = 0; r < static_cast<std::size_t>(a.rows); ++r) {
    const Offset from = a.offsets[r];
    const Offset n = kept[r] >= 0 ? kept[r] : a.offsets[r + 1] - from;
    std::copy_n(a.columns.begin() + from, n, a.columns.begin() + to);
    std::copy_n(a.values.begin() + from, n, a.values.begin() + to);
    a.offsets[r] = to;
    to += n;
  }
  const std::int64_t lost = a.offsets.back() - to;
  a.offsets.back() = to;
  a.columns.resize(static_cast<std::size_t>(to));
  a.values.resize(static_cast<std::size_t>(to));
  return lower_only ? lower_duplicates.load() : lost;
}

}  // namespace krilu::io
