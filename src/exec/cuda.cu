// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "exec/cuda.cuh"
#include "exec/host.hpp"
#include "exec/nccl.cuh"
#include "krilu/error.hpp"

namespace krilu::exec {

void require_cuda(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // forgotten, unless the device is lost
  throw Error(std::string("CUDA failed while ") + doing + ": " + cudaGetErrorString(status) + " (" +
              cudaGetErrorName(status) + ")");
}

namespace {

/// From the device's own pool, in the order of the stream: what was freed is had again without asking the driver.
struct DeviceMemory final : Memory {
  explicit DeviceMemory(cudaStream_t s) : stream(s) {}
  void* allocate(std::size_t bytes) override {
    void* p = nullptr;
    const cudaError_t status = cudaMallocAsync(&p, bytes, stream);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      std::size_t free = 0, total = 0;
      cudaMemGetInfo(&free, &total);
      char sentence[200];
      std::snprintf(
          sentence, sizeof sentence,
          "the GPU has %.1f GB free of %.1f GB, and %.1f GB more are needed: take --device host, or a GPU with "
          "more memory",
          1e-9 * double(free), 1e-9 * double(total), 1e-9 * double(bytes));
      throw Error(sentence);
    }
    require_cuda(status, "allocating device memory");
    return p;
  }
  void deallocate(void* p, std::size_t) noexcept override { cudaFreeAsync(p, stream); }
  cudaStream_t stream;
};

/// At once, whatever the stream is recording.
struct PlainMemory final : Memory {
  void* allocate(std::size_t bytes) override {
    void* p = nullptr;
    require_cuda(cudaMalloc(&p, bytes), "allocating work space");
    return p;
  }
  void deallocate(void* p, std::size_t) noexcept override { cudaFree(p); }
};

constexpr std::size_t small_bytes = 4096;
// Copies of pageable memory: stages of pinned memory, the size from which copies use them, that from which a copy has
// many pieces, and how many threads fill or empty stages.
constexpr std::size_t stages = 16, stage_bytes = std::size_t(2) << 20, large_copy = std::size_t(128) << 20;
constexpr std::size_t least_staged = std::size_t(1) << 20;
constexpr int most_copying = 8;
/// Bytes of a piece.
std::size_t piece_of(std::size_t bytes) { return bytes < large_copy ? stage_bytes / 2 : stage_bytes; }

/// Pinned and mapped. Small arrays share a page: asking the driver for one, and giving it back, would wait for all that
/// runs on any GPU, also for kernels that wait for this rank.
class SharedMemory final : public Memory {
 public:
  explicit SharedMemory(cudaStream_t s) : stream_(s), page_(static_cast<char*>(asked(pieces * piece_bytes))) {
    for (std::size_t k = 0; k < pieces; ++k) idle_.push_back(page_ + k * piece_bytes);
  }
  ~SharedMemory() override { cudaFreeHost(page_); }
  void* allocate(std::size_t bytes) override {
    if (bytes > piece_bytes || idle_.empty()) return asked(bytes);
    void* const p = idle_.back();
    idle_.pop_back();
    return p;
  }
  void deallocate(void* p, std::size_t) noexcept override {
    if (p < page_ || p >= page_ + pieces * piece_bytes) {
      cudaFreeHost(p);
      return;
    }
    cudaStreamSynchronize(stream_);  // nothing that still runs writes to what somebody else will have
    idle_.push_back(p);              // there is room: it came from here
  }

 private:
  static constexpr std::size_t piece_bytes = 64, pieces = 64;
  static void* asked(std::size_t bytes) {
    void* p = nullptr;
    require_cuda(cudaHostAlloc(&p, bytes, cudaHostAllocMapped), "allocating pinned memory");
    return p;
  }
  cudaStream_t stream_;
  char* page_;
  std::vector<void*> idle_;
};

}  // namespace

Cuda::Cuda(int number, int host_threads) : device_(std::make_shared<Device>()) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();
    throw Error("this machine has no NVIDIA GPU that CUDA can use: take --device host");
  }
  if (number < 0 || number >= count)
    throw Error("there is no GPU " + std::to_string(number) + ": this machine has " + std::to_string(count) +
                ", counted from 0");
  Device& d = *device_;
  d.number = number;
  require_cuda(cudaSetDevice(number), "choosing the GPU");
  cudaDeviceProp properties;
  require_cuda(cudaGetDeviceProperties(&properties, number), "asking the GPU");
  d.name = properties.name;
  d.total_memory = properties.totalGlobalMem;
  d.shared_memory = properties.sharedMemPerBlockOptin;
  cudaFuncAttributes code = {};  // what was compiled for less neither waits nor lets others begin
  if (cudaFuncGetAttributes(&code, cuda::set_condition) != cudaSuccess) cudaGetLastError();  // a launch will say why
  d.overlaps_launches = properties.major >= 9 && code.ptxVersion >= 90;
  require_cuda(cudaDeviceGetAttribute(&d.multiprocessors, cudaDevAttrMultiProcessorCount, number), "asking the GPU");
  require_cuda(cudaStreamCreateWithFlags(&d.stream, cudaStreamNonBlocking), "making a stream");
  require_cuda(cudaHostAlloc(&d.small, small_bytes, cudaHostAllocDefault), "allocating pinned memory");
  cudaMemPool_t pool;
  std::uint64_t keep = ~std::uint64_t(0);  // what is freed stays ours
  require_cuda(cudaDeviceGetDefaultMemPool(&pool, number), "asking for the memory pool");
  require_cuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), "setting up the memory pool");
  d.host_threads = Host(host_threads).threads();
  d.memory = std::make_shared<DeviceMemory>(d.stream);
  d.plain = std::make_shared<PlainMemory>();
  d.shared = std::make_shared<SharedMemory>(d.stream);
}

Cuda::Device::~Device() {
  nccl.reset();
  scratch.clear();
  counters.clear();
  for (cudaGraphExec_t graph : launched_graphs) cudaGraphExecDestroy(graph);
  for (cudaStream_t idle : idle_streams) cudaStreamDestroy(idle);
  for (const Stage& s : stages) cudaEventDestroy(s.done);
  if (pinned) cudaFreeHost(pinned);
  if (small) cudaFreeHost(small);
  if (stream) cudaStreamDestroy(stream);
}

namespace {
constexpr int most_columns = cuda::channels * cuda::ColumnsTuning::dotted;  // of a team
}

/// For all that reductions will ask for, while nobody waits for another rank.
void Cuda::make_room() const {
  const std::size_t blocks = reduction_grid(std::size_t(1) << 40);
  scratch(2 * blocks * std::size_t(most_columns) * sizeof(double));
  counters(cuda::channels + 1);
}

void Cuda::throw_too_many_columns() {
  throw Error("a basis of so many vectors is more than several GPUs add up together: take a restart of at most " +
              std::to_string(most_columns - 20));
}

void Cuda::synchronise() const {
  ++device_->synchronisations;
  if (device_->nccl)
    device_->nccl->wait(device_->stream);
  else
    require_cuda(cudaStreamSynchronize(device_->stream), "working on the GPU");
  if (!device_->keeps_graphs) drop_graphs();
}

cuda::Gathered Cuda::gathered(double* sums, std::size_t count) const {
  if (team_->nccl()) return team_->gathered(count, stream());
  synchronise();
  team_->sum(sums, count);
  return {sums};
}

/// Of launches that have ended.
void Cuda::drop_graphs() const {
  for (cudaGraphExec_t graph : device_->launched_graphs) cudaGraphExecDestroy(graph);
  device_->launched_graphs.clear();
}

namespace {

/// The GPU fetches what lies in memory at the bus's speed, and from a core's own cache at a third of that: past the
/// caches, then. Where there are many pieces, each has left the core's own cache before it is fetched.
void fill(char* to, const char* from, std::size_t n, [[maybe_unused]] bool past_caches) {
#if defined(__SSE2__)
  if (!past_caches) {
    std::memcpy(to, from, n);
    return;
  }
  std::size_t at = 0;
  for (; at + 64 <= n; at += 64)
    for (std::size_t k = at; k < at + 64; k += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + k), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k)));
  std::memcpy(to + at, from + at, n - at);
  _mm_sfence();
#else
  std::memcpy(to, from, n);
#endif
}

}  // namespace

/// Large copies pass through pinned memory in pieces. work(stages, next), on threads that have stages of their own,
/// takes piece by piece from next, fills or empties stages, and has the GPU work on others meanwhile. The driver's own
/// copy of pageable memory uses one core.
template <class Work>
void Cuda::by_pieces(Work work) const {
  Device& d = *device_;
  if (!d.pinned)
    require_cuda(cudaHostAlloc(&d.pinned, stages * stage_bytes, cudaHostAllocDefault), "allocating pinned memory");
  while (d.stages.size() < stages) {
    cudaEvent_t done;
    require_cuda(cudaEventCreateWithFlags(&done, cudaEventDisableTiming), "making an event");
    d.stages.push_back({static_cast<char*>(d.pinned) + d.stages.size() * stage_bytes, done});
  }
  std::atomic<std::size_t> next{0};
  std::atomic<cudaError_t> failure{cudaSuccess};
  // On the usual team: OpenMP ends threads that a smaller one leaves out, and makes them anew for the next.
  Host(d.host_threads).parallel([&](int me, int team) {
    const int copying = std::min(team, most_copying);
    if (me >= copying) return;
    const std::size_t begin = stages * std::size_t(me) / std::size_t(copying);
    const std::size_t end = stages * std::size_t(me + 1) / std::size_t(copying);
    int before = d.number;  // of a thread that is the caller's too
    cudaGetDevice(&before);
    cudaError_t status = cudaSetDevice(d.number);
    if (status == cudaSuccess) status = work(std::span(d.stages).subspan(begin, end - begin), next);
    if (before != d.number) cudaSetDevice(before);
    if (status != cudaSuccess) failure = status;
  });
  require_cuda(failure, "copying");
}

/// Small copies pass through pinned memory too: the driver waits for a copy of pageable memory with its own doors
/// closed, and a rank that shares the GPU could launch nothing meanwhile.
void Cuda::copy_in(void* to, const void* from, std::size_t bytes) const {
  Device& d = *device_;
  const auto put = [&](std::size_t at, const void* source, std::size_t n) {
    return cudaMemcpyAsync(static_cast<char*>(to) + at, source, n, cudaMemcpyHostToDevice, d.stream);
  };
  if (bytes <= small_bytes) {
    std::memcpy(d.small, from, bytes);
    if (bytes) require_cuda(put(0, d.small, bytes), "copying");
    return synchronise();
  }
  if (d.nccl) synchronise();  // what follows waits by itself, and for ever
  if (bytes < least_staged) {
    require_cuda(put(0, from, bytes), "copying");
    return synchronise();
  }
  const std::size_t piece = piece_of(bytes);
  by_pieces([&](std::span<const Stage> mine, std::atomic<std::size_t>& next) {
    cudaError_t status = cudaSuccess;
    for (std::size_t k = 0; status == cudaSuccess; k = (k + 1) % mine.size()) {
      const std::size_t at = next.fetch_add(piece);
      if (at >= bytes) break;
      const std::size_t n = std::min(piece, bytes - at);
      if ((status = cudaEventSynchronize(mine[k].done)) != cudaSuccess) break;
      fill(mine[k].memory, static_cast<const char*>(from) + at, n, bytes < large_copy);
      if ((status = put(at, mine[k].memory, n)) == cudaSuccess) status = cudaEventRecord(mine[k].done, d.stream);
    }
    return status;
  });
}

void Cuda::copy_out(void* to, const void* from, std::size_t bytes) const {
  Device& d = *device_;
  const auto get = [&](void* target, std::size_t at, std::size_t n) {
    return cudaMemcpyAsync(target, static_cast<const char*>(from) + at, n, cudaMemcpyDeviceToHost, d.stream);
  };
  if (bytes <= small_bytes) {
    if (bytes) require_cuda(get(d.small, 0, bytes), "copying");
    synchronise();
    std::memcpy(to, d.small, bytes);
    return;
  }
  if (d.nccl) synchronise();
  if (bytes < least_staged) {
    require_cuda(get(to, 0, bytes), "copying");
    return synchronise();
  }
  const std::size_t piece = piece_of(bytes);
  by_pieces([&](std::span<const Stage> mine, std::atomic<std::size_t>& next) {
    const auto length = [&](std::size_t at) { return std::min(piece, bytes - at); };
    std::array<std::size_t, stages> asked;  // where each stage's piece begins; from `bytes` on it has none
    const auto ask = [&](std::size_t k) {
      asked[k] = next.fetch_add(piece);
      if (asked[k] >= bytes) return cudaSuccess;
      const cudaError_t status = get(mine[k].memory, asked[k], length(asked[k]));
      return status == cudaSuccess ? cudaEventRecord(mine[k].done, d.stream) : status;
    };
    cudaError_t status = cudaSuccess;
    for (std::size_t k = 0; status == cudaSuccess && k < mine.size(); ++k) status = ask(k);
    for (std::size_t k = 0; status == cudaSuccess && asked[k] < bytes; k = (k + 1) % mine.size()) {
      if ((status = cudaEventSynchronize(mine[k].done)) != cudaSuccess) break;
      std::memcpy(static_cast<char*>(to) + asked[k], mine[k].memory, length(asked[k]));
      status = ask(k);
    }
    return status;
  });
  synchronise();
}

double Cuda::replayed(cudaGraph_t graph) const {
  cudaGraphExec_t ready;
  cudaEvent_t begin, end;
  require_cuda(cudaGraphInstantiate(&ready, graph, 0), "recording");
  require_cuda(cudaEventCreate(&begin), "making an event");
  require_cuda(cudaEventCreate(&end), "making an event");
  require_cuda(cudaGraphLaunch(ready, device_->stream), "timing");
  require_cuda(cudaEventRecord(begin, device_->stream), "timing");
  require_cuda(cudaGraphLaunch(ready, device_->stream), "timing");
  require_cuda(cudaEventRecord(end, device_->stream), "timing");
  synchronise();
  float ms = 0;
  require_cuda(cudaEventElapsedTime(&ms, begin, end), "timing");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(ready);
  return ms;
}

bool Cuda::flagged(Scalar<int> flag) const {
  int value = 0;
  copy_out(&value, flag.data, sizeof value);
  return value != 0;
}

void Cuda::require_memory(std::size_t bytes, Index rows, Offset nonzeros) const {
  if (bytes < device_->total_memory / 8) return;  // asking takes longer than setting up a small system
  std::size_t free = 0, total = 0, reserved = 0, used = 0;
  cudaMemPool_t pool;
  require_cuda(cudaMemGetInfo(&free, &total), "asking for free memory");
  require_cuda(cudaDeviceGetDefaultMemPool(&pool, device_->number), "asking for free memory");
  require_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved), "asking for free memory");
  require_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), "asking for free memory");
  const std::size_t had = free + reserved - used;
  if (bytes <= had) return;
  char sentence[300];
  std::snprintf(
      sentence, sizeof sentence,
      "the system of %d rows and %d nonzeros needs about %.2f GB on the GPU, which has %.2f GB free of %.2f GB: "
      "take --device host, or a GPU with more memory",
      int(rows), int(nonzeros), 1e-9 * double(bytes), 1e-9 * double(had), 1e-9 * double(total));
  throw Error(sentence);
}

void* Cuda::scratch(std::size_t bytes) const {
  auto& pieces = device_->scratch;
  if (pieces.empty() || pieces.back()->size() < bytes)
    pieces.push_back(std::make_unique<Array<char>>(device_->plain, std::max<std::size_t>(2 * bytes, 1 << 16)));
  return pieces.back()->data();
}

unsigned* Cuda::counters(Index n) const {
  auto& pieces = device_->counters;
  if (pieces.empty() || pieces.back()->size() < std::size_t(n)) {
    pieces.push_back(std::make_unique<Array<unsigned>>(device_->plain, std::max<std::size_t>(2 * std::size_t(n), 64)));
    // Every reduction leaves its counters at zero; only new ones have to be set.
    require_cuda(cudaMemset(pieces.back()->data(), 0, pieces.back()->bytes()), "clearing counters");
  }
  return pieces.back()->data();
}

}  // namespace krilu::exec
