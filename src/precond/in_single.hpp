// SPDX-License-Identifier: Apache-2.0
// A rounded preconditioner for a method in double: z = s u C M^-1 (R / u) (r / s) by way of single precision, M being
// what was rounded; u, the size of R, and s = |r| keep what M sees within a float's range. Written once for all spaces.
// An application costs 32 bytes a row beside the preconditioner's own.
#pragma once

#include <cmath>
#include <memory>
#include <utility>

#include "precond/preconditioner.hpp"

namespace krilu::precond {

template <class Space>
class InSingle final : public Preconditioner<Space, double> {
 public:
  InSingle(Space space, std::size_t rows, Preconditioner<Space, float>& rounded, const double* row,
           const double* column, double unit)
      : space_(std::move(space)),
        rounded_(rounded),
        row_(row),
        column_(column),
        unit_(unit),
        norm_(space_.template allocate<double>(1)),
        r_(space_.template allocate<float>(rows)),
        z_(space_.template allocate<float>(rows)) {}
  void factor(const Values<Space, double>&, double) override {}
  using Preconditioner<Space, double>::apply;
  void apply(const double* r, double* z) override {
    const auto r_low = r_.view(), z_low = z_.view();
    const double *R = row_, *C = column_;
    const double unit = unit_;
    const auto norm = norm_.scalar();
    space_.reduce(
        r_.size(), KRILU_FN(Index i) { return r[i] * r[i]; },
        KRILU_FN(double sum) { norm() = sum > 0 ? std::sqrt(sum) : 1.0; });
    space_.for_each(
        r_.size(), KRILU_FN(Index i) { r_low[i] = float((R ? R[i] / unit : 1.0) * (r[i] / norm())); });
    rounded_.apply(r_low.data, z_low.data);
    space_.for_each(
        r_.size(), KRILU_FN(Index i) { z[i] = (C ? C[i] * unit : 1.0) * (double(z_low[i]) * norm()); });
  }
  std::size_t bytes() const override { return r_.bytes() + z_.bytes(); }

 private:
  Space space_;
  Preconditioner<Space, float>& rounded_;
  const double *row_, *column_;
  double unit_;
  exec::Array<double> norm_;
  exec::Array<float> r_, z_;
};

}  // namespace krilu::precond
