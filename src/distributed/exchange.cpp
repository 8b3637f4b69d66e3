// SPDX-License-Identifier: Apache-2.0
#include "distributed/exchange.hpp"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <utility>

#include "base/together.hpp"
#include "distributed/all_to_all.hpp"
#include "krilu/error.hpp"

namespace krilu::distributed {

ExchangePlan plan_exchange(Communicator& c, const RowRanges& ranges, std::vector<std::int64_t> needed) {
  const auto team = std::size_t(c.size()), me = std::size_t(c.rank());
  std::vector<Buffer<std::int64_t>> asked(team);
  std::vector<std::int64_t> counts(team, 0);
  together(c, [&] {
    if (needed.size() > std::size_t(std::numeric_limits<Index>::max()))
      throw Error(
          fmt::format("{} entries of other ranks are needed, and they must be fewer than 2^31: use fewer rows "
                      "a rank",
                      needed.size()));
    for (const std::int64_t row : needed) {
      const int owner = ranges.owner(row);
      if (owner < 0) throw Error(fmt::format("column {} has entries, and no rank has that row", row + 1));
      asked[std::size_t(owner)].push_back(row);
      ++counts[std::size_t(owner)];
    }
  });
  const std::vector<std::int64_t> all = gather_counts(c, counts);
  const std::vector<Buffer<std::int64_t>> wanted = all_to_all(c, std::move(asked));

  ExchangePlan p;
  p.slot_rows = std::move(needed);
  p.send_offsets.push_back(0);
  p.slot_offsets.push_back(0);
  for (std::size_t r = 0; r < team; ++r) {
    if (r == me || (counts[r] == 0 && wanted[r].empty())) continue;
    p.neighbours.push_back(int(r));
    for (const std::int64_t row : wanted[r]) p.send_rows.push_back(Index(row - ranges.first[me]));
    p.send_offsets.push_back(Index(p.send_rows.size()));
    p.slot_offsets.push_back(Index(p.slot_offsets.back() + counts[r]));
    std::int64_t before = 0;  // slots of r that ranks before this one fill
    for (std::size_t q = 0; q < me; ++q) before += all[r * team + q];
    p.remote_slots.push_back(Index(before));
  }
  return p;
}

sparse::HaloPlan halo_plan(const ExchangePlan& e) {
  sparse::HaloPlan plan;
  for (std::size_t n = 0; n < e.neighbours.size(); ++n)
    plan.neighbours.push_back({e.neighbours[n], e.send_offsets[n], e.send_offsets[n + 1] - e.send_offsets[n],
                               e.slot_offsets[n], e.slot_offsets[n + 1] - e.slot_offsets[n], e.remote_slots[n]});
  plan.send_rows.assign(e.send_rows.begin(), e.send_rows.end());
  plan.slots = e.slots();
  return plan;
}

Exchange::Exchange(std::shared_ptr<Communicator> c, const ExchangePlan& plan, std::vector<Index> places)
    : communicator_(std::move(c)),
      places_(places.empty() ? plan.send_rows : std::move(places)),
      out_(places_.size()),
      slots_(std::size_t(plan.slots())) {
  for (std::size_t k = 0; k < plan.neighbours.size(); ++k) {
    const int r = plan.neighbours[k];
    const auto s = std::size_t(plan.send_offsets[k]), t = std::size_t(plan.slot_offsets[k]);
    const std::size_t sent = std::size_t(plan.send_offsets[k + 1]) - s;
    const std::size_t received = std::size_t(plan.slot_offsets[k + 1]) - t;
    // Both ranks know where nothing is to be said.
    if (sent) sends_.push_back({r, out_.data() + s, sent * sizeof(double)});
    if (received) receives_.push_back({r, slots_.data() + t, received * sizeof(double)});
  }
}

void Exchange::start(const double* x) {
  for (std::size_t k = 0; k < out_.size(); ++k) out_[k] = x[places_[k]];
  ++cost_.exchanges;
  cost_.messages += std::int64_t(sends_.size());
  cost_.bytes += std::int64_t(out_.size() * sizeof(double));
  if (!sends_.empty() || !receives_.empty()) communicator_->start(sends_, receives_);
}

const double* Exchange::finish() {
  if (!sends_.empty() || !receives_.empty()) {
    const auto begin = std::chrono::steady_clock::now();
    communicator_->finish();
    cost_.seconds_waited += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  return slots_.data();
}

}  // namespace krilu::distributed
