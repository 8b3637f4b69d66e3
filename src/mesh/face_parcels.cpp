// SPDX-License-Identifier: Apache-2.0
#include "mesh/face_parcels.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "exec/tasks.hpp"

namespace krilu::mesh {

namespace {

/// The head of tile t's parcel. A tile's faces begin with those that have both cells in it.
FacePlan::Parcel head_of(const PlanData& plan, std::size_t t) {
  const auto from = [&](const Buffer<Index>& offsets) { return offsets.empty() ? 0 : offsets[t]; };
  const auto count = [&](const Buffer<Index>& offsets) { return offsets.empty() ? 0 : offsets[t + 1] - offsets[t]; };
  FacePlan::Parcel p{};
  p.first_cell = from(plan.tile_cell), p.cells = count(plan.tile_cell);
  p.first_face = from(plan.tile_face);
  const auto is_here = [&](Index cell) { return cell >= p.first_cell && cell < p.first_cell + p.cells; };
  const Index last = p.first_face + count(plan.tile_face);
  for (Index f = p.first_face; f < last; ++f)
    p.faces += is_here(plan.owner[std::size_t(f)]) && is_here(plan.neighbour[std::size_t(f)]);
  p.shared = count(plan.cut_of);
  Runs runs;
  for (Index k = 0; k < p.shared; ++k) runs.of(plan.cut[std::size_t(plan.cut_of[t] + k)], k);
  p.runs = Index(runs.all().size());
  p.first_touched = from(plan.touched), p.touched = count(plan.touched);
  p.first_row = from(plan.row), p.rows = count(plan.row);
  return p;
}

Index units_of(const FacePlan::Parcel& p) {
  return Index((p.bytes() + sizeof(FacePlan::Unit) - 1) / sizeof(FacePlan::Unit));
}

/// The memory is the plan's own.
template <class T>
T* writable(const T* p) {
  return const_cast<T*>(p);
}

}  // namespace

void make_parcels(const exec::Host& host, PlanData& plan) {
  const auto tiles = std::size_t(plan.view.tiles);
  plan.parcel_at.resize(tiles + 1);
  plan.parcel_at[0] = 0;
  for_each_task(host, tiles, [&](std::size_t t) { plan.parcel_at[t + 1] = units_of(head_of(plan, t)); });
  for (std::size_t t = 0; t < tiles; ++t) {
    plan.view.most_units = std::max(plan.view.most_units, plan.parcel_at[t + 1]);
    plan.parcel_at[t + 1] += plan.parcel_at[t];
  }
  plan.parcel.resize(std::size_t(plan.parcel_at[tiles]));
  Buffer<Index> slots_of(tiles);
  for_each_task(host, tiles, [&](std::size_t t) {
    const FacePlan::Parcel head = head_of(plan, t);
    FacePlan::Unit* const memory = plan.parcel.data() + plan.parcel_at[t];
    std::fill_n(memory, plan.parcel_at[t + 1] - plan.parcel_at[t], FacePlan::Unit{});
    std::memcpy(memory, &head, sizeof head);
    const auto& parcel = *reinterpret_cast<const FacePlan::Parcel*>(memory);
    std::uint8_t* const arrivals = writable(parcel.arrivals());
    const auto next_place = [&](Index cell) { return std::uint16_t(arrivals[cell]++ * plan.view.stride + cell); };
    for (Index k = 0; k < head.faces; ++k) {
      const auto f = std::size_t(head.first_face + k);
      writable(parcel.places())[k] = {next_place(plan.owner[f] - head.first_cell),
                                      next_place(plan.neighbour[f] - head.first_cell)};
    }
    Runs runs;
    for (Index k = 0; k < head.shared; ++k) {
      const auto e = std::size_t(plan.cut_of[t] + k);
      const FacePlan::Cut cut = plan.cut[e];
      const auto turned = std::uint16_t(cut.face < 0 ? 0x8000 : 0);
      writable(parcel.face_shared())[k] = {std::uint16_t(turned | next_place(plan.cut_cell[e])),
                                           std::uint8_t(cut.other % Runs::cells), std::uint8_t(runs.of(cut, k))};
    }
    std::copy(runs.all().begin(), runs.all().end(), writable(parcel.run()));
    if (head.shared == 0 && head.faces > 0) {
      const auto f = std::size_t(head.first_face);
      const Index other = plan.neighbour[f];
      *writable(parcel.run()) = {other / Runs::cells * Runs::cells, head.first_face};
      *writable(parcel.face_shared()) = {std::uint16_t(plan.owner[f] - head.first_cell),
                                         std::uint8_t(other % Runs::cells), 0};
    }
    for (Index k = 0; k < head.touched; ++k)
      writable(parcel.touched_place())[k] =
          next_place(plan.touched_cell[std::size_t(head.first_touched + k)] - head.first_cell);
    for (Index k = 0; k < head.rows; ++k)
      writable(parcel.row_place())[k] = next_place(plan.row_cell[std::size_t(head.first_row + k)] - head.first_cell);
    slots_of[t] = head.cells > 0 ? *std::max_element(arrivals, arrivals + head.cells) : 0;
  });
  plan.view.slots = tiles > 0 ? *std::max_element(slots_of.begin(), slots_of.end()) : 0;
  // What was an intermediate step.
  plan.cut_of = {};
  plan.cut = {};
  plan.cut_cell = {};
}

}  // namespace krilu::mesh
