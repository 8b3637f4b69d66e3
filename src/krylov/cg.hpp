// SPDX-License-Identifier: Apache-2.0
// Preconditioned conjugate gradients [Hestenes and Stiefel 1952; Saad 2003, Algorithm 9.1], for symmetric matrices that
// are definite: negative definite ones too, with a preconditioner of the same sign (DIC, IC(0), Jacobi). A is applied
// to z, so that A p and (p, A p) come by recurrences [Chronopoulos and Gear 1989]: z = M^-1 r and A z together are less
// than one after the other where the preconditioner knows a part of A z, and an iteration has one sum fewer.
// An iteration: 1 A and 1 M together, and 13 words read or written a row (without breakdown checks, which are scalars).
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
        w_(ex_.template allocate<T>(n_)),
        scalars_(ex_.template allocate<T>(4)),
        stop_(ex_.template allocate<int>(1)) {}

  // Formatted by hand: the loop keeps the shape of the textbook's.
  // clang-format off
  void iterate(const System<Space, T>& system, exec::Scalar<Control<T>> control) override {
    const auto& ex = ex_;
    const auto n = n_;
    const auto& A = system.A;
    auto& M = system.M;
    const exec::View<T> x{system.x}, r{system.r}, p = p_.view(), q = q_.view(), z = z_.view(), w = w_.view();
    const auto rho = scalars_.scalar(0), pq = scalars_.scalar(1), beta = scalars_.scalar(2), alpha = scalars_.scalar(3);
    const auto stop = stop_.scalar();
    const bool magnitudes = system.magnitudes;

    ex.once(KRILU_FN() {
      rho() = std::numeric_limits<T>::infinity();  // so that the first beta is 0
      pq() = 0;
      stop() = 0;
    });
    ex.for_each(n, KRILU_FN(Index i) { p[i] = q[i] = 0; });

    ex.repeat_until(stop, [&] {
      // z = M^-1 r,  w = A z
      M.apply(A, r.data, z.data, w.data);
      // beta = (r, z) / rho,  rho = (r, z),  (p, q) = (z, w) - beta^2 (p, q),  alpha = rho / (p, q)
      ex.reduce(n, KRILU_FN(Index i) { return exec::Sums<T, 2>{{r[i] * z[i], z[i] * w[i]}}; },
      KRILU_FN(exec::Sums<T, 2> s) {
        beta() = s[0] / rho();
        rho() = s[0];
        pq() = s[1] - beta() * (beta() * pq());
        alpha() = stop() ? T(0) : rho() / pq();
        if (stop()) return;
        if (alpha() == T(0) || !(alpha() - alpha() == T(0))) {  // rho is zero, or (p, q) zero or infinite
          alpha() = 0;
          stop() = control().stop(Stop::breakdown);
        }
      });
      // p = z + beta p,  q = w + beta q = A p,  x = x + alpha p,  r = r - alpha q,  |r|
      ex.reduce(n, KRILU_FN(Index i) {
        p[i] = z[i] + beta() * p[i];
        q[i] = w[i] + beta() * q[i];
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

  std::size_t bytes() const override {
    return p_.bytes() + q_.bytes() + z_.bytes() + w_.bytes() + scalars_.bytes() + stop_.bytes();
  }

 private:
  Space ex_;
  std::size_t n_;
  exec::Array<T> p_, q_, z_, w_, scalars_;
  exec::Array<int> stop_;
};

}  // namespace krilu::krylov
