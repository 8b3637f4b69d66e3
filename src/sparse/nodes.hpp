// SPDX-License-Identifier: Apache-2.0
// What a slice comes to that is a node: K rows with the same columns. A step is one column: the values of all rows
// stand side by side, x is one number for all of them, and nothing is gathered. The node's own square is a step for
// each of its columns but one, in the sequence of elimination: in a sweep a row of it waits for the one before. All of
// it is unrolled for each K, so that sums stay in registers.
#pragma once

#include <type_traits>

#include "sparse/read_ahead.hpp"
#include "sparse/row_sums.hpp"
#include "sparse/split.hpp"

namespace krilu::sparse {

/// A node's steps in one triangle.
template <int K, Triangle triangle, class S>
struct Node {
  static_assert(2 <= K && K <= most_node_rows);
  static constexpr bool upper = triangle == Triangle::upper;
  const S* value;       // of the first step that is another node's
  const S* own;         // of the first of its own in the sequence of elimination
  const Index* column;  // of steps that are other nodes'
  const Index* behind;  // the last of these
  Index row;            // the node's first

  template <class T>
  [[gnu::always_inline]] Node(const SplitView<T, S>& a, Index slice, Index first_row) : row(first_row) {
    const PartPattern& part = a.template part<triangle>();
    const S* const values = a.template values<triangle>();
    const S *const begin = values + part.offset[slice], *const end = values + part.offset[slice + 1];
    value = upper ? begin + (K - 1) * K : begin;
    own = upper ? begin + (K - 2) * K : end - (K - 1) * K;
    column = part.step_column + part.step[slice] + (upper ? K - 1 : 0);
    behind = part.step_column + part.step[slice + 1] - (upper ? 0 : K - 1);
  }
  /// The lane that is eliminated t-th.
  static constexpr int lane(int t) { return upper ? K - 1 - t : t; }
  /// Values of the step that is that lane's column.
  [[gnu::always_inline]] const S* own_step(int t) const { return own + (upper ? -t : t) * K; }

  /// What all rows have of other nodes. Several sums in turn: none waits for itself.
  template <Way way, class T>
  [[gnu::always_inline]] RowSums<K, T> others(const T* x) const {
    RowSums<K, T> s0, s1, s2, s3;
    const Index* c = column;
    const S* v = value;
    for (; c + 4 <= behind; c += 4, v += 4 * K) {
      constexpr int line = 64 / int(sizeof(S));
      for (int k = 0; k < 4 * K; k += line) read_ahead<way, S>(v + k);
      s0.add(v, x[c[0]]);
      s1.add(v + K, x[c[1]]);
      s2.add(v + 2 * K, x[c[2]]);
      s3.add(v + 3 * K, x[c[3]]);
    }
    for (; c < behind; ++c, v += K) s0.add(v, x[*c]);
    s0.add(s1);
    s2.add(s3);
    s0.add(s2);
    return s0;
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
