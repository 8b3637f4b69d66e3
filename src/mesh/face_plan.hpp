// SPDX-License-Identifier: Apache-2.0
// The analysis behind face loops: orders of cells and faces, and what a strategy asks for beside (krilu/face_plan.hpp
// says what the arrays mean). On the host, shared by its threads; the same for any number of them.
//
// Cost: a few passes over the faces, and within tiles over arrays that a core's cache holds.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exec/host.hpp"
#include "krilu/face_plan.hpp"
#include "krilu/mesh.hpp"
#include "mesh/cell_blocks.hpp"

namespace krilu::mesh {

/// What decides the shape of a plan, of the device that it is for.
struct FaceTuning {
  Index most_cells = 1 << 24;  // that may be asked for; a tile gets no more than TileFace::most_cells
  Index block_cells;           // most cells in a tile
  bool parcels;                // for a GPU; else faces in a sequence for one core
  Index places = 6144;         // of a parcel's tile for its faces' sums, at most; what finds none is left over
  double crowded = 0.005;      // of the sums: for so few there are no more slots
  int orders = 16;             // most diagonals beside the main one
  double worth = 0.01;         // of the faces between tiles: fewer in a diagonal do not pay for its launches
  double density = 0.004;      // a diagonal is dense from this part of the main one's faces a pair of tiles
  int row = 32;                // most faces of a cell in a slice; further ones are left over
  Index long_row = 64;         // entries from which a row is shared out among threads
};

/// A plan and the memory that it points to.
struct PlanData {
  FacePlan view;  // pointers into what follows
  FaceLoopReport report;
  Buffer<Index> cell_order, face_order;
  Buffer<Index> owner, neighbour;
  Buffer<Index> tile_cell, tile_face;
  Buffer<std::uint8_t> count;
  Buffer<FacePlan::Within> within;
  Buffer<std::uint16_t> step;
  Buffer<Index> strip_end;
  Buffer<Index> parcel_at;
  Buffer<FacePlan::Unit> parcel;
  Buffer<FacePlan::Slice> slice_of;
  Buffer<FacePlan::Near> near;
  Buffer<std::uint8_t> straight;
  Buffer<FacePlan::Cut> far;
  Buffer<Index> cut_of;
  Buffer<FacePlan::Cut> cut;
  Buffer<Index> cut_cell;
  Buffer<Index> class_pair, pair_slot, slot_face;
  Buffer<FacePlan::Accumulators> pair_cells;
  Buffer<Index> touched, touched_cell;
  Buffer<Index> row, row_cell, row_entry, long_row;
  Buffer<FacePlan::Cut> entry;
  Buffer<Index> boundary_cell, boundary_row, boundary_face;
  Buffer<Index> colour_face;

  /// f(name, buffer, pointer of the view) for each array: to measure them, or to bring them elsewhere.
  template <class F>
  void each(F f) {
    f(owner, view.owner), f(neighbour, view.neighbour), f(tile_cell, view.tile_cell), f(tile_face, view.tile_face);
    f(count, view.count), f(within, view.within), f(strip_end, view.strip_end), f(parcel_at, view.parcel_at),
        f(parcel, view.parcel);
    f(slice_of, view.slice_of);
    f(near, view.near), f(straight, view.straight), f(far, view.far);
    f(step, view.step), f(cut_of, view.cut_of), f(cut, view.cut);
    f(cut_cell, view.cut_cell), f(pair_slot, view.pair_slot), f(slot_face, view.slot_face);
    f(pair_cells, view.pair_cells), f(touched, view.touched), f(touched_cell, view.touched_cell), f(row, view.row);
    f(row_cell, view.row_cell), f(row_entry, view.row_entry), f(long_row, view.long_row), f(entry, view.entry);
    f(boundary_cell, view.boundary_cell), f(boundary_row, view.boundary_row), f(boundary_face, view.boundary_face);
  }
};

FaceStrategy strategy_by_name(const std::string& name);
const std::vector<std::string>& face_strategy_names();
const char* name_of(FaceStrategy strategy);

/// A plan for one strategy. `orders`: as FaceLoopOptions has it. Blocks are looked at by strategies tiles and diagonal;
/// the others take their cell order.
PlanData face_plan(const exec::Host& host, const Mesh& mesh, const CellBlocks& blocks, FaceStrategy strategy,
                   const FaceTuning& tuning, int orders);

/// A piece of the mesh to measure on: cells of some whole blocks in the middle, at most `most`, and the faces between
/// them. The mesh itself where it is no larger.
struct Piece {
  Mesh mesh;
  CellBlocks blocks;
};
Piece piece_of(const Mesh& mesh, const CellBlocks& blocks, Index most);

}  // namespace krilu::mesh
