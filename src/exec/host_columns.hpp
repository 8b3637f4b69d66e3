// SPDX-License-Identifier: Apache-2.0
// Host::dot_columns and combine_columns on one piece of the rows, which one thread has: groups of columns in a pass, as
// many as registers allow, so that of what is not a column little is read again. Reading is what they take: 2 words of
// T an entry and x stay in the first-level cache or in registers.
#pragma once

#include <array>

#include "exec/simd.hpp"
#include "exec/view.hpp"

namespace krilu::exec {

/// What a pass keeps in registers: sums of so many numbers each. Where there are 32 registers of 64 bytes, more columns
/// are on their way at a time.
#if defined(__AVX512F__)
template <class T>
constexpr int column_width = 64 / int(sizeof(T));
constexpr int column_sums = 16;
#else
template <class T>
constexpr int column_width = simd_width<T>(16);
constexpr int column_sums = 8;
#endif

/// out[k + c][l], the dot products of columns k + c, c < C, with x[l]: no sum waits for itself.
template <int C, class B, class T, std::size_t N>
void dot_group(const Columns<B>& V, Index k, const std::array<View<T>, N>& x, Index begin, Index end,
               Sums<T, int(N)>* out) {
  constexpr int W = column_width<T>;
  const B* column[C];
  for (int c = 0; c < C; ++c) column[c] = V[k + c];
  Simd<T, W> sum[C][N] = {};
  Index i = begin;
  for (; i + W <= end; i += W) {
    Simd<T, W> xs[N];
    for (std::size_t l = 0; l < N; ++l) {
      xs[l] = load<T, W>(x[l].data + i);
      keep(xs[l]);
    }
    for (int c = 0; c < C; ++c) {
      Simd<T, W> v = load<T, W>(column[c] + i);
      if constexpr (N > 1) keep(v);
      for (std::size_t l = 0; l < N; ++l) sum[c][l] += v * xs[l];
    }
  }
  for (int c = 0; c < C; ++c)
    for (std::size_t l = 0; l < N; ++l) {
      T rest = 0;
      for (Index j = i; j < end; ++j) rest += T(column[c][j]) * x[l][j];
      out[k + c][int(l)] = sum_of<T, W>(sum[c][l]) + rest;
    }
}

/// The same for columns k to columns - 1, in groups of C, and what is left in halves of that.
template <int C, class B, class T, std::size_t N>
void dot_groups(const Columns<B>& V, Index k, Index columns, const std::array<View<T>, N>& x, Index begin, Index end,
                Sums<T, int(N)>* out) {
  for (; k + C <= columns; k += C) dot_group<C>(V, k, x, begin, end, out);
  if constexpr (C > 1) dot_groups<C / 2>(V, k, columns, x, begin, end, out);
}

/// out[k][l], the dot products of columns k < columns with x[l].
template <class B, class T, std::size_t N>
void dot_piece(const Columns<B>& V, Index columns, const std::array<View<T>, N>& x, Index begin, Index end,
               Sums<T, int(N)>* out) {
  dot_groups<column_sums / int(N)>(V, 0, columns, x, begin, end, out);
}

/// sum[l][i - begin] += sum over c < C of y[l][k + c] V[k + c][i].
template <int C, class B, class T, std::size_t N, std::size_t most>
void combine_group(const Columns<B>& V, Index k, const std::array<View<T>, N>& y, Index begin, Index end,
                   T (&sum)[N][most]) {
  constexpr int W = column_width<T>;
  const B* column[C];
  T factor[C][N];
  for (int c = 0; c < C; ++c) {
    column[c] = V[k + c] + begin;
    for (std::size_t l = 0; l < N; ++l) factor[c][l] = y[l][k + c];
  }
  const Index length = end - begin;
  Index i = 0;
  for (; i + W <= length; i += W) {
    Simd<T, W> s[N];
    for (std::size_t l = 0; l < N; ++l) s[l] = load<T, W>(sum[l] + i);
    for (int c = 0; c < C; ++c) {
      Simd<T, W> v = load<T, W>(column[c] + i);
      if constexpr (N > 1) keep(v);
      for (std::size_t l = 0; l < N; ++l) s[l] += factor[c][l] * v;
    }
    for (std::size_t l = 0; l < N; ++l) store<T, W>(sum[l] + i, s[l]);
  }
  for (; i < length; ++i)
    for (int c = 0; c < C; ++c)
      for (std::size_t l = 0; l < N; ++l) sum[l][i] += factor[c][l] * T(column[c][i]);
}

/// The same for columns k to columns - 1, in groups of C, and what is left in halves of that.
template <int C, class B, class T, std::size_t N, std::size_t most>
void combine_groups(const Columns<B>& V, Index k, Index columns, const std::array<View<T>, N>& y, Index begin,
                    Index end, T (&sum)[N][most]) {
  for (; k + C <= columns; k += C) combine_group<C>(V, k, y, begin, end, sum);
  if constexpr (C > 1) combine_groups<C / 2>(V, k, columns, y, begin, end, sum);
}

/// sum[l][i - begin] = sum over k < columns of y[l][k] V[k][i].
template <class B, class T, std::size_t N, std::size_t most>
void combine_piece(const Columns<B>& V, Index columns, const std::array<View<T>, N>& y, Index begin, Index end,
                   T (&sum)[N][most]) {
  for (std::size_t l = 0; l < N; ++l)
    for (Index i = 0; i < end - begin; ++i) sum[l][i] = 0;
  combine_groups<column_sums / int(N)>(V, 0, columns, y, begin, end, sum);
}

}  // namespace krilu::exec
