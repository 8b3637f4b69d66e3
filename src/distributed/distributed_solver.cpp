// SPDX-License-Identifier: Apache-2.0
// A system over ranks is a rank's own block, which krilu::Solver solves with, in a team that couples it to the others.
#include <fmt/format.h>

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

namespace {

/// The ranks, with a clock on their sums.
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

}  // namespace

struct DistributedSolver::Body {
  Options options;
  std::shared_ptr<Communicator> ranks;
  std::shared_ptr<Clocked> clocked;
  exec::Host host{1};

  std::shared_ptr<distributed::Halo> halo;
  CsrMatrix block;  // pattern for new values
  std::optional<Solver> solver;
  RankCost cost;
  std::string note;

  // ras: the preconditioner of this rank's rows and those within the overlap.
  std::optional<distributed::Overlap> overlap;
  CsrMatrix extended_matrix;
  std::optional<Solver> extended;
  std::vector<double> r, z;

  int overlap_depth();
  distributed::ExchangeCost exchanged() const;
  void make_extended(const RowsView& a, int depth);
  void apply_extended(std::span<const double> r_own, std::span<double> z_own);
};

DistributedSolver::DistributedSolver(Options options, std::shared_ptr<Communicator> ranks)
    : body_(std::make_unique<Body>()) {
  Body& s = *body_;
  require_same(*ranks, "options", solver::common_text(options));
  s.options = std::move(options);
  s.ranks = std::move(ranks);
  s.clocked = std::make_shared<Clocked>(s.ranks);
  s.host = exec::Host(s.options.threads);
  // Options that no solver takes are refused now.
  together(*s.ranks, [&] { Solver{s.options}; });
}
DistributedSolver::~DistributedSolver() = default;
DistributedSolver::DistributedSolver(DistributedSolver&&) noexcept = default;
DistributedSolver& DistributedSolver::operator=(DistributedSolver&&) noexcept = default;

/// Layers of other ranks' rows that the preconditioner reaches into. Collective: the same on all ranks.
int DistributedSolver::Body::overlap_depth() {
  note.clear();
  if (ranks->size() == 1 || precond::kind_of(options.precond) != "ras") return 0;
  const int depth = precond::parse_spec(options.precond).overlap;
  const bool mixed = options.solver == "gmres-ir" || (options.precision != "auto" && options.precision != "fp64");
  double on_gpu = options.device.starts_with("cuda") ||
                  (options.device == "auto" && !solver::wants_host(options) && solver::cuda_devices() > 0);
  ranks->sum({&on_gpu, 1});
  if (depth == 0 || (!mixed && on_gpu == 0)) return depth;
  note = fmt::format("{}: without overlap between ranks, which needs double precision on the host", options.precond);
  return 0;
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

void DistributedSolver::Body::make_extended(const RowsView& a, int depth) {
  overlap.emplace(ranks, a, halo->ranges(), depth);
  extended_matrix = overlap->take_matrix();
  Options own = options;
  own.device = "host";
  own.solver = "bicgstab";  // only its preconditioner is applied
  own.precision = "auto";
  together(*ranks, [&] {
    extended.emplace(own);
    extended->setup(extended_matrix);
    r.assign(std::size_t(extended_matrix.rows), 0);
    z = r;
  });
}

/// Of what the extended solve says a rank keeps its own rows: what others own stays theirs.
void DistributedSolver::Body::apply_extended(std::span<const double> r_own, std::span<double> z_own) {
  overlap->start(r_own.data());
  std::copy(r_own.begin(), r_own.end(), r.begin());
  std::copy_n(overlap->finish(), overlap->beside(), r.begin() + std::ptrdiff_t(r_own.size()));
  extended->apply(r, z);
  std::copy_n(z.begin(), z_own.size(), z_own.begin());
}

void DistributedSolver::setup(const RowsView& a) {
  Body& s = *body_;
  s.solver.reset();
  s.overlap.reset();
  s.extended.reset();
  s.halo = std::make_shared<distributed::Halo>(s.ranks, a, s.host);
  s.block = s.halo->take_block();
  Team team{s.clocked, s.halo, {}};
  if (const int depth = s.overlap_depth(); depth > 0) {
    s.make_extended(a, depth);
    team.preconditioner = [&s](std::span<const double> r, std::span<double> z) { s.apply_extended(r, z); };
  }
  s.solver.emplace(s.options, std::move(team));
  s.solver->setup(s.block);
  s.cost = {};
  s.cost.rows = a.count;
  s.cost.nonzeros = a.nnz();
  s.cost.halo = s.halo->outside().exchange.slots();
  s.cost.neighbours = std::int64_t(s.halo->outside().exchange.neighbours.size());
}

void DistributedSolver::factor(const RowsView& a) {
  Body& s = *body_;
  if (!s.solver) throw Error("factor comes after setup");
  s.halo->refresh(a, s.block.values.data());
  if (s.overlap) {
    s.overlap->refresh(a, s.extended_matrix.values.data());
    together(*s.ranks, [&] { s.extended->factor(s.extended_matrix); });
  }
  s.solver->factor(s.block);
}

Result DistributedSolver::solve(std::span<const double> b, std::span<double> x, Monitor* monitor) {
  Body& s = *body_;
  if (!s.solver) throw Error("solve comes after setup");
  const double sums = s.clocked->seconds();
  const distributed::ExchangeCost before = s.exchanged();
  Result r = s.solver->solve(b, x, monitor);
  const distributed::ExchangeCost now = s.exchanged();
  s.cost.device = r.device;
  if (!s.note.empty()) r.notes.insert(r.notes.begin(), s.note);
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
