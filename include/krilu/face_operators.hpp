// SPDX-License-Identifier: Apache-2.0
// Operators of finite volumes as loops over faces: the three of the SW26010 paper (2022), and examples of how one's own
// are written. `Loops` is FaceLoops (host) or CudaFaceLoops (GPU); fields are views of the loops' fields. In each head:
// the words of 8 bytes that are read or written a cell (c) and a face (f), addressing apart.
#pragma once

#include "krilu/face_plan.hpp"
#include "krilu/vector3.hpp"
#include "krilu/view.hpp"

namespace krilu {

/// What a cell's row asks for: x, and the diagonal, which only its own row reads, but early with this.
struct RowState {
  double x, diagonal;
};

/// y = A x, A symmetric in face addressing: diagonal[cell], and upper[face] for both entries of a face. 3c + f. x and y
/// distinct.
template <class Loops>
void multiply_symmetric(const Loops& loops, View<const double> diagonal, View<const double> upper, View<const double> x,
                        View<double> y) {
  loops.template sum_over_faces<RowState, double>(
      loops.ahead(
          KRILU_FN(Index c) {
            return RowState{x[c], diagonal[c]};
          },
          x),
      KRILU_FN(Face f, const RowState& owner, const RowState& neighbour) {
        const double a = upper[f.id];
        return Both<double>{a * neighbour.x, a * owner.x};
      },
      KRILU_FN(Index c, const RowState& own, double sum) { y[c] = own.diagonal * own.x + sum; });
}

/// y = A x: upper[face] = a(owner, neighbour), lower[face] = a(neighbour, owner). 3c + 2f.
template <class Loops>
void multiply(const Loops& loops, View<const double> diagonal, View<const double> lower, View<const double> upper,
              View<const double> x, View<double> y) {
  loops.template sum_over_faces<RowState, double>(
      loops.ahead(
          KRILU_FN(Index c) {
            return RowState{x[c], diagonal[c]};
          },
          x),
      KRILU_FN(Face f, const RowState& owner, const RowState& neighbour) {
        return Both<double>{upper[f.id] * neighbour.x, lower[f.id] * owner.x};
      },
      KRILU_FN(Index c, const RowState& own, double sum) { y[c] = own.diagonal * own.x + sum; });
}

/// "Integration": out[cell] = (sum of flux over the cell's faces, outwards) / volume: the divergence. flux[face] runs
/// from owner to neighbour; what flows through boundary faces is added by add_boundary_flux. 2c + f.
template <class Loops>
void integrate(const Loops& loops, View<const double> flux, View<const double> volume, View<double> out) {
  loops.template sum_over_faces<double, double>(
      KRILU_FN(Index c) { return volume[c]; },
      KRILU_FN(Face f, double, double) {
        const double through = flux[f.id];
        return Both<double>{through, -through};
      },
      KRILU_FN(Index c, double own, double sum) { out[c] = sum / own; });
}

/// out[cell] += flux of the cell's boundary faces / volume; flux by the mesh's boundary faces, outwards.
template <class Loops>
void add_boundary_flux(const Loops& loops, View<const double> flux, View<const double> volume, View<double> out) {
  loops.template sum_over_boundary<double>(
      KRILU_FN(Index face, Index) { return flux[face]; }, KRILU_FN(Index c, double sum) { out[c] += sum / volume[c]; });
}

/// As RowState, for the gradient.
struct GradientState {
  double x, volume;
};

/// Green-Gauss gradient: grad[cell] = (sum of area * x at the face) / volume; at a face x is weight * x[owner] +
/// (1 - weight) * x[neighbour]. Boundary faces are added by add_boundary_gradient. 5c + 4f.
template <class Loops>
void gauss_gradient(const Loops& loops, View<const double> x, View<const double> weight, View<const Vector3> area,
                    View<const double> volume, View<Vector3> grad) {
  loops.template sum_over_faces<GradientState, Vector3>(
      loops.ahead(
          KRILU_FN(Index c) {
            return GradientState{x[c], volume[c]};
          },
          x),
      KRILU_FN(Face f, const GradientState& owner, const GradientState& neighbour) {
        const double w = weight[f.id];
        const Vector3 through = (w * owner.x + (1 - w) * neighbour.x) * area[f.id];
        return Both<Vector3>{through, -through};
      },
      KRILU_FN(Index c, const GradientState& own, const Vector3& sum) { grad[c] = (1 / own.volume) * sum; });
}

/// grad[cell] += area * x of the cell's boundary faces / volume; x and area by the mesh's boundary faces.
template <class Loops>
void add_boundary_gradient(const Loops& loops, View<const double> x, View<const Vector3> area,
                           View<const double> volume, View<Vector3> grad) {
  loops.template sum_over_boundary<Vector3>(
      KRILU_FN(Index face, Index) { return x[face] * area[face]; },
      KRILU_FN(Index c, const Vector3& sum) { grad[c] += (1 / volume[c]) * sum; });
}

/// What a face takes of the cell that the flux comes from.
struct UpwindState {
  double x;
  Vector3 gradient, centre;
};

/// calcLudsFcc: out[face] = the upwind cell's x, plus its gradient times the vector from its centre to the face's. Flux
/// from owner to neighbour where positive. 7c + 5f.
template <class Loops>
void linear_upwind(const Loops& loops, View<const double> flux, View<const double> x, View<const Vector3> gradient,
                   View<const Vector3> centre, View<const Vector3> face_centre, View<double> out) {
  loops.template for_each_face_from<UpwindState>(
      KRILU_FN(Face f) { return flux[f.id] >= 0; },
      loops.ahead(
          KRILU_FN(Index c) {
            return UpwindState{x[c], gradient[c], centre[c]};
          },
          x, gradient, centre),
      loops.ahead(
          KRILU_FN(Face f, const UpwindState& from) {
            out[f.id] = from.x + dot(from.gradient, face_centre[f.id] - from.centre);
          },
          flux, face_centre, out));
}

}  // namespace krilu
