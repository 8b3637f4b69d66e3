// SPDX-License-Identifier: Apache-2.0
// Mixed precision as a caller meets it, on the host and on the emulated device: every method with every preconditioner
// in every precision; what storage in fewer bits costs and what is lost in it; and that precision is raised where the
// low one does not do, so that nothing is lost that double solves.
#include "refinement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "exec/simd.hpp"
#include "krilu/io.hpp"

namespace krilu::test::refinement {
namespace {

// --- every combination ---------------------------------------------------------------------------------------------

/// What may stand together on an unsymmetric matrix, or on a symmetric one.
Pairs combinations(bool symmetric) {
  Pairs all;
  if (symmetric) {
    for (const char* p : {"none", "jacobi", "dilu", "dic", "ilu0", "ic0", "iluk:1", "block-ilu:4"})
      all.push_back({"cg", p});
    for (const char* s : {"gmres-ir", "gmres", "bicgstab", "fgmres"})
      for (const char* p : {"dic", "ic0"}) all.push_back({s, p});
  } else {
    for (const char* s : {"gmres-ir", "gmres", "bicgstab", "fgmres"})
      for (const char* p : {"none", "jacobi", "dilu", "ilu0", "iluk:1", "ilut:10,0.001", "block-ilu:4", "ras:4,1"})
        all.push_back({s, p});
  }
  return all;
}

TEST(Combinations, ConvergeInEveryPrecision) {
  for (const bool symmetric : {false, true}) {
    const CsrMatrix a = generate(symmetric ? "gen:poisson2d:30x30" : "gen:convdiff2d:30x30");
    const auto b = random_values(900, 13);
    for (const auto& [solver, precond] : combinations(symmetric))
      for (const Case& c : cases) {
        const Options o = options(solver, precond, c, 1e-10);
        SCOPED_TRACE(words(o));
        const Solved s = judged(a, b, o);
        ASSERT_STREQ(to_string(s.r.status), "converged");
        EXPECT_EQ(s.r.solver, solver);
        EXPECT_EQ(s.r.precond, precond);
        EXPECT_EQ(s.r.device, c.device);
        // One solve in single precision reduces no residual by ten digits.
        if (solver != "fgmres") {
          EXPECT_GE(s.r.outer_iterations, 2);
        }
        // Every storage holds Poisson's entries as they are, and single precision is enough for the other.
        if (solver == "gmres-ir" && (c.precision == "fp32" || symmetric)) {
          EXPECT_EQ(s.r.precision, c.precision);
          EXPECT_FALSE(raised(s.r));
        }
      }
  }
}

TEST(Combinations, InThreeDimensions) {
  const CsrMatrix a = generate("gen:convdiff3d:16x16x16");
  const auto b = random_values(4096, 14);
  for (const char* solver : {"gmres-ir", "bicgstab"})
    for (const Case& c : cases) {
      const Options o = options(solver, "dilu", c, 1e-10);
      SCOPED_TRACE(words(o));
      EXPECT_STREQ(to_string(judged(a, b, o).r.status), "converged");
    }
}

TEST(Combinations, AutoIsSingleForRefinementAndDoubleForTheOthers) {
  const CsrMatrix a = generate("gen:convdiff2d:30x30");
  const auto b = random_values(900, 13);
  for (const std::string& device : devices)
    for (const char* solver : {"gmres-ir", "gmres", "bicgstab", "fgmres", "auto"}) {
      Options o = options(solver, "auto", {"auto", device}, 1e-10);
      SCOPED_TRACE(words(o));
      const Solved s = judged(a, b, o);
      EXPECT_STREQ(to_string(s.r.status), "converged");
      const bool refined = std::string(solver) == "gmres-ir";
      o.precision = refined ? "fp32" : "fp64";
      EXPECT_EQ(s.r.precision, o.precision);
      EXPECT_EQ(s.x, judged(a, b, o).x);
      if (refined) {
        EXPECT_GE(s.r.outer_iterations, 2);
      } else {
        EXPECT_EQ(s.r.outer_iterations, 0);
        EXPECT_EQ(s.r.values_lost, 0);
      }
    }
}

TEST(Combinations, RefinementInDoubleConvergesToo) {
  const CsrMatrix a = generate("gen:convdiff2d:30x30");
  const auto b = random_values(900, 13);
  for (const std::string& device : devices) {
    const Options o = options("gmres-ir", "auto", {"fp64", device}, 1e-12);
    const Solved s = judged(a, b, o);
    EXPECT_STREQ(to_string(s.r.status), "converged");
    EXPECT_EQ(s.r.precision, "fp64");
    EXPECT_FALSE(raised(s.r));
    EXPECT_EQ(s.r.values_lost, 0);
  }
}

TEST(Combinations, EveryBasisServes) {
  const CsrMatrix a = generate("gen:convdiff2d:30x30");
  const auto b = random_values(900, 13);
  for (const char* basis : {"auto", "fp64", "fp32", "fp16", "bf16"})
    for (const Case& c : cases) {
      Options o = options("gmres-ir", "ilu0", c, 1e-10);
      o.basis = basis;
      SCOPED_TRACE(words(o) + ", basis " + basis);
      EXPECT_STREQ(to_string(judged(a, b, o).r.status), "converged");
    }
}

TEST(Combinations, AutoTakesABasisOf16BitsWhereItIsLargeAndReadByTheCore) {
  for (const char* system : {"gen:poisson2d:500x500", "gen:poisson2d:500x499"})
    for (const char* precision : {"fp32", "fp64"})
      for (const char* basis : {"auto", "fp32"}) {
        Options o = options("gmres", "jacobi", {precision, "host"}, 1e-10);
        o.basis = basis;
        Solver solver(o);
        solver.setup(generate(system));
        bool is_16_bits = false;
        for (const std::string& line : solver.explanation()) is_16_bits |= line.starts_with("basis fp16: ");
        EXPECT_EQ(is_16_bits, exec::reads_half && std::string(system).ends_with("x500") &&
                                  std::string(precision) == "fp32" && std::string(basis) == "auto")
            << words(o) << ", " << system << ", basis " << basis;
      }
}

// The first go claims 2.7 digits and has 1.5: iterations enough to pay for a basis that would keep them.
TEST(Combinations, ABasisOf16BitsThatKeepsTooLittleIsRaised) {
  const CsrMatrix a = generate("gen:aniso3d:24x24x24");
  const std::vector<double> b(std::size_t(a.rows), 1.0);
  for (const char* basis : {"fp16", "fp32"}) {
    Options o = options("gmres", "ilu0", {"fp32", "host"}, 1e-10);
    o.basis = basis;
    o.restart = 50;
    SCOPED_TRACE(basis);
    const Solved s = judged(a, b, o);
    EXPECT_STREQ(to_string(s.r.status), "converged");
    EXPECT_EQ(s.r.precision, "fp32");
    EXPECT_EQ(raised(s.r), std::string(basis) == "fp16");
    if (raised(s.r)) {
      EXPECT_NE(s.r.notes[0].find("from fp32 with its basis in fp16 to fp32 after"), std::string::npos) << s.r.notes[0];
      EXPECT_NE(s.r.notes[0].find("its residual is not the true one"), std::string::npos) << s.r.notes[0];
    }
  }
}

// --- what is done in low precision ---------------------------------------------------------------------------------

TEST(Storage, OfFewerBitsTakesMoreOuterSteps) {
  // Inner solves to 1e-6: two or three such steps are enough where the matrix is stored in single precision; where its
  // entries are off by u, a step gains a factor of 1 / (cond u) at most.
  const CsrMatrix a = random_matrix({.rows = 300, .per_row = 5, .dominance = 1.2, .seed = 41});
  const auto b = random_values(300, 15);
  for (const std::string& device : devices)
    for (const auto& [solver, precond] :
         Pairs{{"gmres-ir", "jacobi"}, {"gmres", "dilu"}, {"gmres", "jacobi"}, {"bicgstab", "jacobi"}}) {
      std::vector<int> steps;
      for (const std::string& precision : low_precisions) {
        Options o = options(solver, precond, {precision, device}, 1e-11);
        o.inner_tolerance = 1e-6;
        o.outer_iterations = 30;
        SCOPED_TRACE(words(o));
        const Solved s = judged(a, b, o);
        EXPECT_STREQ(to_string(s.r.status), "converged");
        EXPECT_EQ(s.r.precision, precision);
        steps.push_back(s.r.outer_iterations);
      }
      EXPECT_LE(steps[0], 3) << solver;
      EXPECT_GT(steps[1], steps[0]) << solver << ": fp16 keeps 11 bits";
      // Of GMRES bf16 has Jacobi in its matrix, which fp16 has not.
      const bool alike = solver != "gmres" || precond != "jacobi";
      EXPECT_GT(steps[2], steps[alike ? 1 : 0]) << solver << ": bf16 keeps 8 bits";
    }
}

// Ten digits are three steps in single precision, and two where a system is so well conditioned that each takes few
// iterations. Not where a tolerance of inner solves was asked for.
TEST(OuterSteps, AreFewerWhereEachTakesFewIterations) {
  const auto steps = [](const std::string& text, double inner_tolerance, const std::string& device) {
    const CsrMatrix a = generate(text);
    const std::vector<double> b(std::size_t(a.rows), 1.0);
    Options o = options("gmres-ir", "ilu0", {"fp32", device}, 1e-10);
    o.inner_tolerance = inner_tolerance;
    const Solved s = judged(a, b, o);
    EXPECT_STREQ(to_string(s.r.status), "converged");
    EXPECT_EQ(s.r.precision, "fp32");
    return s.r.outer_iterations;
  };
  for (const std::string& device : devices) {
    SCOPED_TRACE(device);
    EXPECT_EQ(steps("gen:poisson2d:12x11", 0, device), 2) << "eighteen iterations";
    EXPECT_EQ(steps("gen:poisson2d:12x11", 1e-5, device), 3);
    EXPECT_EQ(steps("gen:poisson2d:30x30", 0, device), 3) << "thirty-eight";
  }
}

// The first is short on the host where digits are slow to come, unless steps are few or their length was named.
TEST(OuterSteps, BeginShortOnTheHostAndTakeFewerIterations) {
  const CsrMatrix a = generate("gen:poisson2d:40x40");
  const std::vector<double> b(std::size_t(a.rows), 1.0);
  const auto solved = [&](const char* device, int outer, double inner_tolerance) {
    Options o = options("gmres-ir", "jacobi", {"fp32", device}, 1e-10);
    o.outer_iterations = outer;
    o.inner_tolerance = inner_tolerance;
    SCOPED_TRACE(words(o));
    const Solved s = judged(a, b, o);
    EXPECT_STREQ(to_string(s.r.status), "converged");
    return std::pair(s.r.outer_iterations, s.r.iterations);
  };
  const auto on_host = solved("host", 0, 0), elsewhere = solved("emulated", 0, 0);
  EXPECT_EQ(on_host.first, elsewhere.first + 1);
  EXPECT_LT(on_host.second, elsewhere.second);
  EXPECT_EQ(solved("host", 6, 0), on_host);
  EXPECT_EQ(solved("host", 5, 0), elsewhere);
  EXPECT_EQ(solved("host", 0, 1e-4).first, solved("emulated", 0, 1e-4).first);
}

TEST(Storage, FactorsInLowPrecisionServeFgmresAlmostAsWell) {
  const CsrMatrix a = generate("gen:convdiff2d:30x30");
  const auto b = random_values(900, 13);
  for (const std::string& device : devices)
    for (const char* precond : {"dilu", "ilu0", "iluk:1"}) {
      Options o = options("fgmres", precond, {"fp64", device}, 1e-12);
      const Solved in_double = judged(a, b, o);
      for (const std::string& precision : low_precisions) {
        o.precision = precision;
        SCOPED_TRACE(words(o));
        const Solved s = judged(a, b, o);
        EXPECT_STREQ(to_string(s.r.status), "converged");
        EXPECT_NE(s.r.precision, "fp64");
        EXPECT_FALSE(raised(s.r));
        EXPECT_LE(s.r.iterations, in_double.r.iterations + in_double.r.iterations / 2 + 2);
        EXPECT_NE(s.r.history, in_double.r.history) << "nothing was rounded";
      }
    }
}

TEST(Storage, EntriesThatBecomeZeroAreCounted) {
  // The diagonal and the first neighbours are of size 1, the fourth neighbours 1e-20: nothing in fp16, and an ordinary
  // number in fp32 and bf16. An entry that is zero from the beginning is not lost.
  const Index n = 50;
  Dense d(std::size_t(n), std::vector<double>(std::size_t(n), 0.0));
  std::int64_t tiny = 0;
  for (Index i = 0; i < n; ++i) {
    const auto at = [&](Index j) -> double& { return d[std::size_t(i)][std::size_t(j)]; };
    at(i) = 4;
    if (i > 0) at(i - 1) = -1.25;
    if (i + 1 < n) at(i + 1) = -1;
    if (i + 4 < n) {
      at(i + 4) = 1e-20 * (1 + i % 3);
      ++tiny;
    }
    if (i >= 8) at(i - 8) = 9;
  }
  CsrMatrix a = from_dense(d);
  for (double& v : a.values)
    if (v == 9) v = 0;
  const auto b = random_values(std::size_t(n), 16);
  for (const char* solver : {"gmres-ir", "bicgstab"})
    for (const Case& c : cases) {
      Options o = options(solver, "none", c, 1e-10);
      SCOPED_TRACE(words(o));
      const bool fp16 = c.precision == "fp32/fp16";
      Solver s(o);
      s.analyse(a);
      for (int round = 0; round < 2; ++round) {  // counted anew with every factorisation
        s.factor(a);
        std::vector<double> x(std::size_t(n), 0.0);
        const Result r = s.solve(b, x);
        EXPECT_STREQ(to_string(r.status), "converged");
        EXPECT_EQ(r.values_lost, fp16 ? tiny : 0);
      }
      o.precond = "ilu0";
      const Result r = judged(a, b, o).r;
      EXPECT_STREQ(to_string(r.status), "converged");
      if (fp16)
        EXPECT_GE(r.values_lost, tiny);
      else
        EXPECT_EQ(r.values_lost, 0);
    }
}

// --- raising -------------------------------------------------------------------------------------------------------

TEST(Raising, SolvesWhatLowPrecisionCannot) {
  const CsrMatrix a = with_condition(60, 1e12, false, 7);
  const auto b = product(a, random_values(60, 4));
  for (const char* solver : {"gmres-ir", "gmres"})
    for (const Case& c : cases) {
      Options o = options("gmres", "none", {"fp64", c.device}, 1e-10);
      o.restart = 80;
      ASSERT_STREQ(to_string(judged(a, b, o).r.status), "converged") << "in double";
      o.solver = solver;
      o.precision = c.precision;
      SCOPED_TRACE(words(o));
      const Solved s = judged(a, b, o);
      EXPECT_STREQ(to_string(s.r.status), "converged");
      EXPECT_TRUE(raised(s.r));
      EXPECT_NE(s.r.precision, c.precision);
      EXPECT_GT(s.r.outer_iterations, 0);
    }
}

TEST(Raising, LosesNothingThatDoubleSolves) {
  // Rows of unlike scale without a preconditioner, conditions that no storage of 16 bits follows, entries that cancel.
  const CsrMatrix m_matrix = generate("gen:convdiff2d:10x10");
  CsrMatrix shifted = generate("gen:poisson2d:8x8");  // indefinite
  for (std::size_t i = 0; i < 64; ++i)
    for (auto k = std::size_t(shifted.offsets[i]); k < std::size_t(shifted.offsets[i + 1]); ++k)
      if (shifted.columns[k] == Index(i)) shifted.values[k] = 2.5;
  for (const CsrMatrix& a : {scaled(m_matrix, 3, 0, 11), scaled(m_matrix, 0, 2, 11), shifted,
                             with_condition(60, 1e8, false, 3), with_condition(60, 1e5, true, 5)}) {
    const auto b = product(a, random_values(std::size_t(a.rows), 4));
    for (const Case& c : cases) {
      Options o = options("gmres", "none", {"fp64", c.device}, 1e-10);
      o.restart = 120;
      ASSERT_STREQ(to_string(judged(a, b, o).r.status), "converged") << "in double";
      o.precision = c.precision;
      for (const char* solver : {"gmres-ir", "gmres", "fgmres"}) {
        o.solver = solver;
        SCOPED_TRACE(words(o));
        EXPECT_STREQ(to_string(judged(a, b, o).r.status), "converged");
      }
    }
  }
}

TEST(Raising, StopsAtFactorsInSinglePrecisionWhereTheyDo) {
  // Condition above 1e8. GMRES in double is flexible with rounded factors, and takes no more iterations for them.
  const CsrMatrix a = generate("gen:femflow2d:8x8");
  const std::vector<double> b(std::size_t(a.rows), 1.0);
  for (const std::string& device : devices) {
    Options o = options("gmres", "ilu0", {"fp64", device}, 1e-11);
    o.restart = 300;
    SCOPED_TRACE(device);
    const Solved in_double = judged(a, b, o);
    ASSERT_STREQ(to_string(in_double.r.status), "converged");
    o.solver = "gmres-ir";
    o.precision = "fp32";
    const Solved mixed = judged(a, b, o);
    EXPECT_STREQ(to_string(mixed.r.status), "converged");
    EXPECT_EQ(mixed.r.precision, "fp64 with its preconditioner in fp32");
    EXPECT_LE(mixed.r.iterations, 50 + 1.1 * in_double.r.iterations) << "what failed was seen after 50";
  }
}

TEST(Raising, LooksAgainWhereLittleWasGained) {
  const CsrMatrix a = generate("gen:femflow2d:24x24");
  Options o = options("gmres-ir", "ilu0", {"fp32", "host"}, 1e-11);
  o.restart = 300;
  const Solved s = judged(a, std::vector<double>(std::size_t(a.rows), 1.0), o);
  EXPECT_STREQ(to_string(s.r.status), "converged");
  ASSERT_TRUE(raised(s.r));
  EXPECT_NE(s.r.notes.front().find("after 100 iterations"), std::string::npos) << s.r.notes.front();
}

TEST(Raising, IsNotDoneWithoutNeed) {
  const CsrMatrix a = generate("gen:poisson2d:20x20");
  const auto b = random_values(400, 17);
  for (const char* solver : {"gmres-ir", "cg", "bicgstab", "gmres"})
    for (const Case& c : cases) {
      const Options o = options(solver, "dic", c, 1e-8);
      SCOPED_TRACE(words(o));
      const Solved s = judged(a, b, o);
      EXPECT_STREQ(to_string(s.r.status), "converged");
      EXPECT_EQ(s.r.precision, c.precision);
      EXPECT_FALSE(raised(s.r));
    }
}

TEST(Raising, AfterAnOuterLimitEndsHonestly) {
  const CsrMatrix a = generate("gen:convdiff2d:20x20");
  const auto b = random_values(400, 17);
  for (const char* solver : {"gmres-ir", "bicgstab", "gmres"})
    for (const Case& c : cases) {
      Options o = options(solver, "none", c, 1e-10);
      o.inner_iterations = 5;
      o.outer_iterations = 1;
      SCOPED_TRACE(words(o));
      const Solved s = judged(a, b, o);  // which holds status against residual
      EXPECT_TRUE(s.r.status == Status::max_iterations || raised(s.r)) << to_string(s.r.status);
      EXPECT_LT(s.r.relative_residual, 1) << "what was gained is kept";
    }
}

TEST(Raising, EasyAndHardMatricesInTurnAreAllSolved) {
  CsrMatrix hard = with_condition(60, 1e12, false, 7), easy = hard;
  for (std::size_t i = 0; i < 60; ++i) easy.values[61 * i] += 10;
  const auto of_hard = product(hard, random_values(60, 4)), of_easy = random_values(60, 5);
  const auto expected = Elimination(easy).solve(of_easy);
  for (const std::string& device : devices) {
    Options o = options("gmres-ir", "none", {"fp32/fp16", device}, 1e-10);
    o.restart = 80;
    SCOPED_TRACE(words(o));
    Solver solver(o);
    solver.analyse(easy);
    for (int round = 0; round < 2; ++round) {
      solver.factor(easy);
      std::vector<double> x(60, 0.0);
      Result r = solver.solve(of_easy, x);
      EXPECT_STREQ(to_string(r.status), "converged");
      for (std::size_t i = 0; i < 60; ++i) ASSERT_NEAR(x[i], double(expected[i]), 1e-8);
      solver.factor(hard);
      std::fill(x.begin(), x.end(), 0.0);
      r = solver.solve(of_hard, x);
      EXPECT_STREQ(to_string(r.status), "converged");
      EXPECT_LE(true_residual(hard, x, of_hard), 1e-10 * (1 + 1e-3));
    }
  }
}

}  // namespace
}  // namespace krilu::test::refinement
