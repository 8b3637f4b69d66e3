// SPDX-License-Identifier: Apache-2.0
// The system as a space holds it: order, pattern and values, and the way between the caller's row order outside and the
// solver's inside. This is the one of the spaces whose memory the host's cores work on; a GPU's (system.cuh) is built
// there.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "krilu/solver.hpp"
#include "precond/preconditioner.hpp"
#include "precond/rearranged.hpp"
#include "precond/registry.hpp"
#include "schedule/row_order.hpp"
#include "solver/lu_preconditioner.hpp"
#include "solver/plan.hpp"
#include "sparse/operator.hpp"

namespace krilu::solver {

template <class Space>
class MatrixAlone;

template <class Space>
class System {
  using T = double;

 public:
  using Alone = MatrixAlone<Space>;
  System(Space space, const Options&) : ex_(std::move(space)) {}

  /// Throws krilu::Error where a is no valid square matrix.
  Facts look(const CsrView& a, bool values) {
    require_valid(a);
    return {sparse::symmetry(a), values ? sparse::diagonal_facts(a) : sparse::DiagonalFacts{},
            sparse::pattern_hash(exec::Host(ex_.threads()), a)};
  }

  /// graph: the pattern of A + A^T; a itself where its pattern is symmetric.
  void analyse(const CsrView& a, const CsrView& graph, const Plan& plan) {
    const exec::Host host(ex_.threads());
    const schedule::Order order = schedule::order_by_name(plan.ordering, a, graph);
    order_ = plan.triangular ? schedule::for_sweeps(host, a, graph, order) : schedule::for_products(a, order);
    place_.resize(order_.rows.size());
    for (std::size_t i = 0; i < place_.size(); ++i) place_[std::size_t(order_.rows[i])] = Index(i);
    pattern_ = std::make_shared<const sparse::SplitPattern>(ex_, host, a, order_);
    shape_ = fmt::format("{} levels in {} ordering, stored {}", order_.group.size() - 1, plan.ordering,
                         pattern_->height() > 0 ? fmt::format("in slices of {} rows", pattern_->height())
                                                : fmt::format("by nodes of {:.1f} rows",
                                                              double(a.rows) / std::max(1, pattern_->slices())));
  }
  void set_values(const CsrView& a, bool) {
    const exec::Host host(ex_.threads());
    if constexpr (!std::is_same_v<Space, exec::Host>) matrix_ = {};  // the old values go before the new ones come
    matrix_ = sparse::fill_values<T>(host, pattern_, a, order_, std::move(matrix_));
    for (auto* part : {&matrix_.lower, &matrix_.diagonal, &matrix_.upper})
      *part = sparse::to_space(ex_, std::move(*part));
  }

  precond::Context<Space> context(const CsrView& a, triangular::Strategy strategy) const {
    return {ex_, strategy, [this](Index i) { return order_.rows[std::size_t(i)]; }, a};
  }
  /// The preconditioners that only spaces with host kernels have; null for all others.
  std::unique_ptr<precond::Preconditioner<Space, T>> preconditioner(const Plan& plan, const CsrView& a,
                                                                    triangular::Strategy strategy) const {
    if (plan.precond == "lu") return std::make_unique<LuPreconditioner<Space>>(context(a, strategy));
    if (!plan.rearranged()) return nullptr;
    return std::make_unique<precond::Rearranged<Space>>(context(a, strategy), plan.precond, plan.form);
  }
  const std::shared_ptr<const sparse::SplitPattern>& pattern() const { return pattern_; }
  const sparse::SplitMatrix<T>& matrix() const { return matrix_; }
  std::unique_ptr<const sparse::Operator<Space, T>> product() const {
    return std::make_unique<const sparse::SplitOperator<Space, T>>(ex_, matrix_);
  }
  /// A scaled and rounded, scales in the solver's order.
  sparse::Rounded<Space> rounded(const sparse::Rounding& rounding) const {
    return with_format(rounding.storage, [&](auto s) -> sparse::Rounded<Space> {
      using S = decltype(s);
      auto m = std::make_shared<const sparse::RoundedMatrixOf<Space, S>>(sparse::rounded_matrix<S>(
          ex_, pattern_, matrix_.view(), rounding, sparse::NarrowColumns::of(ex_, *pattern_)));
      return {m, std::make_unique<const sparse::SplitOperator<Space, float, S>>(ex_, m->matrix), m->bytes()};
    });
  }
  /// The caller's rows and columns again, from what is stored.
  CsrMatrix caller_matrix(std::span<const Index> missing_diagonal) const {
    CsrMatrix a;
    ex_.enqueue([&](const exec::Host& host) { a = sparse::to_csr(host, matrix_, order_, missing_diagonal); });
    ex_.synchronise();
    return a;
  }
  Index launches() const { return 0; }
  std::string format() const { return {}; }
  /// What the analysis found, for people.
  const std::string& shape() const { return shape_; }
  std::size_t bytes() const {
    return order_.bytes() + place_.size() * sizeof(Index) + (pattern_ ? pattern_->bytes() : 0) + matrix_.bytes();
  }

  void copy_in(const exec::Array<T>& to, std::span<const double> from) const {
    staged(
        [&](double* stage) {
          exec::Host(ex_.threads()).for_each(from.size(), [&](Index i) {
            stage[i] = from[std::size_t(order_.rows[std::size_t(i)])];
          });
        },
        to, true);
  }
  void copy_out(std::span<double> to, const exec::Array<T>& from) const {
    staged(
        [&](const double* stage) {
          exec::Host(ex_.threads()).for_each(to.size(), [&](Index i) {
            to[std::size_t(i)] = stage[place_[std::size_t(i)]];
          });
        },
        from, false);
  }

  /// Where the caller's rows stand in the solver's order.
  Buffer<Index> places(std::span<const Index> rows) const {
    Buffer<Index> at(rows.size());
    for (std::size_t k = 0; k < rows.size(); ++k) at[k] = place_[std::size_t(rows[k])];
    return at;
  }

  /// The same between arrays of this space.
  void permute_in(double* to, const double* from) const {
    ex_.for_each(order_.rows.size(), [to, from, rows = order_.rows.data()](Index i) { to[i] = from[rows[i]]; });
  }
  void permute_out(double* to, const double* from) const {
    ex_.for_each(place_.size(), [to, from, place = place_.data()](Index i) { to[i] = from[place[i]]; });
  }

 private:
  template <class F>
  void staged(F f, const exec::Array<T>& there, bool in) const {
    if constexpr (std::is_same_v<Space, exec::Host>) {
      f(there.data());
    } else {
      std::vector<double> stage(there.size());
      if (!in) ex_.copy_out(stage.data(), there, there.size());
      f(stage.data());
      if (in) ex_.copy_in(there, stage.data(), there.size());
    }
  }

  Space ex_;
  sparse::RowOrder order_;
  Buffer<Index> place_;  // of the caller's rows in the solver's order
  std::shared_ptr<const sparse::SplitPattern> pattern_;
  sparse::SplitMatrix<T> matrix_;
  std::string shape_;
};

/// A matrix in the caller's order, of which nothing is asked but a preconditioner with factors of its own.
template <class Space>
class MatrixAlone {
 public:
  MatrixAlone(Space space, const CsrView& a) : ex_(std::move(space)) { require_valid(a); }
  std::unique_ptr<precond::Preconditioner<Space, double>> preconditioner(const Plan& plan, const CsrView& a,
                                                                         triangular::Strategy strategy) const {
    const precond::Context<Space> context{ex_, strategy, [](Index i) { return i; }, a};
    if (plan.rearranged()) return std::make_unique<precond::Rearranged<Space>>(context, plan.precond, plan.form);
    return precond::make<Space, double>(plan.precond, context, nullptr);
  }
  void set_values(const CsrView&) {}
  void forget_values() {}
  precond::Values<Space, double> values(const CsrView& a) const { return {nothing_, a}; }
  std::size_t bytes() const { return 0; }

 private:
  Space ex_;
  sparse::SplitMatrix<double> nothing_;
};

}  // namespace krilu::solver
