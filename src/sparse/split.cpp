// SPDX-License-Identifier: Apache-2.0
#include "sparse/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <tuple>

#include "krilu/error.hpp"

namespace krilu::sparse {

namespace {

struct Lengths {
  Buffer<Index> lower, upper;  // of each place
  std::int64_t entries = 0;    // all of them
};

Lengths count_entries(const exec::Host& host, const CsrView& a, const RowOrder& order) {
  Lengths n{Buffer<Index>(std::size_t(a.rows)), Buffer<Index>(std::size_t(a.rows)), 0};
  std::atomic<std::int64_t> entries{0};
  host.for_each_range(std::size_t(a.rows), [&](Index begin, Index end) {
    std::int64_t counted = 0;
    for (Index i = begin; i < end; ++i) {
      const Index row = order.rows[std::size_t(i)];
      Index lower = 0, upper = 0;
      for (Offset k = a.offsets[row]; k < a.offsets[row + 1]; ++k) {
        const Index side = order.side(row, a.columns[k]);
        lower += side < 0;
        upper += side > 0;
      }
      n.lower[std::size_t(i)] = lower;
      n.upper[std::size_t(i)] = upper;
      counted += lower + upper;
    }
    entries += counted;
  });
  n.entries = entries;
  return n;
}

struct Slices {
  std::vector<Index> first_row, group;
  std::vector<Offset> lower, upper;
};

/// Cuts groups into slices of at most `height` rows, or into nodes (0). False where an offset would not fit its type.
bool cut(const RowOrder& order, const Lengths& n, int height, Slices& s) {
  s = {{0}, {0}, {0}, {0}};
  std::int64_t lower = 0, upper = 0;
  std::size_t node = 0;
  for (std::size_t g = 0; g + 1 < order.group.size(); ++g) {
    for (Index r = order.group[g], end = 0; r < order.group[g + 1]; r = end) {
      end = height > 0 ? std::min<Index>(r + height, order.group[g + 1]) : order.node[++node];
      const Index stride = height > 0 ? height : end - r;
      Index widest_lower = 0, widest_upper = 0;
      for (Index i = r; i < end; ++i) {
        widest_lower = std::max(widest_lower, n.lower[std::size_t(i)]);
        widest_upper = std::max(widest_upper, n.upper[std::size_t(i)]);
      }
      lower += std::int64_t(widest_lower) * stride;
      upper += std::int64_t(widest_upper) * stride;
      if (std::max(lower, upper) > std::numeric_limits<Offset>::max() - most_node_rows) return false;
      if (height > 1 && std::max(widest_lower, widest_upper) > std::numeric_limits<std::uint16_t>::max()) return false;
      s.first_row.push_back(end);
      s.lower.push_back(Offset(lower));
      s.upper.push_back(Offset(upper));
    }
    s.group.push_back(Index(s.first_row.size()) - 1);
  }
  return true;
}

template <class T>
exec::Array<T> copied(const exec::Host& host, const std::vector<T>& from) {
  auto to = host.allocate<T>(from.size());
  host.copy_in(to, from.data(), from.size());
  return to;
}

/// Calls f(k) for the entries k of a caller's row, in the order of elimination.
template <class F>
void for_entries(const CsrView& a, const RowOrder& order, Index row, std::vector<Offset>& sorted, F f) {
  const Offset begin = a.offsets[row], end = a.offsets[row + 1];
  if (order.rank.empty()) {
    for (Offset k = begin; k < end; ++k) f(k);
    return;
  }
  sorted.resize(std::size_t(end - begin));
  for (Offset k = begin; k < end; ++k) sorted[std::size_t(k - begin)] = k;
  std::sort(sorted.begin(), sorted.end(), [&](Offset p, Offset q) {
    return order.rank[std::size_t(a.columns[p])] < order.rank[std::size_t(a.columns[q])];
  });
  for (Offset k : sorted) f(k);
}

/// Whether all of these are numbers.
template <class T>
bool all_finite(const T* v, Offset n) {
  T trouble = 0;
#pragma omp simd reduction(+ : trouble)
  for (Offset k = 0; k < n; ++k) trouble += v[k] - v[k];
  return trouble == 0;
}

/// A slice's values where rows bring them in the sequence that they are stored in. Padding is left alone.
template <int H, class T>
void copy_slice(const CsrView& a, const RowOrder& order, Index slice, const PatternView& p, T* lower, T* diagonal,
                T* upper) {
  const Index first = p.slice_row[slice], lanes = p.slice_row[slice + 1] - first;
  const Index* const rows = order.rows.data() + first;
  // Level order jumps through the caller's rows, which no core foresees. (In a function of its own GCC 12 takes this
  // for one without effect, and leaves it out.)
  constexpr Index ahead = 32;
  for (Index i = first + ahead; i < std::min(first + ahead + H, p.rows); ++i) {
    const double* const row = a.values + a.offsets[order.rows[std::size_t(i)]];
    __builtin_prefetch(row);
    __builtin_prefetch(row + 7);
  }
  const Offset wide_lower = (p.lower.offset[slice + 1] - p.lower.offset[slice]) / H;
  const Offset wide_upper = (p.upper.offset[slice + 1] - p.upper.offset[slice]) / H;
  lower += p.lower.offset[slice];
  upper += p.upper.offset[slice];
  diagonal += first;
  const double* row[H] = {};
  Offset length[H] = {};
  bool full = true;
  for (Index q = 0; q < lanes; ++q) {
    row[q] = a.values + a.offsets[rows[q]];
    length[q] = a.offsets[rows[q] + 1] - a.offsets[rows[q]];
  }
  for (int q = 0; q < H; ++q) full &= length[q] == wide_lower + 1 + wide_upper;
  if (full) {
    for (Offset e = 0; e < wide_lower; ++e)
      for (int q = 0; q < H; ++q) lower[e * H + q] = T(row[q][e]);
    for (int q = 0; q < H; ++q) diagonal[q] = T(row[q][wide_lower]);
    for (Offset e = 0; e < wide_upper; ++e)
      for (int q = 0; q < H; ++q) upper[e * H + q] = T(row[q][wide_lower + 1 + e]);
    return;
  }
  for (Index q = 0; q < lanes; ++q) {
    const Index* column = a.columns + a.offsets[rows[q]];
    const Index* const end = column + length[q];
    const double* from = row[q];
    for (T* to = lower + q; column != end && *column < rows[q]; ++column, to += H) *to = T(*from++);
    diagonal[q] = T(0);
    if (column != end && *column == rows[q]) {
      diagonal[q] = T(*from++);
      ++column;
    }
    for (T* to = upper + q; column != end; ++column, to += H) *to = T(*from++);
  }
}

/// The same for a node, whose rows bring the same columns.
template <class T>
void copy_node(const CsrView& a, const RowOrder& order, Index slice, const PatternView& p, T* lower, T* diagonal,
               T* upper) {
  const Index first = p.slice_row[slice], rows = p.slice_row[slice + 1] - first;
  for (Index q = 0; q < rows; ++q) {
    const Index row = order.rows[std::size_t(first + q)];
    const double *from = a.values + a.offsets[row], *const end = a.values + a.offsets[row + 1];
    const auto copy = [&](const PartPattern& part, T* to) {
      const PatternView::Entries e = p.entries(part, slice, q);
      for (Offset k = e.begin; k < e.end; k += e.stride) to[k] = T(*from++);
    };
    copy(p.lower, lower);
    const bool stored = end - from > p.entries(p.upper, slice, q).count();  // a node of one row may lack its diagonal
    diagonal[first + q] = stored ? T(*from++) : T(0);
    copy(p.upper, upper);
  }
}

/// The same for any order.
template <class T>
void sort_slice(const CsrView& a, const RowOrder& order, Index slice, const PatternView& p, std::vector<Offset>& sorted,
                T* lower, T* diagonal, T* upper) {
  const Index first = p.slice_row[slice];
  for (Index i = first; i < p.slice_row[slice + 1]; ++i) {
    const Index row = order.rows[std::size_t(i)];
    Offset l = p.begin(p.lower, slice, i - first), u = p.begin(p.upper, slice, i - first);
    const Index stride = p.stride(slice);
    diagonal[i] = 0;
    for_entries(a, order, row, sorted, [&](Offset k) {
      const Index side = order.side(row, a.columns[k]);
      const T v = T(a.values[k]);
      if (side < 0) {
        lower[l] = v;
        l += stride;
      } else if (side > 0) {
        upper[u] = v;
        u += stride;
      } else {
        diagonal[i] = v;
      }
    });
  }
}

}  // namespace

SplitPattern::SplitPattern(const exec::Host& host, const CsrView& a, const RowOrder& order, int height)
    : rows_(a.rows) {
  const Lengths n = count_entries(host, a, order);
  Slices s;
  const auto padded = [&](int h) {
    if (!cut(order, n, h, s)) return std::numeric_limits<double>::infinity();
    return double(s.lower.back() + std::int64_t(s.upper.back())) / std::max(1.0, double(n.entries));
  };
  height_ = std::max(height, 1);
  for (int h : {8, 4})
    if (height == 0 && height_ == 1 && padded(h) <= 1.2) height_ = h;
  if (!order.node.empty()) height_ = 0;  // rows of one level may be a node's, and wait for one another
  if (!cut(order, n, height_, s))
    throw Error("the matrix does not fit 32-bit positions once padded: it has too many nonzeros for one device");
  host_slice_row_ = std::move(s.first_row);
  group_slices_ = std::move(s.group);
  for (Index g : order.part) part_slices_.push_back(group_slices_[std::size_t(g)]);
  host_lower_offset_ = std::move(s.lower);
  host_upper_offset_ = std::move(s.upper);

  slice_row_ = copied(host, host_slice_row_);
  lower_.offset = copied(host, host_lower_offset_);
  upper_.offset = copied(host, host_upper_offset_);
  for (auto [part, entries] : {std::pair{&lower_, lower_entries()}, std::pair{&upper_, upper_entries()}}) {
    part->column = host.allocate<Index>(std::size_t(entries));
    if (height_ > 1) part->length = host.allocate<std::uint16_t>(std::size_t(rows_));
    if (height_ > 1) part->run = host.allocate<Index>(std::size_t(entries / height_));
  }
  std::atomic<Offset> lower_runs{0}, upper_runs{0};
  host.for_each_range(std::size_t(slices()), [&](Index begin, Index end) {
    std::vector<Offset> sorted;
    for (Index slice = begin; slice < end; ++slice) {
      const Offset at_lower = host_lower_offset_[std::size_t(slice)], at_upper = host_upper_offset_[std::size_t(slice)];
      const Index first = host_slice_row_[std::size_t(slice)], lanes = host_slice_row_[std::size_t(slice) + 1] - first;
      const Index stride = height_ > 0 ? height_ : lanes;
      for (Index i = first; i < first + lanes; ++i) {
        Offset l = at_lower + (i - first), u = at_upper + (i - first);
        if (height_ == 0)  // a node's upper entries end together
          u = host_upper_offset_[std::size_t(slice) + 1] - n.upper[std::size_t(i)] * lanes + (i - first);
        const Index row = order.rows[std::size_t(i)];
        for_entries(a, order, row, sorted, [&](Offset k) {
          const Index side = order.side(row, a.columns[k]);
          if (side < 0) {
            lower_.column.data()[l] = order.place[std::size_t(a.columns[k])];
            l += stride;
          } else if (side > 0) {
            upper_.column.data()[u] = order.place[std::size_t(a.columns[k])];
            u += stride;
          }
        });
        if (height_ > 1) {
          lower_.length.data()[i] = std::uint16_t(n.lower[std::size_t(i)]);
          upper_.length.data()[i] = std::uint16_t(n.upper[std::size_t(i)]);
        }
      }
      if (height_ < 2) continue;
      lower_runs += pad(lower_, n.lower.data() + first, lanes, at_lower, host_lower_offset_[std::size_t(slice) + 1]);
      upper_runs += pad(upper_, n.upper.data() + first, lanes, at_upper, host_upper_offset_[std::size_t(slice) + 1]);
    }
  });
  if (height_ == 0) {
    find_steps(host, lower_, host_lower_offset_);
    find_steps(host, upper_, host_upper_offset_);
  }
  constexpr double rare = 0.2;
  if (lower_runs * height_ <= rare * lower_entries()) lower_.run = host.allocate<Index>(0);
  if (upper_runs * height_ <= rare * upper_entries()) upper_.run = host.allocate<Index>(0);
}

/// The columns of nodes, once for all of a node's rows, and for their padding. Windows stand before single columns.
void SplitPattern::find_steps(const exec::Host& host, Part& part, const std::vector<Offset>& offset) const {
  const bool lower = &part == &lower_;
  const auto rows = [&](Index slice) {
    return host_slice_row_[std::size_t(slice) + 1] - host_slice_row_[std::size_t(slice)];
  };
  host.for_each_range(std::size_t(slices()), [&](Index begin, Index end) {
    for (Index s = begin; s < end; ++s) {
      // The longest row has them all: the last one of lower entries, the first one of upper entries.
      const Index lanes = rows(s), longest = lower ? lanes - 1 : 0;
      for (Offset k = offset[std::size_t(s)]; k < offset[std::size_t(s) + 1]; k += lanes)
        std::fill_n(part.column.data() + k, lanes, part.column.data()[k + longest]);
    }
  });
  std::fill(part.column.data() + offset.back(), part.column.data() + part.column.size(), 0);

  // f(column, at, whether it is a window's first) for a slice's columns that are other nodes'.
  const auto for_steps = [&](Index slice, auto f) {
    const Index lanes = rows(slice), window = window_columns(lanes);
    if (lanes == 1) return;  // a row that is no node
    const Offset own = Offset(lanes - 1) * lanes, begin = offset[std::size_t(slice)] + (lower ? 0 : own),
                 end = offset[std::size_t(slice) + 1] - (lower ? own : 0);
    for (Offset k = begin; k < end;) {
      const Index* const column = part.column.data() + k;
      bool follow = end - k >= window * lanes;
      for (Index c = 1; follow && c < window; ++c) follow = column[c * lanes] == column[0] + c;
      f(column[0], Index(k - begin), follow);
      k += follow ? window * lanes : lanes;
    }
  };
  part.step = host.allocate<Offset>(2 * std::size_t(slices()) + 1);
  Offset* const step = part.step.data();
  host.for_each_range(std::size_t(slices()), [&](Index begin, Index end) {
    for (Index s = begin; s < end; ++s) {
      Offset count[2] = {0, 0};
      for_steps(s, [&](Index, Index, bool window) { ++count[window ? 0 : 1]; });
      std::copy_n(count, 2, step + 2 * s + 1);
    }
  });
  step[0] = 0;
  for (Index k = 0; k < 2 * slices(); ++k) step[k + 1] += step[k];
  part.node_step = host.allocate<NodeStep>(std::size_t(step[2 * slices()]));
  host.for_each_range(std::size_t(slices()), [&](Index begin, Index end) {
    for (Index s = begin; s < end; ++s) {
      NodeStep* next[2] = {part.node_step.data() + step[2 * s], part.node_step.data() + step[2 * s + 1]};
      for_steps(s, [&](Index column, Index at, bool window) { *next[window ? 0 : 1]++ = {column, at}; });
    }
  });
}

/// Gives padding its columns, which are multiplied by zero: where all others of a step follow one another, it goes on
/// in the same way, as long as the slice reads what is before and behind; else it is what some row of the slice reads.
/// Either is ready when the slice runs. Notes which steps are runs, and returns their number.
Offset SplitPattern::pad(const Part& part, const Index* length, Index lanes, Offset begin, Offset end) const {
  Index* const column = part.column.data();
  Index least = std::numeric_limits<Index>::max(), most = -1, safe = -1;
  const auto is_entry = [&](Offset k, Index q) { return q < lanes && (k - begin) / height_ < length[q]; };
  const auto for_entries_of = [&](Offset k, auto f) {
    for (Index q = 0; q < height_; ++q)
      if (is_entry(k, q)) f(column[k + q], q);
  };
  for (Offset k = begin; k < end; k += height_)
    for_entries_of(k, [&](Index c, Index) {
      least = std::min(least, c);
      most = std::max(most, c);
      if (safe < 0) safe = c;
    });
  Offset runs = 0;
  for (Offset k = begin; k < end; k += height_) {
    constexpr Index unknown = std::numeric_limits<Index>::min();
    Index first = unknown;  // below zero where the first lanes are padding and there are no columns so far before
    bool follow = true;
    for_entries_of(k, [&](Index c, Index q) {
      if (first == unknown) first = c - q;
      follow &= c - q == first;
    });
    for (Index q = 0; q < height_; ++q) follow &= is_entry(k, q) || (least <= first + q && first + q <= most);
    for (Index q = 0; q < height_; ++q)
      if (!is_entry(k, q)) column[k + q] = follow ? first + q : safe;
    part.run.data()[k / height_] = follow ? first : -1;
    runs += follow;
  }
  return runs;
}

PatternView SplitPattern::view() const {
  const auto part = [this](const Part& p) {
    const bool nodes = height_ == 0;
    return PartPattern{p.offset.data(),
                       p.column.data(),
                       height_ > 1 ? p.length.data() : nullptr,
                       nullptr,
                       nullptr,
                       p.run.data(),
                       nodes ? p.step.data() : nullptr,
                       nodes ? p.node_step.data() : nullptr,
                       nodes && &p == &upper_};
  };
  return {rows_, slices(), height_, slice_row_.data(), part(lower_), part(upper_)};
}

std::size_t SplitPattern::bytes() const {
  std::size_t b = slice_row_.bytes() + host_slice_row_.capacity() * sizeof(Index) +
                  (group_slices_.capacity() + part_slices_.capacity()) * sizeof(Index) +
                  (host_lower_offset_.capacity() + host_upper_offset_.capacity()) * sizeof(Offset);
  for (const Part* p : {&lower_, &upper_})
    b += p->offset.bytes() + p->column.bytes() + p->length.bytes() + p->run.bytes() + p->step.bytes() +
         p->node_step.bytes();
  return b;
}

template <class T>
SplitMatrix<T> fill_values(const exec::Host& host, std::shared_ptr<const SplitPattern> pattern, const CsrView& a,
                           const RowOrder& order, SplitMatrix<T> old) {
  SplitMatrix<T> m = std::move(old);
  const auto fit = [&](exec::Array<T>& array, Offset n) {
    if (array.size() != std::size_t(n)) array = host.allocate<T>(std::size_t(n));
  };
  fit(m.lower, pattern->lower_entries());
  fit(m.diagonal, a.rows);
  fit(m.upper, pattern->upper_entries());
  T *const lower = m.lower.data(), *const diagonal = m.diagonal.data(), *const upper = m.upper.data();
  PatternView p = pattern->view();  // of which another space's memory is not looked at
  p.slice_row = pattern->slice_rows().data();
  p.lower.offset = pattern->lower_offsets().data();
  p.upper.offset = pattern->upper_offsets().data();
  const bool padded = m.pattern == pattern;  // with zeros, since the last time
  // Rows in level order of the caller's own sequence bring lower, diagonal, upper in turn.
  const bool as_stored = order.keeps_sequence && order.rank.empty();
  std::atomic<bool> finite{true};
  host.for_each_range(std::size_t(p.slices), [&](Index begin, Index end) {
    const auto ranges = [&](auto f) {
      return f(lower, p.lower.offset[begin], p.lower.offset[end]) &&
             f(diagonal, p.slice_row[begin], p.slice_row[end]) && f(upper, p.upper.offset[begin], p.upper.offset[end]);
    };
    if (!padded)
      ranges([](T* v, Offset from, Offset to) {
        std::fill(v + from, v + to, T(0));
        return true;
      });
    std::vector<Offset> sorted;
    with_height(p.height, [&](auto h) {
      constexpr int H = decltype(h)::value;
      for (Index s = begin; s < end; ++s)
        if (!as_stored)
          sort_slice(a, order, s, p, sorted, lower, diagonal, upper);
        else if constexpr (H > 0)
          copy_slice<H>(a, order, s, p, lower, diagonal, upper);
        else
          copy_node(a, order, s, p, lower, diagonal, upper);
    });
    if (!ranges([](const T* v, Offset from, Offset to) { return all_finite(v + from, to - from); })) finite = false;
  });
  for (Index row = 0; !finite && row < a.rows; ++row)
    if (!all_finite(a.values + a.offsets[row], a.offsets[row + 1] - a.offsets[row]))
      throw Error(fmt::format("row {} of the matrix holds NaN or infinity", row + 1));
  m.pattern = std::move(pattern);
  return m;
}

bool NarrowColumns::narrow(const exec::Host& host, Index slices, const PartPattern& part, std::uint16_t* column,
                           Index* base) {
  std::atomic<bool> fits{true};
  host.for_each_range(std::size_t(slices), [&](Index begin, Index end) {
    for (Index s = begin; s < end; ++s) {
      const Index *first = part.column + part.offset[s], *last = part.column + part.offset[s + 1];
      const auto [least, most] = std::minmax_element(first, last);
      base[s] = first < last ? *least : 0;
      if (first<last&& * most - *least> std::numeric_limits<std::uint16_t>::max()) fits = false;
      for (const Index* c = first; c < last; ++c) column[c - part.column] = std::uint16_t(*c - base[s]);
    }
  });
  return fits;
}

template <class S>
void round_values(const exec::Host& host, const SplitView<double>& a, const Rounding& rounding, S* lower,
                  float* diagonal, S* upper) {
  const PatternView& p = a.pattern;
  const double *R = rounding.row, *C = rounding.column;
  std::atomic<std::int64_t> lost{0};
  host.for_each_range(std::size_t(p.slices), [&](Index begin, Index end) {
    std::int64_t gone = 0;
    for (Index s = begin; s < end; ++s) {
      for (Index i = p.slice_row[s]; i < p.slice_row[s + 1]; ++i) {
        const double row = R ? R[i] : 1;
        double missing = 0;
        for (auto [part, from, to] : {std::tuple{&p.lower, a.lower, lower}, std::tuple{&p.upper, a.upper, upper}}) {
          if (!from) continue;
          for (Offset k = part->offset[s] + (i - p.slice_row[s]); k < part->offset[s + 1]; k += p.stride(s)) {
            const double scaled = row * from[k] * (C ? C[part->column[k]] : 1);
            const S value = rounded<S>(scaled);
            to[k] = value;
            gone += from[k] != 0 && float(value) == 0;
            if constexpr (sizeof(S) == 2) missing += (scaled - double(float(value))) / (C ? C[part->column[k]] : 1);
          }
        }
        if (a.diagonal) {
          const double column = C ? C[i] : 1;
          const double scaled = row * a.diagonal[i] * column;
          diagonal[i] = rounded<float>(with_missing<S>(scaled, missing * column));
          gone += a.diagonal[i] != 0 && float(scaled) == 0;
        }
      }
      // Places that no row of a short slice has.
      for (Index q = p.slice_row[s + 1] - p.slice_row[s]; q < p.height; ++q)
        for (auto [part, to] : {std::pair{&p.lower, lower}, std::pair{&p.upper, upper}})
          for (Offset k = part->offset[s] + q; to && k < part->offset[s + 1]; k += p.height) to[k] = S(0.0f);
    }
    lost += gone;
  });
  if (rounding.lost) *rounding.lost += lost;
}

CsrMatrix to_csr(const exec::Host& host, const SplitMatrix<double>& a, const RowOrder& order,
                 std::span<const Index> missing_diagonal) {
  const SplitView<double> v = a.view();
  const PatternView& p = v.pattern;
  CsrMatrix out;
  out.rows = out.cols = p.rows;
  out.offsets.resize(std::size_t(p.rows) + 1);
  const auto has_diagonal = [&](Index row) {
    return !std::binary_search(missing_diagonal.begin(), missing_diagonal.end(), row);
  };
  // f(position, column) for the entries of row i, lane q of a slice.
  const auto walk = [&](const PartPattern& part, Index slice, Index q, auto f) {
    const PatternView::Entries e = p.entries(part, slice, q);
    for (Offset k = e.begin; k < e.end; k += e.stride) f(k, order.rows[std::size_t(part.column[k])]);
  };
  const auto for_rows = [&](auto f) {
    host.for_each_range(std::size_t(p.slices), [&](Index begin, Index end) {
      for (Index s = begin; s < end; ++s)
        for (Index i = p.slice_row[s]; i < p.slice_row[s + 1]; ++i) f(s, i - p.slice_row[s], i);
    });
  };
  out.offsets[0] = 0;
  for_rows([&](Index s, Index q, Index i) {
    const Index row = order.rows[std::size_t(i)];
    Offset count = has_diagonal(row);
    for (const PartPattern* part : {&p.lower, &p.upper}) walk(*part, s, q, [&](Offset, Index) { ++count; });
    out.offsets[std::size_t(row) + 1] = count;
  });
  for (std::size_t i = 0; i < std::size_t(p.rows); ++i) out.offsets[i + 1] += out.offsets[i];
  out.columns.resize(std::size_t(out.nnz()));
  out.values.resize(std::size_t(out.nnz()));
  for_rows([&](Index s, Index q, Index i) {
    const Index row = order.rows[std::size_t(i)];
    std::vector<std::pair<Index, double>> entries;
    if (has_diagonal(row)) entries.emplace_back(row, v.diagonal[i]);
    walk(p.lower, s, q, [&](Offset at, Index column) { entries.emplace_back(column, v.lower[at]); });
    walk(p.upper, s, q, [&](Offset at, Index column) { entries.emplace_back(column, v.upper[at]); });
    std::sort(entries.begin(), entries.end());
    auto to = std::size_t(out.offsets[std::size_t(row)]);
    for (const auto& [column, value] : entries) {
      out.columns[to] = column;
      out.values[to++] = value;
    }
  });
  return out;
}

template SplitMatrix<double> fill_values(const exec::Host&, std::shared_ptr<const SplitPattern>, const CsrView&,
                                         const RowOrder&, SplitMatrix<double>);
#define KRILU_ROUNDING(S) \
  template void round_values(const exec::Host&, const SplitView<double>&, const Rounding&, S*, float*, S*);
KRILU_ROUNDING(float)
KRILU_ROUNDING(Half)
KRILU_ROUNDING(Bfloat16)
#undef KRILU_ROUNDING

}  // namespace krilu::sparse
