// SPDX-License-Identifier: Apache-2.0
// A matrix in the GPU's storage, laid out in each of the ways that the engine has, with the way there and back between
// the caller's row order and the layout's.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "schedule/blocks.hpp"
#include "schedule/layout.cuh"
#include "sparse/sliced.cuh"
#include "support/gpu.cuh"
#include "support/matrices.hpp"

namespace krilu::test {

enum class Rows { as_given, by_level, by_level_of_a_random_order, in_blocks };
inline const char* to_string(Rows r) {
  constexpr const char* names[] = {"as given", "by level", "by level of a random order", "in blocks"};
  return names[int(r)];
}

struct SlicedOn {
  /// seed: of the random order. tile_rows: as schedule::by_levels has it.
  SlicedOn(const exec::Cuda& on, const CsrView& a, Rows rows, std::uint64_t seed = 1, Index tile_rows = 0)
      : space(on), there(sparse::upload(on, a, true)) {
    if (!sparse::symmetry(a).pattern) graph_there = sparse::upload(on, sparse::adjacency(a), false);
    if (rows == Rows::by_level_of_a_random_order) order = shuffled_order(a.rows, seed);
    if (rows == Rows::as_given) {
      keep(schedule::as_given(space, there));
    } else if (rows == Rows::in_blocks) {
      const auto blocks = schedule::BlockBuilder<exec::Cuda>(space, there.view(), graph().view()).build();
      keep(schedule::by_blocks(space, there, blocks));
    } else {
      keep(schedule::by_levels(space, there, graph(), order, tile_rows));
    }
    pattern = std::make_shared<const sparse::SlicedPattern>(space, there, plan->layout, 0);
    sparse::fill_values(space, pattern, there.values.data(), matrix);
  }

  /// Other values over the same pattern.
  void fill(const CsrView& a) {
    space.copy_in(there.values, a.values, there.values.size());
    sparse::fill_values(space, pattern, there.values.data(), matrix);
  }
  /// The pattern of A + A^T, or A's own.
  const sparse::DeviceCsr& graph() const { return graph_there.rows > 0 ? graph_there : there; }

  exec::Array<double> in(const std::vector<double>& v) const {
    std::vector<double> w(v.size());
    for (std::size_t k = 0; k < v.size(); ++k) w[k] = v[std::size_t(row[k])];
    return to_device(space, w);
  }
  std::vector<double> out(const exec::Array<double>& a) const {
    const std::vector<double> w = to_host(space, a);
    std::vector<double> v(w.size());
    for (std::size_t k = 0; k < v.size(); ++k) v[std::size_t(row[k])] = w[k];
    return v;
  }

  exec::Cuda space;
  sparse::DeviceCsr there, graph_there;
  schedule::Order order;  // empty: natural
  std::shared_ptr<const schedule::Plan> plan;
  std::shared_ptr<const sparse::SlicedPattern> pattern;
  sparse::SlicedMatrix<double> matrix;
  std::vector<Index> row;  // row[place]: the caller's

 private:
  void keep(schedule::Plan&& p) {
    plan = std::make_shared<const schedule::Plan>(std::move(p));
    row = plan->layout->row.size() > 0 ? to_host(space, plan->layout->row) : natural_order(there.rows);
  }
};

}  // namespace krilu::test
