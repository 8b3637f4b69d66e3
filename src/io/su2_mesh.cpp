// SPDX-License-Identifier: Apache-2.0
// Reading of SU2 meshes; see su2_mesh.hpp. One pass over the lines. What is only found out later (a node that does not
// exist, a marker's face that is none) is said with its line all the same: sections keep where they start, and their
// lines are counted again from there.
#include "io/su2_mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "io/matrix_market.hpp"
#include "io/scan.hpp"
#include "io/text_file.hpp"
#include "krilu/error.hpp"
#include "mesh/elements.hpp"

namespace krilu::io {

namespace {

using mesh::Shape;

/// A line without its comment, from its first field on.
struct Line {
  const char *p, *end;
  const char* past;  // the start of the next one

  std::string_view text() const {
    const char* stop = end;
    while (stop != p && is_blank(stop[-1])) --stop;
    return {p, std::size_t(stop - p)};
  }
  bool done() const { return skip_blanks(p, end) == end; }
  template <class N, class Scan>
  bool take(N& number, Scan scan) {
    const char* const after = scan(skip_blanks(p, end), end, number);
    if (!after || (after != end && !is_blank(*after))) return false;
    p = after;
    return true;
  }
  bool take(std::int64_t& number) { return take(number, scan_integer); }
  bool take(double& number) { return take(number, scan_double); }
};

struct Keyword {
  std::string_view name, value;
};

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && is_blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_blank(s.back())) s.remove_suffix(1);
  return s;
}

/// Whether the line is NAME= VALUE.
bool is_keyword(std::string_view line, Keyword& k) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return false;
  k = {trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1))};
  return !k.name.empty() && !is_digit(k.name[0]) && k.name[0] != '-' && k.name[0] != '.';
}

struct VtkType {
  std::int64_t code;
  Shape shape;
  int dimensions;
};
constexpr std::array vtk_types{VtkType{3, Shape::line, 1},          VtkType{5, Shape::triangle, 2},
                               VtkType{9, Shape::quadrilateral, 2}, VtkType{10, Shape::tetrahedron, 3},
                               VtkType{12, Shape::hexahedron, 3},   VtkType{13, Shape::prism, 3},
                               VtkType{14, Shape::pyramid, 3}};
const char* const type_lists[] = {"3 (line)", "5 (triangle) or 9 (quadrilateral)",
                                  "10 (tetrahedron), 12 (hexahedron), 13 (prism) or 14 (pyramid)"};

/// Where in the text elements stand.
struct Section {
  std::size_t first;  // number of its first element
  const char* at;     // its first line
};

/// What one zone has.
struct Zone {
  std::size_t first_cell = 0, first_mark = 0, first_point = 0;
  std::size_t cell_corners = 0, mark_corners = 0;  // where those of its elements begin
  bool cells = false, points = false;
  std::int64_t declared_marks = -1, marks = 0;
  const char* marks_at = nullptr;  // NMARK
};

class Su2Reader {
 public:
  Su2Reader(std::string_view text, const std::string& label)
      : source_{text, label}, next_(text.data()), end_(text.data() + text.size()) {}

  mesh::Elements read() {
    Line line{};
    bool passing_over = false;
    while (next(line)) {
      Keyword k;
      if (is_keyword(line.text(), k)) {
        passing_over = !section(line, k);
      } else if (!passing_over) {
        fail(line.p, fmt::format("{} stands where a keyword belongs, such as NELEM= or MARKER_TAG=; does a count "
                                 "before it say too little?",
                                 in_quotes(line.text())));
      }
    }
    end_zone(end_);
    if (zones_ < declared_zones_)
      fail(end_, fmt::format("the file ends with zone {}, and NZONE says {}", zones_, declared_zones_));
    return std::move(e_);
  }

  [[noreturn]] void fail(const char* at, const std::string& what) const { source_.fail(at, what); }
  [[noreturn]] void fail(const mesh::WrongElement& wrong) const {
    fail(line_of(wrong.boundary ? mark_sections_ : cell_sections_, wrong.number), wrong.what);
  }

 private:
  /// The next line that is neither blank nor comment; false at the end.
  bool next(Line& line) {
    while (next_ != end_) {
      const char* const past = next_line(next_, end_);
      const char* const stop = std::find_if(next_, past, [](char c) { return c == '%' || c == '\n'; });
      line = {skip_blanks(next_, stop), stop, past};
      next_ = past;
      if (line.p != line.end) return true;
    }
    return false;
  }

  /// Reads what belongs to a keyword; false where it is none of the reader's.
  bool section(const Line& line, const Keyword& k) {
    if (k.name == "NDIME") {
      const std::int64_t n = count(line, k);
      if (n != 2 && n != 3) fail(line.p, fmt::format("NDIME is {}; meshes have 2 or 3 dimensions", n));
      if (dimensions_ != 0 && n != dimensions_)
        fail(line.p, fmt::format("NDIME is {} here and {} above; all zones have the same", n, dimensions_));
      e_.dimensions = dimensions_ = int(n);
    } else if (k.name == "NZONE") {
      declared_zones_ = count(line, k);
    } else if (k.name == "IZONE") {
      const std::int64_t n = count(line, k);
      end_zone(line.p);
      if (n != ++zones_) fail(line.p, fmt::format("zone {} stands where zone {} belongs", n, zones_));
      if (declared_zones_ > 0 && zones_ > declared_zones_)
        fail(line.p, fmt::format("zone {} begins here, and NZONE says {}", zones_, declared_zones_));
    } else if (k.name == "NELEM") {
      cells(line, k);
    } else if (k.name == "NPOIN") {
      points(line, k);
    } else if (k.name == "NMARK") {
      zone_.declared_marks = count(line, k);
      zone_.marks_at = line.p;
    } else if (k.name == "MARKER_TAG") {
      require_no_tag(line.p);
      if (k.value.empty()) fail(line.p, "MARKER_TAG names no marker");
      tag_ = k.value;
    } else if (k.name == "MARKER_ELEMS") {
      marker(line, k);
    } else {
      return false;
    }
    return true;
  }

  /// The whole number of a keyword, behind which older files have another.
  std::int64_t count(const Line& line, const Keyword& k) const {
    Line value{k.value.data(), k.value.data() + k.value.size(), nullptr};
    std::int64_t n = 0, more = 0;
    const bool sound = value.take(n) && n >= 0 && (value.done() || value.take(more)) && value.done();
    if (!sound) fail(line.p, fmt::format("{} is {}, and must be a whole number from 0", k.name, in_quotes(k.value)));
    if (n > std::numeric_limits<Index>::max())
      fail(line.p, fmt::format("{} is {}, and krilu counts to 2147483647", k.name, n));
    return n;
  }

  void require_dimensions(const Line& line, const Keyword& k) const {
    if (dimensions_ == 0) fail(line.p, fmt::format("NDIME must stand before {}", k.name));
  }
  void require_no_tag(const char* at) const {
    if (!tag_.empty()) fail(at, fmt::format("the marker {} above has no MARKER_ELEMS", in_quotes(tag_)));
  }

  /// The next of `n` lines of a section, of which k were read.
  Line data_line(const Keyword& keyword, std::int64_t k, std::int64_t n) {
    const char* const at = next_;
    Line line{};
    Keyword ignored;
    if (!next(line)) fail(end_, fmt::format("the file ends after {} of the {} lines that {} says", k, n, keyword.name));
    if (is_keyword(line.text(), ignored))
      fail(line.p,
           fmt::format("{} stands after {} of the {} lines that {} says", in_quotes(line.text()), k, n, keyword.name));
    if (k == 0) section_at_ = at;
    return line;
  }

  /// As many as fit the rest of the text, so that a count cannot ask for memory out of proportion.
  std::size_t plausible(std::int64_t n, std::size_t least_bytes) const {
    return std::min(std::size_t(n), std::size_t(end_ - next_) / least_bytes + 1);
  }

  void element(Line line, int dimensions, const char* what, mesh::ElementList& list) const {
    const char* const at = line.p;
    std::int64_t code = 0;
    if (!line.take(code)) fail(at, fmt::format("{} is no {}: it begins with no type", in_quotes(line.text()), what));
    const auto* const type =
        std::find_if(vtk_types.begin(), vtk_types.end(), [code](const VtkType& t) { return t.code == code; });
    if (type == vtk_types.end() || type->dimensions != dimensions)
      fail(at, fmt::format("a {} has the VTK type {}, which must be {} in {} dimensions", what, code,
                           type_lists[dimensions - 1], dimensions_));
    const std::size_t n = mesh::corners_of(type->shape);
    std::array<Index, 8> corners{};
    for (std::size_t i = 0; i < n; ++i) {
      std::int64_t corner = 0;
      if (!line.take(corner) || corner < 0 || corner > std::numeric_limits<Index>::max())
        fail(at, fmt::format("a {} of type {} has {} nodes, which are whole numbers from 0; this one has {}", what,
                             code, n, i));
      corners[i] = Index(corner);
      if (std::find(corners.begin(), corners.begin() + std::ptrdiff_t(i), corners[i]) !=
          corners.begin() + std::ptrdiff_t(i))
        fail(at, fmt::format("the {} names node {} twice", what, corner));
    }
    std::int64_t index = 0;
    if (!line.done() && !(line.take(index) && line.done()))
      fail(at, fmt::format("a {} of type {} has {} nodes and perhaps an index; this one goes on", what, code, n));
    list.add(type->shape, corners.data());
  }

  void cells(const Line& line, const Keyword& k) {
    require_dimensions(line, k);
    if (zone_.cells) fail(line.p, "NELEM stands here a second time");
    zone_.cells = true;
    const std::int64_t n = count(line, k);
    if (n == 0) fail(line.p, "the mesh has no elements");
    e_.cells.shape.reserve(e_.cells.size() + plausible(n, 8));
    for (std::int64_t i = 0; i < n; ++i) element(data_line(k, i, n), dimensions_, "element", e_.cells);
    cell_sections_.push_back({zone_.first_cell, section_at_});
  }

  void points(const Line& keyword_line, const Keyword& k) {
    require_dimensions(keyword_line, k);
    if (zone_.points) fail(keyword_line.p, "NPOIN stands here a second time");
    zone_.points = true;
    const std::int64_t n = count(keyword_line, k);
    if (n == 0) fail(keyword_line.p, "NPOIN is 0: a mesh has points");
    if (e_.points.size() + std::size_t(n) > std::size_t(std::numeric_limits<Index>::max()))
      fail(keyword_line.p, "the zones have 2^31 points or more, too many for one mesh");
    e_.points.reserve(e_.points.size() + plausible(n, 4));
    constexpr int most_behind = 3;  // a third coordinate, and the index on a rank and among all
    for (std::int64_t i = 0; i < n; ++i) {
      Line line = data_line(k, i, n);
      const char* const at = line.p;
      std::array<double, 3> x{0, 0, 0};
      for (int d = 0; d < dimensions_; ++d)
        if (!line.take(x[std::size_t(d)]) || !std::isfinite(x[std::size_t(d)]))
          fail(at, fmt::format("{} is no point: it has {} coordinates, which are finite numbers",
                               in_quotes(line_of(at)), dimensions_));
      double behind = 0;
      for (int more = 0; !line.done(); ++more)
        if (more == most_behind || !line.take(behind))
          fail(at, fmt::format("{} is no point: {} coordinates and perhaps an index stand on its line",
                               in_quotes(line_of(at)), dimensions_));
      e_.points.push_back({x[0], x[1], x[2]});
    }
  }

  void marker(const Line& line, const Keyword& k) {
    require_dimensions(line, k);
    if (tag_.empty()) fail(line.p, "MARKER_ELEMS stands without a MARKER_TAG before it");
    if (tag_ == "unmarked" || (dimensions_ == 2 && (tag_ == "back" || tag_ == "front")))
      fail(line.p, fmt::format("the marker {} has the name of a patch that is added: rename it", in_quotes(tag_)));
    const auto [known, is_new] = patch_of_.try_emplace(tag_, Index(e_.patches.size()));
    const Index patch = known->second;
    if (is_new) e_.patches.emplace_back(tag_);
    tag_ = {};
    ++zone_.marks;
    const std::int64_t n = count(line, k);
    const std::size_t first = e_.boundary.size();
    for (std::int64_t i = 0; i < n; ++i) {
      element(data_line(k, i, n), dimensions_ - 1, "face of a marker", e_.boundary);
      e_.patch.push_back(patch);
    }
    if (n > 0) mark_sections_.push_back({first, section_at_});
  }

  /// Holds what was read of a zone against each other, and makes its nodes those of the whole.
  void end_zone(const char* at) {
    require_no_tag(at);
    const bool nothing = !zone_.cells && !zone_.points && zone_.marks == 0 && zone_.declared_marks < 0;
    if (nothing && zones_ == 0 && at != end_) return;  // what stands before the first zone
    for (const auto& [there, name] : {std::pair(zone_.cells, "NELEM"), std::pair(zone_.points, "NPOIN")})
      if (!there) fail(at, fmt::format("the {} ends here and has no {}", at == end_ ? "file" : "zone", name));
    if (zone_.declared_marks >= 0 && zone_.declared_marks != zone_.marks)
      fail(zone_.marks_at, fmt::format("NMARK is {}, and {} markers follow", zone_.declared_marks, zone_.marks));
    join(e_.cells, zone_.first_cell, zone_.cell_corners, cell_sections_);
    join(e_.boundary, zone_.first_mark, zone_.mark_corners, mark_sections_);
    zone_ = {};
    zone_.first_cell = e_.cells.size();
    zone_.first_mark = e_.boundary.size();
    zone_.first_point = e_.points.size();
    zone_.cell_corners = e_.cells.corners.size();
    zone_.mark_corners = e_.boundary.corners.size();
  }

  void join(mesh::ElementList& list, std::size_t element, std::size_t corner, const std::vector<Section>& sections) {
    const std::size_t here = e_.points.size() - zone_.first_point;
    for (; element < list.size(); ++element)
      for (const std::size_t last = corner + mesh::corners_of(list.shape[element]); corner < last; ++corner) {
        if (std::size_t(list.corners[corner]) >= here)
          fail(line_of(sections, element), fmt::format("there is no node {}: NPOIN gives nodes 0 to {}",
                                                       list.corners[corner], std::int64_t(here) - 1));
        list.corners[corner] += Index(zone_.first_point);
      }
  }

  std::string_view line_of(const char* at) const { return line_at(at, end_); }
  /// Where element `number` stands.
  const char* line_of(const std::vector<Section>& sections, std::size_t number) const {
    const auto after = std::upper_bound(sections.begin(), sections.end(), number,
                                        [](std::size_t k, const Section& s) { return k < s.first; });
    Su2Reader again(source_.text, source_.label);
    again.next_ = after[-1].at;
    Line line{};
    for (std::size_t k = after[-1].first; k <= number; ++k) again.next(line);
    return line.p;
  }

  Source source_;
  const char* next_;  // the line that comes next
  const char* end_;
  int dimensions_ = 0;  // 0: not said yet
  std::int64_t declared_zones_ = 0, zones_ = 0;
  Zone zone_;
  std::string_view tag_;                                  // of a marker whose faces have not come yet
  std::unordered_map<std::string_view, Index> patch_of_;  // of each marker's name, which stands in the text
  const char* section_at_ = nullptr;                      // the first line of the section that was read last
  std::vector<Section> cell_sections_, mark_sections_;
  mesh::Elements e_;
};

}  // namespace

mesh::Polyhedra parse_su2(std::string_view text, const std::string& label) {
  Su2Reader reader(text, label);
  mesh::Elements elements = reader.read();
  try {
    return mesh::to_polyhedra(std::move(elements));
  } catch (const mesh::WrongElement& wrong) {
    reader.fail(wrong);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", label, e.what()));
  }
}

mesh::Polyhedra read_su2(const std::string& path) {
  return guard_memory(path, [&] {
    const TextFile file(path);
    return parse_su2(file.text(), path);
  });
}

}  // namespace krilu::io

namespace krilu {

bool is_su2_mesh(std::string_view path) { return path.ends_with(".su2") || path.ends_with(".su2.gz"); }

Mesh read_su2_mesh(const std::string& path) {
  return io::guard_memory(path, [&] {
    mesh::Polyhedra polyhedra = io::read_su2(path);
    try {
      return mesh::to_mesh(exec::Host(), std::move(polyhedra));
    } catch (const Error& e) {
      throw Error(fmt::format("{}: {}", path, e.what()));
    }
  });
}

}  // namespace krilu
