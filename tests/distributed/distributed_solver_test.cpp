// SPDX-License-Identifier: Apache-2.0
// DistributedSolver against krilu::Solver on the whole matrix: every partition, ranks without rows, parts without
// neighbours, and sizes that no 32-bit number counts.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "distributed/rows.hpp"
#include "krilu/distributed.hpp"
#include "krilu/io.hpp"
#include "support/refusal.hpp"

namespace krilu {
namespace {

using test::difference;
using test::expect_words;
using test::refusal;
using test::rows_of;
using test::Starts;

Options options_of(const char* solver, const char* precond, const char* device = "host") {
  Options o;
  o.solver = solver;
  o.precond = precond;
  o.device = device;
  o.threads = 1;
  return o;
}

struct Together {
  std::vector<Result> results;
  std::vector<std::vector<RankCost>> costs;
};

/// starts: where each rank's rows begin, and the end.
Together solve_together(const CsrMatrix& a, const std::vector<double>& b, std::vector<double>& x, const Starts& starts,
                        const Options& options) {
  const int ranks = int(starts.size()) - 1;
  Together t{std::vector<Result>(std::size_t(ranks), Result{}), {}};
  t.costs.resize(std::size_t(ranks));
  run_ranks(ranks, [&](const std::shared_ptr<Communicator>& c) {
    const auto r = std::size_t(c->rank());
    const auto begin = starts[r], end = starts[r + 1];
    const RowsMatrix rows = rows_of(a, starts, c->rank());
    DistributedSolver solver(options, c);
    solver.setup(rows);
    const auto n = std::size_t(end - begin);
    t.results[r] = solver.solve({b.data() + begin, n}, {x.data() + begin, n});
    t.costs[r] = solver.costs();
  });
  return t;
}

struct Case {
  const char *matrix, *solver, *precision, *device, *precond = "jacobi";
};

class OverRanks : public testing::TestWithParam<Case> {};

TEST_P(OverRanks, AnswersAreThoseOfOneRankToRounding) {
  const Case c = GetParam();
  const CsrMatrix a = generate(c.matrix);
  const auto b = random_vector(std::size_t(a.rows), 5, -1, 1);
  Options options = options_of(c.solver, c.precond, c.device);
  options.precision = c.precision;
  options.rtol = 1e-11;
  std::vector<double> alone(b.size());
  const Result one = solve(a, b, alone, options);
  ASSERT_EQ(one.status, Status::converged);
  const Index n = a.rows;
  const std::vector<Starts> partitions{{0, n},    {0, n / 2, n},        {0, 1, n},
                                       {0, 0, n}, {0, n / 3, n / 3, n}, {0, n / 3, n - 1, n}};
  for (const auto& starts : partitions) {
    std::vector<double> x(b.size());
    const Together t = solve_together(a, b, x, starts, options);
    for (const Result& r : t.results) {
      EXPECT_EQ(r.status, Status::converged);
      EXPECT_EQ(r.history, t.results[0].history);
      // Factors are of each rank's own block.
      if (options.precond == "jacobi") {
        EXPECT_NEAR(r.iterations, one.iterations, 2 + one.iterations / 10);
      }
    }
    EXPECT_LT(difference(x, alone), 1e-8);
    std::int64_t rows = 0, nonzeros = 0;
    for (const RankCost& cost : t.costs[0]) {
      rows += cost.rows;
      nonzeros += cost.nonzeros;
      EXPECT_EQ(cost.device, c.device);
    }
    EXPECT_EQ(rows, a.rows);
    EXPECT_EQ(nonzeros, a.nnz());
  }
}

INSTANTIATE_TEST_SUITE_P(Systems, OverRanks,
                         testing::Values(Case{"gen:convdiff2d:23x19", "bicgstab", "auto", "host"},
                                         Case{"gen:poisson3d:7x8x9", "cg", "auto", "host"},
                                         Case{"gen:convdiff3d27:6x7x8", "gmres", "auto", "host"},
                                         Case{"gen:convdiff2d:23x19", "gmres-ir", "fp32/bf16", "host"},
                                         Case{"gen:poisson3d:7x8x9", "cg", "auto", "host", "dic"},
                                         Case{"gen:convdiff2d:12x9", "bicgstab", "auto", "emulated"},
                                         Case{"gen:poisson2d:11x12", "cg", "auto", "emulated", "dic"},
                                         Case{"gen:convdiff2d:12x9", "bicgstab", "auto", "emulated", "dilu"},
                                         Case{"gen:poisson2d:11x12", "gmres-ir", "auto", "emulated"}));

TEST(DistributedSolver, BlocksOfRanksArePreconditionersThatGrowWeakerAndConverge) {
  const CsrMatrix a = generate("gen:convdiff2d:40x40");
  const auto b = random_vector(std::size_t(a.rows), 2, -1, 1);
  for (const char* precond : {"dilu", "ilu0", "iluk:1", "ilut", "block-ilu:2", "ras:2,1"}) {
    std::vector<double> x(b.size());
    const auto t = solve_together(a, b, x, {0, 500, 1100, 1600}, options_of("bicgstab", precond));
    EXPECT_EQ(t.results[0].status, Status::converged) << precond;
    EXPECT_LT(t.results[0].relative_residual, 1.01e-8);
  }
}

TEST(DistributedSolver, OverlapOfRanksKeepsIterationsNearThoseOfOne) {
  const CsrMatrix a = generate("gen:convdiff3d:24x24x24");
  const auto b = random_vector(std::size_t(a.rows), 2, -1, 1);
  const Options options = options_of("bicgstab", "ras:1,2");
  std::vector<double> x(b.size()), alone(b.size()), y(b.size());
  const auto one = solve_together(a, b, alone, {0, a.rows}, options);
  const Index q = a.rows / 4;
  const auto four = solve_together(a, b, x, {0, q, 2 * q, 3 * q, a.rows}, options);
  const auto blocks = solve_together(a, b, y, {0, q, 2 * q, 3 * q, a.rows}, options_of("bicgstab", "block-ilu:1"));
  EXPECT_EQ(four.results[0].status, Status::converged);
  EXPECT_LE(four.results[0].iterations, 1.3 * one.results[0].iterations);
  EXPECT_LE(four.results[0].iterations, blocks.results[0].iterations);
  EXPECT_LT(difference(x, alone), 1e-6);
}

TEST(DistributedSolver, PartsWithoutNeighboursAreSolvedBesideOneAnother) {
  // Two lattices that know nothing of each other, a rank each.
  const CsrMatrix part = generate("gen:poisson2d:9x9");
  const auto b = random_vector(std::size_t(2 * part.rows), 2, -1, 1);
  run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
    RowsMatrix rows = rows_of(part, {0, part.rows}, 0);
    rows.all = 2 * part.rows;
    rows.first = c->rank() * part.rows;
    for (auto& column : rows.columns) column += rows.first;
    DistributedSolver solver(options_of("cg", "dic"), c);
    solver.setup(rows);
    std::vector<double> x(std::size_t(part.rows));
    const Result r = solver.solve({b.data() + rows.first, x.size()}, x);
    EXPECT_EQ(r.status, Status::converged);
    EXPECT_EQ(solver.costs()[0].halo, 0);
    EXPECT_EQ(solver.costs()[1].neighbours, 0);
  });
}

TEST(DistributedSolver, RowsThatNobodyHasAreNamedInWholeNumbers) {
  // halo_test.cpp multiplies with columns beyond 2^32; a system is solved with all of its rows only.
  constexpr std::int64_t far = 5'000'000'000;
  const CsrMatrix a = generate("gen:convdiff2d:30x30");
  run_ranks(3, [&](const std::shared_ptr<Communicator>& c) {
    RowsMatrix rows = rows_of(a, {0, 300, 600, 900}, c->rank());
    rows.all = far + a.rows;
    rows.first += far;
    for (auto& column : rows.columns) column += far;
    DistributedSolver solver(options_of("bicgstab", "jacobi"), c);
    expect_words(refusal([&] { solver.setup(rows); }), {"5000000001"});
  });
}

TEST(DistributedSolver, BlocksWithoutEntriesAreSolvedThroughTheOthers) {
  // Rank 0's rows have entries in rank 1's columns alone, and the other way.
  CsrMatrix a;
  a.rows = a.cols = 4;
  a.offsets = {0, 1, 2, 3, 4};
  a.columns = {3, 2, 1, 0};
  a.values = {2, 4, 5, 8};
  std::vector<double> x(4);
  const auto t = solve_together(a, {2, 4, 5, 8}, x, {0, 2, 4}, options_of("gmres", "none"));
  EXPECT_EQ(t.results[0].status, Status::converged);
  for (const double v : x) EXPECT_NEAR(v, 1, 1e-7);
}

TEST(DistributedSolver, MixedPrecisionReachesIntoOtherRanksToo) {
  // Rows of one rank are far smaller than those of the others: what rounds scales them.
  CsrMatrix a = generate("gen:convdiff2d:40x40");
  for (Offset k = a.offsets[600]; k < a.offsets[1100]; ++k) a.values[std::size_t(k)] *= 1e-14;
  auto b = random_vector(std::size_t(a.rows), 2, -1, 1);
  for (std::size_t i = 600; i < 1100; ++i) b[i] *= 1e-14;
  const Starts starts{0, 600, 1100, 1600};
  struct Way {
    const char *solver, *precision;
  };
  for (const char* device : {"host", "emulated"})
    for (const Way& way :
         {Way{"gmres-ir", "fp32"}, {"gmres-ir", "fp32/fp16"}, {"fgmres", "fp32"}, {"bicgstab", "fp32"}}) {
      SCOPED_TRACE(std::string(device) + ", " + way.solver + " in " + way.precision);
      const auto solved = [&](const char* precond, const char* precision) {
        Options options = options_of(way.solver, precond);
        options.device = device;
        options.precision = precision;
        std::vector<double> x(b.size());
        const auto t = solve_together(a, b, x, starts, options);
        EXPECT_EQ(t.results[0].status, Status::converged);
        return t.results[0].iterations;
      };
      const int apart = solved("block-ilu:1", way.precision), reaching = solved("ras:1,3", way.precision);
      EXPECT_LT(reaching, apart);
      if (std::string(way.precision) == "fp32") {
        EXPECT_LE(reaching, 1.5 * solved("ras:1,3", "fp64") + 2);
      }
    }
}

TEST(DistributedSolver, OverlapIsTheSameOnEverySpaceAndTakesNewValues) {
  const CsrMatrix a = generate("gen:convdiff2d:30x30");
  CsrMatrix other = a;
  for (std::size_t k = 0; k < other.values.size(); ++k) other.values[k] *= 1 + 0.5 * unit_random(k);
  const auto b = random_vector(std::size_t(a.rows), 2, -1, 1);
  const Starts starts{0, 250, 250, 900};  // one rank has no rows
  for (const char* precond : {"ras:1,2", "ras:3,1", "ras:2,1,ilut:10,0.001", "ras:1,1,iluk:1", "ras:2,1,dilu"}) {
    SCOPED_TRACE(precond);
    run_ranks(3, [&](const std::shared_ptr<Communicator>& c) {
      // Of the last matrix, where the first was analysed.
      const auto solved = [&](const char* device, const std::vector<const CsrMatrix*>& matrices) {
        Options options = options_of("bicgstab", precond);
        options.device = device;
        DistributedSolver solver(options, c);
        Result r;
        for (const CsrMatrix* m : matrices) {
          const RowsMatrix rows = rows_of(*m, starts, c->rank());
          m == matrices.front() ? solver.setup(rows) : solver.factor(rows);
          std::vector<double> x(std::size_t(rows.count));
          r = solver.solve({b.data() + rows.first, x.size()}, x);
          EXPECT_EQ(r.status, Status::converged);
        }
        return r;
      };
      const Result host = solved("host", {&a});
      const Result fresh = solved("host", {&other});
      EXPECT_EQ(solved("host", {&a, &other}).history, fresh.history);
      EXPECT_NE(fresh.history, host.history);
      EXPECT_NEAR(solved("emulated", {&a}).iterations, host.iterations, 2);
      EXPECT_NEAR(solved("emulated", {&a, &other}).iterations, fresh.iterations, 2);
    });
  }
}

TEST(DistributedSolver, AZeroPivotInTheOverlapOfOneRankIsEverybodysInMixedPrecisionToo) {
  CsrMatrix a = generate("gen:poisson2d:20x20");
  for (Offset k = a.offsets[199]; k < a.offsets[200]; ++k)
    if (a.columns[std::size_t(k)] == 199) a.values[std::size_t(k)] = 0;  // rank 1's first
  for (const char* precision : {"fp64", "fp32"})
    run_ranks(3, [&](const std::shared_ptr<Communicator>& c) {
      Options options = options_of("bicgstab", "ras:1,1");
      options.precision = precision;
      DistributedSolver solver(options, c);
      const RowsMatrix rows = rows_of(a, {0, 199, 201, 400}, c->rank());
      expect_words(refusal([&] { solver.setup(rows); }), {"zero pivot in row 1"});
    });
}

TEST(DistributedSolver, NewValuesNeedNoNewAnalysis) {
  CsrMatrix a = generate("gen:convdiff2d:20x20");
  const auto b = random_vector(std::size_t(a.rows), 2, -1, 1);
  run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
    RowsMatrix rows = rows_of(a, {0, 200, 400}, c->rank());
    DistributedSolver solver(options_of("bicgstab", "dilu"), c);
    solver.setup(rows);
    std::vector<double> x(200), y(200);
    solver.solve({b.data() + rows.first, 200}, x);
    for (double& v : rows.values) v *= 4;
    solver.factor(rows);
    EXPECT_EQ(solver.solve({b.data() + rows.first, 200}, y).status, Status::converged);
    for (std::size_t i = 0; i < 200; ++i) EXPECT_NEAR(4 * y[i], x[i], 1e-6);
    rows.columns[1] += 2;
    expect_words(refusal([&] { solver.factor(rows); }), {"pattern"});
  });
}

TEST(DistributedSolver, NothingIsSolvedAfterValuesThatOneRankRefused) {
  const CsrMatrix a = generate("gen:convdiff2d:20x20");
  const auto b = random_vector(std::size_t(a.rows), 2, -1, 1);
  run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
    RowsMatrix rows = rows_of(a, {0, 200, 400}, c->rank());
    DistributedSolver solver(options_of("bicgstab", "dilu"), c);
    solver.setup(rows);
    std::vector<double> x(200), y(200);
    solver.solve({b.data() + rows.first, 200}, x);
    for (double& v : rows.values) v *= 4;
    RowsMatrix bad = rows;
    if (c->rank() == 1) bad.values.front() = std::nan("");  // outside of the block
    expect_words(refusal([&] { solver.factor(bad); }), {"rank 1 of 2", "NaN"});
    expect_words(refusal([&] { solver.solve({b.data() + rows.first, 200}, y); }), {"factor", "failed"});
    solver.factor(rows);
    EXPECT_EQ(solver.solve({b.data() + rows.first, 200}, y).status, Status::converged);
    for (std::size_t i = 0; i < 200; ++i) EXPECT_NEAR(4 * y[i], x[i], 1e-6);
  });
}

TEST(DistributedSolver, OtherOptionsOnOtherRanksAreRefused) {
  run_ranks(3, [&](const std::shared_ptr<Communicator>& c) {
    Options options = options_of("bicgstab", "dilu");
    if (c->rank() == 2) options.rtol = 1e-3;
    expect_words(refusal([&] { DistributedSolver(options, c); }), {"options", "2"});
    // Names are looked at on all ranks.
    expect_words(refusal([&] { DistributedSolver(options_of("bicgstab", "dillu"), c); }), {"dilu"});
  });
}

TEST(DistributedSolver, ZeroPivotsAndNaNNameRankAndRow) {
  CsrMatrix a = generate("gen:poisson2d:10x10");
  for (Offset k = a.offsets[70]; k < a.offsets[71]; ++k)
    if (a.columns[std::size_t(k)] == 70) a.values[std::size_t(k)] = 0;
  run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
    RowsMatrix rows = rows_of(a, {0, 50, 100}, c->rank());
    DistributedSolver solver(options_of("bicgstab", "jacobi"), c);
    expect_words(refusal([&] { solver.setup(rows); }), {"rank 1 of 2", "row 21"});
    if (c->rank() == 0) rows.values[std::size_t(rows.nnz()) - 1] = std::nan("");  // outside of the block
    expect_words(refusal([&] { solver.setup(rows); }), {"rank 0 of 2", "NaN"});
  });
}

}  // namespace
}  // namespace krilu
