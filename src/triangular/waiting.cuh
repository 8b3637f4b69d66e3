// SPDX-License-Identifier: Apache-2.0
// Values that are their own flags: a cell that nobody has written yet holds a NaN with a payload that no arithmetic
// produces, and a reader looks again until it holds something else. One word a hop, no fences, no flags beside the
// data. Bits are compared, so that a computed NaN passes; a result that happens to be the awaited pattern is stored as
// another NaN.
#pragma once

#include "exec/cuda.cuh"

namespace krilu::triangular {

/// How often a cell is looked at before the kernel gives up with an error in place of a hang: minutes.
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
  static __device__ __forceinline__ double load(const double* p) {
    double v;
    asm volatile("ld.relaxed.gpu.global.f64 %0, [%1];" : "=d"(v) : "l"(p) : "memory");
    return v;
  }
  static __device__ __forceinline__ void store(double* p, double v) {
    if (is(v)) v = other();
    asm volatile("st.relaxed.gpu.global.f64 [%0], %1;" : : "l"(p), "d"(v) : "memory");
  }
};

template <>
struct Awaited<float> {
  static constexpr unsigned bits = 0x7fc06b72u;

  static __device__ __forceinline__ float pattern() { return __uint_as_float(bits); }
  static __device__ __forceinline__ float other() { return __uint_as_float(0x7fc00000u); }
  static __device__ __forceinline__ bool is(float v) { return __float_as_uint(v) == bits; }
  static __device__ __forceinline__ float load(const float* p) {
    float v;
    asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
    return v;
  }
  static __device__ __forceinline__ void store(float* p, float v) {
    if (is(v)) v = other();
    asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" : : "l"(p), "f"(v) : "memory");
  }
};

/// Nothing to wait for: whatever a row reads was written by an earlier launch or before a barrier.
template <class T>
struct Ready {
  template <int N>
  __device__ __forceinline__ void fetch(const T* x, const Index (&c)[N], T (&out)[N]) const {
#pragma unroll
    for (int j = 0; j < N; ++j)
      if (c[j] >= 0) out[j] = __ldcg(x + c[j]);
  }
  __device__ __forceinline__ void put(T* x, Index row, T v) const { __stcg(x + row, v); }
};

/// Looks at cells until all that `here` picks are there; a look asks for all that are missing at once.
template <int N, class T, class Here, class Load>
__device__ __forceinline__ void await_cells(T (&out)[N], const Here& here, const Load& load) {
  bool missing[N];
#pragma unroll
  for (int j = 0; j < N; ++j) missing[j] = here(j);
  for (int looks = 0;; ++looks) {
    bool ready = true;
#pragma unroll
    for (int j = 0; j < N; ++j)
      if (missing[j]) out[j] = load(j);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      missing[j] = missing[j] && Awaited<T>::is(out[j]);
      ready &= !missing[j];
    }
    if (ready) return;
    if (looks > most_looks) __trap();
  }
}

/// Waits for cells in device memory.
template <class T>
struct Waiting {
  template <int N>
  __device__ __forceinline__ void fetch(const T* x, const Index (&c)[N], T (&out)[N]) const {
    await_cells(
        out, [&](int j) { return c[j] >= 0; }, [&](int j) { return Awaited<T>::load(x + c[j]); });
  }
  __device__ __forceinline__ void put(T* x, Index row, T v) const { Awaited<T>::store(x + row, v); }
};

/// Waits for cells of the own tile in shared memory, and for others in device memory. The others first: as long as one
/// of them is looked at, each look takes as long as a trip to the second-level cache.
template <class T>
struct WaitingInTile {
  volatile T* tile;  // cells of rows first .. last-1
  Index first, last;

  template <int N>
  __device__ __forceinline__ void fetch(const T* x, const Index (&c)[N], T (&out)[N]) const {
    const auto inside = [&](int j) { return unsigned(c[j] - first) < unsigned(last - first); };
    await_cells(
        out, [&](int j) { return c[j] >= 0 && !inside(j); }, [&](int j) { return Awaited<T>::load(x + c[j]); });
    await_cells(out, inside, [&](int j) { return tile[c[j] - first]; });
  }
  __device__ __forceinline__ void put(T* x, Index row, T v) const {
    if (Awaited<T>::is(v)) v = Awaited<T>::other();
    tile[row - first] = v;
    Awaited<T>::store(x + row, v);
  }
};

}  // namespace krilu::triangular
