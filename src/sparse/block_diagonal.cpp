// SPDX-License-Identifier: Apache-2.0
#include "sparse/block_diagonal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>
#include <vector>

#include "krilu/error.hpp"

namespace krilu::sparse {

namespace {

/// f(local row, place) for the local rows of all blocks; the threads take blocks as they come. place[j] is the local
/// row of a's row j in the block at hand, -1 where it has none.
template <class F>
void for_local_rows(const exec::Host& host, const CsrView& a, std::span<const Index> offsets,
                    std::span<const Index> row, F f) {
  const Index blocks = offsets.empty() ? 0 : Index(offsets.size()) - 1;
  std::atomic<Index> next{0};
  host.parallel(std::min(host.threads(), int(blocks)), [&](int, int) {
    std::vector<Index> place(std::size_t(a.rows), -1);
    for (Index b = next++; b < blocks; b = next++) {
      const Index begin = offsets[std::size_t(b)], end = offsets[std::size_t(b) + 1];
      for (Index l = begin; l < end; ++l) place[std::size_t(row[std::size_t(l)])] = l;
      for (Index l = begin; l < end; ++l) f(l, place);
      for (Index l = begin; l < end; ++l) place[std::size_t(row[std::size_t(l)])] = -1;
    }
  });
}

}  // namespace

BlockDiagonal block_diagonal(const exec::Host& host, const CsrView& a, std::span<const Index> offsets,
                             std::span<const Index> row) {
  BlockDiagonal d;
  d.rows = Index(row.size());
  d.offsets.resize(row.size() + 1);
  d.offsets[0] = 0;
  for_local_rows(host, a, offsets, row, [&](Index l, const std::vector<Index>& place) {
    const Index i = row[std::size_t(l)];
    Offset count = 0;
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) count += place[std::size_t(a.columns[k])] >= 0;
    d.offsets[std::size_t(l) + 1] = count;
  });
  std::int64_t total = 0;
  for (std::size_t l = 0; l < row.size(); ++l) {
    total += d.offsets[l + 1];
    if (total > std::numeric_limits<Offset>::max())
      throw Error(
          fmt::format("{} overlapping blocks have more than 2^31 - 1 entries together: ask for fewer blocks or "
                      "less overlap",
                      offsets.size() - 1));
    d.offsets[l + 1] = Offset(total);
  }

  d.columns.resize(std::size_t(total));
  d.source.resize(std::size_t(total));
  for_local_rows(host, a, offsets, row, [&](Index l, const std::vector<Index>& place) {
    thread_local std::vector<std::pair<Index, Offset>> entries;
    const Index i = row[std::size_t(l)];
    entries.clear();
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
      if (const Index j = place[std::size_t(a.columns[k])]; j >= 0) entries.emplace_back(j, k);
    if (!std::is_sorted(entries.begin(), entries.end())) std::sort(entries.begin(), entries.end());
    auto at = std::size_t(d.offsets[std::size_t(l)]);
    for (const auto& [column, source] : entries) {
      d.columns[at] = column;
      d.source[at++] = source;
    }
  });
  return d;
}

}  // namespace krilu::sparse
