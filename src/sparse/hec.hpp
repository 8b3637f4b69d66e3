// SPDX-License-Identifier: Apache-2.0
// HEC (hybrid ELL and CSR): the regular part of a matrix as an ELL of chosen width, column by column with a leading
// dimension that is a multiple of 32, so that a warp's reads are aligned and coalesced; what does not fit, as CSR.
// Source: Liu, Chen et al., Parallel triangular solvers on GPU (about 2012). Two forms:
//
//   product     the CSR part lists only the rows that have entries left; a bit a row tells which, and a rank of the
//               bits where each stands, so that the thread of a row finds its leftover without offsets of all rows.
//   triangular  as in the paper: every row stands in the CSR part, and ends there in its diagonal.
//
// The width is the one at which a product moves the fewest bytes, found from the histogram of the rows' lengths. An ELL
// slot costs 12 bytes, used or not. An entry of the CSR part is counted as 1.5 times that: the entries of one row stand
// side by side, so that a warp whose threads have a row each reads parts of many lines at a time. A listed row costs 8
// bytes of its number and offset, and listing any at all 8 bytes in 32 rows. In the triangular form all rows have an
// offset and a diagonal there, whatever the width, and these do not count.
//
// On a GPU the columns of the product form may be short (hec.cuh), which takes 9 or 10 bytes of values and columns a
// slot in place of 12.
//
// Padding has column -1 and is never multiplied: NaN or infinity in x reaches only the rows that read it. On the host,
// `full` tells for every 8 rows how many ELL columns have no padding, and only the others are tested entry by entry.
//
// Cost of y = A x in bytes: 12 width rows + 12 entries of the CSR part + 16 rows, where each x is fetched once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "sparse/operator.hpp"

namespace krilu::sparse {

enum class HecForm { product, triangular };

/// Which of 32 consecutive rows have a leftover, and where the first of them stands among the listed.
struct HecListed {
  std::uint32_t rows = 0;  // bit q: row 32 g + q
  Index first = 0;
};

/// Columns of the ELL part in one or two bytes each, counted from a base that 32 rows share in each slot; all bits set:
/// padding, which may stand before entries. Slots are padded to whole words of 4 or 2 columns.
struct HecShortColumns {
  int bytes = 0;                        // of a column; 0: none are short
  const std::uint32_t* word = nullptr;  // word q of row i, columns 4q.. or 2q.. of it, at q * leading + i
  const Index* base = nullptr;          // of rows 32g .. 32g+31 and slot k at g * (slots) + k
};

/// What kernels see. Entry k of row i in the ELL part is at k * leading + i.
template <class T>
struct HecView {
  Index rows = 0, cols = 0;
  Index width = 0, leading = 0;
  const Index* column = nullptr;  // -1: padding, and so are all entries behind it in its row; null: they are short
  const T* value = nullptr;
  const std::uint16_t* full = nullptr;  // leading / 8: ELL columns, from the first, without padding in these 8 rows
  // The CSR part. Its row q is row listed_row[q], or row q where that is null: the triangular form.
  Index csr_rows = 0;
  const HecListed* listed = nullptr;  // leading / 32; null where no row is listed, or all are
  const Index* listed_row = nullptr;
  const Offset* csr_offset = nullptr;  // csr_rows + 1
  const Index* csr_column = nullptr;
  const T* csr_value = nullptr;
  HecShortColumns shortened = {};
};

/// Rows rounded up to whole warps.
constexpr std::int64_t hec_leading(Index rows) { return (std::int64_t(rows) + 31) / 32 * 32; }
/// The width at which a product moves the fewest bytes; of two that are equal, the larger.
Index hec_width(const CsrView& a, HecForm form = HecForm::product);

/// The arrays of both parts, in the memory of whichever space.
template <class T>
struct HecArrays {
  exec::Array<Index> column;
  exec::Array<T> value;
  exec::Array<std::uint16_t> full;
  exec::Array<HecListed> listed;
  exec::Array<Index> listed_row;
  exec::Array<Offset> csr_offset;
  exec::Array<Index> csr_column;
  exec::Array<T> csr_value;
  exec::Array<Index> long_row;  // places among the listed rows whose leftover is longer than hec_long_row
  int short_bytes = 0;          // in place of `column`: HecShortColumns
  exec::Array<std::uint32_t> short_word;
  exec::Array<Index> short_base;
};

/// A leftover of more entries is added up by a thread block of its own on a GPU.
constexpr Index hec_long_row = 1024;

/// Fills in arrays of the host; returns the width. What Hec's constructor throws comes from here.
template <class T>
Index build_hec(const exec::Host& host, const CsrView& a, HecForm form, Index width, HecArrays<T>& out);

/// A matrix in HEC, in the memory of a space. It is built on the host, in one pass a part.
template <class Space, class T>
class Hec {
 public:
  static constexpr Index automatic = -1;

  /// a: rows x cols; in the triangular form square, the last entry of each row being its diagonal. width automatic:
  /// hec_width. Throws krilu::Error where a part would not fit 32-bit positions, and in the triangular form where a row
  /// does not end in its diagonal.
  Hec(const Space& space, const exec::Host& host, const CsrView& a, HecForm form = HecForm::product,
      Index width = automatic)
      : rows_(a.rows), cols_(a.cols) {
    HecArrays<T> built;
    width_ = build_hec(host, a, form, width, built);
    there_.column = to_space(space, std::move(built.column));
    there_.value = to_space(space, std::move(built.value));
    there_.full = to_space(space, std::move(built.full));
    there_.listed = to_space(space, std::move(built.listed));
    there_.listed_row = to_space(space, std::move(built.listed_row));
    there_.csr_offset = to_space(space, std::move(built.csr_offset));
    there_.csr_column = to_space(space, std::move(built.csr_column));
    there_.csr_value = to_space(space, std::move(built.csr_value));
    there_.long_row = to_space(space, std::move(built.long_row));
  }

  /// Of arrays that stand in the space already.
  Hec(Index rows, Index cols, Index width, HecArrays<T>&& there)
      : rows_(rows), cols_(cols), width_(width), there_(std::move(there)) {}

  Index rows() const { return rows_; }
  Index width() const { return width_; }
  /// Slots of the ELL part, padding included.
  Offset ell_slots() const { return Offset(there_.value.size()); }
  Offset csr_entries() const { return Offset(there_.csr_column.size()); }
  /// Rows in the CSR part.
  Index csr_rows() const { return std::max<Index>(0, Index(there_.csr_offset.size()) - 1); }
  Index long_rows() const { return Index(there_.long_row.size()); }
  const Index* long_row() const { return there_.long_row.data(); }
  /// Bytes of a column of the ELL part.
  int column_bytes() const { return there_.short_bytes > 0 ? there_.short_bytes : int(sizeof(Index)); }
  HecView<T> view() const {
    return {rows_,
            cols_,
            width_,
            Index(hec_leading(rows_)),
            there_.column.data(),
            there_.value.data(),
            there_.full.data(),
            csr_rows(),
            there_.listed.data(),
            there_.listed_row.data(),
            there_.csr_offset.data(),
            there_.csr_column.data(),
            there_.csr_value.data(),
            {there_.short_bytes, there_.short_word.data(), there_.short_base.data()}};
  }
  /// The arrays, for a matrix that is made of them.
  HecArrays<T> release() && { return std::move(there_); }
  std::size_t bytes() const {
    return there_.column.bytes() + there_.value.bytes() + there_.full.bytes() + there_.listed.bytes() +
           there_.listed_row.bytes() + there_.csr_offset.bytes() + there_.csr_column.bytes() +
           there_.csr_value.bytes() + there_.long_row.bytes() + there_.short_word.bytes() + there_.short_base.bytes();
  }

 private:
  Index rows_ = 0, cols_ = 0, width_ = 0;
  HecArrays<T> there_;
};

/// sum[q] += the ELL part's product of row i + q, for 0 <= q < lanes; of columns 0 .. full-1 none is padding.
template <int lanes, class T>
inline void add_ell_lanes(const HecView<T>& a, Index i, Index full, const T* x, T* sum) {
  T s[lanes];
  const Index* column = a.column + i;
  const T* value = a.value + i;
#pragma omp simd
  for (int q = 0; q < lanes; ++q) s[q] = sum[q];
  Index k = 0;
  for (; k < full; ++k, column += a.leading, value += a.leading) {
#pragma omp simd
    for (int q = 0; q < lanes; ++q) s[q] += value[q] * x[column[q]];
  }
  for (; k < a.width; ++k, column += a.leading, value += a.leading) {
#pragma omp simd
    for (int q = 0; q < lanes; ++q)
      if (column[q] >= 0) s[q] += value[q] * x[column[q]];
  }
#pragma omp simd
  for (int q = 0; q < lanes; ++q) sum[q] = s[q];
}

/// sum[i - begin] += the ELL part's product of row i, for begin <= i < end. How a row is added up depends on where the
/// range begins and ends within the row's 32 only: ranges that are cut at multiples of 32 give the same bits.
template <class T>
inline void add_ell(const HecView<T>& a, Index begin, Index end, const T* x, T* sum) {
  for (Index i = begin; i < end;) {
    const std::uint16_t* const full = a.full + i / 8;
    T* const to = sum + (i - begin);
    if (i % 32 == 0 && end - i >= 32) {
      add_ell_lanes<32>(a, i, std::min({full[0], full[1], full[2], full[3]}), x, to);
      i += 32;
    } else if (i % 8 == 0 && end - i >= 8) {
      add_ell_lanes<8>(a, i, *full, x, to);
      i += 8;
    } else {
      add_ell_lanes<1>(a, i, *full, x, to);
      ++i;
    }
  }
}

/// Sum over entries begin .. end-1 of the CSR part.
template <class T>
inline T csr_sum(const HecView<T>& a, Offset begin, Offset end, const T* x) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Offset k = begin; k < end; ++k) sum += a.csr_value[k] * x[a.csr_column[k]];
  return sum;
}

/// y = A x on the host's threads; the product form. x has cols entries, y rows.
template <class T>
void multiply(const exec::Host& host, const HecView<T>& a, const T* x, T* y);
/// r = b - A x; r may be b.
template <class T>
void residual(const exec::Host& host, const HecView<T>& a, const T* b, const T* x, T* r);

/// The operator of a square HEC matrix, vectors in the caller's order of rows. It borrows the matrix.
template <class Space, class T>
class HecOperator final : public Operator<Space, T> {
 public:
  HecOperator(Space space, const Hec<Space, T>& a) : space_(std::move(space)), a_(a.view()) {}
  Index rows() const override { return a_.rows; }
  void apply(const T* x, T* y) const override {
    space_.enqueue([a = a_, x, y](const exec::Host& host) { multiply(host, a, x, y); });
  }
  void residual(const T* b, const T* x, T* r) const override {
    space_.enqueue([a = a_, b, x, r](const exec::Host& host) { sparse::residual(host, a, b, x, r); });
  }

 private:
  Space space_;
  HecView<T> a_;
};

}  // namespace krilu::sparse
