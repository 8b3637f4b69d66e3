// SPDX-License-Identifier: Apache-2.0
// Mixed precision at its limits, on the host and on the emulated device: what refinement reaches is held against
// Gaussian elimination in long double and the bounds that double GMRES keeps, on matrices of prescribed condition and
// of any scale of rows, of columns and of the whole system.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "krilu/io.hpp"
#include "refinement.hpp"

namespace krilu::test::refinement {
namespace {

// --- limiting accuracy ---------------------------------------------------------------------------------------------

// In units of roundoff. Double GMRES comes to 1 on these systems.
constexpr Real few = 10;

void expect_limits(const CsrView& a, const std::vector<double>& b, const Elimination& reference, Real condition,
                   const Options& o) {
  const Solved s = judged(a, b, o);
  EXPECT_TRUE(s.r.status == Status::converged || s.r.status == Status::stagnated) << to_string(s.r.status);
  EXPECT_LE(backward_error(a, s.x, b), few * unit_roundoff()) << "ended in " << s.r.precision;
  EXPECT_LE(forward_error(s.x, reference.solve(b)), few * condition * unit_roundoff());
}

/// A tolerance that is not reached, so that every method goes as far as it can; no cycle is cut short.
Options to_the_limit(const std::string& solver, const std::string& precond, const Case& c) {
  Options o = options(solver, precond, c, 1e-16);
  o.restart = 160;
  o.max_iterations = 20000;
  return o;
}

TEST(Limits, ConditionsAreAsPrescribed) {
  for (const double condition : {1e2, 1e6, 1e10, 1e14})
    for (const bool symmetric : {false, true}) {
      const CsrMatrix a = with_condition(60, condition, symmetric, 7);
      ASSERT_EQ(a.nnz(), 60 * 60);
      // In the infinity norm up to 60 times that of the 2-norm, and as much below.
      const Elimination reference(a);
      EXPECT_GE(reference.condition(), condition / 60);
      EXPECT_LE(reference.condition(), condition * 60);
      // The reference keeps what is left of long double.
      const auto x = random_values(60, 1);
      EXPECT_LE(forward_error(x, reference.solve(product(a, x))), 1e3 * condition * unit_roundoff());
    }
}

TEST(Limits, RefinementReachesThoseOfDoubleWhateverTheCondition) {
  for (const double condition : {1e2, 1e4, 1e6, 1e8, 1e10, 1e12, 1e14}) {
    const CsrMatrix a = with_condition(60, condition, false, 7);
    const Elimination reference(a);
    const Real measured = reference.condition();
    // One whose solution is as large as the condition allows, and one whose solution is small.
    const std::vector<std::vector<double>> right_hand_sides{random_values(60, 3), product(a, random_values(60, 4))};
    for (const std::vector<double>& b : right_hand_sides)
      for (const char* precond : {"none", "ilu0"})  // ilu0: the complete factors, a being dense
        for (const Case& c : cases) {
          if (c.device == "emulated" && condition != 1e4 && condition != 1e12) continue;  // slow, and the same bits
          const Options o = to_the_limit("gmres-ir", precond, c);
          SCOPED_TRACE(words(o) + ", condition " + std::to_string(condition));
          expect_limits(a, b, reference, measured, o);
        }
  }
}

TEST(Limits, OfOtherMethodsRoundWhichItRuns) {
  for (const double condition : {1e2, 1e6, 1e10}) {
    const CsrMatrix a = with_condition(60, condition, true, 17);
    const Elimination reference(a);
    const Real measured = reference.condition();
    const auto b = random_values(60, 3);
    for (const auto& [solver, precond] :
         Pairs{{"cg", "ic0"}, {"bicgstab", "ilu0"}, {"gmres", "ilu0"}, {"gmres", "none"}, {"fgmres", "ilu0"}})
      for (const Case& c : cases) {
        const Options o = to_the_limit(solver, precond, c);
        SCOPED_TRACE(words(o) + ", condition " + std::to_string(condition));
        expect_limits(a, b, reference, measured, o);
      }
  }
}

TEST(Limits, OfSparseMatrices) {
  const CsrMatrix random = random_matrix({.rows = 150, .per_row = 6, .symmetric_pattern = false, .seed = 21});
  for (const CsrMatrix& a : {generate("gen:convdiff2d:12x12"), random}) {
    const Elimination reference(a);
    const Real condition = reference.condition();
    const auto b = random_values(std::size_t(a.rows), 5);
    for (const char* precond : {"jacobi", "dilu", "ilut:10,0.001", "ras:3,1"})
      for (const Case& c : cases) {
        const Options o = to_the_limit("gmres-ir", precond, c);
        SCOPED_TRACE(words(o));
        expect_limits(a, b, reference, condition, o);
      }
  }
}

// --- scale ---------------------------------------------------------------------------------------------------------

struct Decades {
  double rows, columns;
};

TEST(Scale, OfRowsAndColumnsIsNoObstacle) {
  const CsrMatrix m_matrix = generate("gen:convdiff2d:10x10");
  const auto y = random_values(100, 3), exponents = random_values(100, 12);
  for (const Decades d :
       {Decades{8, 0}, Decades{0, 8}, Decades{30, 0}, Decades{0, 30}, Decades{15, 15}, Decades{25, 25}}) {
    const CsrMatrix a = scaled(m_matrix, d.rows, d.columns, 11);
    const Elimination reference(a);
    std::vector<double> x = y;  // all columns take part in b alike
    for (std::size_t j = 0; j < 100; ++j) x[j] *= std::pow(10.0, -d.columns * exponents[j]);
    const std::vector<double> b = product(a, x);
    const std::vector<Real> expected = reference.solve(b);
    for (const auto& [solver, precond] : Pairs{{"gmres-ir", "jacobi"},
                                               {"gmres-ir", "dilu"},
                                               {"gmres-ir", "ilu0"},
                                               {"bicgstab", "dilu"},
                                               {"gmres", "ilu0"},
                                               {"fgmres", "dilu"}})
      for (const Case& c : cases) {
        Options o = options(solver, precond, c, 1e-10);
        o.restart = 100;
        SCOPED_TRACE(words(o) + ", rows 1e" + std::to_string(int(d.rows)) + ", columns 1e" +
                     std::to_string(int(d.columns)));
        const Solved s = judged(a, b, o);
        EXPECT_STREQ(to_string(s.r.status), "converged") << ::testing::PrintToString(s.r.notes);
        if (d.rows > 0) continue;  // the norm of the residual says nothing of small rows
        for (std::size_t j = 0; j < 100; ++j) {
          const Real size = std::pow(Real(10), d.columns * Real(exponents[j]));
          ASSERT_NEAR(double(size * s.x[j]), double(size * expected[j]), 1e-6) << "row " << j;
        }
      }
  }
}

TEST(Scale, OfSymmetricMatricesIsNoObstacleToCg) {
  CsrMatrix a = generate("gen:poisson2d:10x10");
  const auto e = random_values(100, 31);
  for (std::size_t i = 0; i < 100; ++i)
    for (auto k = std::size_t(a.offsets[i]); k < std::size_t(a.offsets[i + 1]); ++k)
      a.values[k] *= std::pow(10.0, 15 * e[i]) * std::pow(10.0, 15 * e[std::size_t(a.columns[k])]);
  // Exactly symmetric, whichever way the powers were multiplied.
  Dense d = to_dense(a);
  for (std::size_t i = 0; i < 100; ++i)
    for (std::size_t j = 0; j < i; ++j) d[i][j] = d[j][i];
  a = from_dense(d);
  std::vector<double> x = random_values(100, 32);
  for (std::size_t i = 0; i < 100; ++i) x[i] *= std::pow(10.0, -15 * e[i]);
  const std::vector<double> b = product(a, x);
  for (const char* precond : {"jacobi", "dic", "ic0"})
    for (const Case& c : cases) {
      const Options o = options("cg", precond, c, 1e-10);
      SCOPED_TRACE(words(o));
      ASSERT_STREQ(to_string(judged(a, b, options("cg", precond, {"fp64", c.device}, 1e-10)).r.status), "converged");
      const Solved s = judged(a, b, o);
      EXPECT_STREQ(to_string(s.r.status), "converged");
      if (c.precision == "fp32") {
        EXPECT_FALSE(raised(s.r)) << "scaled it is Poisson's matrix";
      }
    }
}

TEST(Scale, OfTheWholeSystemIsNoObstacle) {
  const CsrMatrix a = generate("gen:convdiff2d:10x10");
  const auto b = random_values(100, 3);
  const auto expected = Elimination(a).solve(b);
  for (const double of_matrix : {1e100, 1.0, 1e-100})
    for (const double of_b : {1e100, 1.0, 1e-100})
      for (const auto& [solver, precond] : Pairs{{"gmres-ir", "none"},
                                                 {"gmres-ir", "ilu0"},
                                                 {"bicgstab", "jacobi"},
                                                 {"gmres", "dilu"},
                                                 {"fgmres", "ilu0"}})
        for (const Case& c : cases) {
          Options o = options(solver, precond, c, 1e-10);
          o.restart = 100;
          SCOPED_TRACE(words(o) + ", A times " + std::to_string(std::log10(of_matrix)) + ", b times " +
                       std::to_string(std::log10(of_b)) + " decades");
          const Solved s = judged(times(of_matrix, a), times(of_b, b), o);
          EXPECT_STREQ(to_string(s.r.status), "converged");
          if (c.precision == "fp32") {
            EXPECT_FALSE(raised(s.r));
          }
          for (std::size_t i = 0; i < 100; ++i)
            ASSERT_NEAR(double(Real(s.x[i]) * of_matrix / of_b), double(expected[i]), 1e-7) << "row " << i;
        }
}

TEST(Scale, ByAPowerOfTwoChangesNoStep) {
  const CsrMatrix a = generate("gen:convdiff2d:10x10");
  const auto b = random_values(100, 3);
  for (const Case& c : cases) {
    const Options o = options("gmres-ir", "dilu", c, 1e-10);
    SCOPED_TRACE(words(o));
    const Solved s = judged(a, b, o);
    for (const double of_b : {0x1p300, 0x1p-300}) {
      const Solved other = judged(a, times(of_b, b), o);
      EXPECT_EQ(other.r.iterations, s.r.iterations);
      EXPECT_EQ(other.r.outer_iterations, s.r.outer_iterations);
      EXPECT_EQ(other.r.precision, s.r.precision);
    }
  }
}

/// Jacobi takes it away, of 16 bits too; rounding to these leaves rows whose columns differ so much as they are.
TEST(Scale, OfColumnsIsNoObstacleToJacobi) {
  const CsrMatrix a = generate("gen:convdiff2d:15x14");
  const auto b = random_values(210, 4);
  std::vector<double> scale(210);
  for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = std::ldexp(1.0, int(i * 7 % 31) - 15);
  CsrMatrix scaled = a;
  for (std::size_t k = 0; k < scaled.values.size(); ++k) scaled.values[k] *= scale[std::size_t(a.columns[k])];
  for (const char* solver : {"gmres", "gmres-ir", "bicgstab"})
    for (const Case& c : cases) {
      const Options o = options(solver, "jacobi", c, 1e-11);
      SCOPED_TRACE(words(o));
      const Solved s = judged(a, b, o), other = judged(scaled, b, o);
      for (const Solved* one : {&s, &other}) {
        EXPECT_STREQ(to_string(one->r.status), "converged");
        EXPECT_FALSE(raised(one->r));
      }
      if (c.precision == "fp32") {
        EXPECT_EQ(other.r.history, s.r.history);
        for (std::size_t i = 0; i < scale.size(); ++i) ASSERT_EQ(scale[i] * other.x[i], s.x[i]) << "row " << i;
      } else {
        EXPECT_LE(other.r.iterations, 4 * s.r.iterations);
      }
    }
}

TEST(Scale, DiagonalsOverSixtyDecadesAreSolvedInEveryRow) {
  const std::size_t n = 61;
  Dense d(n, std::vector<double>(n, 0.0));
  std::vector<double> b(n);
  for (std::size_t i = 0; i < n; ++i) {
    d[i][i] = (i % 2 ? -1.0 : 1.0) * std::pow(10.0, double(i) - 30);
    b[i] = 1 + 0.01 * double(i);
  }
  const CsrMatrix a = from_dense(d);
  for (const char* precond : {"jacobi", "ilu0"})
    for (const Case& c : cases) {
      const Options o = options("gmres-ir", precond, c, 1e-12);
      SCOPED_TRACE(words(o));
      const Solved s = judged(a, b, o);
      EXPECT_STREQ(to_string(s.r.status), "converged");
      for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(s.x[i] * d[i][i], b[i], 1e-10) << "row " << i;
    }
}

TEST(Scale, SubnormalEntriesDoNoHarm) {
  CsrMatrix a = generate("gen:convdiff2d:10x10");
  const std::vector<double> tiny{5e-324, -1e-310, 2e-308, -3e-320, 1e-300};
  std::size_t next = 0;
  for (std::size_t i = 0; i < 100; ++i)
    for (auto k = std::size_t(a.offsets[i]); k < std::size_t(a.offsets[i + 1]); ++k)
      if (a.columns[k] != Index(i) && (7 * i + k) % 5 == 0) a.values[k] = tiny[next++ % tiny.size()];
  ASSERT_GT(next, 50u);
  const auto b = random_values(100, 3);
  const auto expected = Elimination(a).solve(b);
  for (const char* precond : {"none", "jacobi", "dilu", "ilu0", "ilut:10,0.001"})
    for (const Case& c : cases) {
      const Options o = options("gmres-ir", precond, c, 1e-11);
      SCOPED_TRACE(words(o));
      const Solved s = judged(a, b, o);
      EXPECT_STREQ(to_string(s.r.status), "converged");
      for (std::size_t i = 0; i < 100; ++i) ASSERT_NEAR(s.x[i], double(expected[i]), 1e-8) << "row " << i;
    }
}

}  // namespace
}  // namespace krilu::test::refinement
