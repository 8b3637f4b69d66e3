// SPDX-License-Identifier: Apache-2.0
// Lanes: those who take one small step together where the vectors live, a warp on a GPU and one on the host. What is
// left between two passes over long vectors, a Givens rotation say, has few operations and many words to wait for; one
// thread of a GPU would wait for them one by one.
#pragma once

#include "krilu/kernel.hpp"

namespace krilu::exec {

struct Lanes {
#if defined(__CUDA_ARCH__)
  static constexpr int count = 32;
  static __device__ int lane() { return int(threadIdx.x) % 32; }
  /// What each wrote before, all see behind it.
  static __device__ void meet() { __syncwarp(); }
  /// What lane `from` has.
  template <class T>
  static __device__ T of(T value, int from) {
    return __shfl_sync(0xffffffffu, value, from);
  }
  /// What the lane `back` before this one has; the first lanes, which have none, keep `none`.
  template <class T>
  static __device__ T before(T value, int back, T none) {
    const T given = __shfl_up_sync(0xffffffffu, value, unsigned(back));
    return lane() < back ? none : given;
  }
  /// The sum over all lanes, the same in each.
  template <class T>
  static __device__ T sum(T value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
  }
#else
  static constexpr int count = 1;
  static KRILU_INLINE int lane() { return 0; }
  static KRILU_INLINE void meet() {}
  template <class T>
  static KRILU_INLINE T of(T value, int) {
    return value;
  }
  template <class T>
  static KRILU_INLINE T before(T, int, T none) {
    return none;
  }
  template <class T>
  static KRILU_INLINE T sum(T value) {
    return value;
  }
#endif
  static KRILU_INLINE bool first() { return lane() == 0; }
};

}  // namespace krilu::exec
