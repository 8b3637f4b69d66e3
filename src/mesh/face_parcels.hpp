// SPDX-License-Identifier: Apache-2.0
// Parcels: what the threads of a GPU have to know of a tile, in one piece (krilu/face_plan.hpp says what stands where).
//
// On an H200 slots with a barrier after each were held up by the barriers, and a loop through each cell's faces by what
// it reads twice. With a place for each sum there are two barriers a tile, a
// face is computed once, and addresses are never waited for.
#pragma once

#include <vector>

#include "mesh/face_plan.hpp"

namespace krilu::mesh {

/// Most places of one cell: a byte counts them, with those for an accumulator and for a row of the rest.
constexpr Index most_slots = 253;

/// The runs of a tile's shared faces. A run's faces have numbers next to each other, and the cells beyond stand near.
class Runs {
 public:
  static constexpr Index cells = 256, most = 256;
  /// The run of the tile's entry number k; -1 where there is no run left for it.
  int of(const FacePlan::Cut& cut, Index k) {
    const Index face = (cut.face < 0 ? ~cut.face : cut.face) - k, cell = cut.other / cells * cells;
    for (std::size_t r = all_.size(); r-- > 0;)
      if (all_[r].cell == cell && all_[r].face == face) return int(r);
    if (Index(all_.size()) == most) return -1;
    all_.push_back({cell, face});
    return int(all_.size()) - 1;
  }
  const std::vector<FacePlan::Run>& all() const { return all_; }

 private:
  std::vector<FacePlan::Run> all_;
};

/// Fills plan.parcel and what goes with it, from tiles that are arranged and all of whose faces are listed.
void make_parcels(const exec::Host& host, PlanData& plan);

}  // namespace krilu::mesh
