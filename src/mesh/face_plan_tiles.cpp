// SPDX-License-Identifier: Apache-2.0
#include "mesh/face_plan_tiles.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "mesh/face_parcels.hpp"
#include "mesh/left_over.hpp"
#include "mesh/tasks.hpp"

namespace krilu::mesh {

namespace {

constexpr Index lanes = 32;       // of a warp
constexpr double lattice = 0.75;  // of the steps: lattices have 0.94 to 0.99, triangles 0.43, tetrahedra 0.01 to 0.14
constexpr Index farthest = std::numeric_limits<std::uint16_t>::max();

/// What make(i) gives of 0 <= i < n, in buckets and in sequence within each: `item` holds those of bucket k at
/// offsets[k] .. offsets[k+1]-1. key(i) >= buckets: left out. Shared by threads; the same for any number of them.
template <class T>
struct Buckets {
  Buffer<Index> offsets;
  Buffer<T> item;
};
template <class Key, class Make>
auto in_buckets(const exec::Host& host, Index n, Index buckets, Key key, Make make) {
  const int team = n > 100000 ? std::clamp(int(n / std::max<Index>(1, buckets)), 1, host.threads()) : 1;
  const auto B = std::size_t(buckets);
  Buffer<Index> count(std::size_t(team) * B);
  std::fill(count.begin(), count.end(), 0);
  const auto piece = [&](int t) { return Index(std::int64_t(n) * t / team); };
  const auto each = [&](auto f) {
    std::atomic<int> next{0};
    host.parallel(team, [&](int, int) {
      for (int t; (t = next.fetch_add(1)) < team;) f(t);
    });
  };
  each([&](int t) {
    Index* const own = count.data() + std::size_t(t) * B;
    for (Index i = piece(t); i < piece(t + 1); ++i)
      if (const Index k = key(i); k < buckets) ++own[k];
  });
  Buckets<decltype(make(Index{}))> out;
  out.offsets.resize(B + 1);
  Index total = 0;
  for (std::size_t k = 0; k < B; ++k) {
    out.offsets[k] = total;
    for (int t = 0; t < team; ++t) total += std::exchange(count[std::size_t(t) * B + k], total);
  }
  out.offsets[B] = total;
  out.item.resize(std::size_t(total));
  each([&](int t) {
    Index* const own = count.data() + std::size_t(t) * B;
    for (Index i = piece(t); i < piece(t + 1); ++i)
      if (const Index k = key(i); k < buckets) out.item[std::size_t(own[k]++)] = make(i);
  });
  return out;
}
constexpr auto itself = [](Index i) { return i; };

/// A face and its cells.
struct Cells {
  Index face, owner, neighbour;
  Index lower() const { return std::min(owner, neighbour); }
  Index higher() const { return std::max(owner, neighbour); }
};

class Arrangement {
 public:
  Arrangement(const exec::Host& host, PlanData& plan, const Buffer<Index>& a, const Buffer<Index>& b,
              std::span<const Index> offsets, const FaceTuning& tuning)
      : host_(host), plan_(plan), a_(a), b_(b), tuning_(tuning), faces_(Index(a.size())) {
    plan.tile_cell.assign(offsets.begin(), offsets.end());
    if (plan.tile_cell.empty()) plan.tile_cell.push_back(0);
    tiles_ = Index(plan.tile_cell.size()) - 1;
    plan.view.tiles = tiles_;
    tiles_a_cell_ = plan.view.cells ? double(tiles_) / plan.view.cells : 0;
    for (Index t = 0; t < tiles_; ++t) plan.view.most_cells = std::max(plan.view.most_cells, cells_of(t));
  }

  void run(int orders) {
    if (tuning_.parcels) choose_slots();
    turned_ = some_turned();
    // By the tile of the lower cell: faces within tiles, and then those between them.
    const Buckets<Cells> at = in_buckets(
        host_, faces_, 2 * tiles_,
        [&](Index f) {
          const auto [low, high] = std::minmax(a_[std::size_t(f)], b_[std::size_t(f)]);
          const Index t = tile_of(low);
          return high < first_of(t + 1) ? t : tiles_ + t;
        },
        [&](Index f) {
          return Cells{f, a_[std::size_t(f)], b_[std::size_t(f)]};
        });
    inner_faces(at);
    outer_faces(at, orders);
    loose_ = faces_ - plan_.view.loose;
    if (tuning_.parcels && plan_.view.strategy == FaceStrategy::tiles) bring_home();
    // A host has the cells of faces within tiles in 16 bits; on a GPU loops over faces are flat.
    const Index listed = plan_.view.listed = tuning_.parcels ? 0 : plan_.view.loose;
    plan_.owner.resize(std::size_t(faces_ - listed));
    plan_.neighbour.resize(plan_.owner.size());
    host_.for_each_range(plan_.owner.size(), [&](Index begin, Index end) {
      for (auto k = std::size_t(begin); k < std::size_t(end); ++k) {
        const auto f = std::size_t(plan_.face_order[k + std::size_t(listed)]);
        plan_.owner[k] = a_[f];
        plan_.neighbour[k] = b_[f];
      }
    });
    if (plan_.view.strategy == FaceStrategy::tiles)
      cut_lists();
    else
      accumulators();
    plan_.report.remainder_fraction = faces_ ? 0.5 * double(left_.size()) / faces_ : 0;
    put_left_over(plan_, plan_.tile_cell, left_, tuning_.long_row);
    if (tuning_.parcels) make_parcels(host_, plan_);
  }

 private:
  bool some_turned() const {
    std::atomic<bool> found{false};
    host_.for_each_range(std::size_t(faces_), [&](Index begin, Index end) {
      if (!found && !std::equal(a_.begin() + begin, a_.begin() + end, b_.begin() + begin, std::less<>())) found = true;
    });
    return found;
  }
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

  // --- order 0: faces within tiles ------------------------------------------------------------------------------
  /// A face in the row of its lower cell: how far away the other cell is, the face, and whether it is turned, its lower
  /// cell being the neighbour. Rows are sorted by this.
  class InRow {
   public:
    InRow() = default;
    explicit InRow(const Cells& f)
        : word_(std::uint64_t(f.higher() - f.lower()) << 32 | std::uint64_t(f.face) << 1 | (f.owner > f.neighbour)) {}
    Index step() const { return Index(word_ >> 32); }
    Index face() const { return Index((word_ & 0xffffffffu) >> 1); }
    bool turned() const { return word_ & 1; }
    bool operator<(InRow o) const { return word_ < o.word_; }

   private:
    std::uint64_t word_;
  };
  /// The rows of a tile's cells. Work space of one thread.
  struct Rows {
    std::vector<InRow> face;
    std::vector<Index> end;  // of each cell's
    std::span<const InRow> of(Index i) const {
      const Index begin = i > 0 ? end[std::size_t(i) - 1] : 0;
      return {face.data() + begin, face.data() + end[std::size_t(i)]};
    }
  };
  void sort_rows(Index t, std::span<const Cells> faces, Rows& rows) const {
    const Index first = first_of(t), cells = cells_of(t);
    rows.end.assign(std::size_t(cells) + 1, 0);
    for (const Cells& f : faces) ++rows.end[std::size_t(f.lower() - first) + 1];
    std::partial_sum(rows.end.begin(), rows.end.end(), rows.end.begin());
    rows.face.resize(faces.size());
    for (const Cells& f : faces) rows.face[std::size_t(rows.end[std::size_t(f.lower() - first)]++)] = InRow(f);
    constexpr Index few = 32;
    for (Index i = 0, begin = 0; i < cells; begin = rows.end[std::size_t(i++)]) {
      InRow *const from = rows.face.data() + begin, *const to = rows.face.data() + rows.end[std::size_t(i)];
      if (to - from > few) {
        std::sort(from, to);
        continue;
      }
      for (InRow* k = from; k < to; ++k) {
        const InRow f = *k;
        InRow* at = k;
        for (; at > from && f < at[-1]; --at) *at = at[-1];
        *at = f;
      }
    }
  }
  /// So many places for the sums of a cell's faces that all but a few sums have one, as far as memory goes.
  void choose_slots() {
    plan_.view.stride = Index(std::bit_ceil(std::uint32_t(std::max<Index>(1, plan_.view.most_cells))));
    sums_.resize(std::size_t(plan_.view.cells));
    std::fill(sums_.begin(), sums_.end(), 0);
    for (const Buffer<Index>* cells : {&a_, &b_})
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

  /// By lower cell, then by higher, all of them being owners. What fits no bytes is left out. How many are not.
  Index place_by_rows(Index t, const Rows& rows, Index at, std::vector<Index>& left_out) {
    constexpr Index most = std::numeric_limits<std::uint8_t>::max();
    const Index begin = at;
    for (Index i = 0; i < cells_of(t); ++i) {
      const Index before = at;
      for (const InRow& f : rows.of(i)) {
        if (at - before == most || f.step() > farthest) {
          left_out.push_back(f.face());
          continue;
        }
        plan_.face_order[std::size_t(at)] = f.face();
        plan_.step[std::size_t(at++)] = std::uint16_t(f.step());
      }
      plan_.count[std::size_t(first_of(t) + i)] = std::uint8_t(at - before);
    }
    return at - begin;
  }

  /// What place_by_strips sees of the steps from lower to higher cells.
  struct Steps {
    Index reach = 0;
    std::int64_t all = 0, repeated = 0;  // repeated: those of the cell before, among its own
    void join(const Steps& o) {
      reach = std::max(reach, o.reach);
      all += o.all;
      repeated += o.repeated;
    }
  };
  static std::int64_t repeated(std::span<const InRow> row, std::span<const InRow> before) {
    std::int64_t n = 0;
    for (std::size_t k = 0; k < std::min(row.size(), before.size()); ++k) n += row[k].step() == before[k].step();
    return n;
  }

  /// Strip after strip; a strip's faces, by rows, from each quarter of them in turn: one face after the other of the
  /// same cell would have to wait for its sum to arrive in cache.
  Index place_by_strips(Index t, const Rows& rows, Index at, std::vector<Index>& left_out, Steps& steps) {
    struct Placed {
      Index face;
      FacePlan::Within cells;
    };
    constexpr Index hands = 4;
    const Index begin = at;
    std::vector<Placed> strip;
    Index* strip_end = plan_.strip_end.data() + FacePlan::first_strip(t, first_of(t));
    for (Index i = 0; i < cells_of(t);) {
      strip.clear();
      const Index first = i;
      for (const Index end = std::min(cells_of(t), i + FacePlan::strip); i < end; ++i) {
        steps.all += std::int64_t(rows.of(i).size());
        if (i > 0) steps.repeated += repeated(rows.of(i), rows.of(i - 1));
        for (const InRow& f : rows.of(i)) {
          const auto own = std::uint16_t(i), other = std::uint16_t(i + f.step());
          if (i + f.step() > farthest) {
            left_out.push_back(f.face());
            continue;
          }
          strip.push_back({f.face(), f.turned() ? FacePlan::Within{other, own} : FacePlan::Within{own, other}});
          steps.reach = std::max(steps.reach, other - first + 1);
        }
      }
      const auto faces = Index(strip.size()), quarter = (faces + hands - 1) / hands;
      for (Index in_turn = 0; in_turn < quarter; ++in_turn)
        for (Index f = in_turn; f < faces; f += quarter) {
          plan_.face_order[std::size_t(at)] = strip[std::size_t(f)].face;
          plan_.within[std::size_t(at++)] = strip[std::size_t(f)].cells;
        }
      *strip_end++ = at - begin;
    }
    return at - begin;
  }

  /// For 32 lower cells the first faces of all, then the second, and so on: the threads of a warp meet cells that stand
  /// side by side. What finds no place for its sums is left out.
  Index place_by_lanes(Index t, const Rows& rows, Index at, std::vector<Index>& left_out) {
    const Index begin = at;
    for (Index i = 0; i < cells_of(t); i += lanes) {
      const Index last = std::min(cells_of(t), i + lanes);
      bool more = true;
      for (std::size_t rank = 0; more; ++rank) {
        more = false;
        for (Index c = i; c < last; ++c) {
          const std::span<const InRow> row = rows.of(c);
          if (rank >= row.size()) continue;
          more = true;
          const Index lower = first_of(t) + c;
          Index &own = sums_[std::size_t(lower)], &other = sums_[std::size_t(lower + row[rank].step())];
          if (own < slots_ && other < slots_) {
            ++own, ++other;
            plan_.face_order[std::size_t(at++)] = row[rank].face();
          } else {
            left_out.push_back(row[rank].face());
          }
        }
      }
    }
    return at - begin;
  }

  void inner_faces(const Buckets<Cells>& at) {
    const auto tiles = std::size_t(tiles_), within = std::size_t(at.offsets[tiles]);
    plan_.face_order.resize(std::size_t(faces_));
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
    std::vector<std::vector<Index>> left_out(tiles);
    std::atomic<Index> next{0};
    std::mutex alone;
    Steps steps;
    host_.parallel(host_.threads(), [&](int, int) {
      Rows rows;
      Steps own;
      for (Index t; (t = next.fetch_add(1)) < tiles_;) {
        const auto k = std::size_t(t);
        const Index begin = at.offsets[k];
        sort_rows(t, {at.item.data() + begin, at.item.data() + at.offsets[k + 1]}, rows);
        plan_.tile_face[k + 1] = tuning_.parcels ? place_by_lanes(t, rows, begin, left_out[k])
                                 : turned_       ? place_by_strips(t, rows, begin, left_out[k], own)
                                                 : place_by_rows(t, rows, begin, left_out[k]);
      }
      const std::lock_guard<std::mutex> lock(alone);
      steps.join(own);
    });
    plan_.view.reach = steps.reach;
    plan_.view.lattice = steps.repeated >= lattice * steps.all;
    std::partial_sum(plan_.tile_face.begin(), plan_.tile_face.end(), plan_.tile_face.begin());
    plan_.view.loose = plan_.tile_face[tiles];
    // Where something was left out, what follows moves up. It stands with the faces between tiles, after them.
    for (std::size_t t = 0; t < tiles; ++t) {
      const Index from = at.offsets[t], to = plan_.tile_face[t], count = plan_.tile_face[t + 1] - to;
      if (from != to) {
        const auto move_up = [&](auto& buffer) {
          if (!buffer.empty()) std::copy_n(buffer.begin() + from, count, buffer.begin() + to);
        };
        move_up(plan_.face_order);
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
  void outer_faces(const Buckets<Cells>& all, int orders) {
    const auto lower = [&](Index f) { return std::min(a_[std::size_t(f)], b_[std::size_t(f)]); };
    const auto higher = [&](Index f) { return std::max(a_[std::size_t(f)], b_[std::size_t(f)]); };
    Buckets<Index> at;
    at.offsets.assign(all.offsets.begin() + tiles_, all.offsets.end());
    const Index within = at.offsets.front();
    for (Index& offset : at.offsets) offset -= within;
    at.item.resize(std::size_t(at.offsets.back()));
    for_each_task(host_, std::size_t(tiles_), [&](std::size_t t) {
      struct Key {
        Index tile, low, high, face;
        auto operator<=>(const Key&) const = default;
      };
      std::vector<Key> keys;
      for (Index k = at.offsets[t]; k < at.offsets[t + 1]; ++k) {
        const Cells& f = all.item[std::size_t(within + k)];
        keys.push_back({tile_of(f.higher()), f.lower(), f.higher(), f.face});
      }
      std::sort(keys.begin(), keys.end());
      std::transform(keys.begin(), keys.end(), at.item.begin() + at.offsets[t], [](const Key& k) { return k.face; });
    });
    const auto cut = Index(at.item.size());
    plan_.report.cut_fraction = faces_ ? double(cut) / faces_ : 0;
    const auto put = [&](std::size_t k, Index f) { plan_.face_order[std::size_t(plan_.view.loose) + k] = f; };
    for (std::size_t k = 0; k < does_not_fit_.size(); ++k) put(std::size_t(cut) + k, does_not_fit_[k]);
    chosen_ = 0;
    if (plan_.view.strategy == FaceStrategy::tiles) {
      for (std::size_t k = 0; k < at.item.size(); ++k) put(k, at.item[k]);
      cut_from_ = at.offsets;
      return;
    }
    // Which diagonals are dense enough for blocks (Algorithm 4).
    std::vector<Index> faces_of(std::size_t(tiles_), 0);
    for (const Index f : at.item) ++faces_of[std::size_t(tile_of(higher(f)) - tile_of(lower(f)))];
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
      const Index f = at.item[std::size_t(i)], t = tile_of(lower(f)), k = tile_of(higher(f)) - t;
      return rank[std::size_t(k)] < 0 ? 2 * ranks : 2 * rank[std::size_t(k)] + t / k % 2;
    };
    const Buckets<Index> classes = in_buckets(host_, cut, 2 * ranks + 1, class_of, itself);
    for (std::size_t k = 0; k < classes.item.size(); ++k) put(k, at.item[std::size_t(classes.item[k])]);
    chosen_ = classes.offsets[std::size_t(2 * ranks)];
    plan_.class_pair = {0};
    plan_.pair_slot = {0};
    plan_.slot_face = {plan_.view.loose};
    for (Index c = 0; c < 2 * ranks; ++c) {
      Index k = classes.offsets[std::size_t(c)];
      while (k < classes.offsets[std::size_t(c) + 1]) {
        const Index begin = k, t = tile_of(lower(loose_face(begin)));
        while (k < classes.offsets[std::size_t(c) + 1] && tile_of(lower(loose_face(k))) == t) ++k;
        add_pair(begin, k);
      }
      if (Index(plan_.pair_slot.size()) - 1 > plan_.class_pair.back())
        plan_.class_pair.push_back(Index(plan_.pair_slot.size()) - 1);
    }
    plan_.view.classes = Index(plan_.class_pair.size()) - 1;
  }
  Index& loose_face(Index k) { return plan_.face_order[std::size_t(plan_.view.loose + k)]; }
  /// Its cells, once the faces have their places.
  Index owner_of(Index k) const { return plan_.owner[std::size_t(id_of(k) - plan_.view.listed)]; }
  Index neighbour_of(Index k) const { return plan_.neighbour[std::size_t(id_of(k) - plan_.view.listed)]; }
  Index id_of(Index k) const { return home_.empty() ? plan_.view.loose + k : home_[std::size_t(k)]; }

  /// Loose faces begin .. end-1 are those between two tiles: in slots that meet no cell twice.
  void add_pair(Index begin, Index end) {
    constexpr Index bits = 64;
    met_[0].resize(std::size_t(plan_.view.most_cells));
    met_[1].resize(std::size_t(plan_.view.most_cells));
    const Index low =
        first_of(tile_of(std::min(a_[std::size_t(loose_face(begin))], b_[std::size_t(loose_face(begin))])));
    const Index high =
        first_of(tile_of(std::max(a_[std::size_t(loose_face(begin))], b_[std::size_t(loose_face(begin))])));
    const auto met = [&](Index cell) -> Met& {
      return cell >= high ? met_[1][std::size_t(cell - high)] : met_[0][std::size_t(cell - low)];
    };
    slot_of_.clear();
    for (Index k = begin; k < end; ++k) {
      const Index f = loose_face(k);
      Met &i = met(a_[std::size_t(f)]), &j = met(b_[std::size_t(f)]);
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
    for (const auto& [slot, f] : slot_of_) met(a_[std::size_t(f)]) = met(b_[std::size_t(f)]) = {};
    std::stable_sort(slot_of_.begin(), slot_of_.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    for (Index k = begin; k < end; ++k) {
      const auto& [slot, face] = slot_of_[std::size_t(k - begin)];
      if (k > begin && slot != slot_of_[std::size_t(k - begin) - 1].first)
        plan_.slot_face.push_back(plan_.view.loose + k);
      loose_face(k) = face;
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
    for (Index k = chosen_; k < loose_; ++k) leave(k);
  }
  /// Loose face k is left over, for both of its cells.
  void leave(Index k) {
    const Index f = id_of(k);
    left_.push_back({owner_of(k), {f, neighbour_of(k)}});
    left_.push_back({neighbour_of(k), {~f, owner_of(k)}});
  }

  /// Cut faces go behind the faces of their lower tile: flat loops over faces meet each cell's faces together.
  void bring_home() {
    Buffer<Index> order(plan_.face_order.size()), first(std::size_t(tiles_) + 1);
    home_.resize(std::size_t(loose_));
    const auto loose = plan_.face_order.begin() + plan_.view.loose;
    for (std::size_t t = 0; t <= std::size_t(tiles_); ++t) first[t] = plan_.tile_face[t] + cut_from_[t];
    for_each_task(host_, std::size_t(tiles_), [&](std::size_t t) {
      std::copy(plan_.face_order.begin() + plan_.tile_face[t], plan_.face_order.begin() + plan_.tile_face[t + 1],
                order.begin() + first[t]);
      Index to = first[t] + plan_.tile_face[t + 1] - plan_.tile_face[t];
      for (Index k = cut_from_[t]; k < cut_from_[t + 1]; ++k) {
        order[std::size_t(to)] = loose[k];
        home_[std::size_t(k)] = to++;
      }
    });
    const Index cut = cut_from_[std::size_t(tiles_)];  // what does not fit stays at the end
    std::copy(loose + cut, plan_.face_order.end(), order.begin() + first[std::size_t(tiles_)]);
    std::iota(home_.begin() + cut, home_.end(), first[std::size_t(tiles_)]);
    plan_.face_order = std::move(order);
    plan_.tile_face = std::move(first);
    plan_.view.loose = plan_.tile_face[std::size_t(tiles_)];
  }

  // --- strategy tiles: both tiles of a cut face compute it ------------------------------------------------------
  void cut_lists() {
    const Index cut = loose_ - Index(does_not_fit_.size());
    for (Index k = cut; k < loose_; ++k) leave(k);
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
  const Buffer<Index>&a_, &b_;
  const FaceTuning& tuning_;
  double tiles_a_cell_ = 0;
  Index faces_, tiles_ = 0, chosen_ = 0, loose_ = 0;  // chosen_: loose faces of chosen orders
  Buffer<Index> cut_from_;  // of each tile: the first loose face that has its lower cell there
  Buffer<Index> home_;      // of loose faces: their numbers, where they do not stand last
  bool turned_ = false;     // whether some face's owner is its higher cell
  Index slots_ = 0;         // places of a cell for the sums of its faces
  Buffer<Index> sums_;      // of each cell: those that have a place
  struct Met {              // of a cell in the pair at work
    std::uint64_t used = 0;
    Index beyond = 0;
  };
  std::vector<Met> met_[2];
  std::vector<std::pair<Index, Index>> slot_of_;  // slot, face
  std::vector<Index> does_not_fit_;
  std::vector<LeftOver> left_;
};

}  // namespace

void arrange_tiles(const exec::Host& host, PlanData& plan, const Buffer<Index>& a, const Buffer<Index>& b,
                   std::span<const Index> offsets, const FaceTuning& tuning, int orders) {
  Arrangement(host, plan, a, b, offsets, tuning).run(orders);
}

}  // namespace krilu::mesh
