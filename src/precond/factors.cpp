// SPDX-License-Identifier: Apache-2.0
#include "precond/factors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "exec/emulated.hpp"
#include "krilu/error.hpp"
#include "precond/jacobi.hpp"
#include "precond/registry.hpp"
#include "precond/row_walk.hpp"
#include "triangular/sweep.hpp"

namespace krilu::precond {

namespace {

/// Finds the upper entry (row, column). Short rows are searched as they stand; long ones through a sorted copy.
class UpperEntries {
 public:
  UpperEntries(const exec::Host& host, const sparse::PatternView& p) : p_(p), slice_of_row_(std::size_t(p.rows)) {
    for (Index s = 0; s < p.slices; ++s)
      for (Index i = p.slice_row[s]; i < p.slice_row[s + 1]; ++i) slice_of_row_[std::size_t(i)] = s;
    start_.assign(std::size_t(p.rows) + 1, 0);
    for (Index i = 0; i < p.rows; ++i)
      start_[std::size_t(i) + 1] = start_[std::size_t(i)] + (length(i) > short_row ? length(i) : 0);
    sorted_.resize(std::size_t(start_.back()));
    if (sorted_.empty()) return;
    host.for_each_range(std::size_t(p.rows), [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        auto* out = sorted_.data() + start_[std::size_t(i)];
        if (start_[std::size_t(i)] == start_[std::size_t(i) + 1]) continue;
        for (Index k = 0; k < length(i); ++k) out[k] = {p_.upper.column[at(i, k)], at(i, k)};
        std::sort(out, out + length(i));
      }
    });
  }

  Offset find(Index row, Index column) const {
    const auto* begin = sorted_.data() + start_[std::size_t(row)];
    const auto* end = sorted_.data() + start_[std::size_t(row) + 1];
    if (begin == end) {
      for (Index k = 0; k < length(row); ++k)
        if (p_.upper.column[at(row, k)] == column) return at(row, k);
      return -1;
    }
    const auto* found = std::lower_bound(begin, end, std::pair<Index, Offset>{column, 0});
    return found != end && found->first == column ? found->second : -1;
  }

 private:
  static constexpr Index short_row = 24;
  Index length(Index i) const {
    if (p_.upper.length) return p_.upper.length[i];
    const Index s = slice_of_row_[std::size_t(i)];
    return p_.entries(p_.upper, s, i - p_.slice_row[s]).count();
  }
  Offset at(Index i, Index k) const {
    const Index s = slice_of_row_[std::size_t(i)];
    const sparse::PatternView::Entries e = p_.entries(p_.upper, s, i - p_.slice_row[s]);
    return e.begin + k * e.stride;
  }
  sparse::PatternView p_;
  std::vector<Index> slice_of_row_;
  std::vector<Offset> start_;
  Buffer<std::pair<Index, Offset>> sorted_;
};

void find_partners(const exec::Host& host, const sparse::PatternView& p, Offset* partner) {
  const UpperEntries upper(host, p);
  host.for_each_range(std::size_t(p.slices), [&](Index begin, Index end) {
    for (Index s = begin; s < end; ++s) {
      std::fill(partner + p.lower.offset[s], partner + p.lower.offset[s + 1], -1);
      for (Index i = p.slice_row[s]; i < p.slice_row[s + 1]; ++i)
        for_row_entries(p, p.lower, s, i - p.slice_row[s],
                        [&](Offset k) { partner[k] = upper.find(p.lower.column[k], i); });
    }
  });
}

/// The first row with an entry, in either triangle, that has no partner; `none` where the pattern is symmetric.
Index first_unpaired(const sparse::PatternView& p, const Offset* partner, Index none) {
  std::vector<bool> paired(std::size_t(p.upper.offset[p.slices]), false);
  Index first = none;
  for (Index s = 0; s < p.slices; ++s)
    for (Index i = p.slice_row[s]; i < p.slice_row[s + 1]; ++i)
      for_row_entries(p, p.lower, s, i - p.slice_row[s], [&](Offset k) {
        if (partner[k] >= 0)
          paired[std::size_t(partner[k])] = true;
        else
          first = std::min(first, i);
      });
  for (Index s = 0; s < p.slices; ++s)
    for (Index i = p.slice_row[s]; i < p.slice_row[s + 1]; ++i)
      for_row_entries(p, p.upper, s, i - p.slice_row[s], [&](Offset k) {
        if (!paired[std::size_t(k)]) first = std::min(first, i);
      });
  return first;
}

}  // namespace

void require_no_trouble(const Trouble& t, const std::string& name, const std::function<Index(Index)>& caller_row) {
  const auto named = [&](Index row) { return caller_row ? caller_row(row) : row; };
  if (t.asymmetric != Trouble::none)
    throw NotSymmetric(fmt::format("{} needs a symmetric matrix, and row {} is not its column's mirror: use {} instead",
                                   name, named(t.asymmetric) + 1, name == "dic" ? "dilu" : "ilu0"));
  if (t.zero_pivot != Trouble::none) {
    const Index row = named(t.zero_pivot);
    throw ZeroPivot(
        fmt::format("{}: zero pivot in row {} (counting from 1): give --shift (0.01, say), {}another ordering, or "
                    "--precond jacobi or none",
                    name, row + 1, can_be_rearranged(name) ? "--scaling matching (on the host, in double), " : ""),
        row);
  }
}

template <class Space, class T>
DiluForm<Space, T>::DiluForm(const Context<Space>& context, std::shared_ptr<const sparse::PatternOf<Space>> pattern,
                             std::string name, bool symmetric)
    : space_(context.space),
      pattern_(std::move(pattern)),
      rd_(space_.template allocate<T>(std::size_t(pattern_->rows()))),
      trouble_(space_.template allocate<Trouble>(1)),
      symmetric_(symmetric),
      name_(std::move(name)),
      caller_row_(context.caller_row),
      partner_(space_.template allocate<Offset>(std::size_t(pattern_->lower_entries()))) {
  space_.enqueue([&, view = pattern_->view(), out = partner_.data()](const exec::Host& host) {
    runner_ = std::make_shared<triangular::SliceRunner>(host, *pattern_, view.lower.column, view.upper.column,
                                                        context.strategy);
    find_partners(host, view, out);
    if (symmetric_) unpaired_ = first_unpaired(view, out, Trouble::none);
  });
  space_.synchronise();
}

template <class Space, class T>
std::size_t DiluForm<Space, T>::bytes() const {
  return rd_.bytes() + trouble_.bytes() + partner_.bytes() + runner_->bytes();
}

template <class Space, class T>
void DiluForm<Space, T>::forget_trouble() {
  Trouble known;
  known.asymmetric = unpaired_;
  space_.copy_in(trouble_, &known, 1);
}

template <class Space, class T>
void DiluForm<Space, T>::require_no_trouble() const {
  Trouble t;
  space_.copy_out(&t, trouble_, 1);
  precond::require_no_trouble(t, name_, caller_row_);
}

template <class Space, class T>
std::unique_ptr<Preconditioner<Space, float>> DiluForm<Space, T>::rounded_form(
    const T* lower, const T* upper, const sparse::Rounding& rounding,
    const std::shared_ptr<const sparse::RoundedMatrix>& a, bool same) const {
  return with_format(rounding.storage, [&](auto s) -> std::unique_ptr<Preconditioner<Space, float>> {
    using S = decltype(s);
    using Matrix = sparse::RoundedMatrixOf<Space, S>;
    const auto rounded_a = std::dynamic_pointer_cast<const Matrix>(a);
    auto triangles = same ? rounded_a : nullptr;
    const bool shared = triangles != nullptr;
    if (!shared)
      triangles = std::make_shared<const Matrix>(sparse::rounded_matrix<S>(
          space_, pattern_, {pattern_->view(), lower, nullptr, upper}, rounding,
          rounded_a ? rounded_a->matrix.narrow : sparse::NarrowColumns::of(space_, *pattern_)));
    return std::make_unique<RoundedForm<Space, S>>(space_, runner_, std::move(triangles),
                                                   rounded_reciprocals(space_, rd_, rounding), shared);
  });
}

template <class Space, class S>
void RoundedForm<Space, S>::apply(const float* r, float* z) {
  space_.enqueue([a = triangles_->matrix.view(), runner = runner_, rd = rd_.data(), r, z](const exec::Host&) {
    triangular::solve_dilu_form(*runner, a, rd, r, z);
  });
}

template <class Space, class S>
void RoundedForm<Space, S>::apply(const sparse::Operator<Space, float>& A, const float* r, float* z, float* Az) {
  if (!shared_ || A.stored() != triangles_->matrix.diagonal.data())
    return Preconditioner<Space, float>::apply(A, r, z, Az);
  solve_with_product(space_, runner_, triangles_->matrix.view(), rd_.data(), A, r, z, Az);
}

#define KRILU_FORMS(SPACE)                  \
  template class DiluForm<SPACE, double>;   \
  template class RoundedForm<SPACE, float>; \
  template class RoundedForm<SPACE, Half>;  \
  template class RoundedForm<SPACE, Bfloat16>;
KRILU_FORMS(exec::Host)
KRILU_FORMS(exec::Emulated)
#undef KRILU_FORMS

}  // namespace krilu::precond
