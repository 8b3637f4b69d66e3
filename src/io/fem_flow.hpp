// SPDX-License-Identifier: Apache-2.0
// Flow of a viscous fluid in a cavity with a moving lid, by finite elements: systems that are hard for single
// precision, of the kind that the program FIDAP leaves. Velocities u are biquadratic on quadrilaterals of nine nodes,
// the pressure p is linear on each and jumps between them, and the convection is that of a given velocity w (Oseen).
// Incompressibility is a penalty, p = -div u / penalty, with p kept among the unknowns. For all test functions v and q
// the system has
//
//   integral of (grad u + grad u^T) : grad v + reynolds (w . grad u) . v - p div v,
//   weight times the integral of q (div u + penalty p),
//
// and no zero on its diagonal. Without p, which can be eliminated element by element, this is the penalty method
// itself, where ILU(0) meets negative pivots and is of no use. Lengths are in heights of the cavity, velocities in the
// lid's largest, pressures in viscosity times velocity by height. The cavity is nx / ny wide. w is the exact velocity
// of Shih, Tan and Hwang, stretched to that width: one eddy under a lid that moves at 16 x^2 (1 - x)^2.
// Sources: Hughes, Liu, Brooks (1979), Finite element analysis of incompressible viscous flows by the penalty function
// formulation; Engelman, Sani, Gresho, Bercovier (1982), Consistent vs. reduced integration penalty methods for
// incompressible media using several old and new elements; Shih, Tan, Hwang (1989), Effects of grid staggering on
// numerical schemes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "krilu/matrix.hpp"

namespace krilu::io {

/// Everything is dimensionless; the defaults are those of gen:femflow2d. With penalty and weight as they are the
/// condition number is between 1e8 and 1e9 for 16 x 16 to 30 x 30 elements, and a right-hand side of ones can still be
/// solved for to 1e-11 in double precision.
struct FemFlow {
  Index nx = 16, ny = 16;   // elements along the lid and along the walls beside it
  std::uint64_t seed = 1;   // of the vertices' places
  double penalty = 2e-7;    // > 0; the condition number grows as its inverse
  double reynolds = 100;    // >= 0: the lid's largest velocity times height by viscosity; 0 is Stokes flow
  double weight = 1e5;      // > 0: of the equations of incompressibility beside those of momentum
  double grading = 0;       // 0 <= grading < 1: elements at walls are about 1 - grading times as long as the mean
  double distortion = 0.1;  // 0 <= distortion < 1/4: how far a vertex moves along x and y at most, in units of the
                            // shorter of the two elements beside it
};

/// What stands behind "gen:femflow2d:", namely NXxNY[:SEED[,PENALTY[,REYNOLDS]]]. Throws krilu::Error where it is
/// not that.
FemFlow parse_fem_flow(std::string_view arguments);

/// The corners of the elements, (nx + 1) (ny + 1) of them, x fastest. Throws as fem_flow_matrix does.
std::vector<std::array<double, 2>> fem_flow_vertices(const FemFlow& flow);

/// The system, of 2 (2 nx - 1) (2 ny - 1) + 3 nx ny rows: the velocity is given on all walls. Unknowns are numbered
/// element by element, x fastest: first the velocities, x then y, at those nodes of the element that no element before
/// it has, again x fastest; then the pressure's three coefficients, of 1, (x - xc) / a and (y - yc) / b, the centre
/// being the mean of the corners, a and b half the element's mean extents. Rows are numbered as columns are. Symmetric
/// for reynolds 0 once the pressures' rows are divided by -weight. Throws krilu::Error for parameters outside of
/// their ranges and for 2^31 nonzeros or more.
CsrMatrix fem_flow_matrix(const FemFlow& flow);

}  // namespace krilu::io
