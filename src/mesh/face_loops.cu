// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exec/cuda.cuh"
#include "krilu/error.hpp"
#include "krilu/face_loops.cuh"
#include "mesh/face_chooser.hpp"

namespace krilu {

using exec::require_cuda;

namespace {

/// Several tiles share a multiprocessor's fast memory, so that one computes while others wait. A tile's cells are a
/// power of two, as places of sums are counted.
mesh::FaceTuning gpu_tuning(const Mesh& mesh) {
  constexpr std::size_t tiles_at_once = 4;
  constexpr mesh::TileBytes bytes{.cell = 2, .face = 28};  // two sums of a face; two parcels
  constexpr Index least = 64;
  int device = 0, shared = 0;
  require_cuda(cudaGetDevice(&device), "asking for the GPU");
  require_cuda(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device),
               "asking for the GPU");
  mesh::FaceTuning tuning{};
  tuning.most_cells = detail::tile_threads;
  const Index fit = mesh::cells_that_fit(mesh, bytes, std::size_t(shared) / tiles_at_once, least, tuning.most_cells);
  tuning.block_cells = Index(std::bit_floor(std::uint32_t(fit)));
  tuning.parcels = true;
  return tuning;
}

}  // namespace

struct CudaFaceLoops::Body {
  explicit Body(exec::Cuda device) : space(std::move(device)) {
    require_cuda(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), "making a stream");
    require_cuda(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming), "making an event");
    require_cuda(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming), "making an event");
  }
  ~Body() {
    if (forked) cudaEventDestroy(forked);
    if (joined) cudaEventDestroy(joined);
    if (side) cudaStreamDestroy(side);
  }
  exec::Cuda space;
  mesh::PlanData data;  // orders, classes and the report; the rest is on the GPU
  std::vector<exec::Array<char>> arrays;
  exec::Array<Index> cell_order, face_order;
  // Work space. Not from the space's own pool: what a stream allocates while it records exists in the record only. What
  // has grown stays, since a recorded loop may go on using it.
  struct Freed {
    void operator()(void* p) const { cudaFree(p); }
  };
  std::array<std::vector<std::unique_ptr<void, Freed>>, 3> scratch;
  std::array<std::size_t, 3> scratch_bytes{};
  cudaStream_t side = nullptr;
  cudaEvent_t forked = nullptr, joined = nullptr;

  /// The plan's arrays, there; those of the host go, but for what launches look at.
  FacePlan bring(mesh::PlanData& plan) {
    plan.each([&](auto& buffer, auto& pointer) {
      using T = std::decay_t<decltype(buffer[0])>;
      if (buffer.empty()) return;
      arrays.push_back(space.allocate<char>(buffer.size() * sizeof(T)));
      space.copy_in(arrays.back(), reinterpret_cast<const char*>(buffer.data()), buffer.size() * sizeof(T));
      pointer = reinterpret_cast<const T*>(arrays.back().data());
      buffer = {};
    });
    plan.view.class_pair = plan.class_pair.data();
    plan.view.colour_face = plan.colour_face.data();
    return plan.view;
  }
};

CudaFaceLoops::CudaFaceLoops(const Mesh& mesh, const FaceLoopOptions& options, int device) {
  make(exec::Cuda(device, options.threads), mesh, options);
}
CudaFaceLoops::CudaFaceLoops(const exec::Cuda& space, const Mesh& mesh, const FaceLoopOptions& options) {
  make(space, mesh, options);
}

void CudaFaceLoops::make(const exec::Cuda& space, const Mesh& mesh, const FaceLoopOptions& options) {
  // Not atomics: what auto takes gives the same bits each time.
  constexpr FaceStrategy candidates[] = {FaceStrategy::slices, FaceStrategy::tiles, FaceStrategy::diagonal,
                                         FaceStrategy::gather, FaceStrategy::colours};
  space.make_current();
  constexpr Index piece = 2000000;  // cells: more than the second-level cache holds
  // A functor by name: nvcc takes a lambda here for one that cannot be copied.
  struct Trial {
    CudaFaceLoops* loops;
    const exec::Cuda* space;
    double operator()(mesh::PlanData& plan) const { return loops->measured(*space, plan); }
  };
  mesh::PlanData plan = mesh::choose_plan(exec::Host(options.threads), mesh, options, gpu_tuning(mesh), candidates,
                                          {piece, false, Trial{this, &space}});
  body_ = std::make_shared<Body>(space);
  body_->cell_order = space.brought(plan.cell_order);
  body_->face_order = space.brought(plan.face_order);
  body_->data = std::move(plan);
  plan_ = body_->bring(body_->data);
}

double CudaFaceLoops::measured(const exec::Cuda& space, mesh::PlanData& plan) {
  body_ = std::make_shared<Body>(space);
  plan_ = body_->bring(plan);
  const double milliseconds = trial_milliseconds();
  body_.reset();
  return 1e-3 * milliseconds;
}

double CudaFaceLoops::trial_milliseconds() const {
  const Field<double> a = face_field<double>(), x = cell_field<double>(), y = cell_field<double>();
  const auto av = a.view(), xv = x.view(), yv = y.view();
  flat(
      faces(), KRILU_FN(Index f) { av[f] = 1; });
  flat(
      cells(), KRILU_FN(Index c) { xv[c] = 1; });
  const auto product = [&] {
    sum_over_faces<double, double>(
        KRILU_FN(Index c) { return xv[c]; },
        KRILU_FN(Face f, double o, double q) {
          return Both<double>{av[f.id] * q, av[f.id] * o};
        },
        KRILU_FN(Index c, double own, double sum) { yv[c] = own + sum; });
  };
  product();
  synchronise();
  return body_->space.milliseconds([&] {
    for (int k = 0; k < 5; ++k) product();
  }) / 5;
}

const FaceLoopReport& CudaFaceLoops::report() const { return body_->data.report; }
std::span<const Index> CudaFaceLoops::cell_order() const { return body_->data.cell_order; }
std::span<const Index> CudaFaceLoops::face_order() const { return body_->data.face_order; }
const Index* CudaFaceLoops::cell_order_there() const { return body_->cell_order.data(); }
const Index* CudaFaceLoops::face_order_there() const { return body_->face_order.data(); }
cudaStream_t CudaFaceLoops::stream() const { return body_->space.stream(); }
void CudaFaceLoops::synchronise() const { body_->space.synchronise(); }
Index CudaFaceLoops::long_row() { return mesh::FaceTuning{}.long_row; }
void CudaFaceLoops::launched() { require_cuda(cudaGetLastError(), "launching a loop over faces"); }

unsigned CudaFaceLoops::blocks_at_once(const void* kernel, std::size_t bytes) const {
  const std::size_t most = body_->space.shared_memory();
  if (bytes > most)
    throw Error("tiles of " + std::to_string(plan_.most_cells) + " cells need " + std::to_string(bytes) +
                " bytes of shared memory where this GPU has " + std::to_string(most) +
                ": ask for strategy slices or gather");
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(most)),
               "asking for shared memory");
  int each = 0;
  require_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, detail::tile_threads, bytes),
               "asking how many blocks fit");
  return unsigned(std::max(1, each * body_->space.multiprocessors()));
}

void* CudaFaceLoops::scratch(int piece, std::size_t bytes) const {
  auto& pieces = body_->scratch[std::size_t(piece)];
  std::size_t& had = body_->scratch_bytes[std::size_t(piece)];
  if (had < bytes) {
    void* memory = nullptr;
    require_cuda(cudaMalloc(&memory, bytes), "allocating work space for a loop over faces");
    pieces.emplace_back(memory);
    had = bytes;
  }
  return pieces.empty() ? nullptr : pieces.back().get();
}

cudaStream_t CudaFaceLoops::fork() const {
  require_cuda(cudaEventRecord(body_->forked, stream()), "forking a stream");
  require_cuda(cudaStreamWaitEvent(body_->side, body_->forked, 0), "forking a stream");
  return body_->side;
}
void CudaFaceLoops::join() const {
  require_cuda(cudaEventRecord(body_->joined, body_->side), "joining a stream");
  require_cuda(cudaStreamWaitEvent(stream(), body_->joined, 0), "joining a stream");
}

std::shared_ptr<void> CudaFaceLoops::allocate(std::size_t bytes) const {
  auto array = std::make_shared<exec::Array<char>>(body_->space.allocate<char>(bytes));
  return {array, array->data()};
}
void CudaFaceLoops::copy(void* to, const void* from, std::size_t bytes, bool in) const {
  require_cuda(cudaMemcpyAsync(to, from, bytes, in ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream()),
               "copying a field");
  if (!in) synchronise();
}
void CudaFaceLoops::require_size(std::size_t given, std::size_t needed) {
  if (given != needed)
    throw Error("a field of " + std::to_string(given) + " values was given where the mesh has " +
                std::to_string(needed));
}

}  // namespace krilu
