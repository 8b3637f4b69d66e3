// SPDX-License-Identifier: Apache-2.0
#include "precond/factors.cuh"

namespace krilu::precond {

/// The construction is a triangular solve whose entries are a_ij a_ji: it runs under the same strategies.
template <>
void Dilu<exec::Cuda, double>::factor(const sparse::SlicedMatrix<double>& matrix, double shift) {
  using triangular::Diagonal;
  a_ = matrix.view();
  forget_trouble();
  look_for_asymmetry(matrix);
  triangular::Recurrence<double, Diagonal::pivot, true> pivots{a_.pattern.lower, a_.lower, diagonal_of(matrix, shift),
                                                               nullptr, rd_.data()};
  pivots.mirror = a_.upper;
  pivots.partner = partner_.data();
  pivots.zero_pivot = &trouble_.data()->zero_pivot;
  runner_->sweep(pivots);
  require_no_trouble();
}

template <>
void Dilu<exec::Cuda, double>::apply(const double* r, double* z) {
  solve(a_.lower, a_.upper, r, z);
}

}  // namespace krilu::precond
