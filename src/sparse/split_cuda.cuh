// SPDX-License-Identifier: Apache-2.0
// Products of a split matrix on a GPU: one thread a row, slices of 32 rows, so that the lanes of a warp read
// consecutive entries. Sums run in the host's sequence. 12 bytes a nonzero, 20 a row.
#pragma once

#include "exec/cuda.cuh"
#include "sparse/operator.hpp"

namespace krilu::sparse {

/// The slice height that the kernels expect.
inline constexpr int cuda_height = 32;

template <class T>
class SplitOperator<exec::Cuda, T> final : public Operator<exec::Cuda, T> {
 public:
  SplitOperator(exec::Cuda space, const SplitMatrix<T>& a) : space_(std::move(space)), a_(a.view()) {}
  Index rows() const override { return a_.pattern.rows; }
  void apply(const T* x, T* y) const override;
  void residual(const T* b, const T* x, T* r) const override;

 private:
  exec::Cuda space_;
  SplitView<T> a_;
};

}  // namespace krilu::sparse
