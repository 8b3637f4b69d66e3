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
// length that is tried; beside them 8 words a row are read or written.
#pragma once

#include <cmath>
#include <limits>
#include <utility>

#include "newton/core.hpp"
#include "newton/evaluation.hpp"
#include "newton/forcing.hpp"
#include "newton/line_search.hpp"
#include "solver/engine.hpp"
#include "solver/requests.hpp"

namespace krilu::newton {

template <class Space>
class CoreOn final : public Core {
 public:
  CoreOn(const Equations& equations, const NewtonOptions& options)
      : options_(options),
        pattern_(checked_pattern(equations)),
        solver_(options.linear),
        engine_(dynamic_cast<solver::EngineIn<Space>&>(solver::Inside::engine(solver_))),
        ex_(engine_.space()),
        f_(ex_, equations, pattern_),
        n_(std::size_t(pattern_.rows)),
        x_(ex_.template allocate<double>(n_)),
        F_(ex_.template allocate<double>(n_)),
        d_(ex_.template allocate<double>(n_)),
        x_next_(ex_.template allocate<double>(n_)),
        F_next_(ex_.template allocate<double>(n_)),
        sums_(ex_.template allocate<double>(1)) {
    const solver::Timer timer;
    jacobian_ = options.jacobian != "auto" ? options.jacobian : equations.has_jacobian() ? "own" : "finite-differences";
    CsrView a = pattern_;
    a.values = nullptr;
    solver_.analyse(a);
    matrix_is_own_ = equations.has_jacobian() && jacobian_ != "finite-differences";
    if (!matrix_is_own_) f_.analyse_differences(pattern_);
    if (jacobian_ == "matrix-free" && matrix_is_own_) f_.prepare_products();
    pattern_.values = {};
    analyse_seconds_ = timer.seconds();
  }

  NewtonResult solve(std::span<double> x, double rtol, double atol, const Progress& progress) override;
  std::size_t bytes() const override {
    return pattern_.bytes() + solver_.bytes() + f_.bytes() + x_.bytes() + F_.bytes() + d_.bytes() + x_next_.bytes() +
           F_next_.bytes();
  }

  // Parts of solve(): public because nvcc takes kernels in public members only.

  double norm(const exec::Array<double>& vector) {
    const auto v = vector.view();
    const auto sum = sums_.scalar();
    ex_.reduce(
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

 private:
  static CsrMatrix checked_pattern(const Equations& equations) {
    CsrMatrix a = equations.pattern();
    if (a.rows != equations.rows())
      throw Error("the equations have " + std::to_string(equations.rows()) + " rows, and their pattern has " +
                  std::to_string(a.rows) + " rows");
    CsrView shape = a;
    shape.values = nullptr;
    require_valid(shape);
    return a;
  }
  /// The Jacobian at x, and the preconditioner that it gives.
  void assemble_and_factor() {
    const solver::Timer timer;
    if (matrix_is_own_)
      f_.own_jacobian(x_.data());
    else
      f_.jacobian_by_differences(x_.data(), F_.data());
    ex_.synchronise();
    seconds_.jacobian += timer.seconds();
    const solver::Timer factoring;
    engine_.factor_there(pattern_, f_.values());
    ex_.synchronise();
    seconds_.factor += factoring.seconds();
  }
  void solve_linear(double eta, NewtonStep& step);

  NewtonOptions options_;
  CsrMatrix pattern_;
  Solver solver_;
  solver::EngineIn<Space>& engine_;
  Space ex_;
  Evaluation<Space> f_;
  std::size_t n_;
  exec::Array<double> x_, F_, d_, x_next_, F_next_, sums_;
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
  const krylov::Outcome out = engine_.solve_there(d_.data(), d_.data(), product, monitor);
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
  const double target = std::max(rtol * now, atol);
  Forcing forcing(forcing_by_name(options_.forcing), options_.first_forcing, options_.most_forcing);
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
      std::swap(x_, x_next_);
      std::swap(F_, F_next_);
      step.length = s;
      now = next;
      ++out.iterations;
    }
    out.inner_iterations += step.inner_iterations;
    step.iteration = out.iterations;
    step.residual = now;
    out.history.push_back(step);
    const bool go_on = !found || !progress || progress(step);
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
  ex_.copy_out(x.data(), x_, n_);

  out.residual = now;
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
