// SPDX-License-Identifier: Apache-2.0
// Solutions with the sparse LU factorisation against Gaussian elimination in long double, with the matrix and with its
// transpose, with diagonals that are full and not, rows and columns of all magnitudes; singular matrices, of which many
// are small and have exact zeros as pivots; factors that are too large for the memory given.
#include "solver/sparse_lu.hpp"

#include <cmath>

#include "krilu/error.hpp"
#include "sparse/csr.hpp"
#include "support/matrices.hpp"

namespace krilu::test {
namespace {

using solver::SparseLu;
using Outcome = SparseLu::Outcome;

constexpr std::size_t memory = std::size_t(1) << 30;

#define KRILU_REQUIRE_SPARSE_LU() \
  if (SparseLu::name().empty()) GTEST_SKIP() << "krilu was built without SuperLU"

/// Rows in another sequence: no diagonal to take pivots from.
CsrMatrix rows_shuffled(const CsrMatrix& a, std::uint64_t seed) {
  const Dense d = to_dense(a);
  const std::vector<Index> order = shuffled_order(a.rows, seed);
  Dense e;
  for (Index i : order) e.push_back(d[std::size_t(i)]);
  return from_dense(e);
}

void expect_solves(const CsrMatrix& a) {
  const SparseLu lu(a, memory);
  ASSERT_EQ(lu.outcome(), Outcome::ready);
  EXPECT_GE(lu.bytes(), 8 * std::size_t(a.rows));
  const auto n = std::size_t(a.rows);
  const Dense d = to_dense(a), dt = to_dense(sparse::transpose(a));
  const std::vector<double> b = random_values(3 * n, 5);
  for (const bool transposed : {false, true}) {
    std::vector<double> x = b;
    lu.solve(x.data(), 3, transposed);
    for (std::size_t c = 0; c < 3; ++c) {
      const std::vector<double> expected = dense_solve(
          transposed ? dt : d, {b.begin() + std::ptrdiff_t(c * n), b.begin() + std::ptrdiff_t((c + 1) * n)});
      for (std::size_t i = 0; i < n; ++i)
        EXPECT_NEAR(x[c * n + i], expected[i], 1e-9 * (1 + std::abs(expected[i])))
            << (transposed ? "transpose, " : "") << "column " << c << ", row " << i;
    }
  }
}

TEST(SparseLu, SolvesWithTheMatrixAndItsTranspose) {
  KRILU_REQUIRE_SPARSE_LU();
  for (std::uint64_t seed = 1; seed <= 6; ++seed)
    for (const bool symmetric : {true, false}) {
      SCOPED_TRACE(seed);
      const CsrMatrix a =
          random_matrix({.rows = 60, .per_row = 4, .symmetric_pattern = symmetric, .dominance = 0.3, .seed = seed});
      expect_solves(a);
      expect_solves(rows_shuffled(a, seed));
    }
  expect_solves(arrow(50, 3));
  expect_solves(chain(40));
  expect_solves(with_long_rows(150, {40, 100}, false, 3));
  expect_solves(from_dense({{-2.0}}));
  expect_solves(from_dense({{0.0, 2.0}, {3.0, 0.0}}));
}

TEST(SparseLu, SolvesWhereMagnitudesAreFarApart) {
  KRILU_REQUIRE_SPARSE_LU();
  CsrMatrix a = random_matrix({.rows = 40, .per_row = 4, .seed = 2});
  const CsrMatrix plain = a;
  const auto row_scale = [](Index i) { return std::ldexp(1.0, (i * 37) % 900 - 450); };
  const auto column_scale = [](Index j) { return std::ldexp(1.0, (j * 53) % 800 - 400); };
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      a.values[std::size_t(k)] *= row_scale(i) * column_scale(a.columns[std::size_t(k)]);
  const SparseLu lu(a, memory), plain_lu(plain, memory);
  ASSERT_EQ(lu.outcome(), Outcome::ready);
  std::vector<double> x = random_values(40, 3), y = x;
  plain_lu.solve(y.data(), 1, false);
  for (Index i = 0; i < 40; ++i) x[std::size_t(i)] *= row_scale(i);
  lu.solve(x.data(), 1, false);
  for (Index j = 0; j < 40; ++j)
    EXPECT_NEAR(x[std::size_t(j)] * column_scale(j), y[std::size_t(j)], 1e-9 * (1 + std::abs(y[std::size_t(j)])));
}

TEST(SparseLu, SaysThatAMatrixIsSingular) {
  KRILU_REQUIRE_SPARSE_LU();
  const auto outcome = [](const Dense& d) { return SparseLu(from_dense(d), memory).outcome(); };
  EXPECT_EQ(outcome({{0.0}}), Outcome::singular);
  EXPECT_EQ(outcome({{1.0, 2.0}, {2.0, 4.0}}), Outcome::singular);
  EXPECT_EQ(outcome({{1.0, 0.0}, {1.0, 0.0}}), Outcome::singular);            // an empty column
  EXPECT_EQ(outcome({{1.0, 1.0}, {0.0, 0.0}}), Outcome::singular);            // an empty row
  EXPECT_EQ(outcome({{1, 1, 1}, {0, 0, 1}, {0, 0, 1}}), Outcome::singular);   // two rows, one column
  EXPECT_EQ(outcome({{0, 1, 1}, {1, 0, 1}, {1, -1, 0}}), Outcome::singular);  // no diagonal, rows that are dependent
}

/// The determinant of a small matrix of integers, by elimination that stays among them [Bareiss 1968].
std::int64_t determinant(const Dense& d) {
  const std::size_t n = d.size();
  std::vector<std::vector<std::int64_t>> m(n, std::vector<std::int64_t>(n));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) m[i][j] = std::int64_t(d[i][j]);
  std::int64_t sign = 1, before = 1;
  for (std::size_t k = 0; k + 1 < n; ++k) {
    std::size_t p = k;
    while (p < n && m[p][k] == 0) ++p;
    if (p == n) return 0;
    if (p != k) {
      std::swap(m[p], m[k]);
      sign = -sign;
    }
    for (std::size_t i = k + 1; i < n; ++i)
      for (std::size_t j = k + 1; j < n; ++j) m[i][j] = (m[i][j] * m[k][k] - m[i][k] * m[k][j]) / before;
    before = m[k][k];
  }
  return sign * m[n - 1][n - 1];
}

TEST(SparseLu, ManySmallMatricesOfWholeNumbers) {
  KRILU_REQUIRE_SPARSE_LU();
  int singular = 0, regular = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937 engine(seed);
    const std::size_t n = 1 + engine() % 14;
    Dense d(n, std::vector<double>(n, 0.0));
    for (std::size_t k = 0; k < 3 * n; ++k) d[engine() % n][engine() % n] = engine() % 2 ? 1 : -1;
    if (engine() % 4 == 0)
      for (std::size_t i = 0; i < n; ++i) d[i][i] = 1;
    const std::int64_t exact = determinant(d);
    const SparseLu lu(from_dense(d), memory);
    if (exact != 0) {
      ASSERT_EQ(lu.outcome(), Outcome::ready) << "seed " << seed;
      ++regular;
      continue;
    }
    singular += lu.outcome() == Outcome::singular;
    if (lu.outcome() == Outcome::singular) continue;
    // Rounding may leave a pivot of 1e-16: the solution says so.
    std::vector<double> x = random_values(n, seed);
    lu.solve(x.data(), 1, false);
    double largest = 0;
    for (double v : x) largest = std::max(largest, std::abs(v));
    EXPECT_GT(largest, 1e10) << "seed " << seed;
  }
  EXPECT_GT(singular, 500);
  EXPECT_GT(regular, 500);
}

TEST(SparseLu, DoesNotBeginWhatDoesNotFit) {
  KRILU_REQUIRE_SPARSE_LU();
  const CsrMatrix a = generate("gen:poisson2d:60x60");
  const SparseLu lu(a, 100000);
  EXPECT_EQ(lu.outcome(), Outcome::too_large);
  EXPECT_GT(lu.bytes(), 100000u);
  EXPECT_EQ(SparseLu(rows_shuffled(generate("gen:poisson2d:20x20"), 1), 10000).outcome(), Outcome::too_large);
  EXPECT_EQ(SparseLu(a, memory).outcome(), Outcome::ready);
}

TEST(SparseLu, IsMissingWithoutALibrary) {
  if (!SparseLu::name().empty()) {
    EXPECT_EQ(SparseLu::name().find("SuperLU "), 0u);
    return;
  }
  const SparseLu lu(diagonal(3), memory);
  EXPECT_EQ(lu.outcome(), Outcome::missing);
  double x[3] = {1, 1, 1};
  EXPECT_THROW(lu.solve(x, 1, false), Error);
}

}  // namespace
}  // namespace krilu::test
