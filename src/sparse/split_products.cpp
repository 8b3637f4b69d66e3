// SPDX-License-Identifier: Apache-2.0
#include "sparse/slices.hpp"
#include "sparse/split.hpp"

namespace krilu::sparse {

namespace {

/// f(slice) for all, shared out to the threads by what slices cost.
template <class Cost, class F>
void for_slices(const exec::Host& host, const PatternView& p, Cost cost, F f) {
  host.parallel(p.rows > 4096 ? host.threads() : 1, [&](int t, int team) {
    const auto border = [&](int part) {
      const std::int64_t want = cost(p.slices) / team * part;
      if (part == team) return p.slices;
      Index low = 0, high = p.slices;
      while (low < high) {
        const Index mid = low + (high - low) / 2;
        if (cost(mid) < want)
          low = mid + 1;
        else
          high = mid;
      }
      return low;
    };
    const F own = f;  // through a reference, all that f holds would be fetched again for every slice
    const Index last = border(t + 1);
    for (Index s = border(t); s < last; ++s) own(s);
  });
}

/// What rows of two triangles cost.
std::int64_t cost_of(const PatternView& p, Index slices) {
  return std::int64_t(p.lower.offset[slices]) + p.upper.offset[slices] + 2 * std::int64_t(p.slice_row[slices]);
}

/// y = A x, or b - A x where there is a b. Of a row first the upper entries, then the diagonal, then the lower ones, as
/// what triangular sweeps leave of a product comes.
template <class T, class S>
void write_products(const exec::Host& host, const SplitView<T, S>& a, const T* b, const T* x, T* y) {
  with_height(a.pattern.height, [&](auto h) {
    constexpr int H = decltype(h)::value;
    const PatternView p = a.pattern;
    for_slices(
        host, p, [&](Index s) { return cost_of(p, s); },
        [=](Index s) __attribute__((always_inline)) {
          const Index row = p.slice_row[s], rows = p.slice_row[s + 1] - row;
          with_rows<H>(
              rows, [&](auto k) __attribute__((always_inline)) {
                RowSums<decltype(k)::value, T> sum;
                accumulate<H, Triangle::upper>(a, s, row, x, sum);
                sum.update(
                    rows, [&](Index q, auto v) __attribute__((always_inline)) {
                      using V = decltype(v);
                      return v + numbers_at<V>(a.diagonal + row + q) * numbers_at<V>(x + row + q);
                    });
                accumulate<H, Triangle::lower>(a, s, row, x, sum);
                sum.for_each(
                    rows, [&](Index q, auto v) __attribute__((always_inline)) {
                      put(y + row + q, b ? numbers_at<decltype(v)>(b + row + q) - v : v);
                    });
              });
        });
  });
}

}  // namespace

template <class T, class S>
void multiply(const exec::Host& host, const SplitView<T, S>& a, const T* x, T* y) {
  write_products<T, S>(host, a, nullptr, x, y);
}

template <class T, class S>
void add_lower(const exec::Host& host, const SplitView<T, S>& a, const T* x, T* y) {
  with_height(a.pattern.height, [&](auto h) {
    constexpr int H = decltype(h)::value;
    const PatternView p = a.pattern;
    for_slices(
        host, p, [&](Index s) { return std::int64_t(p.lower.offset[s]) + 2 * std::int64_t(p.slice_row[s]); },
        [=](Index s) __attribute__((always_inline)) {
          const Index row = p.slice_row[s], rows = p.slice_row[s + 1] - row;
          with_rows<H>(
              rows, [&](auto k) __attribute__((always_inline)) {
                RowSums<decltype(k)::value, T> sum;
                sum.update(
                    rows, [&](Index q, auto v)
                              __attribute__((always_inline)) { return numbers_at<decltype(v)>(y + row + q); });
                accumulate<H, Triangle::lower>(a, s, row, x, sum);
                sum.for_each(
                    rows, [&](Index q, auto v) __attribute__((always_inline)) { put(y + row + q, v); });
              });
        });
  });
}

template <class T, class S>
void residual(const exec::Host& host, const SplitView<T, S>& a, const T* b, const T* x, T* r) {
  write_products(host, a, b, x, r);
}

#define KRILU_PRODUCTS(T, S)                                                        \
  template void multiply(const exec::Host&, const SplitView<T, S>&, const T*, T*);  \
  template void add_lower(const exec::Host&, const SplitView<T, S>&, const T*, T*); \
  template void residual(const exec::Host&, const SplitView<T, S>&, const T*, const T*, T*);
KRILU_PRODUCTS(double, double)
KRILU_PRODUCTS(float, float)
KRILU_PRODUCTS(float, Half)
KRILU_PRODUCTS(float, Bfloat16)
#undef KRILU_PRODUCTS

}  // namespace krilu::sparse
