// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "krilu/error.hpp"
#include "triangular/runner.cuh"

namespace krilu::triangular {

namespace {
template <class T>
__global__ void fill_kernel(std::size_t n, T* x) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) x[i] = Awaited<T>::pattern();
}
}  // namespace

WarpRunner::WarpRunner(exec::Cuda space, std::shared_ptr<const schedule::Plan> plan,
                       const sparse::SlicedPattern& pattern, Strategy strategy, WarpTuning tuning)
    : space_(std::move(space)),
      plan_(std::move(plan)),
      tuning_(tuning),
      widest_(pattern.widest()),
      widest_inner_(pattern.widest_inner()),
      inner_(pattern.view().inner),
      ticket_(space_.allocate<unsigned>(1)),
      chosen_(strategy) {
  space_.clear(ticket_);
  if (blocks()) {
    chosen_ = Strategy::level_set;
    return;
  }
  if (strategy == Strategy::serial)
    throw Error("triangular serial is for the host: a GPU has level-set, sync-free and tiled");
  const auto& level = plan_->level;
  for (Index l = 0; l < plan_->levels(); ++l) {
    const bool narrow = level[std::size_t(l) + 1] - level[std::size_t(l)] <= tuning_.level_set.narrow_slices;
    if (narrow && !launches_.empty() && launches_.back().narrow)
      launches_.back().last = l + 1;
    else
      launches_.push_back({l, l + 1, narrow});
  }
  if (chosen_ != Strategy::automatic) return;
  if (Index(launches_.size()) <= tuning_.most_launches) candidates_.push_back({Strategy::level_set});
  candidates_.push_back({Strategy::sync_free});
  candidates_.push_back({Strategy::tiled});
}

WarpRunner::~WarpRunner() {
  for (Candidate& c : candidates_)
    for (auto& [begin, end] : c.timed) {
      cudaEventDestroy(begin);
      cudaEventDestroy(end);
    }
}

int WarpRunner::trials_left() const {
  int left = 0;
  if (!settled())
    for (const Candidate& c : candidates_) left += std::max(0, tuning_.trials - int(c.timed.size()));
  return left;
}

void WarpRunner::settle() const {
  for (Candidate& c : candidates_) {
    for (auto& [begin, end] : c.timed) {
      exec::require_cuda(cudaEventSynchronize(end), "timing");
      float ms = 0;
      exec::require_cuda(cudaEventElapsedTime(&ms, begin, end), "timing");
      c.best = std::min(c.best, double(ms));
      cudaEventDestroy(begin);
      cudaEventDestroy(end);
    }
    c.timed.clear();
  }
  const auto best = std::min_element(candidates_.begin(), candidates_.end(),
                                     [](const Candidate& p, const Candidate& q) { return p.best < q.best; });
  chosen_ = best->best < 1e300 ? best->strategy : Strategy::tiled;
}

Report WarpRunner::report() const {
  std::string text;
  for (const Candidate& c : candidates_)
    if (c.best < 1e300) {
      char one[64];
      std::snprintf(one, sizeof one, "%s%s %.3f ms", text.empty() ? "" : ", ", to_string(c.strategy), c.best);
      text += one;
    }
  return {current(), text, settled()};
}

unsigned WarpRunner::sync_free_blocks() const {
  const SyncFreeTuning& t = tuning_.sync_free;
  const Index slices = plan_->layout->slices, levels = std::max<Index>(1, plan_->levels());
  const int warps =
      slices / levels >= t.wide_level_slices ? t.warps_per_multiprocessor_wide : t.warps_per_multiprocessor;
  const unsigned per_block = t.threads / 32;
  const unsigned most = unsigned(space_.multiprocessors()) * unsigned(warps) / per_block;
  return std::max(1u, std::min(most, (unsigned(slices) + per_block - 1) / per_block));
}

template <class T>
void WarpRunner::fill(T* x) const {
  const auto n = plan_->layout->place.size();
  if (n == 0) return;
  fill_kernel<<<unsigned((n + 255) / 256), 256, 0, space_.stream()>>>(n, x);
  exec::require_cuda(cudaGetLastError(), "preparing a triangular sweep");
}
template void WarpRunner::fill(double*) const;
template void WarpRunner::fill(float*) const;

}  // namespace krilu::triangular
