// SPDX-License-Identifier: Apache-2.0
// exec::Host: the CPU's cores as an execution space. Every primitive runs at once, in the calling thread and its OpenMP
// team. Sums are formed in blocks of fixed length and added in block order, so that a result does not depend on the
// number of threads. In a team (together.hpp) the ranks' sums are added next, in the order of ranks.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include "base/half.hpp"
#include "exec/array.hpp"
#include "exec/host_columns.hpp"
#include "exec/lanes.hpp"
#include "exec/together.hpp"

namespace krilu::exec {

/// Threads that the machine offers to this process, by OpenMP's count (1 without OpenMP).
int available_threads();
/// Throws krilu::Error for a negative number of threads, and for more than any machine has cores. 0 is all.
void require_threads(int threads);

std::shared_ptr<Memory> host_memory();

class Host {
 public:
  /// threads 0: all that are available.
  explicit Host(int threads = 0) : threads_(threads > 0 ? threads : available_threads()) {}

  static constexpr const char* name = "host";
  int threads() const { return threads_; }

  // --- ranks ----------------------------------------------------------------------------------------------------
  /// This space as a member of a team that has so many rows: reductions are over all ranks.
  Host join(std::shared_ptr<Ranks> ranks, std::int64_t rows) const {
    Host member = *this;
    member.team_ = std::make_shared<Together>(std::move(ranks), rows);
    return member;
  }
  bool in_team() const { return team_ != nullptr; }
  /// Rows of all ranks, and of each as if they were shared evenly: of this one's `rows`, where it is alone.
  std::size_t total(std::size_t rows) const { return team_ ? team_->rows() : rows; }
  std::size_t even_share(std::size_t rows) const {
    return team_ ? (team_->rows() + std::size_t(team_->size()) - 1) / std::size_t(team_->size()) : rows;
  }
  /// Where kernels see the wish to stop that `mine` holds: the same place, or in a team one that holds that of all.
  int* watch(int* mine) const { return team_ ? team_->watch(mine) : mine; }
  /// The wish of all, in a team, as it was last agreed on.
  bool wished() const { return team_ && team_->wished(); }
  /// Collective: all ranks have come here. Of use before kernels that wait for other ranks: what is asked of a driver
  /// may wait for those.
  void meet() const {}
  /// Collective: whether ranks reach one another without the host, which disconnect() forgoes on all of them.
  bool connect() const { return true; }
  void disconnect() const {}
  /// The others wait for this rank no longer.
  void give_up() const {}
  /// Calls what is the caller's. What it throws release() does, once all ranks have stopped.
  template <class F>
  void in_company(F&& f) const {
    team_ ? team_->withheld.during(f) : f();
  }
  void release() const {
    if (team_) team_->withheld.release();
  }

  // --- memory ---------------------------------------------------------------------------------------------------
  template <class T>
  Array<T> allocate(std::size_t n) const {
    return Array<T>(host_memory(), n);
  }
  template <class T>
  void copy_in(const Array<T>& to, const T* from, std::size_t n) const {
    if (n) std::memcpy(to.data(), from, n * sizeof(T));
  }
  template <class T>
  void copy_out(T* to, const Array<T>& from, std::size_t n) const {
    if (n) std::memcpy(to, from.data(), n * sizeof(T));
  }
  /// Memory that kernels write and the host may read while they run: the residual history.
  template <class T>
  Array<T> allocate_shared(std::size_t n) const {
    return allocate<T>(n);
  }
  template <class T>
  void clear(const Array<T>& to) const {
    if (to.bytes()) std::memset(to.data(), 0, to.bytes());
  }
  void synchronise() const {}
  /// Times that the host waited for this space; a solve's count must not grow with its iterations.
  long synchronisations() const { return 0; }
  /// False where a body runs as it is spoken; true while a device records it for replay.
  bool recording() const { return false; }

  // --- kernels --------------------------------------------------------------------------------------------------
  /// f(i) for 0 <= i < n, in any order; calls must not depend on one another.
  template <class F>
  void for_each(std::size_t n, F f) const {
    for_each_range(n, [f](Index begin, Index end) {
#pragma omp simd
      for (Index i = begin; i < end; ++i) f(i);
    });
  }

  /// f(begin, end) over pieces that together cover 0 .. n-1. The host's alone.
  template <class F>
  void for_each_range(std::size_t n, F f) const {
    const std::size_t pieces = (n + block - 1) / block;
    parallel(pieces >= 2 * std::size_t(threads_) ? threads_ : 1, [&](int t, int team) {
      const std::size_t first = pieces * std::size_t(t) / std::size_t(team);
      const std::size_t last = pieces * std::size_t(t + 1) / std::size_t(team);
      run_pieces(f, n, first, last);
    });
  }

  /// f() once, where the vectors live.
  template <class F>
  void once(F f) const {
    f();
  }

  /// close(sum over i of f(i)), where the vectors live. f returns a number or Sums<T, N>, and may also write: a fused
  /// update costs no further pass.
  template <class F, class Close>
  void reduce(std::size_t n, F f, Close close) const {
    using V = std::decay_t<decltype(f(Index{}))>;
    const std::size_t pieces = (n + block - 1) / block;
    std::vector<V>& partial = partial_sums<V>(pieces);
    for_each_range(n, [f, &partial](Index begin, Index end) {
      partial[std::size_t(begin) / block] = sum_of_piece<V>(f, begin, end);
    });
    close(total_of(partial, pieces));
  }

  /// One step by all lanes, where the vectors live.
  template <class F>
  void together(F f) const {
    f(Lanes{});
  }

  /// close(k, d) for 0 <= k < count() + extra, d[l] being the dot product of column k and x[l], all in one pass over
  /// the rows; then finish(lanes), which may change count. There are one or two x, whole arrays of the space, and
  /// `most` columns at the most. Where count() is negative nothing is done, as of an iteration too many. Itself: the
  /// last x follows as one more column, which `most` counts too.
  template <bool Itself = false, class B, class T, std::size_t N, class Close, class Finish>
  void dot_columns(std::size_t n, Columns<B> V, Index most, Scalar<Index> count, Index extra, std::array<View<T>, N> x,
                   Close close, Finish finish) const {
    using D = Sums<T, int(N)>;
    if (count() < 0) return;
    const Index stored = count() + extra, columns = stored + Itself;
    const std::size_t pieces = (n + block - 1) / block;
    std::vector<D>& partial = partial_sums<D>((pieces + 1) * std::size_t(most));
    for_each_range(n, [V, x, &partial, stored, most](Index begin, Index end) {
      D* const out = partial.data() + std::size_t(begin) / block * std::size_t(most);
      dot_piece(V, stored, x, begin, end, out);
      if constexpr (Itself) dot_piece(Columns<T>{x[N - 1].data, 0}, 1, x, begin, end, out + stored);
    });
    // One message of a team for all columns.
    D* const total = partial.data() + pieces * std::size_t(most);
    for (Index k = 0; k < columns; ++k) {
      total[k] = D{};
      for (std::size_t p = 0; p < pieces; ++p) add(total[k], partial[p * std::size_t(most) + std::size_t(k)]);
    }
    if (team_) team_->sum(reinterpret_cast<T*>(total), std::size_t(columns) * N);
    for (Index k = 0; k < columns; ++k) close(k, total[k]);
    finish(Lanes{});
  }

  /// f(i, s) for 0 <= i < n, s[l] being the sum over k < count() of y[l][k] V[k][i]; y has one view or two. The columns
  /// are read in one pass. `most` bounds the count. f may write columns from count() on. Where count() is negative
  /// nothing is done. f(i, s, x_i) where vectors x are given, of which f may write row i: if f read them itself a GPU
  /// would ask for row after row, since what f writes may be theirs.
  template <class B, class T, std::size_t N, std::size_t R, class F>
  void combine_columns(std::size_t n, Columns<B> V, [[maybe_unused]] Index most, Scalar<Index> count,
                       std::array<View<T>, N> y, std::array<View<T>, R> x, F f) const {
    if (count() < 0) return;
    for_each_range(n, [=, columns = count()](Index begin, Index end) {
      T sum[N][block];
      combine_piece(V, columns, y, begin, end, sum);
      const T(*const sums)[block] = sum;
      const auto row = [=](Index i) { in_row<R>(f, i, combined<T, N>(sums, i - begin), row_of(x, i)); };
#pragma omp simd
      for (Index i = begin; i < end; ++i) row(i);
    });
  }
  template <class B, class T, std::size_t N, class F>
  void combine_columns(std::size_t n, Columns<B> V, Index most, Scalar<Index> count, std::array<View<T>, N> y,
                       F f) const {
    combine_columns(n, V, most, count, y, std::array<View<T>, 0>{}, f);
  }
  /// The same, and close(lanes, sum over i of what f returns).
  template <class B, class T, std::size_t N, std::size_t R, class F, class Close>
  void combine_columns(std::size_t n, Columns<B> V, [[maybe_unused]] Index most, Scalar<Index> count,
                       std::array<View<T>, N> y, std::array<View<T>, R> x, F f, Close close) const {
    using S = std::decay_t<decltype(in_row<R>(f, Index{}, Sums<T, int(N)>{}, RowOf<T, R>{}))>;
    if (count() < 0) return;
    const std::size_t pieces = (n + block - 1) / block;
    std::vector<S>& partial = partial_sums<S>(pieces);
    for_each_range(n, [=, columns = count(), &partial](Index begin, Index end) {
      T sum[N][block];
      combine_piece(V, columns, y, begin, end, sum);
      const T(*const sums)[block] = sum;
      const auto row = [=](Index i) { return in_row<R>(f, i, combined<T, N>(sums, i - begin), row_of(x, i)); };
      S its[block];  // apart from adding them up: f is then taken many rows at a time
#pragma omp simd
      for (Index i = begin; i < end; ++i) its[i - begin] = row(i);
      partial[std::size_t(begin) / block] = sum_of_piece<S>([&](Index i) { return its[i - begin]; }, begin, end);
    });
    close(Lanes{}, total_of(partial, pieces));
  }
  template <class B, class T, std::size_t N, class F, class Close>
  void combine_columns(std::size_t n, Columns<B> V, Index most, Scalar<Index> count, std::array<View<T>, N> y, F f,
                       Close close) const {
    combine_columns(n, V, most, count, y, std::array<View<T>, 0>{}, f, close);
  }

  /// A column joins V, rotations turn the last ones up to it, and r loses what V without its last column then holds of
  /// it: V[K] = join(sum_k y[k] V[k], u), V = V Q, r = rest(sum_k z[k] V[k], r), row by row and k < K = count() each
  /// time; then close(lanes, |r|^2). Where count() is 0 no column joins. In one pass over V.
  template <class B, class T, class Join, class Rest, class Close>
  void join_columns(std::size_t n, Columns<B> V, Scalar<Index> count, Rotations<T> by, View<T> y, View<T> z, View<T> u,
                    View<T> r, Join join, Rest rest, Close close) const {
    const std::size_t pieces = (n + block - 1) / block;
    std::vector<T>& partial = partial_sums<T>(pieces);
    const Index columns = count(), first = by.first(), turned = by.turned(columns);
    for_each_range(n, [=, &partial](Index begin, Index end) {
      T all[1][block], sum[1][block];
      T *const Vy = all[0], *const Vz = sum[0];
      combine_piece(V, columns, std::array{y}, begin, end, all);
      combine_piece(V, turned, std::array{z}, begin, end, sum);
      if (columns > 0) {
        B* const joining = V[columns];
#pragma omp simd
        for (Index i = begin; i < end; ++i) assign(joining[i], join(Vy[i - begin], u[i]));
      }
      for (Index k = turned; k < columns; ++k) {
        B *const upper = V[k], *const lower = V[k + 1];
        const T c = by.c[first + k - turned], s = by.s[first + k - turned], zk = z[k];
#pragma omp simd
        for (Index i = begin; i < end; ++i) {
          const T a = T(upper[i]), b = T(lower[i]);
          assign(upper[i], c * a + s * b);
          assign(lower[i], c * b - s * a);
          Vz[i - begin] += zk * T(upper[i]);
        }
      }
#pragma omp simd
      for (Index i = begin; i < end; ++i) r[i] = rest(Vz[i - begin], r[i]);
      partial[std::size_t(begin) / block] = sum_of_piece<T>([r](Index i) { return r[i] * r[i]; }, begin, end);
    });
    close(Lanes{}, total_of(partial, pieces));
  }

  // --- control --------------------------------------------------------------------------------------------------
  /// body() again and again until stop() is set; a device records the body once and replays it. It may run the body up
  /// to `at_once` times between two looks at stop(), so further runs must then do no harm.
  template <class Body>
  void repeat_until(Scalar<int> stop, Body body, [[maybe_unused]] int at_once = 1) const {
    while (!stop()) body();
  }
  /// body() if flag() is set at that moment, where the vectors live.
  template <class Body>
  void when(Scalar<int> flag, Body body) const {
    if (flag()) body();
  }
  /// body(). Each later call for the same recording does the same again: a device asks for body once and keeps a
  /// record, until renew() says that what body does has changed.
  struct Recording {
    void renew() {}
  };
  template <class Body>
  void replay(Recording&, Body body) const {
    body();
  }
  /// Nothing to rehearse: what times its own choices does so while it runs (exec/cuda.cuh).
  void rehearse(int) const {}
  /// Runs f(host) in the order of the other kernels: the way in for operators that bring their own threaded body.
  template <class F>
  void enqueue(F f) const {
    f(*this);
  }

  // --- for threaded bodies of this space only -------------------------------------------------------------------
  /// f(thread, team) on a team of at most `threads` threads. The team's true size is what f is told.
  template <class F>
  void parallel(int threads, F&& f) const {
#if defined(_OPENMP)
    if (threads > 1) {
#pragma omp parallel num_threads(threads)
      f(omp_get_thread_num(), omp_get_num_threads());
      return;
    }
#endif
    f(0, 1);
  }
  template <class F>
  void parallel(F&& f) const {
    parallel(threads_, std::forward<F>(f));
  }

  /// The calling thread's place in its team, 0 outside of one.
  static int thread_index() {
#if defined(_OPENMP)
    return omp_get_thread_num();
#else
    return 0;
#endif
  }

  /// Rows in one block of a sum: two vectors of it fit the smallest first-level cache.
  static constexpr std::size_t block = 1024;

 private:
  /// Compiled once for each f, whatever the team: inlined into the team of one and into the larger one separately, the
  /// compiler contracts and vectorises the two differently, and results depend on the number of threads after all. And
  /// with a copy of f: through the reference compilers cannot tell that stores leave f's pointers alone, and gather
  /// what is contiguous.
  template <class F>
#if defined(__GNUC__) && !defined(__clang__)
  [[gnu::noinline, gnu::noclone]]
#else
  [[gnu::noinline]]
#endif
  static void
  run_pieces(const F& f, std::size_t n, std::size_t first, std::size_t last) {
    const F own = f;
    for (std::size_t p = first; p < last; ++p)
      own(static_cast<Index>(p * block), static_cast<Index>(std::min(n, (p + 1) * block)));
  }
  /// The sums of f(i), begin <= i < end. In lanes by hand, as in dots: left to itself the compiler keeps the
  /// lanes of two sums in memory.
  template <class V, class F>
  static V sum_of_piece(const F f, Index begin, Index end) {
    using Traits = SumTraits<V>;
    using T = typename Traits::Value;
    constexpr int N = Traits::count;
    static_assert(N <= 3, "reduce forms up to three sums in a pass");
    constexpr Index lanes = 64 / sizeof(T);
    T s[lanes] = {}, t[lanes] = {}, u[lanes] = {};
    T* const sums[3] = {s, t, u};
    Index i = begin;
    for (; i + lanes <= end; i += lanes) {
#pragma omp simd
      for (Index q = 0; q < lanes; ++q) {
        const V v = f(i + q);
        s[q] += Traits::get(v, 0);
        if constexpr (N > 1) t[q] += Traits::get(v, 1);
        if constexpr (N > 2) u[q] += Traits::get(v, 2);
      }
    }
    V out{};
    for (; i < end; ++i) add(out, f(i));
    for (int k = 0; k < N; ++k) {
      for (Index width = lanes / 2; width > 0; width /= 2)
        for (Index q = 0; q < width; ++q) sums[k][q] += sums[k][q + width];
      reinterpret_cast<T*>(&out)[k] += sums[k][0];
    }
    return out;
  }
  template <class V>
  static void add(V& to, const V& v) {
    for (int k = 0; k < SumTraits<V>::count; ++k)
      reinterpret_cast<typename SumTraits<V>::Value*>(&to)[k] += SumTraits<V>::get(v, k);
  }
  /// The sums of all pieces, over all ranks.
  template <class V>
  V total_of(const std::vector<V>& partial, std::size_t pieces) const {
    V total{};
    for (std::size_t p = 0; p < pieces; ++p) add(total, partial[p]);
    if (team_) team_->sum(reinterpret_cast<typename SumTraits<V>::Value*>(&total), std::size_t(SumTraits<V>::count));
    return total;
  }
  template <class T, std::size_t N>
  static KRILU_INLINE Sums<T, int(N)> combined(const T (*sum)[block], Index i) {
    Sums<T, int(N)> s;
    for (std::size_t l = 0; l < N; ++l) s[int(l)] = sum[l][i];
    return s;
  }
  template <class V>
  static std::vector<V>& partial_sums(std::size_t n) {
    thread_local std::vector<V> partial;
    if (partial.size() < n) partial.resize(n);
    return partial;
  }

  int threads_;
  std::shared_ptr<Together> team_;  // null: alone
};

}  // namespace krilu::exec
