// SPDX-License-Identifier: Apache-2.0
// The ladder behind `auto` where its first rung runs on a GPU: easy systems stay there and cost the same iterations as
// when they are named, hard ones are solved by a rung on the host, from the best x, and later solves go there at once.
#include <cmath>
#include <vector>

#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "support/sliced_matrix.cuh"
#include "support/solved.hpp"
#include "support/support.hpp"

namespace krilu::test {
namespace {

TEST(GpuLadder, EasySystemsStayOnTheGpu) {
  KRILU_REQUIRE_GPU();
  for (const char* generator : {"gen:poisson3d:20x20x20", "gen:convdiff3d:20x20x20"}) {
    SCOPED_TRACE(generator);
    const CsrMatrix a = generate(generator);
    const std::vector<double> b(std::size_t(a.rows), 1.0);
    Options o;
    o.device = "cuda";
    Solver ladder(o);
    ladder.setup(a);
    const Solved s = solved(ladder, b);
    ASSERT_EQ(s.r.status, Status::converged);
    ASSERT_EQ(s.r.rungs.size(), 1u);
    EXPECT_TRUE(s.r.device.starts_with("cuda:0 (")) << s.r.device;
    o.solver = s.r.solver;
    o.precond = s.r.precond;
    Solver named(o);
    named.setup(a);
    const Solved n = solved(named, b);
    EXPECT_NEAR(n.r.iterations, s.r.iterations, std::max(2.0, 0.1 * n.r.iterations));
  }
}

/// Convection far beyond what a mesh resolves, against the row order: DILU's recurrences grow.
CsrMatrix hard(Index side) {
  CsrMatrix a = generate("gen:poisson2d:" + std::to_string(side) + "x" + std::to_string(side));
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
      const Index j = a.columns[std::size_t(k)];
      if (j != i) a.values[std::size_t(k)] *= j < i ? -9 : 10;
    }
  return a;
}

TEST(GpuLadder, HardSystemsAreSolvedOnTheHostFromThere) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = hard(40);
  const std::vector<double> b(std::size_t(a.rows), 1.0);
  Options o;
  o.device = "cuda";
  Solver solver(o);
  solver.setup(a);
  const Solved s = solved(solver, b);
  ASSERT_EQ(s.r.status, Status::converged);
  EXPECT_LE(true_residual(a, s.x, b), 1e-8);
  ASSERT_GE(s.r.rungs.size(), 2u);
  EXPECT_EQ(s.r.rungs.front().what.find("on the host"), std::string::npos);
  EXPECT_FALSE(s.r.rungs.front().why_left.empty());
  EXPECT_NE(s.r.rungs.back().what.find("on the host"), std::string::npos) << s.r.rungs.back().what;
  EXPECT_NE(s.r.rungs.back().arguments.find("--device host"), std::string::npos) << s.r.rungs.back().arguments;
  const Solved again = solved(solver, b);
  EXPECT_EQ(again.r.status, Status::converged);
  EXPECT_EQ(again.r.rungs.size(), 1u);
}

TEST(GpuLadder, ZerosOnTheDiagonalGoToTheHostAtOnce) {
  KRILU_REQUIRE_GPU();
  CsrMatrix a = generate("gen:poisson2d:30x30");
  for (Index i = 0; i < a.rows; i += 3)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      if (a.columns[std::size_t(k)] == i) a.values[std::size_t(k)] = 0;
  const std::vector<double> b(std::size_t(a.rows), 1.0);
  Options o;
  o.device = "cuda";
  Solver solver(o);
  solver.setup(a);
  const Solved s = solved(solver, b);
  ASSERT_EQ(s.r.status, Status::converged);
  EXPECT_LE(true_residual(a, s.x, b), 1e-8);
}

}  // namespace
}  // namespace krilu::test
