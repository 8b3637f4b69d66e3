// SPDX-License-Identifier: Apache-2.0
// The block 1-norm estimator on matrices whose norm is known: never above it, never below a third of it, exact for
// small matrices and for those without negative entries; what NaN, infinity and zero give; how many products it takes.
#include "solver/block_norm_estimate.hpp"

#include <cmath>
#include <limits>

#include "support/support.hpp"

namespace krilu::test {
namespace {

using solver::BlockNorm;
using solver::BlockProduct;
using solver::estimate_norm1;

Dense random_dense(std::size_t n, std::uint64_t seed) {
  const std::vector<double> v = random_values(n * n, seed);
  Dense d(n, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) d[i][j] = v[i * n + j];
  return d;
}

double norm1(const Dense& d) {
  double largest = 0;
  for (std::size_t j = 0; j < d.size(); ++j) {
    double sum = 0;
    for (std::size_t i = 0; i < d.size(); ++i) sum += std::abs(d[i][j]);
    largest = std::max(largest, sum);
  }
  return largest;
}

/// Multiplies by d or by its transpose, and counts the vectors.
BlockProduct product(const Dense& d, bool transposed, int& vectors) {
  return [&d, transposed, &vectors](double* block, Index columns) {
    const std::size_t n = d.size();
    for (Index c = 0; c < columns; ++c, ++vectors) {
      double* x = block + std::size_t(c) * n;
      std::vector<double> y(n, 0.0);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) y[i] += (transposed ? d[j][i] : d[i][j]) * x[j];
      std::copy(y.begin(), y.end(), x);
    }
  };
}

BlockNorm estimate(const Dense& d) {
  int vectors = 0;
  const BlockNorm found = estimate_norm1(Index(d.size()), product(d, false, vectors), product(d, true, vectors));
  EXPECT_EQ(found.products, vectors);
  EXPECT_LE(found.products, 22);
  return found;
}

TEST(BlockNormEstimate, IsTheNormOfSmallMatrices) {
  for (std::size_t n = 1; n <= 8; ++n) {
    const Dense d = random_dense(n, n);
    EXPECT_DOUBLE_EQ(estimate(d).value, norm1(d));
  }
  EXPECT_EQ(estimate({}).value, 0);
}

TEST(BlockNormEstimate, LiesBetweenAThirdOfTheNormAndTheNorm) {
  double ratios = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const std::size_t n = 9 + seed % 60;
    Dense d = random_dense(n, seed);
    if (seed % 3 == 0)  // columns of many sizes
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < n; ++i) d[i][j] *= std::pow(10.0, double((j * 7 + seed) % 11) / 5);
    const double norm = norm1(d), found = estimate(d).value;
    EXPECT_LE(found, norm * (1 + 1e-12)) << "seed " << seed;
    EXPECT_GE(found, norm / 3) << "seed " << seed;
    ratios += found / norm;
  }
  EXPECT_GT(ratios / 300, 0.92);  // columns of random numbers differ little, which is the hardest case
}

TEST(BlockNormEstimate, IsTheNormWhereNothingIsNegative) {
  // The first signs are all plus, and B^T times them is the columns' sums.
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Dense d = random_dense(10 + seed, seed);
    for (auto& row : d)
      for (double& v : row) v = std::abs(v);
    EXPECT_NEAR(estimate(d).value, norm1(d), 1e-12 * norm1(d)) << "seed " << seed;
  }
}

TEST(BlockNormEstimate, FindsTheOneLargeColumn) {
  for (std::size_t n : {9u, 30u, 200u}) {
    Dense d(n, std::vector<double>(n, 0.0));
    for (std::size_t i = 0; i < n; ++i) d[i][i] = 1;
    for (std::size_t i = 0; i < n; ++i) d[i][n / 2] += (i % 2 ? -1 : 1) * 5.0;
    EXPECT_DOUBLE_EQ(estimate(d).value, norm1(d)) << n;
  }
}

TEST(BlockNormEstimate, IsTheSameInEveryRun) {
  const Dense d = random_dense(57, 4);
  EXPECT_EQ(estimate(d).value, estimate(d).value);
}

TEST(BlockNormEstimate, OfZeroIsZeroAndOfInfinityInfinity) {
  EXPECT_EQ(estimate(Dense(20, std::vector<double>(20, 0.0))).value, 0);
  for (const double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    for (std::size_t n : {3u, 20u}) {
      Dense d = random_dense(n, 1);
      d[1][2] = bad;
      EXPECT_EQ(estimate(d).value, std::numeric_limits<double>::infinity()) << bad;
    }
}

}  // namespace
}  // namespace krilu::test
