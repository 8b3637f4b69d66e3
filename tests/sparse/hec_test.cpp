// SPDX-License-Identifier: Apache-2.0
// HEC: products and residuals within the rounding of a long double reference for every width, on every space, with the
// same bits for any number of threads; each nonzero stored once; NaN and infinity only in the rows that read them; the
// width against a count of the bytes that every width stores; and what is refused.
#include "sparse/hec.hpp"

#include <limits>

#include "krilu/error.hpp"
#include "support/hec.hpp"

namespace krilu::test {
namespace {

using exec::Host;
using sparse::Hec;
using sparse::HecForm;
using HostHec = Hec<Host, double>;

HostHec hec(const CsrView& a, Index width = HostHec::automatic, HecForm form = HecForm::product) {
  return HostHec(Host(2), Host(2), a, form, width);
}

std::vector<Index> widths_of(const CsrView& a) { return {HostHec::automatic, 0, 1, 3, longest_row(a)}; }

/// Row i of n has lengths[i % lengths.size()] entries, spread over the columns.
CsrMatrix of_lengths(Index n, const std::vector<Index>& lengths) {
  RowMaps rows(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i)
    for (Index k = 0; k < lengths[std::size_t(i) % lengths.size()]; ++k)
      rows[std::size_t(i)][Index((std::int64_t(i) + std::int64_t(k) * 7) % n)] = 0.5 + 0.01 * double((i + 3 * k) % 50);
  return from_rows(rows);
}

template <class Space>
class HecOn : public ::testing::Test {};
TYPED_TEST_SUITE(HecOn, Spaces);

template <class Space>
void expect_products(const GpuCase& c, const std::vector<Index>& widths) {
  const auto n = std::size_t(c.a.rows);
  const std::vector<double> x = random_values(n, 501), b = random_values(n, 502);
  for (Index width : widths) {
    std::vector<double> product, residual;
    for (int threads : {1, 2, 4}) {
      SCOPED_TRACE(c.name + ", width " + std::to_string(width) + ", threads " + std::to_string(threads));
      const Space ex = make_space<Space>(threads);
      const Hec<Space, double> m(ex, Host(threads), c.a, HecForm::product, width);
      if (width >= 0) {
        EXPECT_EQ(m.width(), width);
      }
      const sparse::HecOperator<Space, double> A(ex, m);
      EXPECT_EQ(A.rows(), c.a.rows);
      const auto x_there = to_device(ex, x), b_there = to_device(ex, b);
      const auto y = to_device(ex, std::vector<double>(n, 1e300));
      A.apply(x_there.data(), y.data());
      const std::vector<double> ax = to_host(ex, y);
      expect_product(c.a, x, nullptr, ax);
      A.residual(b_there.data(), x_there.data(), y.data());
      const std::vector<double> r = to_host(ex, y);
      expect_product(c.a, x, &b, r);
      A.residual(b_there.data(), x_there.data(), b_there.data());
      EXPECT_EQ(bits(to_host(ex, b_there)), bits(r)) << "in place of b";
      if (threads == 1) {
        product = ax;
        residual = r;
      }
      EXPECT_EQ(bits(ax), bits(product));
      EXPECT_EQ(bits(r), bits(residual));
    }
  }
}

TYPED_TEST(HecOn, ProductsOfEveryWidth) {
  for (const GpuCase& c : small_cases()) expect_products<TypeParam>(c, widths_of(c.a));
}

TYPED_TEST(HecOn, ProductsOfLargerMatrices) {
  for (const GpuCase& c : large_cases()) expect_products<TypeParam>(c, {HostHec::automatic, 2});
}

TYPED_TEST(HecOn, NoRows) {
  const TypeParam ex = make_space<TypeParam>();
  const Hec<TypeParam, double> m(ex, Host(1), from_rows({}));
  EXPECT_EQ(m.rows(), 0);
  EXPECT_EQ(m.bytes(), 0u);
  sparse::HecOperator<TypeParam, double>(ex, m).apply(nullptr, nullptr);
  ex.synchronise();
}

TEST(Hec, RectangularMatricesAndColumnsBeyond65535) {
  const Index rows = 9, cols = 70000;  // eight full rows, so that no column of the ELL part has padding in the first 8
  CsrMatrix a;
  a.rows = rows;
  a.cols = cols;
  a.offsets.push_back(0);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < (i < 8 ? cols : 5); ++j) {
      a.columns.push_back(j);
      a.values.push_back(1.0 / double(1 + (i + j) % 97));
    }
    a.offsets.push_back(Offset(a.columns.size()));
  }
  const std::vector<double> x = random_values(std::size_t(cols), 503);
  for (Index width : {cols, 65536, 65535, 4}) {
    const HostHec m = hec(a, width);
    std::vector<double> y(std::size_t(rows), 1e300);
    sparse::multiply(Host(2), m.view(), x.data(), y.data());
    expect_product(a, x, nullptr, y);
  }
}

TEST(Hec, EveryNonzeroIsStoredOnceAndTheRestIsPadding) {
  for (const GpuCase& c : small_cases())
    for (Index width : widths_of(c.a)) {
      SCOPED_TRACE(c.name + ", width " + std::to_string(width));
      const HostHec m = hec(c.a, width);
      const auto v = m.view();
      EXPECT_EQ(v.leading % 32, 0);
      EXPECT_GE(v.leading, v.rows);
      EXPECT_LT(v.leading, v.rows + 32);
      EXPECT_EQ(m.ell_slots(), v.leading * v.width);
      CsrMatrix back;
      back.rows = back.cols = c.a.rows;
      back.offsets.push_back(0);
      Index listed = 0;
      for (Index i = 0; i < v.leading; ++i) {
        bool padding = false;
        for (Index k = 0; k < v.width; ++k) {
          const auto at = std::size_t(k) * std::size_t(v.leading) + std::size_t(i);
          ASSERT_FALSE(padding && v.column[at] >= 0) << "an entry behind padding";
          padding = v.column[at] < 0;
          if (padding) {
            ASSERT_EQ(v.value[at], 0.0);
          } else {
            back.columns.push_back(v.column[at]);
            back.values.push_back(v.value[at]);
          }
        }
        if (v.listed && (v.listed[i / 32].rows >> (i % 32) & 1)) {
          ASSERT_EQ(v.listed_row[listed], i);
          ASSERT_FALSE(padding);
          ASSERT_LT(v.csr_offset[listed], v.csr_offset[listed + 1]) << "listed without a leftover";
          for (Offset k = v.csr_offset[listed]; k < v.csr_offset[listed + 1]; ++k) {
            back.columns.push_back(v.csr_column[k]);
            back.values.push_back(v.csr_value[k]);
          }
          ++listed;
        }
        if (i < v.rows) back.offsets.push_back(Offset(back.columns.size()));
      }
      EXPECT_EQ(listed, m.csr_rows());
      for (Index i = 0; i < v.leading; i += 8)
        for (Index k = 0; k < v.width; ++k) {
          const Index* const eight = v.column + std::size_t(k) * std::size_t(v.leading) + i;
          ASSERT_EQ(k < v.full[i / 8], std::all_of(
                                           eight, eight + 8, [](Index j) { return j >= 0; }));
        }
      EXPECT_EQ(back.offsets, c.a.offsets);
      EXPECT_EQ(back.columns, c.a.columns);
      EXPECT_EQ(back.values, c.a.values);
    }
}

TEST(Hec, TheTriangularFormEndsEveryRowOfItsCsrPartInTheDiagonal) {
  const CsrMatrix a = triangle_of(with_long_rows(700, {40, 100, 300}, false, 504), true);
  for (Index width : {HostHec::automatic, 0, 2, 500}) {
    const HostHec m = hec(a, width, HecForm::triangular);
    const auto v = m.view();
    ASSERT_EQ(v.csr_rows, a.rows);
    EXPECT_EQ(v.listed, nullptr);
    for (Index i = 0; i < a.rows; ++i) {
      const Offset last = a.offsets[std::size_t(i) + 1] - 1;
      ASSERT_EQ(v.csr_column[v.csr_offset[i + 1] - 1], i);
      ASSERT_EQ(v.csr_value[v.csr_offset[i + 1] - 1], a.values[std::size_t(last)]);
      const Index off_diagonal = last - a.offsets[std::size_t(i)];
      ASSERT_EQ(v.csr_offset[i + 1] - v.csr_offset[i], 1 + std::max(0, off_diagonal - m.width()));
    }
  }
}

TEST(Hec, WhatIsNotFiniteStaysInTheRowsThatReadIt) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const GpuCase& c : small_cases())
    for (Index width : widths_of(c.a)) {
      const HostHec m = hec(c.a, width);
      const auto n = std::size_t(c.a.rows);
      const std::vector<double> x = random_values(n, 505);
      std::vector<double> y(n), z(n);
      sparse::multiply(Host(2), m.view(), x.data(), y.data());
      for (const double bad : {std::numeric_limits<double>::quiet_NaN(), infinity})
        for (const std::size_t at : {std::size_t(0), n / 2, n - 1}) {
          SCOPED_TRACE(c.name + ", width " + std::to_string(width) + ", column " + std::to_string(at));
          std::vector<double> spoilt = x;
          spoilt[at] = bad;
          sparse::multiply(Host(2), m.view(), spoilt.data(), z.data());
          for (std::size_t i = 0; i < n; ++i) {
            const auto begin = c.a.columns.begin() + c.a.offsets[i], end = c.a.columns.begin() + c.a.offsets[i + 1];
            const auto found = std::find(begin, end, Index(at));
            if (found == end) {
              ASSERT_EQ(z[i], y[i]) << "row " << i;
            } else if (std::isnan(bad)) {
              ASSERT_TRUE(std::isnan(z[i])) << "row " << i;
            } else if (c.a.values[std::size_t(found - c.a.columns.begin())] != 0) {
              ASSERT_TRUE(std::isinf(z[i])) << "row " << i;
            }
          }
        }
    }
}

// --- width -----------------------------------------------------------------------------------------------------------

TEST(HecWidth, RowsOfOneLengthLeaveNothingOver) {
  for (Index length : {0, 1, 5, 9}) {
    const HostHec m = hec(of_lengths(1000, {length}));
    EXPECT_EQ(m.width(), length);
    EXPECT_EQ(m.csr_rows(), 0);
    EXPECT_EQ(m.csr_entries(), 0);
    EXPECT_EQ(m.long_rows(), 0);
  }
}

TEST(HecWidth, OneDenseRowDoesNotWidenTheOthers) {
  std::vector<Index> lengths(5000, 3);
  lengths[1234] = 5000;
  const HostHec m = hec(of_lengths(5000, lengths));
  EXPECT_EQ(m.width(), 3);
  EXPECT_EQ(m.csr_rows(), 1);
  EXPECT_EQ(m.csr_entries(), 4997);
  EXPECT_EQ(m.long_rows(), 1);
  EXPECT_EQ(m.view().listed_row[0], 1234);
}

TEST(HecWidth, RowsThatAreMostlyEmptyGoToTheCsrPart) {
  const HostHec m = hec(of_lengths(1000, {0, 0, 0, 0, 0, 0, 0, 0, 0, 20}));
  EXPECT_EQ(m.width(), 0);
  EXPECT_EQ(m.csr_rows(), 100);
  EXPECT_EQ(m.csr_entries(), 2000);
}

TEST(HecWidth, NoOtherWidthMovesFewerBytes) {
  std::vector<CsrMatrix> all{of_lengths(640, {2, 3, 4, 9}), of_lengths(1000, {1, 7}),
                             of_lengths(333, {5, 6, 7, 8, 30})};
  for (const GpuCase& c : small_cases()) all.push_back(c.a);
  for (const CsrMatrix& a : all) {
    const auto bytes = [&](Index width) {
      const HostHec m = hec(a, width);
      return 12.0 * m.ell_slots() + 18.0 * m.csr_entries() + 8.0 * m.csr_rows() +
             (m.csr_rows() > 0 ? 8.0 * m.view().leading / 32 : 0);
    };
    const double least = bytes(sparse::hec_width(a));
    for (Index w = 0; w <= longest_row(a); ++w) EXPECT_LE(least, bytes(w)) << "width " << w;
    EXPECT_EQ(hec(a).width(), sparse::hec_width(a));
  }
}

TEST(HecWidth, OfATriangleCountsEntriesOffTheDiagonal) {
  EXPECT_EQ(sparse::hec_width(diagonal(1000), HecForm::triangular), 0);
  EXPECT_EQ(sparse::hec_width(triangle_of(chain(1000), true), HecForm::triangular), 1);
  const CsrMatrix a = triangle_of(generate("gen:poisson3d:12x12x12"), true);
  const HostHec m = hec(a, HostHec::automatic, HecForm::triangular);
  EXPECT_EQ(m.width(), 3);
  EXPECT_EQ(m.csr_entries(), a.rows) << "the diagonals alone";
}

// --- bytes and errors ------------------------------------------------------------------------------------------------

TEST(Hec, BytesAreThoseOfItsArrays) {
  const CsrMatrix a = with_long_rows(5000, {40, 100, 2000}, false, 506);
  const HostHec m = hec(a);
  ASSERT_GT(m.csr_rows(), 3);
  ASSERT_EQ(m.long_rows(), 1);
  const auto leading = std::size_t(m.view().leading);
  EXPECT_EQ(m.bytes(), 12 * std::size_t(m.ell_slots()) + 2 * (leading / 8) + 8 * (leading / 32) +
                           8 * std::size_t(m.csr_rows()) + 4 + 12 * std::size_t(m.csr_entries()) + 4);
}

TEST(Hec, RefusesAWidthBeyond32BitPositions) {
  const CsrMatrix a = of_lengths(100, {3});
  try {
    hec(a, std::numeric_limits<Index>::max());
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("2^31"), std::string::npos) << e.what();
  }
}

TEST(Hec, TheTriangularFormRefusesARowThatDoesNotEndInItsDiagonal) {
  for (const Dense& d : {Dense{{1, 0, 0}, {1, 0, 0}, {0, 0, 1}}, Dense{{1, 0, 0}, {1, 1, 1}, {0, 0, 1}},
                         Dense{{1, 0, 0}, {0, 0, 0}, {0, 0, 1}}})
    try {
      hec(from_dense(d), HostHec::automatic, HecForm::triangular);
      FAIL();
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("row 2"), std::string::npos) << e.what();
    }
}

}  // namespace
}  // namespace krilu::test
