// SPDX-License-Identifier: Apache-2.0
// Rows with layers of neighbours' rows beside: which rows, numbering, entries and exchange, against the same found in
// the whole matrix.
#include "distributed/overlap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.hpp"
#include "distributed/rows.hpp"
#include "support/refusal.hpp"

namespace krilu::distributed {
namespace {

using namespace krilu::test;

std::vector<GpuCase> overlap_matrices() {
  std::vector<GpuCase> all = small_cases();
  all.push_back({"gen:poisson2d:30x25", generate("gen:poisson2d:30x25")});
  all.push_back({"no rows", from_rows({}), false});
  return all;
}

/// A + A^T's columns, row by row.
std::vector<std::set<Index>> neighbours_of(const CsrMatrix& a) {
  std::vector<std::set<Index>> near(std::size_t(a.rows));
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
      near[std::size_t(i)].insert(a.columns[std::size_t(k)]);
      near[std::size_t(a.columns[std::size_t(k)])].insert(i);
    }
  return near;
}

/// The rows beside a range within `depth` layers of A + A^T, by breadth-first search in the whole matrix.
std::vector<std::int64_t> beside_of(const std::vector<std::set<Index>>& near, std::int64_t first, std::int64_t end,
                                    int depth) {
  std::set<std::int64_t> reached;
  for (std::int64_t i = first; i < end; ++i) reached.insert(i);
  for (int d = 0; d < depth; ++d) {
    std::set<std::int64_t> more = reached;
    for (const std::int64_t i : reached) more.insert(near[std::size_t(i)].begin(), near[std::size_t(i)].end());
    reached = std::move(more);
  }
  std::erase_if(reached, [&](std::int64_t i) { return i >= first && i < end; });
  return {reached.begin(), reached.end()};
}

/// x += what the others add.
void couple(Coupling& coupling, std::vector<double>& x) {
  const std::span<const Index> rows = coupling.rows();
  std::vector<double> at(rows.size());
  for (std::size_t k = 0; k < rows.size(); ++k) at[k] = x[std::size_t(rows[k])];
  coupling.start(at.data());
  coupling.finish(at.data());
  for (std::size_t k = 0; k < rows.size(); ++k) x[std::size_t(rows[k])] += at[k];
}

TEST(Overlap, IsTheSubmatrixOfTheRowsWithinSoManyLayers) {
  for (const auto& [name, a, unused] : overlap_matrices()) {
    const std::vector<double> x = random_values(std::size_t(a.rows), 461);
    const std::vector<std::set<Index>> near = neighbours_of(a);
    for (const Starts& starts : cuts(a.rows)) {
      for (const int depth : {0, 1, 2, 5}) {
        SCOPED_TRACE(name + ", " + text_of(starts) + ", depth " + std::to_string(depth));
        run_ranks(ranks_of(starts), [&](auto c) {
          const RowsMatrix mine = rows_of(a, starts, c->rank());
          Overlap o(c, mine, ranges_of(starts), depth);
          const std::vector<std::int64_t> beside = beside_of(near, mine.first, mine.first + mine.count, depth);
          ASSERT_EQ(o.plan().slot_rows, beside);
          ASSERT_EQ(o.own(), mine.count);
          const CsrView m = o.matrix();
          ASSERT_EQ(m.rows, mine.count + Index(beside.size()));
          require_valid(m);
          std::map<std::int64_t, Index> local;
          for (Index i = 0; i < mine.count; ++i) local[mine.first + i] = i;
          for (std::size_t k = 0; k < beside.size(); ++k) local[beside[k]] = mine.count + Index(k);
          for (const auto& [row, i] : local) {
            std::map<Index, double> expected;
            for (Offset k = a.offsets[std::size_t(row)]; k < a.offsets[std::size_t(row) + 1]; ++k)
              if (local.count(a.columns[std::size_t(k)]))
                expected[local[a.columns[std::size_t(k)]]] = a.values[std::size_t(k)];
            std::map<Index, double> got;
            for (Offset k = m.offsets[i]; k < m.offsets[i + 1]; ++k) got[m.columns[k]] = m.values[k];
            ASSERT_EQ(got, expected) << "row " << row;
          }
          std::vector<double> r = part_of(x, starts, c->rank());
          const std::vector<double> own = r;
          r.resize(std::size_t(m.rows), 0.0);
          couple(*o.coupling(), r);
          for (std::size_t i = 0; i < own.size(); ++i) ASSERT_EQ(r[i], own[i]);
          for (std::size_t k = 0; k < beside.size(); ++k) ASSERT_EQ(r[own.size() + k], x[std::size_t(beside[k])]);
        });
      }
    }
  }
}

TEST(Overlap, NewValuesOfTheSamePatternNeedNoAnalysis) {
  for (const auto& [name, a, unused] : overlap_matrices()) {
    CsrMatrix b = a;
    for (std::size_t k = 0; k < b.values.size(); ++k) b.values[k] = unit_random(k) - 0.5;
    for (const Starts& starts : cuts(a.rows)) {
      SCOPED_TRACE(name + ", " + text_of(starts));
      run_ranks(ranks_of(starts), [&](auto c) {
        Overlap o(c, rows_of(a, starts, c->rank()), ranges_of(starts), 2);
        const Overlap other(c, rows_of(b, starts, c->rank()), ranges_of(starts), 2);
        o.refresh(rows_of(b, starts, c->rank()));
        const CsrView m = o.matrix(), n = other.matrix();
        ASSERT_EQ(m.nnz(), n.nnz());
        EXPECT_TRUE(std::equal(m.columns, m.columns + m.nnz(), n.columns));
        EXPECT_TRUE(std::equal(m.values, m.values + m.nnz(), n.values));
      });
    }
  }
}

TEST(Overlap, WhatDoesNotFitIsRefusedOnAllRanks) {
  const CsrMatrix a = generate("gen:poisson2d:10x9");
  const Starts starts{0, 30, 60, 90};
  run_ranks(3, [&](auto c) {
    RowsMatrix mine = rows_of(a, starts, c->rank());
    expect_words(refusal([&] { Overlap(c, mine, ranges_of(starts), -1); }), {"-1 layers"});
    expect_words(refusal([&] { Overlap(c, mine, ranges_of(starts), c->rank() == 2 ? 1 : 2); }), {"depth", "rank 2"});
    Overlap o(c, mine, ranges_of(starts), 1);
    if (c->rank() == 1) mine.offsets.back() -= 1;
    expect_words(refusal([&] { o.refresh(mine); }), {"rank 1 of 3", "another pattern"});
  });
}

}  // namespace
}  // namespace krilu::distributed
