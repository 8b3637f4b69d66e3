// SPDX-License-Identifier: Apache-2.0
#include "mesh/cell_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <span>
#include <utility>

#include "base/names.hpp"
#include "exec/tasks.hpp"
#include "krilu/error.hpp"
#include "mesh/block_growth.hpp"
#include "mesh/cell_graph.hpp"
#include "mesh/coordinate_bisection.hpp"
#include "schedule/subdomains.hpp"

namespace krilu::mesh {

namespace {

Index blocks_of(Index cells, Index most) { return Index((std::int64_t(cells) + most - 1) / most); }

/// An order of all cells, cut into ranges of equal lengths up to one cell.
CellBlocks ranges(schedule::Order order, Index most) {
  CellBlocks b;
  const auto cells = Index(order.size());
  const Index blocks = blocks_of(cells, most);
  for (Index i = 0; i <= blocks; ++i) b.offsets.push_back(blocks ? Index(std::int64_t(cells) * i / blocks) : 0);
  b.order = std::move(order);
  return b;
}

/// The graph as METIS and Cuthill-McKee want it: each neighbour once, ascending.
CsrMatrix adjacency(const exec::Host& host, const CellFaces& faces) {
  CsrMatrix g;
  g.rows = g.cols = faces.cells();
  const auto cells = std::size_t(g.rows);
  Buffer<Index> sorted = faces.cell;
  g.offsets.resize(cells + 1);
  g.offsets[0] = 0;
  host.for_each_range(cells, [&](Index begin, Index end) {
    for (auto c = std::size_t(begin); c < std::size_t(end); ++c) {
      Index* const first = sorted.data() + faces.offsets[c];
      Index* const last = sorted.data() + faces.offsets[c + 1];
      std::sort(first, last);
      g.offsets[c + 1] = Offset(std::unique(first, last) - first);
    }
  });
  std::partial_sum(g.offsets.begin(), g.offsets.end(), g.offsets.begin());
  g.columns.resize(std::size_t(g.nnz()));
  host.for_each_range(cells, [&](Index begin, Index end) {
    for (auto c = std::size_t(begin); c < std::size_t(end); ++c)
      std::copy_n(sorted.data() + faces.offsets[c], g.offsets[c + 1] - g.offsets[c], g.columns.data() + g.offsets[c]);
  });
  return g;
}

/// Some of the cells with the faces between them; cell i of it is cells[i]. `place` has an element for each cell of
/// all, each -1, and does again at the end.
CellFaces graph_of(const CellFaces& all, std::span<const Index> cells, std::vector<Index>& place) {
  for (std::size_t i = 0; i < cells.size(); ++i) place[std::size_t(cells[i])] = Index(i);
  CellFaces g;
  g.offsets.push_back(0);
  for (Index c : cells) {
    for (Offset k = all.offsets[std::size_t(c)]; k < all.offsets[std::size_t(c) + 1]; ++k)
      if (const Index i = place[std::size_t(all.cell[std::size_t(k)])]; i >= 0) {
        g.cell.push_back(i);
        g.face.push_back(all.face[std::size_t(k)]);
      }
    g.offsets.push_back(Offset(g.cell.size()));
  }
  for (Index c : cells) place[std::size_t(c)] = -1;
  return g;
}

/// The sum over all faces of how far apart their cells stand; place[c] is where cell c does, at c where it is empty.
double distance(const CellFaces& g, const schedule::Order& place) {
  double sum = 0;
  for (Index c = 0; c < g.cells(); ++c)
    for (Offset k = g.offsets[std::size_t(c)]; k < g.offsets[std::size_t(c) + 1]; ++k) {
      const Index d = g.cell[std::size_t(k)];
      sum += std::abs(place.empty() ? c - d : place[std::size_t(c)] - place[std::size_t(d)]);
    }
  return sum;
}

CellBlocks by_metis(const exec::Host& host, const CellFaces& faces, Index most) {
  // Parts come out up to 1.04 times the mean, and one that is too large costs a cut: so the mean is as much below.
  constexpr double unevenness = 1.04;
  const Index cells = faces.cells();
  const auto parts = Index(std::min(double(cells), std::ceil(unevenness * cells / most)));
  if (cells <= most || parts == cells) {
    schedule::Order order(static_cast<std::size_t>(cells));
    std::iota(order.begin(), order.end(), 0);
    return ranges(std::move(order), most);
  }
  const CsrMatrix graph = adjacency(host, faces);
  const bool clusters = cells >= 20000 && parts >= 128 && cells / parts >= 64;
  const std::vector<Index> part =
      clusters ? schedule::partition_by_clusters(graph, parts) : schedule::partition(graph, parts);

  std::vector<Index> begin(std::size_t(parts) + 1, 0);
  for (Index p : part) ++begin[std::size_t(p) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  CellBlocks b;
  b.order.resize(std::size_t(cells));
  std::vector<Index> next(begin), place(std::size_t(cells), -1);
  for (Index c = 0; c < cells; ++c) b.order[std::size_t(next[std::size_t(part[std::size_t(c)])]++)] = c;
  const auto cells_of = [&](std::size_t p) {
    return std::span<Index>{b.order.data() + begin[p], b.order.data() + begin[p + 1]};
  };
  // Where neighbours stand clearly nearer to each other in the sequence of growth than in the mesh's own, in a few of
  // the parts, all of them take it.
  constexpr std::size_t looked_at = 16;
  double own = 0, grown = 0;
  for (std::size_t i = 0; i < looked_at; ++i) {
    const std::span<Index> mine = cells_of(std::size_t(parts) * i / looked_at);
    if (mine.empty()) continue;
    const CellFaces graph_of_part = graph_of(faces, mine, place);
    own += distance(graph_of_part, {});
    grown += distance(graph_of_part, schedule::inverse(grow_blocks(graph_of_part, Index(mine.size())).order));
  }
  const bool regrow = grown < 0.4 * own;
  for (std::size_t p = 0; p < std::size_t(parts); ++p) {
    const std::span<Index> mine = cells_of(p);
    if (mine.empty()) continue;
    b.offsets.push_back(begin[p]);
    const auto size = Index(mine.size()), pieces = blocks_of(size, most);
    if (pieces == 1 && !regrow) continue;
    const CellBlocks grow = grow_blocks(graph_of(faces, mine, place), blocks_of(size, pieces));
    const schedule::Order before(mine.begin(), mine.end());
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = before[std::size_t(grow.order[i])];
    for (std::size_t k = 1; pieces > 1 && k < std::size_t(grow.blocks()); ++k)
      b.offsets.push_back(begin[p] + grow.offsets[k]);
  }
  b.offsets.push_back(cells);
  return b;
}

}  // namespace

const std::vector<std::string>& renumber_names() {
  static const std::vector<std::string> names{"none", "bisection", "growth", "rcm", "metis"};
  return names;
}

Renumber renumber_by_name(const std::string& name) {
  const std::vector<std::string>& names = renumber_names();
  require_name("renumbering", name, names);
  return static_cast<Renumber>(std::find(names.begin(), names.end(), name) - names.begin());
}

CellBlocks cell_blocks(const exec::Host& host, const Mesh& mesh, Index most, Renumber how) {
  if (most < 1) throw Error(fmt::format("blocks of at most {} cells hold none: ask for at least 1", most));
  if (how == Renumber::bisection && !mesh.has_geometry())
    throw Error(
        "the mesh has no geometry, and renumbering by bisection goes by the cells' centres: take growth, rcm or metis");
  if (how == Renumber::bisection) return bisect_cells(host, mesh, most);
  if (how == Renumber::none) {
    schedule::Order order(static_cast<std::size_t>(mesh.cells));
    std::iota(order.begin(), order.end(), 0);
    return ranges(std::move(order), most);
  }
  const CellFaces faces = cell_faces(host, mesh.cells, mesh.owner, mesh.neighbour);
  if (how == Renumber::growth) return grow_blocks(faces, most);
  if (how == Renumber::rcm) return ranges(schedule::reverse_cuthill_mckee(adjacency(host, faces)), most);
  return by_metis(host, faces, most);
}

Buffer<Index> block_of_cells(const exec::Host& host, const CellBlocks& blocks) {
  Buffer<Index> block(blocks.order.size());
  for_each_task(host, std::size_t(blocks.blocks()), [&](std::size_t b) {
    for (auto k = std::size_t(blocks.offsets[b]); k < std::size_t(blocks.offsets[b + 1]); ++k)
      block[std::size_t(blocks.order[k])] = Index(b);
  });
  return block;
}

double cut_faces(const exec::Host& host, const Mesh& mesh, const CellBlocks& blocks) {
  const auto faces = std::size_t(mesh.faces());
  if (faces == 0) return 0;
  const Buffer<Index> block = block_of_cells(host, blocks);
  const auto pieces = std::size_t(host.threads());
  std::vector<std::size_t> cut(pieces, 0);
  for_each_task(host, pieces, [&](std::size_t piece) {
    std::size_t n = 0;
    for (std::size_t f = faces * piece / pieces; f < faces * (piece + 1) / pieces; ++f)
      n += block[std::size_t(mesh.owner[f])] != block[std::size_t(mesh.neighbour[f])];
    cut[piece] = n;
  });
  return double(std::accumulate(cut.begin(), cut.end(), std::size_t(0))) / double(faces);
}

}  // namespace krilu::mesh
