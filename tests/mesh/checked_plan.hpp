// SPDX-License-Identifier: Apache-2.0
// A plan of face loops, checked array by array as krilu/face_plan.hpp says what they mean.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "krilu/mesh.hpp"
#include "mesh/face_plan.hpp"

namespace krilu::test {

using namespace mesh;

/// No cell twice; empties itself when asked.
class Met {
 public:
  explicit Met(Index cells) : last_(std::size_t(cells), -1) {}
  void begin() { ++round_; }
  bool again(Index cell) { return std::exchange(last_[std::size_t(cell)], round_) == round_; }

 private:
  std::vector<Index> last_;
  Index round_ = 0;
};

/// A plan, and the mesh in its numbering, found without it.
class Checked {
 public:
  Checked(const Mesh& mesh, const PlanData& plan, const FaceTuning& tuning)
      : plan_(plan),
        p_(plan.view),
        tuning_(tuning),
        by_owner_(mesh.owner.size(), 0),
        by_neighbour_(mesh.owner.size(), 0),
        met_(mesh.cells) {
    const auto cells = std::size_t(mesh.cells), faces = mesh.owner.size();
    std::vector<Index> place(cells, -1);
    EXPECT_EQ(plan.cell_order.size(), cells);
    EXPECT_EQ(plan.face_order.size(), faces);
    for (std::size_t k = 0; k < cells; ++k) place[std::size_t(plan.cell_order[k])] = Index(k);
    EXPECT_EQ(std::count(place.begin(), place.end(), -1), 0) << "cells without a place";
    std::vector<int> there(faces, 0);
    for (std::size_t f = 0; f < faces; ++f) {
      const auto old = std::size_t(plan.face_order[f]);
      ++there[old];
      owner_.push_back(place[std::size_t(mesh.owner[old])]);
      neighbour_.push_back(place[std::size_t(mesh.neighbour[old])]);
    }
    EXPECT_EQ(there, std::vector<int>(faces, 1)) << "each face has one place";
    EXPECT_EQ(p_.cells, mesh.cells);
    EXPECT_EQ(p_.faces, mesh.faces());
    boundary(mesh, place);
  }

  void all() {
    listed_cells();
    switch (p_.strategy) {
      case FaceStrategy::serial:
      case FaceStrategy::atomics: EXPECT_EQ(p_.loose, 0); return;
      case FaceStrategy::colours: return colours();
      case FaceStrategy::gather: return gather();
      case FaceStrategy::slices: return slices();
      case FaceStrategy::tiles:
      case FaceStrategy::diagonal: return tiles();
    }
  }
  Index far() const { return far_; }

 private:
  /// Face f adds to its owner, or to its neighbour: once each in all.
  void adds_to_owner(Index f, Index owner, Index neighbour) {
    is_face(f, owner, neighbour), ++by_owner_[std::size_t(f)];
  }
  void adds_to_neighbour(Index f, Index owner, Index neighbour) {
    is_face(f, owner, neighbour), ++by_neighbour_[std::size_t(f)];
  }
  void adds_to_both(Index f, Index owner, Index neighbour) {
    adds_to_owner(f, owner, neighbour);
    ++by_neighbour_[std::size_t(f)];
  }
  void is_face(Index f, Index owner, Index neighbour) {
    if (f < 0 || f >= p_.faces) throw std::runtime_error("face " + std::to_string(f) + " is none");
    EXPECT_EQ(owner_[std::size_t(f)], owner) << "owner of face " << f;
    EXPECT_EQ(neighbour_[std::size_t(f)], neighbour) << "neighbour of face " << f;
  }
  void adds_by(const FacePlan::Cut& e, Index c) {
    if (e.face >= 0)
      adds_to_owner(e.face, c, e.other);
    else
      adds_to_neighbour(~e.face, e.other, c);
  }
  void every_face_once() const {
    EXPECT_EQ(by_owner_, std::vector<int>(by_owner_.size(), 1));
    EXPECT_EQ(by_neighbour_, std::vector<int>(by_neighbour_.size(), 1));
  }

  void listed_cells() const {
    EXPECT_EQ(p_.listed, tuning_.parcels ? 0 : p_.loose);
    ASSERT_EQ(Index(plan_.owner.size()), p_.faces - p_.listed);
    ASSERT_EQ(Index(plan_.neighbour.size()), p_.faces - p_.listed);
    for (Index f = p_.listed; f < p_.faces; ++f) {
      EXPECT_EQ(p_.owner[f - p_.listed], owner_[std::size_t(f)]);
      EXPECT_EQ(p_.neighbour[f - p_.listed], neighbour_[std::size_t(f)]);
    }
  }

  void boundary(const Mesh& mesh, const std::vector<Index>& place) const {
    std::vector<int> seen(mesh.boundary.size(), 0);
    std::set<Index> cells;
    for (Index row = 0; row < p_.boundary_rows; ++row) {
      const Index c = p_.boundary_cell[row];
      EXPECT_TRUE(cells.insert(c).second) << "cell " << c << " has two rows of boundary faces";
      EXPECT_LT(p_.boundary_row[row], p_.boundary_row[row + 1]);
      for (Index k = p_.boundary_row[row]; k < p_.boundary_row[row + 1]; ++k) {
        ++seen[std::size_t(p_.boundary_face[k])];
        EXPECT_EQ(place[std::size_t(mesh.boundary[std::size_t(p_.boundary_face[k])])], c);
      }
    }
    EXPECT_EQ(seen, std::vector<int>(mesh.boundary.size(), 1));
  }

  void colours() {
    ASSERT_EQ(Index(plan_.colour_face.size()), p_.colours + 1);
    EXPECT_EQ(p_.colour_face[0], 0);
    EXPECT_EQ(p_.colour_face[p_.colours], p_.faces);
    for (Index k = 0; k < p_.colours; ++k) {
      EXPECT_LT(p_.colour_face[k], p_.colour_face[k + 1]);
      met_.begin();
      for (Index f = p_.colour_face[k]; f < p_.colour_face[k + 1]; ++f) {
        EXPECT_FALSE(met_.again(owner_[std::size_t(f)])) << "colour " << k;
        EXPECT_FALSE(met_.again(neighbour_[std::size_t(f)])) << "colour " << k;
      }
    }
  }

  void gather() {
    ASSERT_EQ(p_.rows, p_.cells);
    EXPECT_EQ(p_.row, nullptr);
    EXPECT_EQ(p_.row_cell, nullptr);
    rows();
    every_face_once();
  }

  /// Each cell that has a row, and no cell two.
  void rows() {
    ASSERT_EQ(Index(plan_.row_entry.size()), p_.rows > 0 || !plan_.row_entry.empty() ? p_.rows + 1 : 0);
    std::set<Index> of_cells, longer;
    for (Index k = 0; k < p_.rows; ++k) {
      const Index c = p_.row_cell ? p_.row_cell[k] : k;
      EXPECT_TRUE(of_cells.insert(c).second) << "two rows of cell " << c;
      for (Index e = p_.row_entry[k]; e < p_.row_entry[k + 1]; ++e) adds_by(p_.entry[e], c);
      if (p_.row_entry[k + 1] - p_.row_entry[k] >= tuning_.long_row) longer.insert(k);
    }
    EXPECT_EQ(std::set<Index>(plan_.long_row.begin(), plan_.long_row.end()), longer);
    EXPECT_EQ(p_.long_rows, Index(longer.size()));
    EXPECT_EQ(p_.long_rows, Index(plan_.long_row.size()));
  }
  /// Rows of what is left over, by pieces of the cells.
  void rows_of_pieces(Index pieces, const std::function<Index(Index)>& first) {
    rows();
    EXPECT_NEAR(plan_.report.remainder_fraction, p_.faces ? 0.5 * double(plan_.entry.size()) / p_.faces : 0, 1e-15);
    if (p_.rows == 0) {
      EXPECT_EQ(p_.row, nullptr);
      return;
    }
    ASSERT_EQ(Index(plan_.row.size()), pieces + 1);
    EXPECT_EQ(p_.row[0], 0);
    EXPECT_EQ(p_.row[pieces], p_.rows);
    for (Index t = 0; t < pieces; ++t)
      for (Index k = p_.row[t]; k < p_.row[t + 1]; ++k) {
        EXPECT_GE(p_.row_cell[k], first(t));
        EXPECT_LT(p_.row_cell[k], first(t + 1));
      }
  }

  void slices() {
    constexpr Index width = FacePlan::slice;
    ASSERT_EQ(p_.slices, (p_.cells + width - 1) / width);
    EXPECT_EQ(p_.loose, 0);
    for (Index c = 0; c < p_.cells; ++c) {
      const Index k = c / width, lane = c % width;
      const FacePlan::Slice s = p_.slice_of[k];
      bool ended = false;
      for (Index slot = 0; slot < std::max(s.slots, FacePlan::first_slots); ++slot)
        ASSERT_LE(s.entry(k, slot) + width, Index(plan_.near.size()));
      // The first slots may be looked at without asking how many there are.
      for (Index slot = s.slots; slot < FacePlan::first_slots; ++slot)
        EXPECT_EQ(p_.near[s.entry(k, slot) + lane].face, FacePlan::no_face);
      for (Index slot = 0; slot < s.slots; ++slot) {
        const FacePlan::Near near = p_.near[s.entry(k, slot) + lane];
        if (near.face == FacePlan::no_face) {
          EXPECT_GE(slot, p_.straight[c]);
          ended = true;
          continue;
        }
        EXPECT_FALSE(ended) << "a face after the last of cell " << c;
        Index f = s.face + near.face - FacePlan::face_back, other = width * k + near.cell - FacePlan::cell_back;
        if (near.face == FacePlan::is_far) {
          ASSERT_LT(s.far + near.cell, Index(plan_.far.size()));
          f = p_.far[s.far + near.cell].face;
          other = p_.far[s.far + near.cell].other;
          ++far_;
        }
        if (slot < p_.straight[c])
          adds_to_owner(f, c, other);
        else
          adds_to_neighbour(f, other, c);
      }
    }
    EXPECT_EQ(far_, Index(plan_.far.size()));
    rows_of_pieces(p_.slices, [&](Index k) { return std::min(p_.cells, k * width); });
    every_face_once();
    // Faces stand by the slices of their lower cells.
    for (std::size_t f = 1; f < owner_.size(); ++f)
      EXPECT_LE(std::min(owner_[f - 1], neighbour_[f - 1]) / width, std::min(owner_[f], neighbour_[f]) / width);
  }

  void tiles() {
    ASSERT_EQ(Index(plan_.tile_cell.size()), p_.tiles + 1);
    ASSERT_EQ(Index(plan_.tile_face.size()), p_.tiles + 1);
    EXPECT_EQ(p_.tile_cell[0], 0);
    EXPECT_EQ(p_.tile_cell[p_.tiles], p_.cells);
    EXPECT_EQ(p_.tile_face[0], 0);
    EXPECT_EQ(p_.tile_face[p_.tiles], p_.loose);
    Index most = 0;
    for (Index t = 0; t < p_.tiles; ++t) most = std::max(most, p_.tile_cell[t + 1] - p_.tile_cell[t]);
    EXPECT_EQ(p_.most_cells, most);
    EXPECT_LE(most, tuning_.block_cells);
    Index cut = 0;
    tile_.resize(std::size_t(p_.cells));
    for (Index t = 0; t < p_.tiles; ++t)
      std::fill(tile_.begin() + p_.tile_cell[t], tile_.begin() + p_.tile_cell[t + 1], t);
    for (std::size_t f = 0; f < owner_.size(); ++f)
      cut += tile_[std::size_t(owner_[f])] != tile_[std::size_t(neighbour_[f])];
    EXPECT_NEAR(plan_.report.cut_fraction, p_.faces ? double(cut) / p_.faces : 0, 1e-15);
    if (tuning_.parcels) {
      ASSERT_EQ(Index(plan_.parcel_at.size()), p_.tiles + 1);
      EXPECT_EQ(p_.parcel_at[p_.tiles], Index(plan_.parcel.size()));
      EXPECT_GE(p_.stride, most);
      EXPECT_EQ(p_.stride & (p_.stride - 1), 0);
      EXPECT_EQ(p_.cut, nullptr);
    }
    for (Index t = 0; t < p_.tiles; ++t) tuning_.parcels ? parcel(t) : within_by_rows(t);
    if (p_.strategy == FaceStrategy::tiles) {
      EXPECT_EQ(p_.classes, 0);
      EXPECT_TRUE(plan_.report.orders.empty());
      if (!tuning_.parcels) cuts();
    } else {
      pairs();
    }
    rows_of_pieces(p_.tiles, [&](Index t) { return p_.tile_cell[t]; });
    every_face_once();
  }

  /// By lower cells: row by row where these are all owners; else strip by strip with both cells.
  void within_by_rows(Index t) {
    Index f = p_.tile_face[t];
    const Index first = p_.tile_cell[t], last = p_.tile_cell[t + 1], end = p_.tile_face[t + 1];
    const bool in_rows = std::equal(owner_.begin(), owner_.end(), neighbour_.begin(), std::less<>());
    ASSERT_EQ(p_.count != nullptr, in_rows);
    if (in_rows) {
      for (Index c = first; c < last; ++c)
        for (const Index row_end = f + p_.count[c]; f < row_end; ++f) {
          EXPECT_GT(p_.step[f], 0);
          EXPECT_LT(c + p_.step[f], last);
          adds_to_both(f, c, c + p_.step[f]);
        }
      EXPECT_EQ(f, end) << "tile " << t;
      return;
    }
    const Index* strip_end = p_.strip_end + FacePlan::first_strip(t, first);
    for (Index strip = 0; strip < last - first; strip += FacePlan::strip) {
      for (const Index to = p_.tile_face[t] + *strip_end++; f < to; ++f) {
        const Index owner = p_.within[f].owner, neighbour = p_.within[f].neighbour;
        EXPECT_EQ(std::min(owner, neighbour) / FacePlan::strip, strip / FacePlan::strip);
        EXPECT_LT(std::max(owner, neighbour), strip + p_.reach);
        EXPECT_LT(first + std::max(owner, neighbour), last);
        adds_to_both(f, first + owner, first + neighbour);
      }
    }
    EXPECT_EQ(f, end) << "tile " << t;
  }

  /// Tile t's parcel: no place is written twice, and a cell's own are those that it adds up.
  void parcel(Index t) {
    ASSERT_LT(p_.parcel_at[t], p_.parcel_at[t + 1]);
    ASSERT_LE(p_.parcel_at[t + 1] - p_.parcel_at[t], p_.most_units);
    const auto& parcel = *reinterpret_cast<const FacePlan::Parcel*>(p_.parcel + p_.parcel_at[t]);
    const Index first = p_.tile_cell[t];
    ASSERT_EQ(parcel.first_cell, first);
    ASSERT_EQ(parcel.cells, p_.tile_cell[t + 1] - first);
    ASSERT_EQ(parcel.first_face, p_.tile_face[t]);
    const Index with_cuts = p_.tile_face[t + 1] - p_.tile_face[t];
    ASSERT_LE(parcel.faces, with_cuts);
    EXPECT_TRUE(p_.strategy == FaceStrategy::tiles || parcel.faces == with_cuts);
    for (Index f = parcel.first_face + parcel.faces; f < p_.tile_face[t + 1]; ++f) {
      const auto cells = std::minmax({owner_[std::size_t(f)], neighbour_[std::size_t(f)]});
      EXPECT_EQ(tile_[std::size_t(cells.first)], t);
      EXPECT_GT(tile_[std::size_t(cells.second)], t);
    }
    ASSERT_LE(reinterpret_cast<const unsigned char*>(parcel.arrivals() + parcel.cells),
              reinterpret_cast<const unsigned char*>(p_.parcel + p_.parcel_at[t + 1]));
    std::set<int> written;
    std::vector<int> sums(std::size_t(parcel.cells), 0);
    const auto cell_at = [&](int place) {
      EXPECT_TRUE(written.insert(place).second) << "place " << place << " of tile " << t << " is written twice";
      const Index cell = place % p_.stride, slot = place / p_.stride;
      if (cell >= parcel.cells) throw std::runtime_error("a place of no cell");
      EXPECT_LT(slot, p_.slots);
      EXPECT_LT(slot, parcel.arrivals()[cell]);
      ++sums[std::size_t(cell)];
      return first + cell;
    };
    for (Index k = 0; k < parcel.faces; ++k) {
      const FacePlan::Places at = parcel.places()[k];
      const Index owner = cell_at(at.owner), neighbour = cell_at(at.neighbour);
      adds_to_both(parcel.first_face + k, owner, neighbour);
    }
    EXPECT_TRUE(parcel.shared == 0 || p_.strategy == FaceStrategy::tiles);
    for (Index k = 0; k < parcel.shared; ++k) {
      const FacePlan::Shared e = parcel.face_shared()[k];
      ASSERT_LT(e.run, parcel.runs);
      const FacePlan::Run run = parcel.run()[e.run];
      const bool turned = e.turned_place & 0x8000;
      cut_face({turned ? ~(run.face + k) : run.face + k, run.cell + e.cell}, cell_at(e.turned_place & 0x7fff), t);
    }
    if (parcel.shared == 0 && parcel.faces > 0) {  // one that may be looked at
      const FacePlan::Shared e = parcel.face_shared()[0];
      ASSERT_EQ(e.run, 0);
      is_face(parcel.run()[0].face, first + e.turned_place, parcel.run()[0].cell + e.cell);
    }
    for (const int in_cell : sums) EXPECT_LE(in_cell * p_.stride, std::max(tuning_.places, p_.stride));
    ASSERT_EQ(parcel.touched, p_.touched ? p_.touched[t + 1] - p_.touched[t] : 0);
    for (Index k = 0; k < parcel.touched; ++k) {
      EXPECT_EQ(cell_at(parcel.touched_place()[k]), p_.touched_cell[parcel.first_touched + k]);
      EXPECT_EQ(parcel.first_touched, p_.touched[t]);
    }
    ASSERT_EQ(parcel.rows, p_.row ? p_.row[t + 1] - p_.row[t] : 0);
    for (Index k = 0; k < parcel.rows; ++k) {
      EXPECT_EQ(cell_at(parcel.row_place()[k]), p_.row_cell[parcel.first_row + k]);
      EXPECT_EQ(parcel.first_row, p_.row[t]);
    }
    for (Index c = 0; c < parcel.cells; ++c) EXPECT_EQ(int(parcel.arrivals()[c]), sums[std::size_t(c)]);
  }

  /// A face that tile t shares with another, as cell c of it sees it.
  void cut_face(const FacePlan::Cut& cut, Index c, Index t) {
    EXPECT_EQ(tile_[std::size_t(c)], t);
    EXPECT_NE(tile_[std::size_t(cut.other)], t) << "a face within the tile";
    adds_by(cut, c);
  }

  /// On the host: faces that two tiles share.
  void cuts() {
    ASSERT_EQ(Index(plan_.cut_of.size()), p_.tiles + 1);
    EXPECT_EQ(p_.cut_of[0], 0);
    for (Index t = 0; t < p_.tiles; ++t)
      for (Index e = p_.cut_of[t]; e < p_.cut_of[t + 1]; ++e) cut_face(p_.cut[e], p_.tile_cell[t] + p_.cut_cell[e], t);
    EXPECT_EQ(p_.cut_of[p_.tiles], Index(plan_.cut.size()));
  }

  /// Pairs of tiles, class by class.
  void pairs() {
    EXPECT_EQ(p_.cut, nullptr);
    ASSERT_EQ(Index(plan_.class_pair.size()), p_.classes + 1);
    EXPECT_EQ(p_.class_pair[0], 0);
    EXPECT_EQ(p_.class_pair[p_.classes], Index(plan_.pair_slot.size()) - 1);
    EXPECT_EQ(p_.slot_face[0], p_.loose);
    EXPECT_EQ(plan_.pair_slot.back(), Index(plan_.slot_face.size()) - 1);
    std::set<std::pair<Index, Index>> seen;
    std::set<int> orders{0};
    for (Index k = 0; k < p_.classes; ++k) {
      EXPECT_LT(p_.class_pair[k], p_.class_pair[k + 1]) << "a class of nothing";
      std::set<Index> of_class;
      for (Index pair = p_.class_pair[k]; pair < p_.class_pair[k + 1]; ++pair) {
        const Index first = p_.slot_face[p_.pair_slot[pair]];
        const auto tiles = tiles_of(first);
        EXPECT_LT(tiles.first, tiles.second);
        EXPECT_TRUE(seen.insert(tiles).second) << "a pair of tiles comes twice";
        orders.insert(int(tiles.second - tiles.first));
        EXPECT_TRUE(of_class.insert(tiles.first).second) << "class " << k << " meets tile " << tiles.first << " twice";
        EXPECT_TRUE(of_class.insert(tiles.second).second)
            << "class " << k << " meets tile " << tiles.second << " twice";
        for (Index s = p_.pair_slot[pair]; s < p_.pair_slot[pair + 1]; ++s) {
          met_.begin();
          EXPECT_LT(p_.slot_face[s], p_.slot_face[s + 1]) << "a slot of nothing";
          for (Index f = p_.slot_face[s]; f < p_.slot_face[s + 1]; ++f) {
            const Index o = owner_[std::size_t(f)], n = neighbour_[std::size_t(f)];
            EXPECT_EQ(tiles_of(f), tiles) << "face " << f << " of another pair";
            EXPECT_FALSE(met_.again(o)) << "slot " << s;
            EXPECT_FALSE(met_.again(n)) << "slot " << s;
            accumulates(p_.pair_cells[f - p_.loose], o, n);
            adds_to_both(f, o, n);
          }
        }
      }
    }
    EXPECT_EQ(std::set<int>(plan_.report.orders.begin(), plan_.report.orders.end()), orders);
    EXPECT_EQ(Index(plan_.pair_cells.size()), plan_.slot_face.back() - p_.loose);
    // Accumulators: one for each cell that has any, by tiles.
    EXPECT_EQ(Index(plan_.touched_cell.size()), p_.touched_cells);
    EXPECT_EQ(std::set<Index>(plan_.touched_cell.begin(), plan_.touched_cell.end()).size(), plan_.touched_cell.size());
    EXPECT_EQ(p_.touched[p_.tiles], p_.touched_cells);
    for (Index t = 0; t < p_.tiles; ++t)
      for (Index k = p_.touched[t]; k < p_.touched[t + 1]; ++k) EXPECT_EQ(tile_[std::size_t(p_.touched_cell[k])], t);
  }
  std::pair<Index, Index> tiles_of(Index f) const {
    return std::minmax({tile_[std::size_t(owner_[std::size_t(f)])], tile_[std::size_t(neighbour_[std::size_t(f)])]});
  }
  void accumulates(const FacePlan::Accumulators& a, Index o, Index n) const {
    ASSERT_LT(std::max(a.owner, a.neighbour), p_.touched_cells);
    EXPECT_EQ(p_.touched_cell[a.owner], o);
    EXPECT_EQ(p_.touched_cell[a.neighbour], n);
  }

  const PlanData& plan_;
  const FacePlan& p_;
  const FaceTuning& tuning_;
  std::vector<Index> owner_, neighbour_;  // of the plan's faces
  std::vector<int> by_owner_, by_neighbour_;
  std::vector<Index> tile_;  // of each cell
  Met met_;
  Index far_ = 0;
};

}  // namespace krilu::test
