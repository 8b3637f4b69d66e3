// SPDX-License-Identifier: Apache-2.0
// COO, ELL and LDU: products against CSR's, conversions there and back on random matrices, and what each refuses.
#include "krilu/error.hpp"
#include "sparse/coo.hpp"
#include "sparse/csr.hpp"
#include "sparse/ell.hpp"
#include "sparse/ldu.hpp"
#include "support/support.hpp"

namespace {

using namespace krilu;

std::vector<double> csr_product(const CsrView& a, const std::vector<double>& x) {
  std::vector<double> y(std::size_t(a.rows));
  sparse::multiply(exec::Host(1), a, x.data(), y.data());
  return y;
}

void expect_near(const std::vector<double>& y, const std::vector<double>& expected) {
  ASSERT_EQ(y.size(), expected.size());
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-13) << "row " << i;
}

void expect_equal(const CsrMatrix& a, const CsrMatrix& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.offsets, b.offsets);
  EXPECT_EQ(a.columns, b.columns);
  EXPECT_EQ(a.values, b.values);
}

class Formats : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  CsrMatrix matrix(bool symmetric_pattern, bool symmetric_values = false) const {
    return test::random_matrix({.rows = 150,
                                .per_row = 6,
                                .symmetric_pattern = symmetric_pattern,
                                .symmetric_values = symmetric_values,
                                .seed = GetParam()});
  }
  std::vector<double> x_ = test::random_values(150, 7);
};

TEST_P(Formats, CooRoundTripAndProduct) {
  const CsrMatrix a = matrix(false);
  const sparse::Coo c = sparse::to_coo(a);
  expect_equal(sparse::to_csr(c), a);
  std::vector<double> y(150);
  sparse::multiply(c, x_.data(), y.data());
  expect_near(y, csr_product(a, x_));
}

TEST_P(Formats, EllRoundTripAndProductOnAnyNumberOfThreads) {
  const CsrMatrix a = matrix(false);
  const sparse::Ell e = sparse::to_ell(a);
  expect_equal(sparse::to_csr(e), a);
  for (int threads : {1, 3}) {
    std::vector<double> y(150, -1.0);
    sparse::multiply(exec::Host(threads), e, x_.data(), y.data());
    expect_near(y, csr_product(a, x_));
  }
}

TEST_P(Formats, LduRoundTripAndProduct) {
  for (bool symmetric : {false, true}) {
    const CsrMatrix a = matrix(true, symmetric);
    const sparse::Ldu m = sparse::to_ldu(a);
    EXPECT_EQ(m.symmetric(), symmetric);
    EXPECT_EQ(2 * m.faces() + m.cells, a.nnz());
    expect_equal(sparse::to_csr(m), a);
    std::vector<double> y(150);
    sparse::multiply(m, x_.data(), y.data());
    expect_near(y, csr_product(a, x_));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Formats, ::testing::Range<std::uint64_t>(1, 9));

TEST(Coo, AddsEntriesOfOnePlaceInTheirSequence) {
  const sparse::Coo c{2, 3, {1, 0, 1, 1}, {2, 0, 0, 2}, {1e16, 5, 7, -1e16}};
  const CsrMatrix a = sparse::to_csr(c);
  EXPECT_EQ(a.offsets, (Buffer<Offset>{0, 1, 3}));
  EXPECT_EQ(a.columns, (Buffer<Index>{0, 0, 2}));
  EXPECT_EQ(a.values, (Buffer<double>{5, 7, 0}));
}

TEST(Coo, RefusesAnEntryOutside) { EXPECT_THROW(sparse::to_csr(sparse::Coo{2, 2, {0}, {2}, {1}}), Error); }

TEST(Ldu, RefusesAnEntryWithoutAPartner) {
  try {
    sparse::to_ldu(test::from_dense({{1, 2, 0}, {0, 1, 3}, {0, 4, 1}}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("(1, 2)"), std::string::npos) << e.what();
  }
  EXPECT_THROW(sparse::to_ldu(test::from_dense({{1, 0, 0}, {2, 1, 3}, {0, 4, 1}})), Error);
}

TEST(Ldu, RefusesBadFaces) {
  EXPECT_THROW(sparse::to_csr(sparse::Ldu{2, {1}, {0}, {1, 1}, {1}, {}}), Error);
  EXPECT_THROW(sparse::to_csr(sparse::Ldu{2, {0}, {2}, {1, 1}, {1}, {}}), Error);
  EXPECT_THROW(sparse::to_csr(sparse::Ldu{2, {0, 0}, {1, 1}, {1, 1}, {1, 2}, {}}), Error);
}

TEST(Ell, RowsOfDifferentLengthsArePadded) {
  const CsrMatrix a = test::from_dense({{0, 0, 0}, {1, 2, 3}, {0, 4, 0}});
  const sparse::Ell e = sparse::to_ell(a);
  EXPECT_EQ(e.width, 3);
  std::vector<double> y(3);
  const std::vector<double> x{1, 10, 100};
  sparse::multiply(exec::Host(1), e, x.data(), y.data());
  EXPECT_EQ(y, (std::vector<double>{0, 321, 40}));
}

}  // namespace
