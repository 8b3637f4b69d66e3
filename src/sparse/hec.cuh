// SPDX-License-Identifier: Apache-2.0
// HEC on a GPU (hec.hpp): a thread has a row of the ELL part, and asks for all its columns and values before it uses
// any. A short leftover of the CSR part is added up by the row's own thread and a longer one by its warp, in the same
// kernel; one of more than hec_long_row entries by a thread block in a second kernel. No atomics: the same bits on
// every run. Included by .cu files only.
#pragma once

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
      : space_(std::move(space)), a_(a.view()), long_row_(a.long_row()), long_rows_(a.long_rows()) {}
  Index rows() const override { return a_.rows; }
  void apply(const T* x, T* y) const override;
  void residual(const T* b, const T* x, T* r) const override;
  bool can_scale() const override { return long_rows_ == 0; }
  void apply_scaled(const T* d, const T* x, T* z, T* y) const override;
  /// For products that do more than this; null where some rows need a kernel of their own.
  const HecView<T>* all_rows() const { return long_rows_ == 0 ? &a_ : nullptr; }

 private:
  exec::Cuda space_;
  HecView<T> a_;
  const Index* long_row_;
  Index long_rows_;
};

/// HEC without a CSR part, built on the device: no row of a has more than `width` entries.
template <class T>
Hec<exec::Cuda, T> regular_hec(const exec::Cuda& space, const DeviceCsr& a, Index width);

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
/// A vector as a product reads it.
template <class T>
struct PlainVector {
  const T* x;
  __device__ __forceinline__ T operator()(Index i) const { return __ldg(x + i); }
};
/// D x, to be left in z.
template <class T>
struct ScaledVector {
  const T *x, *d;
  T* z;
  __device__ __forceinline__ T operator()(Index i) const { return __ldg(x + i) * __ldg(d + i); }
};

/// Row i of the ELL part, as its thread sees it.
template <int N, bool exact, class T>
struct EllRow {
  Index column[N];
  T value[N];

  /// Asks for entries k .. k+N-1, of which nothing is waited for.
  __device__ __forceinline__ void open(const HecView<T>& a, Index i, Index k = 0) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const bool have = exact || k + j < a.width;
      const Offset at = (k + j) * a.leading + i;
      column[j] = have ? __ldcs(a.column + at) : -1;
      value[j] = have ? __ldcs(a.value + at) : T(0);
    }
  }
  /// Adds up what was asked for, and the rest of the row; read(c) is x_c.
  template <class Read>
  __device__ __forceinline__ T sum(const HecView<T>& a, Index i, const Read& read) {
    T s = add(T(0), read);
    if constexpr (!exact)
      for (Index k = N; k < a.width; k += N) {
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
    for (int j = 0; j < N; ++j) x[j] = column[j] >= 0 ? read(column[j]) : T(0);
#pragma unroll
    for (int j = 0; j < N; ++j) s += value[j] * x[j];  // padding has value 0, and now x 0
    return s;
  }
};

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

/// Adds to sum what the CSR part holds of row `place`, by whole warps; leftovers of more than hec_long_row entries are
/// left to hec_long_rows.
template <class T, class S, class Read>
__device__ __forceinline__ void add_leftover(const HecView<S>& a, unsigned place, const Read& read, T& sum) {
  constexpr Index short_leftover = 16;  // what a row's own thread adds up while the warp's others wait
  const HecListed listed = a.listed ? a.listed[place / 32] : HecListed{};
  if (listed.rows == 0) return;
  const unsigned lane = threadIdx.x % 32;
  Offset begin = 0, end = 0;
  if (listed.rows >> lane & 1) {
    const Index q = listed.first + __popc(listed.rows & ((1u << lane) - 1));
    begin = __ldg(a.csr_offset + q);
    end = __ldg(a.csr_offset + q + 1);
  }
  const Index length = end - begin;
  if (length <= short_leftover) sum += add_csr<T>(a, unsigned(begin), unsigned(end), 1, read);
  unsigned by_warp = __ballot_sync(0xffffffffu, length > short_leftover && length <= hec_long_row);
  for (; by_warp != 0; by_warp &= by_warp - 1) {
    const int owner = __ffs(int(by_warp)) - 1;
    const unsigned first = unsigned(__shfl_sync(0xffffffffu, begin, owner)),
                   last = unsigned(__shfl_sync(0xffffffffu, end, owner));
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
