// SPDX-License-Identifier: Apache-2.0
// What the public Solver takes where names were left to `auto`: device, method, preconditioner and ordering, by the
// facts of the matrix and, on a GPU, by what sweeps cost beside products; and the ladder above what was taken.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "exec/simd.hpp"
#include "precond/registry.hpp"
#include "precond/spec.hpp"
#include "solver/requests.hpp"
#include "solver/solver_body.hpp"

namespace krilu {

namespace {

/// On a GPU sweeps can cost so much beside products that they do not pay, few as the iterations become. How many DILU
/// saves is not known beforehand: from three fifths to three quarters, on the meshes tried.
constexpr double worth = 2.9;  // times that an iteration may take as long as Jacobi's
/// In each row the diagonal over the sum of the others from which Jacobi needs few iterations: its error falls by as
/// much each time [Varga 1962]. A transport equation with time steps or relaxation is so, a pressure equation is not.
constexpr double dominant = 1.05;
constexpr Index few_launches = 6;     // of an application: a lattice's, where sweeps cost little more than products
constexpr double bytes_a_ms = 3.5e9;  // that an H200 moves, as the other times here are one's

/// Of smaller systems a solve is no shorter with half of a basis' bytes, which on a host are in its cache. Nor where
/// code for a host converts by hand (bench/results/basis-16-bits.json).
constexpr std::int64_t least_rows_of_16_bits = 250000;
bool takes_16_bits(bool on_gpu, std::int64_t rows) {
  return (on_gpu || exec::reads_half) && rows >= least_rows_of_16_bits;
}

/// Milliseconds of what BiCGStab does with its vectors for each product: half of an iteration.
double vectors_of(Index rows) {
  constexpr double words = 19;  // that an iteration moves a row
  return words / 2 * sizeof(double) * rows / bytes_a_ms + 0.006;
}

}  // namespace

/// `auto` takes the first GPU where there is one, unless something was asked for that only the host has.
void Solver::Body::choose_device() {
  const std::string& d = options.device;
  on_gpu = d.starts_with("cuda");
  if (d == "auto" && !solver::wants_host(options) && solver::cuda_devices() > 0) on_gpu = true;
  if (d == "auto" && !on_gpu && options.triangular == "tiled")
    throw Error("triangular tiled is for GPUs, and this machine has none: take level-set or sync-free");
  if (on_gpu) {
    try {
      engine = solver::make_cuda_engine(options, d == "auto" ? 0 : solver::gpu_number(d), team);
    } catch (const Error& e) {
      if (d != "auto" || options.triangular == "tiled") throw;
      on_gpu = false;
      device_note = fmt::format("device auto: the host, since the GPU cannot be used ({})", e.what());
    }
  }
  if (!on_gpu)
    engine = d == "emulated" ? solver::make_emulated_engine(options, team) : solver::make_host_engine(options, team);
}

/// Known without building anything (what is larger is timed): on no lattice, blocks have some five colours more than
/// rows have neighbours (six in the plane), and a colour's launch takes so long beside its bytes (0.07 to 0.5 million
/// rows of real meshes on an H200). Building blocks takes as long as tens of iterations. Empty where they may pay. The
/// diagonal is that of the values that are analysed; as with CG and BiCGStab, those of a later factor() change no
/// choice.
std::string Solver::Body::why_sweeps_cannot_pay(const solver::Facts& facts, Offset nonzeros) const {
  constexpr Index largest = 600000;
  const double dominance = facts.diagonal.least_dominance;
  if (!may_weigh() || options.triangular != "auto" || plan.precision.arithmetic != Format::fp64) return {};
  if (!facts.symmetry.pattern || rows == 0 || rows > largest || nonzeros < 4.0 * rows) return {};
  const double neighbours = double(nonzeros) / rows - 1;
  const bool plane = neighbours < 4.5;
  const double launches = 2 * (plane ? 6 : neighbours + 5) - 1, launch = plane ? 0.0015 : 0.0021;  // ms
  const double bytes = 12.0 * nonzeros + 24.0 * rows, product = bytes / bytes_a_ms + 0.002;
  const double sweeps = launch * launches + bytes / bytes_a_ms;
  std::string why;
  if (dominance >= dominant)
    why = fmt::format(
        "no lattice, and each row's diagonal is at least {:.3g} times the rest of it, so that sweeps on a GPU have few "
        "iterations left to save",
        dominance);
  else if (sweeps > (worth - 1) * (product + vectors_of(rows)))
    why =
        "in so small a system, which is no lattice, the launches of sweeps on a GPU take longer than the iterations "
        "they save";
  return why.empty() || engine->on_lattice() ? std::string() : why;
}

/// After factor: not yet known, and worth the time.
bool Solver::Body::must_weigh() const {
  return may_weigh() && precond::is_triangular(plan.precond) && !weighed && engine->launches() > few_launches;
}

/// Both are timed.
bool Solver::Body::prefers_jacobi() {
  const Costs c = engine->costs();
  if (c.product <= 0 || c.application <= 0) return false;
  const double vectors = vectors_of(rows), ratio = (c.product + c.application + vectors) / (c.product + vectors);
  explanation.push_back(
      fmt::format("an iteration with {} takes {:.1f} times as long as one with jacobi ({:.3f} ms for its "
                  "sweeps, {:.3f} for a product)",
                  plan.precond, ratio, c.application, c.product));
  return ratio > worth;
}

/// Settles what was left to `auto`. Symmetric with a diagonal of one sign: CG with DIC. Otherwise BiCGStab with DILU.
/// Either with Jacobi where a GPU's sweeps cannot pay.
/// Zeros on the diagonal leave no incomplete factorisation here: GMRES without a preconditioner.
void Solver::Body::choose(const solver::Facts& facts, Offset nonzeros) {
  const sparse::DiagonalFacts& diagonal = facts.diagonal;
  const bool full = diagonal.missing == 0 && diagonal.zero == 0;
  const bool symmetric = facts.symmetry.values && facts.one_sign && full;
  const std::string first_bad =
      diagonal.first_bad < 0 ? std::string("one of another rank") : fmt::format("row {}", diagonal.first_bad + 1);
  plan = {};
  plan.rows_in_all = rows_in_all;
  plan.method = options.solver;
  plan.precond = options.precond;
  plan.ordering = options.ordering;
  const bool refinement = plan.method == "gmres-ir";
  if (refinement) plan.method = "gmres";
  plan.precision = precision_by_name(options.precision != "auto" ? options.precision : refinement ? "fp32" : "fp64");
  const auto chose = [&](const char* what, std::string& name, const char* value, const std::string& why) {
    name = value;
    explanation.push_back(fmt::format("{} {}: {}", what, value, why));
  };
  const bool openfoam = options.norm == Norm::openfoam;
  if (plan.method == "auto") {
    const bool asymmetric_precond = plan.precond == "dilu" || plan.precond == "ilu0" ||
                                    precond::sweeps_of(plan.precond) == precond::Sweeps::of_its_own;
    if (plan.precond == "lu" && !openfoam)
      chose("solver", plan.method, "gmres", "a few steps of it refine the direct solution");
    else if (symmetric && !asymmetric_precond)
      chose("solver", plan.method, "cg", "the matrix is symmetric with a diagonal of one sign");
    else if (full || openfoam)
      chose("solver", plan.method, "bicgstab",
            symmetric ? "the preconditioner asked for is not a symmetric one" : "the matrix is not symmetric definite");
    else
      chose("solver", plan.method, "gmres",
            fmt::format("{} rows have no diagonal entry or a zero one, where GMRES is the safest",
                        diagonal.missing + diagonal.zero));
  }
  const bool mixed = plan.precision.arithmetic != Format::fp64;
  plan.basis = plan.precision.arithmetic;
  if (options.basis == "auto" && plan.method == "gmres" && mixed && takes_16_bits(on_gpu, rows_in_all)) {
    plan.basis = Format::fp16;
    explanation.push_back("basis fp16: a step waits for the basis most of all");
  }
  if (options.basis != "auto") {
    const Format basis = format_by_name(options.basis);
    if (plan.method == "gmres" && mixed && basis != Format::fp64)
      plan.basis = basis;
    else if (plan.method == "gmres" || mixed || basis != Format::fp64)
      notes.push_back(fmt::format("basis {}: not used, since {}", options.basis,
                                  plan.method == "fgmres"  ? "fgmres keeps its bases in fp64"
                                  : plan.method != "gmres" ? plan.method + " has none"
                                  : mixed                  ? "the inner solves are computed in fp32"
                                                           : "all is computed in fp64"));
  }
  plan.restart = options.restart;
  if (!mixed) {
    if (refinement) {
      plan.restart = std::max(options.restart, options.inner_iterations > 0 ? options.inner_iterations : 100);
      notes.push_back(fmt::format("gmres-ir in fp64 is GMRES({}): there is nothing to refine", plan.restart));
    } else if (options.inner_iterations > 0 || options.outer_iterations > 0 || options.inner_tolerance > 0) {
      notes.push_back("inner-iters, outer-iters and inner-rtol: not used, since all is computed in fp64");
    }
  } else if (plan.method == "fgmres" && (options.inner_iterations > 0 || options.inner_tolerance > 0)) {
    notes.push_back("inner-iters and inner-rtol: not used, since fgmres has no inner solves");
  }
  if (plan.precond == "auto") {
    if (!full && options.shift == 0) {
      chose("preconditioner", plan.precond, "none",
            fmt::format("{} rows have no diagonal entry or a zero one, the first is {}; --shift would allow dilu",
                        diagonal.missing + diagonal.zero, first_bad));
      notes.push_back(
          fmt::format("precond auto: no preconditioner, since the diagonal has zeros (first in {})", first_bad));
    } else if (const std::string why = why_sweeps_cannot_pay(facts, nonzeros); !why.empty()) {
      chose("preconditioner", plan.precond, "jacobi", why);
    } else if (plan.method == "cg") {
      chose("preconditioner", plan.precond, "dic", "the symmetric partner of dilu");
    } else {
      chose("preconditioner", plan.precond, "dilu", "as good as ilu0 on flow problems, and cheaper to form");
    }
  }
  if (plan.method == "fgmres" && plan.precision.arithmetic != Format::fp64 &&
      (plan.precond == "none" || plan.precond == "jacobi")) {
    notes.push_back(
        fmt::format("precision {}: not used, since fgmres rounds its preconditioner alone, and {} has no factors",
                    to_string(plan.precision), plan.precond));
    plan.precision = {};
  }
  plan.triangular = precond::is_triangular(plan.precond);
  if (!on_gpu && plan.precond != "lu" && precond::can_be_rearranged(plan.precond)) {
    plan.form.scaling = options.scaling;
    const bool whole =
        plan.precond == "ilu0" ? options.scaling != "none" : precond::parse_spec(plan.precond).parts == 1;
    if (whole && options.ordering != "auto" && plan.precision.arithmetic == Format::fp64)
      plan.form.ordering = options.ordering;
    if (plan.rearranged()) plan.triangular = false;
  }
  const bool factors_its_own = plan.precond == "lu" || precond::sweeps_of(plan.precond) == precond::Sweeps::of_its_own;
  const auto not_used = [&](const std::string& what, const std::string& why) {
    notes.push_back(fmt::format("{}: not used, since {} {}", what, plan.precond, why));
  };
  if (options.shift != 0 && (plan.precond == "jacobi" || plan.precond == "none" || plan.precond == "lu"))
    not_used(fmt::format("shift {}", options.shift), plan.precond == "lu" ? "exchanges rows" : "has no factors");
  if (plan.precond == "lu" && options.scaling != "none") not_used("scaling " + options.scaling, "has its own");
  if (plan.ordering == "auto") {
    if (!on_gpu)
      chose("ordering", plan.ordering, "natural", "the host works fastest on it");
    else if (plan.triangular)
      chose("ordering", plan.ordering, "block-multicolour", "few levels, at nearly natural order's convergence");
    else
      chose("ordering", plan.ordering, "natural", "nothing here depends on it");
  } else if (plan.ordering != "natural" &&
             (on_gpu ? !plan.triangular : factors_its_own && plan.form.ordering == "natural")) {
    not_used("ordering " + plan.ordering, plan.precond == "lu" ? "has its own" : "has no sweeps that depend on it");
    plan.ordering = "natural";
  }
}

/// What auto chose becomes the first rung where nothing else was named.
void Solver::Body::put_up_ladder(const CsrView& a, const solver::Facts& facts) {
  if (ladder) counts.analyses += ladder->analyses();
  ladder.reset();
  if (!solver::Ladder::serves(options) || a.rows == 0 || ranks()) return;
  std::vector<Index> missing;
  for (Index i = 0; i < a.rows && Index(missing.size()) < facts.diagonal.missing; ++i)
    if (!std::binary_search(a.columns + a.offsets[i], a.columns + a.offsets[i + 1], i)) missing.push_back(i);
  Options first = options;
  first.solver = plan.method;
  first.precond = plan.precond;
  ladder = std::make_unique<solver::Ladder>(options, first, on_gpu, facts, a.rows, std::move(missing));
  engine->set_patience(ladder->patience());
}

}  // namespace krilu
