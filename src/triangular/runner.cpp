// SPDX-License-Identifier: Apache-2.0
#include "triangular/runner.hpp"

#include <fmt/format.h>

namespace krilu::triangular {

SliceRunner::SliceRunner(const exec::Host& host, const sparse::SplitPattern& pattern, const Index* lower_column,
                         const Index* upper_column, Strategy strategy, RunnerTuning tuning)
    : host_(host), tuning_(tuning), slices_(pattern.slices()), part_slices_(pattern.part_slices()), chosen_(strategy) {
  if (!part_slices_.empty() && strategy == Strategy::automatic) chosen_ = Strategy::parts;
  // With one thread there is nothing to choose: the other two are the serial sweep with waiting on top.
  if (host.threads() == 1 && strategy == Strategy::automatic) chosen_ = Strategy::serial;
  const bool all = chosen_ == Strategy::automatic;
  if (all || chosen_ == Strategy::level_set) plan_level_set(pattern);
  if (all || chosen_ == Strategy::sync_free) plan_sync_free(pattern, lower_column, upper_column);
  if (all)
    for (Strategy s : {Strategy::serial, Strategy::level_set, Strategy::sync_free}) candidates_.push_back({s});
}

void SliceRunner::plan_level_set(const sparse::SplitPattern& pattern) {
  const auto& level = pattern.group_slices();
  const auto& row = pattern.slice_rows();
  for (std::size_t l = 0; l + 1 < level.size(); ++l) {
    const Index rows = row[std::size_t(level[l + 1])] - row[std::size_t(level[l])];
    const bool shared = rows >= tuning_.narrow_rows * host_.threads();
    if (!shared && !steps_.empty() && !steps_.back().shared)
      steps_.back().end = level[l + 1];
    else
      steps_.push_back({level[l], level[l + 1], shared});
  }
}

void SliceRunner::plan_sync_free(const sparse::SplitPattern& pattern, const Index* lower_column,
                                 const Index* upper_column) {
  const int threads = host_.threads();
  const auto rows = std::max(1.0, double(pattern.rows()) / std::max(1, pattern.slices()));  // of a node
  group_slices_ = std::max<Index>(
      1, pattern.height() > 0 ? tuning_.group_rows / pattern.height() : Index(tuning_.group_rows / rows));
  const Index groups = (slices_ + group_slices_ - 1) / group_slices_;
  std::vector<Index> slice_of_row(std::size_t(pattern.rows()));
  for (Index s = 0; s < slices_; ++s)
    for (Index i = pattern.slice_rows()[std::size_t(s)]; i < pattern.slice_rows()[std::size_t(s) + 1]; ++i)
      slice_of_row[std::size_t(i)] = s;
  // A thread goes through its own groups in order, so of each other thread only the furthest group counts.
  const auto plan = [&](Needs& needs, const std::vector<Offset>& offset, const Index* column, bool up) {
    needs.assign(std::size_t(groups) * std::size_t(threads), 0);
    host_.for_each_range(std::size_t(groups), [&](Index begin, Index end) {
      for (Index g = begin; g < end; ++g) {
        std::int32_t* const furthest = needs.data() + std::size_t(g) * std::size_t(threads);
        const Index last = std::min(slices_, (g + 1) * group_slices_);
        for (Offset k = offset[std::size_t(g * group_slices_)]; k < offset[std::size_t(last)]; ++k) {
          const Index other = slice_of_row[std::size_t(column[k])] / group_slices_;
          const Index owner = other % threads;
          // How many groups its owner will have done once `other` is finished.
          const Index done = up ? other / threads + 1 : (groups - 1 - owner) / threads - other / threads + 1;
          if (owner != g % threads) furthest[owner] = std::max(furthest[owner], done);
        }
      }
    });
  };
  plan(ascending_, pattern.lower_offsets(), lower_column, true);
  plan(descending_, pattern.upper_offsets(), upper_column, false);
}

void SliceRunner::settle() const {
  chosen_ = std::min_element(candidates_.begin(), candidates_.end(), [](const auto& a, const auto& b) {
              return a.best < b.best;
            })->strategy;
}

Report SliceRunner::report() const {
  std::string text;
  for (const Candidate& c : candidates_)
    if (c.trials > 0)
      text += fmt::format("{}{} {:.3f} ms", text.empty() ? "" : ", ", to_string(c.strategy), 1e3 * c.best);
  return {current(), text, settled()};
}

std::size_t SliceRunner::bytes() const {
  std::size_t b = steps_.capacity() * sizeof(Step) + part_slices_.capacity() * sizeof(Index);
  return b + (ascending_.capacity() + descending_.capacity()) * sizeof(std::int32_t);
}

}  // namespace krilu::triangular
