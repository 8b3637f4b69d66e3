// SPDX-License-Identifier: Apache-2.0
// What the cuSPARSE peer knows on the host: a system as it was read or generated, copies of its triangles, the pivots
// of DILU, and serial references that results from the GPU are held against. Plain C++, one thread, clarity before
// speed.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "krilu/error.hpp"
#include "krilu/io.hpp"
#include "krilu/matrix.hpp"

namespace krilu::bench {

/// Folders are left out of what is reported: "../m/a.mtx gen:spe10:/d/kx,/d/kz" is "a.mtx gen:spe10:kx,kz".
inline std::string without_folders(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '/') out.erase(out.find_last_of(" :,'", out.size() - 1) + 1);
  }
  return out;
}

struct System {
  std::string name;
  CsrMatrix a;
  std::vector<double> b;
  std::string no_diagonal;  // why the parts that divide by the diagonal are left out; empty where they run
};

inline Offset diagonal_of(const CsrView& a, Index row) {
  const Index* end = a.columns + a.offsets[row + 1];
  const Index* d = std::lower_bound(a.columns + a.offsets[row], end, row);
  return d != end && *d == row ? static_cast<Offset>(d - a.columns) : -1;
}

inline System load(const std::string& given) {
  System s;
  if (is_generator(given)) {
    s.a = generate(given);
    s.name = without_folders(given).substr(4);
  } else {
    ReadMatrix read = read_matrix_market(given);
    s.name = read.facts.name;
    s.a = std::move(read.matrix);
  }
  const CsrView a = s.a;
  require_valid(a);
  s.b = random_vector(static_cast<std::size_t>(a.rows), 1, -1, 1);
  Index first = -1, count = 0;
  for (Index i = 0; i < a.rows; ++i) {
    const Offset d = diagonal_of(a, i);
    if (d >= 0 && a.values[d] != 0) continue;
    if (first < 0) first = i;
    ++count;
  }
  if (count)
    s.no_diagonal =
        std::to_string(count) + " rows have no diagonal or a zero one, row " + std::to_string(first + 1) + " first";
  return s;
}

enum class Take { all, lower, upper };  // a triangle is taken with its diagonal

/// The entries of `a` that are taken, with values value(row, position in a).
template <class Value>
CsrMatrix copy_of(const CsrView& a, Take take, Value&& value) {
  CsrMatrix c;
  c.rows = c.cols = a.rows;
  c.offsets.reserve(static_cast<std::size_t>(a.rows) + 1);
  c.columns.reserve(static_cast<std::size_t>(a.nnz()));
  c.values.reserve(static_cast<std::size_t>(a.nnz()));
  c.offsets.push_back(0);
  for (Index i = 0; i < a.rows; ++i) {
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const Index j = a.columns[k];
      if ((take == Take::lower && j > i) || (take == Take::upper && j < i)) continue;
      c.columns.push_back(j);
      c.values.push_back(value(i, k));
    }
    c.offsets.push_back(static_cast<Offset>(c.columns.size()));
  }
  return c;
}

/// rd_i = 1 / (a_ii - sum over j < i of a_ij rd_j a_ji): the reciprocal pivots of DILU.
inline std::vector<double> dilu_pivots(const CsrView& a) {
  std::vector<double> rd(static_cast<std::size_t>(a.rows));
  // Rows ask for row j's entries right of the diagonal in ascending order of column.
  std::vector<Offset> next(rd.size());
  for (Index i = 0; i < a.rows; ++i) {
    next[i] = diagonal_of(a, i) + 1;
    double e = a.values[next[i] - 1];
    for (Offset k = a.offsets[i]; a.columns[k] < i; ++k) {
      const Index j = a.columns[k];
      while (next[j] < a.offsets[j + 1] && a.columns[next[j]] < i) ++next[j];
      if (next[j] < a.offsets[j + 1] && a.columns[next[j]] == i) e -= a.values[k] * rd[j] * a.values[next[j]];
    }
    rd[i] = 1 / e;
    if (e == 0 || !std::isfinite(rd[i]))
      throw ZeroPivot("DILU meets a pivot that it cannot divide by in row " + std::to_string(i + 1));
  }
  return rd;
}

/// T^-1 x, T a triangle of `a`.
inline std::vector<double> host_sweep(const CsrView& a, bool lower, bool unit_diagonal, std::vector<double> x) {
  for (Index step = 0; step < a.rows; ++step) {
    const Index i = lower ? step : a.rows - 1 - step;
    double sum = x[i], diagonal = 1;
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const Index j = a.columns[k];
      if (j == i) diagonal = unit_diagonal ? 1 : a.values[k];
      if (lower ? j < i : j > i) sum -= a.values[k] * x[j];
    }
    x[i] = sum / diagonal;
  }
  return x;
}

inline std::vector<double> host_product(const CsrView& a, const std::vector<double>& x) {
  std::vector<double> y(x.size());
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) y[i] += a.values[k] * x[a.columns[k]];
  return y;
}

/// Largest difference over largest entry.
inline double relative_error(const std::vector<double>& got, const std::vector<double>& wanted) {
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i])) return got[i];
    difference = std::max(difference, std::abs(got[i] - wanted[i]));
    largest = std::max(largest, std::abs(wanted[i]));
  }
  return difference / (largest > 0 ? largest : 1);
}

}  // namespace krilu::bench
