// SPDX-License-Identifier: Apache-2.0
// A stage: one way to improve x, in one precision. The driver (driver.hpp) goes from the true residual, again and
// again, and takes the next stage where one gets no further. `Direct` runs a method in the driver's own precision.
// `Refinement` solves A d = r in a lower one and adds d: iterative refinement with an inner Krylov method [Carson and
// Higham 2017; Zheng, Kou and Zhang 2025, Algorithm 1 and Figure 1], A and M scaled and rounded. Cost of a refinement
// beside its inner iterations: 1 A in double, 6 words of 8 bytes a row, 3 more where rows have scales and 1 where
// columns have.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "krylov/method.hpp"

namespace krilu::krylov {

/// What limits a stage, and how far one go is to come.
struct StagePolicy {
  std::string name;                                  // of its precision, for notes
  int most_inner = std::numeric_limits<int>::max();  // iterations of one go
  int first_look = std::numeric_limits<int>::max();  // before a look at what has come of it; no go
  int most_goes = std::numeric_limits<int>::max();   // before the next stage has its turn
  double floor = 0;        // no go is asked to reduce the residual by more than this; 0: for the target at once
  double least_floor = 0;  // the floor follows what goes really reach, down to this; 0: it stays
  // What rounding takes from a go is a part of the residual that it begins with: the sooner the true one shows it, the
  // fewer iterations make it good. So `opening` is enough of a first go that takes `slow` iterations for it, and then
  // more, but not all, of the next (krylov::adapt). 0: no go is so short.
  double opening = 0;
  int slow = 0;
  double truth = 0;      // the next stage has its turn where goes keep less than this share of the digits they claim;
                         // 0: however little they keep
  bool keeps = false;    // goes go on with what those before have learnt: more of them do what a longer one would
  bool fills = false;    // a go fills a basis that has too little room for another: what it claims then can be trusted
  bool refines = false;  // in less than the driver's precision
};

template <class Space, class T>
class Stage {
 public:
  explicit Stage(StagePolicy policy) : policy_(std::move(policy)) {}
  virtual ~Stage() = default;
  /// From x and its residual r = b - A x, of norm `two`, until control says stop; r is lost. before: where x stays as
  /// it was on entry; null: nowhere. control.target is a norm of the residual; what the stage records is in the
  /// driver's units. then(): what follows where the vectors live; it is called once, and the host has waited for it
  /// when go() returns.
  virtual void go(const T* b, T* x, T* r, T* before, double two, Control<T>& control,
                  const std::function<void()>& then) = 0;
  /// The next go uses nothing of what those before have learnt. False where no go does.
  virtual bool forget() = 0;
  virtual std::size_t bytes() const = 0;
  StagePolicy& policy() { return policy_; }

 private:
  StagePolicy policy_;
};

/// What a solve leaves to the next one: the iterations as the space has recorded them, and what they are told. They are
/// to be renewed unless method, A, M, vectors and norm are the same, and stand where they stood.
template <class Space, class T>
struct Kept {
  explicit Kept(const Space& space) : control(space.template allocate<Control<T>>(1)) {}
  exec::Array<Control<T>> control;
  typename Space::Recording iterations;
};

template <class Space, class T>
class Direct final : public Stage<Space, T> {
 public:
  /// kept: of solves before this one; null: there were none.
  Direct(Space space, StagePolicy policy, Method<Space, T>& method, const sparse::Operator<Space, T>& A,
         precond::Preconditioner<Space, T>& M, std::shared_ptr<Kept<Space, T>> kept = nullptr)
      : Stage<Space, T>(std::move(policy)),
        ex_(std::move(space)),
        method_(method),
        A_(A),
        M_(M),
        kept_(kept ? std::move(kept) : std::make_shared<Kept<Space, T>>(ex_)) {
    method_.forget();
  }

  /// The same b, x and r in every go.
  void go(const T* b, T* x, T* r, T* before, double, Control<T>& control, const std::function<void()>& then) override {
    if (before)
      ex_.for_each(
          std::size_t(A_.rows()), KRILU_FN(Index i) { before[i] = x[i]; });
    const auto told = kept_->control.scalar();
    ex_.once(KRILU_FN() { told() = control; });
    ex_.replay(kept_->iterations, [&] { method_.resume({A_, M_, b, x, r, control.magnitudes}, told); });
    then();
    ex_.copy_out(&control, kept_->control, 1);
  }
  bool forget() override { return method_.forget(); }
  std::size_t bytes() const override { return kept_->control.bytes(); }

 private:
  Space ex_;
  Method<Space, T>& method_;
  const sparse::Operator<Space, T>& A_;
  precond::Preconditioner<Space, T>& M_;
  std::shared_ptr<Kept<Space, T>> kept_;
};

/// L: the inner arithmetic. R and C: the scales of rows and columns, in the space's memory; null: all 1. kept: of
/// solves before this one; null: there were none.
template <class Space, class T, class L>
class Refinement final : public Stage<Space, T> {
 public:
  Refinement(Space space, StagePolicy policy, Index rows, Method<Space, L>& method, const sparse::Operator<Space, L>& A,
             precond::Preconditioner<Space, L>& M, const double* R, const double* C,
             std::shared_ptr<Kept<Space, L>> kept = nullptr)
      : Stage<Space, T>(std::move(policy)),
        ex_(std::move(space)),
        n_(std::size_t(rows)),
        method_(method),
        A_(A),
        M_(M),
        R_(R),
        C_(C),
        norm_(ex_.template allocate<double>(1)),
        kept_(kept ? std::move(kept) : std::make_shared<Kept<Space, L>>(ex_)) {
    for (auto* vector : {&b_, &d_, &r_}) *vector = ex_.template allocate<L>(n_);
    method_.forget();
  }

  void go(const T*, T* x_values, T* r_values, T* before, double two, Control<T>& control,
          const std::function<void()>& then) override {
    const exec::View<T> x{x_values}, r{r_values};
    const exec::View<L> b_low = b_.view(), d_low = d_.view(), r_low = r_.view();
    const double *R = R_, *C = C_;
    const auto norm = norm_.scalar();
    // |R r|, over all ranks, some of which may have no scales; |r| where there are none
    const bool scaled = R || ex_.in_team();
    const double known = two > 0 ? two : 1.0;
    if (scaled)
      ex_.reduce(
          n_,
          KRILU_FN(Index i) {
            const double Rr = (R ? R[i] : 1.0) * double(r[i]);
            return Rr * Rr;
          },
          KRILU_FN(double sum) { norm() = sum > 0 ? std::sqrt(sum) : 1.0; });
    // R r / |R r| in low precision, the right-hand side of the inner solve and its first residual;  d = 0
    ex_.for_each(
        n_, KRILU_FN(Index i) {
          b_low[i] = r_low[i] = L((R ? R[i] : 1.0) * double(r[i]) / (scaled ? norm() : known));
          d_low[i] = 0;
        });
    Control<L> inner;
    inner.target = L(double(control.target) / two);
    inner.further = L(double(control.further) / two);
    inner.early = control.early;
    inner.opening = L(double(control.opening) / two);
    inner.slow = control.slow;
    inner.filling = L(double(control.filling) / two);
    inner.begun = control.begun;
    inner.least_room = last_ / 2;
    inner.scale = L(two * double(control.scale));
    inner.iteration = control.iteration;
    inner.max_iterations = control.max_iterations;
    inner.history = control.history;
    inner.feed = control.feed;
    inner.wish = control.wish;
    inner.tell = control.tell;
    const auto told = kept_->control.scalar();
    ex_.once(KRILU_FN() { told() = inner; });
    ex_.replay(kept_->iterations, [&] { method_.resume({A_, M_, b_low.data, d_low.data, r_low.data, false}, told); });
    // x = x + |R r| C d
    ex_.for_each(
        n_, KRILU_FN(Index i) {
          const T was = x[i];
          if (before) before[i] = was;
          x[i] = was + T((scaled ? norm() : known) * (C ? C[i] : 1.0) * double(d_low[i]));
        });
    then();
    ex_.copy_out(&inner, kept_->control, 1);
    last_ = inner.iteration - control.iteration;
    control.iteration = inner.iteration;
    control.reason = inner.reason;
    control.norm = T(double(inner.norm) * two);
  }
  bool forget() override { return method_.forget(); }
  std::size_t bytes() const override {
    return b_.bytes() + d_.bytes() + r_.bytes() + norm_.bytes() + kept_->control.bytes();
  }

 private:
  Space ex_;
  std::size_t n_;
  Method<Space, L>& method_;
  const sparse::Operator<Space, L>& A_;
  precond::Preconditioner<Space, L>& M_;
  const double *R_, *C_;
  int last_ = 0;  // iterations of the last go: the next one will take about as many
  exec::Array<L> b_, d_, r_;
  exec::Array<double> norm_;
  std::shared_ptr<Kept<Space, L>> kept_;  // of the inner solve, the same in every go
};

}  // namespace krilu::krylov
