// SPDX-License-Identifier: Apache-2.0
// Slots stand in the order of the global numbers of their rows, so that the entries of a row keep their order on both
// sides of the cut, and new values need no list of where each goes.
#include "distributed/halo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "base/random.hpp"
#include "base/together.hpp"
#include "distributed/all_to_all.hpp"
#include "krilu/error.hpp"

namespace krilu::distributed {

namespace {

/// Entries low .. high - 1 of local row i are those of the block.
struct Inside {
  Offset low, high;
};
Inside inside_of(const RowsView& a, Index i) {
  Offset low = a.offsets[i], high = a.offsets[i + 1];
  while (low < high && a.columns[low] < a.first) ++low;
  while (high > low && a.columns[high - 1] >= a.first + a.count) --high;
  return {low, high};
}

}  // namespace

Offset Halo::outside_before(Index i) const {
  return plan_.offsets[std::size_t(std::lower_bound(plan_.rows.begin(), plan_.rows.end(), i) - plan_.rows.begin())];
}

std::uint64_t Halo::pattern_hash(const RowsView& a) const {
  std::atomic<std::uint64_t> hash{random_bits(std::uint64_t(a.count)) + std::uint64_t(a.all)};
  host_.for_each_range(std::size_t(a.count), [&](Index from, Index to) {
    std::uint64_t sum = 0;
    for (Index i = from; i < to; ++i) {
      const std::uint64_t row = random_bits(std::uint64_t(i));
      for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) sum += random_bits(row ^ std::uint64_t(a.columns[k]));
    }
    hash.fetch_add(sum, std::memory_order_relaxed);
  });
  return hash;
}

Halo::Halo(std::shared_ptr<Communicator> c, const RowsView& a, const exec::Host& host, Gaps gaps)
    : communicator_(std::move(c)), host_(host) {
  Communicator& ranks = *communicator_;
  together(ranks, [&] {
    require_valid(a);
    if (a.nnz() > 0 && !a.values) throw Error("the rows have no values");
  });
  ranges_ = gather_ranges(ranks, a.all, a.first, a.count, gaps);
  hash_ = pattern_hash(a);

  // The block, and which rows have entries outside of it.
  std::vector<std::int64_t> needed;
  std::vector<Index> outer_rows;
  together(ranks, [&] {
    block_.rows = block_.cols = a.count;
    block_.offsets.resize(std::size_t(a.count) + 1);
    block_.offsets[0] = 0;
    host_.for_each_range(std::size_t(a.count), [&](Index from, Index to) {
      for (Index i = from; i < to; ++i) {
        const auto [low, high] = inside_of(a, i);
        block_.offsets[std::size_t(i) + 1] = high - low;
      }
    });
    for (Index i = 0; i < a.count; ++i) {
      Offset& inside = block_.offsets[std::size_t(i) + 1];
      if (inside < a.offsets[i + 1] - a.offsets[i]) outer_rows.push_back(i);
      inside += block_.offsets[std::size_t(i)];
    }
    block_nnz_ = block_.nnz();
    block_.columns.resize(std::size_t(block_nnz_));
    block_.values.resize(std::size_t(block_nnz_));
    host_.for_each_range(std::size_t(a.count), [&](Index from, Index to) {
      Index* column = block_.columns.data() + block_.offsets[std::size_t(from)];
      for (Index i = from; i < to; ++i) {
        const auto [low, high] = inside_of(a, i);
        for (Offset k = low; k < high; ++k) *column++ = Index(a.columns[k] - a.first);
      }
    });
    needed.reserve(std::size_t(a.nnz() - block_nnz_));
    for (const Index i : outer_rows)
      for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
        if (a.columns[k] < a.first || a.columns[k] >= a.first + a.count) needed.push_back(a.columns[k]);
    std::sort(needed.begin(), needed.end());
    needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  });
  plan_.exchange = plan_exchange(ranks, ranges_, std::move(needed));

  together(ranks, [&] {
    const std::vector<Index>& sent = plan_.exchange.send_rows;
    std::vector<Index>& rows = plan_.rows;
    rows = outer_rows;
    rows.insert(rows.end(), sent.begin(), sent.end());
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    for (const Index i : sent)
      plan_.send_places.push_back(Index(std::lower_bound(rows.begin(), rows.end(), i) - rows.begin()));
    plan_.offsets.push_back(0);
    const std::vector<std::int64_t>& slots = plan_.exchange.slot_rows;
    for (const Index i : rows) {
      for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
        if (a.columns[k] < a.first || a.columns[k] >= a.first + a.count)
          plan_.columns.push_back(Index(std::lower_bound(slots.begin(), slots.end(), a.columns[k]) - slots.begin()));
      plan_.offsets.push_back(Offset(plan_.columns.size()));
    }
    plan_.values.resize(plan_.columns.size());
    exchange_ = Exchange(communicator_, plan_.exchange, plan_.send_places);
    copy_values(a, block_.values.data());
    require_finite();
  });
  symmetric_ = find_symmetry(a);
}

/// Of those outside the block: the block's are looked at by who factors it.
void Halo::require_finite() const {
  for (std::size_t e = 0; e < plan_.values.size(); ++e)
    if (!std::isfinite(plan_.values[e])) {
      const auto k =
          std::upper_bound(plan_.offsets.begin(), plan_.offsets.end(), Offset(e)) - plan_.offsets.begin() - 1;
      throw Error(fmt::format("row {}, column {} of the whole matrix holds {} (counting from 1)",
                              ranges_.first[std::size_t(communicator_->rank())] + plan_.rows[std::size_t(k)] + 1,
                              plan_.exchange.slot_rows[std::size_t(plan_.columns[e])] + 1,
                              std::isnan(plan_.values[e]) ? "NaN" : "infinity"));
    }
}

/// Collective. Each entry outside the blocks is shown to the owner of its column, who has its mirror or has it not.
bool Halo::find_symmetry(const RowsView& a) const {
  struct Entry {
    std::int64_t row, column;
    double value;
    auto operator<=>(const Entry&) const = default;
  };
  const auto ranks = std::size_t(ranges_.ranks());
  std::vector<Buffer<Entry>> own(ranks), mirrored(ranks);
  const std::vector<std::int64_t>& slots = plan_.exchange.slot_rows;
  for (std::size_t k = 0; k < plan_.rows.size(); ++k)
    for (Offset e = plan_.offsets[k]; e < plan_.offsets[k + 1]; ++e) {
      const std::int64_t row = a.first + plan_.rows[k], column = slots[std::size_t(plan_.columns[std::size_t(e)])];
      const auto owner = std::size_t(ranges_.owner(column));
      own[owner].push_back({row, column, plan_.values[std::size_t(e)]});
      mirrored[owner].push_back({column, row, plan_.values[std::size_t(e)]});
    }
  std::vector<Buffer<Entry>> shown = all_to_all(*communicator_, std::move(mirrored));
  double unlike = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    std::sort(shown[r].begin(), shown[r].end());
    unlike += !std::equal(own[r].begin(), own[r].end(), shown[r].begin(), shown[r].end());
  }
  communicator_->sum({&unlike, 1});
  return unlike == 0;
}

sparse::HaloPlan Halo::plan() const {
  sparse::HaloPlan plan = halo_plan(plan_.exchange);
  plan.rows.assign(plan_.rows.begin(), plan_.rows.end());
  plan.offsets = plan_.offsets;
  plan.columns = plan_.columns;
  plan.values = plan_.values;
  return plan;
}

void Halo::copy_values(const RowsView& a, double* block_values) {
  host_.for_each_range(std::size_t(a.count), [&](Index from, Index to) {
    double* outside = plan_.values.data() + outside_before(from);
    double* inside = block_values + (a.offsets[from] - outside_before(from));
    for (Index i = from; i < to; ++i) {
      const auto [low, high] = inside_of(a, i);
      outside = std::copy(a.values + a.offsets[i], a.values + low, outside);
      inside = std::copy(a.values + low, a.values + high, inside);
      outside = std::copy(a.values + high, a.values + a.offsets[i + 1], outside);
    }
  });
}

void Halo::refresh(const RowsView& a, double* block_values) {
  together(*communicator_, [&] {
    const auto me = communicator_->rank();
    if (a.all != ranges_.all || a.count != ranges_.count(me) ||
        (a.count > 0 && a.first != ranges_.first[std::size_t(me)]) ||
        a.nnz() != block_nnz_ + Offset(plan_.columns.size()) || pattern_hash(a) != hash_)
      throw Error("the rows have another pattern than those that were analysed: analyse them");
    copy_values(a, block_values);
    require_finite();
  });
}

void Halo::take_outside(std::span<const double> values) {
  std::copy(values.begin(), values.end(), plan_.values.begin());
  require_finite();
}

void Halo::finish(double* y) {
  const double* const x = exchange_.finish();
  const Offset* const offsets = plan_.offsets.data();
  const Index* const columns = plan_.columns.data();
  const double* const values = plan_.values.data();
  host_.for_each_range(plan_.rows.size(), [=](Index from, Index to) {
    for (Index i = from; i < to; ++i) {
      double sum = 0;
      for (Offset k = offsets[i]; k < offsets[i + 1]; ++k) sum += values[k] * x[columns[k]];
      y[i] = sum;
    }
  });
}

}  // namespace krilu::distributed
