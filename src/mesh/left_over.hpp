// SPDX-License-Identifier: Apache-2.0
// What fits none of a strategy's classes: a row for each cell that has something left over, for the main core.
#pragma once

#include <span>
#include <vector>

#include "mesh/face_plan.hpp"

namespace krilu::mesh {

/// A face of a cell, as FacePlan::entry has it.
struct LeftOver {
  Index cell;
  FacePlan::Cut entry;
};

/// Fills rows of the plan, in the order of cells. Rows are counted by pieces of the cells: piece t holds cells
/// pieces[t] .. pieces[t+1]-1. Nothing where nothing is left.
void put_left_over(PlanData& plan, std::span<const Index> pieces, const std::vector<LeftOver>& left, Index long_row);

}  // namespace krilu::mesh
