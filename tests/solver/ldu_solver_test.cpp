// SPDX-License-Identifier: Apache-2.0
// krilu::LduSolver against krilu::Solver on the same matrix in CSR: solutions, and where both eliminate in the same
// order, iterations; what it refuses, and what it reports.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "krilu/ldu.hpp"
#include "krilu/solver.hpp"
#include "solver/engine.hpp"
#include "sparse/csr.hpp"
#include "support/ldu.hpp"
#include "support/not_finite.hpp"
#include "support/refusal.hpp"
#include "support/support.hpp"

namespace krilu {
namespace {

using test::expect_words;
using test::infinity;
using test::nan;
using test::refusal;

LduView view(const sparse::Ldu& a) { return {a.diagonal, a.lower, a.upper}; }

Options options(const std::string& solver, const std::string& precond, const std::string& device, int threads) {
  Options o;
  o.solver = solver;
  o.precond = precond;
  o.device = device;
  o.threads = threads;
  o.rtol = 1e-10;
  return o;
}

#define EXPECT_REFUSED(statement, part) expect_words(refusal([&] { statement; }), {part})

struct Way {
  std::string solver, precond;
  bool symmetric;
};
const std::vector<Way> ways{{"cg", "dic", true},         {"cg", "jacobi", true},     {"cg", "none", true},
                            {"bicgstab", "dilu", false}, {"bicgstab", "dilu", true}, {"bicgstab", "jacobi", false},
                            {"gmres", "dilu", false},    {"gmres", "none", false}};

/// Well enough conditioned that solutions to rtol 1e-10 agree to 1e-7, and convection as strong as diffusion.
sparse::Ldu matrix(const Mesh& m, bool symmetric) {
  return test::transport_matrix(m, {0.1, symmetric ? Vector3{0, 0, 0} : Vector3{1, 0.5, -0.7}, 0.8});
}

TEST(LduSolver, MatchesTheSolverInCsrOnEveryDeviceAndAnyThreads) {
  for (const std::string& name : test::small_mesh_names())
    for (const Way& way : ways) {
      const Mesh m = generate_mesh(name);
      const sparse::Ldu a = matrix(m, way.symmetric);
      const CsrMatrix csr = sparse::to_csr(a);
      const auto n = std::size_t(m.cells);
      const std::vector<double> b = test::random_values(n, 3);
      std::vector<double> reference(n, 0.0);
      Options o = options(way.solver, way.precond, "host", 1);
      o.ordering = "natural";
      const Result in_csr = solve(csr, b, reference, o);
      ASSERT_EQ(in_csr.status, Status::converged);
      for (const char* device : {"host", "emulated"})
        for (const int threads : {1, 3})
          for (const FaceLoopOptions& loops :
               {FaceLoopOptions{"serial", "none"}, FaceLoopOptions{"gather", "none"}, FaceLoopOptions{"tiles", "auto"},
                FaceLoopOptions{"slices", "growth"}, FaceLoopOptions{"diagonal", "bisection"}}) {
            SCOPED_TRACE(name + " " + way.solver + " " + way.precond + " " + device + " " + std::to_string(threads) +
                         " " + loops.strategy);
            LduSolver solver(options(way.solver, way.precond, device, threads), loops);
            solver.analyse(m);
            solver.factor(view(a));
            std::vector<double> x(n, 0.0);
            const Result r = solver.solve(b, x);
            ASSERT_EQ(r.status, Status::converged);
            EXPECT_LE(test::true_residual(csr, x, b), 1.0001e-10);
            EXPECT_NEAR(r.relative_residual, test::true_residual(csr, x, b), 1e-14);
            for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(x[i], reference[i], 1e-7 * (1 + std::abs(reference[i])));
            if (loops.renumber == "none") {
              EXPECT_EQ(r.iterations, in_csr.iterations);
            } else if (way.precond == "none" || way.precond == "jacobi") {  // but for rounding
              EXPECT_NEAR(r.iterations, in_csr.iterations, 1);
            }
            EXPECT_EQ(r.solver, way.solver);
            EXPECT_EQ(r.precond, way.precond);
            EXPECT_EQ(r.threads, threads);
            EXPECT_EQ(r.device, device);
          }
    }
}

TEST(LduSolver, GivesTheSameBitsForAnyNumberOfThreadsAndBothExecutionsOfTheSweeps) {
  const Mesh m = generate_mesh("mesh:box:30x25x20:shuffled");
  const sparse::Ldu a = matrix(m, false);
  const std::vector<double> b = test::random_values(std::size_t(m.cells), 3);
  std::vector<std::vector<double>> seen;
  for (const int threads : {1, 3})
    for (const char* triangular : {"serial", "level-set", "auto"}) {
      Options o = options("bicgstab", "dilu", "host", threads);
      o.triangular = triangular;
      LduSolver solver(o, {"tiles", "bisection", 1024});
      solver.analyse(m);
      solver.factor(view(a));
      seen.emplace_back(b.size(), 0.0);
      const Result r = solver.solve(b, seen.back());
      EXPECT_EQ(r.triangular, triangular == std::string("level-set") ? "level-set" : "serial");  // narrow levels
      EXPECT_EQ(r.ordering, "bisection");
      EXPECT_EQ(seen.back(), seen.front());
    }
}

TEST(LduSolver, ConvergesInOpenFoamsNormAsTheSolverInCsrDoes) {
  const Mesh m = generate_mesh("mesh:tetrahedra:7x7x7");
  for (const bool symmetric : {true, false}) {
    const sparse::Ldu a = matrix(m, symmetric);
    const std::vector<double> b = test::random_values(std::size_t(m.cells), 3);
    Options o = options(symmetric ? "cg" : "bicgstab", symmetric ? "dic" : "dilu", "host", 2);
    o.norm = Norm::openfoam;
    o.rtol = 1e-6;
    std::vector<double> reference = test::random_values(b.size(), 4), x = reference;
    const Result in_csr = solve(sparse::to_csr(a), b, reference, o);
    LduSolver solver(o, {"gather", "none"});
    solver.analyse(m);
    solver.factor(view(a));
    const Result r = solver.solve(b, x);
    EXPECT_EQ(r.status, Status::converged);
    EXPECT_EQ(r.iterations, in_csr.iterations);
    EXPECT_NEAR(r.initial_residual, in_csr.initial_residual, 1e-12 * in_csr.initial_residual);
    ASSERT_EQ(r.history.size(), in_csr.history.size());
    for (std::size_t k = 0; k < r.history.size(); ++k)
      EXPECT_NEAR(r.history[k], in_csr.history[k], 1e-6 * in_csr.history[k]);
  }
}

TEST(LduSolver, TakesNewValuesGuessesAndMeshes) {
  LduSolver solver(options("auto", "auto", "host", 2));
  for (const char* name : {"mesh:box:9x8x7:random", "mesh:triangles:20x15"}) {
    const Mesh m = generate_mesh(name);
    solver.analyse(m);
    std::vector<double> x(std::size_t(m.cells), 0.0);
    int cold = 0;
    for (const double speed : {0.0, 1.0, 0.0}) {
      const sparse::Ldu a = test::transport_matrix(m, {1, {speed, 0, 0}});
      solver.factor(view(a));
      const std::vector<double> b = test::random_values(x.size(), 3);
      const Result r = solver.solve(b, x);
      EXPECT_EQ(r.status, Status::converged);
      EXPECT_EQ(r.solver, speed == 0 ? "cg" : "bicgstab");
      EXPECT_EQ(r.precond, speed == 0 ? "dic" : "dilu");
      EXPECT_LE(test::true_residual(sparse::to_csr(a), x, b), 1.0001e-10);
      const Result again = solver.solve(b, x);  // from the solution
      EXPECT_EQ(again.iterations, 0);
      cold = r.iterations;
      EXPECT_GT(cold, 3);
    }
    EXPECT_EQ(solver.cells(), m.cells);
    EXPECT_EQ(solver.faces(), m.faces());
  }
  EXPECT_EQ(solver.counts().analyses, 2);
  EXPECT_EQ(solver.counts().factorisations, 6);
  EXPECT_EQ(solver.counts().solves, 12);
}

TEST(LduSolver, TakesAMeshByItsFacesAloneInAnyOrientation) {
  Mesh m = generate_mesh("mesh:tetrahedra:6x5x4");
  sparse::Ldu a = matrix(m, false);
  const CsrMatrix csr = sparse::to_csr(a);
  const std::vector<double> b = test::random_values(std::size_t(m.cells), 3);
  std::vector<double> as_given(b.size(), 0.0);
  Options o = options("bicgstab", "dilu", "host", 1);
  const FaceLoopOptions loops{"gather", "none"};
  LduSolver solver(o, loops);
  solver.analyse(m.cells, m.owner, m.neighbour);
  solver.factor(view(a));
  const int iterations = solver.solve(b, as_given).iterations;
  EXPECT_LE(test::true_residual(csr, as_given, b), 1.0001e-10);
  test::turn_some_faces(m, a);
  solver.analyse(m.cells, m.owner, m.neighbour);
  solver.factor(view(a));
  std::vector<double> turned(b.size(), 0.0);
  EXPECT_EQ(solver.solve(b, turned).iterations, iterations);
  for (std::size_t i = 0; i < b.size(); ++i) ASSERT_NEAR(turned[i], as_given[i], 1e-8 * (1 + std::abs(as_given[i])));
  LduSolver by_growth(o, {"tiles", "auto"});
  by_growth.analyse(m.cells, m.owner, m.neighbour);
  EXPECT_EQ(by_growth.loops().renumber, "growth");
}

TEST(LduSolver, EqualLowerAndUpperAreASymmetricMatrix) {
  const Mesh m = generate_mesh("mesh:box:8x8x8");
  sparse::Ldu a = matrix(m, true);
  const std::vector<double> b = test::random_values(std::size_t(m.cells), 3);
  std::vector<double> x(b.size(), 0.0), y = x;
  LduSolver solver(options("auto", "auto", "host", 1));
  solver.analyse(m);
  solver.factor(view(a));
  solver.solve(b, x);
  a.lower = a.upper;
  solver.factor(view(a));
  const Result r = solver.solve(b, y);
  EXPECT_EQ(r.precond, "dic");
  EXPECT_EQ(x, y);
}

TEST(LduSolver, SaysWhatItChose) {
  const Mesh m = generate_mesh("mesh:box:8x8x8");
  LduSolver solver(options("auto", "auto", "host", 2), {"tiles", "bisection"});
  EXPECT_TRUE(solver.explanation().empty());
  EXPECT_REFUSED(solver.loops(), "loops comes after analyse");
  solver.analyse(m);
  solver.factor(view(matrix(m, false)));
  std::string all;
  for (const std::string& line : solver.explanation()) all += line + "\n";
  expect_words(all, {"loops over faces by tiles, cells numbered by bisection", "dilu: faces in turn, by one thread",
                     "solver bicgstab: ", "preconditioner dilu: "});
  EXPECT_EQ(solver.loops().strategy, "tiles");
  EXPECT_GT(solver.bytes(), std::size_t(m.cells) * 8 * 10);
}

TEST(LduSolver, AutoPassesZerosOnTheDiagonalAndZeroPivots) {
  const Mesh m = generate_mesh("mesh:box:5x4x3");
  const std::vector<double> b = test::random_values(std::size_t(m.cells), 3);
  sparse::Ldu a = matrix(m, false);
  a.diagonal[7] = 0;
  LduSolver solver(options("auto", "auto", "host", 1), {"gather", "none"});
  solver.analyse(m);
  solver.factor(view(a));
  std::vector<double> x(b.size(), 0.0);
  Result r = solver.solve(b, x);
  EXPECT_EQ(r.solver, "gmres");
  EXPECT_EQ(r.precond, "none");
  ASSERT_FALSE(r.notes.empty());
  expect_words(r.notes[0], {"first at cell 7"});

  a = matrix(m, false);
  // Cell 1's pivot: a_11 - a_10 a_01 / a_00, face 0 between them.
  a.diagonal[0] = 1;
  a.diagonal[1] = a.lower[0] * a.upper[0];
  solver.factor(view(a));
  x.assign(b.size(), 0.0);
  r = solver.solve(b, x);
  EXPECT_EQ(r.precond, "jacobi");
  ASSERT_FALSE(r.notes.empty());
  expect_words(r.notes[0], {"jacobi in place of dilu (dilu: zero pivot at cell 1 "});

  LduSolver dilu(options("bicgstab", "dilu", "host", 1), {"gather", "none"});
  dilu.analyse(m);
  EXPECT_THROW(dilu.factor(view(a)), ZeroPivot);
  EXPECT_REFUSED(dilu.solve(b, x), "solve comes after");
  a.diagonal[7] = 0;
  LduSolver jacobi(options("bicgstab", "jacobi", "host", 1));
  jacobi.analyse(m);
  EXPECT_REFUSED(jacobi.factor(view(a)), "zero in 1 cell, the first is cell 7 (counting from 0)");
}

TEST(LduSolver, RefusesOptionsThatItDoesNotHave) {
  const auto with = [](auto set) {
    Options o;
    set(o);
    LduSolver solver(o);
  };
  EXPECT_REFUSED(with([](Options& o) { o.solver = "fgmres"; }), "over faces there are auto, cg, bicgstab, gmres");
  EXPECT_REFUSED(with([](Options& o) { o.solver = "bicgstb"; }), "did you mean 'bicgstab'");
  EXPECT_REFUSED(with([](Options& o) { o.precond = "iluk:2"; }), "over faces there are auto, none, jacobi, dilu, dic");
  EXPECT_REFUSED(with([](Options& o) { o.precond = "dilo"; }), "did you mean 'dilu'");
  EXPECT_REFUSED(with([](Options& o) { o.triangular = "sync-free"; }), "auto, serial or level-set");
  EXPECT_REFUSED(with([](Options& o) { o.ordering = "rcm"; }), "FaceLoopOptions::renumber");
  EXPECT_REFUSED(with([](Options& o) { o.precision = "fp32"; }), "fp64");
  EXPECT_REFUSED(with([](Options& o) { o.basis = "fp16"; }), "fp64");
  EXPECT_REFUSED(with([](Options& o) { o.inner_iterations = 5; }), "fp64");
  EXPECT_REFUSED(with([](Options& o) { o.shift = 0.1; }), "shift");
  EXPECT_REFUSED(with([](Options& o) { o.scaling = "matching"; }), "scaling matching");
  EXPECT_REFUSED(with([](Options& o) { o.rtol = -1; }), "rtol");
  EXPECT_REFUSED(with([](Options& o) { o.max_iterations = -1; }), "max-iters");
  EXPECT_REFUSED(with([](Options& o) { o.device = "cuda:x"; }), "number of a GPU");
  EXPECT_REFUSED(with([](Options& o) { o.device = "gpu"; }), "unknown device");
  const auto openfoam_gmres = [](Options& o) {
    o.solver = "gmres";
    o.norm = Norm::openfoam;
  };
  EXPECT_REFUSED(with(openfoam_gmres), "2-norm only");
  if (solver::cuda_devices() == 0) {
    EXPECT_REFUSED(with([](Options& o) { o.device = "cuda"; }), "GPU");
  }
  const auto loops_with = [](FaceLoopOptions loops, int threads) {
    Options o;
    o.threads = threads;
    LduSolver solver(o, loops);
  };
  FaceLoopOptions two;
  two.threads = 2;
  EXPECT_REFUSED(loops_with(two, 3), "threads is 3 in Options and 2 in FaceLoopOptions");
  EXPECT_NO_THROW(loops_with(two, 2));
  EXPECT_NO_THROW(loops_with(two, 0));
  EXPECT_REFUSED(loops_with({"tils"}, 0), "tiles");
  EXPECT_REFUSED(loops_with({"tiles", "bisect"}, 0), "bisection");
}

TEST(LduSolver, RefusesWhatIsNoSystem) {
  const Mesh m = generate_mesh("mesh:box:3x3x3");
  const sparse::Ldu good = matrix(m, false);
  LduSolver solver(options("bicgstab", "dilu", "host", 1));
  EXPECT_REFUSED(solver.factor(view(good)), "factor comes after analyse");
  EXPECT_REFUSED(solver.analyse(3, std::vector<Index>{0, 1}, std::vector<Index>{1}), "2 owners and 1 neighbours");
  EXPECT_REFUSED(solver.analyse(3, std::vector<Index>{0, 1}, std::vector<Index>{1, 3}), "cell 3");
  EXPECT_REFUSED(solver.analyse(3, std::vector<Index>{0, 1}, std::vector<Index>{1, 1}),
                 "cell 1 is both its owner and its neighbour");
  EXPECT_REFUSED(solver.factor(view(good)), "factor comes after analyse");
  solver.analyse(m);
  std::vector<double> b(27, 1.0), x(27, 0.0);
  EXPECT_REFUSED(solver.solve(b, x), "solve comes after analyse and factor");

  sparse::Ldu bad = good;
  bad.diagonal.pop_back();
  EXPECT_REFUSED(solver.factor(view(bad)), "diagonal has 26 values where the mesh has 27 cells");
  bad = good;
  bad.upper.pop_back();
  EXPECT_REFUSED(solver.factor(view(bad)), "upper has 53 values where the mesh has 54 internal faces");
  bad = good;
  bad.lower.push_back(0);
  EXPECT_REFUSED(solver.factor(view(bad)), "lower has 55 values where the mesh has 54 internal faces");
  bad = good;
  bad.diagonal[5] = nan;
  EXPECT_REFUSED(solver.factor(view(bad)), "the diagonal holds NaN in cell 5 (counting from 0)");
  bad = good;
  bad.upper[6] = infinity;
  EXPECT_REFUSED(solver.factor(view(bad)), "upper holds infinity in face 6 (counting from 0)");
  bad = good;
  bad.lower[0] = nan;
  EXPECT_REFUSED(solver.factor(view(bad)), "lower holds NaN in face 0 (counting from 0)");
  LduSolver dic(options("cg", "dic", "host", 1));
  dic.analyse(m);
  EXPECT_REFUSED(dic.factor(view(good)), "dic needs a symmetric matrix");

  solver.factor(view(good));
  std::vector<double> few(26, 1.0);
  EXPECT_REFUSED(solver.solve(few, x), "the right-hand side has 26 entries and the mesh 27 cells");
  EXPECT_REFUSED(solver.solve(b, few), "the initial guess has 26 entries and the mesh 27 cells");
  b[4] = nan;
  EXPECT_REFUSED(solver.solve(b, x), "the right-hand side holds NaN in cell 4 (counting from 0)");
  b[4] = 1;
  EXPECT_EQ(solver.solve(b, x).status, Status::converged);
}

TEST(LduSolver, ZeroIsTheSolutionForZeroAndMeshesMayBeEmpty) {
  const Mesh m = generate_mesh("mesh:box:3x3x3");
  LduSolver solver(options("auto", "auto", "emulated", 1));
  solver.analyse(m);
  solver.factor(view(matrix(m, true)));
  std::vector<double> b(27, 0.0), x(27, 1.0);
  EXPECT_EQ(solver.solve(b, x).status, Status::converged);
  EXPECT_EQ(x, std::vector<double>(27, 0.0));
  for (const Index cells : {0, 1}) {
    solver.analyse(cells, {}, {});
    const std::vector<double> diagonal(std::size_t(cells), 2.0), right(std::size_t(cells), 6.0);
    solver.factor({diagonal, {}, {}});
    std::vector<double> y(std::size_t(cells), 0.0);
    EXPECT_EQ(solver.solve(right, y).status, Status::converged);
    EXPECT_EQ(y, std::vector<double>(std::size_t(cells), 3.0));
  }
}

TEST(LduSolver, AMonitorInterrupts) {
  const Mesh m = generate_mesh("mesh:box:10x10x10");
  LduSolver solver(options("cg", "none", "host", 1));
  solver.analyse(m);
  solver.factor(view(matrix(m, true)));
  const std::vector<double> b = test::random_values(1000, 3);
  std::vector<double> x(1000, 0.0);
  Monitor monitor;
  monitor.interrupt();
  EXPECT_EQ(solver.solve(b, x, &monitor).status, Status::interrupted);
}

}  // namespace
}  // namespace krilu
