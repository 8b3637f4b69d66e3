// SPDX-License-Identifier: Apache-2.0
// What is said of, and done with, a caller's CSR matrix: refusals word for word, products against long double, the
// transpose and the graph against dense matrices, and each fact on matrices small enough to be read.
#include "sparse/csr.hpp"

#include <limits>

#include "krilu/error.hpp"
#include "support/split_matrix.hpp"

namespace krilu::test {
namespace {

CsrMatrix csr(Index cols, std::initializer_list<Offset> offsets, std::initializer_list<Index> columns,
              std::initializer_list<double> values = {}) {
  CsrMatrix a;
  a.rows = Index(offsets.size()) - 1;
  a.cols = cols;
  a.offsets.assign(offsets);
  a.columns.assign(columns);
  a.values.assign(values);
  if (values.size() == 0) a.values.assign(columns.size(), 1.0);
  return a;
}

std::string refusal(const CsrView& a) {
  try {
    require_valid(a);
  } catch (const Error& e) {
    return e.what();
  }
  return "valid";
}

TEST(RequireValid, RefusalsNameTheRow) {
  EXPECT_EQ(refusal(csr(2, {0, 1, 3}, {0, 0, 1})), "valid");
  EXPECT_EQ(refusal(csr(0, {0}, {})), "valid");
  EXPECT_EQ(refusal(csr(3, {0, 0, 2, 2}, {0, 2})), "valid") << "empty rows are a matrix too";
  EXPECT_EQ(refusal(csr(3, {0, 1, 2}, {0, 1})),
            "the matrix has 2 rows and 3 columns: a linear system needs a square one");
  EXPECT_EQ(refusal(CsrView{.rows = 2, .cols = 2}), "the matrix has no row offsets");
  EXPECT_EQ(refusal(csr(2, {1, 1, 2}, {0, 1})), "the first row offset is 1: it must be 0");
  EXPECT_EQ(refusal(csr(3, {0, 2, 1, 3}, {0, 1, 2})), "row 2: its offsets descend from 2 to 1");
  EXPECT_EQ(refusal(csr(2, {0, 1, 3}, {0, 1, 2})), "row 2: column 3 is outside 1 to 2");
  EXPECT_EQ(refusal(csr(2, {0, 1, 2}, {-1, 1})), "row 1: column 0 is outside 1 to 2");
  EXPECT_EQ(refusal(csr(2, {0, 2, 3}, {0, std::numeric_limits<Index>::max(), 1})),
            "row 1: column 2147483648 is outside 1 to 2");
  EXPECT_EQ(refusal(csr(3, {0, 1, 2, 4}, {0, 1, 2, 1})),
            "row 3: column 2 follows column 3: columns must ascend within a row, each once");
  EXPECT_EQ(refusal(csr(2, {0, 1, 3}, {0, 1, 1})),
            "row 2: column 2 follows column 2: columns must ascend within a row, each once");
}

TEST(CsrProducts, AgainstLongDouble) {
  for (std::uint64_t seed : {1, 2, 3}) {
    const CsrMatrix a = random_matrix({.rows = 3000, .per_row = 7, .symmetric_pattern = false, .seed = seed});
    const std::vector<double> x = random_values(3000, seed + 10), b = random_values(3000, seed + 20);
    std::vector<double> one;
    for (int threads : {1, 2, 3}) {
      const exec::Host host(threads);
      std::vector<double> y(3000, 7.0), r(3000, 7.0);
      sparse::multiply(host, a, x.data(), y.data());
      sparse::residual(host, a, x.data(), b.data(), r.data());
      for (std::size_t i = 0; i < 3000; ++i) {
        long double sum = 0, size = std::abs(b[i]);
        for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
          sum += static_cast<long double>(a.values[std::size_t(k)]) * x[std::size_t(a.columns[std::size_t(k)])];
          size += std::abs(a.values[std::size_t(k)]);
        }
        ASSERT_NEAR(y[i], double(sum), 3e-15 * double(size)) << "row " << i << ", seed " << seed;
        ASSERT_NEAR(r[i], double(b[i] - sum), 3e-15 * double(size)) << "row " << i << ", seed " << seed;
      }
      if (threads == 1) one = y;
      EXPECT_EQ(bits(y), bits(one)) << threads << " threads";
    }
  }
}

TEST(CsrProducts, OfARectangleAndWithEmptyRows) {
  const CsrMatrix a = csr(3, {0, 2, 2}, {0, 2}, {2, -3});
  const double x[] = {5, 100, 7}, b[] = {1, 2};
  double y[2], r[2];
  sparse::multiply(exec::Host(1), a, x, y);
  sparse::residual(exec::Host(1), a, x, b, r);
  EXPECT_EQ(y[0], -11);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(r[0], 12);
  EXPECT_EQ(r[1], 2);
}

TEST(Transpose, AgainstADenseOne) {
  for (std::uint64_t seed : {4, 5}) {
    Dense d(20, std::vector<double>(31, 0.0));
    std::mt19937_64 engine(seed);
    for (auto& row : d)
      for (double& v : row)
        if (engine() % 4 == 0) v = double(engine() % 1000) + 1;
    const CsrMatrix t = sparse::transpose(from_dense(d));
    ASSERT_EQ(t.rows, 31);
    ASSERT_EQ(t.cols, 20);
    const Dense td = to_dense(t);
    for (std::size_t i = 0; i < 20; ++i)
      for (std::size_t j = 0; j < 31; ++j) EXPECT_EQ(td[j][i], d[i][j]);
    for (Index i = 0; i < t.rows; ++i)
      for (Offset k = t.offsets[std::size_t(i)] + 1; k < t.offsets[std::size_t(i) + 1]; ++k)
        EXPECT_LT(t.columns[std::size_t(k) - 1], t.columns[std::size_t(k)]) << "seed " << seed;
  }
}

TEST(Adjacency, IsThePatternOfTheSumWithoutTheDiagonal) {
  for (bool symmetric : {false, true})
    for (std::uint64_t seed : {6, 7}) {
      const Index n = 40;
      const CsrMatrix a = random_matrix({.rows = n, .per_row = 3, .symmetric_pattern = symmetric, .seed = seed});
      const CsrMatrix g = sparse::adjacency(a);
      EXPECT_EQ(g.values.size(), 0u);
      const Dense d = to_dense(a);
      CsrMatrix expected;
      expected.offsets.push_back(0);
      for (std::size_t i = 0; i < std::size_t(n); ++i) {
        for (std::size_t j = 0; j < std::size_t(n); ++j)
          if (i != j && (d[i][j] != 0 || d[j][i] != 0)) expected.columns.push_back(Index(j));
        expected.offsets.push_back(Offset(expected.columns.size()));
      }
      EXPECT_EQ(g.columns, expected.columns) << "seed " << seed;
      EXPECT_EQ(g.offsets, expected.offsets) << "seed " << seed;
    }
}

TEST(Symmetry, OfPatternAndValues) {
  const auto of = [](const CsrMatrix& a) { return sparse::symmetry(a); };
  const auto both = of(csr(2, {0, 2, 4}, {0, 1, 0, 1}, {4, -2, -2, 4}));
  EXPECT_TRUE(both.pattern);
  EXPECT_TRUE(both.values);
  EXPECT_EQ(both.largest, 0);
  const auto values_differ = of(csr(2, {0, 2, 4}, {0, 1, 0, 1}, {4, -2, -1, 4}));
  EXPECT_TRUE(values_differ.pattern);
  EXPECT_FALSE(values_differ.values);
  EXPECT_EQ(values_differ.largest, 0.25) << "|-2 - -1| over the diagonal's 4";
  const auto skew = of(csr(2, {0, 1, 2}, {1, 0}, {3, -3}));
  EXPECT_TRUE(skew.pattern);
  EXPECT_EQ(skew.largest, 2);
}

TEST(Symmetry, AMissingPartnerOnEitherSide) {
  for (const CsrMatrix& a : {
           csr(2, {0, 1, 3}, {0, 0, 1}),              // only below
           csr(2, {0, 2, 3}, {0, 1, 1}),              // only above
           csr(3, {0, 2, 3, 5}, {0, 1, 1, 0, 2}),     // one of each, as many above as below
           csr(3, {0, 2, 4, 6}, {0, 2, 0, 1, 1, 2}),  // a cycle
           csr(3, {0, 3, 5, 6}, {0, 1, 2, 0, 1, 2}),  // the last entry of a row above
       }) {
    const sparse::Symmetry s = sparse::symmetry(a);
    EXPECT_FALSE(s.pattern);
    EXPECT_FALSE(s.values);
    EXPECT_EQ(s.largest, std::numeric_limits<double>::infinity());
  }
}

TEST(Symmetry, OfAPatternAloneAndOfRandomMatrices) {
  CsrMatrix a = random_matrix({.rows = 500, .symmetric_values = true, .seed = 8});
  EXPECT_TRUE(sparse::symmetry(a).values);
  CsrView pattern = a;
  pattern.values = nullptr;
  EXPECT_TRUE(sparse::symmetry(pattern).pattern);
  EXPECT_FALSE(sparse::symmetry(pattern).values) << "there are none";
  a.values[std::size_t(a.offsets[250])] *= 1 + 1e-15;  // one unit in the last place is unsymmetric
  EXPECT_TRUE(sparse::symmetry(a).pattern);
  EXPECT_FALSE(sparse::symmetry(a).values);
  EXPECT_LT(sparse::symmetry(a).largest, 1e-14);
  EXPECT_FALSE(sparse::symmetry(random_matrix({.rows = 500, .symmetric_pattern = false, .seed = 8})).pattern);
}

TEST(DiagonalFacts, OfSixRows) {
  // 0: dominant; 1: missing; 2: stored zero; 3: negative, not dominant; 4: empty; 5: alone and negative
  const CsrMatrix a = csr(6, {0, 2, 4, 6, 8, 8, 9}, {0, 1, 0, 2, 1, 2, 0, 3, 5}, {3, -2, 1, 1, 5, 0, 8, -4, -1});
  const sparse::DiagonalFacts f = sparse::diagonal_facts(a);
  EXPECT_EQ(f.missing, 2);
  EXPECT_EQ(f.zero, 1);
  EXPECT_EQ(f.first_bad, 1);
  EXPECT_EQ(f.empty_rows, 1);
  EXPECT_EQ(f.first_empty, 4);
  EXPECT_EQ(f.negative, 2);
  EXPECT_EQ(f.dominant_rows, 3) << "0, 5 and the empty one";
  EXPECT_EQ(f.least_dominance, 0);
  const sparse::DiagonalFacts good = sparse::diagonal_facts(csr(2, {0, 2, 4}, {0, 1, 0, 1}, {3, -2, 4, -1}));
  EXPECT_EQ(good.least_dominance, 0.25);
  EXPECT_EQ(good.first_bad, -1);
  EXPECT_EQ(good.first_empty, -1);
  EXPECT_EQ(good.missing + good.zero + good.empty_rows, 0);
  EXPECT_EQ(sparse::diagonal_facts(csr(1, {0, 1}, {0})).least_dominance, std::numeric_limits<double>::infinity());
}

TEST(Bandwidth, IsTheWidestEntryOnEitherSide) {
  EXPECT_EQ(sparse::bandwidth(csr(0, {0}, {})), 0);
  EXPECT_EQ(sparse::bandwidth(csr(2, {0, 1, 2}, {0, 1})), 0);
  EXPECT_EQ(sparse::bandwidth(csr(4, {0, 1, 2, 3, 5}, {0, 1, 2, 1, 3})), 2);
  EXPECT_EQ(sparse::bandwidth(csr(4, {0, 2, 3, 4, 5}, {0, 3, 1, 2, 3})), 3);
  EXPECT_EQ(sparse::bandwidth(grid(9, 4)), 9);
}

TEST(PatternHash, TellsPatternsApart) {
  const exec::Host host(1);
  const CsrMatrix a = csr(4, {0, 2, 3, 4, 5}, {0, 1, 1, 2, 3});
  const auto hash = [&](const CsrMatrix& m) { return sparse::pattern_hash(host, m); };
  CsrMatrix values = a;
  values.values[2] = 17;
  EXPECT_EQ(hash(values), hash(a)) << "values are no part of a pattern";
  const std::vector<CsrMatrix> others{
      csr(4, {0, 1, 2, 3, 4}, {0, 1, 2, 3}),        // an entry less
      csr(4, {0, 3, 4, 5, 6}, {0, 1, 2, 1, 2, 3}),  // an entry more
      csr(4, {0, 2, 3, 4, 5}, {0, 2, 1, 2, 3}),     // another column
      csr(4, {0, 1, 3, 4, 5}, {0, 1, 1, 2, 3}),     // the same columns, cut elsewhere
      csr(4, {0, 1, 3, 4, 5}, {0, 0, 1, 2, 3}),     // the transpose
      csr(4, {0, 2, 3, 4, 4}, {0, 1, 1, 2}),        // an empty last row
      csr(5, {0, 2, 3, 4, 5, 5}, {0, 1, 1, 2, 3}),  // an empty row more
      csr(4, {0, 1, 2, 4, 5}, {1, 0, 1, 2, 3}),     // rows exchanged
  };
  for (std::size_t k = 0; k < others.size(); ++k) {
    EXPECT_NE(hash(others[k]), hash(a)) << "pattern " << k;
    for (std::size_t l = 0; l < k; ++l) EXPECT_NE(hash(others[k]), hash(others[l])) << k << " and " << l;
  }
}

TEST(PatternHash, DoesNotDependOnTheThreads) {
  CsrMatrix a = random_matrix({.rows = 10000, .per_row = 4, .symmetric_pattern = false, .seed = 9});
  const std::uint64_t one = sparse::pattern_hash(exec::Host(1), a);
  for (int threads : {2, 3, 4}) EXPECT_EQ(sparse::pattern_hash(exec::Host(threads), a), one);
  // Any single entry that moves is seen.
  std::mt19937_64 engine(10);
  for (int trial = 0; trial < 20; ++trial) {
    const auto k = std::size_t(engine() % a.columns.size());
    const Index old = std::exchange(a.columns[k], Index(engine() % 10000));
    if (a.columns[k] != old) {
      EXPECT_NE(sparse::pattern_hash(exec::Host(2), a), one) << "entry " << k;
    }
    a.columns[k] = old;
  }
}

}  // namespace
}  // namespace krilu::test
