// SPDX-License-Identifier: Apache-2.0
// Loops over the faces of a mesh on a GPU: the interface of face_loops.hpp, to be compiled by nvcc with
// --extended-lambda. Functions are opened by KRILU_FN and capture views.
//
// Strategy slices, the fastest as a rule: a lane goes through the faces of its cell, several at a time, and addresses
// them in 16 bits; each face is computed twice.
//
// Strategies tiles and diagonal: a thread block sums in a tile. States of its cells and sums stand in shared memory,
// and lane i of a warp works on the faces of cell i, slot by slot. Within a slot no two faces have the same other cell,
// so that nothing races; the lane's own sum is a register. A face costs two bytes of addressing beside its fields.
// Faces that tiles share are computed by both (strategy tiles), or beforehand into accumulators (strategy diagonal:
// pairs of tiles, class after class; what is too sparse for that on a stream of its own at the same time).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "krilu/face_plan.hpp"
#include "krilu/mesh.hpp"
#include "krilu/view.hpp"

namespace krilu {

namespace exec {
class Cuda;
}
namespace mesh {
struct PlanData;
}

namespace detail {

constexpr int tile_cells_a_thread = 4;
// Of slices: threads of a block, blocks that are to fit a multiprocessor, faces of a cell at once.
constexpr int slice_threads = 256, slice_blocks = 6, slots_at_once = FacePlan::first_slots;
constexpr int flat_threads = 256;  // of a block in kernels without tiles
constexpr int pair_threads = 64;
constexpr std::size_t staged_state = 16;  // bytes: larger states are read where they stand, each time

template <class V>
__device__ void add_atomically(V& value, const V& add) {
  static_assert(sizeof(V) % sizeof(double) == 0, "sums are made of doubles");
  for (std::size_t k = 0; k < sizeof(V) / sizeof(double); ++k)
    atomicAdd(reinterpret_cast<double*>(&value) + k, reinterpret_cast<const double*>(&add)[k]);
}

/// f(i) for i < n.
template <class F>
__global__ void __launch_bounds__(flat_threads) flat_kernel(Index n, F f) {
  const std::size_t i = std::size_t(blockIdx.x) * flat_threads + threadIdx.x;
  if (i < std::size_t(n)) f(static_cast<Index>(i));
}

template <class State, class Sum, class Read, class FaceFunction>
__device__ Sum face_of_row(const FacePlan::Cut& e, Index c, const State& own, Read& read, FaceFunction& face) {
  const State other = read(e.other);
  if (e.face >= 0) return face(Face{e.face, c, e.other}, own, other).owner;
  return face(Face{~e.face, e.other, c}, other, own).neighbour;
}

/// done(row, cell, sum over the row's faces), a thread a row; long rows are left out.
template <class State, class Sum, class Read, class FaceFunction, class Done>
__global__ void __launch_bounds__(flat_threads)
    row_kernel(FacePlan p, Index longest, Read read, FaceFunction face, Done done) {
  const Index row = static_cast<Index>(blockIdx.x * flat_threads + threadIdx.x);
  if (row >= p.rows) return;
  const Index begin = p.row_entry[row], end = p.row_entry[row + 1];
  if (end - begin >= longest) return;
  const Index c = p.row_cell ? p.row_cell[row] : row;
  const State own = read(c);
  Sum sum{};
  for (Index k = begin; k < end; ++k) sum += face_of_row<State, Sum>(p.entry[k], c, own, read, face);
  done(row, c, own, sum);
}

/// The same for long rows, a block a row; added up in an order that does not change.
template <class State, class Sum, class Read, class FaceFunction, class Done>
__global__ void __launch_bounds__(flat_threads) long_row_kernel(FacePlan p, Read read, FaceFunction face, Done done) {
  __shared__ alignas(16) unsigned char memory[flat_threads * sizeof(Sum)];
  Sum* const sums = reinterpret_cast<Sum*>(memory);
  const Index row = p.long_row[blockIdx.x];
  const Index c = p.row_cell ? p.row_cell[row] : row;
  const State own = read(c);
  Sum sum{};
  for (Index k = p.row_entry[row] + static_cast<Index>(threadIdx.x); k < p.row_entry[row + 1]; k += flat_threads)
    sum += face_of_row<State, Sum>(p.entry[k], c, own, read, face);
  sums[threadIdx.x] = sum;
  for (unsigned half = flat_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) done(row, c, own, sums[0]);
}

/// Pairs of tiles that share none with each other, a block a pair; within a slot no two faces share a cell.
template <class State, class Sum, class Read, class FaceFunction>
__global__ void __launch_bounds__(pair_threads)
    pair_kernel(FacePlan p, Index first, Read read, FaceFunction face, Sum* sums) {
  const Index pair = first + static_cast<Index>(blockIdx.x);
  for (Index s = p.pair_slot[pair]; s < p.pair_slot[pair + 1]; ++s) {
    for (Index f = p.slot_face[s] + static_cast<Index>(threadIdx.x); f < p.slot_face[s + 1]; f += pair_threads) {
      const Index k = f - p.loose, o = p.owner[k], q = p.neighbour[k];
      const Both<Sum> both = face(Face{f, o, q}, State(read(o)), State(read(q)));
      sums[p.pair_cells[k].owner] += both.owner;
      sums[p.pair_cells[k].neighbour] += both.neighbour;
    }
    __syncthreads();
  }
}

/// A tile a block: sums of its cells. `shared_sum`, `rest_sum`: accumulators of strategy diagonal, and of the rest.
template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
__global__ void __launch_bounds__(1024) tile_kernel(FacePlan p, Read read, FaceFunction face, CellFunction cell,
                                                    const Sum* shared_sum, const Sum* rest_sum) {
  constexpr int K = tile_cells_a_thread;
  constexpr bool staged = sizeof(State) <= staged_state;
  extern __shared__ __align__(16) unsigned char memory[];
  Sum* const sums = reinterpret_cast<Sum*>(memory);
  State* const states = reinterpret_cast<State*>(sums + p.most_cells);
  const Index t = static_cast<Index>(blockIdx.x), tid = static_cast<Index>(threadIdx.x),
              threads = static_cast<Index>(blockDim.x), warps = threads / 32, lane = tid % 32;
  const Index first = p.tile_cell[t], n = p.tile_cell[t + 1] - first;
  const auto state = [&](Index i) -> State {
    if constexpr (staged)
      return states[i];
    else
      return read(first + i);
  };
#pragma unroll
  for (int k = 0; k < K; ++k)
    if (const Index i = tid + k * threads; i < n) {
      if constexpr (staged) states[i] = read(first + i);
      sums[i] = Sum{};
    }
  __syncthreads();

  if (p.cut)
    for (Index r = p.cut_round[t]; r < p.cut_round[t + 1]; ++r) {
      for (Index e = p.round_entry[r] + tid; e < p.round_entry[r + 1]; e += threads) {
        const Index i = p.cut_cell[e];
        sums[i] += face_of_row<State, Sum>(p.cut[e], first + i, state(i), read, face);
      }
      __syncthreads();
    }

  const FacePlan::Slots slots = p.slots[t];
  Sum own[K];
  Index next[K];  // face of the group of lane's k-th cell
#pragma unroll
  for (int k = 0; k < K; ++k) {
    own[k] = Sum{};
    next[k] = tid - lane + k * threads < n ? p.group_face[slots.first_group + tid / 32 + k * warps] : 0;
  }
  for (int s = 0; s < slots.slots; ++s) {
    const bool turned = s >= slots.turned;
    Index other[K];
    Sum beyond[K];
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const Index i = tid + k * threads;
      other[k] = -1;
      if (i - lane >= n) continue;
      const std::uint32_t mask = p.mask[slots.first_mask + (tid / 32 + k * warps) * slots.slots + s];
      if (mask >> lane & 1) {
        const Index f = next[k] + __popc(mask & ((1u << lane) - 1));
        const Index j = p.other[f];
        other[k] = j;
        if (!turned) {
          const Both<Sum> both = face(Face{f, first + i, first + j}, state(i), state(j));
          own[k] += both.owner;
          beyond[k] = both.neighbour;
        } else {
          const Both<Sum> both = face(Face{f, first + j, first + i}, state(j), state(i));
          own[k] += both.neighbour;
          beyond[k] = both.owner;
        }
      }
      next[k] += __popc(mask);
    }
#pragma unroll
    for (int k = 0; k < K; ++k)
      if (other[k] >= 0) sums[other[k]] += beyond[k];
    __syncthreads();
  }

  if (p.touched) {
    for (Index k = p.touched[t] + tid; k < p.touched[t + 1]; k += threads)
      sums[p.touched_cell[k] - first] += shared_sum[k];
    __syncthreads();
  }
  if (p.row) {
    for (Index k = p.row[t] + tid; k < p.row[t + 1]; k += threads) sums[p.row_cell[k] - first] += rest_sum[k];
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < K; ++k)
    if (const Index i = tid + k * threads; i < n) {
      own[k] += sums[i];
      cell(first + i, state(i), own[k]);
    }
}

/// A slice a warp, a cell a lane. Several faces of a cell at once and without branches, so that what they read is on
/// its way at the same time, and the addresses of the next faces with it; where a cell has fewer, some face is computed
/// in vain. What decides the speed is how many warps a multiprocessor holds: registers are few.
template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
__global__ void __launch_bounds__(slice_threads, slice_blocks)
    slice_kernel(FacePlan p, Read read, FaceFunction face, CellFunction cell, const Sum* rest_sum) {
  constexpr int U = slots_at_once;
  const Index c = static_cast<Index>(blockIdx.x * slice_threads + threadIdx.x), k = c / FacePlan::slice,
              lane = c % FacePlan::slice;
  if (c >= p.cells) return;
  FacePlan::Near next[U];
#pragma unroll
  for (int u = 0; u < U; ++u) next[u] = p.near[(k * U + u) * FacePlan::slice + lane];
  const FacePlan::Slice slice = p.slice_of[k];
  const Index face_base = slice.face - FacePlan::face_back, cell_base = c - lane - FacePlan::cell_back,
              further = slice.further + lane - U * FacePlan::slice;
  const Index straight = p.straight[c];
  const State own = read(c);
  Sum sum{};
  for (Index slot = 0; slot < slice.slots; slot += U) {
    Index faces[U], others[U];
    bool there[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      there[u] = next[u].face != FacePlan::no_face;
      faces[u] = there[u] ? face_base + next[u].face : 0;
      others[u] = there[u] ? cell_base + next[u].cell : c;
      if (next[u].face == FacePlan::is_far) {
        const FacePlan::Cut far = p.far[slice.far + next[u].cell];
        faces[u] = far.face;
        others[u] = far.other;
      }
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
      next[u] = {FacePlan::no_face, 0};
      if (slot + U + u < slice.slots) next[u] = p.near[further + (slot + U + u) * FacePlan::slice];
    }
    State beyond[U];
#pragma unroll
    for (int u = 0; u < U; ++u) beyond[u] = read(others[u]);
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const bool owner = slot + u < straight;
      const Both<Sum> both = face(Face{faces[u], owner ? c : others[u], owner ? others[u] : c}, owner ? own : beyond[u],
                                  owner ? beyond[u] : own);
      if (there[u]) sum += owner ? both.owner : both.neighbour;
    }
  }
  if (p.row)
    for (Index r = p.row[k]; r < p.row[k + 1]; ++r)
      if (p.row_cell[r] == c) sum += rest_sum[r];
  cell(c, own, sum);
}

/// The faces within a tile, each once.
template <class State, class Read, class FaceFunction>
__global__ void __launch_bounds__(1024) tile_face_kernel(FacePlan p, Read read, FaceFunction face) {
  const Index t = static_cast<Index>(blockIdx.x), tid = static_cast<Index>(threadIdx.x),
              threads = static_cast<Index>(blockDim.x), lane = tid % 32;
  const Index first = p.tile_cell[t], n = p.tile_cell[t + 1] - first;
  const FacePlan::Slots slots = p.slots[t];
  for (Index i = tid; i - lane < n; i += threads) {
    const Index group = i / 32;
    Index next = p.group_face[slots.first_group + group];
    State own{};
    if (i < n) own = read(first + i);
    for (int s = 0; s < slots.slots; ++s) {
      const std::uint32_t mask = p.mask[slots.first_mask + group * slots.slots + s];
      if (mask >> lane & 1) {
        const Index f = next + __popc(mask & ((1u << lane) - 1));
        const Index j = first + p.other[f];
        if (s < slots.turned)
          face(Face{f, first + i, j}, own, State(read(j)));
        else
          face(Face{f, j, first + i}, State(read(j)), own);
      }
      next += __popc(mask);
    }
  }
}

}  // namespace detail

class CudaFaceLoops;

/// A value for each cell, or for each face, in the loops' numbering, in the GPU's memory.
template <class T>
class CudaField {
 public:
  CudaField(CudaField&&) noexcept = default;
  CudaField& operator=(CudaField&&) noexcept = default;
  std::size_t size() const { return size_; }
  T* data() const { return static_cast<T*>(memory_.get()); }
  View<T> view() const { return {data()}; }

 private:
  friend class CudaFaceLoops;
  CudaField(std::shared_ptr<void> memory, std::size_t n) : memory_(std::move(memory)), size_(n) {}
  std::shared_ptr<void> memory_;
  std::size_t size_ = 0;
};

class CudaFaceLoops {
 public:
  template <class T>
  using Field = CudaField<T>;

  /// Analyses the mesh on the host and brings the plan to GPU `device`. Throws krilu::Error as FaceLoops does, and
  /// where there is no such GPU or too little memory on it.
  explicit CudaFaceLoops(const Mesh& mesh, const FaceLoopOptions& options = {}, int device = 0);
  /// On a space of one's own: kernels go to its stream.
  CudaFaceLoops(const exec::Cuda& space, const Mesh& mesh, const FaceLoopOptions& options);

  Index cells() const { return plan_.cells; }
  Index faces() const { return plan_.faces; }
  const FacePlan& plan() const { return plan_; }
  const FaceLoopReport& report() const;
  std::span<const Index> cell_order() const;
  std::span<const Index> face_order() const;
  /// The stream that loops are launched on, in order.
  cudaStream_t stream() const;
  /// Waits until all loops are done. Throws krilu::Error where one has failed.
  void synchronise() const;

  // --- fields ---------------------------------------------------------------------------------------------------
  template <class T>
  Field<T> cell_field() const {
    return field<T>(std::size_t(cells()));
  }
  template <class T>
  Field<T> face_field() const {
    return field<T>(std::size_t(faces()));
  }
  /// With the caller's values, by the mesh's numbers: they are put in order on the GPU.
  template <class Values>
  auto cell_field(const Values& values) const {
    return brought(std::span<const typename Values::value_type>(values), std::size_t(cells()), cell_order_there());
  }
  template <class Values>
  auto face_field(const Values& values) const {
    return brought(std::span<const typename Values::value_type>(values), std::size_t(faces()), face_order_there());
  }
  /// By the mesh's boundary faces, in their own order.
  template <class Values>
  auto boundary_field(const Values& values) const {
    using T = typename Values::value_type;
    Field<T> out = field<T>(values.size());
    copy(out.data(), values.data(), values.size() * sizeof(T), true);
    synchronise();
    return out;
  }
  template <class T>
  std::vector<T> cell_values(const Field<T>& f) const {
    return back(f, std::size_t(cells()), cell_order_there());
  }
  template <class T>
  std::vector<T> face_values(const Field<T>& f) const {
    return back(f, std::size_t(faces()), face_order_there());
  }

  // --- loops: as FaceLoops has them; launched, not waited for -----------------------------------------------------
  template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
  void sum_over_faces(Read read, FaceFunction face, CellFunction cell) const {
    switch (plan_.strategy) {
      case FaceStrategy::serial: return one_after_another<State, Sum>(read, face, cell);
      case FaceStrategy::atomics: return sum_atomics<State, Sum>(read, face, cell);
      case FaceStrategy::colours: return sum_colours<State, Sum>(read, face, cell);
      case FaceStrategy::gather: return sum_rows<State, Sum>(stream(), read, face, cell);
      case FaceStrategy::slices: return sum_slices<State, Sum>(read, face, cell);
      case FaceStrategy::tiles:
      case FaceStrategy::diagonal: return sum_tiles<State, Sum>(read, face, cell);
    }
  }
  template <class State, class Read, class FaceFunction>
  void for_each_face(Read read, FaceFunction face) const {
    const FacePlan p = plan_;
    if (p.loose > 0) detail::tile_face_kernel<State><<<unsigned(p.tiles), face_threads(), 0, stream()>>>(p, read, face);
    flat(p.faces - p.loose, [=] __device__(Index k) {
      face(Face{p.loose + k, p.owner[k], p.neighbour[k]}, State(read(p.owner[k])), State(read(p.neighbour[k])));
    });
    launched();
  }
  template <class CellFunction>
  void for_each_cell(CellFunction cell) const {
    flat(plan_.cells, cell);
    launched();
  }
  template <class Sum, class FaceFunction, class CellFunction>
  void sum_over_boundary(FaceFunction face, CellFunction cell) const {
    const FacePlan p = plan_;
    flat(p.boundary_rows, [=] __device__(Index row) {
      Sum sum{};
      for (Index k = p.boundary_row[row]; k < p.boundary_row[row + 1]; ++k)
        sum += face(p.boundary_face[k], p.boundary_cell[row]);
      cell(p.boundary_cell[row], sum);
    });
    launched();
  }

  // Parts of the loops: public because nvcc takes kernels in public members only.
  /// Milliseconds of a product with a symmetric matrix: the chooser's trial.
  double trial_milliseconds() const;
  template <class F>
  void flat(Index n, F f) const {
    if (n > 0)
      detail::flat_kernel<<<unsigned((n - 1) / detail::flat_threads + 1), detail::flat_threads, 0, stream()>>>(n, f);
  }
  template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
  void one_after_another(Read read, FaceFunction face, CellFunction cell) const {
    const FacePlan p = plan_;
    Sum* const sum = static_cast<Sum*>(scratch(0, std::size_t(p.cells) * sizeof(Sum)));
    flat(p.cells, [=] __device__(Index c) { sum[c] = Sum{}; });
    flat(1, [=] __device__(Index) {
      for (Index f = 0; f < p.faces; ++f) {
        const Both<Sum> both =
            face(Face{f, p.owner[f], p.neighbour[f]}, State(read(p.owner[f])), State(read(p.neighbour[f])));
        sum[p.owner[f]] += both.owner;
        sum[p.neighbour[f]] += both.neighbour;
      }
    });
    flat(p.cells, [=] __device__(Index c) { cell(c, State(read(c)), sum[c]); });
    launched();
  }
  template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
  void sum_atomics(Read read, FaceFunction face, CellFunction cell) const {
    const FacePlan p = plan_;
    Sum* const sum = static_cast<Sum*>(scratch(0, std::size_t(p.cells) * sizeof(Sum)));
    flat(p.cells, [=] __device__(Index c) { sum[c] = Sum{}; });
    flat(p.faces, [=] __device__(Index f) {
      const Both<Sum> both =
          face(Face{f, p.owner[f], p.neighbour[f]}, State(read(p.owner[f])), State(read(p.neighbour[f])));
      detail::add_atomically(sum[p.owner[f]], both.owner);
      detail::add_atomically(sum[p.neighbour[f]], both.neighbour);
    });
    flat(p.cells, [=] __device__(Index c) { cell(c, State(read(c)), sum[c]); });
    launched();
  }
  template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
  void sum_colours(Read read, FaceFunction face, CellFunction cell) const {
    const FacePlan p = plan_;
    Sum* const sum = static_cast<Sum*>(scratch(0, std::size_t(p.cells) * sizeof(Sum)));
    flat(p.cells, [=] __device__(Index c) { sum[c] = Sum{}; });
    for (Index k = 0; k < p.colours; ++k) {
      const Index first = p.colour_face[k];
      flat(p.colour_face[k + 1] - first, [=] __device__(Index i) {
        const Index f = first + i;
        const Both<Sum> both =
            face(Face{f, p.owner[f], p.neighbour[f]}, State(read(p.owner[f])), State(read(p.neighbour[f])));
        sum[p.owner[f]] += both.owner;
        sum[p.neighbour[f]] += both.neighbour;
      });
    }
    flat(p.cells, [=] __device__(Index c) { cell(c, State(read(c)), sum[c]); });
    launched();
  }
  template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
  void sum_rows(cudaStream_t where, Read read, FaceFunction face, CellFunction cell) const {
    rows<State, Sum>(where, read, face,
                     [=] __device__(Index, Index c, const State& own, const Sum& sum) { cell(c, own, sum); });
    launched();
  }
  template <class State, class Sum, class Read, class FaceFunction>
  void rest_of_rows(cudaStream_t where, Read read, FaceFunction face, Sum* sums) const {
    rows<State, Sum>(where, read, face,
                     [=] __device__(Index row, Index, const State&, const Sum& sum) { sums[row] = sum; });
  }
  template <class State, class Sum, class Read, class FaceFunction, class Done>
  void rows(cudaStream_t where, Read read, FaceFunction face, Done done) const {
    const FacePlan p = plan_;
    if (p.rows == 0) return;
    detail::row_kernel<State, Sum>
        <<<unsigned((p.rows - 1) / detail::flat_threads + 1), detail::flat_threads, 0, where>>>(p, long_row(), read,
                                                                                                face, done);
    if (p.long_rows > 0)
      detail::long_row_kernel<State, Sum>
          <<<unsigned(p.long_rows), detail::flat_threads, 0, where>>>(p, read, face, done);
  }
  template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
  void sum_slices(Read read, FaceFunction face, CellFunction cell) const {
    const FacePlan p = plan_;
    if (p.cells == 0) return;
    Sum* rest_sum = nullptr;
    if (p.rows > 0) {
      rest_sum = static_cast<Sum*>(scratch(1, std::size_t(p.rows) * sizeof(Sum)));
      rest_of_rows<State, Sum>(stream(), read, face, rest_sum);
    }
    detail::slice_kernel<State, Sum>
        <<<unsigned((p.cells - 1) / detail::slice_threads + 1), detail::slice_threads, 0, stream()>>>(p, read, face,
                                                                                                      cell, rest_sum);
    launched();
  }
  template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
  void sum_tiles(Read read, FaceFunction face, CellFunction cell) const {
    const FacePlan p = plan_;
    if (p.cells == 0) return;
    Sum *shared_sum = nullptr, *rest_sum = nullptr;
    if (p.rows > 0) {  // at the same time as the pairs
      rest_sum = static_cast<Sum*>(scratch(1, std::size_t(p.rows) * sizeof(Sum)));
      rest_of_rows<State, Sum>(p.classes > 0 ? fork() : stream(), read, face, rest_sum);
    }
    if (p.classes > 0) {
      shared_sum = static_cast<Sum*>(scratch(0, std::size_t(p.touched_cells) * sizeof(Sum)));
      flat(p.touched_cells, [=] __device__(Index k) { shared_sum[k] = Sum{}; });
      for (Index c = 0; c < p.classes; ++c)
        detail::pair_kernel<State, Sum>
            <<<unsigned(p.class_pair[c + 1] - p.class_pair[c]), detail::pair_threads, 0, stream()>>>(
                p, p.class_pair[c], read, face, shared_sum);
      if (p.rows > 0) join();
    }
    constexpr bool staged = sizeof(State) <= detail::staged_state;
    const std::size_t bytes = std::size_t(p.most_cells) * (sizeof(Sum) + (staged ? sizeof(State) : 0));
    const auto kernel = detail::tile_kernel<State, Sum, Read, FaceFunction, CellFunction>;
    allow_shared(reinterpret_cast<const void*>(kernel), bytes);
    kernel<<<unsigned(p.tiles), tile_threads(), bytes, stream()>>>(p, read, face, cell, shared_sum, rest_sum);
    launched();
  }

 private:
  struct Body;
  double measured(const exec::Cuda& space, mesh::PlanData& plan);
  void make(const exec::Cuda& space, const Mesh& mesh, const FaceLoopOptions& options);
  unsigned tile_threads() const {
    const unsigned each = 32u * unsigned(detail::tile_cells_a_thread);
    return (unsigned(plan_.most_cells) + each - 1) / each * 32u;
  }
  unsigned face_threads() const { return tile_threads(); }
  static Index long_row();
  static void launched();
  /// Throws krilu::Error where a block may not have so much shared memory.
  void allow_shared(const void* kernel, std::size_t bytes) const;
  /// Memory between the kernels of a loop; of two pieces.
  void* scratch(int piece, std::size_t bytes) const;
  /// The second stream, which from now on runs beside the first; join makes the first wait for it.
  cudaStream_t fork() const;
  void join() const;
  std::shared_ptr<void> allocate(std::size_t bytes) const;
  void copy(void* to, const void* from, std::size_t bytes, bool in) const;
  const Index* cell_order_there() const;
  const Index* face_order_there() const;

  template <class T>
  Field<T> field(std::size_t n) const {
    return Field<T>(allocate(n * sizeof(T)), n);
  }
  static void require_size(std::size_t given, std::size_t needed);

 public:
  template <class T>
  Field<T> brought(std::span<const T> values, std::size_t n, const Index* order) const {
    require_size(values.size(), n);
    const Field<T> stage = field<T>(n);
    Field<T> out = field<T>(n);
    copy(stage.data(), values.data(), n * sizeof(T), true);
    T *const to = out.data(), *const from = stage.data();
    flat(Index(n), [=] __device__(Index i) { to[i] = from[order[i]]; });
    synchronise();
    return out;
  }
  template <class T>
  std::vector<T> back(const Field<T>& f, std::size_t n, const Index* order) const {
    require_size(f.size(), n);
    const Field<T> stage = field<T>(n);
    T *const to = stage.data(), *const from = f.data();
    flat(Index(n), [=] __device__(Index i) { to[order[i]] = from[i]; });
    std::vector<T> values(n);
    copy(values.data(), stage.data(), n * sizeof(T), false);
    return values;
  }

 private:
  std::shared_ptr<Body> body_;
  FacePlan plan_;
};

}  // namespace krilu
