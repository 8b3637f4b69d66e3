// SPDX-License-Identifier: Apache-2.0
// Matrices that many tests share, and the list that every GPU test goes through: rows of all lengths and of none,
// triangles that are empty, stencils, a dense row and column, chains, patterns without symmetry; some hundred rows
// each, or some thousand.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "krilu/io.hpp"
#include "support/split_matrix.hpp"

namespace krilu::test {

using RowMaps = std::vector<std::map<Index, double>>;

inline CsrMatrix from_rows(const RowMaps& rows) {
  CsrMatrix a;
  a.rows = a.cols = Index(rows.size());
  a.offsets.push_back(0);
  for (const auto& row : rows) {
    for (const auto& [j, v] : row) {
      a.columns.push_back(j);
      a.values.push_back(v);
    }
    a.offsets.push_back(Offset(a.columns.size()));
  }
  return a;
}

/// Each diagonal entry the sum of its row's other magnitudes, and a fifth of it more.
inline CsrMatrix dominant(RowMaps rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    double sum = 0;
    rows[i].erase(Index(i));
    for (const auto& [j, v] : rows[i]) sum += std::abs(v);
    rows[i][Index(i)] = sum > 0 ? 1.2 * sum : 1;
  }
  return from_rows(rows);
}

/// Three entries a row, and rows of the given lengths among them, the last row the longest.
inline CsrMatrix with_long_rows(Index n, const std::vector<Index>& lengths, bool symmetric_pattern,
                                std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  std::uniform_int_distribution<Index> place(0, n - 1);
  RowMaps rows(static_cast<std::size_t>(n));
  const auto add = [&](Index i, Index j) {
    if (i == j) return;
    rows[std::size_t(i)][j] = value(engine);
    if (symmetric_pattern) rows[std::size_t(j)][i] = value(engine);
  };
  for (Index k = 0; k < 2 * n; ++k) {
    const Index i = place(engine);
    add(i, place(engine));
  }
  const auto count = Index(lengths.size());
  for (Index k = 0; k < count; ++k) {
    const Index i = k + 1 == count ? n - 1 : (k + 1) * (n / (count + 1));
    while (Index(rows[std::size_t(i)].size()) < lengths[std::size_t(k)]) add(i, place(engine));
  }
  return dominant(std::move(rows));
}

/// Row and column `hub` full, nothing else off the diagonal.
inline CsrMatrix arrow(Index n, Index hub) {
  RowMaps rows(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i)
    if (i != hub) {
      rows[std::size_t(i)][hub] = 0.02 * double((i * 7) % 11) - 0.09;
      rows[std::size_t(hub)][i] = 0.03 * double((i * 5) % 13) - 0.17;
    }
  return dominant(std::move(rows));
}

/// x_i reads x_{i-1}: as many levels as rows.
inline CsrMatrix chain(Index n) {
  RowMaps rows(static_cast<std::size_t>(n));
  for (Index i = 1; i < n; ++i) rows[std::size_t(i)][i - 1] = 0.3 + 0.1 * double(i % 7);
  return dominant(std::move(rows));
}

/// Every seventh row without any entry, the diagonal's included, and columns that nobody reads.
inline CsrMatrix with_empty_rows(Index n, std::uint64_t seed) {
  const CsrMatrix a = random_matrix({.rows = n, .per_row = 4, .symmetric_pattern = false, .seed = seed});
  RowMaps rows(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      if (i % 7 != 3 && a.columns[std::size_t(k)] % 11 != 5)
        rows[std::size_t(i)][a.columns[std::size_t(k)]] = a.values[std::size_t(k)];
  return from_rows(rows);
}

/// Row 124 of 200 (from 1) reads two others and is read by none; its diagonal is zero or missing: a zero pivot in any
/// order and part.
inline CsrMatrix with_zero_pivot(bool stored, std::uint64_t seed) {
  const CsrMatrix a = random_matrix({.rows = 200, .per_row = 4, .seed = seed});
  RowMaps rows(200);
  for (Index i = 0; i < 200; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      if (i != 123 && a.columns[std::size_t(k)] != 123)
        rows[std::size_t(i)][a.columns[std::size_t(k)]] = a.values[std::size_t(k)];
  rows[123][5] = rows[123][77] = 2.5;
  if (stored) rows[123][123] = 0;
  return from_rows(rows);
}

/// One triangle of a, with its diagonal.
inline CsrMatrix triangle_of(const CsrMatrix& a, bool lower) {
  RowMaps rows(std::size_t(a.rows));
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
      const Index j = a.columns[std::size_t(k)];
      if (lower ? j <= i : j >= i) rows[std::size_t(i)][j] = a.values[std::size_t(k)];
    }
  return from_rows(rows);
}

/// The identity's pattern, without the maps: millions of rows.
inline CsrMatrix diagonal(Index n) {
  CsrMatrix a;
  a.rows = a.cols = n;
  const std::vector<Index> count = natural_order(n + 1);
  a.offsets.assign(count.begin(), count.end());
  a.columns.assign(count.begin(), count.end() - 1);
  a.values.assign(std::size_t(n), 1.0);
  return a;
}

/// Rows divided by the sum of their magnitudes: no form of a sweep grows.
inline CsrMatrix scaled(CsrMatrix a) {
  for (Index i = 0; i < a.rows; ++i) {
    const auto begin = std::size_t(a.offsets[std::size_t(i)]), end = std::size_t(a.offsets[std::size_t(i) + 1]);
    double sum = 0;
    for (std::size_t k = begin; k < end; ++k) sum += std::abs(a.values[k]);
    for (std::size_t k = begin; k < end; ++k) a.values[k] /= sum;
  }
  return a;
}

struct GpuCase {
  std::string name;  // with its seed
  CsrMatrix a;
  bool full_diagonal = true;  // and dominant: it can be factored
};

/// A few hundred rows each: what compute-sanitizer gets through.
inline const std::vector<GpuCase>& small_cases() {
  static const std::vector<GpuCase> all = [] {
    std::vector<GpuCase> c;
    c.push_back({"random, seed 401", random_matrix({.rows = 400, .per_row = 5, .seed = 401})});
    c.push_back(
        {"unsymmetric, seed 402", random_matrix({.rows = 400, .per_row = 4, .symmetric_pattern = false, .seed = 402})});
    c.push_back({"long rows, seed 403", with_long_rows(700, {40, 100, 300}, true, 403)});
    c.push_back({"long rows, unsymmetric, seed 404", with_long_rows(700, {40, 100, 300}, false, 404)});
    c.push_back({"empty rows, seed 405", with_empty_rows(300, 405), false});
    c.push_back({"lower triangle, seed 406", triangle_of(with_long_rows(500, {40, 100, 300}, false, 406), true)});
    c.push_back({"upper triangle, seed 407", triangle_of(with_long_rows(500, {300, 100, 40}, true, 407), false)});
    c.push_back({"dense row and column", arrow(300, 41)});
    c.push_back({"gen:convdiff2d:23x17", generate("gen:convdiff2d:23x17")});
    c.push_back({"gen:convdiff3d27:6x7x8", generate("gen:convdiff3d27:6x7x8")});
    c.push_back({"chain", chain(200)});
    c.push_back({"diagonal", diagonal(100)});
    c.push_back({"one row", from_dense({{2.0}})});
    c.push_back({"one empty row", from_rows(RowMaps(1)), false});
    return c;
  }();
  return all;
}

inline const std::vector<GpuCase>& large_cases() {
  static const std::vector<GpuCase> all = [] {
    std::vector<GpuCase> c;
    c.push_back({"random, seed 411", random_matrix({.rows = 20000, .per_row = 6, .seed = 411})});
    c.push_back({"unsymmetric, seed 412",
                 random_matrix({.rows = 20000, .per_row = 5, .symmetric_pattern = false, .seed = 412})});
    c.push_back({"long rows, seed 413", with_long_rows(5000, {40, 100, 300, 2000}, true, 413)});
    c.push_back({"long rows, unsymmetric, seed 414", with_long_rows(5000, {40, 100, 300, 2000}, false, 414)});
    c.push_back({"many long rows, seed 415", random_matrix({.rows = 800, .per_row = 100, .seed = 415})});
    c.push_back({"empty rows, seed 416", with_empty_rows(20000, 416), false});
    c.push_back({"dense row and column", arrow(5000, 2345)});
    c.push_back({"dense last row", arrow(5000, 4999)});
    c.push_back({"gen:convdiff2d:300x200", generate("gen:convdiff2d:300x200")});
    c.push_back({"gen:convdiff3d:40x41x42", generate("gen:convdiff3d:40x41x42")});
    c.push_back({"gen:poisson3d27:20x21x22", generate("gen:poisson3d27:20x21x22")});
    c.push_back({"chain", chain(2000)});
    c.push_back({"diagonal", diagonal(100000)});
    return c;
  }();
  return all;
}

/// y_i = b_i - sum over j of a_ij x_j, or the sum itself without b, to the rounding of as many additions.
inline void expect_product(const CsrMatrix& a, const std::vector<double>& x, const std::vector<double>* b,
                           const std::vector<double>& got) {
  ASSERT_EQ(got.size(), std::size_t(a.rows));
  for (std::size_t i = 0; i < got.size(); ++i) {
    long double sum = 0, magnitude = b ? std::abs((*b)[i]) : 0.0;
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const long double term =
          static_cast<long double>(a.values[std::size_t(k)]) * x[std::size_t(a.columns[std::size_t(k)])];
      sum += term;
      magnitude += std::abs(term);
    }
    const long double expected = b ? (*b)[i] - sum : sum;
    const double allowed = std::numeric_limits<double>::epsilon() * (4 + a.offsets[i + 1] - a.offsets[i]);
    ASSERT_LE(std::abs(double(got[i] - expected)), allowed * double(magnitude)) << "row " << i;
  }
}

}  // namespace krilu::test
