// SPDX-License-Identifier: Apache-2.0
#include "ranks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "base/together.hpp"
#include "exec/host.hpp"
#include "krilu/error.hpp"
#include "krilu/mpi.hpp"
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

/// Threads for each of the ranks of this machine, where nobody said how many.
int threads_of_a_rank(int ranks_here) {
  const int cores = int(std::thread::hardware_concurrency());
  // mpirun may have given each rank cores of its own.
  return std::max(1, std::min(exec::available_threads(), cores / std::max(1, ranks_here)));
}

/// The options of one rank.
Options options_at(const Place& place, Options own) {
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

}  // namespace

Options options_here(const Options& asked, Ranks& ranks) {
  const Place place = place_of(ranks);
  return together(ranks, [&] { return options_at(place, asked); });
}

bool wants_ranks(int ranks, const std::string& device) {
  if (ranks < 0) throw Error("--ranks is a whole number from 1");
  return started_by_mpirun() || ranks > 0 || gpus_of(device).last >= 0;
}

int over_ranks(int asked, const std::string& device, const RankRun& run) {
  if (started_by_mpirun()) {
    int no_arguments = 0;
    char** none = nullptr;
    leave_last_words_to_others();
    MpiSession session(no_arguments, none);
    try {
      if (asked > 0) throw Error("--ranks is for ranks within one process: mpirun -np says how many there are");
      const int status = run(session.communicator());
      std::fflush(stdout);  // ranks end with the session, and mpirun ends all after the first whose status is not 0
      return status;
    } catch (const Error& e) {
      session.abort(fmt::format("krilu: {}", e.what()), 2);
    } catch (const std::bad_alloc&) {
      session.abort("krilu: the machine's memory does not hold this system; krilu info says how large it is", 2);
    } catch (const std::exception& e) {
      session.abort(fmt::format("krilu: internal error: {}", e.what()), 1);
    }
  }
  const Gpus gpus = gpus_of(device);
  const int named = gpus.last - gpus.first + 1;
  if (gpus.last >= 0 && asked > 0 && asked != named)
    throw Error(fmt::format("--device {} names {} GPUs, and --ranks {} asks for another number of ranks", device, named,
                            asked));
  int status = 0;
  run_ranks(gpus.last >= 0 ? named : asked, [&](const std::shared_ptr<Communicator>& ranks) {
    const int own = run(ranks);
    if (ranks->rank() == 0) status = own;
  });
  return status;
}

}  // namespace krilu::app
