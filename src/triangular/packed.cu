// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "krilu/error.hpp"
#include "triangular/packed.cuh"

namespace krilu::triangular {

namespace {

__global__ void take_kernel(std::int64_t words, const Offset* from, const double* factors, double* stream) {
  const std::int64_t w = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (w < words && from[w] >= 0) stream[w] = factors[from[w]];
}

template <class T, class S>
using Kernel = void (*)(PackedView<T>, const T*, T*);
template <class T, class S>
Kernel<T, S> kernel_for(const PackedShape& shape) {
  const bool few = shape.threads == 64;
  switch (shape.width) {
    case 3: return few ? packed_sweeps<T, S, 3, 64> : packed_sweeps<T, S, 3, 128>;
    case 7: return few ? packed_sweeps<T, S, 7, 64> : packed_sweeps<T, S, 7, 128>;
    default: return few ? packed_sweeps<T, S, 15, 64> : nullptr;
  }
}

/// Bytes of shared memory that a thread block may have.
std::size_t most_shared() {
  int device = 0, bytes = 0;
  exec::require_cuda(cudaGetDevice(&device), "asking for shared memory");
  exec::require_cuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                     "asking for shared memory");
  return std::size_t(bytes) - PackedRing::chunks * sizeof(unsigned long long);
}

}  // namespace

template <class T, class S>
void PackedFactors<T, S>::prepare() const {
  const Kernel<T, S> kernel = kernel_for<T, S>(parts->shape);
  if (kernel == nullptr) throw Error("sweeps over parts: there is no kernel of this shape");
  // Of the kernel, and so of all sweeps that use it: never less than another one's.
  exec::require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          int(std::min(packed_most_shared, most_shared()))),
                     "asking for shared memory");
}

template <class T, class S>
void PackedFactors<T, S>::sweep(const exec::Cuda& space, const T* r, T* z) const {
  const PackedShape& shape = parts->shape;
  if (parts->parts() == 0) return;
  const PackedView<T> v{parts->part_row.data(),
                        parts->part_step.data(),
                        part_unit.data(),
                        steps.data(),
                        reinterpret_cast<const uint4*>(words.data()),
                        parts->map.data(),
                        scale.data(),
                        shape.most_rows,
                        ring_units};
  kernel_for<T, S>(shape)<<<unsigned(parts->parts()), shape.threads + 32, shape.shared_bytes(ring_units, sizeof(S)),
                            space.stream()>>>(v, r, z);
  exec::cuda::launched("launching sweeps over parts");
}

bool PackedSweeps::suits(const Packed& p) {
  constexpr Index enough_parts = 16, few_rows = 1024;
  return p.parts() > 0 && p.shared_bytes() <= most_shared() &&
         (p.parts() >= enough_parts || p.part_row.back() <= few_rows);
}

PackedSweeps::PackedSweeps(const exec::Cuda& space, const Packed& p, const std::vector<Index>& map)
    : space_(space), from_(space_.brought(p.from)) {
  factors_ = {std::make_shared<const PackedParts>(
                  PackedParts{p, space_.brought(p.part_row), space_.brought(p.part_step), space_.brought(map)}),
              p.ring_units,
              space_.brought(p.part_unit),
              space_.brought(p.steps),
              space_.brought(p.words),
              space_.allocate<double>(map.size())};
  factors_.prepare();
}

void PackedSweeps::take(const double* factors, const double* scale) {
  const auto words = std::int64_t(factors_.words.size());
  if (words > 0)
    take_kernel<<<exec::cuda::blocks_for(words), 256, 0, space_.stream()>>>(
        words, from_.data(), factors, reinterpret_cast<double*>(factors_.words.data()));
  exec::cuda::launched("packing factors");
  if (factors_.scale.bytes() > 0)
    exec::require_cuda(cudaMemcpyAsync(factors_.scale.data(), scale, factors_.scale.bytes(), cudaMemcpyDeviceToDevice,
                                       space_.stream()),
                       "packing factors");
}

namespace {

/// A thread a part.
__global__ void place_kernel(Index parts, const Index* part_step, const PackedStep* from, unsigned width,
                             unsigned value_bytes, std::uint32_t ring_units, PackedStep* to, std::uint32_t* units) {
  const Index p = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (p >= parts) return;
  const Index first = part_step[p];
  units[p] = place_steps(from + first, part_step[p + 1] - first, width, value_bytes, ring_units, to + first);
}

/// Steps and words of one stream.
template <class Word>
struct Stream {
  const std::uint32_t* part_unit;
  const PackedStep* steps;
  Word* words;
  __device__ Word* step(Index part, Index q) const {
    return words + 2 * (std::size_t(part_unit[part]) + steps[q].begin);
  }
};

/// A thread block a step, a thread an update.
template <class S>
__global__ void __launch_bounds__(128)
    round_steps(Index parts, const Index* part_row, const Index* part_step, const Index* map, unsigned width,
                Stream<const std::uint64_t> from, Stream<std::uint64_t> to, sparse::DeviceScales scales,
                std::int64_t* lost) {
  const Index q = Index(blockIdx.x);
  Index part = 0;  // the last that begins at this step or before
  for (Index end = parts; end - part > 1;) {
    const Index middle = part + (end - part) / 2;
    (part_step[middle] <= q ? part : end) = middle;
  }
  const std::uint64_t* const in = from.step(part, q);
  std::uint64_t* const out = to.step(part, q);
  const Index* const own_map = map + part_row[part];
  const auto column_scale = [&](Index i) { return scales.c(own_map[i] < 0 ? ~own_map[i] : own_map[i]); };
  unsigned mine = 0;
  const auto round = [&](Index i, Index j, double v) {
    return sparse::rounded_counting<S>(scales.column ? v * column_scale(j) / column_scale(i) : v, mine);
  };
  const unsigned rows = from.steps[q].rows;
  for (unsigned t = threadIdx.x; t < rows; t += blockDim.x) round_update<S>(in, width, rows, t, round, out);
  sparse::count_lost(lost, mine);
}

}  // namespace

template <class S>
RoundedPackedSweeps<S>::RoundedPackedSweeps(const PackedSweeps& of, const sparse::Rounding& rounding)
    : space_(of.space()) {
  const PackedFactors<double, double>& from = of.factors();
  const PackedParts& parts = *from.parts;
  const auto steps = Index(from.steps.size()), rows = Index(from.scale.size());
  factors_.parts = from.parts;
  factors_.ring_units = parts.shape.ring_for(sizeof(S));
  factors_.steps = space_.allocate<PackedStep>(from.steps.size());
  factors_.scale = space_.allocate<float>(from.scale.size());
  factors_.prepare();

  std::vector<std::uint32_t> unit(parts.part_row.size(), 0);
  const auto units = space_.allocate<std::uint32_t>(unit.size() - 1);
  if (units.size() > 0)
    place_kernel<<<exec::cuda::blocks_for(parts.parts()), 256, 0, space_.stream()>>>(
        parts.parts(), parts.part_step.data(), from.steps.data(), parts.shape.width, sizeof(S), factors_.ring_units,
        factors_.steps.data(), units.data());
  exec::cuda::launched("placing steps");
  space_.copy_out(unit.data() + 1, units, units.size());
  for (std::size_t p = 1; p < unit.size(); ++p) unit[p] += unit[p - 1];
  factors_.part_unit = space_.brought(unit);
  factors_.words = space_.allocate<std::uint64_t>(2 * std::size_t(unit.back()));
  space_.clear(factors_.words);  // words between steps are nobody's

  const sparse::DeviceScales scales(rounding);
  if (steps > 0)
    round_steps<S><<<unsigned(steps), 128, 0, space_.stream()>>>(
        parts.parts(), parts.part_row.data(), parts.part_step.data(), parts.map.data(), parts.shape.width,
        {from.part_unit.data(), from.steps.data(), from.words.data()},
        {factors_.part_unit.data(), factors_.steps.data(), factors_.words.data()}, scales, rounding.lost);
  if (rows > 0)
    round_pivots<<<exec::cuda::blocks_for(rows), 256, 0, space_.stream()>>>(
        rows, parts.map.data(), from.scale.data(), scales, factors_.scale.data(), rounding.lost);
  exec::cuda::launched("rounding factors");
}

template struct PackedFactors<double, double>;
template struct PackedFactors<float, float>;
template struct PackedFactors<float, Half>;
template struct PackedFactors<float, Bfloat16>;
template class RoundedPackedSweeps<float>;
template class RoundedPackedSweeps<Half>;
template class RoundedPackedSweeps<Bfloat16>;

}  // namespace krilu::triangular
