// SPDX-License-Identifier: Apache-2.0
// RowEquations: the pattern and the Jacobian are the same in whatever sequence a row names its unknowns, rows can be
// asked for in pieces, and what no pattern can be is refused with its row.
#include "krilu/equations.hpp"

#include "newton/systems.hpp"
#include "support/matrices.hpp"

namespace krilu::test {
namespace {

/// Rows whose unknowns stand in a table.
struct Table {
  std::vector<std::vector<Index>> unknowns;
  Index n = -1;  // rows, where the table does not say
  Index rows() const { return n == -1 ? Index(unknowns.size()) : n; }
  template <class Add>
  void columns(Index i, Add add) const {
    for (Index c : unknowns[std::size_t(i)]) add(c);
  }
  double residual(Index i, View<const double>) const { return double(i); }
};

void expect_same(const CsrMatrix& a, const CsrMatrix& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.cols, b.cols);
  EXPECT_TRUE(std::equal(a.offsets.begin(), a.offsets.end(), b.offsets.begin(), b.offsets.end()));
  EXPECT_TRUE(std::equal(a.columns.begin(), a.columns.end(), b.columns.begin(), b.columns.end()));
  EXPECT_EQ(bits({a.values.begin(), a.values.end()}), bits({b.values.begin(), b.values.end()}));
}

TEST(RowEquations, PatternIsTheRows) {
  const RowEquations equations(Table{{{0, 2}, {}, {2, 0, 1}}});
  EXPECT_EQ(equations.rows(), 3);
  const CsrMatrix a = equations.pattern();
  EXPECT_NO_THROW(require_valid(a));
  expect_same(a, [] {
    CsrMatrix expected;
    expected.rows = expected.cols = 3;
    for (const Offset o : {0, 2, 2, 5}) expected.offsets.push_back(o);
    for (const Index c : {0, 2, 0, 1, 2}) expected.columns.push_back(c);
    expected.values.assign(5, 0.0);
    return expected;
  }());
}

TEST(RowEquations, AnySequenceOfUnknownsGivesTheSameMatrix) {
  for (std::uint64_t seed = 51; seed < 55; ++seed) {
    const Tangled t = tangled(200, 0.3, 0.2, random_values(200, seed), seed);
    const RowEquations ascending(t);
    const RowEquations disordered(Disordered<Tangled>{t});
    const std::vector<double> x = random_values(200, seed + 10);
    const CsrMatrix a = jacobian_of(ascending, x);
    EXPECT_NO_THROW(require_valid(a));
    expect_same(jacobian_of(disordered, x), a);
    EXPECT_EQ(bits(residual_of(disordered, x)), bits(residual_of(ascending, x)));
  }
}

/// All rows ascending but one.
struct Almost {
  Index row;
  Index rows() const { return 16; }
  template <class Add>
  void columns(Index i, Add add) const {
    if (i == row)
      for (Index j = 15; j >= 0; --j) add(j);
    else
      for (Index j = 0; j < 16; j += i + 1) add(j);
  }
  double residual(Index, View<const double>) const { return 0; }
  template <class Put>
  void jacobian(Index i, View<const double>, Put put) const {
    Index k = 0;
    columns(i, [&](Index j) { put(k++, 100.0 * i + j); });
  }
};

TEST(RowEquations, OneRowOutOfSequenceIsEnough) {
  // All ascending but the last: places are kept for every row, and all have to be right.
  for (const Index out_of_sequence : {0, 7, 15}) {
    const RowEquations equations(Almost{out_of_sequence});
    const CsrMatrix a = jacobian_of(equations, std::vector<double>(16, 0.0));
    for (Index i = 0; i < 16; ++i)
      for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
        EXPECT_EQ(a.values[std::size_t(k)], 100.0 * i + a.columns[std::size_t(k)]);
  }
}

struct Backwards {
  Index rows() const { return 6; }
  template <class Add>
  void columns(Index, Add add) const {
    for (const Index c : {4, 1, 5, 0}) add(c);
  }
  double residual(Index, View<const double>) const { return 0; }
  template <class Put>
  void jacobian(Index i, View<const double>, Put put) const {
    put(3, i + 0.25);  // of unknown 0
    put(0, i + 4.25);
    put(2, i + 5.25);
    put(1, i + 1.25);
  }
};

TEST(RowEquations, PutMayComeInAnySequenceToo) {
  const CsrMatrix a = jacobian_of(RowEquations(Backwards{}), std::vector<double>(6, 0.0));
  for (Index i = 0; i < 6; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      EXPECT_EQ(a.values[std::size_t(k)], i + a.columns[std::size_t(k)] + 0.25);
}

TEST(RowEquations, PiecesOfRowsTouchNothingElse) {
  const Tangled t = tangled(60, 0.3, 0.2, random_values(60, 56), 56);
  const RowEquations equations(Disordered<Tangled>{t});
  const std::vector<double> x = random_values(60, 57), F = residual_of(equations, x);
  const CsrMatrix a = jacobian_of(equations, x);
  std::vector<double> values(a.values.size(), -77.0), part(60, -77.0);
  equations.jacobian(20, 33, {x.data()}, {values.data()});
  equations.residual(20, 33, {x.data()}, {part.data()});
  for (Index i = 0; i < 60; ++i) {
    const bool inside = i >= 20 && i < 33;
    EXPECT_EQ(part[std::size_t(i)], inside ? F[std::size_t(i)] : -77.0);
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      EXPECT_EQ(values[std::size_t(k)], inside ? a.values[std::size_t(k)] : -77.0);
  }
}

TEST(RowEquations, KnowsWhetherThereIsAJacobian) {
  EXPECT_TRUE(RowEquations(Bratu{3, 1}).has_jacobian());
  const RowEquations bare(Bare<Bratu>{{3, 1}});
  EXPECT_FALSE(bare.has_jacobian());
  double value = 5;
  bare.jacobian(0, 9, {nullptr}, {&value});  // does nothing
  EXPECT_EQ(value, 5);
}

TEST(RowEquations, ParametersChangeThePatternStays) {
  RowEquations equations(Bratu{4, 0});
  const std::vector<double> zero(16, 0.0);
  EXPECT_EQ(norm_of(residual_of(equations, zero)), 0);
  equations.row().lambda = 25;
  EXPECT_DOUBLE_EQ(norm_of(residual_of(equations, zero)), 4);  // h^2 lambda = 1 in each of 16
  const RowEquations<Bratu>& constant = equations;
  EXPECT_EQ(constant.row().lambda, 25);
}

TEST(RowEquations, AnUnknownTwiceIsRefusedWithItsRow) {
  expect_words(refusal([] { RowEquations(Table{{{0}, {2, 1, 2}, {0}}}); }), {"row 2", "unknown 3 twice"});
  expect_words(refusal([] { RowEquations(Table{{{0, 0}, {1}}}); }), {"row 1", "unknown 1 twice"});
}

TEST(RowEquations, AnUnknownThatIsNoneIsRefusedWithItsRow) {
  expect_words(refusal([] { RowEquations(Table{{{0}, {1}, {0, 3}}}); }), {"row 3", "unknown 4 of 3"});
  expect_words(refusal([] { RowEquations(Table{{{0, -1}, {1}}}); }), {"row 1", "unknown 0 of 2"});
}

TEST(RowEquations, FewerThanNoRowsAreRefused) {
  expect_words(refusal([] { RowEquations(Table{{}, -3}); }), {"-3 rows", "0 or more"});
}

TEST(RowEquations, NoRowsAreAnEmptyPattern) {
  const CsrMatrix a = RowEquations(Table{}).pattern();
  EXPECT_EQ(a.rows, 0);
  EXPECT_EQ(a.nnz(), 0);
  EXPECT_EQ(a.offsets.size(), 1u);
}

TEST(RowEquations, RowsWithoutUnknownsAreKept) {
  const CsrMatrix a = RowEquations(Table{{{}, {}, {}}}).pattern();
  EXPECT_EQ(a.rows, 3);
  EXPECT_EQ(a.nnz(), 0);
  EXPECT_NO_THROW(require_valid(a));
}

}  // namespace
}  // namespace krilu::test
