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
  virtual Index rows() const = 0;
  /// The Jacobian's pattern: row i holds the unknowns that F_i depends on, columns ascending. Values are not used.
  virtual CsrMatrix pattern() const = 0;
  /// F_i(x) for rows begin <= i < end; x whole. Called by several threads at once.
  virtual void residual(Index begin, Index end, View<const double> x, View<double> F) const = 0;
  virtual bool has_jacobian() const { return false; }
  /// The entries of rows begin <= i < end, in the places that they have in pattern(): all of them.
  virtual void jacobian(Index /*begin*/, Index /*end*/, View<const double> /*x*/, View<double> /*values*/) const {}

  /// Whether a GPU can evaluate them, as it can DeviceRowEquations (krilu/equations.cuh).
  virtual bool on_gpu() const { return false; }
  /// The same two for all rows at once, by kernels put into `stream`, a cudaStream_t; what is viewed stands in the
  /// memory of the current GPU.
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
/// The last two marked KRILU_INLINE, a GPU can evaluate R too: krilu/equations.cuh.
template <class R>
class RowEquations : public Equations {
 public:
  explicit RowEquations(R rows);

  /// Parameters may change between solves; the pattern may not.
  R& row() { return row_; }
  const R& row() const { return row_; }

  Index rows() const override { return row_.rows(); }
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
  std::vector<Offset> first_;  // rows + 1: first entry of each row
  std::vector<Offset> place_;  // of each entry in the sequence of columns(): its place in the matrix. Empty: the same
};

template <class R>
RowEquations<R>::RowEquations(R rows) : row_(std::move(rows)) {
  const Index n = row_.rows();
  if (n < 0) throw Error("equations have " + std::to_string(n) + " rows: the number of rows is 0 or more");
  first_.reserve(std::size_t(n) + 1);
  first_.push_back(0);
  std::vector<std::pair<Index, Offset>> sorted;
  bool ascending = true;
  for (Index i = 0; i < n; ++i) {
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
    const Offset first = first_.back();
    place_.resize(std::size_t(next));
    for (std::size_t k = 0; k < sorted.size(); ++k) place_[std::size_t(first + sorted[k].second)] = first + Offset(k);
    first_.push_back(Offset(next));
  }
  if (ascending) place_ = std::vector<Offset>();
}

template <class R>
CsrMatrix RowEquations<R>::pattern() const {
  const Index n = row_.rows();
  CsrMatrix a;
  a.rows = a.cols = n;
  a.offsets.assign(first_.begin(), first_.end());
  a.columns.resize(std::size_t(first_.back()));
  a.values.assign(std::size_t(first_.back()), 0.0);
  for (Index i = 0; i < n; ++i) {
    Offset k = first_[std::size_t(i)];
    row_.columns(i, [&](Index column) {
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
      double* const in_order = values.data + first_[std::size_t(i)];
      if (place)
        row_.jacobian(i, x, [&, p = place + first_[std::size_t(i)]](Index k, double v) { values[p[k]] = v; });
      else
        row_.jacobian(i, x, [&](Index k, double v) { in_order[k] = v; });
    }
  }
}

}  // namespace krilu
