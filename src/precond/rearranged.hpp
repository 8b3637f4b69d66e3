// SPDX-License-Identifier: Apache-2.0
// An incomplete factorisation of A in another form: B = R P A Q C, rows and columns scaled by powers of two (R, C),
// rows permuted so that large entries stand on the diagonal (P), and rows and columns ordered alike for elimination.
// Then A^-1 = Q C B^-1 R P, and so is the preconditioner. The system itself stays the caller's: what a Krylov method
// minimises is the true residual, and nothing has to be undone in x. Cost beside the factorisation of B: A once more,
// and 6 words a row in an application.
//
//   rows      R makes each row's largest entry about 1
//   both      R and C make those of rows and columns about 1, by iterated maxima [Ruiz 2001]
//   matching  the permutation and the scales of the maximum product [Duff and Koster 2001]: entries paired are about 1,
//             no other is more than 2
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "precond/preconditioner.hpp"
#include "precond/spec.hpp"

namespace krilu::precond {

/// Of names that factor a matrix of their own (Sweeps::of_its_own), and ilu0, which is iluk:0 here. On spaces whose
/// kernels are host code. matching needs values in context.caller, which are those that the permutation suits; factor
/// takes others as well.
template <class Space>
class Rearranged final : public Preconditioner<Space, double> {
 public:
  /// Throws krilu::Error where A is structurally singular and scaling is matching, naming rows.
  Rearranged(const Context<Space>& context, const std::string& name, const Rearrangement& how);
  void factor(const Values<Space, double>& a, double shift) override;
  using Preconditioner<Space, double>::apply;
  void apply(const double* r, double* z) override;
  std::size_t bytes() const override;
  std::string description() const override;
  std::optional<triangular::Report> triangular() const override { return inner_->triangular(); }

 private:
  void arrange(const CsrView& a);
  void scale(const CsrView& a);

  Context<Space> context_;
  Rearrangement how_;
  std::vector<Index> row_, column_;               // of B: the caller's
  std::vector<double> row_scale_, column_scale_;  // of the caller's rows and columns, as the analysis found them
  CsrMatrix b_;
  std::vector<Offset> source_;  // of B's entries: A's
  std::unique_ptr<Preconditioner<Space, double>> inner_;
  exec::Array<Index> from_, to_;        // of B's rows: their places in r; of its columns: those in z
  exec::Array<double> before_, after_;  // their scales
  exec::Array<double> r_, z_;
};

}  // namespace krilu::precond
