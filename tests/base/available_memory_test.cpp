// SPDX-License-Identifier: Apache-2.0
// The memory that is left: some, no more than the machine has, and what a limit of addresses allows.
#include "base/available_memory.hpp"

#include <gtest/gtest.h>

#if defined(__linux__)
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace {

using krilu::available_memory;

TEST(AvailableMemory, IsNoMoreThanTheMachineHas) {
  EXPECT_GT(available_memory(), std::size_t(1) << 20);
#if defined(__linux__)
  EXPECT_LE(available_memory(), std::size_t(::sysconf(_SC_PHYS_PAGES)) * std::size_t(::sysconf(_SC_PAGESIZE)));
#endif
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)  // AddressSanitizer takes terabytes of addresses
TEST(AvailableMemory, HeedsALimitOfAddresses) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = rlim_t(1) << 30;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  const std::size_t left = available_memory();
  ::setrlimit(RLIMIT_AS, &before);
  EXPECT_LT(left, std::size_t(1) << 30);
}
#endif

}  // namespace
