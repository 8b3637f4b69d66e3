// SPDX-License-Identifier: Apache-2.0
// Level-set solves over HEC on a GPU against substitution row by row in long double, lower and upper, for every width;
// levels that are launches and levels merged in one block give the same bits, on every run; x in place of b; recorded
// in a loop; NaN only where it belongs.
#include "support/gpu.cuh"
#include "support/hec.hpp"
#include "triangular/hec.cuh"

namespace krilu::test {
namespace {

using exec::Cuda;
using CudaSolver = triangular::HecSolver<Cuda, double>;
constexpr Index automatic = sparse::Hec<Cuda, double>::automatic;

schedule::Triangle side(bool lower) { return lower ? schedule::Triangle::lower : schedule::Triangle::upper; }

void expect_solves(const Cuda& ex, const Triangle& t, const std::vector<Index>& widths) {
  const auto n = std::size_t(t.a.rows);
  const std::vector<double> b = random_values(n, 531), expected = substitution(t.a, t.lower, b);
  std::vector<double> spoilt = b;
  spoilt[n / 2] = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> spoilt_expected = substitution(t.a, t.lower, spoilt);
  for (Index width : widths) {
    std::vector<double> first;
    for (Index narrow_rows : {0, 1, 40, 100000000}) {
      SCOPED_TRACE(t.name + ", width " + std::to_string(width) + ", narrow rows " + std::to_string(narrow_rows));
      const CudaSolver solver(ex, t.a, side(t.lower), narrow_rows, width);
      if (narrow_rows == 1) {
        EXPECT_EQ(solver.steps(), solver.levels());
      }
      if (narrow_rows > 40) {
        EXPECT_EQ(solver.steps(), 1);
      }
      const auto there = to_device(ex, b), x = to_device(ex, std::vector<double>(n, 1e300));
      solver.solve(there.data(), x.data());
      const std::vector<double> result = to_host(ex, x);
      if (first.empty()) first = result;
      ASSERT_EQ(bits(result), bits(first));
      ASSERT_LT(difference(result, expected), 1e-13);
      solver.solve(there.data(), there.data());
      ASSERT_EQ(bits(to_host(ex, there)), bits(result)) << "in place of b";
      const auto spoilt_there = to_device(ex, spoilt);
      solver.solve(spoilt_there.data(), x.data());
      const std::vector<double> z = to_host(ex, x);
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ(std::isnan(z[i]), std::isnan(spoilt_expected[i])) << "row " << i;
        if (!std::isnan(z[i])) {
          ASSERT_EQ(z[i], first[i]) << "row " << i;
        }
      }
    }
  }
}

/// x = L^-1 x, `times` times, in a loop of the device's.
void repeat(const Cuda& ex, const CudaSolver& solver, const exec::Array<double>& x, int times) {
  const auto count = ex.allocate<int>(2);  // runs, and the flag
  ex.clear(count);
  const auto runs = count.scalar(0), stop = count.scalar(1);
  ex.repeat_until(stop, [&] {
    solver.solve(x.data(), x.data());
    ex.once(KRILU_FN() { stop() = ++runs() == times; });
  });
  ex.synchronise();
}

TEST(HecSolverSmall, BothTrianglesWithEveryWidth) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const Triangle& t : triangles_of(small_cases()))
    expect_solves(ex, t, {automatic, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, longest_row(t.a)});
}

TEST(HecSolverSmall, NoRows) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const CudaSolver solver(ex, from_rows({}), schedule::Triangle::lower);
  solver.solve(nullptr, nullptr);
  ex.synchronise();
}

TEST(HecSolverSmall, RunsInsideARecordedLoop) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const CsrMatrix a = triangle_of(chain(200), true);
  const CudaSolver solver(ex, a, schedule::Triangle::lower, 40);
  const std::vector<double> b = random_values(200, 532);
  std::vector<double> expected = b;
  for (int k = 0; k < 3; ++k) expected = substitution(a, true, expected);
  const auto x = to_device(ex, b);
  repeat(ex, solver, x, 3);
  EXPECT_LT(difference(to_host(ex, x), expected), 1e-13);
}

TEST(HecSolver, LargerTriangles) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const Triangle& t : triangles_of(large_cases())) expect_solves(ex, t, {automatic, 2});
}

}  // namespace
}  // namespace krilu::test
