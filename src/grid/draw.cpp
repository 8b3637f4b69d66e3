// SPDX-License-Identifier: Apache-2.0
// Pictures of grids (draw.hpp). Lines are cut at their panel's window, thinned to what an eye can tell apart, and lose
// the nodes that are not seen to be missing: sleeves round their pieces (Zhao and Saalfeld, Linear-time sleeve-fitting
// polyline simplification algorithms, 1997). Cost: a few nanoseconds a node and panel, then gnuplot's second.
#include "grid/draw.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "grid/plane.hpp"
#include "io/gnuplot.hpp"
#include "io/plot.hpp"
#include "krilu/error.hpp"

namespace krilu::grid {

namespace {

constexpr int most_lines = 130;    // of a family in a panel
constexpr double panel = 440;      // side of a panel, units of the picture
constexpr double unseen = 0.15;    // what a line may be off, in the same
constexpr double zoom_side = 0.2;  // of the windows at nose and tail, chords

struct Window {
  double x0, y0, side;
  double tolerance() const { return unseen * side / panel; }
};

Window round(const Point& centre, double side) { return {centre.x - side / 2, centre.y - side / 2, side}; }

/// The part of the piece from a to b that lies in the window (Liang and Barsky, 1984). False: none.
bool clip(const Window& w, Point& a, Point& b) {
  double from = 0, to = 1;
  const Point d = b - a;
  if (!std::isfinite(d.x) || !std::isfinite(d.y)) return false;
  const auto side = [&](double speed, double room) {  // speed t <= room
    if (speed == 0) return room >= 0;
    const double t = room / speed;
    if (speed < 0) from = std::max(from, t);
    if (speed > 0) to = std::min(to, t);
    return from <= to;
  };
  if (!(side(-d.x, a.x - w.x0) && side(d.x, w.x0 + w.side - a.x) && side(-d.y, a.y - w.y0) &&
        side(d.y, w.y0 + w.side - a.y)))
    return false;
  const Point start = a;
  if (to < 1) b = start + to * d;
  if (from > 0) a = start + from * d;
  return true;
}

/// Text for gnuplot: lines of points, an empty line between them.
class Lines {
 public:
  explicit Lines(const Window& window) : window_(window) {}

  /// A line through nodes: node(k) for k < n.
  template <class Node>
  void add(Index n, const Node& node) {
    for (Index k = 0; k + 1 < n; ++k) {
      Point a = node(k), b = node(k + 1);
      const Point end = b;
      if (!clip(window_, a, b)) continue;
      if (piece_.empty()) piece_.push_back(a);
      piece_.push_back(b);
      if (b.x != end.x || b.y != end.y) write_piece();
    }
    write_piece();
  }
  const std::string& text() const { return text_; }

 private:
  void write(const Point& p) {
    // Ten-thousandths of the panel; relative to its corner, so that few digits do.
    const auto of_panel = [&](double x) { return std::lround(1e4 * x / window_.side); };
    fmt::format_to(std::back_inserter(text_), "{} {}\n", of_panel(p.x - window_.x0), of_panel(p.y - window_.y0));
  }

  /// Without nodes that a straight line passes nearer than the tolerance.
  void write_piece() {
    if (piece_.size() > 1) {
      std::size_t anchor = 0;
      write(piece_[0]);
      while (anchor + 1 < piece_.size()) {
        anchor = furthest_seen_from(anchor);
        write(piece_[anchor]);
      }
      text_ += "\n";
    }
    piece_.clear();
  }

  /// The last node that can be reached from `anchor` in a straight line within the tolerance of all nodes between.
  std::size_t furthest_seen_from(std::size_t anchor) const {
    const Point& a = piece_[anchor];
    const double tolerance = window_.tolerance();
    double least = 0, most = 0, axis = 0, far = 0;  // directions that are left, relative to the first's
    bool open = true;                               // all of them are
    std::size_t seen = anchor + 1;
    for (std::size_t k = anchor + 1; k < piece_.size(); ++k) {
      const double dx = piece_[k].x - a.x, dy = piece_[k].y - a.y, distance = std::hypot(dx, dy);
      if (distance + tolerance < far) break;  // it turns back
      far = std::max(far, distance);
      if (distance <= tolerance) {
        seen = k;
        continue;
      }
      if (open) axis = std::atan2(dy, dx);
      const double direction = std::remainder(std::atan2(dy, dx) - axis, 2 * pi);
      const double width = std::asin(tolerance / distance);
      if (!open && (direction < least || direction > most)) break;
      least = open ? direction - width : std::max(least, direction - width);
      most = open ? direction + width : std::min(most, direction + width);
      open = false;
      seen = k;
    }
    return seen;
  }

  static constexpr double pi = 3.14159265358979323846;
  Window window_;
  std::vector<Point> piece_;
  std::string text_;
};

/// Whether any piece of the line shows in the window. Cheap: boxes of pieces.
template <class Node>
bool shows(const Window& w, Index n, const Node& node) {
  Point a = node(0);
  for (Index k = 1; k < n; ++k) {
    const Point b = node(k);
    if (std::max(a.x, b.x) >= w.x0 && std::min(a.x, b.x) <= w.x0 + w.side && std::max(a.y, b.y) >= w.y0 &&
        std::min(a.y, b.y) <= w.y0 + w.side)
      return true;
    a = b;
  }
  return false;
}

/// Every how many-th of `count` lines are drawn where `shown` of them show: one that ends at the last line, if any
/// near.
Index step_for(Index count, Index shown) {
  const Index least = (shown - 1) / most_lines + 1;
  for (Index step = least; step < 2 * least; ++step)
    if ((count - 1) % step == 0) return step;
  return least;
}

struct Drawn {
  std::string text;
  Index step_i = 1, step_j = 1;  // of the lines i and of the lines j
};

/// Both families of lines in a window, thinned evenly by their numbers; the last line of each is always there.
Drawn grid_lines(const Grid& g, const Window& w) {
  Lines lines(w);
  const auto family = [&](Index count, Index n, const auto& node) {
    std::vector<Index> shown;
    for (Index line = 0; line < count; ++line)
      if (shows(w, n, [&](Index k) { return node(line, k); })) shown.push_back(line);
    const Index step = shown.empty() ? 1 : step_for(count, Index(shown.size()));
    for (const Index line : shown)
      if (line % step == 0 || line + 1 == count) lines.add(n, [&](Index k) { return node(line, k); });
    return step;
  };
  const Index step_i = family(g.ni, g.nj, [&](Index i, Index j) { return g.at(i, j); });
  const Index step_j = family(g.nj, g.ni, [&](Index j, Index i) { return g.at(i, j); });
  return {lines.text(), step_i, step_j};
}

std::vector<Point> wall_of(const Grid& g) { return {g.node.begin() + g.wake, g.node.begin() + (g.ni - g.wake)}; }

/// The body as a polygon cut at the window (Sutherland and Hodgman, 1974), to be filled.
std::vector<Point> body_in(const Window& w, std::vector<Point> polygon) {
  const auto cut = [&](double nx, double ny, double room) {  // nx x + ny y <= room
    std::vector<Point> kept;
    for (std::size_t k = 0; k < polygon.size(); ++k) {
      const Point &a = polygon[k], &b = polygon[(k + 1) % polygon.size()];
      const double at_a = room - nx * a.x - ny * a.y, at_b = room - nx * b.x - ny * b.y;
      if (at_a >= 0) kept.push_back(a);
      if ((at_a >= 0) != (at_b >= 0)) {
        const double t = at_a / (at_a - at_b);
        kept.push_back(a + t * (b - a));
      }
    }
    polygon = std::move(kept);
  };
  cut(-1, 0, -w.x0);
  cut(1, 0, w.x0 + w.side);
  cut(0, -1, -w.y0);
  cut(0, 1, w.y0 + w.side);
  return polygon;
}

/// A square round the whole grid.
Window whole(const Grid& g) {
  constexpr double huge = std::numeric_limits<double>::infinity();
  Point low{huge, huge}, high{-huge, -huge};
  for (const Point& p : g.node) {
    if (!std::isfinite(p.x) || !std::isfinite(p.y)) continue;
    low = {std::min(low.x, p.x), std::min(low.y, p.y)};
    high = {std::max(high.x, p.x), std::max(high.y, p.y)};
  }
  const double side = std::max({high.x - low.x, high.y - low.y, 1e-9});
  return round({(low.x + high.x) / 2, (low.y + high.y) / 2}, 1.04 * side);
}

}  // namespace

void draw_grid(const Grid& g, const std::string& title, const std::string& path) {
  io::require_drawable(path);
  if (g.ni < 2 || g.nj < 2 || g.node.size() != std::size_t(g.ni) * std::size_t(g.nj) || g.wake < 0 ||
      g.wake > (g.ni - 2) / 2)
    throw Error(
        fmt::format("could not draw {}: {} nodes, which are no grid of {} x {}", path, g.node.size(), g.ni, g.nj));
  const std::vector<Point> wall = wall_of(g);
  for (const Point& p : wall)
    if (!std::isfinite(p.x) || !std::isfinite(p.y))
      throw Error(fmt::format("could not draw {}: the grid has nodes at its wall that are not finite", path));
  const auto [nose, tail] = std::minmax_element(wall.begin(), wall.end(), [](Point a, Point b) { return a.x < b.x; });
  struct Panel {
    const char* name;
    Window window;
  };
  const Panel panels[] = {{"whole grid", whole(g)},
                          {"nose", round({nose->x + 0.15 * zoom_side, nose->y}, zoom_side)},
                          {"tail", round({tail->x - 0.15 * zoom_side, tail->y}, zoom_side)}};

  const double left = 62, gap = 62, bottom = 44, top = 66;  // of the panels; units of the picture
  const double width = left + 3 * panel + 2 * gap + 24, height = bottom + panel + top;
  const bool svg = path.ends_with(".svg");
  std::string s;
  // Twice the size that it will be looked at; in SVG too, whose coordinates have one decimal.
  s += fmt::format("set terminal {} size {},{} font 'DejaVu Sans,{}' linewidth 2 background '#ffffff'\n",
                   svg ? "svg dynamic" : "pngcairo", 2 * width, 2 * height, svg ? 26 : 22);
  s += io::gnuplot_output(path);
  s += "set encoding utf8\nset border 15 lc rgb '#606060' lw 0.7\n";
  s += "set tics out nomirror scale 0.6 textcolor rgb '#303030'\nunset key\nset clip two\n";
  s += "set multiplot\n";
  s += fmt::format("set label 1 {} at screen 0.5, {} center noenhanced font ',{}'\n", io::gnuplot_string(title),
                   1 - 20 / height, svg ? 30 : 25);
  double x = left;
  for (const Panel& p : panels) {
    const Window& w = p.window;
    s += fmt::format("set lmargin at screen {}\nset rmargin at screen {}\nset bmargin at screen {}\n", x / width,
                     (x + panel) / width, bottom / height);
    s += fmt::format("set tmargin at screen {}\n", (bottom + panel) / height);
    s += fmt::format("set xrange [{0:.9g}:{1:.9g}]\nset yrange [{2:.9g}:{3:.9g}]\n", w.x0, w.x0 + w.side, w.y0,
                     w.y0 + w.side);
    const char* const tics = w.side == zoom_side ? "0.05" : "autofreq";
    s += fmt::format("set xtics {0}\nset ytics {0}\n", tics);
    const Drawn drawn = grid_lines(g, w);
    std::string name = p.name;
    const auto thinned = [](char family, Index step) { return fmt::format("1 in {} lines {}", step, family); };
    const bool i = drawn.step_i > 1, j = drawn.step_j > 1;
    if (i || j)
      name += fmt::format(" ({}{}{})", i ? thinned('i', drawn.step_i) : "", i && j ? ", " : "",
                          j ? thinned('j', drawn.step_j) : "");
    s += fmt::format("set title {} offset 0,-0.5\n$lines << EOD\n{}EOD\n", io::gnuplot_string(name), drawn.text);
    Lines outline(w);
    outline.add(Index(wall.size()), [&](Index k) { return wall[std::size_t(k)]; });
    s += fmt::format("$wall << EOD\n{}EOD\n$body << EOD\n", outline.text());
    const std::vector<Point> body = body_in(w, wall);
    for (const Point& corner : body) s += fmt::format("{:.7g} {:.7g}\n", corner.x, corner.y);
    s += "EOD\n";
    const std::string units =
        fmt::format("using ({:.9g}+$1*{:.9g}):({:.9g}+$2*{:.9g})", w.x0, 1e-4 * w.side, w.y0, 1e-4 * w.side);
    s += "plot ";
    if (body.size() > 2) s += "$body using 1:2 with filledcurves closed fs solid 1 noborder lc rgb '#dfe5ec', ";
    s += fmt::format("$lines {} with lines lc rgb '#33475b' lw 0.35", units);
    if (!outline.text().empty()) s += fmt::format(", $wall {} with lines lc rgb '#000000' lw 1.8", units);
    s += "\nunset label 1\n";
    x += panel + gap;
  }
  s += "unset multiplot\n";
  io::run_gnuplot(s, path);
}

}  // namespace krilu::grid
