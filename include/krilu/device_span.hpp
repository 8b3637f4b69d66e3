// SPDX-License-Identifier: Apache-2.0
// A caller's array in the memory of a GPU, for krilu::Solver to take where it stands: no copy through the host.
//
//   krilu::Solver solver(options);                  // options.device "cuda", or "auto" where there is a GPU
//   solver.setup(pattern, {values, nnz, stream});   // offsets and columns in host memory, once
//   for (each time step) {
//     solver.factor({values, nnz, stream});
//     krilu::Result r = solver.solve({b, n, stream}, {x, n, stream});
//   }
//
// Place: the memory of the very GPU that the solver works on (Solver::gpu), from cudaMalloc, cudaMallocAsync or
// cudaMallocManaged, contiguous.
// Order: krilu works in a stream of its own. What the array's stream holds when a call is made is waited for, on the
// GPU; when the call returns krilu has done with the array, so that nothing has to be waited for after it. Work that
// stands in further streams has to be in the order of that one (cudaStreamWaitEvent). The stream must not be recording.
#pragma once

#include <cstddef>
#include <type_traits>

namespace krilu {

/// Borrowed. `stream` is the cudaStream_t in whose order the array is written and freed; null is CUDA's default
/// stream. There is no span without one: to forget it would be a race.
template <class T>
struct DeviceSpan {
  DeviceSpan() = default;
  DeviceSpan(T* array, std::size_t entries, void* in_stream) : data(array), size(entries), stream(in_stream) {}
  template <class U>
  requires(std::is_same_v<const U, T> && !std::is_same_v<U, T>) DeviceSpan(const DeviceSpan<U>& o)
      : data(o.data), size(o.size), stream(o.stream) {}

  T* data = nullptr;
  std::size_t size = 0;
  void* stream = nullptr;
};

/// The number of the GPU in whose memory p lies; -1 for host memory, and where this build or machine has no GPU.
int gpu_of(const void* p);

}  // namespace krilu
