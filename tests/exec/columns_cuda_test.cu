// SPDX-License-Identifier: Apache-2.0
// The columns of a basis on exec::Cuda, dotted, combined, joined and rotated: what plain loops make of them, of numbers
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

/// Of columns of integers, one that joins them, and r: remainders, so that all fits into 8 bits.
template <class T>
KRILU_INLINE T join_of(T Vy, T of_u) {
  return T(int(of_u + Vy) % 16);
}
template <class T>
KRILU_INLINE T rest_of(T Vz, T of_r) {
  return T(int(of_r + Vz) % 4);
}

/// A column joins `used`; `rotations` of them are turned, the first as number `first`.
template <class B, class T>
void expect_exact_join(std::size_t n, Index used, Index first, Index rotations) {
  const Cuda ex;
  const Index most = used + 2, end = first + rotations, at = used - rotations;
  const std::size_t stride = Columns<B>::stride_of(n);
  const auto v = ex.allocate<B>(stride * std::size_t(most));
  const auto numbers = ex.allocate<Index>(3), place = ex.allocate<Index>(std::size_t(end) + 1);
  const auto c = ex.allocate<T>(std::size_t(end) + 1), s = ex.allocate<T>(std::size_t(end) + 1);
  const auto y = ex.allocate<T>(std::size_t(most)), z = ex.allocate<T>(std::size_t(most));
  const auto u = ex.allocate<T>(n), r = ex.allocate<T>(n), total = ex.allocate<T>(1);
  const auto plain = ex.allocate<float>(n * std::size_t(most + 1) + 1);
  const Columns<B> V{v.data(), stride};
  const auto places = place.view();
  const auto cs = c.view(), ss = s.view(), ys = y.view(), zs = z.view(), us = u.view(), rs = r.view();
  const auto all = plain.view();
  const auto sum = total.scalar();
  ex.for_each(
      std::size_t(end) + 1, KRILU_FN(Index k) {
        places[k] = at + k - first;
        cs[k] = T(cosine_of(k));
        ss[k] = T(sine_of(k));
      });
  ex.for_each(
      std::size_t(most), KRILU_FN(Index k) {
        ys[k] = T(coefficient_of(k));
        zs[k] = T(coefficient_of(k + 3));
      });
  const Index told[] = {first, end, used};
  ex.copy_in(numbers, told, 3);
  ex.for_each(
      n, KRILU_FN(Index i) {
        us[i] = T(first_of(std::size_t(i)));
        rs[i] = T(second_of(std::size_t(i)));
        for (Index k = 0; k < most; ++k) V[k][i] = B(entry(std::size_t(i), k));
      });
  ex.join_columns(
      n, V, numbers.scalar(2), Rotations<T>{numbers.scalar(0), numbers.scalar(1), places, cs, ss}, ys, zs, us, rs,
      KRILU_FN(T Vy, T of_u) { return join_of(Vy, of_u); }, KRILU_FN(T Vz, T of_r) { return rest_of(Vz, of_r); },
      KRILU_FN(Lanes lanes, T rr) {
        if (lanes.first()) sum() = rr;
      });
  ex.for_each(
      n, KRILU_FN(Index i) {
        for (Index k = 0; k < most; ++k) all[k * Index(n) + i] = float(V[k][i]);
        all[most * Index(n) + i] = float(rs[i]);
        if (i == 0) all[(most + 1) * Index(n)] = float(sum());
      });
  std::vector<float> want(n * std::size_t(most + 1) + 1);
  for (std::size_t i = 0; i < n; ++i) {
    const auto of = [&](Index k) -> float& { return want[std::size_t(k) * n + i]; };
    for (Index k = 0; k < most; ++k) of(k) = entry(i, k);
    double Vy = 0, Vz = 0;
    for (Index k = 0; k < used; ++k) Vy += coefficient_of(k) * of(k);
    if (used > 0) of(used) = float(join_of(Vy, first_of(i)));
    for (Index k = first; k < end; ++k) {
      float &x = of(at + k - first), &below = of(at + k - first + 1);
      const float old = x, cosine = float(cosine_of(k)), sine = float(sine_of(k));
      x = cosine * old + sine * below;
      below = cosine * below - sine * old;
    }
    for (Index k = 0; k < used; ++k) Vz += coefficient_of(k + 3) * of(k);
    of(most) = float(rest_of(Vz, second_of(i)));
    want.back() += of(most) * of(most);
  }
  EXPECT_EQ(test::to_host(ex, plain), want)
      << n << " rows, " << used << " columns, " << rotations << " rotations from " << first << " on";
}

template <class B, class T>
void expect_exact_joins(std::size_t n) {
  for (const Index rotations : {0, 1, 7, 8, 9, 16, 31})
    for (const Index before : {0, 3}) expect_exact_join<B, T>(n, before + rotations, before, rotations);
}

// Rows round a thread's piece; rotations round the groups of 8 columns that are asked for at once; more columns than
// have their coefficients in shared memory.
TEST(CudaSpace, AColumnJoinsOthersThatAreRotatedExactly) {
  KRILU_REQUIRE_GPU();
  for (std::size_t n : {1u, 2u, 7u, 8u, 513u, 2057u, 100003u}) {
    expect_exact_joins<double, double>(n);
    expect_exact_joins<float, float>(n);
    expect_exact_joins<Half, float>(n);
    expect_exact_joins<Bfloat16, float>(n);
  }
  for (const Index rotations : {0, 9, 127, 140}) {
    expect_exact_join<double, double>(2057, 140, 5, rotations);
    expect_exact_join<Bfloat16, float>(2057, 140, 5, rotations);
  }
}

}  // namespace
}  // namespace krilu::exec
