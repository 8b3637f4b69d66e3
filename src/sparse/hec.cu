// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "krilu/error.hpp"
#include "sparse/hec.cuh"

namespace krilu::sparse {

namespace {

constexpr unsigned product_threads = exec::cuda::block_threads;

/// y = A x, or b - A x: leftovers of more than hec_long_row entries are missing.
template <bool of_residual, int N, bool exact, class T, class Read>
__global__ void __launch_bounds__(product_threads) hec_product(HecView<T> a, const T* b, Read read, T* y) {
  const unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= unsigned(a.leading)) return;  // whole warps
  const auto i = Index(place);
  const bool have = i < a.rows;
  EllRow<N, exact, T> row;
  row.open(a, i);
  const T from = of_residual && have ? b[i] : T(0);
  T sum = row.sum(a, i, read);
  add_leftover(a, place, read, sum);
  if (have) y[i] = of_residual ? from - sum : sum;
  if constexpr (requires { read.z; })
    if (have) read.z[i] = read(i);
}

template <bool of_residual, class T, class Read>
void short_rows(const exec::Cuda& space, const HecView<T>& a, const T* b, Read read, T* y) {
  if (a.rows == 0) return;
  const unsigned blocks = (unsigned(a.leading) + product_threads - 1) / product_threads;
  with_hec_width(a.width, [&](auto n, auto exact) {
    hec_product<of_residual, decltype(n)::value, decltype(exact)::value>
        <<<blocks, product_threads, 0, space.stream()>>>(a, b, read, y);
  });
  exec::cuda::launched("launching a product");
}

template <bool of_residual, class T>
void product(const exec::Cuda& space, const HecView<T>& a, const Index* long_row, Index long_rows, const T* b,
             const T* x, T* y) {
  short_rows<of_residual>(space, a, b, PlainVector<T>{x}, y);
  if (long_rows == 0) return;
  hec_long_rows<of_residual><<<unsigned(long_rows), exec::cuda::block_threads, 0, space.stream()>>>(a, long_row, x, y);
  exec::cuda::launched("launching a product");
}

}  // namespace

template <class T>
void HecOperator<exec::Cuda, T>::apply(const T* x, T* y) const {
  product<false, T>(space_, a_, long_row_, long_rows_, nullptr, x, y);
}
template <class T>
void HecOperator<exec::Cuda, T>::residual(const T* b, const T* x, T* r) const {
  product<true, T>(space_, a_, long_row_, long_rows_, b, x, r);
}
template <class T>
void HecOperator<exec::Cuda, T>::apply_scaled(const T* d, const T* x, T* z, T* y) const {
  short_rows<false>(space_, a_, static_cast<const T*>(nullptr), ScaledVector<T>{x, d, z}, y);
}

template class HecOperator<exec::Cuda, double>;

namespace {
template <class T>
__global__ void fill_regular(CsrView a, Index leading, Index width, Index* column, T* value) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= leading) return;
  const Offset begin = i < a.rows ? a.offsets[i] : 0, end = i < a.rows ? a.offsets[i + 1] : 0;
  for (Index k = 0; k < width; ++k) {
    const bool have = begin + k < end;
    column[std::size_t(k) * leading + i] = have ? a.columns[begin + k] : -1;
    value[std::size_t(k) * leading + i] = have ? T(a.values[begin + k]) : T(0);
  }
}
}  // namespace

template <class T>
Hec<exec::Cuda, T> regular_hec(const exec::Cuda& space, const DeviceCsr& a, Index width) {
  const std::int64_t leading = hec_leading(a.rows), slots = leading * width;
  if (slots > std::numeric_limits<Offset>::max())
    throw Error("the matrix does not fit 32-bit positions in ELL: it has too many rows for one device");
  HecArrays<T> there;
  there.column = space.allocate<Index>(std::size_t(slots));
  there.value = space.allocate<T>(std::size_t(slots));
  there.full = space.allocate<std::uint16_t>(std::size_t(leading / 8));
  space.clear(there.full);
  if (slots > 0)
    fill_regular<<<exec::cuda::blocks_for(leading), 256, 0, space.stream()>>>(a.view(), Index(leading), width,
                                                                              there.column.data(), there.value.data());
  exec::cuda::launched("building ELL");
  return {a.rows, a.rows, width, std::move(there)};
}
template Hec<exec::Cuda, double> regular_hec(const exec::Cuda&, const DeviceCsr&, Index);

}  // namespace krilu::sparse
