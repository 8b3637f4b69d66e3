// SPDX-License-Identifier: Apache-2.0
// A counting sort into buckets, by all threads of a host. Cost: two passes over the keys, one over the items.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "exec/host.hpp"
#include "krilu/buffer.hpp"
#include "krilu/types.hpp"

namespace krilu::mesh {

/// What make(i) gives of 0 <= i < n, in buckets and in sequence within each: `item` holds those of bucket k at
/// offsets[k] .. offsets[k+1]-1. key(i) >= buckets: left out. Shared by threads; the same for any number of them.
template <class T>
struct Buckets {
  Buffer<Index> offsets;
  Buffer<T> item;
};
template <class Key, class Make>
auto in_buckets(const exec::Host& host, Index n, Index buckets, Key key, Make make) {
  const int team = n > 100000 ? std::clamp(int(n / std::max<Index>(1, buckets)), 1, host.threads()) : 1;
  const auto B = std::size_t(buckets);
  Buffer<Index> count(std::size_t(team) * B);
  std::fill(count.begin(), count.end(), 0);
  const auto piece = [&](int t) { return Index(std::int64_t(n) * t / team); };
  const auto each = [&](auto f) {
    std::atomic<int> next{0};
    host.parallel(team, [&](int, int) {
      for (int t; (t = next.fetch_add(1)) < team;) f(t);
    });
  };
  each([&](int t) {
    Index* const own = count.data() + std::size_t(t) * B;
    for (Index i = piece(t); i < piece(t + 1); ++i)
      if (const Index k = key(i); k < buckets) ++own[k];
  });
  Buckets<decltype(make(Index{}))> out;
  out.offsets.resize(B + 1);
  Index total = 0;
  for (std::size_t k = 0; k < B; ++k) {
    out.offsets[k] = total;
    for (int t = 0; t < team; ++t) total += std::exchange(count[std::size_t(t) * B + k], total);
  }
  out.offsets[B] = total;
  out.item.resize(std::size_t(total));
  each([&](int t) {
    Index* const own = count.data() + std::size_t(t) * B;
    for (Index i = piece(t); i < piece(t + 1); ++i)
      if (const Index k = key(i); k < buckets) out.item[std::size_t(own[k]++)] = make(i);
  });
  return out;
}

}  // namespace krilu::mesh
