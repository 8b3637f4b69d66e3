// SPDX-License-Identifier: Apache-2.0
#include "mesh/face_plan_tiles.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "exec/tasks.hpp"
#include "krilu/error.hpp"
#include "mesh/buckets.hpp"
#include "mesh/dealt_faces.hpp"
#include "mesh/face_parcels.hpp"
#include "mesh/left_over.hpp"
#include "mesh/tile_rows.hpp"

namespace krilu::mesh {

namespace {

constexpr Index lanes = 32;       // of a warp
constexpr double lattice = 0.75;  // of the steps: lattices have 0.94 to 0.99, triangles 0.43, tetrahedra 0.01 to 0.14

constexpr auto itself = [](Index i) { return i; };

class Arrangement {
 public:
  Arrangement(const exec::Host& host, PlanData& plan, const Mesh& mesh, const TilePlaces& places,
              std::span<const Index> offsets, const FaceTuning& tuning)
      : host_(host), plan_(plan), mesh_(mesh), places_(places), tuning_(tuning), faces_(mesh.faces()) {
    plan.tile_cell.assign(offsets.begin(), offsets.end());
    if (plan.tile_cell.empty()) plan.tile_cell.push_back(0);
    tiles_ = Index(plan.tile_cell.size()) - 1;
    plan.view.tiles = tiles_;
    tiles_a_cell_ = plan.view.cells ? double(tiles_) / plan.view.cells : 0;
    for (Index t = 0; t < tiles_; ++t) plan.view.most_cells = std::max(plan.view.most_cells, cells_of(t));
    if (plan.view.most_cells > TileFace::most_cells) throw Error("a tile has more cells than 16 bits count");
  }

  void run(int orders) {
    if (tuning_.parcels) choose_slots();
    deal();
    // A host has the cells of faces within tiles in 16 bits; on a GPU loops over faces are flat.
    plan_.face_order.resize(std::size_t(faces_));
    if (tuning_.parcels)
      for (Buffer<Index>* cells : {&plan_.owner, &plan_.neighbour}) cells->resize(std::size_t(faces_));
    inner_faces();
    outer_faces(orders);
    plan_.view.listed = tuning_.parcels ? 0 : plan_.view.loose;
    if (tuning_.parcels && plan_.view.strategy == FaceStrategy::tiles) bring_home();
    put_loose();
    if (plan_.view.strategy == FaceStrategy::tiles)
      cut_lists();
    else
      accumulators();
    plan_.report.remainder_fraction = faces_ ? 0.5 * double(left_.size()) / faces_ : 0;
    put_left_over(plan_, plan_.tile_cell, left_, tuning_.long_row);
    if (tuning_.parcels) make_parcels(host_, plan_);
  }

 private:
  Index cells_of(Index t) const { return first_of(t + 1) - first_of(t); }
  Index first_of(Index t) const { return plan_.tile_cell[std::size_t(t)]; }
  /// The tile of a cell: tiles are nearly equal, so that the guess is hardly ever far off.
  Index tile_of(Index cell) const {
    Index t = std::min(tiles_ - 1, Index(tiles_a_cell_ * cell));
    for (int k = 0; k < 4; ++k) {
      if (first_of(t) > cell)
        --t;
      else if (first_of(t + 1) <= cell)
        ++t;
      else
        return t;
    }
    return Index(std::upper_bound(plan_.tile_cell.begin(), plan_.tile_cell.end(), cell) - plan_.tile_cell.begin()) - 1;
  }

  /// Where the cells of all faces stand; those within tiles go to their tiles, the others between them.
  void deal() {
    const Index hands = tiles_ * places_.parts_of_a_tile();
    const auto pieces = std::size_t(std::clamp<Index>(faces_ / 16 / std::max<Index>(1, hands), 1, host_.threads()));
    const auto first_of_piece = [&](std::size_t p) {
      return Index(std::int64_t(faces_) * std::int64_t(p) / std::int64_t(pieces));
    };
    dealt_.reserve(pieces);
    for (std::size_t p = 0; p < pieces; ++p) dealt_.emplace_back(first_of_piece(p + 1) - first_of_piece(p), hands);
    std::vector<std::vector<FaceCells>> between(pieces);
    std::atomic<bool> turned{false};
    for_each_task(host_, pieces, [&](std::size_t p) {
      constexpr Index ahead = 256;  // places are asked for while those of the faces before are at work
      const Index *const owner = mesh_.owner.data(), *const neighbour = mesh_.neighbour.data();
      const TilePlaces::View place = places_.view();
      DealtFaces& dealt = dealt_[p];
      bool some_turned = false;
      for (Index f = first_of_piece(p), end = first_of_piece(p + 1); f < end; ++f) {
        const Index later = f + std::min(ahead, end - 1 - f);
        __builtin_prefetch(&place[owner[later]]);
        __builtin_prefetch(&place[neighbour[later]]);
        // Which of the two is the lower one no core foresees: this is not to become a branch.
        const TilePlaces::Word o = place[owner[f]], n = place[neighbour[f]], low = std::min(o, n), high = o ^ n ^ low;
        const bool is_turned = o > n;
        some_turned |= is_turned;
        if (place.tile(low) == place.tile(high)) [[likely]]
          dealt.deal(place.part(low), TileFace(f, place.within(low), Index(high - low), is_turned));
        else
          between[p].push_back({f, place.place(o), place.place(n)});
      }
      if (some_turned) turned = true;
    });
    turned_ = turned;
    for (const std::vector<FaceCells>& some : between) between_.insert(between_.end(), some.begin(), some.end());
  }

  // --- order 0: faces within tiles ------------------------------------------------------------------------------
  /// So many places for the sums of a cell's faces that all but a few sums have one, as far as memory goes.
  void choose_slots() {
    plan_.view.stride = Index(std::bit_ceil(std::uint32_t(std::max<Index>(1, plan_.view.most_cells))));
    sums_.resize(std::size_t(plan_.view.cells));
    std::fill(sums_.begin(), sums_.end(), 0);
    for (const Buffer<Index>* cells : {&mesh_.owner, &mesh_.neighbour})  // by the mesh's numbers: only counts matter
      for (const Index c : *cells) ++sums_[std::size_t(c)];
    const Index most = std::min<Index>(tuning_.places / plan_.view.stride, most_slots);
    std::vector<std::int64_t> cells_with(std::size_t(most) + 1, 0);
    for (Index& sums : sums_) {
      ++cells_with[std::size_t(std::min(most, sums))];
      sums = 0;  // from now on: those that have a place
    }
    std::int64_t beyond = 0, larger = 0;
    slots_ = most;
    // One slot less leaves over a sum of each cell that has all of these.
    while (slots_ > 1) {
      larger += cells_with[std::size_t(slots_)];
      beyond += larger;
      if (double(beyond) > tuning_.crowded * 2 * faces_) break;
      --slots_;
    }
  }

  // The faces in rows of tile t, from place `at` of the plan on, and where the next ones go.

  /// By lower cell, then by higher, all of them being owners. What a byte cannot count is left out.
  Index place_by_rows(Index t, TileRows& rows, Index at, std::vector<FaceCells>& left_out) {
    constexpr Index most = std::numeric_limits<std::uint8_t>::max();
    for (Index i = rows.first(); i < rows.last(); ++i) {
      const Index before = at;
      rows.sort(i, i + 1);
      for (const TileFace f : rows.of(i)) {
        if (at - before == most) {
          left_out.push_back(f.of(first_of(t)));
          continue;
        }
        plan_.face_order[std::size_t(at)] = f.face();
        plan_.step[std::size_t(at++)] = std::uint16_t(f.step());
      }
      plan_.count[std::size_t(first_of(t) + i)] = std::uint8_t(at - before);
    }
    return at;
  }

  /// What place_by_strips sees of the steps from lower to higher cells.
  struct Steps {
    Index reach = 0;
    std::int64_t all = 0, repeated = 0;  // of some cells; repeated: those that are also the cell before's
    void join(const Steps& o) {
      reach = std::max(reach, o.reach);
      all += o.all;
      repeated += o.repeated;
    }
    void look_at(std::span<const TileFace> row, std::span<const TileFace> before) {
      all += std::int64_t(row.size());
      for (std::size_t k = 0; k < std::min(row.size(), before.size()); ++k)
        repeated += row[k].step() == before[k].step();
    }
  };

  /// Strip after strip; a strip's faces, by rows, from each quarter of them in turn: one face after the other of the
  /// same cell would have to wait for its sum to arrive in cache. begin: where the tile's faces do.
  Index place_by_strips(Index t, TileRows& rows, Index begin, Index at, Steps& steps) {
    constexpr Index hands = 4, looked_at = 4;  // of so many cells one
    Index* strip_end = plan_.strip_end.data() + FacePlan::first_strip(t, first_of(t)) + rows.first() / FacePlan::strip;
    for (Index first = rows.first(); first < rows.last(); first += FacePlan::strip) {
      const Index end = std::min(rows.last(), first + FacePlan::strip);
      rows.sort(first, end);
      for (Index i = first + 1; i < end; i += looked_at) steps.look_at(rows.of(i), rows.of(i - 1));
      const std::span<const TileFace> rows_of_strip = rows.of(first, end);
      const auto faces = Index(rows_of_strip.size());
      // A quarter begins at each hand; the last one may be short.
      const Index quarter = (faces + hands - 1) / hands, whole = quarter > 0 ? (faces - 1) / quarter : 0;
      const Index last = faces - whole * quarter;
      Index reach = steps.reach;
      for (Index hand = 0; hand <= whole; ++hand) {
        const TileFace* from = rows_of_strip.data() + hand * quarter;
        Index to = at + hand;
        for (Index k = 0; k < (hand < whole ? quarter : last); ++k) {
          const TileFace f = from[k];
          const Index lower = f.lower(), other = lower + f.step();
          // Who is the owner, no processor foresees.
          const std::uint32_t both = std::rotl(std::uint32_t(other) << 16 | std::uint32_t(lower), 16 * f.turned());
          plan_.face_order[std::size_t(to)] = f.face();
          plan_.within[std::size_t(to)] = {std::uint16_t(both), std::uint16_t(both >> 16)};
          reach = std::max(reach, other - first + 1);
          to += whole + (k < last);  // so many hands are left
        }
      }
      steps.reach = reach;
      at += faces;
      *strip_end++ = at - begin;
    }
    return at;
  }

  /// For 32 lower cells the first faces of all, then the second, and so on: the threads of a warp meet cells that stand
  /// side by side. What finds no place for its sums is left out.
  Index place_by_lanes(Index t, TileRows& rows, Index at, std::vector<FaceCells>& left_out) {
    for (Index i = rows.first(); i < rows.last(); i += lanes) {
      const Index last = std::min(rows.last(), i + lanes);
      rows.sort(i, last);
      bool more = true;
      for (std::size_t rank = 0; more; ++rank) {
        more = false;
        for (Index c = i; c < last; ++c) {
          const std::span<const TileFace> row = rows.of(c);
          if (rank >= row.size()) continue;
          more = true;
          const FaceCells f = row[rank].of(first_of(t));
          Index &own = sums_[std::size_t(f.owner)], &other = sums_[std::size_t(f.neighbour)];
          if (own < slots_ && other < slots_) {
            ++own, ++other;
            put(at++, f);
          } else {
            left_out.push_back(f);
          }
        }
      }
    }
    return at;
  }
  /// Face k of the plan, where its cells are listed.
  void put(Index k, const FaceCells& f) {
    plan_.face_order[std::size_t(k)] = f.face;
    plan_.owner[std::size_t(k - plan_.view.listed)] = f.owner;
    plan_.neighbour[std::size_t(k - plan_.view.listed)] = f.neighbour;
  }

  void inner_faces() {
    const auto tiles = std::size_t(tiles_);
    const Index parts = places_.parts_of_a_tile();
    std::vector<Index> begin(tiles + 1, 0);  // of each tile's faces, before any is left out
    for (std::size_t t = 0; t < tiles; ++t) {
      begin[t + 1] = begin[t];
      for (const DealtFaces& dealt : dealt_)
        for (Index part = 0; part < parts; ++part) begin[t + 1] += dealt.dealt_to(Index(t) * parts + part);
    }
    const auto within = std::size_t(begin[tiles]);
    if (!tuning_.parcels && turned_) {
      plan_.within.resize(within);
      plan_.strip_end.resize(std::size_t(FacePlan::first_strip(tiles_, first_of(tiles_))));
      std::fill(plan_.strip_end.begin(), plan_.strip_end.end(), 0);  // some numbers are no tile's
    }
    if (!tuning_.parcels && !turned_) {
      plan_.step.resize(within);
      plan_.count.resize(std::size_t(plan_.view.cells));
    }
    plan_.tile_face.resize(tiles + 1);
    plan_.tile_face[0] = 0;
    std::vector<std::vector<FaceCells>> left_out(tiles);
    std::atomic<Index> next{0};
    std::mutex alone;
    Steps steps;
    host_.parallel(host_.threads(), [&](int, int) {
      TileRows rows;
      Steps own;
      for (Index t; (t = next.fetch_add(1)) < tiles_;) {
        const auto k = std::size_t(t);
        Index at = begin[k];
        for (Index part = 0; part < parts; ++part) {
          const Index first = part * TilePlaces::most_in_a_part();
          if (first >= cells_of(t)) break;
          rows.fill(dealt_, t * parts + part, first, std::min(cells_of(t), first + TilePlaces::most_in_a_part()));
          at = tuning_.parcels ? place_by_lanes(t, rows, at, left_out[k])
               : turned_       ? place_by_strips(t, rows, begin[k], at, own)
                               : place_by_rows(t, rows, at, left_out[k]);
        }
        plan_.tile_face[k + 1] = at - begin[k];
      }
      const std::lock_guard<std::mutex> lock(alone);
      steps.join(own);
    });
    dealt_.clear();
    plan_.view.reach = steps.reach;
    plan_.view.lattice = steps.repeated >= lattice * steps.all;
    std::partial_sum(plan_.tile_face.begin(), plan_.tile_face.end(), plan_.tile_face.begin());
    plan_.view.loose = plan_.tile_face[tiles];
    // Where something was left out, what follows moves up. It stands with the faces between tiles, after them.
    for (std::size_t t = 0; t < tiles; ++t) {
      const Index from = begin[t], to = plan_.tile_face[t], count = plan_.tile_face[t + 1] - to;
      if (from != to) {
        const auto move_up = [&](auto& buffer) {
          if (!buffer.empty()) std::copy_n(buffer.begin() + from, count, buffer.begin() + to);
        };
        move_up(plan_.face_order);
        move_up(plan_.owner);
        move_up(plan_.neighbour);
        move_up(plan_.step);
        move_up(plan_.within);
      }
      does_not_fit_.insert(does_not_fit_.end(), left_out[t].begin(), left_out[t].end());
    }
    if (!plan_.step.empty()) plan_.step.resize(std::size_t(plan_.view.loose));
    if (!plan_.within.empty()) plan_.within.resize(std::size_t(plan_.view.loose));
  }

  // --- order 1 and more: faces between tiles --------------------------------------------------------------------
  /// Faces between tiles by lower tile, then higher tile, then cells; those of chosen orders first, order by order,
  /// pairs that share no tile together.
  void outer_faces(int orders) {
    const auto cut = Index(between_.size());
    plan_.report.cut_fraction = faces_ ? double(cut) / faces_ : 0;
    Buckets<FaceCells> at = in_buckets(
        host_, cut, tiles_, [&](Index i) { return tile_of(between_[std::size_t(i)].lower()); },
        [&](Index i) { return between_[std::size_t(i)]; });
    between_ = {};
    for_each_task(host_, std::size_t(tiles_), [&](std::size_t t) {
      struct Keyed {
        std::uint64_t high, low;
        FaceCells face;
        bool operator<(const Keyed& o) const { return high != o.high ? high < o.high : low < o.low; }
      };
      const std::span<FaceCells> faces(at.item.data() + at.offsets[t], at.item.data() + at.offsets[t + 1]);
      std::vector<Keyed> sorted;
      for (const FaceCells& f : faces)
        sorted.push_back({std::uint64_t(tile_of(f.higher())) << 32 | std::uint32_t(f.lower()),
                          std::uint64_t(f.higher()) << 32 | std::uint32_t(f.face), f});
      std::sort(sorted.begin(), sorted.end());
      std::transform(sorted.begin(), sorted.end(), faces.begin(), [](const Keyed& k) { return k.face; });
    });
    cut_from_ = std::move(at.offsets);
    loose_ = std::move(at.item);
    chosen_ = 0;
    if (plan_.view.strategy == FaceStrategy::diagonal) choose_orders(orders);
    loose_.insert(loose_.end(), does_not_fit_.begin(), does_not_fit_.end());
  }
  /// How far apart the tiles of a face's cells stand.
  Index order_of(const FaceCells& f) const { return tile_of(f.higher()) - tile_of(f.lower()); }

  /// Which diagonals are dense enough for blocks (Algorithm 4), and their faces in classes.
  void choose_orders(int orders) {
    const auto cut = Index(loose_.size());
    std::vector<Index> faces_of(std::size_t(tiles_), 0);
    for (const FaceCells& f : loose_) ++faces_of[std::size_t(order_of(f))];
    std::vector<Index> rank(std::size_t(tiles_), -1);
    const double least = tuning_.density * plan_.view.loose / std::max<Index>(1, tiles_);
    plan_.report.orders = {0};
    std::vector<Index> dense;
    for (Index k = 1; k < tiles_; ++k) {
      const double density = double(faces_of[std::size_t(k)]) / (tiles_ - k);
      const bool pays = density >= std::max(1.0, least) && faces_of[std::size_t(k)] >= tuning_.worth * cut;
      if (faces_of[std::size_t(k)] > 0 && (orders >= 0 ? k <= orders : pays)) dense.push_back(k);
    }
    if (orders < 0 && Index(dense.size()) > tuning_.orders) {
      std::stable_sort(dense.begin(), dense.end(),
                       [&](Index i, Index j) { return faces_of[std::size_t(i)] > faces_of[std::size_t(j)]; });
      dense.resize(std::size_t(tuning_.orders));
      std::sort(dense.begin(), dense.end());
    }
    for (const Index k : dense) {
      rank[std::size_t(k)] = Index(plan_.report.orders.size()) - 1;
      plan_.report.orders.push_back(int(k));
    }
    const Index ranks = Index(dense.size());
    // Pairs (t, t + k) and (t + k, t + 2k) share a tile: every second run of k tiles is a class.
    const auto class_of = [&](Index i) {
      const FaceCells& f = loose_[std::size_t(i)];
      const Index k = order_of(f);
      return rank[std::size_t(k)] < 0 ? 2 * ranks : 2 * rank[std::size_t(k)] + tile_of(f.lower()) / k % 2;
    };
    Buckets<FaceCells> classes =
        in_buckets(host_, cut, 2 * ranks + 1, class_of, [&](Index i) { return loose_[std::size_t(i)]; });
    loose_ = std::move(classes.item);
    chosen_ = classes.offsets[std::size_t(2 * ranks)];
    plan_.class_pair = {0};
    plan_.pair_slot = {0};
    plan_.slot_face = {plan_.view.loose};
    for (Index c = 0; c < 2 * ranks; ++c) {
      Index k = classes.offsets[std::size_t(c)];
      while (k < classes.offsets[std::size_t(c) + 1]) {
        const Index begin = k, t = tile_of(loose_[std::size_t(k)].lower());
        while (k < classes.offsets[std::size_t(c) + 1] && tile_of(loose_[std::size_t(k)].lower()) == t) ++k;
        add_pair(begin, k);
      }
      if (Index(plan_.pair_slot.size()) - 1 > plan_.class_pair.back())
        plan_.class_pair.push_back(Index(plan_.pair_slot.size()) - 1);
    }
    plan_.view.classes = Index(plan_.class_pair.size()) - 1;
  }
  Index owner_of(Index k) const { return loose_[std::size_t(k)].owner; }
  Index neighbour_of(Index k) const { return loose_[std::size_t(k)].neighbour; }
  Index id_of(Index k) const { return home_.empty() ? plan_.view.loose + k : home_[std::size_t(k)]; }

  /// Loose faces begin .. end-1 are those between two tiles: in slots that meet no cell twice.
  void add_pair(Index begin, Index end) {
    constexpr Index bits = 64;
    met_[0].resize(std::size_t(plan_.view.most_cells));
    met_[1].resize(std::size_t(plan_.view.most_cells));
    const FaceCells& any = loose_[std::size_t(begin)];
    const Index low = first_of(tile_of(any.lower())), high = first_of(tile_of(any.higher()));
    const auto met = [&](Index cell) -> Met& {
      return cell >= high ? met_[1][std::size_t(cell - high)] : met_[0][std::size_t(cell - low)];
    };
    slot_of_.clear();
    for (Index k = begin; k < end; ++k) {
      const FaceCells& f = loose_[std::size_t(k)];
      Met &i = met(f.owner), &j = met(f.neighbour);
      Index s = Index(std::countr_one(i.used | j.used));
      if (s < bits) {
        i.used |= std::uint64_t(1) << s;
        j.used |= std::uint64_t(1) << s;
      } else {
        s = bits + std::max(i.beyond, j.beyond);
        i.beyond = j.beyond = s - bits + 1;
      }
      slot_of_.emplace_back(s, f);
    }
    for (const auto& [slot, f] : slot_of_) met(f.owner) = met(f.neighbour) = {};
    std::stable_sort(slot_of_.begin(), slot_of_.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    for (Index k = begin; k < end; ++k) {
      const auto& [slot, face] = slot_of_[std::size_t(k - begin)];
      if (k > begin && slot != slot_of_[std::size_t(k - begin) - 1].first)
        plan_.slot_face.push_back(plan_.view.loose + k);
      loose_[std::size_t(k)] = face;
    }
    plan_.slot_face.push_back(plan_.view.loose + end);
    plan_.pair_slot.push_back(Index(plan_.slot_face.size()) - 1);
  }

  /// Accumulators for the cells of chosen pairs; what is left goes to the rest.
  void accumulators() {
    const auto cells = std::size_t(plan_.view.cells);
    std::vector<Index> number(cells, 0);
    for (Index k = 0; k < chosen_; ++k) number[std::size_t(owner_of(k))] = number[std::size_t(neighbour_of(k))] = 1;
    plan_.touched.assign(std::size_t(tiles_) + 1, 0);
    for (Index t = 0; t < tiles_; ++t) {
      for (auto c = std::size_t(first_of(t)); c < std::size_t(first_of(t + 1)); ++c)
        if (number[c]) {
          number[c] = Index(plan_.touched_cell.size());
          plan_.touched_cell.push_back(Index(c));
        }
      plan_.touched[std::size_t(t) + 1] = Index(plan_.touched_cell.size());
    }
    plan_.view.touched_cells = Index(plan_.touched_cell.size());
    plan_.pair_cells.resize(std::size_t(chosen_));
    for (Index k = 0; k < chosen_; ++k)
      plan_.pair_cells[std::size_t(k)] = {number[std::size_t(owner_of(k))], number[std::size_t(neighbour_of(k))]};
    for (Index k = chosen_; k < Index(loose_.size()); ++k) leave(k);
  }
  /// Loose face k is left over, for both of its cells.
  void leave(Index k) {
    const Index f = id_of(k);
    left_.push_back({owner_of(k), {f, neighbour_of(k)}});
    left_.push_back({neighbour_of(k), {~f, owner_of(k)}});
  }

  /// Cut faces go behind the faces of their lower tile: flat loops over faces meet each cell's faces together.
  void bring_home() {
    const auto tiles = std::size_t(tiles_);
    Buffer<Index> first(tiles + 1);
    for (std::size_t t = 0; t <= tiles; ++t) first[t] = plan_.tile_face[t] + cut_from_[t];
    for (Buffer<Index>* of_faces : {&plan_.face_order, &plan_.owner, &plan_.neighbour}) {
      Buffer<Index> moved(of_faces->size());
      for_each_task(host_, tiles, [&](std::size_t t) {
        std::copy(of_faces->begin() + plan_.tile_face[t], of_faces->begin() + plan_.tile_face[t + 1],
                  moved.begin() + first[t]);
      });
      *of_faces = std::move(moved);
    }
    home_.resize(loose_.size());
    for (std::size_t t = 0; t < tiles; ++t)
      std::iota(home_.begin() + cut_from_[t], home_.begin() + cut_from_[t + 1],
                first[t] + plan_.tile_face[t + 1] - plan_.tile_face[t]);
    std::iota(home_.begin() + cut_from_[tiles], home_.end(), first[tiles]);  // what does not fit stays at the end
    plan_.tile_face = std::move(first);
    plan_.view.loose = plan_.tile_face[tiles];
  }
  void put_loose() {
    if (!tuning_.parcels)
      for (Buffer<Index>* cells : {&plan_.owner, &plan_.neighbour}) cells->resize(loose_.size());
    for (Index k = 0; k < Index(loose_.size()); ++k) put(id_of(k), loose_[std::size_t(k)]);
  }

  // --- strategy tiles: both tiles of a cut face compute it ------------------------------------------------------
  void cut_lists() {
    const Index all = Index(loose_.size()), cut = all - Index(does_not_fit_.size());
    for (Index k = cut; k < all; ++k) leave(k);
    // Twice: as seen by the owner's tile, and by the neighbour's.
    const auto cell_of = [&](Index i) { return i % 2 == 0 ? owner_of(i / 2) : neighbour_of(i / 2); };
    const Buckets<Index> at = in_buckets(
        host_, 2 * cut, tiles_, [&](Index i) { return tile_of(cell_of(i)); }, itself);
    const auto as_seen = [&](Index i) {
      const Index f = id_of(i / 2);
      return FacePlan::Cut{i % 2 == 0 ? f : ~f, cell_of(i ^ 1)};
    };
    plan_.cut_of.resize(std::size_t(tiles_) + 1);
    plan_.cut_of[0] = 0;
    Buffer<std::uint8_t> fits(at.item.size());
    for_each_task(host_, std::size_t(tiles_), [&](std::size_t t) {
      Index entries = 0;
      Runs runs;
      for (auto k = std::size_t(at.offsets[t]); k < std::size_t(at.offsets[t + 1]); ++k) {
        const Index i = at.item[k];
        if (tuning_.parcels) {
          Index& sums = sums_[std::size_t(cell_of(i))];
          fits[k] = sums < slots_ && runs.of(as_seen(i), entries) >= 0;
          sums += fits[k];
        } else {
          fits[k] = 1;
        }
        entries += fits[k];
      }
      plan_.cut_of[t + 1] = entries;
    });
    std::partial_sum(plan_.cut_of.begin(), plan_.cut_of.end(), plan_.cut_of.begin());
    plan_.cut.resize(std::size_t(plan_.cut_of[std::size_t(tiles_)]));
    plan_.cut_cell.resize(plan_.cut.size());
    for_each_task(host_, std::size_t(tiles_), [&](std::size_t t) {
      auto entry = std::size_t(plan_.cut_of[t]);
      for (auto k = std::size_t(at.offsets[t]); k < std::size_t(at.offsets[t + 1]); ++k)
        if (fits[k]) {
          plan_.cut[entry] = as_seen(at.item[k]);
          plan_.cut_cell[entry++] = cell_of(at.item[k]) - first_of(Index(t));
        }
    });
    for (std::size_t k = 0; k < at.item.size(); ++k)
      if (!fits[k]) left_.push_back({cell_of(at.item[k]), as_seen(at.item[k])});
  }

  const exec::Host& host_;
  PlanData& plan_;
  const Mesh& mesh_;
  const TilePlaces& places_;
  const FaceTuning& tuning_;
  double tiles_a_cell_ = 0;
  Index faces_, tiles_ = 0, chosen_ = 0;  // chosen_: loose faces of chosen orders
  std::vector<DealtFaces> dealt_;         // faces within tiles, in pieces of the mesh's sequence
  std::vector<FaceCells> between_;        // the others
  Buffer<FaceCells> loose_;               // those and what does not fit, in their own sequence
  Buffer<Index> cut_from_;                // of each tile: the first loose face that has its lower cell there
  Buffer<Index> home_;                    // of loose faces: their numbers, where they do not stand last
  bool turned_ = false;                   // whether some face's owner is its higher cell
  Index slots_ = 0;                       // places of a cell for the sums of its faces
  Buffer<Index> sums_;                    // of each cell: those that have a place
  struct Met {                            // of a cell in the pair at work
    std::uint64_t used = 0;
    Index beyond = 0;
  };
  std::vector<Met> met_[2];
  std::vector<std::pair<Index, FaceCells>> slot_of_;
  std::vector<FaceCells> does_not_fit_;
  std::vector<LeftOver> left_;
};

}  // namespace

void arrange_tiles(const exec::Host& host, PlanData& plan, const Mesh& mesh, const TilePlaces& places,
                   std::span<const Index> offsets, const FaceTuning& tuning, int orders) {
  Arrangement(host, plan, mesh, places, offsets, tuning).run(orders);
}

}  // namespace krilu::mesh
