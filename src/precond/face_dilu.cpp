// SPDX-License-Identifier: Apache-2.0
#include "precond/face_dilu.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <numeric>

#include "mesh/cell_graph.hpp"
#include "schedule/levels.hpp"

namespace krilu::precond {

namespace {

/// The two cells of each face, by places in the loops' numbering.
struct FaceCells {
  Buffer<Index> owner, neighbour;
};
FaceCells face_cells(const Mesh& mesh, std::span<const Index> cell_order, std::span<const Index> face_order) {
  Buffer<Index> place(cell_order.size());
  for (std::size_t i = 0; i < cell_order.size(); ++i) place[std::size_t(cell_order[i])] = Index(i);
  FaceCells cells{Buffer<Index>(face_order.size()), Buffer<Index>(face_order.size())};
  for (std::size_t f = 0; f < face_order.size(); ++f) {
    cells.owner[f] = place[std::size_t(mesh.owner[std::size_t(face_order[f])])];
    cells.neighbour[f] = place[std::size_t(mesh.neighbour[std::size_t(face_order[f])])];
  }
  return cells;
}

/// The numbers in `sequence` sorted by key, those of one key as they stand.
Buffer<Index> sorted_by(const Buffer<Index>& key, Index keys, const Buffer<Index>& sequence) {
  std::vector<Index> next(std::size_t(keys) + 1, 0);
  for (const Index k : key) ++next[std::size_t(k) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  Buffer<Index> out(sequence.size());
  for (const Index i : sequence) out[std::size_t(next[std::size_t(key[std::size_t(i)])]++)] = i;
  return out;
}

}  // namespace

FaceSteps face_steps(const Mesh& mesh, std::span<const Index> cell_order, std::span<const Index> face_order) {
  const FaceCells cells = face_cells(mesh, cell_order, face_order);
  const std::size_t faces = face_order.size();
  FaceSteps steps;
  steps.lower.resize(faces);
  steps.upper.resize(faces);
  bool as_they_stand = true;
  for (std::size_t f = 0; f < faces; ++f) {
    std::tie(steps.lower[f], steps.upper[f]) = std::minmax(cells.owner[f], cells.neighbour[f]);
    as_they_stand =
        as_they_stand && cells.owner[f] < cells.neighbour[f] &&
        (f == 0 || std::pair(steps.lower[f - 1], steps.upper[f - 1]) <= std::pair(steps.lower[f], steps.upper[f]));
  }
  if (as_they_stand) return steps;
  Buffer<Index> order(faces);
  std::iota(order.begin(), order.end(), Index(0));
  order = sorted_by(steps.lower, mesh.cells, sorted_by(steps.upper, mesh.cells, order));
  steps.face.resize(faces);
  for (std::size_t k = 0; k < faces; ++k) {
    const auto f = std::size_t(order[k]);
    std::tie(steps.lower[k], steps.upper[k]) = std::minmax(cells.owner[f], cells.neighbour[f]);
    steps.face[k] = cells.owner[f] < cells.neighbour[f] ? Index(f) : ~Index(f);
  }
  return steps;
}

FaceLevels face_levels(const exec::Host& host, const Mesh& mesh, std::span<const Index> cell_order,
                       std::span<const Index> face_order) {
  const FaceCells cells = face_cells(mesh, cell_order, face_order);
  const mesh::CellFaces of = mesh::cell_faces(host, mesh.cells, cells.owner, cells.neighbour);
  schedule::LevelOrder order = schedule::sort_by_level(schedule::levels_sync_free(host, {of.graph()}));

  FaceLevels out;
  out.offsets = std::move(order.offsets);
  const auto n = std::size_t(mesh.cells);
  out.cell.assign(order.rows.begin(), order.rows.end());
  out.begin.resize(n + 1);
  out.split.resize(n);
  out.entry.resize(of.face.size());
  out.begin[0] = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const auto c = std::size_t(out.cell[k]);
    out.begin[k + 1] = out.begin[k] + of.offsets[c + 1] - of.offsets[c];
  }
  host.for_each_range(n, [&](Index first, Index last) {
    for (Index k = first; k < last; ++k) {
      const Index c = out.cell[std::size_t(k)];
      FaceEntry* const begin = out.entry.data() + out.begin[std::size_t(k)];
      FaceEntry* end = begin;
      for (Offset e = of.offsets[std::size_t(c)]; e < of.offsets[std::size_t(c) + 1]; ++e) {
        const Index f = of.face[std::size_t(e)];
        *end++ = {cells.owner[std::size_t(f)] == c ? f : ~f, of.cell[std::size_t(e)]};
      }
      const auto face = [](const FaceEntry& e) { return e.face < 0 ? ~e.face : e.face; };
      std::sort(begin, end, [&](const FaceEntry& a, const FaceEntry& b) {
        return std::pair(a.other, face(a)) < std::pair(b.other, face(b));
      });
      const auto later = std::find_if(begin, end, [&](const FaceEntry& e) { return e.other > c; });
      out.split[std::size_t(k)] = out.begin[std::size_t(k)] + Offset(later - begin);
    }
  });
  return out;
}

FaceRows face_rows(const exec::Host& host, const Mesh& mesh, std::span<const Index> face_order) {
  if (2 * std::int64_t(face_order.size()) + mesh.cells > std::numeric_limits<Offset>::max())
    throw Error(fmt::format("{} cells and {} internal faces are more than 2147483647 entries of a matrix", mesh.cells,
                            face_order.size()));
  const mesh::CellFaces of = mesh::cell_faces(host, mesh.cells, mesh.owner, mesh.neighbour);
  std::vector<Index> place(face_order.size());
  for (std::size_t f = 0; f < face_order.size(); ++f) place[std::size_t(face_order[f])] = Index(f);

  FaceRows out;
  const auto n = std::size_t(mesh.cells);
  out.begin.assign(of.offsets.begin(), of.offsets.end());
  out.entry.resize(of.face.size());
  out.offsets.resize(n + 1);
  out.offsets[0] = 0;
  host.for_each_range(n, [&](Index first, Index last) {
    for (Index c = first; c < last; ++c) {
      const Offset begin = of.offsets[std::size_t(c)], end = of.offsets[std::size_t(c) + 1];
      for (Offset e = begin; e < end; ++e) {
        const Index f = of.face[std::size_t(e)], there = place[std::size_t(f)];
        out.entry[std::size_t(e)] = {mesh.owner[std::size_t(f)] == c ? there : ~there, of.cell[std::size_t(e)]};
      }
      const auto own = std::span(out.entry).subspan(std::size_t(begin), std::size_t(end - begin));
      std::ranges::sort(own, {}, &FaceEntry::other);
      Offset columns = 1;
      for (std::size_t k = 0; k < own.size(); ++k) columns += k == 0 || own[k].other != own[k - 1].other;
      out.offsets[std::size_t(c) + 1] = columns;
    }
  });
  std::partial_sum(out.offsets.begin(), out.offsets.end(), out.offsets.begin());
  out.columns.resize(std::size_t(out.offsets[n]));
  host.for_each_range(n, [&](Index first, Index last) {
    for (Index c = first; c < last; ++c) {
      Offset at = out.offsets[std::size_t(c)];
      Index before = -1;
      const auto add = [&](Index column) { out.columns[std::size_t(at++)] = before = column; };
      for (Offset e = out.begin[std::size_t(c)]; e < out.begin[std::size_t(c) + 1]; ++e) {
        const Index other = out.entry[std::size_t(e)].other;
        if (before < c && other > c) add(c);
        if (other != before) add(other);
      }
      if (before < c) add(c);
    }
  });
  return out;
}

bool wide_enough(const FaceLevels& levels, int threads) {
  const std::size_t pieces = 2 * exec::Host::block * std::size_t(threads);  // from which for_each calls a team
  return levels.cell.size() >= pieces * std::size_t(levels.count());
}

void face_pivots(const FaceSteps& steps, const mesh::LduCoefficients& a, Index cells, double* d) {
  for (Index c = 0; c < cells; ++c) d[c] = a.diagonal[c];
  const auto faces = Index(steps.lower.size());
  const Index *lower = steps.lower.data(), *upper = steps.upper.data();
  const Index* face = steps.face.empty() ? nullptr : steps.face.data();
  for (Index k = 0; k < faces; ++k) {
    const Index s = face ? face[k] : k, f = s < 0 ? ~s : s;
    d[upper[k]] -= a.upper[f] * a.lower[f] / d[lower[k]];
  }
}

void face_sweeps(const FaceSteps& steps, const mesh::LduCoefficients& a, Index cells, const double* rd, const double* r,
                 double* z) {
  for (Index c = 0; c < cells; ++c) z[c] = rd[c] * r[c];
  const auto faces = Index(steps.lower.size());
  const Index *lower = steps.lower.data(), *upper = steps.upper.data();
  if (steps.face.empty()) {
    for (Index k = 0; k < faces; ++k) z[upper[k]] -= rd[upper[k]] * a.lower[k] * z[lower[k]];
    for (Index k = faces; k-- > 0;) z[lower[k]] -= rd[lower[k]] * a.upper[k] * z[upper[k]];
    return;
  }
  const Index* face = steps.face.data();
  for (Index k = 0; k < faces; ++k) {
    const Index f = face[k];
    z[upper[k]] -= rd[upper[k]] * (f < 0 ? a.upper[~f] : a.lower[f]) * z[lower[k]];
  }
  for (Index k = faces; k-- > 0;) {
    const Index f = face[k];
    z[lower[k]] -= rd[lower[k]] * (f < 0 ? a.lower[~f] : a.upper[f]) * z[upper[k]];
  }
}

std::string face_pivot_sentence(Index cell, bool by_numbering) {
  return fmt::format("dilu: zero pivot at cell {} (counting from 0): {}take preconditioner jacobi or none", cell,
                     by_numbering ? "another numbering of the cells (FaceLoopOptions::renumber) may help, else " : "");
}

void require_face_strategy(triangular::Strategy strategy, bool host) {
  using triangular::Strategy;
  if (strategy != Strategy::automatic && strategy != Strategy::serial && strategy != Strategy::level_set)
    throw Error(
        fmt::format("triangular {}: sweeps over faces are auto, serial or level-set", triangular::to_string(strategy)));
  if (strategy == Strategy::serial && !host)
    throw Error("triangular serial is for the host: on a GPU sweeps over faces are auto or level-set");
}

template class FaceDilu<exec::Host>;
template class FaceDilu<exec::Emulated>;

}  // namespace krilu::precond
