// SPDX-License-Identifier: Apache-2.0
#include "precond/ilu0.hpp"

#include <algorithm>
#include <vector>

#include "exec/emulated.hpp"
#include "precond/row_walk.hpp"
#include "triangular/sweep.hpp"

namespace krilu::precond {

namespace {

/// Where the entries of the row at work stand, by column: lower ones as position, upper ones as ~position.
class RowMarks {
 public:
  static constexpr Offset none = std::numeric_limits<Offset>::min();
  explicit RowMarks(Index rows) : at_(std::size_t(rows), none) {}
  Offset& operator[](Index column) { return at_[std::size_t(column)]; }

 private:
  std::vector<Offset> at_;
};

}  // namespace

template <class Space, class T>
Ilu0<Space, T>::Ilu0(const Context<Space>& context, std::shared_ptr<const sparse::PatternOf<Space>> pattern,
                     std::string name, bool symmetric)
    : DiluForm<Space, T>(context, std::move(pattern), std::move(name), symmetric),
      lower_(this->space_.template allocate<T>(std::size_t(this->pattern_->lower_entries()))),
      upper_(this->space_.template allocate<T>(std::size_t(this->pattern_->upper_entries()))) {}

template <class Space, class T>
void Ilu0<Space, T>::factor(const Values<Space, T>& a, double shift) {
  this->forget_trouble();
  this->space_.enqueue([a = a.stored.view(), shift, runner = this->runner_, partner = this->partner(),
                        pattern = this->pattern_, rd = this->rd_.data(), lower = lower_.data(), upper = upper_.data(),
                        trouble = this->trouble_.data(), symmetric = this->symmetric_](const exec::Host& host) {
    const sparse::PatternView& p = a.pattern;
    std::copy(a.lower, a.lower + pattern->lower_entries(), lower);
    std::copy(a.upper, a.upper + pattern->upper_entries(), upper);
    std::vector<Index> slice_of_row(std::size_t(p.rows));
    for (Index s = 0; s < p.slices; ++s)
      std::fill(slice_of_row.begin() + p.slice_row[s], slice_of_row.begin() + p.slice_row[s + 1], s);
    std::vector<RowMarks> marks(std::size_t(host.threads()), RowMarks(p.rows));

    runner->ascending([&](Index slice) {
      RowMarks& mark = marks[std::size_t(exec::Host::thread_index())];
      const Index first = p.slice_row[slice], lanes = p.slice_row[slice + 1] - first;
      for (Index q = 0; q < lanes; ++q) {
        const Index i = first + q;
        T e = shifted_diagonal(a, slice, q, shift);
        for_row_entries(p, p.lower, slice, q, [&](Offset k) { mark[p.lower.column[k]] = k; });
        for_row_entries(p, p.upper, slice, q, [&](Offset k) { mark[p.upper.column[k]] = ~k; });
        for_row_entries(p, p.lower, slice, q, [&](Offset k) {
          if (symmetric && (partner[k] < 0 || a.upper[partner[k]] != a.lower[k])) note_row(trouble->asymmetric, i);
          // row i -= (l_ik rd_k) row k, where row i has entries
          const Index row_k = p.lower.column[k], slice_k = slice_of_row[std::size_t(row_k)];
          const T multiplier = lower[k] * rd[row_k];
          for_row_entries(p, p.upper, slice_k, row_k - p.slice_row[slice_k], [&](Offset kj) {
            const Index j = p.upper.column[kj];
            const T update = multiplier * upper[kj];
            if (j == i) {
              e -= update;
            } else if (const Offset at = mark[j]; at != RowMarks::none) {
              (at >= 0 ? lower[at] : upper[~at]) -= update;
            }
          });
        });
        for_row_entries(p, p.lower, slice, q, [&](Offset k) { mark[p.lower.column[k]] = RowMarks::none; });
        for_row_entries(p, p.upper, slice, q, [&](Offset k) { mark[p.upper.column[k]] = RowMarks::none; });
        rd[i] = reciprocal_pivot(e, i, trouble->zero_pivot);
      }
    });
  });
  this->require_no_trouble();
}

template <class Space, class T>
void Ilu0<Space, T>::apply(const T* r, T* z) {
  const sparse::SplitView<T> factors{this->pattern_->view(), lower_.data(), nullptr, upper_.data()};
  this->space_.enqueue([factors, runner = this->runner_, rd = this->rd_.data(), r, z](const exec::Host&) {
    triangular::solve_dilu_form(*runner, factors, rd, r, z);
  });
}

template <class Space, class T>
std::size_t Ilu0<Space, T>::bytes() const {
  return DiluForm<Space, T>::bytes() + lower_.bytes() + upper_.bytes();
}

template <class Space, class T>
std::unique_ptr<Preconditioner<Space, float>> Ilu0<Space, T>::rounded(
    const sparse::Rounding& rounding, const std::shared_ptr<const sparse::RoundedMatrix>& a) const {
  return this->rounded_form(lower_.data(), upper_.data(), rounding, a, false);
}

template class Ilu0<exec::Host, double>;
template class Ilu0<exec::Emulated, double>;

}  // namespace krilu::precond
