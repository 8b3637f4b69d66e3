// SPDX-License-Identifier: Apache-2.0
#include "grid/curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>

#include "base/names.hpp"
#include "grid/plane.hpp"
#include "grid/read_curve.hpp"
#include "krilu/error.hpp"

namespace krilu::grid {

namespace {

using std::size_t;

constexpr Index points_a_side = 2000;  // a cubic spline through so many is off by 1e-12 where the section is smooth

struct Section {
  double thickness, camber, place;  // of the largest camber
  bool open;

  /// Half the thickness at x, which is root^2. The coefficients of 1933 leave the trailing edge open, by 0.021 times
  /// the thickness; with -0.1036 in place of -0.1015 the five add up to zero.
  double half_thickness(double root, double x) const {
    if (!open && x == 1) return 0;  // and not what rounding leaves of it
    const double last = open ? -0.1015 : -0.1036;
    return 5 * thickness * (0.2969 * root + x * (-0.1260 + x * (-0.3516 + x * (0.2843 + x * last))));
  }
  Point camber_line(double x) const {  // y and its slope
    if (camber == 0) return {0, 0};
    if (x < place) return {camber / (place * place) * x * (2 * place - x), 2 * camber / (place * place) * (place - x)};
    const double scale = camber / ((1 - place) * (1 - place));
    return {scale * (1 - x) * (1 + x - 2 * place), 2 * scale * (place - x)};
  }
};

Section section_of(const std::string& shape, bool open) {
  const std::string digits = shape.substr(5);
  if (digits.size() != 4 || digits.find_first_not_of("0123456789") != std::string::npos)
    throw Error(
        fmt::format("'{}' is no NACA section: 'naca:' is followed by four digits, such as naca:0012 or naca:4412 "
                    "(camber in hundredths of the chord, its place in tenths, two digits of thickness)",
                    shape));
  const auto digit = [&](size_t k) { return double(digits[k] - '0'); };
  const Section s{(10 * digit(2) + digit(3)) / 100, digit(0) / 100, digit(1) / 10, open};
  if (s.thickness == 0)
    throw Error(
        fmt::format("'{}' has no thickness: its last two digits are the thickness in hundredths of the chord "
                    "and must not be 00",
                    shape));
  if (s.camber > 0 && s.place == 0)
    throw Error(
        fmt::format("'{}' has camber but no place for it: where the first digit is not 0 the second, the "
                    "camber's place in tenths of the chord, must be 1 to 9",
                    shape));
  return s;
}

/// Square roots of the places where the section has points, from the trailing edge to the leading edge: cosine-spaced,
/// but for one at the place of the camber. The slope of the two sides jumps there, though by little for usual sections
/// (0.03 degrees for NACA 4412), because the camber line's curvature does.
std::vector<double> stations(const Section& s) {
  std::vector<double> root;
  for (Index k = points_a_side; k >= 0; --k)
    root.push_back(k == points_a_side ? 1 : std::sin(std::numbers::pi / 2 * double(k) / points_a_side));
  if (s.camber > 0) {
    const double place = std::sqrt(s.place);
    *std::min_element(root.begin(), root.end(),
                      [=](double a, double b) { return std::abs(a - place) < std::abs(b - place); }) = place;
  }
  return root;
}

Curve naca_section(const std::string& shape, bool open) {
  const Section s = section_of(shape, open);
  Curve curve;
  curve.name = "NACA " + shape.substr(5);
  curve.open_edge = open;
  std::vector<Point> lower, upper;
  for (const double root : stations(s)) {
    const double x = root * root, half = s.half_thickness(root, x);
    const auto [y, slope] = s.camber_line(x);
    const double cosine = 1 / std::sqrt(1 + slope * slope), along = half * slope * cosine, across = half * cosine;
    lower.push_back({x + along, y - across});
    upper.push_back({x - along, y + across});
  }
  std::vector<Point>& p = curve.point;
  if (open) p.push_back({1, 0});
  p.insert(p.end(), lower.begin(), lower.end());
  p.insert(p.end(), upper.rbegin() + 1, upper.rend());
  if (open) p.push_back({1, 0});
  curve.corner = corners_of(p);  // the trailing edge; and at the place of the camber where a section is very thick
  return curve;
}

}  // namespace

Curve curve_by_name(const std::string& shape, const std::string& trailing_edge) {
  require_name("trailing edge", trailing_edge, {"closed", "open"});
  if (shape.starts_with("naca:")) return naca_section(shape, trailing_edge == "open");
  std::error_code ignored;
  if (shape.empty()) throw Error("no shape is named: give naca:DDDD, such as naca:0012, or a file of coordinates");
  if (!std::filesystem::exists(shape, ignored))
    throw Error(fmt::format("could not read the shape '{}': there is no such file; {}", shape,
                            shape.starts_with("naca") || shape.starts_with("NACA")
                                ? "a NACA section is written naca:DDDD, such as naca:0012"
                                : "give a file of coordinates or a NACA section, such as naca:0012"));
  return read_curve(shape);
}

double turning(const Point& a, const Point& b, const Point& c) {
  const Point u = b - a, v = c - b;
  return std::abs(std::atan2(cross(u, v), dot(u, v))) * 180 / std::numbers::pi;
}

std::vector<Index> corners_of(const std::vector<Point>& closed) {
  const size_t n = closed.size() - 1;
  std::vector<double> turn(n), side(n);  // side k follows point k
  for (size_t k = 0; k < n; ++k) {
    turn[k] = turning(closed[k == 0 ? n - 1 : k - 1], closed[k], closed[k + 1]);
    side[k] = length(closed[k + 1] - closed[k]);
  }
  std::vector<Index> corner;
  for (size_t k = 0; k < n; ++k) {
    const size_t last = (k + n - 1) % n, next = (k + 1) % n;
    const double before = side[last], after = side[k];
    // Turning a length, times the length about this point. Of the two neighbours the smaller: two corners in a row
    // must not hide one another.
    const double expected =
        (before + after) * std::min(turn[last] / (side[(k + n - 2) % n] + before), turn[next] / (after + side[next]));
    const double straight = std::max({turn[last], turn[next], turn[(k + n - 2) % n], turn[(k + 2) % n]});
    const bool uneven = std::max(before, after) > 5 * std::min(before, after);
    if (turn[k] >= 85 || (turn[k] >= 25 && turn[k] > 4 * expected) || (turn[k] >= 10 && uneven) ||
        (turn[k] >= 5 && straight < turn[k] / 20))
      corner.push_back(Index(k));
  }
  return corner;
}

bool mirrors_itself(const Curve& curve) {
  const std::vector<Point>& p = curve.point;
  const size_t n = p.size() - 1;
  for (size_t k = 0; k <= n / 2; ++k)
    if (p[k].x != p[n - k].x || p[k].y != -p[n - k].y) return false;
  const auto mirrored = [n](Index c) { return c == 0 ? 0 : Index(n) - c; };
  return std::all_of(curve.corner.begin(), curve.corner.end(), [&](Index c) {
    return std::binary_search(curve.corner.begin(), curve.corner.end(), mirrored(c));
  });
}

}  // namespace krilu::grid
