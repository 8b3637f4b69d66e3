// SPDX-License-Identifier: Apache-2.0
#include "schedule/row_order.hpp"

#include <algorithm>
#include <numeric>

#include "schedule/levels.hpp"

namespace krilu::schedule {

namespace {

/// Stable sort of `rows` by key[row] < keys: a counting sort.
template <class Key>
void sort_stably(std::vector<Index>& rows, Index keys, Key key) {
  std::vector<Index> next(std::size_t(keys) + 1, 0);
  for (Index row : rows) ++next[std::size_t(key(row)) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<Index> sorted(rows.size());
  for (Index row : rows) sorted[std::size_t(next[std::size_t(key(row))]++)] = row;
  rows = std::move(sorted);
}

std::vector<Index> natural(Index n) {
  std::vector<Index> rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

constexpr Index most_lengths = 255;  // rows longer than this are not told apart

}  // namespace

sparse::RowOrder by_levels(const exec::Host& host, const CsrView& a, const CsrView& adjacency, const Order& order) {
  const Order rank = inverse(order);
  const bool is_natural = order.empty();
  const TriangleOf lower{adjacency, Triangle::lower, is_natural ? nullptr : &order, is_natural ? nullptr : &rank};
  // Waiting for one another costs a few threads more than they gain.
  const std::vector<Index> level = levels_sync_free(host.threads() >= 8 ? host : exec::Host(1), lower);

  // Within a level: by entries before the diagonal, then by entries after it, shortest first.
  Buffer<std::uint16_t> length(std::size_t(a.rows));
  host.for_each_range(std::size_t(a.rows), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      Index before = 0, after = 0;
      const Index own = is_natural ? i : rank[std::size_t(i)];
      for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
        const Index other = is_natural ? a.columns[k] : rank[std::size_t(a.columns[k])];
        before += other < own;
        after += other > own;
      }
      length[std::size_t(i)] = std::uint16_t(std::min(before, most_lengths) << 8 | std::min(after, most_lengths));
    }
  });

  sparse::RowOrder out;
  std::vector<Index> rows = is_natural ? natural(a.rows) : order;
  sort_stably(rows, 1 << 16, [&](Index row) { return Index(length[std::size_t(row)]); });
  LevelOrder sorted = sort_by_level(level, &rows);
  out.rows = std::move(sorted.rows);
  out.group = std::move(sorted.offsets);
  out.place = inverse(out.rows);
  out.rank = rank;
  out.keeps_sequence = true;
  return out;
}

sparse::RowOrder by_parts(const exec::Host& host, const CsrView& a, const CsrView& adjacency,
                          const std::vector<Index>& parts) {
  sparse::RowOrder out = by_levels(host, a, adjacency, {});
  const auto count = Index(parts.size()) - 1;
  if (count <= 1) return out;
  std::vector<Index> part_of(std::size_t(a.rows)), level_of(std::size_t(a.rows));
  for (Index p = 0; p < count; ++p)
    std::fill(part_of.begin() + parts[std::size_t(p)], part_of.begin() + parts[std::size_t(p) + 1], p);
  for (std::size_t l = 0; l + 1 < out.group.size(); ++l)
    for (Index k = out.group[l]; k < out.group[l + 1]; ++k) level_of[std::size_t(out.rows[std::size_t(k)])] = Index(l);
  sort_stably(out.rows, count, [&](Index row) { return part_of[std::size_t(row)]; });
  out.group = {0};
  out.part = {0};
  for (Index p = 0; p < count; ++p) {
    const Index last = parts[std::size_t(p) + 1];
    for (Index k = parts[std::size_t(p)]; k < last; ++k)
      if (k + 1 == last ||
          level_of[std::size_t(out.rows[std::size_t(k)])] != level_of[std::size_t(out.rows[std::size_t(k) + 1])])
        out.group.push_back(k + 1);
    out.part.push_back(Index(out.group.size()) - 1);
  }
  out.place = inverse(out.rows);
  return out;
}

sparse::RowOrder by_windows(const CsrView& a, const Order& order) {
  constexpr Index window = 1024;
  sparse::RowOrder out;
  out.rows = order.empty() ? natural(a.rows) : order;
  out.group = {0};
  const auto length = [&](Index row) { return a.offsets[row + 1] - a.offsets[row]; };
  for (Index first = 0; first < a.rows; first += window) {
    const Index last = std::min(a.rows, first + window);
    std::stable_sort(out.rows.begin() + first, out.rows.begin() + last,
                     [&](Index p, Index q) { return length(p) < length(q); });
    out.group.push_back(last);
  }
  out.place = inverse(out.rows);
  if (!order.empty()) out.rank = inverse(order);
  return out;
}

}  // namespace krilu::schedule
