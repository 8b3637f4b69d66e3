// SPDX-License-Identifier: Apache-2.0
// GMRES(m) and FGMRES(m), right-preconditioned [Saad and Schultz 1986; Saad 1993, 2003 Algorithms 9.5 and 9.6]. FGMRES
// keeps M^-1 v_j, so that M may change from step to step, and needs no M to form x.
//
// Orthogonalisation: classical Gram-Schmidt twice, the second time delayed to the next step, where it shares its passes
// over the basis with the first of the next vector [Bielich, Langou, Thomas, Swirydowicz, Yamazaki, Boman 2022]. So A
// is applied to a vector u that was projected once, and u = V a + nu v turns out afterwards: V takes v, and x is made
// of V (a, nu) in u's place, so that nothing is lost. Once alone will not do: what it loses multiplies from step to
// step, and costs three times the iterations on some systems. Step j: 1 A, 1 M, and 2 (j + 1) + 9 words a row.
//
// The basis may be stored in less precision than is computed in (B): a vector is then what was stored [Aliaga, Anzt,
// Gruetzmacher, Quintana-Orti, Tomas 2022].
//
// resume() goes on from another residual of the same system and keeps what the basis has learnt, which refinement in
// low precision lives on: it asks again and again, and to begin anew each time would cost more iterations than the
// precision saves. The Givens rotations are applied to the basis itself, whose columns then are C = A M^-1 U R^-1 and
// one more, which only x still needs; and the next basis grows from what C does not hold of r, orthogonal to C as well.
// That is GCRO without truncation [de Sturler 1996], C being had for one pass over V.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
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
        m_(std::min(restart, largest_basis(rows))),
        flexible_(flexible),
        v_(ex_.template allocate<B>(n_ * std::size_t(m_ + 1))),
        kept_(ex_.template allocate<B>(flexible ? n_ * std::size_t(m_) : 0)),
        u_(ex_.template allocate<T>(n_)),
        z_(ex_.template allocate<T>(n_)),
        w_(ex_.template allocate<T>(n_)),
        // H and S: m columns of m + 1; h: the newest column of H, not rotated; a, b: what u and w hold of the basis;
        // Givens cosines and sines; g: the rotated right-hand side; y: the coefficients of x; numbers
        small_(ex_.template allocate<T>(2 * std::size_t(m_ + 1) * std::size_t(m_) + 7 * std::size_t(m_ + 2) +
                                        std::size_t(numbers))),
        counters_(ex_.template allocate<Index>(std::size_t(3 + m_))),
        flags_(ex_.template allocate<int>(std::size_t(4 + m_ + 1))) {
    // Entries of a unit vector are about 1 / sqrt(n): fp16 keeps them times a power of two near sqrt(n).
    if constexpr (std::is_same_v<B, Half>) unit_ = T(std::exp2(std::floor(std::log2(double(ex_.total(n_)) + 1) / 2)));
  }

  void iterate(const System<Space, T>& system, exec::Scalar<Control<T>> control) override {
    run(system, control, false);
  }
  void resume(const System<Space, T>& system, exec::Scalar<Control<T>> control) override { run(system, control, true); }

  // Parts of the above: public because nvcc takes kernels, and what they capture, in public members only.

  /// Loads of a GPU's thread that are on their way before the first is used.
  static constexpr Index at_once = 8;

  /// What is small, where the vectors live.
  struct Small {
    Index m;
    exec::View<T> H, S, h, a, b, cosine, sine, g, y;
    exec::Scalar<T> beta, nu, own, before, claimed, g_before;  // beta: the unit of u; own: v's own coefficient
    exec::Scalar<Index> j, columns, first;  // columns of H; basis vectors; columns whose rotations V has taken up
    exec::View<Index> place;  // of each column of H: the basis vector that it is of, and its diagonal's row
    exec::Scalar<int> stop, cycle_done, goes_on, exhausted;
    exec::View<int> apart;  // basis vectors that nothing is made orthogonal to any more

    // One thread of a GPU does what follows.

    /// The rotations of columns begin .. end-1, of one basis, on v, whose entry place[begin] comes first.
    KRILU_INLINE void rotate(Index begin, Index end, T* v) const {
      if (begin >= end) return;
      T* at = v + place[begin];
      T carried = *at;
      for (Index k = begin; k < end; k += at_once) {
        T c[at_once], s[at_once], lower[at_once];
        for (Index q = 0; q < at_once; ++q) {
          const bool have = k + q < end;
          c[q] = have ? cosine[k + q] : T(1);
          s[q] = have ? sine[k + q] : T(0);
          lower[q] = have ? at[q + 1] : T(0);
        }
        for (Index q = 0; q < at_once && k + q < end; ++q) {
          *at++ = c[q] * carried + s[q] * lower[q];
          carried = c[q] * lower[q] - s[q] * carried;
        }
      }
      *at = carried;
    }
    /// f(k, x_k, y_k) for k < n.
    template <class F>
    static KRILU_INLINE void for_pairs(Index n, const T* x, const T* y, const F& f) {
      for (Index k = 0; k < n; k += at_once) {
        T p[at_once], q[at_once];
        for (Index l = 0; l < at_once; ++l) {
          p[l] = k + l < n ? x[k + l] : T(0);
          q[l] = k + l < n ? y[k + l] : T(0);
        }
        for (Index l = 0; l < at_once && k + l < n; ++l) f(k + l, p[l], q[l]);
      }
    }
    /// Column k of H from h; |g| of the row below its diagonal is the norm of the residual.
    KRILU_INLINE void rotate_column(Index k) const {
      const Index p = place[k];
      T* const column = H.data + k * (m + 1);
      T size = 0;
      for_pairs(p + 2, h.data, h.data, [&](Index i, T v, T) {
        column[i] = v;
        size += v * v;
      });
      rotate(first(), k, column);
      T length = std::sqrt(column[p] * column[p] + column[p + 1] * column[p + 1]);
      // Nothing new in this column, as of a singular matrix: it lowers no residual and takes no part in x.
      if (h[p + 1] == T(0) && !(length > std::sqrt(size) * 8 * std::numeric_limits<T>::epsilon())) length = 0;
      cosine[k] = length > T(0) ? column[p] / length : T(0);
      sine[k] = length > T(0) ? column[p + 1] / length : T(1);
      column[p] = length;
      g[p] = g_before();
      g[p + 1] = 0;
      rotate(k, k + 1, g.data);
    }
    /// u = V a + nu v: what h, or g, was told of beta u is set right. Nothing is left of u where it was rounding only.
    KRILU_INLINE void settle(T uu) const {
      const Index K = columns();
      const bool of_r = j() == first();
      T* const told = of_r ? g.data : h.data;
      const T size = beta();
      T inside = 0;
      for_pairs(K, a.data, told, [&](Index k, T ak, T v) {
        inside += ak * ak;
        told[k] = v + size * ak;
      });
      const T rest = uu - inside;
      exhausted() = !(rest > 100 * std::numeric_limits<T>::epsilon() * uu);
      nu() = exhausted() ? T(1) : std::sqrt(rest);
      told[K] = exhausted() ? T(0) : size * nu();
      if (!of_r) rotate_column(j() - 1);
    }
  };

  // Formatted by hand: the loop keeps the shape of the textbook's.
  // clang-format off
  void run(const System<Space, T>& system, exec::Scalar<Control<T>> control, bool resumes) {
    const auto& ex = ex_;
    const std::size_t n = n_;
    const auto& A = system.A;
    auto& M = system.M;
    const exec::View<T> x{system.x}, r{system.r}, u = u_.view(), z = z_.view(), w = w_.view();
    const exec::View<B> V = v_.view(), Z = kept_.view();
    const Small s = small();
    const T unit = unit_, inverse = 1 / unit;  // of a basis vector v, unit v is stored
    const bool flexible = flexible_;

    ex.once(KRILU_FN() {
      s.stop() = s.cycle_done() = 0;
      s.claimed() = std::numeric_limits<T>::infinity();
      if (!resumes) s.columns() = 0;
    });
    begin(r, control);
    ex.repeat_until(s.stop, [&] {
      ex.repeat_until(s.cycle_done, [&] {
        // w = A M^-1 u
        M.apply(A, u.data, z.data, w.data);
        if (flexible) {
          ex.for_each(n, KRILU_FN(Index i) { Z.data[std::size_t(s.j()) * n + std::size_t(i)] = B(unit * z[i]); });
        }
        // a = V^T u,  b = V^T w,  and so for u itself, which stands behind V
        ex.reduce_columns(n, s.m + 1, s.columns, 1, KRILU_FN(Index i, Index k) {
          const T v = T(V.data[std::size_t(k) * n + std::size_t(i)]);
          return exec::Sums<T, 2>{{v * u[i], v * w[i]}};
        }, KRILU_FN(Index k, exec::Sums<T, 2> sums) {
          s.a[k] = s.apart[k] ? T(0) : sums[0] * inverse;
          s.b[k] = s.apart[k] ? T(0) : sums[1] * inverse;
        });
        // u = V a + nu v,  A M^-1 u = V b + c v + what w is to become
        ex.once(KRILU_FN() {
          const Index K = s.columns();
          const T uu = s.a[K], uw = s.b[K];
          s.settle(uu);
          if (s.exhausted()) {
            s.cycle_done() = 1;
            return;
          }
          T ab = 0, bb = 0;
          T* const row_of_S = s.S.data + s.j() * (s.m + 1);
          Small::for_pairs(K, s.a.data, s.b.data, [&](Index k, T ak, T bk) {
            ab += ak * bk;
            bb += bk * bk;
            s.h[k] = bk;
            row_of_S[k] = ak;
          });
          s.h[K] = s.own() = (uw - ab) / s.nu();
          row_of_S[K] = s.nu();
          // The next u is kept near the size of a unit vector.
          s.before() = bb + s.own() * s.own();
          s.beta() = std::sqrt(s.before());
          if (!(s.beta() > T(0))) s.beta() = 1;
        });
        if constexpr (!std::is_same_v<T, B>) {  // 16 bits have little range: the next u is of length 1 at the most
          ex.reduce(n, KRILU_FN(Index i) { return w[i] * w[i]; }, KRILU_FN(T ww) {
            if (ww > T(0)) s.beta() = std::sqrt(ww);
          });
        }
        // v = (u - V a) / nu,  beta u = w - V b - c v, the next one
        advance(true);
        // |u|, and with it the newest column of H
        ex.reduce(n, KRILU_FN(Index i) { return u[i] * u[i]; }, KRILU_FN(T uu) {
          if (s.exhausted()) return;
          const Index k = s.j(), K = s.columns();
          const T ww = s.beta() * s.beta() * uu;
          const T before = ww + s.before();
          s.exhausted() = !(ww > before * std::numeric_limits<T>::epsilon() * std::numeric_limits<T>::epsilon());
          s.h[K + 1] = s.exhausted() ? T(0) : std::sqrt(ww);
          s.place[k] = K;
          s.g_before() = s.g[K];
          s.rotate_column(k);
          const T norm = s.g[K + 1] < 0 ? -s.g[K + 1] : s.g[K + 1];
          s.claimed() = norm;
          s.j() = k + 1;
          s.columns() = K + 1;
          s.apart[K + 1] = 0;
          s.stop() = control().record(norm);
          if (s.exhausted() && !s.stop() && s.H[k * (s.m + 1) + K] == T(0)) s.stop() = control().stop(Stop::breakdown);
          s.cycle_done() = s.stop() || s.exhausted() || K + 1 == s.m;
        });
      });

      // H y = g;  b = S y, coefficients of V as it stands now
      ex.once(KRILU_FN() {
        for (Index k = 0; k <= s.columns(); ++k) s.b[k] = 0;
        for (Index k = s.j(); k-- > 0;) {
          const Index p = s.place[k];
          T sum = s.g[p];
          for (Index l = k + 1; l < s.j(); ++l) sum -= s.H[l * (s.m + 1) + p] * s.y[l];
          const T pivot = s.H[k * (s.m + 1) + p];
          s.y[k] = pivot != T(0) ? sum / pivot : T(0);
          if (!(s.y[k] - s.y[k] == T(0))) s.y[k] = 0;
        }
        // Basis by basis, since V has taken up the rotations of all but the last.
        for (Index begin = 0; begin < s.j();) {
          Index end = begin;
          do {
            for (Index i = 0; i <= s.place[end]; ++i) s.b[i] += s.y[end] * s.S[end * (s.m + 1) + i];
            ++end;
          } while (end < s.j() && end != s.first() && s.place[end] == s.place[end - 1] + 1);
          s.rotate(begin, end < s.first() ? end : s.first(), s.b.data);
          begin = end;
        }
        s.goes_on() = !s.stop();
      });
      // x = x + Z y, or x + M^-1 V S y
      if (flexible) {
        add_columns(n, s.j, s.y, inverse, Z, x);
      } else {
        ex.for_each(n, KRILU_FN(Index i) { w[i] = 0; });
        add_columns(n, s.columns, s.b, inverse, V, w);
        M.apply(w.data, z.data);
        ex.for_each(n, KRILU_FN(Index i) { x[i] += z[i]; });
      }
      ex.when(s.goes_on, [&] {
        A.residual(system.b, x.data, r.data);
        ex.once(KRILU_FN() {
          s.columns() = 0;
          s.cycle_done() = 0;
        });
        begin(r, control);
      });
    });
  }

  /// u, the vector to multiply next: r, or, where there is a basis already, what C does not hold of it. g: r in the
  /// basis. The basis is begun anew where it is full or used up.
  void begin(exec::View<T> r, exec::Scalar<Control<T>> control) {
    const std::size_t n = n_;
    const Small s = small();
    const exec::View<T> u = u_.view();
    const exec::View<B> V = v_.view();
    const T unit = unit_, inverse = 1 / unit;

    // The last vector of the basis that is there is settled and joins it.
    ex_.once(KRILU_FN() {
      if (s.columns() == 0 || s.columns() + 2 >= s.m || s.exhausted()) s.columns() = s.j() = s.first() = 0;
    });
    ex_.reduce_columns(n, s.m + 1, s.columns, 0,
                       KRILU_FN(Index i, Index k) { return u[i] * T(V.data[std::size_t(k) * n + std::size_t(i)]); },
                       KRILU_FN(Index k, T uv) { s.a[k] = s.apart[k] ? T(0) : uv * inverse; });
    ex_.reduce(n, KRILU_FN(Index i) { return s.columns() > 0 ? u[i] * u[i] : T(0); }, KRILU_FN(T uu) {
      s.exhausted() = 0;
      if (s.columns() == 0) return;
      s.settle(uu);
      if (s.exhausted()) s.columns() = s.j() = s.first() = 0;
    });
    advance(false);
    ex_.once(KRILU_FN() {
      if (s.columns() > 0) s.apart[s.columns()++] = 1;
    });
    // V = V Q, Q being the rotations since the last time
    ex_.for_each_range(n, KRILU_FN(Index begin, Index end) {
      if (end - begin == 1 && s.first() < s.j()) {  // a GPU's thread: what goes from column to column stays in it
        B* v = V.data + std::size_t(s.place[s.first()]) * n + std::size_t(begin);
        T upper = T(*v);
        for (Index k = s.first(); k < s.j(); ++k, v += n) {
          const T c = s.cosine[k], d = s.sine[k], lower = T(v[n]);
          *v = B(c * upper + d * lower);
          upper = c * lower - d * upper;
        }
        *v = B(upper);
        return;
      }
      for (Index k = s.first(); k < s.j(); ++k) {
        B *const upper = V.data + std::size_t(s.place[k]) * n, *const lower = upper + n;
        const T c = s.cosine[k], d = s.sine[k];
#pragma omp simd
        for (Index i = begin; i < end; ++i) {
          const T above = T(upper[i]), below = T(lower[i]);
          upper[i] = B(c * above + d * below);
          lower[i] = B(c * below - d * above);
        }
      }
    });
    // g_k = (r, v_k),  r = r - sum_k g_k v_k,  |r|
    ex_.reduce_columns(n, s.m + 1, s.columns, 0,
                       KRILU_FN(Index i, Index k) { return r[i] * T(V.data[std::size_t(k) * n + std::size_t(i)]); },
                       KRILU_FN(Index k, T rv) { s.g[k] = s.apart[k] ? T(0) : rv * inverse; });
    add_columns(n, s.columns, s.g, -inverse, V, r);
    ex_.reduce(n, KRILU_FN(Index i) { return r[i] * r[i]; }, KRILU_FN(T rr) {
      s.first() = s.j();
      s.exhausted() = 0;
      s.beta() = std::sqrt(rr);
      if (!(s.beta() > T(0)) || !(s.beta() - s.beta() == T(0))) {
        s.beta() = 1;
        s.columns() = s.j() = s.first() = 0;
        s.cycle_done() = s.stop() = control().stop(Stop::breakdown);
      } else if (s.beta() > 10 * s.claimed()) {
        // The residual is not what the last cycle made of it: rounding allows no more. The driver looks at it.
        s.columns() = s.j() = s.first() = 0;
        s.cycle_done() = s.stop() = control().stop(Stop::target);
      }
      s.apart[s.columns()] = 0;
    });
    // u = r / |r|
    ex_.for_each(n, KRILU_FN(Index i) {
      B& v = V.data[std::size_t(s.columns()) * n + std::size_t(i)];
      v = B(unit * (r[i] / s.beta()));
      u[i] = T(v) * inverse;
    });
  }

  /// v = (u - V a) / nu behind V, and, where `on`, the next u = (w - V b - c v) / beta behind v.
  void advance(bool on) {
    const std::size_t n = n_;
    const Small s = small();
    const exec::View<T> u = u_.view(), w = w_.view();
    const exec::View<B> V = v_.view();
    const T unit = unit_, inverse = 1 / unit;
    ex_.for_each_range(n, KRILU_FN(Index begin, Index end) {
      const Index K = s.columns();
      if (s.exhausted() || (!on && K == 0)) return;
      const B* v = V.data;
      if (end - begin == 1) {  // a GPU's thread
        T au = 0, bw = 0;
        for (Index k = 0; k < K; k += at_once) {
          T value[at_once];
          for (Index q = 0; q < at_once; ++q)
            value[q] = k + q < K ? T(v[std::size_t(k + q) * n + std::size_t(begin)]) : T(0);
          for (Index q = 0; q < at_once && k + q < K; ++q) {
            au += s.a[k + q] * value[q];
            if (on) bw += s.b[k + q] * value[q];
          }
        }
        u[begin] -= au * inverse;
        if (on) w[begin] -= bw * inverse;
      } else {
        Index k = 0;
        for (; k + 2 <= K; k += 2, v += 2 * n) {
          const T a0 = s.a[k] * inverse, a1 = s.a[k + 1] * inverse, b0 = s.b[k] * inverse, b1 = s.b[k + 1] * inverse;
          const B *v0 = v, *v1 = v + n;
          if (on) {
#pragma omp simd
            for (Index i = begin; i < end; ++i) {
              const T p = T(v0[i]), q = T(v1[i]);
              u[i] -= a0 * p + a1 * q;
              w[i] -= b0 * p + b1 * q;
            }
          } else {
#pragma omp simd
            for (Index i = begin; i < end; ++i) u[i] -= a0 * T(v0[i]) + a1 * T(v1[i]);
          }
        }
        for (; k < K; ++k, v += n) {
          const T ak = s.a[k] * inverse, bk = on ? s.b[k] * inverse : T(0);
#pragma omp simd
          for (Index i = begin; i < end; ++i) {
            u[i] -= ak * T(v[i]);
            if (on) w[i] -= bk * T(v[i]);
          }
        }
      }
      B *const settled = V.data + std::size_t(K) * n, *const next = settled + n;
      const T scale = 1 / s.nu(), c = s.own(), unit_of_u = unit / s.beta();
#pragma omp simd
      for (Index i = begin; i < end; ++i) {
        const T value = u[i] * scale;
        settled[i] = B(unit * value);
        if (!on) continue;
        next[i] = B(unit_of_u * (w[i] - c * value));
        u[i] = T(next[i]) * inverse;
      }
    });
  }
  // clang-format on

  std::size_t bytes() const override {
    return v_.bytes() + kept_.bytes() + u_.bytes() + z_.bytes() + w_.bytes() + small_.bytes() + counters_.bytes() +
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
        for (; k < columns(); k += at_once) {
          T value[at_once];
          for (Index q = 0; q < at_once; ++q)
            value[q] = k + q < columns() ? T(z[std::size_t(k + q) * n + std::size_t(begin)]) : T(0);
          for (Index q = 0; q < at_once && k + q < columns(); ++q) sum += y[k + q] * value[q];
        }
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
  static constexpr Index numbers = 6;
  /// Of all ranks' rows, so that all restart together.
  Index largest_basis(Index rows) const {
    const auto all = std::int64_t(ex_.total(std::size_t(rows)));
    return Index(std::min<std::int64_t>(std::max<std::int64_t>(all, 1) + spare, std::numeric_limits<Index>::max()));
  }
  static constexpr Index spare = 16;  // vectors beyond the rows, for residuals that enter a full basis
  Small small() const {
    Small s;
    s.m = m_;
    T* at = small_.data();
    const auto take = [&](Index count) { return exec::View<T>{std::exchange(at, at + count)}; };
    for (auto* matrix : {&s.H, &s.S}) *matrix = take((m_ + 1) * m_);
    for (auto* column : {&s.h, &s.a, &s.b, &s.cosine, &s.sine, &s.g, &s.y}) *column = take(m_ + 2);
    for (auto* number : {&s.beta, &s.nu, &s.own, &s.before, &s.claimed, &s.g_before}) number->data = at++;
    std::size_t counter = 0, flag = 0;
    for (auto* c : {&s.j, &s.columns, &s.first}) *c = counters_.scalar(counter++);
    s.place.data = counters_.data() + counter;
    for (auto* f : {&s.stop, &s.cycle_done, &s.goes_on, &s.exhausted}) *f = flags_.scalar(flag++);
    s.apart.data = flags_.data() + flag;
    return s;
  }

  Space ex_;
  std::size_t n_;
  Index m_;
  bool flexible_;
  T unit_ = 1;
  exec::Array<B> v_, kept_;
  exec::Array<T> u_, z_, w_, small_;
  exec::Array<Index> counters_;
  exec::Array<int> flags_;
};

}  // namespace krilu::krylov
