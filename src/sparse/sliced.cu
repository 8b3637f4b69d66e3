// SPDX-License-Identifier: Apache-2.0
#include <cub/device/device_segmented_sort.cuh>

#include "exec/cuda_algorithms.cuh"
#include "exec/warp.cuh"
#include "sparse/sliced.cuh"

namespace krilu::sparse {

namespace {

constexpr Index short_row = 64;  // sorted by one thread

using exec::cuda::blocks_for;
using exec::cuda::launched;

/// A in the order of the places, its triangles apart: a step on the way to slices.
struct Permuted {
  const Offset *lower_start, *upper_start;  // rows + 1
  Index *lower_column, *upper_column;       // places, ascending within a row
  Offset *lower_source, *upper_source;
};

struct Shapes {
  Index widest = 0, longest = 0, most_inner = 1, widest_inner = 0;
};

__device__ Index at_place(const Index* row, Index p) { return row ? row[p] : p; }

__global__ void count_entries(CsrView a, const Index* row, const Index* place, Index* lower, Index* upper,
                              Offset* diagonal_source, Shapes* shapes) {
  const Index p = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (p >= a.rows) return;
  const Index i = at_place(row, p);
  Index l = 0, u = 0;
  Offset d = -1;
  for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
    const Index q = at_place(place, a.columns[k]);
    l += q < p;
    u += q > p;
    if (q == p) d = k;
  }
  lower[p] = l;
  upper[p] = u;
  diagonal_source[p] = d;
  if (max(l, u) > short_row) atomicMax(&shapes->longest, max(l, u));
}

__device__ void sort_row(Index* column, Offset* source, Index n) {
  for (Index k = 1; k < n; ++k) {
    const Index c = column[k];
    const Offset s = source[k];
    Index to = k;
    for (; to > 0 && column[to - 1] > c; --to) {
      column[to] = column[to - 1];
      source[to] = source[to - 1];
    }
    column[to] = c;
    source[to] = s;
  }
}

/// A row of up to `few` entries, sorted in registers: an entry's place is the number of smaller ones in its triangle.
constexpr int few = 8;
__device__ void permute_few(const CsrView& a, Index i, Index p, const Index* place, const Permuted& out) {
  const Offset begin = a.offsets[i], l = out.lower_start[p], u = out.upper_start[p];
  const int count = int(a.offsets[i + 1] - begin);
  Index q[few];
#pragma unroll
  for (int e = 0; e < few; ++e) q[e] = e < count ? at_place(place, a.columns[begin + e]) : p;
#pragma unroll
  for (int e = 0; e < few; ++e) {
    Index smaller = 0, smaller_above = 0;
#pragma unroll
    for (int other = 0; other < few; ++other) {
      smaller += q[other] < q[e];
      smaller_above += q[other] > p && q[other] < q[e];
    }
    if (q[e] < p) {
      out.lower_column[l + smaller] = q[e];
      out.lower_source[l + smaller] = begin + e;
    } else if (q[e] > p) {
      out.upper_column[u + smaller_above] = q[e];
      out.upper_source[u + smaller_above] = begin + e;
    }
  }
}

/// sorted: rows that are longer than few are to be, too.
__global__ void permute(CsrView a, const Index* row, const Index* place, Permuted out, bool sorted) {
  const Index p = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (p >= a.rows) return;
  const Index i = at_place(row, p);
  if (a.offsets[i + 1] - a.offsets[i] <= few) return permute_few(a, i, p, place, out);
  Offset l = out.lower_start[p], u = out.upper_start[p];
  for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
    const Index q = at_place(place, a.columns[k]);
    if (q < p) {
      out.lower_column[l] = q;
      out.lower_source[l++] = k;
    } else if (q > p) {
      out.upper_column[u] = q;
      out.upper_source[u++] = k;
    }
  }
  if (!sorted) return;
  const Offset l0 = out.lower_start[p], u0 = out.upper_start[p];
  sort_row(out.lower_column + l0, out.lower_source + l0, l - l0);
  sort_row(out.upper_column + u0, out.upper_source + u0, u - u0);
}

/// The shape of slice s in one triangle.
__device__ Slice shape_of(const Index* slice_row, Index s, const Index* length, const Offset* start, int lanes_log2) {
  const Index first = slice_row[s], last = slice_row[s + 1];
  Index widest = 0;
  for (Index p = first; p < last; ++p) widest = max(widest, length[p]);
  const Index lanes = 1 << lanes_log2;
  return {first, start[first], Slice::shaped(last - first, lanes_log2, std::uint32_t((widest + lanes - 1) / lanes)), 1};
}

__global__ void shape(Index slices, const Index* slice_row, const Index* lower, const Index* upper, Permuted p,
                      bool blocks, Slice* lower_slice, Slice* upper_slice, Shapes* shapes) {
  const Index s = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (s >= slices) return;
  int lanes = 0;
  if (!blocks) {
    Index longest = 0;
    for (Index r = slice_row[s]; r < slice_row[s + 1]; ++r) longest = max(longest, max(lower[r], upper[r]));
    lanes = lanes_log2_of(longest);
    while (slice_row[s + 1] - slice_row[s] > 32 >> lanes) --lanes;
  }
  const Slice l = shape_of(slice_row, s, lower, p.lower_start, lanes);
  const Slice u = shape_of(slice_row, s, upper, p.upper_start, lanes);
  lower_slice[s] = l;
  upper_slice[s] = u;
  const Index widest = max(l.width(), u.width());
  if (widest > shapes->widest) atomicMax(&shapes->widest, widest);
}

/// How many entries each lane has: a warp a slice.
__global__ void count_lanes(Index slices, const Slice* slice, const Index* length, std::uint8_t* count) {
  const Index s = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32);
  if (s >= slices) return;
  const int lane = int(threadIdx.x % 32), lanes_log2 = slice[s].lanes_log2(), q = lane >> lanes_log2;
  int n = 0;
  if (q < slice[s].rows())
    n = (length[slice[s].row + q] - (lane & ((1 << lanes_log2) - 1)) + (1 << lanes_log2) - 1) >> lanes_log2;
  count[std::size_t(s) * 32 + unsigned(lane)] = std::uint8_t(min(n, 255));
}

/// A warp a slice: its entries in the sequence in which they will be read.
__global__ void fill_slices(SlicedPatternView v, Permuted p, bool blocks, Index* lower_column, Offset* lower_source,
                            Index* upper_column, Offset* upper_source) {
  const Index s = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32);
  const int lane = int(threadIdx.x % 32);
  if (s >= v.slices) return;
  const Slice sl = v.lower.slice[s], su = v.upper.slice[s];
  const Index last = sl.row + sl.rows();
  Lane l = open_lane(v.lower, s, sl, lane);
  for (int k = 0; k < sl.width(); ++k) {
    const Offset at = step(l, k, lane);
    if (k >= l.count) continue;
    const Offset from = p.lower_start[l.row] + (k << l.lanes_log2) + l.sub;
    const Index c = p.lower_column[from];
    lower_column[at] = blocks && c >= sl.row ? ~(c - sl.row) : c;
    lower_source[at] = p.lower_source[from];
  }
  Lane u = open_lane(v.upper, s, su, lane);
  for (int k = 0; k < su.width(); ++k) {
    const Offset at = step(u, k, lane);
    if (k >= u.count) continue;
    const Offset from = p.upper_start[u.row + 1] - 1 - ((k << u.lanes_log2) + u.sub);
    const Index c = p.upper_column[from];
    upper_column[at] = blocks && c < last ? ~(c - sl.row) : c;
    upper_source[at] = p.upper_source[from];
  }
}

/// The inner steps of slices whose rows depend on each other, in either triangle: a warp a slice.
__global__ void inner_steps(Index slices, Slice* lower_slice, Slice* upper_slice, Permuted p, std::uint8_t* inner,
                            Shapes* shapes) {
  __shared__ int steps[8][32];
  const Index s = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32);
  const int lane = int(threadIdx.x % 32);
  if (s >= slices) return;
  volatile int* const step_of = steps[threadIdx.x / 32];
  const Index first = lower_slice[s].row, rows = lower_slice[s].rows(), row = first + lane;
  const bool mine = lane < rows;
  step_of[lane] = 0;
  __syncwarp();
  Index within = 0, within_upper = 0;
  for (bool changed = true; __any_sync(exec::all_lanes, changed);) {
    changed = false;
    within = within_upper = 0;
    if (mine) {
      for (Offset k = p.lower_start[row + 1]; k-- > p.lower_start[row] && p.lower_column[k] >= first; ++within) {
        const int least = step_of[p.lower_column[k] - first] + 1;
        if (step_of[lane] < least) {
          atomicMax(&steps[threadIdx.x / 32][lane], least);
          changed = true;
        }
      }
      for (Offset k = p.upper_start[row]; k < p.upper_start[row + 1] && p.upper_column[k] < first + rows;
           ++k, ++within_upper) {
        const int other = p.upper_column[k] - first, least = step_of[lane] + 1;
        if (step_of[other] < least) {
          atomicMax(&steps[threadIdx.x / 32][other], least);
          changed = true;
        }
      }
    }
    __syncwarp();
  }
  int depth = mine ? step_of[lane] + 1 : 1;
  Index widest = max(within, within_upper);
  for (int offset = 16; offset > 0; offset /= 2) {
    depth = max(depth, __shfl_xor_sync(exec::all_lanes, depth, offset));
    widest = max(widest, __shfl_xor_sync(exec::all_lanes, widest, offset));
  }
  inner[std::size_t(s) * 32 + unsigned(lane)] = std::uint8_t(step_of[lane]);
  if (lane == 0) {
    lower_slice[s].inner = upper_slice[s].inner = depth;
    if (depth > shapes->most_inner) atomicMax(&shapes->most_inner, depth);
    if (widest > shapes->widest_inner) atomicMax(&shapes->widest_inner, widest);
  }
}

void sort_long_rows(const exec::Cuda& space, Index rows, const exec::Array<Offset>& start, exec::Array<Index>& column,
                    exec::Array<Offset>& source) {
  auto column2 = space.allocate<Index>(column.size());
  auto source2 = space.allocate<Offset>(source.size());
  cub::DoubleBuffer<Index> c(column.data(), column2.data());
  cub::DoubleBuffer<Offset> s(source.data(), source2.data());
  exec::cuda::with_work_space(space, [&](void* work, std::size_t& bytes) {
    return cub::DeviceSegmentedSort::SortPairs(work, bytes, c, s, int(column.size()), rows, start.data(),
                                               start.data() + 1, space.stream());
  });
  if (c.Current() != column.data()) std::swap(column, column2);
  if (s.Current() != source.data()) std::swap(source, source2);
}

}  // namespace

SlicedPattern::SlicedPattern(const exec::Cuda& space, const DeviceCsr& a, std::shared_ptr<const Layout> layout,
                             Index stencils_from)
    : rows_(a.rows), layout_(std::move(layout)) {
  const auto n = std::size_t(rows_);
  const Index *const row = layout_->row.data(), *const place = layout_->place.data();
  lower_length_ = space.allocate<Index>(n);
  upper_length_ = space.allocate<Index>(n);
  diagonal_source_ = space.allocate<Offset>(n);
  const auto shapes_there = space.allocate<Shapes>(1);
  Shapes shapes;
  space.copy_in(shapes_there, &shapes, 1);
  const auto lower_start = space.allocate<Offset>(n + 1), upper_start = space.allocate<Offset>(n + 1);
  if (rows_ > 0)
    count_entries<<<blocks_for(rows_), 256, 0, space.stream()>>>(
        a.view(), row, place, lower_length_.data(), upper_length_.data(), diagonal_source_.data(), shapes_there.data());
  launched("counting entries");
  exec::sums_before(space, n, lower_length_.data(), lower_start.data());
  exec::sums_before(space, n, upper_length_.data(), upper_start.data());
  exec::require_cuda(
      cudaMemcpyAsync(&lower_entries_, lower_start.data() + n, sizeof(Offset), cudaMemcpyDeviceToHost, space.stream()),
      "copying");
  exec::require_cuda(
      cudaMemcpyAsync(&upper_entries_, upper_start.data() + n, sizeof(Offset), cudaMemcpyDeviceToHost, space.stream()),
      "copying");
  space.copy_out(&shapes, shapes_there, 1);

  const auto nl = std::size_t(lower_entries_), nu = std::size_t(upper_entries_);
  auto pl = space.allocate<Index>(nl), pu = space.allocate<Index>(nu);
  auto sl = space.allocate<Offset>(nl), su = space.allocate<Offset>(nu);
  const bool long_rows = shapes.longest > short_row;
  if (rows_ > 0)
    permute<<<blocks_for(rows_), 256, 0, space.stream()>>>(
        a.view(), row, place, {lower_start.data(), upper_start.data(), pl.data(), pu.data(), sl.data(), su.data()},
        row && !long_rows);
  launched("ordering entries");
  if (row && long_rows) {
    sort_long_rows(space, rows_, lower_start, pl, sl);
    sort_long_rows(space, rows_, upper_start, pu, su);
  }
  const Permuted permuted{lower_start.data(), upper_start.data(), pl.data(), pu.data(), sl.data(), su.data()};

  const Index count = layout_->slices;
  lower_slice_ = space.allocate<Slice>(std::size_t(count));
  upper_slice_ = space.allocate<Slice>(std::size_t(count));
  lower_column_ = space.allocate<Index>(nl);
  upper_column_ = space.allocate<Index>(nu);
  lower_source_ = space.allocate<Offset>(nl);
  upper_source_ = space.allocate<Offset>(nu);
  if (count > 0) {
    shape<<<blocks_for(count), 256, 0, space.stream()>>>(count, layout_->slice_row.data(), lower_length_.data(),
                                                         upper_length_.data(), permuted, layout_->blocks,
                                                         lower_slice_.data(), upper_slice_.data(), shapes_there.data());
    lower_count_ = space.allocate<std::uint8_t>(std::size_t(count) * 32);
    upper_count_ = space.allocate<std::uint8_t>(std::size_t(count) * 32);
    const unsigned warps = blocks_for(std::int64_t(count) * 32);
    count_lanes<<<warps, 256, 0, space.stream()>>>(count, lower_slice_.data(), lower_length_.data(),
                                                   lower_count_.data());
    count_lanes<<<warps, 256, 0, space.stream()>>>(count, upper_slice_.data(), upper_length_.data(),
                                                   upper_count_.data());
    launched("shaping slices");
    fill_slices<<<blocks_for(std::int64_t(count) * 32), 256, 0, space.stream()>>>(
        view(), permuted, layout_->blocks, lower_column_.data(), lower_source_.data(), upper_column_.data(),
        upper_source_.data());
    launched("filling slices");
    if (layout_->blocks) {
      inner_ = space.allocate<std::uint8_t>(std::size_t(count) * 32);
      inner_steps<<<blocks_for(std::int64_t(count) * 32), 256, 0, space.stream()>>>(
          count, lower_slice_.data(), upper_slice_.data(), permuted, inner_.data(), shapes_there.data());
      launched("finding the steps within blocks");
      if (layout_->lattice && count >= stencils_from)
        stencils_ = Stencils(space, rows_, count, layout_->slice_row.data(), view().lower, view().upper,
                             std::int64_t(lower_entries_) + upper_entries_);
    }
  }
  space.copy_out(&shapes, shapes_there, 1);
  widest_ = shapes.widest;
  most_inner_ = shapes.most_inner;
  widest_inner_ = shapes.widest_inner;
}

SlicedPatternView SlicedPattern::view() const {
  return {rows_,
          layout_->slices,
          {lower_slice_.data(), lower_column_.data(), lower_length_.data(), lower_count_.data(), stencils_.lower()},
          {upper_slice_.data(), upper_column_.data(), upper_length_.data(), upper_count_.data(), stencils_.upper()},
          inner_.data()};
}

std::size_t SlicedPattern::bytes() const {
  std::size_t b = layout_->bytes() + lower_slice_.bytes() + upper_slice_.bytes() + inner_.bytes() +
                  lower_count_.bytes() + upper_count_.bytes() + stencils_.bytes();
  for (const auto* a : {&lower_column_, &upper_column_, &lower_length_, &upper_length_, &lower_source_, &upper_source_,
                        &diagonal_source_})
    b += a->bytes();
  return b;
}

namespace {

template <class T>
__global__ void gather(std::size_t n, const Offset* source, const double* values, T* out) {
  for (std::size_t k = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; k < n;
       k += std::size_t(gridDim.x) * blockDim.x)
    out[k] = source[k] >= 0 ? T(values[source[k]]) : T(0);
}

/// Rows of stencils go through one round of each triangle, and the rounds do not wait for each other: a warp a slice
/// (warps 1). Where slices are too few to keep the GPU busy and take several rounds, the warps of a block share those
/// of one slice.
template <bool of_residual, int warps, int count, class T, class S>
__global__ void __launch_bounds__(256, count <= 3 ? 8 : 1)
    product_kernel(SlicedView<T, S> a, const T* b, const T* x, T* y) {
  const Index s = warps > 1 ? Index(blockIdx.x) : exec::warp_in_grid();
  if (s >= a.pattern.slices) return;
  const int lane = int(threadIdx.x % 32), warp = warps > 1 ? exec::warp_in_block() : 0;
  Head lower = load_head(a.pattern.lower, s, lane), upper = load_head(a.pattern.upper, s, lane);
  lower = arrived(lower);  // both are on their way before either is waited for
  upper = arrived(upper);
  // A row with several lanes has five entries in one of them, and in coloured blocks none has.
  const int lanes_log2 = count <= 3 ? 0 : lower.slice.lanes_log2();
  const Lane l = open_lane(a.pattern.lower, lower, lane, lanes_log2),
             u = open_lane(a.pattern.upper, upper, lane, lanes_log2);
  const bool own = warp == 0 && l.row >= 0 && l.sub == 0;
  T sum = exec::ask_streamed(a.diagonal + l.row, own) * exec::ask(x + l.row, own);
  const int upper_turn = (warp + warps - (lower.slice.width() + count - 1) / count % warps) % warps;
  add_triangle<count>(a.pattern.lower, a.lower, lower.slice, l, lane, x, sum, {warp, warps});
  add_triangle<count>(a.pattern.upper, a.upper, upper.slice, u, lane, x, sum, {upper_turn, warps});
  if constexpr (warps > 1) {
    __shared__ T of_warp[warps][32];
    of_warp[warp][lane] = sum;
    __syncthreads();
    if (warp > 0) return;
    for (int w = 1; w < warps; ++w) sum += of_warp[w][lane];
  }
  sum = sum_over_lanes(sum, l.lanes_log2);
  if (l.row >= 0 && l.sub == 0) y[l.row] = of_residual ? b[l.row] - sum : sum;
}

/// The same where slices read alike, a warp a slice.
template <bool of_residual, int count, class T, class S>
__global__ void __launch_bounds__(256) stencil_product_kernel(SlicedView<T, S> a, const T* b, const T* x, T* y) {
  const Index s = exec::warp_in_grid(), slices = a.pattern.slices;
  if (s >= slices) return;
  const StencilTriangle &lower = a.pattern.lower.stencil, &upper = a.pattern.upper.stencil;
  const int me = int(threadIdx.x % 32);
  const StencilHead<1> lower_head = load_head<1>(lower, s, slices, me), upper_head = load_head<1>(upper, s, slices, me);
  const StencilLane<1> l(lower, lower_head, me), u(upper, upper_head, me);
  const Index row = l.row[0];
  const auto steps = [](const StencilSlice& of) { return of.others() + of.within(); };
  std::int32_t lower_word[count], upper_word[count];
  S lower_value[1][count], upper_value[1][count];
  l.ask(a.lower, 0, 0, steps(l.slice), lower_word, lower_value);
  u.ask(a.upper, 0, 0, steps(u.slice), upper_word, upper_value);
  T sum[1] = {exec::ask_streamed(a.diagonal + row, row >= 0) * exec::ask(x + row, row >= 0)};
  l.add(a.lower, x, 0, steps(l.slice), lower_word, lower_value, sum);
  u.add(a.upper, x, 0, steps(u.slice), upper_word, upper_value, sum);
  if (row >= 0) y[row] = of_residual ? b[row] - sum[0] : sum[0];
}

template <bool of_residual, class T, class S>
void product(const exec::Cuda& space, const SlicedView<T, S>& a, Index widest, const T* b, const T* x, T* y) {
  constexpr Index few = 8;  // slices a multiprocessor: a block each, and all of them at work at once
  constexpr int warps = exec::cuda::block_threads / 32;
  const Index slices = a.pattern.slices;
  if (slices == 0) return;
  const unsigned blocks = blocks_for(std::int64_t(slices) * 32);
  if (a.pattern.lower.stencil) stencil_product_kernel<of_residual, 3><<<blocks, 256, 0, space.stream()>>>(a, b, x, y);
  // On a lattice in coloured blocks, where a row has six neighbours in one triangle it has none in the other.
  else if (widest <= 3 || (widest <= 6 && a.pattern.inner))
    product_kernel<of_residual, 1, 3><<<blocks, 256, 0, space.stream()>>>(a, b, x, y);
  else if (widest <= 6)
    product_kernel<of_residual, 1, 6><<<blocks, 256, 0, space.stream()>>>(a, b, x, y);
  else if (widest <= 8 || slices > few * space.multiprocessors())
    product_kernel<of_residual, 1, 8><<<blocks, 256, 0, space.stream()>>>(a, b, x, y);
  else
    product_kernel<of_residual, warps, 8><<<unsigned(slices), warps * 32, 0, space.stream()>>>(a, b, x, y);
  launched("launching a product");
}

/// One triangle of one slice. missing: what rounding took from the lane's entries, in units of the diagonal.
template <class S>
__device__ double round_triangle(const SlicedTriangle& t, const double* from, S* to, Index s, int lane,
                                 const DeviceScales& scales, unsigned& lost) {
  const Slice slice = load_slice(t.slice + s);
  Lane l = open_lane(t, s, slice, lane);
  double missing = 0;
  for (int k = 0; k < slice.width(); ++k) {
    const Offset at = step(l, k, lane);
    if (k >= l.count) continue;
    const Index stored = t.column[at], c = stored < 0 ? slice.row + ~stored : stored;
    const double column = scales.c(c), scaled = scales.r(l.row) * from[at] * column;
    const S value = rounded_counting<S>(scaled, lost);
    to[at] = value;
    if constexpr (sizeof(S) == 2) missing += (scaled - double(float(value))) / column;
  }
  return missing;
}

/// A warp a slice.
template <class S>
__global__ void round_kernel(SlicedView<double> a, Rounding rounding, S* lower, float* diagonal, S* upper) {
  const Index s = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32);
  if (s >= a.pattern.slices) return;
  const int lane = int(threadIdx.x % 32);
  const DeviceScales scales(rounding);
  unsigned lost = 0;
  double missing = 0;
  if (lower) missing += round_triangle(a.pattern.lower, a.lower, lower, s, lane, scales, lost);
  if (upper) missing += round_triangle(a.pattern.upper, a.upper, upper, s, lane, scales, lost);
  const Lane l = open_lane(a.pattern.lower, s, load_slice(a.pattern.lower.slice + s), lane);
  missing = sum_over_lanes(missing, l.lanes_log2);
  if (diagonal && l.row >= 0 && l.sub == 0) {
    const double column = scales.c(l.row), scaled = scales.r(l.row) * a.diagonal[l.row] * column;
    lost += scaled != 0 && float(scaled) == 0;
    diagonal[l.row] = rounded<float>(with_missing<S>(scaled, missing * column));
  }
  count_lost(rounding.lost, lost);
}

}  // namespace

template <class T>
void fill_values(const exec::Cuda& space, std::shared_ptr<const SlicedPattern> pattern, const double* values,
                 SlicedMatrix<T>& m) {
  const auto fill = [&](exec::Array<T>& out, const exec::Array<Offset>& source) {
    if (out.size() != source.size()) out = space.allocate<T>(source.size());
    if (source.size() == 0) return;
    const auto blocks = unsigned(std::min<std::size_t>((source.size() + 255) / 256, 1u << 30));
    gather<<<blocks, 256, 0, space.stream()>>>(source.size(), source.data(), values, out.data());
    launched("filling in values");
  };
  fill(m.lower, pattern->lower_source());
  fill(m.diagonal, pattern->diagonal_source());
  fill(m.upper, pattern->upper_source());
  m.pattern = std::move(pattern);
}

template <class S>
SlicedMatrix<float, S> rounded_matrix(const exec::Cuda& space, const std::shared_ptr<const SlicedPattern>& pattern,
                                      const SlicedView<double>& a, const Rounding& rounding) {
  SlicedMatrix<float, S> m;
  m.pattern = pattern;
  m.lower = space.allocate<S>(a.lower ? std::size_t(pattern->lower_entries()) : 0);
  m.diagonal = space.allocate<float>(a.diagonal ? std::size_t(pattern->rows()) : 0);
  m.upper = space.allocate<S>(a.upper ? std::size_t(pattern->upper_entries()) : 0);
  if (a.pattern.slices > 0) {
    round_kernel<<<blocks_for(std::int64_t(a.pattern.slices) * 32), 256, 0, space.stream()>>>(
        a, rounding, m.lower.data(), m.diagonal.data(), m.upper.data());
    launched("rounding a matrix");
  }
  return m;
}

template <class T, class S>
void SplitOperator<exec::Cuda, T, S>::apply(const T* x, T* y) const {
  product<false, T, S>(space_, a_, widest_, nullptr, x, y);
}
template <class T, class S>
void SplitOperator<exec::Cuda, T, S>::residual(const T* b, const T* x, T* r) const {
  product<true, T, S>(space_, a_, widest_, b, x, r);
}

template void fill_values(const exec::Cuda&, std::shared_ptr<const SlicedPattern>, const double*,
                          SlicedMatrix<double>&);
template class SplitOperator<exec::Cuda, double>;
#define KRILU_ROUNDED(S)                                                                                         \
  template class SplitOperator<exec::Cuda, float, S>;                                                            \
  template SlicedMatrix<float, S> rounded_matrix(const exec::Cuda&, const std::shared_ptr<const SlicedPattern>&, \
                                                 const SlicedView<double>&, const Rounding&);
KRILU_ROUNDED(float)
KRILU_ROUNDED(Half)
KRILU_ROUNDED(Bfloat16)
#undef KRILU_ROUNDED

}  // namespace krilu::sparse
