// SPDX-License-Identifier: Apache-2.0
#include "krilu/buffer.hpp"

#include <cstdint>
#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace krilu {

namespace {
constexpr std::size_t huge_page = std::size_t(2) << 20;
constexpr std::size_t cache_line = 64;
std::size_t whole_pages(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }
}  // namespace

void* allocate_pages(std::size_t bytes) {
#if defined(__linux__)
  if (bytes >= huge_page / 2) {
    // Straight from the system: pages go back when freed, and the count of a process's memory stays exact. The mapping
    // is cut to begin on a huge page, or the system could not use one there.
    const std::size_t length = whole_pages(bytes);
    void* raw = ::mmap(nullptr, length + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) throw std::bad_alloc();
    const auto address = reinterpret_cast<std::uintptr_t>(raw);
    const std::size_t head = (huge_page - address % huge_page) % huge_page;
    char* p = static_cast<char*>(raw) + head;
    if (head) ::munmap(raw, head);
    ::munmap(p + length, huge_page - head);
    ::madvise(p, length, MADV_HUGEPAGE);
    return p;
  }
#endif
  const std::size_t rounded = (bytes + cache_line - 1) / cache_line * cache_line;
  void* p = std::aligned_alloc(cache_line, rounded ? rounded : cache_line);
  if (!p) throw std::bad_alloc();
  return p;
}

void free_pages(void* p, std::size_t bytes) noexcept {
#if defined(__linux__)
  if (bytes >= huge_page / 2) {
    ::munmap(p, whole_pages(bytes));
    return;
  }
#endif
  std::free(p);
}

}  // namespace krilu
