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

void expect_products(const Cuda& ex, const GpuCase& c, const std::vector<Index>& widths) {
  const auto n = std::size_t(c.a.rows);
  const std::vector<double> x = random_values(n, 521), b = random_values(n, 522);
  for (Index width : widths) {
    SCOPED_TRACE(c.name + ", width " + std::to_string(width));
    const CudaHec m(ex, Host(2), c.a, HecForm::product, width);
    const sparse::Hec<Host, double> here(Host(2), Host(2), c.a, HecForm::product, width);
    EXPECT_EQ(m.width(), here.width());
    EXPECT_EQ(m.bytes(), here.bytes());
    const CudaOperator A(ex, m);
    EXPECT_EQ(A.rows(), c.a.rows);
    const auto x_there = to_device(ex, x), b_there = to_device(ex, b);
    const auto y = to_device(ex, std::vector<double>(n, 1e300));
    A.apply(x_there.data(), y.data());
    const std::vector<double> product = to_host(ex, y);
    expect_product(c.a, x, nullptr, product);
    A.residual(b_there.data(), x_there.data(), y.data());
    const std::vector<double> residual = to_host(ex, y);
    expect_product(c.a, x, &b, residual);
    A.residual(b_there.data(), x_there.data(), b_there.data());
    EXPECT_EQ(bits(to_host(ex, b_there)), bits(residual)) << "in place of b";
    A.apply(x_there.data(), y.data());
    EXPECT_EQ(bits(to_host(ex, y)), bits(product)) << "another run, other bits";

    std::vector<double> spoilt = x;
    spoilt[n / 2] = std::numeric_limits<double>::quiet_NaN();
    const auto spoilt_there = to_device(ex, spoilt);
    A.apply(spoilt_there.data(), y.data());
    const std::vector<double> z = to_host(ex, y);
    for (std::size_t i = 0; i < n; ++i) {
      const auto begin = c.a.columns.begin() + c.a.offsets[i], end = c.a.columns.begin() + c.a.offsets[i + 1];
      if (std::binary_search(begin, end, Index(n / 2))) {
        ASSERT_TRUE(std::isnan(z[i])) << "row " << i;
      } else {
        ASSERT_EQ(z[i], product[i]) << "row " << i;
      }
    }
  }
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
