// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <limits>

#include "krilu/error.hpp"
#include "solver/engine_on.hpp"
#include "solver/links.cuh"
#include "solver/system.cuh"
#include "sparse/hec_rounded.cuh"

namespace krilu::solver {

namespace {

__global__ void permute_kernel(Index n, const Index* from_row, const double* in, double* out) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = in[from_row[i]];
}

/// out[i] = in[row[i]]
void permuted(const exec::Cuda& space, const exec::Array<Index>& row, const double* in, double* out) {
  const auto n = Index(row.size());
  if (n == 0) return;
  permute_kernel<<<unsigned((n + 255) / 256), 256, 0, space.stream()>>>(n, row.data(), in, out);
  exec::require_cuda(cudaGetLastError(), "reordering a vector");
}

void copied(const exec::Cuda& space, std::size_t n, const double* from, double* to) {
  if (n == 0) return;
  exec::require_cuda(cudaMemcpyAsync(to, from, n * sizeof(double), cudaMemcpyDeviceToDevice, space.stream()),
                     "copying a vector");
}

std::string sentence(const char* format, long a, long b) {
  char text[200];
  std::snprintf(text, sizeof text, format, a, b);
  return text;
}

}  // namespace

void DeviceSystem::make_way(const CsrView& a) {
  if (a.rows != a.cols || a.rows <= 0 || !a.offsets || a.nnz() < 0) require_valid(a);
  hec_.reset();
  matrix_ = {};
  pattern_.reset();
  plan_.reset();
  lattice_.reset();
  a_ = {};
  // Most at a time, during the analysis: A, both triangles with what they come from, and what is sorted on the way.
  // Their values and HEC, twice while its columns are made short, are about as much.
  ex_.require_memory(std::size_t(a.nnz()) * 48 + std::size_t(a.rows) * 260, a.rows, a.nnz());
}

Facts DeviceSystem::found(const CsrView& a) {
  const sparse::CsrFacts f = sparse::facts(ex_, a_);
  if (!f.valid) require_valid(a);  // the host knows the sentence
  not_finite_ = f.first_not_finite;
  return {f.symmetry, f.diagonal, f.pattern_hash};
}

Facts DeviceSystem::look(const CsrView& a, bool values) {
  make_way(a);
  a_ = sparse::upload(ex_, a, values);
  return found(a);
}

Facts DeviceSystem::look_there(const CsrView& a, const T* values) {
  make_way(a);
  a_ = sparse::upload(ex_, a, false);
  if (values) {
    a_.values = ex_.allocate<double>(std::size_t(a.nnz()));
    copied(ex_, a_.values.size(), values, a_.values.data());
  }
  return found(a);
}

void DeviceSystem::admit(const void* array, const char* what, void* stream) const {
  cudaPointerAttributes place;
  exec::require_cuda(cudaPointerGetAttributes(&place, array), "asking where an array stands");
  const std::string number = std::to_string(ex_.number()), where = std::to_string(place.device);
  if (place.type != cudaMemoryTypeDevice && place.type != cudaMemoryTypeManaged)
    throw Error(std::string(what) + " is in host memory, and was given as if it were on GPU " + number +
                ": give it as host memory is given");
  if (place.type == cudaMemoryTypeDevice && place.device != ex_.number())
    throw Error(std::string(what) + " is in the memory of GPU " + where + ", and the solver works on GPU " + number +
                ": take --device cuda:" + where + ", or copy it");
  const auto theirs = static_cast<cudaStream_t>(stream);
  cudaStreamCaptureStatus recording;
  exec::require_cuda(cudaStreamIsCapturing(theirs, &recording), "asking the caller's stream");
  if (recording != cudaStreamCaptureStatusNone)
    throw Error(std::string("the stream of ") + what + " records a graph, which a call of krilu cannot be part of");
  cudaEvent_t now;
  exec::require_cuda(cudaEventCreateWithFlags(&now, cudaEventDisableTiming), "making an event");
  cudaError_t status = cudaEventRecord(now, theirs);
  if (status == cudaSuccess) status = cudaStreamWaitEvent(ex_.stream(), now);
  cudaEventDestroy(now);  // when it has happened
  exec::require_cuda(status, "waiting for the caller's stream");
}

bool DeviceSystem::on_lattice() {
  if (!lattice_) lattice_ = schedule::BlockBuilder<exec::Cuda>(ex_, a_.view(), a_.view()).lattice();
  return bool(*lattice_);
}

void DeviceSystem::analyse(const CsrView& a, const CsrView& graph, const Plan& plan) {
  matrix_ = {};
  hec_.reset();
  pattern_.reset();
  const bool own_graph = graph.columns == a.columns;
  sparse::DeviceCsr graph_there;
  if (!own_graph && plan.triangular) graph_there = sparse::upload(ex_, graph, false);
  const sparse::DeviceCsr& g = own_graph ? a_ : graph_there;
  may_use_hec_ = false;
  shortening_.reset();
  if (!plan.triangular) {
    plan_ = std::make_shared<const schedule::Plan>(schedule::as_given(ex_, a_));
    may_use_hec_ = plan_->layout->row.size() == 0;
    longest_ = 0;
    for (Index i = 0; may_use_hec_ && i < a.rows; ++i) longest_ = std::max(longest_, a.offsets[i + 1] - a.offsets[i]);
    may_build_hec_ = precond::sweeps_of(plan.precond) == precond::Sweeps::of_its_own;
    shape_ = plan_->layout->row.size() == 0 ? "slices of 32 rows in the caller's order"
                                            : "slices of up to 32 rows, sorted by length";
  } else if (schedule::is_block_ordering(plan.ordering)) {
    schedule::BlockTuning tuning;
    if (const Index rows = schedule::block_rows_of(plan.ordering)) tuning.rows = rows;
    schedule::BlockBuilder<exec::Cuda> builder(ex_, a_.view(), g.view(), tuning);
    const auto blocks = own_graph && lattice_ ? builder.build(*lattice_) : builder.build();
    plan_ = std::make_shared<const schedule::Plan>(schedule::by_blocks(ex_, a_, blocks));
    pattern_ = std::make_shared<const sparse::SlicedPattern>(ex_, a_, plan_->layout);
    shape_ = sentence("%ld colours of blocks, up to %ld steps within a block", long(plan_->levels()),
                      long(pattern_->most_inner()));
    if (blocks.box[0] > 0) {
      char box[80];
      std::snprintf(box, sizeof box, ", boxes of %d x %d x %d on a lattice", int(blocks.box[0]), int(blocks.box[1]),
                    int(blocks.box[2]));
      shape_ += box;
    }
    if (const std::size_t words = pattern_->stencil_words(); words > 0)
      shape_ += ", read by stencils of " + std::to_string(words) + " words";
    return;
  } else {
    const schedule::Order order = schedule::order_by_name(plan.ordering, a, graph);
    plan_ = std::make_shared<const schedule::Plan>(schedule::by_levels(ex_, a_, g, order));
    shape_ = sentence("%ld levels, tiles of %ld rows", long(plan_->levels()), long(plan_->tile_rows));
  }
  pattern_ = std::make_shared<const sparse::SlicedPattern>(ex_, a_, plan_->layout);
}

void DeviceSystem::set_values(const CsrView& a, bool seen) {
  if (!seen || a_.values.size() != std::size_t(a.nnz())) {
    if (a_.values.size() != std::size_t(a.nnz())) a_.values = ex_.allocate<double>(std::size_t(a.nnz()));
    ex_.copy_in(a_.values, a.values, a_.values.size());
    not_finite_ = sparse::first_not_finite(ex_, a_);
  }
  take_values(a);
}

void DeviceSystem::set_values_there(const CsrView& a, const T* values, bool seen) {
  const auto n = std::size_t(a.nnz());
  if (!seen || a_.values.size() != n) {
    if (a_.values.size() != n) a_.values = ex_.allocate<double>(n);
    copied(ex_, n, values, a_.values.data());
    not_finite_ = sparse::first_not_finite(ex_, a_);
  }
  take_values(a);
}

void DeviceSystem::take_values(const CsrView& a) {
  if (not_finite_ >= 0) throw Error("row " + std::to_string(not_finite_ + 1) + " of the matrix holds NaN or infinity");
  sparse::fill_values(ex_, pattern_, a_.values.data(), matrix_);
  hec_.reset();
  if (!may_use_hec_) return;
  // The chooser of the format: a thread a row over a regular pattern moves what slices move, and is an eighth faster;
  // short columns, which few patterns of the kind do without, add to that and are not counted.
  constexpr double worth = 1.1, irregular = 18;
  const double rows = a.rows, slices = 12 * (double(a.nnz()) - rows) + 11 * rows;
  const Index longest = longest_;
  const bool fits = sparse::hec_leading(a.rows) * longest <= std::numeric_limits<Offset>::max();
  if (fits && 12 * rows * longest <= worth * slices) {
    keep_hec(sparse::regular_hec<T>(ex_, a_, longest));
    return;
  }
  if (!may_build_hec_) return;
  const Index width = sparse::hec_width(a, sparse::HecForm::product);
  double left = 0;
  for (Index i = 0; i < a.rows; ++i) left += std::max(0, a.offsets[i + 1] - a.offsets[i] - width);
  if (12 * rows * width + irregular * left > worth * slices) return;
  keep_hec({ex_, exec::Host(ex_.threads()), a, sparse::HecForm::product, width});
}

void DeviceSystem::keep_hec(sparse::Hec<exec::Cuda, T>&& hec) {
  if (!shortening_) shortening_ = sparse::shortening(ex_, hec);
  hec_ = std::make_unique<const sparse::Hec<exec::Cuda, T>>(sparse::shortened(ex_, std::move(hec), *shortening_));
}

std::unique_ptr<const sparse::Operator<exec::Cuda, double>> DeviceSystem::product() const {
  if (hec_) return std::make_unique<const sparse::HecOperator<exec::Cuda, T>>(ex_, *hec_);
  return std::make_unique<const sparse::SplitOperator<exec::Cuda, T>>(ex_, matrix_);
}

sparse::Rounded<exec::Cuda> DeviceSystem::rounded(const sparse::Rounding& rounding) const {
  if (hec_) {
    auto product = sparse::rounded_product(ex_, *hec_, rounding);
    const std::size_t bytes = product->bytes();
    return {nullptr, std::move(product), bytes};
  }
  return with_format(rounding.storage, [&](auto s) -> sparse::Rounded<exec::Cuda> {
    using S = decltype(s);
    auto m = std::make_shared<const sparse::RoundedMatrixOf<exec::Cuda, S>>(
        sparse::rounded_matrix<S>(ex_, pattern_, matrix_.view(), rounding));
    return {m, std::make_unique<const sparse::SplitOperator<exec::Cuda, float, S>>(ex_, m->matrix), m->bytes()};
  });
}

precond::Context<exec::Cuda> DeviceSystem::context(const CsrView& a, triangular::Strategy strategy) const {
  const auto caller_row = [ex = ex_, plan = plan_](Index i) {
    if (plan->layout->row.size() == 0) return i;
    return ex.read(plan->layout->row, std::size_t(i));
  };
  return {ex_, strategy, caller_row, plan_, &a_, a};
}

std::size_t DeviceSystem::bytes() const {
  return a_.offsets.bytes() + a_.columns.bytes() + a_.values.bytes() + (pattern_ ? pattern_->bytes() : 0) +
         matrix_.bytes() + (hec_ ? hec_->bytes() : 0);
}

void DeviceSystem::copy_in(const exec::Array<T>& to, std::span<const double> from) const {
  const exec::Array<Index>& row = plan_->layout->row;
  if (row.size() == 0) return ex_.copy_in(to, from.data(), from.size());
  const auto stage = ex_.allocate<double>(from.size());
  ex_.copy_in(stage, from.data(), from.size());
  permuted(ex_, row, stage.data(), to.data());
}

void DeviceSystem::copy_out(std::span<double> to, const exec::Array<T>& from) const {
  const exec::Array<Index>& place = plan_->layout->place;
  if (place.size() == 0) return ex_.copy_out(to.data(), from, to.size());
  const auto stage = ex_.allocate<double>(to.size());
  permuted(ex_, place, from.data(), stage.data());
  ex_.copy_out(to.data(), stage, to.size());
}

CsrMatrix DeviceSystem::caller_matrix(std::span<const Index>) const {
  CsrMatrix a;
  a.rows = a.cols = a_.rows;
  a.offsets.resize(a_.offsets.size());
  a.columns.resize(a_.columns.size());
  a.values.resize(a_.values.size());
  ex_.copy_out(a.offsets.data(), a_.offsets, a.offsets.size());
  ex_.copy_out(a.columns.data(), a_.columns, a.columns.size());
  ex_.copy_out(a.values.data(), a_.values, a.values.size());
  return a;
}

Buffer<Index> DeviceSystem::places(std::span<const Index> rows) const {
  const exec::Array<Index>& place = plan_->layout->place;
  Buffer<Index> at(rows.begin(), rows.end());
  if (place.size() == 0) return at;
  std::vector<Index> all(place.size());
  ex_.copy_out(all.data(), place, all.size());
  for (Index& row : at) row = all[std::size_t(row)];
  return at;
}

void DeviceSystem::permute_in(double* to, const double* from) const {
  const exec::Array<Index>& row = plan_->layout->row;
  row.size() == 0 ? copied(ex_, std::size_t(a_.rows), from, to) : permuted(ex_, row, from, to);
}
void DeviceSystem::permute_out(double* to, const double* from) const {
  const exec::Array<Index>& place = plan_->layout->place;
  place.size() == 0 ? copied(ex_, std::size_t(a_.rows), from, to) : permuted(ex_, place, from, to);
}

DeviceMatrixAlone::DeviceMatrixAlone(exec::Cuda space, const CsrView& a) : ex_(std::move(space)) {
  require_valid(a);
  ex_.require_memory(std::size_t(a.nnz()) * 12 + std::size_t(a.rows) * 4, a.rows, a.nnz());
  a_ = sparse::upload(ex_, a, false);
  auto plan = std::make_shared<schedule::Plan>();
  plan->layout = std::make_shared<const sparse::Layout>();
  plan_ = std::move(plan);
}

std::unique_ptr<precond::Preconditioner<exec::Cuda, double>> DeviceMatrixAlone::preconditioner(
    const Plan& plan, const CsrView& a, triangular::Strategy strategy) const {
  const precond::Context<exec::Cuda> context{ex_, strategy, [](Index i) { return i; }, plan_, &a_, a};
  return precond::make<exec::Cuda, double>(plan.precond, context, nullptr);
}

void DeviceMatrixAlone::set_values(const CsrView& a) {
  a_.values = ex_.allocate<double>(std::size_t(a.nnz()));
  ex_.copy_in(a_.values, a.values, a_.values.size());
}

std::unique_ptr<Engine> make_cuda_engine(const Options& options, int number, const Team& team) {
  exec::Cuda space(number, options.threads);
  const std::string device = "cuda:" + std::to_string(number) + " (" + space.device_name() + ")";
  return std::make_unique<EngineOn<exec::Cuda, DeviceSystem>>(space, device, options, team);
}

int gpu_of(const void* p) {
  cudaPointerAttributes place;
  if (p && cudaPointerGetAttributes(&place, p) == cudaSuccess)
    return place.type == cudaMemoryTypeDevice || place.type == cudaMemoryTypeManaged ? place.device : -1;
  cudaGetLastError();
  return -1;
}

int cuda_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

}  // namespace krilu::solver
