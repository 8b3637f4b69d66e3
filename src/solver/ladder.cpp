// SPDX-License-Identifier: Apache-2.0
#include "solver/ladder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
#include <utility>

#include "base/available_memory.hpp"
#include "solver/requests.hpp"
#include "solver/sparse_lu.hpp"
#include "sparse/csr.hpp"

namespace krilu::solver {

namespace {

/// |b - A x| over |A||x| + |b| (2-norms), in units of rounding: what a residual is made of that no solver can lower.
double roundings(const exec::Host& host, const CsrView& a, std::span<const double> b, std::span<const double> x) {
  double residual = 0, size = 0;
  std::vector<double> r(b.size());
  sparse::residual(host, a, x.data(), b.data(), r.data());
  for (Index i = 0; i < a.rows; ++i) {
    double terms = std::abs(b[std::size_t(i)]);
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
      terms += std::abs(a.values[k] * x[std::size_t(a.columns[k])]);
    size += terms * terms;
    residual += r[std::size_t(i)] * r[std::size_t(i)];
  }
  return size > 0 ? std::sqrt(residual / size) / std::numeric_limits<double>::epsilon() : 0;
}

/// Whether the sums over A's rows are nothing but rounding: A times a vector of ones is nothing.
bool rows_sum_to_zero(const CsrView& a) {
  for (Index i = 0; i < a.rows; ++i) {
    double sum = 0, size = 0;
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      sum += a.values[k];
      size += std::abs(a.values[k]);
    }
    const double rounding = std::numeric_limits<double>::epsilon() * double(a.offsets[i + 1] - a.offsets[i]);
    if (!(std::abs(sum) <= rounding * size)) return false;
  }
  return true;
}

/// The same of its columns: what A gives has no mean.
bool columns_sum_to_zero(const CsrView& a) {
  struct Column {
    double sum = 0, size = 0;
    Offset entries = 0;
  };
  std::vector<Column> columns(std::size_t(a.cols));
  for (Offset k = 0; k < a.nnz(); ++k) {
    Column& c = columns[std::size_t(a.columns[k])];
    c.sum += a.values[k];
    c.size += std::abs(a.values[k]);
    ++c.entries;
  }
  return std::all_of(columns.begin(), columns.end(), [](const Column& c) {
    return std::abs(c.sum) <= std::numeric_limits<double>::epsilon() * double(c.entries) * c.size;
  });
}

/// Whether ILU(1) has work and fill in proportion: each entry below the diagonal brings in its column's row above.
bool fill_is_moderate(const CsrView& a) {
  constexpr double most = 50, bytes_an_entry = 32;  // most: times the entries of A
  std::vector<Offset> above(std::size_t(a.rows), 0);
  for (Index i = 0; i < a.rows; ++i)
    above[std::size_t(i)] = Offset(a.columns + a.offsets[i + 1] -
                                   std::upper_bound(a.columns + a.offsets[i], a.columns + a.offsets[i + 1], i));
  double pairs = 0;
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1] && a.columns[k] < i; ++k)
      pairs += above[std::size_t(a.columns[k])];
  return pairs <= most * a.nnz() && bytes_an_entry * pairs < 0.5 * double(available_memory());
}

}  // namespace

std::string Ladder::method_of(const Options& o) const {
  std::string text = o.solver;
  if (o.solver == "gmres") text += fmt::format("({})", o.restart);
  text += " with " + o.precond;
  if (o.scaling != "none") text += ", scaling " + o.scaling;
  if (o.ordering != "auto" && o.ordering != "natural") text += ", ordering " + o.ordering;
  if (on_gpu_ && o.device == "host") text += ", on the host";
  return text;
}

std::string Ladder::straight_to(const Options& o) const {
  return arguments_of(o) + (on_gpu_ && o.device == "host" ? " --device host" : "");
}

std::string arguments_of(const Options& o) {
  const Options usual;
  std::string text = fmt::format("--solver {} --precond {}", o.solver, o.precond);
  if (o.restart != usual.restart) text += fmt::format(" --restart {}", o.restart);
  if (o.scaling != usual.scaling) text += " --scaling " + o.scaling;
  if (o.ordering != usual.ordering) text += " --ordering " + o.ordering;
  if (o.shift != usual.shift) text += fmt::format(" --shift {}", o.shift);
  return text;
}

struct Ladder::Step {
  std::string precond;
  int restart = 50;
  bool rearranged = true;
  bool gentle = false;  // of no use where the one before gained nothing
  krylov::Patience patience;
};

bool Ladder::serves(const Options& o) {
  return o.solver == "auto" && o.precond == "auto" && o.scaling == "none" && o.norm == Norm::true2 &&
         (o.precision == "auto" || o.precision == "fp64");
}

Ladder::Ladder(const Options& asked, const Options& first, bool on_gpu, const Facts& facts, Index rows,
               std::vector<Index> missing_diagonal)
    : asked_(asked),
      first_(first),
      on_gpu_(on_gpu),
      rows_(rows),
      missing_diagonal_(std::move(missing_diagonal)),
      zeros_(facts.diagonal.missing + facts.diagonal.zero > 0),
      symmetric_(facts.symmetry.values) {
  // GMRES without a preconditioner, which zeros on the diagonal leave, ends within a basis of as many vectors as rows.
  skips_first_ = zeros_ && asked.shift == 0 && rows > asked.restart;
  constexpr double negligible = 1e-6;  // of a diagonal beside its row
  form_ = zeros_ || facts.diagonal.least_dominance < negligible ? Form::paired : Form::balanced;
  // Where every row is dominant, as finite volumes make them, methods arrive, if late: the longer, the finer the mesh.
  constexpr double nearly = 0.9;
  const bool dominant = facts.diagonal.least_dominance >= nearly && !zeros_;
  const bool cg = first.solver == "cg";
  const int across = int(std::cbrt(double(rows))), side = int(std::sqrt(double(rows))), most = std::max(400, 3 * side);
  if (dominant && cg)
    patience_ = {.first = 400, .window = 200, .most = std::max(4000, 4 * side), .hump = 0.25};
  else if (dominant)
    patience_ = {std::max(50, across), std::max(50, across), most};
  else
    patience_ = {cg ? 100 : 50, 50, most};  // CG's residual falls late
  if (on_gpu)
    for (int* iterations : {&patience_.first, &patience_.window, &patience_.most}) *iterations *= 10;
}

/// Fill and bases end where they would take more than their share of the memory that is left.
std::vector<Ladder::Step> Ladder::steps() const {
  constexpr double bytes_an_entry = 48;  // of both factors, as they are made and as they are stored
  const double left_a_row = double(available_memory()) / std::max<double>(1, rows_);
  const int most_fill = int(std::clamp(left_a_row / (4 * bytes_an_entry), 5.0, 300.0));
  const int most_basis = int(std::clamp(left_a_row / (4 * sizeof(double)), 20.0, 200.0));
  // A cycle of GMRES gains little at its beginning, so that its looks are a cycle apart.
  const auto gmres = [&](std::string precond, int restart, bool rearranged, bool gentle = false) {
    restart = std::max(asked_.restart, std::min(restart, most_basis));
    return Step{std::move(precond), restart, rearranged, gentle, {restart, restart, std::max(400, 5 * restart)}};
  };
  const auto ilut = [&](int most, const char* tolerance) {
    return fmt::format("ilut:{},{}", std::min(most, most_fill), tolerance);
  };
  std::vector<Step> all{gmres(ilut(20, "0.003"), 50, true), gmres(ilut(50, "0.001"), 100, true, true)};
  if (!symmetric_) all.push_back(gmres("iluk:1", 100, false));
  all.push_back(gmres(ilut(100, "0.0001"), 100, true));
  if (!SparseLu::name().empty()) all.push_back({"lu", asked_.restart, false, false, {}});
  all.push_back(gmres(ilut(300, "0.00001"), 200, true));
  return all;
}

Options Ladder::options_of(const Step& step) const {
  Options o = asked_;
  o.solver = "gmres";
  if (on_gpu_) {
    o.device = "host";
    if (o.triangular == "tiled") o.triangular = "auto";  // which is for GPUs
  }
  o.precond = step.precond;
  o.restart = step.restart;
  if (step.rearranged) {
    o.scaling = form_ == Form::balanced ? "both" : "matching";
    if (o.ordering == "auto") o.ordering = form_ == Form::paired_natural ? "natural" : "rcm";
  }
  return o;
}

std::vector<std::string> Ladder::plan() const {
  std::vector<std::string> lines;
  for (const Step& step : steps()) {
    const char* when = !lines.empty() ? "then: "
                       : skips_first_ ? "in its place, since the diagonal has zeros: "
                                      : "where that does not arrive: ";
    lines.push_back(when + method_of(options_of(step)));
  }
  return lines;
}

void Ladder::set_tolerances(double rtol, double atol) {
  asked_.rtol = rtol;
  asked_.atol = atol;
  if (rung_) rung_->set_tolerances(rtol, atol);
}

bool Ladder::factor(const CsrView& a) {
  try {
    rung_->factor(a);
    return true;
  } catch (const Error&) {
    rung_.reset();
    return false;
  }
}

/// One solve's way up.
class Ladder::Climb {
 public:
  Climb(Ladder& ladder, const Ground& ground, Monitor& monitor)
      : l_(ladder), ground_(ground), monitor_(monitor), host_(ladder.asked_.threads) {}

  Result run() {
    std::size_t next = 0;
    if (l_.rung_) {
      if (l_.closed_) leave_mean_out();
      run_rung(l_.rung_options_, 0);
      next = l_.reached_ + 1;
      if (!done_ && !rest_ && leave_mean_out()) run_rung(l_.rung_options_, 0);
      if (!done_) {
        matrix();
        l_.rung_.reset();
      }
    } else if (l_.skips_first_) {
      leave_mean_out();
    } else if (l_.closed_ && leave_mean_out()) {
      first_without_mean();
    } else {
      const Timer timer;
      take_first(ground_.first(), timer.seconds());
      if (!done_ && leave_mean_out()) first_without_mean();
    }
    while (!done_) {
      const std::vector<Step> steps = l_.steps();
      if (next == steps.size()) break;
      if ((steps[next].gentle && gained_nothing_) || try_step(steps[next], next)) ++next;
    }
    if (!started_) least_squares(reason_.empty() ? "no rung's factorisation could be formed" : reason_);
    // The next solve begins at the first rung again, with these values.
    if (!l_.rung_ && ground_.renew) ground_.renew(matrix());
    return finish();
  }

 private:
  const CsrMatrix& matrix() {
    const Engine& engine = l_.rung_ ? Inside::engine(*l_.rung_) : ground_.engine;
    if (a_.offsets.empty()) a_ = engine.matrix(l_.missing_diagonal_);
    return a_;
  }
  const Sides& sides() {
    if (!sides_) sides_ = ground_.bring();
    return *sides_;
  }
  int iterations_left() const { return std::max(0, l_.asked_.max_iterations - iterations_); }

  /// False where the same step is to be tried in another form.
  bool try_step(const Step& step, std::size_t number) {
    const Options o = l_.options_of(step);
    const Timer timer;
    const CsrMatrix& a = matrix();
    if (step.precond == "iluk:1" && !fill_is_moderate(a)) return true;
    auto rung = std::make_unique<Solver>(o);
    ++l_.analyses_;
    try {
      rung->setup(a);
    } catch (const StructurallySingular& e) {
      leave(o, timer.seconds(), e.what());
      return least_squares(e.what());
    } catch (const ZeroPivot& e) {
      leave(o, timer.seconds(), e.what());
      if (o.precond == "lu") reason_ = e.what();  // the matrix is singular
      if (!step.rearranged || l_.form_ == Form::paired_natural) return true;
      // Once more at once, paired; where that has no pivots either, other rungs come first.
      l_.form_ = l_.form_ == Form::balanced ? Form::paired : Form::paired_natural;
      return l_.form_ == Form::paired_natural;
    } catch (const Error& e) {
      leave(o, timer.seconds(), e.what());
      return true;
    } catch (const std::bad_alloc&) {
      leave(o, timer.seconds(), "there was no memory for it");
      return true;
    }
    Inside::engine(*rung).set_patience(step.patience);
    l_.rung_ = std::move(rung);
    l_.rung_options_ = o;
    l_.reached_ = number;
    run_rung(o, timer.seconds());
    if (!done_) l_.rung_.reset();
    return true;
  }

  /// Where columns sum to zero, as those of conservation in a closed box do (a pressure that is fixed nowhere), what A
  /// gives has no mean: where b has one, the climb goes on for b without it, anew, and what is left of b then is
  /// the least that any x leaves. False where that is not so.
  bool leave_mean_out() {
    l_.closed_ = columns_sum_to_zero(matrix());
    if (!l_.closed_) return false;
    const auto [b, x] = sides();
    const double n = double(b.size());
    Rest rest;
    rest.b.assign(b.begin(), b.end());
    for (int times = 0; times < 2; ++times) {  // the second is what rounding left of the first
      const double mean = std::accumulate(rest.b.begin(), rest.b.end(), 0.0) / n;
      for (double& v : rest.b) v -= mean;
      rest.mean += mean;
    }
    const auto norm = [](std::span<const double> v) {
      return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
    };
    rest.norm = norm(rest.b);
    rest.whole = norm(b);
    rest.of_mean = std::abs(rest.mean) * std::sqrt(n);
    if (rest.of_mean <= std::max(l_.asked_.rtol * rest.whole, l_.asked_.atol)) return false;  // another x will do
    if (rest.norm <= n * std::numeric_limits<double>::epsilon() * rest.whole) {               // b is its mean
      rest.b.assign(rest.b.size(), 0.0);
      rest.norm = 0;
    }
    rest.first_rung = rungs_.size();
    rest.first_iterate = history_.size();
    if (started_) {
      rest.x_before.assign(x.begin(), x.end());
      rest.before = std::move(best_);
      std::fill(x.begin(), x.end(), 0.0);  // it has grown along what A takes to nothing
    }
    started_ = from_zero_ = false;
    at_rounding_ = 0;
    rest_ = std::move(rest);
    return true;
  }
  std::span<const double> right_hand_side() { return rest_ ? std::span<const double>(rest_->b) : sides().b; }

  /// The first rung for b without its mean.
  void first_without_mean() {
    const Timer timer;
    Result r = ground_.first_of(right_hand_side(), sides().x, iterations_left(), monitor_);
    take_first(std::move(r), timer.seconds());
  }
  void take_first(Result r, double seconds) {
    Options used = l_.first_;
    used.precond = r.precond;
    take(std::move(r), used, seconds);
  }

  /// Residuals of b without its mean become those of b.
  void put_mean_back() {
    const Rest& rest = *rest_;
    const auto of_whole = [&](double relative) { return std::hypot(relative * rest.norm, rest.of_mean) / rest.whole; };
    const bool solved = ended_ == Status::converged || as_far_as_rounding_;
    for (std::size_t k = rest.first_iterate; k < history_.size(); ++k) history_[k] = of_whole(history_[k]);
    if (rest.first_iterate == 0) initial_ = of_whole(initial_);
    for (std::size_t k = rest.first_rung; k < rungs_.size(); ++k) {
      Rung& rung = rungs_[k];
      rung.arguments.clear();  // they would say nothing of the mean
      rung.relative_residual = of_whole(rung.relative_residual);
      const bool arrived = solved && k + 1 == rungs_.size();
      if (arrived) rung.status = Status::stagnated;
      const std::string why = arrived ? "no x leaves less of the whole" : rung.why_left;
      rung.why_left = "of b without its mean" + (why.empty() ? why : ": " + why);
    }
    best_.relative_residual = of_whole(best_.relative_residual);
    best_.rmse = best_.relative_residual * rest.whole / std::sqrt(double(rest.b.size()));
    if (solved)
      ended_.reset();
    else if (rest.before && rest.before->relative_residual < best_.relative_residual) {
      std::copy(rest.x_before.begin(), rest.x_before.end(), sides().x.begin());
      best_ = *rest.before;
    }
    if (solved || !done_ || reason_.empty())  // which is more than that no pivot was found
      reason_ = fmt::format(
          "the matrix is singular, since its columns sum to zero (a pressure that is fixed nowhere, say), and no x "
          "solves it for a b whose mean is {:.3g}{}; subtract that, or fix x in one row",
          rest.mean, solved ? ": this x is that of b without its mean" : "");
  }

  /// The last that can be done for a singular system: no pivot is asked for, and what is solvable of it is solved.
  bool least_squares(std::string why) {
    reason_ = std::move(why);
    Options o = l_.asked_;
    o.solver = "gmres";
    o.precond = "none";
    o.restart = std::max(o.restart, 100);
    if (l_.on_gpu_) o.device = "host";
    const Timer timer;
    Solver solver(o);
    ++l_.analyses_;
    solver.setup(matrix());
    Inside::engine(solver).set_patience({100, 100, 1000});
    Inside::engine(solver).set_max_iterations(iterations_left());
    Result r = solver.solve(right_hand_side(), sides().x, &monitor_);
    take(std::move(r), o, timer.seconds());
    done_ = true;
    return true;
  }

  void run_rung(const Options& o, double setup_seconds) {
    const Timer timer;
    Inside::engine(*l_.rung_).set_max_iterations(iterations_left());
    Result r;
    const std::span<const double> b = right_hand_side();
    const std::span<double> x = sides().x;
    if (!from_zero_) {
      r = l_.rung_->solve(b, x, &monitor_);
    } else {  // what there is is as good as its size allows: another x may be smaller
      std::vector<double> fresh(x.size(), 0.0);
      r = l_.rung_->solve(b, fresh, &monitor_);
      if (r.relative_residual < best_.relative_residual) std::copy(fresh.begin(), fresh.end(), x.begin());
    }
    take(std::move(r), o, setup_seconds + timer.seconds());
  }

  void leave(const Options& o, double seconds, const std::string& why) {
    rungs_.push_back({l_.method_of(o), l_.straight_to(o), Status::breakdown, 0,
                      started_ ? best_.relative_residual : 1.0, seconds, why});
  }

  /// What a rung's result means for the climb.
  void take(Result r, const Options& o, double seconds) {
    const bool ran_out = r.iterations >= iterations_left();  // whatever else befell it there
    iterations_ += r.iterations;
    if (history_.empty()) initial_ = r.initial_residual;
    history_.insert(history_.end(), r.history.begin() + (history_.empty() ? 0 : 1), r.history.end());
    notes_.insert(notes_.end(), r.notes.begin(), r.notes.end());
    Rung rung{l_.method_of(o), l_.straight_to(o), r.status, r.iterations, r.relative_residual, seconds, ""};
    const double before = started_ && !from_zero_ ? best_.relative_residual : r.initial_residual;
    gained_nothing_ = !(r.relative_residual < 0.9 * before);
    const bool better = !started_ || r.relative_residual <= best_.relative_residual;
    const Status status = r.status;
    if (better) best_ = std::move(r);
    started_ = true;
    if (status == Status::converged || status == Status::interrupted) {
      done_ = true;
      ended_ = status;
    } else if (status == Status::stagnated && better && at_rounding()) {
      // A residual of rounding alone. Twice, from zero, or small enough, and it is the system's own.
      constexpr double small = 1e-5;
      done_ = best_.relative_residual <= small || ++at_rounding_ == 2;
      from_zero_ = true;
      rung.why_left = "rounding allows no smaller residual with this x";
      as_far_as_rounding_ = done_;
      if (done_) reason_ = "rounding allows no smaller residual";
    } else if (!ran_out) {
      rung.why_left = status == Status::max_iterations
                          ? "too slow: at the rate of its last iterations it will not arrive"
                      : status == Status::stagnated ? "its recurrence believes in a residual that is not the true one"
                      : status == Status::breakdown ? "it broke down"
                                                    : "its residual grew";
    }
    if (ran_out && !done_) {
      done_ = true;
      ended_ = status;
    }
    rungs_.push_back(std::move(rung));
  }
  bool at_rounding() {
    constexpr double few = 10;
    return roundings(host_, matrix(), right_hand_side(), sides().x) <= few;
  }

  Result finish() {
    if (rest_) put_mean_back();
    if (!done_ && !rest_ && rows_sum_to_zero(matrix()) && !columns_sum_to_zero(matrix()))
      reason_ =
          "the matrix is singular, since its rows sum to zero, and there is an x only for a b that has no part in the "
          "null space of its transpose: fix x in one row";
    Result r = std::move(best_);
    const bool lost = !done_ || !reason_.empty();
    if (ended_)  // whatever the status of the best x
      r.status = *ended_;
    else if (lost)
      r.status = Status::stagnated;
    if (lost && r.status != Status::converged && r.status != Status::interrupted)
      notes_.push_back("not solved: " + (reason_.empty() ? "no rung of the ladder arrived" : reason_));
    r.iterations = iterations_;
    r.initial_residual = initial_;
    if (!history_.empty()) history_.back() = r.relative_residual;
    r.history = std::move(history_);
    std::vector<std::string> once;
    for (std::string& note : notes_)
      if (std::find(once.begin(), once.end(), note) == once.end()) once.push_back(std::move(note));
    r.notes = std::move(once);
    r.rungs = std::move(rungs_);
    return r;
  }

  /// b without its mean, and where the climb for it began.
  struct Rest {
    std::vector<double> b;
    double mean = 0, norm = 0, of_mean = 0, whole = 0;  // 2-norms: of this b, of the mean's vector, of b with it
    std::size_t first_rung = 0, first_iterate = 0;
    std::optional<Result> before;
    std::vector<double> x_before;
  };

  Ladder& l_;
  const Ground& ground_;
  std::optional<Sides> sides_;
  std::optional<Rest> rest_;
  Monitor& monitor_;
  exec::Host host_;
  CsrMatrix a_;
  Result best_;
  bool started_ = false, done_ = false, from_zero_ = false, gained_nothing_ = false, as_far_as_rounding_ = false;
  std::optional<Status> ended_;  // converged, interrupted or out of iterations
  int iterations_ = 0, at_rounding_ = 0;
  double initial_ = 1;
  std::vector<double> history_;
  std::vector<std::string> notes_;
  std::vector<Rung> rungs_;
  std::string reason_;
};

Result Ladder::solve(const Ground& ground, Monitor& monitor) { return Climb(*this, ground, monitor).run(); }

}  // namespace krilu::solver
