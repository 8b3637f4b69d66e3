// SPDX-License-Identifier: Apache-2.0
// exec::Cuda: one GPU as an execution space. Kernels go to one stream. repeat_until records its body once into the body
// of a WHILE node of a CUDA graph (when into an IF node, both nest), so that no iteration returns to the host: a kernel
// reads the flag where it lives and sets the node's condition. Sums are those of reductions.cuh and columns.cuh: one
// launch a reduction, and the same bits on every run. Source: CUDA programming guide, conditional graph nodes. Included
// by .cu files only.
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
#include "exec/columns.cuh"
#include "exec/overlap.cuh"
#include "exec/reductions.cuh"
#include "exec/team.cuh"

namespace krilu::exec {

/// Throws krilu::Error with CUDA's own words and what krilu was doing.
void require_cuda(cudaError_t status, const char* doing);

namespace cuda {

/// Blocks of block_threads that `threads` need.
inline unsigned blocks_for(std::int64_t threads) { return unsigned((threads + block_threads - 1) / block_threads); }
/// After a launch: throws krilu::Error, saying what it was for, where it failed.
inline void launched(const char* doing) { require_cuda(cudaGetLastError(), doing); }

template <class F>
__global__ void for_each_kernel(Turn turn, std::size_t n, F f) {
  turn.take();
  const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) f(static_cast<Index>(i));
}

template <class F>
__global__ void once_kernel(Turn turn, F f) {
  turn.take();
  f();
}

}  // namespace cuda

class Cuda {
  struct Device;

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
  template <class F>
  void in_company(F&& f) const {
    visits_host() ? team_->withheld.during(f) : f();
  }
  void release() const {
    if (team_) team_->withheld.release();
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
  /// Launches a kernel that takes its Turn first (overlap.cuh). It overlaps the launch before it where it has few
  /// thread blocks: loops over short vectors, and passes over many columns, which have as many as run at once. Not
  /// where this is a member of a team: its kernels wait for other ranks, and what waited for them would take the room
  /// of ranks that share the GPU.
  template <class... Parameters, class... Arguments>
  void launch(void (*kernel)(Turn, Parameters...), Grid grid, Arguments&&... arguments) const {
    const bool overlaps = may_overlap(grid, few_blocks);
    launch(overlaps, kernel, grid, Turn{overlaps}, std::forward<Arguments>(arguments)...);
  }
  /// Whether a kernel is to overlap that asks for a matrix before it takes its turn, and gains by it with up to so many
  /// thread blocks on a multiprocessor: within a recorded loop alone, whose nodes all come after whatever made the
  /// matrix.
  bool asks_ahead(Grid grid, int most_blocks) const { return recording() && may_overlap(grid, most_blocks); }
  /// Launches a kernel that keeps to overlap.cuh by itself.
  template <class... Parameters, class... Arguments>
  void launch(bool overlaps, void (*kernel)(Parameters...), Grid grid, Arguments&&... arguments) const {
    overlaps = overlaps && device_->overlaps_launches;
    if (recording()) device_->shape.push_back(overlaps);
    require_cuda(launch_kernel(stream(), overlaps, kernel, grid, std::forward<Arguments>(arguments)...),
                 "launching a kernel");
  }
  template <class F>
  void for_each(std::size_t n, F f) const {
    if (n == 0) return;
    launch(cuda::for_each_kernel<F>, grid(n), n, f);
  }
  template <class F>
  void once(F f) const {
    launch(cuda::once_kernel<F>, {1, 1}, f);
  }
  template <class F, class Close>
  void reduce(std::size_t n, F f, Close close) const {
    double* const sums = visits_host() ? team_->own_sums(3, stream()) : nullptr;
    const unsigned blocks = reduction_grid(n);
    launch(cuda::reduce_kernel<F, Close>, {blocks, cuda::block_threads}, n, f, close,
           scratch(blocks * cuda::most_sum_bytes), counters(1), connected() ? team_->post() : nullptr, sums);
    if (sums) close_gathered(sums, close, f, nullptr, Index{});
  }
  template <class F>
  void together(F f) const {
    launch(cuda::together_kernel<F>, {1, 32}, f);
  }
  template <bool Itself = false, class B, class T, std::size_t N, class Close, class Finish>
  void dot_columns(std::size_t n, Columns<B> V, Index most, Scalar<Index> count, Index extra, std::array<View<T>, N> x,
                   Close close, Finish finish) const {
    double* const sums = visits_host() ? team_->own_sums(2 * std::size_t(most), stream()) : nullptr;
    const cuda::Post* const post = connected() ? team_->post() : nullptr;
    const unsigned groups = cuda::groups_of(most);
    if (post && groups > unsigned(cuda::channels)) throw_too_many_columns();
    const unsigned shares = cuda::blocks_for(std::int64_t(n / cuda::rows_of<B>) + 1);
    const unsigned blocks =
        std::max(groups, std::min(shares * groups, unsigned(cuda::ColumnsTuning::dotting_blocks * multiprocessors())));
    launch(cuda::dot_columns_kernel<Itself, B, T, N, Close, Finish>, {blocks, cuda::block_threads}, n, V, count, extra,
           x, close, finish, scratch(N * std::size_t(blocks) * cuda::ColumnsTuning::dotted * sizeof(double)),
           counters(Index(groups) + 1), groups, post, sums);
    if (!sums) return;
    const cuda::Gathered all = gathered(sums, 2 * std::size_t(most));
    cuda::close_columns_kernel<<<1, cuda::block_threads, 0, stream()>>>(count, extra + Itself, x, close, finish, all);
    launched();
  }
  template <class B, class T, std::size_t N, std::size_t R, class F>
  void combine_columns(std::size_t n, Columns<B> V, Index, Scalar<Index> count, std::array<View<T>, N> y,
                       std::array<View<T>, R> x, F f) const {
    if (n == 0) return;
    launch(cuda::combine_columns_kernel<B, T, N, R, F>, {combining_grid<B>(n), cuda::block_threads}, n, V, count, y, x,
           f);
  }
  template <class B, class T, std::size_t N, class F>
  void combine_columns(std::size_t n, Columns<B> V, Index most, Scalar<Index> count, std::array<View<T>, N> y,
                       F f) const {
    combine_columns(n, V, most, count, y, std::array<View<T>, 0>{}, f);
  }
  template <class B, class T, std::size_t N, std::size_t R, class F, class Close>
  void combine_columns(std::size_t n, Columns<B> V, Index, Scalar<Index> count, std::array<View<T>, N> y,
                       std::array<View<T>, R> x, F f, Close close) const {
    double* const sums = visits_host() ? team_->own_sums(3, stream()) : nullptr;
    const unsigned blocks = combining_grid<B>(n);
    launch(cuda::combine_and_reduce_kernel<B, T, N, R, F, Close>, {blocks, cuda::block_threads}, n, V, count, y, x, f,
           close, scratch(blocks * cuda::most_sum_bytes), counters(1), connected() ? team_->post() : nullptr, sums);
    if (!sums) return;
    if constexpr (R == 0)
      close_gathered(sums, close, f, count.data, Index{}, Sums<T, int(N)>{});
    else
      close_gathered(sums, close, f, count.data, Index{}, Sums<T, int(N)>{}, Sums<T, int(R)>{});
  }
  template <class B, class T, std::size_t N, class F, class Close>
  void combine_columns(std::size_t n, Columns<B> V, Index most, Scalar<Index> count, std::array<View<T>, N> y, F f,
                       Close close) const {
    combine_columns(n, V, most, count, y, std::array<View<T>, 0>{}, f, close);
  }
  template <class B, class T, class Join, class Rest, class Close>
  void join_columns(std::size_t n, Columns<B> V, Scalar<Index> count, Rotations<T> by, View<T> y, View<T> z, View<T> u,
                    View<T> r, Join join, Rest rest, Close close) const {
    double* const sums = visits_host() ? team_->own_sums(3, stream()) : nullptr;
    const unsigned blocks = combining_grid<B>(n);
    launch(cuda::join_columns_kernel<B, T, Join, Rest, Close>, {blocks, cuda::block_threads}, n, V, count, by, y, z, u,
           r, join, rest, close, scratch(blocks * cuda::most_sum_bytes), counters(1),
           connected() ? team_->post() : nullptr, sums);
    if (sums) close_gathered(sums, close, rest, nullptr, T(0), T(0));
  }

  // --- control --------------------------------------------------------------------------------------------------
  /// A graph that is kept: to make it ready takes the host as long as several iterations of a small system take, and
  /// the GPU waits meanwhile. Once renewed, it is recorded anew, and brought up to date where it has the same nodes and
  /// they work on something else, which takes far less.
  class Recording {
   public:
    Recording() = default;
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    ~Recording() {
      if (graph_) device_->launched_graphs.push_back(graph_);
    }
    void renew() { current_ = false; }

   private:
    friend class Cuda;
    std::shared_ptr<Device> device_;
    cudaGraphExec_t graph_ = nullptr;
    std::vector<std::size_t> shape_;
    bool current_ = false;
  };
  template <class Body>
  void replay(Recording& kept, Body body) const {
    if (visits_host() || recording() || device_->rehearsals > 0) return body();
    if (!kept.current_) record(kept, body);
    require_cuda(cudaGraphLaunch(kept.graph_, stream()), "launching a graph");
  }
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
    return replayed(recorded(f).get());
  }
  struct DropGraph {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
  };
  using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DropGraph>;
  /// What f launches, as a graph. Where f throws, the stream records no longer.
  template <class F>
  Graph recorded(F&& f) const {
    require_cuda(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeRelaxed), "recording");
    cudaGraph_t graph = nullptr;
    try {
      f();
    } catch (...) {
      cudaStreamEndCapture(stream(), &graph);
      if (graph) cudaGraphDestroy(graph);
      cudaGetLastError();
      throw;
    }
    require_cuda(cudaStreamEndCapture(stream(), &graph), "recording");
    return Graph(graph);
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
    std::size_t shared_memory = 0;   // that a thread block may ask for
    bool overlaps_launches = false;  // as overlap.cuh has it
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
    std::vector<std::size_t> shape;  // of what is recorded: whether each launch overlaps, and each body's nodes
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
  /// What follows where kernels left this rank's sums and did not close.
  template <class Close, class F, class... Arguments>
  void close_gathered(double* sums, Close close, F f, const Index* count, Arguments... of_f) const {
    const cuda::Gathered all = gathered(sums, 3);
    cuda::close_kernel<<<1, 32, 0, stream()>>>(f, close, all, count, of_f...);
    launched();
  }
  void make_room() const;
  void drop_graphs() const;
  [[noreturn]] static void throw_too_many_columns();

  static constexpr int few_blocks = 4;  // on a multiprocessor
  bool may_overlap(Grid grid, int on_a_multiprocessor) const {
    return device_->overlaps_launches && !team_ && grid.blocks <= unsigned(on_a_multiprocessor * multiprocessors());
  }
  Grid grid(std::size_t n) const { return {blocks_of(n), cuda::block_threads}; }
  static unsigned blocks_of(std::size_t n) {
    return unsigned(std::min<std::size_t>((n + cuda::block_threads - 1) / cuda::block_threads, 1u << 30));
  }
  /// As many blocks as run at once, so that the number of partial sums is small and fixed.
  unsigned reduction_grid(std::size_t n) const {
    return std::max(1u, std::min(blocks_of(n), unsigned(8 * multiprocessors())));
  }
  template <class B>
  unsigned combining_grid(std::size_t n) const {
    return std::min(blocks_of(n / cuda::rows_of<B> + 1),
                    unsigned(cuda::ColumnsTuning::combining_blocks * multiprocessors()));
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
  /// What body() launches becomes a graph that is ready, made of the one that was.
  template <class Body>
  void record(Recording& kept, Body body) const;
  static std::size_t nodes_of(cudaGraph_t graph) {
    std::size_t count = 0;
    require_cuda(cudaGraphGetNodes(graph, nullptr, &count), "counting a graph's nodes");
    return count;
  }
  /// A node, in the graph that is being recorded.
  template <class Body>
  void conditional(cudaGraphConditionalNodeType type, Scalar<int> flag, Body body) const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<DeviceTeam> team_;  // null: alone
};

namespace cuda {
/// WHILE goes on until the flag is set; IF runs where it is set.
__global__ inline void set_condition(Turn turn, cudaGraphConditionalHandle handle, Scalar<int> flag, bool until) {
  turn.take();
  cudaGraphSetConditional(handle, (flag() != 0) != until ? 1u : 0u);
}
}  // namespace cuda

template <class Body>
void Cuda::record(Recording& kept, Body body) const {
  Device& d = *device_;
  d.shape.clear();
  cudaGraph_t graph = nullptr;
  require_cuda(cudaGraphCreate(&graph, 0), "making a graph");
  const Graph dropped_at_end(graph);
  require_cuda(cudaStreamBeginCaptureToGraph(d.stream, graph, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed),
               "recording a graph");
  ++d.depth;
  try {
    body();
  } catch (...) {  // the stream records no more, and the space is as it was
    --d.depth;
    cudaGraph_t dropped = nullptr;
    cudaStreamEndCapture(d.stream, &dropped);
    cudaGetLastError();
    throw;
  }
  --d.depth;
  require_cuda(cudaStreamEndCapture(d.stream, &graph), "recording a graph");
  // The driver may wait for what runs here, and kernels of a team wait for other ranks: those that came before first.
  if (team_) require_cuda(cudaStreamSynchronize(d.stream), "working on the GPU");
  d.shape.push_back(nodes_of(graph));
  // Whether a launch overlaps is said by an edge, which no update is said to change.
  const bool alike = kept.graph_ && kept.shape_ == d.shape;
  cudaGraphExecUpdateResultInfo difference;
  if (!alike || cudaGraphExecUpdate(kept.graph_, graph, &difference) != cudaSuccess) {
    if (alike) cudaGetLastError();
    if (kept.graph_) d.launched_graphs.push_back(std::exchange(kept.graph_, nullptr));
    kept.device_ = device_;
    require_cuda(cudaGraphInstantiate(&kept.graph_, graph, 0), "making a graph ready");
  }
  kept.shape_ = d.shape;
  kept.current_ = true;
  if (team_) team_->meet();
}

template <class Body>
void Cuda::conditional(cudaGraphConditionalNodeType type, Scalar<int> flag, Body body) const {
  Device& d = *device_;
  if (d.depth == 0) {
    Recording once;
    record(once, [&] { conditional(type, flag, body); });
    require_cuda(cudaGraphLaunch(once.graph_, d.stream), "launching a graph");
    return;
  }
  const bool until = type == cudaGraphCondTypeWhile;
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
  launch(cuda::set_condition, {1, 1}, handle, flag, until);
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
  const cudaError_t began = cudaStreamBeginCaptureToGraph(inner, params.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                                          cudaStreamCaptureModeRelaxed);
  if (began != cudaSuccess) d.idle_streams.push_back(inner);
  require_cuda(began, "recording the body of a loop");
  const cudaStream_t outer = std::exchange(d.stream, inner);
  ++d.depth;
  const auto leave = [&] {
    --d.depth;
    d.stream = outer;
    d.idle_streams.push_back(inner);
  };
  cudaGraph_t recorded = nullptr;
  try {
    body();
    if (until) launch(cuda::set_condition, {1, 1}, handle, flag, until);
  } catch (...) {
    cudaStreamEndCapture(inner, &recorded);
    leave();
    throw;
  }
  leave();
  require_cuda(cudaStreamEndCapture(inner, &recorded), "recording the body of a loop");
  d.shape.push_back(nodes_of(recorded));
}

}  // namespace krilu::exec
