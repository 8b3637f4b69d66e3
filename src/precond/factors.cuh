// SPDX-License-Identifier: Apache-2.0
// The DILU form on a GPU: what DILU and ILU(0) share there. Beside rd one vector more, which the two sweeps pass on.
#pragma once

#include "precond/dilu.hpp"
#include "precond/elimination.cuh"
#include "precond/factors.hpp"
#include "precond/ilu0.hpp"
#include "precond/jacobi.hpp"
#include "triangular/runner.cuh"

namespace krilu::precond {

template <>
struct Context<exec::Cuda> {
  exec::Cuda space;
  triangular::Strategy strategy = triangular::Strategy::automatic;
  std::function<Index(Index)> caller_row;
  std::shared_ptr<const schedule::Plan> plan;  // whose layout the pattern was built in
  const sparse::DeviceCsr* matrix = nullptr;   // the caller's on the device; its values while factor() runs
  CsrView caller = {};                         // the caller's in host memory, while the constructor or factor() runs
};

template <>
struct EliminationOn<exec::Cuda> {
  DevicePattern rows;         // in the slices' order
  exec::Array<Offset> where;  // of each entry among the lower entries, the upper ones and the diagonal, counted through
};

template <class T>
class DiluForm<exec::Cuda, T> : public Preconditioner<exec::Cuda, T> {
 public:
  using Preconditioner<exec::Cuda, T>::apply;
  DiluForm(const Context<exec::Cuda>& context, std::shared_ptr<const sparse::SlicedPattern> pattern, std::string name,
           bool symmetric);
  std::size_t bytes() const override {
    return rd_.bytes() + work_.bytes() + shifted_.bytes() + trouble_.bytes() + partner_.bytes() + runner_->bytes() +
           runner_->plan().bytes();
  }
  std::optional<triangular::Report> triangular() const override {
    return pattern_->rows() > 0 ? std::optional(runner_->report()) : std::nullopt;
  }
  int trials_left() const override { return runner_->trials_left(); }
  /// E^-1: what is left is (I + L) (I + U).
  typename Preconditioner<exec::Cuda, T>::Fold folds() const override { return {rd_.data()}; }

 protected:
  /// The diagonal with its shift (row_walk.hpp says which), on the device.
  const T* diagonal_of(const sparse::SlicedMatrix<T>& a, double shift);
  /// rd of DILU for these values.
  void find_pivots(const sparse::SlicedMatrix<T>& a, double shift);
  /// Notes the first row whose entries are not their mirrors, where the name asks for symmetry.
  void look_for_asymmetry(const sparse::SlicedMatrix<T>& a);
  void forget_trouble();
  void require_no_trouble();
  /// (E + L) E^-1 (E + U) z = r.
  void solve(const T* lower, const T* upper, const T* r, T* z) const;
  /// As on the host. `shifted`: M is of another matrix than A.
  std::unique_ptr<Preconditioner<exec::Cuda, float>> rounded_form(const T* lower, const T* upper,
                                                                  const sparse::Rounding& rounding,
                                                                  const std::shared_ptr<const sparse::RoundedMatrix>& a,
                                                                  bool same) const;

  exec::Cuda space_;
  std::shared_ptr<const sparse::SlicedPattern> pattern_;
  std::shared_ptr<triangular::WarpRunner> runner_;
  exec::Array<T> rd_, work_, shifted_;
  exec::Array<Trouble> trouble_;  // in memory that the host reaches too
  exec::Array<Offset> partner_;   // of each lower entry among the upper ones, or -1
  bool symmetric_;

 private:
  bool factoring_ = false;  // the last factor() did not come to its end
  std::string name_;
  std::function<Index(Index)> caller_row_;
  triangular::Strategy strategy_;
};

/// (E + L) E^-1 (E + U) z = r, y being what the forward sweep leaves. rd null: E = I.
template <class T, class S>
void solve_dilu_form(const triangular::WarpRunner& runner, const sparse::SlicedPatternView& p, const S* lower,
                     const S* upper, const T* rd, const T* r, T* y, T* z) {
  using triangular::Diagonal;
  triangular::Recurrence<T, Diagonal::reciprocal, true, S> forward{p.lower, lower, r, rd, y};
  triangular::Recurrence<T, Diagonal::dilu, false, S> backward{p.upper, upper, y, rd, z};
  runner.both(forward, backward);
}

/// Az of z = M^-1 r, where M = (E + L) E^-1 (E + U) has A's own triangles, after solve_dilu_form in coloured blocks
/// (dilu.cu).
template <class T, class S>
void product_after_sweeps(const exec::Cuda& space, const sparse::SlicedView<T, S>& a, Index widest, const T* rd,
                          const T* y, const T* z, T* Az);

template <class S>
class RoundedForm<exec::Cuda, S> final : public Preconditioner<exec::Cuda, float> {
 public:
  using Matrix = sparse::RoundedMatrixOf<exec::Cuda, S>;
  /// shared: the triangles are those of A, with its diagonal; own: and M is A's. rd: none where E = I.
  RoundedForm(exec::Cuda space, std::shared_ptr<const schedule::Plan> plan, triangular::Strategy strategy,
              std::shared_ptr<const Matrix> triangles, exec::Array<float> rd, bool own, bool shared)
      : space_(std::move(space)),
        runner_(space_, std::move(plan), *triangles->matrix.pattern, strategy),
        triangles_(std::move(triangles)),
        rd_(std::move(rd)),
        work_(space_.allocate<float>(std::size_t(triangles_->matrix.pattern->rows()))),
        own_(own),
        shared_(shared) {}
  void factor(const Values<exec::Cuda, float>&, double) override {}
  void apply(const float* r, float* z) override {
    const auto a = triangles_->matrix.view();
    solve_dilu_form(runner_, a.pattern, a.lower, a.upper, rd_.data(), r, work_.data(), z);
  }
  void apply(const sparse::Operator<exec::Cuda, float>& A, const float* r, float* z, float* Az) override {
    apply(r, z);
    if (!own_ || A.stored() != triangles_->matrix.diagonal.data() || !runner_.blocks() ||
        triangles_->matrix.pattern->slices() == 0)
      return A.apply(z, Az);
    A.start_others(z);
    product_after_sweeps(space_, triangles_->matrix.view(), triangles_->matrix.pattern->widest(), rd_.data(),
                         work_.data(), z, Az);
    A.finish_others(Az);
  }
  std::optional<triangular::Report> triangular() const override { return runner_.report(); }
  int trials_left() const override { return runner_.trials_left(); }
  std::size_t bytes() const override {
    return (shared_ && triangles_.use_count() > 1 ? 0 : triangles_->bytes()) + rd_.bytes() + work_.bytes() +
           runner_.bytes();
  }

 private:
  exec::Cuda space_;
  triangular::WarpRunner runner_;
  std::shared_ptr<const Matrix> triangles_;
  exec::Array<float> rd_, work_;
  bool own_, shared_;
};

}  // namespace krilu::precond
