// SPDX-License-Identifier: Apache-2.0
// Sums on a GPU, formed by a grid of fixed size and added in block order by the block that finishes last, which also
// runs the closing step: one launch a reduction, and the same bits on every run. Over the ranks of a team they are
// added there too, where kernels reach one another (team.cuh). Source: the last-block reduction of the CUDA samples
// (threadFenceReduction). Included by cuda.cuh.
#pragma once

#include <cstddef>
#include <type_traits>

#include "exec/lanes.hpp"
#include "exec/overlap.cuh"
#include "exec/team.cuh"
#include "exec/view.hpp"

namespace krilu::exec::cuda {

constexpr int block_threads = 256;
constexpr std::size_t most_sum_bytes = 3 * sizeof(double);  // of one block: up to three sums

/// Adds the block's values, result in thread 0. Fixed tree: the same bits on every run.
template <class T, int N>
__device__ void block_sum(T (&sum)[N]) {
  __shared__ T warp_sum[N][block_threads / 32];
#pragma unroll
  for (int k = 0; k < N; ++k) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) sum[k] += __shfl_down_sync(0xffffffffu, sum[k], offset);
    if (threadIdx.x % 32 == 0) warp_sum[k][threadIdx.x / 32] = sum[k];
  }
  __syncthreads();
  if (threadIdx.x < 32) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      sum[k] = threadIdx.x < block_threads / 32 ? warp_sum[k][threadIdx.x] : T(0);
#pragma unroll
      for (int offset = block_threads / 64; offset > 0; offset /= 2)
        sum[k] += __shfl_down_sync(0xffffffffu, sum[k], offset);
    }
  }
}

/// Leaves the block's sums in partial[N * block]; true in all threads of the block that arrives last, once all are
/// seen.
template <class T, int N>
__device__ bool arrive(T (&sum)[N], T* partial, unsigned* arrived, unsigned blocks, unsigned block) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    for (int k = 0; k < N; ++k) partial[N * block + k] = sum[k];
    __threadfence();
    last = atomicAdd(arrived, 1u) == blocks - 1;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

/// In the last block: the sum of all partials, in thread 0.
template <class T, int N>
__device__ void sum_partials(T (&sum)[N], const T* partial, unsigned blocks) {
  for (int k = 0; k < N; ++k) sum[k] = 0;
  for (unsigned b = threadIdx.x; b < blocks; b += block_threads)
    for (int k = 0; k < N; ++k) sum[k] += static_cast<const volatile T*>(partial)[N * b + k];
  __syncthreads();  // block_sum's shared memory is used again
  block_sum(sum);
}

/// Where kernels do not add up over ranks themselves, instead of the closing step: as doubles.
template <class V>
__device__ __forceinline__ void leave_sums(double* out, const V& total) {
#pragma unroll
  for (int k = 0; k < SumTraits<V>::count; ++k) out[k] = double(SumTraits<V>::get(total, k));
}

/// close(lanes, total) by a warp, or close(total) by its first thread.
template <class Close, class V>
__device__ __forceinline__ void close_with(const Close& close, const V& total) {
  if constexpr (std::is_invocable_v<const Close&, Lanes, V>)
    close(Lanes{}, total);
  else if (Lanes::first())
    close(total);
}

/// The end of a reduction's kernel: the threads' sums of the whole grid, and close() of them.
template <class V, class Close, class T, int N>
__device__ void close_sum(T (&sum)[N], const Close& close, void* work, unsigned* arrived, const Post* post,
                          double* leave) {
  static_assert(N * sizeof(T) <= most_sum_bytes);
  T* const partial = static_cast<T*>(work);
  block_sum(sum);
  if (!arrive(sum, partial, arrived, gridDim.x, blockIdx.x)) return;
  sum_partials(sum, partial, gridDim.x);
  if (post && threadIdx.x < 32) share(post, 0, sum);
  if (threadIdx.x >= 32) return;
  if (threadIdx.x == 0) *arrived = 0;
  V total;
  T* const out = reinterpret_cast<T*>(&total);
  for (int k = 0; k < N; ++k) out[k] = Lanes::of(sum[k], 0);
  if (!leave)
    close_with(close, total);
  else if (threadIdx.x == 0)
    leave_sums(leave, total);
}

template <class F, class Close>
__global__ void __launch_bounds__(block_threads) reduce_kernel(Turn turn, std::size_t n, F f, Close close, void* work,
                                                               unsigned* arrived, const Post* post, double* leave) {
  // The type is asked for here: host code does not know what a device lambda returns.
  using V = std::decay_t<decltype(f(Index{}))>;
  using T = typename SumTraits<V>::Value;
  constexpr int N = SumTraits<V>::count;
  T sum[N] = {};
  turn.take();
  const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    const V v = f(static_cast<Index>(i));
#pragma unroll
    for (int k = 0; k < N; ++k) sum[k] += SumTraits<V>::get(v, k);
  }
  close_sum<V>(sum, close, work, arrived, post, leave);
}

template <class V>
__device__ V sums_from(const Gathered& in, Index first) {
  V total;
  for (int k = 0; k < SumTraits<V>::count; ++k)
    reinterpret_cast<typename SumTraits<V>::Value*>(&total)[k] = typename SumTraits<V>::Value(in(first + k));
  return total;
}
/// By a warp.
template <class Close, class F, class... Arguments>
__global__ void close_kernel(F f, Close close, Gathered in, Arguments... of_f) {
  if (threadIdx.x == 0) in.see_to_wishes();
  close_with(close, sums_from<std::decay_t<decltype(f(of_f...))>>(in, 0));
}

}  // namespace krilu::exec::cuda
