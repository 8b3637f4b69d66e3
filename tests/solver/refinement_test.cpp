// SPDX-License-Identifier: Apache-2.0
// Mixed precision as a caller meets it, on the host and on the emulated device: what refinement reaches is held against
// Gaussian elimination in long double and the bounds that double GMRES keeps, on matrices of prescribed condition and
// of any scale; what it claims (status, residual, history, precision) against residuals formed here; and that precision
// is raised where the low one does not do, so that nothing is lost that double solves.
// Source of the bounds: Carson and Higham, SIAM J. Sci. Comput. 40 (2018): refinement whose residuals are formed in the
// working precision ends with a normwise backward error of a few units of roundoff u, a forward error of cond(A) u.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "support/not_finite.hpp"
#include "support/refusal.hpp"
#include "support/solved.hpp"
#include "support/support.hpp"

namespace {

using namespace krilu;
using test::any_has;
using test::infinity;
using test::nan;
using test::Solved;

// --- references ----------------------------------------------------------------------------------------------------

using Real = long double;

double unit_roundoff() { return std::numeric_limits<double>::epsilon() / 2; }

/// Gaussian elimination with partial pivoting of the matrix scaled by powers of two, in long double.
class Elimination {
 public:
  explicit Elimination(const CsrView& a)
      : n_(std::size_t(a.rows)),
        row_(n_, Real(1)),
        column_(n_, Real(1)),
        lu_(n_, std::vector<Real>(n_, Real(0))),
        order_(n_) {
    for (std::size_t i = 0; i < n_; ++i)
      for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) lu_[i][std::size_t(a.columns[k])] = a.values[k];
    for (std::size_t i = 0; i < n_; ++i) {
      Real most = 0, sum = 0;
      for (const Real v : lu_[i]) {
        most = std::max(most, std::abs(v));
        sum += std::abs(v);
      }
      norm_ = std::max(norm_, sum);
      row_[i] = power_of_two(most);
      for (Real& v : lu_[i]) v *= row_[i];
    }
    for (std::size_t j = 0; j < n_; ++j) {
      Real most = 0;
      for (std::size_t i = 0; i < n_; ++i) most = std::max(most, std::abs(lu_[i][j]));
      column_[j] = power_of_two(most);
      for (std::size_t i = 0; i < n_; ++i) lu_[i][j] *= column_[j];
    }
    std::iota(order_.begin(), order_.end(), std::size_t(0));
    for (std::size_t k = 0; k < n_; ++k) {
      std::size_t p = k;
      for (std::size_t i = k + 1; i < n_; ++i)
        if (std::abs(lu_[i][k]) > std::abs(lu_[p][k])) p = i;
      std::swap(lu_[k], lu_[p]);
      std::swap(order_[k], order_[p]);
      for (std::size_t i = k + 1; i < n_; ++i) {
        const Real f = lu_[i][k] /= lu_[k][k];
        if (f != 0)
          for (std::size_t j = k + 1; j < n_; ++j) lu_[i][j] -= f * lu_[k][j];
      }
    }
  }

  template <class Vector>
  std::vector<Real> solve(const Vector& b) const {
    std::vector<Real> x(n_);
    for (std::size_t i = 0; i < n_; ++i) {
      Real sum = row_[order_[i]] * b[order_[i]];
      for (std::size_t j = 0; j < i; ++j) sum -= lu_[i][j] * x[j];
      x[i] = sum;
    }
    for (std::size_t i = n_; i-- > 0;) {
      for (std::size_t j = i + 1; j < n_; ++j) x[i] -= lu_[i][j] * x[j];
      x[i] /= lu_[i][i];
    }
    for (std::size_t i = 0; i < n_; ++i) x[i] *= column_[i];
    return x;
  }

  /// ||A||_inf and ||A||_inf ||A^-1||_inf.
  Real norm() const { return norm_; }
  Real condition() const {
    std::vector<Real> sums(n_, Real(0)), e(n_, Real(0));
    for (std::size_t j = 0; j < n_; ++j) {
      e[j] = 1;
      const std::vector<Real> column = solve(e);
      for (std::size_t i = 0; i < n_; ++i) sums[i] += std::abs(column[i]);
      e[j] = 0;
    }
    return norm_ * *std::max_element(sums.begin(), sums.end());
  }

 private:
  static Real power_of_two(Real most) { return most > 0 ? std::ldexp(Real(1), -std::ilogb(most)) : Real(1); }

  std::size_t n_;
  std::vector<Real> row_, column_;
  std::vector<std::vector<Real>> lu_;
  std::vector<std::size_t> order_;
  Real norm_ = 0;
};

Real largest(const std::vector<double>& v) {
  Real most = 0;
  for (const double e : v) most = std::max(most, std::abs(Real(e)));
  return most;
}

/// Normwise backward error ||b - A x||_inf / (||A||_inf ||x||_inf + ||b||_inf) [Rigal and Gaches 1967].
Real backward_error(const CsrView& a, const std::vector<double>& x, const std::vector<double>& b) {
  Real worst = 0, norm = 0;
  for (Index i = 0; i < a.rows; ++i) {
    Real r = b[std::size_t(i)], sum = 0;
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      r -= Real(a.values[k]) * Real(x[std::size_t(a.columns[k])]);
      sum += std::abs(Real(a.values[k]));
    }
    worst = std::max(worst, std::abs(r));
    norm = std::max(norm, sum);
  }
  return worst / (norm * largest(x) + largest(b));
}

/// ||x - y||_inf / ||y||_inf.
Real forward_error(const std::vector<double>& x, const std::vector<Real>& y) {
  Real difference = 0, size = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference = std::max(difference, std::abs(Real(x[i]) - y[i]));
    size = std::max(size, std::abs(y[i]));
  }
  return difference / size;
}

// --- matrices ------------------------------------------------------------------------------------------------------

/// Q_1 D Q_2 with singular values falling geometrically from 1 to 1/condition; each Q is a product of four random
/// reflections I - 2 v v^T / v^T v [Householder 1958]. Symmetric positive definite where Q_2 is to be Q_1^T. Dense.
CsrMatrix with_condition(std::size_t n, double condition, bool symmetric, std::uint64_t seed) {
  std::vector<std::vector<Real>> m(n, std::vector<Real>(n, Real(0)));
  for (std::size_t i = 0; i < n; ++i) m[i][i] = std::pow(Real(condition), -Real(i) / Real(n - 1));
  const auto reflect = [&](const std::vector<double>& v, bool rows) {
    Real vv = 0;
    for (const double e : v) vv += Real(e) * e;
    for (std::size_t k = 0; k < n; ++k) {
      Real sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += v[i] * (rows ? m[i][k] : m[k][i]);
      for (std::size_t i = 0; i < n; ++i) (rows ? m[i][k] : m[k][i]) -= 2 * sum / vv * v[i];
    }
  };
  for (std::uint64_t k = 0; k < 4; ++k) {
    reflect(test::random_values(n, seed + k), true);
    reflect(test::random_values(n, symmetric ? seed + k : seed + 100 + k), false);
  }
  test::Dense d(n, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) d[i][j] = double(symmetric && j < i ? m[j][i] : m[i][j]);
  return test::from_dense(d);
}

/// D_1 A D_2, the diagonals 10^e with e uniform in [-decades, decades].
CsrMatrix scaled(CsrMatrix a, double row_decades, double column_decades, std::uint64_t seed) {
  const auto n = std::size_t(a.rows);
  const auto r = test::random_values(n, seed), c = test::random_values(n, seed + 1);
  for (std::size_t i = 0; i < n; ++i)
    for (auto k = std::size_t(a.offsets[i]); k < std::size_t(a.offsets[i + 1]); ++k)
      a.values[k] *= std::pow(10.0, row_decades * r[i]) * std::pow(10.0, column_decades * c[std::size_t(a.columns[k])]);
  return a;
}

/// A x rounded once: a right-hand side whose solution is not larger than it must be.
std::vector<double> product(const CsrView& a, const std::vector<double>& x) {
  std::vector<double> b(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    Real sum = 0;
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) sum += Real(a.values[k]) * x[std::size_t(a.columns[k])];
    b[i] = double(sum);
  }
  return b;
}

std::vector<double> times(double factor, std::vector<double> v) {
  for (double& e : v) e *= factor;
  return v;
}
CsrMatrix times(double factor, CsrMatrix a) {
  for (double& e : a.values) e *= factor;
  return a;
}

// --- solving and judging -------------------------------------------------------------------------------------------

const std::vector<std::string> devices{"host", "emulated"};
const std::vector<std::string> low_precisions{"fp32", "fp32/fp16", "fp32/bf16"};

struct Case {
  std::string precision, device;
};
const std::vector<Case> cases = [] {
  std::vector<Case> all;
  for (const std::string& precision : low_precisions)
    for (const std::string& device : devices) all.push_back({precision, device});
  return all;
}();

struct Pair {
  std::string solver, precond;
};
using Pairs = std::vector<Pair>;

Options options(const std::string& solver, const std::string& precond, const Case& c, double rtol) {
  Options o;
  o.solver = solver;
  o.precond = precond;
  o.precision = c.precision;
  o.device = c.device;
  o.threads =
      1;  // where not said otherwise: threads change no bit, and two of them wait for each other on busy machines
  o.rtol = rtol;
  return o;
}

bool raised(const Result& r) { return any_has(r.notes, "raised"); }
/// Without what is said of basis, matrix or preconditioner, where one of them is kept in another.
std::string base_precision(const Result& r) { return r.precision.substr(0, r.precision.find(" with ")); }

std::string words(const Options& o) { return o.solver + " " + o.precond + " in " + o.precision + " on " + o.device; }

/// What holds of every result, converged or not: its residual, its history and its status are true.
void expect_honest(const Solved& s, const CsrView& a, const std::vector<double>& b, const Options& o) {
  const Result& r = s.r;
  ASSERT_TRUE(std::all_of(s.x.begin(), s.x.end(), [](double v) { return std::isfinite(v); }));
  // What forming b - A x in double can be off by, relative to ||b||.
  Real rounding = 0, size = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    Real sum = std::abs(Real(b[i]));
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
      sum += std::abs(Real(a.values[k]) * s.x[std::size_t(a.columns[k])]);
    sum *= Real(a.offsets[i + 1] - a.offsets[i] + 2) * unit_roundoff();
    rounding += sum * sum;
    size += Real(b[i]) * b[i];
  }
  const double slack = size > 0 ? double(std::sqrt(rounding / size)) : 0;
  const double residual = test::true_residual(a, s.x, b);
  EXPECT_NEAR(r.relative_residual, residual, 0.01 * residual + slack);
  if (r.status == Status::converged)
    EXPECT_LE(residual, o.rtol * (1 + 1e-6) + slack) << "said to have converged";
  else
    EXPECT_GE(residual, o.rtol * (1 - 1e-6) - slack) << "met its target and is said to be " << to_string(r.status);
  EXPECT_EQ(r.history.size(), std::size_t(r.iterations) + 1);
  EXPECT_LE(r.iterations, o.max_iterations);
  if (!r.history.empty()) {
    EXPECT_NEAR(r.history.back(), residual, 0.1 * residual + slack);
    for (const double h : r.history) ASSERT_TRUE(std::isfinite(h));
  }
  const std::vector<std::string> names{"fp64", "fp32", "fp32/fp16", "fp32/bf16"};
  EXPECT_NE(std::find(names.begin(), names.end(), base_precision(r)), names.end()) << r.precision;
  EXPECT_GE(r.outer_iterations, 0);
  EXPECT_GE(r.values_lost, 0);
}

/// Solved from x, and held to what must be true of every result.
Solved judged(const CsrView& a, const std::vector<double>& b, const Options& o, std::vector<double> x = {}) {
  if (x.empty()) x.assign(b.size(), 0.0);
  Solver solver(o);
  solver.setup(a);
  Solved s{solver.solve(b, x), {}};
  s.x = std::move(x);
  expect_honest(s, a, b, o);
  // FGMRES itself stays in double.
  if (base_precision(s.r) != o.precision && o.precision != "auto" && o.solver != "fgmres" && s.r.iterations > 0) {
    EXPECT_TRUE(raised(s.r)) << "ended in " << s.r.precision;
  }
  return s;
}

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
      const auto x = test::random_values(60, 1);
      EXPECT_LE(forward_error(x, reference.solve(product(a, x))), 1e3 * condition * unit_roundoff());
    }
}

TEST(Limits, RefinementReachesThoseOfDoubleWhateverTheCondition) {
  for (const double condition : {1e2, 1e4, 1e6, 1e8, 1e10, 1e12, 1e14}) {
    const CsrMatrix a = with_condition(60, condition, false, 7);
    const Elimination reference(a);
    const Real measured = reference.condition();
    // One whose solution is as large as the condition allows, and one whose solution is small.
    const std::vector<std::vector<double>> right_hand_sides{test::random_values(60, 3),
                                                            product(a, test::random_values(60, 4))};
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
    const auto b = test::random_values(60, 3);
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
  const CsrMatrix random = test::random_matrix({.rows = 150, .per_row = 6, .symmetric_pattern = false, .seed = 21});
  for (const CsrMatrix& a : {generate("gen:convdiff2d:12x12"), random}) {
    const Elimination reference(a);
    const Real condition = reference.condition();
    const auto b = test::random_values(std::size_t(a.rows), 5);
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
  const auto y = test::random_values(100, 3), exponents = test::random_values(100, 12);
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
  const auto e = test::random_values(100, 31);
  for (std::size_t i = 0; i < 100; ++i)
    for (auto k = std::size_t(a.offsets[i]); k < std::size_t(a.offsets[i + 1]); ++k)
      a.values[k] *= std::pow(10.0, 15 * e[i]) * std::pow(10.0, 15 * e[std::size_t(a.columns[k])]);
  // Exactly symmetric, whichever way the powers were multiplied.
  test::Dense d = test::to_dense(a);
  for (std::size_t i = 0; i < 100; ++i)
    for (std::size_t j = 0; j < i; ++j) d[i][j] = d[j][i];
  a = test::from_dense(d);
  std::vector<double> x = test::random_values(100, 32);
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
  const auto b = test::random_values(100, 3);
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
  const auto b = test::random_values(100, 3);
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
  const auto b = test::random_values(210, 4);
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
  test::Dense d(n, std::vector<double>(n, 0.0));
  std::vector<double> b(n);
  for (std::size_t i = 0; i < n; ++i) {
    d[i][i] = (i % 2 ? -1.0 : 1.0) * std::pow(10.0, double(i) - 30);
    b[i] = 1 + 0.01 * double(i);
  }
  const CsrMatrix a = test::from_dense(d);
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
  const auto b = test::random_values(100, 3);
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

// --- every combination ---------------------------------------------------------------------------------------------

/// What may stand together on an unsymmetric matrix, or on a symmetric one.
Pairs combinations(bool symmetric) {
  Pairs all;
  if (symmetric) {
    for (const char* p : {"none", "jacobi", "dilu", "dic", "ilu0", "ic0", "iluk:1", "block-ilu:4"})
      all.push_back({"cg", p});
    for (const char* s : {"gmres-ir", "gmres", "bicgstab", "fgmres"})
      for (const char* p : {"dic", "ic0"}) all.push_back({s, p});
  } else {
    for (const char* s : {"gmres-ir", "gmres", "bicgstab", "fgmres"})
      for (const char* p : {"none", "jacobi", "dilu", "ilu0", "iluk:1", "ilut:10,0.001", "block-ilu:4", "ras:4,1"})
        all.push_back({s, p});
  }
  return all;
}

TEST(Combinations, ConvergeInEveryPrecision) {
  for (const bool symmetric : {false, true}) {
    const CsrMatrix a = generate(symmetric ? "gen:poisson2d:30x30" : "gen:convdiff2d:30x30");
    const auto b = test::random_values(900, 13);
    for (const auto& [solver, precond] : combinations(symmetric))
      for (const Case& c : cases) {
        const Options o = options(solver, precond, c, 1e-10);
        SCOPED_TRACE(words(o));
        const Solved s = judged(a, b, o);
        ASSERT_STREQ(to_string(s.r.status), "converged");
        EXPECT_EQ(s.r.solver, solver);
        EXPECT_EQ(s.r.precond, precond);
        EXPECT_EQ(s.r.device, c.device);
        // One solve in single precision reduces no residual by ten digits.
        if (solver != "fgmres") {
          EXPECT_GE(s.r.outer_iterations, 2);
        }
        // Every storage holds Poisson's entries as they are, and single precision is enough for the other.
        if (solver == "gmres-ir" && (c.precision == "fp32" || symmetric)) {
          EXPECT_EQ(s.r.precision, c.precision);
          EXPECT_FALSE(raised(s.r));
        }
      }
  }
}

TEST(Combinations, InThreeDimensions) {
  const CsrMatrix a = generate("gen:convdiff3d:16x16x16");
  const auto b = test::random_values(4096, 14);
  for (const char* solver : {"gmres-ir", "bicgstab"})
    for (const Case& c : cases) {
      const Options o = options(solver, "dilu", c, 1e-10);
      SCOPED_TRACE(words(o));
      EXPECT_STREQ(to_string(judged(a, b, o).r.status), "converged");
    }
}

TEST(Combinations, AutoIsSingleForRefinementAndDoubleForTheOthers) {
  const CsrMatrix a = generate("gen:convdiff2d:30x30");
  const auto b = test::random_values(900, 13);
  for (const std::string& device : devices)
    for (const char* solver : {"gmres-ir", "gmres", "bicgstab", "fgmres", "auto"}) {
      Options o = options(solver, "auto", {"auto", device}, 1e-10);
      SCOPED_TRACE(words(o));
      const Solved s = judged(a, b, o);
      EXPECT_STREQ(to_string(s.r.status), "converged");
      const bool refined = std::string(solver) == "gmres-ir";
      o.precision = refined ? "fp32" : "fp64";
      EXPECT_EQ(s.r.precision, o.precision);
      EXPECT_EQ(s.x, judged(a, b, o).x);
      if (refined) {
        EXPECT_GE(s.r.outer_iterations, 2);
      } else {
        EXPECT_EQ(s.r.outer_iterations, 0);
        EXPECT_EQ(s.r.values_lost, 0);
      }
    }
}

TEST(Combinations, RefinementInDoubleConvergesToo) {
  const CsrMatrix a = generate("gen:convdiff2d:30x30");
  const auto b = test::random_values(900, 13);
  for (const std::string& device : devices) {
    const Options o = options("gmres-ir", "auto", {"fp64", device}, 1e-12);
    const Solved s = judged(a, b, o);
    EXPECT_STREQ(to_string(s.r.status), "converged");
    EXPECT_EQ(s.r.precision, "fp64");
    EXPECT_FALSE(raised(s.r));
    EXPECT_EQ(s.r.values_lost, 0);
  }
}

TEST(Combinations, EveryBasisServes) {
  const CsrMatrix a = generate("gen:convdiff2d:30x30");
  const auto b = test::random_values(900, 13);
  for (const char* basis : {"auto", "fp64", "fp32", "fp16", "bf16"})
    for (const Case& c : cases) {
      Options o = options("gmres-ir", "ilu0", c, 1e-10);
      o.basis = basis;
      SCOPED_TRACE(words(o) + ", basis " + basis);
      EXPECT_STREQ(to_string(judged(a, b, o).r.status), "converged");
    }
}

// --- what is done in low precision ---------------------------------------------------------------------------------

TEST(Storage, OfFewerBitsTakesMoreOuterSteps) {
  // Inner solves to 1e-6: two or three such steps are enough where the matrix is stored in single precision; where its
  // entries are off by u, a step gains a factor of 1 / (cond u) at most.
  const CsrMatrix a = test::random_matrix({.rows = 300, .per_row = 5, .dominance = 1.2, .seed = 41});
  const auto b = test::random_values(300, 15);
  for (const std::string& device : devices)
    for (const auto& [solver, precond] :
         Pairs{{"gmres-ir", "jacobi"}, {"gmres", "dilu"}, {"gmres", "jacobi"}, {"bicgstab", "jacobi"}}) {
      std::vector<int> steps;
      for (const std::string& precision : low_precisions) {
        Options o = options(solver, precond, {precision, device}, 1e-11);
        o.inner_tolerance = 1e-6;
        o.outer_iterations = 30;
        SCOPED_TRACE(words(o));
        const Solved s = judged(a, b, o);
        EXPECT_STREQ(to_string(s.r.status), "converged");
        EXPECT_EQ(s.r.precision, precision);
        steps.push_back(s.r.outer_iterations);
      }
      EXPECT_LE(steps[0], 3) << solver;
      EXPECT_GT(steps[1], steps[0]) << solver << ": fp16 keeps 11 bits";
      // Of GMRES bf16 has Jacobi in its matrix, which fp16 has not.
      const bool alike = solver != "gmres" || precond != "jacobi";
      EXPECT_GT(steps[2], steps[alike ? 1 : 0]) << solver << ": bf16 keeps 8 bits";
    }
}

// Ten digits are three steps in single precision, and two where a system is so well conditioned that each takes few
// iterations. Not where a tolerance of inner solves was asked for.
TEST(OuterSteps, AreFewerWhereEachTakesFewIterations) {
  const auto steps = [](const std::string& text, double inner_tolerance, const std::string& device) {
    const CsrMatrix a = generate(text);
    const std::vector<double> b(std::size_t(a.rows), 1.0);
    Options o = options("gmres-ir", "ilu0", {"fp32", device}, 1e-10);
    o.inner_tolerance = inner_tolerance;
    const Solved s = judged(a, b, o);
    EXPECT_STREQ(to_string(s.r.status), "converged");
    EXPECT_EQ(s.r.precision, "fp32");
    return s.r.outer_iterations;
  };
  for (const std::string& device : devices) {
    SCOPED_TRACE(device);
    EXPECT_EQ(steps("gen:poisson2d:12x11", 0, device), 2) << "eighteen iterations";
    EXPECT_EQ(steps("gen:poisson2d:12x11", 1e-5, device), 3);
    EXPECT_EQ(steps("gen:poisson2d:30x30", 0, device), 3) << "thirty-eight";
  }
}

TEST(Storage, FactorsInLowPrecisionServeFgmresAlmostAsWell) {
  const CsrMatrix a = generate("gen:convdiff2d:30x30");
  const auto b = test::random_values(900, 13);
  for (const std::string& device : devices)
    for (const char* precond : {"dilu", "ilu0", "iluk:1"}) {
      Options o = options("fgmres", precond, {"fp64", device}, 1e-12);
      const Solved in_double = judged(a, b, o);
      for (const std::string& precision : low_precisions) {
        o.precision = precision;
        SCOPED_TRACE(words(o));
        const Solved s = judged(a, b, o);
        EXPECT_STREQ(to_string(s.r.status), "converged");
        EXPECT_NE(s.r.precision, "fp64");
        EXPECT_FALSE(raised(s.r));
        EXPECT_LE(s.r.iterations, in_double.r.iterations + in_double.r.iterations / 2 + 2);
        EXPECT_NE(s.r.history, in_double.r.history) << "nothing was rounded";
      }
    }
}

TEST(Storage, EntriesThatBecomeZeroAreCounted) {
  // The diagonal and the first neighbours are of size 1, the fourth neighbours 1e-20: nothing in fp16, and an ordinary
  // number in fp32 and bf16. An entry that is zero from the beginning is not lost.
  const Index n = 50;
  test::Dense d(std::size_t(n), std::vector<double>(std::size_t(n), 0.0));
  std::int64_t tiny = 0;
  for (Index i = 0; i < n; ++i) {
    const auto at = [&](Index j) -> double& { return d[std::size_t(i)][std::size_t(j)]; };
    at(i) = 4;
    if (i > 0) at(i - 1) = -1.25;
    if (i + 1 < n) at(i + 1) = -1;
    if (i + 4 < n) {
      at(i + 4) = 1e-20 * (1 + i % 3);
      ++tiny;
    }
    if (i >= 8) at(i - 8) = 9;
  }
  CsrMatrix a = test::from_dense(d);
  for (double& v : a.values)
    if (v == 9) v = 0;
  const auto b = test::random_values(std::size_t(n), 16);
  for (const char* solver : {"gmres-ir", "bicgstab"})
    for (const Case& c : cases) {
      Options o = options(solver, "none", c, 1e-10);
      SCOPED_TRACE(words(o));
      const bool fp16 = c.precision == "fp32/fp16";
      Solver s(o);
      s.analyse(a);
      for (int round = 0; round < 2; ++round) {  // counted anew with every factorisation
        s.factor(a);
        std::vector<double> x(std::size_t(n), 0.0);
        const Result r = s.solve(b, x);
        EXPECT_STREQ(to_string(r.status), "converged");
        EXPECT_EQ(r.values_lost, fp16 ? tiny : 0);
      }
      o.precond = "ilu0";
      const Result r = judged(a, b, o).r;
      EXPECT_STREQ(to_string(r.status), "converged");
      if (fp16)
        EXPECT_GE(r.values_lost, tiny);
      else
        EXPECT_EQ(r.values_lost, 0);
    }
}

// --- raising -------------------------------------------------------------------------------------------------------

TEST(Raising, SolvesWhatLowPrecisionCannot) {
  const CsrMatrix a = with_condition(60, 1e12, false, 7);
  const auto b = product(a, test::random_values(60, 4));
  for (const char* solver : {"gmres-ir", "gmres"})
    for (const Case& c : cases) {
      Options o = options("gmres", "none", {"fp64", c.device}, 1e-10);
      o.restart = 80;
      ASSERT_STREQ(to_string(judged(a, b, o).r.status), "converged") << "in double";
      o.solver = solver;
      o.precision = c.precision;
      SCOPED_TRACE(words(o));
      const Solved s = judged(a, b, o);
      EXPECT_STREQ(to_string(s.r.status), "converged");
      EXPECT_TRUE(raised(s.r));
      EXPECT_NE(s.r.precision, c.precision);
      EXPECT_GT(s.r.outer_iterations, 0);
    }
}

TEST(Raising, LosesNothingThatDoubleSolves) {
  // Rows of unlike scale without a preconditioner, conditions that no storage of 16 bits follows, entries that cancel.
  const CsrMatrix m_matrix = generate("gen:convdiff2d:10x10");
  CsrMatrix shifted = generate("gen:poisson2d:8x8");  // indefinite
  for (std::size_t i = 0; i < 64; ++i)
    for (auto k = std::size_t(shifted.offsets[i]); k < std::size_t(shifted.offsets[i + 1]); ++k)
      if (shifted.columns[k] == Index(i)) shifted.values[k] = 2.5;
  for (const CsrMatrix& a : {scaled(m_matrix, 3, 0, 11), scaled(m_matrix, 0, 2, 11), shifted,
                             with_condition(60, 1e8, false, 3), with_condition(60, 1e5, true, 5)}) {
    const auto b = product(a, test::random_values(std::size_t(a.rows), 4));
    for (const Case& c : cases) {
      Options o = options("gmres", "none", {"fp64", c.device}, 1e-10);
      o.restart = 120;
      ASSERT_STREQ(to_string(judged(a, b, o).r.status), "converged") << "in double";
      o.precision = c.precision;
      for (const char* solver : {"gmres-ir", "gmres", "fgmres"}) {
        o.solver = solver;
        SCOPED_TRACE(words(o));
        EXPECT_STREQ(to_string(judged(a, b, o).r.status), "converged");
      }
    }
  }
}

TEST(Raising, StopsAtFactorsInSinglePrecisionWhereTheyDo) {
  // Condition above 1e8. GMRES in double is flexible with rounded factors, and takes no more iterations for them.
  const CsrMatrix a = generate("gen:femflow2d:8x8");
  const std::vector<double> b(std::size_t(a.rows), 1.0);
  for (const std::string& device : devices) {
    Options o = options("gmres", "ilu0", {"fp64", device}, 1e-11);
    o.restart = 300;
    SCOPED_TRACE(device);
    const Solved in_double = judged(a, b, o);
    ASSERT_STREQ(to_string(in_double.r.status), "converged");
    o.solver = "gmres-ir";
    o.precision = "fp32";
    const Solved mixed = judged(a, b, o);
    EXPECT_STREQ(to_string(mixed.r.status), "converged");
    EXPECT_EQ(mixed.r.precision, "fp64 with its preconditioner in fp32");
    EXPECT_LE(mixed.r.iterations, 50 + 1.1 * in_double.r.iterations) << "what failed was seen after 50";
  }
}

TEST(Raising, LooksAgainWhereLittleWasGained) {
  const CsrMatrix a = generate("gen:femflow2d:24x24");
  Options o = options("gmres-ir", "ilu0", {"fp32", "host"}, 1e-11);
  o.restart = 300;
  const Solved s = judged(a, std::vector<double>(std::size_t(a.rows), 1.0), o);
  EXPECT_STREQ(to_string(s.r.status), "converged");
  ASSERT_TRUE(raised(s.r));
  EXPECT_NE(s.r.notes.front().find("after 100 iterations"), std::string::npos) << s.r.notes.front();
}

TEST(Raising, IsNotDoneWithoutNeed) {
  const CsrMatrix a = generate("gen:poisson2d:20x20");
  const auto b = test::random_values(400, 17);
  for (const char* solver : {"gmres-ir", "cg", "bicgstab", "gmres"})
    for (const Case& c : cases) {
      const Options o = options(solver, "dic", c, 1e-8);
      SCOPED_TRACE(words(o));
      const Solved s = judged(a, b, o);
      EXPECT_STREQ(to_string(s.r.status), "converged");
      EXPECT_EQ(s.r.precision, c.precision);
      EXPECT_FALSE(raised(s.r));
    }
}

TEST(Raising, AfterAnOuterLimitEndsHonestly) {
  const CsrMatrix a = generate("gen:convdiff2d:20x20");
  const auto b = test::random_values(400, 17);
  for (const char* solver : {"gmres-ir", "bicgstab", "gmres"})
    for (const Case& c : cases) {
      Options o = options(solver, "none", c, 1e-10);
      o.inner_iterations = 5;
      o.outer_iterations = 1;
      SCOPED_TRACE(words(o));
      const Solved s = judged(a, b, o);  // which holds status against residual
      EXPECT_TRUE(s.r.status == Status::max_iterations || raised(s.r)) << to_string(s.r.status);
      EXPECT_LT(s.r.relative_residual, 1) << "what was gained is kept";
    }
}

TEST(Raising, EasyAndHardMatricesInTurnAreAllSolved) {
  CsrMatrix hard = with_condition(60, 1e12, false, 7), easy = hard;
  for (std::size_t i = 0; i < 60; ++i) easy.values[61 * i] += 10;
  const auto of_hard = product(hard, test::random_values(60, 4)), of_easy = test::random_values(60, 5);
  const auto expected = Elimination(easy).solve(of_easy);
  for (const std::string& device : devices) {
    Options o = options("gmres-ir", "none", {"fp32/fp16", device}, 1e-10);
    o.restart = 80;
    SCOPED_TRACE(words(o));
    Solver solver(o);
    solver.analyse(easy);
    for (int round = 0; round < 2; ++round) {
      solver.factor(easy);
      std::vector<double> x(60, 0.0);
      Result r = solver.solve(of_easy, x);
      EXPECT_STREQ(to_string(r.status), "converged");
      for (std::size_t i = 0; i < 60; ++i) ASSERT_NEAR(x[i], double(expected[i]), 1e-8);
      solver.factor(hard);
      std::fill(x.begin(), x.end(), 0.0);
      r = solver.solve(of_hard, x);
      EXPECT_STREQ(to_string(r.status), "converged");
      EXPECT_LE(test::true_residual(hard, x, of_hard), 1e-10 * (1 + 1e-3));
    }
  }
}

// --- ends ----------------------------------------------------------------------------------------------------------

TEST(Ends, AZeroRightHandSideHasTheZeroSolution) {
  const CsrMatrix a = generate("gen:poisson2d:6x6");
  const std::vector<double> b(36, 0.0);
  for (const char* solver : {"gmres-ir", "cg", "bicgstab", "gmres", "fgmres"})
    for (const Case& c : cases)
      for (const bool guess : {false, true}) {
        const Options o = options(solver, "auto", c, 1e-8);
        SCOPED_TRACE(words(o));
        const Solved s = judged(a, b, o, guess ? test::random_values(36, 4) : b);
        EXPECT_STREQ(to_string(s.r.status), "converged");
        EXPECT_EQ(s.r.iterations, 0);
        EXPECT_EQ(s.r.outer_iterations, 0);
        EXPECT_EQ(s.r.relative_residual, 0);
        EXPECT_EQ(s.x, b);
      }
}

TEST(Ends, AGuessThatIsTheSolutionIsLeftAsItIs) {
  const CsrMatrix a = generate("gen:poisson2d:8x8");
  std::vector<double> exact(64);
  for (std::size_t i = 0; i < 64; ++i) exact[i] = double(int(i * 13 % 17) - 8);
  const auto b = product(a, exact);  // of small integers: no rounding
  for (const char* solver : {"gmres-ir", "cg", "bicgstab", "gmres", "fgmres"})
    for (const Case& c : cases) {
      const Options o = options(solver, "auto", c, 1e-12);
      SCOPED_TRACE(words(o));
      const Solved s = judged(a, b, o, exact);
      EXPECT_STREQ(to_string(s.r.status), "converged");
      EXPECT_EQ(s.r.iterations, 0);
      EXPECT_EQ(s.r.outer_iterations, 0);
      EXPECT_EQ(s.x, exact);
      // A guess that is near saves steps, and one that is worse than nothing does no harm.
      const Solved cold = judged(a, b, o);
      std::vector<double> near = exact;
      near[5] += 1e-8;
      const Solved warm = judged(a, b, o, near), far = judged(a, b, o, times(1e6, test::random_values(64, 9)));
      EXPECT_STREQ(to_string(warm.r.status), "converged");
      EXPECT_LT(warm.r.iterations, cold.r.iterations);
      EXPECT_STREQ(to_string(far.r.status), "converged");
    }
}

TEST(Ends, NanIsRefused) {
  const CsrMatrix a = generate("gen:poisson2d:5x5");
  for (const std::string& device : devices)
    for (const char* solver : {"gmres-ir", "cg"})
      for (const double bad : {nan, infinity, -infinity}) {
        Solver s(options(solver, "auto", {"fp32", device}, 1e-8));
        s.setup(a);
        std::vector<double> b(25, 1.0), x(25, 0.0), spoilt(25, 1.0);
        spoilt[7] = bad;
        EXPECT_THROW(s.solve(spoilt, x), Error);
        EXPECT_EQ(x, std::vector<double>(25, 0.0));
        EXPECT_THROW(s.solve(b, spoilt), Error);
        CsrMatrix m = a;
        m.values[9] = bad;
        EXPECT_THROW(s.factor(m), Error);
        s.factor(a);
        EXPECT_STREQ(to_string(s.solve(b, x).status), "converged") << "and goes on after that";
      }
}

TEST(Ends, AtTheLimitOfIterations) {
  const CsrMatrix a = generate("gen:poisson2d:30x30");
  const auto b = test::random_values(900, 18);
  for (const std::string& device : devices)
    for (const char* solver : {"gmres-ir", "cg", "bicgstab", "gmres", "fgmres"})
      for (const int most : {0, 1, 7}) {
        Options o = options(solver, "jacobi", {"fp32", device}, 1e-10);
        o.max_iterations = most;
        SCOPED_TRACE(words(o) + ", at most " + std::to_string(most));
        const Solved s = judged(a, b, o);
        EXPECT_STREQ(to_string(s.r.status), "max_iterations");
        EXPECT_EQ(s.r.iterations, most);
        EXPECT_FALSE(raised(s.r)) << "no reason to";
      }
}

TEST(Ends, WhenInterrupted) {
  const CsrMatrix a = generate("gen:poisson2d:30x30");
  const auto b = test::random_values(900, 18);
  for (const std::string& device : devices)
    for (const char* solver : {"gmres-ir", "cg", "gmres"}) {
      const Options o = options(solver, "auto", {"fp32", device}, 1e-8);
      SCOPED_TRACE(words(o));
      Solver s(o);
      s.setup(a);
      std::vector<double> x(900, 0.0);
      Monitor monitor;
      monitor.interrupt();
      const Result r = s.solve(b, x, &monitor);
      EXPECT_STREQ(to_string(r.status), "interrupted");
      EXPECT_LE(r.iterations, 1);
      EXPECT_FALSE(raised(r));
      EXPECT_STREQ(to_string(s.solve(b, x).status), "converged");
    }
}

TEST(Ends, ASingularSystemWithoutASolutionIsNotSaidToBeSolved) {
  // Row sums of zero, and a right-hand side that is not in the range: the residual of the best x is b's mean.
  test::Dense d(40, std::vector<double>(40, 0.0));
  for (std::size_t i = 0; i < 40; ++i)
    for (const std::size_t j : {(i + 39) % 40, (i + 1) % 40}) {
      d[i][i] += 1;
      d[i][j] -= 1;
    }
  const CsrMatrix a = test::from_dense(d);
  std::vector<double> b = test::random_values(40, 19);
  for (double& v : b) v += 1;
  for (const auto& [solver, precond] :
       Pairs{{"gmres-ir", "none"}, {"gmres-ir", "jacobi"}, {"cg", "none"}, {"bicgstab", "jacobi"}, {"gmres", "none"}})
    for (const Case& c : cases) {
      Options o = options(solver, precond, c, 1e-8);
      o.max_iterations = 500;
      SCOPED_TRACE(words(o));
      const Solved s = judged(a, b, o);
      EXPECT_STRNE(to_string(s.r.status), "converged");
      EXPECT_LE(s.r.relative_residual, 1) << "no worse than the guess";
    }
}

TEST(Ends, OfTheSmallestSystems) {
  CsrMatrix empty;
  empty.offsets.push_back(0);
  const CsrMatrix one = test::from_dense({{3e-7}}), swap = test::from_dense({{0, 2}, {1, 0}});
  for (const Case& c : cases) {
    const Options o = options("gmres-ir", "none", c, 1e-14);
    SCOPED_TRACE(words(o));
    std::vector<double> none;
    const Result r = solve(empty, none, none, o);
    EXPECT_STREQ(to_string(r.status), "converged");
    EXPECT_EQ(r.iterations, 0);
    EXPECT_NEAR(judged(one, {0.1}, o).x[0], 0.1 / 3e-7, 1e-8);
    const Solved s = judged(swap, {0.1, 0.7}, o);
    EXPECT_NEAR(s.x[0], 0.7, 1e-13);
    EXPECT_NEAR(s.x[1], 0.05, 1e-13);
  }
}

// --- use over time -------------------------------------------------------------------------------------------------

TEST(Steps, ValuesAndRightHandSidesChange) {
  // Of one pattern, and of sizes far apart: an old copy or an old scaling, and the step is lost.
  struct Step {
    CsrMatrix a;
    std::vector<std::vector<double>> right_hand_sides;
    std::vector<std::vector<Real>> solutions;
  };
  std::vector<Step> steps;
  for (std::size_t step = 1; step <= 3; ++step) {
    Step next{generate("gen:convdiff2d:9x9"), {}, {}};
    CsrMatrix& a = next.a;
    for (std::size_t i = 0; i < 81; ++i)
      for (auto k = std::size_t(a.offsets[i]); k < std::size_t(a.offsets[i + 1]); ++k)
        a.values[k] *= std::pow(1e4, double(step)) * (1 + 0.1 * double((k * 7 + step) % 5)) *
                       (a.columns[k] == Index(i) ? 1.5 : 1) * std::exp2(double((i + step) % 5));
    const Elimination reference(a);
    for (const std::uint64_t rhs : {0u, 1u}) {
      next.right_hand_sides.push_back(product(a, test::random_values(81, 10 * step + rhs)));
      next.solutions.push_back(reference.solve(next.right_hand_sides.back()));
    }
    steps.push_back(std::move(next));
  }
  for (const auto& [solver, precond] : Pairs{{"gmres-ir", "none"},
                                             {"gmres-ir", "dilu"},
                                             {"gmres-ir", "ilu0"},
                                             {"gmres-ir", "iluk:1"},
                                             {"gmres-ir", "ilut:10,0.001"},
                                             {"gmres-ir", "ras:3,1"},
                                             {"bicgstab", "dilu"},
                                             {"fgmres", "ilu0"}})
    for (const Case& c : cases) {
      Options o = options(solver, precond, c, 1e-11);
      o.ordering = "rcm";
      SCOPED_TRACE(words(o));
      Solver s(o);
      s.analyse(steps[0].a);
      bool was_raised = false;
      for (const Step& step : steps) {
        s.factor(step.a);
        for (std::size_t k = 0; k < 2; ++k) {
          const std::vector<double>& b = step.right_hand_sides[k];
          std::vector<double> x(81, 0.0);
          const Result r = s.solve(b, x);
          expect_honest({r, x}, step.a, b, o);
          EXPECT_STREQ(to_string(r.status), "converged");
          EXPECT_EQ(r.bytes, s.bytes());
          EXPECT_LE(forward_error(x, step.solutions[k]), 1e-8);
          // Nothing of the steps before is left but a precision that was raised: a new solver takes the same path.
          was_raised = was_raised || raised(r);
          if (was_raised) continue;
          const Solved anew = judged(step.a, b, o);
          EXPECT_EQ(anew.r.history, r.history);
          EXPECT_EQ(anew.x, x);
        }
      }
      EXPECT_EQ(s.counts().analyses, 1);
      EXPECT_EQ(s.counts().factorisations, 3);
      EXPECT_EQ(s.counts().solves, 6);
      EXPECT_GT(s.costs().product, 0);
    }
}

TEST(Steps, ThreadsAndDevicesChangeNoBit) {
  const CsrMatrix a = generate("gen:convdiff3d:16x16x16");
  const auto b = test::random_values(4096, 20);
  for (const auto& [solver, precond] :
       Pairs{{"gmres-ir", "dilu"}, {"gmres-ir", "block-ilu:4"}, {"bicgstab", "ilu0"}, {"fgmres", "dilu"}})
    for (const std::string& precision : low_precisions) {
      std::vector<double> first, first_history;
      for (const std::string& device : devices)
        for (const int threads : {1, 2}) {
          Options o = options(solver, precond, {precision, device}, 1e-10);
          o.threads = threads;
          SCOPED_TRACE(words(o) + ", threads " + std::to_string(threads));
          const Solved s = judged(a, b, o);
          EXPECT_STREQ(to_string(s.r.status), "converged");
          if (first.empty()) {
            first = s.x;
            first_history = s.r.history;
          }
          ASSERT_EQ(s.r.history, first_history);
          ASSERT_EQ(s.x, first);
        }
    }
}

TEST(Steps, OrderingsArePrivateToTheSolver) {
  const CsrMatrix a = test::random_matrix({.rows = 70, .per_row = 4, .symmetric_pattern = false, .seed = 9});
  const auto b = test::random_values(70, 10), guess = test::random_values(70, 11);
  const auto expected = Elimination(a).solve(b);
  for (const char* ordering : {"natural", "rcm", "multicolour", "metis:4"})
    for (const char* precond : {"none", "jacobi", "dilu", "ilu0"})
      for (const Case& c : cases) {
        Options o = options("gmres-ir", precond, c, 1e-12);
        o.ordering = ordering;
        SCOPED_TRACE(words(o) + " " + ordering);
        const Solved s = judged(a, b, o, guess);
        EXPECT_STREQ(to_string(s.r.status), "converged");
        for (std::size_t i = 0; i < 70; ++i) ASSERT_NEAR(s.x[i], double(expected[i]), 1e-10) << "row " << i;
      }
}

// --- names and numbers ---------------------------------------------------------------------------------------------

TEST(Names, UnknownOnesAreRefused) {
  const auto sentence = [](const Options& o) -> std::string {
    try {
      const Solver refused(o);
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_NE(sentence({.solver = "gmres-it"}).find("'gmres-ir'"), std::string::npos);
  EXPECT_NE(sentence({.precision = "fp3"}).find("fp32/bf16"), std::string::npos);
  EXPECT_NE(sentence({.basis = "fp17"}).find("fp16"), std::string::npos);
  for (const char* precision : {"", "single", "fp16", "fp32/fp64", "FP32"})
    EXPECT_NE(sentence({.precision = precision}), "accepted") << precision;
  for (const char* basis : {"", "half", "fp32/fp16"}) EXPECT_NE(sentence({.basis = basis}), "accepted") << basis;
  for (const char* precision : {"auto", "fp64", "fp32", "fp32/fp16", "fp32/bf16"})
    EXPECT_EQ(sentence({.solver = "gmres-ir", .precision = precision}), "accepted") << precision;
}

TEST(Names, NumbersOutsideTheirRangeAreRefused) {
  EXPECT_THROW(Solver({.inner_iterations = -1}), Error);
  EXPECT_THROW(Solver({.outer_iterations = -1}), Error);
  EXPECT_THROW(Solver({.inner_tolerance = -0.1}), Error);
  EXPECT_THROW(Solver({.inner_tolerance = nan}), Error);
  EXPECT_THROW(Solver({.solver = "gmres-ir", .norm = Norm::openfoam}), Error);
  EXPECT_NO_THROW(Solver({.solver = "gmres-ir", .inner_iterations = 1, .outer_iterations = 1, .inner_tolerance = 0.5}));
}

}  // namespace
