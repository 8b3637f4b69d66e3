// SPDX-License-Identifier: Apache-2.0
#include "precond/factors.cuh"

namespace krilu::precond {

namespace {

/// Az of z = M^-1 r, where M = (E + L) E^-1 (E + U) has A's own triangles: (E + U) z = E y, with y what the forward
/// sweep left, so that A z = E y + (D - E) z + L z, and U is not read again [after Eisenstat 1981]. A warp a slice.
template <int count>
__global__ void __launch_bounds__(256)
    product_after_sweeps(sparse::SlicedView<double> a, const double* rd, const double* y, const double* z, double* Az) {
  const Index s = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32);
  if (s >= a.pattern.slices) return;
  const int lane = int(threadIdx.x % 32);
  const sparse::Head head = sparse::load_head(a.pattern.lower, s, lane);
  const sparse::Lane l = sparse::open_lane(a.pattern.lower, head, lane);
  double sum = 0;
  if (l.row >= 0 && l.sub == 0) {
    const double e = 1 / __ldcs(rd + l.row), own = __ldg(z + l.row);
    sum = e * (__ldcs(y + l.row) - own) + __ldcs(a.diagonal + l.row) * own;
  }
  sparse::add_triangle<count>(a.pattern.lower, a.lower, head.slice, l, lane, z, sum);
  sum = sparse::sum_over_lanes(sum, l.lanes_log2);
  if (l.row >= 0 && l.sub == 0) Az[l.row] = sum;
}

}  // namespace

template <>
void Dilu<exec::Cuda, double>::factor(const Values<exec::Cuda, double>& a, double shift) {
  a_ = a.stored.view();
  forget_trouble();
  look_for_asymmetry(a.stored);
  find_pivots(a.stored, shift);
  require_no_trouble();
}

template <>
void Dilu<exec::Cuda, double>::apply(const double* r, double* z) {
  solve(a_.lower, a_.upper, r, z);
}

template <>
void Dilu<exec::Cuda, double>::apply(const sparse::Operator<exec::Cuda, double>& A, const double* r, double* z,
                                     double* Az) {
  apply(r, z);
  // Strategies that wait have set y back by now; a shift makes M another matrix's.
  if (!runner_->blocks() || shifted_.size() > 0 || a_.pattern.slices == 0) return A.apply(z, Az);
  const auto blocks = unsigned((std::int64_t(a_.pattern.slices) * 32 + 255) / 256);
  if (pattern_->widest() <= 4)
    product_after_sweeps<4><<<blocks, 256, 0, space_.stream()>>>(a_, rd_.data(), work_.data(), z, Az);
  else
    product_after_sweeps<3><<<blocks, 256, 0, space_.stream()>>>(a_, rd_.data(), work_.data(), z, Az);
  exec::require_cuda(cudaGetLastError(), "launching a product");
}

}  // namespace krilu::precond
