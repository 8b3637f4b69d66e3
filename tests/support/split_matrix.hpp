// SPDX-License-Identifier: Apache-2.0
// A matrix in the solver's own storage on any space, with the way there and back between the caller's row order and the
// solver's, and small matrices whose schedules can be worked out by hand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "schedule/row_order.hpp"
#include "sparse/csr.hpp"
#include "sparse/split.hpp"
#include "support/support.hpp"

namespace krilu::test {

/// The bits of each number, for comparisons in which NaN and the sign of zero count too.
inline std::vector<std::uint64_t> bits(const std::vector<double>& v) {
  std::vector<std::uint64_t> b(v.size());
  if (!v.empty()) std::memcpy(b.data(), v.data(), v.size() * sizeof(double));
  return b;
}

/// The group of rows that a place belongs to.
inline Index group_of(const sparse::RowOrder& order, Index place) {
  return Index(std::upper_bound(order.group.begin(), order.group.end(), place) - order.group.begin()) - 1;
}

/// The five-point grid, row by row, with random entries that dominate nothing: symmetric in pattern only, unless asked.
inline CsrMatrix grid(Index nx, Index ny, bool symmetric_values = false, std::uint64_t seed = 1) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> value(-1.0, -0.5);
  std::vector<double> east(std::size_t(nx) * std::size_t(ny)), north(east.size());
  for (double& v : east) v = value(engine);
  for (double& v : north) v = value(engine);
  CsrMatrix a;
  a.rows = a.cols = nx * ny;
  a.offsets.push_back(0);
  const auto push = [&](Index column, double v) {
    a.columns.push_back(column);
    a.values.push_back(v);
  };
  for (Index y = 0; y < ny; ++y)
    for (Index x = 0; x < nx; ++x) {
      const Index i = y * nx + x;
      if (y > 0) push(i - nx, symmetric_values ? north[std::size_t(i - nx)] : value(engine));
      if (x > 0) push(i - 1, symmetric_values ? east[std::size_t(i - 1)] : value(engine));
      push(i, 4.25);
      if (x + 1 < nx) push(i + 1, east[std::size_t(i)]);
      if (y + 1 < ny) push(i + nx, north[std::size_t(i)]);
      a.offsets.push_back(Offset(a.columns.size()));
    }
  return a;
}

/// P A P^T: row k of the result is row order[k] of a.
inline CsrMatrix permuted(const CsrView& a, const std::vector<Index>& order) {
  std::vector<Index> rank(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) rank[std::size_t(order[k])] = Index(k);
  CsrMatrix p;
  p.rows = p.cols = a.rows;
  p.offsets.push_back(0);
  for (Index row : order) {
    std::vector<std::pair<Index, double>> entries;
    for (Offset k = a.offsets[row]; k < a.offsets[row + 1]; ++k)
      entries.emplace_back(rank[std::size_t(a.columns[k])], a.values ? a.values[k] : 1.0);
    std::sort(entries.begin(), entries.end());
    for (auto [j, v] : entries) {
      p.columns.push_back(j);
      p.values.push_back(v);
    }
    p.offsets.push_back(Offset(p.columns.size()));
  }
  return p;
}

/// Each row and column of a as `rows(i)` of them, at the same point: a dense block of random values for each entry,
/// which keeps diagonals heavy where a's are.
template <class Rows>
CsrMatrix with_nodes(const CsrView& a, Rows rows, std::uint64_t seed = 1) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> part(0.5, 1.0);
  std::vector<Index> first{0};
  for (Index i = 0; i < a.rows; ++i) first.push_back(first.back() + rows(i));
  CsrMatrix m;
  m.rows = m.cols = first.back();
  m.offsets.push_back(0);
  for (Index i = 0; i < a.rows; ++i)
    for (Index r = first[std::size_t(i)]; r < first[std::size_t(i) + 1]; ++r) {
      for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
        for (Index c = first[std::size_t(a.columns[k])]; c < first[std::size_t(a.columns[k]) + 1]; ++c) {
          m.columns.push_back(c);
          m.values.push_back((c == r ? 8 : 1) * part(engine) * a.values[k]);
        }
      m.offsets.push_back(Offset(m.columns.size()));
    }
  return m;
}

/// What the engine does with a matrix, without a method and a preconditioner.
template <class Space>
struct SplitOn {
  SplitOn(const Space& on, const CsrView& a, sparse::RowOrder row_order, int height = 0)
      : space(on), host(on.threads()), order(std::move(row_order)) {
    pattern = std::make_shared<const sparse::SplitPattern>(space, host, a, order, height);
    fill(a);
  }
  /// In level order of the named ordering.
  SplitOn(const Space& on, const CsrView& a, const std::string& ordering, int height = 0)
      : SplitOn(on, a, levels_of(on, a, ordering, height), height) {}

  void fill(const CsrView& a) {
    matrix = sparse::fill_values<double>(host, pattern, a, order);
    for (auto* part : {&matrix.lower, &matrix.diagonal, &matrix.upper})
      *part = sparse::to_space(space, std::move(*part));
  }
  /// Slices of a given height are cut from levels of rows; of none, nodes where there are such.
  static sparse::RowOrder levels_of(const Space& on, const CsrView& a, const std::string& ordering, int height = 0) {
    const CsrMatrix adjacency = sparse::adjacency(a);
    const schedule::Order order = schedule::order_by_name(ordering, a, adjacency);
    const exec::Host host(on.threads());
    return height > 0 ? schedule::by_levels(host, a, adjacency, order)
                      : schedule::for_sweeps(host, a, adjacency, order);
  }

  /// A vector in the caller's order, to the space in the solver's; and back.
  exec::Array<double> in(const std::vector<double>& v) const {
    std::vector<double> w(v.size());
    for (std::size_t k = 0; k < v.size(); ++k) w[k] = v[std::size_t(order.rows[k])];
    return to_device(space, w);
  }
  std::vector<double> out(const exec::Array<double>& a) const {
    const std::vector<double> w = to_host(space, a);
    std::vector<double> v(w.size());
    for (std::size_t k = 0; k < v.size(); ++k) v[std::size_t(order.rows[k])] = w[k];
    return v;
  }

  Space space;
  exec::Host host;
  sparse::RowOrder order;
  std::shared_ptr<const sparse::SplitPattern> pattern;
  sparse::SplitMatrix<double> matrix;
};

}  // namespace krilu::test
