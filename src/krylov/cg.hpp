// SPDX-License-Identifier: Apache-2.0
// Preconditioned conjugate gradients [Hestenes and Stiefel 1952; Saad 2003, Algorithm 9.1], for symmetric matrices that
// are definite: negative definite ones too, with a preconditioner of the same sign (DIC, IC(0), Jacobi).
// An iteration: 1 A, 1 M, and 13 words read or written a row (without breakdown checks, which are scalars).
#pragma once

#include <limits>

#include "krylov/method.hpp"

namespace krilu::krylov {

template <class Space, class T>
class Cg final : public Method<Space, T> {
 public:
  Cg(Space space, Index rows)
      : ex_(std::move(space)),
        n_(std::size_t(rows)),
        p_(ex_.template allocate<T>(n_)),
        q_(ex_.template allocate<T>(n_)),
        z_(ex_.template allocate<T>(n_)),
        scalars_(ex_.template allocate<T>(3)),
        stop_(ex_.template allocate<int>(1)) {}

  // Formatted by hand: the loop keeps the shape of the textbook's.
  // clang-format off
  void iterate(const System<Space, T>& system, exec::Scalar<Control<T>> control) override {
    const auto& ex = ex_;
    const auto n = n_;
    const auto& A = system.A;
    auto& M = system.M;
    const exec::View<T> x{system.x}, r{system.r}, p = p_.view(), q = q_.view(), z = z_.view();
    const auto rho = scalars_.scalar(0), beta = scalars_.scalar(1), alpha = scalars_.scalar(2);
    const auto stop = stop_.scalar();
    const bool magnitudes = system.magnitudes;

    ex.once(KRILU_FN() {
      rho() = std::numeric_limits<T>::infinity();  // so that the first beta is 0
      stop() = 0;
    });
    ex.for_each(n, KRILU_FN(Index i) { p[i] = 0; });

    ex.repeat_until(stop, [&] {
      // z = M^-1 r
      M.apply(r.data, z.data);
      // beta = (r, z) / rho,  rho = (r, z)
      ex.reduce(n, KRILU_FN(Index i) { return r[i] * z[i]; }, KRILU_FN(T rz) {
        beta() = rz / rho();
        rho() = rz;
      });
      // p = z + beta p
      ex.for_each(n, KRILU_FN(Index i) { p[i] = z[i] + beta() * p[i]; });
      // q = A p
      A.apply(p.data, q.data);
      // alpha = rho / (p, q)
      ex.reduce(n, KRILU_FN(Index i) { return p[i] * q[i]; }, KRILU_FN(T pq) {
        alpha() = stop() ? T(0) : rho() / pq;
        if (stop()) return;
        if (alpha() == T(0) || !(alpha() - alpha() == T(0))) {  // rho is zero, or (p, q) zero or infinite
          alpha() = 0;
          stop() = control().stop(Stop::breakdown);
        }
      });
      // x = x + alpha p,  r = r - alpha q,  |r|
      ex.reduce(n, KRILU_FN(Index i) {
        if (alpha() != 0) {
          x[i] += alpha() * p[i];
          r[i] -= alpha() * q[i];
        }
        return Control<T>::measure(magnitudes, r[i]);
      }, KRILU_FN(T sum) {
        if (!stop()) stop() = control().record(control().norm_of(sum));
      });
    }, iterations_at_once(ex, n));
  }
  // clang-format on

  std::size_t bytes() const override { return p_.bytes() + q_.bytes() + z_.bytes() + scalars_.bytes() + stop_.bytes(); }

 private:
  Space ex_;
  std::size_t n_;
  exec::Array<T> p_, q_, z_, scalars_;
  exec::Array<int> stop_;
};

}  // namespace krilu::krylov
