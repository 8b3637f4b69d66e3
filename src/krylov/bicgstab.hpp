// SPDX-License-Identifier: Apache-2.0
// BiCGStab, right-preconditioned [van der Vorst 1992; Wang and Liu 2022, Algorithm 1], for any matrix.
// An iteration: 2 A, 2 M, and 19 words read or written a row. It may end at its half step, where s is small enough
// already, as OpenFOAM's PBiCGStab does; omega is 0 then, and the rest of the iteration changes nothing.
#pragma once

#include <limits>

#include "krylov/method.hpp"

namespace krilu::krylov {

template <class Space, class T>
class Bicgstab final : public Method<Space, T> {
 public:
  Bicgstab(Space space, Index rows)
      : ex_(std::move(space)),
        n_(std::size_t(rows)),
        scalars_(ex_.template allocate<T>(4)),
        stop_(ex_.template allocate<int>(1)) {
    for (auto* vector : {&r0_, &p_, &v_, &t_, &p_hat_, &s_hat_}) *vector = ex_.template allocate<T>(n_);
  }

  // Formatted by hand: the loop keeps the shape of the textbook's.
  // clang-format off
  void iterate(const System<Space, T>& system, exec::Scalar<Control<T>> control) override {
    const auto& ex = ex_;
    const auto n = n_;
    const auto& A = system.A;
    auto& M = system.M;
    const exec::View<T> x{system.x}, r{system.r}, r0 = r0_.view(), p = p_.view(), v = v_.view(), t = t_.view(),
                        p_hat = p_hat_.view(), s_hat = s_hat_.view();
    const auto rho = scalars_.scalar(0), alpha = scalars_.scalar(1), beta = scalars_.scalar(2),
               omega = scalars_.scalar(3);
    const auto stop = stop_.scalar();
    const bool magnitudes = system.magnitudes;

    // r0 = r,  p = v = 0,  rho = (r0, r)
    ex.reduce(n, KRILU_FN(Index i) {
      r0[i] = r[i];
      p[i] = v[i] = 0;
      return r[i] * r[i];
    }, KRILU_FN(T r0r) {
      rho() = r0r;
      beta() = omega() = 0;
      stop() = 0;
    });

    ex.repeat_until(stop, [&] {
      // p = r + beta (p - omega v)
      ex.for_each(n, KRILU_FN(Index i) { p[i] = r[i] + beta() * (p[i] - omega() * v[i]); });
      // v = A M^-1 p
      M.apply(A, p.data, p_hat.data, v.data);
      // alpha = rho / (r0, v)
      ex.reduce(n, KRILU_FN(Index i) { return r0[i] * v[i]; }, KRILU_FN(T r0v) {
        alpha() = stop() ? T(0) : rho() / r0v;
        if (!stop() && (vanishes(rho()) || vanishes(alpha()))) {
          alpha() = 0;
          stop() = control().stop(Stop::breakdown);
        }
      });
      // s = r - alpha v, in place of r
      ex.for_each(n, KRILU_FN(Index i) { if (alpha() != 0) r[i] -= alpha() * v[i]; });
      // t = A M^-1 s
      M.apply(A, r.data, s_hat.data, t.data);
      // |s|,  omega = (t, s) / (t, t), or 0 where s is small enough
      ex.reduce(n, KRILU_FN(Index i) {
        return exec::Sums<T, 3>{{t[i] * r[i], t[i] * t[i], Control<T>::measure(magnitudes, r[i])}};
      }, KRILU_FN(exec::Sums<T, 3> sums) {
        const T norm_s = control().norm_of(sums[2]);
        if (!stop() && control().is_met_by(norm_s)) stop() = control().record(norm_s);
        omega() = sums[0] / sums[1];
        if (stop() || !(omega() - omega() == T(0))) omega() = 0;
      });
      // x = x + alpha p_hat + omega s_hat,  r = s - omega t,  |r|,  (r0, r)
      ex.reduce(n, KRILU_FN(Index i) {
        if (alpha() != 0) x[i] += alpha() * p_hat[i];
        if (omega() != 0) {
          x[i] += omega() * s_hat[i];
          r[i] -= omega() * t[i];
        }
        return exec::Sums<T, 2>{{Control<T>::measure(magnitudes, r[i]), r0[i] * r[i]}};
      }, KRILU_FN(exec::Sums<T, 2> sums) {
        if (stop()) return;
        // beta = (r0, r) / rho * alpha / omega
        beta() = sums[1] / rho() * (alpha() / omega());
        rho() = sums[1];
        stop() = control().record(control().norm_of(sums[0]));
        if (!stop() && vanishes(omega())) stop() = control().stop(Stop::breakdown);
      });
    }, iterations_at_once(ex, n));
  }
  // clang-format on

  std::size_t bytes() const override {
    return r0_.bytes() + p_.bytes() + v_.bytes() + t_.bytes() + p_hat_.bytes() + s_hat_.bytes() + scalars_.bytes() +
           stop_.bytes();
  }

 private:
  /// Zero, too small to divide by, NaN or infinite.
  static KRILU_INLINE bool vanishes(T value) {
    const T magnitude = value < 0 ? -value : value;
    return !(magnitude >= std::numeric_limits<T>::min() && magnitude <= std::numeric_limits<T>::max());
  }

  Space ex_;
  std::size_t n_;
  exec::Array<T> r0_, p_, v_, t_, p_hat_, s_hat_, scalars_;
  exec::Array<int> stop_;
};

}  // namespace krilu::krylov
