// SPDX-License-Identifier: Apache-2.0
// krilu::Solver as one rank of a team, coupled by what a host program would bring: here a coupling that shares whole
// vectors, as plain as can be. Results are those of one rank; nobody stops or fails alone.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <thread>

#include "krilu/communicator.hpp"
#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "support/refusal.hpp"

namespace krilu {
namespace {

using test::expect_words;
using test::refusal;

/// Rows begin .. end-1 of a matrix: the square block, and the rest as a coupling.
class Part final : public Coupling {
 public:
  Part(std::shared_ptr<Ranks> ranks, const CsrMatrix& a, Index begin, Index end, bool symmetric = false)
      : ranks_(std::move(ranks)), a_(a), begin_(begin), symmetric_(symmetric) {
    block.rows = block.cols = end - begin;
    block.offsets.push_back(0);
    for (Index i = begin; i < end; ++i) {
      for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
        const Index j = a.columns[std::size_t(k)];
        if (j < begin || j >= end) continue;
        block.columns.push_back(j - begin);
        block.values.push_back(a.values[std::size_t(k)]);
      }
      block.offsets.push_back(Offset(block.columns.size()));
      rows_.push_back(i - begin);
    }
  }
  std::span<const Index> rows() const override { return rows_; }
  bool symmetric() const override { return symmetric_; }
  void start(const double* x) override {
    // A rank says where its rows begin, how many they are, and x there.
    std::vector<double> mine(std::size_t(a_.rows) + 2), all(mine.size() * std::size_t(ranks_->size()));
    mine[0] = begin_;
    mine[1] = double(rows_.size());
    std::copy_n(x, rows_.size(), mine.begin() + 2);
    ranks_->all_gather(mine.data(), mine.size() * sizeof(double), all.data());
    whole_.assign(std::size_t(a_.rows), 0.0);
    for (std::size_t r = 0; r < std::size_t(ranks_->size()); ++r) {
      const double* his = all.data() + r * mine.size();
      std::copy_n(his + 2, std::size_t(his[1]), whole_.begin() + std::ptrdiff_t(his[0]));
    }
  }
  void finish(double* y) override {
    const auto end = begin_ + Index(rows_.size());
    for (Index i = begin_; i < end; ++i) {
      double& sum = y[i - begin_] = 0;
      for (Offset k = a_.offsets[std::size_t(i)]; k < a_.offsets[std::size_t(i) + 1]; ++k) {
        const Index j = a_.columns[std::size_t(k)];
        if (j < begin_ || j >= end) sum += a_.values[std::size_t(k)] * whole_[std::size_t(j)];
      }
    }
  }
  CsrMatrix block;

 private:
  std::shared_ptr<Ranks> ranks_;
  const CsrMatrix& a_;
  Index begin_;
  bool symmetric_;
  std::vector<Index> rows_;
  std::vector<double> whole_;
};

/// Over ranks of nearly equal size; the results of all, and x put together.
std::vector<Result> solve_together(const CsrMatrix& a, const std::vector<double>& b, std::vector<double>& x, int ranks,
                                   const Options& options, bool symmetric = false,
                                   const std::function<void(int, Solver&)>& before = {}) {
  std::vector<Result> results(std::size_t(ranks), Result{});
  run_ranks(ranks, [&](const std::shared_ptr<Communicator>& team) {
    const int r = team->rank();
    const auto begin = Index(std::int64_t(a.rows) * r / ranks), end = Index(std::int64_t(a.rows) * (r + 1) / ranks);
    const auto part = std::make_shared<Part>(team, a, begin, end, symmetric);
    Solver solver(options, Team{team, part});
    solver.setup(part->block);
    if (before) before(r, solver);
    const std::span<const double> mine(b.data() + begin, std::size_t(end - begin));
    results[std::size_t(r)] = solver.solve(mine, std::span<double>(x.data() + begin, mine.size()));
  });
  return results;
}

double relative_residual(const CsrMatrix& a, const std::vector<double>& b, const std::vector<double>& x) {
  double rr = 0, bb = 0;
  for (Index i = 0; i < a.rows; ++i) {
    double r = b[std::size_t(i)];
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      r -= a.values[std::size_t(k)] * x[std::size_t(a.columns[std::size_t(k)])];
    rr += r * r;
    bb += b[std::size_t(i)] * b[std::size_t(i)];
  }
  return std::sqrt(rr / bb);
}

struct Case {
  const char *solver, *precond, *precision, *device, *basis = "auto";
};

class InATeam : public testing::TestWithParam<Case> {};

TEST_P(InATeam, JacobiIsThatOfOneRankAndAllRanksTellTheSame) {
  const Case c = GetParam();
  const CsrMatrix a = generate("gen:convdiff2d:30x31");
  Options options;
  options.solver = c.solver;
  options.precond = c.precond;
  options.precision = c.precision;
  options.basis = c.basis;
  options.device = c.device;
  options.rtol = 1e-9;
  options.threads = 1;
  // Over several right-hand sides: rounding, which is another one on other processors, moves BiCGStab's last steps.
  constexpr int sides = 8;
  double alone_took = 0, took[4] = {};
  for (int side = 0; side < sides; ++side) {
    const auto b = random_vector(std::size_t(a.rows), 3 + unsigned(side), -1, 1);
    std::vector<double> alone(b.size());
    const Result one = solve(a, b, alone, options);
    ASSERT_EQ(one.status, Status::converged);
    alone_took += one.iterations;
    for (const int ranks : {1, 2, 3}) {
      std::vector<double> x(b.size());
      const auto results = solve_together(a, b, x, ranks, options);
      EXPECT_LT(relative_residual(a, b, x), 1.01e-9);
      for (const Result& r : results) {
        EXPECT_EQ(r.status, Status::converged);
        EXPECT_EQ(r.history, results[0].history);  // bit for bit
        EXPECT_EQ(r.relative_residual, results[0].relative_residual);
        EXPECT_EQ(r.rmse, results[0].rmse);
      }
      took[ranks] += results[0].iterations;
      if (std::string(c.precond) == "jacobi") {
        const double first = results[0].history[5] / one.history[5];
        EXPECT_NEAR(first, 1, std::string(c.precision) == "fp64" ? 1e-9 : 1e-3);
      }
    }
  }
  if (std::string(c.precond) != "jacobi") return;
  for (const int ranks : {1, 2, 3}) EXPECT_NEAR(took[ranks] / sides, alone_took / sides, 1 + alone_took / sides / 20);
}

INSTANTIATE_TEST_SUITE_P(
    Methods, InATeam,
    testing::Values(Case{"bicgstab", "jacobi", "fp64", "host"}, Case{"gmres", "jacobi", "fp64", "host"},
                    Case{"fgmres", "jacobi", "fp64", "host"}, Case{"gmres-ir", "jacobi", "fp32", "host"},
                    Case{"bicgstab", "jacobi", "fp32/bf16", "host"}, Case{"bicgstab", "dilu", "fp64", "host"},
                    Case{"gmres", "ilu0", "fp32", "host"}, Case{"bicgstab", "jacobi", "fp64", "emulated"},
                    Case{"gmres", "dilu", "fp64", "emulated"}, Case{"gmres-ir", "ilu0", "fp32", "emulated"},
                    Case{"gmres", "jacobi", "fp32", "host", "fp16"},
                    Case{"gmres-ir", "jacobi", "fp32/bf16", "emulated", "fp16"}),
    [](const auto& tested) {
      const Case& c = tested.param;
      std::string name = std::string(c.solver) + "_" + c.precond + "_" + c.precision + "_" + c.device;
      if (std::string(c.basis) != "auto") name += std::string("_") + c.basis;
      for (char& letter : name)
        if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
      return name;
    });

TEST(Team, AutoIsChosenForAllRanksTogether) {
  const CsrMatrix a = generate("gen:poisson2d:20x20");
  const auto b = random_vector(std::size_t(a.rows), 1, -1, 1);
  std::vector<double> x(b.size());
  Options options;
  options.device = "host";
  const auto symmetric = solve_together(a, b, x, 3, options, true);
  for (const Result& r : symmetric) {
    EXPECT_EQ(r.solver, "cg");
    EXPECT_EQ(r.status, Status::converged);
  }
  // Each block is symmetric, the coupling does not say so.
  std::fill(x.begin(), x.end(), 0.0);
  for (const Result& r : solve_together(a, b, x, 3, options, false)) EXPECT_EQ(r.solver, "bicgstab");
}

TEST(Team, OpenfoamsNormIsThatOfAllRows) {
  const CsrMatrix a = generate("gen:convdiff2d:20x20");
  const auto b = random_vector(std::size_t(a.rows), 1, -1, 1);
  Options options;
  options.device = "host";
  options.solver = "bicgstab";
  options.precond = "jacobi";
  options.norm = Norm::openfoam;
  options.rtol = 1e-6;
  std::vector<double> alone(b.size(), 0.5), x(b.size(), 0.5);
  const Result one = solve(a, b, alone, options);
  for (const Result& r : solve_together(a, b, x, 3, options)) {
    EXPECT_NEAR(r.initial_residual / one.initial_residual, 1, 1e-12);
    EXPECT_NEAR(r.history[3] / one.history[3], 1, 1e-9);
  }
}

TEST(Team, ARankWithoutRowsTakesPart) {
  const CsrMatrix a = generate("gen:poisson2d:8x8");
  const auto b = random_vector(std::size_t(a.rows), 1, -1, 1);
  std::vector<double> x(b.size());
  for (const char* device : {"host", "emulated"})
    for (const char* precond : {"jacobi", "dilu", "ilu0"}) {
      std::fill(x.begin(), x.end(), 0.0);
      run_ranks(3, [&](const std::shared_ptr<Communicator>& team) {
        const Index begin = team->rank() == 0 ? 0 : 30, end = team->rank() == 2 ? a.rows : 30;
        const auto part = std::make_shared<Part>(team, a, begin, end);
        Options options;
        options.device = device;
        options.solver = "bicgstab";
        options.precond = precond;
        Solver solver(options, Team{team, part});
        solver.setup(part->block);
        const auto n = std::size_t(end - begin);
        const Result r = solver.solve({b.data() + begin, n}, {x.data() + begin, n});
        EXPECT_EQ(r.status, Status::converged) << device << " " << precond << ", rank " << team->rank() << ": "
                                               << r.iterations << " iterations, " << r.relative_residual;
      });
      EXPECT_LT(relative_residual(a, b, x), 1.01e-8) << device << " " << precond;
    }
}

TEST(Team, WhatOneRankFindsWrongAllThrow) {
  CsrMatrix a = generate("gen:convdiff2d:12x12");
  a.values[std::size_t(a.offsets[102]) - 1] = std::nan("");
  const auto b = random_vector(std::size_t(a.rows), 1, -1, 1);
  std::mutex mutex;
  std::vector<std::string> said;
  run_ranks(3, [&](const std::shared_ptr<Communicator>& team) {
    const Index begin = 48 * team->rank();
    const auto part = std::make_shared<Part>(team, a, begin, begin + 48);
    Options options;
    options.solver = "bicgstab";
    options.precond = "dilu";
    options.device = "host";
    Solver solver(options, Team{team, part});
    const std::string sentence = refusal([&] { solver.setup(part->block); });
    const std::lock_guard lock(mutex);
    said.push_back(sentence);
  });
  ASSERT_EQ(said.size(), 3u);
  for (const std::string& sentence : said) expect_words(sentence, {"rank 2 of 3", "row 6"});
}

TEST(Team, AnInterruptOfOneRankStopsAllAfterTheSameIteration) {
  const CsrMatrix a = generate("gen:poisson2d:60x60");
  const auto b = random_vector(std::size_t(a.rows), 1, -1, 1);
  std::vector<double> x(b.size());
  Options options;
  options.solver = "gmres";
  options.precond = "none";
  options.rtol = 0;
  options.device = "host";
  options.max_iterations = 10000000;
  std::vector<Result> results(2, Result{});
  run_ranks(2, [&](const std::shared_ptr<Communicator>& team) {
    const Index begin = 1800 * team->rank();
    const auto part = std::make_shared<Part>(team, a, begin, begin + 1800);
    Solver solver(options, Team{team, part});
    solver.setup(part->block);
    Monitor monitor;
    std::thread other([&] {
      if (team->rank() != 1) return;
      while (monitor.iteration() < 5) std::this_thread::yield();
      monitor.interrupt();
    });
    results[std::size_t(team->rank())] = solver.solve({b.data() + begin, 1800}, {x.data() + begin, 1800}, &monitor);
    other.join();
  });
  for (const Result& r : results) {
    EXPECT_EQ(r.status, Status::interrupted);
    EXPECT_EQ(r.iterations, results[0].iterations);
  }
}

TEST(Team, OtherKindsOfDeviceOnOtherRanksAreRefused) {
  const CsrMatrix a = generate("gen:poisson2d:6x6");
  run_ranks(2, [&](const std::shared_ptr<Communicator>& team) {
    Options options;
    options.device = team->rank() == 0 ? "host" : "emulated";
    const auto part = std::make_shared<Part>(team, a, 0, 36);
    expect_words(refusal([&] { Solver(options, Team{team, part}); }), {"kind of device"});
    // A coupling that all ranks but one have, and one without ranks.
    options.device = "host";
    expect_words(refusal([&] { Solver(options, Team{team, team->rank() == 0 ? part : nullptr}); }), {"kind of team"});
    expect_words(refusal([&] { Solver(options, Team{nullptr, part}); }), {"ranks"});
  });
}

TEST(Team, ACallersPreconditionerIsUsedAndWorksInDouble) {
  const CsrMatrix a = generate("gen:convdiff2d:12x12");
  const auto b = random_vector(std::size_t(a.rows), 1, -1, 1);
  for (const char* device : {"host", "emulated"})
    run_ranks(2, [&](const std::shared_ptr<Communicator>& team) {
      const Index begin = 72 * team->rank();
      const auto part = std::make_shared<Part>(team, a, begin, begin + 72);
      Options options;
      options.device = device;
      options.solver = "bicgstab";
      int applied = 0;
      Team own{team, part, [&](std::span<const double> r, std::span<double> z) {
                 ++applied;
                 for (std::size_t i = 0; i < r.size(); ++i) z[i] = r[i] / 5;
               }};
      Solver solver(options, own);
      solver.setup(part->block);
      std::vector<double> x(72), y(72);
      const Result r = solver.solve({b.data() + begin, 72}, x);
      EXPECT_EQ(r.status, Status::converged);
      EXPECT_GE(applied, r.iterations);
      // A multiple of the identity changes nothing but rounding.
      own.preconditioner = nullptr;
      options.precond = "none";
      Solver plain(options, own);
      plain.setup(part->block);
      EXPECT_NEAR(plain.solve({b.data() + begin, 72}, y).iterations, r.iterations, 2);
      options.precision = "fp32";
      own.preconditioner = [](std::span<const double>, std::span<double>) {};
      Solver mixed(options, own);
      expect_words(refusal([&] { mixed.setup(part->block); }), {"double"});
    });
}

/// A coupling whose owner fails in the middle of a solve.
class Failing final : public Coupling {
 public:
  Failing(std::shared_ptr<Part> part, int& left) : part_(std::move(part)), left_(left) {}
  std::span<const Index> rows() const override { return part_->rows(); }
  void start(const double* x) override { part_->start(x); }
  void finish(double* y) override {
    part_->finish(y);
    if (--left_ == 0) throw std::runtime_error("the network is down");
  }

 private:
  std::shared_ptr<Part> part_;
  int& left_;
};

TEST(Team, WhatACallersCodeThrowsOnOneRankInTheMiddleAllRanksThrow) {
  const CsrMatrix a = generate("gen:convdiff2d:12x12");
  const auto b = random_vector(std::size_t(a.rows), 1, -1, 1);
  for (const char* device : {"host", "emulated"})
    for (const char* method : {"bicgstab", "gmres", "fgmres"})
      for (const bool in_coupling : {false, true})
        for (const int after : {1, 2, 5, 6}) {
          SCOPED_TRACE(std::string(device) + " " + method + (in_coupling ? ", coupling " : ", preconditioner ") +
                       std::to_string(after));
          run_ranks(3, [&](const std::shared_ptr<Communicator>& team) {
            const Index begin = 48 * team->rank();
            const auto part = std::make_shared<Part>(team, a, begin, begin + 48);
            int calls = 0, left = 0;
            const int fails = team->rank() == 1 ? after : 0;
            Team own{team, std::make_shared<Failing>(part, left), [&](std::span<const double> r, std::span<double> z) {
                       for (std::size_t i = 0; i < r.size(); ++i) z[i] = r[i] / 5;
                       if (!in_coupling && ++calls == fails) throw Error("out of paint");
                     }};
            Options options;
            options.device = device;
            options.solver = method;
            Solver solver(options, own);
            solver.setup(part->block);
            if (in_coupling) left = fails;
            std::vector<double> x(48);
            expect_words(refusal([&] {
                           solver.solve({b.data() + begin, 48}, x);
                         }),
                         {"rank 1 of 3", in_coupling ? "network" : "paint"});
            // It was the caller's, and the solver is as it was.
            std::fill(x.begin(), x.end(), 0.0);
            EXPECT_EQ(solver.solve({b.data() + begin, 48}, x).status, Status::converged);
            // Nor is an application different.
            if (!in_coupling) {
              calls = fails > 0 ? fails - 1 : 0;
              expect_words(refusal([&] { solver.apply({b.data() + begin, 48}, x); }), {"rank 1 of 3", "paint"});
            }
          });
        }
}

TEST(Team, WhatACallersPreconditionerThrowsWhileItIsTimedIsThrownThere) {
  const CsrMatrix a = generate("gen:convdiff2d:12x12");
  run_ranks(1, [&](const std::shared_ptr<Communicator>& team) {
    bool fails = false;
    Solver solver({.solver = "bicgstab", .device = "host"},
                  Team{team, std::make_shared<Part>(team, a, 0, a.rows), [&](auto r, auto z) {
                         std::copy(r.begin(), r.end(), z.begin());
                         if (fails) throw Error("out of paint");
                       }});
    solver.setup(a);
    fails = true;
    expect_words(refusal([&] { solver.costs(); }), {"paint"});
    fails = false;
    std::vector<double> r(std::size_t(a.rows), 1.0), z(r.size());
    solver.apply(r, z);
    EXPECT_EQ(z, r);
  });
}

TEST(Team, RanksWithoutRowsOrEntriesLeaveTheChoiceToTheOthers) {
  const CsrMatrix a = generate("gen:poisson2d:20x20");
  run_ranks(3, [&](const std::shared_ptr<Communicator>& team) {
    const Index starts[] = {0, 200, 200, 400};
    const Index begin = starts[team->rank()], end = starts[team->rank() + 1];
    const auto part = std::make_shared<Part>(team, a, begin, end, true);
    Options options;
    options.device = "host";
    Solver solver(options, Team{team, part});
    solver.setup(part->block);
    std::vector<double> b(std::size_t(end - begin), 1.0), x(b.size());
    const Result r = solver.solve(b, x);
    EXPECT_EQ(r.solver, "cg");
    EXPECT_EQ(r.status, Status::converged);
  });
}

}  // namespace
}  // namespace krilu
