// SPDX-License-Identifier: Apache-2.0
// Systems that a sanitizer gets through, of each kind that eliminations have on a GPU.
#pragma once

#include <random>
#include <utility>
#include <vector>

#include "support/matrices.hpp"

namespace krilu::test {

inline constexpr int team = 4;  // of the host: larger ones gain nothing here

/// The second half of the rows reads `count` of the first: two levels, wider than a thread block.
inline CsrMatrix two_levels(Index half, Index count, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  RowMaps rows(std::size_t(2 * half));
  for (Index i = 0; i < half; ++i)
    for (Index k = 0; k < count; ++k) {
      const Index j = (i + k * k * 7) % half;
      rows[std::size_t(half + i)][j] = value(engine);
      rows[std::size_t(j)][half + i] = value(engine);
    }
  return dominant(std::move(rows));
}

inline std::vector<GpuCase> tiny_cases() {
  std::vector<GpuCase> c;
  c.push_back({"grid", grid(17, 15)});
  c.push_back(
      {"unsymmetric, seed 981", random_matrix({.rows = 220, .per_row = 3, .symmetric_pattern = false, .seed = 981})});
  c.push_back({"one triangle, seed 982", triangle_of(random_matrix({.rows = 150, .per_row = 4, .seed = 982}), true)});
  c.push_back({"gen:convdiff3d27:4x5x6", generate("gen:convdiff3d27:4x5x6")});
  c.push_back({"dense row and column", arrow(120, 90)});
  c.push_back({"two levels of 200 rows", two_levels(200, 6, 1030)});
  c.push_back({"two levels of 300 rows", two_levels(300, 2, 1031)});
  c.push_back({"chain", chain(150)});
  c.push_back({"a level of 300 rows", random_matrix({.rows = 303, .per_row = 0.02, .seed = 1103})});
  c.push_back({"fewer rows than parts", grid(2, 3)});
  c.push_back({"diagonal", diagonal(35)});
  c.push_back({"one row", from_dense({{2.0}})});
  return c;
}

}  // namespace krilu::test
