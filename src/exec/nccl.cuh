// SPDX-License-Identifier: Apache-2.0
// NCCL between GPUs that do not reach one another's memory, a rank each: GPUs of several machines, or without peer
// access. All of it stands in the space's stream and none of it waits on the host; but a conditional graph takes no
// calls of a library, so that loops come back to the host to look at their flag. Sums are gathered and added here, in
// the order of ranks, since ncclAllReduce promises no order.
//
// A rank that is lost would leave the others waiting for ever: the host waits by looking, and gives up (abort) after
// cuda::patience or where NCCL says that something is wrong.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "exec/nccl_library.hpp"
#include "exec/team.cuh"
#include "krilu/ranks.hpp"

namespace krilu::exec {

class Nccl {
 public:
  struct Made {
    std::shared_ptr<Nccl> nccl;
    std::string why_not;
  };
  /// Collective: the communicator of these ranks, made once and shared by all teams of theirs. Null on all ranks, with
  /// the same reason, where one of them has no NCCL, where two share a GPU, or where it does not work.
  static Made connect(const std::shared_ptr<Ranks>& ranks, int device, cudaStream_t stream);
  ~Nccl() { abort(); }
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  std::string version() const { return library_.version(); }
  /// Device memory for what NCCL brings: not the pool's, which GPUs of the same process cannot read directly
  /// (NCCL_P2P_DIRECT_DISABLE in NCCL's documentation).
  static std::shared_ptr<double> buffer(std::size_t values);
  /// all[r * count ..] = mine[0 .. count-1] of rank r.
  void all_gather(const double* mine, double* all, std::size_t count, cudaStream_t stream) const;
  /// What goes to a rank and comes from it; on both sides nothing where it is nothing.
  struct Message {
    int rank = 0;
    const double* sent = nullptr;
    std::size_t sends = 0;
    double* got = nullptr;
    std::size_t gets = 0;
  };
  void exchange(std::span<const Message> messages, cudaStream_t stream) const;
  /// For what the stream has to do. Throws krilu::Error where a rank was lost.
  void wait(cudaStream_t stream);
  /// This rank takes part no longer, and nothing on its GPU waits for the others. It waits for nobody, which
  /// ncclCommDestroy may.
  void abort();

 private:
  Nccl(std::shared_ptr<Ranks> ranks, int device);
  NcclLibrary::Communicator* communicator() const;
  void try_out(cudaStream_t stream);

  const NcclLibrary& library_;
  std::shared_ptr<Ranks> ranks_;
  int device_;
  NcclLibrary::Communicator* communicator_ = nullptr;  // null: aborted
};

/// Sums of a team, gathered side by side.
class NcclSums {
 public:
  NcclSums(std::shared_ptr<Nccl> nccl, std::shared_ptr<Ranks> ranks, cudaStream_t stream);
  const std::shared_ptr<Nccl>& nccl() const { return nccl_; }
  /// Where this rank's sums stand: the same place, until more are asked for.
  double* own(std::size_t count, cudaStream_t stream);
  /// Of what own(count) has, on all ranks.
  cuda::Gathered gather(std::size_t count, cudaStream_t stream) const;
  /// From now on `mine` is this rank's wish to stop. Where any rank has one, kernels see it at the place that is
  /// returned, and the host in `told`.
  int* watch(const int* mine, int* told, cudaStream_t stream);

 private:
  std::shared_ptr<Nccl> nccl_;
  std::shared_ptr<Ranks> ranks_;
  std::size_t room_ = 0;
  std::shared_ptr<double> mine_, all_;  // of each rank its wish to stop, and then its sums
  std::shared_ptr<double> wishes_;      // a cuda::Wishes
};

}  // namespace krilu::exec
