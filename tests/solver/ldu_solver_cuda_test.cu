// SPDX-License-Identifier: Apache-2.0
// LduSolver on a GPU: products and DILU's sweeps against plain loops over faces, solutions and iterations against the
// host's; and that the host waits for none of the parts.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "krilu/ldu.hpp"
#include "krilu/solver.hpp"
#include "mesh/ldu_operator.cuh"
#include "precond/face_dilu.cuh"
#include "sparse/sliced.cuh"
#include "support/gpu.cuh"
#include "support/ldu.hpp"
#include "support/support.hpp"

namespace krilu {
namespace {

using exec::Cuda;
using mesh::LduOperator;
using precond::FaceDilu;

const char* const meshes[] = {"mesh:box:13x11x9", "mesh:box:40x30x20:random:3", "mesh:tetrahedra:12x12x12:shuffled",
                              "mesh:triangles:90x70"};

LduView view(const sparse::Ldu& a) { return {a.diagonal, a.lower, a.upper}; }

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::abs(b[i]))) << "entry " << i;
}

TEST(LduSolverOnGpu, ProductsAndSweepsAreThoseOfPlainLoops) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const char* name : meshes)
    for (const bool symmetric : {true, false})
      for (const bool turned : {true, false}) {
        Mesh m = generate_mesh(name);
        sparse::Ldu a = test::transport_matrix(m, {1, symmetric ? Vector3{0, 0, 0} : Vector3{5, -1, 2}});
        if (turned) test::turn_some_faces(m, a);
        const auto n = std::size_t(m.cells);
        const std::vector<double> x = test::random_values(n, 1), b = test::random_values(n, 2);
        std::vector<double> product(n), residual(n), result(n);
        sparse::multiply(a, x.data(), product.data());
        for (std::size_t i = 0; i < n; ++i) residual[i] = b[i] - product[i];
        const auto xd = ex.allocate<double>(n), bd = ex.allocate<double>(n), yd = ex.allocate<double>(n);
        for (const char* strategy : {"tiles", "diagonal", "gather", "colours", "atomics", "slices"})
          for (const char* renumber : {"none", "bisection"}) {
            SCOPED_TRACE(std::string(name) + " " + strategy + " " + renumber);
            LduOperator<Cuda> A(ex, m, {strategy, renumber});
            A.set_values(a.diagonal, a.upper, a.lower);
            A.to_cells(xd, x);
            A.to_cells(bd, b);
            A.apply(xd.data(), yd.data());
            A.from_cells(result, yd);
            expect_near(result, product, 1e-12);
            A.residual(bd.data(), xd.data(), bd.data());
            A.from_cells(result, bd);
            expect_near(result, residual, 1e-12);

            const sparse::Ldu there = test::in_order(a, A.loops().cell_order(), A.loops().face_order());
            const std::vector<double> rD = test::reference_reciprocals(there);
            FaceDilu<Cuda> M(A, m);
            M.factor(A);
            expect_near(test::to_host(ex, M.reciprocals()), rD, 1e-12);
            ex.copy_in(bd, b.data(), n);
            M.apply(bd.data(), yd.data());
            expect_near(test::to_host(ex, yd), test::reference_application(there, rD, b), 1e-11);
          }
      }
}

TEST(LduSolverOnGpu, SolvesAsTheHostDoes) {
  KRILU_REQUIRE_GPU();
  for (const char* name : meshes)
    for (const auto& [solver, precond] :
         {std::pair("cg", "dic"), std::pair("cg", "jacobi"), std::pair("cg", "none"), std::pair("bicgstab", "dilu"),
          std::pair("bicgstab", "jacobi"), std::pair("gmres", "dilu")})
      for (const auto& [loops, sweeps] : {std::pair(FaceLoopOptions{"gather", "none"}, "level-set"),
                                          std::pair(FaceLoopOptions{"tiles", "auto"}, "level-set"),
                                          std::pair(FaceLoopOptions{"gather", "none"}, "auto"),
                                          std::pair(FaceLoopOptions{"diagonal", "growth"}, "auto"),
                                          std::pair(FaceLoopOptions{"auto", "auto"}, "auto")}) {
        SCOPED_TRACE(std::string(name) + " " + solver + " " + precond + " " + loops.strategy);
        const Mesh m = generate_mesh(name);
        const bool symmetric = std::string(solver) == "cg";
        const sparse::Ldu a =
            test::transport_matrix(m, {0.1, symmetric ? Vector3{0, 0, 0} : Vector3{1, 0.5, -0.7}, 0.8});
        const std::vector<double> b = test::random_values(std::size_t(m.cells), 3);
        std::vector<double> x[2];
        Result r[2];
        for (const int k : {0, 1}) {
          Options o;
          o.solver = solver;
          o.precond = precond;
          o.rtol = 1e-10;
          o.device = k == 0 ? "host" : "cuda";
          o.triangular = sweeps;
          LduSolver one(o, loops);
          one.analyse(m);
          one.factor(view(a));
          x[k].assign(b.size(), 0.0);
          r[k] = one.solve(b, x[k]);
          ASSERT_EQ(r[k].status, Status::converged);
        }
        EXPECT_LE(r[1].relative_residual, 1e-10);
        EXPECT_TRUE(r[1].device.starts_with("cuda:0 ("));
        expect_near(x[1], x[0], 1e-7);
        // Blocks of another size give another elimination order, and so do coloured ones.
        const bool in_blocks = sweeps == std::string("auto") && std::string(precond).starts_with("d");
        if (in_blocks)
          EXPECT_LE(r[1].iterations, 2 + 1.3 * r[0].iterations);
        else if (loops.renumber == "none")
          EXPECT_NEAR(r[1].iterations, r[0].iterations, 1 + 0.1 * r[0].iterations);
      }
}

// In coloured blocks the preconditioner is that of the matrix in rows.
TEST(LduSolverOnGpu, SweepsInBlocksAreThoseOfTheSolverInCsr) {
  KRILU_REQUIRE_GPU();
  for (const char* name : meshes)
    for (const bool turned : {true, false})
      for (const char* method : {"bicgstab", "gmres"}) {
        SCOPED_TRACE(std::string(name) + " " + method);
        Mesh m = generate_mesh(name);
        sparse::Ldu a = test::transport_matrix(m, {0.1, {1, 0.5, -0.7}, 0.8});
        const CsrMatrix csr = sparse::to_csr(a);
        if (turned) test::turn_some_faces(m, a);
        const std::vector<double> b = test::random_values(std::size_t(m.cells), 3);
        std::vector<double> x(b.size(), 0.0), y(b.size(), 0.0);
        Options o;
        o.solver = method;
        o.precond = "dilu";
        o.device = "cuda";
        LduSolver by_faces(o);
        by_faces.analyse(m);
        by_faces.factor(view(a));
        o.ordering = "block-multicolour";
        Solver by_rows(o);
        by_rows.setup(csr);
        const Result r = by_faces.solve(b, x), expected = by_rows.solve(b, y);
        EXPECT_EQ(r.status, Status::converged);
        EXPECT_EQ(r.triangular, expected.triangular);
        ASSERT_EQ(r.history.size(), expected.history.size());
        for (std::size_t k = 0; k + 1 < r.history.size(); ++k)
          ASSERT_NEAR(r.history[k], expected.history[k], 1e-6 * expected.history[k]) << "iteration " << k;
        expect_near(x, y, 1e-6);
      }
}

TEST(LduSolverOnGpu, TakesMeshesThatAreNoMore) {
  KRILU_REQUIRE_GPU();
  Options o;
  o.device = "cuda";
  o.solver = "bicgstab";
  o.precond = "dilu";
  // Two faces between the same cells, and a cell without any.
  LduSolver solver(o);
  const std::vector<Index> owner{2, 0, 0, 1}, neighbour{1, 2, 1, 2};
  solver.analyse(4, owner, neighbour);
  const std::vector<double> diagonal{9, 9, 9, 4}, upper{1, 2, 3, -1}, lower{-2, 1, 2, 3}, b{1, 2, 3, 4};
  std::vector<double> x(4, 0.0);
  solver.factor({diagonal, lower, upper});
  EXPECT_EQ(solver.solve(b, x).status, Status::converged);
  EXPECT_NEAR(9 * x[0] + 3 * x[1] + 2 * x[2], 1, 1e-7);
  EXPECT_NEAR(2 * x[0] + 9 * x[1] + (-2 - 1) * x[2], 2, 1e-7);
  EXPECT_NEAR(1 * x[0] + (1 + 3) * x[1] + 9 * x[2], 3, 1e-7);
  EXPECT_NEAR(4 * x[3], 4, 1e-7);
  // One cell, and none; then one again.
  for (const Index cells : {1, 0, 1}) {
    solver.analyse(cells, {}, {});
    const std::vector<double> one(std::size_t(cells), 2.0);
    std::vector<double> y(one.size(), 0.0);
    solver.factor({one, {}, {}});
    EXPECT_EQ(solver.solve(one, y).status, Status::converged);
    for (const double v : y) EXPECT_NEAR(v, 1, 1e-12);
  }
}

TEST(LduSolverOnGpu, TakesNewValues) {
  KRILU_REQUIRE_GPU();
  const Mesh m = generate_mesh("mesh:box:20x20x20");
  Options o;
  o.device = "cuda";
  LduSolver solver(o);
  solver.analyse(m);
  const std::vector<double> b = test::random_values(std::size_t(m.cells), 3);
  std::vector<double> x(b.size(), 0.0);
  for (const double speed : {0.0, 1.0, 3.0, 0.0}) {
    const sparse::Ldu a = test::transport_matrix(m, {1, {speed, 0, 0}});
    solver.factor(view(a));
    const Result r = solver.solve(b, x);
    EXPECT_EQ(r.status, Status::converged);
    EXPECT_EQ(r.precond, speed == 0 ? "dic" : "dilu");
    std::vector<double> Ax(x.size());
    sparse::multiply(a, x.data(), Ax.data());
    double rr = 0, bb = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      rr += (b[i] - Ax[i]) * (b[i] - Ax[i]);
      bb += b[i] * b[i];
    }
    EXPECT_LE(std::sqrt(rr / bb), 1.001e-8);
    EXPECT_NEAR(r.relative_residual, std::sqrt(rr / bb), 1e-12);
  }
}

TEST(LduSolverOnGpu, TheHostWaitsAFixedNumberOfTimes) {
  KRILU_REQUIRE_GPU();
  const Mesh m = generate_mesh("mesh:box:30x30x30");
  const sparse::Ldu a = test::transport_matrix(m, {1, {0, 0, 0}});
  const Cuda ex;
  LduOperator<Cuda> A(ex, m, {"tiles", "auto"});
  A.set_values(a.diagonal, a.upper, a.lower);
  FaceDilu<Cuda> M(A, m);
  M.factor(A);
  const auto blocks = precond::FaceDiluOn<Cuda>::make(A, m, triangular::Strategy::automatic);
  blocks->factor(A);
  const auto n = std::size_t(m.cells);
  const auto r = ex.allocate<double>(n), z = ex.allocate<double>(n);
  A.to_cells(r, test::random_values(n, 1));
  const long before = ex.synchronisations();
  for (int k = 0; k < 5; ++k) {
    M.apply(r.data(), z.data());
    blocks->apply(r.data(), z.data());
    A.apply(z.data(), r.data());
    A.residual(r.data(), z.data(), r.data());
  }
  EXPECT_EQ(ex.synchronisations(), before);
}

TEST(LduSolverOnGpu, AZeroPivotIsNamedByTheMeshsCell) {
  KRILU_REQUIRE_GPU();
  Mesh m;
  m.cells = 4;
  m.owner = {0, 1, 2};
  m.neighbour = {1, 2, 3};
  const std::vector<double> diagonal{2, 2, 1, 5}, upper{2, 2, 1}, lower{2, 1, 1};
  Options o;
  o.device = "cuda";
  o.precond = "dilu";
  LduSolver solver(o, {"gather", "none"});
  solver.analyse(m);
  try {
    solver.factor({diagonal, lower, upper});
    FAIL() << "nothing was thrown";
  } catch (const ZeroPivot& e) {
    EXPECT_NE(std::string(e.what()).find("cell 1 "), std::string::npos) << e.what();
    EXPECT_EQ(e.row(), 1);
  }
  // It is forgotten with other values.
  const std::vector<double> better{9, 9, 9, 9}, b{1, 2, 3, 4};
  std::vector<double> x(4, 0.0);
  solver.factor({better, lower, upper});
  EXPECT_EQ(solver.solve(b, x).status, Status::converged);
  EXPECT_NEAR(9 * x[0] + 2 * x[1], 1, 1e-7);
  EXPECT_NEAR(x[2] + 9 * x[3], 4, 1e-7);
}

TEST(LduSolverOnGpu, MeshesOfAnySizeFollowOneAnother) {
  KRILU_REQUIRE_GPU();
  for (const char* precond : {"jacobi", "dic"}) {
    Options o;
    o.solver = "cg";
    o.precond = precond;
    o.device = "cuda";
    const FaceLoopOptions loops{"gather", "none"};
    LduSolver solver(o, loops);
    for (const char* name : {"mesh:box:9x8x7", "mesh:box:64x64x64", "mesh:box:12x11x10"}) {
      SCOPED_TRACE(std::string(name) + " " + precond);
      const Mesh m = generate_mesh(name);
      const sparse::Ldu a = test::transport_matrix(m, {1, {0, 0, 0}, 0.9});
      const std::vector<double> b = test::random_values(std::size_t(m.cells), 3);
      std::vector<double> x(b.size(), 0.0), y = x;
      solver.analyse(m);
      solver.factor(view(a));
      const Result r = solver.solve(b, x);
      ASSERT_EQ(r.status, Status::converged);
      LduSolver fresh(o, loops);
      fresh.analyse(m);
      fresh.factor(view(a));
      EXPECT_EQ(fresh.solve(b, y).history, r.history);
      EXPECT_EQ(x, y);
    }
  }
}

TEST(LduSolverOnGpu, SerialSweepsAreForTheHost) {
  Options o;
  o.device = "cuda";
  o.triangular = "serial";
  EXPECT_THROW(LduSolver{o}, Error);
}

}  // namespace
}  // namespace krilu
