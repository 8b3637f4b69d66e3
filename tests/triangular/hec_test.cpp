// SPDX-License-Identifier: Apache-2.0
// Level-set solves over HEC against substitution row by row in long double, lower and upper, for every width and with
// levels shared and merged, on every space; the same bits for teams of one to four; the reordering of Algorithm 1
// against its definition; the reversing map; NaN only where it belongs; and what is refused.
#include "triangular/hec.hpp"

#include "krilu/error.hpp"
#include "support/hec.hpp"

namespace krilu::test {
namespace {

using exec::Host;
using schedule::Triangle;
using triangular::HecSolver;
constexpr Index automatic = sparse::Hec<Host, double>::automatic;

schedule::Triangle side(bool lower) { return lower ? schedule::Triangle::lower : schedule::Triangle::upper; }

template <class Space>
std::vector<double> solve(const HecSolver<Space, double>& solver, const Space& ex, const std::vector<double>& b) {
  const auto there = to_device(ex, b), x = to_device(ex, std::vector<double>(b.size(), 1e300));
  solver.solve(there.data(), x.data());
  const std::vector<double> result = to_host(ex, x);
  solver.solve(there.data(), there.data());
  EXPECT_EQ(bits(to_host(ex, there)), bits(result)) << "in place of b";
  return result;
}

template <class Space>
class HecSolves : public ::testing::Test {};
TYPED_TEST_SUITE(HecSolves, Spaces);

template <class Space>
void expect_solves(const test::Triangle& t, const std::vector<Index>& widths, const std::vector<Index>& narrow) {
  const std::vector<double> b = random_values(std::size_t(t.a.rows), 511), expected = substitution(t.a, t.lower, b);
  for (Index width : widths) {
    std::vector<double> first;
    for (int threads : {1, 2, 4})
      for (Index narrow_rows : narrow) {
        SCOPED_TRACE(t.name + ", width " + std::to_string(width) + ", threads " + std::to_string(threads) +
                     ", narrow rows " + std::to_string(narrow_rows));
        const Space ex = make_space<Space>(threads);
        const HecSolver<Space, double> solver(ex, t.a, side(t.lower), narrow_rows, width);
        const std::vector<double> x = solve(solver, ex, b);
        if (first.empty()) first = x;
        ASSERT_EQ(bits(x), bits(first));
      }
    ASSERT_LT(difference(first, expected), 1e-13) << t.name << ", width " << width;
  }
}

TYPED_TEST(HecSolves, BothTrianglesWithEveryWidth) {
  for (const test::Triangle& t : triangles_of(small_cases()))
    expect_solves<TypeParam>(t, {automatic, 0, 1, longest_row(t.a)}, {0, 1, 40});
}

TYPED_TEST(HecSolves, LargerTriangles) {
  for (const test::Triangle& t : triangles_of(large_cases())) expect_solves<TypeParam>(t, {automatic}, {100});
}

TYPED_TEST(HecSolves, NoRows) {
  const TypeParam ex = make_space<TypeParam>();
  const HecSolver<TypeParam, double> solver(ex, from_rows({}), Triangle::lower);
  EXPECT_EQ(solver.rows(), 0);
  EXPECT_EQ(solver.levels(), 0);
  solver.solve(nullptr, nullptr);
  ex.synchronise();
}

TEST(HecSolver, AChainHasAsManyLevelsAsRows) {
  const CsrMatrix a = triangle_of(chain(2000), true);
  const HecSolver<Host, double> merged(Host(4), a, Triangle::lower), shared(Host(4), a, Triangle::lower, 1);
  EXPECT_EQ(merged.levels(), 2000);
  EXPECT_EQ(merged.steps(), 1);
  EXPECT_EQ(shared.steps(), 2000);
  EXPECT_EQ(merged.matrix().width(), 1);
}

TEST(HecSolver, ADiagonalIsOneLevelAndAllOfItIsInTheCsrPart) {
  for (const bool lower : {true, false}) {
    const HecSolver<Host, double> solver(Host(2), diagonal(5000), side(lower));
    EXPECT_EQ(solver.levels(), 1);
    EXPECT_EQ(solver.matrix().ell_slots(), 0);
    EXPECT_EQ(solver.matrix().csr_entries(), 5000);
  }
}

TEST(HecSolver, NarrowLevelsAreMergedAndWideOnesAreNot) {
  const std::vector<Index> level{0, 1, 3, 103, 203, 205, 206, 306};
  const auto steps = triangular::hec_steps(level, 100);
  ASSERT_EQ(steps.size(), 5u);
  const Index begin[] = {0, 3, 103, 203, 206};
  const bool shared[] = {false, true, true, false, true};
  for (std::size_t k = 0; k < 5; ++k) {
    EXPECT_EQ(steps[k].begin, begin[k]);
    EXPECT_EQ(steps[k].end, k < 4 ? begin[k + 1] : 306);
    EXPECT_EQ(steps[k].begin, level[std::size_t(steps[k].first)]);
    EXPECT_EQ(steps[k].end, level[std::size_t(steps[k].last)]);
    EXPECT_EQ(steps[k].shared, shared[k]);
  }
}

TEST(HecSolver, TheReorderedMatrixIsTheDefinitions) {
  for (const test::Triangle& t : triangles_of(small_cases())) {
    SCOPED_TRACE(t.name);
    const Index n = t.a.rows;
    const auto m = triangular::reorder_by_levels(Host(3), t.a, side(t.lower));
    // Levels row by row: one more than the highest of those it reads.
    std::vector<Index> level(std::size_t(n), 0);
    for (Index s = 0; s < n; ++s) {
      const Index i = t.lower ? s : n - 1 - s;
      for (Offset k = t.a.offsets[std::size_t(i)]; k < t.a.offsets[std::size_t(i) + 1]; ++k)
        if (const Index j = t.a.columns[std::size_t(k)]; j != i)
          level[std::size_t(i)] = std::max(level[std::size_t(i)], level[std::size_t(j)] + 1);
    }
    // m(i): by level, then ascending in the lower triangle, or its mirror's.
    std::vector<Index> rows = natural_order(n);
    if (!t.lower) std::reverse(rows.begin(), rows.end());
    std::stable_sort(rows.begin(), rows.end(),
                     [&](Index i, Index j) { return level[std::size_t(i)] < level[std::size_t(j)]; });
    ASSERT_EQ(m.row, rows);
    for (std::size_t l = 0; l + 1 < m.level.size(); ++l) {
      ASSERT_LT(m.level[l], m.level[l + 1]);
      for (Index p = m.level[l]; p < m.level[l + 1]; ++p) ASSERT_EQ(level[std::size_t(rows[std::size_t(p)])], Index(l));
    }
    const CsrMatrix expected = permuted(t.a, rows);
    EXPECT_EQ(m.lower.offsets, expected.offsets);
    EXPECT_EQ(m.lower.columns, expected.columns);
    EXPECT_EQ(m.lower.values, expected.values);
    for (Index p = 0; p < n; ++p) ASSERT_EQ(m.lower.columns[std::size_t(m.lower.offsets[std::size_t(p) + 1]) - 1], p);
  }
}

TEST(HecSolver, TheReversingMapIsItsOwnInverse) {
  const CsrMatrix a = from_dense({{1, 2, 0}, {0, 3, 4}, {0, 0, 5}});
  const CsrMatrix r = triangular::reversed(a);
  EXPECT_EQ(to_dense(r), (Dense{{5, 0, 0}, {4, 3, 0}, {0, 2, 1}}));
  for (const GpuCase& c : small_cases()) {
    const CsrMatrix once = triangular::reversed(c.a), twice = triangular::reversed(once);
    EXPECT_EQ(to_dense(twice), to_dense(c.a)) << c.name;
    for (Index i = 0; i < once.rows; ++i)
      for (Offset k = once.offsets[std::size_t(i)] + 1; k < once.offsets[std::size_t(i) + 1]; ++k)
        ASSERT_LT(once.columns[std::size_t(k) - 1], once.columns[std::size_t(k)]);
  }
}

TEST(HecSolver, NaNReachesOnlyTheRowsThatDependOnIt) {
  for (const test::Triangle& t : triangles_of(small_cases())) {
    SCOPED_TRACE(t.name);
    const auto n = std::size_t(t.a.rows);
    const HecSolver<Host, double> solver(Host(2), t.a, side(t.lower), 8);
    std::vector<double> b = random_values(n, 512), clean(n), x(n);
    solver.solve(b.data(), clean.data());
    b[n / 2] = std::numeric_limits<double>::quiet_NaN();
    solver.solve(b.data(), x.data());
    const std::vector<double> expected = substitution(t.a, t.lower, b);
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(std::isnan(x[i]), std::isnan(expected[i])) << "row " << i;
      if (!std::isnan(x[i])) {
        ASSERT_EQ(x[i], clean[i]) << "row " << i;
      }
    }
  }
}

TEST(HecSolver, BytesAreThoseOfItsArrays) {
  const CsrMatrix a = triangle_of(generate("gen:poisson2d:30x20"), true);
  const HecSolver<Host, double> solver(Host(2), a, Triangle::lower, 10);
  const std::size_t arrays = solver.matrix().bytes() + 12 * 600 + 4 * (std::size_t(solver.levels()) + 1);
  EXPECT_GE(solver.bytes(), arrays + std::size_t(solver.steps()) * sizeof(triangular::HecStep));
  EXPECT_LE(solver.bytes(), arrays + 2 * std::size_t(solver.steps()) * sizeof(triangular::HecStep));
}

template <class Refusal>
void expect_refused(const Dense& d, bool lower, const std::string& words) {
  CsrMatrix a = from_dense(d);
  for (double& v : a.values)
    if (v == 99) v = 0;  // stored zeros
  try {
    HecSolver<Host, double>(Host(1), a, side(lower));
    FAIL() << "not refused";
  } catch (const Refusal& e) {
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
  }
}

TEST(HecSolver, RefusesWhatItCannotSolveAndNamesTheRow) {
  expect_refused<ZeroPivot>({{1, 0, 0}, {2, 99, 0}, {0, 3, 1}}, true, "row 2 has a zero");
  expect_refused<ZeroPivot>({{1, 2, 0}, {0, 99, 3}, {0, 0, 1}}, false, "row 2 has a zero");
  expect_refused<ZeroPivot>({{1, 0, 0}, {2, 1, 0}, {0, 3, 0}}, true, "row 3 has no entry");
  expect_refused<ZeroPivot>({{1, 0, 0}, {0, 0, 0}, {0, 3, 1}}, true, "row 2 has no entry");
  expect_refused<ZeroPivot>({{0, 2, 0}, {0, 1, 3}, {0, 0, 1}}, false, "row 1 has no entry");
  expect_refused<Error>({{1, 0, 4}, {2, 1, 0}, {0, 3, 1}}, true, "row 1 has an entry in column 3");
  expect_refused<Error>({{1, 2, 0}, {0, 1, 3}, {0, 7, 1}}, false, "row 3 has an entry in column 2");
  CsrMatrix wide = from_dense({{1, 0}, {1, 1}});
  wide.cols = 3;
  EXPECT_THROW((HecSolver<Host, double>(Host(1), wide, Triangle::lower)), Error);
}

}  // namespace
}  // namespace krilu::test
