// SPDX-License-Identifier: Apache-2.0
// What a caller's code throws on one rank, in the middle of what all ranks do: it is withheld until they meet, since
// the others would wait for a rank that left. Meanwhile it is a wish to stop, which travels with the sums.
#pragma once

#include <exception>
#include <utility>

namespace krilu {

class Withheld {
 public:
  template <class F>
  void during(F&& f) {
    try {
      f();
    } catch (...) {
      if (!thrown_) thrown_ = std::current_exception();
    }
  }
  bool any() const { return thrown_ != nullptr; }
  void forget() { thrown_ = nullptr; }
  /// Throws what is withheld.
  void release() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  std::exception_ptr thrown_;
};

}  // namespace krilu
