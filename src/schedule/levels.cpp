// SPDX-License-Identifier: Apache-2.0
#include "schedule/levels.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "exec/threads.hpp"

namespace krilu::schedule {

namespace {

/// Place k of the sweep is row at(k); row j stands before row i where precedes(j, i).
struct Sequence {
  const TriangleOf& t;
  Index at(Index k) const {
    const Index place = t.triangle == Triangle::lower ? k : t.a.rows - 1 - k;
    return t.order ? (*t.order)[std::size_t(place)] : place;
  }
  Index rank(Index row) const {
    const Index r = t.rank ? (*t.rank)[std::size_t(row)] : row;
    return t.triangle == Triangle::lower ? r : t.a.rows - 1 - r;
  }
};

/// Consecutive rows that one thread takes at a time.
constexpr Index chunk = 64;

}  // namespace

std::vector<Index> levels_sync_free(const exec::Host& host, const TriangleOf& t) {
  const Sequence seq{t};
  const Index n = t.a.rows;
  std::vector<Index> level(std::size_t(n), 0);
  // Chunks of places are dealt to the threads in turn, each thread goes through its own in ascending order, and so one
  // counter a thread tells which of its rows are done.
  const int threads = n >= 4 * chunk * host.threads() ? host.threads() : 1;
  exec::Progress progress(threads);
  host.parallel(threads, [&](int me, int team) {
    for (Index first = chunk * me; first < n; first += chunk * team) {
      for (Index k = first; k < std::min(n, first + chunk); ++k) {
        const Index i = seq.at(k);
        Index highest = -1;
        for (Offset e = t.a.offsets[i]; e < t.a.offsets[i + 1]; ++e) {
          const Index j = t.a.columns[e];
          const Index place = seq.rank(j);
          if (place >= k) continue;
          if (const int owner = int(place / chunk) % team; owner != me) progress.wait(owner, place + 1);
          highest = std::max(highest, std::atomic_ref(level[std::size_t(j)]).load(std::memory_order_relaxed));
        }
        std::atomic_ref(level[std::size_t(i)]).store(highest + 1, std::memory_order_relaxed);
        progress.publish(me, k + 1);
      }
    }
    progress.publish(me, n);
  });
  return level;
}

std::vector<Index> levels_by_rounds(const exec::Host& host, const TriangleOf& t) {
  constexpr Index none = -1;
  const Sequence seq{t};
  const Index n = t.a.rows;
  std::vector<Index> level(std::size_t(n), none);
  std::atomic<Index> uncoloured{n};
  for (Index round = 0; uncoloured > 0; ++round) {
    host.for_each_range(std::size_t(n), [&](Index begin, Index end) {
      Index coloured = 0;
      for (Index i = begin; i < end; ++i) {
        // A neighbour may get its level in this very round: whether `none` or `round` is read, the row must wait.
        if (level[std::size_t(i)] != none) continue;
        bool ready = true;
        for (Offset e = t.a.offsets[i]; ready && e < t.a.offsets[i + 1]; ++e) {
          const Index j = t.a.columns[e];
          if (seq.rank(j) >= seq.rank(i)) continue;
          const Index lj = std::atomic_ref(level[std::size_t(j)]).load(std::memory_order_relaxed);
          ready = lj != none && lj != round;
        }
        if (!ready) continue;
        std::atomic_ref(level[std::size_t(i)]).store(round, std::memory_order_relaxed);
        ++coloured;
      }
      uncoloured -= coloured;
    });
  }
  return level;
}

LevelOrder sort_by_level(const std::vector<Index>& level, const Order* sequence) {
  LevelOrder out;
  const Index count = level.empty() ? 0 : *std::max_element(level.begin(), level.end()) + 1;
  out.offsets.assign(std::size_t(count) + 1, 0);
  for (Index l : level) ++out.offsets[std::size_t(l) + 1];
  std::partial_sum(out.offsets.begin(), out.offsets.end(), out.offsets.begin());
  std::vector<Index> next(out.offsets.begin(), out.offsets.end() - 1);
  out.rows.resize(level.size());
  for (std::size_t k = 0; k < level.size(); ++k) {
    const Index row = sequence ? (*sequence)[k] : Index(k);
    out.rows[std::size_t(next[std::size_t(level[std::size_t(row)])]++)] = row;
  }
  return out;
}

}  // namespace krilu::schedule
