// SPDX-License-Identifier: Apache-2.0
// Elimination over a given pattern on a GPU: elimination.hpp's, for ILU(0), IC(0), ILU(k) and DILU of local problems,
// in the form A ~ (E + L) (I + U): a row's w = a - sum over k of w_k u_k needs nothing of the rows before but their U,
// and is divided by its pivot at its end. A group of lanes takes a row. Its entries stand in shared memory while each
// w_k goes through row k's upper entries, shared by the lanes; those of the next k are on their way meanwhile. A value
// is its own flag (triangular/waiting.cuh): a row waits for the very entries of U that it needs, and no fence or flag
// stands between a row and the rows that read it. Rows are taken in a sequence in which none waits for a later one.
// Where a row is known to change in its pivot alone, as nearly all rows of most meshes do, its lanes wait for what all
// rows before have for it at once, and not row after row.
// Cost: 12 bytes and a search in shared memory for each entry of U that a row passes over. Where rows are long, a lane
// asks for four such entries at a time.
#pragma once

#include "exec/cuda.cuh"
#include "precond/elimination.hpp"
#include "triangular/waiting.cuh"

namespace krilu::precond {

/// The pattern on the device. Columns ascend; every row has its diagonal; entries before it are eliminated.
struct DevicePattern {
  Index rows = 0;
  Offset entries = 0;
  Index longest = 0;                 // entries of the longest row
  Index levels = 0;                  // rows that wait for each other, one after another, at the most; 0: not known
  exec::Array<Offset> offsets;       // rows + 1
  exec::Array<Index> columns;        // entries
  exec::Array<Offset> diagonal;      // rows
  exec::Array<Index> sequence;       // rows in the sequence in which they are begun; empty: as they stand
  exec::Array<unsigned char> plain;  // of each row: elimination changes nothing but its pivot; empty: not known
  std::size_t bytes() const {
    return offsets.bytes() + columns.bytes() + diagonal.bytes() + sequence.bytes() + plain.bytes();
  }
};

/// What is left below the diagonal: L itself, or E^-1 L, the unit lower factor of packed.hpp.
enum class Lower { plain, scaled };

/// A's values over the pattern, and what eliminate() counts with.
struct Gathered {
  exec::Array<double> a;
  exec::Array<unsigned> ticket;
};

/// value[k] = from(k), no factor is there yet, and no row is taken.
template <class From>
__global__ void gather_kernel(std::int64_t n, From from, double* value, double* factors, unsigned* ticket) {
  const std::int64_t k = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k < n) {
    value[k] = from(k);
    factors[k] = triangular::Awaited<double>::pattern();
  }
  if (k == 0) *ticket = 0;
}
/// from(k): the value of the pattern's entry k, asked for on the device. Prepares factors, as many, for eliminate().
template <class From>
Gathered gather(const exec::Cuda& space, const DevicePattern& pattern, From from, double* factors) {
  Gathered g{space.allocate<double>(std::size_t(pattern.entries)), space.allocate<unsigned>(1)};
  if (pattern.entries > 0)
    gather_kernel<<<exec::cuda::blocks_for(pattern.entries), exec::cuda::block_threads, 0, space.stream()>>>(
        pattern.entries, from, g.a.data(), factors, g.ticket.data());
  exec::cuda::launched("gathering values");
  return g;
}

/// factors, which gather() prepared: L and U as above, with 1 / E on the diagonal. The first row whose pivot had to be
/// replaced by 1 goes to *zero_pivot, by atomicMin.
void eliminate(const exec::Cuda& space, const DevicePattern& pattern, Updated updated, Lower lower, const Gathered& a,
               double* factors, Index* zero_pivot);

}  // namespace krilu::precond
