// SPDX-License-Identifier: Apache-2.0
#include "distributed/redistribute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/together.hpp"
#include "distributed/all_to_all.hpp"
#include "distributed/exchange.hpp"
#include "krilu/error.hpp"

namespace krilu::distributed {

Carrier::Carrier(std::shared_ptr<Communicator> c, const RowRanges& from, std::span<const int> new_rank)
    : communicator_(std::move(c)), from_(from) {
  Communicator& ranks = *communicator_;
  const auto team = std::size_t(ranks.size()), me = std::size_t(ranks.rank());
  std::vector<std::int64_t> counts(team, 0);
  together(ranks, [&] {
    if (std::int64_t(new_rank.size()) != from.count(ranks.rank()))
      throw Error(
          fmt::format("{} new ranks for {} rows: each row goes to one", new_rank.size(), from.count(ranks.rank())));
    for (std::size_t i = 0; i < new_rank.size(); ++i) {
      if (new_rank[i] < 0 || std::size_t(new_rank[i]) >= team)
        throw Error(fmt::format("row {} is to go to rank {}, and ranks go from 0 to {}",
                                from.first[me] + std::int64_t(i) + 1, new_rank[i], team - 1));
      ++counts[std::size_t(new_rank[i])];
    }
  });
  const std::vector<std::int64_t> all = gather_counts(ranks, counts);

  // Rows of rank p come from rank 0 first, then from rank 1, ..: in their old order.
  to_.all = from.all;
  std::int64_t start = 0;
  std::vector<std::int64_t> next(team);  // the new number of this rank's next row that goes to p
  receive_offsets_.push_back(0);
  for (std::size_t p = 0; p < team; ++p) {
    to_.first.push_back(start);
    for (std::size_t q = 0; q < team; ++q) {
      if (q == me) next[p] = start;
      start += all[q * team + p];
    }
    to_.end.push_back(start);
    if (start - to_.first[p] >= std::numeric_limits<Index>::max())
      throw Error(fmt::format("rank {} would have {} rows, and a rank has fewer than 2147483647: use more ranks", p,
                              start - to_.first[p]));
    receive_offsets_.push_back(receive_offsets_.back() + std::size_t(all[p * team + me]));
  }
  together(ranks, [&] {
    send_offsets_.assign(team + 1, 0);
    for (std::size_t p = 0; p < team; ++p) send_offsets_[p + 1] = send_offsets_[p] + std::size_t(counts[p]);
    std::vector<std::size_t> at(send_offsets_.begin(), send_offsets_.end() - 1);
    send_.resize(new_rank.size());
    new_rows_.resize(new_rank.size());
    for (std::size_t i = 0; i < new_rank.size(); ++i) {
      const auto p = std::size_t(new_rank[i]);
      send_[at[p]++] = Index(i);
      new_rows_[i] = next[p]++;
    }
  });
}

template <class T>
void Carrier::carry(const T* in, T* out, bool forward) const {
  const auto team = std::size_t(communicator_->size()), me = std::size_t(communicator_->rank());
  // One side of a message stands scattered, at old rows, the other one whole, at new ones.
  Buffer<T> scattered(send_.size());
  if (forward)
    for (std::size_t k = 0; k < send_.size(); ++k) scattered[k] = in[send_[k]];
  std::vector<Communicator::Sent> sends;
  std::vector<Communicator::Received> receives;
  for (std::size_t r = 0; r < team; ++r) {
    const std::size_t old_bytes = (send_offsets_[r + 1] - send_offsets_[r]) * sizeof(T);
    const std::size_t new_bytes = (receive_offsets_[r + 1] - receive_offsets_[r]) * sizeof(T);
    T* const old_side = scattered.data() + send_offsets_[r];
    if (r == me) {
      if (forward)
        std::copy_n(old_side, old_bytes / sizeof(T), out + receive_offsets_[r]);
      else
        std::copy_n(in + receive_offsets_[r], new_bytes / sizeof(T), old_side);
    } else if (forward) {
      if (old_bytes) sends.push_back({int(r), old_side, old_bytes});
      if (new_bytes) receives.push_back({int(r), out + receive_offsets_[r], new_bytes});
    } else {
      if (new_bytes) sends.push_back({int(r), in + receive_offsets_[r], new_bytes});
      if (old_bytes) receives.push_back({int(r), old_side, old_bytes});
    }
  }
  communicator_->start(sends, receives);
  communicator_->finish();
  if (!forward)
    for (std::size_t k = 0; k < send_.size(); ++k) out[send_[k]] = scattered[k];
}

void Carrier::forward(const double* old_part, double* new_part) const { carry(old_part, new_part, true); }
void Carrier::back(const double* new_part, double* old_part) const { carry(new_part, old_part, false); }
void Carrier::forward(const std::int64_t* old_part, std::int64_t* new_part) const { carry(old_part, new_part, true); }

namespace {

/// New numbers of all columns of a, entry by entry.
Buffer<std::int64_t> renumbered_columns(Communicator& c, const RowsView& a, const Carrier& carrier) {
  const RowRanges& from = carrier.from();
  const int me = c.rank();
  const Buffer<std::int64_t>& new_rows = carrier.new_rows();
  std::vector<std::int64_t> outside;
  together(c, [&] {
    for (Offset k = 0; k < a.nnz(); ++k)
      if (!from.has(me, a.columns[k])) outside.push_back(a.columns[k]);
    std::sort(outside.begin(), outside.end());
    outside.erase(std::unique(outside.begin(), outside.end()), outside.end());
  });
  const ExchangePlan plan = plan_exchange(c, from, std::move(outside));
  std::vector<Buffer<std::int64_t>> answers(static_cast<std::size_t>(c.size()));
  for (std::size_t k = 0; k < plan.neighbours.size(); ++k)
    for (Index s = plan.send_offsets[k]; s < plan.send_offsets[k + 1]; ++s)
      answers[std::size_t(plan.neighbours[k])].push_back(new_rows[std::size_t(plan.send_rows[std::size_t(s)])]);
  answers = all_to_all(c, std::move(answers));
  std::vector<std::int64_t> of_slot;
  of_slot.reserve(std::size_t(plan.slots()));
  for (const auto& part : answers) of_slot.insert(of_slot.end(), part.begin(), part.end());

  return together(c, [&] {
    Buffer<std::int64_t> columns(std::size_t(a.nnz()));
    for (std::size_t k = 0; k < columns.size(); ++k) {
      const std::int64_t j = a.columns[k];
      columns[k] = from.has(me, j)
                       ? new_rows[std::size_t(j - from.first[std::size_t(me)])]
                       : of_slot[std::size_t(std::lower_bound(plan.slot_rows.begin(), plan.slot_rows.end(), j) -
                                             plan.slot_rows.begin())];
    }
    return columns;
  });
}

}  // namespace

MovedRows redistribute(const std::shared_ptr<Communicator>& comm, const RowsView& a, const Carrier& carrier) {
  Communicator& c = *comm;
  const auto team = std::size_t(c.size()), me = std::size_t(c.rank());
  const Buffer<std::int64_t> columns = renumbered_columns(c, a, carrier);
  const RowRanges& to = carrier.to();

  // What goes to each rank, its rows in their old order, each sorted by its new columns.
  std::vector<Buffer<Index>> lengths(team);
  std::vector<Buffer<std::int64_t>> sent_columns(team);
  std::vector<Buffer<double>> sent_values(team);
  together(c, [&] {
    std::vector<std::pair<std::int64_t, double>> row;
    std::vector<int> goes_to(static_cast<std::size_t>(a.count));
    std::vector<std::size_t> entries(team, 0);
    for (Index i = 0; i < a.count; ++i) {
      const int p = to.owner(carrier.new_rows()[std::size_t(i)]);
      goes_to[std::size_t(i)] = p;
      lengths[std::size_t(p)].push_back(a.offsets[i + 1] - a.offsets[i]);
      entries[std::size_t(p)] += std::size_t(a.offsets[i + 1] - a.offsets[i]);
    }
    for (std::size_t p = 0; p < team; ++p) {
      sent_columns[p].reserve(entries[p]);
      sent_values[p].reserve(entries[p]);
    }
    for (Index i = 0; i < a.count; ++i) {
      row.clear();
      for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) row.emplace_back(columns[std::size_t(k)], a.values[k]);
      std::sort(row.begin(), row.end(), [](const auto& p, const auto& q) { return p.first < q.first; });
      const auto p = std::size_t(goes_to[std::size_t(i)]);
      for (const auto& [column, value] : row) {
        sent_columns[p].push_back(column);
        sent_values[p].push_back(value);
      }
    }
  });
  lengths = all_to_all(c, std::move(lengths));

  MovedRows m;
  m.rows.all = to.all;
  m.rows.first = to.first[me];
  m.rows.count = Index(to.count(c.rank()));
  together(c, [&] {
    std::int64_t nnz = 0;
    m.rows.offsets.reserve(std::size_t(m.rows.count) + 1);
    m.rows.offsets.push_back(0);
    for (const Buffer<Index>& part : lengths)
      for (const Index n : part) {
        nnz += n;
        if (nnz > std::numeric_limits<Offset>::max())
          throw Error("its rows would have 2^31 entries or more, and a rank's rows have fewer: use more ranks");
        m.rows.offsets.push_back(Offset(nnz));
      }
    m.rows.columns.reserve(std::size_t(nnz));
    m.rows.values.reserve(std::size_t(nnz));
  });
  sent_columns = all_to_all(c, std::move(sent_columns));
  for (Buffer<std::int64_t>& part : sent_columns) {
    m.rows.columns.insert(m.rows.columns.end(), part.begin(), part.end());
    Buffer<std::int64_t>().swap(part);
  }
  sent_values = all_to_all(c, std::move(sent_values));
  for (Buffer<double>& part : sent_values) {
    m.rows.values.insert(m.rows.values.end(), part.begin(), part.end());
    Buffer<double>().swap(part);
  }
  Buffer<std::int64_t> old(std::size_t(a.count));
  for (Index i = 0; i < a.count; ++i) old[std::size_t(i)] = a.first + i;
  m.old_row.resize(std::size_t(m.rows.count));
  carrier.forward(old.data(), m.old_row.data());
  return m;
}

}  // namespace krilu::distributed
