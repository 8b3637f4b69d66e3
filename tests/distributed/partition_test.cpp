// SPDX-License-Identifier: Apache-2.0
// Which rank gets which rows: even blocks, METIS's parts; and rows that move, which must be P A P^T with P the new
// numbering, whatever moves where.
#include "distributed/partition.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "base/random.hpp"
#include "distributed/redistribute.hpp"
#include "distributed/rows.hpp"
#include "schedule/ordering.hpp"
#include "sparse/csr.hpp"
#include "support/refusal.hpp"

namespace krilu::distributed {
namespace {

using namespace krilu::test;

TEST(BalancedStarts, BlocksHaveEvenWorkWhereverTheRowsStandAtFirst) {
  for (const auto& [name, a, unused] : small_cases()) {
    std::int64_t longest = 0;
    for (Index i = 0; i < a.rows; ++i)
      longest = std::max(longest, std::int64_t(a.offsets[std::size_t(i) + 1] - a.offsets[std::size_t(i)]));
    std::map<int, std::vector<std::int64_t>> by_ranks;
    for (const Starts& starts : cuts(a.rows)) {
      SCOPED_TRACE(name + ", " + text_of(starts));
      const int ranks = ranks_of(starts);
      run_ranks(ranks, [&](auto c) {
        const std::vector<std::int64_t> got = balanced_starts(*c, rows_of(a, starts, c->rank()));
        ASSERT_EQ(got.size(), std::size_t(ranks) + 1);
        EXPECT_EQ(got.front(), 0);
        EXPECT_EQ(got.back(), a.rows);
        const double share = double(a.rows + a.nnz()) / ranks;
        for (std::size_t r = 0; r < std::size_t(ranks); ++r) {
          ASSERT_LE(got[r], got[r + 1]);
          const std::int64_t work =
              got[r + 1] - got[r] + a.offsets[std::size_t(got[r + 1])] - a.offsets[std::size_t(got[r])];
          EXPECT_LE(std::abs(double(work) - share), double(longest) + 2) << "rank " << r;
        }
        if (c->rank() == 0) {
          if (by_ranks.count(ranks))
            EXPECT_EQ(by_ranks[ranks], got) << "the same from every cut";
          else
            by_ranks[ranks] = got;
        }
      });
    }
  }
}

TEST(BalancedStarts, AMatrixWithoutRowsIsCutToo) {
  run_ranks(3, [](auto c) { EXPECT_EQ(balanced_starts(*c, RowsMatrix{}), (std::vector<std::int64_t>{0, 0, 0, 0})); });
}

TEST(MetisRanks, IsThePartitionOfTheWholeGraphOnEveryCut) {
  for (const auto& [name, a, unused] : small_cases()) {
    const CsrMatrix graph = sparse::adjacency(a.view());
    for (const Starts& starts : cuts(a.rows)) {
      SCOPED_TRACE(name + ", " + text_of(starts));
      const int ranks = ranks_of(starts);
      const std::vector<Index> whole = schedule::partition(graph.view(), ranks);
      run_ranks(ranks, [&](auto c) {
        const std::vector<int> mine = metis_ranks(*c, rows_of(a, starts, c->rank()));
        const std::vector<Index> expected = part_of(whole, starts, c->rank());
        EXPECT_EQ(mine, std::vector<int>(expected.begin(), expected.end()));
      });
    }
  }
}

TEST(MetisRanks, GraphsThatItCannotTakeAreRefusedOnAllRanks) {
  run_ranks(2, [](auto c) {
    RowsMatrix r;
    r.all = 4'000'000'000;
    EXPECT_NE(refusal([&] { metis_ranks(*c, r); }).find("4000000000"), std::string::npos);
  });
}

/// Ways for rows to move: nobody moves, all to one rank, round about, at random.
std::vector<std::function<int(std::int64_t, int)>> moves() {
  return {
      [](std::int64_t, int) { return 0; },
      [](std::int64_t, int ranks) { return ranks - 1; },
      [](std::int64_t row, int ranks) { return int(row % ranks); },
      [](std::int64_t row, int ranks) { return int(random_bits(std::uint64_t(row)) % std::uint64_t(ranks)); },
      [](std::int64_t row, int ranks) { return ranks < 3 ? 0 : int(random_bits(std::uint64_t(row)) % 2) * 2; },
  };
}

TEST(Redistribute, RowsThatMoveAreThoseOfTheRenumberedMatrix) {
  for (const auto& [name, a, unused] : small_cases()) {
    for (const Starts& starts : cuts(a.rows)) {
      for (std::size_t way = 0; way < moves().size(); ++way) {
        SCOPED_TRACE(name + ", " + text_of(starts) + ", way " + std::to_string(way));
        const int ranks = ranks_of(starts);
        const auto to = moves()[way];
        // By hand: rows by their new rank, in their old order.
        std::vector<Index> old_of, new_of(std::size_t(a.rows));
        for (int p = 0; p < ranks; ++p)
          for (Index i = 0; i < a.rows; ++i)
            if (to(i, ranks) == p) {
              new_of[std::size_t(i)] = Index(old_of.size());
              old_of.push_back(i);
            }
        const std::vector<double> x = random_values(std::size_t(a.rows), 441);
        std::vector<std::int64_t> covered(std::size_t(ranks), 0);
        run_ranks(ranks, [&](auto c) {
          const RowsMatrix mine = rows_of(a, starts, c->rank());
          std::vector<int> new_rank;
          for (Index i = 0; i < mine.count; ++i) new_rank.push_back(to(mine.first + i, ranks));
          const Carrier carrier(c, ranges_of(starts), new_rank);
          const MovedRows m = redistribute(c, mine, carrier);
          covered[std::size_t(c->rank())] = m.rows.count;
          ASSERT_EQ(m.rows.all, a.rows);
          ASSERT_EQ(m.old_row.size(), std::size_t(m.rows.count));
          require_valid(m.rows.view());
          for (Index i = 0; i < m.rows.count; ++i) {
            const Index old = old_of[std::size_t(m.rows.first + i)];
            ASSERT_EQ(m.old_row[std::size_t(i)], old);
            ASSERT_EQ(to(old, ranks), c->rank());
            const Offset begin = a.offsets[std::size_t(old)], n = a.offsets[std::size_t(old) + 1] - begin;
            ASSERT_EQ(m.rows.offsets[std::size_t(i) + 1] - m.rows.offsets[std::size_t(i)], n);
            std::map<std::int64_t, double> expected;
            for (Offset k = begin; k < begin + n; ++k)
              expected[new_of[std::size_t(a.columns[std::size_t(k)])]] = a.values[std::size_t(k)];
            auto k = std::size_t(m.rows.offsets[std::size_t(i)]);
            for (const auto& [column, value] : expected) {
              ASSERT_EQ(m.rows.columns[k], column);
              ASSERT_EQ(m.rows.values[k++], value);
            }
          }
          const std::vector<double> old_part = part_of(x, starts, c->rank());
          std::vector<double> new_part(std::size_t(m.rows.count)), again(old_part.size());
          carrier.forward(old_part.data(), new_part.data());
          for (std::size_t i = 0; i < new_part.size(); ++i) ASSERT_EQ(new_part[i], x[std::size_t(m.old_row[i])]);
          carrier.back(new_part.data(), again.data());
          ASSERT_EQ(again, old_part);
        });
        EXPECT_EQ(std::accumulate(covered.begin(), covered.end(), std::int64_t(0)), a.rows);
      }
    }
  }
}

TEST(Redistribute, RanksThatDoNotExistAreRefusedOnAllRanks) {
  run_ranks(2, [](auto c) {
    for (const int wrong : {2, -1})
      expect_words(refusal([&] {
                     Carrier(c, ranges_of({0, 5, 10}), std::vector<int>{0, 1, 0, c->rank() ? wrong : 0, 1});
                   }),
                   {"rank 1 of 2", "row 9 ", "to rank " + std::to_string(wrong)});
    expect_words(refusal([&] {
                   Carrier(c, ranges_of({0, 5, 10}), std::vector<int>(c->rank() ? 4u : 5u, 0));
                 }),
                 {"rank 1 of 2", "4 new ranks for 5 rows"});
  });
}

TEST(Redistribute, MetisPartsCutLessThanBlocksOfShuffledRows) {
  // A lattice in random numbering: each block of rows is coupled to everything.
  const CsrMatrix lattice = generate("gen:poisson2d:60x60");
  const std::vector<Index> shuffled = shuffled_order(3600, 451);
  RowMaps rows(3600);
  for (Index i = 0; i < 3600; ++i)
    for (Offset k = lattice.offsets[std::size_t(i)]; k < lattice.offsets[std::size_t(i) + 1]; ++k)
      rows[std::size_t(shuffled[std::size_t(i)])][shuffled[std::size_t(lattice.columns[std::size_t(k)])]] =
          lattice.values[std::size_t(k)];
  const CsrMatrix a = from_rows(rows);
  const Starts starts{0, 1200, 2400, 3600};
  run_ranks(3, [&](auto c) {
    const RowsMatrix mine = rows_of(a, starts, c->rank());
    const Carrier carrier(c, ranges_of(starts), metis_ranks(*c, mine));
    const MovedRows m = redistribute(c, mine, carrier);
    EXPECT_NEAR(double(m.rows.count), 1200, 60);
    Offset outside = 0;
    for (const std::int64_t j : m.rows.columns) outside += !carrier.to().has(c->rank(), j);
    EXPECT_LT(outside, 250);  // against some 4000 of the blocks
  });
}

}  // namespace
}  // namespace krilu::distributed
