// SPDX-License-Identifier: Apache-2.0
// What the tests of packed factors share: factors that are cut into parts, and how a kernel reads a part's stream, with
// a ring as packed.cuh has it, a step's rows all at once; and substitution in long double.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/half.hpp"
#include "schedule/row_order.hpp"
#include "support/matrices.hpp"
#include "triangular/packed.hpp"

namespace krilu::test::packed {

using triangular::Packed;
using triangular::packed_column_words;
using triangular::PackedBits;
using triangular::PackedStep;

struct Case {
  std::string name;
  CsrMatrix a;               // the factors: L, D and U of M = D (I + L) (I + U)
  std::vector<Index> parts;  // offsets
};

/// Without the entries that couple two parts, rows divided by their magnitudes so that nothing grows: no sum of a row's
/// magnitudes off the diagonal exceeds one.
inline Case cut_into(std::string name, const CsrView& a, std::vector<Index> parts) {
  RowMaps rows(std::size_t(a.rows));
  for (std::size_t p = 0; p + 1 < parts.size(); ++p)
    for (Index i = parts[p]; i < parts[p + 1]; ++i)
      for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
        if (a.columns[k] >= parts[p] && a.columns[k] < parts[p + 1]) rows[std::size_t(i)][a.columns[k]] = a.values[k];
  return {std::move(name), scaled(from_rows(rows)), std::move(parts)};
}

inline std::vector<Index> even_parts(Index rows, Index size) {
  std::vector<Index> parts{0};
  while (parts.back() < rows) parts.push_back(std::min(rows, parts.back() + size));
  return parts;
}

/// Rows in two levels: `hubs` long rows at the end (or, where lower is false, at the beginning) read `leaves` others.
inline CsrMatrix long_rows_of_a_level(Index leaves, Index hubs, Index length, bool lower, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  RowMaps rows(std::size_t(leaves + hubs));
  for (Index h = 0; h < hubs; ++h)
    for (Index k = 0; k < length; ++k) {
      const Index leaf = (h * 13 + k) % leaves;
      rows[std::size_t(lower ? leaves + h : h)][lower ? leaf : hubs + leaf] = value(engine);
    }
  return dominant(std::move(rows));
}

inline const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> c;
    c.push_back(
        cut_into("random", random_matrix({.rows = 900, .per_row = 20, .seed = 931}), {0, 100, 101, 350, 500, 900}));
    c.push_back(cut_into("unsymmetric",
                         random_matrix({.rows = 900, .per_row = 12, .symmetric_pattern = false, .seed = 932}),
                         {0, 300, 310, 650, 900}));
    c.push_back(cut_into("one part", grid(25, 20), {0, 500}));
    c.push_back(cut_into("a row each", grid(9, 9), even_parts(81, 1)));
    c.push_back(cut_into("chain of 500 levels", grid(500, 1), {0, 500}));
    c.push_back(cut_into("chains", grid(500, 1), even_parts(500, 37)));
    c.push_back(
        cut_into("a level of 1,000 rows", random_matrix({.rows = 1003, .per_row = 0.02, .seed = 933}), {0, 1003}));
    c.push_back(cut_into("diagonal", diagonal(300), {0, 150, 300}));
    c.push_back(cut_into("lower triangle", triangle_of(grid(25, 20), true), {0, 500}));
    c.push_back(cut_into("upper triangle", triangle_of(grid(25, 20), false), even_parts(500, 60)));
    c.push_back(cut_into("long rows", with_long_rows(1500, {40, 100, 300, 1200}, true, 934), {0, 1500}));
    c.push_back(
        cut_into("long rows, unsymmetric", with_long_rows(1500, {40, 100, 300, 1200}, false, 935), {0, 700, 1500}));
    c.push_back(cut_into("long rows below", long_rows_of_a_level(400, 60, 200, true, 936), {0, 460}));
    c.push_back(cut_into("long rows above", long_rows_of_a_level(400, 60, 200, false, 937), {0, 460}));
    c.push_back(cut_into("dense", random_matrix({.rows = 120, .per_row = 110, .seed = 938}), {0, 120}));
    c.push_back(cut_into("one row", from_dense({{2.0}}), {0, 1}));
    return c;
  }();
  return all;
}

struct Packing {
  explicit Packing(const Case& c, unsigned width = 0, unsigned threads = 0, int team = 1,
                   const std::vector<std::uint8_t>& asked = {})
      : order(schedule::by_parts(exec::Host(team), c.a, sparse::adjacency(c.a), c.parts)) {
    for (Index i = 0; i < c.a.rows; ++i)
      for (Offset k = c.a.offsets[std::size_t(i)]; k < c.a.offsets[std::size_t(i) + 1]; ++k)
        if (c.a.columns[std::size_t(k)] == i) diagonal.push_back(k);
    packed = triangular::pack(exec::Host(team), c.a, diagonal.data(), order, asked, width, threads);
  }
  sparse::RowOrder order;
  std::vector<Offset> diagonal;
  Packed packed;
};

/// What a kernel for values of type S reads.
template <class S>
struct Stream {
  std::uint32_t ring_units;
  std::vector<std::uint32_t> part_unit;
  std::vector<PackedStep> steps;
  std::vector<std::uint64_t> words;
};

/// With the values of some factors, as take_kernel brings them.
inline Stream<double> with_values(const Packed& packed, const Buffer<double>& value) {
  Stream<double> s{packed.ring_units, packed.part_unit, packed.steps, {packed.words.begin(), packed.words.end()}};
  for (std::size_t w = 0; w < s.words.size(); ++w)
    if (packed.from[w] >= 0) std::memcpy(&s.words[w], &value[std::size_t(packed.from[w])], sizeof s.words[w]);
  return s;
}

/// As RoundedPackedSweeps rounds: round(i, j, v) with rows counted through all parts.
template <class S, class Round>
Stream<S> rounded_stream(const Packed& p, const Stream<double>& from, const Round& round) {
  const auto parts = std::size_t(p.parts());
  Stream<S> to{p.ring_for(sizeof(S)), {0}, from.steps, {}};
  for (std::size_t part = 0; part < parts; ++part)
    to.part_unit.push_back(to.part_unit.back() + triangular::place_steps(from.steps.data() + p.part_step[part],
                                                                         p.part_step[part + 1] - p.part_step[part],
                                                                         p.width, sizeof(S), to.ring_units,
                                                                         to.steps.data() + p.part_step[part]));
  to.words.assign(2 * std::size_t(to.part_unit.back()), 0);
  for (std::size_t part = 0; part < parts; ++part)
    for (auto q = std::size_t(p.part_step[part]); q < std::size_t(p.part_step[part + 1]); ++q)
      for (unsigned t = 0; t < from.steps[q].rows; ++t)
        triangular::round_update<S>(
            from.words.data() + 2 * (std::size_t(from.part_unit[part]) + from.steps[q].begin), p.width,
            from.steps[q].rows, t,
            [&](Index i, Index j, double v) { return round(p.part_row[part] + i, p.part_row[part] + j, v); },
            to.words.data() + 2 * (std::size_t(to.part_unit[part]) + to.steps[q].begin));
  return to;
}

/// A part's stream through a ring of eight chunks, each refilled as soon as it may be.
template <class S>
class Ring {
 public:
  Ring(const Stream<S>& stream, std::size_t part)
      : words_(stream.words),
        first_(stream.part_unit[part]),
        length_(stream.part_unit[part + 1] - stream.part_unit[part]),
        chunk_(stream.ring_units / chunks),
        ring_(2 * std::size_t(stream.ring_units), ~std::uint64_t(0)) {}
  /// Asks for what fits, now that nobody reads what stands before unit `done`.
  void feed(std::size_t done) {
    for (; asked_ < done / chunk_ + chunks && asked_ * chunk_ < length_; ++asked_)
      for (std::size_t w = 2 * asked_ * chunk_; w < 2 * std::min(length_, (asked_ + 1) * chunk_); ++w)
        ring_[w % ring_.size()] = words_.at(2 * first_ + w);
  }
  bool is_there(std::size_t end) const { return asked_ * chunk_ >= end; }
  /// The word at a byte of the ring's memory, which has no turn in it.
  std::uint64_t word(std::size_t byte) const { return ring_.at(byte / 8); }

 private:
  static constexpr std::size_t chunks = 8;
  const std::vector<std::uint64_t>& words_;
  std::size_t first_, length_, chunk_, asked_ = 0;
  std::vector<std::uint64_t> ring_;
};

/// What a thread holds of its update before the barrier.
struct Fetched {
  std::vector<std::uint64_t> column;
  std::vector<double> value;

  std::size_t place(unsigned k) const { return column[k / 4] >> k % 4 * 16 & 0xffff; }
};

template <class S>
std::vector<Fetched> fetch(const Packed& p, const Ring<S>& ring, const PackedStep& s) {
  constexpr unsigned in_a_word = 8 / sizeof(S);
  const unsigned columns = packed_column_words(p.width);
  std::vector<Fetched> all(s.rows);
  for (std::size_t t = 0; t < all.size(); ++t) {
    const auto word = [&](unsigned k) { return ring.word(s.at + (t + std::size_t(k) * s.rows) * 8); };
    for (unsigned k = 0; k < columns; ++k) all[t].column.push_back(word(k));
    for (unsigned k = 0; k < p.width; ++k) {
      const auto bits = PackedBits<S>(word(columns + k / in_a_word) >> k % in_a_word * 8 * sizeof(S));
      all[t].value.push_back(std::bit_cast<S>(bits));
    }
  }
  return all;
}

/// Both sweeps over all parts, b and the result in local rows, in double; pivots those of `diagonal`.
template <class S>
std::vector<double> sweeps(const Packed& p, const Stream<S>& stream, const std::vector<double>& diagonal,
                           const std::vector<double>& b) {
  std::vector<double> result(b.size(), 1e300);
  for (std::size_t part = 0; part < std::size_t(p.parts()); ++part) {
    const auto first = std::size_t(p.part_row[part]), last = std::size_t(p.part_row[part + 1]);
    const PackedStep* const steps = stream.steps.data() + p.part_step[part];
    const Index count = p.part_step[part + 1] - p.part_step[part];
    std::vector<double> x;
    for (std::size_t i = first; i < last; ++i) x.push_back(b[i] / diagonal[i]);
    Ring<S> ring(stream, part);
    bool stuck = false;
    const auto fetched = [&](Index q) {
      if (q >= count) return std::vector<Fetched>{};
      stuck = !ring.is_there(steps[q].end);
      if (stuck) ADD_FAILURE() << "step " << q << " of " << count << " would be waited for without end";
      return fetch(p, ring, steps[q]);
    };
    ring.feed(0);
    std::vector<Fetched> now = fetched(0), next;
    for (Index q = 0; q < count && !stuck; ++q, now = std::move(next)) {
      // A barrier: x of the steps before is there, and the feeding warp may be ahead of all the others.
      ring.feed(steps[q].begin);
      const std::vector<double> before = x;
      next = fetched(q + 1);
      for (const Fetched& u : now) {
        double own = before.at(u.place(p.width));
        for (unsigned k = 0; k < p.width; ++k) own -= u.value[k] * before.at(u.place(k));
        x.at(u.place(p.width)) = own;
      }
    }
    std::copy(x.begin(), x.end(), result.begin() + std::ptrdiff_t(first));
  }
  return result;
}
inline std::vector<double> diagonal_of(const Packing& packing, const Buffer<double>& value) {
  std::vector<double> d;
  for (Offset at : packing.diagonal) d.push_back(value[std::size_t(at)]);
  return d;
}
inline std::vector<double> sweeps(const Packing& packing, const Buffer<double>& value, const std::vector<double>& b) {
  return sweeps(packing.packed, with_values(packing.packed, value), diagonal_of(packing, value), b);
}

/// (I + U)^-1 (I + L)^-1 D^-1 b by substitution, row after row of the CSR.
inline std::vector<double> by_substitution(const CsrMatrix& a, const Buffer<double>& value,
                                           const std::vector<double>& b) {
  std::vector<long double> x(b.begin(), b.end());
  const auto subtract = [&](Index i, auto counts) {
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      if (const Index j = a.columns[std::size_t(k)]; counts(j))
        x[std::size_t(i)] -= (long double)(value[std::size_t(k)]) * x[std::size_t(j)];
  };
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      if (a.columns[std::size_t(k)] == i) x[std::size_t(i)] /= value[std::size_t(k)];
  for (Index i = 0; i < a.rows; ++i) subtract(i, [i](Index j) { return j < i; });
  for (Index i = a.rows; i-- > 0;) subtract(i, [i](Index j) { return j > i; });
  return {x.begin(), x.end()};
}

}  // namespace krilu::test::packed
