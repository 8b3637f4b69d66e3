// SPDX-License-Identifier: Apache-2.0
// Cells renumbered into compact blocks, for loops over faces that work on one block at a time from fast memory: the
// fewer faces are cut, whose two cells stand in different blocks, the less is read and written twice.
//
// N-order diagonal colouring on SW26010 [2022] cuts the cells' own numbering into ranges, finds that meshes of poor
// numbering gain little by it, and names renumbering as its next step: this is that step.
#pragma once

#include <string>
#include <vector>

#include "exec/host.hpp"
#include "krilu/mesh.hpp"
#include "krilu/types.hpp"
#include "schedule/ordering.hpp"

namespace krilu::mesh {

/// Cells in blocks: block b holds the cells order[offsets[b]] .. order[offsets[b+1]-1]. No block is empty.
struct CellBlocks {
  schedule::Order order;
  std::vector<Index> offsets;  // blocks + 1
  Index blocks() const { return offsets.empty() ? 0 : Index(offsets.size()) - 1; }
};

enum class Renumber { none, bisection, growth, rcm, metis };

/// The names above, as an option has them.
const std::vector<std::string>& renumber_names();
/// Throws krilu::Error for another name, with the nearest one.
Renumber renumber_by_name(const std::string& name);

/// `most`: most cells in a block.
///   none       contiguous ranges of the mesh's own numbering, of equal lengths up to one cell
///   bisection  equal boxes by the cells' centres (mesh/coordinate_bisection.hpp)
///   growth     blocks grown over the faces (mesh/block_growth.hpp), for meshes without geometry
///   rcm        ranges of the reverse Cuthill-McKee order: slices through the mesh, thinner than a layer unless large
///   metis      4 % more blocks than needed by METIS; what still came out larger than `most` is divided by growth
/// Measured, fraction of faces cut with most = 4096, and seconds on one core:
///                                      none          bisection     growth        rcm           metis
///   200^3 cubes, natural order         0.350  0.01   0.062  0.8    0.069  0.6    0.988  1.8    0.067  2.9
///   200^3 cubes, random order          1.000  0.01   0.062  0.9    0.078  2.8    0.988  5.9    0.083  21
///   2.5 million tetrahedra, natural    0.184  0.01   0.090  0.2    0.070  0.2    0.946  0.4    0.059  1.3
///   2.5 million tetrahedra, random     0.998  0.01   0.090  0.2    0.069  0.6    0.946  1.0    0.062  2.9
/// Cells, blocks and their order are the same for any number of threads. Throws krilu::Error where most < 1, for
/// bisection of a mesh without geometry, and for a graph with 2^31 entries.
CellBlocks cell_blocks(const exec::Host& host, const Mesh& mesh, Index most, Renumber how);

/// The block of each cell.
Buffer<Index> block_of_cells(const exec::Host& host, const CellBlocks& blocks);

/// The fraction of internal faces whose cells are in different blocks; 0 where there are no faces.
double cut_faces(const exec::Host& host, const Mesh& mesh, const CellBlocks& blocks);

}  // namespace krilu::mesh
