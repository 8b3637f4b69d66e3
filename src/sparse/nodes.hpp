// SPDX-License-Identifier: Apache-2.0
// What a slice comes to that is a node: K rows with the same columns. The values of all rows stand side by side, column
// by column, x is one number for all of them, and nothing is gathered. Columns that follow one another, as those of
// another node do, are taken together: their values are one row of numbers, and where two columns of K rows fill a
// register, they are one of its operations. The node's own square is a step for each of its columns but one, in the
// sequence of elimination: in a sweep a row of it waits for the one before. All of it is unrolled for each K, so that
// sums stay in registers.
#pragma once

#include <algorithm>
#include <type_traits>

#include "exec/shuffle.hpp"
#include "sparse/read_ahead.hpp"
#include "sparse/row_sums.hpp"
#include "sparse/split.hpp"

namespace krilu::sparse {

/// Two columns of K rows side by side in a register.
template <int K, class T>
struct TwoColumns {
  static constexpr int lanes = exec::simd_width<T>(K <= 2 ? 4 : 8);
  static constexpr bool fit = 2 * K <= lanes;
  exec::Simd<T, lanes> sum = exec::zeros<T, lanes>();

  /// Adds the values of all rows in two columns times x of each.
  template <class S>
  [[gnu::always_inline]] void add(const S* value, const T* x) {
    sum += exec::load<T, lanes>(value) * exec::each_of_two<T, K, lanes>(x);
  }
  [[gnu::always_inline]] void add(const TwoColumns& other) { sum += other.sum; }
  /// Adds both columns to the rows' sums.
  [[gnu::always_inline]] void add_to(RowSums<K, T>& rows) const {
    constexpr int L = RowSums<K, T>::lanes;
    static_assert(RowSums<K, T>::registers == 1);
    const exec::Simd<T, lanes> both = sum + exec::part_of<T, lanes, K>(sum);
    rows.part[0] += exec::part_of<T, L, 0>(both);
  }
};

/// A node's steps in one triangle.
template <int K, Triangle triangle, class S>
struct Node {
  static_assert(2 <= K && K <= most_node_rows);
  static constexpr bool upper = triangle == Triangle::upper;
  const S* value;  // of the first column that is another node's
  const S* own;    // of the first of its own in the sequence of elimination
  // Columns that are other nodes': windows, then single ones.
  const NodeStep *window, *single, *behind;
  Index row;  // the node's first

  template <class T>
  [[gnu::always_inline]] Node(const SplitView<T, S>& a, Index slice, Index first_row) : row(first_row) {
    const PartPattern& part = a.template part<triangle>();
    const S* const values = a.template values<triangle>();
    const S *const begin = values + part.offset[slice], *const end = values + part.offset[slice + 1];
    value = upper ? begin + (K - 1) * K : begin;
    own = upper ? begin + (K - 2) * K : end - (K - 1) * K;
    const Offset* const step = part.step + 2 * Offset(slice);
    window = part.node_step + step[0];
    single = part.node_step + step[1];
    behind = part.node_step + step[2];
  }
  /// The lane that is eliminated t-th.
  static constexpr int lane(int t) { return upper ? K - 1 - t : t; }
  /// Values of the step that is that lane's column.
  [[gnu::always_inline]] const S* own_step(int t) const { return own + (upper ? -t : t) * K; }

  /// What all rows have of other nodes. Several sums in turn: none waits for itself.
  template <Way way, class T>
  [[gnu::always_inline]] RowSums<K, T> others(const T* x) const {
    constexpr int columns = window_columns(K), line = 64 / int(sizeof(S));
    constexpr int by_two = TwoColumns<K, T>::fit ? columns / 2 * 2 : 0, turns = by_two ? 1 : std::min(columns, 4);
    constexpr int at_once = 2 * columns * K <= line ? 2 : 1;  // windows
    TwoColumns<K, T> two[2];
    RowSums<K, T> sum[turns];
    const auto add = [&](const NodeStep& w, int turn) __attribute__((always_inline)) {
      const S* const v = value + w.at;
      const T* const its_x = x + w.column;
      for (int k = 0; turn == 0 && k < columns * K; k += line) read_ahead<way, S>(v + k);
      for (int c = 0; c < by_two; c += 2) two[(c / 2 + turn) % 2].add(v + c * K, its_x + c);
      for (int c = by_two; c < columns; ++c) sum[c % turns].add(v + c * K, its_x[c]);
    };
    const NodeStep* w = window;
    for (; single - w >= at_once; w += at_once)
      for (int t = 0; t < at_once; ++t) add(w[t], t);
    for (; at_once > 1 && w < single; ++w) add(*w, 0);
    for (w = single; w < behind; ++w) sum[0].add(value + w->at, x[w->column]);
    if constexpr (at_once * by_two > 2) two[0].add(two[1]);
    if constexpr (by_two > 0) two[0].add_to(sum[0]);
    for (int t = 1; t < turns; ++t) sum[0].add(sum[t]);
    return sum[0];
  }
  /// What all rows have of x, in the sequence in which a sweep adds it up.
  template <Way way, class T>
  [[gnu::always_inline]] RowSums<K, T> all(const T* x) const {
    RowSums<K, T> sum = others<way>(x);
    for (int t = 0; t < K - 1; ++t) sum.add(own_step(t), x[row + lane(t)]);
    return sum;
  }
};

/// f(std::integral_constant<int, K>) for a node of `rows` rows.
template <class F>
[[gnu::always_inline]] inline void with_node_rows(Index rows, const F& f) {
  switch (rows) {
    case 1: return f(std::integral_constant<int, 1>{});
    case 2: return f(std::integral_constant<int, 2>{});
    case 3: return f(std::integral_constant<int, 3>{});
    case 4: return f(std::integral_constant<int, 4>{});
    case 5: return f(std::integral_constant<int, 5>{});
    case 6: return f(std::integral_constant<int, 6>{});
    case 7: return f(std::integral_constant<int, 7>{});
    default: return f(std::integral_constant<int, 8>{});
  }
}

}  // namespace krilu::sparse
