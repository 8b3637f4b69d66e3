// SPDX-License-Identifier: Apache-2.0
#include "sparse/split_cuda.cuh"

namespace krilu::sparse {

namespace {

template <class T>
__device__ T row_sum(const PartPattern& part, const T* value, Index slice, int lane, const T* x) {
  T sum = 0;
  const Offset end = part.offset[slice + 1];
  for (Offset k = part.offset[slice] + lane; k < end; k += cuda_height) sum += value[k] * x[part.column[k]];
  return sum;
}

/// y = A x, or b - A x where b is given. A warp a slice.
template <class T>
__global__ void __launch_bounds__(exec::cuda::block_threads)
    product_kernel(SplitView<T> a, const T* b, const T* x, T* y) {
  const Index slice = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / cuda_height);
  if (slice >= a.pattern.slices) return;
  const int lane = threadIdx.x % cuda_height;
  const Index row = a.pattern.slice_row[slice] + lane;
  if (row >= a.pattern.slice_row[slice + 1]) return;
  T sum = row_sum(a.pattern.lower, a.lower, slice, lane, x);
  sum += a.diagonal[row] * x[row];
  sum += row_sum(a.pattern.upper, a.upper, slice, lane, x);
  y[row] = b ? b[row] - sum : sum;
}

template <class T>
void launch(const exec::Cuda& space, const SplitView<T>& a, const T* b, const T* x, T* y) {
  constexpr int slices_per_block = exec::cuda::block_threads / cuda_height;
  const unsigned blocks = unsigned((a.pattern.slices + slices_per_block - 1) / slices_per_block);
  if (blocks == 0) return;
  product_kernel<<<blocks, exec::cuda::block_threads, 0, space.stream()>>>(a, b, x, y);
  exec::require_cuda(cudaGetLastError(), "launching a product");
}

}  // namespace

template <class T>
void SplitOperator<exec::Cuda, T>::apply(const T* x, T* y) const {
  launch<T>(space_, a_, nullptr, x, y);
}
template <class T>
void SplitOperator<exec::Cuda, T>::residual(const T* b, const T* x, T* r) const {
  launch<T>(space_, a_, b, x, r);
}

template class SplitOperator<exec::Cuda, double>;

}  // namespace krilu::sparse
