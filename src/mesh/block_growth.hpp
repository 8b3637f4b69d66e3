// SPDX-License-Identifier: Apache-2.0
// Cells in blocks grown over their faces, for meshes of which only the graph is known: from a seed beside the blocks
// that are there, a block takes the cell with most faces into it, the one that was met first among equals, until it is
// full. After the greedy partitioning of Farhat [1988], whose blocks grow layer by layer; with most faces first they
// are near to boxes on lattices, and round among tetrahedra.
//
// Cost: O(cells + faces), serial: half a second for 8 million cells of a lattice, two to three where they are numbered
// at random, beside the graph.
#pragma once

#include "mesh/cell_blocks.hpp"
#include "mesh/cell_graph.hpp"

namespace krilu::mesh {

/// Blocks of `most` cells but for leftovers, in the order in which they grew, and so do cells within a block. What is
/// left over between blocks and has less than a quarter of `most` is one block with what grows next, so that a block
/// may be in several pieces. most >= 1.
CellBlocks grow_blocks(const CellFaces& faces, Index most);

}  // namespace krilu::mesh
