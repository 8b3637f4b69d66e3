// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include "exec/cuda.cuh"
#include "krilu/error.hpp"

namespace krilu::exec {

void require_cuda(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // forgotten, unless the device is lost
  throw Error(std::string("CUDA failed while ") + doing + ": " + cudaGetErrorString(status) + " (" +
              cudaGetErrorName(status) + ")");
}

namespace {

struct DeviceMemory final : Memory {
  void* allocate(std::size_t bytes) override {
    void* p = nullptr;
    const cudaError_t status = cudaMalloc(&p, bytes);
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
  void deallocate(void* p, std::size_t) noexcept override { cudaFree(p); }
};

struct SharedMemory final : Memory {
  void* allocate(std::size_t bytes) override {
    void* p = nullptr;
    require_cuda(cudaHostAlloc(&p, bytes, cudaHostAllocMapped), "allocating pinned memory");
    return p;
  }
  void deallocate(void* p, std::size_t) noexcept override { cudaFreeHost(p); }
};

}  // namespace

Cuda::Cuda(int number) : device_(std::make_shared<Device>()) {
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
  require_cuda(cudaDeviceGetAttribute(&d.multiprocessors, cudaDevAttrMultiProcessorCount, number), "asking the GPU");
  require_cuda(cudaStreamCreateWithFlags(&d.stream, cudaStreamNonBlocking), "making a stream");
  d.memory = std::make_shared<DeviceMemory>();
  d.shared = std::make_shared<SharedMemory>();
}

Cuda::Device::~Device() {
  scratch.clear();
  counters.clear();
  for (cudaGraphExec_t graph : launched_graphs) cudaGraphExecDestroy(graph);
  for (cudaStream_t idle : idle_streams) cudaStreamDestroy(idle);
  if (stream) cudaStreamDestroy(stream);
}

void Cuda::synchronise() const {
  ++device_->synchronisations;
  require_cuda(cudaStreamSynchronize(device_->stream), "working on the GPU");
  for (cudaGraphExec_t graph : device_->launched_graphs) cudaGraphExecDestroy(graph);
  device_->launched_graphs.clear();
}

void Cuda::copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) const {
  if (bytes) require_cuda(cudaMemcpyAsync(to, from, bytes, kind, device_->stream), "copying");
  synchronise();
}

void* Cuda::scratch(std::size_t bytes) const {
  auto& pieces = device_->scratch;
  if (pieces.empty() || pieces.back()->size() < bytes)
    pieces.push_back(std::make_unique<Array<char>>(device_->memory, std::max<std::size_t>(2 * bytes, 1 << 16)));
  return pieces.back()->data();
}

unsigned* Cuda::counters(Index n) const {
  auto& pieces = device_->counters;
  if (pieces.empty() || pieces.back()->size() < std::size_t(n)) {
    pieces.push_back(std::make_unique<Array<unsigned>>(device_->memory, std::max<std::size_t>(2 * std::size_t(n), 64)));
    // Every reduction leaves its counters at zero; only new ones have to be set.
    require_cuda(cudaMemset(pieces.back()->data(), 0, pieces.back()->bytes()), "clearing counters");
  }
  return pieces.back()->data();
}

}  // namespace krilu::exec
