// SPDX-License-Identifier: Apache-2.0
#include "distributed/overlap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/together.hpp"
#include "distributed/all_to_all.hpp"
#include "krilu/error.hpp"

namespace krilu::distributed {

namespace {

/// Lists of global numbers, one a row.
struct Lists {
  Buffer<std::int64_t> offsets{0};
  Buffer<std::int64_t> items;
};

/// The rows in which each of this rank's rows is a column, its own ones and those of other ranks: the pattern of A^T.
Lists readers_of(Communicator& c, const RowsView& a, const RowRanges& ranges) {
  struct Entry {
    std::int64_t row, column;
  };
  const auto team = std::size_t(c.size()), me = std::size_t(c.rank());
  std::vector<Buffer<Entry>> told(team);  // of their columns, to the ranks that own them
  together(c, [&] {
    for (Index i = 0; i < a.count; ++i)
      for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
        const std::int64_t j = a.columns[k];
        if (ranges.has(int(me), j)) continue;
        const int owner = ranges.owner(j);
        if (owner < 0) throw Error(fmt::format("column {} has entries, and no rank has that row", j + 1));
        told[std::size_t(owner)].push_back({a.first + i, j});
      }
  });
  told = all_to_all(c, std::move(told));
  return together(c, [&] {
    Lists lists;
    lists.offsets.assign(std::size_t(a.count) + 1, 0);
    const auto for_entries = [&](auto f) {
      for (std::size_t r = 0; r < team; ++r) {
        for (const Entry& e : told[r]) f(e.row, std::size_t(e.column - a.first));
        if (r != me) continue;
        for (Index i = 0; i < a.count; ++i)
          for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
            if (ranges.has(int(me), a.columns[k])) f(a.first + i, std::size_t(a.columns[k] - a.first));
      }
    };
    for_entries([&](std::int64_t, std::size_t column) { ++lists.offsets[column + 1]; });
    for (std::size_t i = 0; i < std::size_t(a.count); ++i) lists.offsets[i + 1] += lists.offsets[i];
    lists.items.resize(std::size_t(lists.offsets.back()));
    Buffer<std::int64_t> next(lists.offsets);
    for_entries([&](std::int64_t row, std::size_t column) { lists.items[std::size_t(next[column]++)] = row; });
    return lists;
  });
}

void sort_unique(std::vector<std::int64_t>& v) {
  std::sort(v.begin(), v.end());
  v.erase(std::unique(v.begin(), v.end()), v.end());
}

/// Those of `candidates` that `known` (ascending) does not hold.
std::vector<std::int64_t> new_ones(std::vector<std::int64_t> candidates, const std::vector<std::int64_t>& known) {
  sort_unique(candidates);
  std::vector<std::int64_t> fresh;
  std::set_difference(candidates.begin(), candidates.end(), known.begin(), known.end(), std::back_inserter(fresh));
  return fresh;
}

/// The neighbours in the graph of A + A^T of the given rows of other ranks, all in one list.
std::vector<std::int64_t> ask_for_neighbours(Communicator& c, const RowsView& a, const RowRanges& ranges,
                                             const Lists& readers, const std::vector<std::int64_t>& rows) {
  const ExchangePlan plan = plan_exchange(c, ranges, rows);
  std::vector<Buffer<std::int64_t>> answers(static_cast<std::size_t>(c.size()));
  together(c, [&] {
    for (std::size_t n = 0; n < plan.neighbours.size(); ++n) {
      Buffer<std::int64_t>& answer = answers[std::size_t(plan.neighbours[n])];
      for (Index s = plan.send_offsets[n]; s < plan.send_offsets[n + 1]; ++s) {
        const auto i = std::size_t(plan.send_rows[std::size_t(s)]);
        answer.insert(answer.end(), a.columns + a.offsets[i], a.columns + a.offsets[i + 1]);
        answer.insert(answer.end(), readers.items.begin() + readers.offsets[i],
                      readers.items.begin() + readers.offsets[i + 1]);
      }
    }
  });
  std::vector<std::int64_t> all;
  for (const auto& part : all_to_all(c, std::move(answers))) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

Overlap::Boundary::Boundary(std::shared_ptr<Communicator> c, const ExchangePlan& exchange, Index own)
    : plan_(halo_plan(exchange)) {
  // The rows beside stand behind all that are sent, and have an entry of 1 each.
  Buffer<Index>& rows = plan_.rows;
  rows.assign(exchange.send_rows.begin(), exchange.send_rows.end());
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  std::vector<Index> places;
  for (const Index i : exchange.send_rows)
    places.push_back(Index(std::lower_bound(rows.begin(), rows.end(), i) - rows.begin()));
  plan_.offsets.assign(rows.size() + 1, 0);
  for (Index slot = 0; slot < plan_.slots; ++slot) {
    rows.push_back(own + slot);
    plan_.columns.push_back(slot);
    plan_.values.push_back(1);
    plan_.offsets.push_back(slot + 1);
  }
  exchange_ = Exchange(std::move(c), exchange, std::move(places));
}

void Overlap::Boundary::finish(double* y) {
  const double* const x = exchange_.finish();
  const auto slots = std::size_t(plan_.slots), sent = plan_.rows.size() - slots;
  std::fill_n(y, sent, 0.0);
  std::copy_n(x, slots, y + sent);
}

Overlap::Overlap(std::shared_ptr<Communicator> comm, const RowsView& a, const RowRanges& ranges, int depth)
    : communicator_(std::move(comm)), own_(a.count) {
  Communicator& c = *communicator_;
  const int me = c.rank();
  if (depth < 0) throw Error(fmt::format("an overlap of {} layers: it must be 0 or more", depth));
  require_same(c, "the overlap's depth", depth);

  // The rows beside, layer by layer: only the last layer's neighbours are new.
  std::vector<std::int64_t> beside;
  if (depth > 0) {
    const Lists readers = readers_of(c, a, ranges);
    std::vector<std::int64_t> near;
    together(c, [&] {
      const auto outside = [&](std::int64_t j) { return !ranges.has(me, j); };
      std::copy_if(a.columns, a.columns + a.nnz(), std::back_inserter(near), outside);
      std::copy_if(readers.items.begin(), readers.items.end(), std::back_inserter(near), outside);
    });
    std::vector<std::int64_t> layer = new_ones(std::move(near), beside);
    for (int d = 1;; ++d) {
      const auto middle = std::ptrdiff_t(beside.size());
      beside.insert(beside.end(), layer.begin(), layer.end());
      std::inplace_merge(beside.begin(), beside.begin() + middle, beside.end());
      if (d == depth) break;
      near = ask_for_neighbours(c, a, ranges, readers, layer);
      std::erase_if(near, [&](std::int64_t j) { return ranges.has(me, j); });
      layer = new_ones(std::move(near), beside);
    }
  }
  together(c, [&] {
    if (std::int64_t(beside.size()) + own_ >= std::numeric_limits<Index>::max())
      throw Error("its rows and those beside are 2^31 or more: use more ranks or less overlap");
  });
  plan_ = plan_exchange(c, ranges, std::move(beside));
  boundary_ = together(c, [&] { return std::make_shared<Boundary>(communicator_, plan_, own_); });

  // Lengths and columns of the rows beside.
  const std::size_t neighbours = plan_.neighbours.size();
  std::vector<Buffer<Index>> lengths(static_cast<std::size_t>(c.size()));
  std::vector<Buffer<std::int64_t>> columns(lengths.size());
  sent_entries_.assign(neighbours, 0);
  received_entries_.assign(neighbours, 0);
  together(c, [&] {
    for (std::size_t n = 0; n < neighbours; ++n) {
      const auto r = std::size_t(plan_.neighbours[n]);
      for (Index s = plan_.send_offsets[n]; s < plan_.send_offsets[n + 1]; ++s) {
        const Index i = plan_.send_rows[std::size_t(s)];
        lengths[r].push_back(a.offsets[i + 1] - a.offsets[i]);
        columns[r].insert(columns[r].end(), a.columns + a.offsets[i], a.columns + a.offsets[i + 1]);
      }
      sent_entries_[n] = columns[r].size();
    }
  });
  lengths = all_to_all(c, std::move(lengths));
  columns = all_to_all(c, std::move(columns));

  together(c, [&] {
    const std::vector<std::int64_t>& slots = plan_.slot_rows;
    const auto local = [&](std::int64_t j) -> Index {
      if (ranges.has(me, j)) return Index(j - a.first);
      const auto at = std::lower_bound(slots.begin(), slots.end(), j);
      return at != slots.end() && *at == j ? own_ + Index(at - slots.begin()) : -1;
    };
    matrix_.rows = matrix_.cols = own_ + plan_.slots();
    matrix_.offsets.reserve(std::size_t(matrix_.rows) + 1);
    matrix_.offsets.push_back(0);
    matrix_.columns.reserve(std::size_t(a.nnz()));
    // The rank's own columns come first, then those of slots: global order within both.
    const auto add_row = [&](const std::int64_t* column, Index length, Buffer<Offset>& places) {
      const std::size_t begin = places.size();
      places.resize(begin + std::size_t(length), -1);
      for (const bool inside : {true, false})
        for (Index k = 0; k < length; ++k) {
          if (ranges.has(me, column[k]) != inside) continue;
          const Index j = local(column[k]);
          if (j < 0) continue;
          places[begin + std::size_t(k)] = Offset(matrix_.columns.size());
          matrix_.columns.push_back(j);
          if (matrix_.columns.size() > std::size_t(std::numeric_limits<Offset>::max()))
            throw Error("its rows and those beside have 2^31 entries or more: use more ranks or less overlap");
        }
      matrix_.offsets.push_back(Offset(matrix_.columns.size()));
    };
    place_of_own_.reserve(std::size_t(a.nnz()));
    for (Index i = 0; i < own_; ++i) add_row(a.columns + a.offsets[i], a.offsets[i + 1] - a.offsets[i], place_of_own_);
    for (std::size_t n = 0; n < neighbours; ++n) {
      const auto r = std::size_t(plan_.neighbours[n]);
      const std::int64_t* column = columns[r].data();
      for (const Index length : lengths[r]) {
        add_row(column, length, place_of_received_);
        column += length;
      }
      received_entries_[n] = columns[r].size();
    }
    matrix_.values.resize(matrix_.columns.size());
  });
  refresh(a);
}

void Overlap::refresh(const RowsView& a) {
  Communicator& c = *communicator_;
  double* const values = matrix_.values.data();
  Buffer<double> out, in(place_of_received_.size());
  std::vector<Communicator::Sent> sends;
  std::vector<Communicator::Received> receives;
  together(c, [&] {
    if (a.count != own_ || std::size_t(a.nnz()) != place_of_own_.size())
      throw Error("the rows have another pattern than those that were analysed: analyse them");
    for (const Index i : plan_.send_rows) out.insert(out.end(), a.values + a.offsets[i], a.values + a.offsets[i + 1]);
    std::size_t s = 0, t = 0;
    for (std::size_t n = 0; n < plan_.neighbours.size(); ++n) {
      const std::size_t sent = sent_entries_[n], received = received_entries_[n];
      if (sent) sends.push_back({plan_.neighbours[n], out.data() + s, sent * sizeof(double)});
      if (received) receives.push_back({plan_.neighbours[n], in.data() + t, received * sizeof(double)});
      s += sent;
      t += received;
    }
    if (s != out.size()) throw Error("the rows have another pattern than those that were analysed: analyse them");
  });
  c.start(sends, receives);
  for (std::size_t k = 0; k < place_of_own_.size(); ++k)
    if (place_of_own_[k] >= 0) values[place_of_own_[k]] = a.values[k];
  c.finish();
  for (std::size_t k = 0; k < in.size(); ++k)
    if (place_of_received_[k] >= 0) values[place_of_received_[k]] = in[k];
}

}  // namespace krilu::distributed
