// SPDX-License-Identifier: Apache-2.0
// Rounded matrices against slow references in double: products against the explicitly scaled and rounded entries, row
// sums that 16 bits keep, columns in 16 bits against those in 32 bit for bit, lost entries counted one by one; and
// rounded preconditioners against the ones in double that they were made from, within bounds from the unit roundoff of
// their storage.
#include "sparse/rounding.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "precond/registry.hpp"
#include "sparse/operator.hpp"
#include "support/matrices.hpp"

namespace krilu::test {
namespace {

using sparse::Rounding;

template <class S>
constexpr Format format_of = std::is_same_v<S, float>  ? Format::fp32
                             : std::is_same_v<S, Half> ? Format::fp16
                                                       : Format::bf16;
/// Half a unit in the last place of 1.
template <class S>
constexpr double unit_roundoff = std::is_same_v<S, float>  ? 0x1p-24
                                 : std::is_same_v<S, Half> ? 0x1p-11
                                                           : 0x1p-8;

/// By way of a float, as the sources have it; to nearest, ties to even, the largest number in place of infinity.
template <class S>
double rounded_slowly(double v) {
  const double f = double(float(std::clamp(v, -3.3e38, 3.3e38)));
  if (f == 0 || std::is_same_v<S, float>) return f;
  const int least = std::is_same_v<S, Half> ? -14 : -126, bits = std::is_same_v<S, Half> ? 10 : 7;
  const double quantum = std::ldexp(1.0, std::max(std::ilogb(f), least) - bits);
  const double most = std::is_same_v<S, Half> ? 65504.0 : 3.39e38;
  return std::clamp(std::nearbyint(f / quantum) * quantum, -most, most);
}

/// The rounded matrix as the header promises it, in the caller's order, row by row.
template <class S>
RowMaps reference(const CsrView& a, const std::vector<double>& R, const std::vector<double>& C,
                  std::vector<bool>* keeps_sum = nullptr) {
  RowMaps rows(std::size_t(a.rows));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    long double missing = 0;
    double diagonal = 0;
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const auto j = std::size_t(a.columns[k]);
      if (j == i) {
        diagonal += a.values[k];
        continue;
      }
      const double scaled = R[i] * a.values[k] * C[j], value = rounded_slowly<S>(scaled);
      rows[i][Index(j)] += value;
      if (sizeof(S) == 2) missing += (static_cast<long double>(scaled) - value) / C[j];
    }
    const int bits = std::is_same_v<S, Half> ? 10 : 7;
    const bool keeps = std::abs(missing) <= std::ldexp(std::abs(R[i] * diagonal), -bits);
    rows[i][Index(i)] = double(R[i] * diagonal * C[i] + (keeps ? missing * C[i] : 0));
    if (keeps_sum) keeps_sum->push_back(keeps);
  }
  return rows;
}

sparse::RowOrder natural(Index n) { return {natural_order(n), natural_order(n), {0, n}, {}, {}}; }

sparse::RowOrder shuffled_rows(Index n, std::uint64_t seed) {
  sparse::RowOrder order;
  order.rows = shuffled_order(n, seed);
  order.place = schedule::inverse(order.rows);
  order.group = {0};
  while (order.group.back() < n) order.group.push_back(std::min<Index>(n, order.group.back() + 37));
  return order;
}

std::vector<std::pair<std::string, CsrMatrix>> rounding_matrices() {
  std::vector<std::pair<std::string, CsrMatrix>> all;
  all.emplace_back("random", random_matrix({.rows = 300, .per_row = 6, .symmetric_pattern = false, .seed = 71}));
  all.emplace_back("grid", grid(17, 13));
  all.emplace_back("long rows", with_long_rows(400, {40, 100, 250}, false, 72));
  all.emplace_back("empty rows", with_empty_rows(150, 73));
  all.emplace_back("large", random_matrix({.rows = 5000, .per_row = 5, .symmetric_pattern = false, .seed = 74}));
  all.emplace_back("one row", from_dense({{-2.3}}));
  return all;
}

/// A matrix on a space, with scales in the solver's order.
template <class Space>
struct Scaled {
  Scaled(const Space& space, const CsrView& a, sparse::RowOrder order, int height, const std::vector<double>& R,
         const std::vector<double>& C)
      : split(space, a, std::move(order), height),
        row(split.in(R)),
        column(split.in(C)),
        lost(to_device(space, std::vector<std::int64_t>{0})) {}
  template <class S>
  Rounding rounding() const {
    return {format_of<S>, row.data(), column.data(), lost.data()};
  }
  template <class S>
  sparse::SplitMatrix<float, S> rounded(bool narrow) const {
    return sparse::rounded_matrix<S>(split.space, split.pattern, split.matrix.view(), rounding<S>(),
                                     narrow ? sparse::NarrowColumns::of(split.space, *split.pattern) : nullptr);
  }
  /// Vectors in float, to the space in the solver's order; and back.
  exec::Array<float> in(const std::vector<double>& v) const {
    std::vector<float> w(v.size());
    for (std::size_t k = 0; k < v.size(); ++k) w[k] = float(v[std::size_t(split.order.rows[k])]);
    return to_device(split.space, w);
  }
  std::vector<double> out(const exec::Array<float>& a) const {
    const std::vector<float> w = to_host(split.space, a);
    std::vector<double> v(w.size());
    for (std::size_t k = 0; k < v.size(); ++k) v[std::size_t(split.order.rows[k])] = double(w[k]);
    return v;
  }

  SplitOn<Space> split;
  exec::Array<double> row, column;
  exec::Array<std::int64_t> lost;
};

std::vector<double> ones(std::size_t n) { return std::vector<double>(n, 1.0); }

/// A space and a storage type.
template <class A, class B>
struct On {
  using Space = A;
  using S = B;
};
using All = ::testing::Types<On<exec::Host, float>, On<exec::Host, Half>, On<exec::Host, Bfloat16>,
                             On<exec::Emulated, float>, On<exec::Emulated, Half>, On<exec::Emulated, Bfloat16>>;

template <class Case>
class RoundedMatrixTest : public ::testing::Test {};
TYPED_TEST_SUITE(RoundedMatrixTest, All);

TYPED_TEST(RoundedMatrixTest, ProductsAreThoseOfTheRoundedEntries) {
  using Space = typename TypeParam::Space;
  using S = typename TypeParam::S;
  for (const auto& [name, a] : rounding_matrices()) {
    const auto n = std::size_t(a.rows);
    const std::vector<double> R = random_powers(n, 4, 75), C = random_powers(n, 4, 76);
    std::vector<double> x = random_values(n, 77), b = random_values(n, 78);
    for (auto* v : {&x, &b})
      for (double& e : *v) e = double(float(e));
    const RowMaps expected = reference<S>(a, R, C);
    for (int height : {1, 4, 8})
      for (int threads : {1, 3}) {
        SCOPED_TRACE(fmt::format("{}, height {}, {} threads", name, height, threads));
        const Scaled<Space> s(make_space<Space>(threads), a, shuffled_rows(a.rows, 79), height, R, C);
        const auto wide = s.template rounded<S>(false), narrow = s.template rounded<S>(true);
        ASSERT_TRUE(narrow.narrow);
        const sparse::SplitOperator<Space, float, S> A(s.split.space, wide), A_narrow(s.split.space, narrow);
        const auto xs = s.in(x), bs = s.in(b), ys = s.in(b), rs = s.in(x), yn = s.in(b), rn = s.in(x);
        A.apply(xs.data(), ys.data());
        A.residual(bs.data(), xs.data(), rs.data());
        A_narrow.apply(xs.data(), yn.data());
        A_narrow.residual(bs.data(), xs.data(), rn.data());
        const std::vector<double> y = s.out(ys), r = s.out(rs);
        for (std::size_t i = 0; i < n; ++i) {
          double sum = 0, size = 0;
          for (const auto& [j, v] : expected[i]) {
            sum += v * x[std::size_t(j)];
            size += std::abs(v * x[std::size_t(j)]);
          }
          const double bound = double(expected[i].size() + 3) * 0x1p-24 * (size + 1e-30);
          ASSERT_NEAR(y[i], sum, bound) << "row " << i;
          ASSERT_NEAR(r[i], b[i] - sum, bound + 0x1p-23 * std::abs(b[i])) << "row " << i;
        }
        const std::vector<double> y_narrow = s.out(yn), r_narrow = s.out(rn);
        if (height > 1) {
          EXPECT_EQ(bits(y_narrow), bits(y)) << "narrow columns";
          EXPECT_EQ(bits(r_narrow), bits(r)) << "narrow columns";
        } else {  // a compiler may contract the two loops over a row differently
          EXPECT_LE(difference(y_narrow, y), 0x1p-22);
          EXPECT_LE(difference(r_narrow, r), 0x1p-22);
        }
        EXPECT_EQ(to_host(s.split.space, s.lost)[0], 0);
        A.residual(bs.data(), xs.data(), bs.data());
        EXPECT_EQ(bits(s.out(bs)), bits(r)) << "in place";
      }
  }
}

TYPED_TEST(RoundedMatrixTest, RowSumsAreKeptToAFloat) {
  using Space = typename TypeParam::Space;
  using S = typename TypeParam::S;
  for (const auto& [name, a] : rounding_matrices()) {
    SCOPED_TRACE(name);
    const auto n = std::size_t(a.rows);
    const std::vector<double> R = random_powers(n, 3, 81), C = random_powers(n, 3, 82);
    const Scaled<Space> s(make_space<Space>(2), a, shuffled_rows(a.rows, 83), 0, R, C);
    std::vector<bool> keeps_sum;
    reference<S>(a, R, C, &keeps_sum);
    EXPECT_GE(2 * std::count(keeps_sum.begin(), keeps_sum.end(), true), a.rows);
    const auto m = s.template rounded<S>(true);
    const sparse::SplitOperator<Space, float, S> A(s.split.space, m);
    std::vector<double> x(n);  // C x = 1, without rounding
    for (std::size_t i = 0; i < n; ++i) x[i] = 1 / C[i];
    const auto xs = s.in(x), ys = s.in(x);
    A.apply(xs.data(), ys.data());
    const std::vector<double> y = s.out(ys);
    for (std::size_t i = 0; i < n; ++i) {
      if (!keeps_sum[i]) continue;
      long double sum = 0, size = 0;
      for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
        sum += a.values[std::size_t(k)];
        size += std::abs(a.values[std::size_t(k)]);
      }
      ASSERT_NEAR(y[i], double(R[i] * sum), double(R[i] * size) * double(a.offsets[i + 1] - a.offsets[i] + 4) * 0x1p-24)
          << "row " << i;
    }
  }
}

TYPED_TEST(RoundedMatrixTest, DiagonalsAreNotDrownedByColumnsOfAnotherScale) {
  using Space = typename TypeParam::Space;
  using S = typename TypeParam::S;
  CsrMatrix a = grid(14, 15);
  for (std::size_t k = 0; k < a.values.size(); ++k) a.values[k] *= std::ldexp(1.0, int(a.columns[k] * 5 % 19) - 9);
  const Scaled<Space> s(make_space<Space>(2), a, shuffled_rows(210, 84), 8, ones(210), ones(210));
  const auto m = s.template rounded<S>(false);
  const auto got = to_host(s.split.space, m.diagonal);
  for (std::size_t place = 0; place < got.size(); ++place) {
    const Index i = s.split.order.rows[place];
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      if (a.columns[std::size_t(k)] == i) {
        EXPECT_NEAR(double(got[place]), a.values[std::size_t(k)], 0x1p-7 * std::abs(a.values[std::size_t(k)]));
      }
  }
}

TYPED_TEST(RoundedMatrixTest, WithoutScalesIsThatOfScalesOfOne) {
  using Space = typename TypeParam::Space;
  using S = typename TypeParam::S;
  const CsrMatrix a = grid(14, 15);
  const Scaled<Space> s(make_space<Space>(2), a, shuffled_rows(210, 84), 8, ones(210), ones(210));
  const auto with = s.template rounded<S>(false);
  const auto without =
      sparse::rounded_matrix<S>(s.split.space, s.split.pattern, s.split.matrix.view(), {format_of<S>}, nullptr);
  const auto of = [&](const exec::Array<S>& values) {
    std::vector<float> v;
    for (const S e : to_host(s.split.space, values)) v.push_back(float(e));
    return v;
  };
  EXPECT_EQ(of(with.lower), of(without.lower));
  EXPECT_EQ(of(with.upper), of(without.upper));
  EXPECT_EQ(to_host(s.split.space, with.diagonal), to_host(s.split.space, without.diagonal));
}

TYPED_TEST(RoundedMatrixTest, CountsEntriesThatBecomeZeroOneByOne) {
  using Space = typename TypeParam::Space;
  using S = typename TypeParam::S;
  for (int height : {1, 4, 8}) {
    CsrMatrix a = random_matrix({.rows = 203, .per_row = 6, .symmetric_pattern = false, .seed = 85});
    std::int64_t expected = 0;
    for (Index i = 0; i < a.rows; ++i)
      for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
        double& v = a.values[std::size_t(k)];
        const bool diagonal = a.columns[std::size_t(k)] == i;
        switch (k % 7) {
          case 0: v = 0; break;  // nothing to lose
          case 1:
            v = -1e-50;
            ++expected;
            break;  // below all formats
          case 2:   // half of the least of fp16: a tie, to zero
            v = 0x1p-25;
            expected += std::is_same_v<S, Half> && !diagonal;  // diagonals are floats
            break;
          case 3: v = 0x1.01p-25; break;  // to the least of fp16
          case 4:
            v = 1e-30;
            expected += std::is_same_v<S, Half> && !diagonal;
            break;
          default: break;
        }
      }
    const Scaled<Space> s(make_space<Space>(2), a, shuffled_rows(a.rows, 86), height, ones(203), ones(203));
    const auto first = s.template rounded<S>(false);
    EXPECT_EQ(to_host(s.split.space, s.lost)[0], expected);
    const auto second = s.template rounded<S>(true);
    EXPECT_EQ(to_host(s.split.space, s.lost)[0], 2 * expected) << "the count is added to";
    // Scales that bring the least into range leave only zeros that are zeros.
    const Scaled<Space> up(make_space<Space>(2), a, shuffled_rows(a.rows, 86), height,
                           std::vector<double>(203, std::ldexp(1.0, 80)),
                           std::vector<double>(203, std::ldexp(1.0, 80)));
    const auto third = up.template rounded<S>(false);
    EXPECT_EQ(to_host(up.split.space, up.lost)[0], 0);
  }
}

TYPED_TEST(RoundedMatrixTest, WhatIsTooLargeBecomesTheLargestNumber) {
  using Space = typename TypeParam::Space;
  using S = typename TypeParam::S;
  CsrMatrix a = grid(6, 5);
  for (double& v : a.values) v *= 1e200;
  const Scaled<Space> s(make_space<Space>(1), a, shuffled_rows(30, 87), 4, ones(30), ones(30));
  const auto m = s.template rounded<S>(false);
  for (const auto* part : {&m.lower, &m.upper})
    for (const S v : to_host(s.split.space, *part))
      EXPECT_TRUE(std::isfinite(float(v)) && (float(v) == 0 || float(v) < -6e4));
  for (const float v : to_host(s.split.space, m.diagonal)) EXPECT_TRUE(std::isfinite(v) && v > 1e38f);
}

// --- columns in 16 bits --------------------------------------------------------------------------------------------

template <class Space>
class NarrowTest : public ::testing::Test {};
TYPED_TEST_SUITE(NarrowTest, Spaces);

/// The diagonal, and in one row two entries `apart`, in the upper triangle or in the lower.
CsrMatrix two_apart(Index apart, bool upper) {
  const Index n = apart + 20;
  CsrMatrix a;
  a.rows = a.cols = n;
  a.offsets.push_back(0);
  for (Index i = 0; i < n; ++i) {
    std::vector<Index> columns{i};
    if (upper && i == 2) columns = {2, 7, 7 + apart};
    if (!upper && i == n - 1) columns = {5, 5 + apart, n - 1};
    for (Index j : columns) {
      a.columns.push_back(j);
      a.values.push_back(j == i ? 2 : 0.3 + 0.1 * double(j % 5));
    }
    a.offsets.push_back(Offset(a.columns.size()));
  }
  return a;
}

TYPED_TEST(NarrowTest, PatternsTooWideForSixteenBitsHaveNone) {
  for (const bool upper : {true, false})
    for (const int height : {1, 4, 8})
      for (const Index apart : {65535, 65536, 70000}) {
        SCOPED_TRACE(fmt::format("{} apart, upper {}, height {}", apart, upper, height));
        const CsrMatrix a = two_apart(apart, upper);
        const auto n = std::size_t(a.rows);
        const Scaled<TypeParam> s(make_space<TypeParam>(2), a, natural(a.rows), height, ones(n), ones(n));
        const auto narrow = sparse::NarrowColumns::of(s.split.space, *s.split.pattern);
        // The padding of a slice may read further than its entries do.
        if (height == 1) {
          ASSERT_EQ(narrow != nullptr, apart <= 65535);
        } else if (apart > 65535) {
          ASSERT_EQ(narrow, nullptr);
        }
        const auto m = s.template rounded<Half>(true);
        const auto x = s.in(random_values(n, 88)), y = s.in(ones(n)), wide_y = s.in(ones(n));
        const auto wide = s.template rounded<Half>(false);
        sparse::SplitOperator<TypeParam, float, Half>(s.split.space, m).apply(x.data(), y.data());
        sparse::SplitOperator<TypeParam, float, Half>(s.split.space, wide).apply(x.data(), wide_y.data());
        EXPECT_EQ(bits(s.out(y)), bits(s.out(wide_y)));
        EXPECT_NE(s.out(y), ones(n));
      }
}

TYPED_TEST(NarrowTest, TakeTwoBytesAnEntryAndFourASlice) {
  const CsrMatrix a = grid(30, 20);
  for (const int height : {1, 8}) {
    const SplitOn<TypeParam> s(make_space<TypeParam>(2), a, "rcm", height);
    const auto narrow = sparse::NarrowColumns::of(s.space, *s.pattern);
    ASSERT_TRUE(narrow);
    EXPECT_EQ(narrow->bytes(), 2 * std::size_t(s.pattern->lower_entries() + s.pattern->upper_entries()) +
                                   8 * std::size_t(s.pattern->slices()));
  }
}

// --- preconditioners -----------------------------------------------------------------------------------------------

/// A factored preconditioner that can be given new values and taken away.
template <class Space>
struct Made {
  Made(const std::string& name, const CsrMatrix& a, const std::vector<double>& R, const std::vector<double>& C,
       int threads = 2)
      : scaled(make_space<Space>(threads), a, SplitOn<Space>::levels_of(make_space<Space>(threads), a, "natural"), 0, R,
               C) {
    const precond::Context<Space> context{scaled.split.space, triangular::Strategy::automatic,
                                          [rows = scaled.split.order.rows](Index i) { return rows[std::size_t(i)]; },
                                          a};
    M = precond::make<Space, double>(name, context, scaled.split.pattern);
    M->factor({scaled.split.matrix, a}, 0);
  }
  void factor(const CsrMatrix& a) {
    scaled.split.fill(a);
    M->factor({scaled.split.matrix, a}, 0);
  }
  std::vector<double> apply(const std::vector<double>& r) const {
    const auto in = scaled.split.in(r), out = scaled.split.in(std::vector<double>(r.size(), 1e300));
    M->apply(in.data(), out.data());
    return scaled.split.out(out);
  }
  template <class S>
  std::shared_ptr<const sparse::RoundedMatrixOf<Space, S>> matrix() const {
    return std::make_shared<const sparse::RoundedMatrixOf<Space, S>>(scaled.template rounded<S>(true));
  }
  Scaled<Space> scaled;
  std::unique_ptr<precond::Preconditioner<Space, double>> M;
};

/// C (R M C)^-1 R r.
template <class Space>
std::vector<double> apply_rounded(const Scaled<Space>& s, precond::Preconditioner<Space, float>& rounded,
                                  std::vector<double> r, const std::vector<double>& R, const std::vector<double>& C) {
  for (std::size_t i = 0; i < r.size(); ++i) r[i] *= R[i];
  const auto in = s.in(r), out = s.in(std::vector<double>(r.size(), 1e30));
  rounded.apply(in.data(), out.data());
  std::vector<double> z = s.out(out);
  for (std::size_t i = 0; i < z.size(); ++i) z[i] *= C[i];
  return z;
}

const char* const all_preconds[] = {"jacobi", "dilu", "ilu0", "iluk:1", "ilut", "block-ilu:4", "ras:3", "none"};

template <class Case>
class RoundedPreconditionerTest : public ::testing::Test {};
TYPED_TEST_SUITE(RoundedPreconditionerTest, All);

TYPED_TEST(RoundedPreconditionerTest, IsTheDoubleOneToTheFormatsRoundoff) {
  using Space = typename TypeParam::Space;
  using S = typename TypeParam::S;
  for (const auto& [name, a] :
       {std::pair{"random", random_matrix({.rows = 250, .per_row = 5, .symmetric_pattern = false, .seed = 101})},
        std::pair{"grid", grid(16, 15)}}) {
    const auto n = std::size_t(a.rows);
    const std::vector<double> r = random_values(n, 102);
    for (const bool scaled : {false, true}) {
      const std::vector<double> R = scaled ? random_powers(n, 3, 103) : ones(n),
                                C = scaled ? random_powers(n, 3, 104) : ones(n);
      for (const std::string precond : all_preconds) {
        SCOPED_TRACE(fmt::format("{} of {}, scaled {}", precond, name, scaled));
        if (precond == "none" && scaled) continue;  // stays I
        const Made<Space> made(precond, a, R, C);
        const auto A = made.template matrix<S>();
        for (const bool given : {false, true}) {
          const auto rounded = made.M->rounded(made.scaled.template rounding<S>(), given ? A : nullptr);
          ASSERT_TRUE(rounded);
          const double off = difference(apply_rounded(made.scaled, *rounded, r, R, C), made.apply(r));
          const bool diagonal = precond == "jacobi" || precond == "none";
          const double u = diagonal ? unit_roundoff<float> : unit_roundoff<S>;
          EXPECT_LE(off, 4 * u);
          EXPECT_GE(off, u / 50) << "stored in more than it says";
        }
      }
    }
  }
}

TYPED_TEST(RoundedPreconditionerTest, LivesOnWhenTheOriginalFactorsAnewAndWhenItIsGone) {
  using Space = typename TypeParam::Space;
  using S = typename TypeParam::S;
  const CsrMatrix a = random_matrix({.rows = 220, .per_row = 5, .seed = 105});
  CsrMatrix other = a;
  for (double& v : other.values) v *= -3;
  const std::vector<double> r = random_values(220, 106), R = random_powers(220, 2, 107), C = random_powers(220, 2, 108);
  for (const std::string precond : all_preconds) {
    SCOPED_TRACE(precond);
    Made<Space> made(precond, a, R, C);
    auto A = made.template matrix<S>();
    const auto rounded = made.M->rounded(made.scaled.template rounding<S>(), A);
    made.scaled.split.space.synchronise();  // A is written by what stands in the queue
    A.reset();
    const std::vector<double> before = apply_rounded(made.scaled, *rounded, r, R, C), exact = made.apply(r);
    made.factor(other);
    EXPECT_EQ(bits(apply_rounded(made.scaled, *rounded, r, R, C)), bits(before));
    if (precond != "none") {
      EXPECT_GT(difference(made.apply(r), exact), 1) << "the new values are meant to matter";
      EXPECT_GT(
          difference(apply_rounded(made.scaled, *made.M->rounded(made.scaled.template rounding<S>(), nullptr), r, R, C),
                     exact),
          1);
    }
    made.M.reset();
    made.scaled.split.pattern.reset();
    made.scaled.split.matrix = {};
    for (int again = 0; again < 9; ++again)  // through a chooser's trials
      EXPECT_EQ(bits(apply_rounded(made.scaled, *rounded, r, R, C)), bits(before));
  }
}

TYPED_TEST(RoundedPreconditionerTest, DiluSharesTheTrianglesOfARoundedMatrix) {
  using Space = typename TypeParam::Space;
  using S = typename TypeParam::S;
  const CsrMatrix a = grid(20, 18);
  const Made<Space> dilu("dilu", a, ones(360), ones(360)), ilu("ilu0", a, ones(360), ones(360));
  const auto A = dilu.template matrix<S>();
  const Rounding rounding = dilu.scaled.template rounding<S>();
  const auto alone = dilu.M->rounded(rounding, nullptr);
  EXPECT_EQ(A.use_count(), 1);
  const auto sharing = dilu.M->rounded(rounding, A);
  EXPECT_EQ(A.use_count(), 2);
  // A reads its own diagonal; the triangles are bit for bit those of a copy.
  const std::vector<double> r = random_values(360, 109);
  EXPECT_EQ(bits(apply_rounded(dilu.scaled, *sharing, r, ones(360), ones(360))),
            bits(apply_rounded(dilu.scaled, *alone, r, ones(360), ones(360))));
  // Another format's matrix is of no use, and ILU(0) has triangles of its own.
  using Other = std::conditional_t<std::is_same_v<S, Half>, float, Half>;
  const auto B = dilu.template matrix<Other>();
  const auto of_another = dilu.M->rounded(rounding, B);
  EXPECT_EQ(B.use_count(), 1);
  EXPECT_EQ(bits(apply_rounded(dilu.scaled, *of_another, r, ones(360), ones(360))),
            bits(apply_rounded(dilu.scaled, *alone, r, ones(360), ones(360))));
  const auto of_ilu = ilu.M->rounded(ilu.scaled.template rounding<S>(), A);
  EXPECT_EQ(A.use_count(), 2);
  // What is shared is counted once: beside A, only the reciprocal diagonal.
  const std::size_t triangles = A->matrix.lower.bytes() + A->matrix.upper.bytes();
  EXPECT_EQ(sharing->bytes(), 360 * sizeof(float));
  EXPECT_GE(alone->bytes(), triangles + 360 * sizeof(float));
  EXPECT_GE(of_ilu->bytes(), triangles + 360 * sizeof(float));
}

}  // namespace
}  // namespace krilu::test
