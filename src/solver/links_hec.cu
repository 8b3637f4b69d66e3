// SPDX-License-Identifier: Apache-2.0
// A rank's product in one launch, its own block being in HEC: the first blocks send the boundary, the others take the
// rows as HEC's product does, and rows that border on other ranks add B x' as it comes in. Blocks that wait keep nobody
// from sending, since those that send come first on every GPU: blocks begin in the order of their numbers. CUDA does
// not promise that order; where a GPU did not keep it, ranks would wait in vain once more blocks wait than it holds.
#include <algorithm>
#include <utility>

#include "solver/boundary.cuh"
#include "sparse/hec.cuh"

namespace krilu::solver {

namespace {

constexpr unsigned threads = exec::cuda::block_threads;

struct Bordering {
  const sparse::HecListed* listed;
  unsigned groups;     // of 32 rows
  unsigned concerned;  // blocks: those that send, and those with rows that border on others
};

/// y = A x over ranks, x read by `read`; D x is sent where there is a d. The last block concerned counts the message.
template <int N, bool exact, class C, class Read>
__global__ void __launch_bounds__(threads)
    product_kernel(sparse::HecView<double> a, Read read, const double* x, const double* d, double* y, Targets targets,
                   unsigned senders, Incoming incoming, Outer b, Bordering bordering, unsigned* numbers,
                   exec::cuda::Waiting waiting) {
  bool concerned = blockIdx.x < senders;
  if (concerned) {
    const unsigned number = numbers[0] + 1;
    for (int n = 0; n < targets.neighbours; ++n)
      send_entries(targets, n, x, d, number, Index(blockIdx.x * threads + threadIdx.x), Index(senders * threads));
  } else if (const unsigned place = (blockIdx.x - senders) * threads + threadIdx.x; place < unsigned(a.leading)) {
    const auto i = Index(place);  // whole warps
    const unsigned lane = threadIdx.x % 32;
    const sparse::HecListed listed = place / 32 < bordering.groups ? bordering.listed[place / 32] : sparse::HecListed{};
    sparse::EllRow<N, exact, double, C> row;
    row.open(a, i);
    const sparse::HecLeftover leftover(a, place);
    double sum = row.sum(a, i, read);
    add_leftover(a, leftover, read, sum);
    if (listed.rows >> lane & 1) {
      concerned = true;
      const Index q = listed.first + __popc(listed.rows & ((1u << lane) - 1));
      const unsigned number = numbers[0] + 1;
      const Word* const in = incoming.place(number);
      double outside = 0;
      for (Offset k = b.offsets[q]; k < b.offsets[q + 1]; ++k)
        outside += b.values[k] * exec::cuda::await_value(in + 2 * std::size_t(b.columns[k]), number, waiting);
      sum += outside;
    }
    if (i < a.rows) {
      y[i] = sum;
      if constexpr (requires { read.z; }) read.z[i] = read(i);
    }
  }
  if (__syncthreads_or(concerned) && threadIdx.x == 0) {
    const unsigned number = numbers[0] + 1;
    __threadfence();
    if (atomicAdd(numbers + 1, 1u) == bordering.concerned - 1) {
      numbers[1] = 0;
      numbers[0] = number;
    }
  }
}

}  // namespace

void DeviceLinks::list_bordering() {
  // In another order than the caller's rows have no such product.
  if (plan_.rows.empty() || !std::is_sorted(plan_.rows.begin(), plan_.rows.end())) return;
  std::vector<sparse::HecListed> listed(std::size_t(plan_.rows.back()) / 32 + 1);
  std::uint32_t last_block = ~0u;
  for (std::size_t q = 0; q < plan_.rows.size(); ++q) {
    const auto row = std::uint32_t(plan_.rows[q]);
    sparse::HecListed& group = listed[row / 32];
    if (group.rows == 0) group.first = Index(q);
    group.rows |= 1u << row % 32;
    bordering_blocks_ += row / threads != std::exchange(last_block, row / threads);
  }
  bordering_ = ex_.brought(listed);
}

bool DeviceLinks::product(const sparse::Operator<exec::Cuda, double>& own, const double* d, const double* x, double* z,
                          double* y) {
  if (!waiting_.given_up || bordering_.size() == 0) return false;
  if (exec::cuda::share_gpus && bordering_blocks_ > most_beside_others) return false;
  const auto* const hec = dynamic_cast<const sparse::HecOperator<exec::Cuda, double>*>(&own);
  const sparse::HecView<double>* const a = hec ? hec->all_rows() : nullptr;
  if (!a) return false;
  const Route r = route();
  constexpr unsigned most_senders = 64;
  const auto sends = Index(send_rows_.size());
  const unsigned senders = sends > 0 ? std::min(exec::cuda::blocks_for(sends), most_senders) : 0;
  const unsigned blocks = senders + exec::cuda::blocks_for(a->leading);
  const Bordering bordering{bordering_.data(), unsigned(bordering_.size()), senders + bordering_blocks_};
  const auto launch = [&](auto read) {
    sparse::with_hec_columns(*a, [&](auto column) {
      sparse::with_hec_width(a->width, [&](auto n, auto exact) {
        product_kernel<decltype(n)::value, decltype(exact)::value, decltype(column)>
            <<<blocks, threads, 0, ex_.stream()>>>(*a, read, x, d, y, r.targets, senders, r.incoming, r.b, bordering,
                                                   numbers_.data(), waiting_);
      });
    });
  };
  if (d)
    launch(sparse::ScaledVector<double>{x, d, z});
  else
    launch(sparse::PlainVector<double>{x});
  exec::cuda::launched("launching a product over ranks");
  return true;
}

}  // namespace krilu::solver
