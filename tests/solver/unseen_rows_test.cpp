// SPDX-License-Identifier: Apache-2.0
// Rows that are the norm of b, and what is said of the others: only where these are not solved.
#include "solver/unseen_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "support/refusal.hpp"
#include "support/solved.hpp"
#include "support/support.hpp"

namespace krilu::test {
namespace {

using solver::unseen_rows;

struct Fixed {
  CsrMatrix a;
  std::vector<double> b;
};
/// A Poisson system, and x = 2 in the first `fixed` rows by so large a diagonal.
Fixed fixed_by(double penalty, Index fixed) {
  Fixed s{generate("gen:poisson2d:30x30"), {}};
  s.b = ones(s.a);
  for (Index i = 0; i < fixed; ++i) {
    for (auto k = std::size_t(s.a.offsets[std::size_t(i)]); k < std::size_t(s.a.offsets[std::size_t(i) + 1]); ++k)
      if (s.a.columns[k] == i) s.a.values[k] = penalty;
    s.b[std::size_t(i)] = 2 * penalty;
  }
  return s;
}

TEST(UnseenRows, AreSaidWhereThePenaltyIsTheNorm) {
  const Fixed s = fixed_by(1e20, 30);
  const Solved reached = solved(s.a, s.b, {.rtol = 1e-8});
  ASSERT_EQ(reached.r.status, Status::converged);  // by the norm
  const std::string said = unseen_rows(s.a, s.b, reached.x, 1e-8);
  expect_words(said, {"30 rows (row 1 the first) hold entries 2e+19 times as large", "the norm of b is theirs",
                      "divide such rows"});
  expect_words(unseen_rows(fixed_by(1e20, 1).a, fixed_by(1e20, 1).b, std::vector<double>(900, 0.0), 1e-8),
               {"1 row (row 1) holds entries"});
}

TEST(UnseenRows, AreNotSaidWhereTheyAreSolvedToo) {
  const Fixed s = fixed_by(1e20, 30);
  // The same system, its large rows divided by their diagonals: the norm sees all.
  Fixed even = s;
  for (Index i = 0; i < 30; ++i) {
    for (auto k = std::size_t(s.a.offsets[std::size_t(i)]); k < std::size_t(s.a.offsets[std::size_t(i) + 1]); ++k)
      even.a.values[k] /= 1e20;
    even.b[std::size_t(i)] = 2;
  }
  const Solved reached = solved(even.a, even.b, {.rtol = 1e-10});
  ASSERT_EQ(reached.r.status, Status::converged);
  EXPECT_EQ(unseen_rows(even.a, even.b, reached.x, 1e-10), "");
  EXPECT_EQ(unseen_rows(s.a, s.b, reached.x, 1e-8), "");
}

TEST(UnseenRows, AreNotSaidWhereRowsAreOfOneSize) {
  const Fixed s = fixed_by(1e6, 30);  // large, but no row's norm is lost in theirs
  EXPECT_EQ(unseen_rows(s.a, s.b, std::vector<double>(900, 0.0), 1e-8), "");
  // Large rows in which b is nothing: its norm is that of the others.
  Fixed nothing = fixed_by(1e20, 30);
  std::fill(nothing.b.begin(), nothing.b.begin() + 30, 0.0);
  EXPECT_EQ(unseen_rows(nothing.a, nothing.b, std::vector<double>(900, 0.0), 1e-8), "");
  // All of b in one row.
  const CsrMatrix a = generate("gen:poisson2d:30x30");
  std::vector<double> b(900, 0.0);
  b[450] = 1e20;
  EXPECT_EQ(unseen_rows(a, b, std::vector<double>(900, 0.0), 1e-8), "");
  EXPECT_EQ(unseen_rows(CsrMatrix{}, {}, {}, 1e-8), "");
}

}  // namespace
}  // namespace krilu::test
