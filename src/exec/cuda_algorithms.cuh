// SPDX-License-Identifier: Apache-2.0
// Sorts and scans on a GPU, through CUB: what analyses are made of. Work space comes from the space's pool, so that a
// call costs a few microseconds beside its passes over the data.
#pragma once

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "exec/cuda.cuh"

namespace krilu::exec {

namespace cuda {
struct Larger {
  template <class T>
  __host__ __device__ T operator()(const T& a, const T& b) const {
    return a > b ? a : b;
  }
};

/// Runs a CUB algorithm: asked for its work space first, then given it.
template <class F>
void with_work_space(const Cuda& space, F f) {
  std::size_t bytes = 0;
  require_cuda(f(static_cast<void*>(nullptr), bytes), "sizing a sort or scan");
  const Array<char> work = space.allocate<char>(bytes + 1);
  require_cuda(f(static_cast<void*>(work.data()), bytes), "sorting or scanning");
}
}  // namespace cuda

/// Sorts keys and their values, stably, by the lowest `bits` bits of the keys. Both pairs of arrays are overwritten;
/// the sorted ones stand in the first on return.
template <class Key, class Value>
void sort_pairs(const Cuda& space, Array<Key>& keys, Array<Key>& other_keys, Array<Value>& values,
                Array<Value>& other_values, int bits) {
  cub::DoubleBuffer<Key> k(keys.data(), other_keys.data());
  cub::DoubleBuffer<Value> v(values.data(), other_values.data());
  cuda::with_work_space(space, [&](void* work, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(work, bytes, k, v, int(keys.size()), 0, bits, space.stream());
  });
  if (k.Current() != keys.data()) std::swap(keys, other_keys);
  if (v.Current() != values.data()) std::swap(values, other_values);
}

/// out[i] = in[0] + .. + in[i-1], for n + 1 values of out: the last is the sum.
template <class T>
void sums_before(const Cuda& space, std::size_t n, const T* in, T* out) {
  require_cuda(cudaMemsetAsync(out, 0, sizeof(T), space.stream()), "scanning");
  if (n == 0) return;
  cuda::with_work_space(space, [&](void* work, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(work, bytes, in, out + 1, int(n), space.stream());
  });
}

/// out[i] = max(in[0], .., in[i]).
template <class T>
void maxima_so_far(const Cuda& space, std::size_t n, const T* in, T* out) {
  if (n == 0) return;
  cuda::with_work_space(space, [&](void* work, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveScan(work, bytes, in, out, cuda::Larger{}, int(n), space.stream());
  });
}

}  // namespace krilu::exec
