// SPDX-License-Identifier: Apache-2.0
#include "sparse/coo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "krilu/error.hpp"

namespace krilu::sparse {

Coo to_coo(const CsrView& a) {
  Coo c{a.rows, a.cols, Buffer<Index>(std::size_t(a.nnz())), Buffer<Index>(a.columns, a.columns + a.nnz()),
        Buffer<double>(a.values, a.values + a.nnz())};
  for (Index i = 0; i < a.rows; ++i) std::fill(c.row.begin() + a.offsets[i], c.row.begin() + a.offsets[i + 1], i);
  return c;
}

CsrMatrix to_csr(const Coo& c) {
  if (c.entries() > std::size_t(std::numeric_limits<Offset>::max()))
    throw Error(fmt::format("{} entries are too many for one matrix: 2^31 - 1 at most", c.entries()));
  std::vector<Offset> next(std::size_t(c.rows) + 1, 0);
  for (std::size_t k = 0; k < c.entries(); ++k) {
    if (c.row[k] < 0 || c.row[k] >= c.rows || c.column[k] < 0 || c.column[k] >= c.cols)
      throw Error(fmt::format("entry {} at row {}, column {} is outside of {} by {}", k, c.row[k] + 1, c.column[k] + 1,
                              c.rows, c.cols));
    ++next[std::size_t(c.row[k]) + 1];
  }
  for (std::size_t i = 0; i < std::size_t(c.rows); ++i) next[i + 1] += next[i];
  const std::vector<Offset> start = next;
  std::vector<Offset> sorted(c.entries());
  for (std::size_t k = 0; k < c.entries(); ++k) sorted[std::size_t(next[std::size_t(c.row[k])]++)] = Offset(k);

  CsrMatrix a;
  a.rows = c.rows;
  a.cols = c.cols;
  a.offsets.assign(std::size_t(c.rows) + 1, 0);
  a.columns.reserve(c.entries());
  a.values.reserve(c.entries());
  for (std::size_t i = 0; i < std::size_t(c.rows); ++i) {
    const auto begin = sorted.begin() + start[i], end = sorted.begin() + start[i + 1];
    std::stable_sort(begin, end,
                     [&](Offset p, Offset q) { return c.column[std::size_t(p)] < c.column[std::size_t(q)]; });
    const std::size_t first = a.columns.size();
    for (auto k = begin; k != end; ++k) {
      const auto e = std::size_t(*k);
      if (a.columns.size() > first && a.columns.back() == c.column[e]) {
        a.values.back() += c.value[e];
      } else {
        a.columns.push_back(c.column[e]);
        a.values.push_back(c.value[e]);
      }
    }
    a.offsets[i + 1] = Offset(a.columns.size());
  }
  return a;
}

void multiply(const Coo& a, const double* x, double* y) {
  std::fill(y, y + a.rows, 0.0);
  for (std::size_t k = 0; k < a.entries(); ++k) y[a.row[k]] += a.value[k] * x[a.column[k]];
}

}  // namespace krilu::sparse
