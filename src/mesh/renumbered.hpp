// SPDX-License-Identifier: Apache-2.0
// A mesh with its cells in another order, and its internal faces in OpenFOAM's: by owner and then neighbour, the owner
// being the cell with the lower number.
//
// A counting sort by owner, then a sort of the few faces of each. Cost: O(cells + faces), shared by the threads but for
// the running sum over the cells; 8 bytes an internal face and 8 a cell while it runs.
#pragma once

#include "exec/host.hpp"
#include "krilu/mesh.hpp"
#include "schedule/ordering.hpp"

namespace krilu::mesh {

/// cells[k] is the old cell at place k; empty is natural, and only sorts the faces. The area of a face is turned where
/// its cells change places. Faces that two cells share keep their sequence, and boundary faces keep their numbers. The
/// mesh must be valid (require_valid). Throws krilu::Error unless `cells` has each cell once.
Mesh renumbered(const exec::Host& host, const Mesh& mesh, const schedule::Order& cells);

}  // namespace krilu::mesh
