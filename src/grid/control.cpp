// SPDX-License-Identifier: Apache-2.0
#include "grid/control.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <utility>

#include "grid/curve.hpp"
#include "grid/quality.hpp"

namespace krilu::grid {

namespace {

using std::size_t;

constexpr double least_reach = 0.05;  // of p, in the mapped plane, where a body is about one long
constexpr double spread = 4;          // reach of a wall's own phi, in lengths over which its spacing changes by itself
static const double held_reach = getenv("HELD") ? atof(getenv("HELD")) : 0.3;
constexpr double most = 1.8;  // of phi and psi: from 2 on central differences are no longer monotone

Point operator-(const Point& a, const Point& b) { return {a.x - b.x, a.y - b.y}; }
double dot(const Point& a, const Point& b) { return a.x * b.x + a.y * b.y; }
double length(const Point& a) { return std::hypot(a.x, a.y); }

/// -s'' / s' of three places.
double one_dimensional(double before, double here, double after) {
  return -2 * ((after - here) - (here - before)) / (after - before);
}

/// Places along one line j, with those beyond its ends.
class Row {
 public:
  Row(const Start& start, Index j) : start_(start), first_(size_t(j) * size_t(start.grid.ni)) {}
  Complex operator()(Index i) const {
    const Grid& g = start_.grid;
    if (g.topology == Grid::Topology::C) return start_.zeta[first_ + size_t(i)];
    const Index n = g.ni - 1;
    const Complex zeta = start_.zeta[first_ + size_t((i + n) % n)];
    return i < 0 ? zeta - 2 * std::numbers::pi : i >= n ? zeta + 2 * std::numbers::pi : zeta;
  }

 private:
  const Start& start_;
  size_t first_;
};

/// phi and psi for which the equations hold at the middle of nine nodes.
std::pair<double, double> terms_for(const Point& w, const Point& e, const Point& m, const Point& s, const Point& t,
                                    const Point& ne, const Point& nw, const Point& se, const Point& sw) {
  const Point x = {0.5 * (e.x - w.x), 0.5 * (e.y - w.y)}, r_e = {0.5 * (t.x - s.x), 0.5 * (t.y - s.y)};
  const double alpha = dot(r_e, r_e), beta = dot(x, r_e), gamma = dot(x, x);
  const auto rest = [&](double Point::*at) {
    const double xx = e.*at - 2 * m.*at + w.*at, ee = t.*at - 2 * m.*at + s.*at;
    const double xe = 0.25 * (ne.*at - nw.*at - se.*at + sw.*at);
    return -(alpha * xx - 2 * beta * xe + gamma * ee);
  };
  const double b_x = rest(&Point::x), b_y = rest(&Point::y), area = x.x * r_e.y - x.y * r_e.x;
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
      fading_(fading),
      periodic_(start.grid.topology == Grid::Topology::O),
      mirrored_(mirrors_itself(start.grid)),
      lines_(start.grid.nj - 2),
      spacing_(start.spacing),
      counted_(counted_at_wall(start.grid)) {
  const Grid& grid = start.grid;
  const Index begin = periodic_ ? 0 : 1, n = grid.ni - 1 - begin;
  const auto size = size_t(n) * size_t(lines_);
  phi_.assign(size, 0);
  psi_.assign(size, 0);
  if (method_ == "none") return;

  // Corners that a line j has to go round.
  std::vector<Index> corner;
  for (const Index c : start.corner) {
    const Index before = c > 0 ? c - 1 : grid.ni - 2, after = c + 1 < grid.ni ? c + 1 : 1;
    if (turning(grid.at(before, 0), grid.at(c, 0), grid.at(after, 0)) > 25) corner.push_back(c);
  }
  std::vector<char> controlled(size_t(grid.ni), 1);
  for (size_t k = 0; k < corner.size(); ++k) {
    for (Index beside = -2; beside <= 2; ++beside) {
      Index i = corner[k] + beside;
      if (periodic_) i = (i + grid.ni - 1) % (grid.ni - 1);
      if (i >= 0 && i < grid.ni) controlled[size_t(i)] = 0;
    }
    if (k + 1 == corner.size()) continue;
    double between = 0;
    for (Index i = corner[k]; i < corner[k + 1]; ++i) between += length(grid.at(i + 1, 0) - grid.at(i, 0));
    if (between < 0.05)
      for (Index i = corner[k]; i < corner[k + 1]; ++i) controlled[size_t(i)] = 0;
  }

  base_phi_.resize(size);
  base_psi_.resize(size);
  fade_p_.resize(size);
  column_.resize(size_t(n));
  const Row wall(start, 0), far(start, grid.nj - 1);
  for (Index k = 0; k < n; ++k) {
    const Index i = begin + k;
    Column& c = column_[size_t(k)];
    c.i = i;
    c.controlled = controlled[size_t(i)] != 0;
    c.spacing = start.spacing[size_t(i)];
    c.along = 0.5 * std::abs(wall(i + 1) - wall(i - 1));
    const auto zeta = [&](Index j) { return start.zeta[size_t(j) * size_t(grid.ni) + size_t(i)]; };
    c.first = std::abs(zeta(1) - zeta(0));
    c.reach = std::max({least_reach, 2 * c.along, 2 * c.first});
    const double wall_phi = one_dimensional(wall(i - 1).real(), wall(i).real(), wall(i + 1).real());
    const double far_phi = one_dimensional(far(i - 1).real(), far(i).real(), far(i + 1).real());
    const double far_along = 0.5 * std::abs(far(i + 1) - far(i - 1));
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
  hold_sharp_corners(start, corner);
  for (Column& c : column_) {
    const auto k = size_t(&c - column_.data());
    c.phi = base_phi_[k];
    c.psi = base_psi_[k];
  }
  assemble();
}

void Control::hold_sharp_corners(const Start& start, const std::vector<Index>& corner) {
  const Grid& grid = start.grid;
  const auto n = Index(column_.size());
  const auto node = [&](Index i, Index j) -> const Point& {
    return grid.at(periodic_ ? (i + grid.ni - 1) % (grid.ni - 1) : i, j);
  };
  std::vector<double> part(size_t(n), 0);
  for (const Index c : corner) {
    if (c <= 0 && !periodic_) continue;
    if (turning(node(c - 1, 0), node(c, 0), node(c + 1, 0)) < 120) continue;
    for (Index beside = -3; beside <= 3; ++beside) {
      const Index k = periodic_ ? (c + beside + n) % n : c + beside - 1;
      if (k >= 0 && k < n) part[size_t(k)] = std::max(part[size_t(k)], 1 - 0.25 * std::abs(beside));
    }
  }
  for (Index k = 0; k < n; ++k) {
    if (part[size_t(k)] == 0) continue;
    const Index i = column_[size_t(k)].i;
    for (Index j = 1; j <= lines_; ++j) {
      const Point w = node(i - 1, j), e = node(i + 1, j), m = node(i, j), s = node(i, j - 1), t = node(i, j + 1);
      const Point ne = node(i + 1, j + 1), nw = node(i - 1, j + 1), se = node(i + 1, j - 1), sw = node(i - 1, j - 1);
      const auto [phi, psi] = terms_for(w, e, m, s, t, ne, nw, se, sw);
      const auto at = size_t(j - 1) * size_t(n) + size_t(k);
      const size_t zeta = size_t(j) * size_t(grid.ni) + size_t(i);
      const double up = std::abs(start.zeta[zeta] - start.zeta[size_t(i)]) / held_reach;
      const double here = part[size_t(k)] * std::exp(-up * up);
      base_phi_[at] += here * (phi - base_phi_[at]);
      base_psi_[at] += here * (psi - base_psi_[at]);
    }
  }
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
  factor = change * before < 0 ? std::max(0.1, 0.5 * factor) : std::min(1.0, 1.3 * factor);
  before = change;
  return factor * change;
}

void Control::update(const Grid& grid) {
  if (method_ == "none") return;
  const std::vector<std::pair<double, double>> change =
      method_ == "sorenson" ? by_equations(grid) : by_deviations(grid);
  for (size_t k = 0; k < column_.size(); ++k) {
    Column& c = column_[k];
    const double most_p = c.along * c.stiffness, most_q = fading_;  // 45 degrees, and a factor of e
    c.p = std::clamp(c.p + c.for_p.of(std::clamp(change[k].first, -most_p, most_p)), -most, most);
    c.q = std::clamp(c.q + c.for_q.of(std::clamp(change[k].second, -most_q, most_q)), -most, most);
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

std::vector<std::pair<double, double>> Control::by_equations(const Grid& grid) const {
  // Where the first line is wanted, and where nothing is wanted, is; with one more node beyond both ends.
  const Index n = grid.ni, last = periodic_ ? n - 1 : n;
  const auto node = [&](Index i, Index j) -> const Point& {
    return grid.at(periodic_ ? (i + last) % last : std::clamp(i, Index(0), Index(n - 1)), j);
  };
  std::vector<Point> wanted(size_t(n) + 2);
  for (Index i = -1; i <= n; ++i) {
    const Point before = node(i - 1, 0), here = node(i, 0), after = node(i + 1, 0);
    const double h = std::hypot(after.x - before.x, after.y - before.y);
    const double s = spacing_[size_t(periodic_ ? (i + last) % last : std::clamp(i, Index(0), Index(n - 1)))];
    wanted[size_t(i + 1)] = {here.x - s * (after.y - before.y) / h, here.y + s * (after.x - before.x) / h};
  }
  for (const Column& c : column_)
    if (!c.controlled) wanted[size_t(c.i) + 1] = node(c.i, 1);
  if (periodic_) {
    wanted[0] = wanted[size_t(last)];
    wanted[size_t(last) + 1] = wanted[1];
  }
  std::vector<std::pair<double, double>> change;
  for (const Column& c : column_) {
    const Point &w = wanted[size_t(c.i)], &m = wanted[size_t(c.i) + 1], &e = wanted[size_t(c.i) + 2];
    const Point &s = node(c.i, 0), &t = node(c.i, 2), &ne = node(c.i + 1, 2), &nw = node(c.i - 1, 2);
    const Point &se = node(c.i + 1, 0), &sw = node(c.i - 1, 0);
    const auto [phi, psi] = terms_for(w, e, m, s, t, ne, nw, se, sw);
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
