// SPDX-License-Identifier: Apache-2.0
// What slices of coloured blocks read, said once for all that read alike, as nearly all do on a lattice. A stencil has
// a word for each step and lane: which of the slice's entries the lane takes, and whose x it meets, as one of the
// slice's neighbours and a row there. Each slice has a list of its neighbours and the place of its stencil. So columns
// are not read from memory: a stencil's words stay in the first-level cache, and a row's share of the neighbours is a
// byte or two. And what a kernel had to find for every slice anew, a lane's place among the entries, which entries stay
// within the slice, and where they begin, the stencil knows. Steps are those to other slices first, then those within
// the slice, right-aligned: a lane meets its entries in the sequence in which they stand in the slice, and sums of
// finite numbers are the same to the bit.
#pragma once

#include <cstdint>

#include "exec/ask.cuh"
#include "exec/cuda.cuh"
#include "exec/warp.cuh"
#include "krilu/types.hpp"
#include "sparse/rounding.cuh"

namespace krilu::sparse {

struct SlicedTriangle;

/// One slice of one triangle, read as 16 bytes.
struct alignas(16) StencilSlice {
  Index row;            // its first row
  Offset entry;         // its first entry
  std::uint32_t shape;  // rows - 1: 5 bits; steps of the sweep within it - 1: 5; steps to itself: 6; to others: 16
  Index word;           // where its stencil begins, in units of 32 words

  static KRILU_INLINE std::uint32_t shaped(int rows, int inner, int within, int others) {
    return std::uint32_t(rows - 1) | std::uint32_t(inner - 1) << 5 | std::uint32_t(within) << 10 |
           std::uint32_t(others) << 16;
  }
  KRILU_INLINE int rows() const { return int(shape & 31) + 1; }
  KRILU_INLINE int inner() const { return int(shape >> 5 & 31) + 1; }
  KRILU_INLINE int within() const { return int(shape >> 10 & 63); }
  KRILU_INLINE int others() const { return int(shape >> 16); }
};

/// A word: the entry, counted from the slice's first: 16 bits; the neighbour: 5; 1, to tell it from the word of a lane
/// that has no entry: 0; the row there, counted from the neighbour's first: the upper 5 bits.
struct StencilWord {
  static constexpr int most_entries = 1 << 16, most_neighbours = 32;
  static KRILU_INLINE std::int32_t of(int entry, int neighbour, int row) {
    return std::int32_t(std::uint32_t(entry) | std::uint32_t(neighbour) << 16 | 1u << 21 | std::uint32_t(row) << 27);
  }
  static KRILU_INLINE int entry(std::int32_t word) { return word & (most_entries - 1); }
  static KRILU_INLINE int row(std::int32_t word) { return int(std::uint32_t(word) >> 27); }
};

struct StencilTriangle {
  const StencilSlice* slice = nullptr;
  const Index* neighbour = nullptr;  // first rows of each slice's neighbours, the first of which is the slice itself
  int neighbours = 0;                // places for them
  const std::int32_t* word = nullptr;
  KRILU_INLINE explicit operator bool() const { return slice != nullptr; }
};

/// Of both triangles; none where too few slices read alike.
class Stencils {
 public:
  Stencils() = default;
  /// Looks for them, on the device. slice_row: slices + 1, the first row of each slice. entries: of both triangles.
  Stencils(const exec::Cuda& space, Index rows, Index slices, const Index* slice_row, const SlicedTriangle& lower,
           const SlicedTriangle& upper, std::int64_t entries);
  StencilTriangle lower() const { return of_triangle(0); }
  StencilTriangle upper() const { return of_triangle(slice_.size() / 2); }
  std::size_t words() const { return word_.size(); }
  std::size_t bytes() const { return slice_.bytes() + neighbour_.bytes() + word_.bytes(); }

 private:
  StencilTriangle of_triangle(std::size_t first) const {
    if (words() == 0) return {};
    return {slice_.data() + first, neighbour_.data() + first * std::size_t(neighbours_), neighbours_, word_.data()};
  }

  exec::Array<StencilSlice> slice_;  // of the lower triangle, and then of the upper one
  exec::Array<Index> neighbour_;
  int neighbours_ = 0;
  exec::Array<std::int32_t> word_;
};

#if defined(__CUDACC__)
/// What a lane asks for first of P slices that follow one another.
template <int P>
struct StencilHead {
  StencilSlice slice[P];
  Index neighbour[P];  // lane i: the first row of neighbour i

  /// All of them have one stencil.
  __device__ __forceinline__ bool alike() const {
    bool same = true;
    for (int p = 1; p < P; ++p) same = same && slice[p].word == slice[0].word && slice[p].shape == slice[0].shape;
    return same;
  }
  __device__ __forceinline__ StencilHead<1> at(int p) const { return {{slice[p]}, {neighbour[p]}}; }
};
/// Slices s, s + 1, .. of them those before `end`; the last one again in the places of others.
template <int P>
__device__ __forceinline__ StencilHead<P> load_head(const StencilTriangle& t, Index s, Index end, int lane) {
  StencilHead<P> head;
#pragma unroll
  for (int p = 0; p < P; ++p) {
    const Index at = min(s + p, end - 1);
    const int4 raw = __ldg(reinterpret_cast<const int4*>(t.slice + at));
    head.neighbour[p] =
        exec::ask(t.neighbour + (std::size_t(at) * unsigned(t.neighbours) + unsigned(lane)), lane < t.neighbours);
    head.slice[p] = {raw.x, raw.y, std::uint32_t(raw.z), raw.w};
  }
#pragma unroll
  for (int p = 0; p < P; ++p) {
    head.slice[p].shape = exec::uniform(head.slice[p].shape);
    head.slice[p].word = exec::uniform(head.slice[p].word);
  }
  return head;
}

/// P slices of one stencil as one lane sees them: a word is read once for all of them.
template <int P>
struct StencilLane {
  StencilSlice slice;  // the first
  Index row[P];        // the lane's rows, or -1
  Offset entry[P];     // the slices' first entries
  Index neighbour[P];
  const std::int32_t* word;  // the lane's first

  __device__ __forceinline__ StencilLane(const StencilTriangle& t, const StencilHead<P>& head, int lane)
      : slice(head.slice[0]), word(t.word + (std::size_t(slice.word) * 32 + unsigned(lane))) {
#pragma unroll
    for (int p = 0; p < P; ++p) {
      row[p] = lane < slice.rows() ? head.slice[p].row + lane : -1;
      entry[p] = head.slice[p].entry;
      neighbour[p] = head.neighbour[p];
    }
  }
  /// Words of steps first .. first + count - 1, those before `begin` and from `end` on being 0, and their values.
  template <int count, class S>
  __device__ __forceinline__ void ask(const S* value, int first, int begin, int end, std::int32_t (&w)[count],
                                      S (&v)[P][count]) const {
#pragma unroll
    for (int j = 0; j < count; ++j) w[j] = exec::ask(word + 32 * (first + j), begin <= first + j && first + j < end);
#pragma unroll
    for (int p = 0; p < P; ++p)
#pragma unroll
      for (int j = 0; j < count; ++j) v[p][j] = ask_streamed(value + (entry[p] + StencilWord::entry(w[j])), w[j] != 0);
  }
  /// What the entries of these words meet; all lanes of the warp call it together.
  template <int count, class T>
  __device__ __forceinline__ void ask_x(const T* x, const std::int32_t (&w)[count], T (&met)[P][count]) const {
#pragma unroll
    for (int p = 0; p < P; ++p)
#pragma unroll
      for (int j = 0; j < count; ++j) {
        const Index first = __shfl_sync(0xffffffffu, neighbour[p], int(std::uint32_t(w[j]) >> 16));
        met[p][j] = exec::ask(x + (first + StencilWord::row(w[j])), w[j] != 0);
      }
  }
  /// Adds up what steps first .. end - 1 come to; w and v: of the first `count`, asked for before.
  template <int count, class S, class T>
  __device__ __forceinline__ void add(const S* value, const T* x, int first, int end, std::int32_t (&w)[count],
                                      S (&v)[P][count], T (&sum)[P]) const {
    for (;;) {
      T met[P][count];
      ask_x(x, w, met);
#pragma unroll
      for (int p = 0; p < P; ++p)
#pragma unroll
        for (int j = 0; j < count; ++j) sum[p] += T(v[p][j]) * met[p][j];
      first += count;
      if (first >= end) return;
      ask(value, first, first, end, w, v);
    }
  }
};
/// f(heads) of slices first, first + 1, .. of those before `end`: of all P at once where they have one stencil.
template <int P, class F, class... Heads>
__device__ __forceinline__ void for_alike(Index first, Index end, const F& f, const Heads&... heads) {
  if (P == 1 || (first + P <= end && (heads.alike() && ...))) return f(heads...);
  if constexpr (P > 1)
#pragma unroll
    for (int p = 0; p < P; ++p)
      if (first + p < end) f(heads.at(p)...);
}
#endif

}  // namespace krilu::sparse
