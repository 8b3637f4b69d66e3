// SPDX-License-Identifier: Apache-2.0
// HEC on a GPU (hec.hpp): a thread has a row of the ELL part, and asks for all its columns and values before it uses
// any. A short leftover of the CSR part is added up by the row's own thread and a longer one by its warp, in the same
// kernel; one of more than hec_long_row entries by a thread block in a second kernel. No atomics: the same bits on
// every run on the same kind of GPU.
//
// Columns may be short: one or two bytes from a base that 32 rows share in each of their slots. A slot takes the
// entries that lie within reach of the lowest column not yet taken, whichever of their rows' entries they are, so that
// rows at the border of a lattice leave slots empty in place of shifting all others. Bytes of y = A x, stencils of 7
// points: 81 a row where columns of four bytes take 100.
//
// Rows of a small matrix have several lanes each where they are long enough: with a thread a row too few of them would
// be there to keep memory busy.
//
// Included by .cu files only.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "exec/cuda.cuh"
#include "sparse/csr_cuda.cuh"
#include "sparse/hec.hpp"
#include "sparse/rounding.cuh"

namespace krilu::sparse {

template <class T>
class HecOperator<exec::Cuda, T> final : public Operator<exec::Cuda, T> {
 public:
  HecOperator(exec::Cuda space, const Hec<exec::Cuda, T>& a)
      : space_(std::move(space)),
        a_(a.view()),
        long_row_(a.long_row()),
        long_rows_(a.long_rows()),
        lanes_(lanes_of(space_, a_)) {}
  Index rows() const override { return a_.rows; }
  void apply(const T* x, T* y) const override;
  void residual(const T* b, const T* x, T* r) const override;
  bool can_scale() const override { return long_rows_ == 0; }
  void apply_scaled(const T* d, const T* x, T* z, T* y) const override;
  /// For products that do more than this; null where some rows need a kernel of their own.
  const HecView<T>* all_rows() const { return long_rows_ == 0 ? &a_ : nullptr; }

  /// Lanes that a row has.
  int lanes() const { return lanes_; }

 private:
  static int lanes_of(const exec::Cuda& space, const HecView<T>& a);

  exec::Cuda space_;
  HecView<T> a_;
  const Index* long_row_;
  Index long_rows_;
  int lanes_;
};

/// What columns of a pattern are best stored in, and in how many slots of a row.
struct HecShortening {
  int column_bytes = int(sizeof(Index));
  Index slots = 0;
};
/// The one that makes the ELL part of m smallest. Product form; waits for the device. It depends on the pattern and the
/// width alone.
template <class T>
HecShortening shortening(const exec::Cuda& space, const Hec<exec::Cuda, T>& m);
/// The same matrix with such columns; m itself where they are as they are.
template <class T>
Hec<exec::Cuda, T> shortened(const exec::Cuda& space, Hec<exec::Cuda, T>&& m, const HecShortening& how);
template <class T>
Hec<exec::Cuda, T> shortened(const exec::Cuda& space, Hec<exec::Cuda, T>&& m) {
  const HecShortening how = shortening(space, m);
  return shortened(space, std::move(m), how);
}

/// HEC without a CSR part, built on the device: no row of a has more than `width` entries.
template <class T>
Hec<exec::Cuda, T> regular_hec(const exec::Cuda& space, const DeviceCsr& a, Index width);

/// Columns that stand in a word; 1: each as it is.
template <class C>
constexpr int hec_per_word = int(sizeof(Index) / sizeof(C));
/// How far a column may be from its slot's base.
template <class C>
constexpr Index hec_reach = C(-1) - 1;

/// f(C{}): C is what columns are stored in.
template <class T, class F>
void with_hec_columns(const HecView<T>& a, const F& f) {
  switch (a.shortened.bytes) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    default: return f(Index{});
  }
}

/// f(integral_constant<int, N>, bool_constant<exact>): N entries of a row are asked for at once, and are all that a row
/// has where exact.
template <class F>
void with_hec_width(Index width, const F& f) {
  const auto exactly = [&](auto n) { f(n, std::true_type{}); };
  switch (width) {
    case 1: return exactly(std::integral_constant<int, 1>{});
    case 2: return exactly(std::integral_constant<int, 2>{});
    case 3: return exactly(std::integral_constant<int, 3>{});
    case 4: return exactly(std::integral_constant<int, 4>{});
    case 5: return exactly(std::integral_constant<int, 5>{});
    case 6: return exactly(std::integral_constant<int, 6>{});
    case 7: return exactly(std::integral_constant<int, 7>{});
    case 8: return exactly(std::integral_constant<int, 8>{});
    default: return f(std::integral_constant<int, 8>{}, std::false_type{});
  }
}

#if defined(__CUDACC__)
/// Thread blocks on a multiprocessor up to which a product gains where it asks for the matrix before it takes its turn
/// (overlap.cuh). With Jacobi, solves in single precision take up to 8% less, and 1% still on a million rows; in double
/// 5% less on 27,000 rows, and BiCGStab 7% more on 512,000.
template <class T>
constexpr int most_blocks_ahead = sizeof(T) < 8 ? 64 : 4;

/// A vector as a product reads it. asked_ahead: for the matrix, and so x not by __ldg, which may go before the turn.
template <class T, bool asked_ahead = false>
struct PlainVector {
  static constexpr bool ahead = asked_ahead;
  const T* x;
  __device__ __forceinline__ T operator()(Index i) const { return ahead ? x[i] : __ldg(x + i); }
};
/// D x, to be left in z.
template <class T, bool asked_ahead = false>
struct ScaledVector {
  static constexpr bool ahead = asked_ahead;
  const T *x, *d;
  T* z;
  __device__ __forceinline__ T operator()(Index i) const { return (ahead ? x[i] : __ldg(x + i)) * __ldg(d + i); }
};

/// Slots of a base's row: words are whole.
template <class C>
__device__ __forceinline__ Index hec_based_slots(Index width) {
  constexpr Index n = hec_per_word<C>;
  return (width + n - 1) / n * n;
}

/// Columns of N entries of a row, asked for and not yet looked at.
template <int N, class C>
struct EllColumns {
  static constexpr int per_word = hec_per_word<C>, words = (N + per_word - 1) / per_word;
  std::uint32_t word[words];
  Index base[words * per_word];

  /// k: a multiple of per_word.
  template <bool exact, class T>
  __device__ __forceinline__ void open(const HecView<T>& a, Index i, Index k) {
    const Index* const from = a.shortened.base + (std::size_t(unsigned(i) / 32) * hec_based_slots<C>(a.width) + k);
#pragma unroll
    for (int w = 0; w < words; ++w) {
      const bool have = exact || k + w * per_word < a.width;
      word[w] = have ? __ldcs(a.shortened.word + (std::size_t(k / per_word + w) * a.leading + i)) : ~0u;
      if constexpr (per_word == 4) {
        const int4 b = have ? __ldg(reinterpret_cast<const int4*>(from) + w) : int4{};
        base[4 * w] = b.x;
        base[4 * w + 1] = b.y;
        base[4 * w + 2] = b.z;
        base[4 * w + 3] = b.w;
      } else {
        const int2 b = have ? __ldg(reinterpret_cast<const int2*>(from) + w) : int2{};
        base[2 * w] = b.x;
        base[2 * w + 1] = b.y;
      }
    }
  }
  /// Of entry j; -1: padding.
  __device__ __forceinline__ Index operator[](int j) const {
    const std::uint32_t c = word[j / per_word] >> 8 * sizeof(C) * (j % per_word) & C(-1);
    return c == C(-1) ? -1 : base[j] + Index(c);
  }
};
template <int N>
struct EllColumns<N, Index> {
  Index column[N];

  template <bool exact, class T>
  __device__ __forceinline__ void open(const HecView<T>& a, Index i, Index k) {
#pragma unroll
    for (int j = 0; j < N; ++j)
      column[j] = exact || k + j < a.width ? __ldcs(a.column + ((k + j) * a.leading + i)) : -1;
  }
  __device__ __forceinline__ Index operator[](int j) const { return column[j]; }
};

/// Row i of the ELL part, as its thread sees it. C: what columns are stored in.
template <int N, bool exact, class T, class C = Index>
struct EllRow {
  EllColumns<N, C> column;
  T value[N];

  /// Asks for entries k .. k+N-1, of which nothing is waited for.
  __device__ __forceinline__ void open(const HecView<T>& a, Index i, Index k = 0) {
    column.template open<exact>(a, i, k);
#pragma unroll
    for (int j = 0; j < N; ++j)
      value[j] = exact || k + j < a.width ? __ldcs(a.value + ((k + j) * a.leading + i)) : T(0);
  }
  /// Adds up what was asked for, and the rest of the row, of which other lanes have what stands between; read(c) is
  /// x_c.
  template <class Read>
  __device__ __forceinline__ T sum(const HecView<T>& a, Index i, const Read& read, Index first = 0, int lanes = 1) {
    T s = add(T(0), read);
    if constexpr (!exact)
      for (Index k = first + N * lanes; k < a.width; k += N * lanes) {
        open(a, i, k);
        s = add(s, read);
      }
    return s;
  }

 private:
  template <class Read>
  __device__ __forceinline__ T add(T s, const Read& read) const {
    T x[N];
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const Index c = column[j];
      x[j] = c >= 0 ? read(c) : T(0);
    }
#pragma unroll
    for (int j = 0; j < N; ++j) s += value[j] * x[j];  // padding has value 0, and now x 0
    return s;
  }
};

/// Column k of row i in the ELL part, or -1.
template <class T>
__device__ __forceinline__ Index hec_column(const HecView<T>& a, Index i, Index k) {
  if (a.column) return a.column[k * a.leading + i];
  const auto one = [&](auto c) {
    using C = decltype(c);
    constexpr int per_word = hec_per_word<C>;
    const std::uint32_t word = a.shortened.word[std::size_t(k / per_word) * a.leading + i];
    const std::uint32_t at = word >> 8 * sizeof(C) * unsigned(k % per_word) & C(-1);
    if (at == C(-1)) return Index(-1);
    return a.shortened.base[std::size_t(unsigned(i) / 32) * hec_based_slots<C>(a.width) + k] + Index(at);
  };
  return a.shortened.bytes == 1 ? one(std::uint8_t{}) : one(std::uint16_t{});
}

/// visit(slot, lowest, column, k) for each slot of 32 rows, by a whole warp: row `place` has its entry k of the ELL
/// part there, or column -1. Entries of the diagonal are left out where `off_diagonal`. Returns the number of slots.
/// within_reach: of the lowest column.
template <bool off_diagonal, class T, class Visit>
__device__ __forceinline__ Index for_slots(const HecView<T>& a, unsigned place, Index within_reach,
                                           const Visit& visit) {
  constexpr Index none = std::numeric_limits<Index>::max();
  const auto i = Index(place);
  Index k = 0;
  const auto next = [&] {  // from k on
    for (; k < a.width; ++k)
      if (const Index c = hec_column(a, i, k); c >= 0 && !(off_diagonal && c == i)) return c;
    return none;
  };
  Index column = next();
  for (Index slot = 0;; ++slot) {
    const Index lowest = __reduce_min_sync(0xffffffffu, column);
    if (lowest == none) return slot;
    const bool here = column != none && column - lowest <= within_reach;
    visit(slot, lowest, here ? column : -1, k);
    if (here) {
      ++k;
      column = next();
    }
  }
}

/// Every `stride`th entry of the CSR part from `begin` on, before `end`: four asked for at once. Unsigned, since
/// `begin` and the step may lead beyond 31 bits. T: the sum's type.
template <class T, class S, class Read>
__device__ __forceinline__ T add_csr(const HecView<S>& a, unsigned begin, unsigned end, unsigned stride,
                                     const Read& read) {
  T s = 0;
  for (unsigned k = begin; k < end; k += 4 * stride) {
    Index column[4];
    T value[4], x[4];
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) {
      const bool have = k + j * stride < end;
      column[j] = have ? __ldcs(a.csr_column + k + j * stride) : -1;
      value[j] = have ? T(streamed(a.csr_value + k + j * stride)) : T(0);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) x[j] = column[j] >= 0 ? read(column[j]) : T(0);
#pragma unroll
    for (int j = 0; j < 4; ++j) s += value[j] * x[j];
  }
  return s;
}

/// Where the CSR part of a row stands: asked for before the ELL part is added up, so that nobody waits for it then.
struct HecLeftover {
  Offset begin = 0, end = 0;
  bool any = false;  // in one of the warp's rows

  /// By whole warps, the rows of which are among the same 32.
  template <class S>
  __device__ __forceinline__ HecLeftover(const HecView<S>& a, unsigned place) {
    const HecListed listed = a.listed ? a.listed[place / 32] : HecListed{};
    any = listed.rows != 0;
    const unsigned row = place % 32;
    if (listed.rows >> row & 1) {
      const Index q = listed.first + __popc(listed.rows & ((1u << row) - 1));
      begin = __ldg(a.csr_offset + q);
      end = __ldg(a.csr_offset + q + 1);
    }
  }
};

/// Adds to sum what the CSR part holds of a row, by whole warps; leftovers of more than hec_long_row entries are left
/// to hec_long_rows. sub: which of its `lanes` lanes this one is, each of which has a sum of its own.
template <class T, class S, class Read>
__device__ __forceinline__ void add_leftover(const HecView<S>& a, const HecLeftover& of, const Read& read, T& sum,
                                             unsigned sub = 0, unsigned lanes = 1) {
  if (!of.any) return;
  const auto short_leftover = Index(16 * lanes);  // what a row's own lanes add up while the warp's others wait
  const unsigned lane = threadIdx.x % 32;
  const Index length = of.end - of.begin;
  if (length <= short_leftover) sum += add_csr<T>(a, unsigned(of.begin) + sub, unsigned(of.end), lanes, read);
  unsigned by_warp = __ballot_sync(0xffffffffu, sub == 0 && length > short_leftover && length <= hec_long_row);
  for (; by_warp != 0; by_warp &= by_warp - 1) {
    const int owner = __ffs(int(by_warp)) - 1;
    const unsigned first = unsigned(__shfl_sync(0xffffffffu, of.begin, owner)),
                   last = unsigned(__shfl_sync(0xffffffffu, of.end, owner));
    T part = add_csr<T>(a, first + lane, last, 32, read);
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) part += __shfl_xor_sync(0xffffffffu, part, offset);
    if (int(lane) == owner) sum += part;
  }
}

/// Adds what a product without them left out: a block a row.
template <bool of_residual, class T, class S>
__global__ void __launch_bounds__(exec::cuda::block_threads)
    hec_long_rows(HecView<S> a, const Index* long_row, const T* x, T* y) {
  const Index q = long_row[blockIdx.x];
  const auto begin = unsigned(a.csr_offset[q]) + threadIdx.x, end = unsigned(a.csr_offset[q + 1]);
  T sum[1] = {add_csr<T>(a, begin, end, exec::cuda::block_threads, [x](Index c) { return __ldg(x + c); })};
  exec::cuda::block_sum(sum);
  if (threadIdx.x != 0) return;
  const Index i = a.listed_row[q];
  y[i] = of_residual ? y[i] - sum[0] : y[i] + sum[0];
}
#endif

}  // namespace krilu::sparse
