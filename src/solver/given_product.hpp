// SPDX-License-Identifier: Apache-2.0
// A caller's own product as an operator: vectors change between the solver's order and the caller's on the way.
#pragma once

#include "solver/engine.hpp"
#include "sparse/operator.hpp"

namespace krilu::solver {

template <class Space, class System>
class GivenProduct final : public sparse::Operator<Space, double> {
 public:
  GivenProduct(Space space, const System& system, Index rows, const Product& product)
      : ex_(std::move(space)),
        system_(system),
        rows_(rows),
        product_(product),
        x_(ex_.template allocate<double>(std::size_t(rows))),
        y_(ex_.template allocate<double>(std::size_t(rows))) {}

  Index rows() const override { return rows_; }
  void apply(const double* x, double* y) const override {
    system_.permute_out(x_.data(), x);
    product_(x_.data(), y_.data());
    system_.permute_in(y, y_.data());
  }
  void residual(const double* b, const double* x, double* r) const override { subtract(b, x, r); }

  // Public because nvcc takes kernels in public members only.
  void subtract(const double* b, const double* x, double* r) const {
    system_.permute_out(x_.data(), x);
    product_(x_.data(), y_.data());
    system_.permute_in(x_.data(), y_.data());
    const auto Ax = x_.view();
    ex_.for_each(
        std::size_t(rows_), KRILU_FN(Index i) { r[i] = b[i] - Ax[i]; });
  }

 private:
  Space ex_;
  const System& system_;
  Index rows_;
  const Product& product_;
  exec::Array<double> x_, y_;
};

}  // namespace krilu::solver
