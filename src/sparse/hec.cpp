// SPDX-License-Identifier: Apache-2.0
#include "sparse/hec.hpp"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <vector>

#include "krilu/error.hpp"

namespace krilu::sparse {

namespace {

constexpr double slot_bytes = 12;
constexpr double csr_entry_bytes = 1.5 * slot_bytes;  // see the header
constexpr double listed_row_bytes = 8;

/// Entries of row i that may stand in the ELL part: all, or all but the diagonal.
Index regular(const CsrView& a, HecForm form, Index i) {
  return a.offsets[i + 1] - a.offsets[i] - (form == HecForm::triangular ? 1 : 0);
}

void require_diagonals(const CsrView& a) {
  for (Index i = 0; i < a.rows; ++i)
    if (a.offsets[i] == a.offsets[i + 1] || a.columns[a.offsets[i + 1] - 1] != i)
      throw Error(
          fmt::format("row {} does not end in its diagonal: the triangular form of HEC needs a lower triangle "
                      "with all diagonals stored",
                      i + 1));
}

}  // namespace

Index hec_width(const CsrView& a, HecForm form) {
  Index longest = 0;
  for (Index i = 0; i < a.rows; ++i) longest = std::max(longest, regular(a, form, i));
  std::vector<Index> rows_of(std::size_t(longest) + 1, 0);
  for (Index i = 0; i < a.rows; ++i) ++rows_of[std::size_t(std::max<Index>(0, regular(a, form, i)))];

  const std::int64_t leading = hec_leading(a.rows);
  Index best = 0;
  double least = std::numeric_limits<double>::infinity();
  std::int64_t longer = 0, excess = 0;  // rows of more than w entries, and what they have beyond w
  for (Index w = longest; w >= 0; --w) {
    excess += longer;
    // A width beyond 32-bit positions is not worth a thought: it stores more than the matrix may have.
    if (leading * w <= std::numeric_limits<Offset>::max()) {
      double bytes = slot_bytes * double(leading) * w + csr_entry_bytes * double(excess);
      if (form == HecForm::product && longer > 0)
        bytes += listed_row_bytes * double(longer) + double(sizeof(HecListed)) * double(leading / 32);
      if (bytes < least) {
        least = bytes;
        best = w;
      }
    }
    longer += rows_of[std::size_t(w)];
  }
  return best;
}

template <class T>
Index build_hec(const exec::Host& host, const CsrView& a, HecForm form, Index width, HecArrays<T>& out) {
  const bool triangular = form == HecForm::triangular;
  if (triangular) require_diagonals(a);
  if (width < 0) width = hec_width(a, form);
  const std::int64_t leading = hec_leading(a.rows);
  constexpr std::int64_t most = std::numeric_limits<Offset>::max();
  if (leading > most || leading * width > most)
    throw Error(fmt::format("HEC of width {} would hold {} entries, more than 2^31 - 1: take a smaller width", width,
                            leading * width));

  // Where each row's leftover begins. The CSR part holds at most what the matrix holds, and so fits.
  const auto groups = std::size_t(leading / 32);
  std::vector<HecListed> listed(groups);
  Index count = 0;
  for (Index i = 0; i < a.rows; ++i) {
    if (!triangular && regular(a, form, i) <= width) continue;
    HecListed& group = listed[std::size_t(i / 32)];
    if (group.rows == 0) group.first = count;
    group.rows |= 1u << (i % 32);
    ++count;
  }
  if (count > 0) {
    out.csr_offset = host.allocate<Offset>(std::size_t(count) + 1);
    out.csr_offset.data()[0] = 0;
    if (!triangular) {
      out.listed_row = host.allocate<Index>(std::size_t(count));
      out.listed = host.allocate<HecListed>(groups);
      host.copy_in(out.listed, listed.data(), groups);
    }
  }
  std::vector<Index> long_row;
  for (Index i = 0, q = 0; i < a.rows; ++i) {
    if (!triangular && regular(a, form, i) <= width) continue;
    const Index left = a.offsets[i + 1] - a.offsets[i] - std::min(width, regular(a, form, i));
    if (!triangular) {
      out.listed_row.data()[q] = i;
      if (left > hec_long_row) long_row.push_back(q);
    }
    out.csr_offset.data()[q + 1] = out.csr_offset.data()[q] + left;
    ++q;
  }
  out.long_row = host.allocate<Index>(long_row.size());
  host.copy_in(out.long_row, long_row.data(), long_row.size());

  const auto entries = std::size_t(count > 0 ? out.csr_offset.data()[count] : 0);
  const auto slots = std::size_t(leading) * std::size_t(width);
  out.csr_column = host.allocate<Index>(entries);
  out.csr_value = host.allocate<T>(entries);
  out.column = host.allocate<Index>(slots);
  out.value = host.allocate<T>(slots);
  out.full = host.allocate<std::uint16_t>(std::size_t(leading / 8));

  host.for_each_range(groups, [&](Index begin, Index end) {
    for (Index g = begin; g < end; ++g) {
      for (int part = 0; part < 4; ++part) {
        Index full = width;
        for (Index i = 32 * g + 8 * part; i < 32 * g + 8 * part + 8; ++i)
          full = std::min(full, i < a.rows ? regular(a, form, i) : 0);
        out.full.data()[4 * g + part] = std::uint16_t(std::min<Index>(full, std::numeric_limits<std::uint16_t>::max()));
      }
      for (Index i = 32 * g; i < 32 * g + 32; ++i) {
        const Offset from = i < a.rows ? a.offsets[i] : 0;
        const Index held = i < a.rows ? std::min(width, regular(a, form, i)) : 0;
        for (Index k = 0; k < width; ++k) {
          const auto at = std::size_t(k) * std::size_t(leading) + std::size_t(i);
          out.column.data()[at] = k < held ? a.columns[from + k] : -1;
          out.value.data()[at] = k < held ? T(a.values[from + k]) : T(0);
        }
        const HecListed& group = listed[std::size_t(g)];
        if (!(group.rows >> (i - 32 * g) & 1)) continue;
        const Index q = group.first + std::popcount(group.rows & ((1u << (i - 32 * g)) - 1));
        Offset to = out.csr_offset.data()[q];
        for (Offset k = from + held; k < a.offsets[i + 1]; ++k, ++to) {
          out.csr_column.data()[to] = a.columns[k];
          out.csr_value.data()[to] = T(a.values[k]);
        }
      }
    }
  });
  return width;
}

namespace {

/// finish(row, sum) for every row, sum being the row's product with x: the ELL part's entries first.
template <class T, class Finish>
void for_products(const exec::Host& host, const HecView<T>& a, const T* x, Finish finish) {
  host.for_each_range(std::size_t(a.rows), [=](Index begin, Index end) {
    T sum[exec::Host::block];
    std::fill(sum, sum + (end - begin), T(0));
    add_ell(a, begin, end, x, sum);
    if (a.csr_rows > 0) {
      const Index* const last = a.listed_row + a.csr_rows;
      for (const Index* row = std::lower_bound(a.listed_row, last, begin); row != last && *row < end; ++row) {
        const auto q = row - a.listed_row;
        sum[*row - begin] += csr_sum(a, a.csr_offset[q], a.csr_offset[q + 1], x);
      }
    }
#pragma omp simd
    for (Index i = begin; i < end; ++i) finish(i, sum[i - begin]);
  });
}

}  // namespace

template <class T>
void multiply(const exec::Host& host, const HecView<T>& a, const T* x, T* y) {
  for_products(host, a, x, [y](Index i, T sum) { y[i] = sum; });
}

template <class T>
void residual(const exec::Host& host, const HecView<T>& a, const T* b, const T* x, T* r) {
  for_products(host, a, x, [b, r](Index i, T sum) { r[i] = b[i] - sum; });
}

template Index build_hec(const exec::Host&, const CsrView&, HecForm, Index, HecArrays<double>&);
template void multiply(const exec::Host&, const HecView<double>&, const double*, double*);
template void residual(const exec::Host&, const HecView<double>&, const double*, const double*, double*);

}  // namespace krilu::sparse
