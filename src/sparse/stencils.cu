// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda_algorithms.cuh"
#include "exec/warp.cuh"
#include "sparse/sliced.cuh"

namespace krilu::sparse {

namespace {

using exec::cuda::blocks_for;
using exec::cuda::launched;

/// Columns take so many times the words that stencils may. A stencil of few slices costs what it saves.
constexpr Offset least_saving = 2;

/// What one look at all slices finds.
struct Found {
  int neighbours = 0;  // of the slice that has most, itself included
  int failed = 0;      // a slice has what no word can say, or differs from its stencil
};

__global__ void slices_of_rows(Index slices, const Index* slice_row, Index* slice_of) {
  const Index s = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32);
  if (s >= slices) return;
  const Index row = slice_row[s] + Index(threadIdx.x % 32);
  if (row < slice_row[s + 1]) slice_of[row] = s;
}

/// Both triangles: what slice k is one of, 0 <= k < 2 slices.
struct Triangles {
  SlicedTriangle lower, upper;
  Index slices;
  const Index *slice_row, *slice_of;  // first row of each slice; the slice of each row
  __device__ const SlicedTriangle& of(Index k) const { return k < slices ? lower : upper; }
  __device__ Index slice(Index k) const { return k < slices ? k : k - slices; }
};

/// A slice in words, by a warp.
struct Spelling {
  int others, within;        // steps
  int my_others, my_within;  // entries of this lane
  int neighbours = 1;        // the slice itself is the first
  Index neighbour;           // lane i: the first row of neighbour i
  bool can = true;

  /// put(step, word) for each entry of the lane.
  template <class Put>
  __device__ void spell(const Triangles& both, Index number, int lane, const Put& put) {
    const SlicedTriangle& t = both.of(number);
    const Slice slice = load_slice(t.slice + both.slice(number));
    const Lane start = open_lane(t, both.slice(number), slice, lane);
    my_others = my_within = 0;
    Lane l = start;
    for (int k = 0; k < slice.width(); ++k) {
      const Offset at = step(l, k, lane);
      if (k >= l.count) continue;
      my_others += t.column[at] >= 0;
      my_within += t.column[at] < 0;
    }
    others = int(__reduce_max_sync(exec::all_lanes, unsigned(my_others)));
    within = int(__reduce_max_sync(exec::all_lanes, unsigned(my_within)));
    neighbour = slice.row;
    can = slice.lanes_log2() == 0 && slice.width() * 32 <= StencilWord::most_entries;
    int other = 0, inside = others + within - my_within;
    l = start;
    for (int k = 0; can && k < slice.width(); ++k) {
      const Offset at = step(l, k, lane);
      const bool have = k < l.count;
      const Index c = have ? t.column[at] : -1;
      const Index first = c >= 0 ? both.slice_row[both.slice_of[c]] : slice.row;
      int met = 0;
      for (unsigned open = __ballot_sync(exec::all_lanes, c >= 0); open != 0;) {
        const Index one = __shfl_sync(exec::all_lanes, first, __ffs(int(open)) - 1);
        const unsigned known = __ballot_sync(exec::all_lanes, lane < neighbours && neighbour == one);
        const int n = known != 0 ? __ffs(int(known)) - 1 : neighbours;
        if (n == StencilWord::most_neighbours) {
          can = false;
          break;
        }
        if (known == 0) {
          if (lane == n) neighbour = one;
          ++neighbours;
        }
        const bool mine = c >= 0 && first == one;
        if (mine) met = n;
        open &= ~__ballot_sync(exec::all_lanes, mine);
      }
      if (have) put(c >= 0 ? other++ : inside++, StencilWord::of(at - slice.entry, met, c >= 0 ? c - first : ~c));
    }
  }
};

__device__ std::uint64_t mixed(std::uint64_t v) {  // splitmix64
  v += 0x9e3779b97f4a7c15u;
  v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
  v = (v ^ v >> 27) * 0x94d049bb133111ebu;
  return v ^ v >> 31;
}

__device__ Index warp_number() { return Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32); }

/// Each slice's shape, and a key that slices of one stencil share.
__global__ void find_keys(Triangles both, StencilSlice* out, std::uint32_t* key, Index* number, Found* found) {
  const Index k = warp_number();
  if (k >= 2 * both.slices) return;
  const int lane = int(threadIdx.x % 32);
  std::uint64_t sum = 0;
  Spelling slice;
  slice.spell(both, k, lane, [&](int step, std::int32_t word) {
    sum += mixed(std::uint64_t(step * 32 + lane) << 32 | std::uint32_t(word));
  });
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(exec::all_lanes, sum, offset);
  if (lane > 0) return;
  const Slice of = load_slice(both.of(k).slice + both.slice(k));
  const std::uint32_t shape = StencilSlice::shaped(of.rows(), of.inner, slice.within, slice.others);
  out[k] = {of.row, of.entry, shape, 0};
  key[k] = std::uint32_t(mixed(sum + shape));
  number[k] = k;
  if (!slice.can) found->failed = 1;
  if (slice.neighbours > found->neighbours) atomicMax(&found->neighbours, slice.neighbours);
}

/// size[k]: steps of the stencil of the k-th slice by keys, where it is the first that has it.
__global__ void find_sizes(Index slices, const std::uint32_t* key, const Index* number, const StencilSlice* slice,
                           Index* size) {
  const Index k = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (k >= slices) return;
  const StencilSlice s = slice[number[k]];
  size[k] = k == 0 || key[k] != key[k - 1] ? s.others() + s.within() : 0;
}
/// end[k + 1]: where the stencil of the k-th slice by keys ends.
__global__ void place_stencils(Index slices, const Index* number, const Index* end, StencilSlice* slice) {
  const Index k = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (k >= slices) return;
  StencilSlice& s = slice[number[k]];
  s.word = max(0, end[k + 1] - (s.others() + s.within()));  // less than 0 of another shape with the same key
}

/// The words of those that are the first of their kind.
__global__ void write_words(Triangles both, const Index* number, const Index* size, const StencilSlice* slice,
                            std::int32_t* word) {
  const Index k = warp_number();
  if (k >= 2 * both.slices || size[k] == 0) return;
  const int lane = int(threadIdx.x % 32);
  std::int32_t* const words = word + std::size_t(slice[number[k]].word) * 32;
  Spelling().spell(both, number[k], lane, [&](int step, std::int32_t w) { words[step * 32 + lane] = w; });
}

/// Each slice's neighbours; and whether its stencil says of it what is true, whatever its key.
__global__ void list_neighbours(Triangles both, const StencilSlice* stencil, const std::int32_t* word, int places,
                                Index* neighbour, Found* found) {
  const Index k = warp_number();
  if (k >= 2 * both.slices) return;
  const int lane = int(threadIdx.x % 32);
  const std::int32_t* const words = word + std::size_t(stencil[k].word) * 32;
  bool same = true;
  Spelling slice;
  slice.spell(both, k, lane, [&](int step, std::int32_t w) { same = same && words[step * 32 + lane] == w; });
  same = same && slice.others == stencil[k].others() && slice.within == stencil[k].within();
  for (int j = slice.my_others; same && j < slice.others; ++j) same = words[j * 32 + lane] == 0;
  for (int j = slice.my_within; same && j < slice.within; ++j)
    same = words[(slice.others + slice.within - 1 - j) * 32 + lane] == 0;
  if (!same) found->failed = 1;
  if (lane < places) neighbour[std::size_t(k) * unsigned(places) + unsigned(lane)] = slice.neighbour;
}

}  // namespace

Stencils::Stencils(const exec::Cuda& space, Index rows, Index slices, const Index* slice_row,
                   const SlicedTriangle& lower, const SlicedTriangle& upper, std::int64_t entries) {
  if (slices == 0 || entries == 0) return;
  const Index halves = 2 * slices;
  const auto n = std::size_t(halves);
  const unsigned warps = blocks_for(std::int64_t(halves) * 32), threads = blocks_for(halves);
  const auto slice_of = space.allocate<Index>(std::size_t(rows));
  const Triangles both{lower, upper, slices, slice_row, slice_of.data()};
  auto slice = space.allocate<StencilSlice>(n);
  auto key = space.allocate<std::uint32_t>(n), other_key = space.allocate<std::uint32_t>(n);
  auto number = space.allocate<Index>(n), other_number = space.allocate<Index>(n);
  Found found;
  const auto found_there = space.allocate<Found>(1);
  space.copy_in(found_there, &found, 1);
  slices_of_rows<<<blocks_for(std::int64_t(slices) * 32), 256, 0, space.stream()>>>(slices, slice_row, slice_of.data());
  find_keys<<<warps, 256, 0, space.stream()>>>(both, slice.data(), key.data(), number.data(), found_there.data());
  launched("looking for stencils");
  exec::sort_pairs(space, key, other_key, number, other_number, 32);
  const auto size = space.allocate<Index>(n), end = space.allocate<Index>(n + 1);
  find_sizes<<<threads, 256, 0, space.stream()>>>(halves, key.data(), number.data(), slice.data(), size.data());
  exec::sums_before(space, n, size.data(), end.data());
  const Index steps = space.read(end, n);
  space.copy_out(&found, found_there, 1);
  if (found.failed || std::int64_t(steps) * 32 * least_saving > entries) return;

  place_stencils<<<threads, 256, 0, space.stream()>>>(halves, number.data(), end.data(), slice.data());
  auto word = space.allocate<std::int32_t>(std::size_t(steps) * 32);
  space.clear(word);
  write_words<<<warps, 256, 0, space.stream()>>>(both, number.data(), size.data(), slice.data(), word.data());
  const int sector = 32 / int(sizeof(Index)), places = (found.neighbours + sector - 1) / sector * sector;
  auto neighbour = space.allocate<Index>(n * std::size_t(places));
  list_neighbours<<<warps, 256, 0, space.stream()>>>(both, slice.data(), word.data(), places, neighbour.data(),
                                                     found_there.data());
  launched("writing stencils");
  space.copy_out(&found, found_there, 1);
  if (found.failed) return;  // two stencils of one key
  slice_ = std::move(slice);
  neighbour_ = std::move(neighbour);
  neighbours_ = places;
  word_ = std::move(word);
}

}  // namespace krilu::sparse
