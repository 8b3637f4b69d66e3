// SPDX-License-Identifier: Apache-2.0
#include "schedule/ordering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <string_view>

#include "base/names.hpp"
#include "exec/host.hpp"
#include "krilu/error.hpp"
#include "schedule/blocks.hpp"
#include "schedule/metis.hpp"

namespace krilu::schedule {

namespace {

Index degree(const CsrView& g, Index i) { return g.offsets[i + 1] - g.offsets[i]; }

/// Breadth-first levels from `root` over rows not yet placed. Returns the last level's rows and the number of levels.
struct Breadth {
  std::vector<Index> last;
  Index depth = 0;
};
Breadth breadth_first(const CsrView& g, Index root, std::vector<Index>& seen, Index stamp) {
  Breadth b;
  std::vector<Index> front{root}, next;
  seen[std::size_t(root)] = stamp;
  while (!front.empty()) {
    ++b.depth;
    next.clear();
    for (Index i : front)
      for (Offset k = g.offsets[i]; k < g.offsets[i + 1]; ++k) {
        Index& mark = seen[std::size_t(g.columns[k])];
        if (mark != stamp && mark >= 0) {
          mark = stamp;
          next.push_back(g.columns[k]);
        }
      }
    std::swap(front, next);
    if (front.empty()) b.last = std::move(next);
  }
  return b;
}

}  // namespace

Order inverse(const Order& order) {
  Order rank(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) rank[std::size_t(order[k])] = Index(k);
  return rank;
}

Order reverse_cuthill_mckee(const CsrView& g) {
  Order order;
  order.reserve(std::size_t(g.rows));
  constexpr Index placed = -1;
  std::vector<Index> seen(std::size_t(g.rows), 0);  // a stamp of the last search, or `placed`
  Index stamp = 0;
  for (Index start = 0; start < g.rows; ++start) {
    if (seen[std::size_t(start)] == placed) continue;
    // A pseudo-peripheral root: walk to a row of least degree in the last level while the depth grows.
    Index root = start;
    Breadth here = breadth_first(g, root, seen, ++stamp);
    for (;;) {
      const Index far = *std::min_element(here.last.begin(), here.last.end(),
                                          [&](Index a, Index b) { return degree(g, a) < degree(g, b); });
      Breadth there = breadth_first(g, far, seen, ++stamp);
      if (there.depth <= here.depth) break;
      root = far;
      here = std::move(there);
    }
    // Cuthill-McKee: neighbours by ascending degree.
    std::size_t head = order.size();
    order.push_back(root);
    seen[std::size_t(root)] = placed;
    while (head < order.size()) {
      const Index i = order[head++];
      const std::size_t first = order.size();
      for (Offset k = g.offsets[i]; k < g.offsets[i + 1]; ++k) {
        const Index j = g.columns[k];
        if (seen[std::size_t(j)] == placed) continue;
        seen[std::size_t(j)] = placed;
        order.push_back(j);
      }
      std::sort(order.begin() + std::ptrdiff_t(first), order.end(),
                [&](Index a, Index b) { return degree(g, a) != degree(g, b) ? degree(g, a) < degree(g, b) : a < b; });
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<Index> colour_greedily(const CsrView& g, Index& count) {
  std::vector<Index> colour(std::size_t(g.rows), -1);
  std::vector<Index> taken;  // taken[c] == i: a neighbour of row i has colour c
  for (Index i = 0; i < g.rows; ++i) {
    for (Offset k = g.offsets[i]; k < g.offsets[i + 1]; ++k)
      if (const Index c = colour[std::size_t(g.columns[k])]; c >= 0) taken[std::size_t(c)] = i;
    Index c = 0;
    while (std::size_t(c) < taken.size() && taken[std::size_t(c)] == i) ++c;
    if (std::size_t(c) == taken.size()) taken.push_back(-1);
    colour[std::size_t(i)] = c;
  }
  count = Index(taken.size());
  return colour;
}

std::vector<Index> colour_columns(const CsrView& a, Index& count) {
  // The rows of each column.
  std::vector<Offset> first(std::size_t(a.cols) + 1, 0);
  for (Offset k = 0; k < a.nnz(); ++k) ++first[std::size_t(a.columns[k]) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<Index> row(std::size_t(a.nnz()));
  std::vector<Offset> next(first.begin(), first.end() - 1);
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) row[std::size_t(next[std::size_t(a.columns[k])]++)] = i;

  std::vector<Index> colour(std::size_t(a.cols), -1);
  std::vector<Index> taken;  // taken[c] == j: a column that shares a row with column j has colour c
  for (Index j = 0; j < a.cols; ++j) {
    for (Offset k = first[std::size_t(j)]; k < first[std::size_t(j) + 1]; ++k) {
      const Index i = row[std::size_t(k)];
      for (Offset e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
        if (const Index c = colour[std::size_t(a.columns[e])]; c >= 0) taken[std::size_t(c)] = j;
    }
    Index c = 0;
    while (std::size_t(c) < taken.size() && taken[std::size_t(c)] == j) ++c;
    if (std::size_t(c) == taken.size()) taken.push_back(-1);
    colour[std::size_t(j)] = c;
  }
  count = Index(taken.size());
  return colour;
}

namespace {

/// Rows by ascending class, natural order within a class.
Order by_class(const std::vector<Index>& of_row, Index classes) {
  std::vector<Index> next(std::size_t(classes) + 1, 0);
  for (Index c : of_row) ++next[std::size_t(c) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  Order order(of_row.size());
  for (std::size_t i = 0; i < of_row.size(); ++i) order[std::size_t(next[std::size_t(of_row[i])]++)] = Index(i);
  return order;
}

}  // namespace

Order multicolour(const CsrView& g) {
  Index count = 0;
  const std::vector<Index> colour = colour_greedily(g, count);
  return by_class(colour, count);
}

std::vector<Index> partition(const CsrView& g, Index parts) {
  std::vector<Index> part(std::size_t(g.rows), 0);
  if (parts <= 1 || g.rows == 0 || g.nnz() == 0) {
    // METIS refuses an empty graph: rows without neighbours are dealt in ranges.
    for (Index i = 0; parts > 1 && i < g.rows; ++i)
      part[std::size_t(i)] = Index(std::int64_t(i) * parts / std::max(g.rows, Index(1)));
    return part;
  }
  static_assert(sizeof(idx_t) == sizeof(Index), "Debian's METIS has 32-bit indices");
  idx_t n = g.rows, constraints = 1, k = std::min(parts, g.rows), cut = 0;
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = 1;
  const std::lock_guard alone(metis_in_use);
  const int status = METIS_PartGraphKway(&n, &constraints, const_cast<idx_t*>(g.offsets), const_cast<idx_t*>(g.columns),
                                         nullptr, nullptr, nullptr, &k, nullptr, nullptr, options, &cut, part.data());
  if (status != METIS_OK)
    throw Error(
        fmt::format("METIS could not cut the graph of {} rows into {} parts (status {})", g.rows, parts, status));
  return part;
}

Order metis_parts(const CsrView& g, Index parts) {
  if (parts == 0) parts = g.rows / 512;
  parts = std::clamp(parts, Index(1), std::max(Index(1), g.rows));
  return by_class(partition(g, parts), parts);
}

Order block_multicolour(const CsrView& a, const CsrView& adjacency, Index rows) {
  BlockTuning tuning;
  if (rows > 0) tuning.rows = rows;
  const Blocks<exec::Host> blocks = BlockBuilder<exec::Host>(exec::Host(1), a, adjacency, tuning).build();
  Order order(std::size_t(adjacency.rows));
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](Index i) { return std::pair{blocks.colour.data()[i], blocks.block.data()[i]}; };
  std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) { return key(i) < key(j); });
  return order;
}

const std::vector<std::string>& ordering_names() {
  static const std::vector<std::string> names{"natural", "rcm", "multicolour", "block-multicolour", "metis"};
  return names;
}

namespace {
constexpr std::string_view metis_prefix = "metis:", block_prefix = "block-multicolour:";

/// The number after a name's colon: from 1 to `most`.
Index number_of(const std::string& name, std::string_view prefix, const char* what, Index most) {
  Index number = 0;
  const char* begin = name.data() + prefix.size();
  const char* end = name.data() + name.size();
  const auto [stop, status] = std::from_chars(begin, end, number);
  if (status != std::errc() || stop != end || number < 1 || number > most)
    throw Error(
        most == std::numeric_limits<Index>::max()
            ? fmt::format("ordering '{}': {} in {}{} is a whole number from 1", name, what, prefix, what)
            : fmt::format("ordering '{}': {} in {}{} is a whole number from 1 to {}", name, what, prefix, what, most));
  return number;
}
Index parts_of(const std::string& name) {
  return number_of(name, metis_prefix, "PARTS", std::numeric_limits<Index>::max());
}
}  // namespace

bool is_block_ordering(const std::string& name) {
  return name == "block-multicolour" || name.starts_with(block_prefix);
}

Index block_rows_of(const std::string& name) {
  return name.starts_with(block_prefix) ? number_of(name, block_prefix, "ROWS", 32) : 0;
}

void require_ordering_name(const std::string& name) {
  if (name.starts_with(metis_prefix))
    parts_of(name);
  else if (name.starts_with(block_prefix))
    block_rows_of(name);
  else
    require_name("ordering", name, ordering_names());
}

Order order_by_name(const std::string& name, const CsrView& a, const CsrView& adjacency) {
  require_ordering_name(name);
  if (name == "rcm") return reverse_cuthill_mckee(adjacency);
  if (name == "multicolour") return multicolour(adjacency);
  if (is_block_ordering(name)) return block_multicolour(a, adjacency, block_rows_of(name));
  if (name == "metis") return metis_parts(adjacency);
  if (name.starts_with(metis_prefix)) return metis_parts(adjacency, parts_of(name));
  return {};
}

}  // namespace krilu::schedule
