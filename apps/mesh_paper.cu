// SPDX-License-Identifier: Apache-2.0
// krilu bench mesh-paper on a GPU. A sample is a CUDA graph of several runs between two events, so that what the host
// needs for launching does not count.
#include <cuda_runtime.h>

#include "exec/cuda.cuh"
#include "krilu/face_loops.cuh"
#include "mesh_paper_measure.hpp"

namespace krilu::app::mesh_paper {

namespace {

using exec::require_cuda;

class Event {
 public:
  Event() { require_cuda(cudaEventCreate(&event_), "making an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) { require_cuda(cudaEventRecord(event_, stream), "recording an event"); }
  double seconds_since(Event& start) {
    require_cuda(cudaEventSynchronize(event_), "waiting for a measurement");
    float milliseconds = 0;
    require_cuda(cudaEventElapsedTime(&milliseconds, start.event_, event_), "reading a time");
    return 1e-3 * double(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Runs of one call, recorded.
class Recorded {
 public:
  template <class Call>
  Recorded(cudaStream_t stream, const Call& call) : stream_(stream) {
    call();  // memory between kernels is there afterwards
    start_.record(stream_);
    call();
    stop_.record(stream_);
    const double one = stop_.seconds_since(start_);
    constexpr double sample = 1e-3;  // seconds: much longer than what an event's clock tells apart
    constexpr int most = 50;
    runs_ = one * most > sample ? std::max(1, int(sample / one)) : most;
    require_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "recording");
    for (int k = 0; k < runs_; ++k) call();
    cudaGraph_t graph = nullptr;
    require_cuda(cudaStreamEndCapture(stream_, &graph), "recording");
    const cudaError_t status = cudaGraphInstantiate(&graph_, graph, 0);
    cudaGraphDestroy(graph);
    require_cuda(status, "making a graph ready");
  }
  ~Recorded() { cudaGraphExecDestroy(graph_); }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  double seconds() {
    start_.record(stream_);
    require_cuda(cudaGraphLaunch(graph_, stream_), "launching a graph");
    stop_.record(stream_);
    return stop_.seconds_since(start_) / runs_;
  }

 private:
  cudaStream_t stream_;
  Event start_, stop_;
  int runs_ = 1;
  cudaGraphExec_t graph_ = nullptr;
};

struct GpuTimer {
  template <class Loops, class Call>
  auto operator()(const Loops& loops, const Call& call) const {
    auto recorded = std::make_shared<Recorded>(loops.stream(), call);
    return [recorded] { return recorded->seconds(); };
  }
};

__global__ void copy_kernel(std::size_t n, double* a, const double* b) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) a[i] = b[i];
}

__global__ void triad_kernel(std::size_t n, double* a, const double* b, const double* c, double s) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) a[i] = b[i] + s * c[i];
}

double middle(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

class Gpu final : public Device {
 public:
  Gpu(int number, int threads) : number_(number), threads_(threads), space_(number, threads) {}

  std::string name() const override { return "cuda:" + std::to_string(number_) + " (" + space_.device_name() + ")"; }
  bool is_gpu() const override { return true; }

  Bandwidth bandwidth() override {
    constexpr std::size_t n = std::size_t{1} << 26;  // 512 MiB each: far more than caches hold
    constexpr unsigned threads = 256;
    const auto a = space_.allocate<double>(n), b = space_.allocate<double>(n), c = space_.allocate<double>(n);
    for (const auto* array : {&a, &b, &c}) space_.clear(*array);
    const Sampling how{short_repeat, [] { return false; }};
    const auto rate = [&](double bytes, auto pass) {
      Recorded recorded(space_.stream(), pass);
      return bytes * double(n) * 1e-9 / middle(samples([&] { return recorded.seconds(); }, how));
    };
    double *const pa = a.data(), *const pb = b.data(), *const pc = c.data();
    const cudaStream_t stream = space_.stream();
    Bandwidth found;
    found.copy = rate(16, [=] { copy_kernel<<<unsigned(n / threads), threads, 0, stream>>>(n, pa, pb); });
    found.triad = rate(24, [=] { triad_kernel<<<unsigned(n / threads), threads, 0, stream>>>(n, pa, pb, pc, 3.0); });
    return found;
  }

  Times times(const Mesh& mesh, const Fields& fields, const FaceLoopOptions& options, const Sampling& how) override {
    FaceLoopOptions asked = options;
    asked.threads = threads_;
    return measured_times([&] { return CudaFaceLoops(space_, mesh, asked); }, fields, how, GpuTimer());
  }

 private:
  int number_, threads_;
  exec::Cuda space_;
};

}  // namespace

std::unique_ptr<Device> cuda_device(int number, int threads) { return std::make_unique<Gpu>(number, threads); }

}  // namespace krilu::app::mesh_paper
