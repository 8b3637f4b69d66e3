// SPDX-License-Identifier: Apache-2.0
// F and its Jacobian on every space: differences by colours against the formulas, within what truncation and rounding
// allow entry by entry, for unknowns of all magnitudes; products by differences against J v; the same bits on any
// number of threads and on any space.
#include "newton/evaluation.hpp"

#include <map>

#include "newton/systems.hpp"
#include "support/matrices.hpp"

namespace krilu::test {
namespace {

using newton::Evaluation;

template <class Space>
class EvaluationTest : public ::testing::Test {};
TYPED_TEST_SUITE(EvaluationTest, Spaces);

/// Everything that an Evaluation gives at x, along v.
struct Evaluated {
  std::vector<double> F, own, differences, product;
  Index colours = 0;
};
template <class Space>
Evaluated evaluate(const Equations& equations, const std::vector<double>& x, const std::vector<double>& v,
                   int threads = 2) {
  const auto space = make_space<Space>(threads);
  Options linear;
  linear.threads = threads;
  const newton::Part part(equations, nullptr, linear);
  Evaluation<Space> f(space, space, equations, part);
  const auto at = to_device(space, x), along = to_device(space, v);
  const auto F = space.template allocate<double>(x.size()), y = space.template allocate<double>(x.size());
  Evaluated out;
  f.residual(at.data(), F.data());
  out.F = to_host(space, F);
  if (equations.has_jacobian()) {
    f.own_jacobian(at.data());
    out.own = to_host(space, f.values());
    f.prepare_products();
    f.linearise(at.data(), F.data());
    f.product(along.data(), y.data());
    out.product = to_host(space, y);
  }
  f.analyse_differences();
  out.colours = f.colours();
  f.jacobian_by_differences(at.data(), F.data());
  out.differences = to_host(space, f.values());
  f.linearise(at.data(), F.data());
  f.product(along.data(), y.data());
  const std::vector<double> product = to_host(space, y);
  if (equations.has_jacobian()) {
    EXPECT_EQ(bits(product), bits(out.product)) << "differences came between";
  }
  out.product = product;
  EXPECT_GE(f.bytes(), std::size_t(part.entries()) * sizeof(double));
  return out;
}

std::vector<double> mixed_magnitudes(Index n, double lowest, double highest, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> power(lowest, highest), part(0, 1);
  std::vector<double> x;
  for (Index i = 0; i < n; ++i) {
    const double v = std::pow(10, power(engine));
    x.push_back(part(engine) < 0.05 ? 0 : part(engine) < 0.5 ? v : -v);
  }
  return x;
}
double root_mean_square(const std::vector<double>& x) {
  return x.empty() || norm_of(x) == 0 ? 1 : norm_of(x) / std::sqrt(double(x.size()));
}

/// A difference over h is wrong by half of h times the second derivative, and by the rounding of two sums over h.
void expect_differences(const Tangled& t, const std::vector<double>& x, const std::vector<double>& got) {
  const RowEquations equations(t);
  const CsrMatrix J = jacobian_of(equations, x);
  ASSERT_EQ(got.size(), J.values.size());
  const double unit = std::numeric_limits<double>::epsilon(), size = root_mean_square(x);
  for (Index i = 0; i < J.rows; ++i) {
    const Offset begin = J.offsets[std::size_t(i)], end = J.offsets[std::size_t(i) + 1];
    if (begin == end) continue;
    double magnitude = t.b.empty() ? 0 : std::abs(t.b[std::size_t(i)]);
    for (Offset k = begin; k < end; ++k) {
      const double v = x[std::size_t(J.columns[std::size_t(k)])];
      magnitude += std::abs(t.a->values[std::size_t(k)]) * (std::abs(v) + std::abs(t.bend * v * v * v));
    }
    const auto edge = [&](Offset k) { return x[std::size_t(J.columns[std::size_t(k)])]; };
    magnitude += std::abs(t.cross * edge(begin) * edge(end - 1));
    for (Offset k = begin; k < end; ++k) {
      const auto e = std::size_t(k);
      const double v = std::abs(edge(k)), h = std::ldexp(std::max(v, 0.01 * size), -26);
      const double second = 6 * std::abs(t.bend * t.a->values[e]) * (v + h) + (begin + 1 == end ? 2 * t.cross : 0);
      const double allowed =
          0.51 * h * second + double(end - begin + 4) * unit * magnitude / h + 8 * unit * std::abs(J.values[e]);
      ASSERT_LE(std::abs(got[e] - J.values[e]), allowed) << "row " << i << ", column " << J.columns[e] << ", h " << h;
    }
  }
}

TYPED_TEST(EvaluationTest, FAndTheOwnJacobianAreTheEquations) {
  const RowEquations equations(Bratu{17, 5});
  const std::vector<double> x = random_values(289, 21);
  const Evaluated e = evaluate<TypeParam>(equations, x, x);
  EXPECT_EQ(bits(e.F), bits(residual_of(equations, x)));
  const CsrMatrix J = jacobian_of(equations, x);
  EXPECT_EQ(bits(e.own), bits({J.values.begin(), J.values.end()}));
}

TYPED_TEST(EvaluationTest, DifferencesOfBratuAreItsJacobian) {
  const RowEquations equations(Bratu{17, 5});
  for (const double scale : {0.0, 1e-3, 1.0, 3.0}) {
    std::vector<double> x = random_values(289, 22);
    for (double& v : x) v *= scale;
    const Evaluated e = evaluate<TypeParam>(equations, x, x);
    EXPECT_LE(e.colours, 8);
    const double size = root_mean_square(x);
    const CsrMatrix J = jacobian_of(equations, x);
    for (Index i = 0; i < J.rows; ++i)
      for (Offset k = J.offsets[std::size_t(i)]; k < J.offsets[std::size_t(i) + 1]; ++k) {
        const Index j = J.columns[std::size_t(k)];
        const double h = std::ldexp(std::max(std::abs(x[std::size_t(j)]), 0.01 * size), -26);
        const double allowed = h * equations.row().source(x[std::size_t(i)]) + 4e-15 * (1 + 8 * size) / h;
        ASSERT_NEAR(e.differences[std::size_t(k)], e.own[std::size_t(k)], allowed) << i << ", " << j;
      }
  }
}

TYPED_TEST(EvaluationTest, DifferencesOfATangledSystemAreItsJacobianWhateverTheMagnitudes) {
  const Index n = 300;
  for (std::uint64_t seed = 31; seed < 34; ++seed)
    for (const auto& [lowest, highest] : {std::pair{-1.0, 1.0}, {-6.0, 3.0}, {-9.0, -4.0}, {4.0, 6.0}}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", up to 1e" + std::to_string(highest));
      const Tangled t = tangled(n, 0.1, 0.3, mixed_magnitudes(n, lowest, highest, seed), seed);
      const std::vector<double> x = mixed_magnitudes(n, lowest, highest, seed + 10);
      expect_differences(t, x, evaluate<TypeParam>(RowEquations(t), x, x).differences);
    }
}

TYPED_TEST(EvaluationTest, DifferencesAtZero) {
  const Tangled t = tangled(200, 0.2, 0.1, random_values(200, 35), 35);
  const std::vector<double> zero(200, 0.0);
  expect_differences(t, zero, evaluate<TypeParam>(RowEquations(t), zero, zero).differences);
}

TYPED_TEST(EvaluationTest, DifferencesOfALinearSystemAreItsMatrix) {
  // Dense rows, empty rows and columns: every entry is written, each from its own colour.
  for (const GpuCase& c : small_cases()) {
    SCOPED_TRACE(c.name);
    const Tangled t{std::make_shared<const CsrMatrix>(c.a)};
    const std::vector<double> x = random_values(std::size_t(c.a.rows), 36);
    expect_differences(t, x, evaluate<TypeParam>(RowEquations(t), x, x).differences);
  }
}

/// Rows that name neighbours which they do not look at.
struct Claims {
  Index rows() const { return 40; }
  template <class Add>
  void columns(Index i, Add add) const {
    for (Index j = std::max(i - 3, 0); j <= std::min(i + 3, 39); ++j) add(j);
  }
  double residual(Index i, View<const double> x) const { return std::sin(x[i]); }
};

TYPED_TEST(EvaluationTest, APatternThatClaimsTooMuchGetsZeros) {
  const RowEquations equations(Claims{});
  const std::vector<double> x = random_values(40, 37);
  const CsrMatrix pattern = equations.pattern();
  const Evaluated e = evaluate<TypeParam>(equations, x, x);
  EXPECT_EQ(e.colours, 7);
  for (Index i = 0; i < 40; ++i)
    for (Offset k = pattern.offsets[std::size_t(i)]; k < pattern.offsets[std::size_t(i) + 1]; ++k) {
      if (pattern.columns[std::size_t(k)] == i)
        EXPECT_NEAR(e.differences[std::size_t(k)], std::cos(x[std::size_t(i)]), 1e-6);
      else
        EXPECT_EQ(e.differences[std::size_t(k)], 0);
    }
}

std::vector<double> product_of(const CsrMatrix& J, const std::vector<double>& v) {
  std::vector<double> y;
  for (Index i = 0; i < J.rows; ++i) {
    long double sum = 0;
    for (Offset k = J.offsets[std::size_t(i)]; k < J.offsets[std::size_t(i) + 1]; ++k)
      sum += static_cast<long double>(J.values[std::size_t(k)]) * v[std::size_t(J.columns[std::size_t(k)])];
    y.push_back(double(sum));
  }
  return y;
}

TYPED_TEST(EvaluationTest, ProductsByDifferencesAreTheJacobiansWhateverTheLengthOfTheVector) {
  const Tangled t = tangled(300, 0.1, 0.3, random_values(300, 41), 41);
  const RowEquations tangled_equations(t);
  const RowEquations bratu(Bratu{17, 5});
  const std::vector<const Equations*> both{&tangled_equations, &bratu};
  for (const Equations* equations : both)
    for (const double scale : {0.0, 0.01, 1.0, 5.0}) {
      const auto n = std::size_t(equations->rows());
      std::vector<double> x = random_values(n, 42);
      for (double& v : x) v *= scale;
      const CsrMatrix J = jacobian_of(*equations, x);
      for (const double length : {1e-100, 1e-8, 1.0, 1e8, 1e100}) {
        std::vector<double> v = random_values(n, 43);
        for (double& e : v) e *= length;
        EXPECT_LE(difference(evaluate<TypeParam>(*equations, x, v).product, product_of(J, v)), 1e-6)
            << "x of size " << scale << ", v of size " << length;
      }
    }
}

TYPED_TEST(EvaluationTest, TheProductWithZeroIsZero) {
  const RowEquations equations(Bratu{9, 5});
  for (const double y : evaluate<TypeParam>(equations, random_values(81, 44), std::vector<double>(81, 0.0)).product)
    ASSERT_EQ(y, 0);
}

TYPED_TEST(EvaluationTest, NoRowsAreNoTrouble) {
  const Evaluated e = evaluate<TypeParam>(RowEquations(Bratu{0, 1}), {}, {});
  EXPECT_EQ(e.colours, 0);
  EXPECT_TRUE(e.differences.empty());
}

TYPED_TEST(EvaluationTest, TheSameBitsOnAnyNumberOfThreads) {
  const RowEquations equations(Bratu{90, 5});  // enough rows for three threads to share
  const std::vector<double> x = random_values(8100, 45), v = random_values(8100, 46);
  const Evaluated one = evaluate<exec::Host>(equations, x, v, 1);
  for (const int threads : {1, 2, 3}) {
    const Evaluated e = evaluate<TypeParam>(equations, x, v, threads);
    EXPECT_EQ(bits(e.F), bits(one.F));
    EXPECT_EQ(bits(e.own), bits(one.own));
    EXPECT_EQ(bits(e.differences), bits(one.differences));
    EXPECT_EQ(bits(e.product), bits(one.product));
  }
}

}  // namespace
}  // namespace krilu::test
