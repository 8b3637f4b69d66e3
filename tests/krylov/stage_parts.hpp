// SPDX-License-Identifier: Apache-2.0
// What refinement is tested on: products that count themselves, a diagonal preconditioner of any numbers, and residuals
// formed in long double.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "krylov/stage.hpp"
#include "support/support.hpp"

namespace krilu::test {

/// Products of CSR in T, row by row, and how many of them and residuals the host asked for.
template <class Space, class T>
class Product final : public sparse::Operator<Space, T> {
 public:
  Product(Space space, const CsrView& a)
      : space_(std::move(space)),
        rows_(a.rows),
        offsets_(to_device(space_, std::vector<Offset>(a.offsets, a.offsets + a.rows + 1))),
        columns_(to_device(space_, std::vector<Index>(a.columns, a.columns + a.offsets[a.rows]))),
        values_(to_device(space_, std::vector<T>(a.values, a.values + a.offsets[a.rows]))) {}
  Index rows() const override { return rows_; }
  void apply(const T* x, T* y) const override {
    ++products;
    const auto offset = offsets_.view();
    const auto column = columns_.view();
    const auto value = values_.view();
    space_.for_each(
        std::size_t(rows_), KRILU_FN(Index i) {
          T sum = 0;
          for (Offset k = offset[i]; k < offset[i + 1]; ++k) sum += value[k] * x[column[k]];
          y[i] = sum;
        });
  }
  void residual(const T* b, const T* x, T* r) const override {
    ++residuals;
    const auto offset = offsets_.view();
    const auto column = columns_.view();
    const auto value = values_.view();
    space_.for_each(
        std::size_t(rows_), KRILU_FN(Index i) {
          T sum = b[i];
          for (Offset k = offset[i]; k < offset[i + 1]; ++k) sum -= value[k] * x[column[k]];
          r[i] = sum;
        });
  }
  mutable int products = 0, residuals = 0;

 private:
  Space space_;
  Index rows_;
  exec::Array<Offset> offsets_;
  exec::Array<Index> columns_;
  exec::Array<T> values_;
};

/// z = D r for any D, NaN included.
template <class Space, class T>
class Diagonal final : public precond::Preconditioner<Space, T> {
 public:
  Diagonal(Space space, const std::vector<T>& d) : space_(std::move(space)), d_(to_device(space_, d)) {}
  void factor(const precond::Values<Space, T>&, double) override {}
  using precond::Preconditioner<Space, T>::apply;
  void apply(const T* r, T* z) override {
    const auto d = d_.view();
    space_.for_each(
        d_.size(), KRILU_FN(Index i) { z[i] = d[i] * r[i]; });
  }
  std::size_t bytes() const override { return d_.bytes(); }

 private:
  Space space_;
  exec::Array<T> d_;
};

inline double norm(const std::vector<double>& v) {
  long double sum = 0;
  for (const double e : v) sum += static_cast<long double>(e) * e;
  return double(std::sqrt(sum));
}
template <class T>
std::vector<T> in(const std::vector<double>& v) {
  return std::vector<T>(v.begin(), v.end());
}
/// b - a x, each entry formed in long double.
inline std::vector<double> residual_of(const CsrView& a, const std::vector<double>& b, const std::vector<double>& x) {
  std::vector<double> r(b.size());
  for (std::size_t i = 0; i < r.size(); ++i) {
    long double sum = b[i];
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
      sum -= static_cast<long double>(a.values[k]) * x[std::size_t(a.columns[k])];
    r[i] = double(sum);
  }
  return r;
}

/// Random, and hard enough for goes of many iterations.
inline CsrMatrix hard(Index rows, std::uint64_t seed) {
  return random_matrix({.rows = rows, .per_row = 6, .symmetric_pattern = false, .dominance = 0.9, .seed = seed});
}

}  // namespace krilu::test
