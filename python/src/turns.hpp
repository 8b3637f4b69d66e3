// SPDX-License-Identifier: Apache-2.0
// How calls from Python run: without Python's lock (the GIL), one at a time for each solver, and so that Ctrl-C is
// heard.
//
// Python runs its signal handlers in the main thread, between two of its own instructions. A call that came from there
// is therefore done by another thread, while the main one looks for signals; where a handler raises (KeyboardInterrupt
// is the usual one), the solve is asked to stop and the exception goes on. It is always the same other thread, so that
// there is one team of OpenMP threads and not two that get in each other's way. It takes some ten microseconds.
// Calls from any other Python thread run where they are. The main thread looks for signals too while it waits for its
// turn.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "krilu/solver.hpp"

namespace krilu::python {

/// A solver has one user at a time. Others wait, without Python's lock; what a signal handler raises in the main thread
/// ends its wait, and nothing has been done then.
class Turns {
 public:
  /// Runs `work` without Python's lock, in this solver's turn. Call with the lock held. Where a signal handler raises
  /// meanwhile, `monitor`, if there is one, is interrupted, and the handler's exception is thrown once `work` has
  /// ended; where it raises before that, while another thread has its turn, it is thrown at once and `work` does not
  /// begin. Throws what `work` throws, and krilu::Error where this very thread is within such a call already: a signal
  /// handler that uses the solver which it interrupts.
  void run(bool from_main_thread, Monitor* monitor, const std::function<void()>& work);

 private:
  class Turn;
  std::timed_mutex mutex_;
  std::atomic<std::thread::id> holder_{};
};

}  // namespace krilu::python
