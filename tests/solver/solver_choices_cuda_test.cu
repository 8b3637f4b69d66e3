// SPDX-License-Identifier: Apache-2.0
// What the public Solver chooses on a GPU where the choice is left, and what it refuses, in the host's words.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "krilu/solver.hpp"
#include "solver/solved_on.hpp"
#include "support/gpu.cuh"
#include "support/matrices.hpp"
#include "support/refusal.hpp"

namespace krilu::test {
namespace {

TEST(GpuSolver, NanAndInfinityInTheMatrixAreNamedByTheirRow) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:convdiff2d:20x15");
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    for (const std::string precond : {"auto", "none", "dilu", "ilu0"})
      for (const std::string ordering : {"natural", "block-multicolour"})
        for (Index row : {0, 150, 299}) {
          SCOPED_TRACE(precond + " " + ordering);
          CsrMatrix m = a;
          m.values[std::size_t(m.offsets[std::size_t(row) + 1]) - 1] = bad;
          Options o;
          o.precond = precond;
          o.ordering = ordering;
          o.device = "cuda";
          Solver solver(o);
          const std::string sentence = "row " + std::to_string(row + 1) + " of the matrix holds NaN or infinity";
          EXPECT_EQ(complaint([&] { solver.setup(m); }), sentence);
          EXPECT_EQ(complaint([&] {
                      solver.analyse(a);
                      solver.factor(m);
                    }),
                    sentence);
          solver.factor(a);  // and nothing of it is left
          std::vector<double> x(300, 0.0);
          EXPECT_EQ(solver.solve(random_values(300, 809), x).status, Status::converged);
        }
}

TEST(GpuSolver, RefusesInTheHostsWords) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:poisson2d:9x9");
  const auto refusal = [](const CsrMatrix& m, const char* device) {
    Options o;
    o.solver = "bicgstab";
    o.precond = "dilu";
    o.device = device;
    return complaint([&] { Solver(o).setup(m); });
  };
  std::vector<CsrMatrix> bad(7, a);
  std::swap(bad[0].columns[1], bad[0].columns[2]);
  bad[1].columns[1] = bad[1].columns[0];
  bad[2].columns[std::size_t(a.nnz() - 1)] = 81;
  bad[3].columns[0] = -1;
  bad[4].offsets[0] = 1;
  bad[5].offsets[4] = 1 << 30;
  bad[6] = from_dense({{1, 0, 2}, {0, 1, 0}});
  for (const CsrMatrix& m : bad) {
    EXPECT_NE(refusal(m, "host"), "");
    EXPECT_EQ(refusal(m, "cuda"), refusal(m, "host"));
  }
  const auto named = [](const std::string& device, const std::string& triangular) {
    Options o;
    o.device = device;
    o.triangular = triangular;
    return complaint([&] { Solver{o}; });
  };
  EXPECT_TRUE(named("cuda:99", "auto").starts_with("there is no GPU 99: this machine has "))
      << named("cuda:99", "auto");
  EXPECT_NE(named("cuda:x", "auto"), "");
  EXPECT_NE(named("cuda", "serial"), "");
  EXPECT_NE(named("host", "tiled"), "");
  EXPECT_EQ(named("cuda:0", "tiled"), "");
}

TEST(GpuSolver, AZeroPivotFallsBackToJacobiWhereTheChoiceIsLeft) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = from_dense({{1, 1, 0}, {1, 1, 2}, {0, 1, 1}});  // 1 - 1 * 1
  Options o;
  o.ordering = "natural";
  const Solved s = solved_on("cuda", a, {1, 2, 3}, o);
  EXPECT_EQ(s.r.status, Status::converged);
  EXPECT_EQ(s.r.precond, "jacobi");
  EXPECT_TRUE(std::any_of(s.r.notes.begin(), s.r.notes.end(), [](const std::string& note) {
    return note.starts_with("precond auto: jacobi in place of dilu (dilu: zero pivot in row 2");
  }));
  o.precond = "dilu";
  EXPECT_THROW(solved_on("cuda", a, {1, 2, 3}, o), ZeroPivot);
  o.shift = 0.1;
  EXPECT_EQ(solved_on("cuda", a, {1, 2, 3}, o).r.precond, "dilu");
}

TEST(GpuSolver, ValuesThatAreNoLongerSymmetricAreChosenForAnew) {
  KRILU_REQUIRE_GPU();
  for (const char* matrix : {"gen:poisson2d:12x12", "gen:poisson3d:30x30x30"}) {
    CsrMatrix a = generate(matrix);
    const auto b = random_vector(std::size_t(a.rows), 3, -1, 1);
    Options options;
    options.device = "cuda";
    Solver solver(options);
    solver.setup(a);
    std::vector<double> x(b.size());
    EXPECT_EQ(solver.solve(b, x).precond, "dic");
    a.values[1] *= 1 + 1e-15;
    for (int times = 0; times < 2; ++times) {
      solver.factor(a);
      std::fill(x.begin(), x.end(), 0.0);
      const Result r = solver.solve(b, x);
      EXPECT_EQ(r.status, Status::converged);
      EXPECT_EQ(r.solver, "bicgstab");
      EXPECT_TRUE(any_has(r.notes, "in place of cg with dic"));
    }
    EXPECT_EQ(solver.counts().analyses, 2);
  }
}

TEST(GpuSolver, TroubleIsForgottenWhereTheNextValuesHaveNone) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix good = generate("gen:poisson2d:12x12"), meshed = generate("gen:poisson3d27:5x5x5");
  for (const std::string precond : {"dilu", "dic", "ilu0", "ic0"})
    for (const CsrMatrix& a : {good, meshed}) {
      SCOPED_TRACE(precond);
      CsrMatrix zero = a, asymmetric = a;
      for (Offset k = 0; k < a.offsets[1]; ++k)
        if (a.columns[std::size_t(k)] == 0) zero.values[std::size_t(k)] = 0;
      asymmetric.values[std::size_t(a.offsets[1]) - 1] *= 2;
      Options o;
      o.device = "cuda";
      o.solver = "bicgstab";
      o.precond = precond;
      Solver solver(o);
      solver.analyse(a);
      for (int turn = 0; turn < 2; ++turn) {
        EXPECT_THROW(solver.factor(zero), ZeroPivot);
        EXPECT_NO_THROW(solver.factor(a));
        if (precond == "dilu" || precond == "ilu0") continue;
        EXPECT_THROW(solver.factor(asymmetric), Error);
        EXPECT_NO_THROW(solver.factor(a));
      }
    }
}

TEST(GpuSolver, AutoTakesTheGpuUnlessTheHostIsAskedFor) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:convdiff2d:12x12");
  const std::vector<double> b = random_values(144, 810);
  const Solved s = solved_on("auto", a, b, {});
  EXPECT_TRUE(s.r.device.starts_with("cuda:0 (")) << s.r.device;
  EXPECT_EQ(s.r.ordering, "block-multicolour");
  EXPECT_EQ(s.r.status, Status::converged);
  Options o;
  o.triangular = "serial";
  EXPECT_EQ(solved_on("auto", a, b, o).r.device, "host");
}

TEST(GpuSolver, AutoKnowsWhereSweepsCannotPay) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix lattice = generate("gen:convdiff2d:60x50");
  const CsrMatrix numbered_anyhow = permuted(lattice, shuffled_order(lattice.rows, 815));
  const std::vector<double> b = random_values(std::size_t(lattice.rows), 816);
  Options o;
  const Solved of_lattice = solved_on("cuda", lattice, b, o), other = solved_on("cuda", numbered_anyhow, b, o);
  EXPECT_EQ(of_lattice.r.precond, "dilu");
  EXPECT_EQ(other.r.precond, "jacobi");
  EXPECT_EQ(other.r.ordering, "natural");
  for (const Solved* s : {&of_lattice, &other}) EXPECT_EQ(s->r.status, Status::converged);
  const auto explained = [&](const Options& options) {
    Options on_gpu = options;
    on_gpu.device = "cuda";
    Solver solver(on_gpu);
    solver.setup(numbered_anyhow);
    return any_has(solver.explanation(), "in so small a system, which is no lattice");
  };
  EXPECT_TRUE(explained(o));
  // What is named is taken, and an ordering is a wish for sweeps.
  o.ordering = "natural";
  EXPECT_FALSE(explained(o));
  EXPECT_EQ(solved_on("cuda", numbered_anyhow, b, o).r.precond, "dilu");
  o.ordering = "auto";
  o.shift = 0.1;  // of factors
  EXPECT_EQ(solved_on("cuda", numbered_anyhow, b, o).r.precond, "dilu");
  o.shift = 0;
  o.precond = "dilu";
  EXPECT_EQ(solved_on("cuda", numbered_anyhow, b, o).r.precond, "dilu");
}

TEST(GpuSolver, AutoTakesJacobiWhereDiagonalsOutweighTheirRows) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix lattice = generate("gen:convdiff2d:400x400");
  CsrMatrix a = permuted(lattice, shuffled_order(lattice.rows, 817));
  const std::vector<double> b = random_values(std::size_t(a.rows), 818);
  const auto explained = [&] {
    Options on_gpu;
    on_gpu.device = "cuda";
    Solver solver(on_gpu);
    solver.setup(a);
    return any_has(solver.explanation(), "times the rest of it");
  };
  EXPECT_FALSE(explained());
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      if (a.columns[std::size_t(k)] == i) a.values[std::size_t(k)] *= 1.2;
  EXPECT_TRUE(explained());
  const Solved s = solved_on("cuda", a, b, {});
  EXPECT_EQ(s.r.precond, "jacobi");
  EXPECT_EQ(s.r.status, Status::converged);
}

}  // namespace
}  // namespace krilu::test
