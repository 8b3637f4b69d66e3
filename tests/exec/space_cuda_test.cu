// SPDX-License-Identifier: Apache-2.0
// exec::Cuda against plain loops: every primitive, sizes round a block and a grid, nested loops and branches, the same
// bits on every run. Kernels stand in free functions: nvcc takes none inside a test's private body.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include "exec/cuda.cuh"
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

std::vector<double> column_sums(const Cuda& ex, Index n, Index most, Index count) {
  const auto total = ex.allocate<double>(std::size_t(most));
  const auto number = ex.allocate<Index>(1);
  const auto t = total.view();
  const auto c = number.scalar();
  ex.for_each(
      std::size_t(most), KRILU_FN(Index j) { t[j] = -1; });
  ex.once(KRILU_FN() { c() = count; });
  ex.reduce_columns(
      std::size_t(n), most, c, 0, KRILU_FN(Index i, Index j) { return double(i) * (j + 1); },
      KRILU_FN(Index j, double s) { t[j] = s; });
  return out(ex, total);
}

std::vector<int> covered(const Cuda& ex, std::size_t n) {
  const auto marks = ex.allocate<int>(n);
  const auto m = marks.view();
  ex.for_each(
      n, KRILU_FN(Index i) { m[i] = 0; });
  ex.for_each_range(
      n, KRILU_FN(Index begin, Index end) {
        for (Index i = begin; i < end; ++i) ++m[i];
      });
  return out(ex, marks);
}

namespace {

TEST(CudaSpace, ForEachAndRangesCoverEverySizeOnce) {
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

TEST(CudaSpace, ColumnsAreSummedUpToTheCountOnTheDevice) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const Index n = 5000;
  const auto t = column_sums(ex, n, 31, 7);
  for (Index j = 0; j < 31; ++j) EXPECT_EQ(t[std::size_t(j)], j < 7 ? n * (n - 1) / 2.0 * (j + 1) : -1.0);
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
