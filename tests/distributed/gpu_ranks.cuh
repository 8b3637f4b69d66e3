// SPDX-License-Identifier: Apache-2.0
// Ranks with a GPU each, for tests: with as many GPUs as the machine has, and where there is one alone, ranks that
// share it; the ways in which they meet, and solves by them.
#pragma once

#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "distributed/halo.hpp"
#include "distributed/rows.hpp"
#include "exec/cuda.cuh"
#include "exec/nccl.cuh"
#include "krilu/io.hpp"
#include "solver/engine_on.hpp"
#include "support/gpu.cuh"
#include "support/refusal.hpp"

namespace krilu::test {

/// A rank that is lost ends a test in seconds.
inline const bool impatient = [] {
  // A sanitizer slows kernels down by hundreds: tools/gpu-checks lets them wait longer.
  const char* seconds = std::getenv("KRILU_PATIENCE");
  exec::cuda::patience = seconds ? std::atof(seconds) : 10;
  exec::cuda::share_gpus = true;
  // Work of several ranks in one queue of the hardware would wait for one another.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  setenv("NCCL_NVLS_ENABLE", "0", 0);  // multicast fails in some virtual machines
  // To load a kernel at its first launch may take until all others of the GPU have ended, some of which wait for it.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  return true;
}();

inline std::string device_of(int rank) {
  int gpus = 1;
  cudaGetDeviceCount(&gpus);
  return "cuda:" + std::to_string(rank % gpus);
}

using exec::cuda::Way;
/// While it lives GPUs meet so.
struct By {
  explicit By(Way way) { exec::cuda::way = way; }
  ~By() { exec::cuda::way = Way::best; }
};

/// Why so many ranks do not meet through NCCL here; empty: they do.
inline std::string no_nccl(int ranks) {
  if (solver::cuda_devices() < ranks) return "this machine has " + std::to_string(solver::cuda_devices()) + " GPUs";
  try {
    exec::NcclLibrary::get();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}
#define KRILU_REQUIRE_NCCL() \
  KRILU_REQUIRE_GPU();       \
  if (const std::string why = no_nccl(2); !why.empty()) GTEST_SKIP() << why

inline void expect_note(const Result& r, const std::string& words) {
  EXPECT_TRUE(any_has(r.notes, words)) << "no note says '" << words << "'";
}

inline Starts even(Index rows, int ranks) {
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

inline std::vector<Result> solve_on_gpus(const CsrMatrix& a, const std::vector<double>& b, std::vector<double>& x,
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
inline void add_ranks(const exec::Cuda& member, exec::Scalar<double> out, double mine) {
  member.reduce(
      1, [mine] __device__(Index) { return mine; }, [out] __device__(double total) { out() = total; });
}

}  // namespace krilu::test
