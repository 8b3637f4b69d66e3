// SPDX-License-Identifier: Apache-2.0
#include "sparse/ell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "krilu/error.hpp"

namespace krilu::sparse {

Ell to_ell(const CsrView& a) {
  Ell e{a.rows, a.cols, 0, {}, {}};
  for (Index i = 0; i < a.rows; ++i) e.width = std::max(e.width, a.offsets[i + 1] - a.offsets[i]);
  const std::int64_t entries = std::int64_t(e.width) * a.rows;
  if (entries > std::numeric_limits<Offset>::max())
    throw Error(
        fmt::format("ELL would hold {} entries, its longest row having {}: take CSR for rows of such different "
                    "lengths",
                    entries, e.width));
  e.column.resize(std::size_t(entries));
  e.value.resize(std::size_t(entries));
  for (Index i = 0; i < a.rows; ++i) {
    const Index length = a.offsets[i + 1] - a.offsets[i];
    for (Index k = 0; k < e.width; ++k) {
      const auto at = std::size_t(k) * std::size_t(a.rows) + std::size_t(i);
      e.column[at] = k < length ? a.columns[a.offsets[i] + k] : std::min(i, a.cols - 1);
      e.value[at] = k < length ? a.values[a.offsets[i] + k] : 0.0;
    }
  }
  return e;
}

CsrMatrix to_csr(const Ell& e) {
  CsrMatrix a;
  a.rows = e.rows;
  a.cols = e.cols;
  a.offsets.assign(std::size_t(e.rows) + 1, 0);
  for (Index i = 0; i < e.rows; ++i) {
    for (Index k = 0; k < e.width; ++k) {
      const auto at = std::size_t(k) * std::size_t(e.rows) + std::size_t(i);
      if (e.value[at] == 0) continue;
      a.columns.push_back(e.column[at]);
      a.values.push_back(e.value[at]);
    }
    a.offsets[std::size_t(i) + 1] = Offset(a.columns.size());
  }
  return a;
}

void multiply(const exec::Host& host, const Ell& a, const double* x, double* y) {
  host.for_each_range(std::size_t(a.rows), [&](Index begin, Index end) {
    std::fill(y + begin, y + end, 0.0);
    for (Index k = 0; k < a.width; ++k) {
      const double* const value = a.value.data() + std::size_t(k) * std::size_t(a.rows);
      const Index* const column = a.column.data() + std::size_t(k) * std::size_t(a.rows);
#pragma omp simd
      for (Index i = begin; i < end; ++i) y[i] += value[i] * x[column[i]];
    }
  });
}

}  // namespace krilu::sparse
