// SPDX-License-Identifier: Apache-2.0
// Columns on a GPU: dot products of every column with one vector or two, and combinations of columns in every row. Both
// are bound by memory as long as enough of it is on its way, so a thread asks for 16 bytes of each of several columns
// before it uses the first. Blocks that take different columns of the same rows run side by side: the vectors that
// columns share come from the second-level cache then. Included by cuda.cuh.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "exec/ask.cuh"
#include "exec/lanes.hpp"
#include "exec/overlap.cuh"
#include "exec/reductions.cuh"

namespace krilu::exec::cuda {

struct ColumnsTuning {
  static constexpr int bytes = 16;     // of a column that a thread reads at once
  static constexpr int dotted = 8;     // columns that a block forms the dot products of
  static constexpr int combined = 16;  // columns that a thread asks for at once to combine them, or half of that
  static constexpr int ahead = 4;      // rows whose x a thread asks for at once, as far as registers go: in double one
  // On a multiprocessor: all run at once. Blocks that begin while the launch before ends gather where places fall free
  // first: as many as fit there, of a grid that does not fill the GPU. So they are large.
  static constexpr int dotting_blocks = 2, combining_blocks = 2;
  static constexpr int coefficients = 128;  // that stand in shared memory
};

/// Entries of a vector that a thread takes at once.
template <class B>
constexpr int rows_of = ColumnsTuning::bytes / int(sizeof(B));
template <class T, int R>
struct alignas(ColumnsTuning::bytes) Piece {
  T value[R];
};
template <int R, class T>
__device__ __forceinline__ Piece<T, R> piece(const T* vector, std::size_t p) {
  return reinterpret_cast<const Piece<T, R>*>(vector)[p];
}
/// How columns are read: of all that passes through the second-level cache they are what is to leave it first. A basis
/// is mostly larger; the matrix and the vectors, which an iteration reads between its last pass over the basis and the
/// next one's first, may have room there.
class Passing {
 public:
  /// To be called behind await_former(); loads keep the sequence in which they are asked for.
  template <int R, class T>
  __device__ __forceinline__ Piece<T, R> piece(const T* vector, std::size_t p) const {
#if __CUDA_ARCH__ >= 800
    static_assert(sizeof(Piece<T, R>) == 16);
    uint4 bits;
    asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
                 : "l"(__cvta_generic_to_global(reinterpret_cast<const Piece<T, R>*>(vector) + p)), "l"(policy_));
    Piece<T, R> out;
    memcpy(&out, &bits, sizeof out);
    return out;
#else
    return cuda::piece<R>(vector, p);
#endif
  }

 private:
  unsigned long long policy_ = first_to_leave();
};

KRILU_INLINE unsigned groups_of(Index columns) {
  return unsigned(columns + ColumnsTuning::dotted - 1) / unsigned(ColumnsTuning::dotted);
}

/// Blocks share out groups of columns first, then rows: block b has group b % groups and every so many-th piece.
template <bool Itself, class B, class T, std::size_t N, class Close, class Finish>
__global__ void __launch_bounds__(block_threads, ColumnsTuning::dotting_blocks)
    dot_columns_kernel(Turn turn, std::size_t n, Columns<B> V, Scalar<Index> count, Index extra,
                       std::array<View<T>, N> x, Close close, Finish finish, void* work, unsigned* arrived,
                       unsigned most_groups, const Post* post, double* leave) {
  constexpr int C = ColumnsTuning::dotted, R = rows_of<B>;
  turn.take();
  const Index known = count(), columns = known + extra + Itself;
  if (known < 0) return;
  const unsigned groups = max(groups_of(columns), 1u), group = blockIdx.x % groups, share_of_rows = blockIdx.x / groups;
  const std::size_t whole = n / R;
  const unsigned shares = unsigned(min(std::size_t(gridDim.x / groups), whole / block_threads + 1));
  // Blocks that have no share are counted too: finish() may change the count, which all are to have read by then.
  const unsigned idle = gridDim.x - groups * shares;
  const auto close_all = [&](unsigned parties) {
    if (parties > 1) {
      if (!arrive(arrived + most_groups, parties)) return;
      if (threadIdx.x == 0) arrived[most_groups] = 0;
    }
    if (!leave && threadIdx.x < 32) finish(Lanes{});
  };
  if (share_of_rows >= shares) return close_all(groups + idle);
  // Groups of equal length, but for one column.
  const Index first = Index(std::uint64_t(columns) * group / groups);
  const int own = int(Index(std::uint64_t(columns) * (group + 1) / groups) - first);
  // The last x as a column: the last one of the last group, in the last place.
  const bool with_x = Itself && group == groups - 1;
  const int stored = own - int(with_x);

  T sum[C * N] = {};
  if (own > 0) {
    const Passing passing;
    const B* column[C];  // those that the group lacks are read and not used
#pragma unroll
    for (int c = 0; c < C; ++c) column[c] = V[first + max(min(c, stored - 1), 0)];
    for (std::size_t p = std::size_t(share_of_rows) * block_threads + threadIdx.x; p < whole;
         p += std::size_t(shares) * block_threads) {
      Piece<B, R> v[C];
      Piece<T, R> xs[N];
#pragma unroll
      for (int c = 0; c < C; ++c) v[c] = passing.piece<R>(column[c], p);
#pragma unroll
      for (std::size_t l = 0; l < N; ++l) xs[l] = piece<R>(x[l].data, p);
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (std::size_t l = 0; l < N; ++l)
#pragma unroll
          for (int r = 0; r < R; ++r)
            sum[c * N + l] += (Itself && c == C - 1 && with_x ? xs[N - 1].value[r] : T(v[c].value[r])) * xs[l].value[r];
    }
    if (const std::size_t i = whole * R + threadIdx.x; share_of_rows == 0 && i < n) {
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (std::size_t l = 0; l < N; ++l)
          sum[c * N + l] += (Itself && c == C - 1 && with_x ? x[N - 1][Index(i)] : T(column[c][i])) * x[l][Index(i)];
    }
  }
  constexpr int sums = C * int(N);
  static_assert(sums <= 32, "a warp closes them");
  T mine = block_sums(sum);
  T* const partial = static_cast<T*>(work) + std::size_t(group) * sums * shares;
  if (threadIdx.x < sums) partial[sums * share_of_rows + threadIdx.x] = mine;
  if (!arrive(arrived + group, shares)) return;
  mine = sum_many_partials<sums>(partial, shares);
  if (threadIdx.x < 32) {
    if (post) share_many<sums>(post, int(group), mine);
    __shared__ T total[C][N];
    if (threadIdx.x < sums) total[threadIdx.x / N][threadIdx.x % N] = mine;
    __syncwarp();
    if (const int c = int(threadIdx.x); c < own) {  // a thread a column: what close() asks for comes at once
      Sums<T, int(N)> dots;
#pragma unroll
      for (std::size_t l = 0; l < N; ++l) dots[int(l)] = total[c < stored ? c : C - 1][l];
      leave ? leave_sums(leave + 2 * (first + c), dots) : close(first + c, dots);
    }
    __syncwarp();
  }
  if (threadIdx.x == 0) arrived[group] = 0;
  close_all(groups + idle);
}

template <class T, std::size_t N, class Close, class Finish>
__global__ void close_columns_kernel(Scalar<Index> count, Index extra, std::array<View<T>, N>, Close close,
                                     Finish finish, Gathered in) {
  if (threadIdx.x == 0) in.see_to_wishes();
  if (count() < 0) return;
  for (Index k = Index(threadIdx.x); k < count() + extra; k += Index(blockDim.x))
    close(k, sums_from<Sums<T, int(N)>>(in, 2 * k));
  __syncthreads();
  if (threadIdx.x < 32) finish(Lanes{});
}

/// sum[l] += sum over q < Q of coefficient[q][l] V[k + q], at piece p; of columns behind the last one the last again,
/// whose coefficients are zero.
template <int Q, class B, class T, int R, std::size_t N>
__device__ __forceinline__ void combine_group(const Passing& passing, Columns<B> V, Index k, Index last, std::size_t p,
                                              const T (*coefficient)[N], Piece<T, R> (&sum)[N]) {
  Piece<B, R> v[Q];
#pragma unroll
  for (int q = 0; q < Q; ++q) v[q] = passing.piece<R>(V[min(k + q, last)], p);
#pragma unroll
  for (int q = 0; q < Q; ++q)
#pragma unroll
    for (std::size_t l = 0; l < N; ++l) {
      const T c = coefficient[q][l];
#pragma unroll
      for (int r = 0; r < R; ++r) sum[l].value[r] += c * T(v[q].value[r]);
    }
}

/// g(i, s, x_i) for the rows of this block, s[l] = sum_k y[l][k] V[k][i]. A thread combines rows that follow one
/// another, and then passes sums on, so that the threads of a warp write rows that do. g may write x of its own row
/// alone: that of some rows after it was read before. From the last row to the first: what the dot products read last
/// is in the second-level cache still.
template <class B, class T, std::size_t N, std::size_t X, class G>
__device__ __forceinline__ void combine(std::size_t n, Columns<B> V, Index columns, const std::array<View<T>, N>& y,
                                        const std::array<View<T>, X>& x, G g) {
  constexpr int Q = ColumnsTuning::combined, R = rows_of<B>, K = ColumnsTuning::coefficients;
  constexpr int ahead = std::min(R, sizeof(T) == 8 ? 1 : ColumnsTuning::ahead);
  static_assert(K % Q == 0);
  __shared__ T coefficient[K][N];
  __shared__ Piece<T, R> passed[N][block_threads];
  const std::size_t pieces = (n + R - 1) / R;
  const unsigned warp = threadIdx.x / 32 * 32, lane = threadIdx.x % 32;
  const Passing passing;
  bool staged = false;
  const std::size_t tiles = (pieces + block_threads - 1) / block_threads;
  for (std::size_t left = tiles - std::min(tiles, std::size_t(blockIdx.x)); left > 0;
       left -= std::min(left, std::size_t(gridDim.x))) {
    const std::size_t tile = (left - 1) * block_threads;
    const std::size_t p = min(tile + threadIdx.x, pieces - 1);  // a column's end is padded
    Piece<T, R> sum[N] = {};
    for (Index from = 0; from < columns; from += K) {
      const int here = min(columns - from, Index(K));
      if (!staged) {
        __syncthreads();
        for (int k = int(threadIdx.x); k < K; k += block_threads)
#pragma unroll
          for (std::size_t l = 0; l < N; ++l) coefficient[k][l] = k < here ? y[l][from + k] : T(0);
        __syncthreads();
        staged = columns <= K;
      }
      for (int k = 0; k < here; k += Q)
        if (here - k > Q / 2)
          combine_group<Q>(passing, V, from + k, from + here - 1, p, coefficient + k, sum);
        else
          combine_group<Q / 2>(passing, V, from + k, from + here - 1, p, coefficient + k, sum);
    }
#pragma unroll
    for (std::size_t l = 0; l < N; ++l) passed[l][threadIdx.x] = sum[l];
    __syncwarp();
    const std::size_t first = (tile + warp) * R;
#pragma unroll
    for (int begin = 0; begin < R; begin += ahead) {
      RowOf<T, X> row[ahead];
#pragma unroll
      for (int r = 0; r < ahead; ++r)
        if (const std::size_t i = first + unsigned(begin + r) * 32 + lane; i < n) row[r] = row_of(x, Index(i));
#pragma unroll
      for (int r = 0; r < ahead; ++r) {
        const unsigned mine = unsigned(begin + r) * 32 + lane;
        if (first + mine >= n) break;
        Sums<T, int(N)> s;
#pragma unroll
        for (std::size_t l = 0; l < N; ++l) s[int(l)] = passed[l][warp + mine / R].value[mine % R];
        g(static_cast<Index>(first + mine), s, row[r]);
      }
    }
    __syncwarp();
  }
}

template <class B, class T, std::size_t N, std::size_t X, class F>
__global__ void __launch_bounds__(block_threads, ColumnsTuning::combining_blocks)
    combine_columns_kernel(Turn turn, std::size_t n, Columns<B> V, Scalar<Index> count, std::array<View<T>, N> y,
                           std::array<View<T>, X> x, F f) {
  turn.take();
  const Index columns = count();
  if (columns < 0) return;
  combine(n, V, columns, y, x, [&](Index i, const auto& s, const auto& row) { in_row<X>(f, i, s, row); });
}
template <class B, class T, std::size_t N, std::size_t X, class F, class Close>
__global__ void __launch_bounds__(block_threads, ColumnsTuning::combining_blocks)
    combine_and_reduce_kernel(Turn turn, std::size_t n, Columns<B> V, Scalar<Index> count, std::array<View<T>, N> y,
                              std::array<View<T>, X> x, F f, Close close, void* work, unsigned* arrived,
                              const Post* post, double* leave) {
  using S = std::decay_t<decltype(in_row<X>(f, Index{}, Sums<T, int(N)>{}, RowOf<T, X>{}))>;
  using U = typename SumTraits<S>::Value;
  constexpr int M = SumTraits<S>::count;
  U sum[M] = {};
  turn.take();
  const Index columns = count();
  if (columns < 0) return;
  combine(n, V, columns, y, x, [&](Index i, const auto& s, const auto& row) {
    const S v = in_row<X>(f, i, s, row);
#pragma unroll
    for (int k = 0; k < M; ++k) sum[k] += SumTraits<S>::get(v, k);
  });
  close_sum<S>(sum, close, work, arrived, post, leave);
}

/// Entries of a vector that ends where it ends; those behind are zero.
template <int R, class T>
__device__ __forceinline__ Piece<T, R> piece_of(View<T> x, std::size_t n, std::size_t p) {
  if ((p + 1) * R <= n) return piece<R>(x.data, p);
  Piece<T, R> out = {};
  for (int r = 0; r < R && p * R + unsigned(r) < n; ++r) out.value[r] = x.data[p * R + unsigned(r)];
  return out;
}

/// A thread has so many bytes of each column, and keeps in registers what goes from one rotation to the next.
template <class B, class T, class Join, class Rest, class Close>
__global__ void __launch_bounds__(block_threads, ColumnsTuning::combining_blocks)
    join_columns_kernel(Turn turn, std::size_t n, Columns<B> V, Scalar<Index> count, Rotations<T> by, View<T> y,
                        View<T> z, View<T> u, View<T> r, Join join, Rest rest, Close close, void* work,
                        unsigned* arrived, const Post* post, double* leave) {
  constexpr int Q = ColumnsTuning::dotted, R = rows_of<B>, shared = ColumnsTuning::coefficients;
  struct alignas(4 * sizeof(T)) Of {  // a column
    T y, z, c, s;
  };
  __shared__ Of staged[shared];
  turn.take();
  const Index columns = count(), first = by.first(), turned = by.turned(columns);
  const auto told = [&](Index k) {
    const bool turns = k >= turned;
    return Of{y[k], z[k], turns ? by.c[first + k - turned] : T(1), turns ? by.s[first + k - turned] : T(0)};
  };
  for (Index k = Index(threadIdx.x); k < min(columns, Index(shared)); k += block_threads) staged[k] = told(k);
  __syncthreads();
  const auto of = [&](Index k) { return k < shared ? staged[k] : told(k); };
  const Passing passing;
  T sum[1] = {};
  const std::size_t pieces = (n + R - 1) / R;  // a column's end is padded
  // From the last row to the first, as combine() goes.
  for (std::size_t done = std::size_t(blockIdx.x) * block_threads + threadIdx.x; done < pieces;
       done += std::size_t(gridDim.x) * block_threads) {
    const std::size_t p = pieces - 1 - done;
    const auto put = [&](Index k, const Piece<B, R>& v) { reinterpret_cast<Piece<B, R>*>(V[k])[p] = v; };
    Piece<T, R> Vy = {}, Vz = {}, x = {};
    for (Index from = 0; from < columns; from += Q) {
      Piece<B, R> v[Q];
#pragma unroll
      for (int q = 0; q < Q; ++q) v[q] = passing.piece<R>(V[min(from + q, columns - 1)], p);
#pragma unroll
      for (int q = 0; q < Q; ++q) {
        const Index k = from + q;
        if (k >= columns) break;
        const Of a = of(k);
        if (k <= turned) {  // nothing is carried to it
#pragma unroll
          for (int i = 0; i < R; ++i) {
            x.value[i] = T(v[q].value[i]);
            Vy.value[i] += a.y * x.value[i];
            if (k < turned) Vz.value[i] += a.z * x.value[i];
          }
        } else {
          const Of before = of(k - 1);
#pragma unroll
          for (int i = 0; i < R; ++i) {
            const T lower = T(v[q].value[i]);
            Vy.value[i] += a.y * lower;
            v[q].value[i] = B(before.c * x.value[i] + before.s * lower);
            x.value[i] = before.c * lower - before.s * x.value[i];
            Vz.value[i] += before.z * T(v[q].value[i]);
          }
          put(k - 1, v[q]);
        }
      }
    }
    Piece<T, R> left = piece_of<R>(r, n, p);
    if (columns > 0) {
      const Piece<T, R> of_u = piece_of<R>(u, n, p);
      Piece<B, R> upper, last;
      const Of a = of(columns - 1);
#pragma unroll
      for (int i = 0; i < R; ++i) {
        last.value[i] = B(join(Vy.value[i], of_u.value[i]));
        if (turned == columns) continue;
        const T lower = T(last.value[i]);
        upper.value[i] = B(a.c * x.value[i] + a.s * lower);
        last.value[i] = B(a.c * lower - a.s * x.value[i]);
        Vz.value[i] += a.z * T(upper.value[i]);
      }
      if (turned < columns) put(columns - 1, upper);
      put(columns, last);
    }
#pragma unroll
    for (int i = 0; i < R; ++i) {
      left.value[i] = rest(Vz.value[i], left.value[i]);
      if (p * R + unsigned(i) >= n) continue;
      sum[0] += left.value[i] * left.value[i];
    }
    if ((p + 1) * R <= n)
      reinterpret_cast<Piece<T, R>*>(r.data)[p] = left;
    else
      for (int i = 0; i < R && p * R + unsigned(i) < n; ++i) r.data[p * R + unsigned(i)] = left.value[i];
  }
  close_sum<T>(sum, close, work, arrived, post, leave);
}

template <class F>
__global__ void together_kernel(Turn turn, F f) {
  turn.take();
  f(Lanes{});
}

}  // namespace krilu::exec::cuda
