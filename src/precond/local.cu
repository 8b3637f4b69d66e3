// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>

#include "precond/ilut.hpp"
#include "precond/local.cuh"
#include "schedule/row_order.hpp"
#include "sparse/csr.hpp"

namespace krilu::precond {

namespace {

using exec::cuda::blocks_for;
using exec::cuda::launched;

/// |a_ii| grows by shift times the largest magnitude of the caller's row, in the sign of a_ii (plus for 0).
__global__ void shift_kernel(Index rows, const Index* caller_row, CsrView caller, const Offset* diagonal, double shift,
                             double* value) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= rows) return;
  const Index own = caller_row ? caller_row[i] : i;
  double largest = 0;
  for (Offset k = caller.offsets[own]; k < caller.offsets[own + 1]; ++k) largest = max(largest, abs(caller.values[k]));
  double& d = value[diagonal[i]];
  d += (d < 0 ? -shift : shift) * largest;
}
/// Values by the caller's positions; -1: none.
struct FromSource {
  const Offset* source;
  const double* values;
  __device__ double operator()(std::int64_t k) const { return source[k] >= 0 ? values[source[k]] : 0.0; }
};
/// out[k] = in[from[k]]
__global__ void pick_kernel(std::int64_t n, const Index* from, const double* in, double* out) {
  const std::int64_t k = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k < n) out[k] = in[from[k]];
}

/// Of each of the caller's rows.
std::vector<Index> places(const Context<exec::Cuda>& context) {
  std::vector<Index> place(std::size_t(context.caller.rows));
  const exec::Array<Index>& there = context.plan->layout->place;
  if (there.size() > 0)
    context.space.copy_out(place.data(), there, place.size());
  else
    for (std::size_t i = 0; i < place.size(); ++i) place[i] = Index(i);
  return place;
}

/// Rows in sweep order, sorted by their level in their own part: none reads from a later one. And how many levels.
std::pair<std::vector<Index>, Index> level_by_level(const sparse::RowOrder& order) {
  const std::vector<Index> one_part{0, Index(order.group.size()) - 1};
  const std::vector<Index>& part = order.part.empty() ? one_part : order.part;
  Index deepest = 0;
  for (std::size_t p = 0; p + 1 < part.size(); ++p) deepest = std::max(deepest, part[p + 1] - part[p]);
  std::vector<Index> next(std::size_t(deepest) + 1, 0);
  const auto for_groups = [&](auto f) {
    for (std::size_t p = 0; p + 1 < part.size(); ++p)
      for (Index g = part[p]; g < part[p + 1]; ++g)
        f(std::size_t(g - part[p]), order.group[std::size_t(g)], order.group[std::size_t(g) + 1]);
  };
  for_groups([&](std::size_t level, Index begin, Index end) { next[level + 1] += end - begin; });
  for (std::size_t l = 0; l < std::size_t(deepest); ++l) next[l + 1] += next[l];
  std::vector<Index> rows(order.rows.size());
  for_groups([&](std::size_t level, Index begin, Index end) {
    for (Index k = begin; k < end; ++k) rows[std::size_t(next[level]++)] = order.rows[std::size_t(k)];
  });
  return {std::move(rows), deepest};
}

}  // namespace

LocalSweeps<exec::Cuda, double>::LocalSweeps(const Context<exec::Cuda>& context, const LocalProblem& problem,
                                             const CsrView& factors, const Offset* diagonal,
                                             const sparse::RowOrder& order, const CsrView& graph)
    : space_(context.space) {
  const exec::Host host(space_.threads());
  const std::vector<Index> place = places(context);
  const auto map_of = [&](const auto& local_row) {
    std::vector<Index> map(std::size_t(problem.rows()));
    for (std::size_t k = 0; k < map.size(); ++k) {
      const Index local = local_row(Index(k));
      const Index at = place[std::size_t(problem.caller_row(local))];
      map[k] = problem.owned.empty() || problem.owned[std::size_t(local)] ? at : ~at;
    }
    return map;
  };
  if (context.strategy == triangular::Strategy::automatic) {
    const triangular::Packed packed = triangular::pack(host, factors, diagonal, order, problem.owned);
    if (triangular::PackedSweeps::suits(packed)) {
      packed_ = std::make_unique<triangular::PackedSweeps>(space_, packed, map_of([](Index k) { return k; }));
      return;
    }
  }
  const sparse::DeviceCsr there = sparse::upload(space_, factors, false);
  const bool own_graph = graph.columns == factors.columns;
  const sparse::DeviceCsr graph_there = own_graph ? sparse::DeviceCsr{} : sparse::upload(space_, graph, false);
  plan_ =
      std::make_shared<const schedule::Plan>(schedule::by_levels(space_, there, own_graph ? there : graph_there, {}));
  pattern_ = std::make_shared<const sparse::SlicedPattern>(space_, there, plan_->layout);
  runner_ = std::make_unique<triangular::WarpRunner>(space_, plan_, *pattern_, context.strategy);
  std::vector<Index> row(std::size_t(problem.rows()));
  space_.copy_out(row.data(), plan_->layout->row, row.size());
  map_ =
      std::make_shared<const exec::Array<Index>>(space_.brought(map_of([&](Index k) { return row[std::size_t(k)]; })));
  local_ = space_.brought(row);
  for (auto* v : {&scale_, &restricted_, &between_, &solved_}) *v = space_.allocate<double>(row.size());
}

void LocalSweeps<exec::Cuda, double>::take(const double* factors, const double* scale) {
  if (packed_) return packed_->take(factors, scale);
  sparse::fill_values(space_, pattern_, factors, factors_);
  const auto rows = Index(scale_.size());
  if (rows > 0) pick_kernel<<<blocks_for(rows), 256, 0, space_.stream()>>>(rows, local_.data(), scale, scale_.data());
  launched("taking factors");
}

void LocalSweeps<exec::Cuda, double>::apply(const double* r, double* z) const {
  if (packed_) return packed_->apply(r, z);
  const auto rows = Index(scale_.size());
  if (rows == 0) return;
  using triangular::Diagonal;
  const sparse::SlicedPatternView p = pattern_->view();
  restrict_kernel<<<blocks_for(rows), 256, 0, space_.stream()>>>(rows, map_->data(), scale_.data(), r,
                                                                 restricted_.data());
  const triangular::Recurrence<double, Diagonal::unit, true> forward{p.lower, factors_.lower.data(), restricted_.data(),
                                                                     nullptr, between_.data()};
  const triangular::Recurrence<double, Diagonal::unit, false> backward{p.upper, factors_.upper.data(), between_.data(),
                                                                       nullptr, solved_.data()};
  runner_->both(forward, backward);
  prolong_kernel<<<blocks_for(rows), 256, 0, space_.stream()>>>(rows, map_->data(), solved_.data(), z);
  launched("launching sweeps");
}

std::size_t LocalSweeps<exec::Cuda, double>::bytes() const {
  if (packed_) return packed_->bytes();
  return plan_->bytes() + pattern_->bytes() + runner_->bytes() + factors_.bytes() + scale_.bytes() +
         restricted_.bytes() + between_.bytes() + solved_.bytes() + map_->bytes() + local_.bytes();
}

Local<exec::Cuda, double>::Local(const Context<exec::Cuda>& context, std::shared_ptr<const sparse::SlicedPattern>,
                                 const std::string& name)
    : context_(context), spec_(parse_spec(name)), name_(name), zero_pivot_(context.space.allocate_shared<Index>(1)) {
  const exec::Host host(context.space.threads());
  problem_ = local_problem(host, context.caller, spec_);
  description_ = describe(problem_, context.caller.rows);
  if (spec_.local == "ilut") return;
  const CsrView factors = problem_.pattern.view(problem_.rows());
  const auto [sequence, levels] = make_sweeps(factors, problem_.diagonal.data());
  const exec::Cuda& space = context_.space;
  pattern_.rows = problem_.rows();
  pattern_.entries = factors.nnz();
  pattern_.levels = levels;
  for (Index i = 0; i < factors.rows; ++i)
    pattern_.longest = std::max(pattern_.longest, factors.offsets[i + 1] - factors.offsets[i]);
  pattern_.offsets = space.brought(problem_.pattern.offsets);
  pattern_.columns = space.brought(problem_.pattern.columns);
  pattern_.diagonal = space.brought(problem_.diagonal);
  pattern_.sequence = space.brought(sequence);
  source_ = space.brought(problem_.pattern.source);
  row_ = space.brought(problem_.row);
  problem_.pattern = {};  // on the device now
  problem_.diagonal = {};
}

std::pair<std::vector<Index>, Index> Local<exec::Cuda, double>::make_sweeps(const CsrView& factors,
                                                                            const Offset* diagonal) {
  const exec::Host host(context_.space.threads());
  const bool symmetric = sparse::symmetry(factors).pattern;
  const CsrMatrix both = symmetric ? CsrMatrix{} : sparse::adjacency(factors);
  const CsrView graph = symmetric ? factors : both.view();
  const sparse::RowOrder order = schedule::by_parts(host, factors, graph, problem_.offsets);
  sweeps_ = std::make_unique<LocalSweeps<exec::Cuda, T>>(context_, problem_, factors, diagonal, order, graph);
  return level_by_level(order);
}

void Local<exec::Cuda, double>::factor(const Values<exec::Cuda, T>& a, double shift) {
  const exec::Cuda& space = context_.space;
  context_.caller = a.caller;
  if (spec_.local == "ilut") {
    const exec::Host host(space.threads());
    sweeps_.reset();
    Buffer<double> value(problem_.pattern.columns.size());
    problem_.gather(host, a.caller, shift, value.data());
    CsrView local = problem_.pattern.view(problem_.rows());
    local.values = value.data();
    const IlutFactors f = ilut(host, local, problem_.offsets, {int(spec_.most), spec_.tolerance});
    require_pivot(f.zero_pivot, problem_, name_);
    const std::vector<Offset> diagonal = diagonal_positions(host, f.factors);
    make_sweeps(f.factors, diagonal.data());
    std::vector<double> scale(diagonal.size());
    for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = 1 / f.factors.values[std::size_t(diagonal[i])];
    Buffer<double> scaled(f.factors.values.size());
    host.for_each_range(diagonal.size(), [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i)
        for (Offset k = f.factors.offsets[std::size_t(i)]; k < f.factors.offsets[std::size_t(i) + 1]; ++k) {
          const Index j = f.factors.columns[std::size_t(k)];
          const double v = f.factors.values[std::size_t(k)] * scale[std::size_t(i)];
          scaled[std::size_t(k)] = j < i ? v * f.factors.values[std::size_t(diagonal[std::size_t(j)])] : v;
        }
    });
    sweeps_->take(space.brought(scaled).data(), space.brought(scale).data());
    space.synchronise();  // before what it was given goes
    return;
  }
  constexpr Index none = std::numeric_limits<Index>::max();
  *zero_pivot_.data() = none;
  const auto factors = space.allocate<double>(std::size_t(pattern_.entries));
  const Gathered local =
      gather(space, pattern_, FromSource{source_.data(), context_.matrix->values.data()}, factors.data());
  if (shift != 0 && pattern_.rows > 0)
    shift_kernel<<<blocks_for(pattern_.rows), 256, 0, space.stream()>>>(
        pattern_.rows, row_.data(), context_.matrix->view(), pattern_.diagonal.data(), shift, local.a.data());
  launched("shifting the diagonal");
  eliminate(space, pattern_, spec_.local == "dilu" ? Updated::pivots : Updated::pattern, Lower::scaled, local,
            factors.data(), zero_pivot_.data());
  space.synchronise();
  const Index bad = *zero_pivot_.data();
  require_pivot(bad == none ? -1 : bad, problem_, name_);
  const auto scale = space.allocate<double>(std::size_t(pattern_.rows));
  if (pattern_.rows > 0)
    pick_kernel<<<blocks_for(pattern_.rows), 256, 0, space.stream()>>>(pattern_.rows, pattern_.diagonal.data(),
                                                                       factors.data(), scale.data());
  launched("taking factors");
  sweeps_->take(factors.data(), scale.data());
}

std::size_t Local<exec::Cuda, double>::bytes() const {
  return problem_.bytes() + pattern_.bytes() + source_.bytes() + row_.bytes() + zero_pivot_.bytes() +
         (sweeps_ ? sweeps_->bytes() : 0);
}

}  // namespace krilu::precond
