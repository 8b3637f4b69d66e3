// SPDX-License-Identifier: Apache-2.0
// Jacobi, z_i = r_i / a_ii, and `none`, z = r. One pass over the vectors each; written once for all spaces.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "krilu/error.hpp"
#include "precond/preconditioner.hpp"

namespace krilu::precond {

/// "the diagonal is zero or missing in 3 rows, the first is row 7 ...", first 0-based.
std::string jacobi_sentence(Index zeros, Index first);

/// 1 / (R d C) in float, of d's reciprocals.
template <class Space, class T>
exec::Array<float> rounded_reciprocals(const Space& space, const exec::Array<T>& rd, const sparse::Rounding& rounding) {
  auto out = space.template allocate<float>(rd.size());
  const auto to = out.view();
  const auto from = rd.view();
  const double *R = rounding.row, *C = rounding.column;
  space.for_each(
      rd.size(),
      KRILU_FN(Index i) { to[i] = rounded<float>(double(from[i]) / ((R ? R[i] : 1.0) * (C ? C[i] : 1.0))); });
  return out;
}

template <class Space, class T>
class None final : public Preconditioner<Space, T> {
 public:
  None(const Context<Space>& context, std::shared_ptr<const sparse::PatternOf<Space>> pattern)
      : None(context.space, std::size_t(pattern->rows())) {}
  None(Space space, std::size_t rows) : space_(std::move(space)), rows_(rows) {}
  void factor(const Values<Space, T>&, double) override {}
  using Preconditioner<Space, T>::apply;
  void apply(const T* r, T* z) override {
    space_.for_each(
        rows_, KRILU_FN(Index i) { z[i] = r[i]; });
  }
  void product(const sparse::Operator<Space, T>& A, const T* r, T*, T* Az) override { A.apply(r, Az); }
  /// None for the scaled system either: R C would be no better than I.
  std::unique_ptr<Preconditioner<Space, float>> rounded(
      const sparse::Rounding&, const std::shared_ptr<const sparse::RoundedMatrix>&) const override {
    return std::make_unique<None<Space, float>>(space_, rows_);
  }
  std::size_t bytes() const override { return 0; }

 private:
  Space space_;
  std::size_t rows_;
};

template <class Space, class T>
class Jacobi final : public Preconditioner<Space, T> {
 public:
  Jacobi(const Context<Space>& context, std::shared_ptr<const sparse::PatternOf<Space>> pattern)
      : space_(context.space),
        caller_row_(context.caller_row),
        rd_(space_.template allocate<T>(std::size_t(pattern->rows()))),
        bad_(space_.template allocate<Index>(1)) {}

  /// One that is applied and never factored: its reciprocal diagonal is given.
  Jacobi(Space space, exec::Array<T> rd) : space_(std::move(space)), rd_(std::move(rd)) {}

  /// `shift` is not used: Jacobi has no pivots, only the diagonal as it is.
  void factor(const Values<Space, T>& a, double) override {
    const auto diagonal = a.stored.diagonal.view();
    const auto rd = rd_.view();
    const auto bad = bad_.scalar();
    space_.reduce(
        rd_.size(),
        KRILU_FN(Index i) {
          rd[i] = T(1) / diagonal[i];
          return vanishes(diagonal[i]) ? Index(1) : Index(0);
        },
        KRILU_FN(Index zeros) { bad() = zeros; });
    Index zeros = 0;
    space_.copy_out(&zeros, bad_, 1);
    if (zeros > 0) throw ZeroPivot(sentence(a.stored, zeros));
  }
  void apply(const sparse::Operator<Space, T>& A, const T* r, T* z, T* Az) override {
    if (A.can_scale()) return A.apply_scaled(rd_.data(), r, z, Az);
    apply(r, z);
    A.apply(z, Az);
  }
  void apply(const T* r, T* z) override {
    const auto rd = rd_.view();
    space_.for_each(
        rd_.size(), KRILU_FN(Index i) { z[i] = r[i] * rd[i]; });
  }
  typename Preconditioner<Space, T>::Fold folds() const override { return {rd_.data(), true}; }
  std::unique_ptr<Preconditioner<Space, float>> rounded(
      const sparse::Rounding& rounding, const std::shared_ptr<const sparse::RoundedMatrix>&) const override {
    if (rounding.folded) return std::make_unique<None<Space, float>>(space_, rd_.size());
    return std::make_unique<Jacobi<Space, float>>(space_, rounded_reciprocals(space_, rd_, rounding));
  }
  std::size_t bytes() const override { return rd_.bytes() + bad_.bytes(); }

 private:
  /// Zero, or too small to divide by.
  static KRILU_INLINE bool vanishes(T d) { return (d < 0 ? -d : d) < std::numeric_limits<T>::min(); }

  std::string sentence(const sparse::MatrixOf<Space, T>& a, Index zeros) const {
    std::vector<T> diagonal(a.diagonal.size());
    space_.copy_out(diagonal.data(), a.diagonal, diagonal.size());
    Index first = std::numeric_limits<Index>::max();
    for (std::size_t i = 0; i < diagonal.size(); ++i)
      if (vanishes(diagonal[i])) first = std::min(first, caller_row_ ? caller_row_(Index(i)) : Index(i));
    return jacobi_sentence(zeros, first);
  }

  Space space_;
  std::function<Index(Index)> caller_row_;
  exec::Array<T> rd_;
  exec::Array<Index> bad_;
};

}  // namespace krilu::precond
