// SPDX-License-Identifier: Apache-2.0
// Triangular solves over a split pattern, slice by slice, both sweeps in one team. T: what is computed in; S: what the
// triangles are stored in: double and double, or float and float, Half or Bfloat16. d: a reciprocal of each row.
// Cost of a sweep: 12 bytes a nonzero of its triangle (8.5 in runs, 8 + 8/(r c) in nodes of r rows and windows of c
// columns, or 1), 28 bytes a row (b and d read, x written, offsets). All strategies run the same slices with the same
// sums: their results are equal bit for bit.
#pragma once

#include "sparse/split.hpp"
#include "triangular/runner.hpp"

namespace krilu::triangular {

/// (E + L) E^-1 (E + U) z = r, with d = 1 / E.
template <class T, class S>
void solve_dilu_form(const SliceRunner& runner, const sparse::SplitView<T, S>& a, const T* d, const T* r, T* z);

/// The same, and w = D z + U z, which sparse::add_lower makes A z, A = L + D + U having D for a.diagonal [after
/// Eisenstat 1981]: the backward sweep has U z in its sums, so that U is read once for both. Bit for bit what a product
/// with A gives. Cost beside the sweeps, with add_lower: 12 bytes a nonzero of L, 44 bytes a row.
template <class T, class S>
void solve_dilu_form(const SliceRunner& runner, const sparse::SplitView<T, S>& a, const T* d, const T* r, T* z, T* w);

/// (I + L) (D + U) x = x in place, with d = 1 / D.
template <class T, class S>
void solve_lu(const SliceRunner& runner, const sparse::SplitView<T, S>& a, const T* d, T* x);

}  // namespace krilu::triangular
