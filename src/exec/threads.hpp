// SPDX-License-Identifier: Apache-2.0
// How the threads of one team wait for one another inside a threaded body: a barrier that spins (an OpenMP barrier
// costs several times as much on small teams), and progress counters, one a thread, for bodies without a global
// synchronisation. Both give their core away after a while, so that more threads than cores still finish.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace krilu::exec {

/// Spins until ready() is true.
template <class Ready>
void spin_until(Ready ready) {
  constexpr int patience = 4000;
  for (int spins = 0; !ready(); ++spins) {
    if (spins >= patience) std::this_thread::yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

/// All `team` threads of a team arrive before any leaves.
class SpinBarrier {
 public:
  void wait(int team) {
    if (team == 1) return;
    const std::uint32_t round = round_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == team) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
    } else {
      spin_until([&] { return round_.load(std::memory_order_acquire) != round; });
    }
  }

 private:
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> round_{0};
};

/// Counts what each thread has finished; others wait for a count. It stands for one ready flag a row
/// [Liu et al. 2016] at the price of one cache line a thread, because each thread finishes its own rows in order.
class Progress {
 public:
  explicit Progress(int team) : counters_(static_cast<std::size_t>(team)) {}
  void publish(int thread, std::int64_t done) { at(thread).store(done, std::memory_order_release); }
  void wait(int thread, std::int64_t needed) const {
    const auto& counter = counters_[static_cast<std::size_t>(thread)].value;
    if (counter.load(std::memory_order_acquire) >= needed) return;
    spin_until([&] { return counter.load(std::memory_order_acquire) >= needed; });
  }

 private:
  struct alignas(64) Counter {
    std::atomic<std::int64_t> value{0};
  };
  std::atomic<std::int64_t>& at(int thread) { return counters_[static_cast<std::size_t>(thread)].value; }
  std::vector<Counter> counters_;
};

}  // namespace krilu::exec
