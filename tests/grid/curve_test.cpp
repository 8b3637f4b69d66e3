// SPDX-License-Identifier: Apache-2.0
// NACA sections against the formula in long double, their symmetry, corners of polygons made by hand, and crossings
// against a comparison of all pairs of sides.
#include "grid/curve.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "grid/curve_spline.hpp"
#include "grid/grids.hpp"
#include "krilu/error.hpp"

namespace {

using krilu::Error;
using krilu::Index;
using krilu::Point;
using krilu::grid::corners_of;
using krilu::grid::crossing_sides;
using krilu::grid::Curve;
using krilu::grid::curve_by_name;
using krilu::grid::CurveSpline;
using krilu::grid::mirrors_itself;
using krilu::test::area;

using Long = long double;

std::string error_of(const std::string& shape, const std::string& edge = "closed") {
  try {
    curve_by_name(shape, edge);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

struct LongPoint {
  Long x, y;
};

/// NACA Report 460: thickness ratio t, camber m at p, both by the section's digits; the side is 1 above, -1 below.
LongPoint naca(Long t, Long m, Long p, Long last, Long side, Long x) {
  const Long half =
      5 * t * (0.2969L * std::sqrt(x) - 0.1260L * x - 0.3516L * x * x + 0.2843L * x * x * x + last * x * x * x * x);
  Long y = 0, slope = 0;
  if (m > 0 && x <= p) {
    y = m / (p * p) * (2 * p * x - x * x);
    slope = 2 * m / (p * p) * (p - x);
  } else if (m > 0) {
    y = m / ((1 - p) * (1 - p)) * (1 - 2 * p + 2 * p * x - x * x);
    slope = 2 * m / ((1 - p) * (1 - p)) * (p - x);
  }
  const Long angle = std::atan(slope);
  return {x - side * half * std::sin(angle), y + side * half * std::cos(angle)};
}

std::vector<Point> closed(std::vector<Point> p) {
  p.push_back(p.front());
  return p;
}

std::vector<Point> regular(int sides) {
  std::vector<Point> p;
  for (int k = 0; k < sides; ++k)
    p.push_back({std::cos(2 * std::numbers::pi * k / sides), std::sin(2 * std::numbers::pi * k / sides)});
  return closed(p);
}

TEST(NacaSections, AreWhatTheFormulaSays) {
  struct Case {
    std::string shape, edge;
    Long t, m, p;
  };
  for (const Case& c : {Case{"naca:0012", "closed", 0.12L, 0, 0}, Case{"naca:0012", "open", 0.12L, 0, 0},
                        Case{"naca:4412", "closed", 0.12L, 0.04L, 0.4L}, Case{"naca:2415", "open", 0.15L, 0.02L, 0.4L},
                        Case{"naca:6721", "closed", 0.21L, 0.06L, 0.7L}, Case{"naca:0412", "open", 0.12L, 0, 0.4L}}) {
    const Curve curve = curve_by_name(c.shape, c.edge);
    const bool open = c.edge == "open";
    EXPECT_EQ(curve.name, "NACA " + c.shape.substr(5));
    EXPECT_EQ(curve.open_edge, open);
    const std::size_t skip = open ? 1 : 0, n = curve.point.size() - 1, side = (n - 2 * skip) / 2;
    EXPECT_GE(side, 2000u);
    double worst = 0;
    for (std::size_t k = 0; k <= side; ++k) {
      const Point lower = curve.point[skip + k], upper = curve.point[n - skip - k];
      const Long x = (Long(lower.x) + upper.x) / 2;  // of the camber line, to which both are perpendicular
      for (const Long up : {-1.0L, 1.0L}) {
        const Point got = up < 0 ? lower : upper;
        const LongPoint want = naca(c.t, c.m, c.p, open ? -0.1015L : -0.1036L, up, x);
        worst = std::max({worst, double(std::abs(want.x - got.x)), double(std::abs(want.y - got.y))});
      }
    }
    EXPECT_EQ(curve.point[skip + side].x, 0) << c.shape;
    EXPECT_EQ(curve.point[skip + side].y, 0) << c.shape;
    EXPECT_LT(worst, 1e-14) << c.shape;
    EXPECT_LT(area(curve.point), 0) << "clockwise";
    EXPECT_LT(curve.point[skip + side / 2].y, curve.point[n - skip - side / 2].y) << "the lower side first";
    EXPECT_EQ(curve.point.front().x, 1);
    EXPECT_EQ(curve.point.front().y, 0);
    EXPECT_EQ(curve.point.back().x, 1);
    EXPECT_EQ(curve.point.back().y, 0);
    EXPECT_EQ(curve.corner, open ? (std::vector<Index>{1, Index(n) - 1}) : (std::vector<Index>{0})) << c.shape;
    EXPECT_EQ(corners_of(curve.point), curve.corner) << c.shape;
    EXPECT_EQ(mirrors_itself(curve), c.m == 0);
  }
}

TEST(NacaSections, AreMetBySplinesBetweenTheirPoints) {
  for (const auto& [shape, m] : {std::pair("naca:0012", 0.0L), std::pair("naca:4412", 0.04L)}) {
    const Curve curve = curve_by_name(shape, "closed");
    const CurveSpline spline(curve);
    const std::size_t n = curve.point.size() - 1, side = n / 2;
    double worst = 0, worst_at_camber = 0;  // where the slope jumps by 0.03 degrees
    for (std::size_t k = 0; k < side; ++k) {
      // The foot of the middle of each side: Newton's steps along the formula.
      const Point got = spline.at((spline.knot()[k] + spline.knot()[k + 1]) / 2);
      const auto station = [&](std::size_t i) { return (Long(curve.point[i].x) + curve.point[n - i].x) / 2; };
      const auto on = [&](Long root) { return naca(0.12L, m, 0.4L, -0.1036L, -1, root * root); };
      Long root = std::sqrt((station(k) + station(k + 1)) / 2);
      for (int step = 0; step < 8; ++step) {
        const LongPoint a = on(root - 1e-7L), b = on(root + 1e-7L), here = on(root);
        const Long dx = (b.x - a.x) / 2e-7L, dy = (b.y - a.y) / 2e-7L;
        root += ((got.x - here.x) * dx + (got.y - here.y) * dy) / (dx * dx + dy * dy);
      }
      const LongPoint here = on(root);
      double& largest = m > 0 && std::abs(got.x - 0.4) < 0.01 ? worst_at_camber : worst;
      largest = std::max(largest, double(std::hypot(here.x - got.x, here.y - got.y)));
    }
    EXPECT_LT(worst, 1e-11) << shape;
    EXPECT_GT(worst, 0) << shape;
    EXPECT_LT(worst_at_camber, 1e-7) << shape;
  }
}

TEST(NacaSections, ThatAreVeryThickHaveCornersAtThePlaceOfTheCamber) {
  const Curve curve = curve_by_name("naca:9199", "closed");
  ASSERT_EQ(curve.corner.size(), 3u);
  EXPECT_EQ(curve.corner[0], 0);
  for (const int k : {1, 2}) EXPECT_NEAR(curve.point[std::size_t(curve.corner[std::size_t(k)])].x, 0.1, 1e-12);
  EXPECT_FALSE(crossing_sides(curve.point));
}

TEST(NacaSections, WithoutCamberAreMirroredBitForBit) {
  for (const char* shape : {"naca:0012", "naca:0006", "naca:0099"})
    for (const char* edge : {"closed", "open"}) {
      const Curve curve = curve_by_name(shape, edge);
      const std::size_t n = curve.point.size() - 1;
      for (std::size_t k = 0; k <= n; ++k) {
        ASSERT_EQ(curve.point[k].x, curve.point[n - k].x);
        ASSERT_EQ(curve.point[k].y, -curve.point[n - k].y);
      }
      EXPECT_TRUE(mirrors_itself(curve));
      Curve bent = curve;
      bent.point[17].y = std::nextafter(bent.point[17].y, 1.0);
      EXPECT_FALSE(mirrors_itself(bent));
    }
}

TEST(NacaSections, ThatAreNoneAreRefused) {
  for (const char* shape : {"naca:12", "naca:00x2", "naca:", "naca:00123", "naca:-012"}) {
    EXPECT_NE(error_of(shape).find("is no NACA section: 'naca:' is followed by four digits"), std::string::npos)
        << error_of(shape);
    EXPECT_NE(error_of(shape).find(shape), std::string::npos);
  }
  EXPECT_NE(error_of("naca:0000").find("'naca:0000' has no thickness"), std::string::npos);
  EXPECT_NE(error_of("naca:2400").find("has no thickness"), std::string::npos);
  EXPECT_NE(error_of("naca:2012").find("has camber but no place for it"), std::string::npos);
}

TEST(CurveByName, RefusesNamesThatAreNone) {
  EXPECT_NE(error_of("naca:0012", "opne").find("unknown trailing edge 'opne': did you mean 'open'?"),
            std::string::npos);
  EXPECT_NE(error_of("naca:0012", "").find("one of closed, open"), std::string::npos);
  EXPECT_NE(error_of("").find("no shape is named"), std::string::npos);
  EXPECT_NE(error_of("naca0012")
                .find("could not read the shape 'naca0012': there is no such file; a NACA section is "
                      "written naca:DDDD"),
            std::string::npos);
  EXPECT_NE(error_of("no/such.dat").find("'no/such.dat': there is no such file"), std::string::npos);
}

TEST(Corners, AreWhereAPolygonTurnsMoreThanItsNeighboursLetExpect) {
  EXPECT_EQ(corners_of(regular(3)), (std::vector<Index>{0, 1, 2}));
  EXPECT_EQ(corners_of(regular(4)), (std::vector<Index>{0, 1, 2, 3}));
  for (const int sides : {5, 6, 12, 100}) EXPECT_TRUE(corners_of(regular(sides)).empty()) << sides;

  std::vector<Point> drop;  // half a circle, and a wedge of 40 degrees drawn by few points
  for (int k = 0; k <= 12; ++k) {
    const double angle = std::numbers::pi * (110 - 220.0 * k / 12) / 180;
    drop.push_back({-std::cos(angle), -std::sin(angle)});
  }
  const double tip = 1 / std::cos(70 * std::numbers::pi / 180);  // where the tangents meet
  const Point from = drop.back(), to = drop.front();
  for (int k = 1; k < 6; ++k) drop.push_back({from.x + (tip - from.x) * k / 6, from.y + (0 - from.y) * k / 6});
  drop.push_back({tip, 0});
  for (int k = 5; k > 0; --k) drop.push_back({to.x + (tip - to.x) * k / 6, to.y + (0 - to.y) * k / 6});
  EXPECT_EQ(corners_of(closed(drop)), (std::vector<Index>{18}));

  std::vector<Point> diamond;  // of a tenth: blunt corners of 11 degrees on top, between straight lines
  for (int k = 0; k < 10; ++k) diamond.push_back({1 - k / 20.0, -k / 200.0});
  for (int k = 0; k < 10; ++k) diamond.push_back({0.5 - k / 20.0, -0.05 + k / 200.0});
  for (int k = 0; k < 10; ++k) diamond.push_back({k / 20.0, k / 200.0});
  for (int k = 0; k < 10; ++k) diamond.push_back({0.5 + k / 20.0, 0.05 - k / 200.0});
  EXPECT_EQ(corners_of(closed(diamond)), (std::vector<Index>{0, 10, 20, 30}));

  // The usual table of a section, whose first stations are 0, 0.0125 and 0.025: a coarse nose is none.
  const double x[] = {1, 0.9, 0.7, 0.5, 0.3, 0.2, 0.15, 0.1, 0.075, 0.05, 0.025, 0.0125};
  const double y[] = {0, 0.0145, 0.0366, 0.0529, 0.06, 0.0574, 0.0535, 0.0468, 0.042, 0.0355, 0.0261, 0.0189};
  std::vector<Point> table;
  for (int k = 0; k < 12; ++k) table.push_back({x[k], -y[k]});
  table.push_back({0, 0});
  for (int k = 11; k > 0; --k) table.push_back({x[k], y[k]});
  EXPECT_EQ(corners_of(closed(table)), (std::vector<Index>{0}));
}

TEST(Splines, MeetCirclesAndEllipsesBetweenPoints) {
  for (const auto& [points, allowed] : {std::pair(40, 4e-6), std::pair(80, 2.5e-7)}) {
    Curve circle;
    for (int k = 0; k <= points; ++k) {
      const double angle = -2 * std::numbers::pi * (k % points) / points;
      circle.point.push_back({std::cos(angle), std::sin(angle)});
    }
    const CurveSpline spline(circle);
    double worst = 0;
    for (int k = 0; k <= 1000; ++k) {
      const Point p = spline.at(spline.length() * k / 1000), d = spline.derivative(spline.length() * k / 1000);
      worst = std::max(worst, std::abs(std::hypot(p.x, p.y) - 1));
      EXPECT_NEAR(p.x * d.x + p.y * d.y, 0, 1e-3);
    }
    EXPECT_LT(worst, allowed);
    for (std::size_t k = 0; k < circle.point.size(); ++k) {
      EXPECT_EQ(spline.at(spline.knot()[k]).x, circle.point[k].x);
      EXPECT_EQ(spline.at(spline.knot()[k]).y, circle.point[k].y);
    }
  }
}

TEST(Splines, HaveContinuousCurvatureBetweenCornersAndStraightSides) {
  Curve curve;  // a half disc, whose corners are not at its first point
  curve.point = {{1, 0}};
  for (int k = 1; k < 20; ++k)
    curve.point.push_back({std::cos(-std::numbers::pi * k / 40), std::sin(-std::numbers::pi * k / 40)});
  curve.point.push_back({0, -1});
  curve.point.push_back({0, 1});
  for (int k = 19; k > 0; --k)
    curve.point.push_back({std::cos(std::numbers::pi * k / 40), std::sin(std::numbers::pi * k / 40)});
  curve.point.push_back({1, 0});
  curve.corner = corners_of(curve.point);
  ASSERT_EQ(curve.corner, (std::vector<Index>{20, 21}));
  const CurveSpline spline(curve);
  const double h = 1e-5;
  for (std::size_t k = 0; k + 1 < curve.point.size(); ++k) {
    const double u = spline.knot()[k];
    const auto second = [&](double from) {
      const double wrap = from < 0 ? from + spline.length() : from;
      return (spline.derivative(wrap + h).x - spline.derivative(wrap).x) / h;
    };
    if (k == 20 || k == 21) continue;
    EXPECT_NEAR(second(u), second(u - 2 * h), 1e-2) << k;  // smooth through point 0 as well
  }
  for (int k = 1; k < 10; ++k) {
    const Point p = spline.at(spline.knot()[20] + 0.2 * k);
    EXPECT_NEAR(p.x, 0, 1e-15);
    EXPECT_NEAR(p.y, -1 + 0.2 * k, 1e-15);
  }
}

bool pairs_cross(const std::vector<Point>& p) {
  const auto side = [](const Point& a, const Point& b, const Point& c) {
    return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
  };
  const std::size_t n = p.size() - 1;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + 2; j < n; ++j) {
      if (i == 0 && j == n - 1) continue;
      if (side(p[i], p[i + 1], p[j]) * side(p[i], p[i + 1], p[j + 1]) <= 0 &&
          side(p[j], p[j + 1], p[i]) * side(p[j], p[j + 1], p[i + 1]) <= 0)
        return true;
    }
  return false;
}

TEST(Crossings, AreFoundWhereComparisonOfAllPairsFindsThem) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(0, 1);
  int crossing = 0, simple = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    // Radii about a centre make no crossing; some points are moved then.
    const int n = 3 + int(random() % 30);
    std::vector<Point> p;
    for (int k = 0; k < n; ++k) {
      const double angle = 2 * std::numbers::pi * k / n, radius = 0.5 + uniform(random);
      p.push_back({radius * std::cos(angle), radius * std::sin(angle)});
    }
    if (trial % 2) p[random() % std::size_t(n)] = {2 * uniform(random) - 1, 2 * uniform(random) - 1};
    p = closed(p);
    const bool expected = pairs_cross(p);
    const auto found = crossing_sides(p);
    ASSERT_EQ(found.has_value(), expected) << "trial " << trial;
    (expected ? crossing : simple) += 1;
    if (!found) continue;
    const auto a = std::size_t(found->first), b = std::size_t(found->second);
    EXPECT_TRUE(pairs_cross({p[a], p[a + 1], p[a + 1], p[b], p[b + 1], p[b + 1], p[a]}));
  }
  EXPECT_GT(crossing, 300);
  EXPECT_GT(simple, 1500);
}

TEST(Crossings, IncludeTouchingAndRunningBack) {
  EXPECT_FALSE(crossing_sides(closed({{0, 0}, {1, 0}, {1, 1}, {0, 1}})));
  EXPECT_TRUE(crossing_sides(closed({{0, 0}, {1, 1}, {1, 0}, {0, 1}})));                            // a bow
  EXPECT_TRUE(crossing_sides(closed({{0, 0}, {2, 0}, {2, 1}, {1, 0}, {0, 1}})));                    // a point on a side
  EXPECT_TRUE(crossing_sides(closed({{0, 0}, {2, 0}, {1, 0}, {1, 1}})));                            // back over a side
  EXPECT_TRUE(crossing_sides(closed({{0, 0}, {1, 0}, {1, 1}, {2, 1}, {2, -1}, {1, 0}, {0, -1}})));  // twice at a point
}

TEST(Crossings, OfAHundredThousandPointsAreLookedForInLessThanASecond) {
  constexpr int n = 100000;
  std::vector<Point> star, comb;
  for (int k = 0; k < n; ++k) {
    const double angle = 2 * std::numbers::pi * k / n, radius = k % 2 ? 1 : 1.5;
    star.push_back({radius * std::cos(angle), radius * std::sin(angle)});
    comb.push_back({double(k) / n + (k % 2 ? 0.7 : 0), k % 2 ? 1.0 : 0.0});  // slanting teeth
  }
  comb.push_back({3, -1});
  comb.push_back({-1, -1});
  for (const auto& p : {closed(star), closed(comb)}) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(crossing_sides(p));
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 1.0);
  }
  std::swap(star[70000], star[70010]);
  EXPECT_TRUE(crossing_sides(closed(star)));
}

}  // namespace
