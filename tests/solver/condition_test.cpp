// SPDX-License-Identifier: Apache-2.0
// Condition numbers, by the factorisation and by GMRES, against ones that are known: diagonal and tridiagonal matrices
// worked out by hand, small ones by their explicit inverse in long double; what is singular, what is refused and in
// which words, and what is done where memory does not do.
#include "solver/condition.hpp"

#include <cmath>

#include "krilu/error.hpp"
#include "krilu/io.hpp"
#include "solver/sparse_lu.hpp"
#include "support/matrices.hpp"
#include "support/not_finite.hpp"
#include "support/refusal.hpp"

namespace krilu::test {
namespace {

using solver::ConditionBy;
using solver::SparseLu;

constexpr ConditionNorm norms[] = {ConditionNorm::one, ConditionNorm::infinity};

/// Largest sum of magnitudes in a column, or a row.
long double norm_of(const std::vector<std::vector<long double>>& m, ConditionNorm norm) {
  long double largest = 0;
  for (std::size_t i = 0; i < m.size(); ++i) {
    long double sum = 0;
    for (std::size_t j = 0; j < m.size(); ++j) sum += std::abs(norm == ConditionNorm::infinity ? m[i][j] : m[j][i]);
    largest = std::max(largest, sum);
  }
  return largest;
}

/// By Gauss and Jordan, with partial pivoting.
double exact_condition(const CsrView& a, ConditionNorm norm) {
  const Dense d = to_dense(a);
  const std::size_t n = d.size();
  std::vector<std::vector<long double>> m(n), inverse(n, std::vector<long double>(n, 0.0L));
  for (std::size_t i = 0; i < n; ++i) {
    m[i].assign(d[i].begin(), d[i].end());
    inverse[i][i] = 1;
  }
  const long double norm_a = norm_of(m, norm);
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t p = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::abs(m[i][k]) > std::abs(m[p][k])) p = i;
    std::swap(m[p], m[k]);
    std::swap(inverse[p], inverse[k]);
    const long double pivot = m[k][k];
    for (std::size_t j = 0; j < n; ++j) {
      m[k][j] /= pivot;
      inverse[k][j] /= pivot;
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const long double f = m[i][k];
      for (std::size_t j = 0; j < n; ++j) {
        m[i][j] -= f * m[k][j];
        inverse[i][j] -= f * inverse[k][j];
      }
    }
  }
  return double(norm_a * norm_of(inverse, norm));
}

class Conditions : public ::testing::TestWithParam<ConditionBy> {
 protected:
  void SetUp() override {
    if (GetParam() == ConditionBy::direct && SparseLu::name().empty())
      GTEST_SKIP() << "krilu was built without SuperLU";
  }
  static Condition estimate(const CsrView& a, ConditionNorm norm = ConditionNorm::infinity, int threads = 1) {
    return solver::estimate_condition(a, norm, threads, GetParam());
  }
  static bool directly() { return GetParam() == ConditionBy::direct; }
};
INSTANTIATE_TEST_SUITE_P(Solved, Conditions, ::testing::Values(ConditionBy::direct, ConditionBy::gmres),
                         [](const auto& by) { return by.param == ConditionBy::direct ? "Directly" : "ByGmres"; });

TEST_P(Conditions, OfADiagonal) {
  CsrMatrix a = diagonal(50);
  for (Index i = 0; i < 50; ++i) a.values[std::size_t(i)] = (i % 2 ? -0.25 : 0.25) * (1 + (i * 7) % 50);
  for (const ConditionNorm norm : norms) {
    const Condition c = estimate(a, norm);
    EXPECT_NEAR(c.value, 50, 50 * (directly() ? 1e-14 : 1e-5));
    EXPECT_DOUBLE_EQ(c.norm, 12.5);
    EXPECT_NEAR(c.inverse_norm, 4, 4 * (directly() ? 1e-14 : 1e-5));
    EXPECT_GE(c.solves, 4);
    EXPECT_EQ(c.by, directly() ? SparseLu::name() : "krilu gmres with ilu0");
  }
}

TEST_P(Conditions, OfTheTridiagonalLaplacian) {
  // Row i of the inverse, counted from 1, sums up to i (n + 1 - i) / 2.
  const Index n = 120;
  RowMaps rows(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) {
    rows[std::size_t(i)][i] = 2;
    if (i > 0) rows[std::size_t(i)][i - 1] = -1;
    if (i + 1 < n) rows[std::size_t(i)][i + 1] = -1;
  }
  const double expected = 4.0 * (n / 2) * (n / 2 + 1) / 2;
  for (const ConditionNorm norm : norms)
    EXPECT_NEAR(estimate(from_rows(rows), norm).value, expected, expected * (directly() ? 1e-11 : 1e-4));
}

TEST_P(Conditions, OfSmallMatricesLieBetweenAThirdOfTheTrueOneAndIt) {
  int exact = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const double dominance = directly() ? 0.05 + 0.03 * double(seed) : 0.9;
    const CsrMatrix a = random_matrix({.rows = Index(2 + 2 * seed),
                                       .per_row = 2 + double(seed % 20),
                                       .symmetric_pattern = seed % 2 == 0,
                                       .dominance = dominance,
                                       .seed = seed});
    for (const ConditionNorm norm : norms) {
      const double expected = exact_condition(a, norm), found = estimate(a, norm).value;
      EXPECT_LE(found, expected * (1 + 1e-9)) << "seed " << seed;
      EXPECT_GE(found, expected / 3) << "seed " << seed;
      exact += found > expected * 0.999;
      ++all;
    }
  }
  EXPECT_GT(exact, all / 2);
}

TEST_P(Conditions, TheTwoNormsAreNotConfused) {
  // A row of ones above the identity: n + 1 ones in a row, two in a column.
  const CsrMatrix a = [] {
    RowMaps rows(30);
    for (Index i = 0; i < 30; ++i) rows[0][i] = rows[std::size_t(i)][i] = 1;
    return from_rows(rows);
  }();
  EXPECT_NEAR(estimate(a, ConditionNorm::infinity).value, 30 * 30, 1e-3);
  EXPECT_NEAR(estimate(a, ConditionNorm::one).value, 2 * 2, 1e-5);
}

TEST_P(Conditions, WithoutADiagonal) {
  // A cycle of 40 rows: orthogonal.
  RowMaps rows(40);
  for (Index i = 0; i < 40; ++i) rows[std::size_t(i)][(i + 1) % 40] = i % 3 ? 1 : -1;
  const Condition c = estimate(from_rows(rows));
  EXPECT_NEAR(c.value, 1, 1e-5);
  EXPECT_EQ(c.by, directly() ? SparseLu::name() : "krilu gmres");
}

TEST_P(Conditions, OfOneRowAndOfNone) {
  const Condition one = estimate(from_dense({{-3.0}}));
  EXPECT_NEAR(one.value, 1, 1e-6);
  EXPECT_EQ(one.norm, 3);
  EXPECT_EQ(one.solves, 1);
  EXPECT_EQ(estimate(diagonal(0)).value, 0);
}

TEST_P(Conditions, OfSingularMatricesAreInfinite) {
  CsrMatrix zero = from_dense({{1.0}});
  zero.values[0] = 0;
  CsrMatrix stored = from_dense({{1.0, 2.0}, {3.0, 4.0}});  // its second column is two stored zeros
  stored.values[1] = stored.values[3] = 0;
  for (const CsrMatrix& a : {from_dense({{0.0}}), zero, stored, from_dense({{1, 2, 0}, {3, 4, 0}, {5, 6, 0}}),
                             from_dense({{1, 2, 3}, {0, 0, 1}, {0, 0, 2}}), with_empty_rows(60, 3)})
    for (const ConditionNorm norm : norms) {
      const Condition c = estimate(a, norm);
      EXPECT_EQ(c.value, infinity);
      EXPECT_EQ(c.inverse_norm, infinity);
      EXPECT_EQ(c.solves, 0);
      EXPECT_EQ(c.by, directly() ? SparseLu::name() : "the pattern");
    }
  const CsrMatrix dependent = from_dense({{1.0, 2.0}, {2.0, 4.0}});
  if (directly())
    EXPECT_EQ(estimate(dependent).value, infinity);
  else
    EXPECT_NE(refusal([&] { estimate(dependent); }).find("cannot be estimated"), std::string::npos);
}

TEST_P(Conditions, NearlySingularIsLargeAndFinite) {
  const Condition c = estimate(from_dense({{1.0, 1.0}, {1.0, 1.0 + 0x1p-30}}));
  EXPECT_NEAR(c.value / (4 * 0x1p30), 1, 1e-6);
}

TEST_P(Conditions, AreTheSameForAnyNumberOfThreads) {
  const CsrMatrix a = generate("gen:convdiff2d:110x100");
  const double one = estimate(a, ConditionNorm::one, 1).value;
  for (int threads : {2, 3, 5}) EXPECT_EQ(estimate(a, ConditionNorm::one, threads).value, one);
}

TEST_P(Conditions, RefuseWhatHasNone) {
  CsrMatrix wide = from_dense({{1.0, 2.0}});
  EXPECT_NE(refusal([&] { estimate(wide); }).find("1 rows and 2 columns"), std::string::npos);
  CsrMatrix a = from_dense({{1.0, 0.0}, {0.0, 2.0}});
  a.values[1] = nan;
  EXPECT_EQ(refusal([&] { estimate(a); }), "row 2 holds NaN (counting from 1): such a matrix has no condition number");
  a.values[1] = -infinity;
  EXPECT_NE(refusal([&] { estimate(a); }).find("row 2 holds infinity"), std::string::npos);
  CsrView pattern = a;
  pattern.values = nullptr;
  EXPECT_NE(refusal([&] { estimate(pattern); }).find("no values"), std::string::npos);
  a.values[1] = 2;
  EXPECT_NE(refusal([&] { estimate(a, ConditionNorm::one, -1); }).find("threads"), std::string::npos);
  std::swap(a.columns[0], a.columns[1]);
  a.offsets[1] = 2;
  EXPECT_NE(refusal([&] { estimate(a); }).find("columns must ascend"), std::string::npos);
}

TEST(Condition, OfMagnitudesFarApart) {
  if (SparseLu::name().empty()) GTEST_SKIP() << "krilu was built without SuperLU";
  const Condition c = estimate_condition(from_dense({{0x1p500, 0.0}, {0.0, 0x1p-500}}));
  EXPECT_EQ(c.value, 0x1p1000);
  EXPECT_EQ(estimate_condition(from_dense({{0x1p900, 0.0}, {0.0, 0x1p-900}})).value, infinity);
}

TEST(Condition, WithoutMemoryForFactorsIsByGmres) {
  const CsrMatrix a = generate("gen:convdiff2d:20x20");
  const auto with = [&](ConditionBy by) {
    return solver::estimate_condition(a, ConditionNorm::infinity, 1, by, 10000);
  };
  EXPECT_EQ(with(ConditionBy::any).by, "krilu gmres with ilu0");
  const std::string sentence = refusal([&] { with(ConditionBy::direct); });
  EXPECT_EQ(sentence, SparseLu::name().empty() ? "krilu was built without SuperLU"
                                               : SparseLu::name() + " has no room for the factors");
  if (!SparseLu::name().empty()) {
    EXPECT_EQ(estimate_condition(a).by, SparseLu::name());
  }
}

TEST(Condition, SaysWhatNeitherOfTheTwoCouldDo) {
  const CsrMatrix dependent = from_dense({{1.0, 2.0}, {2.0, 4.0}});
  const std::string sentence =
      refusal([&] { solver::estimate_condition(dependent, ConditionNorm::infinity, 1, ConditionBy::gmres); });
  for (const char* words : {"a factorisation was not asked for", "GMRES(", "of the right-hand side"})
    EXPECT_NE(sentence.find(words), std::string::npos) << sentence;
}

TEST(Condition, OfSherman5IsTheOneThatIsPublished) {
  KRILU_REQUIRE_MATRIX(path, "sherman5.mtx.gz");
  // The Matrix Market's page of the matrix: 3.9e+05, estimated.
  const double found = estimate_condition(read_matrix_market(path.string()).matrix, ConditionNorm::one).value;
  EXPECT_GT(found, 3.85e5);
  EXPECT_LT(found, 3.95e5);
}

}  // namespace
}  // namespace krilu::test
