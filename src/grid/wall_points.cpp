// SPDX-License-Identifier: Apache-2.0
// How the nodes are found:
//   1. Spacings wanted stand at corners, edges and, by the turning of the polygon, at every point of the curve. What
//      grows from them with a bounded slope is the least of cones: two sweeps round the curve.
//   2. The largest spacing is chosen so that the sum of all cells is `cells`; where even an endless one leaves too
//   many,
//      all that was wanted grows by one factor instead.
//   3. The logarithm of the spacing is averaged over some cells, so that it has no kinks but at corners.
//   4. The pieces between nodes that are given get whole numbers of cells. What that changes in a piece is spread
//      over it by a bump that is zero at its ends, so that spacings still fit across them.
// "Along the curve" is the parameter v below: chord length from the first corner (from point 0 where there is none).
#include "grid/wall_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <queue>

#include "grid/curve_spline.hpp"
#include "grid/plane.hpp"
#include "krilu/error.hpp"

namespace krilu::grid {

namespace {

using std::size_t;

constexpr double endless = std::numeric_limits<double>::infinity();
constexpr double usual_cells = 256;    // that the spacings of WallSpacing are for
constexpr double sample_step = 0.1;    // cells: what the spacing is looked at in, first
constexpr Index samples_a_cell = 8;    // and once it is known
constexpr Index average_over = 8;      // samples to either side, three times
constexpr double least_of_base = 0.1;  // of the trailing edge's spacing: what a thinner base is not refined to
constexpr double near_corner = 0.01;   // chords: a leading edge so near a corner is the corner

/// A node that has to be where it is.
struct Stop {
  double v = 0;
  Index point = -1;  // of the curve, or none
  bool corner = false;
  Index least = 2;  // cells to the next stop
};

/// A place where spacings are wanted. The curve's points are such places.
struct Place {
  double v = 0;
  double wanted = endless;
  double before = 0, after = 0;  // curvature, in degrees a length, on both sides
};

/// A piecewise linear density of cells along v, and the number of cells from the start.
struct Density {
  std::vector<double> v, cells_a_length, number;

  void integrate() {
    number.assign(v.size(), 0.0);
    for (size_t i = 1; i < v.size(); ++i)
      number[i] = number[i - 1] + (v[i] - v[i - 1]) * (cells_a_length[i] + cells_a_length[i - 1]) / 2;
  }
  double number_at(double at) const {
    const size_t i = interval(v, at);
    const double d = at - v[i], slope = (cells_a_length[i + 1] - cells_a_length[i]) / (v[i + 1] - v[i]);
    return number[i] + d * (cells_a_length[i] + slope * d / 2);
  }
  /// Where the number of cells from the start is this.
  double place_of(double cells) const {
    const size_t i = interval(number, cells);
    const double length = v[i + 1] - v[i], rest = cells - number[i];
    const double n = cells_a_length[i], slope = (cells_a_length[i + 1] - n) / length;
    const double d = 2 * rest / (n + std::sqrt(std::max(0.0, n * n + 2 * slope * rest)));
    return v[i] + std::clamp(d, 0.0, length);
  }
  static size_t interval(const std::vector<double>& rising, double at) {
    return size_t(std::upper_bound(rising.begin() + 1, rising.end() - 1, at) - rising.begin()) - 1;
  }
};

class Wall {
 public:
  Wall(const Curve& curve, Index cells, const WallSpacing& how)
      : curve_(curve), spline_(curve), cells_(cells), how_(how), mirrors_(mirrors_itself(curve)) {
    const double fewer = usual_cells / cells;
    slope_ = std::log(how.growth) * std::min(1.0, fewer);
    largest_slope_ = std::max(slope_, std::log(how.largest_growth) * std::min(1.0, fewer));
    factor_ = fewer;
    start_ = curve.corner.empty() ? 0 : spline_.knot()[size_t(curve.corner[0])];
    for (const Index c : curve.corner) stops_.push_back({along(spline_.knot()[size_t(c)]), c, true});
    sharp_edge_ = !curve.corner.empty() && curve.corner[0] == 0;
    if (!sharp_edge_) add_stop({along(0), 0});
    find_leading_edge();
    for (size_t k = 0; k < stops_.size(); ++k)
      if (curve.open_edge && (stops_[k].point == 0 || next(k).point == 0)) stops_[k].least = 1;
  }

  WallPoints points() {
    find_places();
    find_samples();
    find_spacing();
    smooth();
    return nodes();
  }

 private:
  double along(double u) const { return u >= start_ ? u - start_ : u - start_ + spline_.length(); }
  double parameter(double v) const {
    const double u = v + start_;
    return u <= spline_.length() ? u : u - spline_.length();
  }
  bool aerofoil() const { return sharp_edge_ || curve_.open_edge; }
  const Stop& next(size_t k) const { return stops_[k + 1 < stops_.size() ? k + 1 : 0]; }
  double end_of(size_t k) const { return k + 1 < stops_.size() ? stops_[k + 1].v : spline_.length(); }

  void add_stop(const Stop& s) {
    stops_.insert(std::upper_bound(stops_.begin(), stops_.end(), s, [](auto& a, auto& b) { return a.v < b.v; }), s);
  }

  void find_leading_edge() {
    if (!mirrors_ && !aerofoil()) return;
    const std::vector<double>& knot = spline_.knot();
    const size_t n = knot.size() - 1;
    Stop s;
    if (mirrors_) {
      if (n % 2 == 0) s.point = Index(n / 2);
      s.v = along(n % 2 == 0 ? knot[n / 2] : (knot[n / 2] + knot[n / 2 + 1]) / 2);
    } else {
      const Point o = curve_.point[0];
      const auto distance = [&](const Point& p) { return length(p - o); };
      size_t k = 1;
      for (size_t i = 2; i < n; ++i)
        if (distance(curve_.point[i]) > distance(curve_.point[k])) k = i;
      double low = knot[k - 1], high = knot[k + 1];
      for (int step = 0; step < 60; ++step) {  // thirds; distances decide no more of a place than 1e-8
        const double a = low + (high - low) / 3, b = high - (high - low) / 3;
        if (distance(spline_.at(a)) < distance(spline_.at(b)))
          low = a;
        else
          high = b;
      }
      s.v = along((low + high) / 2);
      if (std::abs(s.v - along(knot[k])) < 1e-7) s = {along(knot[k]), Index(k)};
    }
    leading_edge_ = s.v;
    // A mirrored curve needs this node even where a corner is near.
    const double near = mirrors_ ? 0 : near_corner;
    for (const Stop& c : stops_)
      if (const double d = std::abs(c.v - s.v); c.corner && std::min(d, spline_.length() - d) <= near) {
        leading_edge_ = c.v;
        return;
      }
    add_stop(s);
  }

  /// Places with the curvature of the polygon and what is wanted there; caps of the sides between them.
  void find_places() {
    const std::vector<Point>& p = curve_.point;
    const std::vector<double>& knot = spline_.knot();
    const size_t n = p.size() - 1;
    std::vector<char> corner(n, 0);
    for (const Index c : curve_.corner) corner[size_t(c)] = 1;
    std::vector<double> bend(n), raw(n);  // signed, so that what is noise of the file averages out
    for (size_t k = 0; k < n; ++k) {
      const Point a = p[k == 0 ? n - 1 : k - 1], b = p[k], c = p[k + 1];
      const double sign = cross(b - a, c - b) < 0 ? -1 : 1;
      const double sides = length(b - a) + knot[k + 1] - knot[k];
      raw[k] = sign * turning(a, b, c) / (sides / 2);
    }
    for (size_t k = 0; k < n; ++k) {
      const size_t last = k == 0 ? n - 1 : k - 1, following = k + 1 == n ? 0 : k + 1;
      bend[k] = ((corner[last] ? raw[k] : raw[last]) + 2 * raw[k] + (corner[following] ? raw[k] : raw[following])) / 4;
    }
    places_.clear();
    const size_t first = curve_.corner.empty() ? 0 : size_t(curve_.corner[0]);
    for (size_t i = 0; i <= n; ++i) {
      const size_t k = (first + i) % n, last = k == 0 ? n - 1 : k - 1, following = k + 1 == n ? 0 : k + 1;
      Place place;
      place.v = i == n ? spline_.length() : along(knot[k]);
      place.before = std::abs(!corner[k] ? bend[k] : corner[last] ? 0 : bend[last]);
      place.after = std::abs(!corner[k] ? bend[k] : corner[following] ? 0 : bend[following]);
      const bool of_edge =
          k == 0 || (curve_.open_edge && (Index(k) == curve_.corner.front() || Index(k) == curve_.corner.back()));
      if (corner[k]) place.wanted = of_edge ? how_.trailing_edge : how_.corner;
      places_.push_back(place);
    }
    if (leading_edge_ >= 0 && aerofoil()) {
      auto at = std::lower_bound(places_.begin(), places_.end(), leading_edge_,
                                 [](const Place& a, double v) { return a.v < v; });
      if (at->v != leading_edge_) {
        const Place &a = *(at - 1), &b = *at;
        const double bent = a.after + (b.before - a.after) * (leading_edge_ - a.v) / (b.v - a.v);
        at = places_.insert(at, Place{leading_edge_, endless, bent, bent});
      }
      at->wanted = std::min(at->wanted, how_.leading_edge);
    }
    // In short pieces no cell may be longer than the least number of cells allows. Like all that is wanted that is
    // multiplied by the factor, which must not lengthen it on walls of few cells.
    cap_.assign(places_.size() - 1, endless);
    const double floor = least_of_base * how_.trailing_edge;
    size_t s = 0;
    for (size_t i = 0; i + 1 < places_.size(); ++i) {
      while (end_of(s) <= places_[i].v) ++s;
      cap_[i] = std::max((end_of(s) - stops_[s].v) / stops_[s].least / std::max(1.0, factor_), floor);
    }
  }

  /// Spacing wanted at v of side i, not regarding the largest; reach_ being that at the places.
  double wanted(size_t i, double v) const {
    const Place &a = places_[i], &b = places_[i + 1];
    const double t = (v - a.v) / (b.v - a.v), bent = a.after + (b.before - a.after) * t;
    return std::min({reach_[i] + slope_ * (v - a.v), reach_[i + 1] + slope_ * (b.v - v), factor_ * cap_[i],
                     bent > 0 ? factor_ * how_.turning / bent : endless});
  }

  void reach() {
    const size_t n = places_.size();
    reach_.assign(n, endless);
    for (size_t i = 0; i < n; ++i) {
      const Place& p = places_[i];
      const double bent = std::max(p.before, p.after);
      reach_[i] = factor_ * std::min({p.wanted, bent > 0 ? how_.turning / bent : endless, cap_[i == 0 ? n - 2 : i - 1],
                                      cap_[i == n - 1 ? 0 : i]});
    }
    for (int round = 0; round < 2; ++round) {
      reach_[0] = std::min(reach_[0], reach_[n - 1]);
      for (size_t i = 1; i < n; ++i)
        reach_[i] = std::min(reach_[i], reach_[i - 1] + slope_ * (places_[i].v - places_[i - 1].v));
      reach_[n - 1] = std::min(reach_[0], reach_[n - 1]);
      for (size_t i = n - 1; i-- > 0;)
        reach_[i] = std::min(reach_[i], reach_[i + 1] + slope_ * (places_[i + 1].v - places_[i].v));
    }
  }

  double speed(double v) const { return length(spline_.derivative(parameter(v))); }

  /// Samples a tenth of a cell apart. False where they become far more than the cells.
  bool sample_sides() {
    const double mean = spline_.length() / cells_;
    const size_t most = 60 * size_t(cells_) + 4 * places_.size();
    sample_.v.clear();
    side_.clear();
    for (size_t i = 0; i + 1 < places_.size(); ++i) {
      for (double v = places_[i].v;;) {
        sample_.v.push_back(v);
        side_.push_back(i);
        if (sample_.v.size() > most) return false;
        const double step = sample_step * std::min(wanted(i, v), mean);
        if (v + 1.5 * step >= places_[i + 1].v) break;
        v += step;
      }
    }
    return true;
  }

  void find_samples() {
    for (reach(); !sample_sides(); reach()) factor_ *= 2;  // files whose noise turns more than so few cells can follow
    sample_.v.push_back(spline_.length());
    side_.push_back(places_.size() - 2);
    for (const double v : sample_.v) speed_.push_back(speed(v));
    spacing_.resize(sample_.v.size());
  }

  /// Looks at what is wanted with this slope and this factor; whether they leave too many cells.
  bool too_many(double slope, double factor) {
    slope_ = slope;
    factor_ = factor;
    reach();
    for (size_t i = 0; i < spacing_.size(); ++i) spacing_[i] = wanted(side_[i], sample_.v[i]);
    return count(endless) > cells_;
  }

  double count(double largest) const {
    double sum = 0, last = speed_[0] / std::min(spacing_[0], largest);
    for (size_t i = 1; i < spacing_.size(); ++i) {
      const double here = speed_[i] / std::min(spacing_[i], largest);
      sum += (sample_.v[i] - sample_.v[i - 1]) * (last + here) / 2;
      last = here;
    }
    return sum;
  }

  /// Where `more` ends to hold between low and high, to the last of 40 halvings, which it is called for at last.
  template <class F>
  static double least_of(double low, double high, F&& more) {
    for (int step = 0; step < 40; ++step) {
      const double middle = (low + high) / 2;
      (more(middle) ? low : high) = middle;
    }
    more(high);
    return high;
  }

  /// The spacing at the samples, for `cells` cells but for rounding.
  void find_spacing() {
    const double slope = slope_, factor = factor_;
    double largest = endless;
    if (!too_many(slope, factor)) {
      const double mean = std::log(spline_.length() / cells_);
      largest = std::exp(least_of(mean - 3, mean + 20, [&](double s) { return count(std::exp(s)) > cells_; }));
    } else if (!too_many(largest_slope_, factor)) {
      least_of(slope, largest_slope_, [&](double s) { return too_many(s, factor); });
    } else {
      // All spacings as long as the curve are surely enough.
      const double coarsest = spline_.length() / *std::min_element(reach_.begin(), reach_.end());
      least_of(std::log(factor), std::log(factor * coarsest),
               [&](double s) { return too_many(largest_slope_, std::exp(s)); });
    }
    for (size_t i = 0; i < spacing_.size(); ++i) {
      spacing_[i] = std::min(spacing_[i], largest);
      sample_.cells_a_length.push_back(speed_[i] / spacing_[i]);
    }
    sample_.integrate();
  }

  /// Running means of f. Round where there is no corner; at a corner f goes on as its mirror image, turned by 180
  /// degrees, so that it keeps its value and its slope there.
  static void average(std::vector<double>& f, Index reach, bool round) {
    const Index n = Index(f.size()) - 1;  // round: f[n] is f[0] again
    std::vector<double> sum{0};
    for (Index i = -reach; i <= n + reach; ++i) {
      const auto at = [&](Index k) { return f[size_t(k)]; };
      const double value = i >= 0 && i <= n ? at(i)
                           : round          ? at(i < 0 ? i + n : i - n)
                           : i < 0          ? 2 * at(0) - at(-i)
                                            : 2 * at(n) - at(2 * n - i);
      sum.push_back(sum.back() + value);
    }
    for (Index i = 0; i <= n; ++i)
      f[size_t(i)] = (sum[size_t(i + 2 * reach + 1)] - sum[size_t(i)]) / double(2 * reach + 1);
  }

  void smooth() {
    const bool round = curve_.corner.empty();
    double begin = 0;
    for (size_t k = 0; k < stops_.size(); ++k) {
      const double end = end_of(k);
      if (k + 1 < stops_.size() && !stops_[k + 1].corner) continue;
      const double from = sample_.number_at(begin), number = sample_.number_at(end) - from;
      const Index m = std::max(16, Index(std::ceil(samples_a_cell * number)));
      std::vector<double> v(size_t(m) + 1), f(size_t(m) + 1);
      for (Index i = 0; i <= m; ++i) {
        v[size_t(i)] = i == 0 ? begin : i == m ? end : sample_.place_of(from + number * i / m);
        const size_t j = Density::interval(sample_.v, v[size_t(i)]);
        const double t = (v[size_t(i)] - sample_.v[j]) / (sample_.v[j + 1] - sample_.v[j]);
        f[size_t(i)] = (1 - t) * std::log(spacing_[j]) + t * std::log(spacing_[j + 1]);
      }
      for (int pass = 0; pass < 3; ++pass) average(f, std::min(average_over, m / 4), round);
      for (Index i = begin == 0 ? 0 : 1; i <= m; ++i) {
        density_.v.push_back(v[size_t(i)]);
        density_.cells_a_length.push_back(speed(v[size_t(i)]) / std::exp(f[size_t(i)]));
      }
      begin = end;
    }
    density_.integrate();
  }

  struct Piece {
    Stop from;
    double begin = 0, number = 0;  // of cells, before and in it
    Index least = 0, cells = 0;
  };

  /// Whole numbers of cells near piece.number, `cells` in all.
  void share_out(std::vector<Piece>& pieces, Index cells) const {
    Index least = 0;
    double number = 0;
    for (const Piece& p : pieces) {
      least += p.least;
      number += p.number;
    }
    if (least > cells)
      throw Error(
          fmt::format("{} cells are too few to go round {}: its {} corner{} and edges leave {} pieces, which need {} "
                      "cells at least",
                      cells_, curve_.name, curve_.corner.size(), curve_.corner.size() == 1 ? "" : "s", stops_.size(),
                      mirrors_ && cells != cells_ ? 2 * least : least));
    using Wish = std::pair<double, size_t>;
    std::priority_queue<Wish> more, less;
    Index sum = 0;
    for (size_t k = 0; k < pieces.size(); ++k) {
      Piece& p = pieces[k];
      p.cells = std::max(p.least, Index(std::floor(p.number / number * cells)));
      sum += p.cells;
    }
    const auto wish = [&](size_t k) { return pieces[k].number / number * cells - pieces[k].cells; };
    for (size_t k = 0; k < pieces.size(); ++k) {
      more.emplace(wish(k), k);
      if (pieces[k].cells > pieces[k].least) less.emplace(-wish(k), k);
    }
    for (; sum < cells; ++sum) {
      const size_t k = more.top().second;
      more.pop();
      ++pieces[k].cells;
      more.emplace(wish(k), k);
    }
    for (; sum > cells; --sum) {
      const size_t k = less.top().second;
      less.pop();
      if (--pieces[k].cells > pieces[k].least) less.emplace(-wish(k), k);
    }
  }

  /// Node j of a piece, 0 < j < piece.cells.
  Point node(const Piece& p, Index j) const {
    const double goal = double(j) / p.cells, surplus = p.cells / p.number - 1;
    double t = goal;
    // t + surplus (3 t^2 - 2 t^3) is the part of the cells up to t, were the density 1 + 6 surplus t (1 - t).
    if (std::abs(surplus) <= 0.5) {
      double low = 0, high = 1;
      for (int step = 0; step < 60 && high - low > 1e-15; ++step) {
        const double miss = t + surplus * t * t * (3 - 2 * t) - (1 + surplus) * goal;
        (miss > 0 ? high : low) = t;
        const double newton = t - miss / (1 + 6 * surplus * t * (1 - t));
        if (newton == t) break;
        t = newton > low && newton < high ? newton : (low + high) / 2;
      }
    }
    return spline_.at(parameter(density_.place_of(p.begin + p.number * t)));
  }

  WallPoints nodes() const {
    std::vector<Piece> pieces;
    size_t first = 0;
    for (size_t k = 0; k < stops_.size(); ++k) {
      if (stops_[k].point == 0) first = k;
      const double begin = density_.number_at(stops_[k].v);
      pieces.push_back({stops_[k], begin, density_.number_at(end_of(k)) - begin, stops_[k].least, 0});
    }
    std::rotate(pieces.begin(), pieces.begin() + std::ptrdiff_t(first), pieces.end());
    const bool mirror = mirrors_ && cells_ % 2 == 0;
    const Index half = mirror ? cells_ / 2 : cells_;
    Stop last = pieces[0].from;
    if (mirror) {
      pieces.resize(pieces.size() / 2 + 1);
      last = pieces.back().from;
      pieces.pop_back();
    }
    share_out(pieces, half);
    WallPoints wall;
    wall.point.reserve(size_t(cells_) + 1);
    const auto add = [&](const Stop& s) {
      if (s.corner) wall.corner.push_back(Index(wall.point.size()));
      wall.point.push_back(s.point >= 0 ? curve_.point[size_t(s.point)] : spline_.at(parameter(s.v)));
    };
    for (const Piece& p : pieces) {
      add(p.from);
      for (Index j = 1; j < p.cells; ++j) wall.point.push_back(node(p, j));
    }
    if (!mirror) {
      wall.point.push_back(wall.point.front());
      return wall;
    }
    add(last);
    wall.point.back().y = 0;
    for (Index j = half - 1; j > 0; --j) wall.point.push_back({wall.point[size_t(j)].x, -wall.point[size_t(j)].y});
    wall.point.push_back(wall.point.front());
    for (size_t c = wall.corner.size(); c-- > 0;)
      if (wall.corner[c] != 0 && wall.corner[c] != half) wall.corner.push_back(cells_ - wall.corner[c]);
    return wall;
  }

  const Curve& curve_;
  const CurveSpline spline_;
  const Index cells_;
  const WallSpacing how_;
  const bool mirrors_;
  bool sharp_edge_ = false;
  double slope_ = 0;  // of spacings along the curve
  double largest_slope_ = 0;
  double factor_ = 1;  // of what is wanted
  double start_ = 0;   // v = 0
  double leading_edge_ = -1;
  std::vector<Stop> stops_;  // by v; the first is v = 0
  std::vector<Place> places_;
  std::vector<double> cap_, reach_;
  Density sample_;
  std::vector<size_t> side_;
  std::vector<double> speed_, spacing_;
  Density density_;
};

}  // namespace

WallPoints wall_points(const Curve& curve, Index cells, const WallSpacing& how) {
  for (const auto& [name, value] : {std::pair("trailing edge", how.trailing_edge),
                                    std::pair("leading edge", how.leading_edge), std::pair("corners", how.corner)})
    if (!(value > 0) || !std::isfinite(value))
      throw Error(fmt::format("the spacing at the {} is {} and must be positive", name, value));
  if (!(how.turning > 0) || !(how.growth > 1) || !(how.largest_growth > 1))
    throw Error(
        fmt::format("a wall turns by {} degrees a cell and its spacing grows by {} or {}: the first must be positive, "
                    "the others more than 1",
                    how.turning, how.growth, how.largest_growth));
  constexpr Index most = 100'000'000;
  if (cells < 2 || cells > most)
    throw Error(fmt::format("{} cells do not go round a curve; give 8 or more, and {} at most", cells, most));
  return Wall(curve, cells, how).points();
}

}  // namespace krilu::grid
