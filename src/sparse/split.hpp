// SPDX-License-Identifier: Apache-2.0
// The solver's own storage: A = L + D + U, the strict triangles in sliced ELL, rows in the solver's order.
//
// A slice holds up to `height` consecutive rows; its entries stand column by column of the slice, so that one vector
// instruction works on all its rows: entry k of lane q is at offset[slice] + k*height + q. Height 1 is CSR. Slices
// never cross a level, so that the rows of one do not depend on each other; rows of a level are sorted by length, so
// that little is padded. Products with A and triangular solves read the same arrays: nothing is stored twice. Source of
// sliced ELL: Monakov, Lokhmotov, Avetisyan (2010). Cost of y = A x: 12 bytes a nonzero (8.5 where the columns of a
// slice follow one another), 20 bytes a row.
//
// Where rows come as the unknowns of nodes, with the same columns, a slice is a node (height 0): its rows depend on one
// another, and nothing is padded but the square of the node itself. Columns are read once for all rows, and once for as
// many as follow one another in a window: 8 + 8/(r c) bytes a nonzero for r rows a node and c columns a window, c being
// 1 where they do not, and no gathers (nodes.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "exec/host.hpp"
#include "krilu/matrix.hpp"
#include "sparse/rounding.hpp"

namespace krilu::sparse {

/// Brings host-built arrays to a space: moved where the space is the host, copied otherwise.
template <class Space, class T>
exec::Array<T> to_space(const Space& space, exec::Array<T>&& host_array) {
  if constexpr (std::is_same_v<Space, exec::Host>) {
    return std::move(host_array);
  } else {
    auto there = space.template allocate<T>(host_array.size());
    space.copy_in(there, host_array.data(), host_array.size());
    return there;
  }
}

/// Rows of a node at the most: more unknowns at a point are several nodes.
constexpr int most_node_rows = 8;
/// Rows of a slice at the most.
template <int height>
constexpr int lanes_of = height > 0 ? height : most_node_rows;

/// Columns of a node's window: what a neighbour with as many rows has, or half of that. Of three rows two: where
/// velocities stand at all points and pressures at some, neighbours have two more often.
constexpr int window_columns(int rows) {
  constexpr int columns[most_node_rows + 1] = {0, 1, 2, 2, 4, 5, 3, 7, 4};
  return columns[rows];
}
/// Columns of a node that follow one another, or a single one.
struct NodeStep {
  Index column;  // the first
  Index at;      // where its values are, behind the slice's first that is another node's
};

/// What kernels see of one triangle's pattern.
struct PartPattern {
  const Offset* offset = nullptr;         // slices + 1
  const Index* column = nullptr;          // entries, padding included
  const std::uint16_t* length = nullptr;  // rows: entries of each row; null where height is 1 or 0
  const std::uint16_t* narrow = nullptr;  // the columns again, less `base` of their slice, where they are kept so
  const Index* base = nullptr;            // slices
  const Index* run = nullptr;             // entries / height: x's first place where the lanes' columns follow one
                                          // another, else -1; null where that is rare
  const Offset* step = nullptr;  // 2 slices + 1, of nodes alone: where a slice's windows begin, then its single
                                 // columns, those of the node itself left out
  const NodeStep* node_step = nullptr;
  bool at_end = false;  // padding stands before a row's entries, not behind: the upper triangle of nodes
};
struct PatternView {
  Index rows = 0, slices = 0;
  int height = 1;                    // 0: slices are nodes
  const Index* slice_row = nullptr;  // slices + 1: first row of each slice
  PartPattern lower, upper;

  /// From an entry of a row to its next.
  Index stride(Index slice) const { return height > 0 ? height : slice_row[slice + 1] - slice_row[slice]; }
  /// Entries of the row in lane `lane` of a slice, padding left out: begin, begin + stride, .. before end. Of a node's
  /// square the lower triangle stands at the end of the slice, the upper one at its beginning.
  struct Entries {
    Offset begin, end, stride;
    Index count() const { return (end - begin + stride - 1) / stride; }
  };
  Entries entries(const PartPattern& part, Index slice, Index lane) const {
    const Offset step = stride(slice), end = part.offset[slice + 1];
    if (part.length)
      return {begin(part, slice, lane), part.offset[slice] + part.length[slice_row[slice] + lane] * step, step};
    return {begin(part, slice, lane), height > 0 || part.at_end ? end : end - (step - 1 - lane) * step, step};
  }
  /// The first of them, from offsets alone: hosts may ask for it where lengths are in another space's memory.
  Offset begin(const PartPattern& part, Index slice, Index lane) const {
    return part.offset[slice] + (part.at_end ? lane * stride(slice) : 0) + lane;
  }
};
enum class Triangle { lower, upper };
/// T: what is computed in, and the diagonal's type; S: what the triangles are stored in.
template <class T, class S = T>
struct SplitView {
  PatternView pattern;
  const S* lower = nullptr;
  const T* diagonal = nullptr;
  const S* upper = nullptr;

  template <Triangle triangle>
  const PartPattern& part() const {
    return triangle == Triangle::upper ? pattern.upper : pattern.lower;
  }
  template <Triangle triangle>
  const S* values() const {
    return triangle == Triangle::upper ? upper : lower;
  }
};

/// The row order that a pattern is built in. `rows[k]` is the caller's row at place k; `group` cuts the places into
/// runs that slices do not cross (levels, or any length that keeps neighbours near). Entries of a row stand in
/// ascending `rank` (empty: in the caller's order), which is the order of elimination.
struct RowOrder {
  std::vector<Index> rows;
  std::vector<Index> place;  // inverse of rows
  std::vector<Index> group;  // offsets, groups + 1
  std::vector<Index> rank;   // of the caller's rows; empty: natural
  std::vector<Index> part;   // parts + 1: first group of each part; parts share no entry. Empty: one part
  std::vector<Index> node =
      {};                       // nodes + 1: first place of each (schedule/row_order.hpp). Empty: slices are cut freely
  bool keeps_sequence = false;  // rows that share an entry stand in the sequence of their ranks, as in level order

  std::size_t bytes() const {
    return (rows.capacity() + place.capacity() + group.capacity() + rank.capacity() + part.capacity() +
            node.capacity()) *
           sizeof(Index);
  }
  /// Negative, zero or positive where the caller's `column` stands before, at or after `row`.
  Index side(Index row, Index column) const {
    const std::vector<Index>& by = keeps_sequence ? rank : place;
    return by.empty() ? column - row : by[std::size_t(column)] - by[std::size_t(row)];
  }
};

/// The pattern of A in a given row order. Immutable once built; shared by the matrix and by factors of the same
/// pattern.
class SplitPattern {
 public:
  /// Nodes where the order has them, whatever the height; else height 0 is the tallest of 8, 4 and 1 that pads at most
  /// a fifth. Host kernels exist for these only.
  template <class Space>
  SplitPattern(const Space& space, const exec::Host& host, const CsrView& a, const RowOrder& order, int height = 0)
      : SplitPattern(host, a, order, height) {
    slice_row_ = to_space(space, std::move(slice_row_));
    for (Part* p : {&lower_, &upper_}) {
      p->offset = to_space(space, std::move(p->offset));
      p->column = to_space(space, std::move(p->column));
      p->length = to_space(space, std::move(p->length));
      p->run = to_space(space, std::move(p->run));
      p->step = to_space(space, std::move(p->step));
      p->node_step = to_space(space, std::move(p->node_step));
    }
  }

  Index rows() const { return rows_; }
  /// Rows of a slice, 0 where slices are nodes.
  int height() const { return height_; }
  Index slices() const { return Index(host_slice_row_.size()) - 1; }
  /// Numbers that a triangle's values take. The last node is read to the end of a register.
  Offset lower_entries() const { return host_lower_offset_.back() + beyond(); }
  Offset upper_entries() const { return host_upper_offset_.back() + beyond(); }
  PatternView view() const;
  std::size_t bytes() const;

  // The shape, on the host whatever the space: what schedules are made from.
  const std::vector<Index>& slice_rows() const { return host_slice_row_; }
  const std::vector<Offset>& lower_offsets() const { return host_lower_offset_; }
  const std::vector<Offset>& upper_offsets() const { return host_upper_offset_; }
  /// Slices of each group: groups + 1 offsets.
  const std::vector<Index>& group_slices() const { return group_slices_; }
  /// Slices of each part that shares no entry with the others: parts + 1 offsets; empty where there is one part.
  const std::vector<Index>& part_slices() const { return part_slices_; }

 private:
  struct Part {
    exec::Array<Offset> offset;
    exec::Array<Index> column;
    exec::Array<std::uint16_t> length;
    exec::Array<Index> run;
    exec::Array<Offset> step;
    exec::Array<NodeStep> node_step;
  };
  SplitPattern(const exec::Host& host, const CsrView& a, const RowOrder& order, int height);
  Offset beyond() const { return height_ == 0 ? most_node_rows : 0; }
  void find_steps(const exec::Host& host, Part& part, const std::vector<Offset>& offset) const;
  Offset pad(const Part& part, const Index* length, Index lanes, Offset begin, Offset end) const;

  Index rows_ = 0;
  int height_ = 1;
  std::vector<Index> host_slice_row_, group_slices_, part_slices_;
  std::vector<Offset> host_lower_offset_, host_upper_offset_;
  exec::Array<Index> slice_row_;
  Part lower_, upper_;
};

/// The columns of a SplitPattern in 16 bits, counted from the least of their slice: a third of what single precision
/// reads would be indices.
class NarrowColumns {
 public:
  /// Null where the columns of some slice and triangle lie 2^16 or more apart, and for nodes, which read few.
  template <class Space>
  static std::shared_ptr<const NarrowColumns> of(const Space& space, const SplitPattern& pattern) {
    if (pattern.height() == 0) return nullptr;
    auto n = std::make_shared<NarrowColumns>();
    const PatternView p = pattern.view();
    bool fits = true;
    for (auto [part, from, entries] : {std::tuple{&n->lower_, &p.lower, pattern.lower_entries()},
                                       std::tuple{&n->upper_, &p.upper, pattern.upper_entries()}}) {
      part->column = space.template allocate<std::uint16_t>(std::size_t(entries));
      part->base = space.template allocate<Index>(std::size_t(pattern.slices()));
      space.enqueue([&, out = part->column.data(), base = part->base.data(), pattern_part = *from](
                        const exec::Host& host) { fits = fits && narrow(host, p.slices, pattern_part, out, base); });
    }
    space.synchronise();
    return fits ? n : nullptr;
  }
  void put_into(PatternView& p) const {
    p.lower.narrow = lower_.column.data();
    p.lower.base = lower_.base.data();
    p.upper.narrow = upper_.column.data();
    p.upper.base = upper_.base.data();
  }
  std::size_t bytes() const {
    return lower_.column.bytes() + lower_.base.bytes() + upper_.column.bytes() + upper_.base.bytes();
  }

 private:
  struct Part {
    exec::Array<std::uint16_t> column;
    exec::Array<Index> base;
  };
  static bool narrow(const exec::Host& host, Index slices, const PartPattern& part, std::uint16_t* column, Index* base);

  Part lower_, upper_;
};

/// The values of one matrix over a SplitPattern.
template <class T, class S = T>
struct SplitMatrix {
  std::shared_ptr<const SplitPattern> pattern;
  exec::Array<S> lower;
  exec::Array<T> diagonal;
  exec::Array<S> upper;
  std::shared_ptr<const NarrowColumns> narrow = {};  // shared by the matrices of a pattern

  SplitView<T, S> view() const {
    SplitView<T, S> v{pattern->view(), lower.data(), diagonal.data(), upper.data()};
    if (narrow) narrow->put_into(v.pattern);
    return v;
  }
  std::size_t bytes() const { return lower.bytes() + diagonal.bytes() + upper.bytes(); }
};

/// Values of a over the pattern, in host memory. A missing diagonal is zero. Throws krilu::Error, naming the caller's
/// row, for NaN or infinity. Arrays of `old` serve again where they fit: new ones cost more than what fills them.
template <class T>
SplitMatrix<T> fill_values(const exec::Host& host, std::shared_ptr<const SplitPattern> pattern, const CsrView& a,
                           const RowOrder& order, SplitMatrix<T> old = {});

/// A again in the caller's order. Rows of missing_diagonal, ascending, had no diagonal entry.
CsrMatrix to_csr(const exec::Host& host, const SplitMatrix<double>& a, const RowOrder& order,
                 std::span<const Index> missing_diagonal);

/// Calls f(std::integral_constant<int, H>) with the pattern's height.
template <class F>
inline decltype(auto) with_height(int height, F&& f) {
  switch (height) {
    case 8: return f(std::integral_constant<int, 8>{});
    case 4: return f(std::integral_constant<int, 4>{});
    case 0: return f(std::integral_constant<int, 0>{});
    default: return f(std::integral_constant<int, 1>{});
  }
}

/// y = A x on the host's threads.
template <class T, class S>
void multiply(const exec::Host& host, const SplitView<T, S>& a, const T* x, T* y);
/// y += L x: what triangular sweeps leave out of a product (triangular/sweep.hpp). The sum is multiply()'s, bit for
/// bit.
template <class T, class S>
void add_lower(const exec::Host& host, const SplitView<T, S>& a, const T* x, T* y);
/// r = b - A x.
template <class T, class S>
void residual(const exec::Host& host, const SplitView<T, S>& a, const T* b, const T* x, T* r);

/// What a has of triangles, scaled and rounded (rounding.hpp), and of a diagonal, in float. In storage of 16 bits the
/// diagonal takes up what rounding changed in its row, within the limit of with_missing(): A stays right for constant
/// vectors, as diffusion needs.
template <class S>
void round_values(const exec::Host& host, const SplitView<double>& a, const Rounding& rounding, S* lower,
                  float* diagonal, S* upper);

/// a rounded, in the memory of a space whose kernels are host code.
template <class S, class Space>
SplitMatrix<float, S> rounded_matrix(const Space& space, const std::shared_ptr<const SplitPattern>& pattern,
                                     const SplitView<double>& a, const Rounding& rounding,
                                     std::shared_ptr<const NarrowColumns> narrow) {
  SplitMatrix<float, S> m{pattern, space.template allocate<S>(a.lower ? std::size_t(pattern->lower_entries()) : 0),
                          space.template allocate<float>(a.diagonal ? std::size_t(pattern->rows()) : 0),
                          space.template allocate<S>(a.upper ? std::size_t(pattern->upper_entries()) : 0),
                          std::move(narrow)};
  space.enqueue([=, lower = m.lower.data(), diagonal = m.diagonal.data(), upper = m.upper.data()](
                    const exec::Host& host) { round_values(host, a, rounding, lower, diagonal, upper); });
  return m;
}

}  // namespace krilu::sparse
