// SPDX-License-Identifier: Apache-2.0
// The public NewtonSolver: checks what it is given, and chooses the space.
#include <fmt/format.h>

#include <cmath>

#include "base/names.hpp"
#include "base/together.hpp"
#include "newton/core.hpp"
#include "newton/forcing.hpp"
#include "solver/engine.hpp"
#include "solver/requests.hpp"

namespace krilu {

namespace {

void require_tolerances(double rtol, double atol) {
  if (!(rtol >= 0) || !(atol >= 0)) throw Error("rtol and atol of Newton's method are numbers from 0");
}

void require_options(const Equations& equations, const NewtonOptions& o) {
  require_tolerances(o.rtol, o.atol);
  if (!(o.step_tolerance >= 0)) throw Error("the step tolerance of Newton's method is a number from 0");
  if (o.max_iterations < 0) throw Error("the number of Newton steps is 0 or more");
  newton::forcing_by_name(o.forcing);
  if (!(o.first_forcing > 0 && o.first_forcing < 1 && o.most_forcing > 0 && o.most_forcing < 1))
    throw Error("forcing terms are numbers between 0 and 1");
  require_name("line search", o.line_search, {"backtracking", "none"});
  require_name("Jacobian", o.jacobian, {"auto", "own", "finite-differences", "matrix-free"});
  if (o.jacobian == "own" && !equations.has_jacobian())
    throw Error("the equations have no Jacobian of their own: take finite-differences or matrix-free");
  if (o.lag < 1) throw Error("a preconditioner serves 1 step or more");
  if (o.linear.norm != Norm::true2) throw Error("the linear solves of Newton's method are held against norm true2");
  const Options& linear = o.linear;
  if (o.jacobian == "matrix-free" &&
      (linear.solver == "gmres-ir" || (linear.precision != "auto" && linear.precision != "fp64")))
    throw Error("a matrix-free Jacobian has no entries to round: solve in fp64, or assemble the Jacobian");
  if (linear.device.starts_with("cuda") && !equations.on_gpu())
    throw Error("device " + linear.device +
                ": these equations have no rows for a GPU: make them with DeviceRowEquations (krilu/equations.cuh), or "
                "take --device host");
}

/// Everything that has to be the same on all ranks.
std::string common_text(const Equations& equations, const NewtonOptions& o) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", equations.rows(), equations.has_jacobian(), o.rtol,
                     o.atol, o.step_tolerance, o.max_iterations, o.forcing, o.first_forcing, o.most_forcing,
                     o.line_search, o.jacobian, o.lag, solver::common_text(o.linear));
}

/// f() on all ranks: what one of them refuses, none does.
template <class F>
void agreed(Ranks* ranks, F f) {
  ranks ? together(*ranks, f) : f();
}

}  // namespace

struct NewtonSolver::Body {
  const Equations& equations;
  NewtonOptions options;
  std::shared_ptr<Communicator> ranks;
  std::unique_ptr<newton::Core> core;
};

NewtonSolver::NewtonSolver(const Equations& equations, NewtonOptions options, std::shared_ptr<Communicator> ranks) {
  agreed(ranks.get(), [&] { require_options(equations, options); });
  if (ranks) require_same(*ranks, "equations and options of Newton's method", common_text(equations, options));
  std::string& device = options.linear.device;
  if (device == "auto") device = equations.on_gpu() && solver::cuda_devices() > 0 ? "cuda" : "host";
  if (options.linear.solver == "auto") options.linear.solver = "bicgstab";
  if (options.linear.precond == "auto") options.linear.precond = device.starts_with("cuda") ? "jacobi" : "ilu0";
  const auto make_core = device.starts_with("cuda") ? newton::make_cuda_core
                         : device == "emulated"     ? newton::make_emulated_core
                                                    : newton::make_host_core;
  body_ = std::make_unique<Body>(Body{equations, options, ranks, make_core(equations, options, ranks)});
}
NewtonSolver::~NewtonSolver() = default;
NewtonSolver::NewtonSolver(NewtonSolver&&) noexcept = default;
NewtonSolver& NewtonSolver::operator=(NewtonSolver&&) noexcept = default;

NewtonResult NewtonSolver::solve(std::span<double> x, const std::function<bool(const NewtonStep&)>& progress) {
  agreed(body_->ranks.get(), [&] {
    const Index here = body_->equations.count();
    if (x.size() != std::size_t(here))
      throw Error(fmt::format("the start has {} entries, the equations {} rows", x.size(), here));
    solver::largest_of(exec::Host(body_->options.linear.threads), x, "the start", solver::rows_from_1);
  });
  return body_->core->solve(x, body_->options.rtol, body_->options.atol, progress);
}

void NewtonSolver::set_tolerances(double rtol, double atol) {
  require_tolerances(rtol, atol);
  body_->options.rtol = rtol;
  body_->options.atol = atol;
}

const NewtonOptions& NewtonSolver::options() const { return body_->options; }
Index NewtonSolver::rows() const { return body_->equations.rows(); }
std::size_t NewtonSolver::bytes() const { return body_->core->bytes(); }

}  // namespace krilu
