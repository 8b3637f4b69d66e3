// SPDX-License-Identifier: Apache-2.0
// The system on a GPU: A goes there once, and what is asked of its pattern (is it valid, symmetric, what are its
// levels, how do its slices look) is found there. Vectors are brought across in the caller's order and permuted on the
// device.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "precond/factors.cuh"
#include "schedule/blocks.hpp"
#include "schedule/layout.cuh"
#include "solver/plan.hpp"
#include "sparse/hec.cuh"

namespace krilu::solver {

/// A matrix in the caller's order, of which nothing is asked but a preconditioner with factors of its own.
class DeviceMatrixAlone {
 public:
  DeviceMatrixAlone(exec::Cuda space, const CsrView& a);
  std::unique_ptr<precond::Preconditioner<exec::Cuda, double>> preconditioner(const Plan& plan, const CsrView& a,
                                                                              triangular::Strategy strategy) const;
  void set_values(const CsrView& a);
  void forget_values() { a_.values = {}; }
  precond::Values<exec::Cuda, double> values(const CsrView& a) const { return {nothing_, a}; }
  std::size_t bytes() const { return a_.offsets.bytes() + a_.columns.bytes() + a_.values.bytes(); }

 private:
  exec::Cuda ex_;
  sparse::DeviceCsr a_;
  std::shared_ptr<const schedule::Plan> plan_;  // without slices
  sparse::SlicedMatrix<double> nothing_;
};

class DeviceSystem {
  using T = double;

 public:
  using Alone = DeviceMatrixAlone;
  DeviceSystem(exec::Cuda space, const Options&) : ex_(std::move(space)) {}

  Facts look(const CsrView& a, bool values);
  /// With values that are on this GPU, or null; then of a only the pattern is read.
  Facts look_there(const CsrView& a, const T* values);
  /// Throws krilu::Error where the array is not in this GPU's memory; what follows waits for the caller's stream.
  void admit(const void* array, const char* what, void* stream) const;
  /// The analysed pattern, on this GPU.
  CsrView pattern_there() const { return a_.view(); }
  /// After look: whether rows are those of a lattice, as schedule/blocks.hpp has it.
  bool on_lattice();
  void analyse(const CsrView& a, const CsrView& graph, const Plan& plan);
  void set_values(const CsrView& a, bool seen);
  /// Values that are on this GPU. a: the pattern; with values where the preconditioner factors a matrix of its own.
  void set_values_there(const CsrView& a, const T* values, bool seen);

  void forget_values() { a_.values = {}; }

  precond::Context<exec::Cuda> context(const CsrView& a, triangular::Strategy strategy) const;
  const std::shared_ptr<const sparse::SlicedPattern>& pattern() const { return pattern_; }
  const sparse::SlicedMatrix<T>& matrix() const { return matrix_; }
  /// In HEC where that is stored, else over the slices.
  std::unique_ptr<const sparse::Operator<exec::Cuda, T>> product() const;
  /// A scaled and rounded, scales in the solver's order.
  sparse::Rounded<exec::Cuda> rounded(const sparse::Rounding& rounding) const;
  /// The format of products, where it is not the one that everything else reads.
  std::string format() const {
    return hec_ ? "hec, " + std::to_string(hec_->width()) + " entries wide" : std::string();
  }
  /// Of an application in coloured blocks; 0 for other layouts.
  Index launches() const { return plan_ && plan_->layout->blocks ? 2 * plan_->levels() - 1 : 0; }
  const std::string& shape() const { return shape_; }
  std::size_t bytes() const;
  /// The caller's rows and columns, as they came.
  CsrMatrix caller_matrix(std::span<const Index> missing_diagonal) const;

  void copy_in(const exec::Array<T>& to, std::span<const double> from) const;
  void copy_out(std::span<double> to, const exec::Array<T>& from) const;
  /// Where the caller's rows stand in the solver's order.
  Buffer<Index> places(std::span<const Index> rows) const;

  /// The same between arrays of this GPU.
  void permute_in(double* to, const double* from) const;
  void permute_out(double* to, const double* from) const;

 private:
  void make_way(const CsrView& a);
  Facts found(const CsrView& a);
  void take_values(const CsrView& a);
  void keep_hec(sparse::Hec<exec::Cuda, T>&& hec);
  exec::Cuda ex_;
  sparse::DeviceCsr a_;                       // the pattern stays: another preconditioner may ask for it
  std::optional<schedule::Lattice> lattice_;  // once it was looked for
  std::shared_ptr<const schedule::Plan> plan_;
  std::shared_ptr<const sparse::SlicedPattern> pattern_;
  sparse::SlicedMatrix<T> matrix_;
  std::unique_ptr<const sparse::Hec<exec::Cuda, T>> hec_;
  std::optional<sparse::HecShortening> shortening_;  // of this pattern, once a matrix of it was in HEC
  bool may_use_hec_ = false;                         // rows stand in the caller's order
  bool may_build_hec_ = false;                       // on the host: the preconditioner's own analysis takes longer
  std::string shape_;
  Index longest_ = 0;      // row, where may_use_hec_
  Index not_finite_ = -1;  // the first row of the values that look saw
};

}  // namespace krilu::solver
