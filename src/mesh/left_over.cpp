// SPDX-License-Identifier: Apache-2.0
#include "mesh/left_over.hpp"

#include <numeric>

namespace krilu::mesh {

void put_left_over(PlanData& plan, std::span<const Index> pieces, const std::vector<LeftOver>& left, Index long_row) {
  if (left.empty()) return;
  std::vector<Index> next(std::size_t(plan.view.cells) + 1, 0);
  for (const LeftOver& l : left) ++next[std::size_t(l.cell) + 1];
  plan.row = {0};
  plan.row_entry = {0};
  for (std::size_t t = 0; t + 1 < pieces.size(); ++t) {
    for (Index c = pieces[t]; c < pieces[t + 1]; ++c) {
      const Index count = next[std::size_t(c) + 1];
      if (count == 0) continue;
      if (count >= long_row) plan.long_row.push_back(Index(plan.row_cell.size()));
      plan.row_cell.push_back(c);
      plan.row_entry.push_back(plan.row_entry.back() + count);
    }
    plan.row.push_back(Index(plan.row_cell.size()));
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  plan.entry.resize(left.size());
  for (const LeftOver& l : left) plan.entry[std::size_t(next[std::size_t(l.cell)]++)] = l.entry;
  plan.view.rows = Index(plan.row_cell.size());
}

}  // namespace krilu::mesh
