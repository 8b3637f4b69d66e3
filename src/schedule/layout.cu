// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdint>

#include "exec/cuda_algorithms.cuh"
#include "schedule/layout.cuh"

namespace krilu::schedule {

namespace {

using exec::Array;
using exec::Cuda;
using Key = std::uint64_t;

constexpr int class_bits = 3;  // rows (or blocks) of a kind that share slices
constexpr Index smallest_tile = 512;

using exec::cuda::blocks_for;
using exec::cuda::launched;
int bits_of(std::uint64_t most) { return std::max(1, int(std::bit_width(most))); }

__device__ Index at(const Index* map, Index i) { return map ? map[i] : i; }

__global__ void wait_for_levels(CsrView a, const Index* order, const Index* rank, Index* level, unsigned* ticket) {
  __shared__ unsigned first;
  if (threadIdx.x == 0) first = atomicAdd(ticket, 1u) * blockDim.x;
  __syncthreads();
  const std::int64_t k = std::int64_t(first) + threadIdx.x;
  if (k >= a.rows) return;
  const Index i = at(order, Index(k));
  const Offset end = a.offsets[i + 1];
  Offset e = a.offsets[i];
  Index highest = -1;
  for (bool done = false; !done;) {
    if (e < end) {
      const Index j = a.columns[e];
      if (at(rank, j) >= k) {
        ++e;
      } else if (const Index l = *static_cast<volatile Index*>(level + j); l >= 0) {
        highest = max(highest, l);
        ++e;
      }
    } else {
      *static_cast<volatile Index*>(level + i) = highest + 1;
      done = true;
    }
  }
}

__global__ void level_round(CsrView a, const Index* rank, Index round, Index* level, Index* left) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  bool waiting = false;
  if (i < a.rows && level[i] < 0) {
    for (Offset e = a.offsets[i]; !waiting && e < a.offsets[i + 1]; ++e) {
      const Index j = a.columns[e];
      if (at(rank, j) >= at(rank, i)) continue;
      const Index l = *static_cast<volatile Index*>(level + j);
      waiting = l < 0 || l == round;
    }
    if (!waiting) *static_cast<volatile Index*>(level + i) = round;
  }
  const unsigned warp = __ballot_sync(0xffffffffu, waiting);
  if (threadIdx.x % 32 == 0 && warp) atomicAdd(left, __popc(warp));
}

__global__ void greatest(Index n, const Index* of, Index* most) {
  Index m = 0;
  for (Index i = Index(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += Index(gridDim.x * blockDim.x))
    m = max(m, of[i]);
  for (int offset = 16; offset > 0; offset /= 2) m = max(m, __shfl_xor_sync(0xffffffffu, m, offset));
  if (threadIdx.x % 32 == 0 && m > *static_cast<volatile Index*>(most)) atomicMax(most, m);
}

Index maximum(const Cuda& space, const Array<Index>& of) {
  const auto most = space.allocate<Index>(1);
  space.clear(most);
  if (of.size() > 0)
    greatest<<<std::min(1024u, blocks_for(std::int64_t(of.size()))), 256, 0, space.stream()>>>(Index(of.size()),
                                                                                               of.data(), most.data());
  launched("finding the highest level");
  Index m = 0;
  space.copy_out(&m, most, 1);
  return m;
}

/// 0, 1 or 2: one, four or 32 lanes a row.
__device__ Index length_class(const CsrView& a, const Index* rank, Index i) {
  Index before = 0, after = 0;
  const Index own = at(rank, i);
  for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
    const Index other = at(rank, a.columns[k]);
    before += other < own;
    after += other > own;
  }
  const int lanes = sparse::lanes_log2_of(max(before, after));
  return lanes == 0 ? 0 : lanes == 2 ? 1 : 2;
}

__global__ void level_keys(CsrView a, const Index* order, const Index* rank, const Index* level, Index tile_rows,
                           int level_bits, Key* key, Index* row) {
  const Index k = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (k >= a.rows) return;
  const Index i = at(order, k);
  row[k] = i;
  const Key tile = tile_rows > 0 ? Key(k / tile_rows) : 0;
  const Key l = level ? Key(level[i]) : 0;
  key[k] = (tile << level_bits | l) << class_bits | Key(length_class(a, rank, i));
}

__global__ void count_long(CsrView a, Index* count) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < a.rows && a.offsets[i + 1] - a.offsets[i] > 32 && length_class(a, nullptr, i) > 0) atomicAdd(count, 1);
}

__global__ void block_sizes(Index n, const Index* block, Index* size) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) atomicAdd(size + block[i], 1);
}

__global__ void block_keys(Index n, const Index* block, const Index* colour, const Index* size, int block_bits,
                           int least_class, Key* key, Index* row) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  // Class c: blocks of up to 2^c rows, of which a slice takes 32 >> c.
  const int c = max(32 - __clz(size[block[i]] - 1), least_class);
  row[i] = i;
  key[i] = (Key(colour[i]) << class_bits | Key(c)) << block_bits | Key(block[i]);
}

/// Units (rows or whole blocks) and groups (of one tile, level and class; of one colour and class) begin where the
/// sorted keys change.
__global__ void find_starts(Index n, const Key* key, int unit_bits, Index* unit_starts, Index* group_first) {
  const Index p = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (p >= n) return;
  const bool first = p == 0;
  unit_starts[p] = first || unit_bits == 0 || key[p] != key[p - 1];
  group_first[p] = first || key[p] >> unit_bits != key[p - 1] >> unit_bits ? p : 0;
}

__global__ void find_slices(Index n, const Key* key, int unit_bits, const Index* unit, const Index* group_first,
                            Index* starts) {
  const Index p = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (p >= n) return;
  const Index c = Index(key[p] >> unit_bits & ((1 << class_bits) - 1));
  // unit[p] counts the units before p; rows are their own units.
  const Index nth = unit_bits == 0 ? p - group_first[p] : unit[p] - unit[group_first[p]];
  const Index per_slice = unit_bits == 0 ? 32 >> (c == 0 ? 0 : c == 1 ? 2 : 5) : 32 >> c;
  const bool unit_start = unit_bits == 0 || p == 0 || key[p] != key[p - 1];
  starts[p] = unit_start && nth % per_slice == 0;
}

__global__ void place_rows(Index n, const Index* row, Index* place, const Index* starts, const Index* slice,
                           Index* slice_row) {
  const Index p = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (p >= n) return;
  place[row[p]] = p;
  if (starts[p]) slice_row[slice[p]] = p;
}

__global__ void slice_keys(Index slices, Index n, Index* slice_row, const Key* key, int shift, Key mask, Index* out,
                           Index* list) {
  const Index s = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (s > slices) return;
  if (s == slices) {
    slice_row[s] = n;
    return;
  }
  out[s] = Index(key[slice_row[s]] >> shift & mask);
  if (list) list[s] = s;
}

/// first[v] = the first position whose value is v; values ascend and none is left out.
__global__ void find_changes(Index n, const Index* value, Index* first, Index values) {
  const Index k = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (k > n) return;
  if (k == n)
    first[values] = n;
  else if (k == 0 || value[k] != value[k - 1])
    first[value[k]] = k;
}

__global__ void natural_slices(Index slices, Index n, Index* slice_row) {
  const Index s = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (s <= slices) slice_row[s] = min(n, s * 32);
}

/// Rows sorted by key, slices cut: what both kinds of plan have in common. unit_bits 0: rows are units.
sparse::Layout cut(const Cuda& space, Index n, const Array<Key>& key, Array<Index>&& row, int unit_bits) {
  sparse::Layout out;
  out.row = std::move(row);
  out.place = space.allocate<Index>(std::size_t(n));
  const auto nn = std::size_t(n);
  auto unit_starts = space.allocate<Index>(nn), group = space.allocate<Index>(nn), starts = space.allocate<Index>(nn);
  const auto sums = space.allocate<Index>(nn + 1), units = space.allocate<Index>(nn + 1);
  if (n > 0) {
    find_starts<<<blocks_for(n), 256, 0, space.stream()>>>(n, key.data(), unit_bits, unit_starts.data(), starts.data());
    launched("finding groups of rows");
    exec::maxima_so_far(space, nn, starts.data(), group.data());
    exec::sums_before(space, nn, unit_starts.data(), units.data());
    // Position p of a unit's first row counts the units before it; its other rows count one more, and start nothing.
    find_slices<<<blocks_for(n), 256, 0, space.stream()>>>(n, key.data(), unit_bits, units.data(), group.data(),
                                                           starts.data());
    launched("cutting slices");
  }
  exec::sums_before(space, nn, starts.data(), sums.data());
  space.synchronise();
  exec::require_cuda(cudaMemcpy(&out.slices, sums.data() + nn, sizeof(Index), cudaMemcpyDeviceToHost), "copying");
  out.slice_row = space.allocate<Index>(std::size_t(out.slices) + 1);
  if (n > 0)
    place_rows<<<blocks_for(n), 256, 0, space.stream()>>>(n, out.row.data(), out.place.data(), starts.data(),
                                                          sums.data(), out.slice_row.data());
  else
    space.clear(out.slice_row);
  launched("placing rows");
  return out;
}

std::vector<Index> host_copy(const Cuda& space, const Array<Index>& a) {
  std::vector<Index> out(a.size());
  space.copy_out(out.data(), a, a.size());
  return out;
}

}  // namespace

Array<Index> levels_sync_free(const Cuda& space, const sparse::DeviceCsr& graph, const Index* order,
                              const Index* rank) {
  auto level = space.allocate<Index>(std::size_t(graph.rows));
  if (graph.rows == 0) return level;
  exec::require_cuda(cudaMemsetAsync(level.data(), 0xff, level.bytes(), space.stream()), "finding levels");
  const auto ticket = space.allocate<unsigned>(1);
  space.clear(ticket);
  wait_for_levels<<<unsigned((graph.rows + 127) / 128), 128, 0, space.stream()>>>(graph.view(), order, rank,
                                                                                  level.data(), ticket.data());
  launched("finding levels");
  return level;
}

Array<Index> levels_by_rounds(const Cuda& space, const sparse::DeviceCsr& graph, const Index*, const Index* rank) {
  constexpr Index rounds_at_once = 32;  // between looks of the host
  auto level = space.allocate<Index>(std::size_t(graph.rows));
  if (graph.rows == 0) return level;
  exec::require_cuda(cudaMemsetAsync(level.data(), 0xff, level.bytes(), space.stream()), "finding levels");
  const auto left = space.allocate<Index>(1);
  for (Index round = 0, waiting = 1; waiting > 0;) {
    for (Index k = 0; k < rounds_at_once; ++k, ++round) {
      space.clear(left);
      level_round<<<blocks_for(graph.rows), 256, 0, space.stream()>>>(graph.view(), rank, round, level.data(),
                                                                      left.data());
    }
    launched("finding levels");
    space.copy_out(&waiting, left, 1);
  }
  return level;
}

Plan by_levels(const Cuda& space, const sparse::DeviceCsr& a, const sparse::DeviceCsr& graph, const Order& order,
               Index tile_rows) {
  const Index n = a.rows;
  const auto nn = std::size_t(n);
  Array<Index> order_there, rank_there;
  if (!order.empty()) {
    order_there = space.brought(order);
    rank_there = space.brought(inverse(order));
  }
  const Array<Index> level = levels_sync_free(space, graph, order_there.data(), rank_there.data());
  const Index levels = n > 0 ? maximum(space, level) + 1 : 0;
  Plan plan;
  plan.tile_rows = tile_rows;
  if (tile_rows == 0) {
    const std::uint64_t fitting = (space.shared_memory() - 1024) / sizeof(double);
    const std::uint64_t wanted = std::min({std::uint64_t(16) * unsigned(levels), std::uint64_t(n) / 16, fitting});
    plan.tile_rows = std::max(Index(std::bit_floor(wanted)), smallest_tile);
  }
  plan.tiles = (n + plan.tile_rows - 1) / plan.tile_rows;
  const int level_bits = bits_of(std::uint64_t(levels)), tile_bits = bits_of(std::uint64_t(plan.tiles));
  auto key = space.allocate<Key>(nn), key2 = space.allocate<Key>(nn);
  auto row = space.allocate<Index>(nn), row2 = space.allocate<Index>(nn);
  if (n > 0)
    level_keys<<<blocks_for(n), 256, 0, space.stream()>>>(a.view(), order_there.data(), rank_there.data(), level.data(),
                                                          plan.tile_rows, level_bits, key.data(), row.data());
  launched("sorting rows by level");
  if (n > 0) exec::sort_pairs(space, key, key2, row, row2, tile_bits + level_bits + class_bits);
  auto layout = std::make_shared<sparse::Layout>(cut(space, n, key, std::move(row), 0));

  const auto slices = std::size_t(layout->slices);
  auto value = space.allocate<Index>(slices), value2 = space.allocate<Index>(slices);
  auto other = space.allocate<Index>(slices);
  plan.list = space.allocate<Index>(slices);
  plan.level_there = space.allocate<Index>(std::size_t(levels) + 1);
  plan.tile = space.allocate<Index>(std::size_t(plan.tiles) + 1);
  const unsigned blocks = blocks_for(std::int64_t(slices) + 1);
  slice_keys<<<blocks, 256, 0, space.stream()>>>(layout->slices, n, layout->slice_row.data(), key.data(),
                                                 class_bits + level_bits, ~Key(0), value.data(), nullptr);
  find_changes<<<blocks, 256, 0, space.stream()>>>(layout->slices, value.data(), plan.tile.data(), plan.tiles);
  slice_keys<<<blocks, 256, 0, space.stream()>>>(layout->slices, n, layout->slice_row.data(), key.data(), class_bits,
                                                 (Key(1) << level_bits) - 1, value.data(), plan.list.data());
  launched("listing slices");
  if (slices > 0) exec::sort_pairs(space, value, value2, plan.list, other, level_bits);
  find_changes<<<blocks, 256, 0, space.stream()>>>(layout->slices, value.data(), plan.level_there.data(), levels);
  launched("listing slices");
  plan.level = host_copy(space, plan.level_there);
  plan.layout = std::move(layout);
  return plan;
}

Plan as_given(const Cuda& space, const sparse::DeviceCsr& a) {
  const Index n = a.rows;
  const auto count = space.allocate<Index>(1);
  space.clear(count);
  if (n > 0) count_long<<<blocks_for(n), 256, 0, space.stream()>>>(a.view(), count.data());
  launched("looking for long rows");
  Index long_rows = 0;
  space.copy_out(&long_rows, count, 1);
  Plan plan;
  plan.level = {0};
  if (long_rows == 0) {
    auto layout = std::make_shared<sparse::Layout>();
    layout->slices = (n + 31) / 32;
    layout->slice_row = space.allocate<Index>(std::size_t(layout->slices) + 1);
    natural_slices<<<blocks_for(std::int64_t(layout->slices) + 1), 256, 0, space.stream()>>>(layout->slices, n,
                                                                                             layout->slice_row.data());
    launched("cutting slices");
    plan.layout = std::move(layout);
    return plan;
  }
  const auto nn = std::size_t(n);
  auto key = space.allocate<Key>(nn), key2 = space.allocate<Key>(nn);
  auto row = space.allocate<Index>(nn), row2 = space.allocate<Index>(nn);
  level_keys<<<blocks_for(n), 256, 0, space.stream()>>>(a.view(), nullptr, nullptr, nullptr, 0, 0, key.data(),
                                                        row.data());
  launched("sorting rows by length");
  exec::sort_pairs(space, key, key2, row, row2, class_bits);
  auto layout = std::make_shared<sparse::Layout>(cut(space, n, key, std::move(row), 0));
  const auto value = space.allocate<Index>(std::size_t(layout->slices));
  slice_keys<<<blocks_for(std::int64_t(layout->slices) + 1), 256, 0, space.stream()>>>(
      layout->slices, n, layout->slice_row.data(), key.data(), class_bits, 0, value.data(), nullptr);
  launched("cutting slices");
  plan.layout = std::move(layout);
  return plan;
}

Plan by_blocks(const Cuda& space, const sparse::DeviceCsr& a, const Index* block, const Index* colour, Index colours,
               Index together, bool lattice) {
  const Index n = a.rows;
  const auto nn = std::size_t(n);
  const auto size = space.allocate<Index>(nn);
  space.clear(size);
  auto key = space.allocate<Key>(nn), key2 = space.allocate<Key>(nn);
  auto row = space.allocate<Index>(nn), row2 = space.allocate<Index>(nn);
  const int block_bits = bits_of(std::uint64_t(n)), colour_bits = bits_of(std::uint64_t(colours));
  if (n > 0) {
    block_sizes<<<blocks_for(n), 256, 0, space.stream()>>>(n, block, size.data());
    block_keys<<<blocks_for(n), 256, 0, space.stream()>>>(
        n, block, colour, size.data(), block_bits, std::countr_zero(unsigned(32 / together)), key.data(), row.data());
    launched("sorting rows by block");
    exec::sort_pairs(space, key, key2, row, row2, block_bits + class_bits + colour_bits);
  }
  auto layout = std::make_shared<sparse::Layout>(cut(space, n, key, std::move(row), block_bits));
  layout->blocks = true;
  layout->lattice = lattice;
  Plan plan;
  const auto value = space.allocate<Index>(std::size_t(layout->slices));
  plan.level_there = space.allocate<Index>(std::size_t(colours) + 1);
  const unsigned blocks = blocks_for(std::int64_t(layout->slices) + 1);
  slice_keys<<<blocks, 256, 0, space.stream()>>>(layout->slices, n, layout->slice_row.data(), key.data(),
                                                 block_bits + class_bits, ~Key(0), value.data(), nullptr);
  find_changes<<<blocks, 256, 0, space.stream()>>>(layout->slices, value.data(), plan.level_there.data(), colours);
  launched("listing slices");
  plan.level = host_copy(space, plan.level_there);
  plan.layout = std::move(layout);
  return plan;
}

}  // namespace krilu::schedule
