// SPDX-License-Identifier: Apache-2.0
// What a space is in a team: its reductions end in a sum over all ranks, so that a method's text, its decisions and its
// history are the same on every rank. Everything else stays a rank's own. With the first sum of each reduction travels
// the wish to stop, since a rank that stopped alone would leave the others waiting.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/withheld.hpp"
#include "krilu/ranks.hpp"

namespace krilu::exec {

class Together {
 public:
  /// rows: of all ranks.
  Together(std::shared_ptr<Ranks> ranks, std::int64_t rows) : ranks_(std::move(ranks)), rows_(rows) {}

  int size() const { return ranks_->size(); }
  /// Of all ranks.
  std::size_t rows() const { return std::size_t(rows_); }

  /// values[k] over all ranks, in their arithmetic.
  template <class T>
  void sum(T* values, std::size_t count) {
    buffer_.resize(count + 1);
    for (std::size_t k = 0; k < count; ++k) buffer_[k] = double(values[k]);
    buffer_[count] = withheld.any() || (wish_ && std::atomic_ref<int>(*wish_).load(std::memory_order_relaxed) != 0);
    ranks_->sum(buffer_);
    for (std::size_t k = 0; k < count; ++k) values[k] = T(buffer_[k]);
    if (buffer_[count] != 0) agreed_ = 1;
  }
  /// From now on `mine` is this rank's wish to stop; where any rank has one, all see it at the place that is returned.
  int* watch(int* mine) {
    wish_ = mine;
    agreed_ = 0;
    withheld.forget();
    return &agreed_;
  }

  bool wished() const { return agreed_ != 0; }

  Withheld withheld;  // of this rank

 private:
  std::shared_ptr<Ranks> ranks_;
  std::int64_t rows_ = 0;
  std::vector<double> buffer_;
  int* wish_ = nullptr;
  int agreed_ = 0;
};

}  // namespace krilu::exec
