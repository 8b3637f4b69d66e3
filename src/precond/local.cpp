// SPDX-License-Identifier: Apache-2.0
#include "precond/local.hpp"

#include <vector>

#include "exec/emulated.hpp"
#include "krilu/error.hpp"
#include "precond/factors.hpp"
#include "precond/ilut.hpp"
#include "schedule/row_order.hpp"
#include "sparse/csr.hpp"
#include "triangular/sweep.hpp"

namespace krilu::precond {

namespace {

/// Rows part by part, or level by level through all parts where a strategy was asked for that needs it.
sparse::RowOrder sweep_order(const exec::Host& host, const LocalProblem& problem, const CsrView& factors,
                             triangular::Strategy strategy) {
  const bool symmetric = sparse::symmetry(factors).pattern;
  const CsrMatrix graph = symmetric ? CsrMatrix{} : sparse::adjacency(factors);
  const CsrView levels_of = symmetric ? factors : graph.view();
  if (strategy == triangular::Strategy::automatic || strategy == triangular::Strategy::serial)
    return schedule::by_parts(host, factors, levels_of, problem.offsets);
  return schedule::by_levels(host, factors, levels_of, {});
}

}  // namespace

void require_pivot(Index local, const LocalProblem& problem, const std::string& name) {
  if (local < 0) return;
  Trouble trouble;
  trouble.zero_pivot = problem.caller_row(local);
  require_no_trouble(trouble, name, {});
}

template <class Space, class T>
LocalSweeps<Space, T>::LocalSweeps(const Context<Space>& context, const LocalProblem& problem, const CsrView& factors)
    : space_(context.space) {
  const exec::Host host(space_.threads());
  order_ = sweep_order(host, problem, factors, context.strategy);
  pattern_ = std::make_shared<const sparse::SplitPattern>(space_, host, factors, order_);
  space_.enqueue([&, view = pattern_->view()](const exec::Host& h) {
    runner_ =
        std::make_shared<triangular::SliceRunner>(h, *pattern_, view.lower.column, view.upper.column, context.strategy);
  });
  space_.synchronise();

  const auto rows = std::size_t(problem.rows());
  std::vector<Index> place(std::size_t(context.caller.rows));
  for (Index k = 0; k < context.caller.rows; ++k) place[std::size_t(context.caller_row(k))] = k;
  std::vector<Index> from(rows), to(rows);
  for (std::size_t k = 0; k < rows; ++k) {
    const Index local = order_.rows[k];
    from[k] = place[std::size_t(problem.caller_row(local))];
    to[k] = problem.owned.empty() || problem.owned[std::size_t(local)] ? from[k] : -1;
  }
  from_ = space_.template allocate<Index>(rows);
  to_ = space_.template allocate<Index>(rows);
  space_.copy_in(from_, from.data(), rows);
  space_.copy_in(to_, to.data(), rows);
  rd_ = space_.template allocate<T>(rows);
  x_ = space_.template allocate<T>(rows);
}

template <class Space, class T>
void LocalSweeps<Space, T>::take(const CsrView& factors) {
  factors_ = {};
  try {
    factors_ = sparse::fill_values<T>(exec::Host(space_.threads()), pattern_, factors, order_);
  } catch (const Error&) {  // its row would be a local one, and of the factors
    throw Error("the factors of the preconditioner overflow: the matrix is scaled too badly for it");
  }
  for (auto* part : {&factors_.lower, &factors_.diagonal, &factors_.upper})
    *part = sparse::to_space(space_, std::move(*part));
  const auto rd = rd_.view();
  const auto pivot = factors_.diagonal.view();
  space_.for_each(
      rd_.size(), KRILU_FN(Index i) { rd[i] = T(1) / pivot[i]; });
}

template <class Space, class T>
void LocalSweeps<Space, T>::apply(const T* r, T* z) const {
  space_.enqueue([factors = factors_.view(), runner = runner_, rd = rd_.data(), x = x_.data(), from = from_.data(),
                  to = to_.data(), rows = rd_.size(), r, z](const exec::Host& host) {
    host.for_each(rows, [=](Index i) { x[i] = r[from[i]]; });
    triangular::solve_lu(*runner, factors, rd, x);
    host.for_each_range(rows, [=](Index begin, Index end) {
      for (Index i = begin; i < end; ++i)
        if (to[i] >= 0) z[to[i]] = x[i];
    });
  });
}

template <class Space, class T>
std::size_t LocalSweeps<Space, T>::bytes() const {
  return order_.bytes() + pattern_->bytes() + runner_->bytes() + factors_.bytes() + rd_.bytes() + x_.bytes() +
         from_.bytes() + to_.bytes();
}

template <class Space, class T>
Local<Space, T>::Local(const Context<Space>& context, std::shared_ptr<const sparse::PatternOf<Space>>,
                       const std::string& name)
    : context_(context), spec_(parse_spec(name)), name_(name) {
  const exec::Host host(context.space.threads());
  problem_ = local_problem(host, context.caller, spec_);
  description_ = describe(problem_, context.caller.rows);
  if (spec_.local != "ilut")
    sweeps_ = std::make_unique<LocalSweeps<Space, T>>(context_, problem_, problem_.pattern.view(problem_.rows()));
}

template <class Space, class T>
void Local<Space, T>::factor(const Values<Space, T>& a, double shift) {
  const exec::Host host(context_.space.threads());
  Buffer<double> value(problem_.pattern.columns.size());
  const bool where_they_are = shift == 0 && (spec_.local == "iluk" || spec_.local == "ilu0");
  if (!where_they_are) problem_.gather(host, a.caller, shift, value.data());
  CsrView local = problem_.pattern.view(problem_.rows());
  local.values = value.data();
  if (spec_.local == "ilut") {
    sweeps_.reset();
    context_.caller = a.caller;
    const IlutFactors f = ilut(host, local, problem_.offsets, {int(spec_.most), spec_.tolerance});
    require_pivot(f.zero_pivot, problem_, name_);
    sweeps_ = std::make_unique<LocalSweeps<Space, T>>(context_, problem_, f.factors);
    sweeps_->take(f.factors);
    return;
  }
  const Updated updated = spec_.local == "dilu" ? Updated::pivots : Updated::pattern;
  const Index zero_pivot = where_they_are ? eliminate(host, problem_.elimination(), problem_.pattern.source.data(),
                                                      a.caller.values, value.data())
                                          : eliminate(host, problem_.elimination(), updated, value.data());
  require_pivot(zero_pivot, problem_, name_);
  sweeps_->take(local);
}

template class LocalSweeps<exec::Host, double>;
template class LocalSweeps<exec::Emulated, double>;
template class Local<exec::Host, double>;
template class Local<exec::Emulated, double>;

}  // namespace krilu::precond
