// SPDX-License-Identifier: Apache-2.0
#include "mesh/face_plan_slices.hpp"

#include <algorithm>
#include <utility>

#include "mesh/left_over.hpp"

namespace krilu::mesh {

namespace {

constexpr Index slice = FacePlan::slice;

}  // namespace

Buffer<Index> by_slices(const Buffer<Index>& order, Index cells, const Buffer<Index>& a, const Buffer<Index>& b) {
  Buffer<Index> out(order.size());
  const auto lower = [&](Index f) { return std::min(a[std::size_t(f)], b[std::size_t(f)]); };
  std::vector<std::pair<Index, Index>> ranked;  // of a slice: place among the cell's faces, face
  std::size_t k = 0, put = 0;
  for (Index end = slice; k < order.size(); end = Index(std::min<std::int64_t>(cells, std::int64_t(end) + slice))) {
    ranked.clear();
    Index cell = -1, rank = 0;
    for (; k < order.size() && lower(order[k]) < end; ++k) {
      rank = lower(order[k]) == cell ? rank + 1 : 0;
      cell = lower(order[k]);
      ranked.emplace_back(rank, order[k]);
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    for (const auto& r : ranked) out[put++] = r.second;
  }
  return out;
}

void arrange_slices(const exec::Host& host, PlanData& plan, const CellFaces& around, const FaceTuning& tuning) {
  const Index cells = plan.view.cells, slices = (cells + slice - 1) / slice;
  const auto degree = [&](Index c) { return around.offsets[std::size_t(c) + 1] - around.offsets[std::size_t(c)]; };
  const auto last_of = [&](Index k) { return std::min(cells, (k + 1) * slice); };
  plan.straight.resize(std::size_t(cells));
  plan.slice_of.resize(std::size_t(slices));
  const auto each_slice = [&](auto f) {
    host.for_each_range(std::size_t(slices), [&](Index begin, Index end) {
      for (Index k = begin; k < end; ++k) f(k, plan.slice_of[std::size_t(k)]);
    });
  };
  // Where the slice's faces begin: the first that has its lower cell there.
  each_slice([&](Index k, FacePlan::Slice& s) {
    s = {0, 0, plan.view.faces, 0};
    for (Index c = k * slice; c < last_of(k); ++c) {
      s.slots = std::max(s.slots, std::min<Index>(tuning.row, degree(c)));
      for (auto e = std::size_t(around.offsets[std::size_t(c)]); e < std::size_t(around.offsets[std::size_t(c) + 1]);
           ++e)
        if (around.cell[e] > c) s.face = std::min(s.face, around.face[e]);
    }
  });
  Index entries = slices * FacePlan::first_slots * slice;
  for (FacePlan::Slice& s : plan.slice_of) {
    s.further = entries;
    entries += std::max(0, s.slots - FacePlan::first_slots) * slice;
  }
  plan.near.resize(std::size_t(entries));

  /// f(cell, lane, slot, entry of `around`, owned) for each face of a slice's cells, those that the cell owns first.
  const auto for_faces = [&](Index k, auto f) {
    for (Index c = k * slice; c < last_of(k); ++c) {
      Index slot = 0;
      for (const bool owned : {true, false})
        for (auto e = std::size_t(around.offsets[std::size_t(c)]); e < std::size_t(around.offsets[std::size_t(c) + 1]);
             ++e)
          if ((plan.owner[std::size_t(around.face[e])] == c) == owned) f(c, c - k * slice, slot++, e, owned);
    }
  };
  const auto is_near = [&](Index k, std::size_t e, Index& face, Index& cell) {
    face = around.face[e] - plan.slice_of[std::size_t(k)].face + FacePlan::face_back;
    cell = around.cell[e] - k * slice + FacePlan::cell_back;
    return face >= 0 && face < FacePlan::no_face && cell >= 0 && cell <= 65535;
  };
  each_slice([&](Index k, FacePlan::Slice& s) {
    Index face, cell;
    for_faces(k, [&](Index, Index, Index slot, std::size_t e, bool) {
      s.far += slot < tuning.row && !is_near(k, e, face, cell);
    });
  });
  Index far_entries = 0;
  for (FacePlan::Slice& s : plan.slice_of) far_entries += std::exchange(s.far, far_entries);
  plan.far.resize(std::size_t(far_entries));
  each_slice([&](Index k, const FacePlan::Slice& s) {
    for (Index slot = 0; slot < std::max(s.slots, FacePlan::first_slots); ++slot)
      std::fill_n(plan.near.begin() + s.entry(k, slot), slice, FacePlan::Near{FacePlan::no_face, FacePlan::cell_back});
    std::fill(plan.straight.begin() + k * slice, plan.straight.begin() + last_of(k), std::uint8_t(0));
    Index far = s.far, face, cell;
    for_faces(k, [&](Index c, Index lane, Index slot, std::size_t e, bool owned) {
      if (slot >= tuning.row) return;
      if (owned) ++plan.straight[std::size_t(c)];
      const auto at = std::size_t(s.entry(k, slot) + lane);
      if (is_near(k, e, face, cell)) {
        plan.near[at] = {std::uint16_t(face), std::uint16_t(cell)};
      } else {
        plan.near[at] = {FacePlan::is_far, std::uint16_t(far - s.far)};
        plan.far[std::size_t(far++)] = {around.face[e], around.cell[e]};
      }
    });
  });

  std::vector<LeftOver> left;
  for (Index k = 0; k < slices; ++k)
    if (std::any_of(around.offsets.begin() + k * slice, around.offsets.begin() + last_of(k),
                    [&](const Offset& o) { return *(&o + 1) - o > tuning.row; }))
      for_faces(k, [&](Index c, Index, Index slot, std::size_t e, bool owned) {
        if (slot >= tuning.row) left.push_back({c, {owned ? around.face[e] : ~around.face[e], around.cell[e]}});
      });
  plan.report.remainder_fraction = plan.view.faces ? 0.5 * double(left.size()) / plan.view.faces : 0;
  Buffer<Index> pieces;
  if (!left.empty())
    for (Index k = 0; k <= slices; ++k) pieces.push_back(std::min(cells, k * slice));
  put_left_over(plan, pieces, left, tuning.long_row);
}

}  // namespace krilu::mesh
