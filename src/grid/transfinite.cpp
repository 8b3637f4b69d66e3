// SPDX-License-Identifier: Apache-2.0
#include "grid/transfinite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "grid/plane.hpp"
#include "grid/stretching.hpp"
#include "krilu/error.hpp"

namespace krilu::grid {

namespace {

using std::size_t;
using std::numbers::pi;

/// A line of nodes from the wall (t = 0) to the far field (t = 1): a power of t along, t itself outwards.
class Line {
 public:
  Line(const ConformalMap& map, Complex from, Complex to, double power)
      : map_(map), from_(from), step_(to - from), power_(power), length_(samples + 1) {
    // Lengths up to u = k / samples, where t = u^3: dense at the wall. Simpson's rule.
    double before = speed(0);
    for (size_t k = 0; k < samples; ++k) {
      const double middle = speed((double(k) + 0.5) / samples), after = speed(double(k + 1) / samples);
      length_[k + 1] = length_[k] + (before + 4 * middle + after) / (6.0 * samples);
      before = after;
    }
  }

  double length() const { return length_.back(); }

  Complex at(double t) const {
    return from_ + Complex(step_.real() * (power_ == 1 ? t : std::pow(t, power_)), step_.imag() * t);
  }

  /// t where the line is `s` long; by the cubic through the table's lengths and their derivatives.
  double parameter(double s) const {
    if (s <= 0) return 0;
    if (s >= length()) return 1;
    const auto above = std::upper_bound(length_.begin(), length_.end(), s);
    const auto k = size_t(above - length_.begin()) - 1;
    const double a = length_[k], b = length_[k + 1], h = 1.0 / samples;
    const double da = h * speed(double(k) * h), db = h * speed(double(k + 1) * h);
    double low = 0, high = 1;
    for (int step = 0; step < 60; ++step) {
      const double v = 0.5 * (low + high);
      const double there = a * (1 + 2 * v) * (1 - v) * (1 - v) + b * v * v * (3 - 2 * v) + da * v * (1 - v) * (1 - v) +
                           db * v * v * (v - 1);
      (there < s ? low : high) = v;
    }
    const double u = (double(k) + 0.5 * (low + high)) * h;
    return u * u * u;
  }

 private:
  static constexpr size_t samples = 512;

  /// d length / du.
  double speed(double u) const {
    const double t = u * u * u;
    const double along = power_ == 1 ? 1 : power_ * std::pow(t, power_ - 1);
    return map_.stretch(at(t)) * std::abs(Complex(step_.real() * along, step_.imag())) * 3 * u * u;
  }

  const ConformalMap& map_;
  Complex from_, step_;
  double power_;
  std::vector<double> length_;
};

/// Rounds of averaging with both neighbours that smooth steps over about a thirtieth of `places`.
int rounds_for(size_t places) { return int(std::clamp(places * places / 1024, size_t(4), size_t(2000))); }

/// Places round the far field of an O grid, as turns from the trailing edge: half as the wall's points in the mapped
/// plane, half equally spaced, and smooth.
std::vector<double> places_on_circle(const std::vector<Complex>& wall) {
  const size_t n = wall.size() - 1;
  std::vector<double> part(n), averaged(n);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    part[i] = std::max(wall[i + 1].real() - wall[i].real(), 0.1 * 2 * pi / double(n));
    sum += part[i];
  }
  for (double& p : part) p = pi * (p / sum + 1 / double(n));
  for (int round = rounds_for(n); round > 0; --round) {
    for (size_t i = 0; i < n; ++i)
      averaged[i] = 0.5 * part[i] + 0.25 * (part[i == 0 ? n - 1 : i - 1] + part[(i + 1) % n]);
    part.swap(averaged);
  }
  // Turned so that lines lean neither way on the whole.
  std::vector<double> place(n + 1);
  place[0] = wall[0].real();
  for (size_t i = 0; i < n; ++i) place[i + 1] = place[i] + part[i];
  double lean = 0;
  for (size_t i = 0; i < n; ++i) lean += (place[i] - wall[i].real()) / double(n);
  for (double& p : place) p -= lean;
  return place;
}

/// The outer boundary of a C grid: from the lower corner of the outflow upstream along a straight line, round a half
/// circle, and downstream to the upper corner.
struct OuterC {
  double middle, straight, radius;
  double length() const { return 2 * straight + pi * radius; }
  Point at(double s) const {
    if (s <= straight) return {middle + straight - s, -radius};
    if (s >= length() - straight) return {middle + straight - (length() - s), radius};
    const double turn = (s - straight) / radius;
    return {middle - radius * std::sin(turn), -radius * std::cos(turn)};
  }
};

/// Nodes of all lines, those of the boundary as they are given. `power` as in Line.
void place_nodes(Start& start, const std::vector<Point>& wall, const std::vector<Complex>& from,
                 const std::vector<Point>& far, const std::vector<Complex>& to, double power) {
  Grid& grid = start.grid;
  const auto ni = size_t(grid.ni), nj = size_t(grid.nj);
  for (size_t i = 0; i < ni; ++i) {
    const Line line(start.map, from[i], to[i], power);
    if (!(start.spacing[i] * double(nj - 1) < line.length()))
      throw Error(
          fmt::format("a wall spacing of {} is not less than what {} equal cells up to the far field, {:.3g} chords "
                      "away, would have: take a smaller spacing or fewer nodes outward",
                      start.spacing[i], nj - 1, line.length()));
    const std::vector<double> distance = stretched(start.spacing[i], line.length(), Index(nj - 1));
    for (size_t j = 0; j < nj; ++j) start.zeta[j * ni + i] = line.at(line.parameter(distance[j]));
    start.zeta[i] = from[i];
    start.zeta[(nj - 1) * ni + i] = to[i];
  }
  for (size_t j = 0; j < nj; ++j)
    for (size_t i = 0; i < ni; ++i)
      grid.node[j * ni + i] = j == 0        ? wall[i]
                              : j == nj - 1 ? far[i]
                                            : point_of(start.map.to_z(start.zeta[j * ni + i]));
}

/// Lines near a sharp trailing edge lean so that the one from the edge leaves between both sides, outside of which its
/// first cells would be folded.
void lean_at_edge(Start& start, const std::vector<Complex>& wall) {
  constexpr double reach = 0.15;  // in the mapped plane, both ways
  const size_t n = wall.size() - 1, ni = n + 1;
  const double lean = -std::tan(0.5 * (std::arg(wall[1] - wall[0]) + std::arg(wall[n] - wall[n - 1])));
  for (size_t j = 1; j + 1 < size_t(start.grid.nj); ++j)
    for (size_t i = 0; i <= n; ++i) {
      Complex& zeta = start.zeta[j * ni + i];
      const double up = zeta.imag() - wall[i].imag();
      const double aside = std::min(wall[i].real() - wall[0].real(), wall[n].real() - wall[i].real());
      const double part = std::exp(-(up + aside) / reach);
      if (part < 1e-6) continue;
      zeta += lean * up * part;
      start.grid.node[j * ni + i] = point_of(start.map.to_z(zeta));
    }
}

void start_o(const WallPoints& wall, const GridOptions& options, Start& start) {
  const size_t n = wall.point.size() - 1;
  const bool sharp = !wall.corner.empty() && wall.corner.front() == 0;
  start.map = ellipse_of(wall.point, sharp);
  // Of points on the lower side there is no doubt.
  std::vector<Complex> from = follow(start.map, wall.point, Index(n / 4), {0.5 * pi, 1});
  from[0] = from[n] - 2 * pi;  // where a sharp edge is the focus both signs of zero came out
  const std::vector<double> place = places_on_circle(from);
  std::vector<Point> far(n + 1);
  std::vector<Complex> to(n + 1);
  for (size_t i = 0; i <= n; ++i) {
    far[i] = {0.5 + options.far_field * std::cos(place[i]), -options.far_field * std::sin(place[i])};
    to[i] = start.map.to_zeta(complex_of(far[i]), {place[i], std::log(2 * options.far_field)});
  }
  far[n] = far[0];
  start.spacing.assign(n + 1, options.wall_spacing);
  start.corner = wall.corner;
  if (!start.corner.empty() && start.corner.front() == 0) start.corner.push_back(Index(n));
  place_nodes(start, wall.point, from, far, to, 1);
  if (sharp) lean_at_edge(start, from);
  for (Index j = 0; j < options.outward; ++j) start.grid.at(Index(n), j) = start.grid.at(0, j);
}

/// The cut, from the trailing edge on: leaves it between both sides and soon goes level.
std::vector<Point> cut_points(const std::vector<Point>& wall, double end, Index cells) {
  const Point tail = wall.front(), &below = wall[1], &above = wall[wall.size() - 2];
  const double lower = grid::length(tail - below), upper = grid::length(tail - above);
  const double dx = (tail.x - below.x) / lower + (tail.x - above.x) / upper;
  const double dy = (tail.y - below.y) / lower + (tail.y - above.y) / upper;
  const double slope = dx > 0 ? std::clamp(dy / dx, -0.5, 0.5) : 0;  // of a blunt end: level
  const double length = end - tail.x, first = std::min(std::max(lower, upper), 0.5 * length);
  constexpr double level = 0.5;  // chords after which the slope is gone
  std::vector<Point> cut;
  for (const double d : cut_spacing(first, length, cells))
    cut.push_back({tail.x + d, tail.y + slope * level * -std::expm1(-d / level)});
  cut.back().x = end;
  return cut;
}

void start_c(const WallPoints& wall, const GridOptions& options, Start& start) {
  Grid& grid = start.grid;
  const auto ni = size_t(grid.ni), nj = size_t(grid.nj), wake = size_t(grid.wake), last = ni - 1;
  const OuterC outer{0.5, 0.5 + options.far_field, options.far_field};
  const double end = outer.middle + outer.straight;
  start.map = parabola_of(wall.point);

  const std::vector<Point> cut = cut_points(wall.point, end, grid.wake);
  const double widest = 0.1 * options.far_field / double(nj - 1);
  std::vector<Point> inner(ni);
  start.spacing.assign(ni, options.wall_spacing);
  for (size_t k = 0; k <= wake; ++k) {
    inner[wake - k] = inner[last - wake + k] = cut[k];
    // Wakes spread; up to a tenth of what equal cells would have.
    const double grown = cut[k].x - cut[0].x;
    start.spacing[wake - k] = start.spacing[last - wake + k] =
        options.wall_spacing * (1 + grown) / (1 + grown * std::min(1.0, options.wall_spacing / widest));
  }
  for (size_t i = 0; i < wall.point.size(); ++i) inner[wake + i] = wall.point[i];
  start.corner = {grid.wake, Index(last - wake)};  // where the cut begins
  for (const Index c : wall.corner)
    if (c > 0) start.corner.insert(start.corner.end() - 1, c + grid.wake);
  const auto nose = size_t(nose_of(wall.point)) + wake;
  const std::vector<Complex> from = follow(start.map, inner, Index(nose), {0, 1});

  // Outer points: above the points of the cut, over the mapped wall for the body; a part equally spaced; and smooth.
  std::vector<double> place(ni), averaged(ni);
  const double tail = end - cut[0].x, body = outer.length() - 2 * tail;
  const double left = from[wake].real(), right = from[last - wake].real();
  for (size_t i = 0; i < ni; ++i) {
    const double here = i <= wake          ? end - inner[i].x
                        : i >= last - wake ? outer.length() - (end - inner[i].x)
                                           : tail + body * (from[i].real() - left) / (right - left);
    place[i] = 0.6 * here + 0.4 * outer.length() * double(i) / double(last);
  }
  for (int round = rounds_for(ni); round > 0; --round) {
    averaged = place;
    for (size_t i = 1; i < last; ++i) averaged[i] = 0.5 * place[i] + 0.25 * (place[i - 1] + place[i + 1]);
    place.swap(averaged);
  }
  place[0] = 0;
  place[last] = outer.length();
  std::vector<Point> far(ni);
  for (size_t i = 0; i < ni; ++i) far[i] = outer.at(place[i]);
  const std::vector<Complex> to = follow(start.map, far, Index(ni / 2), {0, std::sqrt(options.far_field)});
  place_nodes(start, inner, from, far, to, 1.5);

  // The outflow lines are straight, which they are not in the mapped plane.
  for (const bool upper : {false, true}) {
    const size_t side = upper ? last : 0;
    const double height = far[side].y - inner[side].y;
    const std::vector<double> distance = stretched(start.spacing[side], std::abs(height), Index(nj - 1));
    std::vector<Point> line(nj);
    for (size_t j = 0; j < nj; ++j) line[j] = {end, inner[side].y + std::copysign(distance[j], height)};
    line[nj - 1] = far[side];
    const std::vector<Complex> mapped = follow(start.map, line, 0, from[side]);
    for (size_t j = 1; j + 1 < nj; ++j) {
      const Complex shift = mapped[j] - start.zeta[j * ni + side];
      for (size_t k = 0; k <= wake; ++k) {
        const size_t node = j * ni + (upper ? last - k : k);
        const double part = 1 - double(k) / double(wake);
        start.zeta[node] += part * part * shift;
        grid.node[node] = k == 0 ? line[j] : point_of(start.map.to_z(start.zeta[node]));
      }
    }
  }
}

}  // namespace

Index wake_cells(Index around) { return std::max(Index(1), 4 * ((around + 9) / 20)); }

Start start_grid(const WallPoints& wall, const GridOptions& options) {
  const bool o = options.topology == "O";
  const Index cells = Index(wall.point.size()) - 1, left = options.around - 1 - cells;
  if (cells < 3 || (o ? left != 0 : left < 2 || left % 2 != 0))
    throw Error(fmt::format("a wall of {} cells does not fit an {} grid of {} nodes around", cells, options.topology,
                            options.around));
  for (const Point& p : wall.point)
    if (!(std::hypot(p.x - 0.5, p.y) < 0.9 * options.far_field))
      throw Error(
          fmt::format("the far field, {} chords from mid-chord, does not surround the wall with room to spare: take a "
                      "larger one",
                      options.far_field));
  Start start;
  start.grid.topology = o ? Grid::Topology::O : Grid::Topology::C;
  start.grid.ni = options.around;
  start.grid.nj = options.outward;
  start.grid.wake = left / 2;
  start.grid.node.resize(size_t(options.around) * size_t(options.outward));
  start.zeta.resize(start.grid.node.size());
  o ? start_o(wall, options, start) : start_c(wall, options, start);
  return start;
}

}  // namespace krilu::grid
