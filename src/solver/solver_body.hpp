// SPDX-License-Identifier: Apache-2.0
// What a Solver holds, and the steps that are the same wherever the caller's arrays stand: solver.cpp has them, and the
// calls with arrays in host memory; solver_there.cpp those with arrays on the GPU; solver_auto.cpp what `auto` takes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/together.hpp"
#include "krilu/error.hpp"
#include "krilu/solver.hpp"
#include "solver/engine.hpp"
#include "solver/ladder.hpp"
#include "solver/plan.hpp"

namespace krilu {

struct Solver::Body {
  Options options;
  Team team;
  std::unique_ptr<solver::Engine> engine;
  solver::Plan plan;
  Counts counts;
  Index rows = 0;
  std::int64_t rows_in_all = 0;  // of all ranks
  bool all_symmetric = false;    // likewise
  std::uint64_t pattern = 0;
  bool analysed = false, factored = false;
  Seconds seconds;
  std::vector<std::string> notes, explanation;

  bool first_is_current = false;  // the engine has the values of the last factor(), not a rung of the ladder alone
  bool weighed = false;           // whether sweeps pay, since the last analysis
  bool values_seen = false;       // setup: factor follows analyse, with the same values
  bool on_gpu = false;

  std::string format;       // of products, as it was explained
  std::string device_note;  // why `auto` did not take the GPU that is there

  std::unique_ptr<solver::Ladder> ladder;  // where all is left to krilu, since the last analysis

  CsrMatrix pattern_here;  // of a matrix whose values are on the GPU; empty where the caller has it
  std::string moved;       // what of that matrix was brought to the host, and why, since the last factor()

  /// A matrix as it is handed over: in host memory, or with its values on the solver's GPU and `a` without them.
  struct Given {
    CsrView a;
    std::optional<DeviceSpan<const double>> there = {};
    bool has_values() const { return there ? there->size > 0 : a.values != nullptr; }
  };
  /// b and x of a solve, wherever they are.
  struct Sides {
    std::function<bool()> begin;  // checks them; true where x holds zeros
    std::function<krylov::Outcome(bool from_zero, Monitor&)> run;
    std::function<solver::Ladder::Sides()> bring;  // as Ladder::Ground has it
    std::function<void(Result&)> end = {};         // gives back what was brought
  };

  Ranks* ranks() const { return team.ranks.get(); }
  /// f() on every rank: what one of them cannot do, none does.
  template <class F>
  void agreed(F f) const {
    ranks() ? together(*ranks(), f) : f();
  }
  /// A rank that left in the middle of what all do stands at another place than the others.
  void require_all_here() const {
    if (engine->gave_up())
      throw Error("a rank left the last solve in the middle, and the others lost it: analyse the matrix again (setup)");
  }
  void choose_device();
  void analyse(const Given& given);
  solver::Facts in_all(const CsrView& a, solver::Facts facts);
  void choose(const solver::Facts& facts, Offset nonzeros);
  void put_up_ladder(const CsrView& a, const solver::Facts& facts);
  void setup(const Given& given);
  void factor(const Given& given);
  void choose_anew(const Given& given);
  void factor_first(const Given& given, bool on_the_ladder = false);
  void form(const Given& given);
  /// Whether Jacobi may take the place of sweeps in coloured blocks: nothing was named that is for sweeps alone.
  bool may_weigh() const {
    return on_gpu && !ranks() && options.precond == "auto" && options.ordering == "auto" && options.shift == 0;
  }
  std::string why_sweeps_cannot_pay(const solver::Facts& facts, Offset nonzeros) const;
  bool must_weigh() const;
  bool prefers_jacobi();
  Result solve(const Sides& sides, Monitor* monitor);
  Result run(const Sides& sides, bool from_zero, Monitor& monitor);
  std::size_t bytes() const { return engine->bytes() + (ladder ? ladder->bytes() : 0) + pattern_here.bytes(); }

  // Arrays on the GPU (solver_there.cpp).
  solver::There& there() const;
  /// Throws krilu::Error where the array is not one of so many entries that the engine can take where it stands.
  template <class T>
  void admit(const DeviceSpan<T>& array, std::size_t entries, const char* what) const {
    admit(array.data, array.size, entries, alignof(T), array.stream, what);
  }
  void admit(const void* array, std::size_t size, std::size_t entries, std::size_t alignment, void* stream,
             const char* what) const;
  bool begin_there(const DeviceSpan<const double>& b, const DeviceSpan<double>& x) const;
  bool factor_rung_there(const Given& given);
};

}  // namespace krilu
