// SPDX-License-Identifier: Apache-2.0
// How a loop over the faces of a mesh runs without two of them adding to a cell at the same time: the result of an
// analysis of the mesh, for hosts and GPUs alike. Callers meet Face, Both and FaceLoopOptions; the rest is for
// face_loops.hpp and face_loops.cuh.
//
// Paper: unstructured-mesh computing on the SW26010 (2022), Algorithms 2 to 5, N-order diagonal colouring: cells in
// blocks; faces sorted by how far apart the blocks of their two cells stand (their order: 0 within a block); within an
// order blocks that share cells never run together; what is too sparse is left to the main core.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "krilu/kernel.hpp"
#include "krilu/types.hpp"

namespace krilu {

/// What a loop tells of the face that it is at: numbers in the loops' own order, by which fields are read and written.
struct Face {
  Index id, owner, neighbour;
};

/// The state of loops whose faces need nothing of their cells.
struct Nothing {};

/// What a face adds to its two cells.
template <class V>
struct Both {
  V owner, neighbour;
};

struct FaceLoopOptions {
  /// auto (measured: the fastest), slices (each cell through its faces, addressed in 16 bits), diagonal (N-order
  /// diagonal colouring), tiles (blocks that compute what they cut twice), gather (each cell through its faces),
  /// colours (of single faces), atomics, serial (one thread, the mesh's own order).
  std::string strategy = "auto";
  /// auto (bisection where the mesh has geometry, else growth), none, bisection, growth, rcm, metis: how cells come to
  /// stand in blocks.
  std::string renumber = "auto";
  /// Most cells in a block; 0: from the fast memory (second-level cache; shared memory). Beyond 65536 tiles and
  /// diagonal take 65536, which 16 bits count.
  Index block_cells = 0;
  /// Orders beside the main diagonal that blocks work on; the rest is the main core's. -1: those dense enough.
  int orders = -1;
  int threads = 0;  // of the host; 0: all
};

enum class FaceStrategy { slices, diagonal, tiles, gather, colours, atomics, serial };

/// A plan as the loops read it: pointers into memory of the host or of a GPU. Faces 0 .. loose-1 join cells of one tile
/// and stand tile after tile; in strategy tiles on a GPU those that a tile shares with later ones follow them. Those
/// from `listed` on have their cells in `owner` and `neighbour`, face f at f - listed: loose ones on the host, all on a
/// GPU.
struct FacePlan {
  FaceStrategy strategy = FaceStrategy::serial;
  Index cells = 0, faces = 0, loose = 0, listed = 0;
  const Index *owner = nullptr, *neighbour = nullptr;

  // Tiles: tile t holds cells tile_cell[t] .. tile_cell[t+1]-1 and faces tile_face[t] .. tile_face[t+1]-1.
  Index tiles = 0, most_cells = 0;
  const Index *tile_cell = nullptr, *tile_face = nullptr;
  // On the host a tile's faces stand by their lower cells: once a cell's turn has come its sum is complete, so that
  // what has to stay in cache is the distance between neighbours, not the tile. Where the lower cell is every face's
  // owner, count[c] faces have the lower cell c, and `step` says how far behind it the other stands. Where cells were
  // renumbered owners stand before and behind, which no core could guess: there step and count are null, each face has
  // both cells, counted from the tile's first, and faces stand in strips, of `strip` lower cells each, strip_end[s]
  // being the end of strip s, counted from its tile's first face.
  const std::uint16_t* step = nullptr;
  const std::uint8_t* count = nullptr;
  struct Within {
    std::uint16_t owner, neighbour;
  };
  const Within* within = nullptr;
  static constexpr Index strip = 32;
  const Index* strip_end = nullptr;
  Index reach = 0;       // a strip's faces have cells from the strip's first on, fewer than so many
  bool lattice = false;  // most cells stand from their neighbours as the cells before them do
  /// The number of a tile's first strip; no two tiles share any.
  static constexpr Index first_strip(Index tile, Index first_cell) { return first_cell / strip + tile; }

  struct Cut {
    Index face;   // or ~face where the cell at work is the face's neighbour
    Index other;  // the cell beyond
  };

  // On a GPU a tile's faces are computed by any threads, and each leaves what it adds to a cell in a place of its own,
  // of `slots` that the cell has in shared memory; once all have, each cell adds up its own. Place = slot * stride +
  // the cell, counted from the tile's first; stride is a power of two. What a tile's threads have to know of it is one
  // piece of memory, its parcel, which can be on its way while the tile before is at work.
  struct alignas(4) Places {
    std::uint16_t owner, neighbour;
  };
  // A face that the tile shares with another, entry k: it is face run.face + k, and the cell beyond run.cell + cell.
  struct Run {
    Index cell, face;
  };
  struct alignas(4) Shared {
    std::uint16_t turned_place;  // the highest bit: the tile's cell is the face's neighbour
    std::uint8_t cell, run;
  };
  struct alignas(16) Parcel {
    Index first_cell, cells, first_face, faces;
    Index runs, shared, first_touched, touched, first_row, rows, unused[2];
    // Behind it: runs and shared faces (where there are none, one that may be looked at: the first within the tile); of
    // each face within the tile, of each accumulator (strategy diagonal) and of each row of the rest, where their sums
    // go; of each cell, how many places it has.
    KRILU_INLINE const Run* run() const { return reinterpret_cast<const Run*>(this + 1); }
    KRILU_INLINE const Shared* face_shared() const { return reinterpret_cast<const Shared*>(run() + kept(runs)); }
    KRILU_INLINE const Places* places() const { return reinterpret_cast<const Places*>(face_shared() + kept(shared)); }
    KRILU_INLINE const std::uint16_t* touched_place() const {
      return reinterpret_cast<const std::uint16_t*>(places() + faces);
    }
    KRILU_INLINE const std::uint16_t* row_place() const { return touched_place() + touched; }
    KRILU_INLINE const std::uint8_t* arrivals() const {
      return reinterpret_cast<const std::uint8_t*>(row_place() + rows);
    }
    KRILU_INLINE std::size_t bytes() const {
      return std::size_t(reinterpret_cast<const unsigned char*>(arrivals() + cells) -
                         reinterpret_cast<const unsigned char*>(this));
    }
    KRILU_INLINE static Index kept(Index n) { return n > 0 ? n : 1; }
  };
  struct alignas(16) Unit {
    std::uint32_t words[4];
  };
  Index slots = 0, stride = 0, most_units = 0;  // most_units: of a parcel
  const Index* parcel_at = nullptr;             // tiles + 1: that of tile t is parcel[parcel_at[t]] .. [t+1]-1
  const Unit* parcel = nullptr;

  // Strategy slices: each cell through its faces, addressed in 16 bits. Slice k is cells 32 k .. 32 k + 31; slot s of
  // lane i stands at near[slice.entry(k, s) + i] and is the cell's s-th face, of the first straight[cell] of which the
  // cell is the owner. The face is slice.face + near.face - face_back, the cell beyond 32 k + near.cell - cell_back;
  // where near.face is is_far, both stand in far[slice.far + near.cell]. Faces stand by the slices of their lower
  // cells. The first slots of all slices stand first, so that nothing has to be known to read them.
  static constexpr Index slice = 32, first_slots = 2;
  static constexpr Index face_back = 60000, cell_back = 32768;
  static constexpr std::uint16_t is_far = 65535, no_face = 65534;
  struct alignas(16) Slice {
    Index further, slots, face, far;  // further: where slot first_slots stands
    KRILU_INLINE Index entry(Index k, Index slot) const {
      return slot < first_slots ? (k * first_slots + slot) * slice : further + (slot - first_slots) * slice;
    }
  };
  Index slices = 0;
  const Slice* slice_of = nullptr;
  struct alignas(4) Near {
    std::uint16_t face, cell;
  };
  const Near* near = nullptr;
  const std::uint8_t* straight = nullptr;
  const Cut* far = nullptr;

  // Strategy tiles on the host: the faces that tile t shares with others are cut[cut_of[t]] .. cut[cut_of[t+1]-1].
  const Index* cut_of = nullptr;
  const Cut* cut = nullptr;
  const Index* cut_cell = nullptr;  // the tile's cell, counted from the tile's first

  // Strategy diagonal: pairs of tiles of order 1 and more. Those of one class share no tile. Cells that they add to
  // have accumulators: number k is of cell touched_cell[k], those of tile t are touched[t] .. touched[t+1]-1.
  Index classes = 0;
  const Index* class_pair = nullptr;                       // classes + 1, in host memory
  const Index *pair_slot = nullptr, *slot_face = nullptr;  // faces of slot s: slot_face[s] .. slot_face[s+1]-1
  struct Accumulators {
    Index owner, neighbour;
  };
  const Accumulators* pair_cells = nullptr;  // of face loose + k
  Index touched_cells = 0;
  const Index *touched = nullptr, *touched_cell = nullptr;

  // Each cell through its faces: strategy gather (all cells), and the rest of strategies diagonal and tiles, into
  // accumulators of its own. Row k is cell row_cell[k] (k itself where null); rows of tile t: row[t] .. row[t+1]-1.
  // Rows from `long_rows` on, in the order `long_row`, are shared out among many threads of a GPU.
  Index rows = 0, long_rows = 0;
  const Index *row = nullptr, *row_cell = nullptr, *row_entry = nullptr, *long_row = nullptr;
  const Cut* entry = nullptr;

  // Cells with boundary faces: row k is cell boundary_cell[k], with faces boundary_face[boundary_row[k]] and so on.
  Index boundary_rows = 0;
  const Index *boundary_cell = nullptr, *boundary_row = nullptr, *boundary_face = nullptr;

  // Strategy colours: faces colour_face[k] .. colour_face[k+1]-1 share no cell. In host memory.
  Index colours = 0;
  const Index* colour_face = nullptr;
};

/// What was chosen for a mesh and what it costs.
struct FaceLoopReport {
  std::string strategy, renumber;
  Index tiles = 0, most_cells = 0;
  double cut_fraction = 0;        // of the faces: between tiles
  double remainder_fraction = 0;  // of the faces: left to the main core
  std::vector<int> orders;        // diagonals that blocks work on, 0 among them
  std::size_t bytes = 0;          // of the plan
  double seconds = 0;             // of the analysis
  struct Candidate {
    std::string strategy;
    double milliseconds;
  };
  std::vector<Candidate> measured;   // by the chooser, on a piece of the mesh
  std::vector<Candidate> finalists;  // two, on the whole mesh, where the piece alone could not tell
};

}  // namespace krilu
