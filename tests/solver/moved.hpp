// SPDX-License-Identifier: Apache-2.0
// Systems with their rows and columns in other places and on other scales.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "krilu/io.hpp"
#include "support/support.hpp"

namespace krilu::test {

/// Rows and columns in new places, and scaled: entry (i, j) is row_scale[i] a(row[i], column[j]) column_scale[j].
inline CsrMatrix moved(const CsrMatrix& a, const std::vector<Index>& row, const std::vector<Index>& column,
                       const std::vector<double>& row_scale, const std::vector<double>& column_scale) {
  std::vector<Index> place(column.size());
  for (std::size_t j = 0; j < column.size(); ++j) place[std::size_t(column[j])] = Index(j);
  CsrMatrix out;
  out.rows = out.cols = a.rows;
  out.offsets.push_back(0);
  for (std::size_t i = 0; i < row.size(); ++i) {
    std::vector<std::pair<Index, double>> entries;
    const auto from = std::size_t(row[i]);
    for (auto k = std::size_t(a.offsets[from]); k < std::size_t(a.offsets[from + 1]); ++k) {
      const Index j = place[std::size_t(a.columns[k])];
      entries.emplace_back(j, row_scale[i] * a.values[k] * column_scale[std::size_t(j)]);
    }
    std::sort(entries.begin(), entries.end());
    for (const auto& [j, v] : entries) {
      out.columns.push_back(j);
      out.values.push_back(v);
    }
    out.offsets.push_back(Offset(out.columns.size()));
  }
  return out;
}

/// A flow whose rows and columns stand anywhere and on any scale: no diagonal to speak of.
inline CsrMatrix disordered(std::uint64_t seed) {
  const CsrMatrix a = generate("gen:convdiff2d:30x30");
  return moved(a, shuffled_order(a.rows, seed), shuffled_order(a.rows, seed + 1),
               random_powers(std::size_t(a.rows), 6, seed + 2), random_powers(std::size_t(a.rows), 6, seed + 3));
}

}  // namespace krilu::test
