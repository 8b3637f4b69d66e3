// SPDX-License-Identifier: Apache-2.0
// Buffer<T>: a std::vector for large numeric arrays. Elements are left uninitialised by Buffer(n) and resize(n), so
// that the thread which fills them touches the pages first, and arrays of a megabyte or more ask the system for huge
// pages, which spare most of the address translation of indirect access.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace krilu {

/// Allocates at least `bytes` bytes, aligned to 64 (to 2 MiB when large). Throws std::bad_alloc.
void* allocate_pages(std::size_t bytes);
void free_pages(void* p, std::size_t bytes) noexcept;

template <class T>
struct PageAllocator {
  using value_type = T;
  PageAllocator() = default;
  template <class U>
  PageAllocator(const PageAllocator<U>&) noexcept {}
  T* allocate(std::size_t n) { return static_cast<T*>(allocate_pages(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) noexcept { free_pages(p, n * sizeof(T)); }
  template <class U>
  void construct(U* p) noexcept(std::is_nothrow_default_constructible_v<U>) {
    ::new (static_cast<void*>(p)) U;  // default, not value initialisation
  }
  template <class U, class... A>
  void construct(U* p, A&&... a) {
    ::new (static_cast<void*>(p)) U(std::forward<A>(a)...);
  }
  template <class U>
  bool operator==(const PageAllocator<U>&) const noexcept {
    return true;
  }
};

template <class T>
using Buffer = std::vector<T, PageAllocator<T>>;

}  // namespace krilu
