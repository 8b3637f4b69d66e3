// SPDX-License-Identifier: Apache-2.0
#include "triangular/packed.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace krilu::triangular {

namespace {

constexpr std::size_t fair_shared = 54 << 10;  // four parts on each

/// One triangle of the factors, row by row in sweep order.
struct Rows {
  const CsrView& factors;
  const Offset* diagonal;
  const sparse::RowOrder& order;

  Index row(Index place) const { return order.rows[std::size_t(place)]; }
  std::pair<Offset, Offset> entries(Index i, bool backward) const {
    return backward ? std::pair{diagonal[i] + 1, factors.offsets[i + 1]} : std::pair{factors.offsets[i], diagonal[i]};
  }
};

/// What the parts take, were this the width.
struct Shape {
  unsigned width = 0, threads = 0;
  std::vector<Index> steps;  // of each part
  Index most_steps = 0;
  std::uint32_t ring_units = 0;
  std::uint64_t units = 0;  // of all streams
  std::size_t shared = 0;

  std::uint64_t units_of(std::size_t updates) const {
    return (std::uint64_t(updates) * (packed_column_words(width) + width) + 1) / 2;
  }
  /// The ring holds four of the largest steps, and more where four parts still fit a multiprocessor.
  void size(Index most_rows, std::size_t largest_step) {
    for (Index n : steps) most_steps = std::max(most_steps, n);
    const std::size_t beside = packed_shared_bytes(0, most_steps, most_rows);
    ring_units = 256;
    while (ring_units < 4 * units_of(largest_step)) ring_units *= 2;
    while (ring_units < 2048 && beside + 32 * std::size_t(ring_units) <= fair_shared) ring_units *= 2;
    shared = beside + 16 * std::size_t(ring_units);
  }
  /// Of an application on an H200: parts run in waves of as many as fit, each as long as its steps, and the streams are
  /// read beside. Up to two fifths too low, as a part's beginning and end are left out; but the widths come in the
  /// order of their measured times on stencils of 7 and 27 points, and on ILU(1) and ILU(2) of the former.
  double microseconds() const {
    constexpr double step = 0.16, megabyte = 0.31;
    constexpr std::size_t multiprocessors = 132, of_a_multiprocessor = 227 << 10, reserved = 1 << 10;
    const std::size_t together = multiprocessors * std::max<std::size_t>(1, of_a_multiprocessor / (shared + reserved));
    const double all = std::accumulate(steps.begin(), steps.end(), 0.0);
    const double waves = double((steps.size() + together - 1) / together);
    return waves * all / double(std::max<std::size_t>(1, steps.size())) * step + 16e-6 * double(units) * megabyte;
  }
};

/// Some entries of a row.
struct Update {
  Index row;
  Offset first, last;
};

/// The steps of a part, in the sequence of both sweeps.
template <class F>
void for_steps(const Rows& rows, Index first_group, Index last_group, unsigned width, unsigned threads, F f) {
  std::vector<Update> updates;
  const auto level = [&](Index g, bool backward) {
    bool more = true;
    for (Offset skip = 0; more; skip += Offset(width)) {
      more = false;
      updates.clear();
      const auto flush = [&] {
        if (!updates.empty()) f(updates);
        updates.clear();
      };
      for (Index k = rows.order.group[std::size_t(g)]; k < rows.order.group[std::size_t(g) + 1]; ++k) {
        const Index i = rows.row(k);
        const auto [first, last] = rows.entries(i, backward);
        if (first + skip >= last) continue;
        more |= first + skip + Offset(width) < last;
        updates.push_back({i, first + skip, std::min(last, first + skip + Offset(width))});
        if (updates.size() == threads) flush();
      }
      flush();
    }
  };
  for (Index g = first_group; g < last_group; ++g) level(g, false);
  for (Index g = last_group; g-- > first_group;) level(g, true);
}

}  // namespace

Packed pack(const exec::Host& host, const CsrView& factors, const Offset* diagonal, const sparse::RowOrder& order,
            unsigned width, unsigned threads) {
  const std::vector<Index> one_part{0, Index(order.group.size()) - 1};
  const std::vector<Index>& part_group = order.part.empty() ? one_part : order.part;
  const auto parts = part_group.size() - 1;
  const Rows rows{factors, diagonal, order};
  const auto for_parts = [&](auto f) {
    host.parallel([&](int me, int team) {
      for (std::size_t p = parts * std::size_t(me) / std::size_t(team);
           p < parts * (std::size_t(me) + 1) / std::size_t(team); ++p)
        f(p);
    });
  };
  Packed out;
  for (Index g : part_group) out.part_row.push_back(order.group[std::size_t(g)]);
  for (std::size_t p = 0; p < parts; ++p)
    out.most_rows = std::max(out.most_rows, out.part_row[p + 1] - out.part_row[p]);
  if (out.most_rows > std::numeric_limits<std::uint16_t>::max()) return {};
  const auto laid_out = [&](unsigned with_width) {
    Shape s;
    s.width = with_width;
    s.threads = threads > 0 ? threads : with_width > 7 ? 64 : 128;
    s.steps.assign(parts, 0);
    std::vector<std::size_t> largest(parts, 0), updates(parts, 0);
    for_parts([&](std::size_t p) {
      for_steps(rows, part_group[p], part_group[p + 1], s.width, s.threads, [&](const std::vector<Update>& step) {
        ++s.steps[p];
        updates[p] += step.size();
        largest[p] = std::max(largest[p], step.size());
      });
    });
    s.units = s.units_of(std::accumulate(updates.begin(), updates.end(), std::size_t(0)));
    s.size(out.most_rows, parts > 0 ? *std::max_element(largest.begin(), largest.end()) : 0);
    return s;
  };
  Shape shape;
  double least = std::numeric_limits<double>::infinity();
  for (unsigned w : packed_widths) {
    if (width > 0 && w != width) continue;
    Shape s = laid_out(w);
    if (s.shared > packed_most_shared || 2 * s.units > std::uint64_t(std::numeric_limits<Offset>::max())) continue;
    if (const double t = s.microseconds(); t < least) {
      least = t;
      shape = std::move(s);
    }
  }
  if (least == std::numeric_limits<double>::infinity()) return {};
  out.width = shape.width;
  out.threads = shape.threads;
  out.ring_units = shape.ring_units;
  out.most_steps = shape.most_steps;

  out.part_step.assign(1, 0);
  for (Index n : shape.steps) out.part_step.push_back(out.part_step.back() + n);
  out.steps.resize(std::size_t(out.part_step.back()));
  std::vector<std::uint64_t> units(parts + 1, 0);
  for_parts([&](std::size_t p) {
    std::uint32_t at = 0;
    PackedStep* step = out.steps.data() + out.part_step[p];
    for_steps(rows, part_group[p], part_group[p + 1], out.width, out.threads, [&](const std::vector<Update>& updates) {
      const auto length = std::uint32_t(shape.units_of(updates.size()));
      const std::uint32_t left = out.ring_units - at % out.ring_units;
      if (length > left) at += left;
      *step++ = {at % out.ring_units * 16, std::uint32_t(updates.size()), at + length, at};
      at += length;
    });
    units[p + 1] = at;
  });
  for (std::size_t p = 0; p < parts; ++p) units[p + 1] += units[p];
  if (2 * units[parts] > std::uint64_t(std::numeric_limits<Offset>::max())) return {};

  out.part_unit.assign(units.begin(), units.end());
  out.words.resize(2 * units[parts]);
  out.from.resize(2 * units[parts]);
  for_parts([&](std::size_t p) {
    const auto begin = std::ptrdiff_t(2 * units[p]), end = std::ptrdiff_t(2 * units[p + 1]);
    std::fill(out.words.begin() + begin, out.words.begin() + end, 0u);
    std::fill(out.from.begin() + begin, out.from.begin() + end, -1);
    const Index part_row = out.part_row[p];
    const PackedStep* step = out.steps.data() + out.part_step[p];
    for_steps(rows, part_group[p], part_group[p + 1], out.width, out.threads, [&](const std::vector<Update>& updates) {
      const std::size_t at = 2 * (units[p] + step++->begin), count = updates.size();
      for (std::size_t t = 0; t < count; ++t) {
        const Update& u = updates[t];
        for (unsigned k = 0; k <= out.width; ++k) {
          // The row itself stands behind its columns, and in place of those that it lacks: padding multiplies zero by
          // its own x, which is as finite as the result.
          const Offset e = u.first + Offset(k);
          const Index column = k < out.width && e < u.last ? factors.columns[e] : u.row;
          out.words[at + k / 4 * count + t] |= std::uint64_t(column - part_row) << k % 4 * 16;
          if (k < out.width && e < u.last) out.from[at + (packed_column_words(out.width) + k) * count + t] = e;
        }
      }
    });
  });
  return out;
}

}  // namespace krilu::triangular
