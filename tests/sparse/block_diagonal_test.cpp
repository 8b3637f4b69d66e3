// SPDX-License-Identifier: Apache-2.0
// The block diagonal matrix of local problems against its definition, entry by entry of a dense matrix: blocks that
// overlap, that cover nothing, that stand in any order; every entry's source in the caller's matrix.
#include "sparse/block_diagonal.hpp"

#include "support/matrices.hpp"
#include "support/split_matrix.hpp"

namespace krilu::test {
namespace {

using namespace sparse;

/// Entry (l, m) is a's entry (row[l], row[m]) where l and m are of one block.
void expect_blocks(const BlockDiagonal& d, const CsrMatrix& a, const std::vector<Index>& offsets,
                   const std::vector<Index>& row) {
  // Where each entry of a stands, -1 where there is none: a stored zero is an entry too.
  std::vector<std::vector<Offset>> at(std::size_t(a.rows), std::vector<Offset>(std::size_t(a.rows), -1));
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      at[std::size_t(i)][std::size_t(a.columns[std::size_t(k)])] = k;
  std::vector<Offset> expected_offsets{0};
  std::vector<Index> columns;
  std::vector<Offset> source;
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b)
    for (Index l = offsets[b]; l < offsets[b + 1]; ++l) {
      for (Index m = offsets[b]; m < offsets[b + 1]; ++m)
        if (const Offset k = at[std::size_t(row[std::size_t(l)])][std::size_t(row[std::size_t(m)])]; k >= 0) {
          columns.push_back(m);
          source.push_back(k);
        }
      expected_offsets.push_back(Offset(columns.size()));
    }
  EXPECT_EQ(d.rows, Index(row.size()));
  EXPECT_EQ(std::vector<Offset>(d.offsets.begin(), d.offsets.end()), expected_offsets);
  EXPECT_EQ(std::vector<Index>(d.columns.begin(), d.columns.end()), columns);
  EXPECT_EQ(std::vector<Offset>(d.source.begin(), d.source.end()), source);
  EXPECT_EQ(d.nnz(), Offset(columns.size()));
  EXPECT_EQ(d.bytes(), 4 * (expected_offsets.size() + columns.size() + source.size()));
  EXPECT_NO_THROW(require_valid(d.pattern()));
}

TEST(BlockDiagonal, IsReadOffASmallMatrix) {
  const CsrMatrix a = from_dense({{1, 2, 0, 3}, {4, 5, 6, 0}, {0, 7, 8, 9}, {10, 0, 11, 12}});
  // Blocks {0, 1, 2} and {3, 2}, the second against the natural order.
  const std::vector<Index> offsets{0, 3, 5}, row{0, 1, 2, 3, 2};
  const BlockDiagonal d = block_diagonal(exec::Host(1), a, offsets, row);
  std::vector<double> values;
  for (Offset k : d.source) values.push_back(a.values[std::size_t(k)]);
  EXPECT_EQ(values, (std::vector<double>{1, 2, 4, 5, 6, 7, 8, 12, 11, 9, 8}));
  EXPECT_EQ(std::vector<Index>(d.columns.begin(), d.columns.end()),
            (std::vector<Index>{0, 1, 0, 1, 2, 1, 2, 3, 4, 3, 4}));
  expect_blocks(d, a, offsets, row);
}

TEST(BlockDiagonal, IsTheDenseDefinitionForRandomBlocksOnAnyThreads) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    CsrMatrix a = seed % 3 == 0 ? with_empty_rows(80, seed)
                                : random_matrix({.rows = 80, .per_row = 6, .symmetric_pattern = false, .seed = seed});
    if (seed % 4 == 0) std::fill(a.values.begin(), a.values.end(), 0.0);
    std::mt19937_64 engine(seed);
    std::vector<Index> offsets{0}, row;
    for (int b = 0; b < 9; ++b) {  // some rows several times, some never, blocks of none to all rows
      std::vector<Index> rows = shuffled_order(a.rows, seed * 100 + std::uint64_t(b));
      rows.resize(b == 4 ? 0 : b == 5 ? rows.size() : engine() % 30);
      if (seed % 2) std::sort(rows.begin(), rows.end());
      row.insert(row.end(), rows.begin(), rows.end());
      offsets.push_back(Index(row.size()));
    }
    for (int threads : {1, 2, 5}) expect_blocks(block_diagonal(exec::Host(threads), a, offsets, row), a, offsets, row);
    CsrView pattern = a;
    pattern.values = nullptr;
    expect_blocks(block_diagonal(exec::Host(2), pattern, offsets, row), a, offsets, row);
  }
}

TEST(BlockDiagonal, OfOneBlockIsTheMatrixAndOfSingleRowsItsDiagonal) {
  const CsrMatrix a = grid(9, 7);
  const std::vector<Index> rows = natural_order(63);
  const BlockDiagonal whole = block_diagonal(exec::Host(2), a, std::vector<Index>{0, 63}, rows);
  EXPECT_EQ(whole.columns, a.columns);
  EXPECT_EQ(whole.offsets, a.offsets);
  std::vector<Index> offsets = natural_order(64);
  const BlockDiagonal single = block_diagonal(exec::Host(2), a, offsets, rows);
  ASSERT_EQ(single.nnz(), 63);
  for (std::size_t i = 0; i < 63; ++i) {
    EXPECT_EQ(single.columns[i], Index(i));
    EXPECT_EQ(a.values[std::size_t(single.source[i])], 4.25);
  }
}

TEST(BlockDiagonal, OfNoRowsIsEmpty) {
  const BlockDiagonal d = block_diagonal(exec::Host(2), grid(3, 3), std::vector<Index>{0}, {});
  EXPECT_EQ(d.rows, 0);
  EXPECT_EQ(d.nnz(), 0);
}

}  // namespace
}  // namespace krilu::test
