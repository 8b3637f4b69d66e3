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
  Point turn;                   // what r gains on the way round an O grid: nothing in the plane itself
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
    // The coordinate's derivatives change by 1/2 at the sides (first ones), by 1/4 at the corners (the mixed one), and
    // by 1, -2, 1 along either family (second ones). A row changes through alpha, beta and gamma, for both coordinates,
    const T along = factor * (own.xx + s.phi * own.x), out = factor * (own.ee + s.psi * own.e), mixed = factor * own.xe;
    const T x_own = out * own.x - mixed * own.e, x_other = out * other.x - mixed * other.e;
    const T e_own = along * own.e - mixed * own.x, e_other = along * other.e - mixed * other.x;
    // and through what they multiply, for its own.
    const T alpha = factor * s.alpha, gamma = factor * s.gamma, corner = 0.5 * factor * s.beta;
    const T w = alpha - (0.5 * alpha * s.phi + x_own), e = alpha + (0.5 * alpha * s.phi + x_own);
    const T south = gamma - (0.5 * gamma * s.psi + e_own), north = gamma + (0.5 * gamma * s.psi + e_own);
    const T centre = -2.0 * (alpha + gamma);
    if (s.inner) {
      const auto side = [&](Index k, const T& in_own, const T& in_other) {
        put(k, second ? in_other : in_own);
        put(k + 1, second ? in_own : in_other);
      };
      put(0, -corner);
      side(1, south, -e_other);
      put(3, corner);
      side(4, w, -x_other);
      put(6, centre);
      side(7, e, x_other);
      put(9, corner);
      side(10, north, e_other);
      put(12, -corner);
      return;
    }
    Index k = 0;
    walk(row, [&](Index, const Step& at, bool own_coordinate) {
      if (at.i != 0 && at.j != 0)
        put(k++, at.i * at.j > 0 ? -corner : corner);
      else if (at.i != 0)
        put(k++, !own_coordinate ? double(at.i) * x_other : at.i < 0 ? w : e);
      else if (at.j != 0)
        put(k++, !own_coordinate ? double(at.j) * e_other : at.j < 0 ? south : north);
      else
        put(k++, centre);
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
    bool inner;  // all eight neighbours are unknowns, in the usual order
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
        const int order = !periodic ? 0 : i == 0 ? 1 : i == n - 1 ? 2 : 0;
        const int di = (place + order) % 3 - 1;
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
    const double gained = !periodic ? 0 : i < 0 ? -1 : i == ni - 1 ? 1 : 0;
    if (periodic) i = i < 0 ? ni - 2 : i == ni - 1 ? 0 : i;
    const double dx = gained * turn.x, dy = gained * turn.y;
    if (j == 0 || j == nj - 1 || (!periodic && (i == 0 || i == ni - 1))) {
      const Point p = fixed[j * ni + i];
      return {T(p.x + dx), T(p.y + dy)};
    }
    const Index k = 2 * ((j - 1) * around() + i - first());
    return {x[k] + dx, x[k + 1] + dy};
  }

  template <class T>
  KRILU_INLINE static Derivatives<T> differences(const T& w, const T& e, const T& c, const T& s, const T& n,
                                                 const T& sw, const T& se, const T& nw, const T& ne) {
    return {0.5 * (e - w), 0.5 * (n - s), e - 2.0 * c + w, 0.25 * (ne - nw - se + sw), n - 2.0 * c + s};
  }

  template <class T>
  KRILU_INLINE Stencil<T> stencil(Index row, View<const T> x) const {
    const Index n = around(), node = row / 2, column = node % n, line = node / n;
    Node<T> c, w, e, s, no, sw, se, nw, ne;
    const bool inner = column > 0 && column + 1 < n && line > 0 && line + 1 < outward();
    if (inner) {
      const auto node_at = [&](Index k) { return Node<T>{x[2 * k], x[2 * k + 1]}; };
      c = node_at(node), w = node_at(node - 1), e = node_at(node + 1);
      s = node_at(node - n), sw = node_at(node - n - 1), se = node_at(node - n + 1);
      no = node_at(node + n), nw = node_at(node + n - 1), ne = node_at(node + n + 1);
    } else {
      const Index i = column + first(), j = line + 1;
      c = at(i, j, x), w = at(i - 1, j, x), e = at(i + 1, j, x);
      s = at(i, j - 1, x), sw = at(i - 1, j - 1, x), se = at(i + 1, j - 1, x);
      no = at(i, j + 1, x), nw = at(i - 1, j + 1, x), ne = at(i + 1, j + 1, x);
    }
    Stencil<T> r;
    r.node = node;
    r.inner = inner;
    r.phi = phi[node];
    r.psi = psi[node];
    r.x = differences(w.x, e.x, c.x, s.x, no.x, sw.x, se.x, nw.x, ne.x);
    r.y = differences(w.y, e.y, c.y, s.y, no.y, sw.y, se.y, nw.y, ne.y);
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
/// which the node is off, and cells of 1e-5 chords weigh as much as cells of one. `turn` as above.
std::vector<double> row_scale(const Grid& grid, const Point& turn = {});

/// The unknowns of a grid: coordinates of its inner nodes, in the rows' order; and back, the repeated line of an O grid
/// included.
std::vector<double> unknowns_of(const Grid& grid);
void set_unknowns(const std::vector<double>& x, Grid& grid, const Point& turn = {});

}  // namespace krilu::grid
