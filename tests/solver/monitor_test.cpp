// SPDX-License-Identifier: Apache-2.0
// Monitor: what other threads read and write while feeds come and go.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "krilu/solver.hpp"

namespace krilu {
namespace {

TEST(Monitor, KeepsTheLastValues) {
  Monitor monitor;
  EXPECT_EQ(monitor.iteration(), 0);
  EXPECT_EQ(monitor.relative_residual(), 1);
  {
    Monitor::Feed feed;
    monitor.attach(&feed);
    feed = {7, 0, 0.5};
    EXPECT_EQ(monitor.iteration(), 7);
    monitor.interrupt();
    EXPECT_EQ(feed.interrupt, 1);
    monitor.attach(nullptr);
  }
  EXPECT_EQ(monitor.iteration(), 7);
  EXPECT_EQ(monitor.relative_residual(), 0.5);
  EXPECT_TRUE(monitor.interrupted());
  Monitor::Feed next;
  monitor.attach(&next);
  EXPECT_EQ(next.interrupt, 1) << "who comes later hears of it too";
  monitor.attach(nullptr);
}

// A solve may free its feed as soon as it has taken it away: nobody reads it, or writes to it, after that.
TEST(Monitor, AFeedThatWasTakenAwayIsLeftAlone) {
  constexpr int gone = -1;
  Monitor monitor;
  std::atomic<bool> over{false};
  std::atomic<int> late{0};
  const auto watch = [&](bool interrupts) {
    while (!over) {
      if (monitor.iteration() == gone || monitor.relative_residual() == gone) ++late;
      if (interrupts) monitor.interrupt();
    }
  };
  std::thread one(watch, false), two(watch, true);
  std::vector<Monitor::Feed> feeds(20000);
  int written = 0;
  for (Monitor::Feed& feed : feeds) {
    monitor.attach(&feed);
    monitor.attach(nullptr);
    feed = {gone, gone, gone};
  }
  over = true;
  one.join();
  two.join();
  for (const Monitor::Feed& feed : feeds) written += feed.interrupt != gone;
  EXPECT_EQ(late, 0);
  EXPECT_EQ(written, 0);
}

}  // namespace
}  // namespace krilu
