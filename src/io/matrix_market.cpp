// SPDX-License-Identifier: Apache-2.0
// The Matrix Market reader: the body cut into pieces at line ends, parsed in place by a team of threads, then sorted
// into compressed rows.
//
// A line is read by a short path that only says yes or no. Where it says no, the line is looked at again, at leisure,
// for the sentence that tells what is wrong with it.
// Source: the Matrix Market exchange formats (Boisvert, Pozo, Remington 1996). Cost: one pass over the text and 8 or
// 16 bytes an entry beside the matrix, given back as the matrix fills.
#include "io/matrix_market.hpp"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "exec/host.hpp"
#include "io/text_file.hpp"

namespace krilu::io {

namespace {

inline const char* scan_place(const char* p, const char* end, const Lines& lines, Index& row, Index& column) {
  std::int64_t i, j;
  p = scan_integer(skip_blanks(p, end), end, i);
  if (!p || p == end || !is_blank(*p)) return nullptr;
  p = scan_integer(skip_blanks(p + 1, end), end, j);
  if (!p || i < 1 || i > lines.rows || j < 1 || j > lines.columns) return nullptr;
  row = static_cast<Index>(i - 1);
  column = static_cast<Index>(j - 1);
  return p;
}

inline const char* scan_value(const char* p, const char* end, const Lines& lines, double& value) {
  p = scan_double(skip_blanks(p, end), end, value);
  if (!p || !std::isfinite(value) || (lines.integer && value != std::trunc(value))) return nullptr;
  return p;
}

/// What follows the place of an entry.
inline const char* scan_rest(const char* p, const char* end, const Lines& lines, Entry& e) {
  if (!p || p == end || !is_blank(*p)) return nullptr;
  p = scan_value(p, end, lines, e.value);
  if (!p || (lines.skew && e.row == e.column && e.value != 0)) return nullptr;
  return scan_line_end(p, end);
}
inline const char* scan_rest(const char* p, const char* end, const Lines&, Place&) {
  return p ? scan_line_end(p, end) : nullptr;
}

/// One line of the body; returns the start of the next, or nullptr if it is not an entry as it should be.
template <class E>
inline const char* scan_entry(const char* p, const char* end, const Lines& lines, E& e) {
  return scan_rest(scan_place(p, end, lines, e.row, e.column), end, lines, e);
}
inline const char* scan_entry(const char* p, const char* end, const Lines& lines, double& e) {
  p = scan_value(p, end, lines, e);
  return p ? scan_line_end(p, end) : nullptr;
}

/// Every entry is kept.
struct AllKept {};

/// All lines of one piece. Returns the first bad line or nullptr. `found` grows by the entries, kept or not.
template <class E, class Kept>
const char* read_piece(std::string_view piece, const Lines& lines, const Kept& kept, std::size_t guess, Buffer<E>& out,
                       std::int64_t& found) {
  const char* p = piece.data();
  const char* const end = p + piece.size();
  Buffer<E> entries(guess);
  std::size_t n = 0;
  std::int64_t passed = 0;
  while (p != end) {
    E e;
    const char* next;
    if constexpr (std::is_same_v<Kept, AllKept>) {
      next = scan_entry(p, end, lines, e);
    } else {
      const char* after = scan_place(p, end, lines, e.row, e.column);
      if (after && !kept(e.row, e.column) && (after == end || is_blank(*after) || *after == '\n')) {
        ++passed;
        p = next_line(after, end);
        continue;
      }
      next = scan_rest(after, end, lines, e);
    }
    if (!next) [[unlikely]] {
      next = scan_idle_line(p, end, lines.comment);
      if (!next) return p;
    } else {
      if (n == entries.size()) entries.resize(n + n / 2 + 16);
      entries[n++] = e;
    }
    p = next;
  }
  entries.resize(n);
  out = std::move(entries);
  found = passed + static_cast<std::int64_t>(n);
  return nullptr;
}

template <class E>
CsrMatrix convert(const Source& source, const Header& h, std::vector<Buffer<E>>& pieces, Mirror mirror, bool keep,
                  int threads, std::int64_t& duplicates) {
  try {
    return to_csr(h.lines.rows, h.lines.columns, pieces, mirror, keep, threads, duplicates);
  } catch (const TooManyEntries& e) {
    throw Error(
        fmt::format("{}: the full matrix has {} entries; one matrix may hold fewer than 2147483648, so split it "
                    "over several processes",
                    source.label, e.entries));
  } catch (const SumTooLarge& e) {
    throw Error(
        fmt::format("{}: the entries at row {}, column {} add up to more than the largest double, 1.8e308; "
                    "correct them",
                    source.label, e.row + 1, e.column + 1));
  }
}

/// A symmetric file ought to store one triangle. Entries of the other one are taken at their word and mirrored like
/// the rest. But where a pair (i, j), (j, i) is stored whole, the file holds the full matrix under a wrong header, and
/// summing as for duplicates would double all but the diagonal: that is refused.
template <class E>
void require_one_of_each_pair(const Source& source, const Header& h, std::vector<Buffer<E>>& pieces, int threads) {
  std::atomic<bool> above{false}, below{false};
  for_pieces(threads, pieces.size(), [&](std::size_t k) {
    bool a = false, b = false;
    for (const E& e : pieces[k]) {
      a |= e.column > e.row;
      b |= e.column < e.row;
    }
    if (a) above = true;
    if (b) below = true;
  });
  if (!above || !below) return;
  std::int64_t duplicates = 0;
  const CsrMatrix stored = convert(source, h, pieces, Mirror::none, true, threads, duplicates);
  const auto has = [&stored](Index row, Index column) {
    const Index* const c = stored.columns.data();
    return std::binary_search(c + stored.offsets[row], c + stored.offsets[row + 1], column);
  };
  const char* p = source.text.data() + h.body;
  const char* const end = source.text.data() + source.text.size();
  // In the order of the lines, for the number of the first that is at fault.
  for (const Buffer<E>& piece : pieces) {
    for (const E& e : piece) {
      while (const char* idle = scan_idle_line(p, end, h.lines.comment)) p = idle;
      if (e.row != e.column && has(e.column, e.row))
        source.fail(p,
                    fmt::format("the entries ({0}, {1}) and ({1}, {0}) are both stored although the header says {2}; "
                                "keep one triangle or say general",
                                e.row + 1, e.column + 1, h.declared));
      p = next_line(p, end);
    }
  }
}

/// The entries of an array, by columns, as coordinates. An array has no pattern of its own: its zeros are left out.
std::vector<Buffer<Entry>> array_entries(const Header& h, std::vector<Buffer<double>>& pieces) {
  std::vector<Buffer<Entry>> out(pieces.size());
  const Index skipped = h.mirror == Mirror::negated ? 1 : 0;  // the diagonal, which such a file leaves out
  Index row = skipped, column = 0;
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    for (const double v : pieces[k]) {
      if (v != 0) out[k].push_back({row, column, v});
      if (++row == h.lines.rows) {
        ++column;
        row = h.mirror == Mirror::none ? 0 : column + skipped;
      }
    }
    Buffer<double>().swap(pieces[k]);
  }
  return out;
}

}  // namespace

int team_size(std::string_view text, int threads) {
  constexpr std::size_t worth_sharing = std::size_t(256) << 10;
  exec::require_threads(threads);
  if (threads > 0) return threads;
  return text.size() < worth_sharing ? 1 : exec::available_threads();
}

namespace {

/// The pieces of a body, each read by read_piece. `density` is the number of entries to expect of a byte of text.
template <class E, class Kept>
std::vector<Buffer<E>> read_body(const Source& source, std::size_t body, const Lines& lines, const Kept& kept,
                                 double density, int threads, std::int64_t& found) {
  const std::string_view text = source.text.substr(body);
  const std::vector<std::string_view> pieces = cut_at_lines(text, threads);
  std::vector<Buffer<E>> entries(pieces.size());
  std::vector<std::int64_t> count(pieces.size(), 0);
  std::vector<const char*> fault(pieces.size(), nullptr);
  std::atomic<std::size_t> first_fault{pieces.size()};
  for_pieces(threads, pieces.size(), [&](std::size_t k) {
    if (k > first_fault.load(std::memory_order_relaxed)) return;
    // A tenth above the mean; what is expected was held to what the text can hold.
    const std::size_t guess = static_cast<std::size_t>(1.1 * density * static_cast<double>(pieces[k].size())) + 16;
    fault[k] = read_piece(pieces[k], lines, kept, guess, entries[k], count[k]);
    if (!fault[k]) return;
    std::size_t seen = first_fault.load();
    while (k < seen && !first_fault.compare_exchange_weak(seen, k)) {
    }
  });
  if (first_fault < pieces.size()) {
    const char* const at = fault[first_fault];
    source.fail(at, what_is_wrong(line_at(at, text.data() + text.size()), lines));
  }
  found = 0;
  for (const std::int64_t n : count) found += n;
  return entries;
}

}  // namespace

const char* place_of(const char* p, const char* end, const Lines& lines, Index& row, Index& column) {
  return scan_place(p, end, lines, row, column);
}

template <class E>
std::vector<Buffer<E>> read_lines(const Source& source, std::size_t body, const Lines& lines, std::int64_t expected,
                                  int threads) {
  const std::size_t bytes = source.text.size() - body;
  const double density = bytes == 0 ? 0 : static_cast<double>(expected) / static_cast<double>(bytes);
  std::int64_t found = 0;
  return read_body<E>(source, body, lines, AllKept{}, density, threads, found);
}
template std::vector<Buffer<Entry>> read_lines(const Source&, std::size_t, const Lines&, std::int64_t, int);
template std::vector<Buffer<Place>> read_lines(const Source&, std::size_t, const Lines&, std::int64_t, int);
template std::vector<Buffer<double>> read_lines(const Source&, std::size_t, const Lines&, std::int64_t, int);

template <class E>
std::vector<Buffer<E>> read_lines_of(const RowsKept& kept, const Source& source, std::size_t body, const Lines& lines,
                                     int threads, std::int64_t& found) {
  return read_body<E>(source, body, lines, kept, 0, threads, found);
}
template std::vector<Buffer<Entry>> read_lines_of(const RowsKept&, const Source&, std::size_t, const Lines&, int,
                                                  std::int64_t&);
template std::vector<Buffer<Place>> read_lines_of(const RowsKept&, const Source&, std::size_t, const Lines&, int,
                                                  std::int64_t&);

ReadMatrix read_matrix(const Source& source, int threads, const std::function<void()>& release) {
  const Header h = read_header(source);
  threads = team_size(source.text, threads);
  ReadMatrix out;
  out.facts = {short_name(source.label), h.declared, h.entries, 0};
  const auto finish = [&](auto& pieces) {
    release();
    out.matrix = convert(source, h, pieces, h.mirror, false, threads, out.facts.duplicates);
  };
  const auto read_coordinates = [&]<class E>(E) {
    auto pieces = read_lines<E>(source, h.body, h.lines, h.entries, threads);
    require_count(source, h, count_entries(pieces));
    if (h.mirror != Mirror::none) require_one_of_each_pair(source, h, pieces, threads);
    finish(pieces);
  };
  if (h.array) {
    auto values = read_lines<double>(source, h.body, h.lines, h.entries, threads);
    require_count(source, h, count_entries(values));
    auto pieces = array_entries(h, values);
    finish(pieces);
  } else if (h.lines.value) {
    read_coordinates(Entry{});
  } else {
    read_coordinates(Place{});
  }
  return out;
}

}  // namespace krilu::io

namespace krilu {

ReadMatrix parse_matrix_market(std::string_view text, const std::string& label, int threads) {
  return io::guard_memory(label, [&] { return io::read_matrix({text, label}, threads, [] {}); });
}

ReadMatrix read_matrix_market(const std::string& path, int threads) {
  return io::guard_memory(path, [&] {
    io::TextFile file(path);
    return io::read_matrix({file.text(), path}, threads, [&file] { file.release(); });
  });
}

}  // namespace krilu
