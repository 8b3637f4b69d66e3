// SPDX-License-Identifier: Apache-2.0
// The two ways in which threads wait for one another, on many more threads than there are cores: nobody leaves a
// barrier before all arrived, nobody passes a counter before it is reached, what was written before is seen after, and
// it ends.
#include "exec/threads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace krilu::exec {
namespace {

/// f(thread) on a team of std::threads.
template <class F>
void on_team(int team, F f) {
  std::vector<std::thread> threads;
  for (int t = 0; t < team; ++t) threads.emplace_back(f, t);
  for (std::thread& t : threads) t.join();
}

int more_than_cores() { return 3 * std::max(1, int(std::thread::hardware_concurrency())) + 1; }

TEST(SpinBarrier, NobodyLeavesBeforeAllArrived) {
  constexpr int rounds = 60;
  for (int team : {2, 3, std::min(more_than_cores(), 16)}) {
    SpinBarrier barrier;
    std::vector<int> done(std::size_t(team), 0);  // not atomic: the barrier must order these
    std::atomic<int> early{0};
    on_team(team, [&](int me) {
      for (int round = 1; round <= rounds; ++round) {
        done[std::size_t(me)] = round;
        barrier.wait(team);
        for (int seen : done) early += seen != round;
        barrier.wait(team);
      }
    });
    EXPECT_EQ(early, 0) << team << " threads";
  }
}

TEST(SpinBarrier, OneAloneDoesNotWait) {
  SpinBarrier barrier;
  for (int round = 0; round < 1000; ++round) barrier.wait(1);
  // And leaves the barrier fit for a team.
  std::atomic<int> passed{0};
  on_team(2, [&](int) {
    barrier.wait(2);
    ++passed;
  });
  EXPECT_EQ(passed, 2);
}

TEST(SpinBarrier, ServesTeamsOfDifferentSizesOneAfterAnother) {
  SpinBarrier barrier;
  for (int team : {4, 2, 3}) {
    std::atomic<int> arrived{0}, early{0};
    on_team(team, [&](int) {
      ++arrived;
      barrier.wait(team);
      early += arrived != team;
    });
    EXPECT_EQ(early, 0);
  }
}

TEST(Progress, APipelineOfManyThreadsComputesBinomials) {
  // Thread t's item k needs its own item k-1 and thread t-1's item k: Pascal's triangle, written without atomics.
  const int team = std::min(more_than_cores(), 16);
  constexpr int items = 40;
  Progress progress(team);
  std::vector<std::vector<double>> value(std::size_t(team), std::vector<double>(items, 0.0));
  on_team(team, [&](int me) {
    for (int k = 0; k < items; ++k) {
      if (me > 0) progress.wait(me - 1, k + 1);
      const double left = k > 0 ? value[std::size_t(me)][std::size_t(k) - 1] : 0;
      const double above = me > 0 ? value[std::size_t(me) - 1][std::size_t(k)] : 0;
      value[std::size_t(me)][std::size_t(k)] = me == 0 || k == 0 ? 1 : left + above;
      progress.publish(me, k + 1);
    }
  });
  for (int t = 1; t < team; ++t)
    for (int k = 1; k < items; ++k) {
      // C(t + k, k), multiplied up with exact divisions.
      double binomial = 1;
      for (int m = 1; m <= std::min(t, k); ++m) binomial = binomial * (t + k - m + 1) / m;
      EXPECT_EQ(value[std::size_t(t)][std::size_t(k)], binomial) << "thread " << t << ", item " << k;
    }
}

TEST(Progress, WaitsForTheCountAndNoLonger) {
  Progress progress(2);
  progress.wait(1, 0);  // nothing is needed
  progress.publish(1, 5);
  progress.wait(1, 5);
  progress.wait(1, 3);
  std::atomic<bool> passed{false};
  std::thread waiter([&] {
    progress.wait(1, 7);
    passed = true;
  });
  progress.publish(1, 6);
  progress.publish(0, 100);  // another thread's counter
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(passed) << "six are not seven";
  progress.publish(1, 7);
  waiter.join();
  EXPECT_TRUE(passed);
}

TEST(SpinUntil, LooksBeforeItWaits) {
  int looks = 0;
  spin_until([&] { return ++looks == 1; });
  EXPECT_EQ(looks, 1);
  spin_until([&] { return ++looks == 10000; });  // past its patience: it yields and goes on
  EXPECT_EQ(looks, 10000);
}

}  // namespace
}  // namespace krilu::exec
