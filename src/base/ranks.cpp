// SPDX-License-Identifier: Apache-2.0
// The sum over ranks as every implementation of Ranks has it for nothing: gathered, then added in the order of ranks,
// so that all ranks hold the same bits. A few numbers cost no allocation.
#include "krilu/ranks.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace krilu {

void Ranks::sum(std::span<double> values) {
  if (values.empty() || size() == 1) return;
  const std::size_t n = values.size(), team = std::size_t(size());
  constexpr std::size_t few = 512;
  std::array<double, few> small;
  std::vector<double> large;
  double* all = small.data();
  if (n * team > few) {
    large.resize(n * team);
    all = large.data();
  }
  all_gather(values.data(), values.size_bytes(), all);
  std::copy_n(all, n, values.begin());
  for (std::size_t r = 1; r < team; ++r)
    for (std::size_t k = 0; k < n; ++k) values[k] += all[r * n + k];
}

}  // namespace krilu
