// SPDX-License-Identifier: Apache-2.0
// GMRES(m) and FGMRES(m), right-preconditioned [Saad and Schultz 1986; Saad 1993, 2003 Algorithms 9.5 and 9.6]. FGMRES
// keeps M^-1 v_j, so that M may change from step to step, and needs no M to form x.
// Orthogonalisation: classical Gram-Schmidt, all columns in one pass, once more where cancellation asks for it [Daniel,
// Gragg, Kaufman, Stewart 1976]. Step j: 1 A, 1 M, and 2 (j + 1) + 9 words read or written a row, twice the first part
// where it is repeated.
//
// The basis may be stored in less precision than is computed in (B): its vectors are then what was stored, so that x is
// made of the very vectors that A was applied to [Aliaga, Anzt, Gruetzmacher, Quintana-Orti, Tomas 2022].
//
// resume() goes on from another residual of the same system and keeps what the basis has learnt, which refinement in
// low precision lives on: it asks again and again, and to begin anew each time would cost more iterations than the
// precision saves. The Givens rotations are applied to the basis itself, whose columns then are C = A M^-1 V R^-1 and
// one more, which only x still needs; and the next basis grows from what C does not hold of r, orthogonal to C as well.
// That is GCRO without truncation [de Sturler 1996], C being had for one pass over V.
#pragma once

#include <cmath>
#include <limits>
#include <utility>

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
        // side; y: the coefficients of x; numbers
        small_(ex_.template allocate<T>(std::size_t((m_ + 1) * m_ + 5 * (m_ + 1) + 3))),
        counters_(ex_.template allocate<Index>(std::size_t(3 + m_))),
        flags_(ex_.template allocate<int>(std::size_t(5 + m_ + 1))) {
    // Entries of a unit vector are about 1 / sqrt(n): fp16 keeps them times a power of two near sqrt(n).
    if constexpr (std::is_same_v<B, Half>) unit_ = T(std::exp2(std::floor(std::log2(double(n_) + 1) / 2)));
  }

  void iterate(const System<Space, T>& system, exec::Scalar<Control<T>> control) override {
    run(system, control, false);
  }
  void resume(const System<Space, T>& system, exec::Scalar<Control<T>> control) override { run(system, control, true); }

  // Parts of the above: public because nvcc takes kernels in public members only.

  // Formatted by hand: the loop keeps the shape of the textbook's.
  // clang-format off
  void run(const System<Space, T>& system, exec::Scalar<Control<T>> control, bool resumes) {
    const auto& ex = ex_;
    const std::size_t n = n_;
    const Index m = m_;
    const auto& A = system.A;
    auto& M = system.M;
    const exec::View<T> x{system.x}, r{system.r}, vj = vj_.view(), zj = zj_.view(), w = w_.view();
    const exec::View<B> V = v_.view(), Z = z_.view();
    const Small s = small();
    const exec::View<T> H = s.H, h = s.h, cosine = s.cosine, sine = s.sine, g = s.g, y = s.y;
    const exec::Scalar<T> beta = s.beta, before = s.before, claimed = s.claimed;
    const exec::Scalar<Index> j = s.j, columns = s.columns, first = s.first;
    const exec::View<Index> place = s.place;
    const exec::View<int> apart = s.apart;
    const exec::Scalar<int> stop = s.stop, cycle_done = s.cycle_done, again = s.again, goes_on = s.goes_on,
                            exhausted = s.exhausted;
    const T unit = unit_, inverse = 1 / unit;  // of a basis vector v, unit v is stored
    const bool flexible = flexible_;

    ex.once(KRILU_FN() {
      stop() = cycle_done() = 0;
      claimed() = std::numeric_limits<T>::infinity();
      if (!resumes) columns() = 0;
    });
    begin(r, control);
    ex.repeat_until(stop, [&] {
      ex.repeat_until(cycle_done, [&] {
        // w = A M^-1 v_j
        M.apply(A, vj.data, zj.data, w.data);
        if (flexible) {
          ex.for_each(n, KRILU_FN(Index i) { Z.data[std::size_t(j()) * n + std::size_t(i)] = B(unit * zj[i]); });
        }

        // h_k = (w, v_k) for all k;  w = w - sum_k h_k v_k;  |w|
        ex.reduce_columns(n, m + 1, columns,
                          KRILU_FN(Index i, Index k) { return w[i] * T(V.data[std::size_t(k) * n + std::size_t(i)]); },
                          KRILU_FN(Index k, T wv) { H[j() * (m + 1) + k] = h[k] = apart[k] ? T(0) : wv * inverse; });
        add_columns(n, columns, h, -inverse, V, w);
        ex.reduce(n, KRILU_FN(Index i) { return w[i] * w[i]; }, KRILU_FN(T ww) {
          T projected = 0;
          for (Index k = 0; k < columns(); ++k) projected += h[k] * h[k];
          beta() = std::sqrt(ww);
          before() = std::sqrt(ww + projected);
          again() = ww < T(0.25) * (ww + projected);
        });
        // Once more where less than half of |w| is left; the coefficients add up. Classical Gram-Schmidt multiplies what
        // it loses from step to step, and with it iterations: a tenth in place of a half took three times as many on
        // some systems.
        ex.when(again, [&] {
          ex.reduce_columns(n, m + 1, columns,
                            KRILU_FN(Index i, Index k) { return w[i] * T(V.data[std::size_t(k) * n + std::size_t(i)]); },
                            KRILU_FN(Index k, T wv) {
            h[k] = apart[k] ? T(0) : wv * inverse;
            H[j() * (m + 1) + k] += h[k];
          });
          add_columns(n, columns, h, -inverse, V, w);
          ex.reduce(n, KRILU_FN(Index i) { return w[i] * w[i]; }, KRILU_FN(T ww) { beta() = std::sqrt(ww); });
        });

        // Rotate the new column of H, and g with it: |g_{j+1}| is the norm of the residual.
        ex.once(KRILU_FN() {
          const Index k = j(), last = columns(), p = last - 1;  // v_p was multiplied
          T* const column = H.data + k * (m + 1);
          exhausted() = !(beta() > before() * std::numeric_limits<T>::epsilon());
          column[last] = exhausted() ? T(0) : beta();
          for (Index l = first(); l < k; ++l) rotate(cosine[l], sine[l], column + place[l]);
          T length = std::sqrt(column[p] * column[p] + column[last] * column[last]);
          // Nothing new in this column, as of a singular matrix: it lowers no residual and takes no part in x.
          if (exhausted() && !(length > before() * 8 * std::numeric_limits<T>::epsilon())) length = 0;
          cosine[k] = length > T(0) ? column[p] / length : T(0);
          sine[k] = length > T(0) ? column[last] / length : T(1);
          column[p] = length;
          place[k] = p;
          g[last] = 0;
          rotate(cosine[k], sine[k], g.data + p);
          const T norm = g[last] < 0 ? -g[last] : g[last];
          claimed() = norm;
          stop() = control().record(norm);
          if (exhausted() && !stop() && length == T(0)) stop() = control().stop(Stop::breakdown);
          cycle_done() = stop() || exhausted() || last == m;
          if (exhausted()) beta() = 1;
          apart[last] = 0;
          j() = k + 1;
          columns() = last + 1;
        });
        // v_{j+1} = w / |w|
        ex.for_each(n, KRILU_FN(Index i) {
          B& v = V.data[std::size_t(columns() - 1) * n + std::size_t(i)];
          v = B(unit * (w[i] / beta()));
          vj[i] = T(v) * inverse;
        });
      });

      // H y = g, and in h the same as coefficients of the basis as it stands now
      ex.once(KRILU_FN() {
        for (Index k = 0; k < columns(); ++k) h[k] = 0;
        for (Index k = j(); k-- > 0;) {
          T sum = g[place[k]];
          for (Index l = k + 1; l < j(); ++l) sum -= H[l * (m + 1) + place[k]] * y[l];
          const T pivot = H[k * (m + 1) + place[k]];
          y[k] = pivot != T(0) ? sum / pivot : T(0);
          if (!(y[k] - y[k] == T(0))) y[k] = 0;
          h[place[k]] = y[k];
        }
        for (Index k = 0; k < first(); ++k) rotate(cosine[k], sine[k], h.data + place[k]);
        goes_on() = !stop();
      });
      // x = x + Z y, or x + M^-1 V y
      if (flexible) {
        add_columns(n, j, y, inverse, Z, x);
      } else {
        ex.for_each(n, KRILU_FN(Index i) { w[i] = 0; });
        add_columns(n, columns, h, inverse, V, w);
        M.apply(w.data, zj.data);
        ex.for_each(n, KRILU_FN(Index i) { x[i] += zj[i]; });
      }
      ex.when(goes_on, [&] {
        A.residual(system.b, x.data, r.data);
        ex.once(KRILU_FN() {
          columns() = 0;
          cycle_done() = 0;
        });
        begin(r, control);
      });
    });
  }

  /// v_j, the vector to multiply next: r, or, where there is a basis already, what C does not hold of it. g: r in the
  /// basis. The basis is begun anew where it is full or used up.
  void begin(exec::View<T> r, exec::Scalar<Control<T>> control) {
    const std::size_t n = n_;
    const Index m = m_;
    const Small s = small();
    const exec::View<T> cosine = s.cosine, sine = s.sine, g = s.g;
    const exec::Scalar<T> beta = s.beta, claimed = s.claimed;
    const exec::Scalar<Index> j = s.j, columns = s.columns, first = s.first;
    const exec::View<Index> place = s.place;
    const exec::View<int> apart = s.apart;
    const exec::Scalar<int> stop = s.stop, cycle_done = s.cycle_done, exhausted = s.exhausted;
    const exec::View<T> vj = vj_.view();
    const exec::View<B> V = v_.view();
    const T unit = unit_, inverse = 1 / unit;

    ex_.once(KRILU_FN() {
      if (columns() == 0 || columns() >= m || exhausted()) columns() = j() = first() = 0;
      exhausted() = 0;
      if (columns() > 0) apart[columns() - 1] = 1;
    });
    // V = V Q, Q being the rotations since the last time
    ex_.for_each_range(n, KRILU_FN(Index begin, Index end) {
      if (end - begin == 1 && first() < j()) {  // a GPU's thread: what goes from column to column stays in it
        B* v = V.data + std::size_t(place[first()]) * n + std::size_t(begin);
        T u = T(*v);
        for (Index k = first(); k < j(); ++k, v += n) {
          const T c = cosine[k], d = sine[k], l = T(v[n]);
          *v = B(c * u + d * l);
          u = c * l - d * u;
        }
        *v = B(u);
        return;
      }
      for (Index k = first(); k < j(); ++k) {
        B *const upper = V.data + std::size_t(place[k]) * n, *const lower = upper + n;
        const T c = cosine[k], d = sine[k];
#pragma omp simd
        for (Index i = begin; i < end; ++i) {
          const T u = T(upper[i]), l = T(lower[i]);
          upper[i] = B(c * u + d * l);
          lower[i] = B(c * l - d * u);
        }
      }
    });
    // g_k = (r, v_k),  r = r - sum_k g_k v_k,  |r|
    ex_.reduce_columns(n, m + 1, columns,
                       KRILU_FN(Index i, Index k) { return r[i] * T(V.data[std::size_t(k) * n + std::size_t(i)]); },
                       KRILU_FN(Index k, T rv) { g[k] = apart[k] ? T(0) : rv * inverse; });
    add_columns(n, columns, g, -inverse, V, r);
    ex_.reduce(n, KRILU_FN(Index i) { return r[i] * r[i]; }, KRILU_FN(T rr) {
      first() = j();
      beta() = std::sqrt(rr);
      if (!(beta() > T(0)) || !(beta() - beta() == T(0))) {
        beta() = 1;
        columns() = j() = first() = 0;
        cycle_done() = stop() = control().stop(Stop::breakdown);
      } else if (beta() > 10 * claimed()) {
        // The residual is not what the last cycle made of it: rounding allows no more. The driver looks at it.
        columns() = j() = first() = 0;
        cycle_done() = stop() = control().stop(Stop::target);
      }
      g[columns()] = stop() ? T(0) : beta();
      apart[columns()] = 0;
      ++columns();
    });
    // v_j = r / |r|
    ex_.for_each(n, KRILU_FN(Index i) {
      B& v = V.data[std::size_t(columns() - 1) * n + std::size_t(i)];
      v = B(unit * (r[i] / beta()));
      vj[i] = T(v) * inverse;
    });
  }
  // clang-format on

  std::size_t bytes() const override {
    return v_.bytes() + z_.bytes() + vj_.bytes() + zj_.bytes() + w_.bytes() + small_.bytes() + counters_.bytes() +
           flags_.bytes();
  }

  // clang-format off
  /// x = x + factor * sum over k < columns() of y_k z_k, four columns in a pass over x.
  void add_columns(std::size_t n, exec::Scalar<Index> columns, exec::View<T> y, T factor, exec::View<B> Z,
                   exec::View<T> x) const {
    ex_.for_each_range(n, KRILU_FN(Index begin, Index end) {
      const B* z = Z.data;
      Index k = 0;
      if (end - begin == 1) {  // a GPU's thread
        T sum = 0;
        z += begin;
        for (; k < columns(); ++k, z += n) sum += y[k] * T(*z);
        x[begin] += factor * sum;
        return;
      }
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
  /// What is small, where the vectors live.
  struct Small {
    exec::View<T> H, h, cosine, sine, g, y;
    exec::Scalar<T> beta, before, claimed;
    exec::Scalar<Index> j, columns, first;  // columns of H; basis vectors; columns whose rotations V has taken up
    exec::View<Index> place;  // of each column of H: the basis vector that it is of, and its diagonal's row
    exec::Scalar<int> stop, cycle_done, again, goes_on, exhausted;
    exec::View<int> apart;  // basis vectors that nothing is made orthogonal to any more
  };
  Small small() const {
    Small s;
    T* at = small_.data();
    const auto take = [&](Index count) { return exec::View<T>{std::exchange(at, at + count)}; };
    s.H = take((m_ + 1) * m_);
    for (auto* column : {&s.h, &s.cosine, &s.sine, &s.g, &s.y}) *column = take(m_ + 1);
    for (auto* number : {&s.beta, &s.before, &s.claimed}) number->data = at++;
    std::size_t counter = 0, flag = 0;
    for (auto* c : {&s.j, &s.columns, &s.first}) *c = counters_.scalar(counter++);
    s.place.data = counters_.data() + counter;
    for (auto* f : {&s.stop, &s.cycle_done, &s.again, &s.goes_on, &s.exhausted}) *f = flags_.scalar(flag++);
    s.apart.data = flags_.data() + flag;
    return s;
  }
  static KRILU_INLINE void rotate(T c, T s, T* v) {
    const T upper = v[0], lower = v[1];
    v[0] = c * upper + s * lower;
    v[1] = c * lower - s * upper;
  }

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
