// SPDX-License-Identifier: Apache-2.0
// Coloured blocks brought to the host, what they have to be whoever made them, and the matrices to make them of:
// lattices of every kind of stencil and size, and patterns without one.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "schedule/blocks.hpp"
#include "sparse/csr.hpp"
#include "support/split_matrix.hpp"

namespace krilu::test {

struct HostBlocks {
  std::vector<Index> block, colour;  // of each row
  Index colours = 0;
  std::array<Index, 3> box{0, 0, 0};  // zeros where no lattice was found
  bool operator==(const HostBlocks&) const = default;
};

/// A caller's matrix in a space's memory.
template <class Space>
struct CsrOn {
  CsrOn(const Space& space, const CsrView& a)
      : rows(a.rows),
        offsets(space.template allocate<Offset>(std::size_t(a.rows) + 1)),
        columns(space.template allocate<Index>(std::size_t(a.nnz()))),
        values(space.template allocate<double>(a.values ? std::size_t(a.nnz()) : 0)) {
    space.copy_in(offsets, a.offsets, offsets.size());
    space.copy_in(columns, a.columns, columns.size());
    space.copy_in(values, a.values, values.size());
  }
  CsrView view() const { return {rows, rows, offsets.data(), columns.data(), values.data()}; }

  Index rows;
  exec::Array<Offset> offsets;
  exec::Array<Index> columns;
  exec::Array<double> values;
};

/// Made on a space as the engine makes them (rows 0: of the sizes that it takes): of a itself where its pattern is
/// symmetric, else of A + A^T. To be called for exec::Cuda in .cu files and for the other spaces elsewhere.
template <class Space>
HostBlocks blocks_on(const Space& space, const CsrView& a, Index rows = 32) {
  schedule::BlockTuning tuning;
  tuning.rows = rows;
  const bool symmetric = sparse::symmetry(a).pattern;
  const CsrMatrix adjacency = symmetric ? CsrMatrix{} : sparse::adjacency(a);
  const CsrOn<Space> there(space, a), graph(space, symmetric ? a : adjacency.view());
  const CsrView own = there.view();
  const auto b = schedule::BlockBuilder<Space>(space, own, symmetric ? own : graph.view(), tuning).build();
  return {to_host(space, b.block), to_host(space, b.colour), b.colours, b.box};
}
/// The same on the host, for .cu files.
HostBlocks host_blocks(const CsrView& a, Index rows = 32);

/// Every row stands in one block of at most `rows` rows, which the graph connects and which has one colour; blocks that
/// touch have different ones; colours are 0, 1, .. without a gap.
void expect_blocks(const HostBlocks& b, const CsrView& a, Index rows);

/// A lattice of nearest neighbours with these couplings along x, y and z, slightly diagonally dominant.
CsrMatrix stretched(Index nx, Index ny, Index nz, double x, double y, double z);

struct BlockCase {
  std::string name;
  CsrMatrix a;
  bool lattice;
};
const std::vector<BlockCase>& block_cases();

}  // namespace krilu::test
