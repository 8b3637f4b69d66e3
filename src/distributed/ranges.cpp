// SPDX-License-Identifier: Apache-2.0
#include "distributed/ranges.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/together.hpp"
#include "krilu/error.hpp"

namespace krilu::distributed {

int RowRanges::owner(std::int64_t row) const {
  // The last rank that begins at the row or before: where several begin at the same one, all but the last are empty.
  const auto after = std::upper_bound(first.begin(), first.end(), row) - first.begin();
  if (after == 0 || row >= end[std::size_t(after) - 1]) return -1;
  return int(after) - 1;
}

RowRanges gather_ranges(Ranks& ranks, std::int64_t all, std::int64_t first, Index count, Gaps gaps) {
  require_same(ranks, "the number of rows of the whole matrix", all);
  const std::int64_t mine[2] = {first, count};
  const auto team = std::size_t(ranks.size());
  std::vector<std::int64_t> told(2 * team);
  ranks.all_gather(mine, sizeof mine, told.data());
  // All ranks look at the same numbers, and throw the same.
  RowRanges r;
  r.all = all;
  std::int64_t end = 0;
  for (std::size_t k = 0; k < team; ++k) {
    const std::int64_t rows = told[2 * k + 1], begin = rows == 0 ? end : told[2 * k];
    if (rows < 0) throw Error(fmt::format("rank {} has {} rows: it must have 0 or more", k, rows));
    if (begin < end)
      throw Error(
          fmt::format("rank {} begins with row {}, and the ranks before it go to row {}: ranks must have consecutive "
                      "ranges of rows in the order of ranks, and each row once",
                      k, begin + 1, end));
    if (begin > end && gaps == Gaps::refused)
      throw Error(fmt::format("no rank has row {}: rank {} begins with row {}; each row must be a rank's", end + 1, k,
                              begin + 1));
    if (begin + rows > all)
      throw Error(fmt::format("rank {} has rows up to {} and the whole matrix has {}", k, begin + rows, all));
    r.first.push_back(begin);
    r.end.push_back(end = begin + rows);
  }
  if (end < all && gaps == Gaps::refused)
    throw Error(
        fmt::format("no rank has row {}, and the whole matrix has {} rows: each row must be a rank's", end + 1, all));
  return r;
}

RowRanges ranges_of(const std::vector<std::int64_t>& starts) {
  RowRanges r;
  r.all = starts.back();
  r.first.assign(starts.begin(), starts.end() - 1);
  r.end.assign(starts.begin() + 1, starts.end());
  return r;
}

void require_valid(const RowsView& a) {
  if (a.all < 0 || a.count < 0 || a.first < 0 || (a.count > 0 && a.first + a.count > a.all))
    throw Error(fmt::format("rows {} to {} of a matrix of {} rows: they must lie within it", a.first + 1,
                            a.first + a.count, a.all));
  if (a.count == 0) return;
  if (!a.offsets || a.offsets[0] != 0) throw Error("the offsets of the rows must begin with 0");
  for (Index i = 0; i < a.count; ++i) {
    const Offset begin = a.offsets[i], end = a.offsets[i + 1];
    if (end < begin) throw Error(fmt::format("row {} ends before it begins: offsets must ascend", a.first + i + 1));
    for (Offset k = begin; k < end; ++k) {
      const std::int64_t j = a.columns[k];
      if (j < 0 || j >= a.all)
        throw Error(
            fmt::format("row {} has an entry in column {}: columns go from 1 to {}", a.first + i + 1, j + 1, a.all));
      if (k > begin && j <= a.columns[k - 1])
        throw Error(fmt::format("row {} has column {} after column {}: columns must ascend within a row, each once",
                                a.first + i + 1, j + 1, a.columns[k - 1] + 1));
    }
  }
}

}  // namespace krilu::distributed
