// SPDX-License-Identifier: Apache-2.0
// The form that all incomplete factorisations here share: M = (E + L) E^-1 (E + U), E diagonal, L and U strict
// triangles. DILU keeps A's own triangles; ILU(0) is the same with updated ones (its usual unit lower factor is L
// E^-1). Kept as rd = 1/E, which is all that the sweeps read.
#pragma once

#include <limits>
#include <memory>
#include <string>

#include "precond/preconditioner.hpp"
#include "triangular/sweep.hpp"

namespace krilu::precond {

/// What factorisations report: a row, or `none`, for each kind of trouble. Written by kernels.
struct Trouble {
  static constexpr Index none = std::numeric_limits<Index>::max();
  Index zero_pivot = none, asymmetric = none;
};
/// Throws krilu::Error, or ZeroPivot, that names the caller's row; `name` is the preconditioner's.
void require_no_trouble(const Trouble& trouble, const std::string& name, const std::function<Index(Index)>& caller_row);

/// z = M^-1 r and Az = A z, M the DILU form of the very matrix that A has stored (triangular/sweep.hpp): halos travel
/// while L is read.
template <class Space, class T, class S>
void solve_with_product(const Space& space, const std::shared_ptr<triangular::SliceRunner>& runner,
                        const sparse::SplitView<T, S>& a, const T* rd, const sparse::Operator<Space, T>& A, const T* r,
                        T* z, T* Az) {
  space.enqueue([=](const exec::Host&) { triangular::solve_dilu_form(*runner, a, rd, r, z, Az); });
  A.start_others(z);
  space.enqueue([=](const exec::Host& host) { sparse::add_lower(host, a, z, Az); });
  A.finish_others(Az);
}

/// Base of DILU and ILU(0): pattern, runner, rd, and the report of a row that cannot be factored.
template <class Space, class T>
class DiluForm : public Preconditioner<Space, T> {
 public:
  using Preconditioner<Space, T>::apply;
  DiluForm(const Context<Space>& context, std::shared_ptr<const sparse::PatternOf<Space>> pattern, std::string name,
           bool symmetric);
  std::size_t bytes() const override;
  std::optional<triangular::Report> triangular() const override { return runner_->report(); }

 protected:
  /// Where the partner a_ji of each lower entry a_ij stands among the upper entries, or -1.
  const Offset* partner() const { return partner_.data(); }
  void forget_trouble();
  void require_no_trouble() const;
  /// These triangles and rd, rounded; `same`: the triangles are those of A, which is rounded already.
  std::unique_ptr<Preconditioner<Space, float>> rounded_form(const T* lower, const T* upper,
                                                             const sparse::Rounding& rounding,
                                                             const std::shared_ptr<const sparse::RoundedMatrix>& a,
                                                             bool same) const;

  Space space_;
  std::shared_ptr<const sparse::PatternOf<Space>> pattern_;
  std::shared_ptr<triangular::SliceRunner> runner_;
  exec::Array<T> rd_;
  exec::Array<Trouble> trouble_;
  bool symmetric_;  // DIC and IC(0): values must be symmetric

 private:
  std::string name_;
  std::function<Index(Index)> caller_row_;
  exec::Array<Offset> partner_;
  Index unpaired_ = Trouble::none;  // where symmetry is needed: the first row with an entry that has no partner
};

/// A DILU form that was rounded once: sweeps in single precision over triangles stored in S.
template <class Space, class S>
class RoundedForm final : public Preconditioner<Space, float> {
 public:
  using Matrix = sparse::RoundedMatrixOf<Space, S>;
  /// shared: the triangles are those of A.
  RoundedForm(Space space, std::shared_ptr<triangular::SliceRunner> runner, std::shared_ptr<const Matrix> triangles,
              exec::Array<float> rd, bool shared)
      : space_(std::move(space)),
        runner_(std::move(runner)),
        triangles_(std::move(triangles)),
        rd_(std::move(rd)),
        shared_(shared) {}
  void factor(const Values<Space, float>&, double) override {}
  void apply(const float* r, float* z) override;
  void apply(const sparse::Operator<Space, float>& A, const float* r, float* z, float* Az) override;
  std::optional<triangular::Report> triangular() const override { return runner_->report(); }
  std::size_t bytes() const override {
    return (shared_ && triangles_.use_count() > 1 ? 0 : triangles_->matrix.bytes()) + rd_.bytes();
  }

 private:
  Space space_;
  std::shared_ptr<triangular::SliceRunner> runner_;
  std::shared_ptr<const Matrix> triangles_;
  exec::Array<float> rd_;
  bool shared_;
};

}  // namespace krilu::precond
