// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "krilu/error.hpp"
#include "triangular/packed.cuh"

namespace krilu::triangular {

namespace {

__global__ void take_kernel(std::int64_t words, const Offset* from, const double* factors, double* stream) {
  const std::int64_t w = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (w < words && from[w] >= 0) stream[w] = factors[from[w]];
}

using Kernel = void (*)(PackedView, const double*, double*);
Kernel kernel_for(unsigned width, unsigned threads) {
  const bool few = threads == 64;
  switch (width) {
    case 3: return few ? packed_sweeps<3, 64> : packed_sweeps<3, 128>;
    case 7: return few ? packed_sweeps<7, 64> : packed_sweeps<7, 128>;
    default: return few ? packed_sweeps<15, 64> : nullptr;
  }
}

}  // namespace

std::size_t PackedSweeps::most_shared() {
  int device = 0, bytes = 0;
  exec::require_cuda(cudaGetDevice(&device), "asking for shared memory");
  exec::require_cuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                     "asking for shared memory");
  return std::size_t(bytes) - PackedRing::chunks * sizeof(unsigned long long);
}

bool PackedSweeps::suits(const Packed& p) {
  constexpr Index enough_parts = 16, few_rows = 1024;
  return p.parts() > 0 && p.shared_bytes() <= most_shared() &&
         (p.parts() >= enough_parts || p.part_row.back() <= few_rows);
}

PackedSweeps::PackedSweeps(const exec::Cuda& space, const Packed& p, const std::vector<Index>& map)
    : space_(space),
      width_(p.width),
      threads_(p.threads),
      ring_units_(p.ring_units),
      shared_(p.shared_bytes()),
      parts_(p.parts()),
      most_rows_(p.most_rows),
      part_row_(space_.brought(p.part_row)),
      part_step_(space_.brought(p.part_step)),
      map_(space_.brought(map)),
      part_unit_(space_.brought(p.part_unit)),
      steps_(space_.brought(p.steps)),
      words_(space_.brought(p.words)),
      from_(space_.brought(p.from)),
      scale_(space_.allocate<double>(map.size())) {
  if (kernel_for(width_, threads_) == nullptr) throw Error("sweeps over parts: there is no kernel of this shape");
  // Of the kernel, and so of all sweeps that use it: never less than another one's.
  exec::require_cuda(cudaFuncSetAttribute(kernel_for(width_, threads_), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          int(std::min(packed_most_shared, most_shared()))),
                     "asking for shared memory");
}

void PackedSweeps::take(const double* factors, const double* scale) {
  const auto words = std::int64_t(words_.size());
  if (words > 0)
    take_kernel<<<exec::cuda::blocks_for(words), 256, 0, space_.stream()>>>(words, from_.data(), factors,
                                                                            reinterpret_cast<double*>(words_.data()));
  exec::cuda::launched("packing factors");
  if (scale_.bytes() > 0)
    exec::require_cuda(cudaMemcpyAsync(scale_.data(), scale, scale_.bytes(), cudaMemcpyDeviceToDevice, space_.stream()),
                       "packing factors");
}

void PackedSweeps::apply(const double* r, double* z) const {
  if (parts_ == 0) return;
  const PackedView v{part_row_.data(),
                     part_step_.data(),
                     part_unit_.data(),
                     steps_.data(),
                     reinterpret_cast<const uint4*>(words_.data()),
                     map_.data(),
                     scale_.data(),
                     most_rows_,
                     ring_units_};
  kernel_for(width_, threads_)<<<unsigned(parts_), threads_ + 32, shared_, space_.stream()>>>(v, r, z);
  exec::cuda::launched("launching sweeps over parts");
}

std::size_t PackedSweeps::bytes() const {
  return part_row_.bytes() + part_step_.bytes() + map_.bytes() + part_unit_.bytes() + steps_.bytes() + words_.bytes() +
         from_.bytes() + scale_.bytes();
}

}  // namespace krilu::triangular
