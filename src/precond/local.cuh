// SPDX-License-Identifier: Apache-2.0
// local.hpp on a GPU. The problem is laid out on the host; values never come back there, but for ILUT, whose pattern
// follows from them. Sweeps are packed where the parts fit shared memory, and else, or where a strategy is asked for by
// name, those of any triangle (triangular/runner.cuh). Rounded ones are made in local_rounded.cu.
#pragma once

#include "precond/elimination.cuh"
#include "precond/factors.cuh"
#include "precond/local.hpp"
#include "triangular/packed.cuh"

namespace krilu::precond {

template <>
class LocalSweeps<exec::Cuda, double> {
 public:
  /// `order`: schedule::by_parts of the factors' pattern; `graph`: the pattern of factors + factors^T.
  LocalSweeps(const Context<exec::Cuda>& context, const LocalProblem& problem, const CsrView& factors,
              const Offset* diagonal, const sparse::RowOrder& order, const CsrView& graph);
  /// The factors' values in the scaled form of packed.hpp, on the device and in the sequence of their CSR; scale: the
  /// reciprocal pivots of the local rows.
  void take(const double* factors, const double* scale);
  void apply(const double* r, double* z) const;
  std::size_t bytes() const;
  triangular::Report report() const {
    return packed_ ? triangular::Report{triangular::Strategy::parts, {}, true} : runner_->report();
  }
  int trials_left() const { return packed_ ? 0 : runner_->trials_left(); }
  /// What was taken, scaled and rounded.
  std::unique_ptr<Preconditioner<exec::Cuda, float>> rounded(const sparse::Rounding& rounding) const;

 private:
  exec::Cuda space_;
  std::unique_ptr<triangular::PackedSweeps> packed_;
  // Else:
  std::shared_ptr<const schedule::Plan> plan_;
  std::shared_ptr<const sparse::SlicedPattern> pattern_;
  std::unique_ptr<triangular::WarpRunner> runner_;
  sparse::SlicedMatrix<double> factors_;
  exec::Array<double> scale_, restricted_, between_, solved_;
  // Of each row in sweep order: its place in r and z, or ~place where z is another part's
  std::shared_ptr<const exec::Array<Index>> map_;
  exec::Array<Index> local_;  // its local row
};

template <>
class Local<exec::Cuda, double> final : public Preconditioner<exec::Cuda, double> {
  using T = double;

 public:
  Local(const Context<exec::Cuda>& context, std::shared_ptr<const sparse::SlicedPattern> pattern,
        const std::string& name);
  void factor(const Values<exec::Cuda, T>& a, double shift) override;
  using Preconditioner<exec::Cuda, T>::apply;
  void apply(const T* r, T* z) override { sweeps_->apply(r, z); }
  std::size_t bytes() const override;
  std::string description() const override { return description_; }
  std::optional<triangular::Report> triangular() const override {
    return sweeps_ ? std::optional(sweeps_->report()) : std::nullopt;
  }
  int trials_left() const override { return sweeps_ ? sweeps_->trials_left() : 0; }
  std::unique_ptr<Preconditioner<exec::Cuda, float>> rounded(
      const sparse::Rounding& rounding, const std::shared_ptr<const sparse::RoundedMatrix>&) const override {
    return sweeps_->rounded(rounding);
  }

 private:
  /// Lays out sweeps over factors of this pattern; the rows level by level, and how many levels there are.
  std::pair<std::vector<Index>, Index> make_sweeps(const CsrView& factors, const Offset* diagonal);

  Context<exec::Cuda> context_;
  Spec spec_;
  std::string name_, description_;
  LocalProblem problem_;  // without its pattern where that is on the device
  DevicePattern pattern_;
  exec::Array<Offset> source_;  // of each entry: its position among the caller's nonzeros, or -1
  exec::Array<Index> row_;      // the caller's row of each local one; empty where they are the same
  exec::Array<Index> zero_pivot_;
  std::unique_ptr<LocalSweeps<exec::Cuda, T>> sweeps_;
};

#if defined(__CUDACC__)
/// x = scale R r, row by row. map: of each its place in r and z, or ~place where z is another part's.
template <class T>
__global__ void restrict_kernel(Index n, const Index* map, const T* scale, const T* r, T* x) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] = scale[i] * r[map[i] < 0 ? ~map[i] : map[i]];
}
/// z = R0^T x.
template <class T>
__global__ void prolong_kernel(Index n, const Index* map, const T* x, T* z) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n && map[i] >= 0) z[map[i]] = x[i];
}
#endif

}  // namespace krilu::precond
