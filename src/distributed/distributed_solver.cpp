// SPDX-License-Identifier: Apache-2.0
// A system over ranks is a rank's own block, which krilu::Solver solves with, in a team that couples it to the others.
#include <chrono>
#include <cstring>
#include <optional>

#include "base/together.hpp"
#include "distributed/halo.hpp"
#include "distributed/overlap.hpp"
#include "krilu/distributed.hpp"
#include "krilu/error.hpp"
#include "precond/registry.hpp"
#include "precond/spec.hpp"
#include "solver/engine.hpp"
#include "solver/requests.hpp"

namespace krilu {

namespace distributed {

/// The ranks, with a clock on their sums. Not in an anonymous namespace: Body holds one, of which g++ warns where
/// sources are compiled together.
class Clocked final : public Ranks {
 public:
  explicit Clocked(std::shared_ptr<Ranks> ranks) : ranks_(std::move(ranks)) {}
  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  void all_gather(const void* mine, std::size_t bytes, void* all) override {
    clocked([&] { ranks_->all_gather(mine, bytes, all); });
  }
  void sum(std::span<double> values) override {
    clocked([&] { ranks_->sum(values); });
  }
  double seconds() const { return seconds_; }

 private:
  template <class F>
  void clocked(F f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  std::shared_ptr<Ranks> ranks_;
  double seconds_ = 0;
};

}  // namespace distributed

struct DistributedSolver::Body {
  Options options;
  std::shared_ptr<Communicator> ranks;
  std::shared_ptr<distributed::Clocked> clocked;
  exec::Host host{1};

  std::shared_ptr<distributed::Halo> halo;
  CsrMatrix block;  // pattern for new values
  std::optional<Solver> solver;
  bool set_up = false, factored = false;
  RankCost cost;
  std::shared_ptr<distributed::Overlap> overlap;  // for ras

  int overlap_depth() const;
  distributed::ExchangeCost exchanged() const;
};

DistributedSolver::DistributedSolver(Options options, std::shared_ptr<Communicator> ranks)
    : body_(std::make_unique<Body>()) {
  Body& s = *body_;
  require_same(*ranks, "options", solver::common_text(options));
  s.options = std::move(options);
  s.ranks = std::move(ranks);
  s.clocked = std::make_shared<distributed::Clocked>(s.ranks);
  s.host = exec::Host(s.options.threads);
  // Options that no solver takes are refused now.
  together(*s.ranks, [&] { Solver{s.options}; });
}
DistributedSolver::~DistributedSolver() = default;
DistributedSolver::DistributedSolver(DistributedSolver&&) noexcept = default;
DistributedSolver& DistributedSolver::operator=(DistributedSolver&&) noexcept = default;

/// Layers of other ranks' rows that the preconditioner reaches into.
int DistributedSolver::Body::overlap_depth() const {
  if (ranks->size() == 1 || precond::kind_of(options.precond) != "ras") return 0;
  return precond::parse_spec(options.precond).overlap;
}

/// Halo and overlap.
distributed::ExchangeCost DistributedSolver::Body::exchanged() const {
  distributed::ExchangeCost both = halo->cost();
  if (overlap) {
    both.messages += overlap->cost().messages;
    both.bytes += overlap->cost().bytes;
    both.seconds_waited += overlap->cost().seconds_waited;
  }
  return both;
}

void DistributedSolver::setup(const RowsView& a) {
  Body& s = *body_;
  s.solver.reset();
  s.overlap.reset();
  s.set_up = s.factored = false;
  s.halo = std::make_shared<distributed::Halo>(s.ranks, a, s.host);
  s.block = s.halo->take_block();
  Team team{s.clocked, s.halo, {}};
  if (const int depth = s.overlap_depth(); depth > 0)
    team.beside = s.overlap = std::make_shared<distributed::Overlap>(s.ranks, a, s.halo->ranges(), depth);
  s.solver.emplace(s.options, std::move(team));
  s.solver->setup(s.block);
  s.set_up = s.factored = true;
  s.cost = {};
  s.cost.rows = a.count;
  s.cost.nonzeros = a.nnz();
  s.cost.halo = s.halo->outside().exchange.slots();
  s.cost.neighbours = std::int64_t(s.halo->outside().exchange.neighbours.size());
}

void DistributedSolver::factor(const RowsView& a) {
  Body& s = *body_;
  if (!s.solver || !s.set_up) throw Error("factor comes after setup");
  s.factored = false;  // some ranks may have new values, and others not
  s.halo->refresh(a, s.block.values.data());
  if (s.overlap) s.overlap->refresh(a);
  s.solver->factor(s.block);
  s.factored = true;
}

Result DistributedSolver::solve(std::span<const double> b, std::span<double> x, Monitor* monitor) {
  Body& s = *body_;
  if (!s.solver) throw Error("solve comes after setup");
  if (!s.factored)
    throw Error(s.set_up ? "solve comes after factor, and the last one failed: factor the rows that hold"
                         : "solve comes after setup, and the last one failed");
  const double sums = s.clocked->seconds();
  const distributed::ExchangeCost before = s.exchanged();
  Result r = s.solver->solve(b, x, monitor);
  const distributed::ExchangeCost now = s.exchanged();
  s.cost.device = r.device;
  s.cost.seconds += r.seconds.solve;
  s.cost.seconds_in_sums += s.clocked->seconds() - sums;
  s.cost.seconds_in_exchanges += now.seconds_waited - before.seconds_waited;
  s.cost.messages += now.messages - before.messages;
  s.cost.bytes += now.bytes - before.bytes;
  return r;
}

std::vector<RankCost> DistributedSolver::costs() const {
  const Body& s = *body_;
  struct Plain {
    char device[64];
    std::int64_t rows, nonzeros, halo, neighbours, messages, bytes;
    double seconds, sums, exchanges;
  };
  const RankCost& c = s.cost;
  Plain mine{{},
             c.rows,
             c.nonzeros,
             c.halo,
             c.neighbours,
             c.messages,
             c.bytes,
             c.seconds,
             c.seconds_in_sums,
             c.seconds_in_exchanges};
  std::strncpy(mine.device, c.device.c_str(), sizeof mine.device - 1);
  std::vector<Plain> all(std::size_t(s.ranks->size()));
  s.ranks->all_gather(&mine, sizeof mine, all.data());
  std::vector<RankCost> costs;
  for (const Plain& p : all)
    costs.push_back(
        {p.device, p.rows, p.nonzeros, p.halo, p.neighbours, p.messages, p.bytes, p.seconds, p.sums, p.exchanges});
  return costs;
}

bool DistributedSolver::symmetric() const { return body_->solver && solver::Inside::symmetric(*body_->solver); }

std::vector<std::string> DistributedSolver::explanation() const {
  return body_->solver ? body_->solver->explanation() : std::vector<std::string>{};
}

}  // namespace krilu
