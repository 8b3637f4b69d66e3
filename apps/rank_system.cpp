// SPDX-License-Identifier: Apache-2.0
#include "rank_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>

#include "base/names.hpp"
#include "base/together.hpp"
#include "distributed/partition.hpp"
#include "distributed/read.hpp"
#include "terminal.hpp"

namespace krilu::app {

namespace {

/// Entries of all ranks that stand outside of their ranks' blocks.
double outside(Ranks& ranks, const RowsView& a) {
  double count = 0;
  for (Offset k = 0; k < a.nnz(); ++k) count += a.columns[k] < a.first || a.columns[k] >= a.first + a.count;
  ranks.sum({&count, 1});
  return count;
}

/// Whether the system is one that can be solved.
void look(Ranks& ranks, const RowsView& a, RankSystem& s, std::int64_t nonzeros) {
  double empty[2] = {0, 0};
  std::int64_t first_empty = -1;
  for (Index i = 0; i < a.count; ++i)
    if (a.offsets[i] == a.offsets[i + 1]) {
      if (first_empty < 0) first_empty = a.first + i;
      ++empty[0];
    }
  ranks.sum(empty);
  std::vector<std::int64_t> firsts(std::size_t(ranks.size()));
  ranks.all_gather(&first_empty, sizeof first_empty, firsts.data());
  for (const std::int64_t row : firsts)
    if (row >= 0)
      throw Error(fmt::format("{}: row {} is empty{}: the matrix is singular, and no solver can mend that",
                              s.facts.name, row + 1,
                              empty[0] > 1 ? fmt::format(", as are {} more", std::int64_t(empty[0]) - 1) : ""));
  s.facts.rows = a.all;
  s.facts.nnz = nonzeros;
}

}  // namespace

RankSystem load_rank_system(const std::shared_ptr<Communicator>& ranks, const SystemOptions& o,
                            const std::string& partition, int threads, bool show_steps) {
  const auto start = std::chrono::steady_clock::now();
  require_name("partition", partition, {"auto", "blocks", "metis"});
  const StepLine step(fmt::format("{} {}", is_generator(o.matrix) ? "generating" : "reading", o.matrix), show_steps);
  RankSystem s;
  distributed::ReadRows read = distributed::read_rows(*ranks, o.matrix, threads);
  s.facts.name = read.facts.name;
  if (read.facts.duplicates > 0)
    s.facts.notes.push_back(
        fmt::format("{} duplicate entries were added to earlier ones of the same place", read.facts.duplicates));
  look(*ranks, read.rows, s, read.nonzeros);

  // b and x of the rows as they were read.
  const auto first = std::size_t(read.rows.first), n = std::size_t(read.rows.count);
  together(*ranks, [&] {
    s.facts.rhs = right_hand_side_of(o);
    s.b = make_right_hand_side(s.facts.rhs, read.rows.all, first, n, threads);
    s.x = o.x0.empty() ? std::vector<double>(n, 0.0)
                       : part_of_file(o.x0, read.rows.all, first, n, "initial guess", threads);
    s.facts.rhs = file_name_of(s.facts.rhs);
  });
  s.starts = distributed::even_starts(read.rows.all, ranks->size());

  // Where the rows go.
  const distributed::RowRanges ranges = distributed::ranges_of(s.starts);
  const std::vector<std::int64_t> balanced = distributed::balanced_starts(*ranks, read.rows);
  std::vector<int> to(n);
  bool moves = balanced != s.starts;
  for (std::size_t i = 0; i < n; ++i)
    to[i] = int(std::upper_bound(balanced.begin(), balanced.end(), std::int64_t(first + i)) - balanced.begin()) - 1;
  // Rows in no helpful order have most of their entries in other ranks' blocks.
  constexpr double too_many = 0.15;
  const double cut = outside(*ranks, read.rows) / std::max(1.0, double(read.nonzeros));
  s.partition = "blocks of consecutive rows";
  const bool fits =
      read.rows.all < std::numeric_limits<Index>::max() && read.nonzeros < std::numeric_limits<Offset>::max();
  if (ranks->size() > 1 && (partition == "metis" || (partition == "auto" && cut > too_many && fits))) {
    to = distributed::metis_ranks(*ranks, read.rows);
    moves = true;
    s.partition = partition == "metis"
                      ? "metis"
                      : fmt::format("metis, since blocks of rows cut {:.0f} % of the entries", 100 * cut);
  }
  if (moves && ranks->size() > 1) {
    s.moved.emplace(ranks, ranges, to);
    s.rows = distributed::redistribute(ranks, read.rows, *s.moved).rows;
    std::vector<double> b(std::size_t(s.rows.count)), x(b.size());
    s.moved->forward(s.b.data(), b.data());
    s.moved->forward(s.x.data(), x.data());
    s.b = std::move(b);
    s.x = std::move(x);
  } else {
    s.rows = std::move(read.rows);
  }
  s.facts.matrix_bytes = s.rows.offsets.size() * sizeof(Offset) + s.rows.columns.size() * sizeof(std::int64_t) +
                         s.rows.values.size() * sizeof(double);
  s.facts.read_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return s;
}

std::vector<double> gather_solution(Communicator& ranks, const RankSystem& s) {
  const auto me = std::size_t(ranks.rank());
  std::vector<double> own(std::size_t(s.starts[me + 1] - s.starts[me])), all;
  if (s.moved)
    s.moved->back(s.x.data(), own.data());
  else
    own = s.x;
  std::vector<Communicator::Sent> sends;
  std::vector<Communicator::Received> receives;
  if (me > 0) {
    sends.push_back({0, own.data(), own.size() * sizeof(double)});
  } else {
    all.resize(std::size_t(s.starts.back()));
    std::copy(own.begin(), own.end(), all.begin());
    for (int r = 1; r < ranks.size(); ++r) {
      const std::int64_t begin = s.starts[std::size_t(r)], end = s.starts[std::size_t(r) + 1];
      receives.push_back({r, all.data() + begin, std::size_t(end - begin) * sizeof(double)});
    }
  }
  ranks.start(sends, receives);
  ranks.finish();
  return all;
}

}  // namespace krilu::app
