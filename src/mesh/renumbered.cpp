// SPDX-License-Identifier: Apache-2.0
#include "mesh/renumbered.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "krilu/error.hpp"

namespace krilu::mesh {

namespace {

/// rank[order[k]] = k, and order is looked at before it is believed.
Buffer<Index> rank_of(const exec::Host& host, const schedule::Order& order, Index cells) {
  if (order.size() != std::size_t(cells))
    throw Error(fmt::format("an order of {} cells for a mesh of {}: it must have each cell once", order.size(), cells));
  Buffer<Index> rank(order.size());
  host.for_each_range(order.size(),
                      [&](Index begin, Index end) { std::fill(rank.data() + begin, rank.data() + end, -1); });
  for (std::size_t k = 0; k < order.size(); ++k) {
    const Index c = order[k];
    if (c < 0 || c >= cells)
      throw Error(fmt::format("place {} of the order has cell {}, but cells are numbered 0 to {}", k, c, cells - 1));
    Index& r = rank[std::size_t(c)];
    if (r >= 0) throw Error(fmt::format("cell {} stands twice in the order, at places {} and {}", c, r, k));
    r = Index(k);
  }
  return rank;
}

/// to[k] = from[source(k)]; nothing where there is no geometry.
template <class T, class Source>
void gather(const exec::Host& host, const Buffer<T>& from, Buffer<T>& to, Source source) {
  to.resize(from.size());
  host.for_each_range(from.size(), [&](Index begin, Index end) {
    for (Index k = begin; k < end; ++k) to[std::size_t(k)] = from[std::size_t(source(k))];
  });
}

}  // namespace

Mesh renumbered(const exec::Host& host, const Mesh& mesh, const schedule::Order& cells) {
  const std::size_t n = std::size_t(mesh.cells), faces = mesh.owner.size();
  const bool natural = cells.empty();
  const Buffer<Index> rank = natural ? Buffer<Index>() : rank_of(host, cells, mesh.cells);
  const auto rank_in = [&](Index c) { return natural ? c : rank[std::size_t(c)]; };
  struct Pair {
    Index low, high;
    bool turned;
  };
  const auto cells_of = [&](Index f) {
    const Index o = rank_in(mesh.owner[std::size_t(f)]), m = rank_in(mesh.neighbour[std::size_t(f)]);
    return o < m ? Pair{o, m, false} : Pair{m, o, true};
  };

  // next[c]: how many faces cell c owns, then the end of its faces, and as these are filled in their start.
  Buffer<Index> next(n + 1);
  host.for_each_range(n, [&](Index begin, Index end) { std::fill(next.data() + begin, next.data() + end, 0); });
  next[n] = 0;
  const auto count = [&](auto add) {
    host.for_each_range(faces, [&](Index begin, Index end) {
      for (Index f = begin; f < end; ++f) add(next[std::size_t(cells_of(f).low)]);
    });
  };
  // From the high bits down: the neighbour, the old face, whether it is turned. Sorting the numbers sorts the faces, in
  // whatever sequence the threads came.
  Buffer<std::uint64_t> key(faces);
  const auto place = [&](auto take) {
    host.for_each_range(faces, [&](Index begin, Index end) {
      for (Index f = begin; f < end; ++f) {
        const Pair p = cells_of(f);
        key[std::size_t(take(next[std::size_t(p.low)]))] =
            std::uint64_t(p.high) << 32 | std::uint64_t(f) << 1 | p.turned;
      }
    });
  };
  const bool shared = host.threads() > 1;  // a cell's counter may be another thread's, too
  if (shared) {
    count([](Index& c) { std::atomic_ref<Index>(c).fetch_add(1, std::memory_order_relaxed); });
  } else {
    count([](Index& c) { ++c; });
  }
  Index end = 0;
  for (Index& c : next) c = end += c;
  if (shared) {
    place([](Index& c) { return std::atomic_ref<Index>(c).fetch_sub(1, std::memory_order_relaxed) - 1; });
  } else {
    place([](Index& c) { return --c; });
  }

  Mesh out;
  out.cells = mesh.cells;
  out.patches = mesh.patches;
  out.owner.resize(faces);
  out.neighbour.resize(faces);
  out.area.resize(mesh.area.size());
  out.face_centre.resize(mesh.face_centre.size());
  host.for_each_range(n, [&](Index begin, Index last) {
    const auto first = std::size_t(next[std::size_t(begin)]), past = std::size_t(next[std::size_t(last)]);
    for (Index c = begin; c < last; ++c) {
      const auto from = std::size_t(next[std::size_t(c)]), to = std::size_t(next[std::size_t(c) + 1]);
      std::sort(key.data() + from, key.data() + to);
      std::fill(out.owner.data() + from, out.owner.data() + to, c);
    }
    for (std::size_t k = first; k < past; ++k) out.neighbour[k] = Index(key[k] >> 32);
    // Two loops without a branch, so that many of their reads are under way at once.
    const auto old_face = [&](std::size_t k) { return std::size_t(key[k] >> 1 & 0x7fffffffu); };
    if (!mesh.area.empty())
      for (std::size_t k = first; k < past; ++k) out.area[k] = (key[k] & 1 ? -1.0 : 1.0) * mesh.area[old_face(k)];
    if (!mesh.face_centre.empty())
      for (std::size_t k = first; k < past; ++k) out.face_centre[k] = mesh.face_centre[old_face(k)];
  });

  const auto old_cell = [&](Index k) { return natural ? k : cells[std::size_t(k)]; };
  gather(host, mesh.centre, out.centre, old_cell);
  gather(host, mesh.volume, out.volume, old_cell);
  out.boundary.resize(mesh.boundary.size());
  host.for_each_range(mesh.boundary.size(), [&](Index begin, Index last) {
    for (Index b = begin; b < last; ++b) out.boundary[std::size_t(b)] = rank_in(mesh.boundary[std::size_t(b)]);
  });
  out.boundary_centre = mesh.boundary_centre;
  out.boundary_area = mesh.boundary_area;
  return out;
}

}  // namespace krilu::mesh
