// SPDX-License-Identifier: Apache-2.0
// SliceRunner: calls a function for every slice of a level-ordered pattern such that a slice runs after all slices that
// its rows depend on, ascending (lower triangle) or descending (upper triangle). The host's triangular strategies are
// four ways to do so, and solves, DILU and ILU(0) construction all run under them:
//
//   serial      one thread goes through the slices. Rows of a level do not wait for one another, so the core overlaps
//               them, where natural order waits for the row before.
//   level-set   [Anderson and Saad 1989; Wang and Liu 2022, Algorithms 3 and 4] threads share each level; a barrier
//               between levels. Runs of narrow levels are merged into one step of a single thread.
//   sync-free   [Liu et al. 2016; Wang and Liu 2022, Algorithms 5 and 6] groups of slices are dealt to the threads in
//               turn; each waits only for the groups that it reads from, found once at analysis.
//   parts       where the matrix falls into independent parts, and the default there: threads share the parts, and a
//               part goes forward and backward while it is still in its core's cache.
//
// `auto` times the candidates during the first sweeps that it is asked for, uses their results, and settles.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "exec/host.hpp"
#include "exec/threads.hpp"
#include "sparse/split.hpp"
#include "triangular/strategy.hpp"

namespace krilu::triangular {

struct RunnerTuning {
  Index narrow_rows = 256;  // a level of fewer rows a thread is not worth a barrier
  Index group_rows = 128;   // rows that a thread takes at a time without synchronisation
  int trials = 2;           // timed sweeps of each candidate before settling
};

class SliceRunner {
 public:
  SliceRunner(const exec::Host& host, const sparse::SplitPattern& pattern, const Index* lower_column,
              const Index* upper_column, Strategy strategy, RunnerTuning tuning = {});

  /// forward(slice) for all slices, ascending; then backward(slice) for all, descending. One team, started once.
  template <class Forward, class Backward>
  void both(const Forward& forward, const Backward& backward) const {
    if (settled()) return run(chosen_, forward, backward);
    Candidate& c = *std::min_element(candidates_.begin(), candidates_.end(),
                                     [](const auto& a, const auto& b) { return a.trials < b.trials; });
    const auto start = std::chrono::steady_clock::now();
    run(c.strategy, forward, backward);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    c.best = std::min(c.best, took.count());
    if (++c.trials == tuning_.trials && &c == &candidates_.back()) settle();
  }
  /// The ascending half alone: what builds factors. No trial of the chooser's.
  template <class F>
  void ascending(const F& f) const {
    run(current(), f, Nothing{});
  }

  /// What runs now: the strategy that was asked for, or the best that was seen.
  Strategy current() const { return settled() ? chosen_ : Strategy::serial; }
  bool settled() const { return chosen_ != Strategy::automatic; }
  Report report() const;
  std::size_t bytes() const;

 private:
  struct Nothing {};
  struct Step {  // of the level-set strategy: slices begin .. end-1, shared by the team or left to one thread
    Index begin, end;
    bool shared;
  };
  /// Of the sync-free strategy in one direction: before group g, wait until thread t has done
  /// needs[g * threads + t] of its own groups.
  using Needs = std::vector<std::int32_t>;
  struct Candidate {
    Strategy strategy;
    double best = std::numeric_limits<double>::infinity();
    int trials = 0;
  };

  void plan_level_set(const sparse::SplitPattern& pattern);
  void plan_sync_free(const sparse::SplitPattern& pattern, const Index* lower_column, const Index* upper_column);
  void settle() const;

  template <class Forward, class Backward>
  void run(Strategy s, const Forward& forward, const Backward& backward) const {
    switch (s) {
      case Strategy::level_set: return run_level_set(forward, backward);
      case Strategy::sync_free: return run_sync_free(forward, backward);
      case Strategy::parts: return run_parts(forward, backward);
      default: return run_serial(forward, backward);
    }
  }

  // Slices begin .. end-1 in either direction, apart from the strategies, so that a sweep is compiled once for all of
  // them. With a copy of the function: through a reference compilers cannot tell that what it writes leaves what it
  // captured alone, and fetch all of that again for every slice.
  template <class F>
  [[gnu::noinline]] static void up(const F& its_f, Index begin, Index end) {
    const F f = its_f;
    for (Index s = begin; s < end; ++s) f(s);
  }
  template <class F>
  [[gnu::noinline]] static void down(const F& its_f, Index begin, Index end) {
    const F f = its_f;
    for (Index s = end; s-- > begin;) f(s);
  }
  static void down(Nothing, Index, Index) {}

  template <class Forward, class Backward>
  void run_serial(const Forward& forward, const Backward& backward) const {
    up(forward, 0, slices_);
    down(backward, 0, slices_);
  }

  template <class Forward, class Backward>
  void run_parts(const Forward& forward, const Backward& backward) const {
    std::atomic<std::size_t> next{0};  // parts differ in what they cost
    host_.parallel([&](int, int) {
      for (std::size_t p = next++; p + 1 < part_slices_.size(); p = next++) {
        up(forward, part_slices_[p], part_slices_[p + 1]);
        down(backward, part_slices_[p], part_slices_[p + 1]);
      }
    });
  }

  template <class Forward, class Backward>
  void run_level_set(const Forward& forward, const Backward& backward) const {
    exec::SpinBarrier barrier;
    host_.parallel([&](int me, int team) {
      const auto range = [&](const Step& step) {
        if (!step.shared) return me == 0 ? std::pair{step.begin, step.end} : std::pair{step.begin, step.begin};
        const std::int64_t length = step.end - step.begin;
        return std::pair{Index(step.begin + length * me / team), Index(step.begin + length * (me + 1) / team)};
      };
      for (const Step& step : steps_) {
        const auto [begin, end] = range(step);
        up(forward, begin, end);
        barrier.wait(team);
      }
      if constexpr (!std::is_same_v<Backward, Nothing>)
        for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
          const auto [begin, end] = range(*step);
          down(backward, begin, end);
          barrier.wait(team);
        }
    });
  }

  template <class Forward, class Backward>
  void run_sync_free(const Forward& forward, const Backward& backward) const {
    const Index groups = (slices_ + group_slices_ - 1) / group_slices_;
    const int planned = host_.threads();
    exec::Progress ahead(planned), back(planned);
    exec::SpinBarrier barrier;
    host_.parallel([&](int me, int team) {
      if (team != planned) {  // a smaller team than was planned for: one of it does the work
        if (me == 0) run_serial(forward, backward);
        return;
      }
      const auto await = [planned](const exec::Progress& progress, const Needs& needs, Index g) {
        const std::int32_t* const done = needs.data() + std::size_t(g) * std::size_t(planned);
        for (int t = 0; t < planned; ++t)
          if (done[t] > 0) progress.wait(t, done[t]);
      };
      const auto end_of = [this](Index g) { return std::min(slices_, (g + 1) * group_slices_); };
      std::int64_t done = 0;
      for (Index g = me; g < groups; g += planned) {
        await(ahead, ascending_, g);
        up(forward, g * group_slices_, end_of(g));
        ahead.publish(me, ++done);
      }
      barrier.wait(team);
      if constexpr (!std::is_same_v<Backward, Nothing>) {
        done = 0;
        for (Index g = me < groups ? (groups - 1 - me) / planned * planned + me : -1; g >= 0; g -= planned) {
          await(back, descending_, g);
          down(backward, g * group_slices_, end_of(g));
          back.publish(me, ++done);
        }
      }
    });
  }

  exec::Host host_;
  RunnerTuning tuning_;
  Index slices_ = 0;
  std::vector<Step> steps_;
  std::vector<Index> part_slices_;
  Index group_slices_ = 1;
  Needs ascending_, descending_;
  mutable Strategy chosen_;
  mutable std::vector<Candidate> candidates_;
};

}  // namespace krilu::triangular
