// SPDX-License-Identifier: Apache-2.0
// What kernels that round, and those that read what was rounded, have in common (rounding.hpp). Included by .cu files
// only.
#pragma once

#include "exec/ask.cuh"
#include "exec/cuda.cuh"
#include "krilu/kernel.hpp"
#include "sparse/rounding.hpp"

namespace krilu::sparse {

/// R and C as kernels see them.
struct DeviceScales {
  const double *row, *column;  // null: all 1
  KRILU_INLINE explicit DeviceScales(const Rounding& rounding) : row(rounding.row), column(rounding.column) {}
  __device__ __forceinline__ double r(Index i) const { return row ? __ldg(row + i) : 1.0; }
  __device__ __forceinline__ double c(Index i) const { return column ? __ldg(column + i) : 1.0; }
};

#if defined(__CUDACC__)
/// v in storage S; `lost` grows where it becomes zero.
template <class S>
__device__ __forceinline__ S rounded_counting(double v, unsigned& lost) {
  const S s = rounded<S>(v);
  lost += v != 0 && float(s) == 0.0f;
  return s;
}
/// By whole warps: adds up what the lanes lost.
__device__ __forceinline__ void count_lost(std::int64_t* lost, unsigned mine) {
  const unsigned all = __reduce_add_sync(0xffffffffu, mine);
  if (lost && all > 0 && threadIdx.x % 32 == 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(lost), static_cast<unsigned long long>(all));
}

/// A stored value that is read once.
template <class S>
__device__ __forceinline__ S streamed(const S* p) {
  if constexpr (sizeof(S) == 2) {
    S s;
    s.bits = __ldcs(&p->bits);
    return s;
  } else {
    return __ldcs(p);
  }
}
/// The same on a condition, else 0 (exec/ask.cuh).
template <class S>
__device__ __forceinline__ S ask_streamed(const S* p, bool wanted) {
  if constexpr (sizeof(S) == 2) {
    S s;
    s.bits = exec::ask_streamed(&p->bits, wanted);
    return s;
  } else {
    return exec::ask_streamed(p, wanted);
  }
}
#endif

}  // namespace krilu::sparse
