// SPDX-License-Identifier: Apache-2.0
// Plans of face loops, array by array, as krilu/face_plan.hpp says what they mean: what runs together never adds to one
// cell, for hosts and GPUs; every face stands in exactly one place, or once for each of its cells; addresses lead to
// the face and the cell that are meant; and diagonals are chosen as the options say. Loops themselves are tested
// elsewhere.
#include "mesh/face_plan.hpp"

#include <map>
#include <vector>

#include "checked_plan.hpp"
#include "face_meshes.hpp"
#include "mesh/cell_blocks.hpp"

namespace krilu::test {

using namespace mesh;
namespace {

constexpr FaceStrategy all_strategies[] = {FaceStrategy::slices, FaceStrategy::diagonal, FaceStrategy::tiles,
                                           FaceStrategy::gather, FaceStrategy::colours,  FaceStrategy::atomics,
                                           FaceStrategy::serial};

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
                                      {"random pairs", random_pairs(2000, 20000, 3)},
                                      {"tiles in parts", generate_mesh("mesh:box:33x32x32:random")}};
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
  EXPECT_EQ(refusal([] { strategy_by_name("slice"); }),
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
    // The same by hand, for each run of as many blocks: one of them it is.
    const auto by_hand = [&](Index first) {
      const auto from = blocks.order.begin() + blocks.offsets[std::size_t(first)];
      const std::vector<Index> cells(from, blocks.order.begin() + blocks.offsets[std::size_t(first) + own.size()]);
      std::map<Index, Index> number;
      for (const Index c : cells) number[c] = 0;
      Index next = 0;
      for (auto& [c, n] : number) n = next++;
      std::vector<Index> all;
      for (const Index c : cells) all.push_back(number[c]);
      for (std::size_t f = 0; f < m.owner.size(); ++f)
        if (number.contains(m.owner[f]) && number.contains(m.neighbour[f]))
          all.insert(all.end(), {number[m.owner[f]], number[m.neighbour[f]]});
      return all;
    };
    std::vector<Index> got(piece.blocks.order.begin(), piece.blocks.order.end());
    for (std::size_t f = 0; f < piece.mesh.owner.size(); ++f)
      got.insert(got.end(), {piece.mesh.owner[f], piece.mesh.neighbour[f]});
    bool is_one = false;
    for (Index first = 0; first + Index(own.size()) <= blocks.blocks(); ++first) is_one |= by_hand(first) == got;
    EXPECT_TRUE(is_one);
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
