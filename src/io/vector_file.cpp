// SPDX-License-Identifier: Apache-2.0
// Dense vectors from files: Matrix Market (array, or coordinate with one column) or plain text, one number a line.
// Plain text may have blank lines and comments that open with % or #.
// Cost: one pass over the text; memory for the vector twice.
#include <fmt/format.h>

#include "io/matrix_market.hpp"
#include "io/text_file.hpp"

namespace krilu {

namespace {

std::vector<double> joined(const std::vector<Buffer<double>>& pieces) {
  std::vector<double> x;
  x.reserve(static_cast<std::size_t>(io::count_entries(pieces)));
  for (const Buffer<double>& piece : pieces) x.insert(x.end(), piece.begin(), piece.end());
  return x;
}

std::vector<double> read_plain(const io::Source& source, int threads) {
  io::Lines lines;
  lines.place = false;
  lines.comment = "%#";
  constexpr std::size_t usual_line = 20;
  const auto expected = static_cast<std::int64_t>(source.text.size() / usual_line);
  const auto pieces = io::read_lines<double>(source, 0, lines, expected, threads);
  const std::int64_t n = io::count_entries(pieces);
  if (n == 0) source.fail(source.text.data(), "the file holds no numbers; give one a line, or a Matrix Market array");
  if (n >= INT32_MAX)
    throw Error(
        fmt::format("{}: the vector has {} numbers; the most that can be read is {}", source.label, n, INT32_MAX - 1));
  return joined(pieces);
}

std::vector<double> read_array(const io::Source& source, const io::Header& h, int threads) {
  if (h.mirror == io::Mirror::negated) source.fail(source.text.data(), "a vector is not skew-symmetric; say general");
  const auto pieces = io::read_lines<double>(source, h.body, h.lines, h.entries, threads);
  io::require_count(source, h, io::count_entries(pieces));
  return joined(pieces);
}

std::vector<double> read_one_column(const io::Source& source, int threads) {
  const ReadMatrix read = io::read_matrix(source, threads, [] {});
  const CsrMatrix& a = read.matrix;
  std::vector<double> x(static_cast<std::size_t>(a.rows), 0.0);
  for (Index i = 0; i < a.rows; ++i) {
    if (a.offsets[i + 1] > a.offsets[i]) x[static_cast<std::size_t>(i)] = a.values[a.offsets[i]];
  }
  return x;
}

}  // namespace

std::vector<double> read_vector(const std::string& path, int threads) {
  return io::guard_memory(path, [&] {
    const io::TextFile file(path);
    const io::Source source{file.text(), path};
    const int team = io::team_size(source.text, threads);
    if (!io::is_matrix_market(source.text)) return read_plain(source, team);
    const io::Header h = io::read_header(source);
    const Index rows = h.lines.rows, columns = h.lines.columns;
    if (columns != 1 && !(h.array && rows == 1))
      throw Error(fmt::format("{}: it holds a matrix of {} by {} where a vector is needed; give a file with one column",
                              path, rows, columns));
    return h.array ? read_array(source, h, team) : read_one_column(source, team);
  });
}

}  // namespace krilu
