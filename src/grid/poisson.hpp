// SPDX-License-Identifier: Apache-2.0
// The equations of an elliptic grid: xi and eta, the two families of its lines, satisfy Poisson's equation in the
// plane, and the roles of (x, y) and (xi, eta) are exchanged,
//   alpha (r_xx + phi r_x) - 2 beta r_xe + gamma (r_ee + psi r_e) = 0,
//   alpha = r_e . r_e,  beta = r_x . r_e,  gamma = r_x . r_x,
// where r = (x, y), and x and e stand for derivatives along xi and eta. Central differences of second order, nine
// nodes. phi and psi draw lines together and are given at nodes. Both equations do not change where the plane is mapped
// conformally. Sources: Winslow (1966); Thompson, Thames, Mastin (1974); Thomas and Middlecoff (1980) for this form of
// the control terms.
//
// Each row is a function of thirteen unknowns: of the four corners only its own coordinate counts, and of the node
// itself too. Rows are independent and read nothing but views: a thread a row.
#pragma once

#include <vector>

#include "krilu/grid.hpp"
#include "krilu/kernel.hpp"
#include "krilu/view.hpp"

namespace krilu::grid {

/// Two equations a node, interleaved like their unknowns: x of inner node k is unknown 2 k and y is 2 k + 1; i runs
/// fastest. Nodes of the wall, the far field and, in C grids, of the two outflow lines are fixed; O grids are periodic.
/// What the views show must outlive the rows.
struct PoissonRows {
  Index ni = 0, nj = 0;         // of the grid
  bool periodic = true;         // O: unknowns have i < ni - 1
  View<const Point> fixed;      // ni nj: nodes of the grid; those of its boundary are read
  View<const double> phi, psi;  // of inner nodes
  View<const double> scale;     // of inner nodes: positive factors of both equations

  /// Inner nodes along i and along j, and i of the first.
  KRILU_INLINE Index around() const { return periodic ? ni - 1 : ni - 2; }
  KRILU_INLINE Index outward() const { return nj - 2; }
  KRILU_INLINE Index first() const { return periodic ? 0 : 1; }

  KRILU_INLINE Index rows() const { return 2 * around() * outward(); }

  template <class Add>
  KRILU_INLINE void columns(Index row, Add add) const {
    walk(row, [&](Index column, const Step&, bool) { add(column); });
  }

  template <class T>
  KRILU_INLINE T residual(Index row, View<const T> x) const {
    const Stencil<T> s = stencil(row, x);
    return row % 2 == 0 ? value(s, s.x) * scale[s.node] : value(s, s.y) * scale[s.node];
  }

  template <class T, class Put>
  KRILU_INLINE void jacobian(Index row, View<const T> x, Put put) const {
    const Stencil<T> s = stencil(row, x);
    const bool second = row % 2 != 0;
    const Derivatives<T>& own = second ? s.y : s.x;
    const Derivatives<T>& other = second ? s.x : s.y;
    const double factor = scale[s.node];
    Index k = 0;
    walk(row, [&](Index, const Step& at, bool own_coordinate) {
      // The coordinate's derivatives change by d_x, d_e, d_xx, d_xe, d_ee where it changes by one at this node.
      const double d_x = at.j == 0 ? 0.5 * at.i : 0;
      const double d_e = at.i == 0 ? 0.5 * at.j : 0;
      const Derivatives<T>& c = own_coordinate ? own : other;
      // Through alpha, beta and gamma,
      T sum = 2.0 * (own.xx + s.phi * own.x) * c.e * d_e - 2.0 * own.xe * (c.x * d_e + c.e * d_x) +
              2.0 * (own.ee + s.psi * own.e) * c.x * d_x;
      // and through what they multiply.
      if (own_coordinate) {
        const double d_xx = at.j == 0 ? (at.i == 0 ? -2 : 1) : 0;
        const double d_ee = at.i == 0 ? (at.j == 0 ? -2 : 1) : 0;
        const double d_xe = 0.25 * at.i * at.j;
        sum += s.alpha * (d_xx + s.phi * d_x) - 2.0 * s.beta * d_xe + s.gamma * (d_ee + s.psi * d_e);
      }
      put(k++, sum * factor);
    });
  }

 private:
  struct Step {
    int i, j;
  };
  /// Of one coordinate, with respect to xi (x) and eta (e).
  template <class T>
  struct Derivatives {
    T x, e, xx, xe, ee;
  };
  template <class T>
  struct Stencil {
    Index node;
    double phi, psi;
    Derivatives<T> x, y;
    T alpha, beta, gamma;
  };

  /// Unknowns of a row, ascending: on_column(column, step from the row's node, whether it is the row's coordinate).
  template <class Each>
  KRILU_INLINE void walk(Index row, Each on_column) const {
    const Index n = around(), m = outward();
    const Index node = row / 2, i = node % n, j = node / n;
    const int own = row % 2;
    for (int dj = -1; dj <= 1; ++dj) {
      if (j + dj < 0 || j + dj >= m) continue;
      for (int place = 0; place < 3; ++place) {
        // Across the line i = 0 of an O grid the order of neighbours is turned.
        const int turn = !periodic ? 0 : i == 0 ? 1 : i == n - 1 ? 2 : 0;
        const int di = (place + turn) % 3 - 1;
        Index to = i + di;
        if (periodic)
          to = to < 0 ? n - 1 : to == n ? 0 : to;
        else if (to < 0 || to >= n)
          continue;
        const Index column = 2 * ((j + dj) * n + to);
        const bool couples = (di == 0) != (dj == 0);  // the two coordinates
        if (couples || own == 0) on_column(column, Step{di, dj}, own == 0);
        if (couples || own == 1) on_column(column + 1, Step{di, dj}, own == 1);
      }
    }
  }

  template <class T>
  struct Node {
    T x, y;
  };
  /// (i, j) of the grid.
  template <class T>
  KRILU_INLINE Node<T> at(Index i, Index j, View<const T> x) const {
    if (periodic) i = i < 0 ? ni - 2 : i == ni - 1 ? 0 : i;
    if (j == 0 || j == nj - 1 || (!periodic && (i == 0 || i == ni - 1))) {
      const Point p = fixed[j * ni + i];
      return {T(p.x), T(p.y)};
    }
    const Index k = 2 * ((j - 1) * around() + i - first());
    return {x[k], x[k + 1]};
  }

  template <class T>
  KRILU_INLINE static Derivatives<T> differences(const T& w, const T& e, const T& c, const T& s, const T& n,
                                                 const T& sw, const T& se, const T& nw, const T& ne) {
    return {0.5 * (e - w), 0.5 * (n - s), e - 2.0 * c + w, 0.25 * (ne - nw - se + sw), n - 2.0 * c + s};
  }

  template <class T>
  KRILU_INLINE Stencil<T> stencil(Index row, View<const T> x) const {
    const Index node = row / 2, i = node % around() + first(), j = node / around() + 1;
    const Node<T> c = at(i, j, x), w = at(i - 1, j, x), e = at(i + 1, j, x), s = at(i, j - 1, x), n = at(i, j + 1, x),
                  sw = at(i - 1, j - 1, x), se = at(i + 1, j - 1, x), nw = at(i - 1, j + 1, x),
                  ne = at(i + 1, j + 1, x);
    Stencil<T> r;
    r.node = node;
    r.phi = phi[node];
    r.psi = psi[node];
    r.x = differences(w.x, e.x, c.x, s.x, n.x, sw.x, se.x, nw.x, ne.x);
    r.y = differences(w.y, e.y, c.y, s.y, n.y, sw.y, se.y, nw.y, ne.y);
    r.alpha = r.x.e * r.x.e + r.y.e * r.y.e;
    r.beta = r.x.x * r.x.e + r.y.x * r.y.e;
    r.gamma = r.x.x * r.x.x + r.y.x * r.y.x;
    return r;
  }

  template <class T>
  KRILU_INLINE static T value(const Stencil<T>& s, const Derivatives<T>& d) {
    return s.alpha * (d.xx + s.phi * d.x) - 2.0 * s.beta * d.xe + s.gamma * (d.ee + s.psi * d.e);
  }
};

/// (alpha + gamma)^(-3/2) of each inner node: what a row says then is about the distance, in sides of its own cell, by
/// which the node is off, and cells of 1e-5 chords weigh as much as cells of one.
std::vector<double> row_scale(const Grid& grid);

/// The unknowns of a grid: coordinates of its inner nodes, in the rows' order; and back, the repeated line of an O grid
/// included.
std::vector<double> unknowns_of(const Grid& grid);
void set_unknowns(const std::vector<double>& x, Grid& grid);

}  // namespace krilu::grid
