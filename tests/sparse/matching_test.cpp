// SPDX-License-Identifier: Apache-2.0
// The maximum product matching against all permutations of small matrices, against its optimality conditions (dual
// variables) on random and real ones, and on singular ones against the largest matching that there is.
#include "sparse/matching.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "krilu/io.hpp"
#include "support/support.hpp"

namespace {

using namespace krilu;
using sparse::Matching;
using sparse::maximum_product_matching;

/// Entries in a share of the places, magnitudes over `decades` powers of ten.
test::Dense random_dense(std::size_t n, double share, double decades, std::mt19937_64& random) {
  std::uniform_real_distribution<double> unit(0, 1);
  test::Dense d(n, std::vector<double>(n, 0.0));
  for (auto& row : d)
    for (double& v : row)
      if (unit(random) < share) v = (unit(random) < 0.5 ? -1 : 1) * std::pow(10.0, decades * (unit(random) - 0.5));
  return d;
}

/// The most pairs that any permutation has on entries, and the largest log2 of a product among those with that many.
struct BruteForce {
  int most = -1;
  double best = -std::numeric_limits<double>::infinity();
};
BruteForce try_all(const test::Dense& d) {
  BruteForce found;
  std::vector<std::size_t> column(d.size());
  std::iota(column.begin(), column.end(), std::size_t(0));
  do {
    int pairs = 0;
    double sum = 0;
    for (std::size_t i = 0; i < d.size(); ++i)
      if (d[i][column[i]] != 0) {
        ++pairs;
        sum += std::log2(std::abs(d[i][column[i]]));
      }
    if (pairs > found.most) found = {pairs, sum};
    if (pairs == found.most) found.best = std::max(found.best, sum);
  } while (std::next_permutation(column.begin(), column.end()));
  return found;
}

/// A matching indeed: pairs are entries other than zero, each row and column in one at most, both ways the same.
void expect_matching(const CsrView& a, const Matching& m) {
  Index pairs = 0;
  for (Index i = 0; i < a.rows; ++i) {
    const Index j = m.column_of[std::size_t(i)];
    if (j < 0) continue;
    ++pairs;
    ASSERT_EQ(m.row_of[std::size_t(j)], i);
    const Index* at = std::lower_bound(a.columns + a.offsets[i], a.columns + a.offsets[i + 1], j);
    ASSERT_TRUE(at != a.columns + a.offsets[i + 1] && *at == j) << "row " << i;
    ASSERT_NE(a.values[at - a.columns], 0.0);
  }
  EXPECT_EQ(pairs, m.size);
  EXPECT_EQ(Index(std::count_if(m.row_of.begin(), m.row_of.end(), [](Index i) { return i >= 0; })), m.size);
}

/// u_i + v_j <= c_ij for all entries, with equality on pairs: no permutation has a larger product. Where all rows are
/// paired that proves it, by linear programming's duality.
void expect_optimal(const CsrView& a, const Matching& m) {
  std::vector<double> top(std::size_t(a.rows), -std::numeric_limits<double>::infinity());
  for (Offset k = 0; k < a.nnz(); ++k)
    if (a.values[k] != 0)
      top[std::size_t(a.columns[k])] = std::max(top[std::size_t(a.columns[k])], std::log2(std::abs(a.values[k])));
  double worst = 0, off = 0, largest = 0;
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      if (a.values[k] == 0) continue;
      const auto j = std::size_t(a.columns[k]);
      const double c = top[j] - std::log2(std::abs(a.values[k]));
      const double slack = c - m.u[std::size_t(i)] - m.v[j];
      worst = std::min(worst, slack);
      if (m.column_of[std::size_t(i)] == Index(j)) off = std::max(off, std::abs(slack));
      largest = std::max({largest, c, std::abs(m.u[std::size_t(i)]), std::abs(m.v[j])});
    }
  const double rounding = 1e-12 * std::max(1.0, largest);
  EXPECT_GE(worst, -rounding);
  EXPECT_LE(off, rounding);
}

/// Scaled entries: pairs within [1/2, 2], all others at most 2.
void expect_scaled(const CsrView& a, const Matching& m) {
  const sparse::Scales s = m.scales();
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const auto j = std::size_t(a.columns[k]);
      const double v = std::abs(s.row[std::size_t(i)] * a.values[k] * s.column[j]);
      ASSERT_LE(v, 2.0 * (1 + 1e-9)) << "row " << i;
      if (m.column_of[std::size_t(i)] == Index(j)) {
        ASSERT_GE(v, 0.5 * (1 - 1e-9)) << "row " << i;
      }
    }
  for (const auto* scales : {&s.row, &s.column})
    for (double v : *scales) ASSERT_EQ(v, std::ldexp(1.0, std::ilogb(v))) << "no power of two";
}

TEST(Matching, IsTheBestOfAllPermutationsOfSmallMatrices) {
  constexpr std::uint64_t seed = 20260;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  int full = 0, deficient = 0;
  for (int round = 0; round < 400; ++round) {
    const std::size_t n = 1 + std::size_t(round % 7);
    const test::Dense d = random_dense(n, 0.25 + 0.1 * (round % 6), round % 3 == 0 ? 0.0 : 8.0, random);
    const CsrMatrix a = test::from_dense(d);
    const Matching m = maximum_product_matching(a);
    expect_matching(a, m);
    const BruteForce best = try_all(d);
    ASSERT_EQ(m.size, best.most) << "round " << round;
    EXPECT_EQ(Index(m.unpaired_rows().size()), Index(n) - m.size);
    if (m.size < Index(n)) {
      ++deficient;
      continue;
    }
    ++full;
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += std::log2(std::abs(d[i][std::size_t(m.column_of[i])]));
    EXPECT_NEAR(sum, best.best, 1e-9) << "round " << round;
    expect_optimal(a, m);
    expect_scaled(a, m);
  }
  EXPECT_GT(full, 100);
  EXPECT_GT(deficient, 50);
}

TEST(Matching, KeepsADiagonalThatIsAsGoodAsAnyOther) {
  const CsrMatrix a = generate("gen:poisson2d:12x9");
  const Matching m = maximum_product_matching(a);
  for (Index i = 0; i < a.rows; ++i) EXPECT_EQ(m.column_of[std::size_t(i)], i);
}

TEST(Matching, FindsARandomPermutationOfADominantMatrix) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const CsrMatrix a = test::random_matrix({.rows = 300, .per_row = 6, .symmetric_pattern = false, .seed = seed});
    const std::vector<Index> row = test::shuffled_order(a.rows, seed);
    CsrMatrix b;
    b.rows = b.cols = a.rows;
    b.offsets.push_back(0);
    std::mt19937_64 random(seed + 100);
    for (Index i : row) {  // each row by a scale of its own
      const double scale = std::ldexp(1.0, int(random() % 60) - 30);
      for (auto k = std::size_t(a.offsets[std::size_t(i)]); k < std::size_t(a.offsets[std::size_t(i) + 1]); ++k) {
        b.columns.push_back(a.columns[k]);
        b.values.push_back(scale * a.values[k]);
      }
      b.offsets.push_back(Offset(b.columns.size()));
    }
    const Matching m = maximum_product_matching(b);
    EXPECT_EQ(m.column_of, row);
    expect_optimal(b, m);
    expect_scaled(b, m);
  }
}

TEST(Matching, OfLargerRandomMatricesIsOptimal) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const CsrMatrix a = test::from_dense(random_dense(120, 0.01 * double(2 + seed), 12, random));
    const Matching m = maximum_product_matching(a);
    expect_matching(a, m);
    if (m.size == a.rows) {
      expect_optimal(a, m);
      expect_scaled(a, m);
    }
  }
}

TEST(Matching, StoredZerosAreNoEntries) {
  CsrMatrix a = test::from_dense({{5, 1}, {1, 5}});
  a.values[0] = 0;
  const Matching m = maximum_product_matching(a);
  EXPECT_EQ(m.column_of, (std::vector<Index>{1, 0}));
  a.values[1] = 0;
  const Matching less = maximum_product_matching(a);
  EXPECT_EQ(less.size, 1);
  EXPECT_EQ(less.unpaired_rows(), std::vector<Index>{0});
}

TEST(Matching, ASingularPatternLeavesAsManyRowsAsItLacks) {
  // Rows 2, 4 and 5 share two columns.
  const CsrMatrix a =
      test::from_dense({{1, 2, 0, 0, 1}, {0, 3, 4, 0, 0}, {1, 0, 0, 1, 1}, {0, 5, 1, 0, 0}, {0, 1, 7, 0, 0}});
  const Matching m = maximum_product_matching(a);
  expect_matching(a, m);
  EXPECT_EQ(m.size, 4);
  const std::vector<Index> alone = m.unpaired_rows();
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_TRUE(alone[0] == 1 || alone[0] == 3 || alone[0] == 4);
  std::vector<Index> all = m.permutation();
  EXPECT_EQ(std::set<Index>(all.begin(), all.end()).size(), 5u);
}

TEST(Matching, OfNothingIsNothing) {
  const Matching m = maximum_product_matching(CsrView{});
  EXPECT_EQ(m.size, 0);
  EXPECT_TRUE(m.permutation().empty());
}

TEST(Matching, OfRealMatricesIsOptimal) {
  KRILU_REQUIRE_MATRIX(one, "add32.mtx.gz");
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(one.parent_path())) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".mtx.gz") || name.ends_with("_b.mtx.gz") || name.ends_with("_x.mtx.gz")) continue;
    SCOPED_TRACE(name);
    const CsrMatrix a = read_matrix_market(entry.path().string()).matrix;
    const Matching m = maximum_product_matching(a);
    expect_matching(a, m);
    EXPECT_EQ(m.size, a.rows);
    expect_optimal(a, m);
    expect_scaled(a, m);
    ++seen;
  }
  EXPECT_GT(seen, 0);
}

}  // namespace
