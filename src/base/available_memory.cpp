// SPDX-License-Identifier: Apache-2.0
#include "base/available_memory.hpp"

#if defined(__linux__)
#include <sys/resource.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace krilu {

std::size_t available_memory() {
  std::size_t available = std::numeric_limits<std::size_t>::max();
  std::ifstream facts("/proc/meminfo");
  std::string line;
  while (std::getline(facts, line))
    if (line.starts_with("MemAvailable:")) {
      available = std::stoull(line.substr(13)) * 1024;
      break;
    }
  std::size_t most = 0, taken = 0;  // most is "max" where there is no limit, which reads as no number
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> most && std::ifstream("/sys/fs/cgroup/memory.current") >> taken)
    available = std::min(available, most > taken ? most - taken : 0);
#if defined(__linux__)
  rlimit limit{};
  std::size_t pages = 0;
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      std::ifstream("/proc/self/statm") >> pages) {
    const std::size_t addressed = pages * std::size_t(::sysconf(_SC_PAGESIZE));
    available = std::min(available, limit.rlim_cur > addressed ? std::size_t(limit.rlim_cur) - addressed : 0);
  }
#endif
  return available;
}

}  // namespace krilu
