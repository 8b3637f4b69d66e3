// SPDX-License-Identifier: Apache-2.0
// Nodes along curves: on the curve, where they have to be, mirrored, with spacings that grow slowly; and stretching by
// one factor against sums in long double.
#include "grid/wall_points.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "grid/curve_spline.hpp"
#include "grid/read_curve.hpp"
#include "grid/stretching.hpp"
#include "krilu/error.hpp"
#include "support/support.hpp"

namespace {

using krilu::Error;
using krilu::Index;
using krilu::Point;
using krilu::grid::crossing_sides;
using krilu::grid::Curve;
using krilu::grid::curve_by_name;
using krilu::grid::stretched;
using krilu::grid::turning;
using krilu::grid::wall_points;
using krilu::grid::WallPoints;
using krilu::grid::WallSpacing;

double distance(const Point& a, const Point& b) { return std::hypot(a.x - b.x, a.y - b.y); }

std::vector<double> spacings(const WallPoints& wall) {
  std::vector<double> h;
  for (std::size_t k = 0; k + 1 < wall.point.size(); ++k) h.push_back(distance(wall.point[k], wall.point[k + 1]));
  return h;
}

/// Of neighbouring spacings, round the start as well.
double largest_growth(const WallPoints& wall) {
  const std::vector<double> h = spacings(wall);
  double largest = 1;
  for (std::size_t k = 0; k < h.size(); ++k) {
    const double ratio = h[k] / h[k == 0 ? h.size() - 1 : k - 1];
    largest = std::max({largest, ratio, 1 / ratio});
  }
  return largest;
}

double largest_turning(const WallPoints& wall) {
  double largest = 0;
  for (std::size_t k = 1; k + 1 < wall.point.size(); ++k)
    if (!std::binary_search(wall.corner.begin(), wall.corner.end(), Index(k)))
      largest = std::max(largest, turning(wall.point[k - 1], wall.point[k], wall.point[k + 1]));
  return largest;
}

bool holds(const WallPoints& wall, const Point& p) {
  return std::any_of(wall.point.begin(), wall.point.end(), [&](const Point& q) { return q.x == p.x && q.y == p.y; });
}

/// What goes for every wall of every curve.
void expect_wall(const Curve& curve, const WallPoints& wall, Index cells) {
  ASSERT_EQ(wall.point.size(), std::size_t(cells) + 1);
  EXPECT_EQ(wall.point.front().x, curve.point.front().x);
  EXPECT_EQ(wall.point.front().y, curve.point.front().y);
  EXPECT_EQ(wall.point.back().x, curve.point.front().x);
  EXPECT_EQ(wall.point.back().y, curve.point.front().y);
  ASSERT_EQ(wall.corner.size(), curve.corner.size());
  for (std::size_t c = 0; c < curve.corner.size(); ++c) {
    const Point node = wall.point[std::size_t(wall.corner[c])], corner = curve.point[std::size_t(curve.corner[c])];
    EXPECT_EQ(node.x, corner.x) << "corner " << c;
    EXPECT_EQ(node.y, corner.y) << "corner " << c;
    if (c > 0) {
      EXPECT_GT(wall.corner[c], wall.corner[c - 1]);
    }
  }
  for (const double h : spacings(wall)) ASSERT_GT(h, 0);
  // In the sequence of the curve.
  EXPECT_FALSE(crossing_sides(wall.point));
}

Curve ellipse(double ratio, int points) {
  Curve curve;
  curve.name = "ellipse";
  for (int k = 0; k <= points; ++k) {
    const double angle = -2 * std::numbers::pi * (k % points) / points;
    curve.point.push_back({(1 + std::cos(angle)) / 2, ratio * std::sin(angle) / 2});
  }
  return curve;
}

Curve square() {
  Curve curve;
  curve.name = "square";
  curve.point = {{1, 0}, {1, -0.5}, {0, -0.5}, {0, 0.5}, {1, 0.5}, {1, 0}};
  curve.corner = {1, 2, 3, 4};
  return curve;
}

TEST(WallPoints, OfAnAerofoilAreFineAtItsEdgesAndGrowSlowly) {
  for (const char* shape : {"naca:0012", "naca:4412", "naca:2415"}) {
    const Curve curve = curve_by_name(shape, "closed");
    const WallPoints wall = wall_points(curve, 256);
    expect_wall(curve, wall, 256);
    const std::vector<double> h = spacings(wall);
    EXPECT_NEAR(h.front(), 3e-3, 3e-4) << shape;
    EXPECT_NEAR(h.back(), 3e-3, 3e-4) << shape;
    EXPECT_LE(*std::min_element(h.begin() + 100, h.begin() + 156), 2.5e-3) << shape;
    EXPECT_LE(largest_growth(wall), 1.105) << shape;
    EXPECT_LE(largest_turning(wall), 6) << shape;
    // Mid-chord there is one spacing, and it is the largest.
    const double largest = *std::max_element(h.begin(), h.end());
    EXPECT_GT(largest, 8e-3);
    for (std::size_t k = 50; k < 80; ++k) EXPECT_NEAR(h[k], largest, 0.01 * largest);
  }
}

TEST(WallPoints, LieOnTheCurve) {
  const Curve curve = curve_by_name("naca:0012", "closed");
  for (const Point& p : wall_points(curve, 300).point) {
    const double x = p.x,
                 half = 0.6 * (0.2969 * std::sqrt(x) + x * (-0.126 + x * (-0.3516 + x * (0.2843 - x * 0.1036))));
    // Across the curve: its slope is not bounded at the nose.
    const double slope =
        x > 1e-9 ? 0.6 * (0.14845 / std::sqrt(x) - 0.126 + x * (-0.7032 + x * (0.8529 - x * 0.4144))) : 1e9;
    EXPECT_LT(std::abs(std::abs(p.y) - half) / std::hypot(1, slope), 1e-11) << x;
  }
}

TEST(WallPoints, OfACurveThatMirrorsItselfAreMirroredBitForBit) {
  Curve no_point_at_the_nose = ellipse(0.3, 61);
  for (std::size_t k = 0; k <= 30; ++k)
    no_point_at_the_nose.point[61 - k] = {no_point_at_the_nose.point[k].x, -no_point_at_the_nose.point[k].y};
  for (const Curve& curve :
       {curve_by_name("naca:0012", "closed"), curve_by_name("naca:0015", "open"), square(), no_point_at_the_nose}) {
    ASSERT_TRUE(mirrors_itself(curve));
    for (const Index cells : {16, 128, 256, 1000}) {
      const WallPoints wall = wall_points(curve, cells);
      expect_wall(curve, wall, cells);
      const auto n = std::size_t(cells);
      for (std::size_t k = 0; k <= n / 2; ++k) {
        ASSERT_EQ(wall.point[k].x, wall.point[n - k].x);
        ASSERT_EQ(wall.point[k].y, -wall.point[n - k].y);
      }
      EXPECT_EQ(wall.point[n / 2].y, 0);
      for (const Index c : wall.corner)
        if (c != 0) {
          EXPECT_TRUE(std::binary_search(wall.corner.begin(), wall.corner.end(), cells - c));
        }
    }
    expect_wall(curve, wall_points(curve, 255), 255);  // one side has a cell more
  }
  EXPECT_TRUE(holds(wall_points(curve_by_name("naca:0012", "closed"), 256), {0, 0}));
}

TEST(WallPoints, OfACircleAreEquidistantAndOfAnEllipseFineWhereItTurns) {
  const WallPoints circle = wall_points(ellipse(1, 400), 200);
  for (const double h : spacings(circle)) EXPECT_NEAR(h, std::sin(std::numbers::pi / 200), 1e-6);

  const Curve flat = ellipse(0.1, 400);
  const WallPoints wall = wall_points(flat, 256);
  expect_wall(flat, wall, 256);
  EXPECT_LE(largest_growth(wall), 1.105);
  EXPECT_LE(largest_turning(wall), 6);
  const std::vector<double> h = spacings(wall);
  EXPECT_LT(h[0], 1e-3) << "the radius is 0.005 there";
  EXPECT_GT(h[64], 8e-3);
}

TEST(WallPoints, OfASquareAreFineAtItsCorners) {
  const WallPoints wall = wall_points(square(), 256);
  expect_wall(square(), wall, 256);
  const std::vector<double> h = spacings(wall);
  for (const Index c : wall.corner) {
    EXPECT_NEAR(h[std::size_t(c)], 3e-3, 4e-4);
    EXPECT_NEAR(h[std::size_t(c) - 1], 3e-3, 4e-4);
  }
  EXPECT_GT(h[0], 0.02);
  EXPECT_LE(largest_growth(wall), 1.18 * 1.02);
  for (const Point& p : wall.point)  // its sides are straight
    EXPECT_TRUE(p.x == 0 || p.x == 1 || std::abs(std::abs(p.y) - 0.5) < 1e-15 || std::min(p.x, 1 - p.x) < 1e-15);
}

TEST(WallPoints, GrowSlowlyFromABaseToo) {
  const Curve curve = curve_by_name("naca:0012", "open");
  const WallPoints wall = wall_points(curve, 256);
  expect_wall(curve, wall, 256);
  EXPECT_EQ(wall.corner, (std::vector<Index>{1, 255}));
  EXPECT_NEAR(spacings(wall)[0], 0.00126, 1e-15);
  EXPECT_LE(largest_growth(wall), 1.12);
  EXPECT_EQ(wall_points(curve, 1024).corner, (std::vector<Index>{4, 1020}));
}

TEST(WallPoints, OfTwiceTheCellsHaveThoseOfTheCoarserWallNearlyAmongThem) {
  // With camber the sides' cells are rounded to whole numbers otherwise, by half a cell.
  for (const auto& [shape, allowed] : {std::pair("naca:0012", 0.2), std::pair("naca:4412", 0.6)}) {
    const Curve curve = curve_by_name(shape, "closed");
    const WallPoints coarse = wall_points(curve, 256), fine = wall_points(curve, 512);
    const std::vector<double> h = spacings(coarse);
    double worst = 0;
    for (std::size_t k = 0; k < h.size(); ++k)
      worst = std::max(worst, distance(coarse.point[k], fine.point[2 * k]) / h[k]);
    EXPECT_LT(worst, allowed) << shape;
    EXPECT_LE(largest_growth(fine), 1.055);
  }
}

TEST(WallPoints, GoFromEightCellsToAHundredThousand) {
  for (const char* shape : {"naca:0012", "naca:4412"})
    for (const Index cells : {8, 9, 10, 17, 32, 64, 100, 100000}) {
      const Curve curve = curve_by_name(shape, "closed");
      const auto start = std::chrono::steady_clock::now();
      const WallPoints wall = wall_points(curve, cells);
      EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 5.0);
      expect_wall(curve, wall, cells);
      if (cells >= 32) {
        EXPECT_LE(largest_growth(wall), 1.2) << cells;
      }
    }
}

TEST(WallPoints, OfABodyAndItsWingsHitTheirJunctions) {
  const Curve curve = krilu::grid::read_curve(std::string(KRILU_SOURCE_DIR) + "/tests/grid/data/body_wing_section.dat");
  for (const Index cells : {64, 256, 257, 512}) {
    const WallPoints wall = wall_points(curve, cells);
    expect_wall(curve, wall, cells);
    EXPECT_EQ(wall.corner.size(), 4u);
    if (cells >= 256) {
      EXPECT_LE(largest_growth(wall), 1.2) << cells;
    }
  }
}

TEST(WallPoints, OfFewerCellsThanCornersNeedAreRefused) {
  const auto error_of = [](const Curve& curve, Index cells, const WallSpacing& how = {}) -> std::string {
    try {
      wall_points(curve, cells, how);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of(square(), 12), "no error");
  EXPECT_NE(error_of(square(), 10).find("10 cells are too few to go round square"), std::string::npos)
      << error_of(square(), 10);
  EXPECT_NE(error_of(square(), 10).find("which need 12 cells at least"), std::string::npos) << error_of(square(), 10);
  EXPECT_NE(error_of(square(), 1).find("give 8 or more"), std::string::npos);
  WallSpacing how;
  how.corner = 0;
  EXPECT_NE(error_of(square(), 64, how).find("spacing at the corners is 0 and must be positive"), std::string::npos);
  how = {};
  how.growth = 1;
  EXPECT_NE(error_of(square(), 64, how).find("the others more than 1"), std::string::npos);
}

TEST(WallPoints, OfRealSectionsGrowSlowly) {
  for (const char* name : {"naca0012", "naca4412", "rae2822", "dfvlrr4"}) {
    KRILU_REQUIRE_MATRIX(path, std::string("geometry/") + name + ".dat");
    const Curve curve = krilu::grid::read_curve(path.string());
    for (const Index cells : {128, 256, 512}) {
      const WallPoints wall = wall_points(curve, cells);
      expect_wall(curve, wall, cells);
      EXPECT_LE(largest_growth(wall), 1.2) << name << " " << cells;
    }
    EXPECT_LE(largest_turning(wall_points(curve, 256)), 9) << name;
  }
}

TEST(RealSections, HaveCurvaturesThatDoNotOscillate) {
  // Coarse points of NACA 0012 against its own curvature, from the formula by way of many points.
  KRILU_REQUIRE_MATRIX(path, "geometry/naca0012.dat");
  const auto bends = [](const Curve& curve) {
    const krilu::grid::CurveSpline spline(curve);
    std::vector<std::pair<double, double>> all;  // x and the curvature, on the upper side
    const double h = 1e-4;
    for (double u = spline.length() * 0.55; u < spline.length() * 0.99; u += 1e-3) {
      const Point a = spline.derivative(u - h), b = spline.derivative(u + h);
      all.emplace_back(spline.at(u).x, (a.x * b.y - a.y * b.x) / (2 * h));
    }
    return all;
  };
  const auto from_file = bends(krilu::grid::read_curve(path.string())),
             exact = bends(curve_by_name("naca:0012", "open"));
  for (const auto& [x, bend] : from_file) {
    const auto near =
        std::lower_bound(exact.begin(), exact.end(), x, [](const auto& e, double at) { return e.first < at; });
    if (near == exact.end()) continue;
    EXPECT_NEAR(bend, near->second, 0.06 * std::abs(near->second) + 0.05) << x;
  }
}

TEST(Stretching, GrowsByOneFactorFromTheFirstSpacing) {
  for (const double length : {1.0, 20.0})
    for (const double first : {1e-8, 1e-5, 1e-3, 1.0 / 64, 1.0 / 64 * (1 + 1e-12), 0.05})
      for (const Index cells : {2, 3, 16, 64, 128, 1000}) {
        if (first > 2 * length / cells) continue;
        const std::vector<double> d = stretched(first, length, cells);
        ASSERT_EQ(d.size(), std::size_t(cells) + 1);
        EXPECT_EQ(d.front(), 0);
        EXPECT_EQ(d.back(), length);
        EXPECT_NEAR(d[1], first, 1e-12 * first + 1e-15 * length) << length << " " << cells;
        const long double factor = (static_cast<long double>(d[2]) - d[1]) / d[1];
        long double sum = 0, term = d[1];
        for (std::size_t k = 1; k < d.size(); ++k) {
          sum += term;
          ASSERT_NEAR(double(sum / d[k]), 1, 1e-9) << k;
          term *= factor;
        }
      }
}

TEST(Stretching, MayShrinkOrBeEven) {
  const std::vector<double> even = stretched(0.25, 1, 4);
  for (std::size_t k = 0; k < 5; ++k) EXPECT_NEAR(even[k], 0.25 * double(k), 1e-15);
  const std::vector<double> shrinking = stretched(4, 7, 3);  // 4, 2, 1
  EXPECT_NEAR(shrinking[1], 4, 1e-14);
  EXPECT_NEAR(shrinking[2], 6, 1e-14);
  EXPECT_EQ(krilu::grid::cut_spacing(4, 7, 3), shrinking);
}

TEST(Stretching, RefusesWhatCannotBe) {
  const auto error_of = [](double first, double length, Index cells) -> std::string {
    try {
      stretched(first, length, cells);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  for (const double first : {1.0, 2.0, 0.0, -0.1, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_NE(error_of(first, 1, 10).find("it must be positive and less than the length"), std::string::npos) << first;
  EXPECT_NE(error_of(0.5, std::numeric_limits<double>::infinity(), 10).find("cannot reach"), std::string::npos);
  EXPECT_NE(error_of(0.5, 1, 1).find("two or more are needed"), std::string::npos);
  EXPECT_NE(error_of(0.9, 1, 1000).find("leaves nothing of a length of 1 for cell"), std::string::npos);
}

}  // namespace
