// SPDX-License-Identifier: Apache-2.0
// Packed factors against substitution in long double: a part's stream is read as a GPU reads it (packed_parts.hpp), so
// that what is packed is checked without one. Parts of a row, levels wider than a step, chains, rows that come again in
// several steps; what each word holds; values that were rounded, two and four to a word; widths and threads as they are
// asked for and as they are chosen; and parts that are too large.
#include "triangular/packed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/half.hpp"
#include "packed_parts.hpp"
#include "support/matrices.hpp"

namespace krilu::test {
namespace {

using namespace packed;

struct Shape {
  unsigned width, threads;
};
constexpr Shape shapes[] = {{3, 64}, {3, 128}, {7, 64}, {7, 128}, {15, 64}, {15, 128}, {0, 0}};

/// f(case, packing) for each case in each shape.
template <class F>
void for_all(F f) {
  for (const Case& c : cases())
    for (const Shape& s : shapes) {
      SCOPED_TRACE(fmt::format("{}, width {}, {} threads", c.name, s.width, s.threads));
      const Packing p(c, s.width, s.threads);
      ASSERT_EQ(p.packed.parts(), Index(c.parts.size()) - 1);
      if (s.width > 0) {
        ASSERT_EQ(p.packed.width, s.width);
        ASSERT_EQ(p.packed.threads, s.threads);
      }
      f(c, p);
      if (::testing::Test::HasFatalFailure()) return;
    }
}

std::uint32_t units_of(const Packed& p, std::uint32_t updates, unsigned value_bytes = 8) {
  return (updates * (packed_column_words(p.width) + (p.width * value_bytes + 7) / 8) + 1) / 2;
}

// --- as a GPU reads them ---------------------------------------------------------------------------------------------

TEST(Packed, ReadAsAGpuReadsThemTheyAreTheFactors) {
  for_all([](const Case& c, const Packing& p) {
    const std::vector<double> b = random_values(std::size_t(c.a.rows), 941);
    const std::vector<double> expected = by_substitution(c.a, c.a.values, b);
    ASSERT_LT(difference(sweeps(p, c.a.values, b), expected), 1e-13);
    // Other values over the same pattern.
    Buffer<double> other = c.a.values;
    for (std::size_t k = 0; k < other.size(); ++k) other[k] *= 1 - 0.1 * double(k % 4);
    for (Offset d : p.diagonal) other[std::size_t(d)] = -c.a.values[std::size_t(d)];
    const std::vector<double> got = sweeps(p, other, b);
    ASSERT_LT(difference(got, by_substitution(c.a, other, b)), 1e-13);
    EXPECT_GT(difference(got, expected), 1e-3) << "the values do not count";
  });
}

/// Read as a GPU reads them, values of type S are those of the factors, scaled and rounded one by one.
template <class S>
void expect_rounded(const Case& c, const Packing& packing) {
  const std::vector<double> scale = random_powers(std::size_t(c.a.rows), 6, 945),
                            b = random_values(std::size_t(c.a.rows), 946);
  const auto scaled_entry = [&](Index i, Index j, double v) {
    return rounded<S>(v * scale[std::size_t(j)] / scale[std::size_t(i)]);
  };
  Buffer<double> value = c.a.values;
  std::size_t changed = 0;
  for (Index i = 0; i < c.a.rows; ++i)
    for (auto k = std::size_t(c.a.offsets[std::size_t(i)]); k < std::size_t(c.a.offsets[std::size_t(i) + 1]); ++k)
      if (const Index j = c.a.columns[k]; j != i) {
        value[k] = double(scaled_entry(i, j, c.a.values[k]));
        changed += value[k] != c.a.values[k];
      }
  const Packed& p = packing.packed;
  const Stream<S> stream = rounded_stream<S>(p, with_values(p, c.a.values), scaled_entry);
  const std::vector<double> expected = by_substitution(c.a, value, b);
  ASSERT_LT(difference(sweeps(p, stream, diagonal_of(packing, value), b), expected), 1e-12);
  EXPECT_EQ(changed > 0, c.a.nnz() > c.a.rows) << "nothing was rounded";
}

TEST(Packed, RoundedTheyAreTheRoundedFactors) {
  for_all([](const Case& c, const Packing& p) {
    expect_rounded<float>(c, p);
    expect_rounded<Half>(c, p);
    expect_rounded<Bfloat16>(c, p);
  });
}

TEST(Packed, RoundedStepsTileTheirPartsStreamAndTakeLessOfIt) {
  for_all([](const Case& c, const Packing& packing) {
    const Packed& p = packing.packed;
    const auto expect = [&](auto type) {
      const auto s = rounded_stream<decltype(type)>(p, with_values(p, c.a.values),
                                                    [](Index, Index, double v) { return rounded<decltype(type)>(v); });
      constexpr unsigned bytes = sizeof(type);
      for (std::size_t part = 0; part < std::size_t(p.parts()); ++part) {
        std::uint32_t at = 0;
        for (auto q = std::size_t(p.part_step[part]); q < std::size_t(p.part_step[part + 1]); ++q) {
          const PackedStep& step = s.steps[q];
          ASSERT_EQ(step.rows, p.steps[q].rows);
          const std::uint32_t length = units_of(p, step.rows, bytes), left = s.ring_units - at % s.ring_units;
          ASSERT_EQ(step.begin, length > left ? at + left : at);
          ASSERT_EQ(step.end, step.begin + length);
          ASSERT_EQ(step.begin / s.ring_units, (step.end - 1) / s.ring_units) << "crosses a turn";
          ASSERT_EQ(step.at, 16 * (step.begin % s.ring_units));
          at = step.end;
        }
        ASSERT_EQ(s.part_unit[part] + at, s.part_unit[part + 1]);
      }
      EXPECT_LE(s.words.size(), p.words.size());
      std::uint32_t most = 0;
      for (const PackedStep& step : s.steps) most = std::max(most, units_of(p, step.rows, bytes));
      EXPECT_EQ(s.ring_units & (s.ring_units - 1), 0u) << s.ring_units;
      EXPECT_GE(s.ring_units, std::max<std::uint32_t>(256, 4 * most));
      EXPECT_LE(s.ring_units, p.ring_units);
      EXPECT_LT(p.PackedShape::shared_bytes(s.ring_units, bytes), p.shared_bytes());
    };
    expect(float{});
    expect(Half{});
    expect(Bfloat16{});
  });
}

// --- what is where ---------------------------------------------------------------------------------------------------

TEST(Packed, StepsTileTheirPartsStreamAndNoneCrossesATurnOfTheRing) {
  bool some_gap = false;
  for_all([&](const Case& c, const Packing& packing) {
    const Packed& p = packing.packed;
    ASSERT_EQ(p.part_row, c.parts);
    ASSERT_EQ(p.part_step.size(), c.parts.size());
    ASSERT_EQ(p.part_unit.size(), c.parts.size());
    ASSERT_EQ(p.part_step.front(), 0);
    ASSERT_EQ(p.part_step.back(), Index(p.steps.size()));
    ASSERT_EQ(p.part_unit.front(), 0u);
    ASSERT_EQ(2 * std::size_t(p.part_unit.back()), p.words.size());
    ASSERT_EQ(p.words.size(), p.from.size());
    Index most_rows = 0, most_steps = 0;
    std::uint32_t most_units = 0;
    for (std::size_t part = 0; part < std::size_t(p.parts()); ++part) {
      most_rows = std::max(most_rows, c.parts[part + 1] - c.parts[part]);
      most_steps = std::max(most_steps, p.part_step[part + 1] - p.part_step[part]);
      std::uint32_t at = 0;
      for (Index q = p.part_step[part]; q < p.part_step[part + 1]; ++q) {
        SCOPED_TRACE(fmt::format("step {}", q));
        const PackedStep& s = p.steps[std::size_t(q)];
        ASSERT_GE(s.rows, 1u);
        ASSERT_LE(s.rows, p.threads);
        const std::uint32_t length = units_of(p, s.rows), left = p.ring_units - at % p.ring_units;
        ASSERT_EQ(s.begin, length > left ? at + left : at) << "steps follow one another, or begin the next turn";
        ASSERT_EQ(s.end, s.begin + length);
        ASSERT_EQ(s.begin / p.ring_units, (s.end - 1) / p.ring_units) << "crosses a turn";
        ASSERT_EQ(s.at, 16 * (s.begin % p.ring_units));
        some_gap |= s.begin > at;
        at = s.end;
        most_units = std::max(most_units, length);
      }
      ASSERT_EQ(p.part_unit[part] + at, p.part_unit[part + 1]);
    }
    EXPECT_EQ(p.most_rows, most_rows);
    EXPECT_EQ(p.most_steps, most_steps);
    EXPECT_EQ(p.ring_units & (p.ring_units - 1), 0u) << p.ring_units;
    EXPECT_GE(p.ring_units, std::max<std::uint32_t>(8, 4 * most_units));
    EXPECT_GE(p.shared_bytes(), 16 * std::size_t(p.ring_units) + 8 * std::size_t(most_rows) +
                                    sizeof(PackedStep) * (std::size_t(most_steps) + 2));
    EXPECT_LE(p.shared_bytes(), 227u << 10) << "of a thread block";
  });
  EXPECT_TRUE(some_gap) << "no case has a turn that a step does not fill";
}

/// An update as it stands in the stream.
struct Update {
  Index row = 0;
  std::vector<Index> columns;
  std::vector<Offset> from;
};

/// A step's updates; each word that is read is counted.
std::vector<Update> updates_of(const Packed& p, std::size_t part, const PackedStep& s, std::vector<int>& reads) {
  const unsigned columns = packed_column_words(p.width);
  std::vector<Update> all(s.rows);
  for (std::size_t t = 0; t < all.size(); ++t) {
    const auto at = [&](unsigned k) {
      return 2 * (std::size_t(p.part_unit[part]) + s.begin) + t + std::size_t(k) * s.rows;
    };
    for (unsigned k = 0; k < columns + p.width; ++k) ++reads.at(at(k));
    const auto column = [&](unsigned k) { return p.part_row[part] + Index(p.words[at(k / 4)] >> k % 4 * 16 & 0xffff); };
    all[t].row = column(p.width);
    for (unsigned k = 0; k < p.width; ++k) {
      all[t].columns.push_back(column(k));
      all[t].from.push_back(p.from[at(columns + k)]);
    }
  }
  return all;
}

TEST(Packed, EachEntryStandsOnceInTheSequenceOfTheSweeps) {
  bool again_somewhere = false;
  for_all([&](const Case& c, const Packing& packing) {
    const Packed& p = packing.packed;
    const auto rows = std::size_t(c.a.rows);
    std::vector<Index> group(rows);
    for (std::size_t g = 0; g + 1 < packing.order.group.size(); ++g)
      for (Index k = packing.order.group[g]; k < packing.order.group[g + 1]; ++k)
        group[std::size_t(packing.order.rows[std::size_t(k)])] = Index(g);
    // Of each row, by triangle: the position of its next entry, and the step that updated it last.
    std::vector<Offset> next[2] = {{c.a.offsets.begin(), c.a.offsets.end() - 1}, {}};
    std::vector<Index> updated[2] = {std::vector<Index>(rows, -1), std::vector<Index>(rows, -1)};
    for (Offset d : packing.diagonal) next[1].push_back(d + 1);
    const auto end = [&](Index i, bool upper) {
      return upper ? c.a.offsets[std::size_t(i) + 1] : packing.diagonal[std::size_t(i)];
    };
    std::vector<int> reads(p.words.size(), 0);
    for (std::size_t part = 0; part < std::size_t(p.parts()); ++part) {
      bool upper = false;
      Index level = -1;
      for (Index q = p.part_step[part]; q < p.part_step[part + 1]; ++q) {
        SCOPED_TRACE(fmt::format("step {}", q));
        const std::vector<Update> updates = updates_of(p, part, p.steps[std::size_t(q)], reads);
        ASSERT_GE(updates[0].from[0], 0) << "an update without entries";
        const bool now = updates[0].from[0] > packing.diagonal.at(std::size_t(updates[0].row));
        ASSERT_GE(now, upper) << "back in the forward sweep";
        if (now != upper) level = std::numeric_limits<Index>::max();
        upper = now;
        const Index own = group.at(std::size_t(updates[0].row));
        ASSERT_TRUE(upper ? own <= level : own >= level) << "levels out of sequence";
        level = own;
        for (const Update& u : updates) {
          SCOPED_TRACE(fmt::format("row {}", u.row));
          const auto i = std::size_t(u.row);
          ASSERT_GE(u.row, c.parts[part]);
          ASSERT_LT(u.row, c.parts[part + 1]);
          ASSERT_EQ(group[i], level) << "a step of two levels";
          ASSERT_LT(updated[upper][i], q) << "twice in a step";
          again_somewhere |= updated[upper][i] >= 0;
          updated[upper][i] = q;
          ASSERT_GE(u.from[0], 0) << "an update without entries";
          for (std::size_t k = 0; k < u.from.size(); ++k) {
            if (next[upper][i] == end(u.row, upper)) {
              ASSERT_EQ(u.from[k], -1);
              ASSERT_EQ(u.columns[k], u.row) << "padding reads another row";
              continue;
            }
            ASSERT_EQ(u.from[k], next[upper][i]++);
            const Index j = u.columns[k];
            ASSERT_EQ(j, c.a.columns[std::size_t(u.from[k])]);
            ASSERT_GE(j, c.parts[part]);
            ASSERT_LT(j, c.parts[part + 1]);
            const auto jj = std::size_t(j);
            ASSERT_EQ(next[upper][jj], end(j, upper)) << "reads a row that is not finished";
            ASSERT_LT(updated[upper][jj], q) << "reads a row of its own step";
          }
        }
      }
    }
    for (Index i = 0; i < c.a.rows; ++i)
      for (bool upper : {false, true}) {
        ASSERT_EQ(next[upper][std::size_t(i)], end(i, upper)) << "row " << i << " lacks entries";
        const bool none = end(i, upper) == (upper ? packing.diagonal[std::size_t(i)] + 1 : c.a.offsets[std::size_t(i)]);
        ASSERT_EQ(updated[upper][std::size_t(i)] < 0, none) << "row " << i;
      }
    for (std::size_t w = 0; w < reads.size(); ++w) {
      ASSERT_LE(reads[w], 1) << "word " << w;
      if (reads[w] == 0) {
        ASSERT_TRUE(p.words[w] == 0 && p.from[w] == -1) << "word " << w << " is nobody's";
      }
      if (p.from[w] >= 0) {
        ASSERT_EQ(p.words[w], 0u) << "a column where a value goes";
      }
    }
  });
  EXPECT_TRUE(again_somewhere) << "no case has a row of several updates";
}

/// Entries of rows that lead to those that are asked for: in the backward sweep by what is read there, in the forward
/// sweep by that and what those read.
Offset entries_towards(const Case& c, const Packing& packing, const std::vector<std::uint8_t>& asked) {
  Offset entries = 0;
  std::vector<std::uint8_t> seen(asked.size(), 0);
  const auto follow = [&](bool upper, std::vector<Index> from) {
    std::vector<std::uint8_t> here(asked.size(), 0);
    while (!from.empty()) {
      const Index i = from.back();
      from.pop_back();
      if (here[std::size_t(i)]) continue;
      here[std::size_t(i)] = 1;
      const Offset d = packing.diagonal[std::size_t(i)];
      const Offset first = upper ? d + 1 : c.a.offsets[std::size_t(i)],
                   last = upper ? c.a.offsets[std::size_t(i) + 1] : d;
      entries += last - first;
      from.insert(from.end(), c.a.columns.begin() + first, c.a.columns.begin() + last);
    }
    return here;
  };
  const auto rows_of = [](const std::vector<std::uint8_t>& marked) {
    std::vector<Index> rows;
    for (std::size_t i = 0; i < marked.size(); ++i)
      if (marked[i]) rows.push_back(Index(i));
    return rows;
  };
  follow(false, rows_of(follow(true, rows_of(asked))));
  return entries;
}

TEST(Packed, WhatLeadsToNoRowThatIsAskedForIsLeftOut) {
  constexpr Index nobody = 1000000, every_how_many[] = {1, 3, 50, nobody};
  bool fewer = false;
  std::size_t turn = 0;
  for_all([&](const Case& c, const Packing& all) {
    const Index every = every_how_many[turn++ % 4];  // each in some shape of each case
    SCOPED_TRACE(fmt::format("every {}th row", every));
    std::vector<std::uint8_t> asked(std::size_t(c.a.rows), 0);
    for (std::size_t i = 0; i < asked.size(); ++i) asked[i] = Index(i * 7 % 1000 + 1) % every == 0;
    const Packing packing(c, all.packed.width, all.packed.threads, 2, asked);
    const Packed& p = packing.packed;
    const auto kept = std::count_if(p.from.begin(), p.from.end(), [](Offset e) { return e >= 0; });
    ASSERT_EQ(kept, entries_towards(c, packing, asked));
    fewer |= kept > 0 && kept < c.a.nnz() - c.a.rows;
    const std::vector<double> b = random_values(std::size_t(c.a.rows), 947);
    const std::vector<double> got = sweeps(packing, c.a.values, b), want = sweeps(all, c.a.values, b);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (!asked[i]) continue;
      EXPECT_EQ(got[i], want[i]) << "row " << i;
    }
  });
  EXPECT_TRUE(fewer);
}

const Case& named(const std::string& name) {
  return *std::find_if(cases().begin(), cases().end(), [&](const Case& c) { return c.name == name; });
}

TEST(Packed, StepsAreAsFewAsWidthAndThreadsAllow) {
  const auto up = [](unsigned a, unsigned b) { return (a + b - 1) / b; };
  // Two levels, 300 rows of 20 entries in one sweep; each column is then as often a row of the other's.
  const Case wide = cut_into("", long_rows_of_a_level(400, 300, 20, true, 939), {0, 700});
  for (const Shape& s : shapes) {
    if (s.width == 0) continue;
    SCOPED_TRACE(fmt::format("width {}, {} threads", s.width, s.threads));
    EXPECT_EQ(Packing(wide, s.width, s.threads).packed.most_steps, Index(up(20, s.width) * up(300, s.threads)));
    EXPECT_EQ(Packing(named("chain of 500 levels"), s.width, s.threads).packed.most_steps, 2 * 499);
    EXPECT_EQ(Packing(named("a row each"), s.width, s.threads).packed.steps.size(), 0u);
    EXPECT_EQ(Packing(named("diagonal"), s.width, s.threads).packed.steps.size(), 0u);
  }
}

// --- what is chosen --------------------------------------------------------------------------------------------------

/// Rows of two levels, each of the second reading `length` of the first.
Case two_levels(Index leaves, Index hubs, Index length) {
  return cut_into("", long_rows_of_a_level(leaves, hubs, length, true, 940), {0, leaves + hubs});
}

TEST(Packed, TheWidthSuitsTheRows) {
  for (Index length : {1, 2, 3}) EXPECT_EQ(Packing(two_levels(300, 200, length)).packed.width, 3u) << length;
  EXPECT_EQ(Packing(named("one part")).packed.width, 3u) << "a lattice of five points";
  EXPECT_EQ(Packing(cut_into("", generate("gen:poisson3d:8x8x8"), {0, 512})).packed.width, 3u);
  for (const char* name : {"long rows below", "long rows above", "dense"})
    EXPECT_EQ(Packing(named(name)).packed.width, 15u) << name;
}

TEST(Packed, WhereNarrowUpdatesMakeTooManyStepsWiderOnesAreTaken) {
  const Case c = cut_into("", random_matrix({.rows = 800, .per_row = 250, .seed = 943}), {0, 800});
  EXPECT_EQ(Packing(c, 3).packed.parts(), 0);
  const Packing p(c);
  ASSERT_EQ(p.packed.parts(), 1);
  EXPECT_GT(p.packed.width, 3u);
  const std::vector<double> b = random_values(800, 944);
  EXPECT_LT(difference(sweeps(p, c.a.values, b), by_substitution(c.a, c.a.values, b)), 1e-13);
}

TEST(Packed, ThereIsAKernelForWhatIsChosen) {
  for (const Case& c : cases()) {
    for (unsigned width : {0u, 3u, 7u, 15u}) {
      const Packed p = Packing(c, width).packed;
      EXPECT_TRUE(p.width == 3 || p.width == 7 || p.width == 15) << c.name;
      EXPECT_EQ(p.threads, p.width == 15 ? 64u : 128u) << c.name << ", width " << p.width;
    }
  }
}

TEST(Packed, TheRingIsAsLongAsFourPartsOnAMultiprocessorAllow) {
  for_all([](const Case&, const Packing& packing) {
    const Packed& p = packing.packed;
    std::uint32_t most = 0;
    for (const PackedStep& s : p.steps) most = std::max(most, units_of(p, s.rows));
    std::uint32_t least = 256;
    while (least < 4 * most) least *= 2;
    constexpr std::size_t quarter = 54 << 10;
    EXPECT_GE(p.ring_units, least);
    EXPECT_LE(p.ring_units, std::max(2048u, least));
    if (p.ring_units > least) {
      EXPECT_LE(p.shared_bytes(), quarter);
    }
    EXPECT_TRUE(p.ring_units >= 2048 || p.shared_bytes() + 16 * std::size_t(p.ring_units) > quarter);
  });
  EXPECT_EQ(Packing(named("one row")).packed.ring_units, 2048u);
}

TEST(Packed, TheSameForAnyNumberOfThreads) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Packed one = Packing(c).packed, three = Packing(c, 0, 0, 3).packed;
    EXPECT_EQ(one.width, three.width);
    EXPECT_EQ(one.threads, three.threads);
    EXPECT_EQ(one.ring_units, three.ring_units);
    EXPECT_EQ(one.words, three.words);
    EXPECT_EQ(one.from, three.from);
    EXPECT_EQ(one.part_unit, three.part_unit);
    EXPECT_EQ(one.part_step, three.part_step);
    ASSERT_EQ(one.steps.size(), three.steps.size());
    for (std::size_t k = 0; k < one.steps.size(); ++k)
      ASSERT_EQ(std::memcmp(&one.steps[k], &three.steps[k], sizeof(PackedStep)), 0) << "step " << k;
  }
}

// --- what does not fit -----------------------------------------------------------------------------------------------

TEST(Packed, NothingForPartsThatDoNotFitSharedMemory) {
  const auto expect = [](bool fits, const Case& c) {
    SCOPED_TRACE(fmt::format("{}, {} rows", c.name, c.a.rows));
    const Packing p(c);
    EXPECT_EQ(p.packed.parts(), fits ? Index(c.parts.size()) - 1 : 0);
    if (fits) {
      EXPECT_LE(p.packed.shared_bytes(), 227u << 10);
      const std::vector<double> b = random_values(std::size_t(c.a.rows), 942);
      EXPECT_LT(difference(sweeps(p, c.a.values, b), by_substitution(c.a, c.a.values, b)), 1e-13);
    } else {
      EXPECT_TRUE(p.packed.steps.empty());
      EXPECT_TRUE(p.packed.words.empty());
      EXPECT_TRUE(p.packed.part_row.empty());
    }
  };
  // 220 KB: x of 8 bytes a row, steps of 16 bytes, a ring of 4 KB and two steps more.
  expect(true, {"diagonal", diagonal(27644), {0, 27644}});
  expect(false, {"diagonal", diagonal(27645), {0, 27645}});
  expect(false, {"diagonal", diagonal(27650), {0, 2, 27649, 27650}});
  expect(true, {"diagonal in halves", diagonal(40000), {0, 20000, 40000}});
  expect(false, {"rows that two bytes cannot count", diagonal(65536), {0, 65536}});
  expect(true, cut_into("chain", grid(5400, 1), {0, 5400}));
  expect(false, cut_into("chain", grid(5700, 1), {0, 5700}));
}

TEST(Packed, NoRowsAreNoTrouble) {
  const Case none{"", diagonal(0), {0, 0}};
  const Packing p(none);
  EXPECT_EQ(p.packed.steps.size(), 0u);
  EXPECT_EQ(p.packed.words.size(), 0u);
  EXPECT_EQ(sweeps(p, none.a.values, {}), std::vector<double>{});
}

}  // namespace
}  // namespace krilu::test
