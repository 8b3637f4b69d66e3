// SPDX-License-Identifier: Apache-2.0
// Systems of nonlinear equations F(x) = 0 by inexact Newton methods: each step solves J(x) d = -F(x) only as well as
// the step deserves (the forcing term), and goes along d as far as ||F|| falls.
//
//   struct Bratu { ... };                                  // one row at a time: krilu/equations.hpp
//   krilu::RowEquations equations(Bratu{n, lambda});
//   krilu::NewtonSolver newton(equations, options);        // pattern, storage: once
//   krilu::NewtonResult r = newton.solve(x);               // x holds the start on entry, the solution on return
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "krilu/communicator.hpp"
#include "krilu/equations.hpp"
#include "krilu/solver.hpp"

namespace krilu {

struct NewtonOptions {
  double rtol = 1e-8;  // ||F(x)||_2 <= max(rtol ||F(x0)||_2, atol)
  double atol = 0;
  double step_tolerance = 0;  // ends, as stagnated, where a step is not longer than this times ||x||_2
  int max_iterations = 50;    // steps

  /// How well a step's linear system is solved: the relative residual eta that ends its solve.
  ///   eisenstat-walker-1: eta = |  ||F|| - ||F_before + J d||  | / ||F_before||
  ///   eisenstat-walker-2: eta = 0.9 (||F|| / ||F_before||)^2
  ///   fixed:ETA
  /// Both of Eisenstat and Walker have their safeguard against falling too fast, and never ask for more than what
  /// remains to the target. Source: Eisenstat and Walker, Choosing the forcing terms in an inexact Newton method
  /// (1996).
  std::string forcing = "eisenstat-walker-2";
  double first_forcing = 0.3;  // of the first step
  double most_forcing = 0.9;

  std::string line_search = "backtracking";  // backtracking, none (full steps)

  /// auto: the equations' own Jacobian where they have one, else finite-differences. finite-differences: as many
  /// evaluations of F as the columns need colours. matrix-free: J v is a difference of two F in the linear solver, and
  /// only the preconditioner has a matrix, formed anew every `lag` steps.
  std::string jacobian = "auto";  // auto, own, finite-differences, matrix-free
  int lag = 3;                    // matrix-free: steps that a preconditioner serves

  /// Of the linear solves; rtol, atol and norm are not used. solver auto: bicgstab; precond auto: ilu0 on the host, and
  /// on a GPU jacobi, whose iterations are more and cost a quarter to an eighth there.
  Options linear{};
};

/// A line of the table that users of Newton's method know. The first, number 0, is the start. A line with the number of
/// the one before and of length 0 is a step that was not taken.
struct NewtonStep {
  int iteration = 0;           // steps taken
  double residual = 0;         // ||F||_2 after the step
  double length = 0;           // of the step along d: 1 is all of it
  int inner_iterations = 0;    // of the linear solver
  double forcing = 0;          // the relative residual that it was asked for
  double linear_residual = 0;  // the one that it reached
};

/// Seconds of wall time by part.
struct NewtonSeconds {
  double analyse = 0;   // pattern, colouring, storage; in the first solve's
  double residual = 0;  // evaluations of F, those of finite differences apart
  double jacobian = 0;  // assembly
  double factor = 0;    // forming preconditioners
  double linear = 0;    // linear solves
  double total = 0;     // of solve()
};

struct NewtonResult {
  Status status =
      Status::max_iterations;  // stagnated: no step along d lowers ||F||; diverged: F became NaN or infinite
  int iterations = 0;          // steps
  int inner_iterations = 0;
  int evaluations = 0;  // of F, those for differences apart
  double residual = 0;  // ||F(x)||_2 of the x that is returned: the least of the history
  double initial_residual = 0;
  std::vector<NewtonStep> history;
  std::string solver, precond, forcing, jacobian, device;  // what was used
  int threads = 1;
  NewtonSeconds seconds;
  std::size_t bytes = 0;
  std::vector<std::string> notes;
};

class NewtonSolver {
 public:
  /// `equations` must outlive the solver. Throws krilu::Error for options that it does not know, and for a Jacobian
  /// asked for that the equations do not have.
  /// Over ranks every call is collective: each rank's equations have its own rows (Equations::first, count), which
  /// together are all, in the order of ranks; options are the same on all but for threads and the GPU's number; what
  /// one rank finds wrong all throw. Equations and `progress` that throw have to do so on all ranks, or to end the
  /// others.
  explicit NewtonSolver(const Equations& equations, NewtonOptions options = {},
                        std::shared_ptr<Communicator> ranks = nullptr);
  ~NewtonSolver();
  NewtonSolver(NewtonSolver&&) noexcept;
  NewtonSolver& operator=(NewtonSolver&&) noexcept;

  /// From the start in x, of as many entries as rows are here, which holds the best x found on return. `progress` is
  /// called after every step; where it returns false, on any rank, the solve ends as interrupted. May be called again
  /// with other starts, and after the equations' parameters changed (not their pattern). Not converging is a status of
  /// the result. Throws krilu::Error for a wrong length, NaN or infinity in x, and where F is not finite at the start,
  /// or its Jacobian there has NaN or no pivot; where a later Jacobian has, the status is breakdown, and a note says
  /// so.
  NewtonResult solve(std::span<double> x, const std::function<bool(const NewtonStep&)>& progress = {});

  /// The tolerances of the next solves.
  void set_tolerances(double rtol, double atol);

  /// As given, with solver, preconditioner and device that `auto` chose.
  const NewtonOptions& options() const;
  /// Of the whole system.
  Index rows() const;
  std::size_t bytes() const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace krilu
