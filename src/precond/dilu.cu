// SPDX-License-Identifier: Apache-2.0
#include "exec/overlap.cuh"
#include "exec/warp.cuh"
#include "precond/factors.cuh"

namespace krilu::precond {

namespace {

/// As factors.cuh says. Az of z = M^-1 r, where M = (E + L) E^-1 (E + U) has A's own triangles: (E + U) z = E y, with y
/// what the forward sweep left, so that A z = E y + (D - E) z + L z, and U is not read again [after Eisenstat 1981]. A
/// warp a slice.
template <int count, class T, class S>
__global__ void __launch_bounds__(256)
    product_after_sweeps_kernel(sparse::SlicedView<T, S> a, const T* rd, const T* y, const T* z, T* Az) {
  const Index s = exec::warp_in_grid();
  if (s >= a.pattern.slices) return;
  const int lane = int(threadIdx.x % 32);
  const sparse::Head head = sparse::arrived(sparse::load_head(a.pattern.lower, s, lane));
  const sparse::Lane l = sparse::open_lane(a.pattern.lower, head, lane);
  const bool have = l.row >= 0 && l.sub == 0;
  const T reciprocal = exec::ask_streamed(rd + l.row, rd && have, 1),
          diagonal = exec::ask_streamed(a.diagonal + l.row, have);
  exec::await_former();
  const T own = exec::ask(z + l.row, have), swept = exec::ask_streamed(y + l.row, have);
  T sum = 1 / reciprocal * (swept - own) + diagonal * own;
  sparse::add_triangle<count>(a.pattern.lower, a.lower, head.slice, l, lane, z, sum);
  sum = sparse::sum_over_lanes(sum, l.lanes_log2);
  if (have) Az[l.row] = sum;
}

/// The same where slices read alike (sparse/stencils.cuh): the same sums in the same sequence.
template <int count, class T, class S>
__global__ void __launch_bounds__(256)
    product_after_stencil_sweeps_kernel(sparse::SlicedView<T, S> a, const T* rd, const T* y, const T* z, T* Az) {
  const Index s = exec::warp_in_grid();
  if (s >= a.pattern.slices) return;
  const sparse::StencilTriangle& t = a.pattern.lower.stencil;
  const int me = int(threadIdx.x % 32);
  const sparse::StencilLane<1> l(t, sparse::load_head<1>(t, s, a.pattern.slices, me), me);
  const Index row = l.row[0];
  const int steps = l.slice.others() + l.slice.within();
  std::int32_t word[count];
  S value[1][count];
  l.ask(a.lower, 0, 0, steps, word, value);
  const T reciprocal = exec::ask_streamed(rd + row, rd && row >= 0, 1),
          diagonal = exec::ask_streamed(a.diagonal + row, row >= 0);
  exec::await_former();
  const T own = exec::ask(z + row, row >= 0), swept = exec::ask_streamed(y + row, row >= 0);
  T sum[1] = {1 / reciprocal * (swept - own) + diagonal * own};
  l.add(a.lower, z, 0, steps, word, value, sum);
  if (row >= 0) Az[row] = sum[0];
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
  if (A.stored() != a_.diagonal || !runner_->blocks() || shifted_.size() > 0 || a_.pattern.slices == 0)
    return A.apply(z, Az);
  A.start_others(z);
  product_after_sweeps(space_, a_, pattern_->widest(), rd_.data(), work_.data(), z, Az);
  A.finish_others(Az);
}

template <>
std::unique_ptr<Preconditioner<exec::Cuda, float>> Dilu<exec::Cuda, double>::rounded(
    const sparse::Rounding& rounding, const std::shared_ptr<const sparse::RoundedMatrix>& a) const {
  return rounded_form(a_.lower, a_.upper, rounding, a, true);
}

template <class T, class S>
void product_after_sweeps(const exec::Cuda& space, const sparse::SlicedView<T, S>& a, Index widest, const T* rd,
                          const T* y, const T* z, T* Az) {
  const auto blocks = unsigned((std::int64_t(a.pattern.slices) * 32 + 255) / 256);
  if (a.pattern.lower.stencil)
    space.launch(
        true, widest <= 6 ? product_after_stencil_sweeps_kernel<6, T, S> : product_after_stencil_sweeps_kernel<4, T, S>,
        {blocks, 256}, a, rd, y, z, Az);
  else
    space.launch(true, widest <= 4 ? product_after_sweeps_kernel<4, T, S> : product_after_sweeps_kernel<3, T, S>,
                 {blocks, 256}, a, rd, y, z, Az);
}
#define KRILU_PRODUCT(T, S)                                                                                         \
  template void product_after_sweeps(const exec::Cuda&, const sparse::SlicedView<T, S>&, Index, const T*, const T*, \
                                     const T*, T*);
KRILU_PRODUCT(double, double)
KRILU_PRODUCT(float, float)
KRILU_PRODUCT(float, Half)
KRILU_PRODUCT(float, Bfloat16)
#undef KRILU_PRODUCT

}  // namespace krilu::precond
