// SPDX-License-Identifier: Apache-2.0
// Preconditioners that factor a matrix of their own (local_problem.hpp): ILU(k), ILUT, block ILU and restricted
// additive Schwarz (RAS), all as z = sum over parts of R0^T (L U)^-1 R r, where R takes a part's rows with its overlap
// from r, and R0^T writes those that the part owns. One text for the factorisation; sweeps are the space's own.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "precond/local_problem.hpp"
#include "precond/preconditioner.hpp"
#include "sparse/split.hpp"
#include "triangular/runner.hpp"

namespace krilu::precond {

/// What sweeps over L and U of one pattern in local rows need beside values, for spaces whose kernels are host code. A
/// GPU's is in local.cuh.
template <class Space>
struct LocalLayout {
  /// `factors` as `problem` lays them out; for ilut of these values alone.
  LocalLayout(const Context<Space>& context, const LocalProblem& problem, const CsrView& factors);
  std::size_t bytes() const;

  sparse::RowOrder order;
  std::shared_ptr<const sparse::SplitPattern> pattern;
  std::shared_ptr<triangular::SliceRunner> runner;
  exec::Array<Index> from, to;  // of each row in sweep order: its place in r; in z, or -1 where it is overlap
};

/// Those sweeps, with the restriction before and the prolongation after. T: what is computed in; S: what L and U are
/// stored in.
template <class Space, class T, class S = T>
class LocalSweeps {
 public:
  LocalSweeps(Space space, std::shared_ptr<const LocalLayout<Space>> layout, sparse::SplitMatrix<T, S> factors,
              exec::Array<T> rd);
  void apply(const T* r, T* z) const;
  std::size_t bytes() const {
    return factors_.bytes() + (factors_.narrow ? factors_.narrow->bytes() : 0) + rd_.bytes() + x_.bytes();
  }
  const LocalLayout<Space>& layout() const { return *layout_; }
  /// Scaled and rounded. Here, where T and S are double.
  template <class To>
  LocalSweeps<Space, float, To> rounded(const sparse::Rounding& rounding) const;

 private:
  Space space_;
  std::shared_ptr<const LocalLayout<Space>> layout_;
  sparse::SplitMatrix<T, S> factors_;
  exec::Array<T> rd_, x_;
};

template <class Space, class T>
class Local final : public Preconditioner<Space, T> {
 public:
  Local(const Context<Space>& context, std::shared_ptr<const sparse::PatternOf<Space>> pattern,
        const std::string& name);
  void factor(const Values<Space, T>& a, double shift) override;
  using Preconditioner<Space, T>::apply;
  void apply(const T* r, T* z) override { sweeps_->apply(r, z); }
  std::unique_ptr<Preconditioner<Space, float>> rounded(
      const sparse::Rounding& rounding, const std::shared_ptr<const sparse::RoundedMatrix>& a) const override;
  std::size_t bytes() const override {
    return problem_.bytes() + (layout_ ? layout_->bytes() : 0) + (sweeps_ ? sweeps_->bytes() : 0);
  }
  std::string description() const override { return description_; }
  std::optional<triangular::Report> triangular() const override {
    return layout_ ? std::optional(layout_->runner->report()) : std::nullopt;
  }

 private:
  /// The factors' values, in host memory: unit lower triangle, upper triangle, pivots.
  void take(const CsrView& factors);

  Context<Space> context_;
  Spec spec_;
  std::string name_, description_;
  LocalProblem problem_;
  std::shared_ptr<const LocalLayout<Space>> layout_;
  std::unique_ptr<LocalSweeps<Space, T>> sweeps_;
};

/// A Local that was rounded once.
template <class Space, class S>
class RoundedLocal final : public Preconditioner<Space, float> {
 public:
  explicit RoundedLocal(LocalSweeps<Space, float, S> sweeps) : sweeps_(std::move(sweeps)) {}
  void factor(const Values<Space, float>&, double) override {}
  using Preconditioner<Space, float>::apply;
  void apply(const float* r, float* z) override { sweeps_.apply(r, z); }
  std::optional<triangular::Report> triangular() const override { return sweeps_.layout().runner->report(); }
  std::size_t bytes() const override { return sweeps_.bytes(); }

 private:
  LocalSweeps<Space, float, S> sweeps_;
};

/// Throws ZeroPivot that names the caller's row, unless `local` is -1.
void require_pivot(Index local, const LocalProblem& problem, const std::string& name);

}  // namespace krilu::precond
