// SPDX-License-Identifier: Apache-2.0
// EngineOn<Space>: the one text of an engine, compiled once for each space (engine_host.cpp, engine_emulated.cpp,
// engine_cuda.cu). System<Space> is the space's own.
#pragma once

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "krylov/driver.hpp"
#include "krylov/make_method.hpp"
#include "solver/engine.hpp"
#include "solver/extended.hpp"
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
        system_(ex_, options),
        kept_(std::make_shared<krylov::Kept<Space, T>>(ex_)) {}

  std::string device() const override { return device_; }
  const Space& member() const override { return member_; }
  There* there() override { return std::is_same_v<Space, exec::Host> ? nullptr : this; }
  Facts look(const CsrView& a, bool values) override {
    forget();
    return system_.look(a, values);
  }

  bool on_lattice() override {
    if constexpr (requires { system_.on_lattice(); }) {
      enter();
      return system_.on_lattice();
    }
    return false;
  }
  void analyse(const CsrView& a, const CsrView& graph, const Plan& plan) override {
    enter();
    renew();
    stages_.reset();
    precond_.reset();
    system_.analyse(a, graph, plan);
    gave_up_ = false;
    if (team_.ranks) join_team(plan);
    if (team_.preconditioner && plan.precision.arithmetic != Format::fp64)
      throw Error("a preconditioner that the caller brings works in double: take --precision fp64");
    precond_ = team_.preconditioner ? given_preconditioner(a.rows) : own_preconditioner(a, plan);
    if (!precond_) replace_preconditioner(a, plan.precond);
    const Index n = a.rows;
    if (plan.precision.arithmetic == Format::fp64)
      method_ = krylov::make_method<Space, T>(member_, plan.method, n, plan.restart);
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

  Connection connect(const Plan& plan) override {
    enter();
    if (!member_.in_team()) return {};
    [[maybe_unused]] const bool connected = links_ ? links_->connect(member_) : member_.connect();
    if (beside_ && beside_->connect(member_) != connected)
      throw Error("the GPUs of the ranks reach one another for products or for " + plan.precond +
                  ", and not for both: take block-ilu as the preconditioner");
    if constexpr (requires { member_.nccl(); }) {
      if (!connected) return {Connection::By::host, member_.why_no_nccl()};
      const bool gmres = plan.method == "gmres" || plan.method == "fgmres";
      if (const auto nccl = member_.nccl())
        return {Connection::By::library, "NCCL " + nccl->version(),
                gmres ? 1 : krylov::iterations_at_once(member_, b_.size())};
    }
    return {};
  }

  void replace_preconditioner(const CsrView& a, const std::string& name) override {
    enter();
    renew();
    precond_.reset();
    precond_ = precond::make<Space, T>(name, system_.context(a, triangular::strategy_by_name(options_.triangular)),
                                       system_.pattern());
  }

  void factor(const CsrView& a, bool seen) override {
    enter();
    form(a, [&] { system_.set_values(a, seen); });
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
  void apply(std::span<const double> r, std::span<double> z) override {
    enter();
    heard([&] {
      system_.copy_in(b_, r);
      precond_->apply(b_.data(), x_.data());
      system_.copy_out(z, x_);
    });
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

  bool gave_up() const override { return gave_up_; }
  std::size_t bytes() const override {
    std::size_t b = system_.bytes();
    if (precond_) b += precond_->bytes();
    if (method_) b += method_->bytes();
    if (stages_) b += stages_->bytes();
    if (driver_) b += driver_->bytes();
    if (links_) b += links_->bytes();
    if (beside_) b += beside_->bytes();
    return b + b_.bytes() + x_.bytes();
  }
  std::optional<triangular::Report> triangular() const override {
    if (stages_ && stages_->preconditioner()) return stages_->preconditioner()->triangular();
    return precond_ ? precond_->triangular() : std::nullopt;
  }
  std::string shape() const override { return system_.shape(); }
  std::string format() const override { return system_.format(); }
  std::string preconditioner() const override { return precond_ ? precond_->description() : std::string(); }

  // --- arrays in this memory (there.hpp) ------------------------------------------------------------------------
  using EngineIn<Space>::factor_there;
  int gpu() const override {
    if constexpr (requires { ex_.number(); })
      return ex_.number();
    else
      return -1;
  }
  void admit(const void* array, const char* what, void* stream) override {
    enter();
    if constexpr (requires { system_.admit(array, what, stream); }) system_.admit(array, what, stream);
  }
  Facts look_there(const CsrView& pattern, const T* values) override {
    forget();
    if constexpr (requires { system_.look_there(pattern, values); }) {
      return system_.look_there(pattern, values);
    } else {
      CsrView a = pattern;
      a.values = values ? brought(values, std::size_t(a.nnz())) : nullptr;
      return system_.look(a, a.values);
    }
  }
  bool same_pattern_there(const CsrView& pattern, const Offset* offsets, const Index* columns) override {
    enter();
    const auto rows = std::size_t(pattern.rows) + 1, entries = std::size_t(pattern.nnz());
    if constexpr (requires { system_.pattern_there(); }) {
      const CsrView mine = system_.pattern_there();
      return same(mine.offsets, offsets, rows) && same(mine.columns, columns, entries);
    } else {
      std::vector<Offset> o(rows);
      std::vector<Index> c(entries);
      copy_here(o.data(), offsets, rows);
      copy_here(c.data(), columns, entries);
      return std::equal(o.begin(), o.end(), pattern.offsets) && std::equal(c.begin(), c.end(), pattern.columns);
    }
  }
  bool wants_values_here() const override { return !std::is_same_v<Space, exec::Host> && values_wanted_here_; }
  void factor_there(const CsrView& pattern, const T* values, bool seen) override {
    enter();
    CsrView a = pattern;
    form(a, [&] {
      if constexpr (std::is_same_v<Space, exec::Host>)
        a.values = values;
      else
        a.values = values_wanted_here_ ? brought(values, std::size_t(a.nnz())) : nullptr;
      if constexpr (requires { system_.set_values_there(a, values, seen); })
        system_.set_values_there(a, values, seen);
      else
        system_.set_values(a, seen);
    });
    values_here_ = Buffer<double>();
  }
  There::Sides examine_there(const T* b, const T* x) override {
    enter();
    const auto sums = ex_.template allocate<T>(5);
    const auto s = sums.view();
    // Entries of b that are no numbers or huge, not zero, and not tiny; of x that are no numbers, and not zero.
    ex_.reduce(
        b_.size(),
        KRILU_FN(Index i) {
          const T v = b[i];
          return exec::Sums<T, 3>{{T(!(v <= 1e149 && v >= -1e149)), T(v != 0), T(v >= 1e-150 || v <= -1e-150)}};
        },
        KRILU_FN(exec::Sums<T, 3> total) {
          for (int k = 0; k < 3; ++k) s[k] = total[k];
        });
    ex_.reduce(
        b_.size(),
        KRILU_FN(Index i) {
          const T v = x[i];
          return exec::Sums<T, 2>{{T(!(v - v == 0)), T(v != 0)}};
        },
        KRILU_FN(exec::Sums<T, 2> total) {
          for (int k = 0; k < 2; ++k) s[3 + k] = total[k];
        });
    T of[5];
    ex_.copy_out(of, sums, 5);
    return {of[0] > 0 || of[3] > 0 || (of[1] > 0 && of[2] == 0), of[1] == 0, of[4] == 0};
  }
  krylov::Outcome solve_there(const T* b, T* x, bool from_zero, Monitor& monitor) override {
    enter();
    system_.permute_in(b_.data(), b);
    from_zero ? ex_.clear(x_) : system_.permute_in(x_.data(), x);
    krylov::Outcome out = run(*product(), from_zero, monitor, patience_);
    system_.permute_out(x, x_.data());
    ex_.synchronise();  // nobody waits for this stream
    return out;
  }
  krylov::Outcome solve_there(const T* b, T* x, const Product& product, Monitor& monitor) override {
    enter();
    system_.permute_in(b_.data(), b);
    ex_.clear(x_);
    const auto solved = [&] {
      if (!product) return run(*this->product(), true, monitor);
      const Renewed apart(*this);  // from solves with the matrix
      return run(GivenProduct<Space, System>(ex_, system_, Index(b_.size()), product), true, monitor);
    };
    const krylov::Outcome out = solved();
    system_.permute_out(x, x_.data());
    return out;
  }
  void apply_there(const T* r, T* z) override {
    enter();
    system_.permute_in(b_.data(), r);
    precond_->apply(b_.data(), x_.data());
    system_.permute_out(z, x_.data());
    ex_.synchronise();
  }
  void bring(T* here, const T* there, std::size_t n) override {
    enter();
    copy_here(here, there, n);
  }
  void send(T* there, const T* here, std::size_t n) override {
    enter();
    const auto stage = ex_.template allocate<T>(n);
    ex_.copy_in(stage, here, n);
    copy(there, stage.data(), n);
    ex_.synchronise();
  }

  // Parts of these: public because nvcc takes kernels in public members only.

  template <class V>
  void copy(V* to, const V* from, std::size_t n) const {
    ex_.for_each(
        n, KRILU_FN(Index i) { to[i] = from[i]; });
  }
  template <class V>
  bool same(const V* a, const V* b, std::size_t n) const {
    const auto differing = ex_.template allocate<T>(1);
    const auto d = differing.scalar();
    ex_.reduce(
        n, KRILU_FN(Index i) { return T(a[i] != b[i]); }, KRILU_FN(T sum) { d() = sum; });
    T sum = 0;
    ex_.copy_out(&sum, differing, 1);
    return sum == 0;
  }

 private:
  /// What stood before goes before its successor is measured against the memory that is left.
  void forget() {
    enter();
    renew();
    driver_.reset();
    method_.reset();
    stages_.reset();
    precond_.reset();
    links_.reset();
    beside_.reset();
    b_ = {};
    x_ = {};
  }
  /// The spaces copy between the host and arrays of their own.
  template <class V>
  void copy_here(V* here, const V* there, std::size_t n) const {
    const auto stage = ex_.template allocate<V>(n);
    copy(stage.data(), there, n);
    ex_.copy_out(here, stage, n);
  }
  const T* brought(const T* values, std::size_t n) {
    values_here_.resize(n);
    copy_here(values_here_.data(), values, n);
    return values_here_.data();
  }
  void join_team(const Plan& plan) {
    const bool coupled = team_.coupling && !team_.coupling->rows().empty();
    if (team_.ranks->size() == 1 && !coupled) return;  // alone
    member_ = ex_.join(team_.ranks, plan.rows_in_all);
    if (team_.coupling) links_ = make_links(ex_, team_, system_);
    if (team_.beside && precond::kind_of(plan.precond) == "ras")
      beside_ = make_links(ex_, Team{team_.ranks, team_.beside->coupling()}, InOrder{});
  }
  /// With the matrix as it was factored.
  std::unique_ptr<const sparse::Operator<Space, T>> product() const {
    if (!links_) return system_.product();
    return std::make_unique<const Coupled<Space, T>>(system_.product(), *links_);
  }
  /// The preconditioner, of the values that the system takes.
  template <class F>
  void form(const CsrView& a, F take_values) {
    renew();
    std::exception_ptr failure;
    try {
      take_values();
      if (links_) links_->take_values();
      precond_->factor({system_.matrix(), a}, options_.shift);
    } catch (...) {
      failure = std::current_exception();
    }
    // Scales are exchanged with the ranks beside: where one could not factor, none rounds. The caller makes one
    // sentence of it for all.
    double failures = failure != nullptr;
    if (stages_ && beside_) team_.ranks->sum({&failures, 1});
    if (failure) std::rethrow_exception(failure);
    if (failures > 0) return;
    if (stages_) stages_->factor(a, system_, *precond_);
  }
  using Made = std::unique_ptr<precond::Preconditioner<Space, T>>;
  /// One that the registry does not have; null where the plan's is in it.
  Made own_preconditioner(const CsrView& a, const Plan& plan) const {
    const auto strategy = triangular::strategy_by_name(options_.triangular);
    if (beside_) {
      Buffer<Index> all(std::size_t(a.rows));
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = Index(i);
      return std::make_unique<Extended<Space, typename System::Alone>>(ex_, team_.beside, *beside_, system_.places(all),
                                                                       plan, strategy);
    }
    if constexpr (requires { system_.preconditioner(plan, a, strategy); })
      return system_.preconditioner(plan, a, strategy);
    else
      return nullptr;
  }
  Made given_preconditioner(Index rows) const {
    if constexpr (requires { ex_.enqueue([](const exec::Host&) {}); }) {
      return std::make_unique<GivenPreconditioner<Space, System>>(member_, system_, rows, team_.preconditioner);
    } else {
      throw Error("a preconditioner that the caller brings runs on the host: take --device host");
    }
  }
  /// f(): what fails in it on this rank the others hear of, who may wait for it.
  template <class F>
  auto heard(F f) -> decltype(f()) {
    struct Watch {
      EngineOn& engine;
      int before = std::uncaught_exceptions();
      ~Watch() {
        if (std::uncaught_exceptions() == before) return;
        engine.gave_up_ = engine.member_.in_team();
        engine.member_.give_up();
      }
    };
    if constexpr (std::is_void_v<decltype(f())>) {
      {
        const Watch watch{*this};
        f();
      }
      member_.release();
    } else {
      auto result = [&] {
        const Watch watch{*this};
        return f();
      }();
      member_.release();
      return result;
    }
  }
  /// Before the next solve does anything else than the last one.
  void renew() { kept_->iterations.renew(); }
  /// Before it is made, and when it goes.
  struct Renewed {
    explicit Renewed(EngineOn& e) : engine(e) { engine.renew(); }
    ~Renewed() { engine.renew(); }
    Renewed(const Renewed&) = delete;
    Renewed& operator=(const Renewed&) = delete;
    EngineOn& engine;
  };
  /// A x = b, in the solver's order, b_ and the guess x_ being there.
  krylov::Outcome run(const sparse::Operator<Space, T>& A, bool from_zero, Monitor& monitor,
                      const krylov::Patience& patience = {}) {
    return heard([&] { return iterate(A, from_zero, monitor, patience); });
  }
  krylov::Outcome iterate(const sparse::Operator<Space, T>& A, bool from_zero, Monitor& monitor,
                          const krylov::Patience& patience) {
    const krylov::Criterion criterion{options_.rtol,           options_.atol, options_.norm,
                                      options_.max_iterations, from_zero,     patience};
    if (!stages_) {
      member_.rehearse(precond_->trials_left());
      return driver_->run(*method_, A, *precond_, b_, x_, criterion, monitor, kept_);
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
    const Costs costs{milliseconds([&] { A.apply(r.data(), z.data()); }),
                      milliseconds([&] { M.apply(r.data(), z.data()); })};
    member_.release();
    return costs;
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
  bool gave_up_ = false;
  Space member_;  // of the team: what sums are formed in. Alone it is ex_
  System system_;
  std::unique_ptr<Links<Space>> links_;
  std::unique_ptr<Links<Space>> beside_;  // of ras, where it reaches into the rows of other ranks
  std::unique_ptr<precond::Preconditioner<Space, T>> precond_;
  std::unique_ptr<krylov::Method<Space, T>> method_;
  std::unique_ptr<Stages<Space, System>> stages_;  // in place of the method, in mixed precision
  std::unique_ptr<krylov::Driver<Space, T>> driver_;
  std::shared_ptr<krylov::Kept<Space, T>> kept_;  // by one solve for the next
  exec::Array<T> b_, x_;
  bool values_wanted_here_ = true;  // in host memory
  Buffer<double> values_here_;
};

}  // namespace krilu::solver
