// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "sparse/csr_cuda.cuh"

namespace krilu::sparse {

namespace {

using exec::cuda::blocks_for;
using exec::cuda::launched;
constexpr Index none = std::numeric_limits<Index>::max();

struct Found {
  int offsets_bad = 0, columns_bad = 0, pattern_differs = 0, values_differ = 0;
  Index first_bad = none, first_not_finite = none;
  Index missing = 0, zero = 0, negative = 0;
  unsigned long long hash = 0;
};

__global__ void check_offsets(CsrView a, Offset nnz, Found* found) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= a.rows) return;
  if (a.offsets[i + 1] < a.offsets[i] || a.offsets[i] < 0 || a.offsets[i + 1] > nnz || (i == 0 && a.offsets[0] != 0))
    found->offsets_bad = 1;
}

__global__ void check_columns(CsrView a, Found* found) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= a.rows || found->offsets_bad) return;
  Index last = -1;
  for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
    const Index j = a.columns[k];
    if (j <= last || j >= a.rows) found->columns_bad = 1;
    last = j;
  }
}

__device__ bool row_is_finite(const CsrView& a, Index i) {
  for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
    if (!isfinite(a.values[k])) return false;
  return true;
}

__global__ void look(CsrView a, Found* found) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  bool negative = false;
  unsigned long long hash = 0;
  if (i < a.rows && !found->offsets_bad && !found->columns_bad) {
    bool have = false, zero = false, finite = true;
    hash = scrambled_end(i, a.offsets[i + 1]);
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const Index j = a.columns[k];
      hash += scrambled(k, j);
      const double v = a.values ? a.values[k] : 0;
      finite = finite && isfinite(v);
      if (j == i) {
        have = true;
        zero = a.values && v == 0;
        negative = v < 0;
        continue;
      }
      const Offset mirror = find_entry(a, j, i);
      if (mirror < 0)
        found->pattern_differs = 1;
      else if (a.values && a.values[mirror] != v)
        found->values_differ = 1;
    }
    if (!have) atomicAdd(&found->missing, 1);
    if (zero) atomicAdd(&found->zero, 1);
    if (!have || zero) atomicMin(&found->first_bad, i);
    if (!finite) atomicMin(&found->first_not_finite, i);
  }
  for (int offset = 16; offset > 0; offset /= 2) hash += __shfl_xor_sync(0xffffffffu, hash, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(&found->hash, hash);
  const unsigned warp = __ballot_sync(0xffffffffu, negative);
  if (threadIdx.x % 32 == 0 && warp) atomicAdd(&found->negative, __popc(warp));
}

__global__ void find_not_finite(CsrView a, Found* found) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < a.rows && !row_is_finite(a, i)) atomicMin(&found->first_not_finite, i);
}

Index known(Index row) { return row == none ? -1 : row; }

}  // namespace

DeviceCsr upload(const exec::Cuda& space, const CsrView& a, bool values) {
  DeviceCsr d;
  d.rows = a.rows;
  d.nnz = a.nnz();
  d.offsets = space.allocate<Offset>(std::size_t(a.rows) + 1);
  d.columns = space.allocate<Index>(std::size_t(d.nnz));
  if (a.offsets)
    space.copy_in(d.offsets, a.offsets, d.offsets.size());
  else
    space.clear(d.offsets);
  space.copy_in(d.columns, a.columns, d.columns.size());
  if (values && a.values) {
    d.values = space.allocate<double>(std::size_t(d.nnz));
    space.copy_in(d.values, a.values, d.values.size());
  }
  return d;
}

CsrFacts facts(const exec::Cuda& space, const DeviceCsr& a) {
  CsrFacts out;
  Found found;
  const auto there = space.allocate<Found>(1);
  space.copy_in(there, &found, 1);
  if (a.rows > 0) {
    const unsigned blocks = blocks_for(a.rows);
    check_offsets<<<blocks, 256, 0, space.stream()>>>(a.view(), a.nnz, there.data());
    check_columns<<<blocks, 256, 0, space.stream()>>>(a.view(), there.data());
    look<<<blocks, 256, 0, space.stream()>>>(a.view(), there.data());
    launched("looking at the matrix");
  }
  space.copy_out(&found, there, 1);
  out.valid = !found.offsets_bad && !found.columns_bad;
  out.symmetry.pattern = !found.pattern_differs;
  out.symmetry.values = a.values.size() > 0 && !found.pattern_differs && !found.values_differ;
  out.diagonal.missing = found.missing;
  out.diagonal.zero = found.zero;
  out.diagonal.negative = found.negative;
  out.diagonal.first_bad = known(found.first_bad);
  out.first_not_finite = known(found.first_not_finite);
  out.pattern_hash = pattern_hash_of(a.rows, found.hash);
  return out;
}

Index first_not_finite(const exec::Cuda& space, const DeviceCsr& a) {
  if (a.rows == 0) return -1;
  Found found;
  const auto there = space.allocate<Found>(1);
  space.copy_in(there, &found, 1);
  find_not_finite<<<blocks_for(a.rows), 256, 0, space.stream()>>>(a.view(), there.data());
  launched("looking at the values");
  space.copy_out(&found, there, 1);
  return known(found.first_not_finite);
}

}  // namespace krilu::sparse
