// SPDX-License-Identifier: Apache-2.0
// The GPU's storage: A = L + D + U as in split.hpp, cut into slices that a warp works on. A slice has up to 32 rows,
// and 1, 4 or 32 lanes a row, by the rows' length. Its entries stand in the sequence in which the warp reads them: the
// first entry of every lane that has one, then the second of every lane that has two, and so on. Reads are therefore
// coalesced and nothing is padded, whatever the lengths; a ballot tells each lane its place (Walk). Entries of L stand
// in the order of elimination, those of U in the opposite one, as the two sweeps meet them. How many entries each lane
// has stands in a byte at 32 s + lane, so that it is on its way together with the slice itself.
// Cost of y = A x: 12 bytes a nonzero, 24 bytes a row and 96 a slice.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/ask.cuh"
#include "exec/cuda.cuh"
#include "exec/warp.cuh"
#include "sparse/csr_cuda.cuh"
#include "sparse/operator.hpp"
#include "sparse/rounding.cuh"
#include "sparse/stencils.cuh"
#include "sparse/storage.hpp"

namespace krilu::sparse {

/// One slice of one triangle, read as 16 bytes.
struct alignas(16) Slice {
  Index row;            // its first row
  Offset entry;         // its first entry
  std::uint32_t shape;  // rows - 1: 5 bits, log2 of lanes a row: 3, entries of the longest lane: 24
  Index inner;          // steps that its rows need one after another, where they depend on each other; else 1

  static KRILU_INLINE std::uint32_t shaped(int rows, int lanes_log2, std::uint32_t width) {
    return std::uint32_t(rows - 1) | std::uint32_t(lanes_log2) << 5 | width << 8;
  }
  KRILU_INLINE int rows() const { return int(shape & 31) + 1; }
  KRILU_INLINE int lanes_log2() const { return int(shape >> 5 & 7); }
  KRILU_INLINE int width() const { return int(shape >> 8); }
};

struct SlicedTriangle {
  const Slice* slice = nullptr;
  const Index* column = nullptr;
  const Index* length = nullptr;        // of each row
  const std::uint8_t* count = nullptr;  // entries of each lane of each slice; 255: as many, or more
  StencilTriangle stencil = {};         // the columns again, where slices of coloured blocks read alike
};
struct SlicedPatternView {
  Index rows = 0, slices = 0;
  SlicedTriangle lower, upper;
  const std::uint8_t* inner = nullptr;  // each lane's step within its slice; null where rows of a slice are independent
};
/// T: what is computed in, and the diagonal's type; S: what the triangles are stored in.
template <class T, class S = T>
struct SlicedView {
  SlicedPatternView pattern;
  const S* lower = nullptr;
  const T* diagonal = nullptr;
  const S* upper = nullptr;
};

/// How many lanes work on a row whose longer triangle has this many entries, as log2.
KRILU_INLINE int lanes_log2_of(Index length) { return length <= 32 ? 0 : length <= 128 ? 2 : 5; }

/// Where each row stands and what belongs together: made by schedule/layout.cuh, on the device.
struct Layout {
  exec::Array<Index> row;        // row[place]: the caller's row; empty where rows keep the caller's order
  exec::Array<Index> place;      // its inverse
  exec::Array<Index> slice_row;  // slices + 1: first row of each slice
  Index slices = 0;
  bool blocks = false;   // rows of a slice may depend on each other
  bool lattice = false;  // slices may read alike
  std::size_t bytes() const { return row.bytes() + place.bytes() + slice_row.bytes(); }
};

class SlicedPattern {
 public:
  /// Built on the device from the caller's matrix there. Throws krilu::Error where it does not fit.
  /// stencils_from: slices, of a lattice, with which it looks for stencils: that takes as long as some hundred sweeps
  /// over few of them gain.
  SlicedPattern(const exec::Cuda& space, const DeviceCsr& a, std::shared_ptr<const Layout> layout,
                Index stencils_from = 4096);

  Index rows() const { return rows_; }
  Index slices() const { return layout_->slices; }
  Offset lower_entries() const { return lower_entries_; }
  Offset upper_entries() const { return upper_entries_; }
  Index widest() const { return widest_; }              // entries of the longest lane
  Index most_inner() const { return most_inner_; }      // inner steps of the deepest slice
  Index widest_inner() const { return widest_inner_; }  // entries of a row that stay within its slice
  /// Words of the stencils that slices are read by; 0 where they are read by columns.
  std::size_t stencil_words() const { return stencils_.words(); }
  const Layout& layout() const { return *layout_; }
  SlicedPatternView view() const;
  std::size_t bytes() const;

  /// Where each stored entry came from: a position among the caller's nonzeros.
  const exec::Array<Offset>& lower_source() const { return lower_source_; }
  const exec::Array<Offset>& upper_source() const { return upper_source_; }
  const exec::Array<Offset>& diagonal_source() const { return diagonal_source_; }  // -1: missing

 private:
  Index rows_ = 0, widest_ = 0, most_inner_ = 1, widest_inner_ = 0;
  Offset lower_entries_ = 0, upper_entries_ = 0;
  std::shared_ptr<const Layout> layout_;
  exec::Array<Slice> lower_slice_, upper_slice_;
  exec::Array<Index> lower_column_, upper_column_, lower_length_, upper_length_;
  exec::Array<Offset> lower_source_, upper_source_, diagonal_source_;
  exec::Array<std::uint8_t> lower_count_, upper_count_, inner_;
  Stencils stencils_;
};

template <class T, class S = T>
struct SlicedMatrix {
  std::shared_ptr<const SlicedPattern> pattern;
  exec::Array<S> lower;
  exec::Array<T> diagonal;
  exec::Array<S> upper;

  SlicedView<T, S> view() const { return {pattern->view(), lower.data(), diagonal.data(), upper.data()}; }
  std::size_t bytes() const { return lower.bytes() + diagonal.bytes() + upper.bytes(); }
};

/// The caller's values, in its order and on the device, over the pattern. Writes over m where it has the arrays.
template <class T>
void fill_values(const exec::Cuda& space, std::shared_ptr<const SlicedPattern> pattern, const double* values,
                 SlicedMatrix<T>& m);

/// What a has of triangles and diagonal, scaled and rounded as split.hpp's rounded_matrix does it.
template <class S>
SlicedMatrix<float, S> rounded_matrix(const exec::Cuda& space, const std::shared_ptr<const SlicedPattern>& pattern,
                                      const SlicedView<double>& a, const Rounding& rounding);

template <>
struct Storage<exec::Cuda> {
  using Pattern = SlicedPattern;
  template <class T, class S = T>
  using Matrix = SlicedMatrix<T, S>;
  template <class T>
  using View = SlicedView<T>;
};

template <class T, class S>
class SplitOperator<exec::Cuda, T, S> final : public Operator<exec::Cuda, T> {
 public:
  SplitOperator(exec::Cuda space, const SlicedMatrix<T, S>& a)
      : space_(std::move(space)), a_(a.view()), widest_(a.pattern->widest()) {}
  Index rows() const override { return a_.pattern.rows; }
  const T* stored() const override { return a_.diagonal; }
  void apply(const T* x, T* y) const override;
  void residual(const T* b, const T* x, T* r) const override;

 private:
  exec::Cuda space_;
  SlicedView<T, S> a_;
  Index widest_;
};

#if defined(__CUDACC__)
// --- how a warp reads a slice ------------------------------------------------------------------------------------

/// What one lane has to do with a slice.
struct Lane {
  Index row = -1;  // its row, or -1
  int count = 0;   // entries of the row that it takes
  int sub = 0;     // which of its row's lanes it is
  int lanes_log2 = 0;
  Offset next = 0;  // where the warp's next entry column begins
};

__device__ __forceinline__ Slice load_slice(const Slice* s) {
  const int4 raw = __ldg(reinterpret_cast<const int4*>(s));
  return {raw.x, raw.y, std::uint32_t(raw.z), raw.w};
}

/// What a lane asks for first: two loads that nothing waits for until it is opened.
struct Head {
  Slice slice;
  int count;  // 0 of lanes without a row
};
__device__ __forceinline__ Head load_head(const SlicedTriangle& t, Index s, int lane) {
  Head head;
  std::uint16_t count;
  // Not __ldg: the compiler would ask for the count where it is used, when the slice has come.
  asm volatile("ld.global.nc.u8 %0, [%1];" : "=h"(count) : "l"(t.count + (std::size_t(s) * 32 + unsigned(lane))));
  head.slice = load_slice(t.slice + s);
  head.count = count;
  return head;
}

/// Once it is needed: waits for the slice, whose shape steers the warp.
__device__ __forceinline__ Head arrived(Head head) {
  head.slice.shape = exec::uniform(head.slice.shape);
  return head;
}

/// A slice as lane `lane` sees it. lanes_log2: the slice's, or a constant where all have the same: 0 in coloured
/// blocks.
__device__ __forceinline__ Lane open_lane(const SlicedTriangle& t, const Head& head, int lane, int lanes_log2) {
  Lane l;
  const Slice& slice = head.slice;
  l.lanes_log2 = lanes_log2;
  const int q = lane >> l.lanes_log2;
  l.sub = lane & ((1 << l.lanes_log2) - 1);
  l.next = slice.entry;
  l.row = q < slice.rows() ? slice.row + q : -1;
  l.count = head.count;
  if (head.count == 255) l.count = (t.length[l.row] - l.sub + (1 << l.lanes_log2) - 1) >> l.lanes_log2;
  return l;
}
__device__ __forceinline__ Lane open_lane(const SlicedTriangle& t, const Head& head, int lane) {
  return open_lane(t, head, lane, head.slice.lanes_log2());
}
/// Slice s, as lane `lane` sees it.
__device__ __forceinline__ Lane open_lane(const SlicedTriangle& t, Index s, const Slice& slice, int lane) {
  return open_lane(t, Head{slice, int(__ldg(t.count + (std::size_t(s) * 32 + unsigned(lane))))}, lane);
}

/// Position of the lane's entry k, for k = 0, 1, 2, .. in turn; all lanes of the warp call it together.
__device__ __forceinline__ Offset step(Lane& l, int k, int lane) {
  const unsigned active = __ballot_sync(0xffffffffu, k < l.count);
  const Offset at = l.next + __popc(active & ((1u << lane) - 1));
  l.next += __popc(active);
  return at;
}

/// Sum over the lanes of a row; all of them get it.
template <class T>
__device__ __forceinline__ T sum_over_lanes(T sum, int lanes_log2) {
  for (int offset = 1 << lanes_log2 >> 1; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  return sum;
}
/// Which rounds of a triangle's slice a warp takes, where several warps share them: every `of`th, from round `turn` on.
struct Share {
  int turn = 0, of = 1;
};

/// Adds up a lane's part of one triangle. `count` entries, a round, are asked for before any is used.
template <int count, class T, class S>
__device__ __forceinline__ void add_triangle(const SlicedTriangle& t, const S* value, const Slice& slice, Lane l,
                                             int lane, const T* x, T& sum, Share share = {}) {
  const auto add = [&](const auto& place) {
    int turn = share.turn;
    for (int k = 0; k < slice.width(); k += count) {
      const bool mine = turn == 0;
      turn = mine ? share.of - 1 : turn - 1;
      if (!mine) {
        for (int j = 0; j < count; ++j) place(k + j);
        continue;
      }
      Index c[count];
      S v[count];
      T of_x[count];
#pragma unroll
      for (int j = 0; j < count; ++j) {
        const Offset at = place(k + j);
        c[j] = exec::ask_streamed(t.column + at, k + j < l.count);
        v[j] = ask_streamed(value + at, k + j < l.count);
      }
#pragma unroll
      for (int j = 0; j < count; ++j) of_x[j] = exec::ask(x + (c[j] < 0 ? slice.row + ~c[j] : c[j]), k + j < l.count);
#pragma unroll
      for (int j = 0; j < count; ++j)
        if (k + j < l.count) sum += T(v[j]) * of_x[j];
    }
  };
  // Where all rows are equally long, as most are, places are plain arithmetic.
  const int lanes = slice.rows() << l.lanes_log2;
  if (__all_sync(0xffffffffu, l.row < 0 || l.count == slice.width()))
    add([&](int k) { return slice.entry + k * lanes + lane; });
  else
    add([&](int k) { return step(l, k, lane); });
}

#endif

}  // namespace krilu::sparse
