// SPDX-License-Identifier: Apache-2.0
// The public Solver: checks what it is given, has chosen what was left to `auto` (solver_auto.cpp), and reports what it
// did.
#include "krilu/solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <thread>

#include "base/names.hpp"
#include "base/together.hpp"
#include "precond/registry.hpp"
#include "precond/spec.hpp"
#include "schedule/ordering.hpp"
#include "solver/requests.hpp"
#include "solver/solver_body.hpp"

namespace krilu {

void Monitor::wait_for_readers() const {
  while (readers_.load() > 0) std::this_thread::yield();
}

namespace {

const std::vector<std::string> methods{"auto", "cg", "bicgstab", "gmres", "fgmres", "gmres-ir"};

/// A view of no rows may have none.
Buffer<Offset> offsets_of(const CsrView& a) {
  return a.offsets ? Buffer<Offset>(a.offsets, a.offsets + a.rows + 1) : Buffer<Offset>(1, Offset(0));
}

CsrMatrix copy_of(const CsrView& a) {
  const auto nnz = std::size_t(a.nnz());
  return {a.rows, a.cols, offsets_of(a), {a.columns, a.columns + nnz}, {a.values, a.values + nnz}};
}

/// An engine's limit for a while, and its own after it.
struct WithinIterations {
  WithinIterations(solver::Engine& e, int most, int own) : engine(e), own_limit(own) { e.set_max_iterations(most); }
  ~WithinIterations() { engine.set_max_iterations(own_limit); }
  WithinIterations(const WithinIterations&) = delete;
  WithinIterations& operator=(const WithinIterations&) = delete;
  solver::Engine& engine;
  int own_limit;
};

bool overlap(std::span<const double> b, std::span<const double> x) {
  const std::less<const double*> before;
  return before(b.data(), x.data() + x.size()) && before(x.data(), b.data() + b.size());
}

std::vector<std::string> with_auto(std::vector<std::string> names) {
  names.insert(names.begin(), "auto");
  return names;
}

std::vector<std::string> known_preconditioners() {
  std::vector<std::string> names = with_auto(precond::names());
  names.push_back("lu");
  return names;
}

/// scaling and lu: on the host, in double.
void require_scaling(const Options& o) {
  precond::require_scaling_name(o.scaling);
  const bool scaled = o.scaling != "none";
  if (!scaled && o.precond != "lu") return;
  const std::string what = o.precond == "lu" ? "precond lu" : "scaling " + o.scaling;
  if (o.device.starts_with("cuda")) throw Error(what + " is the host's: take --device host");
  if (o.solver == "gmres-ir" || (o.precision != "auto" && o.precision != "fp64"))
    throw Error(what + " is for double precision: leave out --precision, and --solver gmres-ir");
  if (scaled && o.precond != "lu" && !precond::can_be_rearranged(o.precond))
    throw Error(
        fmt::format("scaling {} changes what ilu0, iluk, ilut, block-ilu and ras factor: name one of them as the "
                    "preconditioner",
                    o.scaling));
}

void require_options(const Options& o) {
  require_name("solver", o.solver, methods);
  solver::require_device(o.device);
  if (o.precond != "auto") {
    require_name("preconditioner", precond::kind_of(o.precond), known_preconditioners());
    if (o.precond != "lu") precond::require_known(o.precond);
  }
  require_scaling(o);
  const triangular::Strategy strategy = triangular::strategy_by_name(o.triangular);
  const bool on_host = o.device == "host" || o.device == "emulated";
  if (on_host && strategy == triangular::Strategy::tiled)
    throw Error(fmt::format("triangular tiled is for GPUs: {} has serial, level-set and sync-free", o.device));
  if (o.device.starts_with("cuda") && strategy == triangular::Strategy::serial)
    throw Error("triangular serial is for the host: a GPU has level-set, sync-free and tiled");
  if (o.ordering != "auto") schedule::require_ordering_name(o.ordering);
  solver::require_numbers(o);
  if (!(o.shift >= 0) || std::isinf(o.shift)) throw Error("shift is a number from 0");
  if (o.precision != "auto") precision_by_name(o.precision);
  if (o.basis != "auto") format_by_name(o.basis);
  if (o.inner_iterations < 0 || o.outer_iterations < 0)
    throw Error("inner-iters and outer-iters are whole numbers from 1, or 0 for the method's own");
  if (!(o.inner_tolerance >= 0) || o.inner_tolerance >= 1)
    throw Error("inner-rtol is a number between 0 and 1, or 0 to follow the outer residual");
  const bool lower = o.solver == "gmres-ir" || (o.precision != "auto" && o.precision != "fp64");
  if (o.norm == Norm::openfoam && lower)
    throw Error(
        "--norm openfoam holds against the recurrence's residual, which mixed precision does not trust: take fp64");
  solver::require_norm(o);
}

/// Empty where kernels reach the other ranks, or none is on a GPU.
std::string way_between_gpus(const solver::Connection& c) {
  using By = solver::Connection::By;
  if (c.by == By::kernels) return {};
  const std::string far = "the GPUs of the ranks do not reach one another's memory: sums and boundaries go through ";
  if (c.by == By::library)
    return far + c.what + ", and the loop returns to the host " +
           (c.at_once == 1 ? std::string("every iteration") : fmt::format("every {} iterations", c.at_once));
  return far + "the host, and each iteration with them" + (c.what.empty() ? "" : " (" + c.what + ")");
}

}  // namespace

const char* to_string(Status s) {
  switch (s) {
    case Status::converged: return "converged";
    case Status::max_iterations: return "max_iterations";
    case Status::stagnated: return "stagnated";
    case Status::breakdown: return "breakdown";
    case Status::diverged: return "diverged";
    case Status::interrupted: return "interrupted";
  }
  return "?";
}

Solver::Solver(Options options) : Solver(std::move(options), Team{}) {}
Solver::Solver(Options options, Team team) : body_(std::make_unique<Body>()) {
  body_->team = std::move(team);
  body_->agreed([&] {
    require_options(options);
    if (body_->ranks() && options.precond == "lu")
      throw Error("precond lu factors the whole matrix: over several ranks take ilu0, iluk, ilut, ras or dilu");
    if (!body_->ranks() && (body_->team.coupling || body_->team.preconditioner || body_->team.beside))
      throw Error("a team has ranks: a coupling, a preconditioner or rows beside come with them, be it one rank alone");
    body_->options = std::move(options);
    body_->choose_device();
  });
  if (Ranks* ranks = body_->ranks()) {
    const std::string device = body_->engine->device();
    require_same(*ranks, "kind of device", device.substr(0, device.find(':')));
    require_same(*ranks, "kind of team",
                 fmt::format("{} {} {}", body_->team.coupling != nullptr, body_->team.preconditioner != nullptr,
                             body_->team.beside != nullptr));
  }
}
Solver::~Solver() = default;
Solver::Solver(Solver&&) noexcept = default;
Solver& Solver::operator=(Solver&&) noexcept = default;

/// What holds for the rows of all ranks, the same on each.
solver::Facts Solver::Body::in_all(const CsrView& a, solver::Facts facts) {
  sparse::DiagonalFacts& d = facts.diagonal;
  facts.one_sign = d.negative == 0 || d.negative == rows;
  rows_in_all = rows;
  if (!ranks()) return facts;
  const bool symmetric = !team.coupling || team.coupling->symmetric();
  enum { rows_, missing, zero, empty, dominant, negative, unlike, count };
  double of[count] = {};
  of[rows_] = rows;
  of[missing] = d.missing;
  of[zero] = d.zero;
  of[empty] = d.empty_rows;
  of[dominant] = d.dominant_rows;
  of[negative] = d.negative;
  of[unlike] = (a.nnz() > 0 && !facts.symmetry.values) || !symmetric;
  ranks()->sum(of);
  rows_in_all = std::int64_t(of[rows_]);
  // Counts are for people, and for whether there are any.
  const auto counted = [](double n) { return Index(std::min(n, double(std::numeric_limits<Index>::max()))); };
  d.missing = counted(of[missing]);
  d.zero = counted(of[zero]);
  d.empty_rows = counted(of[empty]);
  d.dominant_rows = counted(of[dominant]);
  facts.one_sign = of[negative] == 0 || of[negative] == of[rows_];
  d.negative = counted(of[negative]);
  facts.symmetry.values = of[unlike] == 0;
  return facts;
}

void Solver::analyse(const CsrView& a) { body_->analyse({a}); }
void Solver::setup(const CsrView& a) { body_->setup({a}); }
void Solver::factor(const CsrView& a) { body_->factor({a}); }

void Solver::Body::analyse(const Given& given) {
  solver::Timer timer;
  const CsrView& a = given.a;
  analysed = factored = weighed = false;
  format.clear();
  notes.clear();
  if (!device_note.empty()) notes.push_back(device_note);
  explanation.clear();
  pattern_here = {};
  moved.clear();
  rows = a.rows;
  if (options.device == "auto" && on_gpu)
    explanation.push_back(fmt::format("device {}: this machine has a GPU", engine->device()));
  const bool must_choose = options.solver == "auto" || options.precond == "auto";
  // Blocks are grown along strong couplings, where there are values to tell them by.
  const bool blocks = on_gpu && (options.ordering == "auto" || schedule::is_block_ordering(options.ordering));
  const bool look_at_values = given.has_values() && (must_choose || values_seen || blocks);
  solver::Facts facts;
  agreed([&] {
    if (given.there && given.has_values() && a.rows > 0 && a.offsets)
      admit(*given.there, std::size_t(std::max<Offset>(0, a.nnz())), "the array of values");
    facts = given.there ? there().look_there(a, look_at_values ? given.there->data : nullptr)
                        : engine->look(a, look_at_values);
    if (must_choose && a.nnz() > 0 && !given.has_values())
      throw Error("the matrix has no values: name solver and preconditioner to analyse a pattern alone");
  });
  pattern = facts.pattern;
  facts = in_all(a, facts);
  all_symmetric = facts.symmetry.values;
  choose(facts, a.nnz());

  // Orderings and levels are those of the pattern of A + A^T; where A's pattern is symmetric, A serves as it is, but
  // for the orderings that are made on the host and want no diagonal.
  const bool made_here = plan.ordering != "natural" && !schedule::is_block_ordering(plan.ordering);
  const bool need_graph = plan.triangular ? !facts.symmetry.pattern || made_here : made_here && !on_gpu;
  agreed([&] {
    const CsrMatrix graph = need_graph ? sparse::adjacency(a) : CsrMatrix{};
    engine->analyse(a, need_graph ? graph.view() : a, plan);
  });
  if (ranks())
    if (const std::string note = way_between_gpus(engine->connect(plan)); !note.empty()) notes.push_back(note);
  if (plan.triangular) explanation.push_back(engine->shape());
  if (const std::string own = engine->preconditioner(); !own.empty()) {
    const bool parts_were_chosen =
        precond::sweeps_of(plan.precond) == precond::Sweeps::of_its_own && precond::parse_spec(plan.precond).parts == 0;
    (parts_were_chosen ? notes : explanation).push_back(fmt::format("{}: {}", plan.precond, own));
  }
  const std::string& asked = options.triangular;
  if (on_gpu && plan.triangular && schedule::is_block_ordering(plan.ordering) && asked != "auto" &&
      asked != "level-set")
    notes.push_back(fmt::format("triangular {}: not used, since coloured blocks are swept colour by colour", asked));
  put_up_ladder(a, facts);
  if (given.there) pattern_here = {a.rows, a.cols, offsets_of(a), {a.columns, a.columns + a.nnz()}, {}};
  analysed = true;
  ++counts.analyses;
  seconds = {timer.seconds(), 0, 0};
}

void Solver::Body::setup(const Given& given) {
  values_seen = true;
  try {
    analyse(given);
    factor(given);
  } catch (...) {
    values_seen = false;
    throw;
  }
  values_seen = false;
}

/// On the engine.
void Solver::Body::form(const Given& given) {
  if (!given.there) return engine->factor(given.a, values_seen);
  there().factor_there(given.a, given.there->data, values_seen);
  moved.clear();
  if (there().wants_values_here())
    moved = fmt::format("the matrix's values were brought to host memory as well, where {} is set up", plan.precond);
}

/// Where auto took what is for symmetric matrices, and the values are no longer those of one.
void Solver::Body::choose_anew(const Given& given) {
  CsrMatrix kept = std::move(pattern_here);  // whose pattern `given` may be a view of
  const std::string before = plan.method + " with " + plan.precond;
  analyse(given);
  if (!given.there) pattern_here = std::move(kept);
  notes.push_back(fmt::format("solver auto: {} with {} in place of {}, since the matrix is no longer symmetric",
                              plan.method, plan.precond, before));
}

/// Of the engine: where there is a ladder, its first rung. on_the_ladder: which is climbing, and stays.
void Solver::Body::factor_first(const Given& given, bool on_the_ladder) {
  const CsrView& a = given.a;
  first_is_current = false;
  const bool may_replace = options.precond == "auto";
  for (;;) {
    try {
      agreed([&] { form(given); });
      break;
    } catch (const NotSymmetric&) {
      if (options.solver != "auto" || !may_replace || on_the_ladder) throw;
      choose_anew(given);
    } catch (const ZeroPivot& e) {
      if (!may_replace) throw;
      const char* next = plan.precond == "jacobi" ? "none" : "jacobi";
      notes.push_back(fmt::format("precond auto: {} in place of {} ({})", next, plan.precond, e.what()));
      plan.precond = next;
      analysed = false;
      agreed([&] { engine->replace_preconditioner(a, next); });
      analysed = true;
    }
  }
  if (must_weigh()) {
    weighed = true;
    if (prefers_jacobi()) {
      explanation.push_back("preconditioner jacobi: its iterations are cheap enough to be more");
      plan.precond = "jacobi";
      plan.ordering = "natural";
      plan.triangular = false;
      analysed = false;
      engine->analyse(a, a, plan);
      form(given);
      analysed = true;
    }
  }
  if (!ladder) engine->forget_values();  // a rung above would ask for them
  if (const std::string now = engine->format(); !now.empty() && now != format)
    explanation.push_back("products in " + (format = now));
  first_is_current = true;
}

void Solver::Body::factor(const Given& given) {
  solver::Timer timer;
  const CsrView& a = given.a;
  const exec::Host host(options.threads);
  agreed([&] {
    if (!analysed) throw Error("factor comes after analyse");
    require_all_here();
    if (!given.has_values() && a.nnz() > 0) throw Error("the matrix has no values");
    if (given.there && !values_seen) admit(*given.there, std::size_t(a.nnz()), "the array of values");
    if (!given.there && !values_seen && (a.rows != rows || a.cols != rows || sparse::pattern_hash(host, a) != pattern))
      throw Error("the matrix has another pattern than the one that was analysed: call analyse first");
  });
  factored = false;
  moved.clear();
  const int analyses = counts.analyses;
  if (ladder && ladder->stands() && (given.there ? factor_rung_there(given) : ladder->factor(a)))
    first_is_current = false;
  else
    factor_first(given);
  factored = true;
  ++counts.factorisations;
  seconds.factor = timer.seconds() - (counts.analyses > analyses ? seconds.analyse : 0);
}

Result Solver::solve(std::span<const double> b, std::span<double> x, Monitor* monitor) {
  Body& s = *body_;
  std::vector<double> kept;  // where x takes b's place, rungs above the first find b here
  if (s.ladder && overlap(b, x)) {
    kept.assign(b.begin(), b.end());
    b = kept;
  }
  const auto begin = [&] {
    return solver::begin_from(exec::Host(s.options.threads), std::size_t(s.rows), s.options.norm, b, x,
                              solver::rows_from_1, s.ranks());
  };
  const auto run = [&](bool from_zero, Monitor& watch) { return s.engine->solve(b, x, from_zero, watch); };
  return s.solve({begin, run, [&] { return solver::Ladder::Sides{b, x}; }}, monitor);
}

Result Solver::Body::solve(const Sides& sides, Monitor* monitor) {
  solver::Timer timer;
  agreed([&] {
    if (!factored) throw Error("solve comes after analyse and factor");
    require_all_here();
  });
  const bool from_zero = sides.begin();

  Monitor own;
  Monitor& watch = monitor ? *monitor : own;
  const auto first = [&] { return run(sides, from_zero, watch); };
  const auto first_of = [this](std::span<const double> b, std::span<double> x, int most, Monitor& m) {
    const bool zeros = std::all_of(x.begin(), x.end(), [](double v) { return v == 0; });
    const auto within = [&](bool from_zeros, Monitor& w) {
      const WithinIterations limit(*engine, most, options.max_iterations);
      return engine->solve(b, x, from_zeros, w);
    };
    return run({{}, within, {}}, zeros, m);
  };
  std::function<void(const CsrView&)> renew;
  CsrMatrix unlike;  // values that are no longer those of a symmetric matrix, of which a rung stood alone
  if (ladder && !first_is_current)
    renew = [&](const CsrView& a) {
      try {
        factor_first({a}, true);
      } catch (const NotSymmetric&) {
        unlike = copy_of(a);
      } catch (const Error&) {  // the next factor() says why
        factored = false;
      }
    };
  const auto climb = [&] {
    try {
      return ladder->solve({first, first_of, *engine, renew, sides.bring}, watch);
    } catch (...) {  // the first rung has values of the factor before, and no other stands
      if (!first_is_current && !ladder->stands()) factored = false;
      throw;
    }
  };
  Result r = ladder ? climb() : first();
  if (unlike.rows > 0) {  // with the ladder that climbed gone
    try {
      choose_anew({unlike});
      factor_first({unlike});
      factored = true;
    } catch (const Error&) {
      factored = false;
    }
  }
  if (!moved.empty()) r.notes.push_back(moved);
  if (sides.end) sides.end(r);
  ++counts.solves;
  seconds.solve = timer.seconds();
  r.seconds = seconds;
  r.bytes = bytes();
  return r;
}

Result Solver::Body::run(const Sides& sides, bool from_zero, Monitor& monitor) {
  // Ranks meet within the solve, too: one that fails there tells GPUs that wait for it, and here everybody.
  krylov::Outcome out;
  agreed([&] { out = sides.run(from_zero, monitor); });
  Result r = solver::result_of(out, std::size_t(rows_in_all));
  r.solver = options.solver == "gmres-ir" ? options.solver : plan.method;
  r.precond = plan.precond;
  const std::optional<triangular::Report> sweeps = engine->triangular();
  r.triangular = sweeps ? triangular::to_string(sweeps->used) : "none";
  r.ordering = plan.ordering;
  r.scaling = plan.form.scaling;
  r.device = engine->device();
  r.threads = exec::Host(options.threads).threads();
  r.notes = notes;
  r.notes.insert(r.notes.end(), out.notes.begin(), out.notes.end());
  if (out.values_lost > 0)
    r.notes.push_back(fmt::format("{} entries of matrix and factors were too small for {} and became zero",
                                  out.values_lost, to_string(plan.precision)));
  if (sweeps && !sweeps->seen.empty())
    r.notes.push_back(fmt::format("triangular auto: {} ({}{})", to_string(sweeps->used), sweeps->seen,
                                  sweeps->settled ? "" : "; not settled yet"));
  return r;
}

void Solver::apply(std::span<const double> r, std::span<double> z) {
  Body& s = *body_;
  const auto n = std::size_t(s.rows);
  s.agreed([&] {
    if (!s.factored) throw Error("apply comes after analyse and factor");
    s.require_all_here();
    if (r.size() != n || z.size() != n)
      throw Error(fmt::format("r and z must have {} entries; they have {} and {}", n, r.size(), z.size()));
  });
  if (n == 0 && !s.ranks()) return;
  // Ranks may exchange in it, and none may be an application ahead.
  s.agreed([&] { s.ladder&& s.ladder->stands() ? s.ladder->apply(r, z) : s.engine->apply(r, z); });
}

void Solver::set_tolerances(double rtol, double atol) {
  Options changed = body_->options;
  changed.rtol = rtol;
  changed.atol = atol;
  solver::require_numbers(changed);
  body_->options = std::move(changed);
  body_->engine->set_tolerances(rtol, atol);
  if (body_->ladder) body_->ladder->set_tolerances(rtol, atol);
}

void Solver::set_max_iterations(int most) {
  Options changed = body_->options;
  changed.max_iterations = most;
  solver::require_numbers(changed);
  body_->options = std::move(changed);
  body_->engine->set_max_iterations(most);
  if (body_->ladder) body_->ladder->set_max_iterations(most);
}

const std::vector<std::string>& Solver::notes() const { return body_->notes; }

solver::Engine& solver::Inside::engine(Solver& solver) { return *solver.body_->engine; }
bool solver::Inside::symmetric(const Solver& solver) { return solver.body_->all_symmetric; }

Costs Solver::costs() {
  if (!body_->factored) throw Error("costs comes after analyse and factor");
  if (body_->team.beside && precond::kind_of(body_->plan.precond) == "ras")
    throw Error("costs are those of one rank alone, and ras reaches into the rows of others");
  return body_->ladder && body_->ladder->stands() ? body_->ladder->costs() : body_->engine->costs();
}
Solver::Counts Solver::counts() const {
  Counts c = body_->counts;
  if (body_->ladder) c.analyses += body_->ladder->analyses();
  return c;
}
Index Solver::rows() const { return body_->rows; }
std::size_t Solver::bytes() const { return body_->bytes(); }
std::vector<std::string> Solver::explanation() const {
  std::vector<std::string> lines = body_->explanation;
  if (!body_->ladder) return lines;
  for (std::string& line : body_->ladder->plan()) lines.push_back(std::move(line));
  return lines;
}

Result solve(const CsrView& a, std::span<const double> b, std::span<double> x, const Options& options) {
  Solver solver(options);
  solver.setup(a);
  return solver.solve(b, x);
}

}  // namespace krilu
