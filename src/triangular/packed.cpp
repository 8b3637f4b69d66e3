// SPDX-License-Identifier: Apache-2.0
#include "triangular/packed.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace krilu::triangular {

namespace {

constexpr std::size_t fair_shared = 54 << 10;  // four parts on each
constexpr unsigned in_doubles = sizeof(double);

/// One triangle of the factors, row by row in sweep order.
struct SweepRows {
  const CsrView& factors;
  const Offset* diagonal;
  const sparse::RowOrder& order;
  std::vector<std::uint8_t> forward = {}, backward = {};  // of each row, whether its update counts; empty: all do

  Index row(Index place) const { return order.rows[std::size_t(place)]; }
  /// All of a row's.
  std::pair<Offset, Offset> triangle(Index i, bool upper) const {
    return upper ? std::pair{diagonal[i] + 1, factors.offsets[i + 1]} : std::pair{factors.offsets[i], diagonal[i]};
  }
  /// Those that count.
  std::pair<Offset, Offset> entries(Index i, bool upper) const {
    const std::vector<std::uint8_t>& counts = upper ? backward : forward;
    return counts.empty() || counts[std::size_t(i)] ? triangle(i, upper) : std::pair{Offset(0), Offset(0)};
  }
  /// Marks, of rows begin .. end-1, a part's, those that lead to rows whose x is asked for: the backward sweep goes
  /// from the last row to the first, so that what a row reads is known to count before it comes.
  void mark(Index begin, Index end) {
    const auto mark_columns = [&](Index i, bool upper, std::vector<std::uint8_t>& counts) {
      if (!counts[std::size_t(i)]) return;
      const auto [first, last] = triangle(i, upper);
      for (Offset k = first; k < last; ++k) counts[std::size_t(factors.columns[k])] = 1;
    };
    for (Index i = begin; i < end; ++i) mark_columns(i, true, backward);
    for (Index i = end; i-- > begin;) {
      forward[std::size_t(i)] |= backward[std::size_t(i)];
      mark_columns(i, false, forward);
    }
  }
};

/// What the parts take, were this their shape.
struct Trial {
  PackedShape shape;
  std::vector<Index> steps;  // of each part
  std::uint64_t units = 0;   // of all streams
  std::size_t shared = 0;

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
void for_steps(const SweepRows& rows, Index first_group, Index last_group, unsigned width, unsigned threads, F f) {
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

std::uint32_t PackedShape::ring_for(unsigned value_bytes) const {
  const std::uint32_t most = value_bytes < 8 ? 1024 : 2048;
  std::uint32_t units = 256;
  while (units < 4 * packed_units(width, value_bytes, most_updates)) units *= 2;
  while (units < most && shared_bytes(2 * units, value_bytes) <= fair_shared) units *= 2;
  return units;
}

Packed pack(const exec::Host& host, const CsrView& factors, const Offset* diagonal, const sparse::RowOrder& order,
            const std::vector<std::uint8_t>& asked, unsigned width, unsigned threads) {
  const std::vector<Index> one_part{0, Index(order.group.size()) - 1};
  const std::vector<Index>& part_group = order.part.empty() ? one_part : order.part;
  const auto parts = part_group.size() - 1;
  SweepRows rows{factors, diagonal, order};
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
  if (!asked.empty()) {
    rows.backward = asked;
    rows.forward.assign(asked.size(), 0);
    for_parts([&](std::size_t p) { rows.mark(out.part_row[p], out.part_row[p + 1]); });
  }
  const auto tried = [&](unsigned with_width) {
    Trial t;
    t.shape.width = with_width;
    t.shape.threads = threads > 0 ? threads : with_width > 7 ? 64 : 128;
    t.shape.most_rows = out.most_rows;
    t.steps.assign(parts, 0);
    std::vector<std::size_t> largest(parts, 0), updates(parts, 0);
    for_parts([&](std::size_t p) {
      for_steps(rows, part_group[p], part_group[p + 1], with_width, t.shape.threads,
                [&](const std::vector<Update>& step) {
                  ++t.steps[p];
                  updates[p] += step.size();
                  largest[p] = std::max(largest[p], step.size());
                });
    });
    for (std::size_t p = 0; p < parts; ++p) {
      t.shape.most_steps = std::max(t.shape.most_steps, t.steps[p]);
      t.shape.most_updates = std::max(t.shape.most_updates, std::uint32_t(largest[p]));
    }
    t.units = packed_units(with_width, in_doubles, std::accumulate(updates.begin(), updates.end(), std::uint64_t(0)));
    t.shared = t.shape.shared_bytes(t.shape.ring_for(in_doubles), in_doubles);
    return t;
  };
  Trial best;
  double least = std::numeric_limits<double>::infinity();
  for (unsigned w : packed_widths) {
    if (width > 0 && w != width) continue;
    Trial t = tried(w);
    if (t.shared > packed_most_shared || 2 * t.units > std::uint64_t(std::numeric_limits<Offset>::max())) continue;
    if (const double time = t.microseconds(); time < least) {
      least = time;
      best = std::move(t);
    }
  }
  if (least == std::numeric_limits<double>::infinity()) return {};
  static_cast<PackedShape&>(out) = best.shape;
  out.ring_units = out.ring_for(in_doubles);

  out.part_step.assign(1, 0);
  for (Index n : best.steps) out.part_step.push_back(out.part_step.back() + n);
  out.steps.resize(std::size_t(out.part_step.back()));
  std::vector<std::uint64_t> units(parts + 1, 0);
  for_parts([&](std::size_t p) {
    PackedStep* const steps = out.steps.data() + out.part_step[p];
    PackedStep* step = steps;
    for_steps(rows, part_group[p], part_group[p + 1], out.width, out.threads,
              [&](const std::vector<Update>& updates) { step++->rows = std::uint32_t(updates.size()); });
    units[p + 1] = place_steps(steps, best.steps[p], out.width, in_doubles, out.ring_units, steps);
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
