// SPDX-License-Identifier: Apache-2.0
// WarpRunner: runs recurrences over a sliced pattern on a GPU under one of the strategies level-set, sync-free and
// tiled (a file each), or over coloured blocks. `auto` times the candidates during the first pairs of sweeps that it is
// asked for outside of a recording, uses their results, and settles [Wang and Liu 2022, section 5]; Cuda::rehearse
// makes such an occasion. Times are of the graph that will be replayed, since a launch costs four times as much on its
// own.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exec/cuda.cuh"
#include "schedule/layout.cuh"
#include "triangular/blocks.cuh"
#include "triangular/level_set.cuh"
#include "triangular/stencil_blocks.cuh"
#include "triangular/sync_free.cuh"
#include "triangular/tiled.cuh"

namespace krilu::triangular {

struct WarpTuning {
  LevelSetTuning level_set;
  SyncFreeTuning sync_free;
  TiledTuning tiled;
  Index slices_to_share = 96;  // of a colour, to a multiprocessor, from which on a warp takes several
  int trials = 2;              // timed pairs of each candidate: the first one also loads the kernel
  Index most_launches = 400;   // above which level-set is no candidate: a launch takes 1 us at the least
};

class WarpRunner {
 public:
  WarpRunner(exec::Cuda space, std::shared_ptr<const schedule::Plan> plan, const sparse::SlicedPattern& pattern,
             Strategy strategy, WarpTuning tuning = {});
  ~WarpRunner();
  WarpRunner(const WarpRunner&) = delete;
  WarpRunner& operator=(const WarpRunner&) = delete;

  /// f over the lower triangle, then b over the upper one, b reading what f wrote: f.x is b.b, work space of the
  /// caller's, and not b.x.
  template <class F, class B>
  void both(F f, B b) const {
    if (blocks()) return both_in_blocks(f, b);
    if (!settled() && !space_.recording()) return trial(f, b);
    if (!settled()) settle();
    arm(f, b, chosen_);
    run(chosen_, f);
    run(chosen_, b);
  }

  /// One sweep. x needs no preparation.
  template <class R>
  void sweep(R r) const {
    if (blocks()) {
      for_colours<R::lower>([&](bool first, Index begin, Index end) { launch_block(first, r, begin, end); });
      return;
    }
    r.next = nullptr;
    if (waits(current())) fill(r.x);
    run(current(), r);
  }

  /// The strategy in use: what was asked for, the best that was seen, or tiled until then.
  Strategy current() const { return settled() ? chosen_ : Strategy::tiled; }
  bool settled() const { return chosen_ != Strategy::automatic; }
  /// Pairs of sweeps that it has yet to time.
  int trials_left() const;
  Report report() const;
  std::size_t bytes() const { return ticket_.bytes(); }
  /// Rows in coloured blocks: one way to run them.
  bool blocks() const { return plan_->layout->blocks; }
  const schedule::Plan& plan() const { return *plan_; }
  const std::shared_ptr<const schedule::Plan>& shared_plan() const { return plan_; }
  static bool waits(Strategy s) { return s != Strategy::level_set; }

  // --- for bodies of their own (factorisations) ---------------------------------------------------------------------
  unsigned* ticket() const { return ticket_.data(); }
  unsigned sync_free_blocks() const;
  /// wide(list, begin, end) or narrow(list, levels, first, last) for each launch of the level-set strategy.
  template <class Wide, class Narrow>
  void for_launches(bool ascending, const Wide& wide, const Narrow& narrow) const {
    const auto& level = plan_->level;
    for (std::size_t n = 0; n < launches_.size(); ++n) {
      const Launch& l = launches_[ascending ? n : launches_.size() - 1 - n];
      if (l.narrow)
        narrow(plan_->list.data(), plan_->level_there.data(), l.first, l.last);
      else
        wide(plan_->list.data(), level[std::size_t(l.first)], level[std::size_t(l.last)]);
    }
  }
  /// f(whether it is the first, begin, end) of each colour's slices.
  template <bool ascending, class F>
  void for_colours(const F& f) const {
    const auto& level = plan_->level;
    const Index colours = plan_->levels();
    bool first = true;
    for (Index n = 0; n < colours; ++n) {
      const auto c = std::size_t(ascending ? n : colours - 1 - n);
      if (level[c] < level[c + 1]) f(std::exchange(first, false), level[c], level[c + 1]);
    }
  }

 private:
  struct Launch {  // of levels first .. last-1
    Index first, last;
    bool narrow;
  };
  struct Candidate {
    Strategy strategy;
    double best = 1e300;  // ms
    std::vector<std::pair<cudaEvent_t, cudaEvent_t>> timed;
  };

  template <class F, class B>
  void trial(const F& f, const B& b) const {
    Candidate* c = &candidates_.front();
    for (Candidate& other : candidates_)
      if (other.timed.size() < c->timed.size()) c = &other;
    auto f2 = f;
    auto b2 = b;
    arm(f2, b2, c->strategy);
    const auto launch = [&] {
      run(c->strategy, f2);
      run(c->strategy, b2);
    };
    c->timed.push_back(timed(launch));
    if (trials_left() == 0) settle();
  }
  template <class Launch_>
  std::pair<cudaEvent_t, cudaEvent_t> timed(const Launch_& launch) const {
    const auto graph = space_.recorded(launch);
    cudaGraphExec_t ready;
    exec::require_cuda(cudaGraphInstantiate(&ready, graph.get(), 0), "recording sweeps");
    std::pair<cudaEvent_t, cudaEvent_t> e;
    exec::require_cuda(cudaEventCreate(&e.first), "making an event");
    exec::require_cuda(cudaEventCreate(&e.second), "making an event");
    exec::require_cuda(cudaEventRecord(e.first, space_.stream()), "timing");
    exec::require_cuda(cudaGraphLaunch(ready, space_.stream()), "launching sweeps");
    exec::require_cuda(cudaEventRecord(e.second, space_.stream()), "timing");
    exec::require_cuda(cudaGraphExecDestroy(ready), "recording sweeps");  // once it has run
    return e;
  }
  void settle() const;

  /// Strategies that wait find the cells of f.x awaited, and set those of b.x meanwhile; the sweep after does the same
  /// for the next application.
  template <class F, class B>
  void arm(F& f, B& b, Strategy s) const {
    if (waits(s)) {
      if (!armed_) fill(f.x);
      f.next = b.x;
      b.next = f.x;
    }
    armed_ = waits(s);
  }
  template <class T>
  void fill(T* x) const;

  template <class R>
  void run(Strategy s, R r) const {
    if (widest_ <= 4)
      run_wide<4>(s, r);
    else if (widest_ <= 8)
      run_wide<8>(s, r);
    else
      run_wide<16>(s, r);
  }
  template <int N, class R>
  void run_wide(Strategy s, const R& r) const {
    const cudaStream_t stream = space_.stream();
    const Index slices = plan_->layout->slices;
    if (slices == 0) return;
    if (s == Strategy::level_set) {
      bool follows = false;
      for_launches(
          R::lower,
          [&](const Index* list, Index begin, Index end) {
            const unsigned threads = tuning_.level_set.wide_threads, per_block = threads / 32;
            space_.launch(std::exchange(follows, true), wide_level<N, R>,
                          {(unsigned(end - begin) + per_block - 1) / per_block, threads}, r, list, begin, end);
          },
          [&](const Index* list, const Index* level, Index first, Index last) {
            space_.launch(std::exchange(follows, true), narrow_levels<N, R>, {1, narrow_threads<N>}, r, list, level,
                          first, last);
          });
    } else if (s == Strategy::sync_free) {
      sync_free_sweep<N>
          <<<sync_free_blocks(), tuning_.sync_free.threads, 0, stream>>>(r, plan_->list.data(), slices, ticket());
    } else {
      const std::size_t shared = std::size_t(plan_->tile_rows) * sizeof(typename R::Value);
      constexpr auto kernel = tiled_sweep<N, R>;
      if (shared > 48 * 1024)  // of the kernel, and so of all that use it: never less than another one's
        exec::require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                int(space_.shared_memory() - tiled_own_bytes)),
                           "asking for shared memory");
      kernel<<<unsigned(plan_->tiles), tuning_.tiled.threads, shared, stream>>>(r, plan_->tile.data(), plan_->tiles,
                                                                                ticket());
    }
    exec::require_cuda(cudaGetLastError(), "launching a triangular sweep");
  }

  /// f(entries at once, entries within a slice)
  template <class F>
  void with_shape(const F& f) const {
    using std::integral_constant;
    if (widest_ <= 4 && widest_inner_ <= 2)
      f(integral_constant<int, 4>{}, integral_constant<int, 2>{});
    else if (widest_inner_ <= 3)
      f(integral_constant<int, 3>{}, integral_constant<int, 3>{});
    else if (widest_inner_ <= 8)
      f(integral_constant<int, 4>{}, integral_constant<int, 8>{});
    else if (widest_inner_ <= 16)
      f(integral_constant<int, 4>{}, integral_constant<int, 16>{});
    else
      f(integral_constant<int, 4>{}, integral_constant<int, 32>{});
  }
  /// at_once: slices a warp.
  template <class Kernel, class... Arguments>
  void launch_colour(bool first, int at_once, Kernel kernel, Index begin, Index end,
                     const Arguments&... arguments) const {
    const Index slices = Index(block_sweep_threads / 32) * at_once;
    space_.launch(!first, kernel, {unsigned((end - begin + slices - 1) / slices), block_sweep_threads}, arguments...,
                  begin, end);
  }
  /// f(slices a warp): as many as leave each multiprocessor all the warps that it can have.
  template <int N, class F>
  void with_slices_at_once(Index slices, const F& f) const {
    constexpr int most = most_at_once<N>;
    if constexpr (most > 1)
      if (slices >= tuning_.slices_to_share * space_.multiprocessors()) return f(std::integral_constant<int, most>{});
    f(std::integral_constant<int, 1>{});
  }
  template <class R>
  void launch_block(bool first, const R& r, Index begin, Index end) const {
    with_shape([&](auto at_once, auto within) {
      constexpr int B = at_once.value, N = within.value;
      if constexpr (R::form != Diagonal::pivot)
        if (r.triangle.stencil)
          return with_slices_at_once<N>(end - begin, [&](auto slices) {
            launch_colour(first, slices.value, stencil_sweep<slices.value, B, N, R>, begin, end, r);
          });
      launch_colour(first, 1, block_sweep<B, N, R>, begin, end, r, inner_);
    });
  }
  template <class F, class B>
  void both_in_blocks(const F& f, const B& b) const {
    const Index last = plan_->level.back();
    for_colours<true>([&](bool first, Index begin, Index end) {
      if (end < last) return launch_block(first, f, begin, end);
      with_shape([&](auto at_once, auto within) {
        constexpr int K = at_once.value, N = within.value;
        if (!f.triangle.stencil) return launch_colour(first, 1, block_turn<K, N, F, B>, begin, end, f, b);
        with_slices_at_once<N>(end - begin, [&](auto slices) {
          launch_colour(first, slices.value, stencil_turn<slices.value, K, N, F, B>, begin, end, f, b);
        });
      });
    });
    for_colours<false>([&](bool, Index begin, Index end) {
      if (end < last) launch_block(false, b, begin, end);
    });
  }

  exec::Cuda space_;
  std::shared_ptr<const schedule::Plan> plan_;
  WarpTuning tuning_;
  Index widest_, widest_inner_;
  const std::uint8_t* inner_;
  std::vector<Launch> launches_;
  exec::Array<unsigned> ticket_;
  mutable Strategy chosen_;
  mutable std::vector<Candidate> candidates_;
  mutable bool armed_ = false;
};

}  // namespace krilu::triangular
