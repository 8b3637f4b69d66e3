// SPDX-License-Identifier: Apache-2.0
#include "precond/fill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "krilu/error.hpp"

namespace krilu::precond {

namespace {

/// The entries of one level: row i's stand at start[i] .. start[i+1]-1, those left of the diagonal before split[i].
struct LevelView {
  const Offset* start = nullptr;
  const Offset* split = nullptr;
  const Index* columns = nullptr;
};
struct Level {
  Buffer<Offset> start, split;
  Buffer<Index> columns;  // in no order on either side of the diagonal
  LevelView view() const { return {start.data(), split.data(), columns.data()}; }
};

/// Entries kept so far, and whether they are too many.
struct Quota {
  std::atomic<std::int64_t> kept{0};
  std::int64_t most = 0;
  bool exceeded() const { return kept.load(std::memory_order_relaxed) > most; }
};

/// Consecutive rows that one thread takes at a time.
constexpr Index piece = 64;
/// Entries that a thread finds before it tells the quota: what may be held beyond it.
constexpr std::int64_t untold = 1 << 20;

/// Levels whose entries are in `lower`, left of the diagonal, and in the rows that these name, right of it.
struct Pair {
  LevelView lower, upper;
};

/// What the pairs give and no level of `known` has. Complete only if the quota is not exceeded.
Level next_level(const exec::Host& host, Index rows, const std::vector<LevelView>& known,
                 const std::vector<Pair>& pairs, Quota& quota) {
  struct Found {
    int thread = 0;
    std::size_t begin = 0, count = 0;
  };
  const Index pieces = rows / piece + Index(rows % piece != 0);
  const int threads = std::min(host.threads(), pieces);
  Level out;
  out.start.resize(std::size_t(rows) + 1);
  out.split.resize(std::size_t(rows));
  std::vector<Found> found(static_cast<std::size_t>(pieces));
  std::vector<Buffer<Index>> grown(static_cast<std::size_t>(threads));
  std::size_t usual = 0;  // a level is seldom larger than all before it, and room that is not used is never touched
  for (const LevelView& l : known) usual += std::size_t(l.start[rows]) / std::size_t(threads);
  std::atomic<Index> next{0};
  std::exception_ptr failure;  // memory may run out, and no exception leaves a team
  std::mutex failing;

  host.parallel(threads, [&](int me, int) {
    try {
      std::vector<Index> mark(std::size_t(rows), -1);  // the last row that was seen to have this column
      std::vector<Index> upper;
      Buffer<Index> mine;
      mine.reserve(usual);
      std::int64_t news = 0;
      for (Index now = next++; now < pieces && !quota.exceeded(); now = next++) {
        const std::size_t begin = mine.size();
        const Index end = now * piece + std::min(piece, rows - now * piece);
        for (Index i = now * piece; i < end && !quota.exceeded(); ++i) {
          const std::size_t first = mine.size();
          mark[std::size_t(i)] = i;
          for (const LevelView& l : known)
            for (Offset e = l.start[i]; e < l.start[i + 1]; ++e) mark[std::size_t(l.columns[e])] = i;
          upper.clear();
          for (const auto& [l, u] : pairs)
            for (Offset im = l.start[i]; im < l.split[i]; ++im) {
              const Index m = l.columns[im];
              for (Offset mj = u.split[m]; mj < u.start[m + 1]; ++mj) {
                const Index j = u.columns[mj];
                if (mark[std::size_t(j)] == i) continue;
                mark[std::size_t(j)] = i;
                (j < i ? mine.push_back(j) : upper.push_back(j));
              }
            }
          out.split[std::size_t(i)] = Offset(mine.size() - first);
          mine.insert(mine.end(), upper.begin(), upper.end());
          out.start[std::size_t(i) + 1] = Offset(mine.size() - first);
          news += std::int64_t(mine.size() - first);
          if (news > untold) quota.kept += std::exchange(news, 0);
        }
        found[std::size_t(now)] = {me, begin, mine.size() - begin};
        quota.kept += std::exchange(news, 0);
      }
      grown[std::size_t(me)] = std::move(mine);
    } catch (...) {
      const std::lock_guard lock(failing);
      failure = std::current_exception();
      next = pieces;
    }
  });
  if (failure) std::rethrow_exception(failure);
  if (quota.exceeded()) return out;

  out.start[0] = 0;
  for (std::size_t i = 0; i < std::size_t(rows); ++i) {
    out.split[i] += out.start[i];
    out.start[i + 1] += out.start[i];
  }
  if (threads == 1) {
    out.columns = std::move(grown[0]);
  } else {
    out.columns.resize(std::size_t(out.start[std::size_t(rows)]));
    host.parallel(threads, [&](int me, int team) {
      for (Index k = me; k < pieces; k += team) {
        const auto& [thread, begin, count] = found[std::size_t(k)];
        std::copy_n(grown[std::size_t(thread)].data() + begin, count,
                    out.columns.data() + out.start[std::size_t(k * piece)]);
      }
    });
  }
  return out;
}

/// The levels beside A's own, and the diagonals that A has not, merged into A's rows.
FilledPattern merge(const exec::Host& host, const CsrView& a, const Offset* split, const std::vector<LevelView>& fill) {
  const auto has_diagonal = [a, split](Index i) { return split[i] < a.offsets[i + 1] && a.columns[split[i]] == i; };
  FilledPattern out;
  out.offsets.resize(std::size_t(a.rows) + 1);
  out.offsets[0] = 0;
  host.for_each_range(std::size_t(a.rows), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      Offset count = a.offsets[i + 1] - a.offsets[i] + Offset(!has_diagonal(i));
      for (const LevelView& l : fill) count += l.start[i + 1] - l.start[i];
      out.offsets[std::size_t(i) + 1] = count;
    }
  });
  std::partial_sum(out.offsets.begin(), out.offsets.end(), out.offsets.begin());
  const auto entries = std::size_t(out.offsets[std::size_t(a.rows)]);
  out.columns.resize(entries);
  out.source.resize(entries);
  host.for_each_range(std::size_t(a.rows), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      // The new entries wait, sorted, in the last places of the row: those are written when they have been read.
      Index* to = out.columns.data() + out.offsets[std::size_t(i)];
      Offset* source = out.source.data() + out.offsets[std::size_t(i)];
      const Index* const last = out.columns.data() + out.offsets[std::size_t(i) + 1];
      Offset k = a.offsets[i];
      const Offset own_end = a.offsets[i + 1];
      Index* const added = to + (own_end - k);
      Index* tail = added;
      if (!has_diagonal(i)) *tail++ = i;
      for (const LevelView& l : fill) tail = std::copy(l.columns + l.start[i], l.columns + l.start[i + 1], tail);
      if (tail == added) {
        std::copy(a.columns + k, a.columns + own_end, to);
        std::iota(source, source + (own_end - k), k);
        continue;
      }
      std::sort(added, tail);
      for (const Index* from = added; to < last; ++to, ++source) {
        const bool own = k < own_end && (from == last || a.columns[k] < *from);
        *source = own ? k : -1;
        *to = own ? a.columns[k++] : *from++;
      }
    }
  });
  return out;
}

}  // namespace

FilledPattern fill_pattern(const exec::Host& host, const CsrView& a, int level, Offset most) {
  if (level < 0) throw Error(fmt::format("ILU(k) with level {}: take a level of 0 or more", level));
  FilledPattern out;
  if (a.rows == 0) {
    out.offsets.assign(1, 0);
    return out;
  }
  Quota quota;
  quota.most = most;
  const auto require_few = [&] {
    if (!quota.exceeded()) return;
    const std::string limit = most == std::numeric_limits<Offset>::max() ? "2^31 - 1" : fmt::format("{}", most);
    throw Error(
        fmt::format("ILU(k) with level {} would keep more than {} entries: take a smaller level", level, limit));
  };

  // Level 0 is A itself. What stands right of split[i] may begin with the diagonal, which every row has already.
  Buffer<Offset> split(static_cast<std::size_t>(a.rows));
  quota.kept = a.nnz();
  host.for_each_range(std::size_t(a.rows), [&](Index begin, Index end) {
    Index missing = 0;
    for (Index i = begin; i < end; ++i) {
      Offset k = a.offsets[i];
      while (k < a.offsets[i + 1] && a.columns[k] < i) ++k;
      split[std::size_t(i)] = k;
      missing += Index(k == a.offsets[i + 1] || a.columns[k] != i);
    }
    quota.kept += missing;
  });
  require_few();

  // known[q] is level q's place among the levels that have entries, or -1: levels may be skipped (a path of four edges
  // whose highest vertex is the middle one gives 3, and no 2).
  std::vector<int> place{0};
  std::vector<LevelView> views{{a.offsets, split.data(), a.columns}};
  std::vector<Level> levels;
  int highest = 0;
  for (int p = 1; p <= level && p <= 2 * highest + 1; ++p) {
    std::vector<Pair> pairs;
    for (int q = 0; q < p; ++q)
      if (const int l = place[std::size_t(q)], u = place[std::size_t(p - 1 - q)]; l >= 0 && u >= 0)
        pairs.push_back({views[std::size_t(l)], views[std::size_t(u)]});
    place.push_back(-1);
    if (pairs.empty()) continue;
    Level next = next_level(host, a.rows, views, pairs, quota);
    require_few();
    if (next.columns.empty()) continue;
    levels.push_back(std::move(next));
    place.back() = int(views.size());
    views.push_back(levels.back().view());
    highest = p;
  }
  views.erase(views.begin());
  return merge(host, a, split.data(), views);
}

}  // namespace krilu::precond
