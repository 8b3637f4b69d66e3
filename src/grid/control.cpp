// SPDX-License-Identifier: Apache-2.0
#include "grid/control.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <utility>

#include "grid/curve.hpp"
#include "grid/plane.hpp"
#include "grid/quality.hpp"

namespace krilu::grid {

namespace {

using std::size_t;

constexpr double least_reach = 0.05;   // of p, in the mapped plane, where a body is about one long
constexpr double least_factor = 0.03;  // of changes
constexpr double spread = 4;           // reach of a wall's own phi, in lengths over which its spacing changes by itself
constexpr double most_term = 1.8;      // of phi and psi: from 2 on central differences are no longer monotone

/// -s'' / s' of three places.
double one_dimensional(double before, double here, double after) {
  return -2 * ((after - here) - (here - before)) / (after - before);
}

/// Places in the mapped plane along one line j, with those beyond its ends.
class MappedLine {
 public:
  MappedLine(const Start& start, Index j) : start_(start), first_(size_t(j) * size_t(start.grid.ni)) {}
  Complex operator()(Index i) const {
    const Grid& g = start_.grid;
    if (g.topology == Grid::Topology::C) return start_.zeta[first_ + size_t(i)];
    const Index n = g.ni - 1;
    const Complex zeta = start_.zeta[first_ + size_t((i + n) % n)];
    return i < 0 ? zeta - 2 * std::numbers::pi : i >= n ? zeta + 2 * std::numbers::pi : zeta;
  }
  /// Of both sides at i.
  double length_of(Index i) const {
    return std::abs((*this)(i) - (*this)(i - 1)) + std::abs((*this)(i + 1) - (*this)(i));
  }

 private:
  const Start& start_;
  size_t first_;
};

/// phi and psi for which the equations hold at the middle of nine nodes.
std::pair<double, double> terms_for(const Point& w, const Point& e, const Point& m, const Point& s, const Point& t,
                                    const Point& ne, const Point& nw, const Point& se, const Point& sw) {
  const Point x = 0.5 * (e - w), r_e = 0.5 * (t - s);
  const double alpha = dot(r_e, r_e), beta = dot(x, r_e), gamma = dot(x, x);
  const auto rest = [&](double Point::*at) {
    const double xx = e.*at - 2 * m.*at + w.*at, ee = t.*at - 2 * m.*at + s.*at;
    const double xe = 0.25 * (ne.*at - nw.*at - se.*at + sw.*at);
    return -(alpha * xx - 2 * beta * xe + gamma * ee);
  };
  const double b_x = rest(&Point::x), b_y = rest(&Point::y), area = cross(x, r_e);
  return {(b_x * r_e.y - b_y * r_e.x) / (alpha * area), (x.x * b_y - x.y * b_x) / (gamma * area)};
}

/// Averages of every line's neighbours along i, so that nothing of a single wall node reaches far.
void smooth_along(std::vector<double>& v, size_t n, size_t m, bool periodic) {
  std::vector<double> line(n);
  for (size_t j = 0; j < m; ++j)
    for (int round = 0; round < 3; ++round) {
      double* const at = v.data() + j * n;
      for (size_t k = 0; k < n; ++k) {
        const double before = k > 0 ? at[k - 1] : periodic ? at[n - 1] : at[0];
        const double after = k + 1 < n ? at[k + 1] : periodic ? at[0] : at[n - 1];
        line[k] = 0.5 * at[k] + 0.25 * (before + after);
      }
      std::copy(line.begin(), line.end(), at);
    }
}

}  // namespace

Control::Control(const Start& start, const std::string& method, double fading)
    : method_(method),
      map_(start.map),
      fading_(fading),
      periodic_(start.grid.topology == Grid::Topology::O),
      mirrored_(mirrors_itself(start.grid)),
      lines_(start.grid.nj - 2),
      counted_(counted_at_wall(start.grid)) {
  const Grid& grid = start.grid;
  const Index begin = periodic_ ? 0 : 1, n = grid.ni - 1 - begin;
  const auto size = size_t(n) * size_t(lines_);
  phi_.assign(size, 0);
  psi_.assign(size, 0);
  if (method_ == "none") return;

  // Corners that a line j has to go round, in the mapped plane.
  const MappedLine wall(start, 0), far(start, grid.nj - 1);
  std::vector<Index> corner;
  std::vector<char> controlled(size_t(grid.ni), 1);
  std::vector<double> mitre(size_t(grid.ni), 1.0);
  for (const Index c : start.corner) {
    const Complex before = wall(c) - wall(c - 1), after = wall(c + 1) - wall(c);
    const double turns = std::arg(after / before) * 180 / std::numbers::pi;
    if (std::abs(turns) < 25) continue;
    corner.push_back(c);
    if (turns > 0) mitre[size_t(c)] = 1 / std::cos(0.5 * std::min(turns, 120.0) * std::numbers::pi / 180);
    // Where the wall itself opens inwards spacing and angle cannot be had both, nor beside it; the corner between base
    // and cut is so close to the next one that nothing is left to interpolate from.
    if (turns < 0 || c == grid.wake || c == grid.ni - 1 - grid.wake) continue;
    for (Index beside = -1; beside <= 1; ++beside) {
      const Index i = periodic_ ? (c + beside + grid.ni - 1) % (grid.ni - 1) : c + beside;
      if (i >= 0 && i < grid.ni) controlled[size_t(i)] = 0;
    }
  }

  base_phi_.resize(size);
  base_psi_.resize(size);
  fade_p_.resize(size);
  column_.resize(size_t(n));
  for (Index k = 0; k < n; ++k) {
    const Index i = begin + k;
    Column& c = column_[size_t(k)];
    c.i = i;
    c.controlled = controlled[size_t(i)] != 0;
    // In a corner that opens inwards the first line is a mitre.
    c.spacing = start.spacing[size_t(i)] * mitre[size_t(i)];
    c.along = 0.5 * wall.length_of(i);
    const auto zeta = [&](Index j) { return start.zeta[size_t(j) * size_t(grid.ni) + size_t(i)]; };
    c.first = std::abs(zeta(1) - zeta(0));
    c.reach = std::max({least_reach, 2 * c.along, 2 * c.first});
    const double wall_phi = one_dimensional(0, std::abs(wall(i) - wall(i - 1)), wall.length_of(i));
    const double far_phi = one_dimensional(0, std::abs(far(i) - far(i - 1)), far.length_of(i));
    const double far_along = 0.5 * far.length_of(i);
    double lean = 0;  // of the line where p is 1, times `along`
    for (Index j = 1; j <= lines_; ++j) {
      const auto node = size_t(j - 1) * size_t(n) + size_t(k);
      const double up = std::abs(zeta(j) - zeta(0)), down = std::abs(zeta(j) - zeta(grid.nj - 1));
      base_phi_[node] = wall_phi * std::exp(-up * std::abs(wall_phi) / (spread * c.along)) +
                        far_phi * std::exp(-down * std::abs(far_phi) / (spread * far_along));
      base_psi_[node] = one_dimensional(zeta(j - 1).imag(), zeta(j).imag(), zeta(j + 1).imag());
      fade_p_[node] = std::exp(-(up - c.first) / c.reach);
      lean += std::abs(zeta(j) - zeta(j - 1)) * fade_p_[node];
    }
    // Corners hold lines nearby.
    double clear = std::numeric_limits<double>::infinity();
    for (const Index at : corner) {
      double d = std::abs(wall(i) - wall(at));
      if (periodic_) d = std::min(d, std::abs(2 * std::numbers::pi - d));
      clear = std::min(clear, std::max(d, c.along));
    }
    c.stiffness = 1 / lean + 1.5 / clear;
  }
  smooth_along(base_phi_, size_t(n), size_t(lines_), periodic_);
  smooth_along(base_psi_, size_t(n), size_t(lines_), periodic_);
  for (Column& c : column_) {
    const auto k = size_t(&c - column_.data());
    c.phi = base_phi_[k];
    c.psi = base_psi_[k];
  }
  assemble();
}

Control::Deviation Control::deviation(const Grid& grid) const {
  Deviation d;
  for (const Column& c : column_) {
    if (!counted_[size_t(c.i)]) continue;
    const Leaving l = leaving(grid, c.i);
    d.spacing = std::max(d.spacing, std::abs(l.spacing / c.spacing - 1));
    d.angle = std::max(d.angle, std::abs(l.lean));
  }
  return d;
}

double Control::Relaxation::of(double change) {
  factor = change * before < 0 ? std::max(least_factor, 0.5 * factor) : std::min(1.0, 1.2 * factor);
  before = change;
  return factor * change;
}

void Control::calm() {
  for (Column& c : column_)
    for (Relaxation* r : {&c.for_p, &c.for_q}) r->factor = std::max(least_factor, 0.5 * r->factor);
}

void Control::update(const Grid& grid, const Grid& plane) {
  if (method_ == "none") return;
  const std::vector<std::pair<double, double>> change =
      method_ == "sorenson" ? by_equations(grid, plane) : by_deviations(grid);
  for (size_t k = 0; k < column_.size(); ++k) {
    Column& c = column_[k];
    const double most_p = c.along * c.stiffness, most_q = fading_;  // 45 degrees, and a factor of e
    c.p = std::clamp(c.p + c.for_p.of(std::clamp(change[k].first, -most_p, most_p)), -most_term, most_term);
    c.q = std::clamp(c.q + c.for_q.of(std::clamp(change[k].second, -most_q, most_q)), -most_term, most_term);
  }
  fill();
  if (mirrored_) mirror();
  assemble();
}

std::vector<std::pair<double, double>> Control::by_deviations(const Grid& grid) const {
  std::vector<std::pair<double, double>> change;
  for (const Column& c : column_) {
    const Leaving l = leaving(grid, c.i);
    const double lean = std::clamp(l.lean, -45.0, 45.0) * std::numbers::pi / 180;
    change.emplace_back(-c.along * c.stiffness * std::tan(lean), -fading_ * std::log(l.spacing / c.spacing));
  }
  return change;
}

std::vector<std::pair<double, double>> Control::by_equations(const Grid& grid, const Grid& plane) const {
  const Index n = grid.ni, last = periodic_ ? n - 1 : n;
  const Point turn = map_.turn();
  const auto inside = [&](Index i) { return periodic_ ? (i + last) % last : std::clamp(i, Index(0), Index(n - 1)); };
  const auto turned = [&](Point p, Index i) {
    const double gained = !periodic_ ? 0 : i < 0 ? -1 : i >= last ? 1 : 0;
    return p + gained * turn;
  };
  const auto node = [&](Index i, Index j) { return turned(plane.at(inside(i), j), i); };
  // The first line where it is wanted, or, where nothing is wanted, as it is.
  std::vector<Point> wanted(grid.node.begin(), grid.node.begin() + n);
  for (Index i = 0; i < n; ++i) wanted[size_t(i)] = plane.at(i, 1);
  for (const Column& c : column_) {
    if (!c.controlled) continue;
    const Point before = grid.at(inside(c.i - 1), 0), here = grid.at(c.i, 0), after = grid.at(inside(c.i + 1), 0);
    const Point along = after - before;
    const double factor = c.spacing / length(along);
    const Complex there(here.x - factor * along.y, here.y + factor * along.x);
    wanted[size_t(c.i)] = point_of(map_.to_zeta(there, complex_of(wanted[size_t(c.i)])));
  }
  const auto first = [&](Index i) { return turned(wanted[size_t(inside(i))], i); };
  std::vector<std::pair<double, double>> change;
  for (const Column& c : column_) {
    const auto [phi, psi] = terms_for(first(c.i - 1), first(c.i + 1), first(c.i), node(c.i, 0), node(c.i, 2),
                                      node(c.i + 1, 2), node(c.i - 1, 2), node(c.i + 1, 0), node(c.i - 1, 0));
    // That asks for 2 h u / s more where a line leans by u, and for 2 u less where the spacing is 1 + u times what it
    // should be.
    change.emplace_back((phi - c.phi - c.p) / (1 + 2 / (c.first * c.stiffness)),
                        (psi - c.psi - c.q) / (1 + 2 / fading_));
    if (!std::isfinite(phi) || !std::isfinite(psi)) change.back() = {0, 0};
  }
  return change;
}

void Control::mirror() {
  const size_t n = column_.size();
  for (size_t k = 0; k < n; ++k) {
    const size_t other = periodic_ ? (n - k) % n : n - 1 - k;
    if (other < k) continue;
    Column &a = column_[k], &b = column_[other];
    a.p = 0.5 * (a.p - b.p);
    b.p = -a.p;
    a.q = b.q = 0.5 * (a.q + b.q);
  }
}

void Control::take(const Control& coarser) {
  if (method_ == "none" || coarser.column_.empty()) return;
  const auto& from = coarser.column_;
  const auto n = Index(from.size());
  const auto at = [&](Index i) -> const Column& {  // node i of the coarser grid
    const Index k = coarser.periodic_ ? (i + n) % n : std::clamp(Index(i - 1), Index(0), Index(n - 1));
    return from[size_t(k)];
  };
  for (Column& c : column_) {
    const Column &a = at(c.i / 2), &b = at((c.i + 1) / 2);
    c.p = 0.25 * (a.p + b.p);
    c.q = 0.25 * (a.q + b.q);
  }
  assemble();
}

void Control::fill() {
  const auto n = Index(column_.size());
  std::vector<Index> good;
  for (Index k = 0; k < n; ++k)
    if (column_[size_t(k)].controlled) good.push_back(k);
  if (good.empty()) return;
  for (Index k = 0; k < n; ++k) {
    Column& c = column_[size_t(k)];
    if (c.controlled) continue;
    const auto next = std::upper_bound(good.begin(), good.end(), k);
    Index above = next == good.end() ? n + good.front() : *next,
          below = next == good.begin() ? good.back() - n : next[-1];
    if (!periodic_) {
      if (above >= n) above = below;
      if (below < 0) below = above;
    }
    const Column &a = column_[size_t((below + n) % n)], &b = column_[size_t(above % n)];
    const double part = above == below ? 0 : double(k - below) / double(above - below);
    c.p = a.p + part * (b.p - a.p);
    c.q = a.q + part * (b.q - a.q);
  }
}

void Control::assemble() {
  const size_t n = column_.size();
  for (Index j = 0; j < lines_; ++j) {
    const double fade = std::exp(-fading_ * j);
    for (size_t k = 0; k < n; ++k) {
      const auto node = size_t(j) * n + k;
      phi_[node] = base_phi_[node] + column_[k].p * fade_p_[node];
      psi_[node] = base_psi_[node] + column_[k].q * fade;
    }
  }
}

}  // namespace krilu::grid
