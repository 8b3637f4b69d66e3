// SPDX-License-Identifier: Apache-2.0
// ILU(0) on a GPU: elimination.cuh over the slices' entries row by row, whatever the strategy of the sweeps. On a graph
// without triangles (five- and seven-point stencils, hexahedra) elimination changes nothing but the diagonal: ILU(0) is
// DILU there, and formed like it. Elsewhere the factors are kept as they come, (E + L) (I + E^-1 U), and rows without a
// triangle, all but one in a hundred on many meshes, are still formed like DILU's.
#include "exec/cuda_algorithms.cuh"
#include "precond/factors.cuh"

namespace krilu::precond {

namespace {

using exec::cuda::blocks_for;
using exec::cuda::launched;
using sparse::SlicedPatternView;

__global__ void row_lengths(Index n, const Index* lower, const Index* upper, Index* length, Index* longest) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  const Index own = i < n ? lower[i] + 1 + upper[i] : 0;
  if (i < n) length[i] = own;
  const Index of_warp = __reduce_max_sync(0xffffffffu, own);
  if (threadIdx.x % 32 == 0) atomicMax(longest, of_warp);
}

/// Entries row by row, columns ascending: where[k] counts through the lower triangle, the upper one and the diagonal. A
/// warp a slice.
__global__ void list_rows(SlicedPatternView p, Offset lower_entries, Offset upper_entries, const Offset* start,
                          Index* column, Offset* where, Offset* diagonal) {
  const Index s = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32);
  if (s >= p.slices) return;
  const int me = int(threadIdx.x % 32);
  for (const bool is_lower : {true, false}) {
    const sparse::SlicedTriangle& t = is_lower ? p.lower : p.upper;
    const sparse::Slice slice = sparse::load_slice(t.slice + s);
    sparse::Lane l = sparse::open_lane(t, s, slice, me);
    if (is_lower && l.row >= 0 && l.sub == 0) {
      const Offset at = start[l.row] + p.lower.length[l.row];
      column[at] = l.row;
      where[at] = lower_entries + upper_entries + l.row;
      diagonal[l.row] = at;
    }
    for (int k = 0; k < slice.width(); ++k) {
      const Offset at = sparse::step(l, k, me);
      if (k >= l.count) continue;
      const Offset nth = (k << l.lanes_log2) + l.sub;
      const Offset to = is_lower ? start[l.row] + nth : start[l.row + 1] - 1 - nth;
      const Index c = t.column[at];
      column[to] = c < 0 ? slice.row + ~c : c;
      where[to] = is_lower ? at : lower_entries + at;
    }
  }
}

/// Rows of the slices in the list's sequence; before[k]: rows of the slices listed before.
__global__ void slice_lengths(Index slices, const Index* list, const Index* slice_row, Index* rows) {
  const Index k = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (k < slices) rows[k] = slice_row[list[k] + 1] - slice_row[list[k]];
}
__global__ void list_sequence(Index slices, const Index* list, const Index* slice_row, const Index* before,
                              Index* row) {
  const Index k = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32);
  if (k >= slices) return;
  const Index first = slice_row[list[k]], i = first + Index(threadIdx.x % 32);
  if (i < slice_row[list[k] + 1]) row[before[k] + i - first] = i;
}

/// Which rows elimination changes in the pivot alone; *met: not all of them, the graph has a triangle.
__global__ void find_plain_rows(Index n, CsrView a, const Offset* diagonal, unsigned char* plain, int* met) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  const auto is_plain = [&] {
    for (Offset p = a.offsets[i]; p < diagonal[i]; ++p) {
      const Index k = a.columns[p];
      // An entry right of k in both rows: those of the one that has fewer are looked for in the other.
      if (a.offsets[k + 1] - diagonal[k] <= a.offsets[i + 1] - p) {
        for (Offset t = diagonal[k] + 1; t < a.offsets[k + 1]; ++t)
          if (a.columns[t] != i && sparse::find_entry(a, i, a.columns[t]) >= 0) return false;
      } else {
        for (Offset t = p + 1; t < a.offsets[i + 1]; ++t)
          if (a.columns[t] != i && sparse::find_entry(a, k, a.columns[t]) >= 0) return false;
      }
    }
    return true;
  };
  plain[i] = is_plain();
  if (!plain[i]) *static_cast<volatile int*>(met) = 1;
}

struct Parts {
  Offset lower_entries, upper_entries;
  double *lower, *upper, *diagonal;
  KRILU_INLINE double& operator[](Offset k) const {
    if (k < lower_entries) return lower[k];
    k -= lower_entries;
    return k < upper_entries ? upper[k] : diagonal[k - upper_entries];
  }
};
struct AtPlaces {
  const Offset* where;
  Parts parts;
  __device__ double operator()(std::int64_t k) const { return parts[where[k]]; }
};
/// E times the upper factor. A warp a slice.
__global__ void times_pivots(SlicedPatternView p, const double* upper, const double* rd, double* out) {
  const Index s = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32);
  if (s >= p.slices) return;
  const int me = int(threadIdx.x % 32);
  const sparse::Slice slice = sparse::load_slice(p.upper.slice + s);
  sparse::Lane l = sparse::open_lane(p.upper, s, slice, me);
  for (int k = 0; k < slice.width(); ++k) {
    const Offset at = sparse::step(l, k, me);
    if (k < l.count) out[at] = upper[at] / rd[l.row];
  }
}
__global__ void scatter_kernel(Offset n, const Offset* where, const double* value, Parts parts) {
  const std::int64_t k = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k < n) parts[where[k]] = value[k];
}

}  // namespace

template <>
Ilu0<exec::Cuda, double>::Ilu0(const Context<exec::Cuda>& context, std::shared_ptr<const sparse::SlicedPattern> pattern,
                               std::string name, bool symmetric)
    : DiluForm<exec::Cuda, double>(context, std::move(pattern), std::move(name), symmetric),
      lower_(space_.allocate<double>(std::size_t(pattern_->lower_entries()))),
      upper_(space_.allocate<double>(std::size_t(pattern_->upper_entries()))) {
  const Index rows = pattern_->rows(), slices = pattern_->slices();
  if (rows == 0) return;
  const auto n = std::size_t(rows);
  const SlicedPatternView view = pattern_->view();
  const Offset lower = pattern_->lower_entries(), upper = pattern_->upper_entries();
  DevicePattern& p = elimination_.rows;
  p.rows = rows;
  p.entries = lower + upper + rows;
  p.offsets = space_.allocate<Offset>(n + 1);
  p.columns = space_.allocate<Index>(std::size_t(p.entries));
  p.diagonal = space_.allocate<Offset>(n);
  elimination_.where = space_.allocate<Offset>(std::size_t(p.entries));
  const auto length = space_.allocate<Index>(n), longest = space_.allocate<Index>(1);
  space_.clear(longest);
  row_lengths<<<blocks_for(rows), 256, 0, space_.stream()>>>(rows, view.lower.length, view.upper.length, length.data(),
                                                             longest.data());
  exec::sums_before(space_, n, length.data(), p.offsets.data());
  list_rows<<<blocks_for(std::int64_t(slices) * 32), 256, 0, space_.stream()>>>(
      view, lower, upper, p.offsets.data(), p.columns.data(), elimination_.where.data(), p.diagonal.data());
  launched("listing rows");

  const auto met_there = space_.allocate<int>(1);
  space_.clear(met_there);
  const CsrView a{rows, rows, p.offsets.data(), p.columns.data(), nullptr};
  p.plain = space_.allocate<unsigned char>(n);
  find_plain_rows<<<blocks_for(rows), 256, 0, space_.stream()>>>(rows, a, p.diagonal.data(), p.plain.data(),
                                                                 met_there.data());
  launched("looking for triangles");
  is_dilu_ = space_.read(met_there, 0) == 0;
  p.longest = space_.read(longest, 0);
  p.levels = context.plan->levels() * (context.plan->layout->blocks ? pattern_->most_inner() : 1);
  if (is_dilu_) {
    elimination_ = {};
    return;
  }
  const exec::Array<Index>& list = context.plan->list;
  if (list.size() == 0) return;
  const Index* const slice_row = context.plan->layout->slice_row.data();
  const auto in_slice = space_.allocate<Index>(std::size_t(slices));
  const auto before = space_.allocate<Index>(std::size_t(slices) + 1);
  p.sequence = space_.allocate<Index>(n);
  slice_lengths<<<blocks_for(slices), 256, 0, space_.stream()>>>(slices, list.data(), slice_row, in_slice.data());
  exec::sums_before(space_, std::size_t(slices), in_slice.data(), before.data());
  list_sequence<<<blocks_for(std::int64_t(slices) * 32), 256, 0, space_.stream()>>>(slices, list.data(), slice_row,
                                                                                    before.data(), p.sequence.data());
  launched("listing rows");
}

template <>
void Ilu0<exec::Cuda, double>::factor(const Values<exec::Cuda, double>& values, double shift) {
  const sparse::SlicedMatrix<double>& a = values.stored;
  forget_trouble();
  look_for_asymmetry(a);
  if (is_dilu_ || pattern_->rows() == 0) {
    const auto copy = [&](const exec::Array<double>& to, const exec::Array<double>& from) {
      if (to.bytes())
        exec::require_cuda(
            cudaMemcpyAsync(to.data(), from.data(), to.bytes(), cudaMemcpyDeviceToDevice, space_.stream()), "copying");
    };
    copy(lower_, a.lower);
    copy(upper_, a.upper);
    find_pivots(a, shift);
    return require_no_trouble();
  }
  const DevicePattern& p = elimination_.rows;
  const Offset lower = pattern_->lower_entries(), upper = pattern_->upper_entries();
  const Offset* const where = elimination_.where.data();
  const auto factors = space_.allocate<double>(std::size_t(p.entries));
  const Gathered before = gather(
      space_, p,
      AtPlaces{where, {lower, upper, a.lower.data(), a.upper.data(), const_cast<double*>(diagonal_of(a, shift))}},
      factors.data());
  eliminate(space_, p, Updated::pattern, Lower::plain, before, factors.data(), &trouble_.data()->zero_pivot);
  scatter_kernel<<<blocks_for(p.entries), 256, 0, space_.stream()>>>(
      p.entries, where, factors.data(), Parts{lower, upper, lower_.data(), upper_.data(), rd_.data()});
  launched("factorising");
  require_no_trouble();
}

template <>
void Ilu0<exec::Cuda, double>::apply(const double* r, double* z) {
  if (is_dilu_) return solve(lower_.data(), upper_.data(), r, z);
  using triangular::Diagonal;
  const SlicedPatternView p = pattern_->view();
  const triangular::Recurrence<double, Diagonal::reciprocal, true> forward{p.lower, lower_.data(), r, rd_.data(),
                                                                           work_.data()};
  const triangular::Recurrence<double, Diagonal::unit, false> backward{p.upper, upper_.data(), work_.data(), nullptr,
                                                                       z};
  runner_->both(forward, backward);
}

template <>
std::size_t Ilu0<exec::Cuda, double>::bytes() const {
  return DiluForm<exec::Cuda, double>::bytes() + lower_.bytes() + upper_.bytes() + elimination_.rows.bytes() +
         elimination_.where.bytes();
}

template <>
std::unique_ptr<Preconditioner<exec::Cuda, float>> Ilu0<exec::Cuda, double>::rounded(
    const sparse::Rounding& rounding, const std::shared_ptr<const sparse::RoundedMatrix>& a) const {
  if (is_dilu_ || pattern_->slices() == 0) return this->rounded_form(lower_.data(), upper_.data(), rounding, a, false);
  const auto upper = space_.allocate<double>(upper_.size());  // of the form that is scaled and rounded
  times_pivots<<<blocks_for(std::int64_t(pattern_->slices()) * 32), 256, 0, space_.stream()>>>(
      pattern_->view(), upper_.data(), rd_.data(), upper.data());
  launched("rounding factors");
  return this->rounded_form(lower_.data(), upper.data(), rounding, a, false);
}

}  // namespace krilu::precond
