// SPDX-License-Identifier: Apache-2.0
// Runs a Krylov method to an answer that can be trusted. The recurrence says when to look; the true residual b - A x
// decides, and where it misses the target the method restarts from it. Breakdown restarts once. The best x that was
// looked at is what is returned, never a worse one and never NaN. The host waits a fixed number of times a restart,
// whatever the number of iterations.
//
// In OpenFOAM's norm the recurrence decides, as OpenFOAM has it, and the true residual is only reported.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "krilu/solver.hpp"
#include "krylov/method.hpp"

namespace krilu::krylov {

struct Criterion {
  double rtol = 1e-8, atol = 0;
  Norm norm = Norm::true2;
  int max_iterations = 10000;
};

struct Outcome {
  Status status = Status::max_iterations;
  int iterations = 0;
  double residual = 0;  // ||b - A x||_2, true
  double rhs = 0;       // ||b||_2
  double initial = 0;   // relative residual of the initial guess, in the criterion's norm
  std::vector<double> history;
  std::vector<std::string> notes;
};

template <class Space, class T>
class Driver {
 public:
  Driver(Space space, Index rows)
      : ex_(std::move(space)),
        n_(std::size_t(rows)),
        r_(ex_.template allocate<T>(n_)),
        best_(ex_.template allocate<T>(n_)),
        sums_(ex_.template allocate<T>(2)),
        control_(ex_.template allocate<Control<T>>(1)),
        feed_(ex_.template allocate_shared<Monitor::Feed>(1)) {}

  /// x: the initial guess on entry; the best iterate that was looked at on return.
  Outcome run(Method<Space, T>& method, const sparse::Operator<Space, T>& A, precond::Preconditioner<Space, T>& M,
              const exec::Array<T>& b, const exec::Array<T>& x, const Criterion& criterion, Monitor& monitor);

  std::size_t bytes() const {
    return r_.bytes() + best_.bytes() + sums_.bytes() + control_.bytes() + feed_.bytes() + history_.bytes();
  }

  // Parts of run(): public because nvcc takes kernels in public members only.

  /// r = b - A x;  |r| in the 2-norm, and in the criterion's.
  struct Norms {
    double two, own;
  };
  Norms look(const sparse::Operator<Space, T>& A, const exec::Array<T>& b, const exec::Array<T>& x, bool magnitudes) {
    A.residual(b.data(), x.data(), r_.data());
    return norms(r_, magnitudes);
  }
  Norms norms(const exec::Array<T>& vector, bool magnitudes) {
    const auto v = vector.view();
    const auto two = sums_.scalar(0), own = sums_.scalar(1);
    ex_.reduce(
        n_,
        KRILU_FN(Index i) {
          return exec::Sums<T, 2>{{v[i] * v[i], Control<T>::measure(magnitudes, v[i])}};
        },
        KRILU_FN(exec::Sums<T, 2> s) {
          two() = s[0];
          own() = s[1];
        });
    T s[2];
    ex_.copy_out(s, sums_, 2);
    return {std::sqrt(double(s[0])), magnitudes ? double(s[1]) : std::sqrt(double(s[1]))};
  }
  double foam_norm_factor(const sparse::Operator<Space, T>& A, const exec::Array<T>& b, const exec::Array<T>& x);

  void copy(const exec::Array<T>& to, const exec::Array<T>& from) {
    const auto out = to.view(), in = from.view();
    ex_.for_each(
        n_, KRILU_FN(Index i) { out[i] = in[i]; });
  }

 private:
  Space ex_;
  std::size_t n_;
  /// The monitor sees the feed while this lives.
  class Attached {
   public:
    Attached(Monitor& monitor, Monitor::Feed* feed) : monitor_(monitor) { monitor_.attach(feed); }
    ~Attached() { monitor_.attach(nullptr); }

   private:
    Monitor& monitor_;
  };

  exec::Array<T> r_, best_, sums_;
  exec::Array<Control<T>> control_;
  exec::Array<Monitor::Feed> feed_;
  exec::Array<double> history_;
};

/// sum|A x - A m| + |b - A m|, m the vector of x's mean: what OpenFOAM divides its residual by.
template <class Space, class T>
double Driver<Space, T>::foam_norm_factor(const sparse::Operator<Space, T>& A, const exec::Array<T>& b,
                                          const exec::Array<T>& x) {
  const auto xv = x.view(), bv = b.view(), mean = best_.view(), Am = r_.view();
  const auto sum = sums_.scalar(0);
  const auto n = n_;
  ex_.reduce(
      n, KRILU_FN(Index i) { return xv[i]; }, KRILU_FN(T total) { sum() = total / T(n); });
  ex_.for_each(
      n, KRILU_FN(Index i) { mean[i] = sum(); });
  A.apply(mean.data, Am.data);
  A.residual(b.data(), x.data(), mean.data);  // b - A x, so that A x = b - that
  ex_.reduce(
      n,
      KRILU_FN(Index i) {
        const T Ax = bv[i] - mean[i];
        return Control<T>::measure(true, Ax - Am[i]) + Control<T>::measure(true, bv[i] - Am[i]);
      },
      KRILU_FN(T total) { sum() = total; });
  T total;
  ex_.copy_out(&total, sums_, 1);
  return double(total) + 1e-20;  // OpenFOAM's own guard
}

template <class Space, class T>
Outcome Driver<Space, T>::run(Method<Space, T>& method, const sparse::Operator<Space, T>& A,
                              precond::Preconditioner<Space, T>& M, const exec::Array<T>& b, const exec::Array<T>& x,
                              const Criterion& criterion, Monitor& monitor) {
  const bool foam = criterion.norm == Norm::openfoam;
  if (history_.size() < std::size_t(criterion.max_iterations) + 1)
    history_ = ex_.template allocate_shared<double>(std::size_t(criterion.max_iterations) + 1);

  Outcome out;
  out.rhs = norms(b, false).two;
  const double factor = foam ? foam_norm_factor(A, b, x) : out.rhs > 0 ? out.rhs : 1.0;
  Norms now = look(A, b, x, foam);
  const Norms first = now;
  out.initial = now.own / factor;
  const double target = foam ? std::max(criterion.atol * factor, criterion.rtol * now.own)
                             : std::max(criterion.rtol * out.rhs, criterion.atol);

  double* const history = history_.data();
  history[0] = out.initial;
  Control<T> control;
  control.target = T(target);
  control.scale = T(1 / factor);
  control.magnitudes = foam;
  control.max_iterations = criterion.max_iterations;
  control.history = history;
  control.feed = feed_.data();
  *control.feed = {0, 0, out.initial};
  const Attached attached(monitor, control.feed);

  // Best x looked at so far, and its residual.
  copy(best_, x);
  double best = now.two;
  int breakdowns = 0, misses = 0;
  bool done = false;
  const auto finish = [&](Status s) {
    out.status = s;
    done = true;
  };
  if (now.own <= target) finish(Status::converged);
  if (!done && criterion.max_iterations == 0) finish(Status::max_iterations);
  if (!done && monitor.interrupted()) finish(Status::interrupted);
  if (!std::isfinite(now.own) || !std::isfinite(out.rhs)) {
    finish(Status::diverged);
    out.notes.push_back(
        "the norm of the right-hand side or of the first residual is too large for a double: scale the system");
  }

  while (!done) {
    const double before = now.two;
    control.reason = Stop::none;
    ex_.copy_in(control_, &control, 1);
    method.iterate({A, M, b.data(), x.data(), r_.data(), foam}, control_.scalar());
    ex_.copy_out(&control, control_, 1);
    now = look(A, b, x, foam);
    const bool finite = std::isfinite(now.two);
    if (finite && (now.two <= best || (foam && control.reason == Stop::target))) {
      copy(best_, x);
      best = now.two;
    } else if (!finite || control.reason == Stop::breakdown || control.reason == Stop::not_finite) {
      copy(x, best_);
      now = look(A, b, x, foam);
    }
    if (!foam) history[control.iteration] = now.own / factor;

    if (foam ? control.reason == Stop::target : now.own <= target) {
      finish(Status::converged);
    } else if (control.reason == Stop::limit || control.iteration >= criterion.max_iterations) {
      finish(Status::max_iterations);
    } else if (control.reason == Stop::interrupted) {
      finish(Status::interrupted);
    } else if (control.reason == Stop::target) {
      // The recurrence was content and the true residual is not: begin anew from it, as long as that gains something.
      if (now.two > 0.5 * before && ++misses == 2) finish(Status::stagnated);
      if (!done && out.notes.size() < 20)
        out.notes.push_back("the recurrence's residual met the target after " + std::to_string(control.iteration) +
                            " iterations and the true one did not: restarted from it");
    } else if (++breakdowns == 2) {
      finish(control.reason == Stop::not_finite ? Status::diverged : Status::breakdown);
    } else {
      out.notes.push_back("breakdown after " + std::to_string(control.iteration) + " iterations: restarted once");
    }
  }

  const double reached = history[control.iteration];
  if (now.two > best || !std::isfinite(now.two)) {
    copy(x, best_);
    now = look(A, b, x, foam);
    history[control.iteration] = foam ? history[control.iteration] : now.own / factor;
  }
  // Far from where it began, and growing: more iterations will not help.
  if (out.status == Status::max_iterations && reached > 1e3 * out.initial && best >= first.two)
    out.status = Status::diverged;
  out.iterations = control.iteration;
  out.residual = now.two;
  out.history.assign(history, history + control.iteration + 1);
  for (double& h : out.history)
    if (!std::isfinite(h)) h = std::numeric_limits<double>::max();
  return out;
}

}  // namespace krilu::krylov
