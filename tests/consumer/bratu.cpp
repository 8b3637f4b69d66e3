// SPDX-License-Identifier: Apache-2.0
// Equations of one's own: Bratu's problem, -(u_xx + u_yy) = lambda e^u on the unit square, u = 0 on its boundary, on
// n x n inner points. Change residual() and jacobian(), and it is another problem; leave jacobian() away, and krilu
// forms it by differences.
#include <cmath>
#include <cstdio>
#include <vector>

#include "krilu/newton.hpp"

struct Bratu {
  krilu::Index n;  // inner points in a direction
  double lambda;

  krilu::Index rows() const { return n * n; }

  /// The unknowns of row k, which is point (k % n, k / n): itself and its neighbours.
  template <class Add>
  void columns(krilu::Index k, Add add) const {
    if (k >= n) add(k - n);
    if (k % n > 0) add(k - 1);
    add(k);
    if (k % n < n - 1) add(k + 1);
    if (k < n * (n - 1)) add(k + n);
  }

  /// F_k(u) = 4 u_k - (its neighbours) - h^2 lambda e^(u_k)
  KRILU_INLINE double residual(krilu::Index k, krilu::View<const double> u) const {
    double sum = 4 * u[k];
    if (k >= n) sum -= u[k - n];
    if (k % n > 0) sum -= u[k - 1];
    if (k % n < n - 1) sum -= u[k + 1];
    if (k < n * (n - 1)) sum -= u[k + n];
    return sum - source(u[k]);
  }

  /// dF_k / du_c, c being the columns of the row in the sequence in which they were added.
  template <class Put>
  KRILU_INLINE void jacobian(krilu::Index k, krilu::View<const double> u, Put put) const {
    krilu::Index entry = 0;
    if (k >= n) put(entry++, -1.0);
    if (k % n > 0) put(entry++, -1.0);
    put(entry++, 4 - source(u[k]));
    if (k % n < n - 1) put(entry++, -1.0);
    if (k < n * (n - 1)) put(entry++, -1.0);
  }

 private:
  KRILU_INLINE double source(double u) const { return lambda / ((n + 1.0) * (n + 1.0)) * std::exp(u); }
};

int main() {
  const krilu::RowEquations equations(Bratu{200, 6.0});
  krilu::NewtonSolver newton(equations, {.rtol = 1e-10});
  std::vector<double> u(200 * 200, 0.0);  // the start, then the solution

  std::printf("step    ||F||       length  inner  forcing\n");
  const krilu::NewtonResult r = newton.solve(u);
  for (const krilu::NewtonStep& s : r.history)
    std::printf("%4d  %.4e  %6.3f  %5d  %.1e\n", s.iteration, s.residual, s.length, s.inner_iterations, s.forcing);
  double largest = 0;
  for (double value : u) largest = value > largest ? value : largest;
  std::printf("%s; the largest u is %.6f\n", krilu::to_string(r.status), largest);
  return r.status == krilu::Status::converged ? 0 : 1;
}
