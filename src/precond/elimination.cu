// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "precond/elimination.cuh"
#include "triangular/waiting.cuh"

namespace krilu::precond {

namespace {

using exec::cuda::launched;
using triangular::Awaited;

struct Rows {
  Index rows;
  const Offset* offsets;
  const Index* columns;
  const Offset* diagonal;
  const Index* sequence;
  const unsigned char* plain;
  const double* a;
  double* factors;
  double* work;  // as long as factors, where a row is too long for shared memory
  bool scaled;
  Index* zero_pivot;
};

__device__ __forceinline__ double awaited(const double* cell, double seen) {
  for (int looks = 0; Awaited<double>::is(seen); ++looks) {
    if (looks > triangular::most_looks) __trap();
    seen = Awaited<double>::load(cell);
  }
  return seen;
}

/// The last position below `end`, from `begin`, whose column is at most j.
__device__ __forceinline__ Index last_up_to(const Index* column, Index begin, Index end, Index j) {
  while (end - begin > 1) {
    const Index mid = begin + (end - begin) / 2;
    if (column[mid] <= j)
      begin = mid;
    else
      end = mid;
  }
  return begin;
}

/// The same of several j in the whole row, side by side, so that their reads overlap. half: the largest power of two
/// below length.
template <int N>
__device__ __forceinline__ void last_up_to(const Index* column, Index length, Index half, const Index (&j)[N],
                                           Index (&at)[N]) {
#pragma unroll
  for (int c = 0; c < N; ++c) at[c] = 0;
  for (Index step = half; step > 0; step /= 2)
#pragma unroll
    for (int c = 0; c < N; ++c)
      if (at[c] + step < length && column[at[c] + step] <= j[c]) at[c] += step;
}

__device__ __forceinline__ double reciprocal_pivot(const Rows& e, Index i, double pivot) {
  const double r = 1 / pivot;
  if (isfinite(r) && r != 0) return r;
  atomicMin(e.zero_pivot, i);
  return 1;
}

/// What a lane holds of row k's upper entries before the group needs them: one, and where it belongs in row i.
struct Ahead {
  Offset from = 0, end = 0;  // the lane's entry, and that behind the row's last
  Index column = -1;         // its column; -1: there is none
  Index at = -1;             // where that stands in row i, or -1
  double value = 0;
};

/// many: upper entries of a row k that a lane takes at once, beyond its first, which is asked for while the row before
/// is worked on.
template <int G, int many>
__device__ void eliminate_row(const Rows& e, Index i, int lane, unsigned group, const Index* column, double* w) {
  const Offset begin = e.offsets[i], middle = e.diagonal[i];
  const Index length = e.offsets[i + 1] - begin, lower = middle - begin;
  const Index half = length > 1 ? Index(1) << (31 - __clz(length - 1)) : 0;
  // Two steps, so that nothing is waited for between one row k and the next: each asks for what the other needs.
  const auto ask = [&](Offset from, Offset end) {
    Ahead ahead;
    ahead.from = from;
    ahead.end = end;
    if (from < end) ahead.column = __ldg(e.columns + from);
    return ahead;
  };
  const auto find = [&](Ahead& ahead) {
    if (ahead.column < 0) return;
    const Index at = last_up_to(column, 0, length, ahead.column);
    if (column[at] != ahead.column) return;
    ahead.at = at;
    ahead.value = Awaited<double>::load(e.factors + ahead.from);
  };
  for (Index a0 = 0; a0 < lower; a0 += G) {
    // Each lane asks where one of the next G rows k stands.
    Offset first = 0, last = 0;
    if (a0 + lane < lower) {
      const Index k = column[a0 + lane];
      first = __ldg(e.diagonal + k) + 1;
      last = __ldg(e.offsets + k + 1);
    }
    const Index count = min(Index(G), lower - a0);
    const auto ask_for = [&](Index a) {
      return a < count ? ask(__shfl_sync(group, first, a, G) + lane, __shfl_sync(group, last, a, G)) : Ahead{};
    };
    Ahead next = ask_for(0), after = ask_for(1);
    find(next);
    for (Index a = 0; a < count; ++a) {
      Ahead now = next;
      next = after;
      after = ask_for(a + 2);
      find(next);
      const double own = w[a0 + a];
      if (now.at >= 0) w[now.at] -= own * awaited(e.factors + now.from, now.value);
      for (Offset from = now.from + G; from - lane < now.end; from += many * G) {
        Index wanted[many], at[many];
        double value[many];
#pragma unroll
        for (int c = 0; c < many; ++c) wanted[c] = from + c * G < now.end ? __ldg(e.columns + (from + c * G)) : -1;
        last_up_to(column, length, half, wanted, at);
#pragma unroll
        for (int c = 0; c < many; ++c) {
          if (column[at[c]] != wanted[c]) at[c] = -1;
          if (at[c] >= 0) value[c] = Awaited<double>::load(e.factors + (from + c * G));
        }
#pragma unroll
        for (int c = 0; c < many; ++c)
          if (at[c] >= 0) w[at[c]] -= own * awaited(e.factors + (from + c * G), value[c]);
      }
      __syncwarp(group);
    }
  }
  const double rd = reciprocal_pivot(e, i, w[lower]);
  for (Index p = lower + 1 + lane; p < length; p += G)
    Awaited<double>::store(e.factors + begin + p, triangular::told(w[p] * rd));
  for (Index p = lane; p < lower; p += G) e.factors[begin + p] = e.scaled ? w[p] * rd : w[p];
  if (lane == 0) e.factors[middle] = rd;
}

/// A row of which nothing is updated but the pivot. Where that is so of all rows (pivots), they wait for each other's
/// pivots; else for the upper entries that others, too, may wait for.
template <int G, Updated updated>
__device__ void find_pivot(const Rows& e, Index i, int lane, unsigned group) {
  constexpr bool pivots = updated == Updated::pivots;
  const Offset begin = e.offsets[i], middle = e.diagonal[i];
  double less = 0;
  for (Offset p = begin + lane; p < middle; p += G) {
    const Index k = __ldg(e.columns + p);
    const Offset first = __ldg(e.diagonal + k) + 1, last = __ldg(e.offsets + k + 1);
    const Offset at = first < last ? last_up_to(e.columns, first, last, i) : first;
    const bool mirrored = first < last && e.columns[at] == i;
    if (!pivots && !mirrored) continue;
    const double* const cell = e.factors + (pivots ? first - 1 : at);
    const double waited_for = awaited(cell, Awaited<double>::load(cell));
    less += __ldg(e.a + p) * (pivots ? waited_for * (mirrored ? __ldg(e.a + at) : 0.0) : waited_for);
  }
  for (int offset = G / 2; offset > 0; offset /= 2) less += __shfl_xor_sync(group, less, offset, G);
  const double rd = reciprocal_pivot(e, i, e.a[middle] - less);
  if (pivots && lane == 0) Awaited<double>::store(e.factors + middle, triangular::told(rd));
  for (Offset p = middle + 1 + lane; p < e.offsets[i + 1]; p += G) {
    const double u = e.a[p] * rd;
    if (pivots)
      e.factors[p] = u;
    else
      Awaited<double>::store(e.factors + p, triangular::told(u));
  }
  for (Offset p = begin + lane; p < middle; p += G) e.factors[p] = e.scaled ? e.a[p] * rd : e.a[p];
  if (!pivots && lane == 0) e.factors[middle] = rd;
}

constexpr unsigned threads = 128;
/// Entries of a row that stand in shared memory.
template <int G>
constexpr Index most_shared = G == 8 ? 32 : 224;

template <int G, int many, Updated updated>
__global__ void __launch_bounds__(threads) eliminate_kernel(Rows e, unsigned* ticket) {
  constexpr int groups = threads / G;
  __shared__ Index columns[groups][most_shared<G>];
  __shared__ double values[groups][most_shared<G>];
  const int lane = int(threadIdx.x % G), g = int(threadIdx.x / G);
  const unsigned group = G == 32 ? 0xffffffffu : ((1u << (G % 32)) - 1) << (threadIdx.x % 32 / G * G);
  for (;;) {
    unsigned taken = 0;
    if (lane == 0) taken = atomicAdd(ticket, 1u);
    const Index n = Index(__shfl_sync(group, taken, 0, G));
    if (n >= e.rows) return;
    const Index i = e.sequence ? __ldg(e.sequence + n) : n;
    if (updated == Updated::pivots || (e.plain && __ldg(e.plain + i))) {
      find_pivot<G, updated>(e, i, lane, group);
    } else {
      const Offset begin = e.offsets[i];
      const Index length = e.offsets[i + 1] - begin;
      const Index* column = e.columns + begin;
      double* w = e.work + begin;
      if (length <= most_shared<G>) {
        column = columns[g];
        w = values[g];
        for (Index p = lane; p < length; p += G) columns[g][p] = e.columns[begin + p];
      }
      for (Index p = lane; p < length; p += G) w[p] = e.a[begin + p];
      __syncwarp(group);
      eliminate_row<G, many>(e, i, lane, group, column, w);
      __syncwarp(group);
    }
  }
}

}  // namespace

void eliminate(const exec::Cuda& space, const DevicePattern& pattern, Updated updated, Lower lower, const Gathered& a,
               double* factors, Index* zero_pivot) {
  if (pattern.rows == 0) return;
  // Short rows have eight lanes each, since of a row's upper entries few more are met at a time; but a warp where
  // levels have fewer rows than five eighths of the warps, for four rows that wait in one warp are in each other's way
  // (3,242 a level, of hexahedra round pins: 0.65 ms so, 1.12 with eight lanes).
  constexpr unsigned blocks_each = 12;  // that a multiprocessor has at work
  const Index warps = Index(unsigned(space.multiprocessors()) * blocks_each * threads / 32);
  const bool narrow = pattern.levels > 0 && pattern.rows / pattern.levels < warps / 8 * 5;
  const bool eight_lanes = pattern.entries / pattern.rows < 12 && !narrow;
  const Index in_shared = eight_lanes ? most_shared<8> : most_shared<32>;
  const auto work = space.allocate<double>(pattern.longest > in_shared ? std::size_t(pattern.entries) : 0);
  const Rows e{pattern.rows,
               pattern.offsets.data(),
               pattern.columns.data(),
               pattern.diagonal.data(),
               pattern.sequence.data(),
               pattern.plain.size() > 0 ? pattern.plain.data() : nullptr,
               a.a.data(),
               factors,
               work.data(),
               lower == Lower::scaled,
               zero_pivot};
  const unsigned per_block = threads / (eight_lanes ? 8 : 32);
  const unsigned blocks =
      std::min((unsigned(pattern.rows) + per_block - 1) / per_block, unsigned(space.multiprocessors()) * blocks_each);
  const auto launch = [&](auto kernel) { kernel<<<blocks, threads, 0, space.stream()>>>(e, a.ticket.data()); };
  if (updated == Updated::pivots)
    eight_lanes ? launch(eliminate_kernel<8, 1, Updated::pivots>) : launch(eliminate_kernel<32, 1, Updated::pivots>);
  else if (eight_lanes)
    launch(eliminate_kernel<8, 1, Updated::pattern>);
  else if (pattern.longest <= 64)  // hardly a row has two upper entries a lane
    launch(eliminate_kernel<32, 1, Updated::pattern>);
  else
    launch(eliminate_kernel<32, 4, Updated::pattern>);
  launched("factorising");
}

}  // namespace krilu::precond
