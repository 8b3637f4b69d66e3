// SPDX-License-Identifier: Apache-2.0
// DILU and DIC against their definition, computed densely in long double and compared through all columns of M^-1
// (which determine E); against diag(M) = diag(A); against exact inverses where there are such; strategies, teams,
// heights and spaces against each other bit for bit; and what they refuse, by the caller's row.
#include <fmt/format.h>

#include "precond/factored.hpp"
#include "support/matrices.hpp"

namespace krilu::test {
namespace {

using triangular::Strategy;

template <class Space>
class DiluTest : public ::testing::Test {};
TYPED_TEST_SUITE(DiluTest, Spaces);

/// Small matrices: patterns with all partners, with hardly any, rows longer than two dozen, a missing diagonal's worth.
std::vector<CsrMatrix> dilu_matrices() {
  std::vector<CsrMatrix> all;
  all.push_back(random_matrix({.rows = 40, .per_row = 4, .seed = 101}));
  all.push_back(random_matrix({.rows = 40, .per_row = 4, .symmetric_pattern = false, .seed = 102}));
  all.push_back(random_matrix({.rows = 60, .per_row = 70, .dominance = 1.05, .seed = 103}));
  all.push_back(with_nodes(random_matrix({.rows = 14, .per_row = 3, .seed = 106}), [](Index i) { return 1 + i % 8; }));
  all.push_back(grid(7, 6));
  all.push_back(random_matrix({.rows = 12, .per_row = 0, .seed = 104}));
  all.push_back(from_dense({{-4.0}}));
  return all;
}

TYPED_TEST(DiluTest, IsItsDefinitionInEveryOrdering) {
  for (const CsrMatrix& a : dilu_matrices())
    for (const std::string& ordering : orderings)
      for (int threads : {1, 3}) {
        SCOPED_TRACE(fmt::format("{} rows, {} nonzeros, {}, {} threads", a.rows, a.nnz(), ordering, threads));
        const Factored<TypeParam> m("dilu", a, {.ordering = ordering, .threads = threads});
        const Reference expected("dilu", a, ordering);
        for (Index i = 0; i < a.rows; i += threads) {  // every column once, every third again
          std::vector<double> e(std::size_t(a.rows), 0.0);
          e[std::size_t(i)] = 1;
          ASSERT_LT(difference(m.apply(e), expected.apply(e)), 1e-13) << "column " << i;
        }
      }
}

TEST(Dilu, HasTheDiagonalOfItsMatrix) {
  for (const CsrMatrix& a : dilu_matrices())
    for (const char* ordering : {"natural", "multicolour"}) {
      const Dense m = Factored<exec::Host>("dilu", a, {.ordering = ordering}).dense(), d = to_dense(a);
      double elsewhere = 0;
      for (std::size_t i = 0; i < d.size(); ++i) {
        EXPECT_NEAR(m[i][i], d[i][i], 1e-12 * std::abs(d[i][i])) << "row " << i << " of " << d.size();
        for (std::size_t j = 0; j < d.size(); ++j)
          if (i != j) elsewhere = std::max(elsewhere, std::abs(m[i][j] - d[i][j]));
      }
      if (a.nnz() > 4 * a.rows) {
        EXPECT_GT(elsewhere, 1e-3) << "M is A itself: nothing was tested";
      }
    }
}

CsrMatrix tridiagonal(Index n) { return grid(n, 1, false, 105); }

/// The last row and column full: elimination from the first row on fills nothing in.
CsrMatrix arrowhead(Index n) {
  Dense d(std::size_t(n), std::vector<double>(std::size_t(n), 0.0));
  const auto last = std::size_t(n) - 1;
  for (std::size_t i = 0; i < last; ++i) {
    d[i][i] = 3 + double(i % 5);
    d[i][last] = 0.5 - double(i % 3);
    d[last][i] = 0.25 * double(i % 7) - 1;
  }
  d[last][last] = 4.0 * double(n);
  return from_dense(d);
}

TYPED_TEST(DiluTest, EqualsIlu0AndInvertsWhereNothingFillsIn) {
  for (const CsrMatrix& a : {tridiagonal(300), arrowhead(80)}) {
    const std::vector<double> x = random_values(std::size_t(a.rows), 106);
    std::vector<double> b(x.size());
    sparse::multiply(exec::Host(1), a, x.data(), b.data());
    const std::vector<double> z = Factored<TypeParam>("dilu", a).apply(b);
    EXPECT_LT(difference(z, Factored<TypeParam>("ilu0", a).apply(b)), 1e-13);
    EXPECT_LT(difference(z, x), 1e-12) << "M is A's own LU here";
  }
}

TYPED_TEST(DiluTest, DicIsDiluOnSymmetricMatrices) {
  for (const std::string& ordering : orderings) {
    const CsrMatrix a = random_matrix({.rows = 400, .per_row = 6, .symmetric_values = true, .seed = 107});
    const std::vector<double> r = random_values(400, 108);
    const Setting setting{.ordering = ordering, .threads = 2};
    EXPECT_EQ(bits(Factored<TypeParam>("dic", a, setting).apply(r)),
              bits(Factored<TypeParam>("dilu", a, setting).apply(r)))
        << ordering;
  }
}

TYPED_TEST(DiluTest, TheSameBitsUnderAllStrategiesTeamsAndHeights) { expect_same_bits<TypeParam>("dilu", 109); }

// What the sweeps know of A z is not read again.
TYPED_TEST(DiluTest, WithTheProductItIsTheSameBitsAsOneAfterTheOther) {
  for (const CsrMatrix& a : {grid(60, 60), random_matrix({.rows = 2500, .per_row = 5, .seed = 115}),
                             random_matrix({.rows = 900, .per_row = 4, .symmetric_pattern = false, .seed = 116}),
                             with_nodes(grid(20, 15), [](Index i) { return 1 + i % 8; })}) {
    const std::vector<double> r = random_values(std::size_t(a.rows), 117);
    for (const char* ordering : {"natural", "multicolour"})
      for (int threads : {1, 3})
        for (int height : {1, 4, 8, 0})
          for (Strategy s : {Strategy::serial, Strategy::level_set, Strategy::sync_free, Strategy::automatic}) {
            SCOPED_TRACE(
                fmt::format("{} rows, {}, {}, {} threads, height {}", a.rows, ordering, to_string(s), threads, height));
            const Factored<TypeParam> m(
                "dilu", a, {.ordering = ordering, .threads = threads, .strategy = s, .shift = 0.1, .height = height});
            const auto [z, Az] = m.apply_with_product(r);
            ASSERT_EQ(z, m.apply(r));
            ASSERT_EQ(Az, m.product(z));
          }
  }
}

/// 3 x: added by others to the product with what is stored, or, where that is another matrix's preconditioner's, all.
template <class Space>
class Thrice final : public sparse::Operator<Space, double> {
 public:
  Thrice(Space space, Index rows, const double* stored, bool known)
      : space_(std::move(space)), rows_(rows), stored_(stored), known_(known) {}
  Index rows() const override { return rows_; }
  const double* stored() const override { return stored_; }
  void apply(const double* x, double* y) const override {
    if (known_) FAIL() << "what the sweeps know was computed again";
    space_.for_each(std::size_t(rows_), [=](Index i) { y[i] = 3 * x[i]; });
  }
  void start_others(const double* x) const override { x_ = x; }
  void finish_others(double* y) const override {
    space_.for_each(std::size_t(rows_), [x = x_, y](Index i) { y[i] += 3 * x[i]; });
  }
  void residual(const double*, const double*, double*) const override { FAIL(); }

 private:
  Space space_;
  Index rows_;
  const double* stored_;
  bool known_;
  mutable const double* x_ = nullptr;
};

TYPED_TEST(DiluTest, WhatOthersAddComesToWhatTheSweepsKnow) {
  const CsrMatrix a = grid(9, 7);
  for (int threads : {1, 3}) {
    const Factored<TypeParam> m("dilu", a, {.threads = threads});
    const Thrice<TypeParam> and_thrice(m.split().space, a.rows, m.split().matrix.diagonal.data(), true);
    const auto [z, Az] = m.apply_with_product(random_values(63, 118), &and_thrice);
    const std::vector<double> own = m.product(z);
    for (std::size_t i = 0; i < z.size(); ++i) EXPECT_EQ(Az[i], own[i] + 3 * z[i]);
  }
}

TYPED_TEST(DiluTest, AnotherOperatorIsAppliedItself) {
  const CsrMatrix a = grid(9, 7);
  const Factored<TypeParam> m("dilu", a), another("dilu", grid(9, 7, true));
  const double *const none = nullptr, *const of_another = another.split().matrix.diagonal.data();
  for (const double* stored : {none, of_another}) {
    const Thrice<TypeParam> thrice(m.split().space, a.rows, stored, false);
    const auto [z, Az] = m.apply_with_product(random_values(63, 119), &thrice);
    for (std::size_t i = 0; i < z.size(); ++i) EXPECT_EQ(Az[i], 3 * z[i]);
  }
}

/// z = M^-1 r with A z, and A z by itself.
template <class Space>
std::vector<float> expect_its_product(const Space& space, precond::Preconditioner<Space, float>& m,
                                      const sparse::Operator<Space, float>& A, const std::vector<float>& r) {
  const auto in = space.template allocate<float>(r.size()), z = space.template allocate<float>(r.size()),
             Az = space.template allocate<float>(r.size()), product = space.template allocate<float>(r.size());
  space.copy_in(in, r.data(), r.size());
  m.apply(A, in.data(), z.data(), Az.data());
  A.apply(z.data(), product.data());
  std::vector<float> got(r.size()), expected(r.size());
  space.copy_out(got.data(), Az, r.size());
  space.copy_out(expected.data(), product, r.size());
  EXPECT_EQ(got, expected);
  return got;
}

TYPED_TEST(DiluTest, RoundedItComesWithTheProductOfTheVeryMatrixThatIsAskedFor) {
  const CsrMatrix a = random_matrix({.rows = 900, .per_row = 5, .seed = 120});
  const Factored<TypeParam> m("dilu", a, {.threads = 2});
  const SplitOn<TypeParam>& s = m.split();
  const auto half = std::make_shared<const sparse::RoundedMatrixOf<TypeParam, Half>>(
      sparse::rounded_matrix<Half>(s.space, s.pattern, s.matrix.view(), {.storage = Format::fp16}, nullptr));
  const auto single =
      sparse::rounded_matrix<float>(s.space, s.pattern, s.matrix.view(), {.storage = Format::fp32}, nullptr);
  const auto rounded = m.precond().rounded({.storage = Format::fp16}, half);
  const std::vector<double> values = random_values(900, 121);
  const std::vector<float> r(values.begin(), values.end());
  const sparse::SplitOperator<TypeParam, float, Half> in_half(s.space, half->matrix);
  const sparse::SplitOperator<TypeParam, float> in_single(s.space, single);
  const auto low = expect_its_product(s.space, *rounded, in_half, r);
  const auto raised = expect_its_product(s.space, *rounded, in_single, r);
  EXPECT_NE(low, raised) << "the two matrices are too near each other to tell";
}

TYPED_TEST(DiluTest, NewValuesGiveAFreshFactor) { expect_fresh_factor<TypeParam>("dilu", "rcm", 111); }

TYPED_TEST(DiluTest, AZeroPivotIsNamedByTheCallersRowAndMendedByAShift) {
  for (bool stored : {true, false})
    for (const std::string& ordering : orderings)
      for (int threads : {1, 3}) {
        SCOPED_TRACE(ordering);
        const CsrMatrix a = with_zero_pivot(stored, 113);
        EXPECT_THROW(Factored<TypeParam>("dilu", a, {.ordering = ordering, .threads = threads}), ZeroPivot);
        EXPECT_EQ(complaint([&] { Factored<TypeParam>("dilu", a, {.ordering = ordering, .threads = threads}); }),
                  "dilu: zero pivot in row 124 (counting from 1): give --shift (0.01, say), another ordering, or "
                  "--precond jacobi or none");
        const std::vector<double> r = random_values(200, 114);
        const Factored<TypeParam> mended("dilu", a, {.ordering = ordering, .threads = threads, .shift = 0.01});
        EXPECT_LT(difference(mended.apply(r), Reference("dilu", a, ordering, 0.01).apply(r)), 1e-12);
      }
}

TYPED_TEST(DiluTest, APivotThatCancelsIsZeroToo) {
  // e_2 = 1 - 1 * 1 * 1 = 0.
  const CsrMatrix a = from_dense({{1, 1, 0}, {1, 1, 0}, {0, 0, 1}});
  for (const char* name : {"dilu", "dic", "ilu0", "ic0"}) {
    const std::string text = complaint([&] { Factored<TypeParam>(name, a); });
    EXPECT_TRUE(text.starts_with(std::string(name) + ": zero pivot in row 2 (")) << text;
    EXPECT_EQ(complaint([&] { Factored<TypeParam>(name, a, {.shift = 0.01}); }), "");
  }
}

TYPED_TEST(DiluTest, AFailureIsForgottenWithTheNextValues) {
  const CsrMatrix bad = with_zero_pivot(true, 113);
  CsrMatrix good = bad;
  for (double& v : good.values)
    if (v == 0) v = 7;
  const std::vector<double> r = random_values(200, 115);
  Factored<TypeParam> m("dilu", good);
  const std::vector<double> expected = m.apply(r);
  EXPECT_THROW(m.factor(bad), ZeroPivot);
  EXPECT_THROW(m.factor(bad), ZeroPivot);
  m.factor(good);
  EXPECT_EQ(bits(m.apply(r)), bits(expected));
}

TYPED_TEST(DiluTest, TheShiftGrowsTheDiagonalInItsOwnSign) {
  Dense d = to_dense(random_matrix({.rows = 50, .per_row = 4, .seed = 116}));
  for (std::size_t i = 0; i < 50; i += 2)
    for (double& v : d[i]) v = -v;
  const CsrMatrix a = from_dense(d);
  const std::vector<double> r = random_values(50, 117);
  for (double shift : {0.01, 0.5}) {
    const std::vector<double> z = Factored<TypeParam>("dilu", a, {.shift = shift, .height = 4}).apply(r);
    EXPECT_LT(difference(z, Reference("dilu", a, "natural", shift).apply(r)), 1e-13);
    EXPECT_GT(difference(z, Reference("dilu", a).apply(r)), 1e-3) << "the shift does nothing";
  }
}

TYPED_TEST(DiluTest, SymmetricOnesRefuseOtherMatrices) {
  CsrMatrix values = grid(9, 8, true);
  EXPECT_EQ(complaint([&] { Factored<TypeParam>("dic", values); }), "");
  // The last entry of row 31, above the diagonal, and so row 32 or 40 below it.
  values.values[std::size_t(values.offsets[31]) - 1] *= 2;
  const CsrMatrix below = from_dense({{3, 0, 0}, {1, 3, 0}, {0, 0, 3}});
  const CsrMatrix above = sparse::transpose(below);
  const CsrMatrix crossed = from_dense({{3, 1, 0}, {0, 3, 0}, {1, 0, 3}});
  for (const char* name : {"dic", "ic0"}) {
    const std::string other = name == std::string("dic") ? "dilu" : "ilu0";
    EXPECT_EQ(complaint([&] { Factored<TypeParam>(name, values); }),
              name + std::string(" needs a symmetric matrix, and row 40 is not its column's mirror: use ") + other +
                  " instead");
    for (const CsrMatrix* a : {&below, &above, &crossed}) {
      const std::string text = complaint([&] { Factored<TypeParam>(name, *a, {.threads = 2}); });
      EXPECT_TRUE(text.starts_with(name + std::string(" needs a symmetric matrix, and row "))) << "'" << text << "'";
      EXPECT_EQ(complaint([&] { Factored<TypeParam>(other, *a); }), "");
    }
  }
}

}  // namespace
}  // namespace krilu::test
