// SPDX-License-Identifier: Apache-2.0
// Elimination over a pattern against the same on dense matrices in long double that keep the pattern's places and
// nothing else: ILU(0), ILU(k), complete LU, DILU's pivots. The same bits for all teams, whether they share blocks or
// wait for one another's rows, and from A's own values; bad pivots, of which the first row is told.
#include "precond/elimination.hpp"

#include <fmt/format.h>

#include "krilu/io.hpp"
#include "precond/factored.hpp"
#include "precond/fill.hpp"
#include "support/matrices.hpp"
#include "support/not_finite.hpp"

namespace krilu::test {
namespace {

using precond::eliminate;
using precond::EliminationPattern;
using precond::FilledPattern;
using precond::Updated;

/// A's values over a pattern with levels of fill.
struct Laid {
  Laid(const CsrView& a, int level, std::vector<Index> of_blocks = {})
      : blocks(std::move(of_blocks)), pattern(precond::fill_pattern(exec::Host(1), a, level)), rows(a.rows) {
    for (Index i = 0; i < rows; ++i)
      for (Offset k = pattern.offsets[std::size_t(i)]; k < pattern.offsets[std::size_t(i) + 1]; ++k) {
        if (pattern.columns[std::size_t(k)] == i) diagonal.push_back(k);
        const Offset from = pattern.source[std::size_t(k)];
        value.push_back(from >= 0 ? a.values[from] : 0.0);
      }
  }
  EliminationPattern view() const { return {pattern.view(rows), diagonal.data(), blocks}; }
  Index eliminated(Updated updated, int threads) {
    return eliminate(exec::Host(threads), view(), updated, value.data());
  }

  std::vector<Index> blocks;
  FilledPattern pattern;
  Index rows;
  std::vector<Offset> diagonal;
  std::vector<double> value;
};

/// IKJ over the places that `laid` has [Saad 2003, Algorithm 10.4]; multipliers below the diagonal.
LongDense dense_elimination(const Laid& laid, Updated updated) {
  const auto n = std::size_t(laid.rows);
  LongDense m(n, std::vector<long double>(n, 0));
  std::vector<std::vector<char>> has(n, std::vector<char>(n, 0));
  for (std::size_t i = 0; i < n; ++i)
    for (Offset k = laid.pattern.offsets[i]; k < laid.pattern.offsets[i + 1]; ++k) {
      const auto j = std::size_t(laid.pattern.columns[std::size_t(k)]);
      has[i][j] = 1;
      m[i][j] = laid.value[std::size_t(k)];
    }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < i; ++k) {
      if (!has[i][k]) continue;
      m[i][k] /= m[k][k];
      for (std::size_t j = k + 1; j < n; ++j)
        if (has[i][j] && has[k][j] && (updated == Updated::pattern || j == i)) m[i][j] -= m[i][k] * m[k][j];
    }
  return m;
}

std::vector<NamedMatrix> elimination_matrices() {
  std::vector<NamedMatrix> all;
  all.push_back({"random", random_matrix({.rows = 120, .per_row = 4, .seed = 901})});
  all.push_back({"unsymmetric", random_matrix({.rows = 120, .per_row = 4, .symmetric_pattern = false, .seed = 902})});
  all.push_back({"long rows", with_long_rows(150, {20, 60, 120}, false, 903)});
  all.push_back({"grid", grid(13, 9)});
  all.push_back({"27 points", generate("gen:convdiff3d27:5x4x4")});
  all.push_back({"arrow", arrow(60, 7)});
  all.push_back({"diagonal", diagonal(30)});
  all.push_back({"one row", from_dense({{-4.0}})});
  return all;
}

void expect_dense_elimination(Laid laid, Updated updated) {
  const LongDense expected = dense_elimination(laid, updated);
  EXPECT_EQ(laid.eliminated(updated, 1), -1);
  for (Index i = 0; i < laid.rows; ++i)
    for (Offset k = laid.pattern.offsets[std::size_t(i)]; k < laid.pattern.offsets[std::size_t(i) + 1]; ++k) {
      const auto j = std::size_t(laid.pattern.columns[std::size_t(k)]);
      const double scale = double(std::abs(expected[std::size_t(i)][std::size_t(i)]));
      ASSERT_NEAR(laid.value[std::size_t(k)], double(expected[std::size_t(i)][j]), 1e-13 * std::max(1.0, scale))
          << "row " << i << ", column " << j;
    }
}

TEST(Elimination, IsTheDenseOneOverThePattern) {
  for (const NamedMatrix& m : elimination_matrices())
    for (int level : {0, 1, 2, 5, int(m.a.rows)}) {
      SCOPED_TRACE(fmt::format("{}, level {}", m.name, level));
      expect_dense_elimination(Laid(m.a, level), Updated::pattern);
    }
}

TEST(Elimination, UpdatesOfPivotsAloneAreDilu) {
  for (const NamedMatrix& m : elimination_matrices())
    for (int level : {0, 1}) {
      SCOPED_TRACE(fmt::format("{}, level {}", m.name, level));
      Laid laid(m.a, level);
      expect_dense_elimination(laid, Updated::pivots);
      // The upper triangle stays as it is.
      const std::vector<double> before = laid.value;
      laid.eliminated(Updated::pivots, 1);
      for (Index i = 0; i < laid.rows; ++i)
        for (Offset k = laid.diagonal[std::size_t(i)] + 1; k < laid.pattern.offsets[std::size_t(i) + 1]; ++k)
          ASSERT_EQ(laid.value[std::size_t(k)], before[std::size_t(k)]);
    }
}

TEST(Elimination, WithAllFillItIsLu) {
  const CsrMatrix a = random_matrix({.rows = 70, .per_row = 5, .symmetric_pattern = false, .seed = 904});
  Laid laid(a, 70);
  laid.eliminated(Updated::pattern, 1);
  const Dense d = to_dense(a);
  Dense f(70, std::vector<double>(70, 0.0));
  for (std::size_t i = 0; i < 70; ++i)
    for (Offset k = laid.pattern.offsets[i]; k < laid.pattern.offsets[i + 1]; ++k)
      f[i][std::size_t(laid.pattern.columns[std::size_t(k)])] = laid.value[std::size_t(k)];
  for (std::size_t i = 0; i < 70; ++i)
    for (std::size_t j = 0; j < 70; ++j) {
      double product = i <= j ? f[i][j] : 0;
      for (std::size_t k = 0; k < i && k <= j; ++k) product += f[i][k] * f[k][j];
      ASSERT_NEAR(product, d[i][j], 1e-12) << i << ", " << j;
    }
}

/// Random blocks of several sizes, one of them a row; `offsets` as EliminationPattern::blocks has them.
CsrMatrix block_diagonal(const std::vector<Index>& offsets, std::uint64_t seed) {
  RowMaps rows(std::size_t(offsets.back()));
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    std::uniform_int_distribution<Index> place(offsets[b], offsets[b + 1] - 1);
    for (Index i = offsets[b]; i < offsets[b + 1]; ++i)
      for (int k = 0; k < 4; ++k) rows[std::size_t(i)][place(engine)] = value(engine);
  }
  return dominant(std::move(rows));
}

TEST(Elimination, TheSameBitsForAnyTeamWithOneBlockOrMany) {
  std::vector<Index> many{0}, few{0, 700, 1500};
  for (Index size = 1; many.back() < 1500; size = size % 60 + 7)
    many.push_back(std::min<Index>(1500, many.back() + size));
  ASSERT_GT(many.size(), 17u) << "four threads share these, and else wait for one another";
  for (const auto& blocks : {std::vector<Index>{}, std::vector<Index>{0, 1500}, few, many})
    for (const CsrMatrix& a :
         {blocks.size() > 2 ? block_diagonal(blocks, 905) : random_matrix({.rows = 1500, .per_row = 3, .seed = 906}),
          blocks.size() > 2 ? block_diagonal(blocks, 907) : grid(50, 30)})
      for (Updated updated : {Updated::pattern, Updated::pivots})
        for (int level : {0, 1}) {
          const Laid laid(a, level, blocks);
          Laid alone = laid;
          alone.blocks.clear();
          EXPECT_EQ(alone.eliminated(updated, 1), -1);
          ASSERT_NE(alone.value, laid.value);
          for (int threads : {1, 2, 3, 4})
            for (int again = 0; again < 3; ++again) {
              Laid other = laid;
              EXPECT_EQ(other.eliminated(updated, threads), -1);
              ASSERT_EQ(bits(other.value), bits(alone.value))
                  << threads << " threads, " << blocks.size() << " offsets of blocks, level " << level;
            }
        }
}

TEST(Elimination, FromTheMatrixItselfTheSameBits) {
  std::vector<Index> many{0};
  while (many.back() < 1500) many.push_back(many.back() + 30);
  for (const auto& blocks : {std::vector<Index>{}, many})
    for (const CsrMatrix& a :
         {blocks.empty() ? grid(50, 30) : block_diagonal(many, 909),
          blocks.empty() ? random_matrix({.rows = 1500, .per_row = 3, .seed = 910}) : block_diagonal(many, 911)})
      for (int level : {0, 1, 2}) {
        CsrMatrix b = a;  // with a bad pivot
        const Index *const first = b.columns.data() + b.offsets[40], *const last = b.columns.data() + b.offsets[41];
        const Index* const own = std::lower_bound(first, last, 40);
        std::fill(b.values.data() + b.offsets[40], b.values.data() + b.offsets[41], 0.0);
        b.values[std::size_t(own - b.columns.data())] = nan;
        for (const CsrView& m : {a.view(), b.view()})
          for (int threads : {1, 2, 4}) {
            Laid laid(m, level, blocks), other = laid;
            const Index bad = laid.eliminated(Updated::pattern, 1);
            EXPECT_EQ(bad, m.values == a.values.data() ? -1 : 40);
            std::fill(other.value.begin(), other.value.end(), nan);
            EXPECT_EQ(
                eliminate(exec::Host(threads), other.view(), other.pattern.source.data(), m.values, other.value.data()),
                bad);
            ASSERT_EQ(bits(other.value), bits(laid.value)) << threads << " threads, level " << level;
          }
      }
}

TEST(Elimination, ABadPivotBecomesOneAndTheFirstRowIsTold) {
  std::vector<Index> many{0};
  while (many.back() < 900) many.push_back(many.back() + 25);
  const CsrMatrix a = block_diagonal(many, 908);
  for (const std::vector<Index>& blocks : {std::vector<Index>{}, many})
    for (Updated updated : {Updated::pattern, Updated::pivots})
      for (int threads : {1, 2, 4})
        for (double bad : {0.0, -0.0, nan, infinity, -infinity}) {
          SCOPED_TRACE(fmt::format("{} threads, {} offsets, pivot {}", threads, blocks.size(), bad));
          Laid laid(a, 0, blocks), good(a, 0, blocks);
          good.eliminated(updated, 1);
          for (Index i : {777, 301, 420}) {
            for (Offset k = laid.pattern.offsets[std::size_t(i)]; k < laid.diagonal[std::size_t(i)]; ++k)
              laid.value[std::size_t(k)] = 0;
            laid.value[std::size_t(laid.diagonal[std::size_t(i)])] = bad;
          }
          Laid ones = laid;
          for (Index i : {777, 301, 420}) ones.value[std::size_t(ones.diagonal[std::size_t(i)])] = 1;
          EXPECT_EQ(ones.eliminated(updated, 1), -1);
          EXPECT_EQ(laid.eliminated(updated, threads), 301);
          ASSERT_EQ(bits(laid.value), bits(ones.value)) << "others are eliminated as if it were one";
          // Blocks before the first bad row know nothing of it.
          for (Offset k = 0; k < laid.pattern.offsets[300]; ++k)
            ASSERT_EQ(laid.value[std::size_t(k)], good.value[std::size_t(k)]);
        }
}

TEST(Elimination, APivotThatCancelsIsZeroAndOneThatOverflowsIsBad) {
  for (Updated updated : {Updated::pattern, Updated::pivots}) {
    Laid cancels(from_dense({{1, 1, 0}, {1, 1, 0}, {0, 0, 1}}), 0);
    EXPECT_EQ(cancels.eliminated(updated, 1), 1);
    Laid denormal(from_dense({{1e-310, 0}, {0, 1}}), 0);  // its reciprocal is infinite
    EXPECT_EQ(denormal.eliminated(updated, 1), 0);
    Laid tiny(from_dense({{1e-300, 0}, {0, 1e300}}), 0);
    EXPECT_EQ(tiny.eliminated(updated, 1), -1);
    EXPECT_EQ(tiny.value, (std::vector<double>{1e-300, 1e300}));
  }
}

TEST(Elimination, AMissingDiagonalIsAZeroThatFillMayMend) {
  const CsrMatrix a = from_dense({{2, 1, 0}, {1, 0, 1}, {0, 1, 3}});  // e_2 = 0 - 1 / 2
  Laid laid(a, 0);
  EXPECT_EQ(laid.eliminated(Updated::pattern, 1), -1);
  EXPECT_EQ(laid.value, (std::vector<double>{2, 1, 0.5, -0.5, 1, -2, 5}));
  Laid first(from_dense({{0, 1}, {1, 1}}), 0);
  EXPECT_EQ(first.eliminated(Updated::pattern, 1), 0);
}

TEST(Elimination, NoRowsAreNoTrouble) {
  CsrMatrix none;
  none.offsets.push_back(0);
  for (const std::vector<Index>& blocks : {std::vector<Index>{}, {0}, {0, 0}})
    for (int threads : {1, 3}) EXPECT_EQ(Laid(none, 0, blocks).eliminated(Updated::pattern, threads), -1);
}

}  // namespace
}  // namespace krilu::test
