// SPDX-License-Identifier: Apache-2.0
// The ladder: what `solver auto` with `precond auto` does where its first choice does not arrive. A rung is
// a set of options, run by a Solver of its own on the caller's matrix from the best x so far; it watches its own rate
// (krylov::Patience) and gives up where it would not arrive. Nothing is looked at beforehand but what the first choice
// looks at anyway, so that easy systems pay nothing:
//
//   1  what auto chose: CG with DIC, or BiCGStab with DILU; left out where diagonals are zero
//      and nothing shifts them, but for systems of so few rows that GMRES ends within one cycle
//      Where A's columns sum to zero and b has a mean, all of this for b without it: the last rungs then
//   2  GMRES(50) with ILUT(20, 0.003) in a better form: rows and columns scaled, in RCM order. Where diagonals are zero
//      or next to it, or a pivot was, scaled and permuted for the maximum product on the diagonal; where a pivot is
//      zero even so, rungs above take natural order
//   3  GMRES(100) with ILUT(50, 0.001), where the one before gained something
//   4  GMRES(100) with ILU(1), unsymmetric matrices as they are: systems of several unknowns a cell
//   5  GMRES(100) with ILUT(100, 0.0001), in the form of 2
//   6  a sparse LU factorisation, refined by GMRES
//   7  where that is too large, or singular, or there is none, GMRES(200) with ILUT(300, 0.00001)
//
// On a GPU the first rung runs there, and is given ten times as long, since an iteration there costs far less than
// on the cores that would take over; the rungs above run on these.
//
// Budgets are counted in iterations, never in seconds: on one thread the same system climbs the same rungs.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "krilu/solver.hpp"
#include "krylov/control.hpp"
#include "solver/engine.hpp"
#include "solver/plan.hpp"

namespace krilu::solver {

class Ladder {
 public:
  /// Whether these options leave the choice to a ladder.
  static bool serves(const Options& options);

  /// first: what auto chose, by name; on_gpu: it runs there. missing_diagonal: rows whose diagonal is not stored,
  /// ascending.
  Ladder(const Options& asked, const Options& first, bool on_gpu, const Facts& facts, Index rows,
         std::vector<Index> missing_diagonal);

  /// When the first rung gives up.
  krylov::Patience patience() const { return patience_; }
  /// The rungs above the first, for people, a line each.
  std::vector<std::string> plan() const;
  /// Whether a rung above the first was reached, which factor and solve then use at once.
  bool stands() const { return rung_ != nullptr; }
  /// Takes new values for that rung. False where they cannot be factored there: the ladder begins anew.
  bool factor(const CsrView& a);
  void set_tolerances(double rtol, double atol);
  void set_max_iterations(int most) { asked_.max_iterations = most; }
  Costs costs() const { return rung_->costs(); }
  void apply(std::span<const double> r, std::span<double> z) { rung_->apply(r, z); }
  std::size_t bytes() const { return rung_ ? rung_->bytes() : 0; }
  /// Of rungs above the first, so far.
  int analyses() const { return analyses_; }

  struct Sides {
    std::span<const double> b;
    std::span<double> x;
  };
  /// What the ladder climbs from.
  struct Ground {
    std::function<Result()> first;  // runs the first rung on b and x
    /// On another b, in host memory as x is, within so many iterations.
    std::function<Result(std::span<const double> b, std::span<double> x, int most, Monitor&)> first_of;
    const Engine& engine;  // the first rung's
    /// Gives the first rung the values that a rung above has; empty where it has them.
    std::function<void(const CsrView&)> renew = {};
    /// b and x, with the guess or the first rung's iterate in it, in host memory. Asked for once, by the first rung
    /// that works there.
    std::function<Sides()> bring;
  };
  /// x is the guess on entry, the best iterate on return.
  Result solve(const Ground& ground, Monitor& monitor);

 private:
  struct Step;
  class Climb;
  std::vector<Step> steps() const;
  Options options_of(const Step& step) const;
  /// For people: "gmres(50) with ilut:20,0.003, scaling both".
  std::string method_of(const Options& options) const;
  /// arguments_of, and the device where it is not the one that was asked for.
  std::string straight_to(const Options& options) const;

  Options asked_, first_;
  bool on_gpu_;
  Index rows_;
  std::vector<Index> missing_diagonal_;
  bool zeros_;  // on the diagonal, stored or not
  bool symmetric_;
  bool skips_first_;
  krylov::Patience patience_;
  /// Of what ILUT factors; one that met a zero pivot gives way to the next.
  enum class Form { balanced, paired, paired_natural };
  Form form_;
  std::unique_ptr<Solver> rung_;
  Options rung_options_;
  std::size_t reached_ = 0;  // its step
  bool closed_ = false;      // columns summed to zero where that was last looked at
  int analyses_ = 0;
};

/// The options of the command that name this solver and preconditioner: "--solver gmres --restart 50 --precond ilu0".
std::string arguments_of(const Options& options);

}  // namespace krilu::solver
