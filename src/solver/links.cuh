// SPDX-License-Identifier: Apache-2.0
// Links on a GPU. Where the GPUs of all ranks reach one another's memory, a kernel writes each entry that others need
// into their memory as words that are their own flags (exec/team.cuh), and another adds B x' as they come in: two
// launches a product, one where the boundary is small, none where the own block is in HEC (links_hec.cu), no copy, no
// host. Elsewhere NCCL brings the boundary, in the
// stream (exec/nccl.cuh), between a kernel that gathers it and one that adds B x'; or it goes through the host.
#pragma once

#include <memory>
#include <vector>

#include "exec/cuda.cuh"
#include "exec/nccl.cuh"
#include "solver/links.hpp"
#include "sparse/halo_plan.hpp"
#include "sparse/hec.hpp"

namespace krilu::solver {

class DeviceLinks final : public Links<exec::Cuda> {
 public:
  /// rows: those of the coupling, in the solver's order. `planned` has a plan where the coupling does, its rows in the
  /// solver's order; no rows and no neighbours elsewhere.
  DeviceLinks(exec::Cuda space, std::shared_ptr<Ranks> ranks, std::shared_ptr<Coupling> coupling,
              const Buffer<Index>& rows, sparse::HaloPlan planned);
  bool connect(const exec::Cuda& member) override;
  void take_values() override;
  void start(const double* x, const double* C) override { send(x, C); }
  void start(const float* x, const double* C) override { send(x, C); }
  void finish(double* y, const double* R, int sign) override { receive(y, R, sign); }
  void finish(float* y, const double* R, int sign) override { receive(y, R, sign); }
  bool product(const sparse::Operator<exec::Cuda, double>& own, const double* d, const double* x, double* z,
               double* y) override;
  std::size_t bytes() const override;

 private:
  template <class T>
  void send(const T* x, const double* C);
  template <class T>
  void receive(T* y, const double* R, int sign);
  struct Route;
  Route route() const;
  /// Small: sent by the kernel that receives.
  bool at_once() const;
  /// For product(): which rows border on others.
  void list_bordering();
  bool connect_nccl();
  void exchange() const;

  exec::Cuda ex_, member_;
  std::shared_ptr<Ranks> ranks_;
  std::shared_ptr<Coupling> coupling_;
  const sparse::PlannedCoupling* planned_;
  sparse::HaloPlan plan_;  // columns and values are on the GPU

  // Through the host.
  exec::Array<Index> rows_;
  exec::Array<double> sent_, got_;  // seen from both sides

  // From GPU to GPU.
  bool tried_ = false;  // to connect
  std::unique_ptr<exec::PeerMemory> words_;
  exec::cuda::Waiting waiting_;  // of the team, where GPUs reach one another
  exec::Array<Index> send_rows_, b_rows_, b_columns_;
  exec::Array<Offset> b_offsets_;
  exec::Array<double> b_values_;
  exec::Array<unsigned> numbers_;  // messages so far, and blocks that have arrived
  Index most_sends_ = 0;           // to one neighbour
  std::vector<Index> slots_;       // of each rank
  struct Later {
    const void* x = nullptr;
    const double* C = nullptr;
  };
  Later later_;                               // what start() was given, where it sends nothing yet
  exec::Array<sparse::HecListed> bordering_;  // of 32 rows each, up to the last that borders on others
  unsigned bordering_blocks_ = 0;             // of a product's

  // By NCCL.
  std::shared_ptr<exec::Nccl> nccl_;
  std::shared_ptr<double> boundary_;  // what goes to others, neighbour by neighbour; behind it x', in its slots
  std::size_t boundary_size_ = 0;
  const double* x_there_ = nullptr;
  std::vector<exec::Nccl::Message> messages_;
};

template <class System>
std::unique_ptr<Links<exec::Cuda>> make_links(const exec::Cuda& space, const Team& team, const System& system) {
  sparse::HaloPlan plan;
  if (const auto* planned = dynamic_cast<const sparse::PlannedCoupling*>(team.coupling.get())) {
    plan = planned->plan();
    plan.send_rows = system.places(plan.send_rows);
    plan.rows = system.places(plan.rows);
  }
  return std::make_unique<DeviceLinks>(space, team.ranks, team.coupling, system.places(team.coupling->rows()),
                                       std::move(plan));
}

}  // namespace krilu::solver
