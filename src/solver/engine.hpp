// SPDX-License-Identifier: Apache-2.0
// The solver on one execution space: order, storage, preconditioner, method and vectors. The public Solver
// (solver.cpp) chooses the names; this makes the things, keeps them, and speaks the caller's row order outside and its
// own inside.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exec/emulated.hpp"
#include "krilu/error.hpp"
#include "krilu/solver.hpp"
#include "krylov/bicgstab.hpp"
#include "krylov/cg.hpp"
#include "krylov/driver.hpp"
#include "krylov/gmres.hpp"
#include "precond/registry.hpp"
#include "schedule/row_order.hpp"
#include "sparse/csr.hpp"
#include "sparse/operator.hpp"

namespace krilu::solver {

/// What the names of Options became.
struct Plan {
  std::string method;    // cg, bicgstab, gmres, fgmres
  std::string precond;   // a name of the registry
  std::string ordering;  // a name of schedule::order_by_name
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual void analyse(const CsrView& a, const CsrView& adjacency, const Plan& plan) = 0;
  virtual void factor(const CsrView& a) = 0;
  /// Another preconditioner on the same analysis, for a ladder whose first rung failed.
  virtual void replace_preconditioner(const std::string& name) = 0;
  virtual krylov::Outcome solve(std::span<const double> b, std::span<double> x, Monitor& monitor) = 0;
  virtual std::size_t bytes() const = 0;
  virtual const triangular::SliceRunner* runner() const = 0;
  virtual int slice_height() const = 0;
  virtual long levels() const = 0;
};

template <class Space>
class EngineOn final : public Engine {
  using T = double;

 public:
  EngineOn(Space space, const Options& options) : ex_(std::move(space)), options_(options) {}

  void analyse(const CsrView& a, const CsrView& adjacency, const Plan& plan) override {
    const exec::Host host(ex_.threads());
    const schedule::Order order = schedule::order_by_name(plan.ordering, adjacency);
    order_ = precond::is_triangular(plan.precond) ? schedule::by_levels(host, a, adjacency, order)
                                                  : schedule::by_windows(a, order);
    pattern_ = std::make_shared<const sparse::SplitPattern>(ex_, host, a, order_);
    replace_preconditioner(plan.precond);
    const Index n = a.rows;
    if (plan.method == "cg")
      method_ = std::make_unique<krylov::Cg<Space, T>>(ex_, n);
    else if (plan.method == "bicgstab")
      method_ = std::make_unique<krylov::Bicgstab<Space, T>>(ex_, n);
    else
      method_ = std::make_unique<krylov::Gmres<Space, T>>(ex_, n, options_.restart, plan.method == "fgmres");
    driver_ = std::make_unique<krylov::Driver<Space, T>>(ex_, n);
    b_ = ex_.template allocate<T>(std::size_t(n));
    x_ = ex_.template allocate<T>(std::size_t(n));
  }

  void replace_preconditioner(const std::string& name) override {
    precond::Context<Space> context{ex_, triangular::strategy_by_name(options_.triangular),
                                    [this](Index i) { return order_.rows[std::size_t(i)]; }};
    precond_ = precond::make<Space, T>(name, context, pattern_);
  }

  void factor(const CsrView& a) override {
    const exec::Host host(ex_.threads());
    matrix_ = {};  // the old values go before the new ones come
    matrix_ = sparse::fill_values<T>(host, pattern_, a, order_);
    for (auto* part : {&matrix_.lower, &matrix_.diagonal, &matrix_.upper})
      *part = sparse::to_space(ex_, std::move(*part));
    precond_->factor(matrix_, options_.shift);
  }

  krylov::Outcome solve(std::span<const double> b, std::span<double> x, Monitor& monitor) override {
    copy_in(b_, b);
    copy_in(x_, std::span<const double>(x));
    const sparse::SplitOperator<Space, T> A(ex_, matrix_);
    const krylov::Criterion criterion{options_.rtol, options_.atol, options_.norm, options_.max_iterations};
    krylov::Outcome out = driver_->run(*method_, A, *precond_, b_, x_, criterion, monitor);
    copy_out(x, x_);
    return out;
  }

  std::size_t bytes() const override {
    std::size_t b = 0;
    for (const auto* v : {&order_.rows, &order_.place, &order_.group, &order_.rank}) b += v->capacity() * sizeof(Index);
    if (pattern_) b += pattern_->bytes() + precond_->bytes() + method_->bytes() + driver_->bytes();
    return b + matrix_.bytes() + b_.bytes() + x_.bytes();
  }
  const triangular::SliceRunner* runner() const override { return precond_ ? precond_->runner() : nullptr; }
  int slice_height() const override { return pattern_ ? pattern_->height() : 0; }
  long levels() const override { return long(order_.group.size()) - 1; }

 private:
  // The caller's order outside, the solver's inside.
  void copy_in(const exec::Array<T>& to, std::span<const double> from) const {
    staged(
        [&](double* stage) {
          for (std::size_t i = 0; i < from.size(); ++i) stage[i] = from[std::size_t(order_.rows[i])];
        },
        to, true);
  }
  void copy_out(std::span<double> to, const exec::Array<T>& from) const {
    staged(
        [&](const double* stage) {
          for (std::size_t i = 0; i < to.size(); ++i) to[std::size_t(order_.rows[i])] = stage[i];
        },
        from, false);
  }
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
  Options options_;
  sparse::RowOrder order_;
  std::shared_ptr<const sparse::SplitPattern> pattern_;
  sparse::SplitMatrix<T> matrix_;
  std::unique_ptr<precond::Preconditioner<Space, T>> precond_;
  std::unique_ptr<krylov::Method<Space, T>> method_;
  std::unique_ptr<krylov::Driver<Space, T>> driver_;
  exec::Array<T> b_, x_;
};

std::unique_ptr<Engine> make_host_engine(const Options& options);
std::unique_ptr<Engine> make_emulated_engine(const Options& options);

}  // namespace krilu::solver
