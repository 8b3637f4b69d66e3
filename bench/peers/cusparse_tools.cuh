// SPDX-License-Identifier: Apache-2.0
// What the cuSPARSE peer is built from: checked calls, device arrays, owned descriptors, work recorded into a CUDA
// graph, event timing, and cuSPARSE's two sparse operations as objects: Product (SpMV) and Sweep (SpSV, one triangular
// solve). Free of krilu's library but for the CSR type, so that the peer's figures cannot depend on krilu's code.
//
// The stream is a blocking one: whatever a library sent to the default stream during a recording would end the
// recording with an error instead of being left out of the graph in silence.
#pragma once

#define DISABLE_CUSPARSE_DEPRECATED  // csrilu02 is deprecated, and still cuSPARSE's only ILU(0)
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusparse.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "krilu/error.hpp"
#include "krilu/matrix.hpp"

namespace krilu::bench {

// --- checked calls

inline void check(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // forgotten, unless the device is lost
  throw Error(std::string("CUDA failed while ") + doing + ": " + cudaGetErrorString(status) + " (" +
              cudaGetErrorName(status) + ")");
}
inline void check(cusparseStatus_t status, const char* doing) {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  cudaGetLastError();
  throw Error(std::string("cuSPARSE failed while ") + doing + ": " + cusparseGetErrorString(status));
}
inline void check(cublasStatus_t status, const char* doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  cudaGetLastError();
  throw Error(std::string("cuBLAS failed while ") + doing + ": " + cublasGetStatusString(status));
}

/// A handle or descriptor of CUDA's libraries, destroyed with its owner.
template <class T, auto destroy>
class Owned {
 public:
  Owned() = default;
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() {
    if (object_) destroy(object_);
  }
  operator T() const { return object_; }
  T* out() { return &object_; }

 private:
  T object_ = nullptr;
};

using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using Graph = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;
using SparseDescriptor = Owned<cusparseSpMatDescr_t, cusparseDestroySpMat>;

template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(std::size_t n) : n_(n) {
    // Never empty: libraries refuse a null buffer even where they need none of it.
    check(cudaMalloc(data_.out(), std::max<std::size_t>(n * sizeof(T), 16)), "allocating device memory");
  }
  DeviceArray(const T* from, std::size_t n) : DeviceArray(n) { upload(from); }
  T* data() const { return static_cast<T*>(static_cast<void*>(data_)); }
  std::size_t size() const { return n_; }
  void upload(const T* from) { check(cudaMemcpy(data(), from, n_ * sizeof(T), cudaMemcpyHostToDevice), "uploading"); }
  std::vector<T> download() const {
    std::vector<T> host(n_);
    check(cudaMemcpy(host.data(), data(), n_ * sizeof(T), cudaMemcpyDeviceToHost), "downloading");
    return host;
  }

 private:
  Owned<void*, cudaFree> data_;
  std::size_t n_ = 0;
};

/// The stream and the libraries' handles, for a whole run.
struct Gpu {
  Owned<cudaStream_t, cudaStreamDestroy> stream;
  DeviceArray<char> workspace{std::size_t{32} << 20};
  Owned<cusparseHandle_t, cusparseDestroy> sparse;
  Owned<cublasHandle_t, cublasDestroy> blas;

  Gpu() {
    check(cudaStreamCreate(stream.out()), "making a stream");
    check(cusparseCreate(sparse.out()), "starting cuSPARSE");
    check(cusparseSetStream(sparse, stream), "setting cuSPARSE's stream");
    check(cublasCreate(blas.out()), "starting cuBLAS");
    check(cublasSetStream(blas, stream), "setting cuBLAS's stream");
    // Memory of ours, lest cuBLAS allocate while a graph is recorded. After the stream, which resets it.
    check(cublasSetWorkspace(blas, workspace.data(), workspace.size()), "giving cuBLAS its workspace");
    check(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE), "leaving cuBLAS's sums on the device");
  }
  void synchronise() const { check(cudaStreamSynchronize(stream), "working on the GPU"); }
};

// --- time

inline double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Work recorded once, for replay. Where the recording was refused, `graph` is null and `refusal` says why.
struct Recording {
  Graph graph;
  std::size_t nodes = 0;
  std::string refusal;
  void launch(const Gpu& gpu) const { check(cudaGraphLaunch(graph, gpu.stream), "launching a graph"); }
};

template <class Work>
Recording record(const Gpu& gpu, Work&& work) {
  Recording r;
  cudaGraph_t drawn = nullptr;
  try {
    check(cudaStreamBeginCapture(gpu.stream, cudaStreamCaptureModeGlobal), "beginning to record a graph");
    work();
  } catch (const Error& e) {
    r.refusal = e.what();
  }
  const cudaError_t ended = cudaStreamEndCapture(gpu.stream, &drawn);
  cudaGetLastError();
  try {
    if (r.refusal.empty()) {
      check(ended, "recording a graph");
      check(cudaGraphGetNodes(drawn, nullptr, &r.nodes), "counting a graph's nodes");
      check(cudaGraphInstantiate(r.graph.out(), drawn, 0), "instantiating a graph");
      check(cudaGraphUpload(r.graph, gpu.stream), "uploading a graph");
      gpu.synchronise();
    }
  } catch (const Error& e) {
    r.refusal = e.what();
    r.graph = Graph();
  }
  if (drawn) cudaGraphDestroy(drawn);
  return r;
}

/// How much measuring: `repeat` samples, fewer once `seconds` have gone, three at least.
struct Effort {
  int repeat = 30;
  double seconds = 20;
};

/// Of one run of the work, in milliseconds.
struct Timing {
  double median = 0, least = 0, most = 0;
  int samples = 0;
  int batch = 1;        // runs a sample
  std::string refusal;  // why the batch could not be a graph; empty where it was one
};

inline Timing summary(std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  const std::size_t n = ms.size();
  if (n == 0) return {};
  return {n % 2 ? ms[n / 2] : 0.5 * (ms[n / 2 - 1] + ms[n / 2]), ms.front(), ms.back(), static_cast<int>(n), 1, ""};
}

/// Samples of work(), each between two events; before() precedes each of them, untimed.
template <class Before, class Work>
Timing time_samples(const Gpu& gpu, const Effort& effort, Before&& before, Work&& work) {
  Event first, last;
  check(cudaEventCreate(first.out()), "making an event");
  check(cudaEventCreate(last.out()), "making an event");
  std::vector<double> samples;
  const double start = now_ms();
  for (int k = 0; k < effort.repeat && (k < 3 || now_ms() - start < 1e3 * effort.seconds); ++k) {
    before();
    check(cudaEventRecord(first, gpu.stream), "recording an event");
    work();
    check(cudaEventRecord(last, gpu.stream), "recording an event");
    check(cudaEventSynchronize(last), "working on the GPU");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, first, last), "reading the clock");
    samples.push_back(ms);
  }
  return summary(std::move(samples));
}

/// One run of work(): short work is timed ten runs a sample, as a graph where it can be one, so that what a launch
/// costs the host is not measured.
template <class Work>
Timing time_work(const Gpu& gpu, const Effort& effort, Work&& work, bool as_graph = true) {
  const auto nothing = [] {};
  work();
  gpu.synchronise();
  const int batch = time_samples(gpu, {3, 0}, nothing, work).median < 2 ? 10 : 1;
  const auto all = [&] {
    for (int k = 0; k < batch; ++k) work();
  };
  Recording recording;
  if (as_graph) recording = record(gpu, all);
  const auto sample = [&] {
    if (recording.graph) {
      recording.launch(gpu);
    } else {
      all();
    }
  };
  sample();
  gpu.synchronise();
  Timing t = time_samples(gpu, effort, nothing, sample);
  t.median /= batch;
  t.least /= batch;
  t.most /= batch;
  t.batch = batch;
  t.refusal = recording.refusal;
  return t;
}

// --- matrices and vectors

struct Vector {
  DeviceArray<double> values;
  Owned<cusparseDnVecDescr_t, cusparseDestroyDnVec> descriptor;

  explicit Vector(std::size_t n) : values(n) {
    check(cusparseCreateDnVec(descriptor.out(), static_cast<std::int64_t>(n), values.data(), CUDA_R_64F),
          "describing a vector");
  }
  explicit Vector(const std::vector<double>& from) : Vector(from.size()) { values.upload(from.data()); }
  double* data() const { return values.data(); }
  std::size_t size() const { return values.size(); }
};

inline constexpr int slice_rows = 32;

/// The arrays of a matrix on the device: CSR, or sliced ELLPACK with slices of slice_rows rows, column by column within
/// a slice, padded with column -1.
struct Arrays {
  bool sliced = false;
  Index rows = 0;
  Offset nnz = 0;
  DeviceArray<Offset> offsets;
  DeviceArray<Index> columns;
  DeviceArray<double> values;

  explicit Arrays(const CsrView& a)
      : rows(a.rows),
        nnz(a.nnz()),
        offsets(a.offsets, static_cast<std::size_t>(a.rows) + 1),
        columns(a.columns, static_cast<std::size_t>(a.nnz())),
        values(a.values, static_cast<std::size_t>(a.nnz())) {}

  static Arrays sell(const CsrView& a) {
    const Index slices = (a.rows + slice_rows - 1) / slice_rows;
    std::vector<Offset> at(static_cast<std::size_t>(slices) + 1, 0);
    std::int64_t size = 0;
    for (Index s = 0; s < slices; ++s) {
      Offset width = 0;
      for (Index i = s * slice_rows; i < std::min(a.rows, (s + 1) * slice_rows); ++i)
        width = std::max(width, a.offsets[i + 1] - a.offsets[i]);
      size += std::int64_t{width} * slice_rows;
      if (size > std::numeric_limits<Offset>::max() || size > 4 * std::int64_t{a.nnz()} + 64 * slice_rows)
        throw Error("sliced ELLPACK would hold more than four times the matrix's entries");
      at[static_cast<std::size_t>(s) + 1] = static_cast<Offset>(size);
    }
    std::vector<Index> column(static_cast<std::size_t>(size), -1);
    std::vector<double> value(static_cast<std::size_t>(size), 0.0);
    for (Index i = 0; i < a.rows; ++i) {
      std::size_t to = static_cast<std::size_t>(at[static_cast<std::size_t>(i / slice_rows)]) + i % slice_rows;
      for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k, to += slice_rows) {
        column[to] = a.columns[k];
        value[to] = a.values[k];
      }
    }
    return Arrays(a, at, column, value);
  }

  /// A descriptor of its own for each use: cuSPARSE attaches what it prepared to the descriptor.
  SparseDescriptor describe() const {
    SparseDescriptor d;
    constexpr auto type = CUSPARSE_INDEX_32I;
    check(sliced ? cusparseCreateSlicedEll(d.out(), rows, rows, nnz, static_cast<std::int64_t>(values.size()),
                                           slice_rows, offsets.data(), columns.data(), values.data(), type, type,
                                           CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F)
                 : cusparseCreateCsr(d.out(), rows, rows, nnz, offsets.data(), columns.data(), values.data(), type,
                                     type, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F),
          "describing a matrix");
    return d;
  }

 private:
  Arrays(const CsrView& a, const std::vector<Offset>& at, const std::vector<Index>& column,
         const std::vector<double>& value)
      : sliced(true),
        rows(a.rows),
        nnz(a.nnz()),
        offsets(at.data(), at.size()),
        columns(column.data(), column.size()),
        values(value.data(), value.size()) {}
};

inline constexpr double one = 1, zero = 0;  // what cuSPARSE scales by

/// y = A x by one of cuSPARSE's algorithms.
class Product {
 public:
  Product(const Gpu& gpu, std::shared_ptr<const Arrays> arrays, cusparseSpMVAlg_t algorithm, bool preprocess,
          const Vector& x, const Vector& y)
      : gpu_(gpu), arrays_(std::move(arrays)), matrix_(arrays_->describe()), algorithm_(algorithm) {
    std::size_t bytes = 0;
    check(cusparseSpMV_bufferSize(gpu.sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix_, x.descriptor, &zero,
                                  y.descriptor, CUDA_R_64F, algorithm, &bytes),
          "asking SpMV's buffer");
    buffer_ = DeviceArray<char>(bytes);
    if (!preprocess) return;
    check(cusparseSpMV_preprocess(gpu.sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix_, x.descriptor, &zero,
                                  y.descriptor, CUDA_R_64F, algorithm, buffer_.data()),
          "preparing SpMV");
    gpu.synchronise();
  }
  void run(const Vector& x, const Vector& y) const {
    check(cusparseSpMV(gpu_.sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix_, x.descriptor, &zero, y.descriptor,
                       CUDA_R_64F, algorithm_, buffer_.data()),
          "multiplying by SpMV");
  }
  std::size_t buffer_bytes() const { return buffer_.size(); }

 private:
  const Gpu& gpu_;
  std::shared_ptr<const Arrays> arrays_;
  DeviceArray<char> buffer_;
  SparseDescriptor matrix_;
  cusparseSpMVAlg_t algorithm_;
};

/// y = T^-1 x, T a triangle of a stored matrix. The constructor analyses.
class Sweep {
 public:
  Sweep(const Gpu& gpu, std::shared_ptr<const Arrays> arrays, cusparseFillMode_t fill, cusparseDiagType_t diagonal,
        const Vector& x, const Vector& y)
      : gpu_(gpu), arrays_(std::move(arrays)), matrix_(arrays_->describe()) {
    check(cusparseSpMatSetAttribute(matrix_, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof fill), "choosing a triangle");
    check(cusparseSpMatSetAttribute(matrix_, CUSPARSE_SPMAT_DIAG_TYPE, &diagonal, sizeof diagonal),
          "choosing a diagonal");
    check(cusparseSpSV_createDescr(descriptor_.out()), "describing SpSV");
    std::size_t bytes = 0;
    check(cusparseSpSV_bufferSize(gpu.sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix_, x.descriptor,
                                  y.descriptor, CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, descriptor_, &bytes),
          "asking SpSV's buffer");
    buffer_ = DeviceArray<char>(bytes);
    gpu.synchronise();
    const double start = now_ms();
    check(cusparseSpSV_analysis(gpu.sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix_, x.descriptor, y.descriptor,
                                CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, descriptor_, buffer_.data()),
          "analysing for SpSV");
    gpu.synchronise();
    analysis_ms_ = now_ms() - start;
  }
  void run(const Vector& x, const Vector& y) const {
    check(cusparseSpSV_solve(gpu_.sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix_, x.descriptor, y.descriptor,
                             CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, descriptor_),
          "solving by SpSV");
  }
  std::size_t buffer_bytes() const { return buffer_.size(); }
  double analysis_ms() const { return analysis_ms_; }

 private:
  const Gpu& gpu_;
  std::shared_ptr<const Arrays> arrays_;
  DeviceArray<char> buffer_;
  SparseDescriptor matrix_;
  Owned<cusparseSpSVDescr_t, cusparseSpSV_destroyDescr> descriptor_;
  double analysis_ms_ = 0;
};

}  // namespace krilu::bench
