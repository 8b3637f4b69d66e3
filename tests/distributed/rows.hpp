// SPDX-License-Identifier: Apache-2.0
// Matrices cut into the rows of ranks, for tests, and what is compared with the whole.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "krilu/communicator.hpp"
#include "krilu/distributed.hpp"
#include "support/matrices.hpp"
#include "support/support.hpp"

namespace krilu::test {

using Starts = std::vector<std::int64_t>;

/// Rows starts[rank] .. starts[rank + 1] - 1 of a.
inline RowsMatrix rows_of(const CsrView& a, const Starts& starts, int rank) {
  RowsMatrix r;
  r.all = a.rows;
  r.first = starts[std::size_t(rank)];
  r.count = Index(starts[std::size_t(rank) + 1] - r.first);
  const Offset base = a.offsets[r.first];
  for (Index i = 0; i <= r.count; ++i) r.offsets.push_back(a.offsets[r.first + i] - base);
  for (Offset k = 0; k < r.offsets.back(); ++k) {
    r.columns.push_back(a.columns[base + k]);
    r.values.push_back(a.values[base + k]);
  }
  return r;
}

/// Ways to cut n rows: even ones, ranks without rows at either end and in the middle, all rows on one rank.
inline std::vector<Starts> cuts(Index n) {
  std::vector<Starts> c{{0, n}, {0, n / 2, n}, {0, n / 3, 2 * n / 3, n}, {0, n, n}, {0, 0, n}, {0, n / 4, n / 4, n}};
  c.push_back({0, 0, n, n});
  c.push_back({0, std::min(Index(1), n / 2), n / 2, n / 2, n, n});
  return c;
}
inline int ranks_of(const Starts& s) { return int(s.size()) - 1; }

inline std::string text_of(const Starts& s) {
  std::string t = "starts";
  for (const std::int64_t v : s) t += " " + std::to_string(v);
  return t;
}

/// The part of x that stands at a rank's rows.
template <class V>
V part_of(const V& x, const Starts& starts, int rank) {
  return V(x.begin() + starts[std::size_t(rank)], x.begin() + starts[std::size_t(rank) + 1]);
}

/// y = A x in long double, and the sums of magnitudes that rounding is measured by.
inline std::vector<double> product(const CsrView& a, const std::vector<double>& x, std::vector<double>& magnitude) {
  std::vector<double> y(std::size_t(a.rows));
  magnitude.assign(std::size_t(a.rows), 0);
  for (Index i = 0; i < a.rows; ++i) {
    long double sum = 0, size = 0;
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const long double v = (long double)(a.values[k]) * x[std::size_t(a.columns[k])];
      sum += v;
      size += std::abs(v);
    }
    y[std::size_t(i)] = double(sum);
    magnitude[std::size_t(i)] = double(size);
  }
  return y;
}

}  // namespace krilu::test
