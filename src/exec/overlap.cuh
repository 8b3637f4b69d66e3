// SPDX-License-Identifier: Apache-2.0
// Kernels that follow one another in a stream, each beginning while the one before it ends: thread blocks of the next
// start as places fall free, ask for what no launch before it writes, and wait only then for what those wrote. So the
// cost of a launch, and the memory's first answers, pass while the last blocks of the launch before are at work. To let
// the next one begin takes each thread block some time: of 64 threads they are too many. Source: CUDA programming
// guide, programmatic dependent launch, of compute capability 9.0 on.
#pragma once

#include <utility>

#include "exec/cuda.cuh"

namespace krilu::exec {

#if defined(__CUDACC__)

/// From here on, once all thread blocks have come here or ended, the next launch may begin.
__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/// Returns once the launches before this one have ended, and what they wrote can be read.
__device__ __forceinline__ void await_former() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Launches a kernel each of whose thread blocks calls await_former() before it reads what a launch before wrote, or
/// writes. overlaps: it begins while the launch before it, of a kernel and in the same stream, ends.
template <class... Parameters, class... Arguments>
void launch(const Cuda& space, bool overlaps, void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
            Arguments&&... arguments) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = space.stream();
  config.attrs = &overlap;
  config.numAttrs = overlaps && space.overlaps_launches() ? 1 : 0;
  require_cuda(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), "launching a kernel");
}

#endif

}  // namespace krilu::exec
