// SPDX-License-Identifier: Apache-2.0
// Coloured blocks made on a GPU: boxes on lattices are the host's exactly, in shape, number and colour; blocks grown
// elsewhere are what blocks have to be, and the same on every run.
#include "exec/cuda.cuh"
#include "support/blocks.hpp"
#include "support/sliced_matrix.cuh"

namespace krilu::test {
namespace {

void expect_gpu_blocks(const exec::Cuda& ex, const BlockCase& c, Index rows) {
  SCOPED_TRACE(c.name + ", blocks of up to " + std::to_string(rows));
  const HostBlocks b = blocks_on(ex, c.a, rows);
  expect_blocks(b, c.a, rows);
  EXPECT_EQ(b.box[0] > 0, c.lattice);
  if (c.lattice) {
    EXPECT_EQ(b, host_blocks(c.a, rows));
  }
  EXPECT_EQ(blocks_on(ex, c.a, rows), b) << "another run, other blocks";
}

TEST(GpuBlocksSmall, AreTheHostsOnLatticesAndBlocksElsewhere) {
  KRILU_REQUIRE_GPU();
  const exec::Cuda ex;
  for (const BlockCase& c : block_cases())
    for (Index rows : {1, 8, 20, 32}) expect_gpu_blocks(ex, c, rows);
}

TEST(GpuBlocks, OfLargeLattices) {
  KRILU_REQUIRE_GPU();
  const exec::Cuda ex;
  for (const char* name : {"gen:convdiff3d:60x50x40", "gen:convdiff2d:400x300", "gen:poisson3d27:30x40x50"})
    expect_gpu_blocks(ex, {name, generate(name), true}, 32);
  expect_gpu_blocks(ex, {"stretched along z", stretched(40, 50, 60, 1, 2, 300), true}, 32);
}

TEST(GpuBlocks, OfLargePatternsWithoutALattice) {
  KRILU_REQUIRE_GPU();
  const exec::Cuda ex;
  const CsrMatrix lattice = generate("gen:convdiff3d:40x40x40");
  expect_gpu_blocks(ex, {"shuffled with seed 521", permuted(lattice, shuffled_order(lattice.rows, 521)), false}, 32);
  for (const GpuCase& c : large_cases())
    if (c.name.find("gen:") == std::string::npos && c.name != "chain") expect_gpu_blocks(ex, {c.name, c.a, false}, 32);
}

}  // namespace
}  // namespace krilu::test
