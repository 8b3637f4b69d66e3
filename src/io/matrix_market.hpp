// SPDX-License-Identifier: Apache-2.0
// Parts of the Matrix Market reader that the vector reader shares: the header, and the lines of the body, parsed by a
// team of threads.
// Source: the Matrix Market exchange formats (Boisvert, Pozo, Remington 1996).
#pragma once

#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "io/coordinates.hpp"
#include "krilu/io.hpp"

namespace krilu::io {

/// What the lines of a body hold, and the bounds of it.
struct Lines {
  bool place = true;     // row and column first
  bool value = true;     // then a number
  bool integer = false;  // which is whole
  bool skew = false;     // and zero on the diagonal
  Index rows = 0;
  Index columns = 0;
  std::string_view comment = "%";
};

struct Header {
  bool array = false;
  Mirror mirror = Mirror::none;
  Lines lines;
  std::int64_t entries = 0;  // lines that the body must have
  std::string declared;      // e.g. "coordinate real symmetric"
  std::size_t body = 0;      // where the body starts in the text
};

/// A text and what messages call it.
struct Source {
  std::string_view text;
  const std::string& label;

  [[noreturn]] void fail(const char* at, const std::string& what) const;
};

bool is_matrix_market(std::string_view text);

/// Throws krilu::Error unless the header is one that this library reads and the sizes are possible for the text.
/// `in_parts`: the entries need not fit one matrix.
Header read_header(const Source& source, bool in_parts = false);

/// The entries of text[body..] in order, one Buffer for each piece of it. Throws krilu::Error at the first bad line.
/// E is Entry, Place or double.
template <class E>
std::vector<Buffer<E>> read_lines(const Source& source, std::size_t body, const Lines& lines, std::int64_t expected,
                                  int threads);
extern template std::vector<Buffer<Entry>> read_lines(const Source&, std::size_t, const Lines&, std::int64_t, int);
extern template std::vector<Buffer<Place>> read_lines(const Source&, std::size_t, const Lines&, std::int64_t, int);
extern template std::vector<Buffer<double>> read_lines(const Source&, std::size_t, const Lines&, std::int64_t, int);

/// Entries that are kept of a text: those of rows first .. end - 1, and with `mirrored` of these columns too.
struct RowsKept {
  Index first = 0;
  Index end = 0;
  bool mirrored = false;
  bool operator()(Index row, Index column) const {
    return (row >= first && row < end) || (mirrored && column >= first && column < end);
  }
};

/// read_lines() of which only some entries are kept; `found` is the number of all. Of a line that is not kept only the
/// place is read. E is Entry or Place.
template <class E>
std::vector<Buffer<E>> read_lines_of(const RowsKept& kept, const Source& source, std::size_t body, const Lines& lines,
                                     int threads, std::int64_t& found);
extern template std::vector<Buffer<Entry>> read_lines_of(const RowsKept&, const Source&, std::size_t, const Lines&, int,
                                                         std::int64_t&);
extern template std::vector<Buffer<Place>> read_lines_of(const RowsKept&, const Source&, std::size_t, const Lines&, int,
                                                         std::int64_t&);

/// The row and column at the start of a line, counted from 0; the place after them, or nullptr where they are not such.
const char* place_of(const char* p, const char* end, const Lines& lines, Index& row, Index& column);

/// Throws krilu::Error unless the pieces hold as many entries as the header says.
void require_count(const Source& source, const Header& header, std::int64_t found);

/// The sentence for a line that read_lines would not take.
std::string what_is_wrong(std::string_view line, const Lines& lines);

/// The whole reader. `release` is called when the text is no longer needed.
ReadMatrix read_matrix(const Source& source, int threads, const std::function<void()>& release);

/// f(), with want of memory turned into a krilu::Error.
template <class F>
auto guard_memory(const std::string& label, F f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    throw Error(label + ": the memory of this machine does not suffice to read it; use a larger one");
  }
}

/// `threads` as the caller meant it: 0 stands for all, or for one where the text is too short to share.
int team_size(std::string_view text, int threads);

template <class E>
std::int64_t count_entries(const std::vector<Buffer<E>>& pieces) {
  std::int64_t n = 0;
  for (const Buffer<E>& piece : pieces) n += static_cast<std::int64_t>(piece.size());
  return n;
}

}  // namespace krilu::io
