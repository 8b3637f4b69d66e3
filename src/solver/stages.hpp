// SPDX-License-Identifier: Apache-2.0
// The stages of a solve in mixed precision: what inner solves compute with, from the precision that was asked for up to
// double, and the parts of each. Raised first is what costs least: the basis, then the matrix, then the factors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/together.hpp"
#include "krylov/make_method.hpp"
#include "krylov/stage.hpp"
#include "precond/in_single.hpp"
#include "precond/jacobi.hpp"
#include "solver/links.hpp"
#include "solver/plan.hpp"
#include "sparse/scaling.hpp"

namespace krilu::solver {

template <class Space, class System>
class Stages {
 public:
  /// member: the space that methods form their sums in; ranks and links: of a team, or null.
  Stages(Space space, Space member, Ranks* ranks, Links<Space>* links, const Plan& plan, const Options& options,
         Index rows);

  /// Takes the values of a, which the system holds in double and M was factored for. What the first stage needs is
  /// rounded here, the rest when it is needed. Both outlive the stages.
  void factor(const CsrView& a, const System& system, precond::Preconditioner<Space, double>& M);
  /// Part of factor(): public because nvcc takes kernels in public members only.
  void fold(const precond::Preconditioner<Space, double>& M);
  /// Before each solve: begins with the stage that the last one ended in. A: the product in double, alive meanwhile.
  void begin(const sparse::Operator<Space, double>& A) {
    A_ = &A;
    stage_.reset();
    next_ = reached_;
  }
  /// The precision that the next solve begins in, where an earlier one raised it; else empty.
  std::string raised() const { return reached_ > 0 ? name_of(levels_[reached_]) : std::string(); }
  /// The next stage, null after the last.
  krylov::Stage<Space, double>* next();

  /// Entries of matrix and factors that rounding made zero, in all that was rounded.
  std::int64_t lost() const { return lost_; }
  std::size_t bytes() const;
  /// An iteration's parts as they are now; null where they are the double ones.
  const sparse::Operator<Space, float>* product() const { return product_; }
  precond::Preconditioner<Space, float>* preconditioner() const { return rounded_; }

 private:
  struct Level {
    Format basis, matrix, factors;
    int inner, goes;  // limits
  };
  std::vector<Level> ladder() const;
  std::string name_of(const Level& level) const;
  krylov::StagePolicy policy_of(const Level& level) const;
  static constexpr int paper_inner = 100, paper_outer = 10;
  bool is_gmres() const { return plan_.method == "gmres"; }
  bool has_factors() const { return plan_.precond != "none" && plan_.precond != "jacobi"; }
  bool is_refinement() const { return options_.solver == "gmres-ir"; }
  const double* row() const { return scaled_ ? row_.data() : nullptr; }
  const double* column() const { return scaled_ || folded_ ? column_.data() : nullptr; }
  sparse::Rounding rounding(Format storage) const { return {storage, row(), column(), count_.data(), folded_}; }
  /// An inner solve's at least.
  int basis_vectors() const { return std::max(options_.restart, is_refinement() ? levels_.front().inner : 0); }
  bool agree(sparse::Scales& scales, std::size_t rows) const;
  /// Makes what a level computes with, and lets go of what it does not need.
  void prepare(std::size_t number);
  krylov::Method<Space, double>& method_in_double(bool flexible);

  Space ex_, member_;
  Ranks* ranks_;
  Links<Space>* links_;
  Plan plan_;
  Options options_;
  Index rows_;
  std::vector<Level> levels_;
  static constexpr std::size_t nothing = std::size_t(-1);
  std::size_t next_ = 0, reached_ = 0, prepared_ = nothing;  // prepared_: the level whose parts stand

  const System* system_ = nullptr;
  precond::Preconditioner<Space, double>* M_ = nullptr;
  const sparse::Operator<Space, double>* A_ = nullptr;

  bool scaled_ = false;
  bool folded_ = false;  // C is what M asked for
  double unit_ = 1;      // of R's entries
  exec::Array<double> row_, column_;
  exec::Array<std::int64_t> count_;
  std::int64_t lost_ = 0;
  std::map<Format, sparse::Rounded<Space>> matrices_;
  std::map<Format, std::unique_ptr<precond::Preconditioner<Space, float>>> factors_;
  const sparse::Operator<Space, float>* product_ = nullptr;
  precond::Preconditioner<Space, float>* rounded_ = nullptr;
  std::unique_ptr<precond::InSingle<Space>> in_single_;
  std::unique_ptr<krylov::Method<Space, float>> low_;
  Format low_basis_ = Format::fp32;
  std::unique_ptr<krylov::Method<Space, double>> high_;
  bool flexible_ = false;  // whether high_ is FGMRES where GMRES was asked for
  std::shared_ptr<krylov::Kept<Space, float>> low_kept_;
  std::shared_ptr<krylov::Kept<Space, double>> high_kept_;
  std::unique_ptr<krylov::Stage<Space, double>> stage_;
};

template <class Space, class System>
Stages<Space, System>::Stages(Space space, Space member, Ranks* ranks, Links<Space>* links, const Plan& plan,
                              const Options& options, Index rows)
    : ex_(std::move(space)),
      member_(std::move(member)),
      ranks_(ranks),
      links_(links),
      plan_(plan),
      options_(options),
      rows_(rows),
      levels_(ladder()),
      row_(ex_.template allocate<double>(0)),
      column_(ex_.template allocate<double>(0)),
      count_(ex_.template allocate<std::int64_t>(1)),
      low_kept_(std::make_shared<krylov::Kept<Space, float>>(member_)),
      high_kept_(std::make_shared<krylov::Kept<Space, double>>(member_)) {}

template <class Space, class System>
auto Stages<Space, System>::ladder() const -> std::vector<Level> {
  constexpr int most = 2000, more_outer = 40;
  // Methods that begin anew with each go get a share of all iterations, so that there are some left for higher levels.
  const int many = std::min(most, std::max(50, options_.max_iterations / 8));
  const Format asked = plan_.precision.storage;
  const bool gmres = is_gmres();
  const int inner = options_.inner_iterations > 0 ? options_.inner_iterations
                    : is_refinement()             ? paper_inner
                    : gmres                       ? options_.restart
                                                  : many;
  const int goes = options_.outer_iterations > 0 ? options_.outer_iterations
                   : is_refinement()             ? paper_outer
                   : gmres                       ? most
                                                 : more_outer;
  std::vector<Level> all;
  if (plan_.method != "fgmres") {
    const Format f32 = Format::fp32;
    if (gmres && plan_.basis != f32) all.push_back({plan_.basis, asked, asked, inner, goes});
    if (asked != f32) {
      all.push_back({f32, asked, asked, inner, goes});
      if (has_factors()) all.push_back({f32, f32, asked, inner, goes});
    }
    all.push_back({f32, f32, f32, inner, goes});
  }
  const int unlimited = std::numeric_limits<int>::max();
  if (has_factors()) {
    const int cycle = is_refinement() ? std::max(options_.restart, inner) : options_.restart;
    if (plan_.method == "fgmres")
      all.push_back({Format::fp64, Format::fp64, asked, many, goes});
    else
      all.push_back({Format::fp64, Format::fp64, Format::fp32, gmres ? cycle : many, goes});
  }
  all.push_back({Format::fp64, Format::fp64, Format::fp64, unlimited, unlimited});
  return all;
}

template <class Space, class System>
std::string Stages<Space, System>::name_of(const Level& l) const {
  if (l.factors == Format::fp64) return "fp64";
  if (l.matrix == Format::fp64) return std::string("fp64 with its preconditioner in ") + to_string(l.factors);
  std::string name = to_string(Precision{Format::fp32, l.factors});
  if (l.matrix != l.factors) name += " with its matrix in fp32";
  if (is_gmres() && l.basis != Format::fp32) name += std::string(" with its basis in ") + to_string(l.basis);
  return name;
}

template <class Space, class System>
krylov::StagePolicy Stages<Space, System>::policy_of(const Level& l) const {
  krylov::StagePolicy p;
  p.name = name_of(l);
  p.most_inner = l.inner;
  p.most_goes = l.goes;
  p.refines = l.factors != Format::fp64;
  // In double each cycle is a go of its own: one that gains little leaves the rest to factors that are not rounded.
  p.keeps = is_gmres() && l.matrix != Format::fp64;
  // A go more has an end more, which takes as long as 1 to 3 iterations on the host: less than it saves where digits
  // are slow to come (bench/results/opening-goes.json). On a GPU no go that was measured opens.
  constexpr int enough_goes = 6;
  if (is_gmres() && std::is_same_v<Space, exec::Host> && !(options_.inner_tolerance > 0) && l.goes >= enough_goes) {
    p.opening = 0.1;
    p.slow = 12;
  }
  if (l.matrix == Format::fp64) return p;
  constexpr int early = 50;  // a precision that fails is known then; what it has learnt stays, if the basis has room
  if (p.keeps && l.inner >= 2 * early) p.first_look = early;
  // The least reduction that a first go is asked for, and what may be asked of later ones: some digits short of the
  // format's own, which the condition of A takes.
  const Format basis = is_gmres() ? l.basis : Format::fp32;
  // Not with a matrix of 16 bits or a basis in bf16, where the last digits of a go are claimed rather than reached.
  p.fills = l.matrix == Format::fp32 && basis != Format::bf16;
  if (l.matrix == Format::bf16 || basis == Format::bf16) {
    p.floor = 3e-2;
    p.least_floor = 1e-3;
  } else if (l.matrix == Format::fp16) {
    p.floor = 1e-2;
    p.least_floor = 1e-4;
  } else if (basis == Format::fp16) {
    p.floor = 1e-3;
    p.least_floor = 1e-4;
    p.truth = 0.65;  // what goes lose takes more iterations than a basis in fp32, which loses nothing, would pay for
  } else {
    p.floor = 1e-5;
    p.least_floor = 1e-6;
  }
  if (options_.inner_tolerance > 0) {
    p.floor = options_.inner_tolerance;
    p.least_floor = 0;
  }
  return p;
}

template <class Space, class System>
void Stages<Space, System>::factor(const CsrView& a, const System& system, precond::Preconditioner<Space, double>& M) {
  stage_.reset();
  in_single_.reset();
  matrices_.clear();
  factors_.clear();
  product_ = nullptr;
  rounded_ = nullptr;
  lost_ = 0;
  system_ = &system;
  M_ = &M;
  sparse::Scales scales = sparse::scales_for(exec::Host(ex_.threads()), a, plan_.precision.storage);
  if (M.reaches_other_ranks() && agree(scales, std::size_t(a.rows))) M.take_scales(scales.row, scales.column);
  scaled_ = !scales.row.empty();
  unit_ = scales.typical_row;
  if (scaled_) {
    row_ = ex_.template allocate<double>(scales.row.size());
    column_ = ex_.template allocate<double>(scales.column.size());
    system.copy_in(row_, scales.row);
    system.copy_in(column_, scales.column);
  }
  fold(M);
  prepare(reached_);
}

/// What M asks for goes into the matrix as it is rounded, which costs inner solves nothing. Those with a diagonal M are
/// of A M^-1 then, without a preconditioner: for GMRES, which asks for no M^-1 r by itself, while BiCGStab gains
/// nothing. CG wants symmetry, and FGMRES has its matrix in double. Not where A is scaled, as in fp16, to whose range
/// it has to be brought.
template <class Space, class System>
void Stages<Space, System>::fold(const precond::Preconditioner<Space, double>& M) {
  const auto fold = M.folds();
  const bool gains = is_gmres() || (plan_.method == "bicgstab" && !fold.all);
  folded_ = fold.scale && gains && !scaled_ && plan_.precision.storage != Format::fp16;
  if (!folded_) return;
  column_ = ex_.template allocate<double>(std::size_t(rows_));
  const auto to = column_.view();
  const double* const scale = fold.scale;
  ex_.for_each(
      column_.size(), KRILU_FN(Index i) { to[i] = scale[i]; });
}

/// All ranks scale, or none, from the same typical row. Whether they do.
template <class Space, class System>
bool Stages<Space, System>::agree(sparse::Scales& scales, std::size_t rows) const {
  double of[2] = {double(!scales.row.empty()), std::log2(scales.typical_row)};
  ranks_->sum(of);
  scales.typical_row = std::exp2(std::round(of[1] / ranks_->size()));
  if (of[0] > 0 && scales.row.empty()) {
    scales.row.assign(rows, 1.0);
    scales.column.assign(rows, 1.0);
  }
  return of[0] > 0;
}

template <class Space, class System>
void Stages<Space, System>::prepare(std::size_t number) {
  const Level& level = levels_[number];
  prepared_ = nothing;
  std::erase_if(matrices_, [&](const auto& m) { return m.first != level.matrix; });
  std::erase_if(factors_, [&](const auto& f) { return f.first != level.factors; });
  in_single_.reset();
  product_ = nullptr;
  rounded_ = nullptr;
  ex_.clear(count_);
  if (level.matrix != Format::fp64) {
    if (!matrices_.contains(level.matrix)) {
      sparse::Rounded<Space> rounded = system_->rounded(rounding(level.matrix));
      if (links_)
        rounded.product =
            std::make_unique<const Coupled<Space, float>>(std::move(rounded.product), *links_, row(), column());
      matrices_[level.matrix] = std::move(rounded);
    }
    product_ = matrices_[level.matrix].product.get();
    if (!low_ || (is_gmres() && low_basis_ != level.basis)) {
      low_.reset();
      low_ = krylov::make_method<Space, float>(member_, plan_.method, rows_, basis_vectors(), level.basis);
      low_basis_ = level.basis;
    }
  } else {
    low_.reset();
  }
  if (level.factors != Format::fp64) {
    if (!factors_.contains(level.factors)) {
      const auto a = matrices_.find(level.factors);
      factors_[level.factors] = M_->rounded(rounding(level.factors), a == matrices_.end() ? nullptr : a->second.matrix);
    }
    rounded_ = factors_[level.factors].get();
  }
  std::int64_t count = 0;
  ex_.copy_out(&count, count_, 1);
  lost_ += count;
  prepared_ = number;
}

template <class Space, class System>
krylov::Method<Space, double>& Stages<Space, System>::method_in_double(bool flexible) {
  if (!high_ || flexible_ != flexible) {
    high_.reset();
    high_ = krylov::make_method<Space, double>(member_, flexible ? "fgmres" : plan_.method, rows_, basis_vectors());
    flexible_ = flexible;
  }
  return *high_;
}

template <class Space, class System>
krylov::Stage<Space, double>* Stages<Space, System>::next() {
  if (next_ >= levels_.size()) return nullptr;
  const Level& level = levels_[next_];
  stage_.reset();
  if (next_ != prepared_) {
    // All ranks are here, and what one of them has no memory for, none goes on to.
    if (ranks_)
      together(*ranks_, [this] { prepare(next_); });
    else
      prepare(next_);
  }
  reached_ = next_++;
  const sparse::Rounding r = rounding(level.factors);
  member_.rehearse(rounded_ ? rounded_->trials_left() : M_->trials_left());
  low_kept_->iterations.renew();
  high_kept_->iterations.renew();
  if (level.matrix != Format::fp64) {
    stage_ = std::make_unique<krylov::Refinement<Space, double, float>>(
        member_, policy_of(level), rows_, *low_, *product_, *rounded_, r.row, r.column, low_kept_);
  } else {
    precond::Preconditioner<Space, double>* M = M_;
    if (rounded_) {
      in_single_ = std::make_unique<precond::InSingle<Space>>(M_->reaches_other_ranks() ? member_ : ex_,
                                                              std::size_t(rows_), *rounded_, r.row, r.column, unit_);
      M = in_single_.get();
    }
    // To a GMRES in double rounding in M is a preconditioner that changes from step to step: x made of M (V y) would be
    // off by |M^-1| times it, x made of what M gave is not.
    stage_ = std::make_unique<krylov::Direct<Space, double>>(
        member_, policy_of(level), method_in_double(is_gmres() && rounded_), *A_, *M, high_kept_);
  }
  return stage_.get();
}

template <class Space, class System>
std::size_t Stages<Space, System>::bytes() const {
  std::size_t b = row_.bytes() + column_.bytes() + count_.bytes();
  for (const auto& [format, m] : matrices_) b += m.bytes;
  for (const auto& [format, f] : factors_) b += f->bytes();
  if (in_single_) b += in_single_->bytes();
  if (low_) b += low_->bytes();
  if (high_) b += high_->bytes();
  return b + (stage_ ? stage_->bytes() : 0);
}

}  // namespace krilu::solver
