// SPDX-License-Identifier: Apache-2.0
// Values that are their own flags: a cell that nobody has written yet holds a NaN with a payload that no arithmetic
// produces, and a reader looks again until it holds something else. One word a hop, no fences, no flags beside the
// data. Bits are compared, so that a computed NaN passes; a result that happens to be the awaited pattern is stored as
// another NaN.
#pragma once

#include "exec/ask.cuh"
#include "exec/cuda.cuh"

namespace krilu::triangular {

/// How often a cell is looked at before the kernel gives up with an error in place of a hang: minutes in device memory,
/// seconds in shared memory, where sweeps take milliseconds.
constexpr int most_looks = 1 << 28;

template <class T>
struct Awaited;

template <>
struct Awaited<double> {
  using Bits = unsigned long long;
  static constexpr Bits bits = 0x7ff800006b72696cull;

  static __device__ __forceinline__ double pattern() { return __longlong_as_double(static_cast<long long>(bits)); }
  /// A NaN that is not the awaited one.
  static __device__ __forceinline__ double other() { return __longlong_as_double(0x7ff8000000000000ll); }
  static __device__ __forceinline__ bool is(double v) { return static_cast<Bits>(__double_as_longlong(v)) == bits; }
  /// Read and written past the first-level cache, where other multiprocessors see it.
  static __device__ __forceinline__ double load(const double* p) { return exec::ask_relaxed(p, true); }
  static __device__ __forceinline__ void store(double* p, double v) {
    asm volatile("st.relaxed.gpu.global.f64 [%0], %1;" : : "l"(p), "d"(v) : "memory");
  }
  /// The same in shared memory, by the address there.
  static __device__ __forceinline__ double load_shared(unsigned p) {
    double v;
    asm volatile("ld.volatile.shared.f64 %0, [%1];" : "=d"(v) : "r"(p) : "memory");
    return v;
  }
  static __device__ __forceinline__ void store_shared(unsigned p, double v) {
    asm volatile("st.volatile.shared.f64 [%0], %1;" : : "r"(p), "d"(v) : "memory");
  }
};

template <>
struct Awaited<float> {
  static constexpr unsigned bits = 0x7fc06b72u;

  static __device__ __forceinline__ float pattern() { return __uint_as_float(bits); }
  static __device__ __forceinline__ float other() { return __uint_as_float(0x7fc00000u); }
  static __device__ __forceinline__ bool is(float v) { return __float_as_uint(v) == bits; }
  static __device__ __forceinline__ float load(const float* p) { return exec::ask_relaxed(p, true); }
  static __device__ __forceinline__ void store(float* p, float v) {
    asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" : : "l"(p), "f"(v) : "memory");
  }
  static __device__ __forceinline__ float load_shared(unsigned p) {
    float v;
    asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(v) : "r"(p) : "memory");
    return v;
  }
  static __device__ __forceinline__ void store_shared(unsigned p, float v) {
    asm volatile("st.volatile.shared.f32 [%0], %1;" : : "r"(p), "f"(v) : "memory");
  }
};

/// v as a result may be stored.
template <class T>
__device__ __forceinline__ T told(T v) {
  return Awaited<T>::is(v) ? Awaited<T>::other() : v;
}

/// f(0), f(1), .. up to f(N - 1): unrolled, and by fours of which none begins at `width` or behind it.
template <int N, class F>
__device__ __forceinline__ void for_entries(int width, const F& f) {
#pragma unroll
  for (int j = 0; j < N; ++j) {
    if (j > 0 && j % 4 == 0 && j >= width) break;
    f(j);
  }
}

/// Nothing to wait for: whatever a row reads was written by an earlier launch or before a barrier. As in all that
/// follow, out[j] is x_c of column c[j], and 0 where that is -1.
template <class T>
struct Ready {
  template <int N>
  __device__ __forceinline__ void fetch(const T* x, const Index (&c)[N], int width, T (&out)[N]) const {
    for_entries<N>(width, [&](int j) { out[j] = exec::ask_past_l1(x + c[j], c[j] >= 0); });
  }
  __device__ __forceinline__ void put(T* x, Index row, T v) const { __stcg(x + row, v); }
};

/// Looks at cells until none of `out` is the awaited pattern; a look asks for all that are missing at once, by
/// load(j, is it missing, what to give where it is not). The warp leaves as one: lanes that left each at its time would
/// go on apart, and whatever the warp does together next would be done as often as there are parts of it, which took
/// longer than the waiting.
template <int N, class T, class Load>
__device__ __forceinline__ void await_cells(int width, T (&out)[N], const Load& load) {
  for (int looks = 0;; ++looks) {
    bool missing = false;
    for_entries<N>(width, [&](int j) { missing |= Awaited<T>::is(out[j]); });
    if (!__any_sync(0xffffffffu, missing)) return;
    if (looks > most_looks) __trap();
    for_entries<N>(width, [&](int j) { out[j] = load(j, Awaited<T>::is(out[j]), out[j]); });
  }
}

/// Waits for cells in device memory.
template <class T>
struct Waiting {
  template <int N>
  __device__ __forceinline__ void fetch(const T* x, const Index (&c)[N], int width, T (&out)[N]) const {
    const auto load = [&](int j, bool wanted, T otherwise) { return exec::ask_relaxed(x + c[j], wanted, otherwise); };
    for_entries<N>(width, [&](int j) { out[j] = load(j, c[j] >= 0, T(0)); });
    await_cells(width, out, load);
  }
  __device__ __forceinline__ void put(T* x, Index row, T v) const { Awaited<T>::store(x + row, told(v)); }
};

/// Waits for cells of the own tile in shared memory, and for others in device memory. The others first: as long as one
/// of them is looked at, each look takes as long as a trip to the second-level cache.
template <class T>
struct WaitingInTile {
  unsigned tile;  // where cells of rows first .. last-1 stand in shared memory
  Index first, last;

  __device__ __forceinline__ unsigned cell(Index row) const {
    return tile + unsigned(row - first) * unsigned(sizeof(T));
  }
  template <int N>
  __device__ __forceinline__ void fetch(const T* x, const Index (&c)[N], int width, T (&out)[N]) const {
    const auto inside = [&](int j) { return unsigned(c[j] - first) < unsigned(last - first); };
    const auto load = [&](int j, bool wanted, T otherwise) { return exec::ask_relaxed(x + c[j], wanted, otherwise); };
    const auto load_here = [&](int j, bool wanted, T otherwise) {
      return wanted ? Awaited<T>::load_shared(cell(c[j])) : otherwise;
    };
    for_entries<N>(width, [&](int j) { out[j] = load(j, c[j] >= 0 && !inside(j), T(0)); });
    await_cells(width, out, load);
    for_entries<N>(width, [&](int j) { out[j] = load_here(j, inside(j), out[j]); });
    await_cells(width, out, load_here);
  }
  __device__ __forceinline__ void put(T* x, Index row, T v) const {
    v = told(v);
    Awaited<T>::store_shared(cell(row), v);
    Awaited<T>::store(x + row, v);
  }
};

}  // namespace krilu::triangular
