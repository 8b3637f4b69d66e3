// SPDX-License-Identifier: Apache-2.0
// ILU(0) [Meijerink and van der Vorst 1977; Saad 2003, Algorithm 10.4]: Gaussian elimination that keeps only the places
// where A has entries. Held in the DILU form (E + L) E^-1 (E + U), so that both share their sweeps: row i is eliminated
// with the multipliers l_ik rd_k, and l_ik itself is what is kept. IC(0) is ILU(0) of a symmetric matrix in that form:
// U = L^T, the root-free incomplete Cholesky factor, which therefore serves negative definite matrices too.
// A GPU keeps E^-1 U where elimination changes more than pivots (ilu0.cu).
// Cost beside A: the values of both triangles and one vector; the pattern is shared with A.
#pragma once

#include "precond/factors.hpp"

namespace krilu::precond {

/// What a space needs for the elimination beside the slices: a GPU's is in factors.cuh.
template <class Space>
struct EliminationOn {};

template <class Space, class T>
class Ilu0 final : public DiluForm<Space, T> {
 public:
  Ilu0(const Context<Space>& context, std::shared_ptr<const sparse::PatternOf<Space>> pattern, std::string name,
       bool symmetric);
  void factor(const Values<Space, T>& a, double shift) override;
  using Preconditioner<Space, T>::apply;
  void apply(const T* r, T* z) override;
  std::unique_ptr<Preconditioner<Space, float>> rounded(
      const sparse::Rounding& rounding, const std::shared_ptr<const sparse::RoundedMatrix>& a) const override;
  std::size_t bytes() const override;

 private:
  exec::Array<T> lower_, upper_;
  EliminationOn<Space> elimination_;
  bool is_dilu_ = false;  // on a GPU: no elimination meets an entry off the diagonal
};

}  // namespace krilu::precond
