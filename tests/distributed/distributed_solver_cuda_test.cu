// SPDX-License-Identifier: Apache-2.0
// Ranks with a GPU each: with as many GPUs as the machine has, and where there is one alone, ranks that share it. Sums
// and halos go from kernel to kernel, and, for a coupling that shows no plan, through the host; either way answers are
// those of one GPU, all ranks tell the same, and the host is not asked in between where it need not be.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>

#include "distributed/halo.hpp"
#include "distributed/rows.hpp"
#include "exec/cuda.cuh"
#include "krilu/io.hpp"
#include "solver/engine_on.hpp"
#include "support/gpu.cuh"
#include "support/refusal.hpp"

namespace krilu::test {
namespace {

/// A rank that is lost ends a test in seconds.
const bool impatient = [] {
  exec::cuda::patience = 10;
  exec::cuda::share_gpus = true;
  // Work of several ranks in one queue of the hardware would wait for one another.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  return true;
}();

std::string device_of(int rank) {
  int gpus = 1;
  cudaGetDeviceCount(&gpus);
  return "cuda:" + std::to_string(rank % gpus);
}

Starts even(Index rows, int ranks) {
  Starts starts;
  for (int r = 0; r <= ranks; ++r) starts.push_back(std::int64_t(rows) * r / ranks);
  return starts;
}

/// Hides the plan.
class ThroughHost final : public Coupling {
 public:
  explicit ThroughHost(std::shared_ptr<Coupling> inner) : inner_(std::move(inner)) {}
  std::span<const Index> rows() const override { return inner_->rows(); }
  bool symmetric() const override { return inner_->symmetric(); }
  void start(const double* x) override { inner_->start(x); }
  void finish(double* y) override { inner_->finish(y); }

 private:
  std::shared_ptr<Coupling> inner_;
};

std::vector<Result> solve_on_gpus(const CsrMatrix& a, const std::vector<double>& b, std::vector<double>& x,
                                  const Starts& starts, Options options, bool through_host) {
  std::vector<Result> results(starts.size() - 1, Result{});
  run_ranks(ranks_of(starts), [&](const std::shared_ptr<Communicator>& c) {
    Options own = options;
    own.device = device_of(c->rank());
    own.threads = 1;
    const RowsMatrix rows = rows_of(a, starts, c->rank());
    const std::span<const double> mine(b.data() + rows.first, std::size_t(rows.count));
    const std::span<double> answer(x.data() + rows.first, std::size_t(rows.count));
    Result& result = results[std::size_t(c->rank())];
    if (!through_host) {
      DistributedSolver solver(own, c);
      solver.setup(rows);
      result = solver.solve(mine, answer);
      return;
    }
    const auto halo = std::make_shared<distributed::Halo>(c, rows, exec::Host(1));
    const CsrMatrix block = halo->take_block();
    Solver solver(own, Team{c, std::make_shared<ThroughHost>(halo), {}});
    solver.setup(block);
    result = solver.solve(mine, answer);
  });
  return results;
}

/// out = the sum over ranks of `mine`. Outside of a test's own function, where nvcc takes kernels.
void add_ranks(const exec::Cuda& member, exec::Scalar<double> out, double mine) {
  member.reduce(
      1, [mine] __device__(Index) { return mine; }, [out] __device__(double total) { out() = total; });
}

struct Case {
  const char *matrix, *solver, *precond, *precision;
};
const Case cases[] = {
    {"gen:convdiff3d:40x30x20", "bicgstab", "jacobi", "auto"},
    {"gen:convdiff3d:40x30x20", "bicgstab", "dilu", "auto"},
    {"gen:poisson3d:20x21x22", "cg", "jacobi", "auto"},
    {"gen:poisson3d:20x21x22", "cg", "dic", "auto"},
    {"gen:convdiff2d:90x80", "gmres", "jacobi", "auto"},
    {"gen:convdiff2d:90x80", "gmres-ir", "jacobi", "fp32/fp16"},
    {"gen:convdiff2d:90x80", "bicgstab", "dilu", "fp32"},
    {"gen:convdiff2d:90x80", "gmres", "block-ilu:4", "auto"},
};

void check(bool through_host) {
  for (const Case& c : cases)
    for (int ranks = 1; ranks <= 3; ++ranks) {
      SCOPED_TRACE(std::string(c.matrix) + " " + c.solver + " " + c.precond + " " + c.precision + ", " +
                   std::to_string(ranks) + " ranks");
      const CsrMatrix a = generate(c.matrix);
      const auto b = random_vector(std::size_t(a.rows), 3, -1, 1);
      Options options;
      options.solver = c.solver;
      options.precond = c.precond;
      options.precision = c.precision;
      options.rtol = 1e-9;
      options.device = "cuda";
      std::vector<double> alone(b.size()), x(b.size());
      const Result one = solve(a, b, alone, options);
      const auto results = solve_on_gpus(a, b, x, even(a.rows, ranks), options, through_host);
      for (const Result& r : results) {
        EXPECT_EQ(r.status, Status::converged);
        EXPECT_LE(r.relative_residual, 1.01e-9);
        EXPECT_EQ(r.history, results[0].history);
      }
      if (std::string(c.precond) == "jacobi") {
        EXPECT_NEAR(results[0].iterations, one.iterations, 2 + one.iterations / 8);
      }
      double most = 0, size = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        most = std::max(most, std::abs(x[i] - alone[i]));
        size = std::max(size, std::abs(alone[i]));
      }
      EXPECT_LT(most, 1e-5 * size);
    }
}

TEST(GpuRanks, FromKernelToKernel) {
  KRILU_REQUIRE_GPU();
  check(false);
}

TEST(GpuRanks, ThroughTheHost) {
  KRILU_REQUIRE_GPU();
  check(true);
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

TEST(GpuRanks, AnInterruptOfOneStopsAll) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:poisson2d:300x300");
  const auto b = random_vector(std::size_t(a.rows), 3, -1, 1);
  std::vector<Result> results(2, Result{});
  run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
    const RowsMatrix rows = rows_of(a, even(a.rows, 2), c->rank());
    Options options;
    options.device = device_of(c->rank());
    options.solver = "gmres";
    options.precond = "none";
    options.rtol = 0;
    options.max_iterations = 10000000;
    DistributedSolver solver(options, c);
    solver.setup(rows);
    std::vector<double> x(std::size_t(rows.count));
    Monitor monitor;
    std::thread other([&] {
      if (c->rank() != 1) return;
      while (monitor.iteration() < 40) std::this_thread::yield();
      monitor.interrupt();
    });
    results[std::size_t(c->rank())] = solver.solve({b.data() + rows.first, x.size()}, x, &monitor);
    other.join();
  });
  EXPECT_EQ(results[0].iterations, results[1].iterations);
  EXPECT_EQ(results[0].status, Status::interrupted);
  EXPECT_EQ(results[1].status, Status::interrupted);
}

TEST(GpuRanks, RanksWithoutRowsTakePart) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:convdiff2d:40x40");
  const auto b = random_vector(std::size_t(a.rows), 3, -1, 1);
  Options options;
  options.solver = "bicgstab";
  options.precond = "jacobi";
  for (const Starts& starts : {Starts{0, 0, 1600}, Starts{0, 700, 700, 1600}})
    for (const bool through_host : {false, true}) {
      std::vector<double> x(b.size());
      for (const Result& r : solve_on_gpus(a, b, x, starts, options, through_host))
        EXPECT_EQ(r.status, Status::converged);
    }
}

TEST(GpuRanks, KernelsWaitNoLongerForARankThatGaveUp) {
  KRILU_REQUIRE_GPU();
  run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
    const exec::Cuda own(c->rank() % std::max(1, solver::cuda_devices()));
    const exec::Cuda member = own.join(c, 2);
    ASSERT_TRUE(member.connect());
    const auto sum = own.allocate<double>(1);
    const auto out = sum.scalar();
    const auto add = [&] { add_ranks(member, out, c->rank() + 1.0); };
    add();
    EXPECT_EQ(own.read(sum, 0), 3.0);
    if (c->rank() == 1) return member.give_up();
    // The other one never comes to this sum.
    const auto begun = std::chrono::steady_clock::now();
    add();
    own.synchronise();
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count(), 5.0);
  });
}

}  // namespace
}  // namespace krilu::test
