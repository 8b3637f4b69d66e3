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

/// Sweeps over L and U of one pattern in local rows, with the restriction before and the prolongation after. This one
/// is for spaces whose kernels are host code; a GPU's is in local.cuh.
template <class Space, class T>
class LocalSweeps {
 public:
  /// `factors` as `problem` lays them out; for ilut of these values alone.
  LocalSweeps(const Context<Space>& context, const LocalProblem& problem, const CsrView& factors);
  /// The factors' values, in host memory: unit lower triangle, upper triangle, pivots.
  void take(const CsrView& factors);
  void apply(const T* r, T* z) const;
  std::size_t bytes() const;
  triangular::Report report() const { return runner_->report(); }
  int trials_left() const { return 0; }

 private:
  Space space_;
  sparse::RowOrder order_;
  std::shared_ptr<const sparse::SplitPattern> pattern_;
  std::shared_ptr<triangular::SliceRunner> runner_;
  sparse::SplitMatrix<T> factors_;
  exec::Array<T> rd_, x_;
  exec::Array<Index> from_, to_;  // of each row in sweep order: its place in r; in z, or -1 where it is overlap
};

template <class Space, class T>
class Local final : public Preconditioner<Space, T> {
 public:
  Local(const Context<Space>& context, std::shared_ptr<const sparse::PatternOf<Space>> pattern,
        const std::string& name);
  void factor(const Values<Space, T>& a, double shift) override;
  using Preconditioner<Space, T>::apply;
  void apply(const T* r, T* z) override { sweeps_->apply(r, z); }
  std::size_t bytes() const override { return problem_.bytes() + (sweeps_ ? sweeps_->bytes() : 0); }
  std::string description() const override { return description_; }
  std::optional<triangular::Report> triangular() const override {
    return sweeps_ ? std::optional(sweeps_->report()) : std::nullopt;
  }
  int trials_left() const override { return sweeps_ ? sweeps_->trials_left() : 0; }

 private:
  Context<Space> context_;
  Spec spec_;
  std::string name_, description_;
  LocalProblem problem_;
  std::unique_ptr<LocalSweeps<Space, T>> sweeps_;
};

/// Throws ZeroPivot that names the caller's row, unless `local` is -1.
void require_pivot(Index local, const LocalProblem& problem, const std::string& name);

}  // namespace krilu::precond
