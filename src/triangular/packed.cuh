// SPDX-License-Identifier: Apache-2.0
// Both sweeps over the factors of independent parts on a GPU (packed.hpp), with the restriction before and the
// prolongation after, in one launch. A thread block solves a part from start to end, x in shared memory. The part's
// stream runs through a ring in shared memory, brought by bulk copies as far ahead as the ring is long, so that a step
// waits for no load: it costs a barrier and two accesses to shared memory. As many parts as fit a multiprocessor hide
// one another's barriers. What counts beside is how few instructions an update takes: no warp has others to hide
// behind. The stream leaves the second-level cache first, where vectors have their use of it. In single precision x
// takes half the space, and values that were rounded (packed.hpp) are made floats while x is on its way from shared
// memory.
#pragma once

#include "exec/ask.cuh"
#include "exec/cuda.cuh"
#include "sparse/rounding.cuh"
#include "triangular/packed.hpp"
#include "triangular/waiting.cuh"

namespace krilu::triangular {

/// T: the type of x.
template <class T>
struct PackedView {
  const Index *part_row, *part_step;
  const std::uint32_t* part_unit;
  const PackedStep* steps;
  const uint4* stream;
  const Index* map;  // of each row: its place in r and z, or ~place where z is another part's to write
  const T* scale;    // of each row: its reciprocal pivot
  Index most_rows;
  std::uint32_t ring_units;  // a power of two
};

/// The ring: chunks of the stream, each with a barrier that its copy completes.
class PackedRing {
 public:
  static constexpr unsigned chunks = 8;

  __device__ PackedRing(uint4* ring, unsigned chunk_log2, unsigned long long* barrier, const uint4* stream,
                        unsigned length)
      : ring_(ring), log2_(chunk_log2), barrier_(barrier), stream_(stream), length_(length) {}

  /// By one thread, before a barrier of all.
  __device__ void open() {
#if __CUDA_ARCH__ >= 900
    for (unsigned c = 0; c < chunks; ++c)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(barrier_ + c)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
  }
  /// By the feeding warp: asks for what fits the ring, now that nobody reads what stands before unit `done`.
  __device__ __forceinline__ void feed(unsigned done) {
    const unsigned free_up_to = (done >> log2_) + chunks;
    for (; asked_ < free_up_to && asked_ << log2_ < length_; ++asked_) {
      const unsigned units = min(1u << log2_, length_ - (asked_ << log2_));
      uint4* const to = ring_ + ((asked_ % chunks) << log2_);
      const uint4* const from = stream_ + (std::size_t(asked_) << log2_);
#if __CUDA_ARCH__ >= 900
      if (threadIdx.x % 32 == 0) {
        const unsigned full = address(barrier_ + asked_ % chunks);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full), "r"(16 * units) : "memory");
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], "
            "%4;" ::"r"(address(to)),
            "l"(__cvta_generic_to_global(from)), "r"(16 * units), "r"(full), "l"(policy_)
            : "memory");
      }
#else
      for (unsigned u = threadIdx.x % 32; u < units; u += 32) to[u] = __ldcs(from + u);
      __threadfence_block();
      __syncwarp();
      if (threadIdx.x % 32 == 0) *static_cast<volatile unsigned long long*>(barrier_ + asked_ % chunks) = asked_ + 1;
#endif
    }
  }
  /// Returns once the stream is there up to unit `end`.
  __device__ __forceinline__ void await(unsigned end) {
    for (; there_ << log2_ < end; ++there_) {
      for (int looks = 0; !is_there(); ++looks)
        if (looks > most_looks) __trap();
#if __CUDA_ARCH__ < 900
      __threadfence_block();
#endif
    }
  }

 private:
  __device__ __forceinline__ bool is_there() const {
#if __CUDA_ARCH__ >= 900
    unsigned done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(address(barrier_ + there_ % chunks)), "r"(there_ / chunks & 1)
                 : "memory");
    return done;
#else
    return *static_cast<volatile unsigned long long*>(barrier_ + there_ % chunks) > there_;
#endif
  }
  static __device__ __forceinline__ unsigned address(const void* p) { return unsigned(__cvta_generic_to_shared(p)); }

  uint4* ring_;
  unsigned log2_;
  unsigned long long* barrier_;
  const uint4* stream_;
  unsigned length_;
  unsigned long long policy_ = exec::first_to_leave();
  unsigned asked_ = 0, there_ = 0;  // chunks
};

/// An update on its way: what stands in the stream is fetched before the barrier that x waits for. S: the type of
/// values there.
template <class S, unsigned width>
struct PackedUpdate {
  static constexpr unsigned column_words = packed_column_words(width),
                            value_words = packed_value_words(width, sizeof(S));
  bool is;
  std::uint64_t column[column_words], value[value_words];

  __device__ __forceinline__ void fetch(const char* ring, const uint4& step, unsigned t) {
    is = t < step.y;
    if (!is) return;
    const char* const word = ring + step.x + t * 8;
    const unsigned stride = step.y * 8;
#pragma unroll
    for (unsigned k = 0; k < column_words; ++k) column[k] = *reinterpret_cast<const std::uint64_t*>(word + k * stride);
#pragma unroll
    for (unsigned k = 0; k < value_words; ++k)
      value[k] = *reinterpret_cast<const std::uint64_t*>(word + (column_words + k) * stride);
  }
  __device__ __forceinline__ S entry(unsigned k) const {
    constexpr unsigned in_a_word = 8 / sizeof(S), bits = 8 * sizeof(S);
    return std::bit_cast<S>(PackedBits<S>(value[k / in_a_word] >> k % in_a_word * bits));
  }
  /// Address in x of column k, or of the row itself for k = width.
  __device__ __forceinline__ unsigned place(unsigned k) const {
    const auto half = unsigned(column[k / 4] >> k % 4 / 2 * 32);
    return k % 2 ? half >> 16 : half & 0xffffu;
  }
};

/// `threads` take a row's update each, the warp behind them feeds the ring.
template <class T, class S, unsigned width, unsigned threads>
__global__ void __launch_bounds__(threads + 32) packed_sweeps(PackedView<T> v, const T* r, T* z) {
  constexpr Index in_a_unit = 16 / sizeof(T);
  extern __shared__ uint4 packed_shared[];
  __shared__ unsigned long long barrier[PackedRing::chunks];
  T* const x = reinterpret_cast<T*>(packed_shared + v.ring_units);
  uint4* const step = packed_shared + v.ring_units + (v.most_rows + in_a_unit - 1) / in_a_unit;
  const Index part = Index(blockIdx.x);
  const Index first_row = v.part_row[part], rows = v.part_row[part + 1] - first_row;
  const Index first_step = v.part_step[part], steps = v.part_step[part + 1] - first_step;
  const unsigned first_unit = v.part_unit[part];
  PackedRing stream(packed_shared, unsigned(__ffs(int(v.ring_units / PackedRing::chunks))) - 1, barrier,
                    v.stream + first_unit, v.part_unit[part + 1] - first_unit);
  unsigned t;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));  // kept, and not asked for again and again
  if (t < PackedRing::chunks) barrier[t] = 0;
  __syncthreads();
  if (t == threads) stream.open();
  for (Index k = Index(t); k < steps + 2; k += Index(threads + 32))
    step[k] = k < steps ? __ldg(reinterpret_cast<const uint4*>(v.steps + first_step + k)) : make_uint4(0, 0, 0, 0);
  __syncthreads();
  if (t >= threads) {
    stream.feed(0);
    __syncthreads();
    for (Index q = 0; q < steps; ++q) {
      __syncthreads();
      stream.feed(step[q].w);
    }
    return;
  }

  // Many rows at a time: each is two trips to memory, one after the other.
  constexpr int at_once = 8;
  const auto for_rows = [&](const auto& f) {
    for (Index first = Index(t); first < rows; first += Index(threads * at_once)) {
      Index at[at_once];
#pragma unroll
      for (int j = 0; j < at_once; ++j) {
        const Index k = first + Index(j * threads);
        at[j] = k < rows ? __ldg(v.map + first_row + k) : 0;
      }
      f(first, at);
    }
  };
  for_rows([&](Index first, const auto& at) {
    T value[at_once];
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      const Index k = first + Index(j * threads);
      value[j] = k < rows ? r[at[j] < 0 ? ~at[j] : at[j]] * __ldcs(v.scale + first_row + k) : T(0);
    }
#pragma unroll
    for (int j = 0; j < at_once; ++j)
      if (first + Index(j * threads) < rows) x[first + Index(j * threads)] = value[j];
  });
  __syncthreads();

  const char* const ring = reinterpret_cast<const char*>(packed_shared);
  PackedUpdate<S, width> even, odd;
  uint4 head = step[0];
  const auto fetch = [&](PackedUpdate<S, width>& u, Index q) {
    const uint4 own = head;
    head = step[q + 1];
    stream.await(own.z);
    u.fetch(ring, own, t);
  };
  const auto turn = [&](PackedUpdate<S, width>& u, PackedUpdate<S, width>& next, Index q) {
    __syncthreads();  // x of all steps before is there
    T seen[width], own = 0;
    if (u.is) {
#pragma unroll
      for (unsigned k = 0; k < width; ++k) seen[k] = x[u.place(k)];
      own = x[u.place(width)];
    }
    fetch(next, q + 1);
    if (u.is) {
#pragma unroll
      for (unsigned k = 0; k < width; ++k) own -= T(u.entry(k)) * seen[k];
      x[u.place(width)] = own;
    }
  };
  fetch(even, 0);
  for (Index q = 0; q < steps; q += 2) {
    turn(even, odd, q);
    if (q + 1 < steps) turn(odd, even, q + 1);
  }
  asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory");  // the feeding warp is gone
  for_rows([&](Index first, const auto& at) {
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      const Index k = first + Index(j * threads);
      if (k < rows && at[j] >= 0) z[at[j]] = x[k];
    }
  });
}

/// Reciprocal pivots of R D C, from those of D. map: as above.
template <class T>
__global__ void round_pivots(Index rows, const Index* map, const double* scale, sparse::DeviceScales scales, T* out,
                             std::int64_t* lost) {
  const Index i = Index(blockIdx.x * blockDim.x + threadIdx.x);
  unsigned mine = 0;
  if (i < rows) {
    const Index at = map[i] < 0 ? ~map[i] : map[i];
    out[i] = sparse::rounded_counting<T>(scale[i] / scales.r(at) / scales.c(at), mine);
  }
  sparse::count_lost(lost, mine);
}

/// What sweeps over the same factors share on a device, whatever their values are stored in.
struct PackedParts {
  PackedShape shape;
  exec::Array<Index> part_row, part_step;  // parts + 1
  exec::Array<Index> map;                  // of each local row its place in r and z, or ~place where z is another's
  Index parts() const { return Index(part_row.size()) - 1; }
  std::size_t bytes() const { return part_row.bytes() + part_step.bytes() + map.bytes(); }
};

/// Factors whose values are stored as S, and what sweeps over them in T.
template <class T, class S>
struct PackedFactors {
  std::shared_ptr<const PackedParts> parts;
  std::uint32_t ring_units = 0;
  exec::Array<std::uint32_t> part_unit;
  exec::Array<PackedStep> steps;
  exec::Array<std::uint64_t> words;
  exec::Array<T> scale;

  /// Asks for the shared memory that sweeps need. Throws krilu::Error where there is no kernel of this shape.
  void prepare() const;
  void sweep(const exec::Cuda& space, const T* r, T* z) const;
  /// Without what is shared.
  std::size_t bytes() const { return part_unit.bytes() + steps.bytes() + words.bytes() + scale.bytes(); }
};

/// The packed factors on a device.
class PackedSweeps {
 public:
  /// False where nothing was packed, where a part is too large for this GPU, or where fewer than 16 parts have more
  /// than 1,024 rows together.
  static bool suits(const Packed& packed);
  /// map: of each local row its place in r and z, or ~place where z is another part's to write.
  PackedSweeps(const exec::Cuda& space, const Packed& packed, const std::vector<Index>& map);
  /// factors: L and U scaled as packed.hpp says, on the device and in the CSR that was packed; scale: the reciprocal
  /// pivots of the local rows.
  void take(const double* factors, const double* scale);
  void apply(const double* r, double* z) const { factors_.sweep(space_, r, z); }
  std::size_t bytes() const { return factors_.parts->bytes() + factors_.bytes() + from_.bytes(); }
  const exec::Cuda& space() const { return space_; }
  const PackedFactors<double, double>& factors() const { return factors_; }

 private:
  exec::Cuda space_;
  PackedFactors<double, double> factors_;
  exec::Array<Offset> from_;
};

/// What PackedSweeps took, scaled and rounded: sweeps of M_s = R M C in single precision, where D_s = R D C,
/// L_s = C^-1 L C and U_s = C^-1 U C. R and C are those of the places in r and z, so that overlap has the scales of the
/// rows that it copies.
template <class S>
class RoundedPackedSweeps {
 public:
  RoundedPackedSweeps(const PackedSweeps& of, const sparse::Rounding& rounding);
  void apply(const float* r, float* z) const { factors_.sweep(space_, r, z); }
  /// Without what it shares with `of`, which may go before it does.
  std::size_t bytes() const { return factors_.bytes(); }

 private:
  exec::Cuda space_;
  PackedFactors<float, S> factors_;
};

}  // namespace krilu::triangular
