// SPDX-License-Identifier: Apache-2.0
#include "distributed/window.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace krilu::distributed {

Window::Window(std::shared_ptr<Communicator> c, const Halo& halo) : exchanged_(halo.plan()) {
  const ExchangePlan& exchange = halo.outside().exchange;
  const std::vector<std::int64_t>& named = exchange.slot_rows;
  const int me = c->rank();
  const std::int64_t own = halo.ranges().first[std::size_t(me)], end = own + halo.ranges().count(me);
  std::int64_t low = own, high = end;
  if (!named.empty()) {
    low = std::min(low, named.front());
    high = std::max(high, named.back() + 1);
  }
  first_ = Index(low);
  size_ = Index(high - low);
  own_ = Index(own - low);

  for (const std::int64_t row : named) slots_.push_back(Index(row - low));
  for (Index& row : exchanged_.send_rows) row += own_;
  places_ = slots_;
  places_.insert(places_.end(), exchanged_.send_rows.begin(), exchanged_.send_rows.end());
  std::sort(places_.begin(), places_.end());
  places_.erase(std::unique(places_.begin(), places_.end()), places_.end());
  const auto place_of = [&](Index place) {
    return Index(std::lower_bound(places_.begin(), places_.end(), place) - places_.begin());
  };
  for (const Index place : slots_) received_.push_back(place_of(place));
  std::vector<Index> sent;
  for (const Index place : exchanged_.send_rows) sent.push_back(place_of(place));
  ones_.assign(slots_.size(), 1.0);
  exchange_ = Exchange(std::move(c), exchange, std::move(sent));
}

void Window::finish(double* y) {
  const double* const x = exchange_.finish();
  std::fill_n(y, places_.size(), 0.0);
  for (std::size_t s = 0; s < received_.size(); ++s) y[received_[s]] = x[s];
}

sparse::HaloPlan Window::plan() const {
  sparse::HaloPlan plan = exchanged_;
  plan.rows.assign(slots_.begin(), slots_.end());
  plan.offsets.resize(slots_.size() + 1);
  std::iota(plan.offsets.begin(), plan.offsets.end(), Offset(0));
  plan.columns.resize(slots_.size());
  std::iota(plan.columns.begin(), plan.columns.end(), Index(0));
  plan.values.assign(ones_.begin(), ones_.end());
  return plan;
}

}  // namespace krilu::distributed
