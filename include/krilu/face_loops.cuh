// SPDX-License-Identifier: Apache-2.0
// Loops over the faces of a mesh on a GPU: the interface of face_loops.hpp, to be compiled by nvcc with
// --extended-lambda. Functions are opened by KRILU_FN and capture views.
//
// Strategies tiles, the fastest of large meshes, and diagonal: a thread block goes from tile to tile. Any thread
// computes any face of the tile and leaves what it adds to a cell in a place of its own in shared memory, so that
// nothing races; then each thread adds up a cell's. What has to be known of a tile is one piece of memory, which comes
// in while the tile before is at work: no address is waited for. A face costs four bytes of addressing beside its
// fields. Faces that tiles share are computed by both (strategy tiles), or beforehand into accumulators (strategy
// diagonal: pairs of tiles, class after class; what is too sparse for that on a stream of its own at the same time).
//
// Strategy slices, the fastest of small ones: a lane goes through the faces of its cell, several at a time, and
// addresses them in 16 bits; each face is computed twice.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>
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

constexpr int tile_threads = 512;  // and most cells of a tile
// Registers for so many blocks a multiprocessor; larger states and sums take more of them.
template <class State, class Sum>
constexpr int tile_blocks = sizeof(State) + sizeof(Sum) <= 3 * sizeof(double) ? 4 : 2;
/// Faces of a thread at once. What they read is on its way at the same time.
template <class Sum>
constexpr int faces_at_once = sizeof(Sum) <= sizeof(double) ? 2 : 1;
// Of slices: threads of a block, blocks that are to fit a multiprocessor, faces of a cell at once.
constexpr int slice_threads = 256, slice_blocks = 6, slots_at_once = FacePlan::first_slots;
constexpr int flat_threads = 256;  // of a block in kernels without tiles
constexpr int pair_threads = 64;

template <class V>
__device__ void add_atomically(V& value, const V& add) {
  static_assert(sizeof(V) % sizeof(double) == 0, "sums are made of doubles");
  for (std::size_t k = 0; k < sizeof(V) / sizeof(double); ++k)
    atomicAdd(reinterpret_cast<double*>(&value) + k, reinterpret_cast<const double*>(&add)[k]);
}

/// Where a tile's sums stand: in shared memory, which has room for three doubles each; larger ones in a piece of device
/// memory that each block has for itself.
template <class Sum>
constexpr bool sums_in_shared = sizeof(Sum) <= 3 * sizeof(double);

/// The value is computed by now, whether or not it is used later: its loads do not wait for a branch.
template <class V>
__device__ void settle(V& value) {
  if constexpr (sizeof(V) % sizeof(double) == 0) {
#pragma unroll
    for (std::size_t k = 0; k < sizeof(V) / sizeof(double); ++k)
      asm volatile("" : "+d"(reinterpret_cast<double*>(&value)[k]));
  }
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
      const Index k = f - p.loose, o = p.owner[f], q = p.neighbour[f];
      const Both<Sum> both = face(Face{f, o, q}, State(read(o)), State(read(q)));
      sums[p.pair_cells[k].owner] += both.owner;
      sums[p.pair_cells[k].neighbour] += both.neighbour;
    }
    __syncthreads();
  }
}

/// Tiles blockIdx, blockIdx + gridDim and so on. `shared_sum`, `rest_sum`: accumulators of strategy diagonal, and of
/// the rest. Shared memory: two parcels, and places for sums; `apart` has those where they are too large.
template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
__global__ void __launch_bounds__(tile_threads, tile_blocks<State, Sum>)
    tile_kernel(FacePlan p, Read read, FaceFunction face, CellFunction cell, const Sum* shared_sum, const Sum* rest_sum,
                Sum* apart) {
  constexpr int T = tile_threads, U = faces_at_once<Sum>;
  extern __shared__ __align__(16) unsigned char memory[];
  FacePlan::Unit* const parcels = reinterpret_cast<FacePlan::Unit*>(memory);
  Sum* sums = reinterpret_cast<Sum*>(parcels + 2 * p.most_units);
  if constexpr (!sums_in_shared<Sum>) sums = apart + std::size_t(blockIdx.x) * std::size_t(p.slots * p.stride);
  const Index tid = static_cast<Index>(threadIdx.x), step = static_cast<Index>(gridDim.x), in_tile = p.stride - 1;
  Index t = static_cast<Index>(blockIdx.x);
  const auto fetch = [&](int which, Index begin, Index end) {
#pragma unroll 1
    for (Index k = tid; k < end - begin; k += T)
      __pipeline_memcpy_async(parcels + which * p.most_units + k, p.parcel + begin + k, sizeof(FacePlan::Unit));
    __pipeline_commit();
  };
  fetch(0, p.parcel_at[t], p.parcel_at[t + 1]);
  Index begin = 0, end = 0;  // of the next tile's parcel
  if (t + step < p.tiles) begin = p.parcel_at[t + step], end = p.parcel_at[t + step + 1];
  for (int which = 0; t < p.tiles; t += step, which ^= 1) {
    fetch(which ^ 1, begin, end);
    __pipeline_wait_prior(1);
    __syncthreads();
    const FacePlan::Parcel& parcel = *reinterpret_cast<const FacePlan::Parcel*>(parcels + which * p.most_units);
    const Index first = parcel.first_cell, cells = parcel.cells, within = parcel.faces, cut = parcel.shared;
    begin = end = 0;
    if (t + 2 * step < p.tiles) begin = p.parcel_at[t + 2 * step], end = p.parcel_at[t + 2 * step + 1];

    const auto inner = [&](Index k, FacePlan::Places& to) {
      to = parcel.places()[k];
      const Index o = first + (to.owner & in_tile), q = first + (to.neighbour & in_tile);
      return face(Face{parcel.first_face + k, o, q}, State(read(o)), State(read(q)));
    };
    const auto outer = [&](Index k, Index& to) {
      const FacePlan::Shared e = parcel.face_shared()[k];
      const FacePlan::Run run = parcel.run()[e.run];
      const bool turned = e.turned_place >> 15;
      to = e.turned_place & 0x7fff;
      const Index c = first + (to & in_tile), other = run.cell + e.cell;
      const State here = read(c), there = read(other);
      const Both<Sum> both = face(Face{run.face + k, turned ? other : c, turned ? c : other}, turned ? there : here,
                                  turned ? here : there);
      return turned ? both.neighbour : both.owner;
    };
    // Without a branch, so that all loads are on their way at once: where there is no face left, the last one is
    // computed again, for nothing.
    if (within > 0) {
      Both<Sum> both[U];
      FacePlan::Places to[U];
      Index beyond_to;
#pragma unroll
      for (int u = 0; u < U; ++u) both[u] = inner(min(tid + u * T, within - 1), to[u]);
      Sum beyond = outer(max(0, min(tid, cut - 1)), beyond_to);
#pragma unroll
      for (int u = 0; u < U; ++u) settle(both[u]);
      settle(beyond);
#pragma unroll
      for (int u = 0; u < U; ++u)
        if (tid + u * T < within) {
          sums[to[u].owner] = both[u].owner;
          sums[to[u].neighbour] = both[u].neighbour;
        }
      if (tid < cut) sums[beyond_to] = beyond;
    }
#pragma unroll 1
    for (Index k = tid + U * T; k < within; k += T) {
      FacePlan::Places to;
      const Both<Sum> both = inner(k, to);
      sums[to.owner] = both.owner;
      sums[to.neighbour] = both.neighbour;
    }
#pragma unroll 1
    for (Index k = within > 0 ? tid + T : tid; k < cut; k += T) {
      Index to;
      const Sum beyond = outer(k, to);
      sums[to] = beyond;
    }
#pragma unroll 1
    for (Index k = tid; k < parcel.touched; k += T)
      sums[parcel.touched_place()[k]] = shared_sum[parcel.first_touched + k];
#pragma unroll 1
    for (Index k = tid; k < parcel.rows; k += T) sums[parcel.row_place()[k]] = rest_sum[parcel.first_row + k];
    const State own = read(first + min(tid, cells - 1));
    const Index count = tid < cells ? parcel.arrivals()[tid] : 0;
    __syncthreads();
    if (tid < cells) {
      Sum sum{};
      for (Index s = 0; s < count; ++s) sum += sums[s * p.stride + tid];
      cell(first + tid, own, sum);
    }
  }
  __pipeline_wait_prior(0);
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
    flat(p.faces, [=] __device__(Index f) {
      face(Face{f, p.owner[f], p.neighbour[f]}, State(read(p.owner[f])), State(read(p.neighbour[f])));
    });
    launched();
  }
  template <class State, class FromOwner, class Read, class FaceFunction>
  void for_each_face_from(FromOwner from_owner, Read read, FaceFunction face) const {
    const FacePlan p = plan_;
    flat(p.faces, [=] __device__(Index f) {
      const Face at{f, p.owner[f], p.neighbour[f]};
      face(at, State(read(from_owner(at) ? at.owner : at.neighbour)));
    });
    launched();
  }
  /// f itself: a GPU has enough on its way at once.
  template <class F, class... T>
  static F ahead(F f, View<T>...) {
    return f;
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
    const std::size_t parcels = 2 * std::size_t(p.most_units) * sizeof(FacePlan::Unit),
                      places = std::size_t(p.slots) * std::size_t(p.stride) * sizeof(Sum),
                      bytes = parcels + (detail::sums_in_shared<Sum> ? places : 0);
    const auto kernel = detail::tile_kernel<State, Sum, Read, FaceFunction, CellFunction>;
    const unsigned blocks = std::min(unsigned(p.tiles), blocks_at_once(reinterpret_cast<const void*>(kernel), bytes));
    Sum* apart = nullptr;
    if constexpr (!detail::sums_in_shared<Sum>) apart = static_cast<Sum*>(scratch(2, blocks * places));
    kernel<<<blocks, detail::tile_threads, bytes, stream()>>>(p, read, face, cell, shared_sum, rest_sum, apart);
    launched();
  }

 private:
  struct Body;
  double measured(const exec::Cuda& space, mesh::PlanData& plan);
  void make(const exec::Cuda& space, const Mesh& mesh, const FaceLoopOptions& options);
  static Index long_row();
  static void launched();
  /// Blocks of tile_threads with so much shared memory each that the GPU holds. Throws krilu::Error where a block may
  /// not have so much.
  unsigned blocks_at_once(const void* kernel, std::size_t bytes) const;
  /// Memory of a loop's kernels, and between them; of three pieces.
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
