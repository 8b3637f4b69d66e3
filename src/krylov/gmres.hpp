// SPDX-License-Identifier: Apache-2.0
// GMRES(m) and FGMRES(m), right-preconditioned [Saad and Schultz 1986; Saad 1993, 2003 Algorithms 9.5 and 9.6]. FGMRES
// keeps M^-1 v_j, so that M may change from step to step, and needs no M to form x.
// Orthogonalisation: classical Gram-Schmidt, all columns in one pass, once more where cancellation asks for it [Daniel,
// Gragg, Kaufman, Stewart 1976]. Step j: 1 A, 1 M, and 2 (j + 1) + 9 words read or written a row, twice the first part
// where it is repeated.
// The basis may be stored in less precision than is computed in (B): its vectors are then what was stored, so that x is
// made of the very vectors that A was applied to [Aliaga, Anzt, Gruetzmacher, Quintana-Orti, Tomas 2022].
#pragma once

#include <cmath>
#include <limits>

#include "base/half.hpp"
#include "krylov/method.hpp"

namespace krilu::krylov {

template <class Space, class T, class B = T>
class Gmres final : public Method<Space, T> {
 public:
  /// restart: basis vectors before x is formed and the basis begun anew, at least 1.
  Gmres(Space space, Index rows, int restart, bool flexible)
      : ex_(std::move(space)),
        n_(std::size_t(rows)),
        m_(restart),
        flexible_(flexible),
        v_(ex_.template allocate<B>(n_ * std::size_t(m_ + 1))),
        z_(ex_.template allocate<B>(flexible ? n_ * std::size_t(m_) : 0)),
        vj_(ex_.template allocate<T>(n_)),
        zj_(ex_.template allocate<T>(n_)),
        w_(ex_.template allocate<T>(n_)),
        // h: one column of coefficients; H: m columns of m + 1; Givens cosines and sines; g: the rotated right-hand
        // side, |r| in its last entry; y: the coefficients of x
        small_(ex_.template allocate<T>(std::size_t((m_ + 1) * m_ + 5 * (m_ + 1) + 3))),
        counters_(ex_.template allocate<Index>(2)),
        flags_(ex_.template allocate<int>(4)) {
    // Entries of a unit vector are about 1 / sqrt(n): fp16 keeps them times a power of two near sqrt(n).
    if constexpr (std::is_same_v<B, Half>) unit_ = T(std::exp2(std::floor(std::log2(double(n_) + 1) / 2)));
  }

  // Formatted by hand: the loop keeps the shape of the textbook's.
  // clang-format off
  void iterate(const System<Space, T>& system, exec::Scalar<Control<T>> control) override {
    const auto& ex = ex_;
    const std::size_t n = n_;
    const Index m = m_;
    const auto& A = system.A;
    auto& M = system.M;
    const exec::View<T> x{system.x}, r{system.r}, vj = vj_.view(), zj = zj_.view(), w = w_.view();
    const exec::View<B> V = v_.view(), Z = z_.view();
    const T unit = unit_, inverse = 1 / unit;  // of a basis vector v, unit v is stored
    const exec::View<T> H{small_.data()}, h{H.data + (m + 1) * m}, cosine{h.data + m + 1}, sine{cosine.data + m + 1},
        g{sine.data + m + 1}, y{g.data + m + 1};
    const exec::Scalar<T> beta{y.data + m + 1}, before{y.data + m + 2}, claimed{y.data + m + 3};
    const auto j = counters_.scalar(0), columns = counters_.scalar(1);
    const auto stop = flags_.scalar(0), cycle_done = flags_.scalar(1), again = flags_.scalar(2),
               goes_on = flags_.scalar(3);
    const bool flexible = flexible_;

    ex.once(KRILU_FN() {
      stop() = 0;
      claimed() = std::numeric_limits<T>::infinity();
    });
    ex.repeat_until(stop, [&] {
      // v_0 = r / |r|,  g = |r| e_0
      ex.reduce(n, KRILU_FN(Index i) { return r[i] * r[i]; }, KRILU_FN(T rr) {
        beta() = std::sqrt(rr);
        g[0] = beta();
        j() = 0;
        columns() = 1;
        cycle_done() = 0;
        if (!(beta() > T(0)) || !(beta() - beta() == T(0))) {
          beta() = 1;
          g[0] = 0;
          columns() = 0;
          cycle_done() = stop() = control().stop(Stop::breakdown);
        } else if (beta() > 10 * claimed()) {
          // The residual is not what the last cycle made of it: rounding allows no more. The driver looks at it.
          columns() = 0;
          cycle_done() = stop() = control().stop(Stop::target);
        }
      });
      ex.for_each(n, KRILU_FN(Index i) {
        V[i] = B(unit * (r[i] / beta()));
        vj[i] = T(V[i]) * inverse;
      });

      ex.repeat_until(cycle_done, [&] {
        // w = A M^-1 v_j
        M.apply(A, vj.data, zj.data, w.data);
        if (flexible) {
          ex.for_each(n, KRILU_FN(Index i) { Z.data[std::size_t(j()) * n + std::size_t(i)] = B(unit * zj[i]); });
        }

        // h_k = (w, v_k) for all k <= j;  w = w - sum_k h_k v_k;  |w|
        ex.reduce_columns(n, m + 1, columns,
                          KRILU_FN(Index i, Index k) { return w[i] * T(V.data[std::size_t(k) * n + std::size_t(i)]); },
                          KRILU_FN(Index k, T wv) { H[j() * (m + 1) + k] = h[k] = wv * inverse; });
        add_columns(n, columns, h, -inverse, V, w);
        ex.reduce(n, KRILU_FN(Index i) { return w[i] * w[i]; }, KRILU_FN(T ww) {
          T projected = 0;
          for (Index k = 0; k < columns(); ++k) projected += h[k] * h[k];
          beta() = std::sqrt(ww);
          before() = std::sqrt(ww + projected);
          again() = ww < T(0.01) * (ww + projected);
        });
        // Once more where less than a tenth of |w| is left, that is, where a digit of orthogonality is lost; the
        // coefficients add up.
        ex.when(again, [&] {
          ex.reduce_columns(n, m + 1, columns,
                            KRILU_FN(Index i, Index k) { return w[i] * T(V.data[std::size_t(k) * n + std::size_t(i)]); },
                            KRILU_FN(Index k, T wv) {
            h[k] = wv * inverse;
            H[j() * (m + 1) + k] += h[k];
          });
          add_columns(n, columns, h, -inverse, V, w);
          ex.reduce(n, KRILU_FN(Index i) { return w[i] * w[i]; }, KRILU_FN(T ww) { beta() = std::sqrt(ww); });
        });

        // Rotate the new column of H, and g with it: |g_{j+1}| is the norm of the residual.
        ex.once(KRILU_FN() {
          T* const column = H.data + j() * (m + 1);
          const bool exhausted = !(beta() > before() * std::numeric_limits<T>::epsilon());
          column[j() + 1] = exhausted ? T(0) : beta();
          for (Index k = 0; k < j(); ++k) {
            const T upper = column[k], lower = column[k + 1];
            column[k] = cosine[k] * upper + sine[k] * lower;
            column[k + 1] = cosine[k] * lower - sine[k] * upper;
          }
          const Index k = j();
          T length = std::sqrt(column[k] * column[k] + column[k + 1] * column[k + 1]);
          // Nothing new in this column, as of a singular matrix: it lowers no residual and takes no part in x.
          if (exhausted && !(length > before() * 8 * std::numeric_limits<T>::epsilon())) length = 0;
          cosine[k] = length > T(0) ? column[k] / length : T(0);
          sine[k] = length > T(0) ? column[k + 1] / length : T(1);
          column[k] = length;
          g[k + 1] = -sine[k] * g[k];
          g[k] = cosine[k] * g[k];
          const T norm = g[k + 1] < 0 ? -g[k + 1] : g[k + 1];
          claimed() = norm;
          stop() = control().record(norm);
          if (exhausted && !stop() && length == T(0)) stop() = control().stop(Stop::breakdown);
          cycle_done() = stop() || exhausted || k + 1 == m;
          if (exhausted) beta() = 1;
          j() = k + 1;
          columns() = k + 2;
        });
        // v_{j+1} = w / |w|
        ex.for_each(n, KRILU_FN(Index i) {
          B& v = V.data[std::size_t(j()) * n + std::size_t(i)];
          v = B(unit * (w[i] / beta()));
          vj[i] = T(v) * inverse;
        });
      });

      // H y = g
      ex.once(KRILU_FN() {
        for (Index k = j(); k-- > 0;) {
          T sum = g[k];
          for (Index l = k + 1; l < j(); ++l) sum -= H[l * (m + 1) + k] * y[l];
          const T pivot = H[k * (m + 1) + k];
          y[k] = pivot != T(0) ? sum / pivot : T(0);
          if (!(y[k] - y[k] == T(0))) y[k] = 0;
        }
        goes_on() = !stop();
      });
      // x = x + Z y, or x + M^-1 V y
      if (flexible) {
        add_columns(n, j, y, inverse, Z, x);
      } else {
        ex.for_each(n, KRILU_FN(Index i) { w[i] = 0; });
        add_columns(n, j, y, inverse, V, w);
        M.apply(w.data, zj.data);
        ex.for_each(n, KRILU_FN(Index i) { x[i] += zj[i]; });
      }
      ex.when(goes_on, [&] { A.residual(system.b, x.data, r.data); });
    });
  }
  // clang-format on

  std::size_t bytes() const override {
    return v_.bytes() + z_.bytes() + vj_.bytes() + zj_.bytes() + w_.bytes() + small_.bytes() + counters_.bytes() +
           flags_.bytes();
  }

  // clang-format off
  /// x = x + factor * sum over k < columns() of y_k z_k, four columns in a pass over x. Part of iterate(): public
  /// because nvcc takes kernels in public members only.
  void add_columns(std::size_t n, exec::Scalar<Index> columns, exec::View<T> y, T factor, exec::View<B> Z,
                   exec::View<T> x) const {
    ex_.for_each_range(n, KRILU_FN(Index begin, Index end) {
      const B* z = Z.data;
      Index k = 0;
      for (; k + 4 <= columns(); k += 4, z += 4 * n) {
        const T y0 = factor * y[k], y1 = factor * y[k + 1], y2 = factor * y[k + 2], y3 = factor * y[k + 3];
        const B *z0 = z, *z1 = z + n, *z2 = z + 2 * n, *z3 = z + 3 * n;
#pragma omp simd
        for (Index i = begin; i < end; ++i) x[i] += (y0 * T(z0[i]) + y1 * T(z1[i])) + (y2 * T(z2[i]) + y3 * T(z3[i]));
      }
      for (; k < columns(); ++k, z += n) {
        const T yk = factor * y[k];
#pragma omp simd
        for (Index i = begin; i < end; ++i) x[i] += yk * T(z[i]);
      }
    });
  }
  // clang-format on

 private:
  Space ex_;
  std::size_t n_;
  Index m_;
  bool flexible_;
  T unit_ = 1;
  exec::Array<B> v_, z_;
  exec::Array<T> vj_, zj_, w_, small_;
  exec::Array<Index> counters_;
  exec::Array<int> flags_;
};

}  // namespace krilu::krylov
