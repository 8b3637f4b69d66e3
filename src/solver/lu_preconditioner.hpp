// SPDX-License-Identifier: Apache-2.0
// A sparse LU factorisation (sparse_lu.hpp) as a preconditioner: M = A but for rounding and the pivots that were not
// the largest, so that a Krylov method is iterative refinement with it, and a few steps do. On spaces whose kernels are
// host code.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "base/available_memory.hpp"
#include "krilu/error.hpp"
#include "precond/preconditioner.hpp"
#include "solver/sparse_lu.hpp"

namespace krilu::solver {

template <class Space>
class LuPreconditioner final : public precond::Preconditioner<Space, double> {
 public:
  explicit LuPreconditioner(const precond::Context<Space>& context)
      : space_(context.space), row_(std::size_t(context.caller.rows)), block_(row_.size()) {
    for (std::size_t k = 0; k < row_.size(); ++k) row_[k] = context.caller_row(Index(k));
  }

  void factor(const precond::Values<Space, double>& a, double) override {
    lu_.reset();
    if (row_.empty()) return;
    auto lu = std::make_unique<SparseLu>(a.caller, available_memory());
    switch (lu->outcome()) {
      case SparseLu::Outcome::ready: break;
      case SparseLu::Outcome::singular:
        throw ZeroPivot("lu: a column has no pivot other than zero: the matrix is singular");
      case SparseLu::Outcome::too_large:
        throw Error(
            fmt::format("lu: the factors have no room in memory ({:.1f} GB are foreseen)", 1e-9 * double(lu->bytes())));
      case SparseLu::Outcome::missing: throw Error("lu: krilu was built without SuperLU (libsuperlu-dev)");
    }
    lu_ = std::move(lu);
  }
  using precond::Preconditioner<Space, double>::apply;
  void apply(const double* r, double* z) override {
    space_.enqueue([this, r, z](const exec::Host&) {
      for (std::size_t k = 0; k < row_.size(); ++k) block_[std::size_t(row_[k])] = r[k];
      if (lu_) lu_->solve(block_.data(), 1, false);
      for (std::size_t k = 0; k < row_.size(); ++k) z[k] = block_[std::size_t(row_[k])];
    });
  }
  std::size_t bytes() const override {
    return row_.capacity() * sizeof(Index) + block_.capacity() * sizeof(double) + (lu_ ? lu_->bytes() : 0);
  }
  std::string description() const override { return SparseLu::name(); }

 private:
  Space space_;
  std::vector<Index> row_;  // the caller's, of the solver's
  std::vector<double> block_;
  std::unique_ptr<SparseLu> lu_;
};

}  // namespace krilu::solver
