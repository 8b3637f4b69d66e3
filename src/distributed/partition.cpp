// SPDX-License-Identifier: Apache-2.0
// Paper: Karypis and Kumar, A fast and high quality multilevel scheme for partitioning irregular graphs (1998).
#include "distributed/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/together.hpp"
#include "distributed/all_to_all.hpp"
#include "krilu/error.hpp"
#include "schedule/ordering.hpp"
#include "sparse/csr.hpp"

namespace krilu::distributed {

std::vector<std::int64_t> balanced_starts(Ranks& ranks, const RowsView& a) {
  const auto team = std::size_t(ranks.size()), me = std::size_t(ranks.rank());
  const std::int64_t mine = std::int64_t(a.count) + a.nnz();
  std::vector<std::int64_t> work(team);
  ranks.all_gather(&mine, sizeof mine, work.data());
  const std::int64_t before = std::accumulate(work.begin(), work.begin() + std::ptrdiff_t(me), std::int64_t(0));
  const std::int64_t total = std::accumulate(work.begin(), work.end(), std::int64_t(0));

  // Start k is where the work before it reaches k shares; the rank on which that happens says so.
  std::vector<std::int64_t> starts(team + 1, -1);
  for (std::size_t k = 1; k < team; ++k) {
    const auto target = std::int64_t((long double)(total) * (long double)(k) / (long double)(team));
    if (target <= before || target > before + mine) continue;
    Index low = 0, high = a.count;
    while (low < high) {
      const Index middle = low + (high - low) / 2;
      if (before + middle + a.offsets[middle] < target)
        low = middle + 1;
      else
        high = middle;
    }
    starts[k] = a.first + low;
  }
  std::vector<std::int64_t> all(team * starts.size());
  ranks.all_gather(starts.data(), starts.size() * sizeof starts[0], all.data());
  for (std::size_t r = 0; r < team; ++r)
    for (std::size_t k = 0; k <= team; ++k) starts[k] = std::max(starts[k], all[r * (team + 1) + k]);
  starts.front() = 0;
  starts.back() = a.all;
  for (std::size_t k = 1; k < team; ++k)
    starts[k] = std::max(starts[k], starts[k - 1]);  // where there is no work at all
  return starts;
}

std::vector<int> metis_ranks(Communicator& c, const RowsView& a) {
  const auto team = std::size_t(c.size());
  std::vector<int> part(std::size_t(a.count), 0);
  if (team == 1) return part;
  const std::int64_t mine = a.nnz();
  std::vector<std::int64_t> nnz(team);
  c.all_gather(&mine, sizeof mine, nnz.data());
  const std::int64_t entries = std::accumulate(nnz.begin(), nnz.end(), std::int64_t(0));
  constexpr std::int64_t most = std::numeric_limits<Index>::max();
  if (a.all >= most || entries >= most)
    throw Error(
        fmt::format("METIS takes graphs with fewer than 2147483647 rows and entries, and this matrix has {} and "
                    "{}: take blocks of consecutive rows instead",
                    a.all, entries));

  std::vector<Buffer<Index>> lengths(team), columns(team);
  together(c, [&] {
    lengths[0].resize(std::size_t(a.count));
    for (Index i = 0; i < a.count; ++i) lengths[0][std::size_t(i)] = a.offsets[i + 1] - a.offsets[i];
    columns[0].resize(std::size_t(mine));
    for (std::size_t k = 0; k < columns[0].size(); ++k) columns[0][k] = Index(a.columns[k]);
  });
  lengths = all_to_all(c, std::move(lengths));
  columns = all_to_all(c, std::move(columns));

  std::vector<Buffer<Index>> parts(team);
  together(c, [&] {
    if (c.rank() != 0) return;
    CsrMatrix whole;
    whole.rows = whole.cols = Index(a.all);
    whole.offsets.reserve(std::size_t(a.all) + 1);
    whole.offsets.push_back(0);
    whole.columns.reserve(std::size_t(entries));
    for (std::size_t r = 0; r < team; ++r) {
      for (const Index n : lengths[r]) whole.offsets.push_back(whole.offsets.back() + n);
      whole.columns.insert(whole.columns.end(), columns[r].begin(), columns[r].end());
      Buffer<Index>().swap(columns[r]);
    }
    CsrMatrix graph = sparse::adjacency(whole.view());
    whole = {};
    if (graph.columns.size() > std::size_t(most))
      throw Error("the graph of A + A^T has 2^31 entries or more: take blocks of consecutive rows instead");
    const std::vector<Index> all = schedule::partition(graph.view(), Index(team));
    auto next = all.begin();
    for (std::size_t r = 0; r < team; ++r) {
      parts[r].assign(next, next + std::ptrdiff_t(lengths[r].size()));
      next += std::ptrdiff_t(lengths[r].size());
    }
  });
  parts = all_to_all(c, std::move(parts));
  std::copy(parts[0].begin(), parts[0].end(), part.begin());
  return part;
}

}  // namespace krilu::distributed
