// SPDX-License-Identifier: Apache-2.0
// EngineOn<Space>: the one text of an engine, compiled once for each space (engine_host.cpp, engine_emulated.cpp,
// engine_cuda.cu). System<Space> is the space's own.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "krylov/driver.hpp"
#include "solver/engine.hpp"
#include "solver/given_preconditioner.hpp"
#include "solver/given_product.hpp"
#include "solver/links.hpp"
#include "solver/stages.hpp"

namespace krilu::solver {

template <class Space, class System>
class EngineOn final : public EngineIn<Space> {
  using T = double;
  using EngineIn<Space>::ex_;

 public:
  EngineOn(Space space, std::string device, const Options& options, Team team)
      : EngineIn<Space>(std::move(space)),
        device_(std::move(device)),
        options_(options),
        team_(std::move(team)),
        member_(ex_),
        system_(ex_, options) {}

  std::string device() const override { return device_; }
  const Space& member() const override { return member_; }
  Facts look(const CsrView& a, bool values) override {
    enter();
    // What stood before goes before its successor is measured against the memory that is left.
    driver_.reset();
    method_.reset();
    stages_.reset();
    precond_.reset();
    links_.reset();
    b_ = {};
    x_ = {};
    return system_.look(a, values);
  }

  void analyse(const CsrView& a, const CsrView& graph, const Plan& plan) override {
    enter();
    stages_.reset();
    precond_.reset();
    system_.analyse(a, graph, plan);
    if (team_.ranks) join_team(plan.rows_in_all);
    if (team_.preconditioner && plan.precision.arithmetic != Format::fp64)
      throw Error("a preconditioner that the caller brings works in double: take --precision fp64");
    precond_ = team_.preconditioner ? given_preconditioner(a.rows) : own_preconditioner(a, plan);
    if (!precond_) replace_preconditioner(a, plan.precond);
    const Index n = a.rows;
    if (plan.precision.arithmetic == Format::fp64)
      method_ = make_method<Space, T>(member_, plan.method, n, plan.restart);
    else
      stages_ =
          std::make_unique<Stages<Space, System>>(ex_, member_, team_.ranks.get(), links_.get(), plan, options_, n);
    // A GPU that factors slices in double has no use for them.
    constexpr bool on_gpu = requires { system_.forget_values(); };
    values_wanted_here_ = !on_gpu || stages_ || precond::sweeps_of(plan.precond) == precond::Sweeps::of_its_own;
    driver_ = std::make_unique<krylov::Driver<Space, T>>(member_, n);
    b_ = ex_.template allocate<T>(std::size_t(n));
    x_ = ex_.template allocate<T>(std::size_t(n));
  }

  bool connect() override {
    enter();
    if (!member_.in_team()) return true;
    if (!member_.connect()) return false;
    if (!links_ || links_->connect(member_)) return true;
    member_.disconnect();
    return false;
  }

  void replace_preconditioner(const CsrView& a, const std::string& name) override {
    enter();
    precond_.reset();
    precond_ = precond::make<Space, T>(name, system_.context(a, triangular::strategy_by_name(options_.triangular)),
                                       system_.pattern());
  }

  void factor(const CsrView& a, bool seen) override {
    enter();
    system_.set_values(a, seen);
    form(a);
  }
  void factor_there(const CsrView& pattern, const exec::Array<T>& values) override {
    enter();
    CsrView a = pattern;
    a.values = nullptr;
    if constexpr (std::is_same_v<Space, exec::Host>) {
      a.values = values.data();
    } else if (values_wanted_here_) {
      values_here_.resize(values.size());
      ex_.copy_out(values_here_.data(), values, values.size());
      a.values = values_here_.data();
    }
    if constexpr (requires { system_.set_values_there(a, values); })
      system_.set_values_there(a, values);
    else
      system_.set_values(a, false);
    form(a);
  }

  void forget_values() override {
    if constexpr (requires { system_.forget_values(); }) system_.forget_values();
  }
  Index launches() const override { return system_.launches(); }
  Costs costs() override {
    enter();
    if (b_.size() == 0) return {};
    if (stages_ && stages_->product()) return costs_of(*stages_->product(), *stages_->preconditioner());
    const std::unique_ptr<const sparse::Operator<Space, T>> A = system_.product();  // a rank's own
    return costs_of(*A, *precond_);
  }

  krylov::Outcome solve(std::span<const double> b, std::span<double> x, bool from_zero, Monitor& monitor) override {
    enter();
    system_.copy_in(b_, b);
    if (from_zero)
      ex_.clear(x_);
    else
      system_.copy_in(x_, std::span<const double>(x));
    const krylov::Outcome out = run(*product(), from_zero, monitor, patience_);
    system_.copy_out(x, x_);
    return out;
  }
  krylov::Outcome solve_there(const double* b, double* x, const Product& product, Monitor& monitor) override {
    enter();
    system_.permute_in(b_.data(), b);
    ex_.clear(x_);
    krylov::Outcome out = product
                              ? run(GivenProduct<Space, System>(ex_, system_, Index(b_.size()), product), true, monitor)
                              : run(*this->product(), true, monitor);
    system_.permute_out(x, x_.data());
    return out;
  }
  void apply(std::span<const double> r, std::span<double> z) override {
    enter();
    system_.copy_in(b_, r);
    precond_->apply(b_.data(), x_.data());
    system_.copy_out(z, x_);
  }
  void set_tolerances(double rtol, double atol) override {
    options_.rtol = rtol;
    options_.atol = atol;
  }
  void set_patience(const krylov::Patience& patience) override { patience_ = patience; }
  void set_max_iterations(int most) override { options_.max_iterations = most; }
  CsrMatrix matrix(std::span<const Index> missing_diagonal) const override {
    return system_.caller_matrix(missing_diagonal);
  }

  std::size_t bytes() const override {
    std::size_t b = system_.bytes();
    if (precond_) b += precond_->bytes();
    if (method_) b += method_->bytes();
    if (stages_) b += stages_->bytes();
    if (driver_) b += driver_->bytes();
    if (links_) b += links_->bytes();
    return b + b_.bytes() + x_.bytes();
  }
  std::optional<triangular::Report> triangular() const override {
    if (stages_ && stages_->preconditioner()) return stages_->preconditioner()->triangular();
    return precond_ ? precond_->triangular() : std::nullopt;
  }
  std::string shape() const override { return system_.shape(); }
  std::string format() const override { return system_.format(); }
  std::string preconditioner() const override { return precond_ ? precond_->description() : std::string(); }

 private:
  void join_team(std::int64_t rows) {
    const bool coupled = team_.coupling && !team_.coupling->rows().empty();
    if (team_.ranks->size() == 1 && !coupled) return;  // alone
    member_ = ex_.join(team_.ranks, rows);
    if (team_.coupling) links_ = make_links(ex_, team_, system_);
  }
  /// With the matrix as it was factored.
  std::unique_ptr<const sparse::Operator<Space, T>> product() const {
    if (!links_) return system_.product();
    return std::make_unique<const Coupled<Space, T>>(system_.product(), *links_);
  }
  /// The preconditioner, of the values that the system has.
  void form(const CsrView& a) {
    if (links_) links_->take_values();
    precond_->factor({system_.matrix(), a}, options_.shift);
    if (stages_) stages_->factor(a, system_, *precond_);
  }
  using Made = std::unique_ptr<precond::Preconditioner<Space, T>>;
  /// One that the registry does not have; null where the plan's is in it.
  Made own_preconditioner(const CsrView& a, const Plan& plan) const {
    const auto strategy = triangular::strategy_by_name(options_.triangular);
    if constexpr (requires { system_.preconditioner(plan, a, strategy); })
      return system_.preconditioner(plan, a, strategy);
    else
      return nullptr;
  }
  Made given_preconditioner(Index rows) const {
    if constexpr (requires { ex_.enqueue([](const exec::Host&) {}); }) {
      return std::make_unique<GivenPreconditioner<Space, System>>(ex_, system_, rows, team_.preconditioner);
    } else {
      throw Error("a preconditioner that the caller brings runs on the host: take --device host");
    }
  }
  /// A x = b, in the solver's order, b_ and the guess x_ being there. What fails on this rank the others hear of.
  krylov::Outcome run(const sparse::Operator<Space, T>& A, bool from_zero, Monitor& monitor,
                      const krylov::Patience& patience = {}) {
    try {
      return iterate(A, from_zero, monitor, patience);
    } catch (...) {
      member_.give_up();
      throw;
    }
  }
  krylov::Outcome iterate(const sparse::Operator<Space, T>& A, bool from_zero, Monitor& monitor,
                          const krylov::Patience& patience) {
    const krylov::Criterion criterion{options_.rtol,           options_.atol, options_.norm,
                                      options_.max_iterations, from_zero,     patience};
    if (!stages_) {
      member_.rehearse(precond_->trials_left());
      return driver_->run(*method_, A, *precond_, b_, x_, criterion, monitor);
    }
    stages_->begin(A);
    const std::string raised = stages_->raised();
    krylov::Outcome out = driver_->run([&] { return stages_->next(); }, A, b_, x_, criterion, monitor);
    if (!raised.empty())
      out.notes.insert(out.notes.begin(), "begun in " + raised + ", to which an earlier solve was raised");
    out.values_lost = stages_->lost();
    return out;
  }

  /// In double, or, where matrix and preconditioner are rounded, in their precision.
  template <class V>
  Costs costs_of(const sparse::Operator<Space, V>& A, precond::Preconditioner<Space, V>& M) {
    const auto r = ex_.template allocate<V>(b_.size()), z = ex_.template allocate<V>(b_.size());
    ex_.clear(r);
    constexpr int enough = 50;  // applications for any chooser
    for (int k = 0; k < enough && M.triangular() && !M.triangular()->settled; ++k) {
      M.apply(r.data(), z.data());
      ex_.synchronise();
    }
    return {milliseconds([&] { A.apply(r.data(), z.data()); }), milliseconds([&] { M.apply(r.data(), z.data()); })};
  }
  /// Of what f does, once it is warm.
  template <class F>
  double milliseconds(F f) const {
    if constexpr (requires { ex_.milliseconds(f); }) {
      return ex_.milliseconds(f);
    } else {
      using Clock = std::chrono::steady_clock;
      std::vector<double> each;
      for (int k = 0; k < 8; ++k) {
        const Clock::time_point start = Clock::now();
        f();
        ex_.synchronise();
        if (k > 0) each.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
      }
      std::sort(each.begin(), each.end());
      return each[each.size() / 2];
    }
  }
  void enter() const {
    if constexpr (requires { ex_.make_current(); }) ex_.make_current();
  }

  std::string device_;
  Options options_;
  krylov::Patience patience_;
  Team team_;
  Space member_;  // of the team: what sums are formed in. Alone it is ex_
  System system_;
  std::unique_ptr<Links<Space>> links_;
  std::unique_ptr<precond::Preconditioner<Space, T>> precond_;
  std::unique_ptr<krylov::Method<Space, T>> method_;
  std::unique_ptr<Stages<Space, System>> stages_;  // in place of the method, in mixed precision
  std::unique_ptr<krylov::Driver<Space, T>> driver_;
  exec::Array<T> b_, x_;
  bool values_wanted_here_ = true;  // in host memory
  Buffer<double> values_here_;
};

}  // namespace krilu::solver
