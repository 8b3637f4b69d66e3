// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <limits>

#include "exec/warp.cuh"
#include "sparse/hec.cuh"
#include "sparse/hec_rounded.cuh"

namespace krilu::sparse {

namespace {

using exec::cuda::blocks_for;
using exec::cuda::launched;

constexpr unsigned product_threads = 256;
constexpr Index no_bound = std::numeric_limits<Index>::max();

/// How a column is stored: as it is, or counted from its slot's base.
template <class C>
constexpr bool is_short = sizeof(C) < sizeof(Index);
template <class C>
constexpr C padding = C(-1);
/// How far from a slot's lowest column another one of it may be.
template <class C>
constexpr Index reach = is_short<C> ? hec_reach<C> : no_bound;

template <class V>
struct alignas(2 * sizeof(V)) Pair {
  V first, second;
};
template <class V>
__device__ __forceinline__ Pair<V> streamed_pair(const Pair<V>* p) {
  if constexpr (sizeof(V) == 1)
    return std::bit_cast<Pair<V>>(__ldcs(reinterpret_cast<const unsigned short*>(p)));
  else if constexpr (sizeof(V) == 2)
    return std::bit_cast<Pair<V>>(__ldcs(reinterpret_cast<const unsigned*>(p)));
  else
    return std::bit_cast<Pair<V>>(__ldcs(reinterpret_cast<const uint2*>(p)));
}

/// Pair p of row i is at p * leading + i.
template <class C, class S>
struct PairedView {
  Index rows, leading, pairs;
  const Pair<C>* column;
  const int2* base;  // of each 32 rows in turn: of both slots of each pair; null where columns are not short
  const Pair<S>* value;
  const float* diagonal;  // leading
};

// --- products -------------------------------------------------------------------------------------------------------

/// A row as its thread sees it.
template <int N, bool exact, class C, class S>
struct PairedRow {
  Pair<C> column[N];
  int2 base[N];
  Pair<S> value[N];

  /// Asks for pairs p .. p+N-1, of which nothing is waited for.
  __device__ __forceinline__ void open(const PairedView<C, S>& a, Index i, Index p = 0) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const bool have = exact || p + j < a.pairs;
      const Offset at = (p + j) * a.leading + i;
      column[j] = have ? streamed_pair(a.column + at) : Pair<C>{padding<C>, padding<C>};
      value[j] = have ? streamed_pair(a.value + at) : Pair<S>{};
      if constexpr (is_short<C>) base[j] = have ? __ldg(a.base + (Index(unsigned(i) / 32) * a.pairs + p + j)) : int2{};
    }
  }
  /// Adds what was asked for, and the rest of the row.
  template <class Read>
  __device__ __forceinline__ void add(const PairedView<C, S>& a, Index i, const Read& read, float& sum) {
    add_opened(read, sum);
    if constexpr (!exact)
      for (Index p = N; p < a.pairs; p += N) {
        open(a, i, p);
        add_opened(read, sum);
      }
  }

 private:
  template <class Read>
  __device__ __forceinline__ void add_opened(const Read& read, float& sum) const {
    float x[2 * N];
    const auto fetched = [&](C c, int from) {
      if (c == padding<C>) return 0.0f;
      return read(is_short<C> ? from + Index(c) : Index(c));
    };
#pragma unroll
    for (int j = 0; j < N; ++j) {
      x[2 * j] = fetched(column[j].first, base[j].x);
      x[2 * j + 1] = fetched(column[j].second, base[j].y);
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
      sum += float(value[j].first) * x[2 * j];  // padding has value 0, and x 0
      sum += float(value[j].second) * x[2 * j + 1];
    }
  }
};

/// y = A x, or b - A x: leftovers of more than hec_long_row entries are missing. Read: x, as PlainVector has it.
template <bool of_residual, int N, bool exact, class C, class S, class Read>
__global__ void __launch_bounds__(product_threads)
    paired_product(PairedView<C, S> a, HecView<S> leftover, const float* b, Read read, float* y) {
  const unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= unsigned(a.leading)) return;  // whole warps
  const auto i = Index(place);
  const bool have = i < a.rows;
  PairedRow<N, exact, C, S> row;
  row.open(a, i);
  const HecLeftover rest(leftover, place);
  const float diagonal = __ldcs(a.diagonal + i);
  if constexpr (Read::ahead) exec::take_turn();
  const float own = have ? read(i) : 0.0f, from = of_residual && have ? b[i] : 0.0f;
  float sum = diagonal != 0 ? diagonal * own : 0.0f;  // without one x_i is not looked at
  row.add(a, i, read, sum);
  add_leftover(leftover, rest, read, sum);
  if (have) y[i] = of_residual ? from - sum : sum;
}

/// f(integral_constant<int, N>, bool_constant<exact>) as with_hec_width has it, of pairs.
template <class F>
void with_pairs(Index pairs, const F& f) {
  const auto exactly = [&](auto n) { f(n, std::true_type{}); };
  switch (pairs) {
    case 1: return exactly(std::integral_constant<int, 1>{});
    case 2: return exactly(std::integral_constant<int, 2>{});
    case 3: return exactly(std::integral_constant<int, 3>{});
    case 4: return exactly(std::integral_constant<int, 4>{});
    default: return f(std::integral_constant<int, 4>{}, std::false_type{});
  }
}

// --- how it is built ------------------------------------------------------------------------------------------------

/// The most slots of any 32 rows.
struct Slots {
  Index of_one_byte = 0, of_two = 0, of_four = 0;
};
__global__ void count_slots(HecView<double> a, Slots* most) {
  const unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= unsigned(a.leading)) return;  // whole warps
  const auto nothing = [](Index, Index, Index, Index) {};
  const Index one = for_slots<true>(a, place, reach<std::uint8_t>, nothing);
  const Index two = for_slots<true>(a, place, reach<std::uint16_t>, nothing);
  const Index four = for_slots<true>(a, place, no_bound, nothing);
  if (place % 32 != 0) return;
  if (one > most->of_one_byte) atomicMax(&most->of_one_byte, one);
  if (two > most->of_two) atomicMax(&most->of_two, two);
  if (four > most->of_four) atomicMax(&most->of_four, four);
}

/// What one part of a row knows of its diagonal entry, not scaled: the entry, where it stands there, and what rounding
/// took from the others.
struct OfDiagonal {
  double entry = 0, missing = 0;
};

/// R_i a_ij C_j, rounded.
template <class S>
__device__ __forceinline__ S round_entry(double v, double scale, OfDiagonal& diagonal, unsigned& lost) {
  const S s = rounded_counting<S>(v * scale, lost);
  diagonal.missing += v - double(float(s)) / scale;
  return s;
}

/// The CSR part, a warp a listed row.
template <class S>
__global__ void __launch_bounds__(256)
    round_leftovers(HecView<double> a, DeviceScales scales, S* value, OfDiagonal* diagonal, std::int64_t* lost) {
  const Index q = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32);
  if (q >= a.csr_rows) return;
  const Index i = a.listed_row[q];
  const double r = scales.r(i);
  OfDiagonal found;
  unsigned mine = 0;
  for (unsigned k = unsigned(a.csr_offset[q]) + threadIdx.x % 32; k < unsigned(a.csr_offset[q + 1]); k += 32) {
    const Index j = a.csr_column[k];
    const double v = a.csr_value[k];
    if (j == i) {
      found.entry += v;
      value[k] = S(0.0f);
    } else {
      value[k] = round_entry<S>(v, r * scales.c(j), found, mine);
    }
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    found.entry += __shfl_xor_sync(exec::all_lanes, found.entry, offset);
    found.missing += __shfl_xor_sync(exec::all_lanes, found.missing, offset);
  }
  if (threadIdx.x % 32 == 0) diagonal[i] = found;
  count_lost(lost, mine);
}

/// The ELL part and the diagonal. of_leftovers: of each row what round_leftovers found, or null.
template <class C, class S>
__global__ void __launch_bounds__(256)
    round_pairs(HecView<double> a, DeviceScales scales, const OfDiagonal* of_leftovers, Index pairs, Pair<C>* column,
                Index* base, Pair<S>* value, float* diagonal, std::int64_t* lost) {
  const unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= unsigned(a.leading)) return;  // whole warps
  const auto i = Index(place);
  const bool have = i < a.rows;
  const double r = have ? scales.r(i) : 1.0;
  OfDiagonal found;
  if (have && of_leftovers) found = of_leftovers[i];
  unsigned mine = 0;
  for (Index k = 0; k < a.width; ++k)
    if (hec_column(a, i, k) == i) found.entry += a.value[k * a.leading + i];
  const auto put = [&](Index slot, Index lowest, C c, S s) {
    const auto at = std::size_t(slot / 2) * std::size_t(a.leading) + place;
    (slot % 2 ? column[at].second : column[at].first) = c;
    (slot % 2 ? value[at].second : value[at].first) = s;
    if (is_short<C> && place % 32 == 0) base[std::size_t(place / 32) * unsigned(2 * pairs) + unsigned(slot)] = lowest;
  };
  Index slots = for_slots<true>(a, place, reach<C>, [&](Index slot, Index lowest, Index j, Index k) {
    if (j < 0) return put(slot, lowest, padding<C>, S(0.0f));
    const S s = round_entry<S>(a.value[k * a.leading + i], r * scales.c(j), found, mine);
    put(slot, lowest, C(is_short<C> ? j - lowest : j), s);
  });
  for (; slots < 2 * pairs; ++slots) put(slots, 0, padding<C>, S(0.0f));
  const double scale = have ? r * scales.c(i) : 0.0;
  diagonal[i] = rounded_counting<float>(with_missing<S>(found.entry * scale, found.missing * scale), mine);
  count_lost(lost, mine);
}

template <class T>
exec::Array<T> copied(const exec::Cuda& space, const T* from, std::size_t n) {
  auto to = space.allocate<T>(n);
  if (n > 0)
    exec::require_cuda(cudaMemcpyAsync(to.data(), from, to.bytes(), cudaMemcpyDeviceToDevice, space.stream()),
                       "rounding a matrix");
  return to;
}

template <class C, class S>
class PairedHec final : public RoundedHec {
 public:
  PairedHec(const exec::Cuda& space, const Hec<exec::Cuda, double>& of, Index slots, const Rounding& rounding)
      : space_(space), rows_(of.rows()), leading_(Index(hec_leading(rows_))), slots_(slots), pairs_((slots + 1) / 2) {
    const HecView<double> a = of.view();
    const auto at = std::size_t(pairs_) * std::size_t(leading_), groups = std::size_t(leading_ / 32);
    column_ = space_.allocate<Pair<C>>(at);
    value_ = space_.allocate<Pair<S>>(at);
    base_ = space_.allocate<Index>(is_short<C> ? 2 * std::size_t(pairs_) * groups : 0);
    diagonal_ = space_.allocate<float>(std::size_t(leading_));
    if (rows_ == 0) return;
    const DeviceScales scales(rounding);
    exec::Array<OfDiagonal> of_leftovers;
    if (a.csr_rows > 0) {
      listed_ = copied(space_, a.listed, groups);
      listed_row_ = copied(space_, a.listed_row, std::size_t(a.csr_rows));
      csr_offset_ = copied(space_, a.csr_offset, std::size_t(a.csr_rows) + 1);
      csr_column_ = copied(space_, a.csr_column, std::size_t(of.csr_entries()));
      csr_value_ = space_.allocate<S>(std::size_t(of.csr_entries()));
      long_row_ = copied(space_, of.long_row(), std::size_t(of.long_rows()));
      of_leftovers = space_.allocate<OfDiagonal>(std::size_t(rows_));
      space_.clear(of_leftovers);
      round_leftovers<<<blocks_for(std::int64_t(a.csr_rows) * 32), 256, 0, space_.stream()>>>(
          a, scales, csr_value_.data(), of_leftovers.data(), rounding.lost);
    }
    round_pairs<<<blocks_for(leading_), 256, 0, space_.stream()>>>(a, scales, of_leftovers.data(), pairs_,
                                                                   column_.data(), base_.data(), value_.data(),
                                                                   diagonal_.data(), rounding.lost);
    launched("rounding a matrix");
  }
  Index rows() const override { return rows_; }
  void apply(const float* x, float* y) const override { product<false>(nullptr, x, y); }
  void residual(const float* b, const float* x, float* r) const override { product<true>(b, x, r); }
  std::size_t bytes() const override {
    return column_.bytes() + value_.bytes() + base_.bytes() + diagonal_.bytes() + listed_.bytes() +
           listed_row_.bytes() + csr_offset_.bytes() + csr_column_.bytes() + csr_value_.bytes() + long_row_.bytes();
  }
  std::size_t traffic() const override { return bytes() + 2 * sizeof(float) * std::size_t(rows_); }
  int column_bytes() const override { return sizeof(C); }
  Index slots() const override { return slots_; }

 private:
  HecView<S> leftover() const {
    HecView<S> a;
    a.rows = rows_;
    a.leading = leading_;
    a.csr_rows = Index(listed_row_.size());
    a.listed = listed_.data();
    a.listed_row = listed_row_.data();
    a.csr_offset = csr_offset_.data();
    a.csr_column = csr_column_.data();
    a.csr_value = csr_value_.data();
    return a;
  }
  template <bool of_residual>
  void short_rows(const float* b, const float* x, float* y) const {
    const PairedView<C, S> a{
        rows_,         leading_,        pairs_, column_.data(), reinterpret_cast<const int2*>(base_.data()),
        value_.data(), diagonal_.data()};
    const exec::Grid grid{(unsigned(leading_) + product_threads - 1) / product_threads, product_threads};
    const auto launch_reading = [&](auto read) {
      using Read = decltype(read);
      with_pairs(pairs_, [&](auto n, auto exact) {
        space_.launch(Read::ahead, paired_product<of_residual, decltype(n)::value, decltype(exact)::value, C, S, Read>,
                      grid, a, leftover(), b, read, y);
      });
    };
    // A residual is not of what iterations repeat.
    if constexpr (!of_residual)
      if (space_.asks_ahead(grid, most_blocks_ahead<float>)) return launch_reading(PlainVector<float, true>{x});
    launch_reading(PlainVector<float>{x});
  }
  template <bool of_residual>
  void product(const float* b, const float* x, float* y) const {
    if (rows_ == 0) return;
    short_rows<of_residual>(b, x, y);
    if (long_row_.size() == 0) return;
    hec_long_rows<of_residual><<<unsigned(long_row_.size()), exec::cuda::block_threads, 0, space_.stream()>>>(
        leftover(), long_row_.data(), x, y);
    launched("launching a product");
  }

  exec::Cuda space_;
  Index rows_, leading_, slots_, pairs_;
  exec::Array<Pair<C>> column_;
  exec::Array<Pair<S>> value_;
  exec::Array<Index> base_;
  exec::Array<float> diagonal_;
  // The CSR part, as Hec has it.
  exec::Array<HecListed> listed_;
  exec::Array<Index> listed_row_, csr_column_, long_row_;
  exec::Array<Offset> csr_offset_;
  exec::Array<S> csr_value_;
};

Slots slots_of(const exec::Cuda& space, const HecView<double>& a) {
  if (a.rows == 0) return {};
  const auto most = space.allocate<Slots>(1);
  space.clear(most);
  count_slots<<<blocks_for(a.leading), 256, 0, space.stream()>>>(a, most.data());
  launched("looking at columns");
  return space.read(most, 0);
}

}  // namespace

std::unique_ptr<const RoundedHec> rounded_product(const exec::Cuda& space, const Hec<exec::Cuda, double>& a,
                                                  const Rounding& rounding) {
  const Slots slots = slots_of(space, a.view());
  return with_format(rounding.storage, [&](auto storage) -> std::unique_ptr<const RoundedHec> {
    using S = decltype(storage);
    const auto row_bytes = [](Index n, std::size_t column) {
      return double((n + 1) / 2) * 2 * (double(column + sizeof(S)) + (column < 4 ? 4.0 / 32 : 0.0));
    };
    const double one = row_bytes(slots.of_one_byte, 1), two = row_bytes(slots.of_two, 2);
    if (std::min(one, two) >= row_bytes(slots.of_four, 4))
      return std::make_unique<PairedHec<Index, S>>(space, a, slots.of_four, rounding);
    if (one <= two) return std::make_unique<PairedHec<std::uint8_t, S>>(space, a, slots.of_one_byte, rounding);
    return std::make_unique<PairedHec<std::uint16_t, S>>(space, a, slots.of_two, rounding);
  });
}

}  // namespace krilu::sparse
