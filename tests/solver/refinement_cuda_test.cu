// SPDX-License-Identifier: Apache-2.0
// Mixed precision on a GPU: every method, precision and preconditioner to the true residual, in about as many
// iterations as on the host; precisions that are raised; values that change; rows and columns of any size.
#include <cmath>

#include "krilu/solver.hpp"
#include "support/sliced_matrix.cuh"

namespace krilu::test {
namespace {

struct Mixed {
  Result r;
  std::vector<double> x;
};
Mixed mixed(const CsrMatrix& a, const std::vector<double>& b, Options o, const std::string& device) {
  o.device = device;
  Solver solver(o);
  solver.setup(a);
  Mixed out{{}, std::vector<double>(b.size(), 0.0)};
  out.r = solver.solve(b, out.x);
  EXPECT_EQ(out.r.bytes, solver.bytes());
  return out;
}

class GpuMixedSmall : public ::testing::TestWithParam<std::string> {};

TEST_P(GpuMixedSmall, SolvesAsTheHostDoesWithEveryPreconditioner) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix symmetric = generate("gen:poisson3d:10x9x8"), general = generate("gen:convdiff3d:10x9x8");
  const std::vector<double> b = random_values(720, 811);
  for (const std::string solver : {"gmres-ir", "gmres", "fgmres", "bicgstab", "cg"})
    for (const std::string precond :
         {"none", "jacobi", "dilu", "dic", "ilu0", "ic0", "iluk:1", "block-ilu:4", "ras:3,1"}) {
      const bool symmetric_only = solver == "cg" || precond == "dic" || precond == "ic0";
      if (solver == "cg" && precond != "none" && precond != "jacobi" && precond != "dic" && precond != "ic0") continue;
      const CsrMatrix& a = symmetric_only ? symmetric : general;
      for (const std::string ordering : {"block-multicolour", "natural"}) {
        if (ordering == "natural" && precond != "dilu" && precond != "ilu0") continue;
        SCOPED_TRACE(solver + " " + precond + " " + GetParam() + " " + ordering);
        Options o;
        o.solver = solver;
        o.precond = precond;
        o.precision = GetParam();
        o.ordering = ordering;
        o.rtol = 1e-11;
        const Mixed gpu = mixed(a, b, o, "cuda"), host = mixed(a, b, o, "host");
        ASSERT_EQ(host.r.status, Status::converged);
        ASSERT_EQ(gpu.r.status, Status::converged);
        EXPECT_LE(true_residual(a, gpu.x, b), o.rtol * (1 + 1e-4));
        EXPECT_NEAR(gpu.r.iterations, host.r.iterations, std::max(6.0, 0.4 * host.r.iterations));
        const bool nothing_to_round = solver == "fgmres" && (precond == "none" || precond == "jacobi");
        EXPECT_EQ(gpu.r.outer_iterations > 0, !nothing_to_round);
      }
    }
}
INSTANTIATE_TEST_SUITE_P(Precisions, GpuMixedSmall, ::testing::Values("fp32", "fp32/fp16", "fp32/bf16"));

/// There elimination changes entries, which a GPU keeps in another form than the host.
TEST(GpuMixed, Ilu0OfGraphsWithTrianglesIsRoundedAsTheHostsIs) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:convdiff3d27:12x11x10");
  const std::vector<double> b = random_values(std::size_t(a.rows), 812);
  for (const char* solver : {"gmres", "bicgstab"})
    for (const char* precision : {"fp32", "fp32/fp16", "fp32/bf16"}) {
      SCOPED_TRACE(std::string(solver) + " " + precision);
      Options o;
      o.solver = solver;
      o.precond = "ilu0";
      o.precision = precision;
      o.ordering = "natural";
      o.rtol = 1e-10;
      const Mixed gpu = mixed(a, b, o, "cuda"), host = mixed(a, b, o, "host");
      ASSERT_EQ(gpu.r.status, Status::converged);
      EXPECT_EQ(gpu.r.precision, precision) << "none is raised";
      EXPECT_NEAR(gpu.r.iterations, host.r.iterations, std::max(4.0, 0.2 * host.r.iterations));
    }
}

TEST(GpuMixed, StrategiesOfNaturalOrderWorkInSinglePrecision) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:convdiff3d:24x23x22");
  const std::vector<double> b = random_values(std::size_t(a.rows), 812);
  for (const std::string triangular : {"level-set", "sync-free", "tiled", "auto"})
    for (const std::string precond : {"dilu", "ilu0"}) {
      SCOPED_TRACE(triangular + " " + precond);
      Options o;
      o.solver = "gmres-ir";
      o.precond = precond;
      o.ordering = "natural";
      o.triangular = triangular;
      o.rtol = 1e-10;
      const Mixed gpu = mixed(a, b, o, "cuda");
      EXPECT_EQ(gpu.r.status, Status::converged);
      EXPECT_EQ(gpu.r.precision, "fp32");
      EXPECT_LE(true_residual(a, gpu.x, b), 1.0001e-10);
    }
}

TEST(GpuMixed, BasesOf16BitsFullBasesAndThoseThatAreGoneOnWith) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:poisson3d:20x20x20");
  const std::vector<double> b = random_values(std::size_t(a.rows), 813);
  for (const std::string basis : {"fp32", "fp16", "bf16"})
    for (const int most : {20, 150}) {
      SCOPED_TRACE(basis + ", " + std::to_string(most));
      Options o;
      o.solver = "gmres-ir";
      o.precond = "jacobi";
      o.basis = basis;
      o.inner_iterations = o.restart = most;
      o.outer_iterations = 100;
      o.rtol = 1e-10;
      const Mixed gpu = mixed(a, b, o, "cuda");
      EXPECT_EQ(gpu.r.status, Status::converged);
      EXPECT_LE(true_residual(a, gpu.x, b), 1.0001e-10);
    }
}

TEST(GpuMixed, AutoTakesABasisOf16BitsWhereThereAreManyRows) {
  KRILU_REQUIRE_GPU();
  for (const auto& [name, is_large] : {std::pair{"gen:poisson3d:64x64x64", true}, {"gen:poisson3d:40x40x40", false}})
    for (const std::string precision : {"fp32", "fp32/fp16", "fp32/bf16"}) {
      SCOPED_TRACE(name + (" in " + precision));
      const CsrMatrix a = generate(name);
      const std::vector<double> b = random_values(std::size_t(a.rows), 814);
      Options o;
      o.solver = "gmres-ir";
      o.precond = "jacobi";
      o.precision = precision;
      o.rtol = 1e-4;
      const Mixed gpu = mixed(a, b, o, "cuda");
      EXPECT_EQ(gpu.r.status, Status::converged);
      EXPECT_LE(true_residual(a, gpu.x, b), 1.0001e-4);
      EXPECT_EQ(gpu.r.precision, precision + (is_large ? " with its basis in fp16" : ""));
    }
}

TEST(GpuMixed, PrecisionIsRaisedWhereItMustBeAndScalesMayBeFarApart) {
  KRILU_REQUIRE_GPU();
  CsrMatrix a = generate("gen:convdiff3d:12x11x10");
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      a.values[std::size_t(k)] *= std::pow(10.0, i % 31 - 15) * std::pow(10.0, a.columns[std::size_t(k)] % 21 - 10);
  std::vector<double> x(std::size_t(a.rows)), b(x.size(), 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::pow(10.0, -(double(i % 21) - 10));
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      b[std::size_t(i)] += a.values[std::size_t(k)] * x[std::size_t(a.columns[std::size_t(k)])];
  for (const std::string precision : {"fp32", "fp32/fp16"}) {
    SCOPED_TRACE(precision);
    Options o;
    o.solver = "gmres-ir";
    o.precision = precision;
    o.precond = "ilu0";
    o.rtol = 1e-9;
    const Mixed gpu = mixed(a, b, o, "cuda"), host = mixed(a, b, o, "host");
    EXPECT_EQ(host.r.status, Status::converged);
    EXPECT_EQ(gpu.r.status, Status::converged);
    EXPECT_LE(true_residual(a, gpu.x, b), 1.0001e-9);
  }
}

TEST(GpuMixed, ValuesChangeAndTheSameBitsComeAgain) {
  KRILU_REQUIRE_GPU();
  CsrMatrix a = generate("gen:convdiff3d:20x19x18");
  const std::vector<double> b = random_values(std::size_t(a.rows), 814);
  Options o;
  o.solver = "gmres-ir";
  o.precision = "fp32/fp16";
  o.precond = "dilu";
  o.device = "cuda";
  o.rtol = 1e-10;
  Solver solver(o);
  solver.setup(a);
  std::vector<double> first(b.size(), 0.0), second(b.size(), 0.0);
  EXPECT_EQ(solver.solve(b, first).status, Status::converged);
  EXPECT_EQ(solver.solve(b, second).status, Status::converged);
  EXPECT_EQ(first, second);
  for (double& v : a.values) v *= 3;
  solver.factor(a);
  std::vector<double> third(b.size(), 0.0);
  EXPECT_EQ(solver.solve(b, third).status, Status::converged);
  EXPECT_LE(true_residual(a, third, b), 1.0001e-10);
  EXPECT_GT(solver.costs().product, 0);
}

}  // namespace
}  // namespace krilu::test
