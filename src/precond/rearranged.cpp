// SPDX-License-Identifier: Apache-2.0
#include "precond/rearranged.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "exec/emulated.hpp"
#include "krilu/error.hpp"
#include "precond/local.hpp"
#include "schedule/ordering.hpp"
#include "sparse/csr.hpp"
#include "sparse/matching.hpp"
#include "sparse/scaling.hpp"

namespace krilu::precond {

namespace {

/// The power of two that brings `largest` into [1, 2); 1 for 0.
double unit_scale(double largest) {
  return largest > 0 && std::isfinite(largest) ? std::ldexp(1.0, std::clamp(-std::ilogb(largest), -1000, 1000)) : 1.0;
}

std::string deficiency(const std::vector<Index>& rows) {
  constexpr std::size_t most = 5;
  std::string names;
  for (std::size_t k = 0; k < std::min(most, rows.size()); ++k)
    names += fmt::format("{}{}", k > 0 ? ", " : "", rows[k] + 1);
  if (rows.size() > most) names += ", ...";
  return fmt::format(
      "the matrix is structurally singular: {} row{} ({}, counting from 1) can be given no column of "
      "{} own in which {} an entry, whatever the other rows take",
      rows.size(), rows.size() == 1 ? "" : "s", names, rows.size() == 1 ? "its" : "their",
      rows.size() == 1 ? "it has" : "they have");
}

}  // namespace

template <class Space>
Rearranged<Space>::Rearranged(const Context<Space>& context, const std::string& name, const Rearrangement& how)
    : context_(context), how_(how) {
  const Space& space = context.space;
  const auto n = std::size_t(context.caller.rows);
  arrange(context.caller);
  Context<Space> own{space, context.strategy, [](Index i) { return i; }, b_.view()};
  own.caller.values = nullptr;
  inner_ = std::make_unique<Local<Space, double>>(own, nullptr, name == "ilu0" ? "iluk:0" : name);

  std::vector<Index> place(n), from(n), to(n);
  for (Index k = 0; k < Index(n); ++k) place[std::size_t(context.caller_row(k))] = k;
  for (std::size_t k = 0; k < n; ++k) {
    from[k] = place[std::size_t(row_[k])];
    to[k] = place[std::size_t(column_[k])];
  }
  from_ = space.template allocate<Index>(n);
  to_ = space.template allocate<Index>(n);
  space.copy_in(from_, from.data(), n);
  space.copy_in(to_, to.data(), n);
  for (auto* v : {&before_, &after_, &r_, &z_}) *v = space.template allocate<double>(n);
}

/// Permutations, and the pattern of B.
template <class Space>
void Rearranged<Space>::arrange(const CsrView& a) {
  const auto n = std::size_t(a.rows);
  row_.resize(n);
  std::iota(row_.begin(), row_.end(), Index(0));
  if (how_.scaling == "matching") {
    if (!a.values && n > 0) throw Error("scaling matching pairs rows and columns by values: analyse needs them");
    const sparse::Matching m = sparse::maximum_product_matching(a);
    if (m.size < a.rows) throw StructurallySingular(deficiency(m.unpaired_rows()));
    row_ = m.row_of;
    sparse::Scales scales = m.scales();
    row_scale_ = std::move(scales.row);
    column_scale_ = std::move(scales.column);
  }
  const auto build = [&] {
    std::vector<Index> place(n);
    for (std::size_t l = 0; l < n; ++l) place[std::size_t(column_[l])] = Index(l);
    b_.rows = b_.cols = a.rows;
    b_.offsets.assign(1, 0);
    b_.columns.resize(std::size_t(a.nnz()));
    source_.resize(std::size_t(a.nnz()));
    Offset at = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const Index i = row_[k];
      const Offset begin = at;
      for (Offset p = a.offsets[i]; p < a.offsets[i + 1]; ++p) source_[std::size_t(at++)] = p;
      std::sort(source_.begin() + begin, source_.begin() + at, [&](Offset p, Offset q) {
        return place[std::size_t(a.columns[p])] < place[std::size_t(a.columns[q])];
      });
      for (Offset p = begin; p < at; ++p)
        b_.columns[std::size_t(p)] = place[std::size_t(a.columns[source_[std::size_t(p)]])];
      b_.offsets.push_back(at);
    }
  };
  column_.resize(n);
  std::iota(column_.begin(), column_.end(), Index(0));
  build();
  if (how_.ordering == "natural") return;
  CsrView pattern = b_.view();
  pattern.values = nullptr;
  const CsrMatrix graph = sparse::adjacency(pattern);
  const schedule::Order order = schedule::order_by_name(how_.ordering, graph, graph);
  if (order.empty()) return;
  std::vector<Index> row(n);
  for (std::size_t k = 0; k < n; ++k) row[k] = row_[std::size_t(order[k])];
  row_ = std::move(row);
  column_ = order;
  build();
}

/// The values of B.
template <class Space>
void Rearranged<Space>::scale(const CsrView& a) {
  const exec::Host host(context_.space.threads());
  const auto n = std::size_t(a.rows);
  if (how_.scaling == "both") {
    sparse::Scales scales = sparse::equilibrating_scales(host, a);
    row_scale_ = std::move(scales.row);
    column_scale_ = std::move(scales.column);
  }
  const bool scaled = !row_scale_.empty();
  std::vector<double> before(n, 1.0), after(n, 1.0);
  for (std::size_t k = 0; k < n && scaled; ++k) after[k] = column_scale_[std::size_t(column_[k])];
  b_.values.resize(source_.size());
  host.for_each_range(n, [&](Index begin, Index end) {
    for (Index k = begin; k < end; ++k) {
      double& unit = before[std::size_t(k)];
      if (scaled) unit = row_scale_[std::size_t(row_[std::size_t(k)])];
      double largest = 0;
      for (auto p = std::size_t(b_.offsets[std::size_t(k)]); p < std::size_t(b_.offsets[std::size_t(k) + 1]); ++p) {
        b_.values[p] = a.values[source_[p]] * unit * after[std::size_t(b_.columns[p])];
        largest = std::max(largest, std::abs(b_.values[p]));
      }
      // Of rows alone; and with values that are not those of the analysis the scales may be off.
      if (how_.scaling == "none" || how_.scaling == "both") continue;
      const double more = unit_scale(largest);
      unit *= more;
      for (auto p = std::size_t(b_.offsets[std::size_t(k)]); p < std::size_t(b_.offsets[std::size_t(k) + 1]); ++p)
        b_.values[p] *= more;
    }
  });
  context_.space.copy_in(before_, before.data(), n);
  context_.space.copy_in(after_, after.data(), n);
}

template <class Space>
void Rearranged<Space>::factor(const Values<Space, double>& a, double shift) {
  scale(a.caller);
  const sparse::MatrixOf<Space, double> none{};
  try {
    inner_->factor({none, b_.view()}, shift);
  } catch (const ZeroPivot&) {
    throw ZeroPivot(
        "zero pivot in the factorisation of the scaled and permuted matrix: try another --ordering, more "
        "fill, or --shift");
  }
  b_.values = Buffer<double>();
}

template <class Space>
void Rearranged<Space>::apply(const double* r, double* z) {
  const auto n = r_.size();
  const Index *from = from_.data(), *to = to_.data();
  const double *before = before_.data(), *after = after_.data();
  double *own_r = r_.data(), *own_z = z_.data();
  context_.space.for_each(
      n, KRILU_FN(Index k) { own_r[k] = before[k] * r[from[k]]; });
  inner_->apply(own_r, own_z);
  context_.space.for_each(
      n, KRILU_FN(Index k) { z[to[k]] = after[k] * own_z[k]; });
}

template <class Space>
std::size_t Rearranged<Space>::bytes() const {
  return b_.bytes() + source_.capacity() * sizeof(Offset) + (row_.capacity() + column_.capacity()) * sizeof(Index) +
         (row_scale_.capacity() + column_scale_.capacity()) * sizeof(double) + from_.bytes() + to_.bytes() +
         before_.bytes() + after_.bytes() + r_.bytes() + z_.bytes() + inner_->bytes();
}

template <class Space>
std::string Rearranged<Space>::description() const {
  std::string text = inner_->description();
  if (how_.scaling != "none") text += fmt::format("{}factored with scaling {}", text.empty() ? "" : ", ", how_.scaling);
  return text;
}

template class Rearranged<exec::Host>;
template class Rearranged<exec::Emulated>;

}  // namespace krilu::precond
