// SPDX-License-Identifier: Apache-2.0
#include "exec/host.hpp"

#include <fmt/format.h>

#include "krilu/buffer.hpp"
#include "krilu/error.hpp"

namespace krilu::exec {

int available_threads() {
#if defined(_OPENMP)
  return omp_get_max_threads();
#else
  return 1;
#endif
}

void require_threads(int threads) {
  constexpr int most = 4096;
  if (threads < 0) throw Error("threads is a whole number from 1, or 0 for all");
  if (threads > most)
    throw Error(fmt::format("threads is {}, more than any machine has cores: at most {}", threads, most));
}

std::shared_ptr<Memory> host_memory() {
  struct Pages final : Memory {
    void* allocate(std::size_t bytes) override { return allocate_pages(bytes); }
    void deallocate(void* p, std::size_t bytes) noexcept override { free_pages(p, bytes); }
  };
  static const std::shared_ptr<Memory> memory = std::make_shared<Pages>();
  return memory;
}

}  // namespace krilu::exec
