// SPDX-License-Identifier: Apache-2.0
// Convection and diffusion by finite volumes on any mesh: the matrix that a scalar transport equation of a CFD code
// has, with a row a cell and an entry a face. Over a face of area vector S from cell P to cell N, whose centres are d
// apart,
//
//   D = |S| / max(d . n, 0.05 |d|),  n = S / |S|,        (two points; the bound is OpenFOAM's, for bad meshes)
//   F = U u . S,                                         (u at the face's centre)
//   a_PN = -(D + max(-F, 0)),  a_NP = -(D + max(F, 0)),  (first-order upwind)
//
// and a_PP is the sum of the magnitudes of its row and, for each boundary face of it, of D + max(-F, 0) with d from the
// cell's centre to the face's: the values there are given, but on patches of type empty, which have no coefficient. So
// it is an M-matrix, diagonally dominant by rows, and the pattern is symmetric. The velocity has no divergence,
//
//   u = (1/2 + 4 y (1 - y), x - 1/2, 1/2 - x),
//
// in the box of the cells' centres, its lowest corner being 0 and its longest side 1; U makes the mean of |F| / D over
// all internal faces 1. A mesh without geometry has D = 1 and F = 0.
// Source: Ferziger and Peric, Computational Methods for Fluid Dynamics (2002), 4.4, 4.7.
// Cost: one pass over the faces and two over the rows; beside the matrix one layer of it without diagonals.
#pragma once

#include <string>
#include <string_view>

#include "krilu/matrix.hpp"
#include "krilu/mesh.hpp"
#include "mesh/cell_order.hpp"

namespace krilu::io {

struct FiniteVolume {
  std::string mesh;       // as read_mesh takes it
  Index layers = 1;       // copies of the mesh, one above the other
  mesh::CellOrder order;  // of the cells of all layers
};

/// What stands behind "gen:fv:", namely MESH[,LAYERS[,ORDER]]. Throws krilu::Error where it is not that.
FiniteVolume parse_finite_volume(std::string_view arguments);

/// The matrix; in natural order cell c of layer l is row l cells + c. Each cell is coupled with the same cell of the
/// layers above and below by diffusion, V / h^2, with V its volume and h the thickness of a layer: the square root of
/// the mean square of the cells' sizes. A size squared is half the area of the cell's empty faces where the mesh is
/// plane, else V^(2/3). Nothing is given above and below. The same bits for any number of threads. Throws krilu::Error
/// for a mesh without cells or with no value given anywhere, for coefficients that are not finite, and for 2^31 rows or
/// nonzeros.
CsrMatrix finite_volume_matrix(const Mesh& mesh, const FiniteVolume& problem);

}  // namespace krilu::io
