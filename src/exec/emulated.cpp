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
  for (auto [p, length] : blocks_) ::munmap(p, length);
}

void* ProtectedMemory::allocate(std::size_t bytes) {
  const std::size_t length = whole_pages(bytes);
  void* p = ::mmap(nullptr, length, open_ ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  blocks_.emplace_back(p, length);
  return p;
}

void ProtectedMemory::deallocate(void* p, std::size_t bytes) noexcept {
  ::munmap(p, whole_pages(bytes));
  std::erase_if(blocks_, [p](const auto& block) { return block.first == p; });
}

void ProtectedMemory::protect(int flags) {
  for (auto [p, length] : blocks_) ::mprotect(p, length, flags);
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

void Emulated::synchronise() const {
  ++device_->synchronisations;
  Queue work;
  std::swap(work, *device_->queue);
  const Opened opened(*device_->memory);
  for (const Kernel& kernel : work) kernel(host_);
}

void Emulated::copy(void* to, const void* from, std::size_t bytes) const {
  synchronise();
  const Opened opened(*device_->memory);
  if (bytes) std::memcpy(to, from, bytes);
}

}  // namespace krilu::exec
