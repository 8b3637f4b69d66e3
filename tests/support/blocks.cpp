// SPDX-License-Identifier: Apache-2.0
#include "support/blocks.hpp"

#include <map>
#include <set>

#include "krilu/io.hpp"

namespace krilu::test {

HostBlocks host_blocks(const CsrView& a, Index rows) { return blocks_on(exec::Host(1), a, rows); }

namespace {

bool connected(const std::vector<Index>& members, const std::vector<Index>& block, const CsrView& graph) {
  std::set<Index> seen{members.front()};
  std::vector<Index> front{members.front()};
  while (!front.empty()) {
    const Index i = front.back();
    front.pop_back();
    for (Offset k = graph.offsets[i]; k < graph.offsets[i + 1]; ++k) {
      const Index j = graph.columns[k];
      if (block[std::size_t(j)] == block[std::size_t(i)] && seen.insert(j).second) front.push_back(j);
    }
  }
  return seen.size() == members.size();
}

}  // namespace

void expect_blocks(const HostBlocks& b, const CsrView& a, Index rows) {
  const CsrMatrix graph = sparse::adjacency(a);
  const auto n = std::size_t(a.rows);
  ASSERT_EQ(b.block.size(), n);
  ASSERT_EQ(b.colour.size(), n);
  std::map<Index, std::vector<Index>> members;
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_TRUE(b.block[i] >= 0 && b.block[i] < a.rows) << "row " << i << " is in block " << b.block[i];
    members[b.block[i]].push_back(Index(i));
  }
  std::set<Index> colours;
  for (const auto& [name, list] : members) {
    ASSERT_LE(Index(list.size()), rows) << "block " << name;
    ASSERT_TRUE(connected(list, b.block, graph)) << "block " << name << " of " << list.size() << " rows";
    for (Index i : list) ASSERT_EQ(b.colour[std::size_t(i)], b.colour[std::size_t(list.front())]) << "block " << name;
    colours.insert(b.colour[std::size_t(list.front())]);
  }
  ASSERT_EQ(Index(colours.size()), b.colours);
  if (n > 0) {
    EXPECT_EQ(*colours.begin(), 0);
    EXPECT_EQ(*colours.rbegin(), b.colours - 1);
  }
  for (std::size_t i = 0; i < n; ++i)
    for (Offset k = graph.offsets[i]; k < graph.offsets[i + 1]; ++k) {
      const auto j = std::size_t(graph.columns[std::size_t(k)]);
      if (b.block[i] != b.block[j]) {
        ASSERT_NE(b.colour[i], b.colour[j]) << "rows " << i << " and " << j;
      }
    }
}

CsrMatrix stretched(Index nx, Index ny, Index nz, double x, double y, double z) {
  CsrMatrix a;
  a.rows = a.cols = nx * ny * nz;
  a.offsets.push_back(0);
  for (Index i = 0; i < a.rows; ++i) {
    const Index plane = nx * ny, at[3] = {i % nx, i / nx % ny, i / plane};
    double sum = 0;
    std::map<Index, double> row;
    const auto couple = [&](Index j, double w) {
      row[j] = -w;
      sum += w;
    };
    if (at[2] > 0) couple(i - plane, z);
    if (at[1] > 0) couple(i - nx, y);
    if (at[0] > 0) couple(i - 1, x);
    if (at[0] + 1 < nx) couple(i + 1, x);
    if (at[1] + 1 < ny) couple(i + nx, y);
    if (at[2] + 1 < nz) couple(i + plane, z);
    row[i] = 1.01 * sum;
    for (const auto& [j, v] : row) {
      a.columns.push_back(j);
      a.values.push_back(v);
    }
    a.offsets.push_back(Offset(a.columns.size()));
  }
  return a;
}

const std::vector<BlockCase>& block_cases() {
  static const std::vector<BlockCase> all = [] {
    std::vector<BlockCase> c;
    for (const char* name : {"gen:poisson2d:64x32", "gen:poisson2d:5x7", "gen:convdiff2d:33x17", "gen:poisson2d:200x1",
                             "gen:poisson2d:1x77", "gen:poisson2d:2x40", "gen:aniso3d:16x16x16", "gen:aniso3d:5x7x3",
                             "gen:aniso3d:3x4x50", "gen:convdiff3d:13x9x5", "gen:convdiff3d:70x3x4",
                             "gen:poisson3d27:5x7x3", "gen:poisson3d27:9x10x11", "gen:convdiff3d27:8x8x8"})
      c.push_back({name, generate(name), true});
    c.push_back({"lattice that is stretched along x", stretched(40, 30, 1, 50, 1, 0), true});
    c.push_back({"lattice that is stretched along z", stretched(10, 9, 70, 1, 2, 100), true});
    const auto shuffled = [&](const char* name, const CsrMatrix& a, std::uint64_t seed) {
      c.push_back({std::string(name) + ", shuffled with seed " + std::to_string(seed),
                   permuted(a, shuffled_order(a.rows, seed)), false});
    };
    shuffled("gen:poisson2d:64x32", generate("gen:poisson2d:64x32"), 301);
    shuffled("gen:aniso3d:12x11x10", generate("gen:aniso3d:12x11x10"), 302);
    shuffled("gen:poisson3d27:8x8x8", generate("gen:poisson3d27:8x8x8"), 303);
    shuffled("stretched grid", stretched(60, 50, 1, 100, 1, 0), 304);
    c.push_back({"random, seed 305", random_matrix({.rows = 2000, .per_row = 5, .seed = 305}), false});
    c.push_back({"unsymmetric pattern, seed 306",
                 random_matrix({.rows = 2000, .per_row = 3, .symmetric_pattern = false, .seed = 306}), false});
    c.push_back({"many pieces, seed 307", random_matrix({.rows = 1000, .per_row = 0.7, .seed = 307}), false});
    c.push_back({"long rows, seed 308", random_matrix({.rows = 300, .per_row = 120, .seed = 308}), false});
    c.push_back({"nodes of four rows, seed 309",
                 with_nodes(random_matrix({.rows = 400, .per_row = 6, .seed = 309}), [](Index) { return 4; }), false});
    c.push_back({"nodes of one to ten rows, seed 310",
                 with_nodes(random_matrix({.rows = 200, .per_row = 5, .symmetric_pattern = false, .seed = 310}),
                            [](Index i) { return 1 + i * i % 11; }),
                 false});
    c.push_back({"a full matrix", with_nodes(from_dense({{2.0}}), [](Index) { return 75; }), false});
    c.push_back({"diagonal", random_matrix({.rows = 100, .per_row = 0}), false});
    c.push_back({"one row", from_dense({{2.0}}), false});
    CsrMatrix none;
    none.offsets.push_back(0);
    c.push_back({"no rows", std::move(none), false});
    return c;
  }();
  return all;
}

}  // namespace krilu::test
