// SPDX-License-Identifier: Apache-2.0
// A communicator: ranks that also send messages to one another. There are two: MPI's (krilu/mpi.hpp), and the threads
// of one process (run_ranks), where each thread is a rank.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "krilu/ranks.hpp"

namespace krilu {

class Communicator : public Ranks {
 public:
  struct Sent {
    int to = 0;
    const void* data = nullptr;
    std::size_t bytes = 0;
  };
  struct Received {
    int from = 0;
    void* data = nullptr;
    std::size_t bytes = 0;  // exactly what the other sends
  };
  /// Begins an exchange: at most one message each way between two ranks, none of a rank to itself. Buffers stay as
  /// they are until finish(). One exchange at a time.
  virtual void start(std::span<const Sent> sends, std::span<const Received> receives) = 0;
  virtual void finish() = 0;
};

/// Runs f(communicator) on `ranks` threads of this process, a rank each, and returns when all have ended. Where f
/// throws on one rank, the others stop waiting for it within their next call of the communicator, and the first
/// exception is thrown here.
void run_ranks(int ranks, const std::function<void(std::shared_ptr<Communicator>)>& f);

}  // namespace krilu
