// SPDX-License-Identifier: Apache-2.0
#include "precond/dilu.hpp"

#include "exec/emulated.hpp"
#include "precond/row_walk.hpp"
#include "triangular/sweep.hpp"

namespace krilu::precond {

template <class Space, class T>
void Dilu<Space, T>::factor(const Values<Space, T>& a, double shift) {
  a_ = a.stored.view();
  this->forget_trouble();
  this->space_.enqueue([a = a_, shift, runner = this->runner_, partner = this->partner(), rd = this->rd_.data(),
                        trouble = this->trouble_.data(), symmetric = this->symmetric_](const exec::Host&) {
    runner->ascending([&](Index slice) {
      const Index first = a.pattern.slice_row[slice], lanes = a.pattern.slice_row[slice + 1] - first;
      for (Index q = 0; q < lanes; ++q) {
        T e = shifted_diagonal(a, slice, q, shift);
        for_row_entries(a.pattern, a.pattern.lower, slice, q, [&](Offset k) {
          const T mirror = partner[k] >= 0 ? a.upper[partner[k]] : T(0);
          if (symmetric && mirror != a.lower[k]) note_row(trouble->asymmetric, first + q);
          e -= a.lower[k] * rd[a.pattern.lower.column[k]] * mirror;
        });
        rd[first + q] = reciprocal_pivot(e, first + q, trouble->zero_pivot);
      }
    });
  });
  this->require_no_trouble();
}

template <class Space, class T>
void Dilu<Space, T>::apply(const T* r, T* z) {
  this->space_.enqueue([a = a_, runner = this->runner_, rd = this->rd_.data(), r, z](const exec::Host&) {
    triangular::solve_dilu_form(*runner, a, rd, r, z);
  });
}

template <class Space, class T>
void Dilu<Space, T>::apply(const sparse::Operator<Space, T>& A, const T* r, T* z, T* Az) {
  if (A.stored() != a_.diagonal) return DiluForm<Space, T>::apply(A, r, z, Az);
  solve_with_product(this->space_, this->runner_, a_, this->rd_.data(), A, r, z, Az);
}

template <class Space, class T>
std::unique_ptr<Preconditioner<Space, float>> Dilu<Space, T>::rounded(
    const sparse::Rounding& rounding, const std::shared_ptr<const sparse::RoundedMatrix>& a) const {
  return this->rounded_form(a_.lower, a_.upper, rounding, a, true);
}

template class Dilu<exec::Host, double>;
template class Dilu<exec::Emulated, double>;

}  // namespace krilu::precond
