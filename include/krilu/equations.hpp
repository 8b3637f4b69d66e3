// SPDX-License-Identifier: Apache-2.0
// Nonlinear equations F(x) = 0 as a caller writes them: one row at a time, each a function of a few unknowns. A row
// runs on any thread; rows of a Jacobian are written straight into the matrix.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "krilu/error.hpp"
#include "krilu/matrix.hpp"
#include "krilu/view.hpp"

namespace krilu {

/// What NewtonSolver sees. Implement RowEquations' argument instead unless rows share much work.
class Equations {
 public:
  virtual ~Equations() = default;
  /// Of the whole system: as many as unknowns.
  virtual Index rows() const = 0;
  /// The rows that are here, first() .. first() + count() - 1: all, or one rank's part. Rows and unknowns keep their
  /// numbers of the whole system there.
  virtual Index first() const { return 0; }
  virtual Index count() const { return rows(); }
  /// The Jacobian's pattern: row i of count() holds the unknowns that F_(first() + i) depends on, columns ascending.
  /// Values are not used.
  virtual CsrMatrix pattern() const = 0;
  /// F_i(x) for rows begin <= i < end of those that are here. Of x the unknowns that the pattern names may be read: no
  /// others are there. Called by several threads at once.
  virtual void residual(Index begin, Index end, View<const double> x, View<double> F) const = 0;
  virtual bool has_jacobian() const { return false; }
  /// The entries of the same rows, in the places that they have in pattern(): all of them.
  virtual void jacobian(Index /*begin*/, Index /*end*/, View<const double> /*x*/, View<double> /*values*/) const {}

  /// Whether a GPU can evaluate them, as it can DeviceRowEquations (krilu/equations.cuh).
  virtual bool on_gpu() const { return false; }
  /// The same two for all rows that are here, by kernels put into `stream`, a cudaStream_t; what is viewed stands in
  /// the memory of the current GPU.
  virtual void residual_on_gpu(void* /*stream*/, View<const double> /*x*/, View<double> /*F*/) const {}
  virtual void jacobian_on_gpu(void* /*stream*/, View<const double> /*x*/, View<double> /*values*/) const {}
};

/// Equations of rows: R is a small copyable struct with
///
///   Index rows() const;
///   template <class Add>
///   void columns(Index row, Add add) const;                  // add(column) for each unknown of the row
///   double residual(Index row, View<const double> x) const;  // F_row(x)
///   template <class Put>
///   void jacobian(Index row, View<const double> x, Put put) const;
///                       // put(k, dF_row / dx_c), c the k-th column added; may be left out
///
/// The last two marked KRILU_INLINE, a GPU can evaluate R too: krilu/equations.cuh. Over ranks R is the same, and each
/// rank says which rows it has.
template <class R>
class RowEquations : public Equations {
 public:
  explicit RowEquations(R rows) : RowEquations(rows, 0, rows.rows()) {}
  /// Rows first .. first + count - 1 of them.
  RowEquations(R rows, Index first, Index count);

  /// Parameters may change between solves; the pattern may not.
  R& row() { return row_; }
  const R& row() const { return row_; }

  Index rows() const override { return row_.rows(); }
  Index first() const override { return start_; }
  Index count() const override { return count_; }
  CsrMatrix pattern() const override;
  void residual(Index begin, Index end, View<const double> x, View<double> F) const override {
    for (Index i = begin; i < end; ++i) F[i] = row_.residual(i, x);
  }
  bool has_jacobian() const override { return own_jacobian; }
  void jacobian(Index begin, Index end, View<const double> x, View<double> values) const override;

 protected:
  struct Ignore {
    KRILU_INLINE void operator()(Index, double) const {}
  };
  static constexpr bool own_jacobian = requires(const R& r, View<const double> x) {
    r.jacobian(Index(0), x, Ignore{});
  };

  R row_;
  Index start_, count_;
  std::vector<Offset> first_;  // count + 1: first entry of each row
  std::vector<Offset> place_;  // of each entry in the sequence of columns(): its place in the matrix. Empty: the same
};

template <class R>
RowEquations<R>::RowEquations(R rows, Index first, Index count) : row_(std::move(rows)), start_(first), count_(count) {
  const Index n = row_.rows();
  if (n < 0) throw Error("equations have " + std::to_string(n) + " rows: the number of rows is 0 or more");
  if (first < 0 || count < 0 || count > n - first)
    throw Error("a rank has " + std::to_string(count) + " rows from row " + std::to_string(first + 1) + " on, of " +
                std::to_string(n) + " equations: the ranks' rows are consecutive, and together all");
  first_.reserve(std::size_t(count) + 1);
  first_.push_back(0);
  std::vector<std::pair<Index, Offset>> sorted;
  bool ascending = true;
  for (Index i = first; i < first + count; ++i) {
    sorted.clear();
    row_.columns(i, [&](Index column) {
      if (column < 0 || column >= n)
        throw Error("row " + std::to_string(i + 1) + " of the equations names unknown " + std::to_string(column + 1) +
                    " of " + std::to_string(n));
      sorted.emplace_back(column, Offset(sorted.size()));
    });
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t k = 0; k < sorted.size(); ++k) {
      if (k > 0 && sorted[k].first == sorted[k - 1].first)
        throw Error("row " + std::to_string(i + 1) + " of the equations names unknown " +
                    std::to_string(sorted[k].first + 1) + " twice");
      ascending = ascending && sorted[k].second == Offset(k);
    }
    const std::int64_t next = std::int64_t(first_.back()) + std::int64_t(sorted.size());
    if (next > std::int64_t(2147483647))
      throw Error("the equations' Jacobian has 2^31 or more entries: krilu's matrices hold fewer");
    const Offset begin = first_.back();
    place_.resize(std::size_t(next));
    for (std::size_t k = 0; k < sorted.size(); ++k) place_[std::size_t(begin + sorted[k].second)] = begin + Offset(k);
    first_.push_back(Offset(next));
  }
  if (ascending) place_ = std::vector<Offset>();
}

template <class R>
CsrMatrix RowEquations<R>::pattern() const {
  CsrMatrix a;
  a.rows = count_;
  a.cols = row_.rows();
  a.offsets.assign(first_.begin(), first_.end());
  a.columns.resize(std::size_t(first_.back()));
  a.values.assign(std::size_t(first_.back()), 0.0);
  for (Index i = 0; i < count_; ++i) {
    Offset k = first_[std::size_t(i)];
    row_.columns(start_ + i, [&](Index column) {
      a.columns[std::size_t(place_.empty() ? k : place_[std::size_t(k)])] = column;
      ++k;
    });
  }
  return a;
}

template <class R>
void RowEquations<R>::jacobian(Index begin, Index end, View<const double> x, View<double> values) const {
  if constexpr (own_jacobian) {
    const Offset* const place = place_.empty() ? nullptr : place_.data();
    for (Index i = begin; i < end; ++i) {
      const Offset first = first_[std::size_t(i - start_)];
      double* const in_order = values.data + first;
      if (place)
        row_.jacobian(i, x, [&, p = place + first](Index k, double v) { values[p[k]] = v; });
      else
        row_.jacobian(i, x, [&](Index k, double v) { in_order[k] = v; });
    }
  }
}

}  // namespace krilu
