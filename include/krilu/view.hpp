// SPDX-License-Identifier: Apache-2.0
// What a kernel sees of an array: a pointer that copies with the kernel.
#pragma once

#include <type_traits>

#include "krilu/kernel.hpp"
#include "krilu/types.hpp"

namespace krilu {

/// A vector where it lives. Copying the view copies the pointer.
template <class T>
struct View {
  T* data = nullptr;
  KRILU_INLINE T& operator[](Index i) const { return data[i]; }
  /// The same memory, its first entry being number `first`: a stretch of a longer vector, under the longer one's
  /// numbers.
  KRILU_INLINE View numbered_from(Index first) const { return {data ? data - first : nullptr}; }
  template <class C>
  requires(std::is_same_v<C, const T> && !std::is_const_v<T>) KRILU_INLINE operator View<C>() const { return {data}; }
};

}  // namespace krilu
