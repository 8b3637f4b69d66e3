// SPDX-License-Identifier: Apache-2.0
// DILU's application; dilu_factor.cpp has its construction.
#include "precond/dilu.hpp"

#include "exec/emulated.hpp"
#include "triangular/sweep.hpp"

namespace krilu::precond {

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
