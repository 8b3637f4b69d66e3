// SPDX-License-Identifier: Apache-2.0
// The header and the size line of a Matrix Market file, and the sentences for whatever is wrong in a file.
//
// A size line is only believed as far as the text behind it could hold what it promises; nothing is allocated for it.
// Cost: that of a few lines.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/matrix_market.hpp"

namespace krilu::io {

namespace {

constexpr std::string_view banner = "%%matrixmarket";
constexpr std::int64_t largest_size = INT32_MAX - 1;

std::string lower_case(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return out;
}

/// The fields of a line, no more than `most` of them.
std::vector<std::string_view> fields_of(std::string_view line, std::size_t most) {
  std::vector<std::string_view> fields;
  const char* p = line.data();
  const char* const end = p + line.size();
  while ((p = skip_blanks(p, end)) != end && fields.size() < most) {
    const char* stop = std::find_if(p, end, is_blank);
    fields.emplace_back(p, static_cast<std::size_t>(stop - p));
    p = stop;
  }
  return fields;
}

/// An integer that is the whole field.
bool whole_integer(std::string_view field, std::int64_t& value) {
  const char* const end = field.data() + field.size();
  return scan_integer(field.data(), end, value) == end;
}

void read_kind(const Source& source, std::string_view line, Header& h) {
  const char* const at = line.data();
  const std::vector<std::string_view> words = fields_of(line, 6);
  if (words.size() != 5)
    source.fail(at,
                fmt::format("the header has {} words; it needs five, such as '%%MatrixMarket matrix coordinate real "
                            "general'",
                            words.size() > 5 ? "more than five" : fmt::format("{}", words.size())));
  const std::string object = lower_case(words[1]), format = lower_case(words[2]);
  const std::string field = lower_case(words[3]), symmetry = lower_case(words[4]);
  if (object != "matrix")
    source.fail(at, fmt::format("the header says {}; only 'matrix' can be read", in_quotes(words[1])));
  if (format != "coordinate" && format != "array")
    source.fail(at, fmt::format("the format {} is unknown; it must be coordinate or array", in_quotes(words[2])));
  if (field == "complex" || symmetry == "hermitian")
    source.fail(at,
                fmt::format("what it holds is {} and krilu solves real systems; write [Re -Im; Im Re] as a real matrix "
                            "of twice the size instead, and [Re; Im] as its right-hand side",
                            field == "complex" ? "complex" : "Hermitian"));
  if (field != "real" && field != "integer" && field != "pattern")
    source.fail(at, fmt::format("the field {} is unknown; it must be real, integer or pattern", in_quotes(words[3])));
  if (symmetry != "general" && symmetry != "symmetric" && symmetry != "skew-symmetric")
    source.fail(at, fmt::format("the symmetry {} is unknown; it must be general, symmetric or skew-symmetric",
                                in_quotes(words[4])));
  h.array = format == "array";
  h.mirror = symmetry == "general" ? Mirror::none : symmetry == "symmetric" ? Mirror::same : Mirror::negated;
  h.lines.place = !h.array;
  h.lines.value = field != "pattern";
  h.lines.integer = field == "integer";
  h.lines.skew = h.mirror == Mirror::negated;
  if (!h.lines.value && h.array) source.fail(at, "an array cannot be a pattern; say real or integer, or coordinate");
  if (!h.lines.value && h.lines.skew)
    source.fail(at, "a pattern has no signs and cannot be skew-symmetric; say symmetric, or give values");
  h.declared = format + " " + field + " " + symmetry;
}

void read_sizes(const Source& source, std::string_view line, bool in_parts, Header& h) {
  const char* const at = line.data();
  const std::size_t needed = h.array ? 2 : 3;
  const std::vector<std::string_view> fields = fields_of(line, needed + 1);
  std::int64_t size[3] = {0, 0, 0};
  for (std::size_t k = 0; k < std::min(fields.size(), needed); ++k) {
    if (!whole_integer(fields[k], size[k]))
      source.fail(at, fmt::format("{} stands in the size line where an integer must be; write {}", in_quotes(fields[k]),
                                  h.array ? "rows and columns" : "rows, columns and entries"));
    if (size[k] < 0)
      source.fail(at, fmt::format("the size line has the negative number {}; correct it", in_quotes(fields[k])));
  }
  if (fields.size() != needed)
    source.fail(at, fmt::format("the size line has {}; it needs {}",
                                fields.size() > needed ? fmt::format("more than {} numbers", needed)
                                : fields.size() == 1   ? std::string("only one number")
                                                       : std::string("only two numbers"),
                                h.array ? "two: rows and columns" : "three: rows, columns and entries"));
  if (size[0] > largest_size || size[1] > largest_size)
    source.fail(at, fmt::format("the matrix has {} {}; the most that can be read is {}",
                                in_quotes(fields[size[0] > largest_size ? 0 : 1]),
                                size[0] > largest_size ? "rows" : "columns", largest_size));
  h.lines.rows = static_cast<Index>(size[0]);
  h.lines.columns = static_cast<Index>(size[1]);
  if (h.mirror != Mirror::none && size[0] != size[1])
    source.fail(at, fmt::format("the header says symmetric or skew-symmetric and the matrix is {} by {}; it must be "
                                "square, or general",
                                size[0], size[1]));
  if (h.array) {
    size[2] = h.mirror == Mirror::none   ? size[0] * size[1]
              : h.mirror == Mirror::same ? size[0] * (size[0] + 1) / 2
                                         : size[0] * (size[0] - 1) / 2;
  }
  h.entries = size[2];
  if (h.entries > INT32_MAX && !in_parts)
    source.fail(at,
                fmt::format("the matrix has {} entries; one matrix may hold fewer than 2147483648, so split it over "
                            "several processes",
                            h.array ? fmt::format("{}", size[2]) : in_quotes(fields[2])));
}

/// The sizes against what is left of the text.
void require_possible(const Source& source, const char* size_line, const Header& h) {
  // "1 1\n", "1 1 1\n" or "1\n", the last without its line end.
  const std::int64_t shortest = h.lines.place ? (h.lines.value ? 6 : 4) : 2;
  const std::int64_t left = static_cast<std::int64_t>(source.text.size() - h.body);
  if (h.entries * shortest - 1 > left)
    source.fail(size_line, fmt::format("the size line promises {} entries and only {} bytes follow, too few for them; "
                                       "the file is cut short, or the size line is wrong",
                                       h.entries, left));
  // Rows cost memory even where they are empty. Up to a quarter of a gigabyte of it is given without question, for
  // vectors with a few entries; beyond that a file of a hundred bytes must not ask for more.
  constexpr std::int64_t rows_at_least = std::int64_t(1) << 26, rows_per_entry = 64;
  if (h.lines.rows > rows_at_least + rows_per_entry * h.entries)
    source.fail(size_line,
                fmt::format("the size line promises {} rows and only {} entries, so that nearly every row is "
                            "empty; check the sizes, or drop the empty rows",
                            h.lines.rows, h.entries));
}

}  // namespace

void Source::fail(const char* at, const std::string& what) const {
  throw Error(fmt::format("{}:{}: {}", label, line_number(text, at), what));
}

bool is_matrix_market(std::string_view text) { return lower_case(text.substr(0, banner.size())) == banner; }

Header read_header(const Source& source, bool in_parts) {
  const std::string_view text = source.text;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  if (text.empty()) source.fail(begin, "the file is empty; a Matrix Market file opens with '%%MatrixMarket'");
  const std::string_view first = line_at(begin, end);
  if (!is_matrix_market(text) || (first.size() > banner.size() && !is_blank(first[banner.size()])))
    source.fail(begin, fmt::format("this is not a Matrix Market file, it opens with {}; the first line must be such as "
                                   "'%%MatrixMarket matrix coordinate real general'",
                                   in_quotes(first)));
  Header h;
  read_kind(source, first, h);
  const char* p = next_line(begin, end);
  while (p != end) {
    const char* next = scan_idle_line(p, end, "%");
    if (!next) break;
    p = next;
  }
  if (p == end) source.fail(p, "the file ends before the size line; it is cut short, fetch or write it again");
  read_sizes(source, line_at(p, end), in_parts, h);
  h.body = static_cast<std::size_t>(next_line(p, end) - begin);
  require_possible(source, p, h);
  return h;
}

void require_count(const Source& source, const Header& header, std::int64_t found) {
  if (found == header.entries) return;
  const char* p = source.text.data() + header.body;
  const char* const end = source.text.data() + source.text.size();
  if (found < header.entries) {
    const char* last = end != p && end[-1] == '\n' ? end - 1 : end;
    source.fail(last, fmt::format("the file ends after {} of the {} entries that the size line promises; it is cut "
                                  "short, or the size line is wrong",
                                  found, header.entries));
  }
  for (std::int64_t seen = 0; p != end;) {
    const char* idle = scan_idle_line(p, end, header.lines.comment);
    if (!idle && ++seen > header.entries) break;
    p = idle ? idle : next_line(p, end);
  }
  source.fail(p, fmt::format("the file goes on after the {} entries that the size line promises, to {}; correct the "
                             "size line, or remove the rest",
                             header.entries, found));
}

std::string what_is_wrong(std::string_view line, const Lines& lines) {
  const std::size_t needed = (lines.place ? 2 : 0) + (lines.value ? 1 : 0);
  const char* const what = !lines.place   ? "one value"
                           : !lines.value ? "a row and a column"
                                          : "a row, a column and a value";
  const std::vector<std::string_view> fields = fields_of(line, needed + 1);
  const auto index = [&](std::size_t k, const char* name, Index most) -> std::string {
    std::int64_t i = 0;
    if (!whole_integer(fields[k], i))
      return fmt::format("{} stands where the {} must be, an integer from 1 to {}; correct it", in_quotes(fields[k]),
                         name, most);
    if (i == 0) return fmt::format("the {} is 0 and Matrix Market counts from 1; add 1 to every row and column", name);
    if (i < 1 || i > most)
      return fmt::format("the {} {} is outside 1 to {}; correct it or the size line", name, in_quotes(fields[k]), most);
    return {};
  };
  const std::size_t present = std::min(fields.size(), needed);
  for (std::size_t k = 0; lines.place && k < std::min<std::size_t>(present, 2); ++k) {
    std::string wrong = k == 0 ? index(0, "row", lines.rows) : index(1, "column", lines.columns);
    if (!wrong.empty()) return wrong;
  }
  if (lines.value && present == needed) {
    const std::string_view field = fields[needed - 1];
    const char* const end = field.data() + field.size();
    double v = 0;
    if (scan_double(field.data(), end, v) != end)
      return fmt::format("{} stands where a number must be; correct it", in_quotes(field));
    if (!std::isfinite(v)) {
      const bool digits = std::any_of(field.begin(), field.end(), is_digit);
      return fmt::format("the value {} is {}; correct it", in_quotes(field),
                         digits ? "beyond the largest double, 1.8e308" : "not a finite number");
    }
    if (lines.integer && v != std::trunc(v))
      return fmt::format("the value {} is not whole and the header says integer; say real there", in_quotes(field));
  }
  if (fields.size() != needed)
    return fmt::format("the line has {} where {} must be; correct it",
                       fields.size() > needed ? fmt::format("more than {} fields", needed)
                       : fields.size() == 1   ? std::string("only one field")
                                              : fmt::format("only {} fields", fields.size()),
                       what);
  if (lines.skew && lines.place)
    return "a skew-symmetric matrix has zeros on its diagonal and this value is not zero; remove it or say general";
  return fmt::format("{} cannot be read as {}; correct it", in_quotes(line), what);
}

}  // namespace krilu::io
