// SPDX-License-Identifier: Apache-2.0
// The primitives of every execution space against plain loops: loops over rows, sums of one, two and three numbers, dot
// products and combinations of columns, repetition and conditions, at the sizes around one block of a sum. Sums are
// held bit for bit against one host thread's, whatever the space and the number of threads, and to rounding against
// long double.
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "support/split_matrix.hpp"

namespace krilu::test {
namespace {

using exec::Sums;

constexpr std::size_t block = exec::Host::block;
// The last two are shared between threads: a loop of fewer than two blocks a thread is left to one.
const std::vector<std::size_t> sizes{0, 1, 7, block - 1, block, block + 1, 5 * block + 3, 9 * block - 5};
const std::vector<int> teams{1, 2, 3, 4};

template <class Space>
class SpaceTest : public ::testing::Test {};
TYPED_TEST_SUITE(SpaceTest, Spaces);

TYPED_TEST(SpaceTest, CopiesThereAndBack) {
  for (std::size_t n : sizes) {
    const auto space = make_space<TypeParam>();
    const std::vector<double> v = random_values(n, 3);
    const auto a = to_device(space, v);
    EXPECT_EQ(a.size(), n);
    EXPECT_EQ(a.bytes(), n * sizeof(double));
    EXPECT_EQ(bits(to_host(space, a)), bits(v));
  }
}

TYPED_TEST(SpaceTest, CopiesTheFirstEntriesOnly) {
  const auto space = make_space<TypeParam>();
  const auto a = to_device(space, std::vector<int>{1, 2, 3, 4});
  const int two[] = {8, 9};
  space.copy_in(a, two, 2);
  EXPECT_EQ(to_host(space, a), (std::vector<int>{8, 9, 3, 4}));
  int out[] = {0, 0, -1};
  space.copy_out(out, a, 2);
  EXPECT_EQ(out[1], 9);
  EXPECT_EQ(out[2], -1);
}

TYPED_TEST(SpaceTest, ForEachMeetsEveryRowOnce) {
  for (int threads : teams)
    for (std::size_t n : sizes) {
      const auto space = make_space<TypeParam>(threads);
      const auto a = to_device(space, std::vector<Index>(n + 1, 0));
      const auto v = a.view();
      space.for_each(
          n, KRILU_FN(Index i) { v[i] += i + 1; });
      const std::vector<Index> seen = to_host(space, a);
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(seen[i], Index(i) + 1) << n << " rows, " << threads << " threads";
      EXPECT_EQ(seen[n], 0) << "a row behind the last";
    }
}

TEST(HostSpace, RangesCoverTheRowsWithoutOverlap) {
  for (int threads : teams)
    for (std::size_t n : sizes) {
      std::vector<int> seen(n + 1, 0), expected(n + 1, 1);
      expected[n] = 0;
      make_space<exec::Host>(threads).for_each_range(n, [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) ++seen[std::size_t(i)];
      });
      EXPECT_EQ(seen, expected) << n << " rows, " << threads << " threads";
    }
}

TYPED_TEST(SpaceTest, OnceRunsOnceAndInOrder) {
  const auto space = make_space<TypeParam>(3);
  const auto a = to_device(space, std::vector<int>{5});
  const auto x = a.scalar();
  space.once(KRILU_FN() { x() += 2; });
  space.once(KRILU_FN() { x() *= 3; });
  EXPECT_EQ(to_host(space, a)[0], 21);
}

/// One, two or three sums of products of random vectors, and the vector that the pass writes beside them.
template <class Space>
std::vector<double> sums(int threads, std::size_t n) {
  const auto space = make_space<Space>(threads);
  const auto xs = to_device(space, random_values(n, 11)), ys = to_device(space, random_values(n, 12));
  const auto ws = to_device(space, std::vector<double>(n, 0.0));
  const auto out = to_device(space, std::vector<double>(6, 99.0));
  const auto x = xs.view(), y = ys.view(), w = ws.view(), to = out.view();
  space.reduce(
      n, KRILU_FN(Index i) { return x[i] * y[i]; }, KRILU_FN(double s) { to[0] = s; });
  space.reduce(
      n,
      KRILU_FN(Index i) {
        return Sums<double, 2>{{x[i] * x[i], x[i]}};
      },
      KRILU_FN(const Sums<double, 2>& s) {
        to[1] = s[0];
        to[2] = s[1];
      });
  space.reduce(
      n,
      KRILU_FN(Index i) {
        w[i] = x[i] - 2 * y[i];  // a fused update
        return Sums<double, 3>{{y[i] * y[i], y[i], w[i]}};
      },
      KRILU_FN(const Sums<double, 3>& s) {
        to[3] = s[0];
        to[4] = s[1];
        to[5] = s[2];
      });
  std::vector<double> all = to_host(space, out);
  for (double v : to_host(space, ws)) all.push_back(v);
  return all;
}

TYPED_TEST(SpaceTest, SumsAreRightAndTheSameBitsForAnyTeam) {
  for (std::size_t n : sizes) {
    const std::vector<double> got = sums<TypeParam>(1, n);
    const std::vector<double> x = random_values(n, 11), y = random_values(n, 12);
    long double exact[6] = {}, size[6] = {};
    for (std::size_t i = 0; i < n; ++i) {
      const long double p = x[i], q = y[i];
      const long double term[] = {p * q, p * p, p, q * q, q, p - 2 * q};
      for (int k = 0; k < 6; ++k) {
        exact[k] += term[k];
        size[k] += std::abs(term[k]);
      }
      ASSERT_EQ(got[6 + i], x[i] - 2 * y[i]);
    }
    for (std::size_t k = 0; k < 6; ++k)
      EXPECT_NEAR(got[k], double(exact[k]), 1e-14 * double(size[k])) << "sum " << k << " of " << n;
    for (int threads : teams) {
      EXPECT_EQ(bits(sums<TypeParam>(threads, n)), bits(got)) << n << " rows, " << threads << " threads";
      EXPECT_EQ(bits(sums<exec::Host>(threads, n)), bits(got)) << "the host's sum of " << n << " rows";
    }
  }
}

TYPED_TEST(SpaceTest, SumsOfIntegers) {
  const std::size_t n = 5 * block + 3;
  const auto space = make_space<TypeParam>();
  const auto out = to_device(space, std::vector<Index>(1, -1));
  const auto to = out.scalar();
  space.reduce(
      n, KRILU_FN(Index i) { return Index(i % 3 == 0); }, KRILU_FN(Index s) { to() = s; });
  EXPECT_EQ(to_host(space, out)[0], Index((n + 2) / 3));
}

/// Columns and what there is to do with them: x, y of n entries, a and b of a coefficient a column.
struct ColumnsOf {
  std::size_t n = 0, stride = 0;
  Index most = 0, used = 0;
  std::vector<double> v, x, y, a, b;
  ColumnsOf(std::size_t rows, Index columns, Index counted)
      : n(rows),
        stride(exec::Columns<double>::stride_of(rows)),
        most(columns),
        used(counted),
        v(random_values(stride * std::size_t(columns), 21)),
        x(random_values(rows, 22)),
        y(random_values(rows, 23)),
        a(random_values(std::size_t(columns), 24)),
        b(random_values(std::size_t(columns), 25)) {}
  double at(std::size_t i, Index k) const { return v[std::size_t(k) * stride + i]; }
  /// Of rotation k.
  static double cosine(Index k) { return std::cos(1.0 + k); }
  static double sine(Index k) { return std::sin(1.0 + k); }
};

/// The dot products of x and y with each column, 99 where there are none; then how often finish() ran, and whether all
/// were there by then. itself: y as one more column.
template <class Space, bool itself = false>
std::vector<double> dots(int threads, const ColumnsOf& c, Index extra = 0) {
  const auto space = make_space<Space>(threads);
  const auto v = to_device(space, c.v), x = to_device(space, c.x), y = to_device(space, c.y);
  const auto out = to_device(space, std::vector<double>(2 * std::size_t(c.most), 99.0));
  const auto finished = to_device(space, std::vector<double>(2, 0.0));
  const auto counts = to_device(space, std::vector<Index>{0});
  const auto to = out.view(), end = finished.view();
  const auto count = counts.scalar();
  const Index used = c.used, seen = used + extra + itself;
  space.once(KRILU_FN() { count() = used; });  // known to the space only
  space.template dot_columns<itself>(
      c.n, exec::Columns<double>{v.data(), c.stride}, c.most, count, extra, std::array{x.view(), y.view()},
      KRILU_FN(Index k, Sums<double, 2> d) {
        to[2 * k] = d[0];
        to[2 * k + 1] = d[1];
      },
      KRILU_FN(exec::Lanes lanes) {
        double there = 0;
        for (Index k = lanes.lane(); k < 2 * seen; k += lanes.count) there += to[k] != 99.0;
        there = lanes.sum(there);
        if (!lanes.first()) return;
        end[0] += 1;
        end[1] = there;
      });
  std::vector<double> all = to_host(space, out), last = to_host(space, finished);
  all.insert(all.end(), last.begin(), last.end());
  return all;
}

TYPED_TEST(SpaceTest, ColumnsAreDottedUpToTheirCount) {
  constexpr Index most = 5;
  for (Index used : {0, 1, 3, 5})
    for (std::size_t n : sizes) {
      const ColumnsOf c(n, most, used);
      const std::vector<double> got = dots<TypeParam>(1, c);
      for (Index k = 0; k < most; ++k) {
        long double with_x = 0, with_y = 0;
        for (std::size_t i = 0; i < n; ++i) {
          with_x += (long double)(c.at(i, k)) * c.x[i];
          with_y += (long double)(c.at(i, k)) * c.y[i];
        }
        const auto at = std::size_t(2 * k);
        if (k < used) {
          EXPECT_NEAR(got[at], double(with_x), 1e-14 * double(n));
          EXPECT_NEAR(got[at + 1], double(with_y), 1e-14 * double(n));
        } else {
          EXPECT_EQ(got[at], 99.0) << "column " << k << " is beyond the count";
        }
      }
      EXPECT_EQ(got[2 * most], 1) << "finish() runs once";
      EXPECT_EQ(got[2 * most + 1], 2 * used) << "finish() runs last";
      for (int threads : teams) {
        EXPECT_EQ(bits(dots<TypeParam>(threads, c)), bits(got));
        EXPECT_EQ(bits(dots<exec::Host>(threads, c)), bits(got));
      }
    }
}

TYPED_TEST(SpaceTest, TheLastVectorIsDottedAsOneMoreColumn) {
  constexpr Index most = 10;
  for (const auto& [known, extra] : {std::pair<Index, Index>{0, 0}, {1, 0}, {2, 0}, {8, 0}, {0, 1}, {6, 1}, {8, 1}})
    for (std::size_t n : sizes) {
      const ColumnsOf c(n, most, known);
      const Index used = known + extra;
      const std::vector<double> got = dots<TypeParam, true>(1, c, extra), without = dots<TypeParam>(1, c, extra);
      long double xy = 0, yy = 0;
      for (std::size_t i = 0; i < n; ++i) {
        xy += (long double)(c.x[i]) * c.y[i];
        yy += (long double)(c.y[i]) * c.y[i];
      }
      const auto at = std::size_t(2 * used);
      EXPECT_EQ(bits({got.begin(), got.begin() + 2 * used}), bits({without.begin(), without.begin() + 2 * used}));
      EXPECT_NEAR(got[at], double(xy), 1e-14 * double(n));
      EXPECT_NEAR(got[at + 1], double(yy), 1e-14 * double(n));
      for (std::size_t k = at + 2; k < 2 * most; ++k) EXPECT_EQ(got[k], 99.0);
      EXPECT_EQ(got[2 * most], 1);
      EXPECT_EQ(got[2 * most + 1], 2 * used + 2) << "finish() runs last";
      for (int threads : teams) {
        EXPECT_EQ(bits(dots<TypeParam, true>(threads, c, extra)), bits(got));
        EXPECT_EQ(bits(dots<exec::Host, true>(threads, c, extra)), bits(got));
      }
    }
}

TYPED_TEST(SpaceTest, ADotProductFollowsALongerOne) {
  // Both keep partial sums from call to call: a longer one before must leave nothing behind.
  const ColumnsOf shorter(2 * block, 3, 3), longer(9 * block, 5, 5);
  const std::vector<double> fresh = dots<TypeParam>(2, shorter);
  sums<TypeParam>(2, 9 * block);
  dots<TypeParam>(2, longer);
  EXPECT_EQ(bits(dots<TypeParam>(2, shorter)), bits(fresh));
}

/// x + V a, then y times V b and at last the sum of its squares.
template <class Space>
std::vector<double> combinations(int threads, const ColumnsOf& c) {
  const auto space = make_space<Space>(threads);
  const auto v = to_device(space, c.v), x = to_device(space, c.x), y = to_device(space, c.y);
  const auto a = to_device(space, c.a), b = to_device(space, c.b);
  const auto total = to_device(space, std::vector<double>{-1});
  const auto counts = to_device(space, std::vector<Index>{c.used});
  const auto xs = x.view(), ys = y.view();
  const auto to = total.scalar();
  const exec::Columns<double> V{v.data(), c.stride};
  space.combine_columns(
      c.n, V, c.most, counts.scalar(), std::array{a.view()}, std::array{xs},
      KRILU_FN(Index i, Sums<double, 1> Va, Sums<double, 1> own) { xs[i] = own[0] + Va[0]; });
  space.combine_columns(
      c.n, V, c.most, counts.scalar(), std::array{a.view(), b.view()}, std::array{ys},
      KRILU_FN(Index i, Sums<double, 2> Vab, Sums<double, 1> own) {
        ys[i] = own[0] * Vab[1];
        return ys[i] * ys[i] + 0 * Vab[0];
      },
      KRILU_FN(exec::Lanes lanes, double sum) {
        if (lanes.first()) to() = sum;
      });
  std::vector<double> out = to_host(space, x), second = to_host(space, y);
  out.insert(out.end(), second.begin(), second.end());
  out.push_back(to_host(space, total)[0]);
  return out;
}

TYPED_TEST(SpaceTest, ColumnsAreCombinedRowByRow) {
  for (Index used : {0, 1, 2, 5})
    for (std::size_t n : sizes) {
      const ColumnsOf c(n, 5, used);
      const std::vector<double> got = combinations<TypeParam>(1, c);
      long double squares = 0;
      for (std::size_t i = 0; i < n; ++i) {
        long double Va = 0, Vb = 0;
        for (Index k = 0; k < used; ++k) {
          Va += (long double)(c.at(i, k)) * c.a[std::size_t(k)];
          Vb += (long double)(c.at(i, k)) * c.b[std::size_t(k)];
        }
        ASSERT_NEAR(got[i], double(c.x[i] + Va), 1e-14);
        ASSERT_NEAR(got[n + i], double(c.y[i] * Vb), 1e-14);
        squares += c.y[i] * Vb * c.y[i] * Vb;
      }
      EXPECT_NEAR(got[2 * n], double(squares), 1e-14 * double(n));
      for (int threads : teams) {
        EXPECT_EQ(bits(combinations<TypeParam>(threads, c)), bits(got));
        EXPECT_EQ(bits(combinations<exec::Host>(threads, c)), bits(got));
      }
    }
}

TYPED_TEST(SpaceTest, ANegativeCountOfColumnsChangesNothing) {
  for (std::size_t n : {std::size_t(1), 3 * block + 1}) {
    const ColumnsOf c(n, 3, -1);
    std::vector<double> untouched(2 * std::size_t(c.most), 99.0);
    untouched.insert(untouched.end(), {0.0, 0.0});
    for (Index extra : {0, 1}) EXPECT_EQ(dots<TypeParam>(2, c, extra), untouched) << "neither close() nor finish() ran";
    std::vector<double> as_before = c.x;
    as_before.insert(as_before.end(), c.y.begin(), c.y.end());
    as_before.push_back(-1);
    EXPECT_EQ(combinations<TypeParam>(2, c), as_before);
  }
}

/// V, r and |r|^2 after a column has joined c.used, of which rotations have turned the last ones; from r = c.y and
/// u = c.x.
template <class Space>
std::vector<double> joined(int threads, const ColumnsOf& c, Index first, Index rotations) {
  const auto space = make_space<Space>(threads);
  const auto v = to_device(space, c.v), u = to_device(space, c.x), r = to_device(space, c.y);
  const auto y = to_device(space, c.a), z = to_device(space, c.b), total = to_device(space, std::vector<double>{-1});
  std::vector<Index> places(std::size_t(first + rotations), -1);
  std::vector<double> cosines(places.size(), 9.0), sines(places.size(), 9.0);
  for (Index k = 0; k < rotations; ++k) {
    places[std::size_t(first + k)] = c.used - rotations + k;
    cosines[std::size_t(first + k)] = ColumnsOf::cosine(k);
    sines[std::size_t(first + k)] = ColumnsOf::sine(k);
  }
  const auto place = to_device(space, places),
             range = to_device(space, std::vector<Index>{first, first + rotations, c.used});
  const auto cosine = to_device(space, cosines), sine = to_device(space, sines);
  const auto to = total.scalar();
  space.join_columns(
      c.n, exec::Columns<double>{v.data(), c.stride}, range.scalar(2),
      exec::Rotations<double>{range.scalar(0), range.scalar(1), place.view(), cosine.view(), sine.view()}, y.view(),
      z.view(), u.view(), r.view(), KRILU_FN(double Vy, double of_u) { return 2 * of_u - Vy; },
      KRILU_FN(double Vz, double of_r) { return of_r - Vz / 2; },
      KRILU_FN(exec::Lanes lanes, double sum) {
        if (lanes.first()) to() = sum;
      });
  std::vector<double> out = to_host(space, v), of_r = to_host(space, r);
  out.insert(out.end(), of_r.begin(), of_r.end());
  out.push_back(to_host(space, total)[0]);
  return out;
}

TYPED_TEST(SpaceTest, AColumnJoinsOthersThatAreRotatedInPairs) {
  struct {
    Index used, first, rotations;
  } const cases[] = {{0, 0, 0}, {0, 3, 0}, {1, 0, 0}, {1, 0, 1}, {4, 0, 4}, {5, 2, 3}, {6, 4, 1}, {6, 1, 0}};
  for (const auto& [used, first, rotations] : cases)
    for (std::size_t n : sizes) {
      const ColumnsOf c(n, 7, used);
      std::vector<double> want = c.v;
      const auto at = [&](std::size_t i, Index k) -> double& { return want[std::size_t(k) * c.stride + i]; };
      std::vector<double> r = c.y;
      long double squares = 0;
      for (std::size_t i = 0; i < n; ++i) {
        double Vy = 0, Vz = 0;
        for (Index k = 0; k < used; ++k) Vy += c.a[std::size_t(k)] * at(i, k);
        if (used > 0) at(i, used) = 2 * c.x[i] - Vy;
        for (Index k = 0; k < rotations; ++k) {
          double &x = at(i, used - rotations + k), &y = at(i, used - rotations + k + 1);
          const double old = x;
          x = ColumnsOf::cosine(k) * old + ColumnsOf::sine(k) * y;
          y = ColumnsOf::cosine(k) * y - ColumnsOf::sine(k) * old;
        }
        for (Index k = 0; k < used; ++k) Vz += c.b[std::size_t(k)] * at(i, k);
        r[i] -= Vz / 2;
        squares += r[i] * r[i];
      }
      want.insert(want.end(), r.begin(), r.end());
      want.push_back(double(squares));
      const std::vector<double> got = joined<TypeParam>(1, c, first, rotations);
      for (std::size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 1e-14 * (i + 1 < want.size() ? 1 : 1 + double(n))) << i;
      for (int threads : teams) EXPECT_EQ(bits(joined<TypeParam>(threads, c, first, rotations)), bits(got));
    }
}

TYPED_TEST(SpaceTest, LanesTakeAStepTogether) {
  const auto space = make_space<TypeParam>();
  const auto out = to_device(space, std::vector<double>(101, 0.0));
  const auto v = out.view();
  space.together(KRILU_FN(exec::Lanes lanes) {
    double sum = 0;
    for (Index k = lanes.lane(); k < 100; k += lanes.count) {
      v[k] = k;
      sum += k;
    }
    sum = lanes.sum(sum);
    lanes.meet();
    if (lanes.first()) v[100] = sum + v[99];
  });
  EXPECT_EQ(to_host(space, out)[100], 4950 + 99);
}

TYPED_TEST(SpaceTest, RepeatsUntilStoppedAndNotOnceMore) {
  const auto space = make_space<TypeParam>();
  for (int wanted : {0, 1, 17}) {
    const auto flags = to_device(space, std::vector<int>{wanted == 0, 0});
    const auto stop = flags.scalar(0), done = flags.scalar(1);
    space.repeat_until(stop, [&] {
      space.once(KRILU_FN() {
        done() += 1;
        stop() = done() >= wanted;
      });
    });
    EXPECT_EQ(to_host(space, flags)[1], wanted);
  }
}

TYPED_TEST(SpaceTest, RepetitionsNest) {
  // The inner one runs i = 1, 2, ... 6 times; each of its rounds adds i to a vector.
  const auto space = make_space<TypeParam>();
  const std::size_t n = 4 * block + 1;
  const auto flags = to_device(space, std::vector<int>{0, 0, 0, 0});
  const auto sum = to_device(space, std::vector<int>(n, 0));
  const auto stop = flags.scalar(0), stop_inner = flags.scalar(1), i = flags.scalar(2), j = flags.scalar(3);
  const auto v = sum.view();
  space.repeat_until(stop, [&] {
    space.once(KRILU_FN() {
      i() += 1;
      j() = 0;
      stop_inner() = 0;
    });
    space.repeat_until(stop_inner, [&] {
      space.for_each(
          n, KRILU_FN(Index k) { v[k] += i(); });
      space.once(KRILU_FN() { stop_inner() = ++j() == i(); });
    });
    space.once(KRILU_FN() { stop() = i() == 6; });
  });
  EXPECT_EQ(to_host(space, sum), std::vector<int>(n, 1 + 4 + 9 + 16 + 25 + 36));
}

TYPED_TEST(SpaceTest, ARecordingDoesTheSameAgain) {
  const auto space = make_space<TypeParam>();
  const auto counts = to_device(space, std::vector<int>{0, 0, 0});
  const auto stop = counts.scalar(0), rounds = counts.scalar(1), all = counts.scalar(2);
  typename TypeParam::Recording kept, other;
  int spoken = 0;
  const auto three_rounds = [&] {
    ++spoken;
    space.once(KRILU_FN() { stop() = rounds() = 0; });
    space.repeat_until(stop, [&] {
      space.once(KRILU_FN() {
        all() += 1;
        stop() = ++rounds() == 3;
      });
    });
  };
  for (int go = 1; go <= 4; ++go) {
    space.replay(kept, three_rounds);
    EXPECT_EQ(to_host(space, counts)[2], 3 * go);
  }
  EXPECT_EQ(spoken, (std::is_same_v<TypeParam, exec::Host> ? 4 : 1));
  // Another recording, which has the first one within it.
  const int before = spoken;
  for (int go = 1; go <= 2; ++go) {
    space.replay(other, [&] {
      space.replay(kept, three_rounds);
      space.once(KRILU_FN() { all() += 100; });
    });
    EXPECT_EQ(to_host(space, counts)[2], 12 + 103 * go);
  }
  EXPECT_GT(spoken, before);
}

TYPED_TEST(SpaceTest, ARenewedRecordingDoesWhatItsBodyDoesNow) {
  const auto space = make_space<TypeParam>();
  const auto counts = to_device(space, std::vector<int>{0, 0});
  typename TypeParam::Recording kept;
  const auto go = [&](std::size_t which, int by) {
    const auto x = counts.scalar(which);
    space.replay(kept, [&] { space.once(KRILU_FN() { x() += by; }); });
    return to_host(space, counts);
  };
  EXPECT_EQ(go(0, 1), (std::vector{1, 0}));
  kept.renew();
  EXPECT_EQ(go(1, 10), (std::vector{1, 10}));
  EXPECT_EQ(go(1, 10), (std::vector{1, 20}));
  kept.renew();
  kept.renew();
  EXPECT_EQ(go(0, 5), (std::vector{6, 20}));
}

TYPED_TEST(SpaceTest, WhenLooksAtItsFlagAtThatMoment) {
  const auto space = make_space<TypeParam>();
  const auto values = to_device(space, std::vector<int>{0, 1, 0, 0, 0});
  const auto off = values.scalar(0), on = values.scalar(1), a = values.scalar(2), b = values.scalar(3),
             stop = values.scalar(4);
  space.when(off, [&] { space.once(KRILU_FN() { a() += 1; }); });
  space.when(on, [&] { space.once(KRILU_FN() { b() += 1; }); });
  space.once(KRILU_FN() {
    off() = 1;
    on() = 0;
  });
  space.when(off, [&] { space.once(KRILU_FN() { a() += 10; }); });
  space.when(on, [&] { space.once(KRILU_FN() { b() += 10; }); });
  // Within a repetition: every second round.
  const auto rounds = to_device(space, std::vector<int>{0, 0});
  const auto round = rounds.scalar(0), odd = rounds.scalar(1);
  space.repeat_until(stop, [&] {
    space.once(KRILU_FN() {
      round() += 1;
      odd() = round() % 2;
      stop() = round() == 9;
    });
    space.when(odd, [&] { space.once(KRILU_FN() { a() += 100; }); });
  });
  const std::vector<int> got = to_host(space, values);
  EXPECT_EQ(got[2], 510);
  EXPECT_EQ(got[3], 1);
}

TYPED_TEST(SpaceTest, EnqueuedBodiesRunInTheirTurnOnAHostOfTheSpacesThreads) {
  const auto space = make_space<TypeParam>(3);
  const auto a = to_device(space, std::vector<int>{1, 0});
  const auto x = a.scalar(), threads = a.scalar(1);
  space.once(KRILU_FN() { x() += 1; });
  space.enqueue([x, threads](const exec::Host& host) {
    x() *= 10;
    threads() = host.threads();
  });
  space.once(KRILU_FN() { x() += 3; });
  EXPECT_EQ(to_host(space, a), (std::vector<int>{23, 3}));
}

TYPED_TEST(SpaceTest, SharedMemoryIsReadAfterSynchronise) {
  const auto space = make_space<TypeParam>();
  const auto shared = space.template allocate_shared<double>(2);
  shared.data()[0] = 1.5;
  shared.data()[1] = 0;
  const auto v = shared.view();
  space.once(KRILU_FN() { v[1] = 2 * v[0]; });
  space.synchronise();
  EXPECT_EQ(shared.data()[1], 3.0);
}

TEST(HostParallel, EveryMemberIsCalledOnceAndKnowsItsPlace) {
  for (int threads : {1, 2, 5}) {
    const exec::Host host(threads);
    std::vector<std::atomic<int>> calls(std::size_t(threads) + 1);
    std::atomic<int> told{0};
    host.parallel([&](int me, int team) {
      ++calls[std::size_t(me)];
      told = team;
      EXPECT_EQ(me, exec::Host::thread_index());
    });
    ASSERT_GE(told, 1);
    ASSERT_LE(told, threads);
    for (int t = 0; t <= threads; ++t) EXPECT_EQ(calls[std::size_t(t)], t < told ? 1 : 0);
  }
  EXPECT_EQ(exec::Host(0).threads(), exec::available_threads());
}

TEST(HostArray, MovesLeaveNothingBehind) {
  const exec::Host host(1);
  auto a = to_device(host, std::vector<int>{1, 2, 3});
  auto b = std::move(a);
  EXPECT_EQ(a.size(), 0u);  // NOLINT: what a moved-from array says of itself is what is tested
  EXPECT_EQ(a.data(), nullptr);
  auto c = to_device(host, std::vector<int>{7});
  c = std::move(b);
  EXPECT_EQ(to_host(host, c), (std::vector<int>{1, 2, 3}));
}

}  // namespace
}  // namespace krilu::test
