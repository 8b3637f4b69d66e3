// SPDX-License-Identifier: Apache-2.0
// Newton's method on a GPU against itself on the host: Jacobians by formulas, by differences and without a matrix,
// every preconditioner, orderings that permute the unknowns, mixed precision, the same bits twice, what is refused and
// in which words; and a grid.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "krilu/communicator.hpp"
#include "krilu/equations.cuh"
#include "krilu/grid.hpp"
#include "krilu/newton.hpp"
#include "newton/systems.hpp"
#include "solver/engine.hpp"
#include "support/sliced_matrix.cuh"
#include "support/split_matrix.hpp"

namespace krilu::test {
namespace {

constexpr Index grid_side = 33;
constexpr double lambda = 6;

template <class E>
NewtonSolved newton_solved(const E& equations, NewtonOptions options, const std::string& device) {
  options.linear.device = device;
  NewtonSolver newton(equations, options);
  NewtonSolved out{{}, std::vector<double>(std::size_t(equations.rows()), 0.0)};
  out.r = newton.solve(out.x);
  return out;
}
NewtonOptions options_with(const std::string& solver, const std::string& precond) {
  NewtonOptions o;
  o.rtol = 1e-11;
  o.linear.solver = solver;
  o.linear.precond = precond;
  return o;
}
/// Both arrive, by as many steps, at the same solution.
template <class E>
void expect_the_hosts(const E& equations, const NewtonOptions& o) {
  const NewtonSolved gpu = newton_solved(equations, o, "cuda"), host = newton_solved(equations, o, "host");
  ASSERT_EQ(host.r.status, Status::converged);
  ASSERT_EQ(gpu.r.status, Status::converged);
  EXPECT_TRUE(gpu.r.device.starts_with("cuda:0 (")) << gpu.r.device;
  EXPECT_EQ(gpu.r.jacobian, host.r.jacobian);
  EXPECT_NEAR(gpu.r.iterations, host.r.iterations, 1);
  EXPECT_LT(difference(gpu.x, host.x), 1e-8);
  // The residual that was reported is the solution's.
  std::vector<double> F(gpu.x.size());
  equations.residual(0, equations.rows(), {gpu.x.data()}, {F.data()});
  double sum = 0;
  for (const double f : F) sum += f * f;
  EXPECT_NEAR(gpu.r.residual, std::sqrt(sum), 1e-6 * gpu.r.initial_residual * o.rtol + 1e-15);
}

TEST(GpuNewton, MatchesTheHostWithEveryPreconditioner) {
  KRILU_REQUIRE_GPU();
  const DeviceRowEquations equations(Bratu{grid_side, lambda});
  for (const char* precond : {"none", "jacobi", "dilu", "ilu0", "iluk:1", "ras:4,1"}) {
    SCOPED_TRACE(precond);
    expect_the_hosts(equations, options_with("gmres", precond));
  }
  for (const char* precond : {"dic", "ic0"}) {
    SCOPED_TRACE(precond);
    expect_the_hosts(equations, options_with("cg", precond));
  }
}

TEST(GpuNewton, MatchesTheHostInEveryOrdering) {
  KRILU_REQUIRE_GPU();
  const DeviceRowEquations equations(Bratu{grid_side, lambda});
  for (const char* ordering : {"natural", "rcm", "multicolour", "block-multicolour", "metis:5"}) {
    SCOPED_TRACE(ordering);
    NewtonOptions o = options_with("bicgstab", "ilu0");
    o.linear.ordering = ordering;
    expect_the_hosts(equations, o);
    o.jacobian = "matrix-free";  // products stand in the caller's order
    o.rtol = 1e-8;
    expect_the_hosts(equations, o);
  }
}

TEST(GpuNewton, MatchesTheHostByDifferences) {
  KRILU_REQUIRE_GPU();
  const DeviceRowEquations equations(Bratu{grid_side, lambda});
  const DeviceRowEquations bare(Bare<Bratu>{{grid_side, lambda}});
  NewtonOptions o = options_with("gmres", "dilu");
  o.rtol = 1e-8;
  o.jacobian = "finite-differences";
  expect_the_hosts(equations, o);
  o.jacobian = "auto";
  expect_the_hosts(bare, o);
  o.jacobian = "matrix-free";
  expect_the_hosts(bare, o);
}

TEST(GpuNewton, RefinesMixedPrecision) {
  KRILU_REQUIRE_GPU();
  const DeviceRowEquations equations(Bratu{grid_side, lambda});
  for (const char* precision : {"fp32", "fp32/bf16"}) {
    SCOPED_TRACE(precision);
    NewtonOptions o = options_with("gmres-ir", "ilu0");
    o.linear.precision = precision;
    expect_the_hosts(equations, o);
  }
}

TEST(GpuNewton, GivesTheSameBitsTwiceAndServesAnotherStart) {
  KRILU_REQUIRE_GPU();
  const DeviceRowEquations equations(Bratu{grid_side, lambda});
  NewtonOptions o = options_with("gmres", "ilu0");
  o.linear.device = "cuda";
  NewtonSolver newton(equations, o);
  std::vector<double> x(grid_side * grid_side, 0.0), y(grid_side * grid_side, 0.0), z(grid_side * grid_side, 0.1);
  const NewtonResult first = newton.solve(x), second = newton.solve(y);
  EXPECT_EQ(x, y);
  EXPECT_EQ(first.residual, second.residual);
  EXPECT_EQ(newton.solve(z).status, Status::converged);
  EXPECT_LT(difference(z, x), 1e-8);
}

TEST(GpuNewton, ParametersMayChange) {
  KRILU_REQUIRE_GPU();
  DeviceRowEquations equations(Bratu{grid_side, lambda});
  NewtonOptions o = options_with("gmres", "ilu0");
  o.rtol = 1e-11;
  o.linear.device = "cuda";
  NewtonSolver newton(equations, o);
  std::vector<double> x(grid_side * grid_side, 0.0);
  newton.solve(x);
  equations.row().lambda = equations.row_there().lambda = 3;
  std::vector<double> y(grid_side * grid_side, 0.0);
  ASSERT_EQ(newton.solve(y).status, Status::converged);
  EXPECT_LT(difference(y, newton_solved(equations, o, "host").x), 1e-8);
  EXPECT_GT(difference(y, x), 1e-2);
}

TEST(GpuNewton, AutoTakesTheGpuWhereTheRowsCanGoThere) {
  KRILU_REQUIRE_GPU();
  const RowEquations here(Bratu{5, 1});
  const DeviceRowEquations there(Bratu{5, 1});
  EXPECT_EQ(newton_solved(here, {}, "auto").r.device, "host");
  EXPECT_TRUE(newton_solved(there, {}, "auto").r.device.starts_with("cuda:0"));
}

TEST(GpuNewton, RefusesRowsOfTheHostAlone) {
  const RowEquations here(Bratu{5, 1});
  expect_words(refusal([&] { newton_solved(here, {}, "cuda"); }), {"DeviceRowEquations", "--device host"});
}

TEST(GpuNewton, MakesTheHostsGrid) {
  KRILU_REQUIRE_GPU();
  for (const char* topology : {"O", "C"}) {
    SCOPED_TRACE(topology);
    GridOptions o;
    o.shape = "naca:2412";
    o.topology = topology;
    o.around = 129;
    o.outward = 65;
    o.wall_spacing = 1e-3;
    for (const char* control : {"none", "sorenson"}) {
      SCOPED_TRACE(control);
      o.control = control;
      o.newton.linear.device = "host";
      const GridResult host = elliptic_grid(o);
      o.newton.linear.device = "cuda";
      const GridResult gpu = elliptic_grid(o);
      ASSERT_EQ(gpu.status, host.status);
      EXPECT_TRUE(gpu.device.starts_with("cuda:0")) << gpu.device;
      if (o.control == "none") {
        double most = 0;
        for (std::size_t k = 0; k < host.grid.node.size(); ++k) {
          const Point &p = host.grid.node[k], &q = gpu.grid.node[k];
          most = std::max(most, std::hypot(p.x - q.x, p.y - q.y));
        }
        EXPECT_LT(most, 1e-6);
      } else {  // updates of the control terms begin and end where solves of finite accuracy let them
        EXPECT_EQ(gpu.status, Status::converged);
        EXPECT_EQ(gpu.quality.folded_cells, 0);
        EXPECT_NEAR(gpu.quality.wall_deviation, host.quality.wall_deviation, 0.5);
        EXPECT_NEAR(gpu.quality.largest_wall_spacing, host.quality.largest_wall_spacing, 0.02 * o.wall_spacing);
      }
    }
  }
}

/// Over ranks as on one GPU.
void expect_ones(const Bratu& bratu, NewtonOptions o, int ranks) {
  SCOPED_TRACE(o.jacobian + " " + o.linear.precond + " " + std::to_string(ranks));
  o.rtol = 1e-8;
  const NewtonSolved one = newton_solved(DeviceRowEquations(bratu), o, "cuda");
  ASSERT_EQ(one.r.status, Status::converged);
  std::vector<double> x(std::size_t(bratu.rows()), 0.0);
  std::vector<NewtonResult> results(std::size_t(ranks), NewtonResult{});
  run_ranks(ranks, [&](const std::shared_ptr<Communicator>& c) {
    const Index first = bratu.rows() * c->rank() / ranks, end = bratu.rows() * (c->rank() + 1) / ranks;
    NewtonOptions own = o;
    own.linear.device = "cuda:" + std::to_string(c->rank() % solver::cuda_devices());
    own.linear.threads = 1;
    const DeviceRowEquations equations(bratu, first, end - first);
    NewtonSolver newton(equations, own, c);
    for (int k = 0; k < 2; ++k) {  // the second from the same start again
      const std::span<double> mine(x.data() + first, std::size_t(end - first));
      std::fill(mine.begin(), mine.end(), 0.0);
      results[std::size_t(c->rank())] = newton.solve(mine);
    }
  });
  for (const NewtonResult& r : results) {
    EXPECT_EQ(r.status, Status::converged);
    EXPECT_EQ(r.residual, results[0].residual);  // bit for bit
    EXPECT_EQ(r.inner_iterations, results[0].inner_iterations);
    EXPECT_NEAR(r.iterations, one.r.iterations, 1);
  }
  EXPECT_LT(difference(x, one.x), 1e-7);
}

// Over as many GPUs as there are, or ranks that share one; by kernels that reach one another where there are several.
TEST(GpuNewton, OverRanksStepsAreThoseOfOne) {
  KRILU_REQUIRE_GPU();
  for (const char* jacobian : {"own", "finite-differences", "matrix-free"})
    for (const char* precond : {"jacobi", "ilu0", "ras:2,1"})
      for (const int ranks : {2, 3}) {
        NewtonOptions o = options_with("gmres", precond);
        o.jacobian = jacobian;
        expect_ones(Bratu{grid_side, lambda}, o, ranks);
      }
}

// For a sanitizer.
TEST(GpuRanksSmall, NewtonSeesThroughItsWindow) {
  KRILU_REQUIRE_GPU();
  NewtonOptions o = options_with("gmres", "jacobi");
  o.jacobian = "own";
  expect_ones(Bratu{9, lambda}, o, 2);
}

TEST(GpuNewton, AGridOverRanksIsThatOfOne) {
  KRILU_REQUIRE_GPU();
  GridOptions o;
  o.around = 65;
  o.outward = 33;
  o.wall_spacing = 1e-2;
  o.control = "none";
  o.newton.linear.threads = 1;
  o.newton.linear.device = "cuda:0";
  const GridResult one = elliptic_grid(o);
  std::vector<GridResult> all(2, GridResult{});
  run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
    GridOptions own = o;
    own.newton.linear.device = "cuda:" + std::to_string(c->rank() % solver::cuda_devices());
    all[std::size_t(c->rank())] = elliptic_grid(own, {}, c);
  });
  for (const GridResult& r : all) {
    EXPECT_EQ(r.status, Status::converged);
    ASSERT_EQ(r.grid.node.size(), one.grid.node.size());
    for (std::size_t k = 0; k < r.grid.node.size(); ++k) {
      ASSERT_NEAR(r.grid.node[k].x, one.grid.node[k].x, 1e-6);
      ASSERT_EQ(r.grid.node[k].x, all[0].grid.node[k].x);
    }
  }
}

}  // namespace
}  // namespace krilu::test
