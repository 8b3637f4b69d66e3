// SPDX-License-Identifier: Apache-2.0
#include "sparse/matching.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

namespace krilu::sparse {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr Offset none = -1;

class Search {
 public:
  explicit Search(const CsrView& a)
      : a_(a),
        n_(std::size_t(a.rows)),
        cost_(std::size_t(a.nnz())),
        pair_(n_, none),
        distance_(n_, infinite),
        from_(n_, none),
        final_(n_, 0) {
    m_.column_of.assign(n_, -1);
    m_.row_of.assign(n_, -1);
    m_.u.assign(n_, 0);
    m_.v.assign(n_, 0);
    m_.top.assign(n_, -infinite);
    for (Offset k = 0; k < a.nnz(); ++k) {
      const double log = std::log2(std::abs(a.values[k]));  // of 0: -infinity
      cost_[std::size_t(k)] = log;
      double& top = m_.top[std::size_t(a.columns[k])];
      top = std::max(top, log);
    }
    for (Offset k = 0; k < a.nnz(); ++k) {
      double& c = cost_[std::size_t(k)];
      c = c == -infinite ? infinite : m_.top[std::size_t(a.columns[k])] - c;
    }
  }

  Matching run() {
    take_cheaply();
    for (Index i = 0; i < a_.rows; ++i)
      if (pair_[std::size_t(i)] == none) augment_from(i);
    for (double& top : m_.top)
      if (top == -infinite) top = 0;
    return std::move(m_);
  }

 private:
  /// c_ij - u_i - v_j of entry k of row i, which rounding may make negative.
  double reduced(Index i, Offset k) const {
    return std::max(0.0, cost_[std::size_t(k)] - m_.u[std::size_t(i)] - m_.v[std::size_t(a_.columns[k])]);
  }
  bool tight(Index i, Offset k) const { return reduced(i, k) == 0; }
  bool is_free(Index j) const { return m_.row_of[std::size_t(j)] < 0; }
  void join(Index i, Offset k) {
    m_.size += pair_[std::size_t(i)] == none;
    pair_[std::size_t(i)] = k;
    m_.column_of[std::size_t(i)] = a_.columns[k];
    m_.row_of[std::size_t(a_.columns[k])] = i;
  }

  /// u_i = min_j c_ij, v = 0 (every column has an entry of cost 0): pairs along entries of reduced cost 0.
  void take_cheaply() {
    for (Index i = 0; i < a_.rows; ++i) {
      double least = infinite;
      for (Offset k = a_.offsets[i]; k < a_.offsets[i + 1]; ++k) least = std::min(least, cost_[std::size_t(k)]);
      m_.u[std::size_t(i)] = least == infinite ? 0 : least;
    }
    for (Index i = 0; i < a_.rows; ++i)
      for (Offset k = a_.offsets[i]; k < a_.offsets[i + 1]; ++k)
        if (a_.columns[k] == i && tight(i, k)) join(i, k);
    const auto take_free = [&](Index i) {
      for (Offset k = a_.offsets[i]; k < a_.offsets[i + 1]; ++k)
        if (is_free(a_.columns[k]) && tight(i, k)) {
          join(i, k);
          return true;
        }
      return false;
    };
    for (Index i = 0; i < a_.rows; ++i)
      if (pair_[std::size_t(i)] == none) take_free(i);
    // The owner of a tight column may have another tight one that is free.
    for (Index i = 0; i < a_.rows; ++i)
      for (Offset k = a_.offsets[i]; k < a_.offsets[i + 1] && pair_[std::size_t(i)] == none; ++k) {
        const Index owner = m_.row_of[std::size_t(a_.columns[k])];
        if (owner >= 0 && owner != i && tight(i, k) && take_free(owner)) join(i, k);
      }
  }

  /// Dijkstra from row `start` to the nearest free column; without one the row stays alone for good.
  void augment_from(Index start) {
    heap_.clear();
    reached_.clear();
    double nearest = infinite;  // distance of the nearest free column so far
    Offset last = none;         // and the entry that leads there
    Index last_row = -1;
    Index i = start;
    double here = 0;
    for (;;) {
      for (Offset k = a_.offsets[i]; k < a_.offsets[i + 1]; ++k) {
        const auto j = std::size_t(a_.columns[k]);
        if (final_[j] || cost_[std::size_t(k)] == infinite) continue;
        const double d = here + reduced(i, k);
        if (d >= nearest || d >= distance_[j]) continue;
        if (is_free(Index(j))) {
          nearest = d;
          last = k;
          last_row = i;
          continue;
        }
        if (distance_[j] == infinite) reached_.push_back(Index(j));
        distance_[j] = d;
        from_[j] = k;
        heap_.emplace_back(d, Index(j));
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
      }
      // The nearest column that is not final; entries of the heap that were overtaken are skipped.
      Index column = -1;
      while (!heap_.empty() && column < 0) {
        std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
        const auto [d, j] = heap_.back();
        heap_.pop_back();
        if (!final_[std::size_t(j)] && d == distance_[std::size_t(j)]) column = j;
      }
      if (column < 0 || distance_[std::size_t(column)] >= nearest) break;
      final_[std::size_t(column)] = 1;
      here = distance_[std::size_t(column)];
      i = m_.row_of[std::size_t(column)];
    }
    if (last != none) {
      // Columns nearer than the free one take part in what the path costs.
      m_.u[std::size_t(start)] += nearest;
      for (Index j : reached_)
        if (final_[std::size_t(j)]) {
          const double gap = nearest - distance_[std::size_t(j)];
          m_.v[std::size_t(j)] -= gap;
          m_.u[std::size_t(m_.row_of[std::size_t(j)])] += gap;
        }
      turn(last_row, last, start);
    }
    for (Index j : reached_) {
      distance_[std::size_t(j)] = infinite;
      from_[std::size_t(j)] = none;
      final_[std::size_t(j)] = 0;
    }
  }

  /// The path's rows take the columns that led on from them.
  void turn(Index i, Offset k, Index start) {
    for (;;) {
      const Offset given = pair_[std::size_t(i)];
      join(i, k);
      if (i == start) return;
      const Index j = a_.columns[given];
      k = from_[std::size_t(j)];
      // The row in which entry k stands.
      i = Index(std::upper_bound(a_.offsets, a_.offsets + n_ + 1, k) - a_.offsets) - 1;
    }
  }

  CsrView a_;
  std::size_t n_;
  Matching m_;
  Buffer<double> cost_;
  std::vector<Offset> pair_;      // of each row: its entry
  std::vector<double> distance_;  // of each column, from the row at work
  std::vector<Offset> from_;      // of each column: the entry that leads to it
  std::vector<char> final_;
  std::vector<Index> reached_;
  std::vector<std::pair<double, Index>> heap_;
};

}  // namespace

Matching maximum_product_matching(const CsrView& a) { return Search(a).run(); }

std::vector<Index> Matching::unpaired_rows() const {
  std::vector<Index> rows;
  for (std::size_t i = 0; i < column_of.size(); ++i)
    if (column_of[i] < 0) rows.push_back(Index(i));
  return rows;
}

std::vector<Index> Matching::permutation() const {
  std::vector<Index> all = column_of;
  std::size_t next = 0;
  for (Index& column : all) {
    if (column >= 0) continue;
    while (row_of[next] >= 0) ++next;
    column = Index(next++);
  }
  return all;
}

Scales Matching::scales() const {
  constexpr double most = 1000;  // what is more has no reciprocal
  const auto power = [&](double e) { return std::ldexp(1.0, int(std::lround(std::clamp(e, -most, most)))); };
  Scales s;
  s.row.resize(u.size());
  s.column.resize(v.size());
  for (std::size_t i = 0; i < u.size(); ++i) s.row[i] = power(u[i]);
  for (std::size_t j = 0; j < v.size(); ++j) s.column[j] = power(v[j] - top[j]);
  return s;
}

}  // namespace krilu::sparse
