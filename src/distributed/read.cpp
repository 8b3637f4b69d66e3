// SPDX-License-Identifier: Apache-2.0
// Source: the Matrix Market exchange formats (Boisvert, Pozo, Remington 1996); see io/matrix_market.cpp.
#include "distributed/read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/together.hpp"
#include "io/generate_rows.hpp"
#include "io/matrix_market.hpp"
#include "io/text_file.hpp"
#include "krilu/error.hpp"

namespace krilu::distributed {

namespace {

constexpr const char* generated = "generated";

RowsMatrix cut(const CsrMatrix& a, std::int64_t first, std::int64_t end) {
  RowsMatrix r;
  r.all = a.rows;
  r.first = first;
  r.count = Index(end - first);
  const Offset base = a.offsets[std::size_t(first)], stop = a.offsets[std::size_t(end)];
  r.offsets.assign(a.offsets.begin() + first, a.offsets.begin() + end + 1);
  for (Offset& o : r.offsets) o -= base;
  r.columns.assign(a.columns.begin() + base, a.columns.begin() + stop);
  r.values.assign(a.values.begin() + base, a.values.begin() + stop);
  return r;
}

void require_square(const std::string& label, std::int64_t rows, std::int64_t columns) {
  if (rows != columns)
    throw Error(
        fmt::format("{}: the matrix is {} by {}; a system over several ranks must be square", label, rows, columns));
}

/// io::read_matrix's look at symmetric files, over the entries that concern this rank: where (i, j) and (j, i) are both
/// stored, the rank that owns row i has kept both.
template <class E>
void require_one_of_each_pair(const io::Source& source, const io::Header& h, const std::vector<Buffer<E>>& pieces) {
  bool above = false, below = false;
  for (const Buffer<E>& piece : pieces)
    for (const E& e : piece) {
      above |= e.column > e.row;
      below |= e.column < e.row;
    }
  if (!above || !below) return;
  using Pair = std::pair<Index, Index>;
  std::vector<std::pair<Pair, bool>> stored;
  for (const Buffer<E>& piece : pieces)
    for (const E& e : piece)
      if (e.row != e.column) stored.push_back({std::minmax(e.row, e.column), e.row < e.column});
  std::sort(stored.begin(), stored.end());
  std::vector<Pair> both;
  for (std::size_t k = 1; k < stored.size(); ++k)
    if (stored[k].first == stored[k - 1].first && stored[k].second != stored[k - 1].second)
      both.push_back(stored[k].first);
  if (both.empty()) return;
  const char* p = source.text.data() + h.body;
  const char* const end = source.text.data() + source.text.size();
  for (; p != end; p = io::next_line(p, end)) {
    Index row, column;
    if (io::place_of(p, end, h.lines, row, column) &&
        std::binary_search(both.begin(), both.end(), Pair(std::minmax(row, column))))
      source.fail(p, fmt::format("the entries ({0}, {1}) and ({1}, {0}) are both stored although the header says {2}; "
                                 "keep one triangle or say general",
                                 row + 1, column + 1, h.declared));
  }
}

/// What is kept becomes coordinates of the rank's rows, mirrored entries beside those that are stored.
template <class E>
void make_own(std::vector<Buffer<E>>& pieces, const io::RowsKept& kept, io::Mirror mirror) {
  if (mirror == io::Mirror::none) {
    for (Buffer<E>& piece : pieces)
      for (E& e : piece) e.row -= kept.first;
    return;
  }
  const auto own = [&](Index row) { return row >= kept.first && row < kept.end; };
  for (Buffer<E>& piece : pieces) {
    Buffer<E> out;
    out.reserve(2 * piece.size());
    for (E e : piece) {
      const Index row = e.row, column = e.column;
      e.row = row - kept.first;
      if (own(row)) out.push_back(e);
      if (row == column || !own(column)) continue;
      e.row = column - kept.first;
      e.column = row;
      if constexpr (std::is_same_v<E, io::Entry>)
        if (mirror == io::Mirror::negated) e.value = -e.value;
      out.push_back(e);
    }
    piece = std::move(out);
  }
}

/// Entries that stand on or left of the diagonal, or all: each stored entry is one of these on one rank.
template <class Place>
std::int64_t counted(bool lower_only, Place place, std::size_t n) {
  if (!lower_only) return std::int64_t(n);
  std::int64_t count = 0;
  for (std::size_t k = 0; k < n; ++k) count += place(k);
  return count;
}

template <class E>
void read_coordinates(const io::Source& source, const io::Header& h, const io::RowsKept& kept, int threads,
                      const std::function<void()>& release, ReadRows& out) {
  std::int64_t found = 0;
  auto pieces = io::read_lines_of<E>(kept, source, h.body, h.lines, threads, found);
  io::require_count(source, h, found);
  if (h.mirror != io::Mirror::none) require_one_of_each_pair(source, h, pieces);
  release();
  make_own(pieces, kept, h.mirror);
  const bool lower_only = h.mirror != io::Mirror::none;
  std::int64_t before = 0;
  for (const Buffer<E>& piece : pieces)
    before += counted(
        lower_only, [&](std::size_t k) { return piece[k].column <= piece[k].row + kept.first; }, piece.size());

  RowsMatrix& r = out.rows;
  r.all = h.lines.rows;
  r.first = kept.first;
  r.count = kept.end - kept.first;
  CsrMatrix a;
  std::int64_t unused = 0;
  try {
    a = io::to_csr(r.count, h.lines.columns, pieces, io::Mirror::none, false, threads, unused);
  } catch (const io::TooManyEntries& e) {
    throw Error(
        fmt::format("{}: rows {} to {} have {} entries; one rank may hold fewer than 2147483648, so use more ranks",
                    source.label, r.first + 1, r.first + r.count, e.entries));
  } catch (const io::SumTooLarge& e) {
    throw Error(fmt::format(
        "{}: the entries at row {}, column {} add up to more than the largest double, 1.8e308; correct them",
        source.label, r.first + e.row + 1, e.column + 1));
  }
  std::int64_t after = 0;
  for (Index i = 0; i < r.count; ++i) {
    const Offset begin = a.offsets[std::size_t(i)];
    after += counted(
        lower_only, [&](std::size_t k) { return a.columns[std::size_t(begin) + k] <= r.first + i; },
        std::size_t(a.offsets[std::size_t(i) + 1] - begin));
  }
  out.facts.duplicates = before - after;
  r.offsets = std::move(a.offsets);
  r.columns.assign(a.columns.begin(), a.columns.end());
  r.values = std::move(a.values);
}

ReadRows read(Ranks& ranks, const io::Source& source, int threads, const std::function<void()>& release) {
  ReadRows out;
  const io::Header h = io::read_header(source, true);
  require_square(source.label, h.lines.rows, h.lines.columns);
  threads = io::team_size(source.text, threads);
  const std::vector<std::int64_t> starts = even_starts(h.lines.rows, ranks.size());
  const auto me = std::size_t(ranks.rank());
  const io::RowsKept kept{Index(starts[me]), Index(starts[me + 1]), h.mirror != io::Mirror::none};
  if (h.array) {
    ReadMatrix whole = io::read_matrix(source, threads, release);
    out.rows = cut(whole.matrix, starts[me], starts[me + 1]);
  } else if (h.lines.value) {
    read_coordinates<io::Entry>(source, h, kept, threads, release, out);
  } else {
    read_coordinates<io::Place>(source, h, kept, threads, release, out);
  }
  out.facts.name = io::short_name(source.label);
  out.facts.declared = h.declared;
  out.facts.stored = h.entries;
  return out;
}

/// What all ranks know of the whole.
ReadRows add_up(Ranks& ranks, ReadRows out) {
  require_same(ranks, "the number of rows of " + out.facts.name, out.rows.all);
  require_same(ranks, "the number of entries of " + out.facts.name, out.facts.stored);
  const std::int64_t mine[2] = {out.facts.duplicates, out.rows.nnz()};
  std::vector<std::int64_t> all(2 * std::size_t(ranks.size()));
  ranks.all_gather(mine, sizeof mine, all.data());
  out.facts.duplicates = out.nonzeros = 0;
  for (std::size_t k = 0; k < all.size(); k += 2) {
    out.facts.duplicates += all[k];
    out.nonzeros += all[k + 1];
  }
  if (out.facts.declared == generated) out.facts.stored = out.nonzeros;
  return out;
}

}  // namespace

std::vector<std::int64_t> even_starts(std::int64_t rows, int ranks) {
  std::vector<std::int64_t> starts;
  for (int r = 0; r <= ranks; ++r) starts.push_back(rows / ranks * r + std::min(std::int64_t(r), rows % ranks));
  return starts;
}

ReadRows parse_rows(Ranks& ranks, std::string_view text, const std::string& label, int threads) {
  return add_up(ranks, together(ranks, [&] {
                  return io::guard_memory(label, [&] { return read(ranks, {text, label}, threads, [] {}); });
                }));
}

ReadRows read_rows(Ranks& ranks, const std::string& path, int threads) {
  return add_up(
      ranks, together(ranks, [&] {
        return io::guard_memory(path, [&] {
          if (!is_generator(path)) {
            io::TextFile file(path);
            return read(ranks, {file.text(), path}, threads, [&file] { file.release(); });
          }
          ReadRows out;
          out.facts.name = path;
          out.facts.declared = generated;
          const auto me = std::size_t(ranks.rank());
          if (const auto rows = io::generated_rows(path)) {
            const std::vector<std::int64_t> starts = even_starts(*rows, ranks.size());
            if (starts[1] - starts[0] >= std::numeric_limits<Index>::max())
              throw Error(fmt::format("{}: {} rows a rank, and a rank has fewer than 2147483647: use more ranks", path,
                                      starts[1] - starts[0]));
            out.rows = io::generate_rows(path, starts[me], Index(starts[me + 1] - starts[me]));
          } else {
            const CsrMatrix whole = generate(path);
            const std::vector<std::int64_t> starts = even_starts(whole.rows, ranks.size());
            out.rows = cut(whole, starts[me], starts[me + 1]);
          }
          return out;
        });
      }));
}

}  // namespace krilu::distributed
