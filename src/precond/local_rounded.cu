// SPDX-License-Identifier: Apache-2.0
// Local on a GPU, rounded: M_s = R M C in single precision. With M = D (I + L)(I + U) in local rows that is
// D_s = R D C, L_s = C^-1 L C and U_s = C^-1 U C, each local row having the scales of the row that it stands for, so
// that restriction and prolongation stay as they are. Packed sweeps are rounded where they stand (packed.cuh), those of
// any triangle slice by slice. Both share the analysis with what they were made of, and nothing else.
#include "precond/local.cuh"

namespace krilu::precond {

namespace {

using exec::cuda::blocks_for;
using exec::cuda::launched;

// --- packed ---------------------------------------------------------------------------------------------------------

template <class S>
class RoundedPacked final : public Preconditioner<exec::Cuda, float> {
 public:
  RoundedPacked(const triangular::PackedSweeps& of, const sparse::Rounding& rounding) : sweeps_(of, rounding) {}
  void factor(const Values<exec::Cuda, float>&, double) override {}
  using Preconditioner<exec::Cuda, float>::apply;
  void apply(const float* r, float* z) override { sweeps_.apply(r, z); }
  std::size_t bytes() const override { return sweeps_.bytes(); }
  std::optional<triangular::Report> triangular() const override {
    return triangular::Report{triangular::Strategy::parts, {}, true};
  }

 private:
  triangular::RoundedPackedSweeps<S> sweeps_;
};

// --- those of any triangle ------------------------------------------------------------------------------------------

/// t_ij C_j / C_i, a warp a slice. map: of each row its place in r and z, or ~place.
template <class S>
__global__ void round_triangle(sparse::SlicedTriangle t, Index slices, const double* value, const Index* map,
                               sparse::DeviceScales scales, S* out, std::int64_t* lost) {
  const Index s = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32);
  if (s >= slices) return;
  const int lane = int(threadIdx.x % 32);
  const sparse::Slice slice = sparse::load_slice(t.slice + s);
  sparse::Lane l = sparse::open_lane(t, s, slice, lane);
  const auto scale = [&](Index i) { return scales.c(map[i] < 0 ? ~map[i] : map[i]); };
  unsigned mine = 0;
  for (int k = 0; k < slice.width(); ++k) {
    const Offset at = sparse::step(l, k, lane);
    if (k >= l.count) continue;
    const double v = value[at];
    out[at] = sparse::rounded_counting<S>(scales.column ? v * scale(t.column[at]) / scale(l.row) : v, mine);
  }
  sparse::count_lost(lost, mine);
}

/// What the double sweeps are made of.
struct Triangles {
  exec::Cuda space;
  std::shared_ptr<const schedule::Plan> plan;
  std::shared_ptr<const sparse::SlicedPattern> pattern;
  std::shared_ptr<const exec::Array<Index>> map;
  triangular::Strategy strategy;
};

template <class S>
class RoundedTriangles final : public Preconditioner<exec::Cuda, float> {
 public:
  RoundedTriangles(const Triangles& of, const sparse::SlicedMatrix<double>& factors, const exec::Array<double>& scale,
                   const sparse::Rounding& rounding)
      : of_(of),
        runner_(of_.space, of_.plan, *of_.pattern, of_.strategy),
        lower_(of_.space.allocate<S>(factors.lower.size())),
        upper_(of_.space.allocate<S>(factors.upper.size())) {
    for (auto* v : {&scale_, &restricted_, &between_, &solved_}) *v = of_.space.allocate<float>(scale.size());
    const sparse::DeviceScales scales(rounding);
    const sparse::SlicedPatternView p = of_.pattern->view();
    const Index* const map = of_.map->data();
    const cudaStream_t stream = of_.space.stream();
    const unsigned warps = blocks_for(std::int64_t(p.slices) * 32);
    if (lower_.size() > 0)
      round_triangle<<<warps, 256, 0, stream>>>(p.lower, p.slices, factors.lower.data(), map, scales, lower_.data(),
                                                rounding.lost);
    if (upper_.size() > 0)
      round_triangle<<<warps, 256, 0, stream>>>(p.upper, p.slices, factors.upper.data(), map, scales, upper_.data(),
                                                rounding.lost);
    if (p.rows > 0)
      triangular::round_pivots<<<blocks_for(p.rows), 256, 0, stream>>>(p.rows, map, scale.data(), scales, scale_.data(),
                                                                       rounding.lost);
    launched("rounding factors");
  }
  void factor(const Values<exec::Cuda, float>&, double) override {}
  using Preconditioner<exec::Cuda, float>::apply;
  void apply(const float* r, float* z) override {
    using triangular::Diagonal;
    const sparse::SlicedPatternView p = of_.pattern->view();
    if (p.rows == 0) return;
    const cudaStream_t stream = of_.space.stream();
    restrict_kernel<<<blocks_for(p.rows), 256, 0, stream>>>(p.rows, of_.map->data(), scale_.data(), r,
                                                            restricted_.data());
    const triangular::Recurrence<float, Diagonal::unit, true, S> forward{p.lower, lower_.data(), restricted_.data(),
                                                                         nullptr, between_.data()};
    const triangular::Recurrence<float, Diagonal::unit, false, S> backward{p.upper, upper_.data(), between_.data(),
                                                                           nullptr, solved_.data()};
    runner_.both(forward, backward);
    prolong_kernel<<<blocks_for(p.rows), 256, 0, stream>>>(p.rows, of_.map->data(), solved_.data(), z);
    launched("launching sweeps");
  }
  std::size_t bytes() const override {
    return runner_.bytes() + lower_.bytes() + upper_.bytes() + scale_.bytes() + restricted_.bytes() + between_.bytes() +
           solved_.bytes();
  }
  std::optional<triangular::Report> triangular() const override { return runner_.report(); }
  int trials_left() const override { return runner_.trials_left(); }

 private:
  Triangles of_;
  triangular::WarpRunner runner_;  // its own: it knows what stands in the vectors that it sweeps over
  exec::Array<S> lower_, upper_;
  exec::Array<float> scale_, restricted_, between_, solved_;
};

}  // namespace

std::unique_ptr<Preconditioner<exec::Cuda, float>> LocalSweeps<exec::Cuda, double>::rounded(
    const sparse::Rounding& rounding) const {
  return with_format(rounding.storage, [&](auto storage) -> std::unique_ptr<Preconditioner<exec::Cuda, float>> {
    using S = decltype(storage);
    if (packed_) return std::make_unique<RoundedPacked<S>>(*packed_, rounding);
    // What the timed trials of the double sweeps found holds for these.
    const auto strategy = runner_->settled() ? runner_->current() : triangular::Strategy::automatic;
    return std::make_unique<RoundedTriangles<S>>(Triangles{space_, plan_, pattern_, map_, strategy}, factors_, scale_,
                                                 rounding);
  });
}

}  // namespace krilu::precond
