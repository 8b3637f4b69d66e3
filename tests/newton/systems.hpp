// SPDX-License-Identifier: Apache-2.0
// What the tests of Newton's method share: systems whose roots and Jacobians are known, sentences of refusals, and
// norms in long double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "krilu/equations.hpp"
#include "krilu/kernel.hpp"
#include "krilu/newton.hpp"
#include "support/refusal.hpp"
#include "support/support.hpp"

namespace krilu::test {

/// -(u_xx + u_yy) = lambda e^u on n x n inner points of the unit square, u = 0 around it.
struct Bratu {
  Index n;
  double lambda;

  KRILU_INLINE Index rows() const { return n * n; }
  template <class Add>
  KRILU_INLINE void columns(Index k, Add add) const {
    if (k >= n) add(k - n);
    if (k % n > 0) add(k - 1);
    add(k);
    if (k % n < n - 1) add(k + 1);
    if (k < n * (n - 1)) add(k + n);
  }
  KRILU_INLINE double residual(Index k, View<const double> u) const {
    double sum = 0;
    columns(k, [&](Index c) { sum += c == k ? 4 * u[c] : -u[c]; });
    return sum - source(u[k]);
  }
  template <class Put>
  KRILU_INLINE void jacobian(Index k, View<const double> u, Put put) const {
    Index entry = 0;
    columns(k, [&](Index c) { put(entry++, c == k ? 4 - source(u[c]) : -1.0); });
  }
  KRILU_INLINE double source(double u) const { return lambda / ((n + 1.0) * (n + 1.0)) * std::exp(u); }
};

/// F_i = sum over j of a_ij (x_j + bend x_j^3), + cross x_p x_q - b_i; p and q are the first and the last unknown of
/// the row.
struct Tangled {
  std::shared_ptr<const CsrMatrix> a;
  double bend = 0, cross = 0;
  std::vector<double> b = {};

  Index rows() const { return a->rows; }
  template <class Add>
  void columns(Index i, Add add) const {
    for (Offset k = begin(i); k < begin(i + 1); ++k) add(column(k));
  }
  double residual(Index i, View<const double> x) const {
    double sum = b.empty() ? 0 : -b[std::size_t(i)];
    for (Offset k = begin(i); k < begin(i + 1); ++k) {
      const double v = x[column(k)];
      sum += a->values[std::size_t(k)] * (v + bend * v * v * v);
    }
    return begin(i) < begin(i + 1) ? sum + cross * x[column(begin(i))] * x[column(begin(i + 1) - 1)] : sum;
  }
  template <class Put>
  void jacobian(Index i, View<const double> x, Put put) const {
    const Offset first = begin(i), last = begin(i + 1) - 1;
    for (Offset k = first; k <= last; ++k) {
      const double v = x[column(k)];
      double d = a->values[std::size_t(k)] * (1 + 3 * bend * v * v);
      if (k == first) d += cross * x[column(last)];
      if (k == last) d += cross * x[column(first)];
      put(k - first, d);
    }
  }
  Offset begin(Index i) const { return a->offsets[std::size_t(i)]; }
  Index column(Offset k) const { return a->columns[std::size_t(k)]; }
};
/// On a random pattern without symmetry, with the root `root`.
inline Tangled tangled(Index n, double bend, double cross, const std::vector<double>& root, std::uint64_t seed) {
  Tangled t{std::make_shared<const CsrMatrix>(
                random_matrix({.rows = n, .per_row = 4, .symmetric_pattern = false, .dominance = 2, .seed = seed})),
            bend, cross};
  std::vector<double> b;
  for (Index i = 0; i < n; ++i) b.push_back(t.residual(i, {root.data()}));
  t.b = std::move(b);
  return t;
}

/// R without its Jacobian.
template <class R>
struct Bare {
  R r;
  KRILU_INLINE Index rows() const { return r.rows(); }
  template <class Add>
  KRILU_INLINE void columns(Index i, Add add) const {
    r.columns(i, add);
  }
  KRILU_INLINE double residual(Index i, View<const double> x) const { return r.residual(i, x); }
};

/// R with the unknowns of each row named in another sequence: backwards, from a place that depends on the row.
template <class R>
struct Disordered {
  R r;
  Index rows() const { return r.rows(); }
  template <class Add>
  void columns(Index i, Add add) const {
    std::vector<Index> c;
    r.columns(i, [&](Index column) { c.push_back(column); });
    for (std::size_t k = 0; k < c.size(); ++k) add(c[place(i, k, c.size())]);
  }
  double residual(Index i, View<const double> x) const { return r.residual(i, x); }
  template <class Put>
  void jacobian(Index i, View<const double> x, Put put) const {
    std::vector<double> v;
    r.jacobian(i, x, [&](Index, double d) { v.push_back(d); });
    for (std::size_t k = 0; k < v.size(); ++k) put(Index(k), v[place(i, k, v.size())]);
  }
  static std::size_t place(Index i, std::size_t k, std::size_t n) { return (std::size_t(i) + n - k) % n; }
};

/// F_i = f(x_i), and its derivative.
struct Each {
  Index n;
  double (*f)(double);
  double (*slope)(double);
  Index rows() const { return n; }
  template <class Add>
  void columns(Index i, Add add) const {
    add(i);
  }
  double residual(Index i, View<const double> x) const { return f(x[i]); }
  template <class Put>
  void jacobian(Index i, View<const double> x, Put put) const {
    put(0, slope(x[i]));
  }
};

/// F_i = arctan(y_i), y_i = x_i + x_{i+1} / 100. Newton's method knows no coordinates: each y_i goes as it would alone,
/// and full steps lead away where |y| > 1.3917.
struct Arctangents {
  Index n;
  Index rows() const { return n; }
  template <class Add>
  void columns(Index i, Add add) const {
    add(i);
    if (i + 1 < n) add(i + 1);
  }
  double y(Index i, View<const double> x) const { return i + 1 < n ? x[i] + 0.01 * x[i + 1] : x[i]; }
  double residual(Index i, View<const double> x) const { return std::atan(y(i, x)); }
  template <class Put>
  void jacobian(Index i, View<const double> x, Put put) const {
    const double slope = 1 / (1 + y(i, x) * y(i, x));
    put(0, slope);
    if (i + 1 < n) put(1, 0.01 * slope);
  }
};

inline double norm_of(const std::vector<double>& v) {
  long double s = 0;
  for (double e : v) s += static_cast<long double>(e) * e;
  return double(std::sqrt(s));
}
inline std::vector<double> residual_of(const Equations& equations, const std::vector<double>& x) {
  std::vector<double> F(x.size());
  equations.residual(0, Index(x.size()), {x.data()}, {F.data()});
  return F;
}
/// The equations' own Jacobian as a matrix.
inline CsrMatrix jacobian_of(const Equations& equations, const std::vector<double>& x) {
  CsrMatrix a = equations.pattern();
  equations.jacobian(0, a.rows, {x.data()}, {a.values.data()});
  return a;
}

/// What a solve says of itself, and where it ends.
struct NewtonSolved {
  NewtonResult r;
  std::vector<double> x;
};

}  // namespace krilu::test
