// SPDX-License-Identifier: Apache-2.0
// What the emulated device must catch, since nothing else does on a machine without a device: host code that touches
// device memory dies, a result is not there before a synchronisation, a loop's body is spoken once and replayed, and
// every wait of the host is counted.
#include "exec/emulated.hpp"

#include <gtest/gtest.h>

#include <random>

#include "support/support.hpp"

namespace krilu::test {
namespace {

using exec::Emulated;

class EmulatedDeath : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

void touch(const double* p) {
  const volatile double v = *static_cast<const volatile double*>(p);
  static_cast<void>(v);
}

TEST_F(EmulatedDeath, TheHostReadsDeviceMemory) {
  const Emulated space(1);
  const auto a = space.allocate<double>(8);
  EXPECT_DEATH(touch(a.data()), "");
}

TEST_F(EmulatedDeath, TheHostWritesDeviceMemory) {
  const Emulated space(1);
  const auto a = space.allocate<double>(8);
  EXPECT_DEATH(*static_cast<volatile double*>(a.data()) = 1, "");
}

TEST_F(EmulatedDeath, MemoryIsClosedAgainAfterItWasOpen) {
  const Emulated space(1);
  const auto a = to_device(space, std::vector<double>(5000, 1.0));
  EXPECT_EQ(to_host(space, a)[4999], 1.0);
  EXPECT_DEATH(touch(a.data() + 4999), "") << "after a copy";
  space.for_each(5000, [v = a.view()](Index i) { v[i] += 1; });
  space.synchronise();
  EXPECT_DEATH(touch(a.data()), "") << "after kernels";
}

TEST_F(EmulatedDeath, AKernelUsesMemoryThatWasGivenBack) {
  const Emulated space(1);
  const auto before = to_device(space, std::vector<double>(1000, 1.0));
  auto between = to_device(space, std::vector<double>(1000, 2.0));
  const auto behind = to_device(space, std::vector<double>(1000, 3.0));
  const double* const gone = between.data();
  between = {};
  EXPECT_EQ(to_host(space, before)[999], 1.0);
  EXPECT_EQ(to_host(space, behind)[0], 3.0);
  EXPECT_DEATH(
      {
        space.once([gone] { touch(gone); });
        space.synchronise();
      },
      "");
}

TEST_F(EmulatedDeath, MemoryThatAKernelAskedForIsClosedAfterIt) {
  const Emulated space(1);
  exec::Array<double> a;
  space.once([&] {
    a = space.allocate<double>(10);
    a.data()[9] = 5;
  });
  space.synchronise();
  EXPECT_EQ(to_host(space, a)[9], 5.0);
  EXPECT_DEATH(touch(a.data()), "");
  const auto given_back_in_a_kernel = [&] {
    space.once([&] {
      const double* const gone = a.data();
      a = {};
      touch(gone);
    });
    space.synchronise();
  };
  EXPECT_DEATH(given_back_in_a_kernel(), "");
}

TEST_F(EmulatedDeath, AHostLoopOnADeviceFlag) {
  // `while (!stop())` in host code is what repeat_until is for.
  const Emulated space(1);
  const auto a = to_device(space, std::vector<int>{1});
  const auto stop = a.scalar();
  EXPECT_DEATH(
      {
        const volatile int seen = stop();
        static_cast<void>(seen);
      },
      "");
}

// Of sizes from a few bytes to more than is asked of the system at a time, in any order.
TEST(Emulated, BlocksKeepTheirValuesWhileOthersComeAndGo) {
  const Emulated space(1);
  const std::size_t sizes[] = {1, 511, 512, 513, 5000, 300'000, 9'000'000};
  struct Kept {
    exec::Array<double> block;
    double value = 0;
  };
  std::vector<Kept> all(24);
  std::mt19937 random(7);
  for (int step = 0; step < 200; ++step) {
    Kept& k = all[random() % all.size()];
    if (k.block.size() > 0) {
      const double expected = k.value;
      double ends[2] = {};
      space.once([&ends, v = k.block.view(), last = k.block.size() - 1] {
        ends[0] = v[0];
        ends[1] = v[Index(last)];
      });
      space.synchronise();
      ASSERT_EQ(ends[0], expected);
      ASSERT_EQ(ends[1], expected);
      k.block = {};
    } else {
      k.block = space.allocate<double>(sizes[random() % std::size(sizes)]);
      k.value = step;
      space.once([v = k.block.view(), last = k.block.size() - 1, value = k.value] { v[0] = v[Index(last)] = value; });
    }
  }
}

TEST(Emulated, KernelsWaitForASynchronisation) {
  const Emulated space(2);
  const auto shared = space.allocate_shared<int>(1);
  shared.data()[0] = 0;
  const auto x = shared.scalar();
  space.once([x] { x() = 1; });
  EXPECT_EQ(shared.data()[0], 0) << "a result was there before the host waited";
  space.synchronise();
  EXPECT_EQ(shared.data()[0], 1);
  space.synchronise();
  EXPECT_EQ(shared.data()[0], 1);
}

TEST(Emulated, AKernelRunsOncePerTimeThatItWasQueued) {
  const Emulated space(2);
  const auto a = to_device(space, std::vector<int>{0});
  const auto x = a.scalar();
  for (int k = 0; k < 3; ++k) space.once([x] { x() += 1; });
  space.synchronise();
  space.synchronise();
  EXPECT_EQ(to_host(space, a)[0], 3);
}

TEST(Emulated, CopiesRunWhatIsQueuedBefore) {
  const Emulated space(1);
  const auto a = to_device(space, std::vector<int>{1});
  const auto x = a.scalar();
  space.once([x] { x() += 1; });
  int seen = 0;
  space.copy_out(&seen, a, 1);
  EXPECT_EQ(seen, 2);
  space.once([x] { x() *= 10; });
  const int fresh = 7;
  space.copy_in(a, &fresh, 1);
  EXPECT_EQ(to_host(space, a)[0], 7) << "a kernel that was queued before the copy ran after it";
}

TEST(Emulated, ALoopsBodyIsSpokenOnceAndReplayed) {
  const Emulated space(1);
  const auto values = to_device(space, std::vector<int>{0, 0, 0});
  const auto stop = values.scalar(0), rounds = values.scalar(1), sum = values.scalar(2);
  int spoken = 0;
  EXPECT_FALSE(space.recording());
  space.repeat_until(stop, [&] {
    EXPECT_TRUE(space.recording());
    ++spoken;  // host code: it belongs to the recording, not to the rounds
    space.once([=, from_host = spoken] {
      sum() += from_host;
      stop() = ++rounds() == 50;
    });
  });
  EXPECT_FALSE(space.recording());
  EXPECT_EQ(spoken, 1) << "spoken when it is recorded, before anything runs";
  const std::vector<int> got = to_host(space, values);
  EXPECT_EQ(spoken, 1);
  EXPECT_EQ(got[1], 50);
  EXPECT_EQ(got[2], 50) << "a body that counts on being spoken anew in each round gives 1 + 2 + ... on the host only";
}

TEST(Emulated, BodiesThatNeverRunAreSpokenToo) {
  const Emulated space(1);
  const auto values = to_device(space, std::vector<int>{1, 0, 0});
  const auto stop = values.scalar(0), off = values.scalar(1), ran = values.scalar(2);
  int spoken = 0;
  space.repeat_until(stop, [&] {
    ++spoken;
    space.once([ran] { ran() = 1; });
    space.when(off, [&] {
      ++spoken;
      EXPECT_TRUE(space.recording());
      space.once([ran] { ran() = 1; });
    });
    EXPECT_TRUE(space.recording()) << "an inner record ended, the outer goes on";
  });
  EXPECT_EQ(spoken, 2);
  EXPECT_EQ(to_host(space, values)[2], 0);
}

TEST(Emulated, CountsTheHostsWaits) {
  const Emulated space(1);
  EXPECT_EQ(space.synchronisations(), 0);
  const auto a = to_device(space, std::vector<int>{0, 0});
  EXPECT_EQ(space.synchronisations(), 1) << "a copy in";
  const auto stop = a.scalar(0), rounds = a.scalar(1);
  space.repeat_until(stop, [&] { space.once([=] { stop() = ++rounds() == 1000; }); });
  EXPECT_EQ(space.synchronisations(), 1) << "queueing is free";
  space.synchronise();
  EXPECT_EQ(space.synchronisations(), 2) << "a thousand rounds are one wait";
  EXPECT_EQ(to_host(space, a)[1], 1000);
  EXPECT_EQ(space.synchronisations(), 3) << "a copy out";
}

TEST(Emulated, ACopyIsTheSameDeviceAndAnotherIsNot) {
  const Emulated space(1), other(1);
  const Emulated copy = space;
  const auto a = space.allocate_shared<int>(1);
  a.data()[0] = 0;
  const auto x = a.scalar();
  space.once([x] { x() += 1; });
  other.synchronise();
  EXPECT_EQ(a.data()[0], 0);
  copy.synchronise();
  EXPECT_EQ(a.data()[0], 1);
  EXPECT_EQ(space.synchronisations(), 1);
}

TEST(Emulated, MemoryGoesBack) {
  const Emulated space(1);
  for (int k = 0; k < 100; ++k) {
    const auto a = to_device(space, std::vector<double>(3000, double(k)));
    const auto b = to_device(space, std::vector<double>(1, 0.0));
    EXPECT_EQ(to_host(space, a)[2999], double(k));
  }
  space.synchronise();  // opens and closes what is left: a block that went back must not be among it
  EXPECT_EQ(space.synchronisations(), 301);
}

}  // namespace
}  // namespace krilu::test
