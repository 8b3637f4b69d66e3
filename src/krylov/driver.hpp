// SPDX-License-Identifier: Apache-2.0
// Runs a Krylov method to an answer that can be trusted. The recurrence says when to look; the true residual b - A x
// decides, and where it misses the target the method goes on from it: with what it has learnt, as long as that gains
// something, then anew. Breakdown restarts once. The best x that was looked at is what is returned, never a worse one
// and never NaN. The host waits a fixed number of times a restart, whatever the number of iterations.
//
// Where there are several stages (stage.hpp), precisions from low to high, the residual after each go says whether the
// stage is of use: whether what it claims is true, and whether the goes that it has left will do. If not, the next one
// goes on from the best x.
//
// In OpenFOAM's norm the recurrence decides, as OpenFOAM has it, and the true residual is only reported.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "krilu/solver.hpp"
#include "krylov/stage.hpp"

namespace krilu::krylov {

struct Criterion {
  double rtol = 1e-8, atol = 0;
  Norm norm = Norm::true2;
  int max_iterations = 10000;
  bool from_zero = false;  // x is zero on entry: its residual is b, without a product
  /// Of methods in the driver's own precision; a solve that ends by it has status max_iterations.
  Patience patience = {};
};

struct Outcome {
  Status status = Status::max_iterations;
  int iterations = 0;
  int outer_iterations = 0;      // goes of stages that refine
  std::string precision;         // name of the last stage
  std::int64_t values_lost = 0;  // entries that rounding made zero
  double residual = 0;           // ||b - A x||_2, true
  double rhs = 0;                // ||b||_2
  double initial = 0;            // relative residual of the initial guess, in the criterion's norm
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
        sum_(ex_.template allocate<T>(1)),
        norms_(ex_.template allocate_shared<T>(2)),
        feed_(ex_.template allocate_shared<Monitor::Feed>(1)) {}

  /// The stages in turn; null after the last.
  using NextStage = std::function<Stage<Space, T>*()>;
  /// x: the initial guess on entry; the best iterate that was looked at on return.
  Outcome run(const NextStage& next, const sparse::Operator<Space, T>& A, const exec::Array<T>& b,
              const exec::Array<T>& x, const Criterion& criterion, Monitor& monitor);
  /// One stage: the method itself. kept: as Direct has it, of solves by this driver.
  Outcome run(Method<Space, T>& method, const sparse::Operator<Space, T>& A, precond::Preconditioner<Space, T>& M,
              const exec::Array<T>& b, const exec::Array<T>& x, const Criterion& criterion, Monitor& monitor,
              std::shared_ptr<Kept<Space, T>> kept = nullptr) {
    Direct<Space, T> direct(ex_, {}, method, A, M, std::move(kept));
    Stage<Space, T>* stage = &direct;
    return run([&] { return std::exchange(stage, nullptr); }, A, b, x, criterion, monitor);
  }

  std::size_t bytes() const {
    return r_.bytes() + best_.bytes() + sum_.bytes() + norms_.bytes() + feed_.bytes() + history_.bytes();
  }

  // Parts of run(): public because nvcc takes kernels in public members only.

  /// |r| in the 2-norm, and in the criterion's.
  struct Norms {
    double two, own;
  };
  /// r = b - A x, and its norms, which the host finds in norms_ once it has waited.
  void look_ahead(const sparse::Operator<Space, T>& A, const exec::Array<T>& b, const exec::Array<T>& x,
                  bool magnitudes) {
    A.residual(b.data(), x.data(), r_.data());
    measure(r_, magnitudes);
  }
  Norms look(const sparse::Operator<Space, T>& A, const exec::Array<T>& b, const exec::Array<T>& x, bool magnitudes) {
    look_ahead(A, b, x, magnitudes);
    ex_.synchronise();
    return seen(magnitudes);
  }
  Norms norms(const exec::Array<T>& vector, bool magnitudes) {
    measure(vector, magnitudes);
    ex_.synchronise();
    return seen(magnitudes);
  }
  Norms seen(bool magnitudes) const {
    const double two = double(norms_.data()[0]), own = double(norms_.data()[1]);
    return {std::sqrt(two), magnitudes ? own : std::sqrt(own)};
  }
  void measure(const exec::Array<T>& vector, bool magnitudes) {
    const auto v = vector.view();
    const auto two = norms_.scalar(0), own = norms_.scalar(1);
    ex_.reduce(
        n_,
        KRILU_FN(Index i) {
          return exec::Sums<T, 2>{{v[i] * v[i], Control<T>::measure(magnitudes, v[i])}};
        },
        KRILU_FN(exec::Sums<T, 2> s) {
          two() = s[0];
          own() = s[1];
        });
  }
  double foam_norm_factor(const sparse::Operator<Space, T>& A, const exec::Array<T>& b, const exec::Array<T>& x);

  /// An entry of the history, which lives where iterations write it until the solve has ended.
  void enter(int iteration, double residual) {
    const auto history = history_.view();
    ex_.once(KRILU_FN() { history[iteration] = residual; });
  }

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

  exec::Array<T> r_, best_, sum_;
  exec::Array<T> norms_;  // squares and sums, as kernels leave them
  exec::Array<Monitor::Feed> feed_;
  exec::Array<double> history_;
};

inline constexpr double foam_guard = 1e-20;  // OpenFOAM's own

/// sum|A x - A m| + |b - A m|, m the vector of x's mean: what OpenFOAM divides its residual by.
template <class Space, class T>
double Driver<Space, T>::foam_norm_factor(const sparse::Operator<Space, T>& A, const exec::Array<T>& b,
                                          const exec::Array<T>& x) {
  const auto xv = x.view(), bv = b.view(), mean = best_.view(), Am = r_.view();
  const auto sum = sum_.scalar();
  const auto n = n_;
  const T rows = T(ex_.total(n));
  ex_.reduce(
      n, KRILU_FN(Index i) { return xv[i]; }, KRILU_FN(T total) { sum() = total / rows; });
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
  ex_.copy_out(&total, sum_, 1);
  return double(total) + foam_guard;
}

/// On a GPU the host's memory is far: where iterations are short it hears of one in sixteen. The same on all ranks.
template <class Space>
int iterations_between_words(const Space& ex, std::size_t rows) {
  if constexpr (requires { ex.stream(); })
    return ex.even_share(rows) < 10000000 ? 16 : 1;
  else
    return 1;
}

/// What a go is asked for, as norms.
struct Asked {
  double norm, further;
  int few = 0;            // iterations: where they do for `norm`, `further` is asked for
  double filling = norm;  // is asked for where there is too little room in a basis for another go
  double opening = 0;     // is enough where it takes many iterations; 0: nothing is
};
/// The target, or where it is too far for one go of this stage, the first of equal steps to it. Where few iterations a
/// digit do that, a system is so well conditioned that the go is asked for a step of one go less.
inline Asked asked_of(const StagePolicy& stage, double now, double target) {
  constexpr double margin = 0.9;     // claims differ from the truth in lower precision
  constexpr double few = 3;          // iterations a digit
  constexpr double much_less = 0.1;  // else an opening would be a go for next to nothing
  if (!stage.refines) return {target, target};
  const double need = margin * target / now;
  const auto asked = [&](double step, double longer, int iterations, double filling) {
    const bool opens = step < much_less * stage.opening;
    return Asked{now * step, now * longer, iterations, now * filling, opens ? now * stage.opening : 0};
  };
  if (!(stage.floor > 0) || need >= stage.floor) return asked(need, need, 0, need);
  if (!(need > 0)) return asked(stage.floor, stage.floor, 0, stage.floor);
  const double steps = std::ceil(std::log(need) / std::log(stage.floor)), step = std::pow(need, 1 / steps);
  const double longer = steps > 1 ? std::pow(need, 1 / (steps - 1)) : step;
  const double filling = stage.fills ? stage.floor : step;
  if (!(longer >= stage.least_floor && stage.least_floor > 0)) return asked(step, step, 0, filling);
  return asked(step, longer, int(few * -std::log10(step)), filling);
}

/// Whether a go that met what it was asked for, and claims this norm, ended because its opening was enough.
inline bool has_opened(const Asked& asked, double claimed) {
  constexpr double rounded = 1 + 1e-6;  // to the precision that the go tests in
  return claimed > asked.norm && claimed <= rounded * asked.opening;
}

/// The floor follows what a go has reached when it was asked for a reduction: not less than that is worth asking for
/// where it fell short, and more may be where it did not. opened: its opening was enough, of which nothing is learnt;
/// the go after the first one opens, too, further and whatever iterations that takes, and no other does.
inline void adapt(StagePolicy& stage, double asked, double reached, bool opened = false) {
  constexpr double short_of = 1.5, bolder = 0.1, worst = 0.5, next_opening = 1e-2;
  stage.opening = opened && stage.slow > 0 ? next_opening * stage.opening : 0;
  stage.slow = 0;
  if (opened || !(stage.least_floor > 0)) return;
  if (reached > short_of * asked)
    stage.floor = std::min(worst, reached);
  else if (asked <= 2 * stage.floor)
    stage.floor = std::max(stage.least_floor, bolder * stage.floor);
}

template <class Space, class T>
Outcome Driver<Space, T>::run(const NextStage& next, const sparse::Operator<Space, T>& A, const exec::Array<T>& b,
                              const exec::Array<T>& x, const Criterion& criterion, Monitor& monitor) {
  const bool foam = criterion.norm == Norm::openfoam;
  constexpr int most_remembered = 10'000'000;  // iterations, whose residuals there is room for from the start
  const int most_iterations = std::min(criterion.max_iterations, most_remembered);
  if (history_.size() < std::size_t(most_iterations) + 1)
    history_ = ex_.template allocate<double>(std::size_t(most_iterations) + 1);
  *feed_.data() = {};
  int* const wish = ex_.watch(&feed_.data()->interrupt);
  ex_.meet();

  Outcome out;
  out.rhs = norms(b, false).two;
  Norms now;
  double factor = out.rhs > 0 ? out.rhs : 1.0;
  if (criterion.from_zero) {
    copy(r_, b);
    now = foam ? norms(r_, foam) : Norms{out.rhs, out.rhs};
    if (foam) factor = now.own + foam_guard;  // A x and the mean are zero
  } else {
    if (foam) factor = foam_norm_factor(A, b, x);
    now = look(A, b, x, foam);
  }
  const Norms first = now;
  out.initial = now.own / factor;
  const double target = foam ? std::max(criterion.atol * factor, criterion.rtol * now.own)
                             : std::max(criterion.rtol * out.rhs, criterion.atol);

  double latest = out.initial;  // entry of the history
  enter(0, latest);
  Control<T> control;
  control.target = T(target);
  control.scale = T(1 / factor);
  control.magnitudes = foam;
  control.max_iterations = most_iterations;
  control.history = history_.data();
  control.feed = feed_.data();
  control.tell = iterations_between_words(ex_, n_);
  control.patience = criterion.patience;
  *control.feed = {0, 0, out.initial};
  control.wish = wish;
  const Attached attached(monitor, control.feed);

  // Best x looked at so far, and its residual. Where that is x itself, the next go leaves it in best_.
  bool is_best = true;
  double best = now.two;
  int breakdowns = 0, misses = 0;
  bool learnt = false;  // whether the last go of this stage gained something: what it has learnt is of use
  bool done = false;
  const auto finish = [&](Status s) {
    out.status = s;
    done = true;
  };
  if (now.own <= target) finish(Status::converged);
  if (!done && most_iterations == 0) finish(Status::max_iterations);
  // In a team nobody stops alone.
  const auto wished = [&] { return ex_.in_team() ? ex_.wished() : monitor.interrupted(); };
  if (!done && wished()) finish(Status::interrupted);
  if (!std::isfinite(now.own) || !std::isfinite(out.rhs)) {
    finish(Status::diverged);
    out.notes.push_back(
        "the norm of the right-hand side or of the first residual is too large for a double: scale the system");
  }

  // Where the recurrence's residual was recorded the true one stands.
  const auto correct = [&] {
    if (foam) return;
    latest = now.own / factor;
    enter(control.iteration, latest);
    control.correct(latest);
  };

  constexpr double no_gain = 0.5;
  Stage<Space, T>* stage = next();
  int goes = 0;         // of this stage
  int slow_goes = 0;    // one after another at whose rate the goes that are left will not do
  int looked = 0;       // iterations that ended early, to be looked at: its first ones, which are no go
  bool looking = true;  // whether the next ones do
  double claimed_digits = 0, true_digits = 0;  // of all goes of this stage; a claim counts as far as it was asked for
  // The next stage, from the best x. False where there is none.
  const auto raise = [&](const std::string& why) {
    const std::string from = stage->policy().name;
    Stage<Space, T>* higher = next();  // the stage may be gone now
    if (!higher) return false;
    out.notes.push_back("precision raised from " + from + " to " + higher->policy().name + " after " +
                        std::to_string(control.iteration) + " iterations: " + why);
    stage = higher;
    goes = looked = slow_goes = 0;
    looking = true;
    claimed_digits = true_digits = 0;
    learnt = false;
    if (now.two > best || !std::isfinite(now.two)) {
      copy(x, best_);
      is_best = true;
      now = look(A, b, x, foam);
      correct();
    }
    return true;
  };

  while (!done) {
    StagePolicy& policy = stage->policy();
    const double before = now.two, best_before = best;
    const Asked asked = asked_of(policy, now.own, target);
    control.reason = Stop::none;
    control.target = T(asked.norm);
    control.further = T(asked.further);
    control.early = control.iteration + asked.few;
    control.filling = T(asked.filling);
    control.opening = T(asked.opening);
    control.slow = control.iteration + policy.slow;
    control.begun = control.iteration;
    control.reached = false;
    const int most = looking ? std::min(policy.most_inner, policy.first_look) : policy.most_inner;
    control.max_iterations = int(std::min<std::int64_t>(most_iterations, std::int64_t(control.iteration) + most));
    const double asked_reduction = asked.norm / now.own;
    stage->go(b.data(), x.data(), r_.data(), is_best ? best_.data() : nullptr, now.two, control,
              [&] { look_ahead(A, b, x, foam); });
    if (control.iteration > control.begun) latest = double(control.norm) * double(control.scale);
    publish(&control.feed->iteration, control.iteration);
    publish(&control.feed->residual, latest);
    const bool on_the_way = looking && control.reason == Stop::limit && most < policy.most_inner;
    goes += !on_the_way;
    out.outer_iterations += policy.refines;
    now = seen(foam);
    const bool finite = std::isfinite(now.two);
    const double gain = finite ? now.two / before : std::numeric_limits<double>::infinity();
    const bool met = foam ? control.reason == Stop::target : now.own <= target;
    is_best = met || (finite && now.two <= best);
    if (is_best) {
      best = now.two;
    } else if (!finite || control.reason == Stop::breakdown || control.reason == Stop::not_finite) {
      copy(x, best_);
      is_best = true;
      now = look(A, b, x, foam);
    }
    if (!finite || control.reason == Stop::not_finite) stage->forget();
    correct();
    // Where little was gained another look is worth its while: a precision that fails claims more than it does.
    if (on_the_way) looked += most;
    looking = on_the_way && gain > no_gain && looked + most <= policy.most_inner;

    if (met) {
      finish(Status::converged);
    } else if (control.iteration >= most_iterations || control.reason == Stop::slow) {
      finish(Status::max_iterations);
      if (control.iteration >= most_remembered && most_iterations < criterion.max_iterations)
        out.notes.push_back("a solve ends after " + std::to_string(most_remembered) + " iterations at most");
    } else if (control.reason == Stop::interrupted || (control.reason == Stop::limit && wished())) {
      finish(Status::interrupted);
    } else if (policy.refines) {
      // A claim is false where the true residual is twice what the stage believes, and little was gained; or where all
      // of its goes together keep too little of what they claim, once that is worth a judgement. Where it ran into its
      // limit, its claim is true and nothing is forgotten, no precision would have done more. Where goes keep what they
      // learn, one alone that is too slow says little: the next may be quick for what this one has learnt.
      constexpr double false_claim = 2, grown = 1.01, enough_digits = 0.5;
      const bool limits = control.reason == Stop::limit;
      const double claimed = double(control.norm) / before;
      claimed_digits -= std::log10(std::max(asked_reduction, claimed));  // the claim may be NaN
      true_digits -= std::log10(gain);
      const bool boasts =
          policy.truth > 0 && claimed_digits >= enough_digits && true_digits < policy.truth * claimed_digits;
      const double left = gain < 1 ? std::log(target / now.own) / std::log(gain) : 1e9;
      const bool opened = control.reason == Stop::target && has_opened(asked, double(control.norm));
      slow_goes = !limits && !opened && goes + left > policy.most_goes + 0.5 ? slow_goes + 1 : 0;
      std::string why;
      const bool broke = control.reason == Stop::breakdown || control.reason == Stop::not_finite;
      if (broke && !(gain <= no_gain))
        why = "it broke down";
      else if (!finite || gain > grown)
        why = "the residual grew";
      else if ((gain > no_gain && gain > false_claim * claimed) || boasts)
        why = "its residual is not the true one";
      else if (goes >= policy.most_goes || (limits && !policy.keeps && gain > no_gain) || slow_goes > int(policy.keeps))
        why = limits ? "its iterations did not do" : "at this rate its refinements will not do";
      if (why.empty()) out.outer_iterations -= on_the_way;
      if (!why.empty() && !raise(why)) finish(limits ? Status::max_iterations : Status::stagnated);
      if (why.empty() && !limits) adapt(policy, asked_reduction, gain, opened);
      if (why.empty() && limits && !on_the_way) policy.opening = 0;
    } else if (control.reason == Stop::target) {
      // The recurrence was content and the true residual is not: go on from it, as long as that gains something.
      const bool gained = finite && now.two <= no_gain * before;
      const bool anew = !gained && stage->forget() && learnt;  // what it knows may be what stands in its way
      if (!gained && !anew && ++misses == 2) finish(Status::stagnated);
      learnt = gained && now.two <= no_gain * best_before;
      if (!done && out.notes.size() < 20)
        out.notes.push_back("the recurrence's residual met the target after " + std::to_string(control.iteration) +
                            " iterations and the true one did not: went on from it");
    } else if (++breakdowns == 2) {
      finish(control.reason == Stop::not_finite ? Status::diverged : Status::breakdown);
    } else {
      if (control.reason == Stop::breakdown) stage->forget();
      learnt = false;
      out.notes.push_back("breakdown after " + std::to_string(control.iteration) + " iterations: restarted once");
    }
  }
  out.precision = stage->policy().name;

  const double reached = latest;
  if (!is_best && (now.two > best || !std::isfinite(now.two))) {
    copy(x, best_);
    now = look(A, b, x, foam);
    if (!foam) enter(control.iteration, now.own / factor);
  }
  // Far from where it began, and growing: more iterations will not help.
  if (out.status == Status::max_iterations && reached > 1e3 * out.initial && best >= first.two)
    out.status = Status::diverged;
  out.iterations = control.iteration;
  out.residual = now.two;
  out.history.resize(std::size_t(control.iteration) + 1);
  ex_.copy_out(out.history.data(), history_, out.history.size());
  for (double& h : out.history)
    if (!std::isfinite(h)) h = std::numeric_limits<double>::max();
  return out;
}

}  // namespace krilu::krylov
