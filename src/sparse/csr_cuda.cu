// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "sparse/csr_cuda.cuh"

namespace krilu::sparse {

namespace {

using exec::cuda::blocks_for;
using exec::cuda::launched;
constexpr Index no_row = std::numeric_limits<Index>::max();

struct Found {
  int offsets_bad = 0, columns_bad = 0, unpaired = 0, values_differ = 0;
  Index first_bad = no_row, first_not_finite = no_row;
  Index missing = 0, zero = 0, negative = 0;
  int below_less_above = 0;  // entries of the triangles
  unsigned long long hash = 0;
  double least_dominance = std::numeric_limits<double>::infinity();
};

__global__ void nothing_found(Found* found) { *found = Found(); }

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

/// Where entry k of a row, (row, j) with j below row, has its partner (j, row): in most matrices as far from the end of
/// its row as k is from the beginning of its own. -1: nowhere.
__device__ Offset find_partner(const CsrView& a, Index row, Offset row_begin, Offset k, Index j) {
  const Offset begin = a.offsets[j], end = a.offsets[j + 1], guess = end - 1 - (k - row_begin);
  if (guess >= begin && a.columns[guess] == row) return guess;
  return find_entry(a, j, row);
}

constexpr int look_threads = 256;  // of a block, as blocks_for has them

/// A row a thread. A block has one word for all that it found, but for what is rare: where threads write to one place,
/// they queue.
__global__ void __launch_bounds__(look_threads) look(CsrView a, Found* found) {
  __shared__ struct {
    unsigned long long hash;
    double dominance;
    int below_less_above, negative;
  } of_warp[look_threads / 32];
  if (found->offsets_bad || found->columns_bad) return;
  const Index thread = Index(threadIdx.x), i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  unsigned long long hash = 0;
  int below_less_above = 0, negative = 0;
  bool unpaired = false, differ = false;
  double dominance = std::numeric_limits<double>::infinity();
  if (i < a.rows) {
    const Offset begin = a.offsets[i], end = a.offsets[i + 1];
    bool have = false, finite = true;
    double diagonal = 0, others = 0;
    hash = scrambled_end(i, end);
    for (Offset k = begin; k < end; ++k) {
      const Index j = a.columns[k];
      hash += scrambled(k, j);
      const double v = a.values ? a.values[k] : 0;
      finite = finite && isfinite(v);
      if (j == i) {
        have = true;
        diagonal = v;
        continue;
      }
      others += fabs(v);
      below_less_above += j < i ? 1 : -1;
      if (j > i) continue;  // as many above as below, each below with its partner: all have one
      const Offset partner = find_partner(a, i, begin, k, j);
      unpaired = unpaired || partner < 0;
      differ = differ || (partner >= 0 && a.values && a.values[partner] != v);
    }
    const bool zero = have && a.values && diagonal == 0;
    negative = diagonal < 0;
    dominance = fmin(dominance, fabs(diagonal) / others);  // of no others: infinity, or NaN, which is no minimum
    if (!have) atomicAdd(&found->missing, 1);
    if (zero) atomicAdd(&found->zero, 1);
    if (!have || zero) atomicMin(&found->first_bad, i);
    if (!finite) atomicMin(&found->first_not_finite, i);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    hash += __shfl_xor_sync(0xffffffffu, hash, offset);
    below_less_above += __shfl_xor_sync(0xffffffffu, below_less_above, offset);
    negative += __shfl_xor_sync(0xffffffffu, negative, offset);
    dominance = fmin(dominance, __shfl_xor_sync(0xffffffffu, dominance, offset));
  }
  if (thread % 32 == 0) of_warp[thread / 32] = {hash, dominance, below_less_above, negative};
  unpaired = __syncthreads_or(unpaired);
  differ = __syncthreads_or(differ);
  if (thread > 0) return;
  for (int warp = 1; warp < look_threads / 32; ++warp) {
    hash += of_warp[warp].hash;
    dominance = fmin(dominance, of_warp[warp].dominance);
    below_less_above += of_warp[warp].below_less_above;
    negative += of_warp[warp].negative;
  }
  atomicAdd(&found->hash, hash);
  if (below_less_above != 0) atomicAdd(&found->below_less_above, below_less_above);
  if (negative != 0) atomicAdd(&found->negative, negative);
  if (unpaired) found->unpaired = 1;
  if (differ) found->values_differ = 1;
  // Bits of a number from 0 order as it does.
  atomicMin(reinterpret_cast<unsigned long long*>(&found->least_dominance),
            static_cast<unsigned long long>(__double_as_longlong(dominance)));
}

__global__ void find_not_finite(CsrView a, Found* found) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < a.rows && !row_is_finite(a, i)) atomicMin(&found->first_not_finite, i);
}

Index known(Index row) { return row == no_row ? -1 : row; }

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
  const auto there = space.allocate<Found>(1);
  nothing_found<<<1, 1, 0, space.stream()>>>(there.data());
  if (a.rows > 0) {
    const unsigned blocks = blocks_for(a.rows);
    check_offsets<<<blocks, 256, 0, space.stream()>>>(a.view(), a.nnz, there.data());
    check_columns<<<blocks, 256, 0, space.stream()>>>(a.view(), there.data());
    look<<<blocks, look_threads, 0, space.stream()>>>(a.view(), there.data());
    launched("looking at the matrix");
  }
  Found found;
  space.copy_out(&found, there, 1);
  out.valid = !found.offsets_bad && !found.columns_bad;
  out.symmetry.pattern = !found.unpaired && found.below_less_above == 0;
  out.symmetry.values = a.values.size() > 0 && out.symmetry.pattern && !found.values_differ;
  out.diagonal.missing = found.missing;
  out.diagonal.zero = found.zero;
  out.diagonal.negative = found.negative;
  out.diagonal.least_dominance = found.least_dominance;
  out.diagonal.first_bad = known(found.first_bad);
  out.first_not_finite = known(found.first_not_finite);
  out.pattern_hash = pattern_hash_of(a.rows, found.hash);
  return out;
}

Index first_not_finite(const exec::Cuda& space, const DeviceCsr& a) {
  if (a.rows == 0) return -1;
  const auto there = space.allocate<Found>(1);
  nothing_found<<<1, 1, 0, space.stream()>>>(there.data());
  find_not_finite<<<blocks_for(a.rows), 256, 0, space.stream()>>>(a.view(), there.data());
  launched("looking at the values");
  Found found;
  space.copy_out(&found, there, 1);
  return known(found.first_not_finite);
}

}  // namespace krilu::sparse
