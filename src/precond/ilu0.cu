// SPDX-License-Identifier: Apache-2.0
// ILU(0) on a GPU, under the strategies of triangular/: the lanes of a row go through its lower entries in turn and
// share the upper entries of each row that they read. On a graph without triangles (five- and seven-point stencils,
// hexahedra) elimination changes nothing but the diagonal: ILU(0) is DILU there, and formed like it. A row's rd is its
// flag where strategies wait: it is written after the row's entries are seen by all.
#include <algorithm>

#include "exec/cuda_algorithms.cuh"
#include "precond/factors.cuh"

namespace krilu::precond {

namespace {

using sparse::SlicedPatternView;
using triangular::Awaited;
constexpr unsigned full = 0xffffffffu;

using exec::cuda::blocks_for;
using exec::cuda::launched;

/// Entries row by row, columns ascending, and where each stands in the slices.
struct Rows {
  const Offset* start;
  const Index* column;
  const Offset* at;
};
struct Elimination {
  SlicedPatternView pattern;
  Rows lower, upper;
  double *lower_value, *upper_value;
  const double* diagonal;
  double* rd;
  Index* zero_pivot;
};

/// A warp a slice.
__global__ void list_rows(SlicedPatternView p, bool is_lower, const Offset* start, Index* column, Offset* where) {
  const Index s = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32);
  if (s >= p.slices) return;
  const int me = int(threadIdx.x % 32);
  const sparse::SlicedTriangle& t = is_lower ? p.lower : p.upper;
  const sparse::Slice slice = sparse::load_slice(t.slice + s);
  sparse::Lane l = sparse::open_lane(t, s, slice, me);
  for (int k = 0; k < slice.width(); ++k) {
    const Offset at = sparse::step(l, k, me);
    if (k >= l.count) continue;
    const Offset nth = (k << l.lanes_log2) + l.sub;
    const Offset to = is_lower ? start[l.row] + nth : start[l.row + 1] - 1 - nth;
    const Index c = t.column[at];
    column[to] = c < 0 ? slice.row + ~c : c;
    where[to] = at;
  }
}

__device__ Offset find(const Rows& rows, Index row, Index column) {
  Offset low = rows.start[row], high = rows.start[row + 1];
  const Offset end = high;
  while (low < high) {
    const Offset mid = low + (high - low) / 2;
    if (rows.column[mid] < column)
      low = mid + 1;
    else
      high = mid;
  }
  return low < end && rows.column[low] == column ? rows.at[low] : -1;
}

/// Sets *met where eliminating a row changes an entry off the diagonal: where the graph has a triangle.
__global__ void look_for_updates(Index n, Rows lower, Rows upper, int* met) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n || *static_cast<volatile int*>(met)) return;
  for (Offset a = lower.start[i]; a < lower.start[i + 1]; ++a) {
    const Index k = lower.column[a];
    for (Offset t = upper.start[k]; t < upper.start[k + 1]; ++t) {
      const Index j = upper.column[t];
      if (j != i && find(j < i ? lower : upper, i, j) >= 0) {
        *static_cast<volatile int*>(met) = 1;
        return;
      }
    }
  }
}

/// Row i by its lanes; all lanes of the warp that have a row come here. row i -= (l_ik rd_k) row k, for k < i.
template <bool waits>
__device__ void eliminate(const Elimination& e, Index i, int sub, int lanes_log2, unsigned together) {
  double less = 0;  // this lane's part of what the pivot loses
  for (Offset a = e.lower.start[i]; a < e.lower.start[i + 1]; ++a) {
    const Index k = e.lower.column[a];
    double rd = Awaited<double>::load(e.rd + k);
    if constexpr (waits) {
      for (int looks = 0; Awaited<double>::is(rd); ++looks) {
        rd = Awaited<double>::load(e.rd + k);
        if (looks > triangular::most_looks) __trap();
      }
      __threadfence();
    }
    if (lanes_log2 > 0) __syncwarp(together);  // the other lanes' updates of l_ik are done
    const double multiplier = *static_cast<volatile double*>(e.lower_value + e.lower.at[a]) * rd;
    for (Offset t = e.upper.start[k] + sub; t < e.upper.start[k + 1]; t += 1 << lanes_log2) {
      const Index j = e.upper.column[t];
      const double update = multiplier * __ldcg(e.upper_value + e.upper.at[t]);
      if (j == i) {
        less += update;
      } else {
        const Offset at = find(j < i ? e.lower : e.upper, i, j);
        double* const value = j < i ? e.lower_value : e.upper_value;
        if (at >= 0) *static_cast<volatile double*>(value + at) = *static_cast<volatile double*>(value + at) - update;
      }
    }
  }
  for (int offset = 1 << lanes_log2 >> 1; offset > 0; offset >>= 1) less += __shfl_xor_sync(together, less, offset);
  __threadfence();
  if (lanes_log2 > 0) __syncwarp(together);
  if (sub != 0) return;
  double rd = 1 / (e.diagonal[i] - less);
  if (!isfinite(rd) || rd == 0) {
    atomicMin(e.zero_pivot, i);
    rd = 1;
  }
  Awaited<double>::store(e.rd + i, rd);
}

template <bool waits>
__device__ void eliminate_slice(const Elimination& e, Index s, int me) {
  const sparse::Slice slice = sparse::load_slice(e.pattern.lower.slice + s);
  const int lanes_log2 = slice.lanes_log2(), lanes = 1 << lanes_log2;
  const int q = me >> lanes_log2, sub = me & (lanes - 1);
  const unsigned together = lanes == 32 ? full : ((1u << lanes) - 1) << (q << lanes_log2);
  if (slice.inner == 1) {
    if (q < slice.rows()) eliminate<waits>(e, slice.row + q, sub, lanes_log2, together);
  } else {
    const int step = q < slice.rows() ? e.pattern.inner[std::size_t(s) * 32 + unsigned(me)] : -1;
    for (int n = 0; n < slice.inner; ++n) {
      if (step == n) eliminate<waits>(e, slice.row + q, sub, lanes_log2, together);
      __syncwarp();
    }
  }
  __syncwarp();
}

__global__ void __launch_bounds__(128) eliminate_wide(Elimination e, const Index* list, Index begin, Index end) {
  const Index k = begin + Index((blockIdx.x * blockDim.x + threadIdx.x) / 32);
  if (k < end) eliminate_slice<false>(e, list ? list[k] : k, int(threadIdx.x % 32));
}

__global__ void __launch_bounds__(512)
    eliminate_narrow(Elimination e, const Index* list, const Index* level, Index first, Index last) {
  for (Index l = first; l < last; ++l) {
    for (Index k = level[l] + Index(threadIdx.x / 32); k < level[l + 1]; k += Index(blockDim.x / 32))
      eliminate_slice<false>(e, list ? list[k] : k, int(threadIdx.x % 32));
    __threadfence_block();
    __syncthreads();
  }
}

__global__ void __launch_bounds__(128)
    eliminate_sync_free(Elimination e, const Index* list, Index slices, unsigned* ticket) {
  const int me = int(threadIdx.x % 32);
  const unsigned warps = gridDim.x * (blockDim.x / 32);
  for (;;) {
    unsigned t = 0;
    if (me == 0) {
      t = atomicAdd(ticket, 1u);
      if (t == unsigned(slices) + warps - 1) *ticket = 0;
    }
    const Index k = Index(__shfl_sync(full, t, 0));
    if (k >= slices) return;
    eliminate_slice<true>(e, list ? list[k] : k, me);
  }
}

__global__ void __launch_bounds__(256)
    eliminate_tiled(Elimination e, const Index* tile_slice, Index tiles, unsigned* ticket) {
  __shared__ unsigned taken;
  if (threadIdx.x == 0) {
    taken = atomicAdd(ticket, 1u);
    if (taken == unsigned(tiles) - 1) *ticket = 0;
  }
  __syncthreads();
  for (Index s = tile_slice[taken] + Index(threadIdx.x / 32); s < tile_slice[taken + 1]; s += Index(blockDim.x / 32))
    eliminate_slice<true>(e, s, int(threadIdx.x % 32));
}

__global__ void await_all(Index n, double* rd) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) rd[i] = Awaited<double>::pattern();
}

}  // namespace

template <>
Ilu0<exec::Cuda, double>::Ilu0(const Context<exec::Cuda>& context, std::shared_ptr<const sparse::SlicedPattern> pattern,
                               std::string name, bool symmetric)
    : DiluForm<exec::Cuda, double>(context, std::move(pattern), std::move(name), symmetric),
      lower_(space_.allocate<double>(std::size_t(pattern_->lower_entries()))),
      upper_(space_.allocate<double>(std::size_t(pattern_->upper_entries()))) {
  const auto n = std::size_t(pattern_->rows());
  const SlicedPatternView view = pattern_->view();
  const auto list = [&](bool is_lower, Offset entries) {
    RowList rows{space_.allocate<Offset>(n + 1), space_.allocate<Index>(std::size_t(entries)),
                 space_.allocate<Offset>(std::size_t(entries))};
    exec::sums_before(space_, n, is_lower ? view.lower.length : view.upper.length, rows.start.data());
    if (view.slices > 0)
      list_rows<<<blocks_for(std::int64_t(view.slices) * 32), 256, 0, space_.stream()>>>(
          view, is_lower, rows.start.data(), rows.column.data(), rows.at.data());
    launched("listing rows");
    return rows;
  };
  lower_rows_ = list(true, pattern_->lower_entries());
  upper_rows_ = list(false, pattern_->upper_entries());
  if (n == 0) return;
  const auto met_there = space_.allocate<int>(1);
  space_.clear(met_there);
  look_for_updates<<<blocks_for(std::int64_t(n)), 256, 0, space_.stream()>>>(
      Index(n), Rows{lower_rows_.start.data(), lower_rows_.column.data(), lower_rows_.at.data()},
      Rows{upper_rows_.start.data(), upper_rows_.column.data(), upper_rows_.at.data()}, met_there.data());
  launched("looking for triangles");
  int met = 0;
  space_.copy_out(&met, met_there, 1);
  is_dilu_ = met == 0;
  if (is_dilu_) {
    lower_rows_ = {};
    upper_rows_ = {};
  }
}

template <>
void Ilu0<exec::Cuda, double>::factor(const sparse::SlicedMatrix<double>& a, double shift) {
  forget_trouble();
  look_for_asymmetry(a);
  const auto copy = [&](const exec::Array<double>& to, const exec::Array<double>& from) {
    if (to.bytes())
      exec::require_cuda(cudaMemcpyAsync(to.data(), from.data(), to.bytes(), cudaMemcpyDeviceToDevice, space_.stream()),
                         "copying");
  };
  copy(lower_, a.lower);
  copy(upper_, a.upper);
  if (is_dilu_) {
    find_pivots(a, shift);
    return require_no_trouble();
  }
  const auto rows_of = [](const RowList& r) { return Rows{r.start.data(), r.column.data(), r.at.data()}; };
  const Elimination e{pattern_->view(), rows_of(lower_rows_),  rows_of(upper_rows_), lower_.data(),
                      upper_.data(),    diagonal_of(a, shift), rd_.data(),           &trouble_.data()->zero_pivot};
  const cudaStream_t stream = space_.stream();
  const Index slices = pattern_->slices();
  const auto wide = [&](const Index* list, Index begin, Index end) {
    eliminate_wide<<<(unsigned(end - begin) + 3) / 4, 128, 0, stream>>>(e, list, begin, end);
  };
  if (slices == 0) {
  } else if (runner_->blocks()) {
    runner_->for_colours<true>([&](Index begin, Index end) { wide(nullptr, begin, end); });
  } else if (!runner_->waits(runner_->current())) {
    runner_->for_launches(true, wide, [&](const Index* list, const Index* level, Index first, Index last) {
      eliminate_narrow<<<1, 512, 0, stream>>>(e, list, level, first, last);
    });
  } else {
    await_all<<<blocks_for(pattern_->rows()), 256, 0, stream>>>(pattern_->rows(), rd_.data());
    const schedule::Plan& plan = runner_->plan();
    if (runner_->current() == triangular::Strategy::sync_free)
      eliminate_sync_free<<<runner_->sync_free_blocks(), 128, 0, stream>>>(e, plan.list.data(), slices,
                                                                           runner_->ticket());
    else
      eliminate_tiled<<<unsigned(plan.tiles), 256, 0, stream>>>(e, plan.tile.data(), plan.tiles, runner_->ticket());
  }
  launched("factorising");
  require_no_trouble();
}

template <>
void Ilu0<exec::Cuda, double>::apply(const double* r, double* z) {
  solve(lower_.data(), upper_.data(), r, z);
}

template <>
std::size_t Ilu0<exec::Cuda, double>::bytes() const {
  std::size_t b = DiluForm<exec::Cuda, double>::bytes() + lower_.bytes() + upper_.bytes();
  for (const RowList* r : {&lower_rows_, &upper_rows_}) b += r->start.bytes() + r->column.bytes() + r->at.bytes();
  return b;
}

}  // namespace krilu::precond
