// SPDX-License-Identifier: Apache-2.0
// Kernels that follow one another in a stream, each beginning while the one before it ends: thread blocks of the next
// start as places fall free, ask for what no launch before it writes, and wait only then for what those wrote. So the
// cost of a launch, and the memory's first answers, pass while the last blocks of the launch before are at work. It has
// its price: to wait, and to let the next one begin, takes each thread block some time, so that blocks of 64 threads
// are too many, and loops that have a short-lived block for every few rows are faster without.
//
// A launch that overlaps may begin before all others of a chain have: what a kernel asks for before it waits must have
// been there when the last launch began that did not overlap. And some thread of each launch has to wait, or to have
// waited for it says nothing of those before it. Source: CUDA programming guide, programmatic dependent launch, of
// compute capability 9.0 on.
#pragma once

#include <cuda_runtime.h>

#include <utility>

namespace krilu::exec {

#if defined(__CUDACC__)

/// From here on, once all thread blocks have come here or ended, the next launch may begin.
__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/// Returns once the launches before this one have ended, and what they wrote can be read: not by __ldg nor through a
/// restricted pointer, since a compiler may move such a load to the front.
__device__ __forceinline__ void await_former() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Both, in a launch that overlaps.
__device__ __forceinline__ void take_turn() {
  await_former();
  let_next_begin();
}
/// What kernels of Cuda::launch() are told, and say before all else: take().
struct Turn {
  bool overlaps;
  __device__ __forceinline__ void take() const {
    if (overlaps) take_turn();
  }
};

#endif

/// Thread blocks, and the threads of each.
struct Grid {
  unsigned blocks, threads;
};

/// Launches a kernel each of whose thread blocks calls await_former() before it reads what a launch before wrote, or
/// writes. overlaps: it begins while the launch before it ends.
template <class... Parameters, class... Arguments>
cudaError_t launch_kernel(cudaStream_t stream, bool overlaps, void (*kernel)(Parameters...), Grid grid,
                          Arguments&&... arguments) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = overlaps ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

}  // namespace krilu::exec
