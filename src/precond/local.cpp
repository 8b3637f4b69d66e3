// SPDX-License-Identifier: Apache-2.0
#include "precond/local.hpp"

#include <tuple>
#include <utility>
#include <vector>

#include "exec/emulated.hpp"
#include "krilu/error.hpp"
#include "precond/factors.hpp"
#include "precond/ilut.hpp"
#include "precond/jacobi.hpp"
#include "schedule/row_order.hpp"
#include "sparse/csr.hpp"
#include "triangular/sweep.hpp"

namespace krilu::precond {

namespace {

/// Rows part by part, or level by level through all parts where a strategy was asked for that needs it; and the height
/// of slices that suits the former, so that every strategy adds the same numbers in the same sequence.
std::pair<sparse::RowOrder, int> sweep_order(const exec::Host& host, const LocalProblem& problem,
                                             const CsrView& factors, triangular::Strategy strategy) {
  const bool symmetric = sparse::symmetry(factors).pattern;
  const CsrMatrix graph = symmetric ? CsrMatrix{} : sparse::adjacency(factors);
  const CsrView levels_of = symmetric ? factors : graph.view();
  sparse::RowOrder by_parts = schedule::by_parts(host, factors, levels_of, problem.offsets);
  constexpr int chosen_later = 0;
  if (strategy == triangular::Strategy::automatic || strategy == triangular::Strategy::serial)
    return {std::move(by_parts), chosen_later};
  const int height = sparse::SplitPattern(host, host, factors, by_parts).height();
  return {schedule::by_levels(host, factors, levels_of, {}), height};
}

}  // namespace

void require_pivot(Index local, const LocalProblem& problem, const std::string& name) {
  if (local < 0) return;
  Trouble trouble;
  trouble.zero_pivot = problem.caller_row(local);
  require_no_trouble(trouble, name, {});
}

template <class Space>
LocalLayout<Space>::LocalLayout(const Context<Space>& context, const LocalProblem& problem, const CsrView& factors) {
  const Space& space = context.space;
  const exec::Host host(space.threads());
  int height = 0;
  std::tie(order, height) = sweep_order(host, problem, factors, context.strategy);
  pattern = std::make_shared<const sparse::SplitPattern>(space, host, factors, order, height);
  space.enqueue([&, view = pattern->view()](const exec::Host& h) {
    runner =
        std::make_shared<triangular::SliceRunner>(h, *pattern, view.lower.column, view.upper.column, context.strategy);
  });
  space.synchronise();

  const auto rows = std::size_t(problem.rows());
  std::vector<Index> place(std::size_t(context.caller.rows));
  for (Index k = 0; k < context.caller.rows; ++k) place[std::size_t(context.caller_row(k))] = k;
  std::vector<Index> source(rows), target(rows);
  for (std::size_t k = 0; k < rows; ++k) {
    const Index local = order.rows[k];
    source[k] = place[std::size_t(problem.caller_row(local))];
    target[k] = problem.owned.empty() || problem.owned[std::size_t(local)] ? source[k] : -1;
  }
  from = space.template allocate<Index>(rows);
  to = space.template allocate<Index>(rows);
  space.copy_in(from, source.data(), rows);
  space.copy_in(to, target.data(), rows);
}

template <class Space>
std::size_t LocalLayout<Space>::bytes() const {
  return order.bytes() + pattern->bytes() + runner->bytes() + from.bytes() + to.bytes();
}

template <class Space, class T, class S>
LocalSweeps<Space, T, S>::LocalSweeps(Space space, std::shared_ptr<const LocalLayout<Space>> layout,
                                      sparse::SplitMatrix<T, S> factors, exec::Array<T> rd)
    : space_(std::move(space)),
      layout_(std::move(layout)),
      factors_(std::move(factors)),
      rd_(std::move(rd)),
      x_(space_.template allocate<T>(rd_.size())) {}

template <class Space, class T, class S>
void LocalSweeps<Space, T, S>::apply(const T* r, T* z) const {
  space_.enqueue([factors = factors_.view(), runner = layout_->runner, rd = rd_.data(), x = x_.data(),
                  from = layout_->from.data(), to = layout_->to.data(), rows = rd_.size(), r,
                  z](const exec::Host& host) {
    host.for_each(rows, [=](Index i) { x[i] = r[from[i]]; });
    triangular::solve_lu(*runner, factors, rd, x);
    host.for_each_range(rows, [=](Index begin, Index end) {
      for (Index i = begin; i < end; ++i)
        if (to[i] >= 0) z[to[i]] = x[i];
    });
  });
}

/// Of M = (I + L)(D + U): R M C = (I + R L R^-1)(R D C + R U C), R and C those of the rows that local ones are copies
/// of.
template <class Space, class T, class S>
template <class To>
LocalSweeps<Space, float, To> LocalSweeps<Space, T, S>::rounded(const sparse::Rounding& rounding) const {
  const auto rows = rd_.size();
  exec::Array<double> row, inverse, column;
  sparse::Rounding lower = rounding, upper = rounding;
  const auto taken = [&](const double* scale, bool inverted) {
    auto out = space_.template allocate<double>(scale ? rows : 0);
    const auto view = out.view();
    const Index* from = layout_->from.data();
    if (scale)
      space_.for_each(
          rows, KRILU_FN(Index i) { view[i] = inverted ? 1 / scale[from[i]] : scale[from[i]]; });
    return out;
  };
  row = taken(rounding.row, false);
  inverse = taken(rounding.row, true);
  column = taken(rounding.column, false);
  lower.row = upper.row = row.data();
  lower.column = inverse.data();
  upper.column = column.data();
  auto rd = rounded_reciprocals(space_, rd_, upper);
  const auto narrow = sparse::NarrowColumns::of(space_, *layout_->pattern);
  const sparse::SplitView<double> f = factors_.view();
  auto below =
      sparse::rounded_matrix<To>(space_, layout_->pattern, {f.pattern, f.lower, nullptr, nullptr}, lower, narrow);
  auto above =
      sparse::rounded_matrix<To>(space_, layout_->pattern, {f.pattern, nullptr, nullptr, f.upper}, upper, narrow);
  space_.synchronise();  // the scales go
  below.upper = std::move(above.upper);
  return {space_, layout_, std::move(below), std::move(rd)};
}

template <class Space, class T>
Local<Space, T>::Local(const Context<Space>& context, std::shared_ptr<const sparse::PatternOf<Space>>,
                       const std::string& name)
    : context_(context), spec_(parse_spec(name)), name_(name) {
  const exec::Host host(context.space.threads());
  problem_ = local_problem(host, context.caller, spec_);
  description_ = describe(problem_, context.caller.rows);
  if (spec_.local != "ilut")
    layout_ = std::make_shared<const LocalLayout<Space>>(context_, problem_, problem_.pattern.view(problem_.rows()));
}

template <class Space, class T>
void Local<Space, T>::take(const CsrView& factors) {
  const Space& space = context_.space;
  sweeps_.reset();
  sparse::SplitMatrix<T> values;
  try {
    values = sparse::fill_values<T>(exec::Host(space.threads()), layout_->pattern, factors, layout_->order);
  } catch (const Error&) {  // its row would be a local one, and of the factors
    throw Error("the factors of the preconditioner overflow: the matrix is scaled too badly for it");
  }
  for (auto* part : {&values.lower, &values.diagonal, &values.upper}) *part = sparse::to_space(space, std::move(*part));
  auto reciprocals = space.template allocate<T>(std::size_t(factors.rows));
  const auto rd = reciprocals.view();
  const auto pivot = values.diagonal.view();
  space.for_each(
      reciprocals.size(), KRILU_FN(Index i) { rd[i] = T(1) / pivot[i]; });
  sweeps_ = std::make_unique<LocalSweeps<Space, T>>(space, layout_, std::move(values), std::move(reciprocals));
}

template <class Space, class T>
std::unique_ptr<Preconditioner<Space, float>> Local<Space, T>::rounded(
    const sparse::Rounding& rounding, const std::shared_ptr<const sparse::RoundedMatrix>&) const {
  return with_format(rounding.storage, [&](auto s) -> std::unique_ptr<Preconditioner<Space, float>> {
    using S = decltype(s);
    return std::make_unique<RoundedLocal<Space, S>>(sweeps_->template rounded<S>(rounding));
  });
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
    layout_.reset();
    context_.caller = a.caller;
    const IlutFactors f = ilut(host, local, problem_.offsets, {int(spec_.most), spec_.tolerance});
    require_pivot(f.zero_pivot, problem_, name_);
    layout_ = std::make_shared<const LocalLayout<Space>>(context_, problem_, f.factors);
    return take(f.factors);
  }
  const Updated updated = spec_.local == "dilu" ? Updated::pivots : Updated::pattern;
  const Index zero_pivot = where_they_are ? eliminate(host, problem_.elimination(), problem_.pattern.source.data(),
                                                      a.caller.values, value.data())
                                          : eliminate(host, problem_.elimination(), updated, value.data());
  require_pivot(zero_pivot, problem_, name_);
  take(local);
}

template class Local<exec::Host, double>;
template class Local<exec::Emulated, double>;

}  // namespace krilu::precond
