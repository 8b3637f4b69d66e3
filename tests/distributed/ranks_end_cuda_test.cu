// SPDX-License-Identifier: Apache-2.0
// Ranks with a GPU each whose work ends early, or that meet anew: an interrupt of one stops all, a rank that gave up is
// missed in a sentence and nobody waits for it, teams share a communicator, ranks that share a GPU meet without NCCL.
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "gpu_ranks.cuh"

namespace krilu::test {
namespace {

void check_interrupt(const char* method) {
  const CsrMatrix a = generate("gen:poisson2d:300x300");
  const auto b = random_vector(std::size_t(a.rows), 3, -1, 1);
  std::vector<Result> results(2, Result{});
  run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
    const RowsMatrix rows = rows_of(a, even(a.rows, 2), c->rank());
    Options options;
    options.device = device_of(c->rank());
    options.solver = method;
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

TEST(GpuRanks, AnInterruptOfOneStopsAll) {
  KRILU_REQUIRE_GPU();
  check_interrupt("gmres");
}

TEST(GpuRanks, AnInterruptOfOneStopsAllThroughNccl) {
  KRILU_REQUIRE_NCCL();
  const By by(Way::nccl);
  for (const char* method : {"gmres", "bicgstab"}) check_interrupt(method);
}

TEST(GpuRanks, AWishThroughNcclIsForgottenWithItsSolve) {
  KRILU_REQUIRE_NCCL();
  const By by(Way::nccl);
  run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
    const exec::Cuda own(c->rank());
    const exec::Cuda member = own.join(c, 2);
    ASSERT_TRUE(member.connect());
    const auto sum = own.allocate<double>(1);
    const auto wish = own.allocate_shared<int>(1);
    wish.data()[0] = c->rank() == 1;
    member.watch(wish.data());
    for (int k = 0; k < 5; ++k) add_ranks(member, sum.scalar(), 1.0);  // a look in four, and the next sum has it
    own.synchronise();
    EXPECT_TRUE(member.wished());
    for (int k = 0; k < 3; ++k) add_ranks(member, sum.scalar(), 1.0);  // the last one looks
    own.synchronise();
    wish.data()[0] = 0;
    member.watch(wish.data());
    for (int k = 0; k < 9; ++k) add_ranks(member, sum.scalar(), 1.0);
    own.synchronise();
    EXPECT_FALSE(member.wished());
  });
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

TEST(GpuRanks, ARankThatGaveUpIsMissedThroughNccl) {
  KRILU_REQUIRE_NCCL();
  const By by(Way::nccl);
  const double patience = std::exchange(exec::cuda::patience, 2.0);
  run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
    const exec::Cuda own(c->rank());
    const exec::Cuda member = own.join(c, 2);
    ASSERT_TRUE(member.connect());
    const auto sum = own.allocate<double>(1);
    const auto add = [&](const exec::Cuda& to) { add_ranks(to, sum.scalar(), c->rank() + 1.0); };
    add(member);
    EXPECT_EQ(own.read(sum, 0), 3.0);
    if (c->rank() == 1) {
      member.give_up();
    } else {
      const auto begun = std::chrono::steady_clock::now();
      add(member);
      expect_words(refusal([&] { own.synchronise(); }), {"a rank was lost", "rank 0", "2 seconds"});
      EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count(), 8.0);
      own.synchronise();  // nothing waits any more
    }
    expect_words(refusal([&] { add(member); }), {"lost one another", "analyse"});
    // Whoever analyses again meets anew.
    const exec::Cuda again = own.join(c, 2);
    ASSERT_TRUE(again.connect());
    EXPECT_NE(again.nccl(), member.nccl());
    add(again);
    EXPECT_EQ(own.read(sum, 0), 3.0);
  });
  exec::cuda::patience = patience;
}

/// Of ranks that are coupled by nothing: it fails in one of its calls.
class FailingCoupling final : public Coupling {
 public:
  explicit FailingCoupling(int after) : left_(after) {}
  std::span<const Index> rows() const override { return {}; }
  void start(const double*) override {}
  void finish(double*) override {
    if (--left_ == 0) throw Error("the network is down");
  }

 private:
  int left_;
};

TEST(GpuRanks, WhatACouplingThrowsOnOneRankInTheMiddleAllRanksThrow) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:convdiff2d:60x60");
  const auto b = random_vector(std::size_t(a.rows), 3, -1, 1);
  for (const int after : {1, 2, 7})
    run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
      Options options;
      options.device = device_of(c->rank());
      options.solver = "bicgstab";
      options.precond = "dilu";
      Solver solver(options, Team{c, std::make_shared<FailingCoupling>(c->rank() == 1 ? after : 0)});
      solver.setup(a);
      std::vector<double> x(b.size());
      expect_words(refusal([&] { solver.solve(b, x); }), {"rank 1 of 2", "network"});
      std::fill(x.begin(), x.end(), 0.0);
      EXPECT_EQ(solver.solve(b, x).status, Status::converged);
    });
}

TEST(GpuRanks, TeamsOfTheSameRanksShareACommunicator) {
  KRILU_REQUIRE_NCCL();
  const By by(Way::nccl);
  run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
    const exec::Cuda own(c->rank()), another(c->rank());
    const exec::Cuda one = own.join(c, 2), two = another.join(c, 2);
    ASSERT_TRUE(one.connect());
    ASSERT_TRUE(two.connect());
    EXPECT_EQ(one.nccl(), two.nccl());
    const auto a = own.allocate<double>(1), b = another.allocate<double>(1);
    for (int k = 0; k < 20; ++k) {  // two streams in turn
      add_ranks(one, a.scalar(), c->rank() + 1.0);
      add_ranks(two, b.scalar(), c->rank() + 2.0);
    }
    EXPECT_EQ(own.read(a, 0), 3.0);
    EXPECT_EQ(another.read(b, 0), 5.0);
  });
}

TEST(GpuRanks, RanksThatShareAGpuDoNotMeetThroughNccl) {
  KRILU_REQUIRE_GPU();
  const By by(Way::nccl);
  run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
    const exec::Cuda own(0);
    const exec::Cuda member = own.join(c, 2);
    EXPECT_FALSE(member.connect());
    expect_words(member.why_no_nccl(), {no_nccl(1).empty() ? "ranks 0 and 1 share a GPU" : "NCCL cannot be loaded"});
    const auto sum = own.allocate<double>(1);
    add_ranks(member, sum.scalar(), c->rank() + 1.0);
    EXPECT_EQ(own.read(sum, 0), 3.0);
  });
}

}  // namespace
}  // namespace krilu::test
