// SPDX-License-Identifier: Apache-2.0
// Control: the stopping test and the residual history of a running iteration. It lives where the vectors live, and the
// closing steps of reductions call it, so that no iteration returns to the host. The recurrence's residual is what it
// sees: that says when to look at the true residual (driver.hpp), which decides.
#pragma once

#include <atomic>
#include <cmath>
#include <limits>

#include "exec/view.hpp"
#include "krilu/solver.hpp"

namespace krilu::krylov {

enum class Stop : int { none, target, limit, breakdown, not_finite, interrupted, slow };

/// When a method gives up before its limit, looking after `first` iterations and every `window` from then on: where the
/// least residual so far is not below least_gain times what it was a window before (at the first look: at the start),
/// or where at that rate the target is further than `most` iterations in all (at the first look, when rates say little:
/// twice as many). It stops with Stop::slow.
struct Patience {
  int first = 0, window = 0;  // window 0: never
  int most = 0;
  double least_gain = 0.9;
  /// At the first look it is enough, too, that the residual is below this part of the largest so far: CG lowers another
  /// norm than this one, which may rise for hundreds of iterations first.
  double hump = 0;
};

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
  T target = 0;   // stop at or below this norm of the recurrence's residual
  T further = 0;  // the target instead, where that is reached by iteration `early`
  int early = 0;
  T opening = 0;  // stop at or below this norm, where that is not reached before iteration `slow`
  int slow = 0;
  // The target instead, where that is met with no more room left in what the method keeps than the go has taken since
  // iteration `begun`, and this one, at the pace of the last iterations, would not be met in it: the next go, which
  // begins with a residual that takes a place, would have to begin anew on its way. Without room a go that has met its
  // first target ends.
  T filling = std::numeric_limits<T>::infinity();
  int begun = 0;
  // A basis with room for fewer iterations than this is begun anew with the go, which would else do so on its way: when
  // each iteration has passed over the whole of it, and with an end more.
  int least_room = 0;
  bool reached = false;     // the first target was met: `target` is the last one
  T scale = 1;              // history holds norm * scale
  bool magnitudes = false;  // the norm is a sum of magnitudes (OpenFOAM's), else the 2-norm
  int iteration = 0;
  int max_iterations = 0;
  Stop reason = Stop::none;
  T norm = 0;                     // the last one recorded
  double* history = nullptr;      // max_iterations + 1
  Monitor::Feed* feed = nullptr;  // seen from both sides
  int* wish = nullptr;            // not 0: somebody wants it to stop; the feed's, or that of a team
  int tell = 1;                   // feed and wish are looked after in every so many iterations
  Patience patience;
  double least = std::numeric_limits<double>::infinity();  // in the history since the last look of the patience
  double least_before = 0;                                 // until then; 0: there was no look
  double largest = 0;

  /// What an entry of the residual adds to the sum that `norm_of` turns into the norm.
  static KRILU_INLINE T measure(bool magnitudes, T r) { return magnitudes ? (r < 0 ? -r : r) : r * r; }
  KRILU_INLINE T norm_of(T sum) const { return magnitudes ? sum : std::sqrt(sum); }

  /// Whether an iteration that ends with this norm is the last one, of a method that keeps nothing.
  KRILU_INLINE bool is_met_by(T norm_now) const {
    return norm_now <= target && (iteration >= early || norm_now <= further);
  }
  /// Ends an iteration with this norm. Returns 1 where the method is to stop. room: iterations before what it keeps is
  /// full; -1: it keeps nothing.
  KRILU_INLINE int record(T norm_now, int room = -1) {
    // All is read first and written after: on a GPU each wait for memory is felt, the host's most, which the feed is.
    const int passed = iteration + 1, limit = max_iterations, window = patience.window;
    const bool telling = tell == 1 || passed % tell == 0;
    const int wished = telling ? peek(wish) : 0;
    const double residual = double(norm_now * scale), low = least, high = largest;
    norm = norm_now;
    iteration = passed;
    least = residual < low ? residual : low;
    largest = residual > high ? residual : high;
    history[passed] = residual;
    if (telling) {
      publish(&feed->iteration, passed);
      publish(&feed->residual, residual);
    }
    if (!(norm_now - norm_now == T(0))) return stop(Stop::not_finite);
    if (ends_with(norm_now, room)) return stop(Stop::target);
    if (passed >= limit) return stop(reached ? Stop::target : Stop::limit);
    if (wished) return stop(Stop::interrupted);
    if (window > 0 && is_hopeless()) return stop(Stop::slow);
    return 0;
  }
  /// The last iteration is found to have ended with this norm. Returns 1 where the method is to stop.
  KRILU_INLINE int amend(T norm_now, int room = -1) {
    const double residual = double(norm_now * scale);
    norm = norm_now;
    least = residual < least ? residual : least;
    history[iteration] = residual;
    if (!(norm_now - norm_now == T(0))) return stop(Stop::not_finite);
    return ends_with(norm_now, room) ? stop(Stop::target) : 0;
  }
  /// Whether the last iteration, which ended with this norm, does what was asked for. The opening counts where it is
  /// met for the first time; the first target that is met says what the last one is.
  KRILU_INLINE bool ends_with(T norm_now, int room) {
    if (norm_now <= opening) {
      opening = 0;
      if (iteration >= slow && norm_now > target) return true;
    }
    T goal = target;
    if (norm_now <= goal && !reached) {
      reached = true;
      if (iteration <= early) goal = further;
      if (fills(double(norm_now * scale), room) && filling < goal) goal = filling;
      target = goal;
    }
    return norm_now <= goal || (reached && room == 0);
  }
  /// Of an iteration that has met the first target: whether the go is to fill what the method keeps, as `filling` says.
  KRILU_INLINE bool fills(double residual, int room) const {
    return room >= 0 && room <= iteration - begun &&
           residual * residual >= history[iteration - room] * double(filling * scale);
  }
  /// A look of the patience.
  KRILU_INLINE bool is_hopeless() {
    const int since = iteration - patience.first;
    if (since < 0 || since % patience.window != 0) return false;
    const int passed = since == 0 ? iteration : patience.window;
    const double then = least_before > 0 ? least_before : history[0], now = least < then ? least : then;
    least_before = now;
    least = now;
    if (!(now < patience.least_gain * then)) return since > 0 || !(history[iteration] < patience.hump * largest);
    const double steps = std::log(now / double(target * scale)) / std::log(then / now) * passed;
    return !(iteration + steps <= double(patience.most) * (since == 0 ? 2 : 1));
  }
  /// The true residual takes the place of the recurrence's that was recorded.
  void correct(double residual) { least = least > residual ? least : residual; }
  KRILU_INLINE int stop(Stop why) {
    reason = why;
    return 1;
  }
};

}  // namespace krilu::krylov
