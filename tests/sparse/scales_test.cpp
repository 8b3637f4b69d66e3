// SPDX-License-Identifier: Apache-2.0
// The scales that bring a matrix into the range of a format before it is rounded: powers of two, for entries over any
// number of decades, rows and columns of zeros, and the least and largest numbers.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "sparse/rounding.hpp"
#include "sparse/scaling.hpp"
#include "support/matrices.hpp"

namespace krilu::test {
namespace {

bool is_power_of_two(double v) {
  int e = 0;
  return std::isfinite(v) && v > 0 && std::frexp(v, &e) == 0.5;
}

/// D a E, D and E with magnitudes log-uniform over 10^-decades .. 10^decades.
CsrMatrix spread(CsrMatrix a, double decades, bool symmetric, std::uint64_t seed) {
  std::vector<double> d = random_values(std::size_t(a.rows), seed), e = random_values(std::size_t(a.rows), seed + 1);
  for (auto* v : {&d, &e})
    for (double& x : *v) x = std::pow(10.0, decades * x);
  if (symmetric) e = d;
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
      const auto j = std::size_t(a.columns[std::size_t(k)]);
      a.values[std::size_t(k)] *=
          std::min(d[std::size_t(i)], d[j]) == d[std::size_t(i)] ? d[std::size_t(i)] * e[j] : e[j] * d[std::size_t(i)];
    }
  return a;
}

/// The largest scaled magnitude of each row, then of each column; 0 where there is none.
std::pair<std::vector<double>, std::vector<double>> largest(const CsrView& a, const sparse::Scales& s) {
  std::vector<double> row(std::size_t(a.rows), 0.0), column = row;
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const auto j = std::size_t(a.columns[k]);
      const auto v = double(std::abs(static_cast<long double>(s.row[std::size_t(i)]) * a.values[k] * s.column[j]));
      row[std::size_t(i)] = std::max(row[std::size_t(i)], v);
      column[j] = std::max(column[j], v);
    }
  return {row, column};
}

TEST(Scales, ArePowersOfTwoThatBringEveryRowAndColumnIntoRange) {
  const exec::Host host(2);
  for (const Format format : {Format::fp32, Format::fp16, Format::bf16})
    for (const double decades : {0.0, 3.0, 30.0, 100.0})
      for (const bool symmetric : {true, false})
        for (const auto& [name, base] :
             {std::pair{"grid", grid(20, 20, true)},
              std::pair{"random", random_matrix({.rows = 400, .per_row = 5, .symmetric_values = true, .seed = 90})},
              std::pair{"unsymmetric",
                        random_matrix({.rows = 400, .per_row = 3, .symmetric_pattern = false, .seed = 91})}}) {
          SCOPED_TRACE(fmt::format("{} in {}, {} decades, symmetric {}", name, to_string(format), decades, symmetric));
          const CsrMatrix a = spread(base, decades, symmetric, 92);
          const sparse::Scales s = sparse::scales_for(host, a, format);
          if (s.row.empty()) {
            EXPECT_TRUE(format != Format::fp16 && decades <= 3);
            EXPECT_TRUE(s.column.empty());
            EXPECT_EQ(s.typical_row, 1);
            continue;
          }
          EXPECT_TRUE(format == Format::fp16 || decades > 3);
          ASSERT_EQ(s.row.size(), 400u);
          ASSERT_EQ(s.column.size(), 400u);
          for (std::size_t i = 0; i < 400; ++i)
            ASSERT_TRUE(is_power_of_two(s.row[i]) && is_power_of_two(s.column[i])) << "row " << i;
          if (symmetric && std::string(name) != "unsymmetric") {
            EXPECT_EQ(s.row, s.column);
          }
          const auto [rows, columns] = largest(a, s);
          // Largest entries at the top of fp16; anywhere far from the ends of a float.
          const double most = format == Format::fp16 ? 65504 : 0x1p40, least = format == Format::fp16 ? 0x1p4 : 0x1p-45;
          for (std::size_t i = 0; i < 400; ++i) {
            EXPECT_TRUE(rows[i] <= most && columns[i] <= most) << i << ": " << rows[i] << ", " << columns[i];
            EXPECT_TRUE(rows[i] >= least && columns[i] >= least) << i << ": " << rows[i] << ", " << columns[i];
          }
        }
}

TEST(Scales, AreNoneForTameMatricesOfAFloatsRange) {
  const exec::Host host(2);
  for (CsrMatrix a : {grid(30, 30), random_matrix({.rows = 300, .per_row = 4, .seed = 93}), from_dense({{1e10}})})
    for (const double factor : {1.0, -1e-8, 1e2}) {
      for (double& v : a.values) v *= factor;
      EXPECT_TRUE(sparse::scales_for(host, a, Format::fp32).row.empty());
      EXPECT_TRUE(sparse::scales_for(host, a, Format::bf16).row.empty());
      EXPECT_FALSE(sparse::scales_for(host, a, Format::fp16).row.empty());
    }
  // One row that is far is enough.
  CsrMatrix a = grid(30, 30);
  for (Offset k = a.offsets[77]; k < a.offsets[78]; ++k) a.values[std::size_t(k)] *= 1e-20;
  EXPECT_FALSE(sparse::scales_for(host, a, Format::fp32).row.empty());
}

TEST(Scales, BearRowsAndColumnsOfZerosAndTheSmallestAndLargestNumbers) {
  const exec::Host host(2);
  const double least = std::numeric_limits<double>::denorm_min(), most = std::numeric_limits<double>::max();
  for (const Dense& d : {Dense{{1e-300, 0, 0}, {0, 0, 0}, {0, 0, 1e300}}, Dense{{least, 0, 0}, {0, 1, 0}, {0, 0, most}},
                         Dense{{1, least, 0}, {most, 1, 0}, {0, 0, 1}}}) {
    CsrMatrix a = from_dense(d);
    for (const Format format : {Format::fp32, Format::fp16}) {
      const sparse::Scales s = sparse::scales_for(host, a, format);
      ASSERT_EQ(s.row.size(), 3u);
      for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(is_power_of_two(s.row[i]) && is_power_of_two(s.column[i]));
      for (const double v : largest(a, s).first) EXPECT_LE(v, format == Format::fp16 ? 65504 : 0x1p40);
    }
  }
  CsrMatrix zeros = grid(5, 5);
  for (double& v : zeros.values) v = 0;
  EXPECT_EQ(sparse::scales_for(host, zeros, Format::fp16).row, std::vector<double>(25, 1.0));
}

TEST(Scales, TheTypicalRowIsTheGeometricMeanToAPowerOfTwo) {
  const CsrMatrix a = spread(grid(25, 25), 40, false, 94);
  const sparse::Scales s = sparse::scales_for(exec::Host(1), a, Format::fp16);
  double sum = 0;
  for (const double r : s.row) sum += std::log2(r);
  EXPECT_TRUE(is_power_of_two(s.typical_row));
  EXPECT_NEAR(std::log2(s.typical_row), sum / 625, 1);
}

TEST(Scales, AreTheSameForAnyTeam) {
  const CsrMatrix a =
      spread(random_matrix({.rows = 6000, .per_row = 5, .symmetric_pattern = false, .seed = 95}), 60, false, 96);
  const sparse::Scales one = sparse::scales_for(exec::Host(1), a, Format::fp16);
  for (const int threads : {2, 3, 4}) {
    const sparse::Scales s = sparse::scales_for(exec::Host(threads), a, Format::fp16);
    EXPECT_EQ(s.row, one.row);
    EXPECT_EQ(s.column, one.column);
  }
}

}  // namespace
}  // namespace krilu::test
