// SPDX-License-Identifier: Apache-2.0
// RowEquations (equations.hpp) that a GPU evaluates too, a thread a row; to be compiled by nvcc.
//
//   krilu::DeviceRowEquations equations(Bratu{n, lambda});
//   krilu::NewtonSolver newton(equations, options);          // options.linear.device: auto or cuda
//
// F and the Jacobian then never leave the GPU: entries are written in the pattern's order where the solver takes them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "krilu/equations.hpp"

namespace krilu {

namespace detail {

constexpr int row_threads = 128;

template <class R>
__global__ void __launch_bounds__(row_threads)
    row_residual_kernel(Index first, Index count, R rows, View<const double> x, View<double> F) {
  const std::int64_t i = std::int64_t(blockIdx.x) * row_threads + threadIdx.x;
  if (i < count) F[first + Index(i)] = rows.residual(first + Index(i), x);
}

/// place: see RowEquations; null where columns are added in ascending order.
template <class R>
__global__ void __launch_bounds__(row_threads)
    row_jacobian_kernel(Index first, Index count, R rows, const Offset* offsets, const Offset* place,
                        View<const double> x, double* values) {
  const std::int64_t i = std::int64_t(blockIdx.x) * row_threads + threadIdx.x;
  if (i >= count) return;
  const Offset begin = offsets[i];
  rows.jacobian(first + Index(i), x, [&](Index k, double v) { values[place ? place[begin + k] : begin + k] = v; });
}

inline void require_cuda_of_equations(cudaError_t status) {
  if (status != cudaSuccess)
    throw Error(std::string("evaluating equations on the GPU failed: ") + cudaGetErrorString(status));
}

struct DeviceMemory {
  void operator()(void* p) const { cudaFree(p); }
};

}  // namespace detail

template <class R>
class DeviceRowEquations : public RowEquations<R> {
  static_assert(std::is_trivially_copyable_v<R>, "rows are copied to the GPU: views and numbers, no containers");

 public:
  /// Rows that view no memory, or memory that host and GPU both reach.
  explicit DeviceRowEquations(R rows) : DeviceRowEquations(rows, 0, rows.rows()) {}
  /// Rows first .. first + count - 1 of them.
  DeviceRowEquations(R rows, Index first, Index count) : DeviceRowEquations(rows, rows, first, count) {}
  /// `there` is `rows` with views of the GPU's memory.
  DeviceRowEquations(R rows, R there) : DeviceRowEquations(rows, std::move(there), 0, rows.rows()) {}
  DeviceRowEquations(R rows, R there, Index first, Index count)
      : RowEquations<R>(std::move(rows), first, count), there_(std::move(there)) {}

  /// What the GPU evaluates, to change with row().
  R& row_there() { return there_; }

  bool on_gpu() const override { return true; }
  void residual_on_gpu(void* stream, View<const double> x, View<double> F) const override {
    const Index n = this->count();
    if (n == 0) return;
    detail::row_residual_kernel<<<blocks(n), detail::row_threads, 0, static_cast<cudaStream_t>(stream)>>>(
        this->first(), n, there_, x, F);
    detail::require_cuda_of_equations(cudaGetLastError());
  }
  void jacobian_on_gpu(void* stream, View<const double> x, View<double> values) const override {
    if constexpr (RowEquations<R>::own_jacobian) {
      const Index n = this->count();
      if (n == 0) return;
      if (!first_there_) {
        first_there_ = brought(this->first_, stream);
        place_there_ = brought(this->place_, stream);
      }
      detail::row_jacobian_kernel<<<blocks(n), detail::row_threads, 0, static_cast<cudaStream_t>(stream)>>>(
          this->first(), n, there_, first_there_.get(), place_there_.get(), x, values.data);
      detail::require_cuda_of_equations(cudaGetLastError());
    }
  }

 private:
  using There = std::unique_ptr<Offset, detail::DeviceMemory>;
  static unsigned blocks(Index n) {
    return unsigned((std::int64_t(n) + detail::row_threads - 1) / detail::row_threads);
  }
  static There brought(const std::vector<Offset>& from, void* stream) {
    if (from.empty()) return nullptr;
    Offset* to = nullptr;
    detail::require_cuda_of_equations(cudaMalloc(&to, from.size() * sizeof(Offset)));
    There there(to);
    // In the stream: a plain copy of pageable memory may return before all of it has arrived.
    const auto s = static_cast<cudaStream_t>(stream);
    detail::require_cuda_of_equations(
        cudaMemcpyAsync(to, from.data(), from.size() * sizeof(Offset), cudaMemcpyHostToDevice, s));
    detail::require_cuda_of_equations(cudaStreamSynchronize(s));
    return there;
  }

  R there_;
  // In the memory of the GPU that was current when a Jacobian was first asked for.
  mutable There first_there_, place_there_;
};

}  // namespace krilu
