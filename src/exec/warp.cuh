// SPDX-License-Identifier: Apache-2.0
// What is the same in all lanes of a warp, said so that the compiler knows it. Behind a branch on what it takes to
// differ from lane to lane it guards every shuffle and ballot with another branch (BRA.DIV), and brings no load forward
// across those: what should be asked for at once is asked for piece by piece.
#pragma once

#include <cstdint>

namespace krilu::exec {

#if defined(__CUDACC__)

/// What shuffles and ballots of a whole warp name.
constexpr unsigned all_lanes = 0xffffffffu;

/// value, which all lanes have.
template <class T>
__device__ __forceinline__ T uniform(T value) {
  return __shfl_sync(all_lanes, value, 0);
}
/// The warp's number in its thread block, and in the grid, of blocks of whole warps.
__device__ __forceinline__ int warp_in_block() { return uniform(int(threadIdx.x / 32)); }
__device__ __forceinline__ std::int32_t warp_in_grid() {
  return std::int32_t(blockIdx.x * (blockDim.x / 32)) + warp_in_block();
}

#endif

}  // namespace krilu::exec
