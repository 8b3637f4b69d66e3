// SPDX-License-Identifier: Apache-2.0
// Lists for every rank from every rank: what setting up needs, and no iteration. Cost: an all_gather of size() numbers
// a rank, then one message for each pair of ranks that has something to say.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "krilu/buffer.hpp"
#include "krilu/communicator.hpp"

namespace krilu::distributed {

/// counts[q * size + r]: how many things rank q has for rank r. `mine` holds this rank's size() counts.
inline std::vector<std::int64_t> gather_counts(Ranks& ranks, const std::vector<std::int64_t>& mine) {
  std::vector<std::int64_t> all(mine.size() * mine.size());
  ranks.all_gather(mine.data(), mine.size() * sizeof mine[0], all.data());
  return all;
}

/// Collective. out[r] is for rank r; returns in, in[q] from rank q. T is copied as bytes.
template <class T>
std::vector<Buffer<T>> all_to_all(Communicator& c, std::vector<Buffer<T>> out) {
  const auto team = std::size_t(c.size()), me = std::size_t(c.rank());
  std::vector<std::int64_t> lengths(team);
  for (std::size_t r = 0; r < team; ++r) lengths[r] = std::int64_t(out[r].size());
  const std::vector<std::int64_t> all = gather_counts(c, lengths);
  std::vector<Buffer<T>> in(team);
  std::vector<Communicator::Sent> sends;
  std::vector<Communicator::Received> receives;
  for (std::size_t r = 0; r < team; ++r) {
    if (r == me) continue;
    in[r] = Buffer<T>(std::size_t(all[r * team + me]));
    if (!in[r].empty()) receives.push_back({int(r), in[r].data(), in[r].size() * sizeof(T)});
    if (!out[r].empty()) sends.push_back({int(r), out[r].data(), out[r].size() * sizeof(T)});
  }
  c.start(sends, receives);
  in[me] = std::move(out[me]);
  c.finish();
  return in;
}

}  // namespace krilu::distributed
