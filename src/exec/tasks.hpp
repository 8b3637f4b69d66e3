// SPDX-License-Identifier: Apache-2.0
// Pieces of work of unequal length, shared by the threads of a host.
#pragma once

#include <atomic>
#include <cstddef>

#include "exec/host.hpp"

namespace krilu::exec {

/// f(i) for 0 <= i < n, each by whichever thread comes next; calls must not depend on one another.
template <class F>
void for_each_task(const Host& host, std::size_t n, F f) {
  std::atomic<std::size_t> next{0};
  host.parallel(n > 1 ? host.threads() : 1, [&](int, int) {
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) f(i);
  });
}

}  // namespace krilu::exec
