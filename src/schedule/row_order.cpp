// SPDX-License-Identifier: Apache-2.0
#include "schedule/row_order.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

#include "exec/tasks.hpp"
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

/// Row k of an order, which is the natural one where it is empty.
Index row_at(const Order& order, Index k) { return order.empty() ? k : order[std::size_t(k)]; }

constexpr Index most_lengths = 255;  // rows longer than this are not told apart

/// Entries before the diagonal, then those after it, in the order of number(row): what rows of a level are sorted by.
template <class Number>
std::uint16_t lengths(const CsrView& a, Index row, Number number) {
  Index before = 0, after = 0;
  const Index own = number(row);
  for (Offset k = a.offsets[row]; k < a.offsets[row + 1]; ++k) {
    const Index other = number(a.columns[k]);
    before += other < own;
    after += other > own;
  }
  return std::uint16_t(std::min(before, most_lengths) << 8 | std::min(after, most_lengths));
}
Index as_it_is(Index row) { return row; }

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
    const auto ranked = [&](Index row) { return rank[std::size_t(row)]; };
    for (Index i = begin; i < end; ++i)
      length[std::size_t(i)] = is_natural ? lengths(a, i, as_it_is) : lengths(a, i, ranked);
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
  if (parts.size() <= 2) return by_levels(host, a, adjacency, {});
  const std::size_t count = parts.size() - 1;
  sparse::RowOrder out;
  out.rows = natural(a.rows);
  out.place.resize(out.rows.size());
  out.keeps_sequence = true;
  struct Key {
    Index level;
    std::uint16_t lengths;
    auto operator<=>(const Key&) const = default;
  };
  std::vector<Key> key(out.rows.size());
  std::vector<std::vector<Index>> ends(count);  // of the levels of each part
  exec::for_each_task(host, count, [&](std::size_t p) {
    const Index begin = parts[p], end = parts[p + 1];
    for (Index i = begin; i < end; ++i) {
      Index own = 0;
      for (Offset k = adjacency.offsets[i]; k < adjacency.offsets[i + 1]; ++k)
        if (const Index j = adjacency.columns[k]; j < i) own = std::max(own, key[std::size_t(j)].level + 1);
      key[std::size_t(i)] = {own, lengths(a, i, as_it_is)};
    }
    const auto of = [&](Index row) { return key[std::size_t(row)]; };
    std::ranges::stable_sort(std::span(out.rows).subspan(std::size_t(begin), std::size_t(end - begin)), {}, of);
    for (Index k = begin; k < end; ++k) {
      const Index row = out.rows[std::size_t(k)];
      out.place[std::size_t(row)] = k;
      if (k + 1 == end || of(row).level != of(out.rows[std::size_t(k) + 1]).level) ends[p].push_back(k + 1);
    }
  });
  out.group = {0};
  out.part = {0};
  for (const std::vector<Index>& of_part : ends) {
    out.group.insert(out.group.end(), of_part.begin(), of_part.end());
    out.part.push_back(Index(out.group.size()) - 1);
  }
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

std::vector<Index> nodes_of(const CsrView& a, const Order& order) {
  const auto row = [&](Index k) { return row_at(order, k); };
  const auto columns = [&](Index i) { return std::span(a.columns + a.offsets[i], a.columns + a.offsets[i + 1]); };
  const auto has = [](std::span<const Index> of, Index i) { return std::binary_search(of.begin(), of.end(), i); };
  std::vector<Index> node{0};
  for (Index first = 0, next = 0; first < a.rows; first = next) {
    const std::span<const Index> shared = columns(row(first));
    const auto joins = [&](Index i) { return std::ranges::equal(shared, columns(i)) && has(shared, i); };
    next = first + 1;
    while (next < a.rows && next - first < sparse::most_node_rows && joins(row(next))) ++next;
    if (next > first + 1 && !has(shared, row(first))) next = first + 1;
    node.push_back(next);
  }
  return node;
}

namespace {

/// Whether a tenth of the rows, as far as one in so many tells, have the columns of the row behind them.
bool seem_nodes(const CsrView& a, const Order& order) {
  constexpr Index looked_at = 1000;
  const auto columns = [&](Index k) {
    const Index i = row_at(order, k);
    return std::span(a.columns + a.offsets[i], a.columns + a.offsets[i + 1]);
  };
  Index looks = 0, same = 0;
  for (Index k = 0; k + 1 < a.rows; k += a.rows / looked_at + 1, ++looks)
    same += std::ranges::equal(columns(k), columns(k + 1));
  return 10 * same > looks;
}

/// nodes_of, or nothing where too few rows share their columns.
std::vector<Index> worthwhile_nodes(const CsrView& a, const Order& order) {
  constexpr double least = 1.6;  // entries a column
  if (!seem_nodes(a, order)) return {};
  std::vector<Index> node = nodes_of(a, order);
  double columns = 0;
  for (std::size_t n = 0; n + 1 < node.size(); ++n) {
    const Index first = row_at(order, node[n]);
    columns += double(a.offsets[first + 1] - a.offsets[first]);
  }
  const bool many = columns > 0 && double(a.offsets[a.rows]) >= least * columns;
  return many ? std::move(node) : std::vector<Index>();
}

}  // namespace

sparse::RowOrder for_sweeps(const exec::Host& host, const CsrView& a, const CsrView& adjacency, const Order& order) {
  const std::vector<Index> node = worthwhile_nodes(a, order);
  if (node.empty()) return by_levels(host, a, adjacency, order);
  sparse::RowOrder out;
  out.rank = inverse(order);
  const auto row = [&](Index k) { return row_at(order, k); };
  const auto rank = [&](Index i) { return order.empty() ? i : out.rank[std::size_t(i)]; };
  std::vector<Index> level(std::size_t(a.rows)), node_of(std::size_t(a.rows));
  for (std::size_t n = 0; n + 1 < node.size(); ++n) {
    Index own = 0;
    for (Index k = node[n]; k < node[n + 1]; ++k)
      for (Offset e = adjacency.offsets[row(k)]; e < adjacency.offsets[row(k) + 1]; ++e)
        if (const Index other = adjacency.columns[e]; rank(other) < node[n])
          own = std::max(own, level[std::size_t(other)] + 1);
    for (Index k = node[n]; k < node[n + 1]; ++k) {
      level[std::size_t(row(k))] = own;
      node_of[std::size_t(row(k))] = Index(n);
    }
  }
  LevelOrder sorted = sort_by_level(level, order.empty() ? nullptr : &order);
  out.rows = std::move(sorted.rows);
  out.group = std::move(sorted.offsets);
  out.place = inverse(out.rows);
  out.keeps_sequence = true;
  const auto node_at = [&](Index k) { return node_of[std::size_t(out.rows[std::size_t(k)])]; };
  for (Index k = 0; k < a.rows; ++k)
    if (k == 0 || node_at(k) != node_at(k - 1)) out.node.push_back(k);
  out.node.push_back(a.rows);
  return out;
}

sparse::RowOrder for_products(const CsrView& a, const Order& order) {
  std::vector<Index> node = worthwhile_nodes(a, order);
  if (node.empty()) return by_windows(a, order);
  sparse::RowOrder out;
  out.rows = order.empty() ? natural(a.rows) : order;
  out.group = {0, a.rows};
  out.rank = inverse(order);
  out.place = inverse(out.rows);
  out.node = std::move(node);
  out.keeps_sequence = true;
  return out;
}

}  // namespace krilu::schedule
