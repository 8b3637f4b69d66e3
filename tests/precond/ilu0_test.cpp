// SPDX-License-Identifier: Apache-2.0
// ILU(0) and IC(0) against dense implementations of the textbook's loops in long double, and against what defines them:
// M equals A on A's pattern. Exact inverses where nothing fills in; strategies, teams, heights and spaces against each
// other bit for bit; zero pivots by the caller's row. What is refused for lack of symmetry stands in dilu_test.cpp.
#include <fmt/format.h>

#include "precond/factored.hpp"
#include "support/matrices.hpp"

namespace krilu::test {
namespace {

using triangular::Strategy;

template <class Space>
class Ilu0Test : public ::testing::Test {};
TYPED_TEST_SUITE(Ilu0Test, Spaces);

std::vector<CsrMatrix> ilu0_matrices() {
  std::vector<CsrMatrix> all;
  all.push_back(random_matrix({.rows = 45, .per_row = 5, .seed = 121}));
  all.push_back(random_matrix({.rows = 45, .per_row = 5, .symmetric_pattern = false, .seed = 122}));
  all.push_back(random_matrix({.rows = 60, .per_row = 70, .dominance = 1.05, .seed = 123}));
  all.push_back(with_nodes(random_matrix({.rows = 14, .per_row = 3, .seed = 1230}), [](Index i) { return 1 + i % 8; }));
  all.push_back(grid(8, 6));
  all.push_back(from_dense({{-4.0}}));
  return all;
}

TYPED_TEST(Ilu0Test, IsTheTextbooksLoopsInEveryOrdering) {
  for (const CsrMatrix& a : ilu0_matrices())
    for (const std::string& ordering : orderings)
      for (int threads : {1, 3}) {
        SCOPED_TRACE(fmt::format("{} rows, {} nonzeros, {}, {} threads", a.rows, a.nnz(), ordering, threads));
        const Factored<TypeParam> m("ilu0", a, {.ordering = ordering, .threads = threads});
        const Reference expected("ilu0", a, ordering);
        for (Index i = 0; i < a.rows; i += threads) {
          std::vector<double> e(std::size_t(a.rows), 0.0);
          e[std::size_t(i)] = 1;
          ASSERT_LT(difference(m.apply(e), expected.apply(e)), 1e-13) << "column " << i;
        }
      }
}

TEST(Ilu0, IsItsMatrixWhereTheMatrixHasEntries) {
  for (const CsrMatrix& a : ilu0_matrices())
    for (const std::string& ordering : orderings) {
      const Dense m = Factored<exec::Host>("ilu0", a, {.ordering = ordering, .height = 8}).dense(), d = to_dense(a);
      double elsewhere = 0;
      for (std::size_t i = 0; i < d.size(); ++i)
        for (std::size_t j = 0; j < d.size(); ++j) {
          if (d[i][j] != 0)
            EXPECT_NEAR(m[i][j], d[i][j], 1e-12 * std::abs(d[i][i])) << ordering << ": " << i << ", " << j;
          else
            elsewhere = std::max(elsewhere, std::abs(m[i][j]));
        }
      if (a.rows > 1 && a.rows < 60) {
        EXPECT_GT(elsewhere, 1e-3) << "M is A itself: nothing was tested";
      }
    }
}

TYPED_TEST(Ilu0Test, OfATridiagonalMatrixIsItsLu) {
  const CsrMatrix a = grid(500, 1, false, 124);
  const std::vector<double> x = random_values(500, 125);
  std::vector<double> b(500);
  sparse::multiply(exec::Host(1), a, x.data(), b.data());
  for (const char* ordering : {"natural", "rcm"})
    EXPECT_LT(difference(Factored<TypeParam>("ilu0", a, {.ordering = ordering}).apply(b), x), 1e-12) << ordering;
}

TEST(Ilu0, OfAFullMatrixSolvesIt) {
  const std::size_t n = 30;
  Dense d(n, std::vector<double>(n));
  const std::vector<double> v = random_values(n * n, 126), b = random_values(n, 127);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) d[i][j] = v[i * n + j] + (i == j ? 20 : 0);
  const CsrMatrix a = from_dense(d);
  for (int height : {1, 8})
    EXPECT_LT(difference(Factored<exec::Host>("ilu0", a, {.height = height}).apply(b), dense_solve(d, b)), 1e-13);
}

/// The classic incomplete Cholesky factor L L^T of a dense matrix, column by column, applied.
std::vector<double> incomplete_cholesky(const CsrView& a, const std::vector<double>& r) {
  const std::size_t n = r.size();
  LongDense l = reordered(a, natural_order(a.rows));
  const LongDense pattern = l;
  for (std::size_t k = 0; k < n; ++k) {
    l[k][k] = std::sqrt(l[k][k]);
    for (std::size_t i = k + 1; i < n; ++i) l[i][k] /= l[k][k];
    for (std::size_t j = k + 1; j < n; ++j)
      for (std::size_t i = j; i < n; ++i)
        if (pattern[i][j] != 0) l[i][j] -= l[i][k] * l[j][k];
  }
  std::vector<long double> y(r.begin(), r.end());
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) y[i] -= l[i][j] * y[j];
    y[i] /= l[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < n; ++j) y[i] -= l[j][i] * y[j];
    y[i] /= l[i][i];
  }
  return {y.begin(), y.end()};
}

TYPED_TEST(Ilu0Test, Ic0IsIncompleteCholesky) {
  for (const CsrMatrix& a :
       {grid(9, 9, true),
        random_matrix({.rows = 80, .per_row = 6, .symmetric_values = true, .dominance = 1.05, .seed = 128})}) {
    const std::vector<double> r = random_values(std::size_t(a.rows), 129);
    const Factored<TypeParam> m("ic0", a, {.threads = 2});
    const std::vector<double> z = m.apply(r);
    EXPECT_LT(difference(z, incomplete_cholesky(a, r)), 1e-13);
    EXPECT_EQ(bits(z), bits(Factored<TypeParam>("ilu0", a).apply(r)));
    // Symmetric: e_i^T M^-1 e_j = e_j^T M^-1 e_i.
    const Dense columns = m.inverse_columns();
    double most = 0;
    for (std::size_t i = 0; i < columns.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) most = std::max(most, std::abs(columns[i][j] - columns[j][i]));
    EXPECT_LT(most, 1e-14);
    // The negative of it is served too.
    CsrMatrix negative = a;
    for (double& v : negative.values) v = -v;
    std::vector<double> minus = Factored<TypeParam>("ic0", negative).apply(r);
    for (double& v : minus) v = -v;
    EXPECT_EQ(minus, z);
  }
}

TYPED_TEST(Ilu0Test, TheSameBitsUnderAllStrategiesTeamsAndHeights) { expect_same_bits<TypeParam>("ilu0", 130); }

TYPED_TEST(Ilu0Test, NewValuesGiveAFreshFactor) { expect_fresh_factor<TypeParam>("ilu0", "multicolour", 132); }

TYPED_TEST(Ilu0Test, AZeroPivotIsNamedByTheCallersRowAndMendedByAShift) {
  for (bool stored : {true, false})
    for (const std::string& ordering : orderings)
      for (int threads : {1, 3}) {
        SCOPED_TRACE(ordering);
        const CsrMatrix a = with_zero_pivot(stored, 134);
        const Setting setting{.ordering = ordering, .threads = threads};
        EXPECT_THROW(Factored<TypeParam>("ilu0", a, setting), ZeroPivot);
        const std::string text = complaint([&] { Factored<TypeParam>("ilu0", a, setting); });
        EXPECT_TRUE(text.starts_with("ilu0: zero pivot in row 124 (counting from 1): give --shift")) << text;
        const std::vector<double> r = random_values(200, 135);
        const Factored<TypeParam> mended("ilu0", a, {.ordering = ordering, .threads = threads, .shift = 0.01});
        const std::vector<double> z = mended.apply(r);
        for (double v : z) ASSERT_TRUE(std::isfinite(v));
        if (stored) {  // the reference tells a pattern by its values, so that an entry of zero is none
          EXPECT_LT(difference(z, Reference("ilu0", a, ordering, 0.01).apply(r)), 1e-12);
        }
      }
}

TYPED_TEST(Ilu0Test, AFailureIsForgottenWithTheNextValues) {
  const CsrMatrix bad = with_zero_pivot(true, 134);
  CsrMatrix good = bad;
  for (double& v : good.values)
    if (v == 0) v = 7;
  const std::vector<double> r = random_values(200, 136);
  Factored<TypeParam> m("ilu0", good, {.threads = 2});
  const std::vector<double> expected = m.apply(r);
  EXPECT_THROW(m.factor(bad), ZeroPivot);
  m.factor(good);
  EXPECT_EQ(bits(m.apply(r)), bits(expected));
  EXPECT_LT(difference(expected, Reference("ilu0", good).apply(r)), 1e-13);
}

}  // namespace
}  // namespace krilu::test
