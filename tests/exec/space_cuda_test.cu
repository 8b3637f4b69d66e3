// SPDX-License-Identifier: Apache-2.0
// exec::Cuda against plain loops: every primitive, sizes round a block and a grid, nested loops and branches, the same
// bits on every run. Kernels stand in free functions: nvcc takes none inside a test's private body.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "exec/cuda.cuh"
#include "krilu/error.hpp"
#include "support/gpu.cuh"

namespace krilu::exec {

template <class T>
std::vector<T> out(const Cuda& ex, const Array<T>& a) {
  std::vector<T> v(a.size());
  ex.copy_out(v.data(), a, v.size());
  return v;
}

void fill(const Cuda& ex, const Array<double>& a, double scale) {
  const auto v = a.view();
  ex.for_each(
      a.size(), KRILU_FN(Index i) { v[i] = scale / (1.0 + i); });
}

struct SumsOf {
  double one, square, weighted;
};
SumsOf sums(const Cuda& ex, const Array<double>& a) {
  const auto total = ex.allocate<double>(3);
  const auto v = a.view(), t = total.view();
  ex.reduce(
      a.size(),
      KRILU_FN(Index i) {
        return Sums<double, 3>{{v[i], v[i] * v[i], i * v[i]}};
      },
      KRILU_FN(Sums<double, 3> s) {
        for (int k = 0; k < 3; ++k) t[k] = s[k];
      });
  const auto got = out(ex, total);
  return {got[0], got[1], got[2]};
}

/// Collatz by nested control: counts steps until 1, with the odd step as a branch. The inner loop doubles a counter.
std::vector<int> collatz(const Cuda& ex, int start) {
  const auto state = ex.allocate<int>(6);
  const auto x = state.scalar(0), steps = state.scalar(1), stop = state.scalar(2), odd = state.scalar(3),
             inner_stop = state.scalar(4), inner = state.scalar(5);
  ex.once(KRILU_FN() {
    x() = start;
    steps() = inner() = odd() = inner_stop() = 0;
    stop() = start == 1;
  });
  ex.repeat_until(stop, [&] {
    ex.once(KRILU_FN() {
      odd() = x() % 2;
      if (!odd()) x() /= 2;
      inner_stop() = 0;
    });
    ex.when(odd, [&] { ex.once(KRILU_FN() { x() = 3 * x() + 1; }); });
    ex.repeat_until(inner_stop, [&] { ex.once(KRILU_FN() { inner_stop() = ++inner() % 3 == 0; }); });
    ex.once(KRILU_FN() {
      ++steps();
      stop() = x() == 1;
    });
  });
  return out(ex, state);
}

/// What three rounds of a loop counted after each of so many goes by one recording, and how often it was spoken.
std::pair<std::vector<int>, int> recorded_goes(const Cuda& ex, int goes) {
  const auto counts = ex.allocate<int>(3);
  const auto stop = counts.scalar(0), rounds = counts.scalar(1), all = counts.scalar(2);
  ex.clear(counts);
  std::pair<std::vector<int>, int> got{{}, 0};
  Cuda::Recording kept;
  for (int go = 0; go < goes; ++go) {
    ex.replay(kept, [&] {
      ++got.second;
      ex.once(KRILU_FN() { stop() = rounds() = 0; });
      ex.repeat_until(stop, [&] {
        ex.once(KRILU_FN() {
          all() += 1;
          stop() = ++rounds() == 3;
        });
      });
    });
    got.first.push_back(out(ex, counts)[2]);
  }
  return got;
}

/// What a loop by recordings that are renewed in between adds to each of n entries, or -1 where they differ: `rounds`
/// rounds of it, each of `kernels` kernels that add `by`, and `twice` that add it twice, and every other one adds more;
/// to other memory every time.
struct LoopOf {
  int rounds, kernels, by;
  std::size_t n = 1;
  int twice = 0;
};
constexpr int more = 1000;
std::vector<int> renewed_goes(const Cuda& ex, const std::vector<LoopOf>& loops) {
  std::vector<int> got;
  std::vector<Array<int>> memory;  // all alive, so that none has the place of another
  Cuda::Recording kept;
  for (const LoopOf loop : loops) {
    memory.push_back(ex.allocate<int>(loop.n + 3));
    ex.clear(memory.back());
    const auto stop = memory.back().scalar(0), round = memory.back().scalar(1), odd = memory.back().scalar(2);
    const View<int> x{memory.back().data() + 3};
    kept.renew();
    for (int go = 0; go < 2; ++go) {
      ex.replay(kept, [&] {
        ex.once(KRILU_FN() { stop() = round() = 0; });
        ex.repeat_until(stop, [&] {
          ex.once(KRILU_FN() {
            odd() = ++round() % 2;
            stop() = round() == loop.rounds;
          });
          for (int k = 0; k < loop.kernels; ++k)
            ex.for_each(
                loop.n, KRILU_FN(Index i) { x[i] += loop.by; });
          for (int k = 0; k < loop.twice; ++k)
            ex.for_each(
                loop.n, KRILU_FN(Index i) { x[i] += 2 * loop.by; });
          ex.when(odd, [&] {
            ex.for_each(
                loop.n, KRILU_FN(Index i) { x[i] += more * loop.by; });
          });
        });
      });
      const std::vector<int> all = out(ex, memory.back());
      got.push_back(std::equal(all.begin() + 4, all.end(), all.begin() + 3) ? all[3] : -1);
    }
  }
  return got;
}

/// What `rounds` of a loop leave in a and c, and in how many of them a sum was wrong. Each step reads what threads far
/// away wrote in the step before: a = a + 1 by way of b, and c = a in another sequence, set to zero between.
struct Chased {
  std::vector<double> a, c;
  int wrong;
};
Chased chase(const Cuda& ex, std::size_t n, int rounds) {
  const auto a = ex.allocate<double>(n), b = ex.allocate<double>(n), c = ex.allocate<double>(n);
  const auto sum = ex.allocate<double>(1);
  const auto state = ex.allocate<int>(3);
  const auto av = a.view(), bv = b.view(), cv = c.view();
  const auto total = sum.scalar();
  const auto round = state.scalar(0), stop = state.scalar(1), wrong = state.scalar(2);
  const auto all = Index(n), far = Index(n / 3);
  ex.for_each(
      n, KRILU_FN(Index i) { av[i] = i % 5; });
  ex.once(KRILU_FN() { round() = stop() = wrong() = 0; });
  ex.repeat_until(stop, [&] {
    ex.for_each(
        n, KRILU_FN(Index i) { bv[i] = av[i + far < all ? i + far : i + far - all] + 1; });
    ex.reduce(
        n, KRILU_FN(Index i) { return bv[i] - i % 5 - round(); }, KRILU_FN(double t) { total() = t; });
    ex.for_each(
        n, KRILU_FN(Index i) { av[i] = bv[i >= far ? i - far : i - far + all]; });
    ex.clear(c);
    ex.for_each(
        n, KRILU_FN(Index i) { cv[all - 1 - i] += av[i]; });
    ex.once(KRILU_FN() {
      wrong() += total() != all;
      ++round();
      stop() = round() == rounds;
    });
  });
  return {out(ex, a), out(ex, c), out(ex, state)[2]};
}

std::vector<int> covered(const Cuda& ex, std::size_t n) {
  const auto marks = ex.allocate<int>(n);
  const auto m = marks.view();
  ex.for_each(
      n, KRILU_FN(Index i) { m[i] = 0; });
  ex.for_each(
      n, KRILU_FN(Index i) { ++m[i]; });
  return out(ex, marks);
}

namespace {

TEST(CudaSpace, ForEachCoversEverySizeOnce) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (std::size_t n : {1u, 31u, 255u, 256u, 257u, 100000u}) {
    const auto a = ex.allocate<double>(n);
    fill(ex, a, 2);
    const auto v = out(ex, a);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(v[i], 2 / (1.0 + double(i)));
    EXPECT_EQ(covered(ex, n), std::vector<int>(n, 1));
  }
  EXPECT_TRUE(covered(ex, 0).empty());
}

TEST(CudaSpace, SumsAreRightAndTheSameOnEveryRun) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (std::size_t n : {1u, 255u, 256u, 257u, 1000003u}) {
    const auto a = ex.allocate<double>(n);
    fill(ex, a, 1);
    long double one = 0, square = 0;
    for (std::size_t i = 0; i < n; ++i) {
      one += 1.0L / (1 + i);
      square += 1.0L / ((1.0L + i) * (1.0L + i));
    }
    const SumsOf first = sums(ex, a);
    EXPECT_NEAR(first.one, double(one), 1e-12 * double(one));
    EXPECT_NEAR(first.square, double(square), 1e-12);
    for (int run = 0; run < 50; ++run) {
      const SumsOf again = sums(ex, a);
      ASSERT_EQ(first.one, again.one);
      ASSERT_EQ(first.weighted, again.weighted);
    }
  }
}
TEST(CudaSpace, LoopsAndBranchesNestWithoutTheHost) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const long before = ex.synchronisations();
  const auto state = collatz(ex, 27);
  EXPECT_EQ(ex.synchronisations() - before, 1);  // the copy of the result
  EXPECT_EQ(state[0], 1);
  // 27 needs 111 steps, halvings and triplings each one; the inner loop runs three times in each.
  EXPECT_EQ(state[1], 111);
  EXPECT_EQ(state[5], 3 * 111);
  EXPECT_EQ(collatz(ex, 1)[1], 0);  // a flag that is set from the start: the body does not run
}

// Launches of a recorded loop begin while those before them end, up to 4 thread blocks a multiprocessor; of longer
// loops the single steps between them do.
TEST(CudaSpace, LaunchesThatOverlapSeeWhatTheFormerWrote) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (std::size_t n : {300u, 40000u, 130000u, 140000u, 3000000u}) {
    const int rounds = n > 1000000 ? 100 : 1000;
    const Chased got = chase(ex, n, rounds);
    EXPECT_EQ(got.wrong, 0) << n;
    std::vector<double> a(n);
    for (std::size_t i = 0; i < n; ++i) a[i] = double(i % 5) + rounds;
    EXPECT_EQ(got.a, a) << n;
    EXPECT_EQ(got.c, std::vector<double>(a.rbegin(), a.rend())) << n;
  }
}

TEST(CudaSpace, ARecordingIsMadeOnceAndLaunchedAgain) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const auto [counted, spoken] = recorded_goes(ex, 4);
  EXPECT_EQ(counted, (std::vector<int>{3, 6, 9, 12}));
  EXPECT_EQ(spoken, 1);
}

TEST(CudaSpace, ARenewedRecordingDoesWhatItsBodyDoesNow) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  // Other memory and numbers, more kernels, the same of them, fewer; and with as many nodes sizes of which one overlaps
  // launches and the next does not, and other functions.
  constexpr std::size_t large = 1'000'000;
  const std::vector<LoopOf> loops{{3, 1, 1},          {5, 1, 10},        {2, 3, 1}, {4, 3, 2},
                                  {3, 1, 1},          {3, 1, 1, large},  {3, 1, 1}, {2, 1, 7, large},
                                  {4, 1, 1, 1000, 1}, {4, 0, 3, 1000, 2}};
  std::vector<int> expected;
  for (const LoopOf& l : loops) {
    const int go = l.by * (l.rounds * (l.kernels + 2 * l.twice) + more * ((l.rounds + 1) / 2));
    expected.insert(expected.end(), {go, 2 * go});
  }
  EXPECT_EQ(renewed_goes(ex, loops), expected);
}

TEST(CudaSpace, AFailureWhileTheStreamRecordsLeavesItAsItWas) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const auto x = ex.allocate<double>(1000);
  const auto fail = [&] {
    fill(ex, x, 1);
    throw Error("in the middle");
  };
  EXPECT_THROW(ex.milliseconds(fail), Error);
  fill(ex, x, 2);
  EXPECT_EQ(out(ex, x)[0], 2);
  EXPECT_GT(ex.milliseconds([&] { fill(ex, x, 3); }), 0);
  EXPECT_EQ(out(ex, x)[0], 3);
}

TEST(CudaSpace, CopiesArriveWholeWhateverTheirSize) {
  KRILU_REQUIRE_GPU();
  // Round each size from which on a copy goes another way, and each number of pieces that threads have to share.
  constexpr std::size_t page = 4096, mebibyte = std::size_t(1) << 20;
  std::vector<std::size_t> sizes{0, 1, page / 8, page / 8 + 1, mebibyte / 8 - 1, mebibyte / 8, mebibyte / 8 + 1};
  for (std::size_t mebibytes : {3, 8, 16, 17, 33, 127, 128, 131}) sizes.push_back(mebibytes * mebibyte / 8 + 3);
  for (int threads : {1, 3, 0}) {
    const Cuda ex(0, threads);
    for (std::size_t n : sizes) {
      if (threads == 1 && n > 33 * mebibyte / 8) continue;
      std::vector<double> sent(n);
      std::iota(sent.begin(), sent.end(), double(n));
      const auto there = ex.allocate<double>(n);
      ex.copy_in(there, sent.data(), n);
      const std::vector<double> first = out(ex, there);
      for (double& v : sent) v = -v;
      ex.copy_in(there, sent.data(), n);  // right behind
      EXPECT_EQ(out(ex, there), sent) << n << " numbers, " << threads << " threads";
      for (double& v : sent) v = -v;
      EXPECT_EQ(first, sent) << n << " numbers, " << threads << " threads";
    }
  }
}

/// to[0] = value, by a kernel.
void write(const Cuda& ex, const Array<double>& to, double value) {
  const auto v = to.view();
  ex.once(KRILU_FN() { v[0] = value; });
}

TEST(CudaSpace, SharedArraysAreApartHoweverManyAndAreHadAgain) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (int round = 0; round < 3; ++round) {
    std::vector<Array<double>> arrays;  // small ones, more than fit one page, and some that never would
    for (int k = 0; k < 100; ++k)
      arrays.push_back(ex.allocate_shared<double>(k % 10 == 9 ? 100 : std::size_t(1 + k % 8)));
    for (int k = 0; k < 100; ++k) write(ex, arrays[std::size_t(k)], 100 * round + k);
    ex.synchronise();
    for (int k = 0; k < 100; ++k) EXPECT_EQ(arrays[std::size_t(k)].data()[0], 100 * round + k);
    std::set<std::uintptr_t> lines;  // of 64 bytes
    for (const auto& a : arrays) EXPECT_TRUE(lines.insert(reinterpret_cast<std::uintptr_t>(a.data()) / 64).second);
  }
}

TEST(CudaSpace, AGpuThatIsNotThereIsNamed) { EXPECT_ANY_THROW(Cuda(1000)); }

}  // namespace
}  // namespace krilu::exec
