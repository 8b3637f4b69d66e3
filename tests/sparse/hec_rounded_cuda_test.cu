// SPDX-License-Identifier: Apache-2.0
// Rounded HEC on a GPU: products and residuals against those of explicitly scaled and rounded entries in long double,
// to the rounding of single precision, and against A itself, to the rounding of the storage; row sums that are kept;
// entries that are lost; columns of 16 and of 32 bits, and which are chosen; lengths of rows and leftovers as in
// hec_cuda_test.cu. Suite HecRoundedSmall is what compute-sanitizer gets through.
#include <algorithm>
#include <limits>

#include "sparse/hec.cuh"
#include "sparse/hec_rounded.cuh"
#include "support/gpu.cuh"
#include "support/hec.hpp"
#include "support/rounded.hpp"

namespace krilu::test {
namespace {

using exec::Cuda;
using exec::Host;
using sparse::HecForm;
using sparse::RoundedHec;
using sparse::Rounding;
using CudaHec = sparse::Hec<Cuda, double>;

/// R A C as it should be stored: off the diagonal rounded values, on it what keeps row sums, where that changes it by
/// no more than rounding does.
struct Reference {
  CsrMatrix a;
  std::vector<double> diagonal;
  std::vector<bool> keeps_sum;  // of each row
  std::int64_t lost = 0;
};
template <class S>
Reference reference(const CsrMatrix& a, const Scaling& scaling) {
  Reference out{a, {}, {}, 0};
  for (Index i = 0; i < a.rows; ++i) {
    long double entry = 0, missing = 0;
    for (auto k = std::size_t(a.offsets[std::size_t(i)]); k < std::size_t(a.offsets[std::size_t(i) + 1]); ++k) {
      const Index j = a.columns[k];
      const double v = a.values[k], scale = scaling.r(i) * scaling.c(j);
      if (j == i) {
        entry += v;
        out.a.values[k] = 0;
      } else {
        out.a.values[k] = double(float(rounded<S>(v * scale)));
        out.lost += v != 0 && out.a.values[k] == 0;
        missing += v - out.a.values[k] / scale;
      }
    }
    constexpr int bits = std::is_same_v<S, Half> ? 10 : std::is_same_v<S, Bfloat16> ? 7 : 23;
    out.keeps_sum.push_back(std::abs(missing) <= std::ldexp(std::abs(entry), -bits));
    if (out.keeps_sum.back()) entry += missing;
    const double d = double(entry * scaling.r(i) * scaling.c(i));
    out.diagonal.push_back(float(d));
    out.lost += d != 0 && out.diagonal.back() == 0;
  }
  return out;
}

struct Sum {
  long double value = 0, magnitude = 0;
  void add(long double term) {
    value += term;
    magnitude += std::abs(term);
  }
};

/// b - A x or A x with the entries of a reference; got within the rounding of as many additions in single precision.
void expect_rounded_product(const Reference& m, const std::vector<float>& x, const std::vector<float>* b,
                            const std::vector<float>& got) {
  ASSERT_EQ(got.size(), m.diagonal.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    Sum sum;
    sum.add((long double)(m.diagonal[i]) * x[i]);
    for (auto k = std::size_t(m.a.offsets[i]); k < std::size_t(m.a.offsets[i + 1]); ++k)
      sum.add((long double)(m.a.values[k]) * x[std::size_t(m.a.columns[k])]);
    const long double expected = b ? (*b)[i] - sum.value : sum.value;
    if (b) sum.magnitude += std::abs((*b)[i]);
    const double allowed = 0x1p-24 * double(6 + m.a.offsets[i + 1] - m.a.offsets[i]);
    ASSERT_LE(std::abs(double(got[i] - expected)), allowed * double(sum.magnitude)) << "row " << i;
  }
}

/// A x itself, scaled; got within what rounding each entry may do.
template <class S>
void expect_near_product(const CsrMatrix& a, const Scaling& scaling, const std::vector<float>& x,
                         const std::vector<float>& got) {
  for (Index i = 0; i < a.rows; ++i) {
    const auto begin = std::size_t(a.offsets[std::size_t(i)]), end = std::size_t(a.offsets[std::size_t(i) + 1]);
    Sum sum;
    double allowed = 0;
    for (std::size_t k = begin; k < end; ++k) {
      const Index j = a.columns[k];
      const double v = a.values[k] * scaling.r(i) * scaling.c(j);
      sum.add((long double)(v)*x[std::size_t(j)]);
      if (j != i)
        allowed += rounding_error<S>(v) *
                   (std::abs(x[std::size_t(j)]) + scaling.c(i) / scaling.c(j) * std::abs(x[std::size_t(i)]));
    }
    allowed = 1.01 * allowed + 0x1p-24 * double(6 + end - begin) * double(sum.magnitude);
    ASSERT_LE(std::abs(double(got[std::size_t(i)] - sum.value)), allowed) << "row " << i;
  }
}

/// On the device: scales, and the count of what is lost.
struct On {
  On(const Cuda& space, const Scaling& s, Format storage)
      : row(to_device(space, s.row)),
        column(to_device(space, s.column)),
        lost(to_device(space, std::vector<std::int64_t>{7})) {
    how = {storage, row.data(), column.data(), lost.data()};
  }
  exec::Array<double> row, column;
  exec::Array<std::int64_t> lost;
  Rounding how;
};

std::unique_ptr<const RoundedHec> made(const Cuda& ex, const CsrMatrix& a, Index width, const Rounding& how) {
  return sparse::rounded_product(ex, CudaHec(ex, Host(2), a, HecForm::product, width), how);
}

template <class S>
void expect_rounded_products(const Cuda& ex, const GpuCase& c, Index width, const Scaling& scaling) {
  SCOPED_TRACE(c.name + ", width " + std::to_string(width) + (scaling.row.empty() ? "" : ", scaled"));
  const auto n = std::size_t(c.a.rows);
  const std::vector<float> x = in_single(random_values(n, 551)), b = in_single(random_values(n, 552));
  const Reference m = reference<S>(c.a, scaling);
  const On on(ex, scaling, Stored<S>::format);
  const auto A = made(ex, c.a, width, on.how);
  EXPECT_EQ(A->rows(), c.a.rows);
  EXPECT_EQ(to_host(ex, on.lost)[0], 7 + m.lost);
  EXPECT_EQ(A->traffic(), A->bytes() + 8 * n);
  const auto x_there = to_device(ex, x), b_there = to_device(ex, b);
  const auto y = to_device(ex, std::vector<float>(n, 1e30f));
  A->apply(x_there.data(), y.data());
  const std::vector<float> product = to_host(ex, y);
  expect_rounded_product(m, x, nullptr, product);
  expect_near_product<S>(c.a, scaling, x, product);
  A->residual(b_there.data(), x_there.data(), y.data());
  const std::vector<float> residual = to_host(ex, y);
  expect_rounded_product(m, x, &b, residual);
  A->residual(b_there.data(), x_there.data(), b_there.data());
  EXPECT_EQ(to_host(ex, b_there), residual) << "in place of b";
  A->apply(x_there.data(), y.data());
  EXPECT_EQ(to_host(ex, y), product) << "another run, other bits";

  // A constant of the unscaled variables.
  std::vector<float> constant(n);
  for (std::size_t i = 0; i < n; ++i) constant[i] = float(1 / scaling.c(Index(i)));
  const auto constant_there = to_device(ex, constant);
  A->apply(constant_there.data(), y.data());
  const std::vector<float> sums = to_host(ex, y);
  for (std::size_t i = 0; i < n; ++i) {
    if (!m.keeps_sum[i]) continue;
    Sum sum;
    for (auto k = std::size_t(c.a.offsets[i]); k < std::size_t(c.a.offsets[i + 1]); ++k)
      sum.add((long double)(c.a.values[k]) * scaling.r(Index(i)));
    const double allowed = 0x1p-22 * double(6 + c.a.offsets[i + 1] - c.a.offsets[i]);
    ASSERT_LE(std::abs(double(sums[i] - sum.value)), allowed * double(sum.magnitude)) << "the sum of row " << i;
  }

  std::vector<float> spoilt = x;
  spoilt[n / 2] = std::numeric_limits<float>::quiet_NaN();
  const auto spoilt_there = to_device(ex, spoilt);
  A->apply(spoilt_there.data(), y.data());
  const std::vector<float> z = to_host(ex, y);
  for (std::size_t i = 0; i < n; ++i) {
    const auto begin = c.a.columns.begin() + c.a.offsets[i], end = c.a.columns.begin() + c.a.offsets[i + 1];
    const bool own = i == n / 2 && m.diagonal[i] != 0;
    if (own || std::binary_search(begin, end, Index(n / 2))) {
      ASSERT_TRUE(std::isnan(z[i])) << "row " << i;
    } else {
      ASSERT_EQ(z[i], product[i]) << "row " << i;
    }
  }
}

void expect_rounded_products(const Cuda& ex, const GpuCase& c, const std::vector<Index>& widths) {
  for_formats([&](auto storage) {
    for (std::size_t k = 0; k < widths.size(); ++k)
      expect_rounded_products<decltype(storage)>(ex, c, widths[k],
                                                 k % 2 ? powers_of_two(c.a.rows, 3, 553 + widths.size()) : Scaling{});
  });
}

TEST(HecRoundedSmall, ProductsOfEveryWidth) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : small_cases())
    expect_rounded_products(ex, c,
                            {CudaHec::automatic, CudaHec::automatic, 0, 1, 2, 3, 5, 7, 8, 9, 16, longest_row(c.a)});
}

TEST(HecRoundedSmall, NoRows) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for_formats([&](auto storage) {
    const On on(ex, {}, Stored<decltype(storage)>::format);
    const auto A = made(ex, from_rows({}), CudaHec::automatic, on.how);
    EXPECT_EQ(A->bytes(), 0u);
    A->apply(nullptr, nullptr);
    A->residual(nullptr, nullptr, nullptr);
    ex.synchronise();
    EXPECT_EQ(to_host(ex, on.lost)[0], 7);
  });
}

TEST(HecRoundedSmall, WhatBecomesZeroIsCountedAndWhatIsTooLargeIsTheLargest) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  // Rows of 2^-30 .. 2^30 times a grid's: fp16 loses and overflows some, the others none.
  const CsrMatrix a = grid(20, 17);
  Scaling scaling{std::vector<double>(340, 1.0), std::vector<double>(340, 1.0)};
  for (std::size_t i = 0; i < 340; ++i) scaling.row[i] = std::ldexp(1.0, int(i % 61) - 30);
  const Reference m = reference<Half>(a, scaling);
  EXPECT_GT(m.lost, 20);
  EXPECT_LT(m.lost, a.nnz() / 2);
  EXPECT_EQ(*std::max_element(m.a.values.begin(), m.a.values.end()), 0);
  EXPECT_EQ(*std::min_element(m.a.values.begin(), m.a.values.end()), -65504);
  for (Index width : {CudaHec::automatic, Index(2)}) expect_rounded_products<Half>(ex, {"grid", a}, width, Scaling{});
  for (Index width : {Index(5), Index(2), Index(0)})
    for_formats([&](auto storage) {
      using S = decltype(storage);
      const Reference of = reference<S>(a, scaling);
      EXPECT_EQ(of.lost > 0, Stored<S>::format == Format::fp16);
      const On on(ex, scaling, Stored<S>::format);
      const auto A = made(ex, a, width, on.how);
      EXPECT_EQ(to_host(ex, on.lost)[0], 7 + of.lost);
      const std::vector<float> x = in_single(random_values(340, 554));
      const auto x_there = to_device(ex, x), y = to_device(ex, std::vector<float>(340, 0.0f));
      A->apply(x_there.data(), y.data());
      expect_rounded_product(of, x, nullptr, to_host(ex, y));
    });
  const On uncounted(ex, scaling, Format::fp16);
  Rounding how = uncounted.how;
  how.lost = nullptr;
  made(ex, a, CudaHec::automatic, how);
  ex.synchronise();
}

TEST(HecRoundedSmall, TheDiagonalKeepsRowSumsThatFp16Changes) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  // Diffusion whose rows add up to zero but for a hair.
  CsrMatrix a = generate("gen:poisson3d:9x8x7");
  std::mt19937_64 engine(555);
  std::uniform_real_distribution<double> value(0.5, 1);
  double plain = 0, most = 0;
  for (Index i = 0; i < a.rows; ++i) {
    double sum = 0, error = 0;
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
      double& v = a.values[std::size_t(k)];
      if (a.columns[std::size_t(k)] == i) continue;
      v = -value(engine);
      sum -= v;
      error += v - float(rounded<Half>(v));
    }
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      if (a.columns[std::size_t(k)] == i) a.values[std::size_t(k)] = sum + 1e-6;
    plain = std::max(plain, std::abs(error));
  }
  const On on(ex, {}, Format::fp16);
  const auto A = made(ex, a, CudaHec::automatic, on.how);
  const auto n = std::size_t(a.rows);
  const auto ones = to_device(ex, std::vector<float>(n, 1.0f)), y = to_device(ex, std::vector<float>(n, 0.0f));
  A->apply(ones.data(), y.data());
  for (float v : to_host(ex, y)) most = std::max(most, std::abs(double(v) - 1e-6));
  EXPECT_GT(plain, 1e-4) << "rounded one by one they would change";
  EXPECT_LT(most, 3e-6);
}

TEST(HecRoundedSmall, OutlivesTheMatrixThatItWasMadeOf) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const CsrMatrix a = with_long_rows(700, {40, 100, 300}, false, 556);
  auto m = std::make_unique<CudaHec>(ex, Host(2), a, HecForm::product, Index(3));
  const On on(ex, {}, Format::bf16);
  const auto A = sparse::rounded_product(ex, *m, on.how);
  EXPECT_LT(A->bytes(), m->bytes());
  const std::vector<float> x = in_single(random_values(700, 557));
  const auto x_there = to_device(ex, x), y = to_device(ex, std::vector<float>(700, 0.0f));
  A->apply(x_there.data(), y.data());
  const std::vector<float> first = to_host(ex, y);
  m.reset();
  const auto other = to_device(ex, std::vector<double>(10000, 1e300));  // where its arrays may have stood
  A->apply(x_there.data(), y.data());
  EXPECT_EQ(to_host(ex, y), first);
}

// --- columns ---------------------------------------------------------------------------------------------------------

/// Rows of seven entries whose columns are all over the matrix.
CsrMatrix scattered(Index n) {
  CsrMatrix a;
  a.rows = a.cols = n;
  a.offsets.push_back(0);
  std::mt19937_64 engine(558);
  std::uniform_real_distribution<double> value(-1, 1);
  std::uniform_int_distribution<Index> place(0, n - 1);
  for (Index i = 0; i < n; ++i) {
    std::vector<Index> columns{i};
    while (columns.size() < 7)
      if (const Index j = place(engine); std::find(columns.begin(), columns.end(), j) == columns.end())
        columns.push_back(j);
    std::sort(columns.begin(), columns.end());
    for (Index j : columns) {
      a.columns.push_back(j);
      a.values.push_back(j == i ? 6.0 : value(engine));
    }
    a.offsets.push_back(Offset(a.columns.size()));
  }
  return a;
}

/// What the engine builds where a pattern is regular.
std::unique_ptr<const RoundedHec> regular(const Cuda& ex, const CsrMatrix& a, const Rounding& how,
                                          bool shortened = false) {
  auto m = sparse::regular_hec<double>(ex, sparse::upload(ex, a, true), longest_row(a));
  if (shortened) m = sparse::shortened(ex, std::move(m));
  return sparse::rounded_product(ex, m, how);
}

TEST(HecRounded, ColumnsAreShortWhereThatTakesFewerBytes) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  struct Expected {
    GpuCase c;
    int column_bytes;
    Index slots;
  };
  // Planes of 90,000 rows: rows at a border have their last entries farther away than 8 bits reach, or 16.
  const Expected all[] = {{{"lattice", generate("gen:poisson3d:100x20x30")}, 1, 6},
                          {{"large planes", generate("gen:convdiff3d:300x300x3")}, 1, 6},
                          {{"27 points", generate("gen:poisson3d27:30x20x10")}, 1, 26},
                          {{"scattered", scattered(300000)}, 4, 6},
                          {{"scattered nearby", scattered(65000)}, 2, 6}};
  for (const Expected& e : all)
    for_formats([&](auto storage) {
      using S = decltype(storage);
      SCOPED_TRACE(e.c.name);
      const Scaling scaling = powers_of_two(e.c.a.rows, 2, 559);
      const On on(ex, scaling, Stored<S>::format);
      const auto A = regular(ex, e.c.a, on.how);
      EXPECT_EQ(A->column_bytes(), e.column_bytes);
      EXPECT_EQ(A->slots(), e.slots);
      const double row = double(A->bytes()) / e.c.a.rows,
                   slot = e.column_bytes + (e.column_bytes < 4 ? 4.0 / 32 : 0) + sizeof(S);
      EXPECT_NEAR(row, e.slots * slot + 4, 0.005 * row);  // rows are rounded up to 32
      const auto n = std::size_t(e.c.a.rows);
      const std::vector<float> x = in_single(random_values(n, 560));
      const auto x_there = to_device(ex, x), y = to_device(ex, std::vector<float>(n, 1e30f));
      A->apply(x_there.data(), y.data());
      const Reference m = reference<S>(e.c.a, scaling);
      const std::vector<float> product = to_host(ex, y);
      expect_rounded_product(m, x, nullptr, product);
      A->residual(x_there.data(), x_there.data(), y.data());
      expect_rounded_product(m, x, &x, to_host(ex, y));
      // The same of a matrix whose own columns are short.
      const auto B = regular(ex, e.c.a, on.how, true);
      EXPECT_EQ(B->bytes(), A->bytes());
      B->apply(x_there.data(), y.data());
      EXPECT_EQ(to_host(ex, y), product);
    });
}

TEST(HecRounded, ProductsOfLargerMatrices) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : large_cases()) expect_rounded_products(ex, c, {CudaHec::automatic, 0, 2, 7, 11});
}

TEST(HecRounded, LeftoversOfEveryLength) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const CsrMatrix a =
      with_long_rows(9000, {15, 16, 17, 18, 31, 32, 33, 127, 128, 129, 1023, 1024, 1025, 1026, 4097, 8000}, false, 561);
  expect_rounded_products(ex, {"leftovers of every length, seed 561", a}, {CudaHec::automatic, 0, 1, 2, 3});
}

}  // namespace
}  // namespace krilu::test
