// SPDX-License-Identifier: Apache-2.0
// Plans of face loops, array by array, as krilu/face_plan.hpp says what they mean: what runs together never adds to one
// cell, for hosts and GPUs; every face stands in exactly one place, or once for each of its cells; addresses lead to
// the face and the cell that are meant; and diagonals are chosen as the options say. Loops themselves are tested
// elsewhere.
#include "mesh/face_plan.hpp"

#include <functional>
#include <set>
#include <stdexcept>
#include <tuple>

#include "face_meshes.hpp"
#include "mesh/cell_blocks.hpp"

namespace krilu::test {

using namespace mesh;
namespace {

constexpr FaceStrategy all_strategies[] = {FaceStrategy::slices, FaceStrategy::diagonal, FaceStrategy::tiles,
                                           FaceStrategy::gather, FaceStrategy::colours,  FaceStrategy::atomics,
                                           FaceStrategy::serial};

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

FaceTuning tuned(Index block, bool parcels) {
  FaceTuning tuning{};
  tuning.block_cells = block;
  tuning.parcels = parcels;
  return tuning;
}

PlanData plan_for(const Mesh& mesh, FaceStrategy strategy, const FaceTuning& tuning, Renumber how = Renumber::none,
                  int orders = -1) {
  const exec::Host host(2);
  return face_plan(host, mesh, cell_blocks(host, mesh, tuning.block_cells, how), strategy, tuning, orders);
}

/// Checks a plan; returns how many faces stand far.
Index expect_sound(const NamedMesh& on, FaceStrategy strategy, const FaceTuning& tuning, Renumber how = Renumber::none,
                   int orders = -1) {
  SCOPED_TRACE(on.name + ": " + name_of(strategy) + ", renumbering " + renumber_names()[std::size_t(how)] +
               (tuning.parcels ? ", parcels, blocks of " : ", blocks of ") + std::to_string(tuning.block_cells) +
               ", orders " + std::to_string(orders));
  const PlanData plan = plan_for(on.mesh, strategy, tuning, how, orders);
  Checked checked(on.mesh, plan, tuning);
  checked.all();
  return checked.far();
}

const std::vector<NamedMesh>& meshes() {
  static const std::vector<NamedMesh> all = small_meshes();
  return all;
}

TEST(FacePlan, NothingThatRunsTogetherAddsToOneCellAndEveryFaceIsThereOnce) {
  for (const NamedMesh& on : meshes())
    for (const FaceStrategy strategy : all_strategies)
      for (const Renumber how : {Renumber::none, Renumber::growth, Renumber::metis})
        for (const Index block : {1, 5, 33, 100})
          for (const bool parcels : {false, true}) {
            expect_sound(on, strategy, tuned(block, parcels), how);
            if (::testing::Test::HasFailure()) return;
          }
}

TEST(FacePlan, LargerMeshesAreSoundToo) {
  const std::vector<NamedMesh> larger{{"tetrahedra", generate_mesh("mesh:tetrahedra:9x8x8:random")},
                                      {"star", star(10001, 37)},
                                      {"star, hub last", star(10001, 10000)},
                                      {"fan", fan(2000)},
                                      {"random pairs", random_pairs(2000, 20000, 3)}};
  for (const NamedMesh& on : larger)
    for (const FaceStrategy strategy : all_strategies)
      for (const Index block : {600, 2048, 20000})
        for (const bool parcels : {false, true})
          for (const Renumber how : {Renumber::none, Renumber::growth}) {
            expect_sound(on, strategy, tuned(block, parcels), how);
            if (::testing::Test::HasFailure()) return;
          }
}

// Few slots and places: what fits none is left over, on either side of a face.
TEST(FacePlan, WhatFitsNowhereIsLeftOver) {
  for (const NamedMesh& on : meshes())
    for (const FaceStrategy strategy :
         {FaceStrategy::slices, FaceStrategy::tiles, FaceStrategy::diagonal, FaceStrategy::gather})
      for (const bool parcels : {false, true})
        for (const int most : {1, 2, 3}) {
          FaceTuning tuning = tuned(20, parcels);
          tuning.row = tuning.orders = most;
          tuning.places = most * 32;  // a power of two that blocks of 20 fit
          tuning.long_row = 3;
          expect_sound(on, strategy, tuning, Renumber::growth);
          if (::testing::Test::HasFailure()) return;
        }
  FaceTuning tuning = tuned(20, true);
  tuning.row = 1;
  tuning.places = 32;
  for (const FaceStrategy strategy : {FaceStrategy::slices, FaceStrategy::tiles, FaceStrategy::diagonal})
    EXPECT_GT(plan_for(random_pairs(150, 900, 5), strategy, tuning).report.remainder_fraction, 0.01)
        << name_of(strategy);
}

TEST(FacePlan, SlicesReachFarCellsAndFaces) {
  const NamedMesh on{"boxes at random", generate_mesh("mesh:box:50x45x40:random")};
  const Index far = expect_sound(on, FaceStrategy::slices, tuned(2000, true));
  EXPECT_GT(far, on.mesh.faces() / 10);
  EXPECT_LT(far, 2 * on.mesh.faces());
  // Every cell beyond is as far as it gets from the first: 32768 cells back and 32767 forth are near.
  for (const Index away : {32736, 32767, 32768, 32769, 40000}) {
    std::vector<std::pair<Index, Index>> faces;
    for (Index c = 0; c < 90; ++c) faces.emplace_back(c, away + c);
    expect_sound({"pairs " + std::to_string(away) + " apart", graph(away + 90, faces)}, FaceStrategy::slices,
                 tuned(500, true));
  }
  // Faces of a slice number from its first: 5533 forth are near, and what would be 5534 and 5535 has other meanings. A
  // face so far forth is among a cell's first because the cell owns no earlier one.
  constexpr Index each = 200, not_owned = 170;
  std::vector<std::pair<Index, Index>> faces;
  for (Index c = 0; c < FacePlan::slice; ++c)
    for (Index k = 0; k < each; ++k) {
      const Index higher = FacePlan::slice + each * c + k;
      faces.push_back(k < not_owned ? std::pair(higher, c) : std::pair(c, higher));
    }
  const Mesh many = graph(FacePlan::slice * (each + 1), faces);
  EXPECT_GT(expect_sound({"many faces", many}, FaceStrategy::slices, tuned(500, true)), 0);
}

TEST(FacePlan, RegularMeshesLeaveNothingOver) {
  for (const char* text : {"mesh:box:16x16x16:random", "mesh:tetrahedra:8x8x8", "mesh:triangles:30x30:random"}) {
    const Mesh m = generate_mesh(text);
    for (const bool parcels : {false, true})
      for (const FaceStrategy strategy : {FaceStrategy::slices, FaceStrategy::tiles})
        EXPECT_EQ(plan_for(m, strategy, tuned(512, parcels), Renumber::bisection).report.remainder_fraction, 0)
            << text << ", " << name_of(strategy);
  }
}

/// The definition, face by face: orders by which blocks differ, and how many pairs of blocks each has.
std::vector<int> dense_orders(const Mesh& mesh, const PlanData& plan, const FaceTuning& tuning, int orders) {
  std::vector<Index> tile(static_cast<std::size_t>(mesh.cells));  // by the mesh's numbers
  for (Index t = 0; t < plan.view.tiles; ++t)
    for (Index k = plan.tile_cell[std::size_t(t)]; k < plan.tile_cell[std::size_t(t) + 1]; ++k)
      tile[std::size_t(plan.cell_order[std::size_t(k)])] = t;
  std::vector<int> faces(std::size_t(plan.view.tiles), 0);
  for (std::size_t f = 0; f < mesh.owner.size(); ++f)
    ++faces[std::size_t(std::abs(tile[std::size_t(mesh.owner[f])] - tile[std::size_t(mesh.neighbour[f])]))];
  const int cut = mesh.faces() - (faces.empty() ? 0 : faces[0]);
  std::vector<std::pair<int, int>> chosen;  // -faces, order
  for (int k = 1; k < plan.view.tiles; ++k) {
    const double a_pair = double(faces[std::size_t(k)]) / (plan.view.tiles - k);
    const double main = double(faces[0]) / plan.view.tiles;
    const bool dense = a_pair >= 1 && a_pair >= tuning.density * main && faces[std::size_t(k)] >= tuning.worth * cut;
    if (faces[std::size_t(k)] > 0 && (orders < 0 ? dense : k <= orders)) chosen.emplace_back(-faces[std::size_t(k)], k);
  }
  std::sort(chosen.begin(), chosen.end());
  if (orders < 0 && int(chosen.size()) > tuning.orders) chosen.resize(std::size_t(tuning.orders));
  std::vector<int> all{0};
  for (const auto& [n, k] : chosen) all.push_back(k);
  std::sort(all.begin(), all.end());
  return all;
}

TEST(FacePlan, LatticesAreToldFromOtherMeshes) {
  for (const auto& [name, lattice] :
       {std::pair("mesh:box:20x20x20:random", true), {"mesh:tetrahedra:12x12x12:random", false}}) {
    SCOPED_TRACE(name);
    const PlanData plan = plan_for(generate_mesh(name), FaceStrategy::tiles, tuned(2000, false), Renumber::bisection);
    ASSERT_NE(plan.view.within, nullptr);
    EXPECT_EQ(plan.view.lattice, lattice);
    EXPECT_GT(plan.view.reach, FacePlan::strip);
    EXPECT_LT(plan.view.reach, plan.view.most_cells);
  }
}

TEST(FacePlan, DenseDiagonalsAreChosenOrThoseAskedFor) {
  bool several = false, capped = false;
  for (const NamedMesh& on : meshes())
    for (const Renumber how : {Renumber::none, Renumber::growth})
      for (const int most : {16, 2})
        for (const double density : {0.004, 0.3})
          for (const int orders : {-1, 0, 1, 4, 100}) {
            FaceTuning tuning = tuned(20, false);
            tuning.orders = most;
            tuning.density = density;
            expect_sound(on, FaceStrategy::diagonal, tuning, how, orders);
            const PlanData plan = plan_for(on.mesh, FaceStrategy::diagonal, tuning, how, orders);
            const std::vector<int> due = dense_orders(on.mesh, plan, tuning, orders);
            ASSERT_EQ(plan.report.orders, due) << on.name << ", orders " << orders << ", at most " << most;
            several |= orders < 0 && due.size() > 3;
            capped |= orders < 0 && most == 2 && due.size() == 3;
            if (orders == 0) {
              EXPECT_EQ(plan.view.classes, 0);
            }
            if (orders == 100 && plan.view.tiles <= 100) {
              EXPECT_EQ(plan.report.remainder_fraction, 0) << on.name;
            }
          }
  EXPECT_TRUE(several);
  EXPECT_TRUE(capped);
}

TEST(FacePlan, IsTheSameForAnyNumberOfThreads) {
  // Buckets are shared by threads above 100 000 faces.
  const Mesh m = generate_mesh("mesh:tetrahedra:22x22x22:shuffled");
  for (const FaceStrategy strategy : all_strategies)
    for (const bool parcels : {false, true}) {
      const FaceTuning tuning = tuned(700, parcels);
      std::vector<std::vector<char>> first;
      for (const int threads : {1, 2, 3}) {
        const exec::Host host(threads);
        PlanData plan =
            face_plan(host, m, cell_blocks(host, m, tuning.block_cells, Renumber::bisection), strategy, tuning, -1);
        std::vector<std::vector<char>> bytes;
        const auto keep = [&](const auto& buffer) {
          const char* const data = reinterpret_cast<const char*>(buffer.data());
          bytes.emplace_back(data, data + buffer.size() * sizeof(buffer[0]));
        };
        plan.each([&](const auto& buffer, auto&) { keep(buffer); });
        keep(plan.cell_order), keep(plan.face_order), keep(plan.class_pair), keep(plan.colour_face);
        if (threads == 1) first = bytes;
        EXPECT_TRUE(bytes == first) << name_of(strategy) << ", " << threads << " threads";
      }
    }
}

TEST(FacePlan, BytesAreThoseOfItsArrays) {
  const Mesh m = generate_mesh("mesh:tetrahedra:6x6x6");
  for (const FaceStrategy strategy : all_strategies)
    for (const bool parcels : {false, true}) {
      PlanData plan = plan_for(m, strategy, tuned(100, parcels));
      std::size_t bytes = 0;
      plan.each([&](const auto& buffer, const auto& pointer) {
        bytes += buffer.size() * sizeof(buffer[0]);
        EXPECT_TRUE(pointer == (buffer.empty() ? nullptr : buffer.data()));
      });
      EXPECT_EQ(plan.report.bytes, bytes) << name_of(strategy);
    }
}

TEST(FacePlan, NamesLeadToStrategiesAndBack) {
  ASSERT_EQ(face_strategy_names().size(), std::size(all_strategies));
  for (const FaceStrategy s : all_strategies) EXPECT_EQ(strategy_by_name(name_of(s)), s);
  EXPECT_EQ(sentence_of([] { strategy_by_name("slice"); }),
            "unknown face strategy 'slice': did you mean 'slices'? It is one of slices, diagonal, tiles, gather, "
            "colours, atomics, serial");
}

// The chooser measures on a piece: whole blocks, their cells and the faces between them, numbered anew in sequence.
TEST(FacePlan, APieceIsWholeBlocksFromTheMiddle) {
  const exec::Host host(2);
  const Mesh m = generate_mesh("mesh:box:12x10x9:random");
  for (const Renumber how : {Renumber::none, Renumber::bisection}) {
    const CellBlocks blocks = cell_blocks(host, m, 50, how);
    const Piece piece = piece_of(m, blocks, 400);
    EXPECT_NO_THROW(require_valid(piece.mesh));
    EXPECT_LE(piece.mesh.cells, 400);
    EXPECT_GT(piece.mesh.cells, 250);
    EXPECT_EQ(piece.blocks.offsets.front(), 0);
    EXPECT_EQ(piece.blocks.offsets.back(), piece.mesh.cells);
    // Its blocks are a run of the mesh's.
    const auto sizes = [](const CellBlocks& b) {
      std::vector<Index> all;
      for (Index k = 0; k < b.blocks(); ++k) all.push_back(b.offsets[std::size_t(k) + 1] - b.offsets[std::size_t(k)]);
      return all;
    };
    const std::vector<Index> whole = sizes(blocks), own = sizes(piece.blocks);
    EXPECT_NE(std::search(whole.begin(), whole.end(), own.begin(), own.end()), whole.end());
    // A quarter or so of the faces, each with both cells in it.
    EXPECT_GT(piece.mesh.faces(), 2 * piece.mesh.cells / 3);
    EXPECT_LT(piece.mesh.faces(), 3 * piece.mesh.cells);
    for (const FaceStrategy strategy : all_strategies) {
      const FaceTuning tuning = tuned(50, true);
      const PlanData plan = face_plan(host, piece.mesh, piece.blocks, strategy, tuning, -1);
      Checked(piece.mesh, plan, tuning).all();
    }
  }
  const CellBlocks blocks = cell_blocks(host, m, 50, Renumber::growth);
  EXPECT_EQ(piece_of(m, blocks, m.cells).mesh.faces(), m.faces());
  EXPECT_GE(piece_of(m, blocks, 1).mesh.cells, 1);
}

}  // namespace
}  // namespace krilu::test
