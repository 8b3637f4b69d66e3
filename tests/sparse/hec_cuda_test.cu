// SPDX-License-Identifier: Apache-2.0
// HEC on a GPU: products and residuals within the rounding of a long double reference for every width, leftovers added
// up by threads, warps and blocks; the same bits on every run; NaN only in the rows that read it.
#include "sparse/hec.cuh"
#include "support/gpu.cuh"
#include "support/hec.hpp"

namespace krilu::test {
namespace {

using exec::Cuda;
using exec::Host;
using sparse::HecForm;
using CudaHec = sparse::Hec<Cuda, double>;
using CudaOperator = sparse::HecOperator<Cuda, double>;

/// The product, so that other forms of the matrix can be compared with it.
std::vector<double> expect_products_of(const Cuda& ex, const CsrMatrix& a, const CudaHec& m) {
  const auto n = std::size_t(a.rows);
  const std::vector<double> x = random_values(n, 521), b = random_values(n, 522), d = random_values(n, 524);
  const CudaOperator A(ex, m);
  EXPECT_EQ(A.rows(), a.rows);
  const auto x_there = to_device(ex, x), b_there = to_device(ex, b);
  const auto y = to_device(ex, std::vector<double>(n, 1e300));
  A.apply(x_there.data(), y.data());
  const std::vector<double> product = to_host(ex, y);
  expect_product(a, x, nullptr, product);
  A.residual(b_there.data(), x_there.data(), y.data());
  const std::vector<double> residual = to_host(ex, y);
  expect_product(a, x, &b, residual);
  A.residual(b_there.data(), x_there.data(), b_there.data());
  EXPECT_EQ(bits(to_host(ex, b_there)), bits(residual)) << "in place of b";
  A.apply(x_there.data(), y.data());
  EXPECT_EQ(bits(to_host(ex, y)), bits(product)) << "another run, other bits";
  if (A.can_scale()) {
    const auto d_there = to_device(ex, d), z = to_device(ex, std::vector<double>(n, 1e300));
    A.apply_scaled(d_there.data(), x_there.data(), z.data(), y.data());
    std::vector<double> scaled = x;
    for (std::size_t i = 0; i < n; ++i) scaled[i] *= d[i];
    EXPECT_EQ(bits(to_host(ex, z)), bits(scaled));
    expect_product(a, scaled, nullptr, to_host(ex, y));
  }

  std::vector<double> spoilt = x;
  spoilt[n / 2] = std::numeric_limits<double>::quiet_NaN();
  const auto spoilt_there = to_device(ex, spoilt);
  A.apply(spoilt_there.data(), y.data());
  const std::vector<double> z = to_host(ex, y);
  for (std::size_t i = 0; i < n; ++i) {
    const auto begin = a.columns.begin() + a.offsets[i], end = a.columns.begin() + a.offsets[i + 1];
    if (std::binary_search(begin, end, Index(n / 2))) {
      EXPECT_TRUE(std::isnan(z[i])) << "row " << i;
    } else {
      EXPECT_EQ(z[i], product[i]) << "row " << i;
    }
  }
  return product;
}

/// Of each width, with columns as they are and short ones: the same bits where a row has one lane.
void expect_products(const Cuda& ex, const GpuCase& c, const std::vector<Index>& widths) {
  for (Index width : widths) {
    SCOPED_TRACE(c.name + ", width " + std::to_string(width));
    const auto build = [&] { return CudaHec(ex, Host(2), c.a, HecForm::product, width); };
    const CudaHec m = build(), s = sparse::shortened(ex, build());
    const sparse::Hec<Host, double> here(Host(2), Host(2), c.a, HecForm::product, width);
    EXPECT_EQ(m.width(), here.width());
    EXPECT_EQ(m.bytes(), here.bytes());
    EXPECT_LE(s.bytes(), m.bytes());
    const std::vector<double> product = expect_products_of(ex, c.a, m);
    SCOPED_TRACE("columns of " + std::to_string(s.column_bytes()) + " bytes");
    const std::vector<double> with_short = expect_products_of(ex, c.a, s);
    if (CudaOperator(ex, s).lanes() == 1 && CudaOperator(ex, m).lanes() == 1) {
      EXPECT_EQ(bits(with_short), bits(product));
    }
  }
}

/// What columns of a regular matrix are stored in, and in how many slots.
std::pair<int, Index> columns_of(const Cuda& ex, const CsrMatrix& a) {
  const CudaHec m = sparse::shortened(ex, sparse::regular_hec<double>(ex, sparse::upload(ex, a, true), longest_row(a)));
  expect_products_of(ex, a, m);
  return {m.column_bytes(), m.width()};
}

/// Row i has its diagonal and a neighbour `away` rows off, which is another distance in every third row.
CsrMatrix with_neighbours_away(Index rows, Index away, Index third) {
  CsrMatrix a;
  a.rows = a.cols = rows;
  a.offsets = {0};
  for (Index i = 0; i < rows; ++i) {
    a.columns.push_back(i);
    a.values.push_back(4 + 1.0 / (1 + i));
    if (const Index j = i + (i % 3 == 0 ? third : away); j < rows) {
      a.columns.push_back(j);
      a.values.push_back(-1 - 1.0 / (2 + i));
    }
    a.offsets.push_back(Offset(a.columns.size()));
  }
  return a;
}

TEST(HecSmall, ColumnsAreAsShortAsTheyCanBe) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  using Columns = std::pair<int, Index>;
  // Lines, planes and the ends of both within 32 rows: slots stay as many as a row has entries.
  EXPECT_EQ(columns_of(ex, generate("gen:convdiff3d:13x11x9")), Columns(1, 7));
  EXPECT_EQ(columns_of(ex, generate("gen:convdiff3d:40x40x3")), Columns(1, 7));
  EXPECT_EQ(columns_of(ex, generate("gen:convdiff2d:70x5")), Columns(1, 5));
  EXPECT_EQ(columns_of(ex, with_neighbours_away(4000, 1000, 1010)), Columns(2, 2))
      << "words of four would be half empty";
  EXPECT_EQ(columns_of(ex, with_neighbours_away(4000, 1000, 1400)), Columns(2, 2))
      << "in one byte there would be a third slot";
  EXPECT_EQ(columns_of(ex, with_neighbours_away(200000, 1000, 90000)), Columns(4, 2));
}

TEST(HecSmall, LanesOfARow) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const auto lanes = [&](const CsrMatrix& a, Index width) {
    const CudaHec m(ex, Host(1), a, HecForm::product, width);
    expect_products_of(ex, a, m);
    return CudaOperator(ex, m).lanes();
  };
  EXPECT_EQ(lanes(generate("gen:convdiff3d27:10x9x8"), 27), 8);
  EXPECT_EQ(lanes(generate("gen:convdiff3d27:10x9x8"), 12), 4) << "with leftovers, which all lanes add up";
  EXPECT_EQ(lanes(generate("gen:convdiff3d:10x9x8"), 7), 1);
}

TEST(HecSmall, ProductsOfEveryWidth) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : small_cases())
    expect_products(ex, c, {CudaHec::automatic, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, longest_row(c.a)});
}

TEST(HecSmall, NoRows) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const CudaHec m(ex, Host(1), from_rows({}));
  EXPECT_EQ(m.bytes(), 0u);
  CudaOperator(ex, m).apply(nullptr, nullptr);
  CudaOperator(ex, m).residual(nullptr, nullptr, nullptr);
  ex.synchronise();
}

TEST(Hec, ProductsOfLargerMatrices) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : large_cases()) expect_products(ex, c, {CudaHec::automatic, 0, 2, 7, 11});
}

TEST(Hec, LeftoversOfEveryLength) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  // Lengths about those at which a thread, a warp and a block take over.
  const CsrMatrix a =
      with_long_rows(9000, {15, 16, 17, 18, 31, 32, 33, 127, 128, 129, 1023, 1024, 1025, 1026, 4097, 8000}, false, 523);
  expect_products(ex, {"leftovers of every length, seed 523", a}, {CudaHec::automatic, 0, 1, 2, 3});
}

}  // namespace
}  // namespace krilu::test
