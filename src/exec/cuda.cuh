// SPDX-License-Identifier: Apache-2.0
// exec::Cuda: one GPU as an execution space. Kernels go to one stream. repeat_until records its body once into the body
// of a WHILE node of a CUDA graph (when into an IF node, both nest), so that no iteration returns to the host: a kernel
// reads the flag where it lives and sets the node's condition. Sums are formed by a grid of fixed size and added in
// block order by the block that finishes last, which also runs the closing step: one launch a reduction, and the same
// bits on every run. Sources: CUDA programming guide, conditional graph nodes; the last-block reduction of the CUDA
// samples (threadFenceReduction). Included by .cu files only.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exec/array.hpp"
#include "exec/team.cuh"

namespace krilu::exec {

/// Throws krilu::Error with CUDA's own words and what krilu was doing.
void require_cuda(cudaError_t status, const char* doing);

namespace cuda {

constexpr int block_threads = 256;
/// Blocks of block_threads that `threads` need.
inline unsigned blocks_for(std::int64_t threads) { return unsigned((threads + block_threads - 1) / block_threads); }
/// After a launch: throws krilu::Error, saying what it was for, where it failed.
inline void launched(const char* doing) { require_cuda(cudaGetLastError(), doing); }

constexpr std::size_t most_sum_bytes = 3 * sizeof(double);  // of one block: up to three sums

template <class F>
__global__ void for_each_kernel(std::size_t n, F f) {
  const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) f(static_cast<Index>(i));
}

template <class F>
__global__ void for_each_range_kernel(std::size_t n, F f) {
  const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    f(static_cast<Index>(i), static_cast<Index>(i + 1));
}

template <class F>
__global__ void once_kernel(F f) {
  f();
}

/// Adds the block's values, result in thread 0. Fixed tree: the same bits on every run.
template <class T, int N>
__device__ void block_sum(T (&sum)[N]) {
  __shared__ T warp_sum[N][block_threads / 32];
#pragma unroll
  for (int k = 0; k < N; ++k) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) sum[k] += __shfl_down_sync(0xffffffffu, sum[k], offset);
    if (threadIdx.x % 32 == 0) warp_sum[k][threadIdx.x / 32] = sum[k];
  }
  __syncthreads();
  if (threadIdx.x < 32) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      sum[k] = threadIdx.x < block_threads / 32 ? warp_sum[k][threadIdx.x] : T(0);
#pragma unroll
      for (int offset = block_threads / 64; offset > 0; offset /= 2)
        sum[k] += __shfl_down_sync(0xffffffffu, sum[k], offset);
    }
  }
}

/// Leaves the block's sums in partial[N * block]; true in all threads of the block that arrives last, once all are
/// seen.
template <class T, int N>
__device__ bool arrive(T (&sum)[N], T* partial, unsigned* arrived, unsigned blocks, unsigned block) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    for (int k = 0; k < N; ++k) partial[N * block + k] = sum[k];
    __threadfence();
    last = atomicAdd(arrived, 1u) == blocks - 1;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

/// In the last block: the sum of all partials, in thread 0.
template <class T, int N>
__device__ void sum_partials(T (&sum)[N], const T* partial, unsigned blocks) {
  for (int k = 0; k < N; ++k) sum[k] = 0;
  for (unsigned b = threadIdx.x; b < blocks; b += block_threads)
    for (int k = 0; k < N; ++k) sum[k] += static_cast<const volatile T*>(partial)[N * b + k];
  __syncthreads();  // block_sum's shared memory is used again
  block_sum(sum);
}

/// Where kernels do not add up over ranks themselves, instead of the closing step: as doubles.
template <class V>
__device__ __forceinline__ void leave_sums(double* out, const V& total) {
#pragma unroll
  for (int k = 0; k < SumTraits<V>::count; ++k) out[k] = double(SumTraits<V>::get(total, k));
}

template <class F, class Close>
__global__ void __launch_bounds__(block_threads)
    reduce_kernel(std::size_t n, F f, Close close, void* work, unsigned* arrived, const Post* post, double* leave) {
  // The type is asked for here: host code does not know what a device lambda returns.
  using V = std::decay_t<decltype(f(Index{}))>;
  using T = typename SumTraits<V>::Value;
  constexpr int N = SumTraits<V>::count;
  static_assert(N * sizeof(T) <= most_sum_bytes);
  T* const partial = static_cast<T*>(work);
  T sum[N] = {};
  const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    const V v = f(static_cast<Index>(i));
#pragma unroll
    for (int k = 0; k < N; ++k) sum[k] += SumTraits<V>::get(v, k);
  }
  block_sum(sum);
  if (!arrive(sum, partial, arrived, gridDim.x, blockIdx.x)) return;
  sum_partials(sum, partial, gridDim.x);
  if (post && threadIdx.x < 32) share(post, 0, sum);
  if (threadIdx.x == 0) {
    *arrived = 0;
    V total;
    T* const out = reinterpret_cast<T*>(&total);
    for (int k = 0; k < N; ++k) out[k] = sum[k];
    leave ? leave_sums(leave, total) : close(total);
  }
}

constexpr Index columns_at_once = 8;  // of reduce_columns, by a block: what they share is read once

/// Columns from columns_at_once * blockIdx.y on of a reduce_columns; blocks without any leave at once.
template <class F, class Close>
__global__ void __launch_bounds__(block_threads)
    reduce_columns_kernel(std::size_t n, Scalar<Index> count, Index extra, F f, Close close, void* work,
                          unsigned* arrived, const Post* post, double* leave) {
  using V = std::decay_t<decltype(f(Index{}, Index{}))>;
  using T = typename SumTraits<V>::Value;
  constexpr int C = columns_at_once, N = SumTraits<V>::count;
  const Index first = static_cast<Index>(blockIdx.y) * C, columns = count() + extra;
  if (first >= columns) return;
  T sum[C * N] = {};
  const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
  std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const auto add = [&](int c) {
    const V v = f(static_cast<Index>(i), first + c);
#pragma unroll
    for (int k = 0; k < N; ++k) sum[c * N + k] += SumTraits<V>::get(v, k);
  };
  if (first + C <= columns) {
#pragma unroll 2
    for (; i < n; i += step)
#pragma unroll
      for (int c = 0; c < C; ++c) add(c);
  } else {
    for (; i < n; i += step)
#pragma unroll
      for (int c = 0; c < C; ++c)
        if (first + c < columns) add(c);
  }
  block_sum(sum);
  T* const own = static_cast<T*>(work) + std::size_t(first) * N * gridDim.x;
  if (!arrive(sum, own, arrived + blockIdx.y, gridDim.x, blockIdx.x)) return;
  sum_partials(sum, own, gridDim.x);
  if (post && threadIdx.x < 32) share(post, int(blockIdx.y), sum);
  if (threadIdx.x == 0) {
    arrived[blockIdx.y] = 0;
    for (int c = 0; c < C && first + c < columns; ++c) {
      V total;
      for (int k = 0; k < N; ++k) reinterpret_cast<T*>(&total)[k] = sum[c * N + k];
      leave ? leave_sums(leave + 2 * (first + c), total) : close(first + c, total);
    }
  }
}

template <class V>
__device__ V sums_from(const Gathered& in, Index first) {
  V total;
  for (int k = 0; k < SumTraits<V>::count; ++k)
    reinterpret_cast<typename SumTraits<V>::Value*>(&total)[k] = typename SumTraits<V>::Value(in(first + k));
  return total;
}
template <class F, class Close>
__global__ void close_kernel(F f, Close close, Gathered in) {
  in.see_to_wishes();
  close(sums_from<std::decay_t<decltype(f(Index{}))>>(in, 0));
}
template <class F, class Close>
__global__ void close_columns_kernel(Scalar<Index> count, Index extra, F f, Close close, Gathered in) {
  if (threadIdx.x == 0) in.see_to_wishes();
  for (Index j = Index(threadIdx.x); j < count() + extra; j += Index(blockDim.x))
    close(j, sums_from<std::decay_t<decltype(f(Index{}, Index{}))>>(in, 2 * j));
}

}  // namespace cuda

class Cuda {
 public:
  /// Throws krilu::Error where there is no such GPU.
  explicit Cuda(int number = 0, int host_threads = 0);

  static constexpr const char* name = "cuda";
  /// The host's cores, for what is prepared there.
  int threads() const { return device_->host_threads; }
  cudaStream_t stream() const { return device_->stream; }
  /// Called before work from a thread that may have used another GPU in between.
  void make_current() const { require_cuda(cudaSetDevice(device_->number), "choosing the GPU"); }
  /// As the driver names it: "NVIDIA H200".
  const std::string& device_name() const { return device_->name; }
  /// Throws krilu::Error, with the bytes that are needed and those that are free, where they do not fit.
  void require_memory(std::size_t bytes, Index rows, Offset nonzeros) const;
  int number() const { return device_->number; }
  int multiprocessors() const { return device_->multiprocessors; }
  /// Bytes that a thread block can have of shared memory where its kernel asks for them.
  std::size_t shared_memory() const { return device_->shared_memory; }

  // --- ranks ----------------------------------------------------------------------------------------------------
  // As exec::Host has them.
  Cuda join(std::shared_ptr<Ranks> ranks, std::int64_t rows) const {
    Cuda member = *this;
    member.team_ = std::make_shared<DeviceTeam>(std::move(ranks), rows, device_->number);
    device_->keeps_graphs = true;
    make_room();
    return member;
  }
  bool in_team() const { return team_ != nullptr; }
  std::size_t total(std::size_t rows) const { return team_ ? team_->rows() : rows; }
  std::size_t even_share(std::size_t rows) const { return team_ ? team_->even_share() : rows; }
  int* watch(int* mine) const { return team_ ? team_->watch(mine, stream()) : mine; }
  bool wished() const { return team_ && team_->wished(); }
  void meet() const {
    if (!team_) return;
    drop_graphs();
    team_->meet();
  }
  bool connect() const {
    if (!team_) return false;
    team_->connect(stream());
    device_->nccl = team_->nccl();
    return connected() || nccl();
  }
  void disconnect() const {
    if (team_) team_->disconnect();
    device_->nccl.reset();
  }
  /// The other ranks' GPUs are reached from within kernels; else iterations come to the host.
  bool connected() const { return team_ && team_->connected(); }
  /// What brings sums then, or null, and why: they come to the host too.
  std::shared_ptr<Nccl> nccl() const { return team_ ? team_->nccl() : nullptr; }
  std::string why_no_nccl() const { return team_ ? team_->why_no_nccl() : std::string(); }
  void give_up() const {
    if (team_) team_->give_up();
  }
  /// How kernels of a team wait.
  cuda::Waiting waiting() const { return team_ ? team_->waiting() : cuda::Waiting{}; }

  // --- memory ---------------------------------------------------------------------------------------------------
  template <class T>
  Array<T> allocate(std::size_t n) const {
    return Array<T>(device_->memory, n);
  }
  /// Pinned and mapped: kernels write it and the host reads it meanwhile, at one address.
  template <class T>
  Array<T> allocate_shared(std::size_t n) const {
    return Array<T>(device_->shared, n);
  }
  template <class T>
  void copy_in(const Array<T>& to, const T* from, std::size_t n) const {
    copy_in(to.data(), from, n * sizeof(T));
  }
  template <class T>
  void copy_out(T* to, const Array<T>& from, std::size_t n) const {
    copy_out(to, from.data(), n * sizeof(T));
  }
  /// A vector's entries, there.
  template <class Vector>
  Array<typename Vector::value_type> brought(const Vector& from) const {
    auto to = allocate<typename Vector::value_type>(from.size());
    copy_in(to, from.data(), from.size());
    return to;
  }
  /// One entry of an array.
  template <class T>
  T read(const Array<T>& from, std::size_t i) const {
    T value;
    copy_out(&value, from.data() + i, sizeof(T));
    return value;
  }
  /// to = 0, byte by byte.
  template <class T>
  void clear(const Array<T>& to) const {
    if (to.bytes()) require_cuda(cudaMemsetAsync(to.data(), 0, to.bytes(), stream()), "clearing memory");
  }
  void synchronise() const;
  long synchronisations() const { return device_->synchronisations; }
  bool recording() const { return device_->depth > 0; }

  // --- kernels --------------------------------------------------------------------------------------------------
  template <class F>
  void for_each(std::size_t n, F f) const {
    if (n == 0) return;
    cuda::for_each_kernel<<<grid(n), cuda::block_threads, 0, stream()>>>(n, f);
    launched();
  }
  template <class F>
  void for_each_range(std::size_t n, F f) const {
    if (n == 0) return;
    cuda::for_each_range_kernel<<<grid(n), cuda::block_threads, 0, stream()>>>(n, f);
    launched();
  }
  template <class F>
  void once(F f) const {
    cuda::once_kernel<<<1, 1, 0, stream()>>>(f);
    launched();
  }
  template <class F, class Close>
  void reduce(std::size_t n, F f, Close close) const {
    if (!visits_host()) return reduce_here(n, f, close, connected() ? team_->post() : nullptr, nullptr);
    double* const sums = team_->own_sums(3, stream());
    reduce_here(n, f, close, nullptr, sums);
    const cuda::Gathered all = gathered(sums, 3);
    cuda::close_kernel<<<1, 1, 0, stream()>>>(f, close, all);
    launched();
  }
  template <class F, class Close>
  void reduce_columns(std::size_t n, Index most, Scalar<Index> count, Index extra, F f, Close close) const {
    if (!visits_host())
      return reduce_columns_here(n, most, count, extra, f, close, connected() ? team_->post() : nullptr, nullptr);
    double* const sums = team_->own_sums(2 * std::size_t(most), stream());
    reduce_columns_here(n, most, count, extra, f, close, nullptr, sums);
    const cuda::Gathered all = gathered(sums, 2 * std::size_t(most));
    cuda::close_columns_kernel<<<1, cuda::block_threads, 0, stream()>>>(count, extra, f, close, all);
    launched();
  }

  // --- control --------------------------------------------------------------------------------------------------
  template <class Body>
  void repeat_until(Scalar<int> stop, Body body, int at_once = 1) const {
    if (visits_host()) {
      while (!flagged(stop))
        for (int k = 0; k < at_once; ++k) body();
      return;
    }
    while (device_->rehearsals > 0 && !recording()) {
      if (flagged(stop)) return;
      --device_->rehearsals;
      body();
    }
    conditional(cudaGraphCondTypeWhile, stop, [&] {
      for (int k = 0; k < at_once; ++k) body();
    });
  }
  template <class Body>
  void when(Scalar<int> flag, Body body) const {
    if (!visits_host() && (recording() || device_->rehearsals == 0))
      conditional(cudaGraphCondTypeIf, flag, [&] { body(); });
    else if (flagged(flag))
      body();
  }
  /// Milliseconds that what f launches takes on the device, as a graph that has run once before.
  template <class F>
  double milliseconds(F f) const {
    require_cuda(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeRelaxed), "recording");
    f();
    cudaGraph_t graph;
    require_cuda(cudaStreamEndCapture(stream(), &graph), "recording");
    return replayed(graph);
  }
  /// The next outermost repeat_until runs its body up to `times` times before it records it, kernel by kernel and with
  /// the host looking at the flag: whatever times its own choices does so then.
  /// Not in a team, where all ranks run the same number of bodies between two looks.
  void rehearse(int times) const { device_->rehearsals = team_ ? 0 : times; }

 private:
  /// A piece of pinned memory; done: the GPU is done with it.
  struct Stage {
    char* memory;
    cudaEvent_t done;
  };
  struct Device {
    std::string name;
    std::size_t total_memory = 0;
    int number = 0, multiprocessors = 1, host_threads = 1;
    std::size_t shared_memory = 0;  // that a thread block may ask for
    cudaStream_t stream = nullptr;
    std::vector<cudaStream_t> idle_streams;  // for bodies recorded while another records
    std::shared_ptr<Memory> memory, plain, shared;
    std::vector<cudaGraphExec_t> launched_graphs;  // alive until the next synchronisation, or
    bool keeps_graphs = false;  // the next meeting: to drop one may wait for all that runs on the GPU, also for kernels
                                // that wait for this rank
    std::vector<std::unique_ptr<Array<char>>> scratch;
    std::vector<std::unique_ptr<Array<unsigned>>> counters;
    std::shared_ptr<Nccl> nccl;  // not null: the stream may wait for other ranks
    int depth = 0, rehearsals = 0;
    long synchronisations = 0;
    void* small = nullptr;   // pinned, for small copies
    void* pinned = nullptr;  // for copies from and to pageable memory, by stages
    std::vector<Stage> stages;
    ~Device();
  };

  /// A team's loops, where kernels do not reach the other ranks.
  bool visits_host() const { return team_ && !team_->connected(); }
  /// Over all ranks, of what a kernel left in own_sums.
  cuda::Gathered gathered(double* sums, std::size_t count) const;
  template <class F, class Close>
  void reduce_here(std::size_t n, F f, Close close, const cuda::Post* post, double* leave) const {
    const unsigned blocks = reduction_grid(n);
    cuda::reduce_kernel<<<blocks, cuda::block_threads, 0, stream()>>>(
        n, f, close, scratch(blocks * cuda::most_sum_bytes), counters(1), post, leave);
    launched();
  }
  template <class F, class Close>
  void reduce_columns_here(std::size_t n, Index most, Scalar<Index> count, Index extra, F f, Close close,
                           const cuda::Post* post, double* leave) const {
    const unsigned blocks = reduction_grid(n);
    const unsigned groups = unsigned((most + cuda::columns_at_once - 1) / cuda::columns_at_once);
    if (post && groups > unsigned(cuda::channels)) throw_too_many_columns();
    // Up to two sums a column: host code does not know what f returns.
    cuda::reduce_columns_kernel<<<dim3(blocks, groups), cuda::block_threads, 0, stream()>>>(
        n, count, extra, f, close,
        scratch(2 * std::size_t(blocks) * groups * unsigned(cuda::columns_at_once) * sizeof(double)),
        counters(Index(groups)), post, leave);
    launched();
  }
  void make_room() const;
  void drop_graphs() const;
  [[noreturn]] static void throw_too_many_columns();

  unsigned grid(std::size_t n) const {
    return unsigned(std::min<std::size_t>((n + cuda::block_threads - 1) / cuda::block_threads, 1u << 30));
  }
  /// As many blocks as run at once, so that the number of partial sums is small and fixed.
  unsigned reduction_grid(std::size_t n) const {
    return std::max(1u, std::min(grid(n), unsigned(8 * multiprocessors())));
  }
  void launched() const { require_cuda(cudaGetLastError(), "launching a kernel"); }
  /// Work space of reductions. All kernels of a space stand in one stream, so one piece serves all; it may grow only
  /// while nothing that is recorded uses it, so old pieces stay.
  void* scratch(std::size_t bytes) const;
  unsigned* counters(Index n) const;
  template <class Work>
  void by_pieces(Work work) const;
  void copy_in(void* to, const void* from, std::size_t bytes) const;
  void copy_out(void* to, const void* from, std::size_t bytes) const;
  bool flagged(Scalar<int> flag) const;
  double replayed(cudaGraph_t graph) const;
  template <class Record>
  void conditional(cudaGraphConditionalNodeType type, Scalar<int> flag, Record record) const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<DeviceTeam> team_;  // null: alone
};

namespace cuda {
/// WHILE goes on until the flag is set; IF runs where it is set.
__global__ inline void set_condition(cudaGraphConditionalHandle handle, Scalar<int> flag, bool until) {
  cudaGraphSetConditional(handle, (flag() != 0) != until ? 1u : 0u);
}
}  // namespace cuda

template <class Record>
void Cuda::conditional(cudaGraphConditionalNodeType type, Scalar<int> flag, Record record) const {
  Device& d = *device_;
  const bool outermost = d.depth == 0;
  const bool until = type == cudaGraphCondTypeWhile;
  cudaGraph_t top = nullptr;
  if (outermost) {
    require_cuda(cudaGraphCreate(&top, 0), "making a graph");
    require_cuda(cudaStreamBeginCaptureToGraph(d.stream, top, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed),
                 "recording a graph");
  }
  // Where the stream's record stands: the graph, and the nodes that the next one depends on.
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* before = nullptr;
  std::size_t count = 0;
  cudaStreamCaptureStatus capturing;
  const auto position = [&] {
    const cudaGraphEdgeData* edges = nullptr;
    require_cuda(cudaStreamGetCaptureInfo(d.stream, &capturing, nullptr, &graph, &before, &edges, &count),
                 "recording a graph");
  };
  position();
  cudaGraphConditionalHandle handle;
  require_cuda(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0), "making a conditional node");
  cuda::set_condition<<<1, 1, 0, d.stream>>>(handle, flag, until);
  launched();
  position();
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = 1;
  cudaGraphNode_t node;
  require_cuda(cudaGraphAddNode(&node, graph, before, nullptr, count, &params), "adding a conditional node");
  require_cuda(cudaStreamUpdateCaptureDependencies(d.stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies),
               "recording a graph");

  // The body, on a stream of its own, since the outer one goes on recording.
  cudaStream_t inner;
  if (d.idle_streams.empty()) {
    require_cuda(cudaStreamCreateWithFlags(&inner, cudaStreamNonBlocking), "making a stream");
  } else {
    inner = d.idle_streams.back();
    d.idle_streams.pop_back();
  }
  require_cuda(cudaStreamBeginCaptureToGraph(inner, params.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                             cudaStreamCaptureModeRelaxed),
               "recording the body of a loop");
  const cudaStream_t outer = std::exchange(d.stream, inner);
  ++d.depth;
  try {
    record();
    if (until) {
      cuda::set_condition<<<1, 1, 0, d.stream>>>(handle, flag, until);
      cuda::launched("recording a loop");
    }
  } catch (...) {  // the streams record no more, and the space is as it was
    cudaGraph_t dropped = nullptr;
    cudaStreamEndCapture(inner, &dropped);
    d.idle_streams.push_back(inner);
    d.stream = outer;
    --d.depth;
    if (outermost) {
      cudaStreamEndCapture(outer, &dropped);
      cudaGraphDestroy(top);
    }
    cudaGetLastError();
    throw;
  }
  --d.depth;
  d.stream = outer;
  cudaGraph_t recorded;
  require_cuda(cudaStreamEndCapture(inner, &recorded), "recording the body of a loop");
  d.idle_streams.push_back(inner);

  if (outermost) {
    require_cuda(cudaStreamEndCapture(d.stream, &top), "recording a graph");
    // The driver may wait for what runs here, and kernels of a team wait for other ranks: those that came before first.
    if (team_) require_cuda(cudaStreamSynchronize(d.stream), "working on the GPU");
    cudaGraphExec_t ready;
    require_cuda(cudaGraphInstantiate(&ready, top, 0), "making a graph ready");
    require_cuda(cudaGraphDestroy(top), "making a graph ready");
    if (team_) team_->meet();
    require_cuda(cudaGraphLaunch(ready, d.stream), "launching a graph");
    d.launched_graphs.push_back(ready);
  }
}

}  // namespace krilu::exec
