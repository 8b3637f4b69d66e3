// SPDX-License-Identifier: Apache-2.0
// The GPU's storage against the caller's matrix: products and residuals in every layout within the rounding of a long
// double reference, each nonzero stored once, new values over an old pattern, the same bits on every run; and the facts
// that an analysis asks for against the host's, with every way in which a matrix can be invalid.
#include <limits>

#include "support/sliced_matrix.cuh"

namespace krilu::test {
namespace {

using exec::Cuda;
using sparse::DeviceCsr;

constexpr Rows sliced_layouts[] = {Rows::as_given, Rows::by_level, Rows::by_level_of_a_random_order, Rows::in_blocks};

void expect_products(const Cuda& ex, const GpuCase& c, std::uint64_t seed) {
  const auto n = std::size_t(c.a.rows);
  const std::vector<double> x = random_values(n, seed), b = random_values(n, seed + 1);
  for (Rows rows : sliced_layouts) {
    SCOPED_TRACE(c.name + ", rows " + to_string(rows) + ", seed " + std::to_string(seed));
    SlicedOn s(ex, c.a, rows, seed);
    const auto x_there = s.in(x), b_there = s.in(b), y = s.in(std::vector<double>(n, 1e300));
    const auto apply = [&] {
      const sparse::SplitOperator<Cuda, double> A(ex, s.matrix);
      EXPECT_EQ(A.rows(), c.a.rows);
      A.apply(x_there.data(), y.data());
      return s.out(y);
    };
    const std::vector<double> product = apply();
    expect_product(c.a, x, nullptr, product);
    EXPECT_EQ(bits(apply()), bits(product)) << "another run, other bits";

    const sparse::SplitOperator<Cuda, double> A(ex, s.matrix);
    A.residual(b_there.data(), x_there.data(), y.data());
    const std::vector<double> residual = s.out(y);
    expect_product(c.a, x, &b, residual);
    A.residual(b_there.data(), x_there.data(), b_there.data());
    EXPECT_EQ(bits(s.out(b_there)), bits(residual)) << "in place of b";

    CsrMatrix other = c.a;
    for (std::size_t k = 0; k < other.values.size(); ++k) other.values[k] *= 1 + 0.25 * double(k % 5);
    s.fill(other);
    expect_product(other, x, nullptr, apply());
    s.fill(c.a);
    EXPECT_EQ(bits(apply()), bits(product)) << "the values before, once more";
  }
}

/// Every nonzero has one place: below the diagonal, on it, or above.
void expect_stored_once(const Cuda& ex, const GpuCase& c) {
  for (Rows rows : sliced_layouts) {
    SCOPED_TRACE(c.name + ", rows " + to_string(rows));
    const SlicedOn s(ex, c.a, rows, 431);
    const sparse::SlicedPattern& p = *s.pattern;
    const auto lower = to_host(ex, p.lower_source()), upper = to_host(ex, p.upper_source());
    const auto diagonal = to_host(ex, p.diagonal_source());
    EXPECT_EQ(Offset(lower.size()), p.lower_entries());
    EXPECT_EQ(Offset(upper.size()), p.upper_entries());
    ASSERT_EQ(Index(diagonal.size()), c.a.rows);
    std::vector<Offset> all = lower;
    all.insert(all.end(), upper.begin(), upper.end());
    for (Offset k : diagonal)
      if (k >= 0) all.push_back(k);
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all, natural_order(c.a.nnz()));
    for (std::size_t k = 0; k < diagonal.size(); ++k) {
      if (diagonal[k] < 0) continue;
      ASSERT_EQ(c.a.columns[std::size_t(diagonal[k])], s.row[k]) << "place " << k;
    }
    EXPECT_GT(p.bytes(), 8 * (lower.size() + upper.size()));
  }
}

TEST(SlicedSmall, ProductsInEveryLayout) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : small_cases()) expect_products(ex, c, 421);
}

TEST(SlicedSmall, EveryNonzeroIsStoredOnce) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : small_cases()) expect_stored_once(ex, c);
}

TEST(SlicedSmall, NoRows) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (Rows rows : sliced_layouts) {
    const SlicedOn s(ex, from_rows({}), rows);
    EXPECT_EQ(s.pattern->rows(), 0);
    EXPECT_EQ(s.pattern->slices(), 0);
    const sparse::SplitOperator<Cuda, double> A(ex, s.matrix);
    A.apply(nullptr, nullptr);
    ex.synchronise();
  }
}

TEST(Sliced, ProductsInEveryLayout) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : large_cases()) expect_products(ex, c, 422);
}

TEST(Sliced, EveryNonzeroIsStoredOnce) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : large_cases()) expect_stored_once(ex, c);
}

// --- facts ---------------------------------------------------------------------------------------------------------

/// Where each case differs from the one before in something that facts are asked for.
std::vector<GpuCase> fact_cases() {
  std::vector<GpuCase> all = small_cases();
  all.push_back({"symmetric", generate("gen:poisson2d:19x13")});
  all.push_back(
      {"symmetric, seed 441", random_matrix({.rows = 300, .per_row = 5, .symmetric_values = true, .seed = 441})});
  CsrMatrix a = grid(20, 15, true);
  a.values[std::size_t(a.offsets[150])] *= 1 + 1e-15;  // one entry, in its last bits
  all.push_back({"one value off", a});
  a = grid(20, 15, true);
  RowMaps rows(300);
  for (Index i = 0; i < 300; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
      const Index j = a.columns[std::size_t(k)];
      if (i == j && i % 50 == 17) continue;  // missing
      rows[std::size_t(i)][j] = i != j ? a.values[std::size_t(k)] : i % 50 == 9 ? 0.0 : i % 3 ? 4.0 : -4.0;
    }
  all.push_back({"diagonal of two signs with zeros and gaps", from_rows(rows)});
  rows[297].erase(298);
  all.push_back({"one entry without a partner", from_rows(rows)});
  rows[2][290] = 1;
  all.push_back({"one below and one above without partners", from_rows(rows)});
  for (auto& [j, v] : rows[9]) v = 0;
  all.push_back({"a row of zeros", from_rows(rows)});
  return all;
}

TEST(CsrFactsSmall, AreTheHosts) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : fact_cases()) {
    SCOPED_TRACE(c.name);
    const DeviceCsr there = sparse::upload(ex, c.a, true);
    const sparse::CsrFacts f = sparse::facts(ex, there);
    const sparse::Symmetry symmetry = sparse::symmetry(c.a);
    const sparse::DiagonalFacts diagonal = sparse::diagonal_facts(c.a);
    EXPECT_TRUE(f.valid);
    EXPECT_EQ(f.symmetry.pattern, symmetry.pattern);
    if (c.a.nnz() > 0) {
      EXPECT_EQ(f.symmetry.values, symmetry.values);
    }
    EXPECT_EQ(f.diagonal.missing, diagonal.missing);
    EXPECT_EQ(f.diagonal.zero, diagonal.zero);
    EXPECT_EQ(f.diagonal.first_bad, diagonal.first_bad);
    EXPECT_EQ(f.diagonal.negative, diagonal.negative);
    EXPECT_EQ(f.diagonal.least_dominance, diagonal.least_dominance);
    EXPECT_EQ(f.first_not_finite, -1);
    EXPECT_EQ(sparse::first_not_finite(ex, there), -1);
    // Of the pattern alone.
    const sparse::CsrFacts bare = sparse::facts(ex, sparse::upload(ex, c.a, false));
    EXPECT_TRUE(bare.valid);
    EXPECT_EQ(bare.symmetry.pattern, symmetry.pattern);
  }
  EXPECT_TRUE(sparse::facts(ex, sparse::upload(ex, from_rows({}), true)).valid);
}

TEST(CsrFactsSmall, TheFirstRowThatIsNotFinite) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const CsrMatrix a = random_matrix({.rows = 400, .per_row = 5, .seed = 442});
  const double infinity = std::numeric_limits<double>::infinity();
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity})
    for (Index row : {0, 1, 255, 256, 399}) {
      CsrMatrix m = a;
      m.values[std::size_t(m.offsets[std::size_t(row)])] = bad;
      m.values[std::size_t(m.offsets[400]) - 1] = bad;  // the last row's last
      const DeviceCsr there = sparse::upload(ex, m, true);
      EXPECT_EQ(sparse::facts(ex, there).first_not_finite, row);
      EXPECT_EQ(sparse::first_not_finite(ex, there), row);
      EXPECT_TRUE(sparse::facts(ex, there).valid);
    }
}

TEST(CsrFactsSmall, InvalidMatricesAreSeenAndNotReadBeyondTheirEnds) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const CsrMatrix a = random_matrix({.rows = 400, .per_row = 5, .seed = 443});
  const auto expect_invalid = [&](const CsrMatrix& m, const std::string& what) {
    EXPECT_FALSE(sparse::facts(ex, sparse::upload(ex, m, true)).valid) << what;
    EXPECT_FALSE(sparse::facts(ex, sparse::upload(ex, m, false)).valid) << what << ", pattern alone";
  };
  for (Index row : {0, 7, 255, 256, 398, 399}) {
    const auto first = std::size_t(a.offsets[std::size_t(row)]),
               last = std::size_t(a.offsets[std::size_t(row) + 1]) - 1;
    const std::string where = " in row " + std::to_string(row);
    for (Index column : {400, 100000, std::numeric_limits<Index>::max(), -1, std::numeric_limits<Index>::min()}) {
      CsrMatrix m = a;
      m.columns[column < 0 ? first : last] = column;
      expect_invalid(m, "column " + std::to_string(column) + where);
    }
    if (first < last) {
      CsrMatrix m = a;
      std::swap(m.columns[first], m.columns[last]);
      expect_invalid(m, "descending" + where);
      m = a;
      m.columns[last] = m.columns[last - 1];
      expect_invalid(m, "twice" + where);
    }
  }
  for (Offset offset : {1, -5}) {
    CsrMatrix m = a;
    m.offsets[0] = offset;
    expect_invalid(m, "first offset " + std::to_string(offset));
  }
  for (Offset offset : {-1, 0, 1 << 30, std::numeric_limits<Offset>::min()}) {
    CsrMatrix m = a;
    m.offsets[200] = offset;
    expect_invalid(m, "offset " + std::to_string(offset) + " in the middle");
  }
  EXPECT_TRUE(sparse::facts(ex, sparse::upload(ex, a, true)).valid);
}

}  // namespace
}  // namespace krilu::test
