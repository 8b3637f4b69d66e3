// SPDX-License-Identifier: Apache-2.0
// The faces of each cell, with the cell beyond: the graph of the cells as compressed rows, from the mesh's faces.
//
// Cost: O(cells + faces) by counting. On large meshes whose cells stand in random order, or for four threads and more,
// faces are dealt to ranges of cells first (24 bytes a face while it runs): what a thread writes to then stays in its
// second-level cache.
#pragma once

#include <span>

#include "exec/host.hpp"
#include "krilu/buffer.hpp"
#include "krilu/matrix.hpp"
#include "krilu/types.hpp"

namespace krilu::mesh {

/// Cell c has the internal faces face[offsets[c]] .. face[offsets[c+1]-1], ascending; cell[k] is the cell beyond
/// face[k].
struct CellFaces {
  Buffer<Offset> offsets;    // cells + 1
  Buffer<Index> face, cell;  // two a face

  Index cells() const { return offsets.empty() ? 0 : Index(offsets.size()) - 1; }
  /// As the pattern of a matrix, a row a cell. Columns are not ascending, and stand twice where cells share two faces.
  CsrView graph() const { return {cells(), cells(), offsets.data(), cell.data(), nullptr}; }
};

/// owner, neighbour: of each face its two cells, both from 0 to cells - 1. Throws krilu::Error where the two differ in
/// length, and where there are 2^30 faces or more.
CellFaces cell_faces(const exec::Host& host, Index cells, std::span<const Index> owner,
                     std::span<const Index> neighbour);

}  // namespace krilu::mesh
