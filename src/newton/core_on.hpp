// SPDX-License-Identifier: Apache-2.0
// Inexact Newton, one text for all spaces:
//
//   until ||F(x)|| is small enough:
//     choose eta                                  how well the linear system deserves to be solved
//     solve J(x) d = -F(x) to ||F + J d|| <= eta ||F||
//     choose the length s by backtracking
//     x = x + s d
//
// Sources: Dembo, Eisenstat, Steihaug, Inexact Newton methods (1982); Eisenstat, Walker (1994, 1996); Liu, Zhong, Chen
// (2011), section 4. A step costs one Jacobian, one factorisation, the linear solve, and an evaluation of F for each
// length that is tried; beside them 8 words a row are read or written. Over ranks each has its rows of all vectors, and
// norms are those of all, so that all ranks take the same steps.
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/together.hpp"
#include "newton/core.hpp"
#include "newton/evaluation.hpp"
#include "newton/forcing.hpp"
#include "newton/line_search.hpp"
#include "newton/part.hpp"
#include "solver/engine.hpp"
#include "solver/requests.hpp"

namespace krilu::newton {

template <class Space>
class CoreOn final : public Core {
 public:
  CoreOn(const Equations& equations, const NewtonOptions& options, std::shared_ptr<Communicator> ranks)
      : options_(options),
        part_(equations, std::move(ranks), options.linear),
        solver_(analysed(part_, options.linear)),
        engine_(dynamic_cast<solver::EngineIn<Space>&>(solver::Inside::engine(solver_))),
        ex_(engine_.space()),
        member_(engine_.member()),
        f_(ex_, member_, equations, part_),
        n_(std::size_t(part_.rows())),
        x_(ex_.template allocate<double>(n_)),
        F_(ex_.template allocate<double>(n_)),
        d_(ex_.template allocate<double>(n_)),
        x_next_(ex_.template allocate<double>(n_)),
        F_next_(ex_.template allocate<double>(n_)),
        sums_(ex_.template allocate<double>(1)) {
    jacobian_ = options.jacobian != "auto" ? options.jacobian : equations.has_jacobian() ? "own" : "finite-differences";
    matrix_is_own_ = equations.has_jacobian() && jacobian_ != "finite-differences";
    if (!matrix_is_own_) f_.analyse_differences();
    if (jacobian_ == "matrix-free" && matrix_is_own_) f_.prepare_products();
    if (!part_.alone()) {
      const auto bring = [&](auto& to, const auto& from) {
        to = ex_.template allocate<Offset>(from.size());
        ex_.copy_in(to, from.data(), from.size());
      };
      bring(inside_, part_.inside());
      bring(outside_, part_.outside());
      part_.forget_entries();
      block_values_ = ex_.template allocate<double>(inside_.size());
      outside_values_ = ex_.template allocate<double>(outside_.size());
    }
    analyse_seconds_ = timer_.seconds();
  }

  NewtonResult solve(std::span<double> x, double rtol, double atol, const Progress& progress) override;
  std::size_t bytes() const override {
    return part_.bytes() + sums_.bytes() + (outside_here_.size() + values_here_.size()) * sizeof(double) +
           solver_.bytes() + f_.bytes() + x_.bytes() + F_.bytes() + d_.bytes() + x_next_.bytes() + F_next_.bytes() +
           x_best_.bytes() + inside_.bytes() + outside_.bytes() + block_values_.bytes() + outside_values_.bytes();
  }

  // Parts of solve(): public because nvcc takes kernels in public members only.

  double norm(const exec::Array<double>& vector) {
    const auto v = vector.view();
    const auto sum = sums_.scalar();
    member_.reduce(
        n_, KRILU_FN(Index i) { return v[i] * v[i]; }, KRILU_FN(double s) { sum() = s; });
    double s = 0;
    ex_.copy_out(&s, sums_, 1);
    return std::sqrt(s);
  }
  /// F_next = F(x + s d), and its norm.
  double look(double s) {
    const solver::Timer timer;
    const auto x = x_.view(), d = d_.view(), next = x_next_.view();
    ex_.for_each(
        n_, KRILU_FN(Index i) { next[i] = x[i] + s * d[i]; });
    f_.residual(x_next_.data(), F_next_.data());
    ++evaluations_;
    const double out = norm(F_next_);
    seconds_.residual += timer.seconds();
    return out;
  }
  /// d = -F
  void turn() {
    const auto F = F_.view(), d = d_.view();
    ex_.for_each(
        n_, KRILU_FN(Index i) { d[i] = -F[i]; });
  }
  /// to[k] = values[from[k]]
  void pick(const exec::Array<Offset>& from, const exec::Array<double>& to) {
    const auto entry = from.view();
    const auto out = to.view(), values = f_.values().view();
    ex_.for_each(
        from.size(), KRILU_FN(Index k) { out[k] = values[entry[k]]; });
  }

 private:
  static Solver analysed(const Part& part, const Options& linear) {
    Solver solver(linear, part.team());
    CsrView a = part.block();
    a.values = nullptr;
    solver.analyse(a);
    return solver;
  }
  /// f() on all ranks: what one cannot do, none does.
  template <class F>
  void agreed(F f) const {
    part_.ranks() ? together(*part_.ranks(), f) : f();
  }
  /// Whether all ranks go on.
  bool all_go_on(bool mine) const {
    double ends = !mine;
    if (part_.ranks()) part_.ranks()->sum({&ends, 1});
    return ends == 0;
  }
  /// The Jacobian at x, and the preconditioner that it gives.
  void assemble_and_factor() {
    const solver::Timer timer;
    if (matrix_is_own_)
      f_.own_jacobian(x_.data());
    else
      f_.jacobian_by_differences(x_.data(), F_.data());
    if (!part_.alone()) {
      pick(inside_, block_values_);
      pick(outside_, outside_values_);
      outside_here_.resize(outside_values_.size());
      ex_.copy_out(outside_here_.data(), outside_values_, outside_here_.size());
    }
    if (part_.overlaps()) {
      values_here_.resize(f_.values().size());
      ex_.copy_out(values_here_.data(), f_.values(), values_here_.size());
    }
    ex_.synchronise();
    seconds_.jacobian += timer.seconds();
    const solver::Timer factoring;
    if (part_.overlaps()) part_.take_overlap(values_here_.data());
    if (!part_.alone()) agreed([&] { part_.halo().take_outside(outside_here_); });
    agreed([&] { engine_.factor_there(part_.block(), part_.alone() ? f_.values() : block_values_); });
    ex_.synchronise();
    seconds_.factor += factoring.seconds();
  }
  void solve_linear(double eta, NewtonStep& step);

  solver::Timer timer_;  // of the analysis
  NewtonOptions options_;
  Part part_;
  Solver solver_;
  solver::EngineIn<Space>& engine_;
  Space ex_, member_;
  Evaluation<Space> f_;
  std::size_t n_;
  exec::Array<double> x_, F_, d_, x_next_, F_next_, sums_;
  exec::Array<double> x_best_;            // where steps are taken unseen
  exec::Array<Offset> inside_, outside_;  // over ranks: entries of the block and outside of it, among all
  exec::Array<double> block_values_, outside_values_;
  std::vector<double> outside_here_, values_here_;
  std::string jacobian_;
  bool matrix_is_own_ = false;
  NewtonSeconds seconds_;
  double analyse_seconds_ = 0;  // until a solve has reported them
  int evaluations_ = 0, linear_failures_ = 0;
};

/// d, from J d = -F.
template <class Space>
void CoreOn<Space>::solve_linear(double eta, NewtonStep& step) {
  const solver::Timer timer;
  turn();
  solver_.set_tolerances(eta, 0);
  solver::Product product;
  if (jacobian_ == "matrix-free") {
    f_.linearise(x_.data(), F_.data());
    product = [this](const double* v, double* y) { f_.product(v, y); };
  }
  Monitor monitor;
  krylov::Outcome out;
  agreed([&] { out = engine_.solve_there(d_.data(), d_.data(), product, monitor); });
  step.forcing = eta;
  step.inner_iterations = out.iterations;
  step.linear_residual = out.rhs > 0 ? out.residual / out.rhs : 0;
  linear_failures_ += out.status != Status::converged;
  seconds_.linear += timer.seconds();
}

template <class Space>
NewtonResult CoreOn<Space>::solve(std::span<double> x, double rtol, double atol, const Progress& progress) {
  if constexpr (requires { ex_.make_current(); }) ex_.make_current();
  const solver::Timer timer;
  seconds_ = {.analyse = std::exchange(analyse_seconds_, 0.0)};
  linear_failures_ = 0;
  evaluations_ = 0;
  ex_.copy_in(x_, x.data(), n_);
  ex_.clear(d_);
  double now = look(0);
  if (!std::isfinite(now))
    throw Error("F(x) is NaN, infinite or too large for a double at the start: begin from another x, or scale F");
  std::swap(x_, x_next_);
  std::swap(F_, F_next_);

  NewtonResult out;
  out.initial_residual = now;
  out.history.push_back({.residual = now});
  const double target = of_first(part_.ranks(), std::max(rtol * now, atol));
  Forcing forcing(forcing_by_name(options_.forcing), options_.first_forcing, options_.most_forcing);
  double best = now;  // ||F|| at x_, or, where that is greater, at x_best_
  bool at_best = true;
  if (options_.line_search == "none" && x_best_.size() < n_) x_best_ = ex_.template allocate<double>(n_);
  int age = options_.lag;  // steps that the preconditioner has served; the first has none
  bool done = false;
  const auto finish = [&](Status s) {
    out.status = s;
    done = true;
  };
  if (now <= target)
    finish(Status::converged);
  else if (options_.max_iterations == 0)
    finish(Status::max_iterations);
  while (!done) {
    NewtonStep step;
    if (jacobian_ != "matrix-free" || age >= options_.lag) {
      try {
        assemble_and_factor();
      } catch (const Error& e) {
        if (out.iterations == 0) throw;  // the caller's system; later it is where the steps led
        finish(Status::breakdown);
        out.notes.push_back("the Jacobian after step " + std::to_string(out.iterations) + ": " + e.what());
        break;
      }
      age = 0;
    }
    ++age;
    solve_linear(forcing.next(now, target), step);

    Backtracking search(now, step.linear_residual);
    double next = look(search.length());
    bool found = std::isfinite(next);
    if (options_.line_search == "backtracking")
      while (!(found = std::isfinite(next) && search.accepts(next)) && search.shorten(next))
        next = look(search.length());
    const double s = search.length();
    if (found) {
      forcing.took(now, std::abs(1 - s) * now + s * step.linear_residual * now);
      if (at_best && !(next < now)) {  // with no line search alone
        std::swap(x_, x_best_);
        at_best = false;
      }
      std::swap(x_, x_next_);
      std::swap(F_, F_next_);
      step.length = s;
      now = next;
      if (now < best) {
        best = now;
        at_best = true;
      }
      ++out.iterations;
    }
    out.inner_iterations += step.inner_iterations;
    step.iteration = out.iterations;
    step.residual = now;
    out.history.push_back(step);
    const bool go_on = all_go_on(!found || !progress || progress(step));
    if (!found && age > 1) {
      age = options_.lag;  // an old preconditioner may be to blame
    } else if (!found) {
      finish(options_.line_search == "backtracking" ? Status::stagnated : Status::diverged);
      out.notes.push_back(options_.line_search == "backtracking"
                              ? "no length of the last step lowers ||F|| enough: a tighter forcing term, a stronger "
                                "preconditioner or another start may help"
                              : "F became NaN or infinite: a line search would shorten the step");
    } else if (now <= target) {
      finish(Status::converged);
    } else if (!go_on) {
      finish(Status::interrupted);
    } else if (out.iterations >= options_.max_iterations) {
      finish(Status::max_iterations);
    } else if (options_.step_tolerance > 0 && s * norm(d_) <= options_.step_tolerance * norm(x_)) {
      finish(Status::stagnated);
      out.notes.push_back("the steps became shorter than the step tolerance");
    }
  }
  ex_.copy_out(x.data(), at_best ? x_ : x_best_, n_);
  agreed([] {});  // nobody leaves while another may wait for what it sent

  out.residual = best;
  out.evaluations = evaluations_;
  if (linear_failures_ > 0)
    out.notes.push_back(std::to_string(linear_failures_) +
                        " linear solves ended before they met their forcing term: more inner iterations, a longer "
                        "restart or a stronger preconditioner would help");
  out.solver = options_.linear.solver;
  out.precond = options_.linear.precond;
  out.forcing = options_.forcing;
  out.jacobian = jacobian_;
  out.device = engine_.device();
  out.threads = exec::Host(options_.linear.threads).threads();
  out.seconds = seconds_;
  out.seconds.total = timer.seconds();
  out.bytes = bytes();
  return out;
}

}  // namespace krilu::newton
