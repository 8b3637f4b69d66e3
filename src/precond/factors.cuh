// SPDX-License-Identifier: Apache-2.0
// The DILU form on a GPU: what DILU and ILU(0) share there. Beside rd one vector more, which the two sweeps pass on.
#pragma once

#include "precond/dilu.hpp"
#include "precond/elimination.cuh"
#include "precond/factors.hpp"
#include "precond/ilu0.hpp"
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

 protected:
  /// The diagonal with its shift (row_walk.hpp says which), on the device.
  const T* diagonal_of(const sparse::SlicedMatrix<T>& a, double shift);
  /// rd of DILU for these values.
  void find_pivots(const sparse::SlicedMatrix<T>& a, double shift);
  /// Notes the first row whose entries are not their mirrors, where the name asks for symmetry.
  void look_for_asymmetry(const sparse::SlicedMatrix<T>& a);
  void forget_trouble();
  void require_no_trouble() const;
  /// (E + L) E^-1 (E + U) z = r.
  void solve(const T* lower, const T* upper, const T* r, T* z) const;

  exec::Cuda space_;
  std::shared_ptr<const sparse::SlicedPattern> pattern_;
  std::shared_ptr<triangular::WarpRunner> runner_;
  exec::Array<T> rd_, work_, shifted_;
  exec::Array<Trouble> trouble_;
  exec::Array<Offset> partner_;  // of each lower entry among the upper ones, or -1
  bool symmetric_;

 private:
  std::string name_;
  std::function<Index(Index)> caller_row_;
};

}  // namespace krilu::precond
