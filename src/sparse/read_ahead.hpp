// SPDX-License-Identifier: Apache-2.0
// What the host's inner loops ask for ahead. Two triangles, their columns and vectors are more streams than a core
// foresees, and backwards it foresees little: of matrices that no cache holds, sweeps took up to twice as long.
#pragma once

namespace krilu::sparse {

/// The sequence in which slices are worked on: what is asked for is what comes next in memory, or what came before.
enum class Way { ascending, descending };

/// For `at`, which is being read, an element some 4 KiB on; arrays of shorter elements go with it at the same count.
template <Way way, class T, class S>
[[gnu::always_inline]] inline void read_ahead(const S* at) {
  constexpr int elements = (way == Way::ascending ? 4096 : -4096) / int(sizeof(T));
  __builtin_prefetch(at + elements);
}

}  // namespace krilu::sparse
