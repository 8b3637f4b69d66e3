// SPDX-License-Identifier: Apache-2.0
// GPUs of one machine that work on one system, a rank each. They write into one another's memory from within kernels,
// so that an iteration stays one graph a GPU: a sum over ranks is one trip, 0.7 us, where a collective call of a
// library takes 18 us and ends the graph.
//
// A word of 8 bytes holds half a double and the number of the message, so that data are their own flag: no fence, and
// no flag beside them. Words stand in two places in turn. Who writes a place anew knows that it has been read: the
// message between came from somebody who had read it. Source of the word: the low-latency protocol of NCCL, as its
// documentation describes it.
//
// Where a GPU does not reach all others, NCCL brings sums and boundaries (nccl.cuh), and where there is no NCCL, or
// ranks share a GPU, the host does.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/withheld.hpp"
#include "krilu/ranks.hpp"
#include "krilu/types.hpp"

namespace krilu::exec {

class Nccl;
class NcclSums;

namespace cuda {

constexpr int most_peers = 8;
constexpr int channels = 64;      // sums at the same time: groups of columns
constexpr int most_values = 17;   // in a sum of a channel: 8 columns of two sums, and the wish to stop
using Word = unsigned long long;  // data in the lower half, the number of the message in the upper

/// To two words, 16 bytes aligned, in one store.
__device__ __forceinline__ void post_value(Word* to, double value, unsigned number) {
  const Word head = Word(number) << 32, low = head | unsigned(__double2loint(value)),
             high = head | unsigned(__double2hiint(value));
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" : : "l"(to), "l"(low), "l"(high) : "memory");
}
/// Seconds that a rank waits for another one before it takes it for lost; tests wait less.
inline double patience = 120;
/// Ranks that share a GPU go through the host, since the hardware does not promise to run the kernels of one beside
/// those of another that wait for it. Tests on a machine with one GPU do not.
inline bool share_gpus = false;
/// How GPUs meet: as well as they can, or, for tests and benchmarks and the same on all ranks, at best so.
enum class Way { best, nccl, host };
inline Way way = Way::best;

struct Waiting {
  const int* given_up = nullptr;  // here, written by others
  unsigned long long most = 0;    // nanoseconds
};
/// Waits for a value. Where a rank has given up it waits no longer, and what it returns is of no use: the host finds
/// out when it meets the others. Ends the kernel with an error after `waiting.most`.
__device__ __forceinline__ double await_value(const Word* from, unsigned number, const Waiting& waiting) {
  constexpr int between = 1 << 10;
  unsigned long long begun = 0;
  for (int looks = 1;; ++looks) {
    Word low, high;
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(from) : "memory");
    if (unsigned(low >> 32) == number && unsigned(high >> 32) == number)
      return __hiloint2double(int(unsigned(high)), int(unsigned(low)));
    if (looks % between == 0) {
      unsigned long long now;
      asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
      if (begun == 0) begun = now;
      if (*static_cast<const volatile int*>(waiting.given_up)) return 0;
      if (now - begun > waiting.most) __trap();
    }
  }
}

/// What a kernel knows of the team; in device memory, so that a GPU that is alone passes nothing but a null pointer.
struct Post {
  int rank = 0, size = 1;
  Word* box[most_peers] = {};  // of each rank, on its GPU: [2][channels][most_peers][2 most_values]
  Waiting waiting;
  const int* wish = nullptr;             // this rank's host wants to stop
  int* told = nullptr;                   // for the host: somebody does
  mutable int agreed = 0;                // the same for kernels
  mutable unsigned sent[channels] = {};  // messages so far

  __device__ __forceinline__ Word* place(int whose, unsigned number, int channel, int from) const {
    return box[whose] + ((std::size_t(number & 1) * channels + channel) * most_peers + from) * 2 * most_values;
  }
};

/// In the first warp of one block: sums[0 .. count-1], in shared memory with room for one more, become those over all
/// ranks, added in their order. Called and not inlined, and with nothing on a stack: a GPU that is alone does not come
/// here, and kernels that hold it are neither longer nor ask for memory of their own.
inline __device__ __noinline__ void sum_over_ranks(const Post* there, int channel, int count, double* sums) {
  constexpr unsigned between_looks = 32;  // at the wish to stop: the host's memory is far
  __shared__ double got[most_peers][most_values];
  const Post& post = *there;
  const int lane = int(threadIdx.x), values = count + 1, rank = post.rank;  // the wish travels along
  const int all = values * post.size;
  const unsigned number = post.sent[channel] + 1;
  if (lane == 0)
    sums[count] = number % between_looks == 0 && post.wish ? double(*static_cast<const volatile int*>(post.wish)) : 0.0;
  __syncwarp();
  for (int i = lane; i < all; i += 32) {
    const int to = i / values, k = i % values;
    if (to != rank) post_value(post.place(to, number, channel, rank) + 2 * k, sums[k], number);
  }
  for (int i = lane; i < all; i += 32) {
    const int from = i / values, k = i % values;
    got[from][k] =
        from == rank ? sums[k] : await_value(post.place(rank, number, channel, from) + 2 * k, number, post.waiting);
  }
  __syncwarp();
  if (lane <= count) {
    double total = 0;
    for (int r = 0; r < post.size; ++r) total += got[r][lane];
    sums[lane] = total;
    if (lane == count && total != 0) {
      post.agreed = 1;
      *static_cast<volatile int*>(post.told) = 1;
    }
  }
  __syncwarp();
  if (lane == 0) post.sent[channel] = number;
}

/// The same of what thread 0 holds.
template <class T, int N>
__device__ __forceinline__ void share(const Post* there, int channel, T (&sum)[N]) {
  static_assert(N < most_values);
  __shared__ double sums[N + 1];
  if (threadIdx.x == 0)
#pragma unroll
    for (int k = 0; k < N; ++k) sums[k] = double(sum[k]);
  __syncwarp();
  sum_over_ranks(there, channel, N, sums);
#pragma unroll
  for (int k = 0; k < N; ++k) sum[k] = T(sums[k]);
}

/// The same of what thread k holds, k < N.
template <int N, class T>
__device__ __forceinline__ void share_many(const Post* there, int channel, T& sum) {
  static_assert(N < most_values);
  __shared__ double sums[N + 1];
  if (threadIdx.x < N) sums[threadIdx.x] = double(sum);
  __syncwarp();
  sum_over_ranks(there, channel, N, sums);
  if (threadIdx.x < N) sum = T(sums[threadIdx.x]);
}

/// What kernels of a GPU know of wishes to stop where sums are gathered.
struct Wishes {
  const int* mine = nullptr;  // this rank's host wants to stop
  int* told = nullptr;        // for the host: somebody does
  int agreed = 0;             // the same for kernels
  unsigned sums = 0;          // so far
};
/// Sums of all ranks side by side, as NCCL gathers them; who reads them adds them, in the order of ranks. Those that
/// went through the host are added already.
struct Gathered {
  const double* sums = nullptr;  // rank 0's; its wish to stop stands before them
  int ranks = 1;
  std::size_t stride = 0;    // from rank to rank
  Wishes* wishes = nullptr;  // null: the host sees to them
  double* wish = nullptr;    // this rank's, of the next sum

  __device__ __forceinline__ double operator()(std::ptrdiff_t k) const {
    double total = sums[k];
    for (int r = 1; r < ranks; ++r) total += sums[std::ptrdiff_t(std::size_t(r) * stride) + k];
    return total;
  }
  /// By one thread, before what asks for the wishes.
  __device__ __forceinline__ void see_to_wishes() const {
    if (!wishes) return;
    if ((*this)(-1) != 0) {
      wishes->agreed = 1;
      *static_cast<volatile int*>(wishes->told) = 1;
    }
    const unsigned number = ++wishes->sums;  // the host's memory is far: one look in four
    *wish = number % 4 == 0 && wishes->mine ? double(*static_cast<const volatile int*>(wishes->mine)) : 0.0;
  }
};

}  // namespace cuda

/// Memory of one size on the GPUs of all ranks, which every rank may write: by peer access within a process, by handles
/// between the processes of a machine. It begins as zeros.
class PeerMemory {
 public:
  /// Collective. What is not possible on one rank is so on none. Throws nothing that the others would not.
  PeerMemory(int device, Ranks& ranks, std::size_t bytes);
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;
  bool possible() const { return possible_; }
  void* of(int rank) const { return of_[std::size_t(rank)]; }

 private:
  std::vector<void*> of_, opened_;
  void* own_ = nullptr;
  bool possible_ = false;
};

/// A GPU's place in a team.
class DeviceTeam {
 public:
  DeviceTeam(std::shared_ptr<Ranks> ranks, std::int64_t rows, int device);
  /// Gives up where an exception passes through.
  ~DeviceTeam();
  /// The other ranks' kernels wait for this one no longer.
  void give_up();

  /// Collective: opens the others' memory, or, where that is not possible, NCCL. Without it, and where neither is, sums
  /// go through the host.
  void connect(cudaStream_t stream);
  bool connected() const { return post_.size > 1; }
  void disconnect();
  /// Null where the ranks do not meet by it, and why, where it was tried.
  std::shared_ptr<Nccl> nccl() const;
  const std::string& why_no_nccl() const { return why_no_nccl_; }
  const cuda::Waiting& waiting() const { return post_.waiting; }
  /// For kernels: in this GPU's memory.
  const cuda::Post* post() const { return post_there_; }
  Ranks& ranks() const { return *ranks_; }
  std::size_t rows() const { return std::size_t(rows_); }
  std::size_t even_share() const { return (rows() + std::size_t(ranks_->size()) - 1) / std::size_t(ranks_->size()); }
  /// All ranks have come here. What one of them asks of the driver may wait for kernels that wait for another rank.
  void meet() const;
  /// values over all ranks, by the host.
  void sum(double* values, std::size_t count);
  int* watch(int* mine, cudaStream_t stream);
  bool wished() const { return *told_ != 0; }
  Withheld withheld;  // of this rank, where sums go through the host
  /// Pinned memory for sums that go through the host.
  double* staged(std::size_t values);
  /// Where a kernel that does not add up over ranks itself leaves this rank's sums: for NCCL, or staged.
  double* own_sums(std::size_t count, cudaStream_t stream);
  /// Those of all, gathered by NCCL in the order of the stream.
  cuda::Gathered gathered(std::size_t count, cudaStream_t stream) const;

 private:
  bool connect_peers();

  std::shared_ptr<Ranks> ranks_;
  std::int64_t rows_;
  int device_;
  int exceptions_;
  std::unique_ptr<PeerMemory> boxes_;
  cuda::Post post_;
  cuda::Post* post_there_ = nullptr;
  const int** wish_there_ = nullptr;  // pinned: what is copied to the one there
  int* told_ = nullptr;               // pinned
  std::vector<double> buffer_;
  double* staged_ = nullptr;
  std::size_t staged_size_ = 0;
  bool tried_ = false;
  std::unique_ptr<NcclSums> gathered_;  // null: not by NCCL
  std::string why_no_nccl_;
};

}  // namespace krilu::exec
