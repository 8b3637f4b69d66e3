// SPDX-License-Identifier: Apache-2.0
#include "mesh/face_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/names.hpp"
#include "mesh/cell_graph.hpp"
#include "mesh/face_plan_slices.hpp"
#include "mesh/face_plan_tiles.hpp"
#include "mesh/left_over.hpp"

namespace krilu::mesh {

namespace {

constexpr const char* names[] = {"slices", "diagonal", "tiles", "gather", "colours", "atomics", "serial"};

/// Faces by their lower and then their higher cell, as OpenFOAM has them.
Buffer<Index> upper_triangular(Index cells, const Buffer<Index>& a, const Buffer<Index>& b) {
  const std::size_t n = a.size();
  Buffer<Index> first(std::size_t(cells) + 1), order(n);
  std::fill(first.begin(), first.end(), 0);
  for (std::size_t f = 0; f < n; ++f) ++first[std::size_t(std::min(a[f], b[f])) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  for (std::size_t f = 0; f < n; ++f) order[std::size_t(first[std::size_t(std::min(a[f], b[f]))]++)] = Index(f);
  for (Index c = 0; c < cells; ++c) {
    const auto begin = order.begin() + (c ? first[std::size_t(c) - 1] : 0), end = order.begin() + first[std::size_t(c)];
    std::sort(begin, end, [&](Index f, Index g) {
      const Index hf = std::max(a[std::size_t(f)], b[std::size_t(f)]),
                  hg = std::max(a[std::size_t(g)], b[std::size_t(g)]);
      return hf != hg ? hf < hg : f < g;
    });
  }
  return order;
}

/// The smallest colour that neither cell has, face by face. Cells with more faces than bits go on counting.
std::vector<Index> colours_of(Index cells, const Buffer<Index>& a, const Buffer<Index>& b, const Buffer<Index>& order,
                              Index& count) {
  constexpr Index bits = 64;
  std::vector<std::uint64_t> used(std::size_t(cells), 0);
  std::vector<Index> beyond, colour(order.size());
  count = 0;
  for (const Index f : order) {
    const auto i = std::size_t(a[std::size_t(f)]), j = std::size_t(b[std::size_t(f)]);
    const std::uint64_t both = used[i] | used[j];
    Index k = Index(std::countr_one(both));
    if (k < bits) {
      used[i] |= std::uint64_t(1) << k;
      used[j] |= std::uint64_t(1) << k;
    } else {
      if (beyond.empty()) beyond.assign(std::size_t(cells), 0);
      const Index next = std::max(beyond[i], beyond[j]);
      k = bits + next;
      beyond[i] = beyond[j] = next + 1;
    }
    colour[std::size_t(f)] = k;
    count = std::max(count, k + 1);
  }
  return colour;
}

/// Faces in the order of a strategy that looks at no tiles.
void arrange(const exec::Host& host, PlanData& plan, const Mesh& mesh, const Buffer<Index>& place,
             const FaceTuning& tuning) {
  const Index cells = mesh.cells, faces = mesh.faces();
  Buffer<Index> a(mesh.owner.size()), b(a.size());  // where the faces' cells stand
  host.for_each_range(a.size(), [&](Index begin, Index end) {
    for (auto f = std::size_t(begin); f < std::size_t(end); ++f) {
      a[f] = place[std::size_t(mesh.owner[f])];
      b[f] = place[std::size_t(mesh.neighbour[f])];
    }
  });
  if (plan.view.strategy == FaceStrategy::serial) {
    plan.face_order.resize(std::size_t(faces));
    std::iota(plan.face_order.begin(), plan.face_order.end(), 0);
  } else {
    plan.face_order = upper_triangular(cells, a, b);
  }
  if (plan.view.strategy == FaceStrategy::slices) plan.face_order = by_slices(plan.face_order, cells, a, b);
  if (plan.view.strategy == FaceStrategy::colours) {
    const std::vector<Index> colour = colours_of(cells, a, b, plan.face_order, plan.view.colours);
    plan.colour_face.assign(std::size_t(plan.view.colours) + 1, 0);
    for (const Index k : colour) ++plan.colour_face[std::size_t(k) + 1];
    std::partial_sum(plan.colour_face.begin(), plan.colour_face.end(), plan.colour_face.begin());
    Buffer<Index> next = plan.colour_face, order(plan.face_order.size());
    for (const Index f : plan.face_order) order[std::size_t(next[std::size_t(colour[std::size_t(f)])]++)] = f;
    plan.face_order = std::move(order);
  }
  plan.owner.resize(std::size_t(faces));
  plan.neighbour.resize(std::size_t(faces));
  host.for_each_range(std::size_t(faces), [&](Index begin, Index end) {
    for (auto k = std::size_t(begin); k < std::size_t(end); ++k) {
      plan.owner[k] = a[std::size_t(plan.face_order[k])];
      plan.neighbour[k] = b[std::size_t(plan.face_order[k])];
    }
  });
  if (plan.view.strategy != FaceStrategy::gather && plan.view.strategy != FaceStrategy::slices) return;
  const CellFaces around = cell_faces(host, cells, plan.owner, plan.neighbour);
  if (plan.view.strategy == FaceStrategy::slices) return arrange_slices(host, plan, around, tuning);
  plan.row_entry.assign(around.offsets.begin(), around.offsets.end());
  plan.entry.resize(around.face.size());
  host.for_each_range(std::size_t(cells), [&](Index begin, Index end) {
    for (Index c = begin; c < end; ++c)
      for (auto k = std::size_t(around.offsets[std::size_t(c)]); k < std::size_t(around.offsets[std::size_t(c) + 1]);
           ++k) {
        const Index f = around.face[k];
        plan.entry[k] = {plan.owner[std::size_t(f)] == c ? f : ~f, around.cell[k]};
      }
  });
  for (Index c = 0; c < cells; ++c)
    if (plan.row_entry[std::size_t(c) + 1] - plan.row_entry[std::size_t(c)] >= tuning.long_row)
      plan.long_row.push_back(c);
  plan.view.rows = cells;
}

/// Some of a mesh's cells, numbered in its sequence. What a look at one reads stays in a core's cache: a bit of each
/// cell, and a count of each 64.
class SomeCells {
 public:
  explicit SomeCells(Index cells) : bits_(std::size_t(cells) / 64 + 1), before_(bits_.size()) {}
  void add(Index cell) { bits_[std::size_t(cell) / 64] |= std::uint64_t(1) << cell % 64; }
  /// After the last one was added, before their numbers are asked for.
  void count() {
    Index sum = 0;
    for (std::size_t w = 0; w < bits_.size(); ++w) {
      before_[w] = sum;
      sum += std::popcount(bits_[w]);
    }
  }
  bool has(Index cell) const { return bits_[std::size_t(cell) / 64] >> cell % 64 & 1; }
  Index number(Index cell) const {
    const auto w = std::size_t(cell) / 64;
    return before_[w] + std::popcount(bits_[w] & ((std::uint64_t(1) << cell % 64) - 1));
  }

 private:
  std::vector<std::uint64_t> bits_;
  std::vector<Index> before_;
};

/// Cells with boundary faces, and their faces. place(c): where the mesh's cell c stands.
template <class Place>
void arrange_boundary(PlanData& plan, const Mesh& mesh, Place place) {
  std::vector<std::pair<Index, Index>> faces;  // cell, face
  for (std::size_t f = 0; f < mesh.boundary.size(); ++f) faces.emplace_back(place(mesh.boundary[f]), Index(f));
  std::sort(faces.begin(), faces.end());
  for (const auto& [cell, face] : faces) {
    if (plan.boundary_cell.empty() || plan.boundary_cell.back() != cell) {
      plan.boundary_cell.push_back(cell);
      plan.boundary_row.push_back(Index(plan.boundary_face.size()));
    }
    plan.boundary_face.push_back(face);
  }
  plan.boundary_row.push_back(Index(plan.boundary_face.size()));
  plan.view.boundary_rows = Index(plan.boundary_cell.size());
}

}  // namespace

FaceStrategy strategy_by_name(const std::string& name) {
  require_name("face strategy", name, face_strategy_names());
  return FaceStrategy(std::find(std::begin(names), std::end(names), name) - std::begin(names));
}

const std::vector<std::string>& face_strategy_names() {
  static const std::vector<std::string> all(std::begin(names), std::end(names));
  return all;
}

const char* name_of(FaceStrategy strategy) { return names[int(strategy)]; }

PlanData face_plan(const exec::Host& host, const Mesh& mesh, const CellBlocks& blocks, FaceStrategy strategy,
                   const FaceTuning& tuning, int orders) {
  PlanData plan;
  plan.view.strategy = strategy;
  plan.view.cells = mesh.cells;
  plan.view.faces = mesh.faces();
  const auto cells = std::size_t(mesh.cells);
  plan.cell_order.resize(cells);
  if (blocks.order.empty() || strategy == FaceStrategy::serial)
    std::iota(plan.cell_order.begin(), plan.cell_order.end(), 0);
  else
    std::copy(blocks.order.begin(), blocks.order.end(), plan.cell_order.begin());
  if (strategy == FaceStrategy::tiles || strategy == FaceStrategy::diagonal) {
    const TilePlaces places(host, plan.cell_order, blocks.offsets);
    arrange_tiles(host, plan, mesh, places, blocks.offsets, tuning, orders);
    arrange_boundary(plan, mesh, [place = places.view()](Index c) { return place.place(place[c]); });
  } else {
    Buffer<Index> place(cells);  // of the mesh's cells among the plan's
    host.for_each_range(cells, [&](Index begin, Index end) {
      for (Index k = begin; k < end; ++k) place[std::size_t(plan.cell_order[std::size_t(k)])] = k;
    });
    arrange(host, plan, mesh, place, tuning);
    arrange_boundary(plan, mesh, [&](Index c) { return place[std::size_t(c)]; });
  }
  plan.view.long_rows = Index(plan.long_row.size());
  plan.view.slices = Index(plan.slice_of.size());
  plan.each([&](auto& buffer, auto& pointer) {
    pointer = buffer.empty() ? nullptr : buffer.data();
    plan.report.bytes += buffer.size() * sizeof(buffer[0]);
  });
  plan.view.class_pair = plan.class_pair.data();
  plan.view.colour_face = plan.colour_face.data();
  plan.report.strategy = name_of(strategy);
  plan.report.tiles = plan.view.tiles;
  plan.report.most_cells = plan.view.most_cells;
  return plan;
}

Piece piece_of(const Mesh& mesh, const CellBlocks& blocks, Index most) {
  const Index n = blocks.blocks();
  if (mesh.cells <= most || n == 0) {
    Piece whole;
    whole.mesh.cells = mesh.cells;
    whole.mesh.owner = mesh.owner;
    whole.mesh.neighbour = mesh.neighbour;
    whole.blocks = blocks;
    return whole;
  }
  // Blocks around the middle one.
  Index first = n / 2, last = n / 2 + 1;
  const auto cells_of = [&](Index from, Index to) {
    return blocks.offsets[std::size_t(to)] - blocks.offsets[std::size_t(from)];
  };
  while (last < n && cells_of(first, last + 1) <= most) {
    ++last;
    if (first > 0 && cells_of(first - 1, last) <= most) --first;
  }
  const Index begin = blocks.offsets[std::size_t(first)], end = blocks.offsets[std::size_t(last)];
  const auto cell = [&](Index k) { return blocks.order.empty() ? k : blocks.order[std::size_t(k)]; };
  Piece piece;
  piece.mesh.cells = end - begin;
  SomeCells chosen(mesh.cells);
  for (Index k = begin; k < end; ++k) chosen.add(cell(k));
  chosen.count();
  for (std::size_t f = 0; f < mesh.owner.size(); ++f) {
    const Index o = mesh.owner[f], q = mesh.neighbour[f];
    if (!chosen.has(o) || !chosen.has(q)) continue;
    piece.mesh.owner.push_back(chosen.number(o));
    piece.mesh.neighbour.push_back(chosen.number(q));
  }
  for (Index k = begin; k < end; ++k) piece.blocks.order.push_back(chosen.number(cell(k)));
  for (Index t = first; t <= last; ++t) piece.blocks.offsets.push_back(blocks.offsets[std::size_t(t)] - begin);
  return piece;
}

}  // namespace krilu::mesh
