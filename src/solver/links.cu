// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "solver/links.cuh"

namespace krilu::solver {

namespace {

using exec::cuda::Word;

/// Where messages to the neighbours go.
struct Targets {
  struct Target {
    Word* slots = nullptr;  // in the neighbour's memory, of the first entry
    std::size_t turn = 0;   // words to the place of the next message
    Index first = 0, count = 0;
  };
  Target to[exec::cuda::most_peers];
};

template <class T>
__global__ void send_kernel(Targets targets, const Index* rows, const T* x, const double* C, const unsigned* numbers) {
  const Targets::Target& t = targets.to[blockIdx.y];
  const unsigned number = numbers[0] + 1;
  Word* const out = t.slots + (number & 1) * t.turn;
  for (Index k = Index(blockIdx.x * blockDim.x + threadIdx.x); k < t.count; k += Index(gridDim.x * blockDim.x)) {
    const Index row = rows[t.first + k];
    const auto bits = static_cast<unsigned long long>(__double_as_longlong((C ? C[row] : 1.0) * double(x[row])));
    exec::cuda::post_word(out + 2 * std::size_t(k), unsigned(bits), number);
    exec::cuda::post_word(out + 2 * std::size_t(k) + 1, unsigned(bits >> 32), number);
  }
}

/// y += sign R B x', x' as it comes in. The last block counts the message.
template <class T>
__global__ void receive_kernel(Index rows, const Index* row, const Offset* offsets, const Index* columns,
                               const double* values, const Word* slots, std::size_t turn, const double* R, int sign,
                               T* y, unsigned* numbers, exec::cuda::Waiting waiting) {
  const unsigned number = numbers[0] + 1;
  const Word* const in = slots + (number & 1) * turn;
  for (Index i = Index(blockIdx.x * blockDim.x + threadIdx.x); i < rows; i += Index(gridDim.x * blockDim.x)) {
    double sum = 0;
    for (Offset k = offsets[i]; k < offsets[i + 1]; ++k) {
      const Word* const word = in + 2 * std::size_t(columns[k]);
      const unsigned low = exec::cuda::await_word(word, number, waiting);
      const unsigned high = exec::cuda::await_word(word + 1, number, waiting);
      sum += values[k] * __hiloint2double(int(high), int(low));
    }
    y[row[i]] += T(sign * (R ? R[row[i]] : 1.0) * sum);
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

/// Blocks that wait must leave room for those that others wait for, where ranks share a GPU.
constexpr unsigned most_blocks = 64;
unsigned blocks_of(Index n) { return std::clamp(exec::cuda::blocks_for(n), 1u, most_blocks); }

}  // namespace

DeviceLinks::DeviceLinks(exec::Cuda space, std::shared_ptr<Ranks> ranks, std::shared_ptr<Coupling> coupling,
                         const Buffer<Index>& rows, sparse::HaloPlan planned)
    : ex_(std::move(space)),
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
}

bool DeviceLinks::connect(const exec::Cuda& member) {
  if (words_) return words_->possible();
  // Every rank has a plan, or none has.
  if (!planned_) return false;
  words_ = std::make_unique<exec::PeerMemory>(ex_.number(), *ranks_,
                                              std::max<std::size_t>(1, 4 * std::size_t(plan_.slots)) * sizeof(Word));
  slots_.resize(std::size_t(ranks_->size()));
  ranks_->all_gather(&plan_.slots, sizeof plan_.slots, slots_.data());
  if (words_->possible()) waiting_ = member.waiting();
  return words_->possible();
}

void DeviceLinks::take_values() {
  if (planned_) ex_.copy_in(b_values_, planned_->values().data(), b_values_.size());
}

template <class T>
void DeviceLinks::send(const T* x, const double* C) {
  if (waiting_.given_up) {
    if (plan_.neighbours.empty() || most_sends_ == 0) return;
    Targets targets;
    for (std::size_t k = 0; k < plan_.neighbours.size(); ++k) {
      const auto& n = plan_.neighbours[k];
      targets.to[k] = {static_cast<Word*>(words_->of(n.rank)) + 2 * std::size_t(n.slot_there),
                       2 * std::size_t(slots_[std::size_t(n.rank)]), n.send, n.sends};
    }
    const dim3 grid(blocks_of(most_sends_), unsigned(plan_.neighbours.size()));
    send_kernel<<<grid, exec::cuda::block_threads, 0, ex_.stream()>>>(targets, send_rows_.data(), x, C,
                                                                      numbers_.data());
    return exec::cuda::launched("sending to other GPUs");
  }
  const auto n = Index(rows_.size());
  if (n > 0)
    gather_kernel<<<exec::cuda::blocks_for(n), exec::cuda::block_threads, 0, ex_.stream()>>>(n, rows_.data(), x, C,
                                                                                             sent_.data());
  exec::cuda::launched("gathering what other ranks need");
  ex_.synchronise();
  coupling_->start(sent_.data());
}

template <class T>
void DeviceLinks::receive(T* y, const double* R, int sign) {
  if (waiting_.given_up) {
    if (plan_.neighbours.empty()) return;
    receive_kernel<<<blocks_of(Index(b_rows_.size())), exec::cuda::block_threads, 0, ex_.stream()>>>(
        Index(b_rows_.size()), b_rows_.data(), b_offsets_.data(), b_columns_.data(), b_values_.data(),
        static_cast<const Word*>(words_->of(ranks_->rank())), 2 * std::size_t(plan_.slots), R, sign, y, numbers_.data(),
        waiting_);
    return exec::cuda::launched("adding what other GPUs sent");
  }
  coupling_->finish(got_.data());
  const auto n = Index(rows_.size());
  if (n > 0)
    add_kernel<<<exec::cuda::blocks_for(n), exec::cuda::block_threads, 0, ex_.stream()>>>(n, rows_.data(), got_.data(),
                                                                                          R, sign, y);
  exec::cuda::launched("adding what other ranks sent");
}

std::size_t DeviceLinks::bytes() const {
  return rows_.bytes() + sent_.bytes() + got_.bytes() + send_rows_.bytes() + b_rows_.bytes() + b_columns_.bytes() +
         b_offsets_.bytes() + b_values_.bytes() + 4 * std::size_t(plan_.slots) * sizeof(Word);
}

template void DeviceLinks::send(const double*, const double*);
template void DeviceLinks::send(const float*, const double*);
template void DeviceLinks::receive(double*, const double*, int);
template void DeviceLinks::receive(float*, const double*, int);

}  // namespace krilu::solver
