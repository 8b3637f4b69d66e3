// SPDX-License-Identifier: Apache-2.0
// A rank's rows as block and coupling: products are those of the whole matrix for every cut, ranks without rows
// included; the plan says what it must; new values need no analysis; wrong rows are refused on all ranks; and global
// numbers beyond 2^31 are kept whole.
#include "distributed/halo.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "base/random.hpp"
#include "distributed/rows.hpp"
#include "sparse/csr.hpp"
#include "support/refusal.hpp"

namespace krilu::distributed {
namespace {

using namespace krilu::test;

std::vector<GpuCase> halo_matrices() {
  std::vector<GpuCase> all = small_cases();
  all.push_back({"gen:poisson2d:40x30", generate("gen:poisson2d:40x30")});
  all.push_back(
      {"random, seed 421", random_matrix({.rows = 3000, .per_row = 4, .symmetric_pattern = false, .seed = 421})});
  all.push_back({"no rows", from_rows({}), false});
  return all;
}

/// y = A x of this rank's rows.
std::vector<double> multiply(Halo& halo, const CsrView& block, const std::vector<double>& x) {
  std::vector<double> sent, y(std::size_t(block.rows)), added(halo.rows().size(), -7.0);
  for (const Index i : halo.rows()) sent.push_back(x[std::size_t(i)]);
  halo.start(sent.data());
  sparse::multiply(exec::Host(1), block, x.data(), y.data());
  halo.finish(added.data());
  for (std::size_t k = 0; k < added.size(); ++k) y[std::size_t(halo.rows()[k])] += added[k];
  return y;
}

TEST(Halo, ProductsAreThoseOfTheWholeMatrixForEveryCut) {
  for (const auto& [name, a, unused] : halo_matrices()) {
    const std::vector<double> x = random_values(std::size_t(a.rows), 431);
    std::vector<double> magnitude;
    const std::vector<double> y = product(a, x, magnitude);
    for (const Starts& starts : cuts(a.rows)) {
      SCOPED_TRACE(name + ", " + text_of(starts));
      run_ranks(ranks_of(starts), [&](auto c) {
        const RowsMatrix mine = rows_of(a, starts, c->rank());
        Halo halo(c, mine, exec::Host(1));
        EXPECT_EQ(halo.block().rows, mine.count);
        require_valid(halo.block().view());
        const std::vector<double> own = part_of(x, starts, c->rank());
        for (int again = 0; again < 3; ++again) {
          const std::vector<double> got = multiply(halo, halo.block(), own);
          for (std::size_t i = 0; i < got.size(); ++i) {
            const std::size_t row = std::size_t(mine.first) + i;
            ASSERT_NEAR(got[i], y[row], 1e-14 * magnitude[row]) << "row " << row;
          }
        }
      });
    }
  }
}

TEST(Halo, ThePlanNamesBoundaryRowsSlotsAndNeighboursOnBothSides) {
  for (const auto& [name, a, unused] : halo_matrices()) {
    for (const Starts& starts : cuts(a.rows)) {
      SCOPED_TRACE(name + ", " + text_of(starts));
      const RowRanges ranges = ranges_of(starts);
      // What each rank needs, by its rows alone.
      const int ranks = ranks_of(starts);
      std::vector<std::set<Index>> needed(static_cast<std::size_t>(ranks)), boundary(needed);
      for (int r = 0; r < ranks; ++r)
        for (auto i = Index(starts[std::size_t(r)]); i < starts[std::size_t(r) + 1]; ++i)
          for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
            const Index j = a.columns[std::size_t(k)];
            if (ranges.has(r, j)) continue;
            needed[std::size_t(r)].insert(j);
            boundary[std::size_t(r)].insert(i);
            boundary[std::size_t(ranges.owner(j))].insert(j);
          }
      std::vector<Outside> plans(static_cast<std::size_t>(ranks));
      run_ranks(ranks, [&](auto c) {
        plans[std::size_t(c->rank())] = Halo(c, rows_of(a, starts, c->rank()), exec::Host(1)).outside();
      });
      for (int r = 0; r < ranks; ++r) {
        const Outside& p = plans[std::size_t(r)];
        const ExchangePlan& e = p.exchange;
        const auto first = starts[std::size_t(r)];
        ASSERT_EQ(e.slot_rows, std::vector<std::int64_t>(needed[std::size_t(r)].begin(), needed[std::size_t(r)].end()));
        std::vector<Index> rows;
        for (const Index i : boundary[std::size_t(r)]) rows.push_back(Index(i - first));
        ASSERT_EQ(p.rows, rows);
        ASSERT_EQ(p.send_places.size(), e.send_rows.size());
        for (std::size_t k = 0; k < p.send_places.size(); ++k)
          ASSERT_EQ(p.rows[std::size_t(p.send_places[k])], e.send_rows[k]);
        for (std::size_t k = 0; k < e.neighbours.size(); ++k) {
          const ExchangePlan& other = plans[std::size_t(e.neighbours[k])].exchange;
          const auto found = std::find(other.neighbours.begin(), other.neighbours.end(), r);
          ASSERT_NE(found, other.neighbours.end()) << "neighbours are so of one another";
          const auto m = std::size_t(found - other.neighbours.begin());
          const Index sent = e.send_offsets[k + 1] - e.send_offsets[k];
          ASSERT_EQ(sent, other.slot_offsets[m + 1] - other.slot_offsets[m]);
          ASSERT_EQ(e.remote_slots[k], other.slot_offsets[m]);
          for (Index s = 0; s < sent; ++s)
            ASSERT_EQ(first + e.send_rows[std::size_t(e.send_offsets[k] + s)],
                      other.slot_rows[std::size_t(e.remote_slots[k] + s)]);
        }
        EXPECT_EQ(e.slot_offsets.back(), e.slots());
        EXPECT_TRUE(std::is_sorted(e.neighbours.begin(), e.neighbours.end()));
      }
    }
  }
}

TEST(Halo, NewValuesOfTheSamePatternNeedNoAnalysis) {
  for (const auto& [name, a, unused] : halo_matrices()) {
    CsrMatrix b = a;
    for (std::size_t k = 0; k < b.values.size(); ++k) b.values[k] = unit_random(k) - 0.5;
    for (const Starts& starts : cuts(a.rows)) {
      SCOPED_TRACE(name + ", " + text_of(starts));
      run_ranks(ranks_of(starts), [&](auto c) {
        for (int threads : {1, 2}) {
          Halo halo(c, rows_of(a, starts, c->rank()), exec::Host(threads));
          const Halo other(c, rows_of(b, starts, c->rank()), exec::Host(1));
          CsrMatrix block = halo.take_block();
          EXPECT_EQ(halo.block_nnz(), block.nnz());
          halo.refresh(rows_of(b, starts, c->rank()), block.values.data());
          EXPECT_EQ(block.offsets, other.block().offsets);
          EXPECT_EQ(block.columns, other.block().columns);
          EXPECT_EQ(block.values, other.block().values);
          EXPECT_EQ(halo.outside().values, other.outside().values);
        }
      });
    }
  }
}

TEST(Halo, AnotherPatternIsRefusedOnAllRanks) {
  const CsrMatrix a = generate("gen:poisson2d:20x20");
  const Starts starts{0, 130, 250, 400};
  run_ranks(3, [&](auto c) {
    const RowsMatrix mine = rows_of(a, starts, c->rank());
    Halo halo(c, mine, exec::Host(1));
    Buffer<double> values(halo.block().values);
    halo.refresh(mine, values.data());
    for (int change = 0; change < 3; ++change) {
      RowsMatrix other = mine;
      if (c->rank() == 1) {
        if (change == 0) other.columns[5] += other.columns[5] + 1 < other.columns[6] ? 1 : -1;
        if (change == 1) other.all += 1;
        if (change == 2) other.offsets[3] -= 1;
      }
      expect_words(refusal([&] { halo.refresh(other, values.data()); }), {"rank 1 of 3", "another pattern"});
    }
    halo.refresh(mine, values.data());
    EXPECT_EQ(values, halo.block().values);
  });
}

/// Rows of a chain of 3e9 unknowns, of which each rank has only `count` from `first` on: row i has columns i - reach
/// (where there is one), i and i + reach.
RowsMatrix thin(std::int64_t all, std::int64_t first, Index count, std::int64_t reach) {
  RowsMatrix r;
  r.all = all;
  r.first = first;
  r.count = count;
  r.offsets.push_back(0);
  for (std::int64_t i = first; i < first + count; ++i) {
    for (const std::int64_t j : {i - reach, i, i + reach}) {
      if (j < 0 || j >= all) continue;
      r.columns.push_back(j);
      r.values.push_back(1.0 + double((i * 31 + j * 17) % 23));
    }
    r.offsets.push_back(Offset(r.columns.size()));
  }
  return r;
}

TEST(Halo, NumbersBeyondTwoToThe31AreKeptWhole) {
  constexpr std::int64_t all = 6'000'000'000, reach = 2'500'000'000;
  constexpr Index count = 3000;
  run_ranks(3, [&](auto c) {
    const std::int64_t first = c->rank() * reach;
    const RowsMatrix mine = thin(all, first, count, reach);
    if (c->rank() == 2) {
      // The last rank's rows reach 7.5e9: there is no such column.
      ASSERT_EQ(mine.nnz(), 2 * count);
    }
    expect_words(refusal([&] { Halo(c, mine, exec::Host(1)); }), {"no rank has row 3001"});
    Halo halo(c, mine, exec::Host(1), Gaps::allowed);
    const auto x = [](std::int64_t row) { return double(row % 1000003) - 5e5; };
    std::vector<double> own;
    for (std::int64_t i = first; i < first + count; ++i) own.push_back(x(i));
    const std::vector<double> y = multiply(halo, halo.block(), own);
    for (Index i = 0; i < count; ++i) {
      double expected = 0;
      for (Offset k = mine.offsets[std::size_t(i)]; k < mine.offsets[std::size_t(i) + 1]; ++k)
        expected += mine.values[std::size_t(k)] * x(mine.columns[std::size_t(k)]);
      ASSERT_EQ(y[std::size_t(i)], expected);  // whole numbers: no rounding
    }
    EXPECT_EQ(halo.outside().exchange.neighbours.size(), c->rank() == 1 ? 2u : 1u);
    EXPECT_EQ(halo.outside().exchange.slot_rows.back(), c->rank() == 2 ? reach + count - 1 : first + reach + count - 1);
  });
}

TEST(Halo, AColumnThatIsNobodysRowIsRefused) {
  run_ranks(2, [](auto c) {
    const RowsMatrix mine = thin(5'000'000'000, c->rank() * 4'000'000'000, 10, 500);
    expect_words(refusal([&] { Halo(c, mine, exec::Host(1), Gaps::allowed); }), {"rank 0 of 2", "column 501 "});
  });
}

TEST(Halo, CountsWhatItSends) {
  const CsrMatrix a = chain(90);  // each row needs the one before
  const Starts starts{0, 30, 60, 90};
  run_ranks(3, [&](auto c) {
    Halo halo(c, rows_of(a, starts, c->rank()), exec::Host(1));
    for (int k = 0; k < 5; ++k) multiply(halo, halo.block(), std::vector<double>(30, 1.0));
    EXPECT_EQ(halo.cost().exchanges, 5);
    EXPECT_EQ(halo.cost().messages, c->rank() == 2 ? 0 : 5);
    EXPECT_EQ(halo.cost().bytes, c->rank() == 2 ? 0 : 40);
    EXPECT_GE(halo.cost().seconds_waited, 0);
  });
}

/// What a Halo of three ranks says where `change` spoils rank 1's rows.
std::string refused(const std::function<void(RowsMatrix&)>& change) {
  const CsrMatrix a = generate("gen:poisson2d:10x9");
  std::vector<std::string> said(3);
  run_ranks(3, [&](auto c) {
    RowsMatrix mine = rows_of(a, {0, 30, 60, 90}, c->rank());
    if (c->rank() == 1) change(mine);
    said[std::size_t(c->rank())] = refusal([&] { Halo(c, mine, exec::Host(1)); });
  });
  EXPECT_EQ(said[0], said[1]);
  EXPECT_EQ(said[0], said[2]);
  return said[0];
}

TEST(Halo, RowsThatAreNotAsTheyShouldBeAreRefusedOnAllRanks) {
  expect_words(refused([](auto& a) { a.columns[1] = 90; }), {"rank 1 of 3", "row 31 ", "column 91"});
  expect_words(refused([](auto& a) { a.columns[0] = -1; }), {"rank 1 of 3", "row 31 ", "column 0"});
  expect_words(refused([](auto& a) { a.columns[1] = a.columns[0]; }), {"rank 1 of 3", "row 31 ", "ascend"});
  expect_words(refused([](auto& a) { a.offsets[2] = a.offsets[1] - 1; }), {"rank 1 of 3", "row 32 "});
  expect_words(refused([](auto& a) { a.offsets[0] = 1; }), {"rank 1 of 3", "begin with 0"});
  expect_words(refused([](auto& a) { a.first = 61; }), {"rank 1 of 3", "within"});
  expect_words(refused([](auto& a) { a.all = 91; }), {"91 on rank 1", "90 on rank 0"});
  expect_words(refused([](auto& a) { a.first = 29; }), {"rank 1 begins with row 30"});
  expect_words(refused([](auto& a) { --a.count; }), {"no rank has row 60"});
  expect_words(refused([](auto& a) { ++a.first, --a.count; }), {"no rank has row 31"});
}

TEST(RowRanges, OwnersAreFoundAmongEmptyRangesAndGaps) {
  const RowRanges r = ranges_of({0, 0, 4, 4, 4, 9, 9});
  const std::vector<int> owner{1, 1, 1, 1, 4, 4, 4, 4, 4};
  for (std::size_t i = 0; i < owner.size(); ++i) EXPECT_EQ(r.owner(std::int64_t(i)), owner[i]) << i;
  EXPECT_EQ(r.owner(-1), -1);
  EXPECT_EQ(r.owner(9), -1);
  run_ranks(3, [](auto c) {
    const std::int64_t first[] = {5, 77, 5'000'000'000};  // a rank without rows may say any
    const Index count[] = {5, 0, 10};
    const RowRanges g = gather_ranges(*c, 6'000'000'000, first[c->rank()], count[c->rank()], Gaps::allowed);
    EXPECT_EQ(g.owner(4), -1);
    EXPECT_EQ(g.owner(5), 0);
    EXPECT_EQ(g.owner(9), 0);
    EXPECT_EQ(g.owner(10), -1);
    EXPECT_EQ(g.owner(77), -1);
    EXPECT_EQ(g.owner(5'000'000'000), 2);
    EXPECT_EQ(g.owner(5'000'000'010), -1);
    EXPECT_EQ(g.count(1), 0);
  });
}

}  // namespace
}  // namespace krilu::distributed
