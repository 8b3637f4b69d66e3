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

/// Counts the block that has come; true in all threads of the one that comes last, which see what the first warp of
/// each wrote before it came.
__device__ __forceinline__ bool arrive(unsigned* arrived, unsigned blocks) {
  __shared__ bool last;
  if (threadIdx.x < 32) __syncwarp();
  if (threadIdx.x == 0) {
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(arrived) : "memory");
    last = before == blocks - 1;
  }
  __syncthreads();
  return last;
}

/// In the last block: the sum of all partials, in thread 0.
template <class T, int N>
__device__ void sum_partials(T (&sum)[N], const T* partial, unsigned blocks) {
  for (int k = 0; k < N; ++k) sum[k] = 0;
  for (unsigned b = threadIdx.x; b < blocks; b += block_threads)
    for (int k = 0; k < N; ++k) sum[k] += static_cast<const volatile T*>(partial)[N * b + k];
  block_sum(sum);  // whose shared memory nobody reads any more: all came together since
}

// Many sums side by side, N of them, a power of two: sum k in thread k.

/// Adds what the lanes of the block's warps have, 32 / N side by side of each sum.
template <int N, class T>
__device__ T add_lanes(T value) {
  constexpr int lanes = 32 / N, warps = block_threads / 32;
  __shared__ T of_warp[N][warps + 1];
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  const unsigned lane = threadIdx.x % 32;
  if (lane % lanes == 0) of_warp[lane / lanes][threadIdx.x / 32] = value;
  __syncthreads();
  T sum = 0;
  if (threadIdx.x < N)
#pragma unroll
    for (int w = 0; w < warps; ++w) sum += of_warp[threadIdx.x][w];
  return sum;
}
/// Adds the values of the block's threads. Each time a lane gives half of the sums that it still has to another, and is
/// given that one's other half: N - 1 exchanges, where N trees would take 5 N.
template <class T, int N>
__device__ T block_sums(T (&value)[N]) {
  static_assert(N <= 32 && (N & (N - 1)) == 0);
  // Loops of fixed length, so that values stay in registers.
#pragma unroll
  for (int step = 1; step < N; step *= 2) {
    const int kept = N / 2 / step, distance = 16 / step;
    const bool upper = threadIdx.x & unsigned(distance);
#pragma unroll
    for (int k = 0; k < N / 2; ++k) {
      if (k >= kept) break;
      const T given = upper ? value[k] : value[k + kept];
      value[k] = (upper ? value[k + kept] : value[k]) + __shfl_xor_sync(0xffffffffu, given, distance);
    }
  }
  return add_lanes<N>(value[0]);
}
/// In the last block: the sums of all partials, of which block b left sum k in partial[N * b + k].
template <int N, class T>
__device__ T sum_many_partials(const T* partial, unsigned blocks) {
  constexpr unsigned lanes = 32 / N;
  const unsigned lane = threadIdx.x % 32, k = lane / lanes;
  T sum = 0;
#pragma unroll 4
  for (unsigned b = threadIdx.x / 32 * lanes + lane % lanes; b < blocks; b += block_threads / 32 * lanes)
    sum += static_cast<const volatile T*>(partial)[N * b + k];
  return add_lanes<N>(sum);
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
  if (threadIdx.x == 0)
    for (int k = 0; k < N; ++k) partial[N * blockIdx.x + k] = sum[k];
  if (!arrive(arrived, gridDim.x)) return;
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
/// By a warp. Not where `count`, if there is one, is negative.
template <class Close, class F, class... Arguments>
__global__ void close_kernel(F f, Close close, Gathered in, const Index* count, Arguments... of_f) {
  if (threadIdx.x == 0) in.see_to_wishes();
  if (count && *count < 0) return;
  close_with(close, sums_from<std::decay_t<decltype(f(of_f...))>>(in, 0));
}

}  // namespace krilu::exec::cuda
