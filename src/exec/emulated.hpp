// SPDX-License-Identifier: Apache-2.0
// exec::Emulated: a device that a machine without one can test against. Its memory is separate and closed to the host;
// kernels are queued, and run only when the host synchronises or copies; repeat_until records its body once and replays
// the record, as a CUDA graph does. So host code that touches device data, that reads a result before a
// synchronisation, or whose loop body depends on being spoken anew in each iteration, crashes or gives a wrong answer
// in CI, without any GPU. Slow on purpose; the arithmetic is the host space's own, bit for bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "exec/host.hpp"

namespace krilu::exec {

/// Pages that are closed (PROT_NONE) except while kernels run. Blocks lie side by side in few ranges of addresses, so
/// that to open them all takes few calls of the system.
class ProtectedMemory final : public Memory {
 public:
  ~ProtectedMemory() override;
  void* allocate(std::size_t bytes) override;
  void deallocate(void* p, std::size_t bytes) noexcept override;
  void open();
  void close();

 private:
  using Pieces = std::map<char*, std::size_t>;  // begin and length, whole pages
  void protect(int flags);
  Pieces ranges_, free_, blocks_;
  bool open_ = false;
};

class Emulated {
  using Kernel = std::function<void(const Host&)>;
  using Queue = std::vector<Kernel>;

 public:
  explicit Emulated(int threads = 0);
  // A copy is the same device, as a copied stream handle is.
  Emulated(const Emulated&) = default;
  Emulated& operator=(const Emulated&) = default;

  static constexpr const char* name = "emulated";
  int threads() const { return host_.threads(); }

  Emulated join(std::shared_ptr<Ranks> ranks, std::int64_t rows) const {
    Emulated member = *this;
    member.host_ = host_.join(std::move(ranks), rows);
    return member;
  }
  bool in_team() const { return host_.in_team(); }
  std::size_t total(std::size_t rows) const { return host_.total(rows); }
  std::size_t even_share(std::size_t rows) const { return host_.even_share(rows); }
  int* watch(int* mine) const { return host_.watch(mine); }
  bool wished() const { return host_.wished(); }
  void meet() const {}
  bool connect() const { return true; }
  void disconnect() const {}
  void give_up() const {}
  template <class F>
  void in_company(F&& f) const {
    host_.in_company(f);
  }
  void release() const { host_.release(); }

  template <class T>
  Array<T> allocate(std::size_t n) const {
    return Array<T>(device_->memory, n);
  }
  template <class T>
  void copy_in(const Array<T>& to, const T* from, std::size_t n) const {
    copy(to.data(), from, n * sizeof(T));
  }
  template <class T>
  void copy_out(T* to, const Array<T>& from, std::size_t n) const {
    copy(to, from.data(), n * sizeof(T));
  }
  template <class T>
  Array<T> allocate_shared(std::size_t n) const {
    return Array<T>(host_memory(), n);
  }
  /// Runs what is queued.
  void synchronise() const { run(nullptr); }
  long synchronisations() const { return device_->synchronisations; }
  bool recording() const { return device_->recording; }

  template <class F>
  void for_each(std::size_t n, F f) const {
    enqueue([n, f](const Host& host) { host.for_each(n, f); });
  }
  template <class F>
  void once(F f) const {
    enqueue([f](const Host&) { f(); });
  }
  template <class F, class Close>
  void reduce(std::size_t n, F f, Close close) const {
    enqueue([own = host_, n, f, close](const Host&) { own.reduce(n, f, close); });
  }
  template <class F>
  void together(F f) const {
    enqueue([f](const Host& host) { host.together(f); });
  }
  template <bool Itself = false, class B, class T, std::size_t N, class Close, class Finish>
  void dot_columns(std::size_t n, Columns<B> V, Index most, Scalar<Index> count, Index extra, std::array<View<T>, N> x,
                   Close close, Finish finish) const {
    enqueue([=, own = host_](const Host&) {
      own.template dot_columns<Itself>(n, V, most, count, extra, x, close, finish);
    });
  }
  template <class B, class T, std::size_t N, class... F>
  void combine_columns(std::size_t n, Columns<B> V, Index most, Scalar<Index> count, std::array<View<T>, N> y,
                       F... f) const {
    enqueue([=, own = host_](const Host&) { own.combine_columns(n, V, most, count, y, f...); });
  }
  template <class B, class T, class... F>
  void join_columns(std::size_t n, Columns<B> V, Scalar<Index> count, Rotations<T> by, View<T> y, View<T> z, View<T> u,
                    View<T> r, F... f) const {
    enqueue([=, own = host_](const Host&) { own.join_columns(n, V, count, by, y, z, u, r, f...); });
  }
  template <class Body>
  void repeat_until(Scalar<int> stop, Body body, int at_once = 1) const {
    const auto turn = [&] {
      for (int k = 0; k < at_once; ++k) body();
    };
    enqueue([stop, work = record(turn)](const Host& host) {
      while (!stop())
        for (const auto& kernel : *work) kernel(host);
    });
  }
  template <class Body>
  void when(Scalar<int> flag, Body body) const {
    enqueue([flag, work = record(body)](const Host& host) {
      if (flag())
        for (const auto& kernel : *work) kernel(host);
    });
  }
  class Recording {
   public:
    void renew() { kernels_.reset(); }

   private:
    friend class Emulated;
    std::shared_ptr<const Queue> kernels_;
  };
  template <class Body>
  void replay(Recording& kept, Body body) const {
    if (recording()) return body();
    if (!kept.kernels_) kept.kernels_ = record(body);
    enqueue([work = kept.kernels_](const Host& host) {
      for (const auto& kernel : *work) kernel(host);
    });
  }
  template <class T>
  void clear(const Array<T>& to) const {
    enqueue([p = to.data(), bytes = to.bytes()](const Host&) {
      if (bytes) std::memset(static_cast<void*>(p), 0, bytes);
    });
  }
  void rehearse(int) const {}
  template <class F>
  void enqueue(F f) const {
    device_->queue->push_back(std::move(f));
  }

 private:
  struct Device {
    std::shared_ptr<ProtectedMemory> memory = std::make_shared<ProtectedMemory>();
    std::shared_ptr<Queue> queue = std::make_shared<Queue>();
    long synchronisations = 0;
    bool recording = false;
  };

  template <class Body>
  std::shared_ptr<const Queue> record(Body& body) const {
    auto work = std::make_shared<Queue>();
    std::swap(work, device_->queue);
    const bool outer = std::exchange(device_->recording, true);
    body();
    device_->recording = outer;
    std::swap(work, device_->queue);
    return work;
  }
  /// What is queued, and `last`, unless it is empty.
  void run(const Kernel& last) const;
  void copy(void* to, const void* from, std::size_t bytes) const;

  Host host_;
  std::shared_ptr<Device> device_;
};

}  // namespace krilu::exec
