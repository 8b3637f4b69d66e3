// SPDX-License-Identifier: Apache-2.0
#include "sparse/hec.cuh"
#include "triangular/hec.cuh"

namespace krilu::triangular {

namespace {

constexpr unsigned threads_of_wide = 128, threads_of_narrow = 512;

template <class T>
struct HecSweep {
  sparse::HecView<T> l;
  const Index* row;
  const T* b;
  T* z;  // x'
  T* x;
};

/// A row on its way: open() asks for all that does not depend on other rows, solve() does the rest.
template <int N, bool exact, class T>
struct HecRow {
  sparse::EllRow<N, exact, T> ell;
  Offset begin, last;  // its part of the CSR, and its diagonal
  Index to;
  T diagonal, right;

  __device__ __forceinline__ void open(const HecSweep<T>& s, Index i) {
    begin = __ldg(s.l.csr_offset + i);
    last = __ldg(s.l.csr_offset + i + 1) - 1;
    to = __ldg(s.row + i);
    ell.open(s.l, i);
    diagonal = __ldcs(s.l.csr_value + last);
    right = s.b[to];  // x may be b
  }
  __device__ __forceinline__ void solve(const HecSweep<T>& s, Index i) {
    // Plain loads: the block may have written z in this very launch.
    const auto read = [&s](Index c) { return s.z[c]; };
    const T known = ell.sum(s.l, i, read) + sparse::add_csr<T>(s.l, unsigned(begin), unsigned(last), 1, read);
    const T value = (right - known) / diagonal;
    s.z[i] = value;
    s.x[to] = value;
  }
};

/// Rows begin .. end-1, which are of one level.
template <int N, bool exact, class T>
__global__ void __launch_bounds__(threads_of_wide) hec_wide_level(HecSweep<T> s, Index begin, Index end) {
  const unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= unsigned(end - begin)) return;
  const Index i = begin + Index(place);
  HecRow<N, exact, T> row;
  row.open(s, i);
  row.solve(s, i);
}

/// Levels first .. last-1. A thread asks for its row of the next level before the barrier.
template <int N, bool exact, class T>
__global__ void __launch_bounds__(threads_of_narrow)
    hec_narrow_levels(HecSweep<T> s, const Index* level, Index first, Index last) {
  HecRow<N, exact, T> next;
  Index begin = level[first], end = level[first + 1];
  Index i = begin + Index(threadIdx.x);
  if (i < end) next.open(s, i);
  for (Index l = first; l < last; ++l) {
    if (i < end) next.solve(s, i);
    for (Index k = i + Index(threads_of_narrow); k < end; k += Index(threads_of_narrow)) {
      HecRow<N, exact, T> row;
      row.open(s, k);
      row.solve(s, k);
    }
    if (l + 1 < last) {
      begin = end;
      end = level[l + 2];
      i = begin + Index(threadIdx.x);
      if (i < end) next.open(s, i);
    }
    __syncthreads();
  }
}

}  // namespace

template <>
void HecSolver<exec::Cuda, double>::solve(const double* b, double* x) const {
  const HecSweep<double> s{l_.view(), row_.data(), b, work_.data(), x};
  sparse::with_hec_width(s.l.width, [&](auto n, auto exact) {
    constexpr int N = decltype(n)::value;
    constexpr bool all = decltype(exact)::value;
    for (const HecStep& step : steps_) {
      if (step.shared)
        hec_wide_level<N, all><<<(unsigned(step.end - step.begin) + threads_of_wide - 1) / threads_of_wide,
                                 threads_of_wide, 0, space_.stream()>>>(s, step.begin, step.end);
      else
        hec_narrow_levels<N, all>
            <<<1, threads_of_narrow, 0, space_.stream()>>>(s, level_.data(), step.first, step.last);
    }
  });
  exec::cuda::launched("launching a triangular solve");
}

template class HecSolver<exec::Cuda, double>;

}  // namespace krilu::triangular
