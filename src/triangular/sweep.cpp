// SPDX-License-Identifier: Apache-2.0
#include "triangular/sweep.hpp"

#include <type_traits>
#include <utility>

#include "base/half.hpp"
#include "sparse/slices.hpp"
#include "triangular/strategy.hpp"

namespace krilu::triangular {

using sparse::Triangle;
using sparse::Way;

namespace {

/// x of row i, or of as many rows as `sum` has numbers; `sum`: their products with what is known of x. b is not read by
/// the form `dilu`; d is not read by `unit`.
template <Diagonal form, class V, class T>
[[gnu::always_inline]] inline void solve_rows(Index i, V sum, const T* d, const T* b, T* x) {
  using sparse::numbers_at;
  if constexpr (form == Diagonal::unit) sparse::put(x + i, numbers_at<V>(b + i) - sum);
  if constexpr (form == Diagonal::reciprocal) sparse::put(x + i, (numbers_at<V>(b + i) - sum) * numbers_at<V>(d + i));
  if constexpr (form == Diagonal::dilu) sparse::put(x + i, numbers_at<V>(x + i) - numbers_at<V>(d + i) * sum);
}

/// x over a node, whose rows wait for one another, and their products with x. x is worked on in registers: from one row
/// to the next it takes a shuffle, a product and a difference.
template <Diagonal form, Way way, int K, Triangle triangle, class T, class S>
[[gnu::always_inline]] inline sparse::RowSums<K, T> solve_node(const sparse::Node<K, triangle, S>& node, const T* d,
                                                               const T* b, T* x) {
  using Sums = sparse::RowSums<K, T>;
  constexpr int registers = Sums::registers, lanes = Sums::lanes;
  const Index i = node.row;
  Sums sum = node.template others<way>(x), its_x = Sums::of(form == Diagonal::dilu ? x + i : b + i), its_d;
  if constexpr (form != Diagonal::unit) its_d = Sums::of(d + i);
  for (int m = 0; m < registers; ++m) {
    if constexpr (form == Diagonal::unit) its_x.part[m] = its_x.part[m] - sum.part[m];
    if constexpr (form == Diagonal::reciprocal) its_x.part[m] = (its_x.part[m] - sum.part[m]) * its_d.part[m];
    if constexpr (form == Diagonal::dilu) its_x.part[m] = its_x.part[m] - its_d.part[m] * sum.part[m];
  }
  const auto eliminate = [&](auto t) __attribute__((always_inline)) {
    const auto known = its_x.template each<sparse::Node<K, triangle, S>::lane(t)>();
    for (int m = 0; m < registers; ++m) {
      const auto own = exec::load<T, lanes>(node.own_step(t) + m * lanes);
      sum.part[m] += own * known;
      if constexpr (form == Diagonal::unit)
        its_x.part[m] -= own * known;
      else
        its_x.part[m] -= own * its_d.part[m] * known;
    }
  };
  [&]<int... t>(std::integer_sequence<int, t...>) __attribute__((always_inline)) {
    (eliminate(std::integral_constant<int, t>{}), ...);
  }
  (std::make_integer_sequence<int, K - 1>{});
  its_x.for_each(
      K, [&](Index q, auto v) __attribute__((always_inline)) { sparse::put(x + i + q, v); });
  return sum;
}

/// x over the slices of a triangle, by their numbers, the lower one ascending and the upper one descending: what a
/// runner runs. A type of its own, so that the forms that have a sweep in common have its code in common.
template <int H, Diagonal form, Triangle triangle, class T, class S>
struct Sweep {
  static constexpr Way way = triangle == Triangle::lower ? Way::ascending : Way::descending;
  sparse::SplitView<T, S> a;
  const T *d, *b;
  T* x;

  [[gnu::always_inline]] void operator()(Index slice) const {
    (*this)(slice, [](Index, Index, const auto&) {});
  }
  /// `then` is told the slice's first row, its rows, and their products with x.
  template <class Then>
  [[gnu::always_inline]] void operator()(Index slice, const Then& then) const {
    const Index row = a.pattern.slice_row[slice], rows = a.pattern.slice_row[slice + 1] - row;
    sparse::with_rows<H>(
        rows, [&](auto k) __attribute__((always_inline)) {
          constexpr int K = decltype(k)::value;
          sparse::RowSums<K, T> sum;
          if constexpr (H == 0 && K > 1) {
            sum = solve_node<form, way>(sparse::Node<K, triangle, S>(a, slice, row), d, b, x);
          } else {
            sparse::accumulate<H, triangle, way>(a, slice, row, x, sum);
            sum.for_each(
                rows, [&](Index q, auto s) __attribute__((always_inline)) { solve_rows<form>(row + q, s, d, b, x); });
          }
          then(row, rows, sum);
        });
  }
};

}  // namespace

template <class T, class S>
void solve_dilu_form(const SliceRunner& runner, const sparse::SplitView<T, S>& a, const T* d, const T* r, T* z) {
  sparse::with_height(a.pattern.height, [&](auto h) {
    constexpr int H = decltype(h)::value;
    runner.both(Sweep<H, Diagonal::reciprocal, Triangle::lower, T, S>{a, d, r, z},
                Sweep<H, Diagonal::dilu, Triangle::upper, T, S>{a, d, r, z});
  });
}

template <class T, class S>
void solve_dilu_form(const SliceRunner& runner, const sparse::SplitView<T, S>& a, const T* d, const T* r, T* z, T* w) {
  sparse::with_height(a.pattern.height, [&](auto h) {
    constexpr int H = decltype(h)::value;
    const Sweep<H, Diagonal::dilu, Triangle::upper, T, S> backward{a, d, r, z};
    runner.both(
        Sweep<H, Diagonal::reciprocal, Triangle::lower, T, S>{a, d, r, z}, [=](Index s) __attribute__((always_inline)) {
          backward(
              s, [&](Index row, Index rows, const auto& sum) __attribute__((always_inline)) {
                sum.for_each(
                    rows, [&](Index q, auto v) __attribute__((always_inline)) {
                      using V = decltype(v);
                      sparse::put(w + row + q, v + sparse::numbers_at<V>(backward.a.diagonal + row + q) *
                                                       sparse::numbers_at<V>(z + row + q));
                    });
              });
        });
  });
}

template <class T, class S>
void solve_lu(const SliceRunner& runner, const sparse::SplitView<T, S>& a, const T* d, T* x) {
  sparse::with_height(a.pattern.height, [&](auto h) {
    constexpr int H = decltype(h)::value;
    runner.both(Sweep<H, Diagonal::unit, Triangle::lower, T, S>{a, d, x, x},
                Sweep<H, Diagonal::reciprocal, Triangle::upper, T, S>{a, d, x, x});
  });
}

#define KRILU_SWEEPS(T, S)                                                                                       \
  template void solve_dilu_form(const SliceRunner&, const sparse::SplitView<T, S>&, const T*, const T*, T*);     \
  template void solve_dilu_form(const SliceRunner&, const sparse::SplitView<T, S>&, const T*, const T*, T*, T*); \
  template void solve_lu(const SliceRunner&, const sparse::SplitView<T, S>&, const T*, T*);
KRILU_SWEEPS(double, double)
KRILU_SWEEPS(float, float)
KRILU_SWEEPS(float, Half)
KRILU_SWEEPS(float, Bfloat16)
#undef KRILU_SWEEPS

}  // namespace krilu::triangular
