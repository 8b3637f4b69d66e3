// SPDX-License-Identifier: Apache-2.0
// Array<T>: memory of an execution space. It is owned, movable, of fixed size, and uninitialised. Only kernels of its
// space may touch what data() points to; the space's copy_in and copy_out bring values across.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "exec/view.hpp"

namespace krilu::exec {

/// Where an array's bytes come from. One resource per space; it outlives its arrays.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void deallocate(void* p, std::size_t bytes) noexcept = 0;
};

template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  Array(std::shared_ptr<Memory> memory, std::size_t n)
      : memory_(std::move(memory)), data_(n ? static_cast<T*>(memory_->allocate(n * sizeof(T))) : nullptr), size_(n) {}
  Array(Array&& o) noexcept
      : memory_(std::move(o.memory_)), data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}
  Array& operator=(Array&& o) noexcept {
    std::swap(memory_, o.memory_);
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    return *this;
  }
  ~Array() {
    if (data_) memory_->deallocate(data_, size_ * sizeof(T));
  }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  View<T> view() const { return {data_}; }
  Scalar<T> scalar(std::size_t i = 0) const { return {data_ + i}; }

 private:
  std::shared_ptr<Memory> memory_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace krilu::exec
