// SPDX-License-Identifier: Apache-2.0
#include "schedule/subdomains.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <numeric>
#include <utility>

#include "exec/tasks.hpp"
#include "krilu/error.hpp"
#include "schedule/metis.hpp"

namespace krilu::schedule {

namespace {

/// From here on METIS takes long enough for clusters to be worth their code.
constexpr Index many_rows = 20000, many_parts = 128;
/// Smaller parts are left to METIS's k-way cut: bisected to the end, some come out far too large or empty.
constexpr Index part_rows = 64;
/// Rows in a cluster at most, and clusters in a part at least: larger clusters save no more time, and fewer of them
/// cannot be dealt evenly.
constexpr Index cluster_rows = 16, part_clusters = 12;
/// The largest part over the mean; METIS's own bound.
constexpr double unevenness = 1.03;
constexpr int passes = 8, passes_too_large = 32;  // the latter while a part is too large

/// A graph whose rows and couplings count for several. Null weights are ones.
struct Graph {
  Index rows = 0;
  const Offset* offsets = nullptr;
  const Index* columns = nullptr;
  const Index* size = nullptr;    // of each row: how many of the caller's it stands for
  const Index* weight = nullptr;  // of each entry: how many couplings

  Index size_of(Index i) const { return size ? size[i] : 1; }
  Index weight_of(Offset k) const { return weight ? weight[k] : 1; }
};

struct OwnedGraph {
  Buffer<Offset> offsets;
  Buffer<Index> columns, size, weight;
  Graph view() const { return {Index(size.size()), offsets.data(), columns.data(), size.data(), weight.data()}; }
};

/// Each row with the neighbour that it shares most couplings with among those still free, the first of equals, where
/// the two stand for at most `most` rows [heavy-edge matching, Karypis and Kumar 1998]; rows without any couplings pair
/// with each other. On a lattice three rounds give boxes of 2 x 2 x 2. cluster[row]: the pair's or the single row's
/// number, ascending with its first row.
Index match(const Graph& g, Index most, std::vector<Index>& cluster, std::vector<Index>& first,
            std::vector<Index>& second) {
  cluster.assign(std::size_t(g.rows), -1);
  first.clear();
  second.clear();
  Index alone = -1;  // the last row without couplings, if it has no partner yet
  for (Index i = 0; i < g.rows; ++i) {
    if (cluster[std::size_t(i)] >= 0) continue;
    if (g.offsets[i] == g.offsets[i + 1]) {
      if (alone >= 0 && g.size_of(i) + g.size_of(alone) <= most) {
        cluster[std::size_t(i)] = cluster[std::size_t(alone)];
        second[std::size_t(cluster[std::size_t(i)])] = i;
        alone = -1;
        continue;
      }
      alone = i;
    }
    Index best = -1, heaviest = 0;
    for (Offset k = g.offsets[i]; k < g.offsets[i + 1]; ++k) {
      const Index j = g.columns[k];
      if (j == i || cluster[std::size_t(j)] >= 0 || g.weight_of(k) <= heaviest || g.size_of(i) + g.size_of(j) > most)
        continue;
      heaviest = g.weight_of(k);
      best = j;
    }
    cluster[std::size_t(i)] = Index(first.size());
    if (best >= 0) cluster[std::size_t(best)] = Index(first.size());
    first.push_back(i);
    second.push_back(best);
  }
  return Index(first.size());
}

/// The graph of the clusters; couplings between the same two are added up.
OwnedGraph contract(const Graph& g, const std::vector<Index>& cluster, const std::vector<Index>& first,
                    const std::vector<Index>& second) {
  OwnedGraph c;
  c.size.resize(first.size());
  c.offsets.reserve(first.size() + 1);
  c.offsets.push_back(0);
  c.columns.reserve(std::size_t(g.offsets[g.rows]));
  c.weight.reserve(std::size_t(g.offsets[g.rows]));
  std::vector<Offset> place(first.size(), -1);  // of an entry, if it is one of this row
  for (std::size_t a = 0; a < first.size(); ++a) {
    const Offset begin = c.offsets.back();
    Index size = 0;
    for (Index i : {first[a], second[a]}) {
      if (i < 0) continue;
      size += g.size_of(i);
      for (Offset k = g.offsets[i]; k < g.offsets[i + 1]; ++k) {
        const Index b = cluster[std::size_t(g.columns[k])];
        if (std::size_t(b) == a) continue;
        Offset& at = place[std::size_t(b)];
        if (at < begin) {
          at = Offset(c.columns.size());
          c.columns.push_back(b);
          c.weight.push_back(g.weight_of(k));
        } else {
          c.weight[std::size_t(at)] += g.weight_of(k);
        }
      }
    }
    c.size[a] = size;
    c.offsets.push_back(Offset(c.columns.size()));
  }
  return c;
}

/// Recursive bisection: its parts are more even than those of METIS's k-way cut, and for hundreds of parts and more it
/// is faster too.
std::vector<Index> bisect(const Graph& g, Index parts) {
  static_assert(sizeof(idx_t) == sizeof(Index), "Debian's METIS has 32-bit indices");
  std::vector<Index> part(std::size_t(g.rows), 0);
  idx_t n = g.rows, constraints = 1, k = parts, cut = 0;
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = 1;
  const std::lock_guard alone(metis_in_use);
  const int status = METIS_PartGraphRecursive(
      &n, &constraints, const_cast<idx_t*>(g.offsets), const_cast<idx_t*>(g.columns), const_cast<idx_t*>(g.size),
      nullptr, const_cast<idx_t*>(g.weight), &k, nullptr, nullptr, options, &cut, part.data());
  if (status != METIS_OK)
    throw Error(
        fmt::format("METIS could not cut the graph of {} clusters of rows into {} parts (status {}): ask for "
                    "fewer parts",
                    g.rows, parts, status));
  return part;
}

/// Rows on a cut go, one by one, to the neighbouring part with which they share most: where that saves couplings, makes
/// two parts more even at the same price, or relieves a part that is too large. Linear a pass; the finest graph gets
/// more of them while a part is too large.
void refine(const Graph& g, Index parts, std::vector<Index>& part) {
  std::vector<Index> size(std::size_t(parts), 0), shared(std::size_t(parts), 0), near;
  std::int64_t total = 0;
  for (Index i = 0; i < g.rows; ++i) {
    size[std::size_t(part[std::size_t(i)])] += g.size_of(i);
    total += g.size_of(i);
  }
  const Index most = std::max(Index((total + parts - 1) / parts), Index(unevenness * double(total) / parts));
  for (int pass = 0; pass < passes_too_large; ++pass) {
    Index moved = 0;
    for (Index i = 0; i < g.rows; ++i) {
      const Index own = part[std::size_t(i)], rows = g.size_of(i);
      bool inside = true;
      for (Offset k = g.offsets[i]; inside && k < g.offsets[i + 1]; ++k)
        inside = part[std::size_t(g.columns[k])] == own;
      if (inside || size[std::size_t(own)] == rows) continue;
      near.clear();
      for (Offset k = g.offsets[i]; k < g.offsets[i + 1]; ++k) {
        const Index p = part[std::size_t(g.columns[k])];
        if (shared[std::size_t(p)] == 0) near.push_back(p);
        shared[std::size_t(p)] += g.weight_of(k);
      }
      Index best = -1;
      for (Index p : near) {
        // A part that is too large gives to any smaller one, which gives on: all its neighbours may be full.
        if (p == own || size[std::size_t(p)] + rows > std::max(most, size[std::size_t(own)] - 1)) continue;
        const auto better = [&](Index q) {
          return shared[std::size_t(p)] != shared[std::size_t(q)] ? shared[std::size_t(p)] > shared[std::size_t(q)]
                                                                  : size[std::size_t(p)] < size[std::size_t(q)];
        };
        if (best < 0 || better(best)) best = p;
      }
      if (best >= 0) {
        const Index gain = shared[std::size_t(best)] - shared[std::size_t(own)];
        const bool evener = size[std::size_t(best)] + rows < size[std::size_t(own)];
        if (gain > 0 || (gain == 0 && evener) || (size[std::size_t(own)] > most && evener)) {
          part[std::size_t(i)] = best;
          size[std::size_t(own)] -= rows;
          size[std::size_t(best)] += rows;
          ++moved;
        }
      }
      for (Index p : near) shared[std::size_t(p)] = 0;
    }
    const bool even = *std::max_element(size.begin(), size.end()) <= most;
    if (moved == 0 || (even && moved <= g.rows / 5000) || pass + 1 >= (even || g.size ? passes : passes_too_large))
      break;
  }
}

/// A row's place on a lattice in one number, by its coordinates or, rotated, by those of another direction first.
struct Place {
  static constexpr int bits = 21, directions = 3;
  static constexpr std::uint64_t one = (std::uint64_t(1) << bits) - 1,
                                 all = (std::uint64_t(1) << bits * directions) - 1;

  std::uint64_t key = 0;  // z, y, x, from the highest bits on

  static Place of(Index x, Index y, Index z) {
    return {(std::uint64_t(z) << bits | std::uint64_t(y)) << bits | std::uint64_t(x)};
  }
  Index along(int direction) const { return Index(key >> bits * direction & one); }
  std::uint64_t led_by(int direction) const {
    const int up = bits * (directions - 1 - direction);
    return (key << up | key >> (bits * directions - up)) & all;
  }
};

bool fits(const Lattice& l) { return std::max({l.nx, l.ny, l.nz}) <= Index(Place::one); }

/// f(part, stamp) for all parts, which the threads take as they come; `stamp` is an array of all rows that is the
/// thread's own, of -1 at first.
template <class F>
void for_parts(const exec::Host& host, Index parts, Index rows, F f) {
  std::atomic<Index> next{0};
  host.parallel(std::min(host.threads(), int(parts)), [&](int, int) {
    std::vector<Index> stamp(std::size_t(rows), -1);
    for (Index p = next++; p < parts; p = next++) f(p, stamp);
  });
}

/// The part's rows beyond its own `rows`: those at a distance of 1 to `overlap` couplings.
std::vector<Index> halo_of(const CsrView& g, const Index* rows, Index count, int overlap, Index part,
                           std::vector<Index>& stamp) {
  for (Index k = 0; k < count; ++k) stamp[std::size_t(rows[k])] = part;
  std::vector<Index> halo;
  const auto reach = [&](Index i) {
    for (Offset k = g.offsets[i]; k < g.offsets[i + 1]; ++k) {
      Index& mark = stamp[std::size_t(g.columns[k])];
      if (mark == part) continue;
      mark = part;
      halo.push_back(g.columns[k]);
    }
  };
  for (Index k = 0; overlap > 0 && k < count; ++k) reach(rows[k]);
  std::size_t begin = 0;
  for (int layer = 2; layer <= overlap && begin < halo.size(); ++layer) {
    const std::size_t end = halo.size();
    for (; begin < end; ++begin) reach(halo[begin]);
  }
  return halo;
}

}  // namespace

std::vector<Index> partition_of_lattice(const exec::Host& host, const Lattice& lattice, Index parts) {
  const Index rows = lattice.nx * lattice.ny * lattice.nz;
  Buffer<Place> place(static_cast<std::size_t>(rows));
  host.for_each_range(place.size(), [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row) {
      Index x, y, z;
      lattice.place(row, x, y, z);
      place[std::size_t(row)] = Place::of(x, y, z);
    }
  });
  struct Piece {  // places begin .. end-1, for parts first .. first+parts-1
    Index begin, end, first, parts;
  };
  const auto halves = [&](const Piece& p) {
    const auto own = std::span(place).subspan(std::size_t(p.begin), std::size_t(p.end - p.begin));
    std::array<Index, Place::directions> least, most;
    least.fill(std::numeric_limits<Index>::max());
    most.fill(0);
    for (const Place& at : own)
      for (int d = 0; d < Place::directions; ++d) {
        least[std::size_t(d)] = std::min(least[std::size_t(d)], at.along(d));
        most[std::size_t(d)] = std::max(most[std::size_t(d)], at.along(d));
      }
    const auto length = [&](int d) { return most[std::size_t(d)] - least[std::size_t(d)]; };
    int longest = Place::directions - 1;
    for (int d = longest; d-- > 0;)
      if (length(d) > length(longest)) longest = d;
    const Index left = p.parts / 2, middle = p.begin + Index(std::int64_t(p.end - p.begin) * left / p.parts);
    std::nth_element(own.begin(), own.begin() + (middle - p.begin), own.end(),
                     [longest](const Place& a, const Place& b) { return a.led_by(longest) < b.led_by(longest); });
    return std::array{Piece{p.begin, middle, p.first, left}, Piece{middle, p.end, p.first + left, p.parts - left}};
  };
  std::vector<Piece> pieces{{0, rows, 0, parts}};
  while (std::ranges::any_of(pieces, [](const Piece& p) { return p.parts > 1; })) {
    std::vector<std::array<Piece, 2>> cut(pieces.size());
    exec::for_each_task(host, pieces.size(), [&](std::size_t k) {
      cut[k] = pieces[k].parts > 1 ? halves(pieces[k]) : std::array{pieces[k], Piece{0, 0, 0, 0}};
    });
    pieces.clear();
    for (const auto& two : cut)
      for (const Piece& p : two)
        if (p.parts > 0) pieces.push_back(p);
  }
  std::vector<Index> part(place.size());
  exec::for_each_task(host, pieces.size(), [&](std::size_t k) {
    for (Index i = pieces[k].begin; i < pieces[k].end; ++i) {
      const Place& at = place[std::size_t(i)];
      part[std::size_t(at.along(0) + lattice.nx * (at.along(1) + lattice.ny * at.along(2)))] = pieces[k].first;
    }
  });
  return part;
}

std::vector<Index> partition_by_clusters(const CsrView& g, Index parts) {
  if (parts <= 1 || g.nnz() == 0) return partition(g, parts);
  parts = std::min(parts, g.rows);
  struct Level {
    OwnedGraph graph;
    std::vector<Index> cluster;  // of each row of the level before
  };
  const Graph finest{g.rows, g.offsets, g.columns};
  std::vector<Level> levels;
  const auto graph_of = [&](std::size_t level) { return level == 0 ? finest : levels[level - 1].graph.view(); };
  std::vector<Index> cluster, first, second;
  for (Index most = 2; most <= cluster_rows && g.rows / most >= std::int64_t(parts) * part_clusters; most *= 2) {
    const Graph fine = graph_of(levels.size());
    if (match(fine, most, cluster, first, second) > fine.rows / 10 * 9) break;  // a star: most rows find no partner
    OwnedGraph graph = contract(fine, cluster, first, second);
    levels.push_back({std::move(graph), cluster});
  }
  std::vector<Index> part = bisect(graph_of(levels.size()), parts);
  for (std::size_t level = levels.size();; --level) {
    refine(graph_of(level), parts, part);
    if (level == 0) return part;
    std::vector<Index>& of = levels[level - 1].cluster;
    for (Index& c : of) c = part[std::size_t(c)];
    part = std::move(of);
  }
}

Subdomains subdomains(const exec::Host& host, const CsrView& g, Index parts, int overlap, const Order& order) {
  if (overlap < 0) throw Error(fmt::format("an overlap of {} layers: it must be 0 or more", overlap));
  if (!order.empty() && order.size() != std::size_t(g.rows))
    throw Error(fmt::format("the order of the rows has {} places for {} rows: it must name each row once", order.size(),
                            g.rows));
  Subdomains s;
  s.offsets.push_back(0);
  if (g.rows == 0) return s;

  std::vector<Index> part(std::size_t(g.rows), 0);
  const bool many = g.rows >= many_rows && parts > 1;
  if (parts >= g.rows) {
    std::iota(part.begin(), part.end(), 0);
  } else if (const Lattice lattice = many ? BlockBuilder<exec::Host>(host, g, g).lattice() : Lattice{};
             lattice && fits(lattice)) {
    part = partition_of_lattice(host, lattice, parts);
  } else if (many && parts >= many_parts && g.rows / parts >= part_rows) {
    part = partition_by_clusters(g, parts);
  } else {
    part = partition(g, parts);
  }

  // Owned rows by part, in the order that was asked for; empty parts leave the numbering.
  std::vector<Index> begin(std::size_t(std::clamp(parts, Index(1), g.rows)), 0), number(begin.size(), 0);
  for (Index p : part) ++begin[std::size_t(p)];
  Index filled = 0, rows_before = 0;
  for (std::size_t p = 0; p < begin.size(); ++p) {
    const Index count = begin[p];
    number[p] = filled;
    begin[p] = rows_before;
    rows_before += count;
    if (count > 0) begin[std::size_t(filled++)] = begin[p];
  }
  begin.resize(std::size_t(filled));
  begin.push_back(g.rows);
  std::vector<Index> own(std::size_t(g.rows)), next(begin);
  for (Index k = 0; k < g.rows; ++k) {
    const Index i = order.empty() ? k : order[std::size_t(k)];
    own[std::size_t(next[std::size_t(number[std::size_t(part[std::size_t(i)])])]++)] = i;
  }
  const auto own_rows = [&](Index p) {
    return std::pair{own.data() + begin[std::size_t(p)], begin[std::size_t(p) + 1] - begin[std::size_t(p)]};
  };

  std::vector<std::vector<Index>> halo(static_cast<std::size_t>(filled));
  if (overlap > 0)
    for_parts(host, filled, g.rows, [&](Index p, std::vector<Index>& stamp) {
      const auto [rows, count] = own_rows(p);
      halo[std::size_t(p)] = halo_of(g, rows, count, overlap, p, stamp);
    });
  std::int64_t total = 0;
  for (Index p = 0; p < filled; ++p) {
    total += own_rows(p).second + std::int64_t(halo[std::size_t(p)].size());
    if (total > std::numeric_limits<Index>::max())
      throw Error(
          fmt::format("{} parts with an overlap of {} have more than 2^31 - 1 rows together: ask for fewer "
                      "parts or less overlap",
                      filled, overlap));
    s.offsets.push_back(Index(total));
  }

  const Order rank = inverse(order);
  const auto before = [&](Index i, Index j) {
    return rank.empty() ? i < j : rank[std::size_t(i)] < rank[std::size_t(j)];
  };
  s.row.resize(std::size_t(total));
  s.owned.resize(std::size_t(total));
  exec::for_each_task(host, std::size_t(filled), [&](std::size_t p) {
    const auto [rows, count] = own_rows(Index(p));
    std::vector<Index>& more = halo[p];
    std::sort(more.begin(), more.end(), before);
    std::size_t at = std::size_t(s.offsets[p]), h = 0;
    for (Index k = 0; k < count || h < more.size(); ++at) {
      const bool mine = k < count && (h == more.size() || before(rows[k], more[h]));
      s.row[at] = mine ? rows[k++] : more[h++];
      s.owned[at] = mine;
    }
    more = {};
  });
  return s;
}

}  // namespace krilu::schedule
