// SPDX-License-Identifier: Apache-2.0
#include "schedule/nested_dissection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "krilu/error.hpp"
#include "schedule/metis.hpp"

namespace krilu::schedule {

namespace {

/// for_each_before(k, walk) calls walk(j) for places j < k whose subtrees' union is row k of the factor. The tree grows
/// with the walks: a place without a parent gets the first one that it is reached from.
template <class ForEach>
std::int64_t count_rows_of_factor(Index n, std::int64_t most, ForEach for_each_before) {
  std::vector<Index> parent(std::size_t(n), -1), reached_by(std::size_t(n), -1);
  std::int64_t count = 0;
  for (Index k = 0; k < n && count <= most; ++k) {
    reached_by[std::size_t(k)] = k;
    ++count;
    for_each_before(k, [&](Index j) {
      for (; reached_by[std::size_t(j)] != k; j = parent[std::size_t(j)]) {
        if (parent[std::size_t(j)] < 0) parent[std::size_t(j)] = k;
        reached_by[std::size_t(j)] = k;
        ++count;
      }
    });
  }
  return count;
}

}  // namespace

Order nested_dissection(const CsrView& g) {
  Order order(static_cast<std::size_t>(g.rows));
  std::iota(order.begin(), order.end(), 0);
  if (g.nnz() == 0) return order;  // METIS refuses an empty graph
  static_assert(sizeof(idx_t) == sizeof(Index), "Debian's METIS has 32-bit indices");
  idx_t n = g.rows;
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = 1;
  Order place(order.size());
  const std::lock_guard alone(metis_in_use);
  const int status = METIS_NodeND(&n, const_cast<idx_t*>(g.offsets), const_cast<idx_t*>(g.columns), nullptr, options,
                                  order.data(), place.data());
  if (status != METIS_OK) throw Error(fmt::format("METIS could not order the graph of {} rows (status {})", n, status));
  return order;
}

std::int64_t factor_entries(const CsrView& g, const Order& order, std::int64_t most) {
  const Order place = inverse(order);
  return count_rows_of_factor(g.rows, most, [&](Index k, auto walk) {
    const Index row = order[std::size_t(k)];
    for (Offset p = g.offsets[row]; p < g.offsets[row + 1]; ++p)
      if (const Index j = place[std::size_t(g.columns[p])]; j < k) walk(j);
  });
}

std::int64_t factor_entries_with_exchanges(const CsrView& a, const CsrView& transpose, const Order& order,
                                           std::int64_t most) {
  // A row of A makes its columns neighbours of one another in A^T A. Where only the first of them is a neighbour of the
  // others, its elimination makes the rest of these edges, and the factor is the same.
  const Order place = inverse(order);
  std::vector<Index> first(std::size_t(a.rows), a.cols);
  for (Index i = 0; i < a.rows; ++i)
    for (Offset p = a.offsets[i]; p < a.offsets[i + 1]; ++p)
      first[std::size_t(i)] = std::min(first[std::size_t(i)], place[std::size_t(a.columns[p])]);
  return count_rows_of_factor(a.cols, most, [&](Index k, auto walk) {
    const Index column = order[std::size_t(k)];
    for (Offset p = transpose.offsets[column]; p < transpose.offsets[column + 1]; ++p)
      if (const Index j = first[std::size_t(transpose.columns[p])]; j < k) walk(j);
  });
}

bool has_full_structural_rank(const CsrView& a) {
  const auto n = std::size_t(a.rows);
  std::vector<Index> row_of(n, -1);  // of each column
  std::vector<char> has_column(n, 0);
  for (Index i = 0; i < a.rows; ++i)  // a full diagonal is an answer
    if (std::binary_search(a.columns + a.offsets[i], a.columns + a.offsets[i + 1], i)) {
      row_of[std::size_t(i)] = i;
      has_column[std::size_t(i)] = 1;
    }
  std::vector<Offset> ahead(a.offsets, a.offsets + n);  // entries before it are in columns that are taken, for good
  std::vector<Offset> next(n);
  std::vector<Index> seen_by(n, -1), path;  // seen_by: of each column
  for (Index start = 0; start < a.rows; ++start) {
    if (has_column[std::size_t(start)]) continue;
    path.assign(1, start);
    next[std::size_t(start)] = a.offsets[start];
    Index free_column = -1;
    while (!path.empty()) {
      const Index i = path.back();
      for (Offset& p = ahead[std::size_t(i)]; p < a.offsets[i + 1]; ++p)
        if (row_of[std::size_t(a.columns[p])] < 0) {
          free_column = a.columns[p];
          break;
        }
      if (free_column >= 0) break;
      Offset& p = next[std::size_t(i)];
      while (p < a.offsets[i + 1] && seen_by[std::size_t(a.columns[p])] == start) ++p;
      if (p == a.offsets[i + 1]) {
        path.pop_back();
        continue;
      }
      const Index j = a.columns[p++];
      seen_by[std::size_t(j)] = start;
      path.push_back(row_of[std::size_t(j)]);
      next[std::size_t(path.back())] = a.offsets[path.back()];
    }
    if (free_column < 0) return false;
    // The last row of the path takes the free column, and each before it the column that leads to the next.
    for (std::size_t q = path.size(); q-- > 0;) {
      const Index i = path[q];
      row_of[std::size_t(free_column)] = i;
      if (q > 0) free_column = a.columns[next[std::size_t(path[q - 1])] - 1];
    }
    has_column[std::size_t(start)] = 1;
  }
  return true;
}

}  // namespace krilu::schedule
