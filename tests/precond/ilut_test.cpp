// SPDX-License-Identifier: Apache-2.0
// ILUT(p, tol) against dense rows in long double that follow the three rules word by word: the same entries kept, the
// same values. LU without pivoting where nothing is dropped; what ties, blocks, teams, shifts and bad pivots do.
#include "precond/ilut.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "precond/factored.hpp"
#include "support/not_finite.hpp"

namespace krilu::test {
namespace {

using precond::ilut;
using precond::IlutFactors;
using precond::IlutOptions;

IlutFactors factor(const CsrView& a, const IlutOptions& options, std::vector<Index> blocks = {}, int threads = 1) {
  if (blocks.empty()) blocks = {0, a.rows};
  return ilut(exec::Host(threads), a, blocks, options);
}

struct Row {
  std::vector<long double> value;  // multipliers, pivot and U, dense
  std::vector<char> kept;
};

/// Keeps the `most` largest of the row's kept entries in begin .. end-1; of equal ones those of smaller column.
void keep_largest(Row& row, std::size_t begin, std::size_t end, std::size_t most) {
  std::vector<std::size_t> columns;
  for (std::size_t j = begin; j < end; ++j)
    if (row.kept[j]) columns.push_back(j);
  std::stable_sort(columns.begin(), columns.end(),
                   [&](std::size_t x, std::size_t y) { return std::abs(row.value[x]) > std::abs(row.value[y]); });
  for (std::size_t k = most; k < columns.size(); ++k) row.kept[columns[k]] = 0;
}

/// The rules of the head of ilut.hpp, a dense row at a time.
std::vector<Row> dense_ilut(const CsrView& a, const IlutOptions& options) {
  const Dense d = to_dense(a);
  const std::size_t n = d.size();
  std::vector<Row> rows;
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<long double> w(d[i].begin(), d[i].end());
    long double squares = 0, largest = 0;
    for (long double v : w) {
      squares += v * v;
      largest = std::max(largest, std::abs(v));
    }
    w[i] += (d[i][i] < 0 ? -1 : 1) * options.shift * largest;
    Row row{w, std::vector<char>(n, 0)};
    for (std::size_t k = 0; k < i; ++k) {
      const long double multiplier = w[k] / rows[k].value[k];
      row.value[k] = multiplier;
      row.kept[k] = std::abs(multiplier) > options.tolerance;
      if (!row.kept[k]) continue;
      for (std::size_t j = k + 1; j < n; ++j)
        if (rows[k].kept[j]) w[j] -= multiplier * rows[k].value[j];
    }
    for (std::size_t j = i; j < n; ++j) {
      row.value[j] = w[j];
      row.kept[j] = j == i || std::abs(w[j]) > options.tolerance * std::sqrt(squares);
    }
    keep_largest(row, 0, i, std::size_t(options.most));
    keep_largest(row, i + 1, n, std::size_t(options.most));
    rows.push_back(std::move(row));
  }
  return rows;
}

void expect_is_reference(const CsrView& a, const IlutOptions& options) {
  SCOPED_TRACE(fmt::format("{} rows, {} nonzeros, p {}, tol {}", a.rows, a.nnz(), options.most, options.tolerance));
  const IlutFactors made = factor(a, options);
  EXPECT_EQ(made.zero_pivot, -1);
  const CsrMatrix& f = made.factors;
  require_valid(f);
  const std::vector<Row> rows = dense_ilut(a, options);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<Index> expected;
    for (std::size_t j = 0; j < rows.size(); ++j)
      if (rows[i].kept[j]) expected.push_back(Index(j));
    const auto begin = std::size_t(f.offsets[i]), end = std::size_t(f.offsets[i + 1]);
    ASSERT_EQ(std::vector<Index>(f.columns.begin() + Offset(begin), f.columns.begin() + Offset(end)), expected)
        << "row " << i;
    for (std::size_t q = begin; q < end; ++q) {
      const auto j = std::size_t(f.columns[q]);
      ASSERT_NEAR(f.values[q], double(rows[i].value[j]), 1e-12 * double(std::abs(rows[i].value[i])))
          << "row " << i << ", column " << j;
    }
  }
}

/// Constant coefficients: equal numbers everywhere.
CsrMatrix poisson(Index nx, Index ny) {
  CsrMatrix a = grid(nx, ny);
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
      a.values[std::size_t(k)] = a.columns[std::size_t(k)] == i ? 4 : -1;
  return a;
}

std::vector<CsrMatrix> ilut_matrices() {
  std::vector<CsrMatrix> all;
  all.push_back(random_matrix({.rows = 90, .per_row = 5, .seed = 301}));
  all.push_back(random_matrix({.rows = 90, .per_row = 5, .symmetric_pattern = false, .seed = 302}));
  all.push_back(random_matrix({.rows = 70, .per_row = 40, .symmetric_pattern = false, .dominance = 1.05, .seed = 303}));
  all.push_back(grid(11, 9));
  all.push_back(from_dense({{-4.0}}));
  return all;
}

/// The factors multiplied out: (I + L) U.
Dense product(const CsrView& f) {
  const Dense d = to_dense(f);
  const std::size_t n = d.size();
  Dense m(n, std::vector<double>(n, 0.0));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      long double sum = 0;
      for (std::size_t k = 0; k <= std::min(i, j); ++k) sum += (k < i ? (long double)(d[i][k]) : 1.0L) * d[k][j];
      m[i][j] = double(sum);
    }
  return m;
}

TEST(Ilut, WithoutDroppingItIsLuWithoutPivoting) {
  std::vector<CsrMatrix> all = ilut_matrices();
  all.push_back(poisson(9, 12));
  for (const CsrMatrix& a : all) {
    const IlutOptions options{.most = a.rows, .tolerance = 0};
    Dense lu = to_dense(a);  // multipliers below the diagonal
    const std::size_t n = lu.size();
    std::vector<std::vector<long double>> w;
    for (const std::vector<double>& row : lu) w.emplace_back(row.begin(), row.end());
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t i = k + 1; i < n; ++i) {
        w[i][k] /= w[k][k];
        for (std::size_t j = k + 1; j < n; ++j) w[i][j] -= w[i][k] * w[k][j];
      }
    const CsrMatrix f = factor(a, options).factors;
    const Dense made = to_dense(f), m = product(f);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        ASSERT_NEAR(made[i][j], double(w[i][j]), 1e-13 * double(std::abs(w[i][i]))) << i << ", " << j;
        ASSERT_NEAR(m[i][j], lu[i][j], 1e-13 * std::abs(lu[i][i])) << i << ", " << j;
      }
  }
}

TEST(Ilut, KeepsWhatTheRulesKeep) {
  for (const CsrMatrix& a : ilut_matrices())
    for (int most : {0, 1, 3, 7, 14, 1000})
      for (double tolerance : {0.0, 1e-3, 0.01, 0.1, 2.0}) expect_is_reference(a, {most, tolerance, 0});
}

TEST(Ilut, KeepsWhatTheRulesKeepInLongRows) {
  const CsrMatrix a = random_matrix({.rows = 420, .per_row = 330, .symmetric_pattern = false, .seed = 304});
  for (int most : {40, 60, 150}) expect_is_reference(a, {most, 0, 0});
  expect_is_reference(a, {200, 1e-3, 0});
  // Much fill below the diagonal: more columns wait than are kept sorted.
  expect_is_reference(random_matrix({.rows = 400, .per_row = 4, .symmetric_pattern = false, .seed = 305}), {400, 0, 0});
}

TEST(Ilut, BothRulesDropSomethingOfTheMatricesAbove) {
  for (const CsrMatrix& a : ilut_matrices()) {
    if (a.rows == 1) continue;
    const auto entries = [&](int most, double tolerance) { return factor(a, {most, tolerance, 0}).factors.nnz(); };
    EXPECT_LT(entries(1000, 0.01), entries(1000, 0));
    EXPECT_LT(entries(3, 0), entries(1000, 0));
    EXPECT_LT(entries(3, 0.1), entries(3, 0));
    EXPECT_EQ(entries(0, 0), a.rows);
  }
}

TEST(Ilut, APartHasAtMostPEntries) {
  for (const CsrMatrix& a : {poisson(40, 40), random_matrix({.rows = 800, .per_row = 9, .seed = 306})})
    for (int most : {1, 2, 5, 10}) {
      const CsrMatrix f = factor(a, {most, 0, 0}).factors;
      int fullest = 0;
      for (Index i = 0; i < f.rows; ++i) {
        int lower = 0, pivots = 0, upper = 0;
        for (Offset k = f.offsets[i]; k < f.offsets[i + 1]; ++k) {
          const Index j = f.columns[std::size_t(k)];
          ++(j < i ? lower : j > i ? upper : pivots);
        }
        ASSERT_LE(lower, most);
        ASSERT_LE(upper, most);
        ASSERT_EQ(pivots, 1);
        fullest = std::max({fullest, lower, upper});
      }
      EXPECT_EQ(fullest, most);
    }
}

TEST(Ilut, OfEqualEntriesTheSmallerColumnsStay) {
  const std::size_t n = 12;
  Dense d(n, std::vector<double>(n, 0.0));
  for (std::size_t i = 0; i < n; ++i) {
    d[i][i] = 8;
    d[n - 1][i] = i % 2 ? 1 : -1;  // the last row: equal multipliers
  }
  d[n - 1][n - 1] = 8;
  for (std::size_t j = 1; j < n - 1; ++j) d[0][j] = j % 3 ? 2 : -2;  // the first row: equal entries of U
  d[0][9] = 5;
  d[n - 1][0] = 0;
  const Dense f = to_dense(factor(from_dense(d), {.most = 3, .tolerance = 0}).factors);
  for (std::size_t j = 1; j < n; ++j) {
    EXPECT_EQ(f[0][j] != 0, j == 1 || j == 2 || j == 9) << j;
    if (j < n - 1) {
      EXPECT_EQ(f[n - 1][j] != 0, j <= 3) << j;
    }
  }
  // Fill of row 2 comes as columns 3, 5, 4.
  const Dense e{{1, 0, 0, 1, 0, 1}, {0, 1, 0, 0, 1, 0}, {1, 1, 4, 0, 0, 0},
                {0, 0, 0, 1, 0, 0}, {0, 0, 0, 0, 1, 0}, {0, 0, 0, 0, 0, 1}};
  const Dense g = to_dense(factor(from_dense(e), {.most = 2, .tolerance = 0}).factors);
  EXPECT_EQ(g[2], (std::vector<double>{1, 1, 4, -1, -1, 0}));
}

TEST(Ilut, WhatIsAsLargeAsTheThresholdIsDropped) {
  // The first row's norm is 2, the multipliers in the last are 0.5 and 0.75.
  const CsrMatrix a = from_dense({{1, 1, 1, 1}, {0, 4, 0, 0}, {0, 0, 4, 0}, {0, 2, 3, 8}});
  EXPECT_EQ(to_dense(factor(a, {.tolerance = 0.5}).factors)[0], (std::vector<double>{1, 0, 0, 0}));
  EXPECT_EQ(to_dense(factor(a, {.tolerance = 0.499}).factors)[0], (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(to_dense(factor(a, {.tolerance = 0.5}).factors)[3], (std::vector<double>{0, 0, 0.75, 8}));
  EXPECT_EQ(to_dense(factor(a, {.tolerance = 0.499}).factors)[3], (std::vector<double>{0, 0.5, 0.75, 8}));
  // With a tolerance of 0 these are the zeros, stored ones and those that arise.
  CsrMatrix zeros = from_dense({{2, 4, 0, 6}, {1, 5, 0, 3}, {7, 0, 4, 0}, {0, 0, 0, 1}});
  for (double& v : zeros.values)
    if (v == 7) v = 0;
  EXPECT_EQ(to_dense(factor(zeros, {.tolerance = 0}).factors)[1], (std::vector<double>{0.5, 3, 0, 0}));
  EXPECT_EQ(factor(zeros, {.tolerance = 0}).factors.nnz(), 7);
}

TEST(Ilut, ScalingTheMatrixDropsNothingElse) {
  const CsrMatrix a = random_matrix({.rows = 150, .per_row = 8, .seed = 307});
  const CsrMatrix f = factor(a, {6, 0.02, 0}).factors;
  for (int exponent : {-900, -300, -20, 20, 300, 900}) {  // squares of the first and the last leave the range of double
    CsrMatrix scaled = a;
    for (double& v : scaled.values) v = std::ldexp(v, exponent);
    const CsrMatrix g = factor(scaled, {6, 0.02, 0}).factors;
    ASSERT_EQ(g.columns, f.columns) << exponent;
    for (Index i = 0; i < f.rows; ++i)
      for (Offset k = f.offsets[i]; k < f.offsets[i + 1]; ++k)
        ASSERT_EQ(g.values[k], std::ldexp(f.values[k], f.columns[k] < i ? 0 : exponent)) << "multipliers stay";
  }
}

TEST(Ilut, ABlockIsFactoredAsIfAloneByAnyTeam) {
  // Blocks of one row and of none among them.
  std::vector<Index> sizes{1, 0, 40, 1, 1, 0, 0, 77, 3, 120, 0};
  for (int k = 0; k < 200; ++k) sizes.push_back(Index(k % 7));
  std::vector<Index> blocks{0};
  for (Index size : sizes) blocks.push_back(blocks.back() + size);
  const CsrMatrix full =
      random_matrix({.rows = blocks.back(), .per_row = 300, .symmetric_pattern = false, .seed = 308});
  CsrMatrix a;  // its diagonal blocks
  a.rows = a.cols = full.rows;
  a.offsets.push_back(0);
  std::vector<CsrMatrix> parts;
  for (std::size_t b = 0; b + 1 < blocks.size(); ++b) {
    CsrMatrix part;
    part.rows = part.cols = blocks[b + 1] - blocks[b];
    part.offsets.push_back(0);
    for (Index i = blocks[b]; i < blocks[b + 1]; ++i) {
      for (Offset k = full.offsets[i]; k < full.offsets[i + 1]; ++k) {
        const Index j = full.columns[std::size_t(k)];
        if (j < blocks[b] || j >= blocks[b + 1]) continue;
        a.columns.push_back(j);
        a.values.push_back(full.values[std::size_t(k)]);
        part.columns.push_back(j - blocks[b]);
        part.values.push_back(full.values[std::size_t(k)]);
      }
      a.offsets.push_back(Offset(a.columns.size()));
      part.offsets.push_back(Offset(part.columns.size()));
    }
    parts.push_back(std::move(part));
  }
  const IlutOptions options{5, 0.003, 0.01};
  std::vector<double> values;
  std::vector<Index> columns;
  std::vector<Offset> offsets{0};
  for (std::size_t b = 0; b < parts.size(); ++b) {
    const CsrMatrix f = factor(parts[b], options).factors;
    for (Index j : f.columns) columns.push_back(j + blocks[b]);
    values.insert(values.end(), f.values.begin(), f.values.end());
    for (Index i = 0; i < f.rows; ++i) offsets.push_back(offsets.back() + f.offsets[i + 1] - f.offsets[i]);
  }
  for (int threads : {1, 2, 4}) {
    const IlutFactors made = factor(a, options, blocks, threads);
    EXPECT_EQ(made.zero_pivot, -1);
    EXPECT_EQ(std::vector<Offset>(made.factors.offsets.begin(), made.factors.offsets.end()), offsets);
    EXPECT_EQ(std::vector<Index>(made.factors.columns.begin(), made.factors.columns.end()), columns);
    EXPECT_EQ(bits({made.factors.values.begin(), made.factors.values.end()}), bits(values));
  }
  EXPECT_EQ(factor(a, options).factors.columns, factor(a, options, blocks).factors.columns);
}

TEST(Ilut, ManyEntriesStandInTheirRows) {
  const std::vector<std::pair<Index, Index>> cases{{200000, 200000}, {200000, 100000}, {200000, 1000}, {100000, 50000}};
  for (const auto& [rows, blocks_of] : cases) {
    const CsrMatrix a = grid(rows, 1);  // tridiagonal: U is A's, pivots a recurrence
    std::vector<Index> blocks{0};
    CsrMatrix parts;
    parts.rows = parts.cols = a.rows;
    parts.offsets.push_back(0);
    for (Index i = 0; i < a.rows; ++i) {
      for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
        const Index j = a.columns[k];
        if (j / blocks_of != i / blocks_of) continue;
        parts.columns.push_back(j);
        parts.values.push_back(a.values[k]);
      }
      parts.offsets.push_back(Offset(parts.columns.size()));
      if ((i + 1) % blocks_of == 0) blocks.push_back(i + 1);
    }
    for (int threads : {1, 2}) {
      const CsrMatrix f = factor(parts, {1, 0, 0}, blocks, threads).factors;
      ASSERT_EQ(f.offsets, parts.offsets);
      ASSERT_EQ(f.columns, parts.columns);
      double pivot = 0, above = 0;
      for (Index i = 0; i < f.rows; ++i)
        for (Offset k = f.offsets[i]; k < f.offsets[i + 1]; ++k) {
          const Index j = f.columns[k];
          double expected = parts.values[k];
          if (j < i) expected /= pivot;
          if (j == i) expected = pivot = expected - (i % blocks_of ? f.values[k - 1] * above : 0);
          if (j > i) above = expected;
          ASSERT_NEAR(f.values[k], expected, 1e-14) << i << ", " << j;
        }
    }
  }
}

TEST(Ilut, AZeroPivotIsNamedAndMendedByAShift) {
  for (bool stored : {true, false}) {
    Dense d = to_dense(random_matrix({.rows = 60, .per_row = 4, .seed = 309}));
    for (std::size_t j = 0; j < 60; ++j) d[23][j] = d[j][23] = d[41][j] = d[j][41] = 0;
    d[23][5] = d[23][30] = d[41][2] = 2.5;
    d[23][23] = d[41][41] = stored ? 9 : 0;
    CsrMatrix a = from_dense(d);
    for (double& v : a.values)
      if (v == 9) v = 0;
    for (int threads : {1, 2}) {
      const IlutFactors bad = factor(a, {10, 0.01, 0}, {0, 60}, threads);
      EXPECT_EQ(bad.zero_pivot, 23);
      EXPECT_EQ(to_dense(bad.factors)[23][23], 1);
      EXPECT_EQ(to_dense(bad.factors)[41][41], 1);
      EXPECT_EQ(to_dense(bad.factors)[23][30], 2.5);
    }
    expect_is_reference(a, {10, 0.01, 0.02});
  }
  EXPECT_EQ(factor(from_dense({{2, 1}, {4, 2}}), {}).zero_pivot, 1);  // by elimination
  CsrMatrix empty;
  empty.rows = empty.cols = 3;
  empty.offsets.resize(4);
  std::fill(empty.offsets.begin(), empty.offsets.end(), 0);
  EXPECT_EQ(factor(empty, {}).zero_pivot, 0);
  EXPECT_EQ(factor(empty, {}, {0, 1, 2, 3}, 4).zero_pivot, 0);
  EXPECT_EQ(factor(empty, {.shift = 0.1}).zero_pivot, 0);
}

TEST(Ilut, AShiftGrowsTheDiagonalInItsSign) {
  const CsrMatrix f = factor(from_dense({{-2, 0, 8}, {0, 3, 1}, {0, 0, 5}}), {.tolerance = 0, .shift = 0.25}).factors;
  EXPECT_EQ(to_dense(f), (Dense{{-4, 0, 8}, {0, 3.75, 1}, {0, 0, 6.25}}));
}

TEST(Ilut, NanAndInfinityAreNamedAndGoNoFurther) {
  for (double poison : {nan, infinity})
    for (Offset at : {0, 1, 60, 200, 333}) {
      CsrMatrix a = random_matrix({.rows = 100, .per_row = 5, .seed = 310});
      a.values[std::size_t(at)] = poison;
      const auto row = Index(std::upper_bound(a.offsets.begin(), a.offsets.end(), at) - a.offsets.begin() - 1);
      for (double tolerance : {0.0, 0.01})
        for (double shift : {0.0, 0.1}) {
          const IlutFactors made = factor(a, {4, tolerance, shift});
          EXPECT_EQ(made.zero_pivot, row);
          require_valid(made.factors);
          for (double v : made.factors.values) ASSERT_TRUE(std::isfinite(v));
          EXPECT_EQ(made.factors.offsets[row + 1] - made.factors.offsets[row], 1);
        }
    }
  CsrMatrix all = random_matrix({.rows = 50, .per_row = 30, .seed = 311});
  std::fill(all.values.begin(), all.values.end(), nan);
  EXPECT_EQ(factor(all, {3, 0, 0}).zero_pivot, 0);
  // Overflow during the elimination: 1e300 * 1e300.
  EXPECT_EQ(factor(from_dense({{1, 0, 1e300}, {1e300, 1, 0}, {0, 0, 1}}), {3, 0, 0}).zero_pivot, 1);
}

TEST(Ilut, NoRowsGiveNoFactors) {
  CsrMatrix none;
  none.offsets.push_back(0);
  for (const std::vector<Index>& blocks : {std::vector<Index>{0}, std::vector<Index>{0, 0}}) {
    const IlutFactors made = ilut(exec::Host(2), none, blocks, {});
    EXPECT_EQ(made.factors.nnz(), 0);
    EXPECT_EQ(made.zero_pivot, -1);
  }
}

TEST(Ilut, WhatMakesNoSenseIsRefused) {
  const CsrMatrix a = grid(4, 4);
  const auto said = [&](const IlutOptions& o, const std::vector<Index>& blocks = {0, 16}) {
    return complaint([&] { ilut(exec::Host(2), a, blocks, o); });
  };
  EXPECT_TRUE(said({.most = -1}).starts_with("ilut: -1 entries a row")) << said({.most = -1});
  EXPECT_TRUE(said({.tolerance = -0.5}).starts_with("ilut: a drop tolerance of -0.5"));
  EXPECT_TRUE(said({.tolerance = nan}).starts_with("ilut: a drop tolerance of nan"));
  EXPECT_TRUE(said({.shift = nan}).starts_with("ilut: the shift"));
  for (const std::vector<Index>& blocks :
       {std::vector<Index>{}, {0}, {0, 15}, {1, 16}, {0, 9, 8, 16}, {0, 17}, {0, -1, 16}})
    EXPECT_TRUE(said({}, blocks).starts_with("ilut: the blocks must begin at 0")) << said({}, blocks);
  EXPECT_EQ(said({}, {0, 4, 16}), "ilut: row 1 has an entry outside of its block: drop such entries first");
  CsrMatrix wide = grid(4, 4);
  wide.cols = 17;
  EXPECT_TRUE(complaint([&] { factor(wide, {}); }).starts_with("ilut: the matrix has 16 rows and 17 columns"));
}

}  // namespace
}  // namespace krilu::test
