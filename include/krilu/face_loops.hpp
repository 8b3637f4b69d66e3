// SPDX-License-Identifier: Apache-2.0
// Loops over the faces of a mesh on the host's cores; face_loops.cuh has the same for a GPU. The caller gives functions
// of one face, or one cell; colouring, tiles and threads are not the caller's affair. A text that takes the loops as a
// template parameter, with functions opened by KRILU_FN, runs on both:
//
//   template <class Loops>
//   void divergence(const Loops& loops, View<double> flux, View<double> volume, View<double> div) {
//     loops.template sum_over_faces<Nothing, double>(
//         KRILU_FN(Index) { return Nothing{}; },                          // what a face needs of its cells
//         KRILU_FN(Face f, Nothing, Nothing) { return Both<double>{flux[f.id], -flux[f.id]}; },
//         KRILU_FN(Index cell, Nothing, double sum) { div[cell] = sum / volume[cell]; });
//   }
//
// Fields stand in the loops' own numbering: cell_field and face_field bring a caller's values there, values_of brings
// them back. Results are the same bits from run to run, and for any number of threads, with every strategy but atomics;
// auto takes the one that it measured to be the fastest, which need not be the same each time. Functions may not throw.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "krilu/buffer.hpp"
#include "krilu/face_plan.hpp"
#include "krilu/mesh.hpp"
#include "krilu/view.hpp"

namespace krilu {

namespace detail {

/// f(context, thread, team) on a team of at most `threads` threads.
void run_team(int threads, void (*f)(void*, int, int), void* context);
template <class F>
void run_team(int threads, F& f) {
  run_team(
      threads, [](void* context, int thread, int team) { (*static_cast<F*>(context))(thread, team); }, &f);
}
/// Waits until counter reaches value; gives the core away after a while.
void wait_for(const std::atomic<Index>& counter, Index value);

/// A vector to work in, of this thread, not cleared. Vectors in use at the same time have different purposes.
template <class V, int purpose = 0>
V* scratch(std::size_t n) {
  thread_local Buffer<V> memory;
  if (memory.size() < n) memory.resize(n);
  return memory.data();
}

/// value += add, while other threads may do the same. The order of the additions is open.
template <class V>
void add_concurrently(V& value, const V& add) {
  static_assert(sizeof(V) % sizeof(double) == 0, "sums are made of doubles");
  for (std::size_t k = 0; k < sizeof(V) / sizeof(double); ++k)
    std::atomic_ref(reinterpret_cast<double*>(&value)[k])
        .fetch_add(reinterpret_cast<const double*>(&add)[k], std::memory_order_relaxed);
}

/// A function of one index, and the views that it looks at or writes to at that index.
template <class F, class... Views>
struct Ahead {
  F f;
  std::tuple<Views...> views;
  template <class... Arguments>
  auto operator()(const Arguments&... arguments) const {
    return f(arguments...);
  }
  /// Asks for what stands at index i, which may lie behind the last.
  void ask(Index i) const {
    std::apply([i](const auto&... view) { (ask_for(view.data, i), ...); }, views);
  }

 private:
  template <class T>
  static void ask_for(T* data, Index i) {
#if defined(__GNUC__)
    __builtin_prefetch(
        reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(data) + std::size_t(i) * sizeof(T)),
        std::is_const_v<T> ? 0 : 1);
#endif
  }
};
template <class F>
void ask(const F& f, Index i) {
  if constexpr (requires { f.ask(i); }) f.ask(i);
}

}  // namespace detail

/// A value for each cell, or for each face, in the loops' numbering and their memory.
template <class T>
class HostField {
 public:
  explicit HostField(std::size_t n) : values_(n) {}
  std::size_t size() const { return values_.size(); }
  T* data() { return values_.data(); }
  View<T> view() { return {values_.data()}; }

 private:
  Buffer<T> values_;
};

class FaceLoops {
 public:
  template <class T>
  using Field = HostField<T>;

  /// Analyses the mesh. Throws krilu::Error for an invalid mesh (the geometry of faces is not looked at), for names and
  /// numbers that it does not know, and where blocks by bisection are asked for and the mesh has no geometry.
  explicit FaceLoops(const Mesh& mesh, const FaceLoopOptions& options = {});

  Index cells() const { return plan_.cells; }
  Index faces() const { return plan_.faces; }
  const FacePlan& plan() const { return plan_; }
  const FaceLoopReport& report() const;
  int threads() const { return threads_; }
  /// The mesh's cell at place i of the loops' numbering, and its face at place i.
  std::span<const Index> cell_order() const;
  std::span<const Index> face_order() const;

  // --- fields ---------------------------------------------------------------------------------------------------
  template <class T>
  Field<T> cell_field() const {
    return Field<T>(std::size_t(cells()));
  }
  template <class T>
  Field<T> face_field() const {
    return Field<T>(std::size_t(faces()));
  }
  /// With the caller's values, by the mesh's numbers.
  template <class T>
  Field<T> cell_field(std::span<const T> values) const {
    return brought(values, cell_order());
  }
  template <class T>
  Field<T> face_field(std::span<const T> values) const {
    return brought(values, face_order());
  }
  template <class Values>
  auto cell_field(const Values& values) const {
    return cell_field(std::span<const typename Values::value_type>(values));
  }
  template <class Values>
  auto face_field(const Values& values) const {
    return face_field(std::span<const typename Values::value_type>(values));
  }
  /// By the mesh's boundary faces, in their own order.
  template <class Values>
  auto boundary_field(const Values& values) const {
    Field<typename Values::value_type> field(values.size());
    std::copy(values.begin(), values.end(), field.data());
    return field;
  }
  /// In the caller's numbering again.
  template <class T>
  std::vector<T> cell_values(Field<T>& field) const {
    return back(field, cell_order());
  }
  template <class T>
  std::vector<T> face_values(Field<T>& field) const {
    return back(field, face_order());
  }

  // --- loops ----------------------------------------------------------------------------------------------------
  /// Edge-to-vertex update: cell(c, state of c, sum) for each cell c once, sum being what its faces add to it.
  /// State read(Index cell) says what a face needs of a cell; Both<Sum> face(Face, const State& owner, const State&
  /// neighbour) what it adds to each; void cell(Index, const State&, const Sum&) writes the result. What `read` and
  /// `face` look at may not be what `cell` writes; `face` writes nothing, and may be asked more than once, also with
  /// cells that are not the face's, for an answer that is dropped. Sum: made of doubles, with +=, zero where
  /// value-initialised.
  template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
  void sum_over_faces(Read read, FaceFunction face, CellFunction cell) const {
    switch (plan_.strategy) {
      case FaceStrategy::serial: return sum_serial<State, Sum>(read, face, cell);
      case FaceStrategy::atomics: return sum_atomics<State, Sum>(read, face, cell);
      case FaceStrategy::colours: return sum_colours<State, Sum>(read, face, cell);
      case FaceStrategy::gather:
        return shared(plan_.cells, [&](Index c) { cell(c, read(c), gather<State, Sum>(c, c, read, face)); });
      case FaceStrategy::slices: return sum_slices<State, Sum>(read, face, cell);
      case FaceStrategy::tiles:
      case FaceStrategy::diagonal: return sum_tiles<State, Sum>(read, face, cell);
    }
  }

  /// Edge update: void face(Face, const State& owner, const State& neighbour) for each face once; it writes to fields
  /// of faces.
  template <class State, class Read, class FaceFunction>
  void for_each_face(Read read, FaceFunction face) const {
    const FacePlan& p = plan_;
    shared(
        p.tiles,
        [&](Index t) {
          const Index first = p.tile_cell[t];
          Index f = p.tile_face[t];
          if (!p.count) {
            for (; f < p.tile_face[t + 1]; ++f) {
              const Index owner = first + p.within[f].owner, neighbour = first + p.within[f].neighbour;
              face(Face{f, owner, neighbour}, State(read(owner)), State(read(neighbour)));
            }
            return;
          }
          for (Index c = first; c < p.tile_cell[t + 1]; ++c) {
            const State own = read(c);
            for (const Index end = f + p.count[c]; f < end; ++f)
              face(Face{f, c, c + p.step[f]}, own, State(read(c + p.step[f])));
          }
        },
        1);
    shared(p.faces - p.listed, [&](Index k) {
      face(Face{p.listed + k, p.owner[k], p.neighbour[k]}, read(p.owner[k]), read(p.neighbour[k]));
    });
  }

  /// Edge update from one side: void face(Face, const State&) for each face once, with the state of the owner where
  /// bool from_owner(Face) says so, else of the neighbour; the other cell is not looked at. face writes to fields of
  /// faces.
  template <class State, class FromOwner, class Read, class FaceFunction>
  void for_each_face_from(FromOwner from_owner, Read read, FaceFunction face) const {
    const FacePlan& p = plan_;
    const auto one = [&](const Face& f) { face(f, State(read(from_owner(f) ? f.owner : f.neighbour))); };
    const auto places = std::bit_ceil(std::size_t(p.reach) + FacePlan::strip);
    const bool by_strips = !p.count && !p.lattice && places * sizeof(Kept<State>) <= most_kept;
    shared(
        p.tiles,
        [&](Index t) {
          const Index first = p.tile_cell[t], last = p.tile_cell[t + 1];
          Index f = p.tile_face[t];
          if (by_strips)
            return strips_from(p.within, f, p.strip_end + FacePlan::first_strip(t, first), first, last, p.reach,
                               detail::scratch<Kept<State>, 2>(places), places - 1, from_owner, read, face);
          if (!p.count)
            for (; f < p.tile_face[t + 1]; ++f) one(Face{f, first + p.within[f].owner, first + p.within[f].neighbour});
          else
            for (Index c = first; c < last; ++c)
              for (const Index end = f + p.count[c]; f < end; ++f) one(Face{f, c, c + p.step[f]});
        },
        1);
    shared(p.faces - p.listed, [&](Index k) { one(Face{p.listed + k, p.owner[k], p.neighbour[k]}); });
  }

  /// f, one of a loop's functions, with the views that it looks at or writes to at its own index, the cell's or the
  /// face's: where a loop goes from one index to the next, and the processor cannot see that it does, what they hold is
  /// asked for ahead of time. Changes no result.
  template <class F, class... T>
  static auto ahead(F f, View<T>... views) {
    return detail::Ahead<F, View<T>...>{f, {views...}};
  }

  /// Vertex update: void cell(Index) for each cell once.
  template <class CellFunction>
  void for_each_cell(CellFunction cell) const {
    shared(plan_.cells, cell);
  }

  /// cell(Index, const Sum&) for each cell that has boundary faces, once: with the sum of face(boundary face, cell)
  /// over them. Boundary faces keep the mesh's numbers.
  template <class Sum, class FaceFunction, class CellFunction>
  void sum_over_boundary(FaceFunction face, CellFunction cell) const {
    const FacePlan& p = plan_;
    shared(p.boundary_rows, [&](Index row) {
      Sum sum{};
      for (Index k = p.boundary_row[row]; k < p.boundary_row[row + 1]; ++k)
        sum += face(p.boundary_face[k], p.boundary_cell[row]);
      cell(p.boundary_cell[row], sum);
    });
  }

 private:
  struct Body;
  FaceLoops() = default;  // for the chooser's trials

  template <class T>
  Field<T> brought(std::span<const T> values, std::span<const Index> order) const {
    require_size(values.size(), order.size());
    Field<T> field(order.size());
    T* const to = field.data();
    shared(Index(order.size()), [to, from = values.data(), at = order.data()](Index i) { to[i] = from[at[i]]; });
    return field;
  }
  template <class T>
  std::vector<T> back(Field<T>& field, std::span<const Index> order) const {
    require_size(field.size(), order.size());
    std::vector<T> values(field.size());
    shared(Index(order.size()),
           [to = values.data(), from = field.data(), at = order.data()](Index i) { to[at[i]] = from[i]; });
    return values;
  }
  static void require_size(std::size_t given, std::size_t needed);

  /// f(i) for 0 <= i < n, in pieces taken from a queue.
  template <class F>
  void shared(Index n, F f, Index piece = 4096) const {
    std::atomic<Index> next{0};
    auto work = [&](int, int) {
      for (;;) {
        const Index begin = next.fetch_add(piece, std::memory_order_relaxed);
        if (begin >= n) return;
        for (Index i = begin, end = std::min(n, begin + piece); i < end; ++i) f(i);
      }
    };
    detail::run_team(n > piece ? threads_ : 1, work);
  }

  /// What the faces of one row add to its cell.
  template <class State, class Sum, class Read, class FaceFunction>
  Sum gather(Index row, Index c, Read& read, FaceFunction& face) const {
    const FacePlan& p = plan_;
    Sum sum{};
    const State own = read(c);
    for (Index k = p.row_entry[row]; k < p.row_entry[row + 1]; ++k) {
      const FacePlan::Cut& e = p.entry[k];
      if (e.face >= 0)
        sum += face(Face{e.face, c, e.other}, own, State(read(e.other))).owner;
      else
        sum += face(Face{~e.face, e.other, c}, State(read(e.other)), own).neighbour;
    }
    return sum;
  }

  template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
  void sum_serial(Read& read, FaceFunction& face, CellFunction& cell) const {
    const FacePlan& p = plan_;
    Sum* const sum = detail::scratch<Sum>(std::size_t(p.cells));
    std::fill_n(sum, std::size_t(p.cells), Sum{});
    for (Index f = 0; f < p.faces; ++f) {
      const Both<Sum> both =
          face(Face{f, p.owner[f], p.neighbour[f]}, State(read(p.owner[f])), State(read(p.neighbour[f])));
      sum[p.owner[f]] += both.owner;
      sum[p.neighbour[f]] += both.neighbour;
    }
    for (Index c = 0; c < p.cells; ++c) cell(c, State(read(c)), sum[c]);
  }

  template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
  void sum_atomics(Read& read, FaceFunction& face, CellFunction& cell) const {
    const FacePlan& p = plan_;
    Sum* const sum = detail::scratch<Sum>(std::size_t(p.cells));
    shared(p.cells, [=](Index c) { sum[c] = Sum{}; });
    shared(p.faces, [&](Index f) {
      const Both<Sum> both =
          face(Face{f, p.owner[f], p.neighbour[f]}, State(read(p.owner[f])), State(read(p.neighbour[f])));
      detail::add_concurrently(sum[p.owner[f]], both.owner);
      detail::add_concurrently(sum[p.neighbour[f]], both.neighbour);
    });
    shared(p.cells, [&](Index c) { cell(c, State(read(c)), sum[c]); });
  }

  template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
  void sum_colours(Read& read, FaceFunction& face, CellFunction& cell) const {
    const FacePlan& p = plan_;
    Sum* const sum = detail::scratch<Sum>(std::size_t(p.cells));
    shared(p.cells, [=](Index c) { sum[c] = Sum{}; });
    for (Index k = 0; k < p.colours; ++k)
      shared(p.colour_face[k + 1] - p.colour_face[k], [&, first = p.colour_face[k]](Index i) {
        const Index f = first + i;
        const Both<Sum> both =
            face(Face{f, p.owner[f], p.neighbour[f]}, State(read(p.owner[f])), State(read(p.neighbour[f])));
        sum[p.owner[f]] += both.owner;
        sum[p.neighbour[f]] += both.neighbour;
      });
    shared(p.cells, [&](Index c) { cell(c, State(read(c)), sum[c]); });
  }

  template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
  void sum_slices(Read& read, FaceFunction& face, CellFunction& cell) const {
    const FacePlan& p = plan_;
    shared(
        p.slices,
        [&](Index k) {
          const FacePlan::Slice slice = p.slice_of[k];
          const Index first = k * FacePlan::slice, last = std::min(p.cells, first + FacePlan::slice);
          for (Index c = first; c < last; ++c) {
            const State own = read(c);
            Sum sum{};
            for (Index slot = 0; slot < slice.slots; ++slot) {
              const Index e = slice.entry(k, slot) + c - first;
              const FacePlan::Near near = p.near[e];
              if (near.face == FacePlan::no_face) break;
              Index f = slice.face - FacePlan::face_back + near.face, other = first - FacePlan::cell_back + near.cell;
              if (near.face == FacePlan::is_far) {
                f = p.far[slice.far + near.cell].face;
                other = p.far[slice.far + near.cell].other;
              }
              if (slot < p.straight[c])
                sum += face(Face{f, c, other}, own, State(read(other))).owner;
              else
                sum += face(Face{f, other, c}, State(read(other)), own).neighbour;
            }
            if (p.row)
              for (Index r = p.row[k]; r < p.row[k + 1]; ++r)
                if (p.row_cell[r] == c) sum += gather<State, Sum>(r, c, read, face);
            cell(c, own, sum);
          }
        },
        128);
  }

  /// Diagonal colouring: first the pairs of tiles of order 1 and more, class after class, from a queue, while the first
  /// thread does what is too sparse for that; then order 0, tile by tile, to which both are added.
  template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
  void sum_tiles(Read& read, FaceFunction& face, CellFunction& cell) const {
    const FacePlan& p = plan_;
    Sum* const shared_sum = detail::scratch<Sum>(std::size_t(p.touched_cells) + std::size_t(p.rows));
    Sum* const rest_sum = shared_sum + p.touched_cells;
    if (p.classes > 0 || p.rows > 0) {
      std::vector<std::atomic<Index>> next(std::size_t(p.classes) + 1), done(std::size_t(p.classes) + 1);
      for (Index k = 0; k < p.touched_cells; ++k) shared_sum[k] = Sum{};
      auto work = [&](int thread, int) {
        constexpr Index piece = 64;
        const auto rest = [&] {
          for (;;) {
            const Index begin = next[std::size_t(p.classes)].fetch_add(piece, std::memory_order_relaxed);
            if (begin >= p.rows) return;
            for (Index k = begin; k < std::min(p.rows, begin + piece); ++k)
              rest_sum[k] = gather<State, Sum>(k, p.row_cell[k], read, face);
          }
        };
        if (thread == 0) rest();
        for (Index c = 0; c < p.classes; ++c) {
          const Index end = p.class_pair[c + 1], count = end - p.class_pair[c];
          for (;;) {
            const Index pair = p.class_pair[c] + next[std::size_t(c)].fetch_add(1, std::memory_order_relaxed);
            if (pair >= end) break;
            add_pair<State>(pair, read, face, shared_sum);
            done[std::size_t(c)].fetch_add(1, std::memory_order_release);
          }
          detail::wait_for(done[std::size_t(c)], count);
        }
        rest();
      };
      detail::run_team(threads_, work);
    }
    std::atomic<Index> next_tile{0};
    auto work = [&](int, int) {
      Sum* const sum = detail::scratch<Sum, 1>(std::size_t(p.most_cells));
      for (;;) {
        const Index t = next_tile.fetch_add(1, std::memory_order_relaxed);
        if (t >= p.tiles) return;
        sum_tile<State>(t, read, face, cell, sum, shared_sum, rest_sum);
      }
    };
    detail::run_team(p.tiles > 1 ? threads_ : 1, work);
  }

  /// The faces between two tiles.
  template <class State, class Sum, class Read, class FaceFunction>
  void add_pair(Index pair, Read& read, FaceFunction& face, Sum* sum) const {
    const FacePlan& p = plan_;
    for (Index f = p.slot_face[p.pair_slot[pair]]; f < p.slot_face[p.pair_slot[pair + 1]]; ++f) {
      const Index k = f - p.loose;
      const Both<Sum> both =
          face(Face{f, p.owner[k], p.neighbour[k]}, State(read(p.owner[k])), State(read(p.neighbour[k])));
      sum[p.pair_cells[k].owner] += both.owner;
      sum[p.pair_cells[k].neighbour] += both.neighbour;
    }
  }

  template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
  void sum_tile(Index t, Read read, FaceFunction face, CellFunction cell, Sum* sum, const Sum* shared_sum,
                const Sum* rest_sum) const {
    const FacePlan& p = plan_;
    const Index first = p.tile_cell[t], n = p.tile_cell[t + 1] - first;
    for (Index i = 0; i < n; ++i) sum[i] = Sum{};
    if (p.cut)
      for (Index k = p.cut_of[t]; k < p.cut_of[t + 1]; ++k) {
        const FacePlan::Cut e = p.cut[k];
        const Index i = p.cut_cell[k], c = first + i;
        if (e.face >= 0)
          sum[i] += face(Face{e.face, c, e.other}, State(read(c)), State(read(e.other))).owner;
        else
          sum[i] += face(Face{~e.face, e.other, c}, State(read(e.other)), State(read(c))).neighbour;
      }
    if (p.touched)
      for (Index k = p.touched[t]; k < p.touched[t + 1]; ++k) sum[p.touched_cell[k] - first] += shared_sum[k];
    if (p.row)
      for (Index k = p.row[t]; k < p.row[t + 1]; ++k) sum[p.row_cell[k] - first] += rest_sum[k];
    if (!p.count) {
      const Index* end = p.strip_end + FacePlan::first_strip(t, first);
      Index f = 0, asked = 0;
      for (Index i = 0; i < n; f = *end++) {
        // What this strip's faces reach and those of the next may, where they come to it in no sequence.
        for (const Index front = p.lattice ? 0 : std::min(n, i + p.reach + FacePlan::strip); asked < front; ++asked)
          detail::ask(read, first + asked);
        faces_of_strip<State>(p.within, p.tile_face[t] + f, p.tile_face[t] + *end, first, sum, read, face);
        for (const Index last = std::min(n, i + FacePlan::strip); i < last; ++i)
          cell(first + i, State(read(first + i)), sum[i]);
      }
    } else {
      rows_of_tile<State>(p.count, p.step, p.tile_face[t], first, first + n, counted_from(first, sum), read, face,
                          cell);
    }
  }

  /// Where element 0 would stand if `data` were element `first`: never read there.
  template <class T>
  static T* counted_from(Index first, T* data) {
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(data) - std::size_t(first) * sizeof(T));
  }

  /// A cell's state in a ring: in one line of the cache, where it fits one.
  template <class State>
  struct alignas(std::bit_ceil(std::min<std::size_t>(sizeof(State), 64))) Kept {
    State state;
  };
  static constexpr std::size_t most_kept = 1 << 19;  // bytes: what a second-level cache has room for beside the rest

  // All apart from what surrounds them, which would take the registers.

  /// The faces of a tile, each from one side. Cells' states are read in sequence, as far ahead as the next strip
  /// reaches, into a ring that stays in cache: a face finds its cell in one line there, whatever was flowing whence.
  template <class State, class FromOwner, class Read, class FaceFunction>
#if defined(__GNUC__)
  [[gnu::noinline]]
#endif
  static void
  strips_from(const FacePlan::Within* within, Index f, const Index* strip_end, Index first, Index last, Index reach,
              Kept<State>* ring, std::size_t mask, FromOwner from_owner, Read read, FaceFunction face) {
    constexpr Index cells_ahead = 96, faces_ahead = 128;
    const Index first_face = f;
    Index filled = first;
    for (Index c = first; c < last; c += FacePlan::strip) {
      for (const Index end = std::min(last, c + reach); filled < end; ++filled) {
        detail::ask(read, filled + cells_ahead);
        ring[std::size_t(filled - first) & mask].state = read(filled);
      }
      for (const Index end = first_face + *strip_end++; f < end; ++f) {
        detail::ask(face, f + faces_ahead);
        const Face at{f, first + within[f].owner, first + within[f].neighbour};
        const std::size_t cell = from_owner(at) ? within[f].owner : within[f].neighbour;
        face(at, ring[cell & mask].state);
      }
    }
  }

  /// The faces of a strip of a tile.
  template <class State, class Sum, class Read, class FaceFunction>
#if defined(__GNUC__)
  [[gnu::noinline]]
#endif
  static void
  faces_of_strip(const FacePlan::Within* within, Index f, Index end, Index first, Sum* sum, Read read,
                 FaceFunction face) {
    for (; f < end; ++f) {
      const Index o = within[f].owner, q = within[f].neighbour;
      const Both<Sum> both = face(Face{f, first + o, first + q}, State(read(first + o)), State(read(first + q)));
      sum[o] += both.owner;
      sum[q] += both.neighbour;
    }
  }

  /// The same row by row, their owners being the lower cells: after its faces a cell's sum is complete. sum[c] is of
  /// cell c.
  template <class State, class Sum, class Read, class FaceFunction, class CellFunction>
#if defined(__GNUC__)
  [[gnu::noinline]]
#endif
  static void
  rows_of_tile(const std::uint8_t* count, const std::uint16_t* step, Index f, Index first, Index last, Sum* sum,
               Read read, FaceFunction face, CellFunction cell) {
    for (Index c = first; c < last; ++c) {
      const State own = read(c);
      Sum total{};
      for (const Index end = f + count[c]; f < end; ++f) {
        const Index other = c + step[f];
        const Both<Sum> both = face(Face{f, c, other}, own, State(read(other)));
        total += both.owner;
        sum[other] += both.neighbour;
      }
      total += sum[c];
      cell(c, own, total);
    }
  }

  std::shared_ptr<const Body> body_;
  FacePlan plan_;
  int threads_ = 1;
};

}  // namespace krilu
