// SPDX-License-Identifier: Apache-2.0
// What kernels that cross the boundary between GPUs follow: where entries go, where others come, and B.
#pragma once

#include "solver/links.cuh"

namespace krilu::solver {

using exec::cuda::Word;

/// Where messages to the neighbours go.
struct Targets {
  struct Target {
    Word* slots = nullptr;  // in the neighbour's memory, of the first entry
    std::size_t turn = 0;   // words to the place of the next message
    Index first = 0, count = 0;
  };
  Target to[exec::cuda::most_peers];
  int neighbours = 0;
  const Index* rows = nullptr;
};

/// What comes in, in slots.
struct Incoming {
  const Word* slots;
  std::size_t turn;
  Index count;

  __device__ const Word* place(unsigned number) const { return slots + (number & 1) * turn; }
};

/// B: see sparse::HaloPlan.
struct Outer {
  Index rows;
  const Index* row;
  const Offset* offsets;
  const Index* columns;
  const double* values;
};

/// Entries from `start` on, in steps.
template <class T>
__device__ void send_entries(const Targets& targets, int neighbour, const T* x, const double* C, unsigned number,
                             Index start, Index step) {
  const Targets::Target& t = targets.to[neighbour];
  Word* const out = t.slots + (number & 1) * t.turn;
  for (Index k = start; k < t.count; k += step) {
    const Index row = targets.rows[t.first + k];
    exec::cuda::post_value(out + 2 * std::size_t(k), (C ? C[row] : 1.0) * double(x[row]), number);
  }
}

/// Blocks that wait must leave room for those that others wait for, where ranks share a GPU.
constexpr unsigned most_beside_others = 64;

/// What a kernel follows from GPU to GPU.
struct DeviceLinks::Route {
  Targets targets;
  Incoming incoming;
  Outer b;
};

}  // namespace krilu::solver
