// SPDX-License-Identifier: Apache-2.0
// The columns of a basis on exec::Cuda, dotted, combined and rotated: exactly what plain loops make of them, of numbers
// whose sums are integers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/half.hpp"
#include "exec/cuda.cuh"
#include "support/gpu.cuh"
#include "support/support.hpp"

namespace krilu::exec {

/// What a column holds, exactly in 8 bits, and what the others hold, in few more.
KRILU_INLINE float entry(std::size_t i, Index k) { return float(int((i * 7 + std::size_t(k) * 13) % 23) - 11); }
KRILU_INLINE double first_of(std::size_t i) { return double(int(i % 5) - 2); }
KRILU_INLINE double second_of(std::size_t i) { return double(int(i % 7) - 3); }
constexpr double no_sum = 0.5;  // sums are integers
KRILU_INLINE double coefficient_of(Index k) { return double(k % 9 - 4); }

/// Sums that are integers, and so exact whatever their order: of each column with both vectors, then how often finish()
/// ran; of the rows of x + V a and of y (V b); last of what the second kernel added up. itself: y as one more column.
template <class B, class T, bool itself>
std::vector<double> of_columns(const Cuda& ex, std::size_t n, Index most, Index used, Index extra = 0) {
  const std::size_t stride = Columns<B>::stride_of(n);
  const auto v = ex.allocate<B>(stride * std::size_t(most));
  const auto x = ex.allocate<T>(n), y = ex.allocate<T>(n), a = ex.allocate<T>(std::size_t(most));
  const auto dots = ex.allocate<double>(2 * std::size_t(most) + 2);
  const auto counts = ex.allocate<Index>(1);
  const Columns<B> V{v.data(), stride};
  const auto xs = x.view(), ys = y.view(), as = a.view();
  const auto to = dots.view();
  const auto count = counts.scalar();
  ex.for_each(
      dots.size(), KRILU_FN(Index k) { to[k] = no_sum; });
  ex.for_each(
      std::size_t(most), KRILU_FN(Index k) { as[k] = T(coefficient_of(k)); });
  ex.for_each(
      n, KRILU_FN(Index i) {
        xs[i] = T(first_of(std::size_t(i)));
        ys[i] = T(second_of(std::size_t(i)));
        for (Index k = 0; k < most; ++k) V[k][i] = B(entry(std::size_t(i), k));
      });
  ex.once(KRILU_FN() { count() = used; });
  const Index seen = used + extra + itself;
  ex.template dot_columns<itself>(
      n, V, most, count, extra, std::array{xs, ys},
      KRILU_FN(Index k, Sums<T, 2> d) {
        to[2 * k] = double(d[0]);
        to[2 * k + 1] = double(d[1]);
      },
      KRILU_FN(Lanes lanes) {
        double there = 0;
        for (Index k = lanes.lane(); k < seen; k += lanes.count) there += to[2 * k] != no_sum;
        there = lanes.sum(there);
        if (lanes.first()) to[2 * most] = to[2 * most] == no_sum ? there : -2;
      });
  ex.combine_columns(
      n, V, most, count, std::array{as}, std::array{xs},
      KRILU_FN(Index i, Sums<T, 1> Va, Sums<T, 1> own) { xs[i] = own[0] + Va[0]; });
  ex.combine_columns(
      n, V, most, count, std::array{as, as}, std::array{xs, ys},
      KRILU_FN(Index i, Sums<T, 2> Vab, Sums<T, 2> xy) {
        ys[i] = xy[1] * Vab[1];
        return double(Vab[0]);
      },
      KRILU_FN(Lanes lanes, double sum) {
        if (lanes.first()) to[2 * most + 1] = sum;
      });
  std::vector<double> all = test::to_host(ex, dots);
  for (const auto& rows : {test::to_host(ex, x), test::to_host(ex, y)}) all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

/// extra: so many of those that are used stand behind what is counted, and are dotted alone.
template <class B, class T, bool itself = false>
void expect_exact_columns(std::size_t n, Index most, Index used, Index extra = 0) {
  const Cuda ex;
  const std::vector<double> got = of_columns<B, T, itself>(ex, n, most, used - extra, extra);
  std::vector<double> want(2 * std::size_t(most) + 2, no_sum);
  double all = 0;
  for (Index k = 0; k < used; ++k) {
    want[2 * std::size_t(k)] = want[2 * std::size_t(k) + 1] = 0;
    for (std::size_t i = 0; i < n; ++i) {
      want[2 * std::size_t(k)] += entry(i, k) * first_of(i);
      want[2 * std::size_t(k) + 1] += entry(i, k) * second_of(i);
    }
  }
  std::vector<double> x(n), y(n);
  for (std::size_t i = 0; i < n; ++i) {
    double Va = 0;
    for (Index k = 0; k < used - extra; ++k) Va += entry(i, k) * coefficient_of(k);
    x[i] = first_of(i) + Va;
    y[i] = second_of(i) * Va;
    all += Va;
  }
  if (itself) want[2 * std::size_t(used)] = want[2 * std::size_t(used) + 1] = 0;
  for (std::size_t i = 0; itself && i < n; ++i) {
    want[2 * std::size_t(used)] += first_of(i) * second_of(i);
    want[2 * std::size_t(used) + 1] += second_of(i) * second_of(i);
  }
  want[2 * std::size_t(most)] = used + itself;
  want[2 * std::size_t(most) + 1] = all;
  want.insert(want.end(), x.begin(), x.end());
  want.insert(want.end(), y.begin(), y.end());
  EXPECT_EQ(got, want) << n << " rows, " << used << " of " << most << " columns of " << 8 * sizeof(B) << " bits";
  EXPECT_EQ(got, (of_columns<B, T, itself>(ex, n, most, used - extra, extra))) << "the same on every run";
}

namespace {

// Rows round a thread's piece of 2, 4 or 8 and a block's tile; columns round groups of 8 and 16 and the coefficients
// that stand in shared memory.
TEST(CudaSpace, ColumnsAreDottedAndCombinedExactly) {
  KRILU_REQUIRE_GPU();
  for (std::size_t n : {1u, 2u, 7u, 8u, 513u, 2047u, 2048u, 2057u, 5000u})
    for (Index used : {0, 1, 7, 8, 9, 16, 17, 24, 25, 31}) {
      expect_exact_columns<double, double>(n, 31, used);
      expect_exact_columns<float, float>(n, 31, used);
      expect_exact_columns<Half, float>(n, 31, used);
      expect_exact_columns<Bfloat16, float>(n, 31, used);
    }
  expect_exact_columns<float, double>(1031, 20, 17);
  for (Index used : {127, 128, 129, 300}) {
    expect_exact_columns<double, double>(1001, 301, used);
    expect_exact_columns<Bfloat16, float>(1001, 301, used);
  }
  expect_exact_columns<double, double>(300001, 9, 9);
  expect_exact_columns<float, float>(300001, 9, 9);
  expect_exact_columns<Bfloat16, float>(300003, 17, 17);
}

// It stands in the last place of the last group of 8 columns, wherever that begins.
TEST(CudaSpace, TheLastVectorIsDottedAsOneMoreColumnExactly) {
  KRILU_REQUIRE_GPU();
  for (std::size_t n : {1u, 7u, 8u, 2057u, 5000u})
    for (Index used = 0; used < 18; ++used)
      for (Index extra = 0; extra < std::min<Index>(used + 1, 2); ++extra) {
        expect_exact_columns<double, double, true>(n, 31, used, extra);
        expect_exact_columns<Half, float, true>(n, 31, used, extra);
        expect_exact_columns<Bfloat16, float, true>(n, 31, used, extra);
      }
  expect_exact_columns<Half, float, true>(1001, 301, 300);
  expect_exact_columns<Half, float, true>(300003, 26, 25);
}

TEST(CudaSpace, ANegativeCountOfColumnsChangesNothing) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (std::size_t n : {1u, 5000u}) {
    std::vector<double> untouched(2 * 31 + 2, no_sum);
    for (std::size_t i = 0; i < n; ++i) untouched.push_back(first_of(i));
    for (std::size_t i = 0; i < n; ++i) untouched.push_back(second_of(i));
    for (Index extra : {0, 1}) {
      EXPECT_EQ((of_columns<double, double, false>(ex, n, 31, -1, extra)), untouched);
      EXPECT_EQ((of_columns<Bfloat16, float, true>(ex, n, 31, -1, extra)), untouched);
    }
  }
}

/// How often finish() ran, which raises the count; the sums of column k over all steps.
template <class B, class T>
std::vector<double> of_growing_columns(const Cuda& ex, std::size_t n, Index steps) {
  const std::size_t stride = Columns<B>::stride_of(n);
  const auto v = ex.allocate<B>(stride * std::size_t(steps));
  const auto x = ex.allocate<T>(n), y = ex.allocate<T>(n);
  const auto sums = ex.allocate<double>(std::size_t(steps) + 1);
  const auto counts = ex.allocate<Index>(1);
  const Columns<B> V{v.data(), stride};
  const auto xs = x.view(), ys = y.view();
  const auto to = sums.view();
  const auto count = counts.scalar();
  ex.for_each(
      n, KRILU_FN(Index i) {
        xs[i] = T(first_of(std::size_t(i)));
        ys[i] = T(second_of(std::size_t(i)));
        for (Index k = 0; k < steps; ++k) V[k][i] = B(entry(std::size_t(i), k));
      });
  ex.for_each(
      std::size_t(steps) + 1, KRILU_FN(Index k) { to[k] = 0; });
  ex.once(KRILU_FN() { count() = 0; });
  for (Index step = 0; step < steps; ++step)
    ex.dot_columns(
        n, V, steps, count, 1, std::array{xs, ys}, KRILU_FN(Index k, Sums<T, 2> d) { to[k + 1] += double(d[0]); },
        KRILU_FN(Lanes lanes) {
          if (!lanes.first()) return;
          to[0] += 1;
          count() += 1;
        });
  return test::to_host(ex, sums);
}

TEST(CudaSpace, ColumnsMayGrowInNumberFromStepToStep) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (std::size_t n : {1u, 1000u, 5000u, 70001u}) {
    const Index steps = 50;
    std::vector<double> want{double(steps)};
    for (Index k = 0; k < steps; ++k) {
      double dot = 0;
      for (std::size_t i = 0; i < n; ++i) dot += double(entry(i, k)) * first_of(i);
      want.push_back(double(steps - k) * dot);
    }
    for (int again = 0; again < 3; ++again) {
      EXPECT_EQ((of_growing_columns<double, double>(ex, n, steps)), want) << n;
      EXPECT_EQ((of_growing_columns<Half, float>(ex, n, steps)), want) << n;
    }
  }
}

/// Quarter turns and none, which are exact in any format: cosine and sine of rotation k.
KRILU_INLINE int cosine_of(Index k) { return k % 3 == 0 ? 1 - int(k % 2) * 2 : 0; }
KRILU_INLINE int sine_of(Index k) { return k % 3 == 0 ? 0 : 1 - int(k % 2) * 2; }

template <class B, class T>
void expect_exact_rotations(std::size_t n, Index first, Index end, Index at) {
  const Cuda ex;
  const Index most = at + (end - first) + 2;
  const std::size_t stride = Columns<B>::stride_of(n);
  const auto v = ex.allocate<B>(stride * std::size_t(most));
  const auto range = ex.allocate<Index>(2), place = ex.allocate<Index>(std::size_t(end) + 1);
  const auto c = ex.allocate<T>(std::size_t(end) + 1), s = ex.allocate<T>(std::size_t(end) + 1);
  const auto plain = ex.allocate<float>(n * std::size_t(most));
  const Columns<B> V{v.data(), stride};
  const auto places = place.view();
  const auto cs = c.view(), ss = s.view();
  const auto all = plain.view();
  ex.for_each(
      std::size_t(end) + 1, KRILU_FN(Index k) {
        places[k] = at + k - first;
        cs[k] = T(cosine_of(k));
        ss[k] = T(sine_of(k));
      });
  const Index bounds[] = {first, end};
  ex.copy_in(range, bounds, 2);
  ex.for_each(
      n, KRILU_FN(Index i) {
        for (Index k = 0; k < most; ++k) V[k][i] = B(entry(std::size_t(i), k));
      });
  ex.rotate_columns(n, V, Rotations<T>{range.scalar(0), range.scalar(1), place.view(), cs, ss});
  ex.for_each(
      n, KRILU_FN(Index i) {
        for (Index k = 0; k < most; ++k) all[k * Index(n) + i] = float(V[k][i]);
      });
  std::vector<float> want;
  for (Index k = 0; k < most; ++k)
    for (std::size_t i = 0; i < n; ++i) want.push_back(entry(i, k));
  for (Index k = first; k < end; ++k)
    for (std::size_t i = 0; i < n; ++i) {
      float &x = want[std::size_t(at + k - first) * n + i], &y = want[std::size_t(at + k - first + 1) * n + i];
      const float old = x, cosine = float(cosine_of(k)), sine = float(sine_of(k));
      x = cosine * old + sine * y;
      y = cosine * y - sine * old;
    }
  EXPECT_EQ(test::to_host(ex, plain), want) << n << " rows, rotations " << first << " to " << end << " at " << at;
}

// Rows round a thread's piece; rotations round the groups of 8 columns that are asked for at once.
TEST(CudaSpace, ColumnsAreRotatedExactly) {
  KRILU_REQUIRE_GPU();
  for (std::size_t n : {1u, 2u, 7u, 8u, 513u, 2057u, 100003u})
    for (const Index rotations : {0, 1, 7, 8, 9, 16, 31})
      for (const Index before : {0, 3}) {
        expect_exact_rotations<double, double>(n, before, before + rotations, 2 * before);
        expect_exact_rotations<float, float>(n, before, before + rotations, 2 * before);
        expect_exact_rotations<Half, float>(n, before, before + rotations, 2 * before);
        expect_exact_rotations<Bfloat16, float>(n, before, before + rotations, 2 * before);
      }
}

}  // namespace
}  // namespace krilu::exec
