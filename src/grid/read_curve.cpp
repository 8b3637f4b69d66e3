// SPDX-License-Identifier: Apache-2.0
#include "grid/read_curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "grid/plane.hpp"
#include "io/matrix_market.hpp"
#include "io/scan.hpp"
#include "io/text_file.hpp"
#include "krilu/error.hpp"

namespace krilu::grid {

namespace {

using io::Source;
using std::size_t;

constexpr double same = 1e-9;       // chords: points nearer than that are one
constexpr double open_gap = 0.1;    // chords: ends farther apart make no base
constexpr double highest = 1e6;     // chords: what stands off farther is a mistake
constexpr double corner_turn = 25;  // degrees, at both ends of a base

struct Row {
  Point at;
  const char* line = nullptr;  // where it stands in the text
  bool after_blank = false;    // behind a blank line
};

struct Table {
  std::string title;
  std::vector<Row> rows;
};

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && io::is_blank(line.front())) line.remove_prefix(1);
  while (!line.empty() && io::is_blank(line.back())) line.remove_suffix(1);
  return line;
}

std::string_view first_field(std::string_view line) {
  const auto stop = std::find_if(line.begin(), line.end(), [](char c) { return io::is_blank(c) || c == ','; });
  return line.substr(0, size_t(stop - line.begin()));
}

/// A number, and whether it was all of its field.
const char* scan_field(const char* p, const char* end, double& value) {
  p = io::scan_double(p, end, value);
  return p && (p == end || io::is_blank(*p) || *p == ',') ? p : nullptr;
}

/// What is wrong with a line that should be two numbers; empty if nothing is.
std::string read_point(std::string_view line, Point& point) {
  const char *p = line.data(), *const end = p + line.size();
  for (double* value : {&point.x, &point.y}) {
    p = io::skip_blanks(p, end);
    if (value == &point.y && p != end && *p == ',') p = io::skip_blanks(p + 1, end);
    const std::string_view rest(p, size_t(end - p));
    if (rest.empty()) return "the line has one number; give two, x and y";
    p = scan_field(p, end, *value);
    if (!p)
      return fmt::format("{} stands where a number must be; give x and y, or put text behind a '#'",
                         io::in_quotes(first_field(rest)));
  }
  if (io::skip_blanks(p, end) != end) return "the line has more than two numbers; give two, x and y";
  return "";
}

/// A first line that is no point, unless it is one that was spoilt.
bool is_title(std::string_view line) {
  const std::string_view field = first_field(line);
  double number;
  if (!scan_field(field.data(), field.data() + field.size(), number)) return true;
  return field.find('.') == std::string_view::npos &&
         std::any_of(line.begin(), line.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
}

Table read_table(const Source& source) {
  Table table;
  const char* p = source.text.data();
  const char* const end = p + source.text.size();
  if (source.text.starts_with("\xef\xbb\xbf")) p += 3;  // the mark of UTF-8
  bool first = true, after_blank = false;
  for (; p != end; p = io::next_line(p, end)) {
    const std::string_view whole = io::line_at(p, end), line = trimmed(whole.substr(0, whole.find('#')));
    if (line.empty()) {
      after_blank = after_blank || trimmed(whole).empty();
      continue;
    }
    Row row{{}, line.data(), after_blank};
    const std::string trouble = read_point(line, row.at);
    if (!trouble.empty() && first && is_title(line)) {
      table.title = line;
    } else if (!trouble.empty()) {
      source.fail(row.line, trouble);
    } else {
      for (const auto& [axis, value] : {std::pair('x', row.at.x), std::pair('y', row.at.y)})
        if (!std::isfinite(value)) source.fail(row.line, fmt::format("{} is {}, which is no place", axis, value));
      table.rows.push_back(row);
    }
    first = after_blank = false;
  }
  return table;
}

bool is_count(double v) { return v >= 2 && v < 1e9 && v == std::floor(v); }

double distance(const Point& a, const Point& b) { return length(a - b); }

double chord_of(std::span<const Row> rows) {
  const auto [least, largest] =
      std::minmax_element(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.at.x < b.at.x; });
  return largest->at.x - least->at.x;
}

/// Whether the first row holds two numbers of points: they fit and both sides begin at one place, or they lie far from
/// everything else.
bool is_lednicer(const std::vector<Row>& rows) {
  if (rows.size() < 2 || !is_count(rows[0].at.x) || !is_count(rows[0].at.y)) return false;
  const auto points = std::span(rows).subspan(1);
  if (rows[0].at.x + rows[0].at.y == double(points.size()) &&
      distance(points[0].at, points[size_t(rows[0].at.x)].at) <= open_gap * chord_of(points))
    return true;
  double largest = 0;
  for (const Row& r : points) largest = std::max({largest, std::abs(r.at.x), std::abs(r.at.y)});
  return std::min(rows[0].at.x, rows[0].at.y) > 1.5 * largest;
}

/// From one end of the trailing edge over the leading edge to the other.
std::vector<Row> from_lednicer(const Source& source, const std::vector<Row>& rows) {
  const Row& counts = rows[0];
  const size_t found = rows.size() - 1;
  // The second blank line parts the sides: the first may stand behind the counts.
  size_t parted = 2;
  while (parted < rows.size() && !rows[parted].after_blank) ++parted;
  const bool blank = parted < rows.size();
  if (counts.at.x + counts.at.y != double(found) || (blank && double(parted - 1) != counts.at.x))
    source.fail(counts.line, fmt::format("the line says that {} and {} points follow, and {}; correct the two numbers",
                                         counts.at.x, counts.at.y,
                                         blank ? fmt::format("{} and {} do", parted - 1, rows.size() - parted)
                                               : fmt::format("{} do in all", found)));
  const auto upper = rows.begin() + 1, lower = upper + std::ptrdiff_t(counts.at.x);
  std::vector<Row> out(std::make_reverse_iterator(lower), std::make_reverse_iterator(upper));
  // Both sides have the leading edge.
  const bool once = distance(upper->at, lower->at) < same * chord_of(std::span(rows).subspan(1));
  out.insert(out.end(), lower + (once ? 1 : 0), rows.end());
  return out;
}

/// A polygon on its way to be a curve: no point twice, and the last is followed by the first.
struct Polygon {
  const Source& source;
  std::vector<Row> row;
  double chord;
  bool gap = false;  // the file does not say what leads from the last point to the first

  size_t size() const { return row.size(); }
  const Row& next(size_t k) const { return row[k + 1 == size() ? 0 : k + 1]; }
  const Row& previous(size_t k) const { return row[k == 0 ? size() - 1 : k - 1]; }
  double turn(size_t k) const { return turning(previous(k).at, row[k].at, next(k).at); }
  std::int64_t line(const Row& r) const { return io::line_number(source.text, r.line); }

  [[noreturn]] void fail(const std::string& what) const { throw Error(fmt::format("{}: {}", source.label, what)); }
  void require_points() const {
    if (size() < 3)
      fail(fmt::format("the file has {} point{}; a closed curve needs three or more that differ", size(),
                       size() == 1 ? "" : "s"));
  }
};

void close(Polygon& polygon) {
  std::vector<Row>& row = polygon.row;
  polygon.require_points();
  if (polygon.chord == 0) polygon.fail("all points have the same x: they enclose no area");
  for (const Row& r : row)
    if (!(distance(r.at, row[0].at) < highest * polygon.chord) || !std::isfinite(polygon.chord))
      polygon.source.fail(r.line, fmt::format("({}, {}) is too far from the first point, ({}, {}), for a curve that is "
                                              "{} long in x; correct it, or give coordinates in chords",
                                              r.at.x, r.at.y, row[0].at.x, row[0].at.y, polygon.chord));
  for (size_t k = 1; k < row.size(); ++k)
    if (distance(row[k - 1].at, row[k].at) < same * polygon.chord)
      polygon.source.fail(row[k].line, fmt::format("the point ({}, {}) is that of line {} again; remove one of them",
                                                   row[k].at.x, row[k].at.y, polygon.line(row[k - 1])));
  const double gap = distance(row.front().at, row.back().at) / polygon.chord;
  if (gap < same) {
    row.pop_back();
    polygon.require_points();
  } else if (gap > open_gap) {
    polygon.fail(fmt::format(
        "the curve is open: its first point ({}, {}) at line {} and its last ({}, {}) at line {} are {:.3g} "
        "chords apart; give the first point again as the last, or the points that are missing between them",
        row.front().at.x, row.front().at.y, polygon.line(row.front()), row.back().at.x, row.back().at.y,
        polygon.line(row.back()), gap));
  }
  polygon.gap = gap >= same;
}

/// Twice the area, positive where the points go anticlockwise, over the chord's square.
double area_of(const Polygon& polygon) {
  const Point o = polygon.row[0].at;
  double sum = 0;
  for (size_t k = 0; k < polygon.size(); ++k) {
    const Point a = polygon.row[k].at, b = polygon.next(k).at;
    sum += (a.x - o.x) / polygon.chord * ((b.y - o.y) / polygon.chord) -
           (b.x - o.x) / polygon.chord * ((a.y - o.y) / polygon.chord);
  }
  return sum;
}

/// Largest distance from the line through the first point and the one farthest from it, in chords.
double thickness_of(const Polygon& polygon) {
  const Point o = polygon.row[0].at;
  const Point far = std::max_element(polygon.row.begin(), polygon.row.end(), [&](const Row& a, const Row& b) {
                      return distance(a.at, o) < distance(b.at, o);
                    })->at;
  const double length = distance(far, o);
  double largest = 0;
  for (const Row& r : polygon.row)
    largest = std::max(largest, std::abs((far.x - o.x) / length * ((r.at.y - o.y) / polygon.chord) -
                                         (far.y - o.y) / length * ((r.at.x - o.x) / polygon.chord)));
  return largest;
}

void require_simple(const Polygon& polygon) {
  if (thickness_of(polygon) < same) polygon.fail("all points lie on one straight line: they enclose no area");
  std::vector<Point> closed;
  for (const Row& r : polygon.row) closed.push_back(r.at);
  closed.push_back(closed.front());
  const auto meeting = crossing_sides(closed);
  if (!meeting) return;
  const auto side = [&](Index k) {
    return fmt::format("from line {} to line {}", polygon.line(polygon.row[size_t(k)]),
                       polygon.line(polygon.next(size_t(k))));
  };
  polygon.fail(fmt::format(
      "the curve crosses or touches itself: the piece {} meets the piece {}; put the points in the sequence "
      "in which they lie on the curve",
      side(meeting->first), side(meeting->second)));
}

/// The polygon beginning at k.
void begin_at(Polygon& polygon, size_t k) {
  std::rotate(polygon.row.begin(), polygon.row.begin() + std::ptrdiff_t(k), polygon.row.end());
}

/// The polygon beginning in the middle of its way from row `from` to row `to`, which it makes a point if it is none.
void begin_between(Polygon& polygon, size_t from, size_t to) {
  const size_t n = polygon.size();
  double length = 0;
  for (size_t k = from; k != to; k = (k + 1) % n) length += distance(polygon.row[k].at, polygon.next(k).at);
  double left = length / 2;
  size_t k = from;
  for (; k != to; k = (k + 1) % n) {
    const double side = distance(polygon.row[k].at, polygon.next(k).at);
    if (left <= side) break;
    left -= side;
  }
  const Point a = polygon.row[k].at, b = polygon.next(k).at;
  const double side = distance(a, b);
  if (left < same * polygon.chord) return begin_at(polygon, k);
  if (side - left < same * polygon.chord) return begin_at(polygon, (k + 1) % n);
  Row middle = polygon.row[k];
  // The mean where that is it, so that what is symmetric stays so to the last bit.
  middle.at = (k + 1) % n == to && k == from ? Point{(a.x + b.x) / 2, (a.y + b.y) / 2} : a + (left / side) * (b - a);
  polygon.row.insert(polygon.row.begin() + std::ptrdiff_t(k) + 1, middle);
  begin_at(polygon, k + 1);
}

/// Lets the polygon, which is clockwise, begin where the curve does. True where that is within a base; `ends` are the
/// base's two corners then.
bool begin_at_trailing_edge(Polygon& polygon, size_t first, std::pair<Point, Point>& ends) {
  const size_t n = polygon.size();
  size_t from = 0;
  for (size_t k = 1; k < n; ++k)
    if (polygon.row[k].at.x > polygon.row[from].at.x) from = k;
  const double largest = polygon.row[from].at.x;
  const auto behind = [&](size_t k, double chords) { return largest - polygon.row[k].at.x <= chords * polygon.chord; };
  size_t to = from;
  const size_t other = (first + n - 1) % n;  // across the gap, if there is one; it and `first` are the file's ends
  if (polygon.gap && behind(first, open_gap) && behind(other, open_gap) && polygon.turn(first) >= corner_turn &&
      polygon.turn(other) >= corner_turn) {
    from = other;
    to = first;
  } else if (!polygon.gap && behind(first, 0.01) && polygon.turn(first) >= 85 &&
             !(behind((first + 1) % n, same) || behind(other, same))) {
    from = to = first;
  } else {
    while (behind((from + n - 1) % n, same)) from = (from + n - 1) % n;
    while (behind((to + 1) % n, same)) to = (to + 1) % n;
  }
  ends = {polygon.row[from].at, polygon.row[to].at};
  const double base = distance(ends.first, ends.second);
  const bool open = base > 0 && base <= open_gap * polygon.chord && polygon.turn(from) >= corner_turn &&
                    polygon.turn(to) >= corner_turn;
  if (from == to)
    begin_at(polygon, from);
  else
    begin_between(polygon, from, to);
  return open;
}

Curve curve_of(Polygon polygon) {
  // Either the first row or, where the polygon was turned round, the last row is the file's first.
  size_t first = 0;
  if (area_of(polygon) > 0) {
    std::reverse(polygon.row.begin(), polygon.row.end());
    if (!polygon.gap) begin_at(polygon, polygon.size() - 1);
  }
  std::pair<Point, Point> ends;
  Curve curve;
  curve.open_edge = begin_at_trailing_edge(polygon, first, ends);
  const auto left = std::min_element(polygon.row.begin(), polygon.row.end(), [](const Row& a, const Row& b) {
                      return a.at.x < b.at.x;
                    })->at.x;
  const double zero = polygon.row[0].at.y;
  const auto moved = [&](const Point& p) { return Point{(p.x - left) / polygon.chord, (p.y - zero) / polygon.chord}; };
  for (const Row& r : polygon.row) curve.point.push_back(moved(r.at));
  curve.point.push_back(curve.point.front());
  curve.corner = corners_of(curve.point);
  if (curve.open_edge) {
    for (const Point& end : {moved(ends.first), moved(ends.second)}) {
      const auto place = std::find_if(curve.point.begin(), curve.point.end(),
                                      [&](const Point& p) { return p.x == end.x && p.y == end.y; });
      curve.corner.push_back(Index(place - curve.point.begin()));
    }
    std::sort(curve.corner.begin(), curve.corner.end());
    curve.corner.erase(std::unique(curve.corner.begin(), curve.corner.end()), curve.corner.end());
  }
  return curve;
}

}  // namespace

Curve read_curve(const std::string& path) {
  const io::TextFile file(path);
  const Source source{file.text(), path};
  Table table = read_table(source);
  if (table.rows.empty())
    throw Error(fmt::format("{}: the file holds no points; give x and y of one in each line", path));
  if (table.rows.size() >= size_t(std::numeric_limits<Index>::max()) / 4)
    throw Error(fmt::format("{}: the file holds {} points; fewer than {} can be read", path, table.rows.size(),
                            std::numeric_limits<Index>::max() / 4));
  if (is_lednicer(table.rows)) table.rows = from_lednicer(source, table.rows);
  Polygon polygon{source, std::move(table.rows), 0};
  polygon.chord = chord_of(polygon.row);
  close(polygon);
  require_simple(polygon);
  Curve curve = curve_of(std::move(polygon));
  curve.name = table.title.empty() ? io::short_name(path) : table.title;
  return curve;
}

}  // namespace krilu::grid
