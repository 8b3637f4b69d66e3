// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "krilu/error.hpp"
#include "sparse/hec.cuh"

namespace krilu::sparse {

namespace {

constexpr unsigned product_threads = exec::cuda::block_threads;

/// y = A x, or b - A x: leftovers of more than hec_long_row entries are missing.
template <bool of_residual, int N, bool exact, class C, class T, class Read>
__global__ void __launch_bounds__(product_threads) hec_product(HecView<T> a, const T* b, Read read, T* y) {
  const unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= unsigned(a.leading)) return;  // whole warps
  const auto i = Index(place);
  const bool have = i < a.rows;
  EllRow<N, exact, T, C> row;
  row.open(a, i);
  const HecLeftover leftover(a, place);
  if constexpr (Read::ahead) exec::take_turn();
  const T from = of_residual && have ? b[i] : T(0);
  T sum = row.sum(a, i, read);
  add_leftover(a, leftover, read, sum);
  if (have) y[i] = of_residual ? from - sum : sum;
  if constexpr (requires { read.z; })
    if (have) read.z[i] = read(i);
}

/// Entries that a lane asks for at once where a row has several lanes.
constexpr int entries_a_lane = 4;

/// The same, `lanes` to a row: a warp has 32 / lanes rows, and in its first lanes the first entries of each.
template <bool of_residual, int lanes, class C, class T, class Read>
__global__ void __launch_bounds__(product_threads) hec_product_by_lanes(HecView<T> a, const T* b, Read read, T* y) {
  constexpr unsigned rows = 32 / lanes;
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned place = thread / 32 * rows + thread % rows;
  if (place >= unsigned(a.leading)) return;  // whole warps
  const auto i = Index(place);
  const auto sub = Index(thread % 32 / rows);
  EllRow<entries_a_lane, false, T, C> row;
  row.open(a, i, sub * entries_a_lane);
  const HecLeftover leftover(a, place);
  if constexpr (Read::ahead) exec::take_turn();
  T sum = row.sum(a, i, read, sub * entries_a_lane, lanes);
  add_leftover(a, leftover, read, sum, unsigned(sub), lanes);
#pragma unroll
  for (unsigned offset = rows; offset < 32; offset *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (i >= a.rows || sub != 0) return;
  y[i] = of_residual ? b[i] - sum : sum;
  if constexpr (requires { read.z; }) read.z[i] = read(i);
}

/// Vector: what x is read through, PlainVector or ScaledVector.
template <bool of_residual, template <class, bool> class Vector, class T, class... Of>
void short_rows(const exec::Cuda& space, const HecView<T>& a, int lanes, const T* b, T* y, Of... of_x) {
  if (a.rows == 0) return;
  const std::int64_t all = std::int64_t(a.leading) * lanes;
  // Of small matrices no multiprocessor is to have many rows more than another.
  const unsigned threads = all < std::int64_t(space.multiprocessors()) * 2048 ? product_threads / 2 : product_threads;
  const exec::Grid grid{unsigned((all + threads - 1) / threads), threads};
  const auto launch_reading = [&](auto read) {
    using Read = decltype(read);
    const auto launch = [&](auto kernel) { space.launch(Read::ahead, kernel, grid, a, b, read, y); };
    with_hec_columns(a, [&](auto column) {
      using C = decltype(column);
      if (lanes == 4) return launch(hec_product_by_lanes<of_residual, 4, C, T, Read>);
      if (lanes == 8) return launch(hec_product_by_lanes<of_residual, 8, C, T, Read>);
      with_hec_width(a.width, [&](auto n, auto exact) {
        launch(hec_product<of_residual, decltype(n)::value, decltype(exact)::value, C, T, Read>);
      });
    });
  };
  // A residual is not of what iterations repeat.
  if constexpr (!of_residual)
    if (space.asks_ahead(grid, most_blocks_ahead<T>)) return launch_reading(Vector<T, true>{of_x...});
  launch_reading(Vector<T, false>{of_x...});
}

template <bool of_residual, class T>
void product(const exec::Cuda& space, const HecView<T>& a, int lanes, const Index* long_row, Index long_rows,
             const T* b, const T* x, T* y) {
  short_rows<of_residual, PlainVector>(space, a, lanes, b, y, x);
  if (long_rows == 0) return;
  hec_long_rows<of_residual><<<unsigned(long_rows), exec::cuda::block_threads, 0, space.stream()>>>(a, long_row, x, y);
  exec::cuda::launched("launching a product");
}

}  // namespace

template <class T>
int HecOperator<exec::Cuda, T>::lanes_of(const exec::Cuda& space, const HecView<T>& a) {
  const std::int64_t wanted = std::int64_t(space.multiprocessors()) * 1024;  // threads
  for (int lanes : {8, 4})
    if (a.leading * std::int64_t(lanes) <= wanted && a.width > entries_a_lane * lanes / 2) return lanes;
  return 1;
}

template <class T>
void HecOperator<exec::Cuda, T>::apply(const T* x, T* y) const {
  product<false, T>(space_, a_, lanes_, long_row_, long_rows_, nullptr, x, y);
}
template <class T>
void HecOperator<exec::Cuda, T>::residual(const T* b, const T* x, T* r) const {
  product<true, T>(space_, a_, lanes_, long_row_, long_rows_, b, x, r);
}
template <class T>
void HecOperator<exec::Cuda, T>::apply_scaled(const T* d, const T* x, T* z, T* y) const {
  short_rows<false, ScaledVector>(space_, a_, lanes_, static_cast<const T*>(nullptr), y, x, d, z);
}

template class HecOperator<exec::Cuda, double>;

namespace {

/// The most slots of any 32 rows.
struct Slots {
  Index of_one_byte = 0, of_two = 0;
};
template <class T>
__global__ void count_slots(HecView<T> a, Slots* most) {
  const unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= unsigned(a.leading)) return;  // whole warps
  const auto nothing = [](Index, Index, Index, Index) {};
  const Index one = for_slots<false>(a, place, hec_reach<std::uint8_t>, nothing);
  const Index two = for_slots<false>(a, place, hec_reach<std::uint16_t>, nothing);
  if (place % 32 != 0) return;
  if (one > most->of_one_byte) atomicMax(&most->of_one_byte, one);
  if (two > most->of_two) atomicMax(&most->of_two, two);
}

/// a's ELL part in `width` slots with columns C.
template <class C, class T>
__global__ void shorten(HecView<T> a, Index width, std::uint32_t* word, Index* base, T* value) {
  const unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= unsigned(a.leading)) return;  // whole warps
  constexpr int per_word = hec_per_word<C>;
  const Index based = hec_based_slots<C>(width);
  std::uint32_t columns = 0;
  const auto put = [&](Index slot, Index lowest, C column, T v) {
    columns |= std::uint32_t(column) << 8 * sizeof(C) * unsigned(slot % per_word);
    if (slot < width) value[std::size_t(slot) * a.leading + place] = v;
    if (place % 32 == 0) base[std::size_t(place / 32) * based + slot] = lowest;
    if (slot % per_word != per_word - 1) return;
    word[std::size_t(slot / per_word) * a.leading + place] = columns;
    columns = 0;
  };
  Index slots = for_slots<false>(a, place, hec_reach<C>, [&](Index slot, Index lowest, Index j, Index k) {
    j < 0 ? put(slot, lowest, C(-1), T(0)) : put(slot, lowest, C(j - lowest), a.value[k * a.leading + Index(place)]);
  });
  for (; slots < based; ++slots) put(slots, 0, C(-1), T(0));
}

}  // namespace

template <class T>
HecShortening shortening(const exec::Cuda& space, const Hec<exec::Cuda, T>& m) {
  const HecView<T> a = m.view();
  if (a.rows == 0 || a.width == 0) return {};
  const auto most = space.allocate<Slots>(1);
  space.clear(most);
  count_slots<<<exec::cuda::blocks_for(a.leading), 256, 0, space.stream()>>>(a, most.data());
  exec::cuda::launched("looking at columns");
  const Slots slots = space.read(most, 0);
  const auto row_bytes = [](Index width, int column) {  // of values, columns and bases
    const Index words = (width + 4 / column - 1) / (4 / column);
    return double(sizeof(T)) * width + 4 * words + 4.0 / 32 * (4 / column) * words;
  };
  const double one = row_bytes(slots.of_one_byte, 1), two = row_bytes(slots.of_two, 2);
  const HecShortening best = one <= two ? HecShortening{1, slots.of_one_byte} : HecShortening{2, slots.of_two};
  const bool fits = std::int64_t(best.slots) * a.leading <= std::numeric_limits<Offset>::max();
  return fits && std::min(one, two) < double(sizeof(T) + sizeof(Index)) * a.width ? best : HecShortening{};
}

template <class T>
Hec<exec::Cuda, T> shortened(const exec::Cuda& space, Hec<exec::Cuda, T>&& m, const HecShortening& how) {
  if (how.column_bytes == int(sizeof(Index))) return std::move(m);
  const HecView<T> a = m.view();
  HecArrays<T> there = std::move(m).release();
  auto value = space.allocate<T>(std::size_t(how.slots) * std::size_t(a.leading));
  const auto shorten_to = [&](auto column) {
    using C = decltype(column);
    constexpr Index per_word = hec_per_word<C>;
    const auto words = std::size_t((how.slots + per_word - 1) / per_word);
    there.short_bytes = sizeof(C);
    there.short_word = space.allocate<std::uint32_t>(words * std::size_t(a.leading));
    there.short_base = space.allocate<Index>(words * std::size_t(per_word) * std::size_t(a.leading / 32));
    shorten<C><<<exec::cuda::blocks_for(a.leading), 256, 0, space.stream()>>>(a, how.slots, there.short_word.data(),
                                                                              there.short_base.data(), value.data());
  };
  how.column_bytes == 1 ? shorten_to(std::uint8_t{}) : shorten_to(std::uint16_t{});
  exec::cuda::launched("shortening columns");
  there.column = {};
  there.full = {};
  there.value = std::move(value);
  return {a.rows, a.cols, how.slots, std::move(there)};
}
template HecShortening shortening(const exec::Cuda&, const Hec<exec::Cuda, double>&);
template Hec<exec::Cuda, double> shortened(const exec::Cuda&, Hec<exec::Cuda, double>&&, const HecShortening&);

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
