// SPDX-License-Identifier: Apache-2.0
// A caller's own preconditioner: vectors change between the solver's order and the caller's on the way. For the spaces
// whose kernels are host code.
#pragma once

#include <functional>
#include <string>

#include "exec/host.hpp"
#include "krilu/ranks.hpp"
#include "precond/preconditioner.hpp"

namespace krilu::solver {

template <class Space, class System>
class GivenPreconditioner final : public precond::Preconditioner<Space, double> {
 public:
  /// space: a member of its team.
  GivenPreconditioner(Space space, const System& system, Index rows, const Team::Preconditioner& M)
      : ex_(std::move(space)),
        system_(system),
        M_(M),
        r_(ex_.template allocate<double>(std::size_t(rows))),
        z_(ex_.template allocate<double>(std::size_t(rows))) {}
  using precond::Preconditioner<Space, double>::apply;
  void factor(const precond::Values<Space, double>&, double) override {}
  void apply(const double* r, double* z) override {
    system_.permute_out(r_.data(), r);
    ex_.enqueue([this](const exec::Host&) {
      ex_.in_company([&] { M_({r_.data(), r_.size()}, {z_.data(), z_.size()}); });
    });
    system_.permute_in(z, z_.data());
  }
  std::size_t bytes() const override { return r_.bytes() + z_.bytes(); }

 private:
  Space ex_;
  const System& system_;
  const Team::Preconditioner& M_;
  exec::Array<double> r_, z_;
};

}  // namespace krilu::solver
