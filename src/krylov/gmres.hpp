// SPDX-License-Identifier: Apache-2.0
// GMRES(m) and FGMRES(m), right-preconditioned [Saad and Schultz 1986; Saad 1993, 2003 Algorithms 9.5 and 9.6]. FGMRES
// keeps M^-1 v_j, so that M may change from step to step, and needs no M to form x.
//
// Orthogonalisation: classical Gram-Schmidt twice, the second time delayed to the next step, where it shares its passes
// over the basis with the first of the next vector [Bielich, Langou, Thomas, Swirydowicz, Yamazaki, Boman 2022]. So A
// is applied to a vector u that was projected once, and u = V a + nu v turns out afterwards: V takes v, and x is made
// of V (a, nu) in u's place, so that nothing is lost. Once alone will not do: what it loses multiplies from step to
// step, and costs three times the iterations on some systems. Step j: 1 A, 1 M, and 2 (j + 1) + 6 words a row.
//
// A step has one reduction. How long the next u will be follows from (w, w) by Pythagoras, and with it the newest
// column of H; the next step's dot products set the column right. Where w has so little that is new that rounding
// leaves no digit of it, as much is taken for new as rounding may hide; whether the step was the last one is then seen
// when the next u has been multiplied, which counts as no iteration.
//
// The basis may be stored in less precision than is computed in (B): a vector is then what was stored [Aliaga, Anzt,
// Gruetzmacher, Quintana-Orti, Tomas 2022]. u being as long as v, v is rounded to the very numbers that u was where V
// holds little of u, as mostly, and x is of the vectors that A was applied to.
//
// resume() goes on from another residual of the same system and keeps what the basis has learnt, which refinement in
// low precision lives on: it asks again and again, and to begin anew each time would cost more iterations than the
// precision saves. In double it is what a solve goes on with whose recurrence claimed too much. The Givens rotations
// are applied to the basis itself, whose columns then are C = A M^-1 U R^-1 and one more, which only x still needs; and
// the next basis grows from what C does not hold of r, orthogonal to C as well. That is GCRO without truncation [de
// Sturler 1996]. To go on costs two passes over V, the second of which writes what is new of it.
#pragma once

#include <algorithm>
#include <array>
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
        stride_(exec::Columns<B>::stride_of(n_)),
        v_(ex_.template allocate<B>(stride_ * std::size_t(m_ + 1))),
        kept_(ex_.template allocate<B>(flexible ? stride_ * std::size_t(m_) : 0)),
        u_(ex_.template allocate<T>(n_)),
        z_(ex_.template allocate<T>(n_)),
        w_(ex_.template allocate<T>(n_)),
        // H and S: m columns of m + 1; h: the newest column of H, not rotated; a, b: what u and w, or r, hold of the
        // basis; Givens cosines and sines; g: the rotated right-hand side; y: the coefficients of x; numbers
        small_(ex_.template allocate<T>(2 * std::size_t(m_ + 1) * std::size_t(m_) + 7 * std::size_t(m_ + 2) +
                                        std::size_t(numbers))),
        counters_(ex_.template allocate<Index>(std::size_t(4 + most_at_once + m_))),
        flags_(ex_.template allocate<int>(std::size_t(5 + m_ + 1))) {
    // Entries of a unit vector are about 1 / sqrt(n): fp16 keeps them times a power of two near sqrt(n).
    if constexpr (std::is_same_v<B, Half>) unit_ = T(std::exp2(std::floor(std::log2(double(ex_.total(n_)) + 1) / 2)));
    if constexpr (!std::is_same_v<Space, exec::Host>) blank();
  }

  void iterate(const System<Space, T>& system, exec::Scalar<Control<T>> control) override {
    forget();
    resume(system, control);
  }
  bool forget() override {
    const Small s = small();
    ex_.once(KRILU_FN() { s.columns() = 0; });
    return true;
  }

  // Parts of the above: public because nvcc takes kernels, and what they capture, in public members only.

  /// Zeros in what a GPU reads before it is written, and does not use then: u, and the ends of columns.
  void blank() {
    const exec::View<T> u = u_.view();
    ex_.for_each(
        n_, KRILU_FN(Index i) { u[i] = 0; });
    const std::size_t n = n_, beyond = stride_ - n_;
    for (auto* basis : {&v_, &kept_}) {
      const exec::Columns<B> V{basis->data(), stride_};
      if (beyond > 0)
        ex_.for_each(
            basis->size() / stride_ * beyond,
            KRILU_FN(Index k) { V[k / Index(beyond)][n + std::size_t(k) % beyond] = B(T(0)); });
    }
  }
  /// What is small, where the vectors live.
  struct Small {
    Index m;
    exec::View<T> H, S, h, a, b, cosine, sine, g, y;
    exec::Scalar<T> beta, nu, own, claimed, g_before;  // beta: the unit of u; own: v's own coefficient
    exec::Scalar<T> per_nu, unit_per_beta;
    exec::Scalar<Index> j, columns, first;  // columns of H; basis vectors; columns whose rotations V has taken up
    exec::Scalar<Index> live;  // columns, or -1: no basis yet, or a cycle's last step is behind and more change nothing
    exec::View<Index> due;     // what each of the steps between two looks has to combine: basis vectors, or -1: nothing
    exec::View<Index> place;   // of each column of H: the basis vector that it is of, and its diagonal's row
    exec::Scalar<int> stop, cycle_done, goes_on, exhausted;
    exec::Scalar<int> in_doubt;  // the newest column's norm is not known, or was taken for the most that it may be
    exec::View<int> apart;       // basis vectors that nothing is made orthogonal to any more
    // Of |w|^2: what its rest is to be more than, to have some digits, and to have one.
    static constexpr T few_digits = 1000 * std::numeric_limits<T>::epsilon();
    static constexpr T no_digits = 32 * std::numeric_limits<T>::epsilon();
    static constexpr T negligible = 8 * std::numeric_limits<T>::epsilon();  // an entry of a column, beside all of it
    /// Entries that a lane asks for before it uses the first, where lanes wait for memory.
    static constexpr Index asked = exec::Lanes::count > 1 ? 16 : 1;

    // Steps of all lanes together.

    /// The rotations of columns begin .. end-1, of one basis, on the entries of a vector from place[begin] on, which is
    /// where `in` points to; to `out`, which may be `in`. The answer is the entry behind them, which is not written.
    KRILU_INLINE T rotate(exec::Lanes lanes, Index begin, Index end, const T* in, T* out) const {
      T carried = in[0];
      for (Index k = begin; k < end; k += lanes.count) {
        const Index mine = k + lanes.lane();
        const bool have = mine < end;
        const T c = have ? cosine[mine] : T(0), s = have ? sine[mine] : T(-1),
                lower = have ? in[mine - begin + 1] : T(0);
        // A rotation carries x on as slope x + shift; those of all lanes up to this one do so together.
        T slope = -s, shift = c * lower;
        for (int back = 1; back < lanes.count; back *= 2) {
          const T slope_before = lanes.before(slope, back, T(1)), shift_before = lanes.before(shift, back, T(0));
          shift += slope * shift_before;
          slope *= slope_before;
        }
        const T beyond = slope * carried + shift, upper = lanes.before(beyond, 1, carried);
        carried = lanes.of(beyond, lanes.count - 1);
        lanes.meet();  // each has read what the next one writes
        if (have) out[mine - begin] = c * upper + s * lower;
      }
      return carried;
    }
    /// The Givens rotation that takes `below` to `upper`, and what that becomes.
    struct Rotation {
      T c, s, length;
      /// size: of the whole column. Nothing new in it, as of a singular matrix: it lowers no residual and takes no part
      /// in x.
      KRILU_INLINE Rotation(T upper, T below, T size) : length(std::sqrt(upper * upper + below * below)) {
        if (below == T(0) && !(length > size * negligible)) length = 0;
        c = length > T(0) ? upper / length : T(0);
        s = length > T(0) ? below / length : T(1);
      }
    };
    /// What w = A M^-1 u has of u and of itself; unit: of a basis vector.
    struct Multiplied {
      T uw = 0, ww = 0, unit = 1;
      exec::Scalar<Control<T>> control = {};
    };
    /// u = V a + nu v: what the newest column of H, or g, was told of beta u is set right, and the rotation that
    /// belongs to the column made again. Nothing is left of u where it was rounding only. Then, where w is given, the
    /// next column is taken: b, and what v has of w. The length of its rest, which is to be the next u, is what V and v
    /// do not hold of (w, w); where that has no digits, what it may be at most is claimed. Both columns go through the
    /// rotations together, and all is asked for at once: to wait for the memory is what takes time here. The answer is
    /// whether nothing was left, or the cycle ended before the next column.
    template <bool next>
    KRILU_INLINE bool settle(exec::Lanes lanes, T uu, const Multiplied& w = {}) const {
      const Index K = columns(), k = j(), begin = first();
      const T size = beta(), g_p = g_before();
      const bool of_r = k == begin, doubted = in_doubt();
      // Rows of the newest column before its diagonal's, p, from `start` on through the rotations of this basis. g goes
      // through none.
      const Index p = K - 1, start = of_r ? K : K - (k - begin);
      const T* const told = of_r ? g.data : h.data;
      T* const newest = of_r ? g.data : H.data + (k - 1) * (m + 1);
      T *const column = H.data + k * (m + 1), *const column_of_S = S.data + k * (m + 1);
      T aa = 0, ab = 0, bb = 0, hh = 0;
      const auto entry = [&](Index i, bool counts, T& of_newest, T& of_next) {
        const T ai = a[i], bi = next ? b[i] : T(0), hi = told[i] + size * ai;
        of_newest = hi;
        of_next = bi;
        if (!counts) return;
        aa += ai * ai;
        hh += hi * hi;
        if (!next) return;
        ab += ai * bi;
        bb += bi * bi;
        column_of_S[i] = ai;
      };
      T carried = 0, carried_next = 0;
      if (K > 0) entry(0, lanes.first(), carried, carried_next);
      for (Index row = 0; row < p; row += lanes.count) {
        const Index i = row + lanes.lane();
        const bool have = i < p, turned = have && i >= start;
        T lower = 0, lower_next = 0;
        if (have) entry(i + 1, true, lower, lower_next);
        const T c = turned ? cosine[i - start + begin] : T(have), s = turned ? sine[i - start + begin] : T(have) - T(1);
        // As in rotate().
        T slope = -s, shift = c * lower, shift_next = c * lower_next;
        for (int back = 1; back < lanes.count; back *= 2) {
          const T slope_before = lanes.before(slope, back, T(1));
          const T shift_before = lanes.before(shift, back, T(0)), of_next = lanes.before(shift_next, back, T(0));
          shift += slope * shift_before;
          shift_next += slope * of_next;
          slope *= slope_before;
        }
        const T beyond = slope * carried + shift, beyond_next = slope * carried_next + shift_next;
        const T upper = lanes.before(beyond, 1, carried), upper_next = lanes.before(beyond_next, 1, carried_next);
        carried = lanes.of(beyond, lanes.count - 1);
        carried_next = lanes.of(beyond_next, lanes.count - 1);
        lanes.meet();  // each has read what the next one writes
        if (have) newest[i] = c * upper + s * lower;
        if (have && next) column[i] = c * upper_next + s * lower_next;
      }
      aa = lanes.sum(aa);
      hh = lanes.sum(hh);
      if constexpr (next) {
        ab = lanes.sum(ab);
        bb = lanes.sum(bb);
      }

      // Nothing is left of u where it was rounding only, of V or of w.
      const T beyond_V = uu - aa, noise = hh * negligible * negligible;
      const bool none =
          !(beyond_V > 100 * std::numeric_limits<T>::epsilon() * uu) || (!of_r && !(size * size * beyond_V > noise));
      const T length = none ? T(1) : std::sqrt(beyond_V), per_length = 1 / length, last = none ? T(0) : size * length;
      const Rotation r(carried, last, std::sqrt(hh + last * last));
      const T g_K = of_r ? last : -r.s * g_p;
      lanes.meet();  // each has read what the first one writes
      if (lanes.first()) {
        exhausted() = none;
        nu() = length;
        per_nu() = per_length;
        if (p >= 0) newest[p] = of_r ? carried : r.length;
        if (!of_r) {
          cosine[k - 1] = r.c;
          sine[k - 1] = r.s;
          g[p] = r.c * g_p;
        }
        g[K] = g_K;
      }
      if constexpr (next) {
        const bool ended = (none || doubted) && ends_settled(lanes, w.control, none, std::abs(g_K), r.length);
        if (!ended) {
          for (Index i = lanes.lane(); i < K; i += lanes.count) h[i] = b[i];
          const T of_v = (w.uw - ab) * per_length;
          if (p >= 0 && lanes.first()) column[p] = of_r ? carried_next : r.c * carried_next + r.s * of_v;
          take(lanes, w, of_v, of_r ? of_v : r.c * of_v - r.s * carried_next, bb + of_v * of_v, g_K);
          if (lanes.first()) column_of_S[K] = length;
        }
        lanes.meet();
        return ended;
      }
      lanes.meet();
      return none;
    }
    /// Whether the cycle ends with a column that was in doubt, whose norm is known now, or because nothing is left of
    /// u: then the true residual says what the column did. diagonal: of the column, where there is one of this basis.
    KRILU_INLINE bool ends_settled(exec::Lanes lanes, exec::Scalar<Control<T>> control, bool none, T norm,
                                   T diagonal) const {
      int stops = 0;
      if (lanes.first()) {
        if (const bool of_column = j() > first(); of_column && none) {
          in_doubt() = 1;
          stops = diagonal == T(0) ? control().stop(Stop::breakdown) : 0;
        } else if (of_column) {
          claimed() = norm;
          stops = control().amend(norm, m - columns());
        }
        if (none || stops) {
          stop() = stops;
          cycle_done() = 1;
          live() = -1;
        }
      }
      return none || lanes.of(stops, 0);
    }
    /// The end of the next column: what v has of w, the entry of the diagonal's row behind the rotations, the square of
    /// what V and v have.
    KRILU_INLINE void take(exec::Lanes lanes, const Multiplied& w, T of_v, T upper, T inside, T g_K) const {
      if (!lanes.first()) return;
      const Index k = j(), K = columns();
      // In doubt as much is taken for new as there may be: too little would let x take a step that is too long.
      const T ww = w.ww, rest = ww - inside, least = ww * no_digits;
      const bool none = ww == T(0), doubt = none || rest < least, full = K + 1 == m;
      const T below = std::sqrt(doubt ? least : rest), size = std::sqrt(ww);
      const Rotation r(upper, below, size);
      const T next = -r.s * g_K, norm = std::abs(next);
      const bool nothing = doubt && !(std::abs(upper) > size * negligible);
      const T unit_of_u = none ? T(1) : std::sqrt(rest > ww * few_digits ? rest : ww);
      h[K] = own() = of_v;
      H[k * (m + 1) + K] = r.length;
      cosine[k] = r.c;
      sine[k] = r.s;
      g_before() = g_K;
      g[K] = r.c * g_K;
      g[K + 1] = next;
      place[k] = K;
      apart[K + 1] = 0;
      beta() = unit_of_u;
      unit_per_beta() = w.unit / unit_of_u;
      in_doubt() = doubt;
      claimed() = norm;
      j() = k + 1;
      columns() = K + 1;
      int stops = w.control().record(norm, none ? 0 : m - K - 1);
      if (nothing && (none || full) && !stops) stops = w.control().stop(Stop::breakdown);
      const bool done = stops || none || full;
      exhausted() = none;
      stop() = stops;
      cycle_done() = done;
      live() = done ? -1 : K + 1;
    }
    /// r enters the basis V, v: b has V^T r, and ur is (u, r). g = C^T r, nothing of the last of each basis.
    KRILU_INLINE void enter(exec::Lanes lanes, T ur) const {
      const Index K = columns(), begin = first(), end = j(), start = begin < end ? place[begin] : K;
      T of_u = 0;
      for (Index k = lanes.lane(); k < K; k += lanes.count) of_u += a[k] * b[k];
      const T of_v = (ur - lanes.sum(of_u)) * per_nu();
      if (lanes.first()) b[K] = of_v;
      lanes.meet();
      for (Index k = lanes.lane(); k < start; k += lanes.count) g[k] = apart[k] ? T(0) : b[k];
      rotate(lanes, begin, end, b.data + start, g.data + start);
      if (lanes.first()) g[K] = 0;
    }
    /// The sum of entry(k) y[k] over k from begin to end - 1.
    template <class Entry>
    KRILU_INLINE T times_y(Index begin, Index end, const Entry& entry) const {
      T sum = 0;
      for (Index k = begin; k < end; k += asked) {
        T e[asked];
        for (Index q = 0; q < asked; ++q) e[q] = k + q < end ? entry(k + q) : T(0);
        for (Index q = 0; q < asked; ++q)
          if (k + q < end) sum += e[q] * y[k + q];
      }
      return sum;
    }
    /// H y = g, as many columns at a time as there are lanes: each has the row of one's diagonal, and what is left of g
    /// there.
    KRILU_INLINE void solve_triangle(exec::Lanes lanes) const {
      const exec::View<T> rest = a;
      for (Index i = lanes.lane(); i <= columns(); i += lanes.count) rest[i] = g[i];
      lanes.meet();
      for (Index end = j(), begin; end > 0; end = begin) {
        begin = end > lanes.count ? end - lanes.count : 0;
        const Index mine = begin + lanes.lane(), p = mine < end ? place[mine] : 0;
        const T pivot = mine < end ? H[mine * (m + 1) + p] : T(0);
        T left = mine < end ? rest[p] : T(0), found = 0;
        for (Index last = end - 1; last >= begin; last -= asked) {
          T entry[asked];  // of columns last, last - 1 ..
          for (Index q = 0; q < asked; ++q) entry[q] = mine < last - q ? H[(last - q) * (m + 1) + p] : T(0);
          for (Index q = 0; q < asked; ++q) {
            const Index k = last - q;
            if (k < begin) break;
            T yk = pivot != T(0) ? left / pivot : T(0);  // that of the lane whose turn it is counts
            if (!(yk - yk == T(0))) yk = 0;
            yk = lanes.of(yk, k - begin);
            if (mine == k) found = yk;
            if (mine < k) left -= entry[q] * yk;
          }
        }
        if (mine < end) y[mine] = found;
        lanes.meet();
        for (Index i = lanes.lane(); i < place[begin]; i += lanes.count)
          rest[i] -= times_y(begin, end, [&](Index k) { return H[k * (m + 1) + i]; });
        lanes.meet();
      }
    }
    /// b = S y, coefficients of V as it stands now. Basis by basis, since V has taken up the rotations of all but the
    /// last.
    KRILU_INLINE void combine_settled(exec::Lanes lanes) const {
      const Index newest = j();
      for (Index i = lanes.lane(); i <= columns(); i += lanes.count) b[i] = 0;
      for (Index begin = 0, end = 0; begin < newest; begin = end) {
        do ++end;
        while (end < newest && end != first() && place[end] == place[end - 1] + 1);
        for (Index i = lanes.lane(); i <= place[end - 1]; i += lanes.count)
          b[i] += times_y(begin, end, [&](Index k) { return i <= place[k] ? S[k * (m + 1) + i] : T(0); });
        lanes.meet();
        if (const Index taken_up = end < first() ? end : first(); begin < taken_up) {
          T* const at = b.data + place[begin];
          const T last = rotate(lanes, begin, taken_up, at, at);
          if (lanes.first()) at[taken_up - begin] = last;
          lanes.meet();
        }
      }
    }
  };

  // Formatted by hand: the loop keeps the shape of the textbook's.
  // clang-format off
  void resume(const System<Space, T>& system, exec::Scalar<Control<T>> control) override {
    const auto& ex = ex_;
    const std::size_t n = n_;
    const auto& A = system.A;
    auto& M = system.M;
    const exec::View<T> x{system.x}, r{system.r}, u = u_.view(), z = z_.view(), w = w_.view();
    const exec::Columns<B> V{v_.data(), stride_}, Z{kept_.data(), stride_};
    const Small s = small();
    const T unit = unit_, inverse = 1 / unit;  // of a basis vector v, unit v is stored
    const bool flexible = flexible_;
    const Index at_once = steps_at_once();
    Index steps = 0;

    begin(r, control, true);
    ex.repeat_until(s.stop, [&] {
      ex.repeat_until(s.cycle_done, [&] {
        // w = A M^-1 u
        if (!flexible) {
          M.product(A, u.data, z.data, w.data);
        } else {
          M.apply(A, u.data, z.data, w.data);
          ex.for_each(n, KRILU_FN(Index i) { if (s.live() >= 0) assign(Z[s.j()][i], unit * z[i]); });
        }
        // a = V^T u,  b = V^T w,  and so for u itself, which stands behind V, and for w;  u = V a + nu v,
        // A M^-1 u = V b + c v + what w is to become, whose length Pythagoras tells: with it the newest column of H
        const Index step = steps++ % at_once;
        ex.template dot_columns<true>(n, V, s.m + 1, s.live, 1, std::array{u, w}, KRILU_FN(
            Index k, exec::Sums<T, 2> dots) {
          const bool apart = k < s.columns() && s.apart[k];
          s.a[k] = apart ? T(0) : dots[0] * inverse;
          s.b[k] = apart ? T(0) : dots[1] * inverse;
        }, KRILU_FN(exec::Lanes lanes) {
          const Index K = s.columns();
          const bool ended = s.template settle<true>(lanes, s.a[K], {s.b[K], s.b[K + 1] * unit, unit, control});
          for (Index q = lanes.lane(); q < at_once; q += lanes.count) s.due[q] = q == step && !ended ? K : Index(-1);
        });
        // v = (u - V a) / nu,  beta u = w - V b - c v, the next one
        ex.combine_columns(n, V, s.m + 1, exec::Scalar<Index>{s.due.data + step}, std::array{s.a, s.b},
            std::array{u, w}, KRILU_FN(Index i, exec::Sums<T, 2> Vab, exec::Sums<T, 2> uw) {
          const Index K = s.columns() - 1;
          const T v = (uw[0] - Vab[0] * inverse) * s.per_nu();
          const B next = B((uw[1] - Vab[1] * inverse - s.own() * v) * s.unit_per_beta());
          assign(V[K][i], unit * v);
          assign(V[K + 1][i], next);
          u[i] = T(next) * inverse;
        });
      }, at_once);

      ex.together(KRILU_FN(exec::Lanes lanes) {
        s.solve_triangle(lanes);
        s.combine_settled(lanes);
        if (lanes.first()) s.goes_on() = !s.stop();
      });
      // x = x + Z y, or x + M^-1 V S y
      if (flexible) {
        ex.combine_columns(n, Z, s.m, s.j, std::array{s.y}, KRILU_FN(Index i, exec::Sums<T, 1> Zy) {
          x[i] += Zy[0] * inverse;
        });
      } else {
        ex.combine_columns(n, V, s.m + 1, s.columns, std::array{s.b}, KRILU_FN(Index i, exec::Sums<T, 1> Vb) {
          w[i] = Vb[0] * inverse;
        });
        M.apply(w.data, z.data);
        ex.for_each(n, KRILU_FN(Index i) { x[i] += z[i]; });
      }
      ex.when(s.goes_on, [&] {
        A.residual(system.b, x.data, r.data);
        begin(r, control, false);
      });
    });
  }

  /// u, the vector to multiply next: r, or, where there is a basis already, what C does not hold of it. g: r in the
  /// basis. at_first: of a go; it keeps the basis that is there unless that is full or used up. Else it is begun anew.
  void begin(exec::View<T> r, exec::Scalar<Control<T>> control, bool at_first) {
    const std::size_t n = n_;
    const Small s = small();
    const exec::View<T> u = u_.view();
    const exec::Columns<B> V{v_.data(), stride_};
    const T unit = unit_, inverse = 1 / unit;

    ex_.once(KRILU_FN() {
      if (at_first) {
        s.stop() = s.in_doubt() = 0;
        s.claimed() = std::numeric_limits<T>::infinity();
      }
      const Index room = s.m - s.columns() - 1;  // once the last vector has joined
      if (!at_first || room < 2 || room < control().least_room || s.exhausted()) s.columns() = 0;
      if (s.columns() == 0) s.j() = s.first() = 0;
      s.cycle_done() = s.exhausted() = 0;
      s.live() = s.columns() > 0 ? s.columns() : -1;
    });
    // a = V^T u,  b = V^T r;  the last vector of the basis that is there, v = (u - V a) / nu, is settled and joins it
    ex_.dot_columns(n, V, s.m + 1, s.live, 1, std::array{u, r}, KRILU_FN(Index k, exec::Sums<T, 2> dots) {
      s.a[k] = s.apart[k] ? T(0) : dots[0] * inverse;
      s.b[k] = dots[1] * inverse;
    }, KRILU_FN(exec::Lanes lanes) {
      const T uu = s.a[s.columns()], ur = s.b[s.columns()];
      if (!s.template settle<false>(lanes, uu)) return s.enter(lanes, ur);
      if (!lanes.first()) return;
      s.exhausted() = 0;
      s.columns() = s.j() = s.first() = 0;
    });
    // V = V Q, Q being the rotations since the last time;  r = r - C C^T r,  |r|
    ex_.join_columns(n, V, s.columns, exec::Rotations<T>{s.first, s.j, s.place, s.cosine, s.sine}, s.a, s.g, u, r,
        KRILU_FN(T Va, T of_u) { return unit * (of_u - Va * inverse) * s.per_nu(); },
        KRILU_FN(T Cg, T of_r) { return of_r - Cg * inverse; }, KRILU_FN(exec::Lanes lanes, T rr) {
      if (!lanes.first()) return;
      if (s.columns() > 0) s.apart[s.columns()++] = 1;
      s.first() = s.j();
      s.beta() = std::sqrt(rr);
      if (s.in_doubt() && control().amend(s.beta())) {
        s.beta() = 1;
        s.columns() = s.j() = s.first() = 0;
        s.cycle_done() = s.stop() = 1;
      } else if (!(s.beta() > T(0)) || !(s.beta() - s.beta() == T(0))) {
        s.beta() = 1;
        s.columns() = s.j() = s.first() = 0;
        s.cycle_done() = s.stop() = control().stop(Stop::breakdown);
      } else if (s.beta() > 10 * s.claimed()) {
        // The residual is not what the last cycle made of it: rounding allows no more. The driver looks at it.
        s.columns() = s.j() = s.first() = 0;
        s.cycle_done() = s.stop() = control().stop(Stop::target);
      }
      s.in_doubt() = 0;
      s.apart[s.columns()] = 0;
      s.live() = s.cycle_done() ? -1 : s.columns();
    });
    // u = r / |r|
    ex_.for_each(n, KRILU_FN(Index i) {
      const B next = B(unit * (r[i] / s.beta()));
      assign(V[s.columns()][i], next);
      u[i] = T(next) * inverse;
    });
  }

  // clang-format on

  std::size_t bytes() const override {
    return v_.bytes() + kept_.bytes() + u_.bytes() + z_.bytes() + w_.bytes() + small_.bytes() + counters_.bytes() +
           flags_.bytes();
  }

 private:
  static constexpr Index numbers = 7;
  static constexpr Index most_at_once = 5;
  /// Between two looks at the flag, which take 4 to 6 us of a GPU: so many that a full cycle ends with a look. A step
  /// too many, at the end of a go, costs a product and an application: as much as many looks on large systems.
  Index steps_at_once() const {
    constexpr std::size_t medium_system = 700000;
    Index steps = ex_.in_team() || n_ >= large_system ? 1 : n_ >= medium_system ? 2 : most_at_once;
    while (m_ % steps != 0) --steps;
    return steps;
  }
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
    for (auto* number : {&s.beta, &s.nu, &s.own, &s.claimed, &s.g_before, &s.per_nu, &s.unit_per_beta})
      number->data = at++;
    std::size_t counter = 0, flag = 0;
    for (auto* c : {&s.j, &s.columns, &s.first, &s.live}) *c = counters_.scalar(counter++);
    s.due.data = counters_.data() + counter;
    s.place.data = s.due.data + most_at_once;
    for (auto* f : {&s.stop, &s.cycle_done, &s.goes_on, &s.exhausted, &s.in_doubt}) *f = flags_.scalar(flag++);
    s.apart.data = flags_.data() + flag;
    return s;
  }

  Space ex_;
  std::size_t n_;
  Index m_;
  bool flexible_;
  std::size_t stride_;  // from one basis vector to the next
  T unit_ = 1;
  exec::Array<B> v_, kept_;
  exec::Array<T> u_, z_, w_, small_;
  exec::Array<Index> counters_;
  exec::Array<int> flags_;
};

}  // namespace krilu::krylov
