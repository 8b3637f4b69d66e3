// SPDX-License-Identifier: Apache-2.0
// The Krylov texts compiled for a GPU against the same texts on the host: iterations, true residuals, solutions; and
// that the host waits a fixed number of times a solve, however many iterations it takes.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "krylov/driver.hpp"
#include "krylov/make_method.hpp"
#include "precond/factors.cuh"
#include "precond/jacobi.hpp"
#include "support/sliced_matrix.cuh"

namespace krilu {
namespace {

using exec::Cuda;

struct OnGpu {
  krylov::Outcome outcome;
  std::vector<double> x;
  long synchronisations = 0;
};

/// Rows stay in the caller's order here: what is tested is the methods.
OnGpu solve_on_gpu(const CsrMatrix& a, const std::vector<double>& b, const std::string& method, bool jacobi,
                   double rtol, int restart = 20) {
  const Cuda ex;
  const test::SlicedOn on(ex, a, test::Rows::as_given);
  EXPECT_EQ(on.plan->layout->row.size(), 0u) << "stencils have no long rows";
  const auto& pattern = on.pattern;
  const sparse::SlicedMatrix<double>& m = on.matrix;
  const sparse::SplitOperator<Cuda, double> A(ex, m);
  const precond::Context<Cuda> context{ex, triangular::Strategy::automatic, {}, on.plan, &on.there};
  std::unique_ptr<precond::Preconditioner<Cuda, double>> M;
  if (jacobi)
    M = std::make_unique<precond::Jacobi<Cuda, double>>(context, pattern);
  else
    M = std::make_unique<precond::None<Cuda, double>>(context, pattern);
  M->factor(m, 0);
  const auto n = std::size_t(a.rows);
  const auto bd = ex.allocate<double>(n), xd = ex.allocate<double>(n);
  OnGpu s;
  s.x.assign(n, 0.0);
  ex.copy_in(bd, b.data(), n);
  ex.copy_in(xd, s.x.data(), n);
  krylov::Driver<Cuda, double> driver(ex, a.rows);
  const auto K = krylov::make_method<Cuda, double>(ex, method, a.rows, restart);
  Monitor monitor;
  const long before = ex.synchronisations();
  s.outcome = driver.run(*K, A, *M, bd, xd, {rtol, 0, Norm::true2, 5000}, monitor);
  s.synchronisations = ex.synchronisations() - before;
  ex.copy_out(s.x.data(), xd, n);
  return s;
}

class Methods : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

void expect_what_the_host_does(const std::string& method, bool jacobi, int restart) {
  for (const char* name : {"gen:poisson2d:70x50", "gen:convdiff2d:90x31", "gen:convdiff3d:40x40x40"}) {
    if (method == "cg" && std::string(name).find("poisson") == std::string::npos) continue;
    SCOPED_TRACE(name);
    const CsrMatrix a = generate(name);
    const std::vector<double> b = random_vector(std::size_t(a.rows), 3, -1, 1);
    const OnGpu gpu = solve_on_gpu(a, b, method, jacobi, 1e-9, restart);
    Options o;
    o.device = "host";
    o.solver = method;
    o.precond = jacobi ? "jacobi" : "none";
    o.restart = restart;
    o.rtol = 1e-9;
    o.max_iterations = 5000;
    std::vector<double> x(b.size(), 0.0);
    const Result host = solve(a, b, x, o);
    EXPECT_EQ(gpu.outcome.status, host.status);
    ASSERT_EQ(gpu.outcome.status, Status::converged);
    // Rounding differs, and BiCGStab amplifies it: a change of 1e-15 in b moves the second system's 90 by 12.
    const double share = method == "bicgstab" ? 0.25 : 0.05;
    EXPECT_NEAR(gpu.outcome.iterations, host.iterations, 1 + share * host.iterations);
    EXPECT_LE(gpu.outcome.residual, 1e-9 * gpu.outcome.rhs);
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(gpu.x[i], x[i], 1e-5);
  }
}

TEST_P(Methods, MatchTheHost) {
  KRILU_REQUIRE_GPU();
  const auto [method, jacobi] = GetParam();
  expect_what_the_host_does(method, jacobi, 20);
}

TEST(LongBases, MatchTheHost) {
  KRILU_REQUIRE_GPU();
  // Steps of all lanes go through more columns than a warp has lanes, and no multiple of them.
  for (const char* method : {"gmres", "fgmres"})
    for (const int restart : {70, 150}) expect_what_the_host_does(method, false, restart);
}

TEST_P(Methods, TheHostWaitsAFixedNumberOfTimes) {
  KRILU_REQUIRE_GPU();
  const auto [method, jacobi] = GetParam();
  const CsrMatrix a = generate("gen:poisson2d:40x40");
  const std::vector<double> b = random_vector(std::size_t(a.rows), 3, -1, 1);
  const OnGpu few = solve_on_gpu(a, b, method, jacobi, 1e-2), many = solve_on_gpu(a, b, method, jacobi, 1e-8);
  EXPECT_GT(many.outcome.iterations, 2 * few.outcome.iterations);
  EXPECT_EQ(few.synchronisations, many.synchronisations);
}

INSTANTIATE_TEST_SUITE_P(All, Methods,
                         ::testing::Combine(::testing::Values("cg", "bicgstab", "gmres", "fgmres"), ::testing::Bool()),
                         [](const auto& test) {
                           return std::get<0>(test.param) + (std::get<1>(test.param) ? "_jacobi" : "_none");
                         });

}  // namespace
}  // namespace krilu
