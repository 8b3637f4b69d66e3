// SPDX-License-Identifier: Apache-2.0
#include "precond/factors.cuh"

namespace krilu::precond {

namespace {

using exec::cuda::blocks_for;
using exec::cuda::launched;

/// place[k] of caller's entry k among the stored upper entries.
__global__ void invert(Offset n, const Offset* source, Offset* place) {
  const Offset k = Offset(blockIdx.x * blockDim.x + threadIdx.x);
  if (k < n) place[source[k]] = k;
}

/// A warp a slice, as all that follow.
__global__ void find_partners(sparse::SlicedPatternView p, CsrView a, const Index* caller_row, const Offset* source,
                              const Offset* upper_place, Offset* partner) {
  const Index s = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32);
  if (s >= p.slices) return;
  const int me = int(threadIdx.x % 32);
  const sparse::Slice slice = sparse::load_slice(p.lower.slice + s);
  sparse::Lane l = sparse::open_lane(p.lower, s, slice, me);
  for (int k = 0; k < slice.width(); ++k) {
    const Offset at = sparse::step(l, k, me);
    if (k >= l.count) continue;
    const Index i = caller_row ? caller_row[l.row] : l.row;
    const Offset mirror = sparse::find_entry(a, a.columns[source[at]], i);
    partner[at] = mirror < 0 ? -1 : upper_place[mirror];
  }
}

template <class T>
__global__ void shift_kernel(sparse::SlicedView<T> a, double shift, T* out) {
  const Index s = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32);
  if (s >= a.pattern.slices) return;
  const int me = int(threadIdx.x % 32);
  T largest = 0;
  Index row = -1;
  int sub = 0, lanes_log2 = 0;
  const auto look = [&](const sparse::SlicedTriangle& t, const T* value) {
    const sparse::Slice slice = sparse::load_slice(t.slice + s);
    sparse::Lane l = sparse::open_lane(t, s, slice, me);
    row = l.row;
    sub = l.sub;
    lanes_log2 = l.lanes_log2;
    for (int k = 0; k < slice.width(); ++k) {
      const Offset at = sparse::step(l, k, me);
      if (k < l.count) largest = max(largest, abs(value[at]));
    }
  };
  look(a.pattern.lower, a.lower);
  look(a.pattern.upper, a.upper);
  for (int offset = 1 << lanes_log2 >> 1; offset > 0; offset >>= 1)
    largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  if (row < 0 || sub != 0) return;
  const T d = a.diagonal[row];
  out[row] = d + copysign(T(shift) * max(largest, abs(d)), d);
}

/// By a warp, the least of its lanes' rows: once a slice, since what it writes to is the host's memory.
__device__ __forceinline__ void note_asymmetry(Index row, Trouble* trouble) {
  row = __reduce_min_sync(0xffffffffu, row);
  if (threadIdx.x % 32 == 0 && row != Trouble::none) atomicMin(&trouble->asymmetric, row);
}

template <class T>
__global__ void asymmetry_kernel(sparse::SlicedView<T> a, const Offset* partner, Trouble* trouble) {
  const Index s = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32);
  if (s >= a.pattern.slices) return;
  const int me = int(threadIdx.x % 32);
  const sparse::Slice slice = sparse::load_slice(a.pattern.lower.slice + s);
  sparse::Lane l = sparse::open_lane(a.pattern.lower, s, slice, me);
  Index row = Trouble::none;
  for (int k = 0; k < slice.width(); ++k) {
    const Offset at = sparse::step(l, k, me);
    if (k < l.count && (partner[at] < 0 || a.upper[partner[at]] != a.lower[at])) row = l.row;
  }
  note_asymmetry(row, trouble);
}

__global__ void mark_paired(Offset n, const Offset* partner, int* paired) {
  const Offset k = Offset(blockIdx.x * blockDim.x + threadIdx.x);
  if (k < n && partner[k] >= 0) paired[partner[k]] = 1;
}

__global__ void find_unpaired(sparse::SlicedPatternView p, const int* paired, Trouble* trouble) {
  const Index s = Index((blockIdx.x * unsigned(blockDim.x) + threadIdx.x) / 32);
  if (s >= p.slices) return;
  const int me = int(threadIdx.x % 32);
  const sparse::Slice slice = sparse::load_slice(p.upper.slice + s);
  sparse::Lane l = sparse::open_lane(p.upper, s, slice, me);
  Index row = Trouble::none;
  for (int k = 0; k < slice.width(); ++k) {
    const Offset at = sparse::step(l, k, me);
    if (k < l.count && !paired[at]) row = l.row;
  }
  note_asymmetry(row, trouble);
}

}  // namespace

template <class T>
DiluForm<exec::Cuda, T>::DiluForm(const Context<exec::Cuda>& context,
                                  std::shared_ptr<const sparse::SlicedPattern> pattern, std::string name,
                                  bool symmetric)
    : space_(context.space),
      pattern_(std::move(pattern)),
      runner_(std::make_shared<triangular::WarpRunner>(space_, context.plan, *pattern_, context.strategy)),
      rd_(space_.template allocate<T>(std::size_t(pattern_->rows()))),
      work_(space_.template allocate<T>(std::size_t(pattern_->rows()))),
      trouble_(space_.template allocate_shared<Trouble>(1)),
      partner_(space_.template allocate<Offset>(std::size_t(pattern_->lower_entries()))),
      symmetric_(symmetric),
      name_(std::move(name)),
      caller_row_(context.caller_row),
      strategy_(context.strategy) {
  if (pattern_->slices() == 0) return;
  const sparse::DeviceCsr& a = *context.matrix;
  const auto place = space_.template allocate<Offset>(std::size_t(a.nnz));
  exec::require_cuda(cudaMemsetAsync(place.data(), 0xff, place.bytes(), space_.stream()), "pairing entries");
  if (pattern_->upper_entries() > 0)
    invert<<<blocks_for(pattern_->upper_entries()), 256, 0, space_.stream()>>>(
        pattern_->upper_entries(), pattern_->upper_source().data(), place.data());
  find_partners<<<blocks_for(std::int64_t(pattern_->slices()) * 32), 256, 0, space_.stream()>>>(
      pattern_->view(), a.view(), pattern_->layout().row.data(), pattern_->lower_source().data(), place.data(),
      partner_.data());
  launched("pairing entries");
}

template <class T>
const T* DiluForm<exec::Cuda, T>::diagonal_of(const sparse::SlicedMatrix<T>& a, double shift) {
  if (shift == 0 || pattern_->slices() == 0) return a.diagonal.data();
  if (shifted_.size() == 0) shifted_ = space_.template allocate<T>(a.diagonal.size());
  shift_kernel<<<blocks_for(std::int64_t(pattern_->slices()) * 32), 256, 0, space_.stream()>>>(a.view(), shift,
                                                                                               shifted_.data());
  launched("shifting the diagonal");
  return shifted_.data();
}

template <class T>
void DiluForm<exec::Cuda, T>::look_for_asymmetry(const sparse::SlicedMatrix<T>& a) {
  if (!symmetric_ || pattern_->slices() == 0) return;
  // With as many entries above the diagonal as below, and a partner for each below, none above is without one.
  if (pattern_->lower_entries() != pattern_->upper_entries()) {
    const auto paired = space_.template allocate<int>(std::size_t(pattern_->upper_entries()));
    space_.clear(paired);
    if (pattern_->lower_entries() > 0)
      mark_paired<<<blocks_for(pattern_->lower_entries()), 256, 0, space_.stream()>>>(pattern_->lower_entries(),
                                                                                      partner_.data(), paired.data());
    find_unpaired<<<blocks_for(std::int64_t(pattern_->slices()) * 32), 256, 0, space_.stream()>>>(
        pattern_->view(), paired.data(), trouble_.data());
    launched("looking for asymmetry");
  }
  asymmetry_kernel<<<blocks_for(std::int64_t(pattern_->slices()) * 32), 256, 0, space_.stream()>>>(
      a.view(), partner_.data(), trouble_.data());
  launched("looking for asymmetry");
}

/// A triangular solve whose entries are a_ij a_ji: it runs under the same strategies.
template <class T>
void DiluForm<exec::Cuda, T>::find_pivots(const sparse::SlicedMatrix<T>& a, double shift) {
  triangular::Recurrence<T, triangular::Diagonal::pivot, true> pivots{pattern_->view().lower, a.lower.data(),
                                                                      diagonal_of(a, shift), nullptr, rd_.data()};
  pivots.mirror = a.upper.data();
  pivots.partner = partner_.data();
  pivots.zero_pivot = &trouble_.data()->zero_pivot;
  runner_->sweep(pivots);
}

/// On the host, while no kernel is at work on it: factor() waits at its end, unless it threw before.
template <class T>
void DiluForm<exec::Cuda, T>::forget_trouble() {
  if (factoring_) space_.synchronise();
  factoring_ = true;
  *trouble_.data() = Trouble{};
}

template <class T>
void DiluForm<exec::Cuda, T>::require_no_trouble() {
  space_.synchronise();
  factoring_ = false;
  precond::require_no_trouble(*trouble_.data(), name_, caller_row_);
}

template <class T>
void DiluForm<exec::Cuda, T>::solve(const T* lower, const T* upper, const T* r, T* z) const {
  solve_dilu_form(*runner_, pattern_->view(), lower, upper, rd_.data(), r, work_.data(), z);
}

template <class T>
std::unique_ptr<Preconditioner<exec::Cuda, float>> DiluForm<exec::Cuda, T>::rounded_form(
    const T* lower, const T* upper, const sparse::Rounding& rounding,
    const std::shared_ptr<const sparse::RoundedMatrix>& a, bool same) const {
  return with_format(rounding.storage, [&](auto s) -> std::unique_ptr<Preconditioner<exec::Cuda, float>> {
    using S = decltype(s);
    using Matrix = sparse::RoundedMatrixOf<exec::Cuda, S>;
    auto triangles = same ? std::dynamic_pointer_cast<const Matrix>(a) : nullptr;
    const bool shared = triangles != nullptr, own = shared && shifted_.size() == 0;
    if (!shared)
      triangles = std::make_shared<const Matrix>(
          sparse::rounded_matrix<S>(space_, pattern_, {pattern_->view(), lower, nullptr, upper}, rounding));
    return std::make_unique<RoundedForm<exec::Cuda, S>>(
        space_, runner_->shared_plan(), strategy_, std::move(triangles),
        rounding.folded ? space_.template allocate<float>(0) : rounded_reciprocals(space_, rd_, rounding), own, shared);
  });
}

template class DiluForm<exec::Cuda, double>;

}  // namespace krilu::precond
