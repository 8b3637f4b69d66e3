// SPDX-License-Identifier: Apache-2.0
#include "exec/emulated.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace krilu::exec {

namespace {
std::size_t whole_pages(std::size_t bytes) { return (std::max<std::size_t>(bytes, 1) + 4095) / 4096 * 4096; }

/// Device memory is open while this lives, also where a kernel throws.
class Opened {
 public:
  explicit Opened(ProtectedMemory& memory) : memory_(memory) { memory_.open(); }
  ~Opened() { memory_.close(); }

 private:
  ProtectedMemory& memory_;
};
}  // namespace

ProtectedMemory::~ProtectedMemory() {
  for (auto [begin, length] : ranges_) ::munmap(begin, length);
}

void* ProtectedMemory::allocate(std::size_t bytes) {
  constexpr std::size_t range = std::size_t(1) << 26;  // bytes asked of the system at least
  const std::size_t length = whole_pages(bytes);
  auto piece = std::find_if(free_.begin(), free_.end(), [&](const auto& p) { return p.second >= length; });
  if (piece == free_.end()) {
    const std::size_t size = std::max(length, range);
    void* const begin = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) throw std::bad_alloc();
    ranges_[static_cast<char*>(begin)] = size;
    piece = free_.emplace(static_cast<char*>(begin), size).first;
  }
  const auto [begin, size] = *piece;
  if (open_ && ::mprotect(begin, length, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  free_.erase(piece);
  if (size > length) free_[begin + length] = size - length;
  blocks_[begin] = length;
  return begin;
}

void ProtectedMemory::deallocate(void* p, std::size_t) noexcept {
  const auto block = blocks_.find(static_cast<char*>(p));
  auto [begin, length] = *block;
  blocks_.erase(block);
  if (open_) ::mprotect(begin, length, PROT_NONE);
  ::madvise(begin, length, MADV_DONTNEED);  // what was there is gone
  // One piece with the free ones at both ends.
  const auto after = free_.find(begin + length);
  if (after != free_.end()) {
    length += after->second;
    free_.erase(after);
  }
  auto before = free_.lower_bound(begin);
  if (before != free_.begin() && (--before)->first + before->second == begin)
    before->second += length;
  else
    free_[begin] = length;
}

void ProtectedMemory::protect(int flags) {
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    char *const begin = block->first, *end = begin;
    for (; block != blocks_.end() && block->first == end; ++block) end += block->second;
    ::mprotect(begin, std::size_t(end - begin), flags);
  }
}
void ProtectedMemory::open() {
  open_ = true;
  protect(PROT_READ | PROT_WRITE);
}
void ProtectedMemory::close() {
  protect(PROT_NONE);
  open_ = false;
}

Emulated::Emulated(int threads) : host_(threads), device_(std::make_shared<Device>()) {}

void Emulated::run(const Kernel& last) const {
  ++device_->synchronisations;
  Queue work;
  std::swap(work, *device_->queue);
  if (work.empty() && !last) return;
  const Opened opened(*device_->memory);
  for (const Kernel& kernel : work) kernel(host_);
  if (last) last(host_);
}

void Emulated::copy(void* to, const void* from, std::size_t bytes) const {
  run([=](const Host&) {
    if (bytes) std::memcpy(to, from, bytes);
  });
}

}  // namespace krilu::exec
