// SPDX-License-Identifier: Apache-2.0
// krilu solve over several ranks: processes that mpirun started, or threads of this process. Rank 0 speaks for all.
#include <optional>

#include "base/together.hpp"
#include "commands.hpp"
#include "krilu/error.hpp"
#include "krilu/mpi.hpp"
#include "rank_system.hpp"
#include "ranks.hpp"
#include "solve.hpp"
#include "solver/ladder.hpp"
#include "terminal.hpp"

namespace krilu::app {

namespace {

int run_rank(const SolveOptions& o, const std::shared_ptr<Communicator>& ranks) {
  if (o.explain) throw Error("--explain is for one rank: leave out mpirun and --ranks");
  const bool first = ranks->rank() == 0, show = first && !o.quiet;
  together(*ranks, [&] {
    if (first) require_outputs(o);
  });
  const Options own = options_here(o.solver, *ranks);
  DistributedSolver solver(own, ranks);  // refuses bad names before any work
  RankSystem s = load_rank_system(ranks, o.system, o.partition, own.threads, show);
  {
    const StepLine step("analysing", show);
    solver.setup(s.rows);
  }
  Monitor monitor;
  Answer answer;
  {
    std::optional<InterruptGuard> guard;
    std::optional<ProgressLine> progress;
    if (first || started_by_mpirun()) guard.emplace(monitor);  // threads share one Ctrl-C
    if (show) progress.emplace(monitor, "solving", true);
    answer.result = solver.solve(s.b, s.x, &monitor);
  }
  const Status status = answer.result.status;
  if (ranks->size() > 1 && solver::Ladder::serves(o.solver) && status != Status::converged &&
      status != Status::interrupted)
    answer.result.notes.push_back(
        "over several ranks the first choice is all that is tried: name another, such as --solver gmres --precond "
        "ras:0,1,ilut:20,0.003, or leave out the ranks, and others follow where it does not do");
  answer.ranks = solver.costs();
  if (!o.output.empty()) answer.x = gather_solution(*ranks, s);
  answer.facts = std::move(s.facts);
  answer.facts.symmetric = answer.facts.pattern_symmetric = solver.symmetric();
  answer.result.notes.insert(answer.result.notes.begin(), "rows of the ranks: " + s.partition);
  return first ? report(o, answer) : exit_status(answer.result.status);
}

}  // namespace

bool wants_ranks(const SolveOptions& o) { return wants_ranks(o.ranks, o.solver.device); }

int run_over_ranks(const SolveOptions& o) {
  return over_ranks(o.ranks, o.solver.device, [&](const auto& ranks) { return run_rank(o, ranks); });
}

}  // namespace krilu::app
