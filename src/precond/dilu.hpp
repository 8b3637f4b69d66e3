// SPDX-License-Identifier: Apache-2.0
// DILU [Pommerell 1992]: M = (E + L) E^-1 (E + U) with A's own triangles, and E such that M and A have the same
// diagonal:
//
//   rd_i = 1 / (a_ii - sum over j < i of a_ij rd_j a_ji)
//
// as OpenFOAM has it; an entry without a partner across the diagonal (a_ji = 0) contributes nothing. DIC is the same on
// a symmetric matrix, and refuses another. Paper: Wang and Liu (2022), Algorithms 3 and 5 for the construction, 4 and 6
// for the solves. Cost beside A: one vector, and one index a lower entry; an application reads L and U once,
// and with A's product L once more.
#pragma once

#include "precond/factors.hpp"

namespace krilu::precond {

template <class Space, class T>
class Dilu final : public DiluForm<Space, T> {
 public:
  using DiluForm<Space, T>::DiluForm;
  void factor(const Values<Space, T>& a, double shift) override;
  void apply(const T* r, T* z) override;
  std::unique_ptr<Preconditioner<Space, float>> rounded(
      const sparse::Rounding& rounding, const std::shared_ptr<const sparse::RoundedMatrix>& a) const override;
  void apply(const sparse::Operator<Space, T>& A, const T* r, T* z, T* Az) override;

 private:
  sparse::ViewOf<Space, T> a_;
};

}  // namespace krilu::precond
