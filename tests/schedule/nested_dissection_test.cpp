// SPDX-License-Identifier: Apache-2.0
// What a direct factorisation asks of a pattern, against slow answers: the count of a factor's entries against
// elimination on a dense pattern, of A itself and of A^T A; structural rank against all pairings of rows and columns;
// nested dissection is a permutation, of any graph, and leaves less fill on a grid than natural order.
#include "schedule/nested_dissection.hpp"

#include <cstdint>
#include <limits>

#include "support/matrices.hpp"

namespace krilu::test {
namespace {

using namespace schedule;

constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();
using Pattern = std::vector<std::vector<char>>;

/// Entries on and below the diagonal after elimination of a symmetric pattern in this order.
std::int64_t entries_by_elimination(const Pattern& symmetric, const Order& order) {
  const std::size_t n = symmetric.size();
  Pattern p(n, std::vector<char>(n));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) p[i][j] = symmetric[std::size_t(order[i])][std::size_t(order[j])] || i == j;
  std::int64_t count = 0;
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = k; i < n; ++i) {
      if (!p[i][k]) continue;
      ++count;
      for (std::size_t j = k + 1; j < n; ++j)
        if (i > k && p[k][j]) p[i][j] = 1;
    }
  return count;
}

Pattern pattern_of(const CsrView& a) {
  Pattern p(std::size_t(a.rows), std::vector<char>(std::size_t(a.cols)));
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) p[std::size_t(i)][std::size_t(a.columns[k])] = 1;
  return p;
}

/// Rows that have a column in common, and columns that have a row: A^T A without cancellation.
Pattern normal_pattern(const CsrView& a) {
  const Pattern p = pattern_of(a);
  const std::size_t n = p.size();
  Pattern q(n, std::vector<char>(n));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t k = 0; k < n; ++k) q[i][j] |= char(p[k][i] && p[k][j]);
  return q;
}

std::vector<CsrMatrix> dissection_matrices() {
  std::vector<CsrMatrix> all;
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    all.push_back(random_matrix({.rows = Index(5 + 4 * seed),
                                 .per_row = 1 + double(seed % 4),
                                 .symmetric_pattern = seed % 2 == 0,
                                 .seed = seed}));
  all.push_back(arrow(30, 4));
  all.push_back(chain(25));
  all.push_back(diagonal(12));
  all.push_back(with_empty_rows(40, 9));
  all.push_back(grid(7, 6));
  all.push_back(from_dense({{2.0}}));
  return all;
}

TEST(NestedDissection, IsAPermutationOfAnyGraph) {
  for (const CsrMatrix& a : dissection_matrices()) {
    Order sorted = nested_dissection(sparse::adjacency(a));
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, natural_order(a.rows));
  }
  const CsrMatrix isolated = random_matrix({.rows = 3000, .per_row = 0.5, .seed = 3});
  Order sorted = nested_dissection(sparse::adjacency(isolated));
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, natural_order(isolated.rows));
}

TEST(NestedDissection, LeavesLessFillThanNaturalOrder) {
  const CsrMatrix g = sparse::adjacency(grid(50, 50));
  const std::int64_t natural = factor_entries(g, natural_order(g.rows), no_limit);
  // Column k of the first line of points reaches itself, its neighbour and k + 1 points of the second line; later ones
  // have the whole band, and the last line its triangle.
  EXPECT_EQ(natural, (49 * 3 + 48 * 49 / 2 + 51) + 48 * 50 * 51 + 50 * 51 / 2);
  EXPECT_LT(factor_entries(g, nested_dissection(g), no_limit), natural / 2);
}

TEST(FactorEntries, AreThoseOfElimination) {
  int m = 0;
  for (const CsrMatrix& a : dissection_matrices()) {
    SCOPED_TRACE(m++);
    const CsrMatrix g = sparse::adjacency(a);
    for (const Order& order : {natural_order(a.rows), shuffled_order(a.rows, 7), nested_dissection(g)})
      EXPECT_EQ(factor_entries(g, order, no_limit), entries_by_elimination(pattern_of(g), order));
  }
}

TEST(FactorEntries, WithExchangesAreThoseOfTheNormalMatrix) {
  int m = 0;
  for (const CsrMatrix& a : dissection_matrices()) {
    SCOPED_TRACE(m++);
    const CsrMatrix t = sparse::transpose(a);
    for (const Order& order : {natural_order(a.rows), shuffled_order(a.rows, 7)})
      EXPECT_EQ(factor_entries_with_exchanges(a, t, order, no_limit), entries_by_elimination(normal_pattern(a), order));
  }
}

TEST(FactorEntries, AreNotCountedMuchPastTheLimit) {
  const CsrMatrix g = sparse::adjacency(grid(50, 50));
  const std::int64_t counted = factor_entries(g, natural_order(g.rows), 10000);
  EXPECT_GT(counted, 10000);
  EXPECT_LE(counted, 10000 + g.rows);
}

/// All pairings, a row after another: which sets of columns they can have.
bool full_rank_by_pairings(const CsrView& a) {
  std::vector<char> reached(std::size_t(1) << a.rows, 0);
  reached[0] = 1;
  for (Index i = 0; i < a.rows; ++i) {
    std::vector<char> next(reached.size(), 0);
    for (std::size_t set = 0; set < reached.size(); ++set)
      for (Offset k = a.offsets[i]; reached[set] && k < a.offsets[i + 1]; ++k)
        if (!(set >> a.columns[k] & 1)) next[set | std::size_t(1) << a.columns[k]] = 1;
    reached = std::move(next);
  }
  return reached.back();
}

TEST(StructuralRank, IsFullWhereRowsAndColumnsCanBePaired) {
  int full = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 engine(seed);
    const Index n = 1 + Index(engine() % 11);
    RowMaps rows(static_cast<std::size_t>(n));
    const int entries = int(engine() % (3 * unsigned(n) + 1));
    for (int k = 0; k < entries; ++k) {
      const auto i = std::size_t(engine() % unsigned(n));
      rows[i][Index(engine() % unsigned(n))] = 1;
    }
    const CsrMatrix a = from_rows(rows);
    ASSERT_EQ(has_full_structural_rank(a), full_rank_by_pairings(a)) << "seed " << seed;
    full += has_full_structural_rank(a);
  }
  EXPECT_GT(full, 200);
  EXPECT_LT(full, 1800);
}

TEST(StructuralRank, OfALongPathOfExchanges) {
  // Row i has columns i and i + 1, the last row column 0 alone: every row must give its diagonal up, or (without that
  // entry) no row can.
  constexpr Index n = 20000;
  for (const bool full : {true, false}) {
    RowMaps rows(static_cast<std::size_t>(n));
    for (Index i = 0; i + 1 < n; ++i) rows[std::size_t(i)] = {{i, 1.0}, {i + 1, 1.0}};
    if (!full) rows[n - 2].erase(n - 1);
    rows[n - 1] = {{0, 1.0}};
    EXPECT_EQ(has_full_structural_rank(from_rows(rows)), full);
  }
}

}  // namespace
}  // namespace krilu::test
