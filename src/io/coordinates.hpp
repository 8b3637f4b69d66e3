// SPDX-License-Identifier: Apache-2.0
// Coordinates (row, column, value) to compressed rows: a counting sort by row, then each row by column, duplicates
// summed.
//
// The entries come in pieces, as the threads that read them left them. Each piece is freed once it is placed, so that
// a file in row order needs little beyond the larger of the two forms. Duplicates of one place are added in an order
// that depends on their values alone, so that the sum is the same for every number of threads.
// Cost: O(nonzeros + rows), and O(k log k) for a row of k entries that does not come in order.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "io/scan.hpp"
#include "krilu/error.hpp"
#include "krilu/matrix.hpp"

namespace krilu::io {

struct Place {  // of a pattern: its value is 1
  Index row, column;
};
struct Entry {
  Index row, column;
  double value;
};

inline double value_of(const Place&) { return 1.0; }
inline double value_of(const Entry& e) { return e.value; }

/// What an entry (i, j) says of (j, i).
enum class Mirror { none, same, negated };

/// Thrown where the sum of duplicates is beyond the largest double; the caller knows the file's name.
struct SumTooLarge {
  Index row, column;
};
/// Thrown where the full matrix would have 2^31 or more entries.
struct TooManyEntries {
  std::int64_t entries;
};

/// `pieces` are freed on the way unless `keep`. `duplicates` is the number of given entries, not of mirrored ones, that
/// were added to an earlier one.
template <class E>
CsrMatrix to_csr(Index rows, Index cols, std::vector<Buffer<E>>& pieces, Mirror mirror, bool keep, int threads,
                 std::int64_t& duplicates);

/// Sorts the rows by column, adds up duplicates and closes the gaps. Returns the number of duplicates; with
/// `lower_only` of those on and below the diagonal.
std::int64_t sort_rows(CsrMatrix& a, bool lower_only, int threads);

// --- implementation -------------------------------------------------------------------------------------------------

template <class E>
CsrMatrix to_csr(Index rows, Index cols, std::vector<Buffer<E>>& pieces, Mirror mirror, bool keep, int threads,
                 std::int64_t& duplicates) {
  const bool shared = threads > 1;  // a row's counter may be another thread's, too
  CsrMatrix a;
  a.rows = rows;
  a.cols = cols;
  a.offsets = Buffer<Offset>(static_cast<std::size_t>(rows) + 1);
  std::fill(a.offsets.begin(), a.offsets.end(), 0);
  Offset* const offsets = a.offsets.data();

  const auto count = [&](auto add) {
    for_pieces(threads, pieces.size(), [&](std::size_t k) {
      for (const E& e : pieces[k]) {
        add(offsets[e.row]);
        if (mirror != Mirror::none && e.row != e.column) add(offsets[e.column]);
      }
    });
  };
  if (shared) {
    count([](Offset& n) { std::atomic_ref<Offset>(n).fetch_add(1, std::memory_order_relaxed); });
  } else {
    count([](Offset& n) { ++n; });
  }

  std::int64_t total = 0;
  for (Index r = 0; r < rows; ++r) total += offsets[r];
  if (total > INT32_MAX) throw TooManyEntries{total};
  Offset end = 0;
  for (Index r = 0; r < rows; ++r) offsets[r] = end += offsets[r];
  offsets[rows] = end;

  a.columns = Buffer<Index>(static_cast<std::size_t>(total));
  a.values = Buffer<double>(static_cast<std::size_t>(total));
  Index* const columns = a.columns.data();
  double* const values = a.values.data();
  // offsets[r] is the end of row r and moves down to its start as the row fills from the back. Backwards through the
  // entries, too: a file that is in order, by rows or by columns, then needs no sorting on one thread.
  const auto place = [&](auto take) {
    for_pieces(threads, pieces.size(), [&](std::size_t k) {
      Buffer<E>& piece = pieces[pieces.size() - 1 - k];
      for (std::size_t i = piece.size(); i-- > 0;) {
        const E e = piece[i];
        const double value = value_of(e);
        const Offset at = take(offsets[e.row]);
        columns[at] = e.column;
        values[at] = value;
        if (mirror != Mirror::none && e.row != e.column) {
          const Offset mirrored = take(offsets[e.column]);
          columns[mirrored] = e.row;
          values[mirrored] = mirror == Mirror::negated ? -value : value;
        }
      }
      if (!keep) Buffer<E>().swap(piece);
    });
  };
  if (shared) {
    place([](Offset& n) { return std::atomic_ref<Offset>(n).fetch_sub(1, std::memory_order_relaxed) - 1; });
  } else {
    place([](Offset& n) { return --n; });
  }
  duplicates = sort_rows(a, mirror != Mirror::none, threads);
  return a;
}

}  // namespace krilu::io
