// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/together.hpp"
#include "solver/boundary.cuh"

namespace krilu::solver {

namespace {

/// y += sign R B x' in one row. Opened, it has asked for all that need not come from another GPU.
template <class T>
struct Row {
  Index at = 0;
  Offset begin = 0, end = 0;
  T before = 0;
  double factor = 0;

  __device__ void open(const Outer& b, Index i, const double* R, int sign, const T* y) {
    if (i >= b.rows) return;
    at = b.row[i];
    begin = b.offsets[i];
    end = b.offsets[i + 1];
    before = y[at];
    factor = sign * (R ? R[at] : 1.0);
  }
  template <class XOf>
  __device__ void close(const Outer& b, T* y, XOf x_of) const {
    double sum = 0;
    for (Offset k = begin; k < end; ++k) sum += b.values[k] * x_of(b.columns[k]);
    y[at] = before + T(factor * sum);
  }
};

template <class T>
__global__ void send_kernel(Targets targets, const T* x, const double* C, const unsigned* numbers) {
  send_entries(targets, int(blockIdx.y), x, C, numbers[0] + 1, Index(blockIdx.x * blockDim.x + threadIdx.x),
               Index(gridDim.x * blockDim.x));
}

/// x' is used as it comes in. The last block counts the message.
template <class T>
__global__ void receive_kernel(Incoming incoming, Outer b, const double* R, int sign, T* y, unsigned* numbers,
                               exec::cuda::Waiting waiting) {
  const unsigned number = numbers[0] + 1;
  const Word* const in = incoming.place(number);
  for (Index i = Index(blockIdx.x * blockDim.x + threadIdx.x); i < b.rows; i += Index(gridDim.x * blockDim.x)) {
    Row<T> row;
    row.open(b, i, R, sign, y);
    row.close(b, y, [&](Index slot) { return exec::cuda::await_value(in + 2 * std::size_t(slot), number, waiting); });
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicAdd(numbers + 1, 1u) == gridDim.x - 1) {
      numbers[1] = 0;
      numbers[0] = number;
    }
  }
}

/// Both in one block, where a launch costs more than sending behind the own block's product gains.
constexpr int exchange_threads = 1024;
constexpr Index most_exchanged = 2048;  // entries each way; those that come stand in shared memory
template <class T>
__global__ void __launch_bounds__(exchange_threads)
    exchange_kernel(Targets targets, Incoming incoming, Outer b, const T* x, const double* C, const double* R, int sign,
                    T* y, unsigned* numbers, exec::cuda::Waiting waiting) {
  __shared__ double came[most_exchanged];
  const unsigned number = numbers[0] + 1;
  const auto thread = Index(threadIdx.x);
  for (int n = 0; n < targets.neighbours; ++n) send_entries(targets, n, x, C, number, thread, exchange_threads);
  Row<T> row;
  row.open(b, thread, R, sign, y);
  const Word* const in = incoming.place(number);
  for (Index slot = thread; slot < incoming.count; slot += exchange_threads)
    came[slot] = exec::cuda::await_value(in + 2 * std::size_t(slot), number, waiting);
  __syncthreads();
  for (Index i = thread; i < b.rows; i += exchange_threads) {
    if (i > thread) row.open(b, i, R, sign, y);
    row.close(b, y, [](Index slot) { return came[slot]; });
  }
  if (thread == 0) numbers[0] = number;
}

template <class T>
__global__ void gather_kernel(Index n, const Index* rows, const T* x, const double* C, double* sent) {
  const Index k = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (k < n) sent[k] = (C ? C[rows[k]] : 1.0) * double(x[rows[k]]);
}
template <class T>
__global__ void add_kernel(Index n, const Index* rows, const double* got, const double* R, int sign, T* y) {
  const Index k = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (k < n) y[rows[k]] += T(sign * (R ? R[rows[k]] : 1.0) * got[k]);
}

unsigned blocks_of(Index n) {
  const unsigned most = exec::cuda::share_gpus ? most_beside_others : 1024;
  return std::clamp(exec::cuda::blocks_for(n), 1u, most);
}

/// y += sign R B x', x' being there.
template <class T>
__global__ void add_product_kernel(Outer b, const double* x_there, const double* R, int sign, T* y) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= b.rows) return;
  Row<T> row;
  row.open(b, i, R, sign, y);
  row.close(b, y, [x_there](Index slot) { return x_there[slot]; });
}

}  // namespace

DeviceLinks::DeviceLinks(exec::Cuda space, std::shared_ptr<Ranks> ranks, std::shared_ptr<Coupling> coupling,
                         const Buffer<Index>& rows, sparse::HaloPlan planned)
    : ex_(std::move(space)),
      member_(ex_),
      ranks_(std::move(ranks)),
      coupling_(std::move(coupling)),
      planned_(dynamic_cast<const sparse::PlannedCoupling*>(coupling_.get())),
      plan_(std::move(planned)),
      rows_(ex_.brought(rows)),
      sent_(ex_.allocate_shared<double>(rows.size())),
      got_(ex_.allocate_shared<double>(rows.size())),
      send_rows_(ex_.brought(plan_.send_rows)),
      b_rows_(ex_.brought(plan_.rows)),
      b_columns_(ex_.brought(plan_.columns)),
      b_offsets_(ex_.brought(plan_.offsets)),
      b_values_(ex_.brought(plan_.values)),
      numbers_(ex_.allocate<unsigned>(2)) {
  ex_.clear(numbers_);
  for (const auto& neighbour : plan_.neighbours) most_sends_ = std::max(most_sends_, neighbour.sends);
  list_bordering();
}

bool DeviceLinks::connect(const exec::Cuda& member) {
  member_ = member;
  if (std::exchange(tried_, true)) return words_ || nccl_;
  // Every rank has a plan, or none has.
  if (!planned_ || !member.connect()) return false;
  if ((nccl_ = member.nccl())) return connect_nccl();
  words_ = std::make_unique<exec::PeerMemory>(ex_.number(), *ranks_,
                                              std::max<std::size_t>(1, 4 * std::size_t(plan_.slots)) * sizeof(Word));
  slots_.resize(std::size_t(ranks_->size()));
  ranks_->all_gather(&plan_.slots, sizeof plan_.slots, slots_.data());
  if (!words_->possible()) {
    words_.reset();
    member.disconnect();
    return false;
  }
  waiting_ = member.waiting();
  return true;
}

bool DeviceLinks::connect_nccl() {
  const std::size_t sends = send_rows_.size();
  boundary_size_ = sends + std::size_t(plan_.slots);
  together(*ranks_, [&] { boundary_ = exec::Nccl::buffer(boundary_size_); });
  double* const x_there = boundary_.get() + sends;
  x_there_ = x_there;
  for (const auto& n : plan_.neighbours)
    messages_.push_back(
        {n.rank, boundary_.get() + n.send, std::size_t(n.sends), x_there + n.slot, std::size_t(n.slots)});
  // The first exchange opens the ways, for which neighbours wait for one another.
  together(*ranks_, [&] {
    exec::require_cuda(cudaMemsetAsync(boundary_.get(), 0, boundary_size_ * sizeof(double), ex_.stream()),
                       "clearing memory");
    exchange();
    ex_.synchronise();
  });
  return true;
}

void DeviceLinks::exchange() const {
  if (!messages_.empty()) nccl_->exchange(messages_, ex_.stream());
}

void DeviceLinks::take_values() {
  if (planned_) ex_.copy_in(b_values_, planned_->values().data(), b_values_.size());
}

DeviceLinks::Route DeviceLinks::route() const {
  Route r{};
  if (words_) {
    for (const auto& n : plan_.neighbours)
      r.targets.to[r.targets.neighbours++] = {static_cast<Word*>(words_->of(n.rank)) + 2 * std::size_t(n.slot_there),
                                              2 * std::size_t(slots_[std::size_t(n.rank)]), n.send, n.sends};
    r.targets.rows = send_rows_.data();
    r.incoming = {static_cast<const Word*>(words_->of(ranks_->rank())), 2 * std::size_t(plan_.slots), plan_.slots};
  }
  r.b = {Index(b_rows_.size()), b_rows_.data(), b_offsets_.data(), b_columns_.data(), b_values_.data()};
  return r;
}

bool DeviceLinks::at_once() const {
  return plan_.slots <= most_exchanged && Index(send_rows_.size()) <= most_exchanged;
}

template <class T>
void DeviceLinks::send(const T* x, const double* C) {
  if (waiting_.given_up) {
    if (plan_.neighbours.empty()) return;
    if (at_once()) {
      later_ = {x, C};
    } else if (most_sends_ > 0) {
      const dim3 grid(blocks_of(most_sends_), unsigned(plan_.neighbours.size()));
      send_kernel<<<grid, exec::cuda::block_threads, 0, ex_.stream()>>>(route().targets, x, C, numbers_.data());
      exec::cuda::launched("sending to other GPUs");
    }
    return;
  }
  if (nccl_) {
    if (const auto n = Index(send_rows_.size()); n > 0)
      gather_kernel<<<exec::cuda::blocks_for(n), exec::cuda::block_threads, 0, ex_.stream()>>>(n, send_rows_.data(), x,
                                                                                               C, boundary_.get());
    exec::cuda::launched("gathering what other ranks need");
    return exchange();
  }
  const auto n = Index(rows_.size());
  if (n > 0)
    gather_kernel<<<exec::cuda::blocks_for(n), exec::cuda::block_threads, 0, ex_.stream()>>>(n, rows_.data(), x, C,
                                                                                             sent_.data());
  exec::cuda::launched("gathering what other ranks need");
  ex_.synchronise();
  member_.in_company([&] { coupling_->start(sent_.data()); });
}

template <class T>
void DeviceLinks::receive(T* y, const double* R, int sign) {
  if (waiting_.given_up) {
    if (plan_.neighbours.empty()) return;
    const Route r = route();
    if (at_once())
      exchange_kernel<<<1, exchange_threads, 0, ex_.stream()>>>(
          r.targets, r.incoming, r.b, static_cast<const T*>(later_.x), later_.C, R, sign, y, numbers_.data(), waiting_);
    else
      receive_kernel<<<blocks_of(r.b.rows), exec::cuda::block_threads, 0, ex_.stream()>>>(r.incoming, r.b, R, sign, y,
                                                                                          numbers_.data(), waiting_);
    return exec::cuda::launched("adding what other GPUs sent");
  }
  if (nccl_) {
    if (const auto n = Index(b_rows_.size()); n > 0)
      add_product_kernel<<<exec::cuda::blocks_for(n), exec::cuda::block_threads, 0, ex_.stream()>>>(route().b, x_there_,
                                                                                                    R, sign, y);
    return exec::cuda::launched("adding what other ranks sent");
  }
  member_.in_company([&] { coupling_->finish(got_.data()); });
  const auto n = Index(rows_.size());
  if (n > 0)
    add_kernel<<<exec::cuda::blocks_for(n), exec::cuda::block_threads, 0, ex_.stream()>>>(n, rows_.data(), got_.data(),
                                                                                          R, sign, y);
  exec::cuda::launched("adding what other ranks sent");
}

std::size_t DeviceLinks::bytes() const {
  return rows_.bytes() + sent_.bytes() + got_.bytes() + send_rows_.bytes() + b_rows_.bytes() + b_columns_.bytes() +
         b_offsets_.bytes() + b_values_.bytes() + numbers_.bytes() + bordering_.bytes() +
         boundary_size_ * sizeof(double) + (words_ ? 4 * std::size_t(plan_.slots) * sizeof(Word) : 0);
}

template void DeviceLinks::send(const double*, const double*);
template void DeviceLinks::send(const float*, const double*);
template void DeviceLinks::receive(double*, const double*, int);
template void DeviceLinks::receive(float*, const double*, int);

}  // namespace krilu::solver
