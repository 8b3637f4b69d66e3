// SPDX-License-Identifier: Apache-2.0
// Ranks with a GPU each: sums and halos go from kernel to kernel, through NCCL where each rank has a GPU of its own,
// and, for a coupling that shows no plan, through the host; whatever the way answers are those of one GPU, all ranks
// tell the same, and the host is not asked in between where it need not be.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "gpu_ranks.cuh"
#include "solver/links.cuh"
#include "sparse/hec.cuh"

namespace krilu::test {
namespace {

struct Placing {
  const char *matrix, *solver, *precond, *precision;
};
const Placing cases[] = {
    {"gen:convdiff3d:40x30x20", "bicgstab", "jacobi", "auto"},
    {"gen:convdiff3d:40x30x20", "bicgstab", "dilu", "auto"},
    {"gen:poisson3d:20x21x22", "cg", "jacobi", "auto"},
    {"gen:poisson3d:20x21x22", "cg", "dic", "auto"},
    {"gen:convdiff2d:90x80", "gmres", "jacobi", "auto"},
    {"gen:convdiff2d:90x80", "gmres-ir", "jacobi", "fp32/fp16"},
    {"gen:convdiff2d:90x80", "bicgstab", "dilu", "fp32"},
    {"gen:convdiff2d:90x80", "gmres", "block-ilu:4", "auto"},
    {"gen:convdiff3d:40x30x20", "bicgstab", "ras:4,2", "auto"},
    {"gen:convdiff2d:90x80", "gmres-ir", "ras:4,1", "fp32/fp16"},
    {"gen:convdiff2d:90x80", "fgmres", "ras:4,1", "fp32"},
};

void check(bool through_host, int most_ranks = 3, const char* note = nullptr) {
  for (const Placing& c : cases)
    for (int ranks = 1; ranks <= most_ranks; ++ranks) {
      SCOPED_TRACE(std::string(c.matrix) + " " + c.solver + " " + c.precond + " " + c.precision + ", " +
                   std::to_string(ranks) + " ranks");
      const CsrMatrix a = generate(c.matrix);
      const auto b = random_vector(std::size_t(a.rows), 3, -1, 1);
      Options options;
      options.solver = c.solver;
      options.precond = c.precond;
      options.precision = c.precision;
      if (std::string(c.precision) == "fp32/fp16") options.basis = "fp16";
      options.rtol = 1e-9;
      options.device = "cuda";
      std::vector<double> alone(b.size()), x(b.size());
      const Result one = solve(a, b, alone, options);
      const auto results = solve_on_gpus(a, b, x, even(a.rows, ranks), options, through_host);
      for (const Result& r : results) {
        EXPECT_EQ(r.status, Status::converged);
        EXPECT_LE(r.relative_residual, 1.01e-9);
        EXPECT_EQ(r.history, results[0].history);
        if (note && ranks > 1) expect_note(r, note);
      }
      if (std::string(c.precond) == "jacobi") {
        EXPECT_NEAR(results[0].iterations, one.iterations, 2 + one.iterations / 8);
      }
      EXPECT_LT(difference(x, alone), 1e-5);
    }
}

/// Every kernel by which ranks meet, in few iterations, for a sanitizer: what one GPU tells, several of them tell.
void check_small(const char* matrix, const char* method, const char* precond, bool through_host = false,
                 int ranks = 2) {
  SCOPED_TRACE(std::string(matrix) + " " + method + " " + precond);
  const CsrMatrix a = generate(matrix);
  const auto b = random_vector(std::size_t(a.rows), 3, -1, 1);
  Options options;
  options.solver = method;
  options.precond = precond;
  options.rtol = 0;
  options.max_iterations = 6;
  options.device = "cuda";
  std::vector<double> alone(b.size()), x(b.size());
  const Result one = solve(a, b, alone, options);
  const auto results = solve_on_gpus(a, b, x, even(a.rows, ranks), options, through_host);
  for (const Result& r : results) EXPECT_EQ(r.history, results[0].history);
  ASSERT_EQ(results[0].history.size(), one.history.size());
  for (std::size_t k = 0; k < one.history.size(); ++k)
    EXPECT_NEAR(results[0].history[k], one.history[k], 1e-9 * one.history[0]) << "iteration " << k;
}

TEST(GpuRanksSmall, FromKernelToKernel) {
  KRILU_REQUIRE_GPU();
  check_small("gen:convdiff2d:20x16", "bicgstab", "jacobi");  // a product in one launch
  check_small("gen:convdiff2d:20x16", "gmres", "jacobi");
  check_small("gen:poisson2d:20x16", "cg", "none");
}

TEST(GpuRanksSmall, ThreeFromKernelToKernel) {
  KRILU_REQUIRE_GPU();
  if (solver::cuda_devices() < 3) GTEST_SKIP() << "this machine has " << solver::cuda_devices() << " GPUs";
  for (const char* method : {"bicgstab", "gmres", "fgmres"})
    check_small("gen:convdiff2d:20x16", method, "jacobi", false, 3);
  check_small("gen:poisson2d:20x16", "cg", "jacobi", false, 3);
}

TEST(GpuRanksSmall, BoundariesOfThreeThousandUnknowns) {
  KRILU_REQUIRE_GPU();
  check_small("gen:convdiff3d:60x50x4", "bicgstab", "jacobi");
}

TEST(GpuRanksSmall, ThroughTheHost) {
  KRILU_REQUIRE_GPU();
  check_small("gen:convdiff2d:20x16", "bicgstab", "jacobi", true);
}

/// ras reaches into the rows of the other rank, and tells what ranks on the host tell.
void check_overlap(const char* method, const char* precond, const char* precision, int ranks, int most_iterations,
                   const char* matrix) {
  SCOPED_TRACE(std::string(matrix) + " " + method + " " + precond + " " + precision);
  const CsrMatrix a = generate(matrix);
  const auto b = random_vector(std::size_t(a.rows), 3, -1, 1);
  const Starts starts = even(a.rows, ranks);
  Options options;
  options.solver = method;
  options.precond = precond;
  options.precision = precision;
  options.rtol = most_iterations > 0 ? 0 : 1e-9;
  options.max_iterations = most_iterations > 0 ? most_iterations : 1000;
  std::vector<double> x(b.size()), y(b.size());
  const auto there = solve_on_gpus(a, b, x, starts, options, false);
  std::vector<Result> here(std::size_t(ranks), Result{});
  run_ranks(ranks, [&](const std::shared_ptr<Communicator>& c) {
    Options own = options;
    own.device = "host";
    own.threads = 1;
    const RowsMatrix rows = rows_of(a, starts, c->rank());
    DistributedSolver solver(own, c);
    solver.setup(rows);
    here[std::size_t(c->rank())] = solver.solve({b.data() + rows.first, std::size_t(rows.count)},
                                                {y.data() + rows.first, std::size_t(rows.count)});
  });
  for (const Result& r : there) EXPECT_EQ(r.history, there[0].history);
  if (most_iterations > 0) {
    ASSERT_EQ(there[0].history.size(), here[0].history.size());
    for (std::size_t k = 0; k < there[0].history.size(); ++k)
      EXPECT_NEAR(there[0].history[k], here[0].history[k], 1e-9 * here[0].history[0]) << "iteration " << k;
    return;
  }
  EXPECT_EQ(there[0].status, Status::converged);
  EXPECT_NEAR(there[0].iterations, here[0].iterations, 1 + here[0].iterations / 8);
}

TEST(GpuRanksSmall, OverlapOfTwo) {
  KRILU_REQUIRE_GPU();
  check_overlap("bicgstab", "ras:2,1", "fp64", 2, 6, "gen:convdiff2d:20x16");
  check_overlap("gmres", "ras:1,2,ilut:8,0.01", "fp64", 2, 6, "gen:convdiff2d:20x16");
}

class GpuRanksOverlap : public testing::TestWithParam<std::tuple<std::string, std::string, std::string>> {};
std::string name_of(const testing::TestParamInfo<GpuRanksOverlap::ParamType>& test) {
  const auto& [precision, method, precond] = test.param;
  std::string name = precision + "_" + method + "_" + precond;
  for (char& c : name)
    if (c == ':' || c == ',') c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, GpuRanksOverlap,
                         testing::Combine(testing::Values("fp64", "fp32"),
                                          testing::Values("bicgstab", "gmres", "fgmres"),
                                          testing::Values("ras:1,2", "ras:5,1", "ras:2,1,iluk:1")),
                         name_of);

TEST_P(GpuRanksOverlap, TellsWhatRanksOnTheHostTell) {
  KRILU_REQUIRE_GPU();
  const auto& [precision, method, precond] = GetParam();
  check_overlap(method.c_str(), precond.c_str(), precision.c_str(), 3, 0, "gen:convdiff3d:24x23x22");
}

TEST(GpuRanks, OverlapThroughTheHost) {
  KRILU_REQUIRE_GPU();
  const By by(Way::host);
  check_overlap("bicgstab", "ras:3,1", "fp64", 3, 0, "gen:convdiff3d:24x23x22");
  check_overlap("bicgstab", "ras:3,1", "fp32", 3, 0, "gen:convdiff3d:24x23x22");
}

TEST(GpuRanks, OverlapThroughNccl) {
  KRILU_REQUIRE_NCCL();
  const By by(Way::nccl);
  check_overlap("bicgstab", "ras:3,1", "fp64", 2, 0, "gen:convdiff3d:24x23x22");
  check_overlap("gmres", "ras:3,1", "fp32", 2, 0, "gen:convdiff3d:24x23x22");
}

TEST(GpuRanksSmall, ThroughNccl) {
  KRILU_REQUIRE_NCCL();
  const By by(Way::nccl);
  check_small("gen:convdiff2d:20x16", "bicgstab", "jacobi");
}

TEST(GpuRanks, FromKernelToKernel) {
  KRILU_REQUIRE_GPU();
  check(false);
}

TEST(GpuRanks, ThroughTheHost) {
  KRILU_REQUIRE_GPU();
  check(true);
}

TEST(GpuRanks, ThroughNccl) {
  KRILU_REQUIRE_NCCL();
  const By by(Way::nccl);
  check(false, std::min(3, solver::cuda_devices()), "go through NCCL 2.");
}

TEST(GpuRanks, NcclBringsTheBitsThatKernelsBring) {
  KRILU_REQUIRE_NCCL();
  Options options;
  options.precond = "jacobi";
  options.rtol = 1e-9;
  for (const char* method : {"cg", "bicgstab", "gmres"}) {
    const CsrMatrix a = generate(std::string(method) == "cg" ? "gen:poisson2d:90x80" : "gen:convdiff2d:90x80");
    const auto b = random_vector(std::size_t(a.rows), 3, -1, 1);
    options.solver = method;
    std::vector<double> x(b.size()), y(b.size());
    const auto one = solve_on_gpus(a, b, x, even(a.rows, 2), options, false);
    const By by(Way::nccl);
    const auto other = solve_on_gpus(a, b, y, even(a.rows, 2), options, false);
    EXPECT_EQ(one[0].history, other[0].history) << method;
    EXPECT_EQ(x, y) << method;
    expect_note(other[0], std::string(method) == "gmres" ? "every iteration" : "every 4 iterations");
  }
}

TEST(GpuRanks, NcclSumsMoreColumnsThanThereIsRoomForAtFirst) {
  KRILU_REQUIRE_NCCL();
  const By by(Way::nccl);
  const CsrMatrix a = generate("gen:convdiff2d:90x80");
  const auto b = random_vector(std::size_t(a.rows), 3, -1, 1);
  Options options;
  options.solver = "gmres";
  options.precond = "jacobi";
  options.restart = 600;
  std::vector<double> x(b.size());
  for (const Result& r : solve_on_gpus(a, b, x, even(a.rows, 2), options, false))
    EXPECT_EQ(r.status, Status::converged);
}

TEST(GpuRanks, SmallSystemOfAThousandIterations) {
  KRILU_REQUIRE_GPU();
  // One GPU does not promise to run the kernels of ranks that share it beside one another for so long.
  if (solver::cuda_devices() < 2) GTEST_SKIP() << "this machine has one GPU";
  // Bodies that run beyond the end, many messages, and both turns of every place.
  const CsrMatrix a = generate("gen:poisson2d:120x120");
  const auto b = random_vector(std::size_t(a.rows), 3, -1, 1);
  Options options;
  options.solver = "bicgstab";
  options.precond = "none";
  options.rtol = 0;
  options.max_iterations = 3000;
  std::vector<double> x(b.size());
  const auto results = solve_on_gpus(a, b, x, {0, 7000, a.rows}, options, false);
  for (const Result& r : results) EXPECT_EQ(r.history, results[0].history);
}

TEST(GpuRanks, TheHostIsAskedAsOftenWhateverTheNumberOfIterations) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:convdiff2d:90x80");
  const auto b = random_vector(std::size_t(a.rows), 3, -1, 1);
  long asked[2] = {};
  for (int k = 0; k < 2; ++k)
    run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
      Options options;
      options.device = device_of(c->rank());
      options.solver = "bicgstab";
      options.precond = "jacobi";
      options.rtol = k == 0 ? 1e-2 : 1e-10;
      const RowsMatrix rows = rows_of(a, even(a.rows, 2), c->rank());
      const auto halo = std::make_shared<distributed::Halo>(c, rows, exec::Host(1));
      const CsrMatrix block = halo->take_block();
      Solver solver(options, Team{c, halo, {}});
      solver.setup(block);
      auto& engine = dynamic_cast<solver::EngineIn<exec::Cuda>&>(solver::Inside::engine(solver));
      const long before = engine.space().synchronisations();
      std::vector<double> x(std::size_t(rows.count));
      solver.solve({b.data() + rows.first, x.size()}, x);
      if (c->rank() == 0) asked[k] = engine.space().synchronisations() - before;
    });
  EXPECT_EQ(asked[0], asked[1]);
}

TEST(GpuRanks, NewValuesAndASecondSolve) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:convdiff2d:60x50");
  const auto b = random_vector(std::size_t(a.rows), 3, -1, 1);
  run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
    RowsMatrix rows = rows_of(a, even(a.rows, 2), c->rank());
    Options options;
    options.device = device_of(c->rank());
    options.solver = "bicgstab";
    options.precond = "jacobi";
    options.rtol = 1e-10;
    DistributedSolver solver(options, c);
    solver.setup(rows);
    const auto n = std::size_t(rows.count);
    std::vector<double> x(n), y(n);
    EXPECT_EQ(solver.solve({b.data() + rows.first, n}, x).status, Status::converged);
    for (double& v : rows.values) v *= -2;
    solver.factor(rows);
    EXPECT_EQ(solver.solve({b.data() + rows.first, n}, y).status, Status::converged);
    for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(-2 * y[i], x[i], 1e-7);
  });
}

TEST(GpuRanks, RanksWithoutRowsTakePart) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:convdiff2d:40x40");
  const auto b = random_vector(std::size_t(a.rows), 3, -1, 1);
  Options options;
  options.solver = "bicgstab";
  options.precond = "jacobi";
  for (const Starts& starts : {Starts{0, 0, 1600}, Starts{0, 700, 700, 1600}})
    for (const Way way : {Way::best, Way::nccl, Way::host})
      for (const bool no_plan : {false, true}) {
        if (way == Way::nccl && (no_plan || !no_nccl(ranks_of(starts)).empty())) continue;
        const By by(way);
        std::vector<double> x(b.size());
        for (const Result& r : solve_on_gpus(a, b, x, starts, options, no_plan)) {
          EXPECT_EQ(r.status, Status::converged);
          if (no_plan || way == Way::host) expect_note(r, "go through the host");
          if (way == Way::nccl) expect_note(r, "go through NCCL");
        }
      }
}

/// x, its boundary and products with both: y[0] in one launch, y[1] by start and finish round the own block's product.
void multiply(const std::shared_ptr<Communicator>& c, const RowsMatrix& rows, bool scaled, std::vector<double> (&y)[2],
              bool& in_one) {
  const exec::Cuda own(c->rank() % solver::cuda_devices());
  const exec::Cuda member = own.join(c, rows.all);
  const auto halo = std::make_shared<distributed::Halo>(c, rows, exec::Host(1));
  const CsrMatrix block = halo->take_block();
  const auto links = make_links(own, Team{c, halo, {}}, solver::InOrder{});
  ASSERT_TRUE(links->connect(member));
  Index width = 0;
  for (Index i = 0; i < block.rows; ++i)
    width = std::max(width, block.offsets[std::size_t(i) + 1] - block.offsets[std::size_t(i)]);
  const sparse::DeviceCsr a = sparse::upload(own, block, true);
  const auto hec = sparse::regular_hec<double>(own, a, width);
  const sparse::HecOperator<exec::Cuda, double> product(own, hec);
  const auto n = std::size_t(rows.count);
  const auto random = [&](std::uint64_t seed) {
    return own.brought(random_vector(n, seed + unsigned(c->rank()), 1, 2));
  };
  const auto x = random(3), d = random(7), z = own.allocate<double>(n), out = own.allocate<double>(n);
  own.synchronise();
  member.meet();                          // nobody asks for memory while another waits
  for (int turn = 0; turn < 6; ++turn) {  // both ways in one sequence of messages
    const bool one = turn % 2 == 0;
    if (one) {
      in_one = links->product(product, scaled ? d.data() : nullptr, x.data(), z.data(), out.data());
    } else {
      links->start(x.data(), scaled ? d.data() : nullptr);
      scaled ? product.apply_scaled(d.data(), x.data(), z.data(), out.data()) : product.apply(x.data(), out.data());
      links->finish(out.data(), nullptr, 1);
    }
    y[one ? 0 : 1].resize(n);
    own.copy_out(y[one ? 0 : 1].data(), out, n);
    member.meet();
  }
}

// Boundaries of 60 and of 3000 unknowns: start is one kernel that sends and adds for the first, two for the second.
TEST(GpuRanksSmall, AProductIsOneLaunchWithTheSameBits) {
  KRILU_REQUIRE_GPU();
  for (const char* name : {"gen:convdiff2d:60x50", "gen:convdiff3d:60x50x4"})
    for (const bool scaled : {false, true}) {
      const CsrMatrix a = generate(name);
      run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
        std::vector<double> y[2];
        bool in_one = false;
        multiply(c, rows_of(a, even(a.rows, 2), c->rank()), scaled, y, in_one);
        EXPECT_TRUE(in_one);
        EXPECT_EQ(y[0], y[1]);
      });
    }
}

TEST(GpuRanks, ARankThatOnlySendsAndOneThatOnlyReceives) {
  KRILU_REQUIRE_GPU();
  CsrMatrix a;  // x_i depends on those before it alone
  a.rows = a.cols = 3000;
  a.offsets.push_back(0);
  for (Index i = 0; i < a.rows; ++i) {
    for (const Index j : {i - 40, i - 1, i}) {
      if (j < 0) continue;
      a.columns.push_back(j);
      a.values.push_back(j == i ? 4 : -1);
    }
    a.offsets.push_back(Offset(a.columns.size()));
  }
  const auto b = random_vector(std::size_t(a.rows), 3, -1, 1);
  Options options;
  options.solver = "bicgstab";
  options.precond = "jacobi";
  options.rtol = 1e-10;
  options.device = "cuda";
  std::vector<double> alone(b.size()), x(b.size());
  ASSERT_EQ(solve(a, b, alone, options).status, Status::converged);
  for (const Result& r : solve_on_gpus(a, b, x, even(a.rows, 2), options, false))
    EXPECT_EQ(r.status, Status::converged);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], alone[i], 1e-8);
}

}  // namespace
}  // namespace krilu::test
