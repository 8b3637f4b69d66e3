// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/together.hpp"
#include "exec/cuda.cuh"
#include "exec/nccl.cuh"
#include "krilu/error.hpp"

namespace krilu::exec {

namespace {

/// What a rank has for it.
struct Claim {
  int version = 0;         // of the library; 0: none, and why
  bool connected = false;  // to all of these ranks already
  char gpu[16] = {};       // its name in the whole world
  char why[200] = {};
};

/// The communicators that live, of each rank of this process.
struct Known {
  std::mutex mutex;
  std::map<std::pair<const Ranks*, int>, std::weak_ptr<Nccl>> of;
};
Known& known() {
  static Known all;
  return all;
}

std::string why_not(const std::vector<Claim>& all) {
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].version == 0) return "rank " + std::to_string(r) + ": " + all[r].why;
    if (all[r].version != all[0].version) return "the ranks have different versions of NCCL";
    for (std::size_t q = 0; q < r; ++q)
      if (std::memcmp(all[q].gpu, all[r].gpu, sizeof all[r].gpu) == 0)
        return "ranks " + std::to_string(q) + " and " + std::to_string(r) + " share a GPU, which NCCL does not allow";
  }
  return {};
}

}  // namespace

Nccl::Nccl(std::shared_ptr<Ranks> ranks, int device)
    : library_(NcclLibrary::get()), ranks_(std::move(ranks)), device_(device) {}

Nccl::Made Nccl::connect(const std::shared_ptr<Ranks>& ranks, int device, cudaStream_t stream) {
  const std::pair<const Ranks*, int> key{ranks.get(), device};
  std::shared_ptr<Nccl> made;
  {
    const std::lock_guard lock(known().mutex);
    if (const auto found = known().of.find(key); found != known().of.end()) made = found->second.lock();
  }
  Claim own;
  try {
    require_cuda(cudaSetDevice(device), "choosing the GPU");
    cudaDeviceProp properties;
    require_cuda(cudaGetDeviceProperties(&properties, device), "asking the GPU");
    static_assert(sizeof properties.uuid == sizeof own.gpu);
    std::memcpy(own.gpu, &properties.uuid, sizeof own.gpu);
    own.version = NcclLibrary::get().version_number();
  } catch (const std::exception& e) {
    std::snprintf(own.why, sizeof own.why, "%s", e.what());
  }
  own.connected = made && made->communicator_;
  std::vector<Claim> all(std::size_t(ranks->size()));
  ranks->all_gather(&own, sizeof own, all.data());
  if (std::string why = why_not(all); !why.empty()) return {nullptr, std::move(why)};
  bool connected = true;
  for (const Claim& claim : all) connected = connected && claim.connected;
  if (connected) return {made, {}};

  try {
    made.reset(new Nccl(ranks, device));
    const NcclLibrary& library = made->library_;
    NcclLibrary::Id id = {};
    together(*ranks, [&] {
      if (ranks->rank() == 0) library.require(library.GetUniqueId(&id), "naming a communicator");
    });
    std::vector<NcclLibrary::Id> ids(all.size());
    ranks->all_gather(&id, sizeof id, ids.data());
    together(*ranks, [&] {
      library.require(library.CommInitRank(&made->communicator_, ranks->size(), ids[0], ranks->rank()),
                      "making a communicator");
    });
    together(*ranks, [&] { made->try_out(stream); });
  } catch (const Error& e) {  // on all ranks
    return {nullptr, e.what()};
  }
  const std::lock_guard lock(known().mutex);
  std::erase_if(known().of, [](const auto& entry) { return entry.second.expired(); });
  known().of[key] = made;
  return {made, {}};
}

std::shared_ptr<double> Nccl::buffer(std::size_t values) {
  double* there = nullptr;
  require_cuda(cudaMalloc(&there, std::max<std::size_t>(1, values) * sizeof(double)), "allocating device memory");
  return {there, [](double* p) { cudaFree(p); }};
}

/// The first call opens the ways, by which it may fail: each rank's number goes to all.
void Nccl::try_out(cudaStream_t stream) {
  const auto n = std::size_t(ranks_->size());
  const std::shared_ptr<double> owner = buffer(n + 1);
  double* const there = owner.get();
  const double mine = ranks_->rank();
  std::vector<double> all(n);
  require_cuda(cudaMemcpyAsync(there + n, &mine, sizeof mine, cudaMemcpyHostToDevice, stream), "copying");
  all_gather(there + n, there, 1, stream);
  wait(stream);
  require_cuda(cudaMemcpyAsync(all.data(), there, n * sizeof(double), cudaMemcpyDeviceToHost, stream), "copying");
  wait(stream);
  for (std::size_t r = 0; r < n; ++r)
    if (all[r] != double(r)) throw Error("NCCL brought wrong numbers: look at what NCCL_DEBUG=INFO prints");
}

NcclLibrary::Communicator* Nccl::communicator() const {
  if (!communicator_) throw Error("the ranks have lost one another in an earlier call: analyse the matrix again");
  return communicator_;
}

void Nccl::all_gather(const double* mine, double* all, std::size_t count, cudaStream_t stream) const {
  library_.require(library_.AllGather(mine, all, count, NcclLibrary::float64, communicator(), stream),
                   "adding up over ranks");
}

void Nccl::exchange(std::span<const Message> messages, cudaStream_t stream) const {
  NcclLibrary::Communicator* const c = communicator();
  library_.require(library_.GroupStart(), "sending to other ranks");
  NcclLibrary::Result failed = NcclLibrary::success;
  const auto note = [&](NcclLibrary::Result result) {
    if (failed == NcclLibrary::success) failed = result;
  };
  for (const Message& m : messages) {
    if (m.sends > 0) note(library_.Send(m.sent, m.sends, NcclLibrary::float64, m.rank, c, stream));
    if (m.gets > 0) note(library_.Recv(m.got, m.gets, NcclLibrary::float64, m.rank, c, stream));
  }
  note(library_.GroupEnd());  // a group that is begun is ended
  library_.require(failed, "sending to other ranks");
}

void Nccl::wait(cudaStream_t stream) {
  using Clock = std::chrono::steady_clock;
  constexpr unsigned between = 256;
  const Clock::time_point begun = Clock::now();
  for (unsigned looks = 1; communicator_; ++looks) {
    const cudaError_t status = cudaStreamQuery(stream);
    if (status != cudaErrorNotReady) return require_cuda(status, "working on the GPU");
    cudaGetLastError();
    if (looks % between != 0) continue;
    std::this_thread::yield();
    NcclLibrary::Result state = NcclLibrary::success;
    const NcclLibrary::Result asked = library_.CommGetAsyncError(communicator_, &state);
    if (asked != NcclLibrary::success) state = asked;
    const double waited = std::chrono::duration<double>(Clock::now() - begun).count();
    const bool fine = state == NcclLibrary::success || state == NcclLibrary::in_progress;
    if (fine && waited < cuda::patience) continue;
    abort();
    char sentence[200];
    if (fine)
      std::snprintf(sentence, sizeof sentence,
                    "a rank was lost: what it owes rank %d did not come through NCCL within %.0f seconds; see what the "
                    "other ranks say",
                    ranks_->rank(), cuda::patience);
    else
      std::snprintf(sentence, sizeof sentence, "a rank was lost: NCCL says \"%s\"; see what the other ranks say",
                    library_.GetErrorString(state));
    throw Error(sentence);
  }
  require_cuda(cudaStreamSynchronize(stream), "working on the GPU");
}

void Nccl::abort() {
  if (NcclLibrary::Communicator* const c = std::exchange(communicator_, nullptr)) {
    cudaSetDevice(device_);
    library_.CommAbort(c);
  }
}

NcclSums::NcclSums(std::shared_ptr<Nccl> nccl, std::shared_ptr<Ranks> ranks, cudaStream_t stream)
    : nccl_(std::move(nccl)), ranks_(std::move(ranks)) {
  static_assert(sizeof(cuda::Wishes) % sizeof(double) == 0 && alignof(cuda::Wishes) <= 256);
  wishes_ = Nccl::buffer(sizeof(cuda::Wishes) / sizeof(double));
  own(1, stream);
  watch(nullptr, nullptr, stream);
}

double* NcclSums::own(std::size_t count, cudaStream_t stream) {
  constexpr std::size_t enough = 1022;  // but for very large bases
  if (room_ < count) {
    // What is asked of the driver may wait for kernels that wait for another rank: all have come here, and none do.
    nccl_->wait(stream);
    double nothing = 0;
    ranks_->sum({&nothing, 1});
    room_ = std::max(count, enough);
    mine_ = Nccl::buffer(room_ + 1);
    const std::size_t all = std::size_t(ranks_->size()) * (room_ + 1);
    all_ = Nccl::buffer(all);
    require_cuda(cudaMemsetAsync(mine_.get(), 0, (room_ + 1) * sizeof(double), stream), "clearing memory");
    require_cuda(cudaMemsetAsync(all_.get(), 0, all * sizeof(double), stream), "clearing memory");
  }
  return mine_.get() + 1;
}

cuda::Gathered NcclSums::gather(std::size_t count, cudaStream_t stream) const {
  nccl_->all_gather(mine_.get(), all_.get(), count + 1, stream);
  return {all_.get() + 1, ranks_->size(), count + 1, reinterpret_cast<cuda::Wishes*>(wishes_.get()), mine_.get()};
}

int* NcclSums::watch(const int* mine, int* told, cudaStream_t stream) {
  const cuda::Wishes none{mine, told};
  auto* const there = reinterpret_cast<cuda::Wishes*>(wishes_.get());
  require_cuda(cudaMemcpyAsync(there, &none, sizeof none, cudaMemcpyHostToDevice, stream), "opening the team");
  // What the last sum of the solve before left for the next.
  require_cuda(cudaMemsetAsync(mine_.get(), 0, sizeof(double), stream), "clearing memory");
  return &there->agreed;
}

}  // namespace krilu::exec
