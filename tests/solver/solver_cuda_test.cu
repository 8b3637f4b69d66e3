// SPDX-License-Identifier: Apache-2.0
// The public Solver on a GPU against itself on the host: every combination of its names on small systems (status, true
// residual, iterations, solution), the strategies on a larger one, values that change, systems of one row and of none,
// the same bits over a thousand solves, and an interrupt from another thread.
#include <atomic>
#include <chrono>
#include <thread>

#include "krilu/solver.hpp"
#include "solver/solved_on.hpp"
#include "support/blocks.hpp"
#include "support/sliced_matrix.cuh"
#include "support/solved.hpp"

namespace krilu::test {
namespace {

const std::vector<std::string> orderings{"natural", "rcm", "multicolour", "metis:5", "block-multicolour"};

/// Both converge, in about as many iterations, to the same solution. The host's answer.
void expect_host_answer(const CsrMatrix& a, const std::vector<double>& b, const Options& o) {
  const Solved gpu = solved_on("cuda", a, b, o), host = solved_on("host", a, b, o);
  ASSERT_EQ(host.r.status, Status::converged);
  ASSERT_EQ(gpu.r.status, Status::converged);
  EXPECT_TRUE(gpu.r.device.starts_with("cuda:0 (")) << gpu.r.device;
  EXPECT_LE(true_residual(a, gpu.x, b), o.rtol * (1 + 1e-6));
  EXPECT_NEAR(gpu.r.relative_residual, true_residual(a, gpu.x, b), 1e-3 * o.rtol);
  EXPECT_NEAR(gpu.r.iterations, host.r.iterations, std::max(3.0, 0.15 * host.r.iterations));
  EXPECT_LT(difference(gpu.x, host.x), 1e4 * o.rtol);
  EXPECT_EQ(gpu.r.solver, host.r.solver);
  EXPECT_EQ(gpu.r.precond, host.r.precond);
  // A GPU uses no ordering where no sweep depends on it, and says so.
  const bool sweeps = gpu.r.precond != "none" && gpu.r.precond != "jacobi";
  EXPECT_EQ(gpu.r.ordering, sweeps ? host.r.ordering : "natural");
}

class GpuSolverSmall : public ::testing::TestWithParam<std::string> {};

TEST_P(GpuSolverSmall, MatchesTheHostWithEveryPreconditionerAndOrdering) {
  KRILU_REQUIRE_GPU();
  const std::string method = GetParam();
  // Few iterations: rounding moves BiCGStab's count the more the longer it runs.
  const CsrMatrix symmetric = generate("gen:poisson3d:10x9x8"), general = generate("gen:convdiff3d:10x9x8");
  const std::vector<double> b = random_values(720, 801);
  for (const std::string precond : {"none", "jacobi", "dilu", "dic", "ilu0", "ic0"})
    for (const std::string& ordering : orderings) {
      SCOPED_TRACE(method + " " + precond + " " + ordering);
      const bool needs_symmetry = method == "cg" || precond == "dic" || precond == "ic0";
      Options o;
      o.solver = method;
      o.precond = precond;
      o.ordering = ordering;
      expect_host_answer(needs_symmetry ? symmetric : general, b, o);
    }
}

TEST_P(GpuSolverSmall, OneRowAndNone) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix one = from_dense({{-4}}), none = from_rows({});
  for (const std::string precond : {"none", "jacobi", "dilu", "dic", "ilu0", "ic0"})
    for (const std::string& ordering : orderings) {
      SCOPED_TRACE(GetParam() + " " + precond + " " + ordering);
      Options o;
      o.solver = GetParam();
      o.precond = precond;
      o.ordering = ordering;
      const Solved of_one = solved_on("cuda", one, {2}, o), of_none = solved_on("cuda", none, {}, o);
      EXPECT_EQ(of_one.r.status, Status::converged);
      EXPECT_EQ(of_one.r.iterations, 1);
      EXPECT_EQ(of_one.x, std::vector<double>{-0.5});
      EXPECT_EQ(of_none.r.status, Status::converged);
      EXPECT_EQ(of_none.r.iterations, 0);
      EXPECT_EQ(of_none.r.rmse, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Methods, GpuSolverSmall, ::testing::Values("cg", "bicgstab", "gmres", "fgmres"),
                         [](const auto& test) { return test.param; });

TEST(GpuSolver, PatternsWithoutSymmetryInTheCallersRows) {
  KRILU_REQUIRE_GPU();
  for (const GpuCase& c : {GpuCase{"random, seed 802",
                                   random_matrix({.rows = 900, .per_row = 4, .symmetric_pattern = false, .seed = 802})},
                           GpuCase{"long rows, seed 803", with_long_rows(1000, {40, 100, 300, 700}, false, 803)},
                           GpuCase{"chain", chain(500)}})
    for (const std::string method : {"bicgstab", "gmres"})
      for (const std::string precond : {"none", "jacobi", "dilu", "ilu0"})
        for (const std::string& ordering : orderings) {
          if (precond == "none" && c.name.starts_with("long")) continue;  // 300 iterations, more or less
          SCOPED_TRACE(c.name + ", " + method + " " + precond + " " + ordering);
          Options o;
          o.solver = method;
          o.precond = precond;
          o.ordering = ordering;
          expect_host_answer(c.a, random_values(std::size_t(c.a.rows), 804), o);
        }
}

TEST(GpuSolver, StrategiesGiveTheSameBitsAndMatchTheHost) {
  KRILU_REQUIRE_GPU();
  for (const std::string system : {"gen:convdiff2d:150x120", "gen:convdiff3d:30x29x28"}) {
    const CsrMatrix a = generate(system);
    const std::vector<double> b = random_values(std::size_t(a.rows), 805);
    for (const std::string precond : {"dilu", "ilu0"})
      for (const std::string& ordering : orderings) {
        Options o;
        o.solver = "bicgstab";
        o.precond = precond;
        o.ordering = ordering;
        SCOPED_TRACE(system + " " + precond + " " + ordering);
        expect_host_answer(a, b, o);
        std::vector<double> first;
        for (const std::string triangular : {"level-set", "sync-free", "tiled", "auto"}) {
          o.triangular = triangular;
          const Solved s = solved_on("cuda", a, b, o);
          if (first.empty()) first = s.r.history;
          EXPECT_EQ(s.r.history, first) << triangular;
          if (ordering == "block-multicolour") continue;  // which has one way to run
          if (triangular != "auto") {
            EXPECT_EQ(s.r.triangular, triangular);
          } else {
            EXPECT_TRUE(std::any_of(s.r.notes.begin(), s.r.notes.end(), [](const std::string& note) {
              return note.starts_with("triangular auto: ") && note.find("tiled ") != std::string::npos;
            }));
          }
        }
      }
  }
}

TEST(GpuSolver, OpenFoamsNormIsTheHosts) {
  KRILU_REQUIRE_GPU();
  for (const std::string method : {"cg", "bicgstab"}) {
    const CsrMatrix a = generate("gen:poisson3d:12x11x10");
    const std::vector<double> b = random_values(std::size_t(a.rows), 806);
    Options o;
    o.solver = method;
    o.precond = method == "cg" ? "dic" : "dilu";
    o.ordering = "natural";
    o.norm = Norm::openfoam;
    o.rtol = 1e-6;
    const Solved gpu = solved_on("cuda", a, b, o), host = solved_on("host", a, b, o);
    EXPECT_EQ(gpu.r.status, Status::converged);
    EXPECT_NEAR(gpu.r.iterations, host.r.iterations, 2);
    EXPECT_NEAR(gpu.r.initial_residual, host.r.initial_residual, 1e-12 * host.r.initial_residual);
    for (std::size_t k = 0; k < std::min<std::size_t>(10, host.r.history.size()); ++k)
      EXPECT_NEAR(gpu.r.history[k], host.r.history[k], 1e-8 * host.r.history[0]) << k;
  }
}

// --- values over time ----------------------------------------------------------------------------------------------

TEST(GpuSolver, ValuesChangeWithoutANewAnalysis) {
  KRILU_REQUIRE_GPU();
  for (const std::string precond : {"none", "jacobi", "dilu", "ilu0"})
    for (const std::string ordering : {"natural", "block-multicolour"}) {
      SCOPED_TRACE(precond + " " + ordering);
      CsrMatrix a = generate("gen:convdiff2d:31x23");
      Options o;
      o.solver = "bicgstab";
      o.precond = precond;
      o.ordering = ordering;
      o.device = "cuda";
      Solver solver(o);
      solver.analyse(a);
      for (int round = 1; round <= 4; ++round) {
        for (Offset k = 0; k < a.nnz(); ++k) a.values[std::size_t(k)] *= 1 + 0.1 * double((k * 7 + round) % 3);
        for (Index i = 0; i < a.rows; ++i)
          for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
            if (a.columns[std::size_t(k)] == i) a.values[std::size_t(k)] *= 1.4;
        solver.factor(a);
        for (int rhs = 0; rhs < 2; ++rhs) {
          const std::vector<double> b = random_values(std::size_t(a.rows), std::uint64_t(10 * round + rhs));
          std::vector<double> x(b.size(), 0.0), y = x;
          const Result r = solver.solve(b, x);
          ASSERT_EQ(r.status, Status::converged);
          EXPECT_LE(true_residual(a, x, b), 1e-8 * (1 + 1e-6));
          Solver anew(o);
          anew.analyse(a);
          anew.factor(a);
          EXPECT_EQ(anew.solve(b, y).history, r.history) << "something is left of the rounds before";
          EXPECT_EQ(y, x);
          EXPECT_EQ(solver.solve(b, x).iterations, 0) << "the guess is not used";
        }
      }
      EXPECT_EQ(solver.counts().analyses, 1);
      EXPECT_EQ(solver.counts().factorisations, 4);
    }
}

// What is kept of the solves before is of another size, whose launches overlap where these do not.
TEST(GpuSolver, SystemsOfAnySizeFollowOneAnother) {
  KRILU_REQUIRE_GPU();
  for (const auto& [method, precond] :
       {std::pair("cg", "jacobi"), std::pair("cg", "dic"), std::pair("bicgstab", "dilu"), std::pair("gmres", "jacobi"),
        std::pair("gmres", "dilu")}) {
    Options o;
    o.solver = method;
    o.precond = precond;
    o.device = "cuda";
    Solver solver(o);
    for (const char* name : {"gen:poisson3d:9x8x7", "gen:poisson3d:64x64x64", "gen:poisson3d:12x11x10"}) {
      SCOPED_TRACE(std::string(name) + " " + method + " " + precond);
      const CsrMatrix a = generate(name);
      const std::vector<double> b = random_values(std::size_t(a.rows), 4);
      std::vector<double> x(b.size(), 0.0), y = x;
      solver.setup(a);
      const Result r = solver.solve(b, x);
      ASSERT_EQ(r.status, Status::converged);
      Solver fresh(o);
      fresh.setup(a);
      EXPECT_EQ(fresh.solve(b, y).history, r.history);
      EXPECT_EQ(x, y);
    }
  }
}

TEST(GpuSolver, SetupIsAnalyseAndFactor) {
  KRILU_REQUIRE_GPU();
  // The second is strongly coupled along z, where blocks that know the values lie.
  for (const CsrMatrix& a : {generate("gen:convdiff3d:12x13x14"), stretched(12, 12, 40, 1, 1, 100)})
    for (const std::string precond : {"auto", "jacobi", "dilu", "ilu0"})
      for (const std::string& ordering : orderings) {
        SCOPED_TRACE(std::to_string(a.rows) + " rows, " + precond + " " + ordering);
        Options o;
        o.solver = precond == "auto" ? "auto" : "bicgstab";
        o.precond = precond;
        o.ordering = ordering;
        o.device = "cuda";
        const std::vector<double> b = random_values(std::size_t(a.rows), 807);
        Solver two(o);
        two.analyse(a);
        two.factor(a);
        std::vector<double> x(b.size(), 0.0);
        const Result r = two.solve(b, x);
        const Solved one = solved_on("cuda", a, b, o);
        EXPECT_EQ(one.r.history, r.history);
        EXPECT_EQ(one.x, x);
      }
}

TEST(GpuSolver, AThousandSolvesGiveTheSameBits) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:convdiff3d:16x16x16");
  const std::vector<double> b = random_values(4096, 808);
  struct Way {
    std::string triangular, ordering;
    int times;
  };
  std::vector<double> natural;
  for (const Way& way : {Way{"sync-free", "natural", 400}, Way{"tiled", "natural", 300}, Way{"auto", "natural", 100},
                         Way{"auto", "block-multicolour", 200}}) {
    Options o;
    o.solver = "bicgstab";
    o.precond = "dilu";
    o.triangular = way.triangular;
    o.ordering = way.ordering;
    o.device = "cuda";
    Solver solver(o);
    solver.setup(a);
    std::vector<double> first;
    for (int k = 0; k < way.times; ++k) {
      std::vector<double> x(b.size(), 0.0);
      ASSERT_EQ(solver.solve(b, x).status, Status::converged);
      if (first.empty()) first = x;
      ASSERT_EQ(bits(x), bits(first)) << way.triangular << ", " << way.ordering << ", solve " << k;
    }
    if (way.ordering != "natural") continue;
    if (natural.empty()) natural = first;
    EXPECT_EQ(bits(first), bits(natural)) << way.triangular;
  }
}

TEST(GpuSolver, GmresGoesOnFromAFalseClaimWithWhatItKnows) {
  KRILU_REQUIRE_GPU();
  // Condition 4e8: the first claim is false, and anew it would take most of its iterations again.
  const CsrMatrix a = generate("gen:femflow2d:16x16");
  const std::vector<double> b(std::size_t(a.rows), 1.0);
  Options o;
  o.solver = "gmres";
  o.precond = "ilu0";
  o.ordering = "natural";
  o.rtol = 1e-11;
  o.restart = 300;
  const Solved host = solved_on("host", a, b, o);
  ASSERT_EQ(host.r.status, Status::converged);
  o.device = "cuda";
  Solver solver(o);
  solver.setup(a);
  const Solved gpu = solved(solver, b), again = solved(solver, b);
  EXPECT_EQ(gpu.r.status, Status::converged);
  ASSERT_FALSE(gpu.r.notes.empty());
  EXPECT_NE(gpu.r.notes.front().find("the true one did not"), std::string::npos) << gpu.r.notes.front();
  EXPECT_LE(true_residual(a, gpu.x, b), 1.001e-11);
  EXPECT_NEAR(gpu.r.iterations, host.r.iterations, 0.15 * host.r.iterations);
  EXPECT_EQ(again.r.iterations, gpu.r.iterations);
  EXPECT_EQ(bits(again.x), bits(gpu.x)) << "a solve uses nothing that one before has learnt";
}

// --- other threads -------------------------------------------------------------------------------------------------

TEST(GpuSolver, IsInterruptedByAnotherThread) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:poisson2d:400x400");
  const std::vector<double> b = random_values(std::size_t(a.rows), 811);
  for (const std::string precond : {"none", "dilu"}) {
    Options o;
    o.solver = "gmres";
    o.precond = precond;
    o.device = "cuda";
    o.restart = 2;  // hundreds of thousands of iterations
    o.rtol = 1e-13;
    o.max_iterations = 2000000;
    Solver solver(o);
    solver.setup(a);
    std::vector<double> x(b.size(), 0.0);
    Monitor monitor;
    std::atomic<bool> over{false};
    std::thread other([&] {
      while (monitor.iteration() < 200 && !over) std::this_thread::yield();
      monitor.interrupt();
    });
    const auto start = std::chrono::steady_clock::now();
    const Result r = solver.solve(b, x, &monitor);
    over = true;
    other.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(r.status, Status::interrupted) << precond;
    EXPECT_GE(r.iterations, 200);
    EXPECT_LT(r.iterations, 1000000);
    EXPECT_LT(took.count(), 20);
    EXPECT_EQ(monitor.iteration(), r.iterations);
    EXPECT_EQ(Index(r.history.size()), r.iterations + 1);
    EXPECT_LT(r.relative_residual, 1);
    EXPECT_NEAR(true_residual(a, x, b), r.relative_residual, 1e-9);
    // The solver is as good as before.
    std::fill(x.begin(), x.end(), 0.0);
    Monitor at_once;
    at_once.interrupt();
    EXPECT_EQ(solver.solve(b, x, &at_once).status, Status::interrupted);
  }
}

TEST(GpuSolver, CostsAreTimedAndDisturbNothing) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:convdiff3d:24x24x24");
  const std::vector<double> b = random_values(std::size_t(a.rows), 815);
  for (const std::string precond : {"none", "dilu", "block-ilu:16", "block-ilu:16,ilut:7,0.01", "ras:16,1"})
    for (const std::string ordering : {"natural", "auto"}) {
      SCOPED_TRACE(precond + " " + ordering);
      Options o;
      o.solver = "gmres";
      o.precond = precond;
      o.ordering = ordering;
      o.device = "cuda";
      Solver solver(o);
      solver.setup(a);
      const Costs c = solver.costs();  // before any solve: sweeps are chosen here
      EXPECT_GT(c.product, 0);
      EXPECT_GT(c.application, 0);
      std::vector<double> x(b.size(), 0.0), y(b.size(), 0.0);
      const Result first = solver.solve(b, x);
      EXPECT_EQ(first.status, Status::converged);
      solver.costs();
      EXPECT_EQ(solver.solve(b, y).history, first.history);
      EXPECT_EQ(y, x);
    }
}

TEST(GpuSolver, TwoSolversTakeTurns) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:convdiff2d:50x40"), c = generate("gen:convdiff3d:12x12x12");
  const std::vector<double> b = random_values(2000, 812), d = random_values(1728, 813);
  Options o;
  o.device = "cuda";
  o.ordering = "natural";
  Solver first(o), second(o);
  first.setup(a);
  second.setup(c);
  const Solved alone = solved_on("cuda", a, b, o), other = solved_on("cuda", c, d, o);
  for (int round = 0; round < 10; ++round) {
    std::vector<double> x(2000, 0.0), y(1728, 0.0);
    first.solve(b, x);
    second.solve(d, y);
    ASSERT_EQ(x, alone.x) << "round " << round;
    ASSERT_EQ(y, other.x) << "round " << round;
  }
}

TEST(GpuSolver, PartsOfDifferentSizesStandBesideOneAnother) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix large = generate("gen:convdiff2d:400x400"), small = generate("gen:convdiff2d:100x60");
  Options o;
  o.device = "cuda";
  o.solver = "bicgstab";
  o.precond = "block-ilu:16";  // 10,000 rows a part: more shared memory than what comes after
  Solver first(o);
  first.setup(large);
  o.precond = "ras";
  Solver second(o);
  second.setup(small);
  const std::vector<double> b = random_values(std::size_t(large.rows), 814), d = random_values(6000, 815);
  for (int round = 0; round < 2; ++round) {
    std::vector<double> x(b.size(), 0.0), y(d.size(), 0.0);
    const Result r = first.solve(b, x);
    EXPECT_EQ(r.status, Status::converged);
    EXPECT_EQ(r.triangular, "parts");
    EXPECT_EQ(second.solve(d, y).status, Status::converged);
  }
}

}  // namespace
}  // namespace krilu::test
