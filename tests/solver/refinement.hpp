// SPDX-License-Identifier: Apache-2.0
// What the tests of mixed precision share: the solution by Gaussian elimination in long double, and how far another one
// is from it; matrices of prescribed condition and of any scale; every low precision on every device; and a solve that
// is held to what must be true of each: its residual, its history, its status.
// Source of the bounds: Carson and Higham, SIAM J. Sci. Comput. 40 (2018): refinement whose residuals are formed in the
// working precision ends with a normwise backward error of a few units of roundoff u, a forward error of cond(A) u.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "krilu/solver.hpp"
#include "support/not_finite.hpp"
#include "support/refusal.hpp"
#include "support/solved.hpp"
#include "support/support.hpp"

namespace krilu::test::refinement {

// --- references ----------------------------------------------------------------------------------------------------

using Real = long double;

inline double unit_roundoff() { return std::numeric_limits<double>::epsilon() / 2; }

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

inline Real largest(const std::vector<double>& v) {
  Real most = 0;
  for (const double e : v) most = std::max(most, std::abs(Real(e)));
  return most;
}

/// Normwise backward error ||b - A x||_inf / (||A||_inf ||x||_inf + ||b||_inf) [Rigal and Gaches 1967].
inline Real backward_error(const CsrView& a, const std::vector<double>& x, const std::vector<double>& b) {
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
inline Real forward_error(const std::vector<double>& x, const std::vector<Real>& y) {
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
inline CsrMatrix with_condition(std::size_t n, double condition, bool symmetric, std::uint64_t seed) {
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
    reflect(random_values(n, seed + k), true);
    reflect(random_values(n, symmetric ? seed + k : seed + 100 + k), false);
  }
  Dense d(n, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) d[i][j] = double(symmetric && j < i ? m[j][i] : m[i][j]);
  return from_dense(d);
}

/// D_1 A D_2, the diagonals 10^e with e uniform in [-decades, decades].
inline CsrMatrix scaled(CsrMatrix a, double row_decades, double column_decades, std::uint64_t seed) {
  const auto n = std::size_t(a.rows);
  const auto r = random_values(n, seed), c = random_values(n, seed + 1);
  for (std::size_t i = 0; i < n; ++i)
    for (auto k = std::size_t(a.offsets[i]); k < std::size_t(a.offsets[i + 1]); ++k)
      a.values[k] *= std::pow(10.0, row_decades * r[i]) * std::pow(10.0, column_decades * c[std::size_t(a.columns[k])]);
  return a;
}

/// A x rounded once: a right-hand side whose solution is not larger than it must be.
inline std::vector<double> product(const CsrView& a, const std::vector<double>& x) {
  std::vector<double> b(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    Real sum = 0;
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) sum += Real(a.values[k]) * x[std::size_t(a.columns[k])];
    b[i] = double(sum);
  }
  return b;
}

inline std::vector<double> times(double factor, std::vector<double> v) {
  for (double& e : v) e *= factor;
  return v;
}
inline CsrMatrix times(double factor, CsrMatrix a) {
  for (double& e : a.values) e *= factor;
  return a;
}

// --- solving and judging -------------------------------------------------------------------------------------------

inline const std::vector<std::string> devices{"host", "emulated"};
inline const std::vector<std::string> low_precisions{"fp32", "fp32/fp16", "fp32/bf16"};

struct Case {
  std::string precision, device;
};
inline const std::vector<Case> cases = [] {
  std::vector<Case> all;
  for (const std::string& precision : low_precisions)
    for (const std::string& device : devices) all.push_back({precision, device});
  return all;
}();

struct Pair {
  std::string solver, precond;
};
using Pairs = std::vector<Pair>;

inline Options options(const std::string& solver, const std::string& precond, const Case& c, double rtol) {
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

inline bool raised(const Result& r) { return any_has(r.notes, "raised"); }
/// Without what is said of basis, matrix or preconditioner, where one of them is kept in another.
inline std::string base_precision(const Result& r) { return r.precision.substr(0, r.precision.find(" with ")); }

inline std::string words(const Options& o) {
  return o.solver + " " + o.precond + " in " + o.precision + " on " + o.device;
}

/// What holds of every result, converged or not: its residual, its history and its status are true.
inline void expect_honest(const Solved& s, const CsrView& a, const std::vector<double>& b, const Options& o) {
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
  const double residual = true_residual(a, s.x, b);
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
inline Solved judged(const CsrView& a, const std::vector<double>& b, const Options& o, std::vector<double> x = {}) {
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

}  // namespace krilu::test::refinement
