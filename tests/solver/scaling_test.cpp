// SPDX-License-Identifier: Apache-2.0
// The options that the ladder is made of, by their names: systems that are scaled and whose rows are paired with
// columns (--scaling), and a sparse LU (--precond lu); held against the true residual and against one another.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "solver/moved.hpp"
#include "solver/sparse_lu.hpp"
#include "support/refusal.hpp"
#include "support/solved.hpp"
#include "support/support.hpp"

namespace {

using namespace krilu;
using test::disordered;
using test::expect_words;
using test::from_dense;
using test::moved;
using test::natural_order;
using test::ones;
using test::random_powers;
using test::refusal;
using test::shuffled_order;
using test::solved;
using test::Solved;

TEST(Scaling, AWholeFactorisationInAnyFormIsTheInverse) {
  const CsrMatrix a = disordered(3);
  const CsrMatrix dominant = generate("gen:convdiff2d:12x12");
  for (const char* device : {"host", "emulated"})
    for (const char* ordering : {"natural", "rcm", "metis:4"}) {
      SCOPED_TRACE(std::string(device) + " " + ordering);
      Options o{
          .solver = "gmres", .precond = "ilut:900,0", .ordering = ordering, .scaling = "matching", .device = device};
      const Result r = solved(a, ones(a), o).r;
      EXPECT_EQ(r.status, Status::converged);
      EXPECT_LE(r.iterations, 3);
      for (const char* scaling : {"none", "rows", "both"}) {
        o.scaling = scaling;
        const Result full = solved(dominant, ones(dominant), o).r;
        EXPECT_EQ(full.status, Status::converged);
        EXPECT_LE(full.iterations, 2) << scaling;
        EXPECT_LE(full.relative_residual, 1e-12);
      }
    }
}

TEST(Scaling, PowersOfTwoOnRowsAndColumnsAreUndone) {
  // With a scaling that finds them again, the preconditioner is that of the system as it was: iterations do not grow.
  const CsrMatrix a = generate("gen:convdiff2d:20x20");
  const auto column = random_powers(std::size_t(a.rows), 20, 8);
  const std::vector<double> none(std::size_t(a.rows), 1.0);
  const auto same = natural_order(a.rows);
  const CsrMatrix scaled = moved(a, same, same, none, column);
  const auto b = test::random_values(std::size_t(a.rows), 4);
  const Options o{.solver = "gmres", .precond = "ilut:5,0.05", .scaling = "matching"};
  const Solved plain = solved(a, b, o), other = solved(scaled, b, o);
  EXPECT_EQ(other.r.status, Status::converged);
  EXPECT_NEAR(plain.r.iterations, other.r.iterations, 1);
  for (std::size_t i = 0; i < b.size(); ++i) EXPECT_NEAR(other.x[i] * column[i], plain.x[i], 1e-6);
}

TEST(Scaling, TheOrderingIsThatOfTheElimination) {
  // Natural order fills a matrix whose rows were shuffled; RCM finds its band again.
  const CsrMatrix a = generate("gen:convdiff2d:30x30");
  const auto p = shuffled_order(a.rows, 3);
  const std::vector<double> none(std::size_t(a.rows), 1.0);
  const CsrMatrix m = moved(a, p, p, none, none);
  const auto iterations = [&](const char* ordering) {
    return solved(m, ones(m), {.solver = "gmres", .precond = "ilut:10,0.001", .ordering = ordering}).r.iterations;
  };
  EXPECT_LT(iterations("rcm"), iterations("natural"));
}

TEST(Scaling, RefusesWhatItCannotDo) {
  const auto sentence = [](Options o) { return refusal([&] { const Solver refused(std::move(o)); }); };
  expect_words(sentence({.scaling = "matchign"}), {"unknown scaling 'matchign'", "did you mean 'matching'?"});
  expect_words(sentence({.precond = "dilu", .scaling = "rows"}), {"scaling rows", "ilu0, iluk, ilut"});
  expect_words(sentence({.precond = "ilu0", .scaling = "both", .device = "cuda"}), {"scaling both", "--device host"});
  expect_words(sentence({.precond = "lu", .device = "cuda:0"}), {"precond lu", "--device host"});
  expect_words(sentence({.solver = "gmres-ir", .precond = "ilu0", .scaling = "both"}), {"double precision"});
  expect_words(sentence({.precond = "lu", .precision = "fp32"}), {"precond lu", "double precision"});
  // A pattern alone has nothing to pair.
  const CsrMatrix a = generate("gen:poisson2d:4x4");
  CsrView pattern = a;
  pattern.values = nullptr;
  expect_words(refusal([&] {
                 Solver s({.solver = "gmres", .precond = "ilu0", .scaling = "matching"});
                 s.analyse(pattern);
               }),
               {"scaling matching", "values"});
  const CsrMatrix singular = from_dense({{1, 0, 0}, {2, 0, 0}, {0, 1, 1}});
  try {
    Solver s({.solver = "gmres", .precond = "ilu0", .scaling = "matching"});
    s.setup(singular);
    FAIL();
  } catch (const StructurallySingular& e) {
    expect_words(e.what(), {"structurally singular", "1 row"});
  }
}

TEST(Lu, SolvesInAStepAndSaysWhatItCannot) {
  if (solver::SparseLu::name().empty()) GTEST_SKIP() << "krilu was built without SuperLU";
  const CsrMatrix a = disordered(1);
  for (const char* device : {"host", "emulated"}) {
    Solver solver({.precond = "lu", .device = device});
    solver.setup(a);
    std::vector<double> x(std::size_t(a.rows), 0.0);
    const Result r = solver.solve(ones(a), x);
    EXPECT_EQ(r.status, Status::converged);
    EXPECT_LE(r.iterations, 2);
    EXPECT_EQ(r.solver, "gmres");
    EXPECT_EQ(r.precond, "lu");
    EXPECT_LE(test::true_residual(a, x, ones(a)), 1e-8);
    CsrMatrix twice = a;
    for (double& v : twice.values) v *= 2;
    solver.factor(twice);
    const Result again = solver.solve(ones(a), x);
    EXPECT_EQ(again.status, Status::converged);
    EXPECT_LE(again.iterations, 3);
  }
  Options sums_of_magnitudes{.precond = "lu"};
  sums_of_magnitudes.norm = Norm::openfoam;  // which GMRES has not
  const Solved s = solved(a, ones(a), sums_of_magnitudes);
  EXPECT_EQ(s.r.status, Status::converged);
  EXPECT_EQ(s.r.solver, "bicgstab");
  const CsrMatrix singular = from_dense({{1, 2}, {2, 4}});
  Solver solver({.precond = "lu"});
  solver.analyse(singular);
  expect_words(refusal([&] { solver.factor(singular); }), {"lu", "singular"});
}

}  // namespace
