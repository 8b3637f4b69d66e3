// SPDX-License-Identifier: Apache-2.0
// krilu solve over several ranks: processes that mpirun started, or threads of this process. Rank 0 speaks for all.
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

#include "base/together.hpp"
#include "commands.hpp"
#include "krilu/mpi.hpp"
#include "rank_system.hpp"
#include "solve.hpp"
#include "solver/engine.hpp"
#include "solver/requests.hpp"
#include "terminal.hpp"

namespace krilu::app {

namespace {

/// cuda:A-B, a GPU for each rank; B < 0 where the device is something else.
struct Gpus {
  int first = 0, last = -1;
};
Gpus gpus_of(const std::string& device) {
  Gpus g;
  const std::size_t dash = device.find('-');
  if (!device.starts_with("cuda:") || dash == std::string::npos) return g;
  const char *begin = device.data() + 5, *middle = device.data() + dash, *end = device.data() + device.size();
  int last = -1;
  const auto one = std::from_chars(begin, middle, g.first), two = std::from_chars(middle + 1, end, last);
  if (one.ec != std::errc() || one.ptr != middle || two.ec != std::errc() || two.ptr != end || last < g.first)
    throw Error(fmt::format("device '{}': GPUs are named as in cuda:0-3, the first and the last", device));
  g.last = last;
  return g;
}

/// This rank's place among the ranks of its machine, and how many they are. Collective.
struct Place {
  int here = 0, ranks_here = 0;
};
Place place_of(Ranks& ranks) {
  char own[64] = {};
  gethostname(own, sizeof own - 1);
  std::vector<char> all(sizeof own * std::size_t(ranks.size()));
  ranks.all_gather(own, sizeof own, all.data());
  Place p;
  for (int r = 0; r < ranks.size(); ++r) {
    const bool same = std::strncmp(own, all.data() + sizeof own * std::size_t(r), sizeof own) == 0;
    p.ranks_here += same;
    p.here += same && r < ranks.rank();
  }
  return p;
}

/// The options of one rank.
Options options_of(const SolveOptions& o, const Place& place) {
  Options own = o.solver;
  const Gpus gpus = gpus_of(own.device);
  const int there = solver::cuda_devices();
  if (gpus.last >= 0) {
    if (gpus.first + place.here > gpus.last)
      throw Error(fmt::format("--device {} names {} GPUs for {} ranks of this machine", own.device,
                              gpus.last - gpus.first + 1, place.ranks_here));
    own.device = fmt::format("cuda:{}", gpus.first + place.here);
  } else if (own.device == "cuda" || (own.device == "auto" && there > 0 && !solver::wants_host(own))) {
    own.device = fmt::format("cuda:{}", place.here % std::max(1, there));
  }
  if (own.threads == 0) own.threads = threads_of_a_rank(place.ranks_here);
  return own;
}

int run_rank(const SolveOptions& o, const std::shared_ptr<Communicator>& ranks) {
  const bool first = ranks->rank() == 0, show = first && !o.quiet;
  const Place place = place_of(*ranks);
  const Options own = together(*ranks, [&] { return options_of(o, place); });
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
  answer.ranks = solver.costs();
  if (!o.output.empty()) answer.x = gather_solution(*ranks, s);
  answer.facts = std::move(s.facts);
  answer.facts.symmetric = answer.facts.pattern_symmetric = solver.symmetric();
  answer.result.notes.insert(answer.result.notes.begin(), "rows of the ranks: " + s.partition);
  return first ? report(o, answer) : exit_status(answer.result.status);
}

}  // namespace

bool wants_ranks(const SolveOptions& o) {
  if (o.ranks < 0) throw Error("--ranks is a whole number from 1");
  return started_by_mpirun() || o.ranks > 0 || gpus_of(o.solver.device).last >= 0;
}

int run_over_ranks(const SolveOptions& o) {
  const auto require_fitting = [&] {
    if (o.explain) throw Error("--explain is for one rank: leave out mpirun and --ranks");
    if (started_by_mpirun() && o.ranks > 0)
      throw Error("--ranks is for ranks within one process: mpirun -np says how many there are");
  };
  if (started_by_mpirun()) {
    int no_arguments = 0;
    char** none = nullptr;
    leave_last_words_to_others();
    MpiSession session(no_arguments, none);
    try {
      require_fitting();
      return run_rank(o, session.communicator());
    } catch (const Error& e) {
      session.abort(fmt::format("krilu: {}", e.what()), 2);
    } catch (const std::bad_alloc&) {
      session.abort("krilu: the machine's memory does not hold this system; krilu info says how large it is", 2);
    } catch (const std::exception& e) {
      session.abort(fmt::format("krilu: internal error: {}", e.what()), 1);
    }
  }
  require_fitting();
  const Gpus gpus = gpus_of(o.solver.device);
  const int named = gpus.last - gpus.first + 1;
  if (gpus.last >= 0 && o.ranks > 0 && o.ranks != named)
    throw Error(fmt::format("--device {} names {} GPUs, and --ranks {} asks for another number of ranks",
                            o.solver.device, named, o.ranks));
  const int count = gpus.last >= 0 ? named : o.ranks;
  int status = 0;
  run_ranks(count, [&](const std::shared_ptr<Communicator>& ranks) {
    const int own = run_rank(o, ranks);
    if (ranks->rank() == 0) status = own;
  });
  return status;
}

}  // namespace krilu::app
