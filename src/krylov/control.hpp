// SPDX-License-Identifier: Apache-2.0
// Control: the stopping test and the residual history of a running iteration. It lives where the vectors live, and the
// closing steps of reductions call it, so that no iteration returns to the host. The recurrence's residual is what it
// sees: that says when to look at the true residual (driver.hpp), which decides.
#pragma once

#include <atomic>
#include <cmath>

#include "exec/view.hpp"
#include "krilu/solver.hpp"

namespace krilu::krylov {

enum class Stop : int { none, target, limit, breakdown, not_finite, interrupted };

/// A relaxed store or load that the other side may see while kernels run.
template <class T>
KRILU_INLINE void publish(T* to, T value) {
#if defined(__CUDA_ARCH__)
  *static_cast<volatile T*>(to) = value;
#else
  std::atomic_ref<T>(*to).store(value, std::memory_order_relaxed);
#endif
}
template <class T>
KRILU_INLINE T peek(T* from) {
#if defined(__CUDA_ARCH__)
  return *static_cast<volatile T*>(from);
#else
  return std::atomic_ref<T>(*from).load(std::memory_order_relaxed);
#endif
}

template <class T>
struct Control {
  T target = 0;             // stop at or below this norm of the recurrence's residual
  T scale = 1;              // history holds norm * scale
  bool magnitudes = false;  // the norm is a sum of magnitudes (OpenFOAM's), else the 2-norm
  int iteration = 0;
  int max_iterations = 0;
  Stop reason = Stop::none;
  T norm = 0;                     // the last one recorded
  double* history = nullptr;      // max_iterations + 1, seen from both sides
  Monitor::Feed* feed = nullptr;  // seen from both sides

  /// What an entry of the residual adds to the sum that `norm_of` turns into the norm.
  static KRILU_INLINE T measure(bool magnitudes, T r) { return magnitudes ? (r < 0 ? -r : r) : r * r; }
  KRILU_INLINE T norm_of(T sum) const { return magnitudes ? sum : std::sqrt(sum); }

  /// Ends an iteration with this norm. Returns 1 where the method is to stop.
  KRILU_INLINE int record(T norm_now) {
    norm = norm_now;
    ++iteration;
    history[iteration] = double(norm_now * scale);
    publish(&feed->iteration, iteration);
    publish(&feed->residual, history[iteration]);
    if (!(norm_now - norm_now == T(0))) return stop(Stop::not_finite);
    if (norm_now <= target) return stop(Stop::target);
    if (iteration >= max_iterations) return stop(Stop::limit);
    if (peek(&feed->interrupt)) return stop(Stop::interrupted);
    return 0;
  }
  KRILU_INLINE int stop(Stop why) {
    reason = why;
    return 1;
  }
};

}  // namespace krilu::krylov
