// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <set>
#include <utility>

#include "exec/cuda.cuh"
#include "exec/nccl.cuh"
#include "exec/team.cuh"

namespace krilu::exec {

namespace {

/// What a rank says of its GPU.
struct Card {
  char host[64] = {};
  long process = 0;
  int device = 0;
  char bus[32] = {};       // names the GPU in all processes of the machine
  void* memory = nullptr;  // null: it could not be had
  bool has_handle = false;
  cudaIpcMemHandle_t handle = {};
};

bool succeeded(cudaError_t status) {
  if (status != cudaSuccess) cudaGetLastError();
  return status == cudaSuccess;
}

/// Whether kernels of GPU `own` may reach the memory of `other`, both of this process. It stays so until it ends.
bool open_access(int own, int other) {
  static std::mutex mutex;
  static std::set<std::pair<int, int>> open;
  const std::lock_guard lock(mutex);
  if (open.contains({own, other})) return true;
  int possible = 0;
  if (!succeeded(cudaDeviceCanAccessPeer(&possible, own, other)) || !possible) return false;
  const cudaError_t status = cudaDeviceEnablePeerAccess(other, 0);
  if (status != cudaErrorPeerAccessAlreadyEnabled && !succeeded(status)) return false;
  cudaGetLastError();
  open.insert({own, other});
  return true;
}

/// The other's memory as this rank reaches it; null where it cannot.
void* reach(const Card& own, const Card& other, std::vector<void*>& opened) {
  if (!other.memory || std::strncmp(own.host, other.host, sizeof own.host) != 0) return nullptr;
  if (own.process == other.process)
    return own.device == other.device || open_access(own.device, other.device) ? other.memory : nullptr;
  void* there = nullptr;
  if (!other.has_handle || !succeeded(cudaIpcOpenMemHandle(&there, other.handle, cudaIpcMemLazyEnablePeerAccess)))
    return nullptr;
  opened.push_back(there);
  return there;
}

constexpr std::size_t box_words =
    std::size_t(2) * cuda::channels * cuda::most_peers * 2 * std::size_t(cuda::most_values);

}  // namespace

PeerMemory::PeerMemory(int device, Ranks& ranks, std::size_t bytes) : of_(std::size_t(ranks.size())) {
  Card own;
  gethostname(own.host, sizeof own.host - 1);
  own.process = long(getpid());
  own.device = device;
  succeeded(cudaDeviceGetPCIBusId(own.bus, sizeof own.bus, device));
  if (ranks.size() <= cuda::most_peers && succeeded(cudaSetDevice(device)) && succeeded(cudaMalloc(&own_, bytes)) &&
      succeeded(cudaMemset(own_, 0, bytes)) && succeeded(cudaDeviceSynchronize())) {
    own.memory = own_;
    own.has_handle = succeeded(cudaIpcGetMemHandle(&own.handle, own_));
  }
  std::vector<Card> all(of_.size());
  ranks.all_gather(&own, sizeof own, all.data());
  double unreached = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const bool self = int(r) == ranks.rank();
    const bool same = !self && std::strncmp(own.host, all[r].host, sizeof own.host) == 0 &&
                      std::strncmp(own.bus, all[r].bus, sizeof own.bus) == 0;
    of_[r] = self ? own_ : same && !cuda::share_gpus ? nullptr : reach(own, all[r], opened_);
    unreached += of_[r] == nullptr;
  }
  ranks.sum({&unreached, 1});
  possible_ = unreached == 0;
}

PeerMemory::~PeerMemory() {
  for (void* there : opened_) cudaIpcCloseMemHandle(there);
  if (own_) cudaFree(own_);
}

DeviceTeam::DeviceTeam(std::shared_ptr<Ranks> ranks, std::int64_t rows, int device)
    : ranks_(std::move(ranks)), rows_(rows), device_(device), exceptions_(std::uncaught_exceptions()) {
  require_cuda(cudaSetDevice(device), "choosing the GPU");
  require_cuda(cudaHostAlloc(&wish_there_, sizeof *wish_there_, cudaHostAllocMapped), "allocating pinned memory");
  require_cuda(cudaHostAlloc(&told_, sizeof *told_, cudaHostAllocMapped), "allocating pinned memory");
  require_cuda(cudaMalloc(&post_there_, sizeof *post_there_), "allocating device memory");
  *told_ = 0;
}

void DeviceTeam::give_up() {
  if (gathered_) gathered_->nccl()->abort();
  if (!connected()) return;
  // A stream of its own: this rank's may wait for the others.
  cudaStream_t stream = nullptr;
  if (!succeeded(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))) return;
  for (int r = 0; r < post_.size; ++r)
    if (r != post_.rank) cudaMemsetAsync(post_.box[r] + box_words, 1, sizeof(int), stream);
  cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  cudaGetLastError();
}

DeviceTeam::~DeviceTeam() {
  cudaSetDevice(device_);
  if (std::uncaught_exceptions() > exceptions_) give_up();
  if (post_there_) cudaFree(post_there_);
  if (wish_there_) cudaFreeHost(wish_there_);
  if (told_) cudaFreeHost(told_);
  if (staged_) cudaFreeHost(staged_);
}

void DeviceTeam::connect(cudaStream_t stream) {
  if (std::exchange(tried_, true) || ranks_->size() == 1 || cuda::way == cuda::Way::host) return;
  if (cuda::way == cuda::Way::best && connect_peers()) return;
  Nccl::Made made = Nccl::connect(ranks_, device_, stream);
  why_no_nccl_ = std::move(made.why_not);
  if (made.nccl) gathered_ = std::make_unique<NcclSums>(std::move(made.nccl), ranks_, stream);
}

void DeviceTeam::disconnect() {
  post_.size = 1;
  gathered_.reset();
}

std::shared_ptr<Nccl> DeviceTeam::nccl() const { return gathered_ ? gathered_->nccl() : nullptr; }

double* DeviceTeam::own_sums(std::size_t count, cudaStream_t stream) {
  return gathered_ ? gathered_->own(count, stream) : staged(count);
}
cuda::Gathered DeviceTeam::gathered(std::size_t count, cudaStream_t stream) const {
  return gathered_->gather(count, stream);
}

bool DeviceTeam::connect_peers() {
  boxes_ = std::make_unique<PeerMemory>(device_, *ranks_, (box_words + 1) * sizeof(cuda::Word));
  if (!boxes_->possible()) {
    boxes_.reset();
    return false;
  }
  post_.rank = ranks_->rank();
  post_.size = ranks_->size();
  for (int r = 0; r < post_.size; ++r) post_.box[r] = static_cast<cuda::Word*>(boxes_->of(r));
  post_.waiting = {reinterpret_cast<const int*>(post_.box[post_.rank] + box_words),
                   static_cast<unsigned long long>(1e9 * cuda::patience)};
  post_.told = told_;
  require_cuda(cudaMemcpy(post_there_, &post_, sizeof post_, cudaMemcpyHostToDevice), "opening the team");
  return true;
}

void DeviceTeam::meet() const {
  double nothing = 0;
  ranks_->sum({&nothing, 1});
}

void DeviceTeam::sum(double* values, std::size_t count) {
  buffer_.assign(values, values + count);
  buffer_.push_back(withheld.any() || (post_.wish && *static_cast<const volatile int*>(post_.wish) != 0));
  ranks_->sum(buffer_);
  std::copy_n(buffer_.begin(), count, values);
  if (buffer_.back() != 0) *told_ = 1;
}

int* DeviceTeam::watch(int* mine, cudaStream_t stream) {
  post_.wish = mine;
  *told_ = 0;
  withheld.forget();
  if (gathered_) return gathered_->watch(mine, told_, stream);
  if (!connected()) return told_;
  *wish_there_ = mine;
  require_cuda(cudaMemcpyAsync(&post_there_->wish, wish_there_, sizeof mine, cudaMemcpyHostToDevice, stream),
               "opening the team");
  require_cuda(cudaMemsetAsync(&post_there_->agreed, 0, sizeof(int), stream), "clearing memory");
  return &post_there_->agreed;
}

double* DeviceTeam::staged(std::size_t values) {
  if (staged_size_ < values) {
    if (staged_) cudaFreeHost(staged_);
    staged_ = nullptr;
    require_cuda(cudaHostAlloc(&staged_, values * sizeof(double), cudaHostAllocMapped), "allocating pinned memory");
    std::fill_n(staged_, values, 0.0);
    staged_size_ = values;
  }
  return staged_;
}

}  // namespace krilu::exec
