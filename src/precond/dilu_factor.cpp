// SPDX-License-Identifier: Apache-2.0
// DILU's construction. In a file of its own: beside it GCC would no longer inline all of the sweeps in dilu.cpp.
#include "exec/emulated.hpp"
#include "precond/dilu.hpp"
#include "precond/row_walk.hpp"

namespace krilu::precond {

namespace {

/// The reciprocal pivots of a node's rows, one after another.
template <bool symmetric, class T>
void pivots_of_node(const sparse::SplitView<T>& a, Index slice, double shift, const Offset* partner, T* rd,
                    Trouble& trouble) {
  const sparse::PatternView& p = a.pattern;
  for (Index i = p.slice_row[slice]; i < p.slice_row[slice + 1]; ++i) {
    T pivot = shifted_diagonal(a, slice, i - p.slice_row[slice], shift);
    for_row_entries(p, p.lower, slice, i - p.slice_row[slice], [&](Offset k) {
      const T mirror = partner[k] >= 0 ? a.upper[partner[k]] : T(0);
      pivot -= a.lower[k] * rd[p.lower.column[k]] * mirror;
      if (symmetric && mirror != a.lower[k]) note_row(trouble.asymmetric, i);
    });
    rd[i] = reciprocal_pivot(pivot, i, trouble.zero_pivot);
  }
}

/// The reciprocal pivots of a slice's rows, which wait for none of one another. Padding has no partner.
template <int H, bool symmetric, class T>
void pivots(const sparse::SplitView<T>& a, Index slice, double shift, const Offset* partner, T* rd, Trouble& trouble) {
  if constexpr (H == 0) return pivots_of_node<symmetric>(a, slice, shift, partner, rd, trouble);
  const sparse::PartPattern& part = a.pattern.lower;
  const Index first = a.pattern.slice_row[slice], lanes = a.pattern.slice_row[slice + 1] - first;
  T pivot[sparse::lanes_of<H>] = {};
  for (Index q = 0; q < lanes; ++q) pivot[q] = a.diagonal[first + q];
  for (Index q = 0; shift != 0 && q < lanes; ++q) pivot[q] = shifted_diagonal(a, slice, q, shift);
  for (Offset k = part.offset[slice]; k < part.offset[slice + 1]; k += H)
    for (int q = 0; q < H; ++q) {
      const T mirror = partner[k + q] >= 0 ? a.upper[partner[k + q]] : T(0);
      pivot[q] -= a.lower[k + q] * rd[part.column[k + q]] * mirror;
      if (symmetric && mirror != a.lower[k + q]) note_row(trouble.asymmetric, first + q);
    }
  for (Index q = 0; q < lanes; ++q) rd[first + q] = reciprocal_pivot(pivot[q], first + q, trouble.zero_pivot);
}

}  // namespace

template <class Space, class T>
void Dilu<Space, T>::factor(const Values<Space, T>& a, double shift) {
  a_ = a.stored.view();
  this->forget_trouble();
  this->space_.enqueue([a = a_, shift, runner = this->runner_, partner = this->partner(), rd = this->rd_.data(),
                        trouble = this->trouble_.data(), symmetric = this->symmetric_](const exec::Host&) {
    sparse::with_height(a.pattern.height, [&](auto h) {
      constexpr int H = decltype(h)::value;
      symmetric ? runner->ascending([&](Index s) { pivots<H, true>(a, s, shift, partner, rd, *trouble); })
                : runner->ascending([&](Index s) { pivots<H, false>(a, s, shift, partner, rd, *trouble); });
    });
  });
  this->require_no_trouble();
}

template void Dilu<exec::Host, double>::factor(const Values<exec::Host, double>&, double);
template void Dilu<exec::Emulated, double>::factor(const Values<exec::Emulated, double>&, double);

}  // namespace krilu::precond
