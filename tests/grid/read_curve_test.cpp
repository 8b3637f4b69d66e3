// SPDX-License-Identifier: Apache-2.0
// Files of coordinates: one section in every order and both ways round gives one curve; shapes by hand; every refusal
// with its text; real sections where they are at hand.
#include "grid/read_curve.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <numbers>
#include <string>
#include <vector>

#include "grid/grids.hpp"
#include "krilu/error.hpp"
#include "support/support.hpp"

namespace {

using krilu::Error;
using krilu::Index;
using krilu::Point;
using krilu::grid::Curve;
using krilu::grid::curve_by_name;
using krilu::grid::read_curve;
using krilu::test::area;
using krilu::test::TemporaryFolder;

class ReadCurve : public ::testing::Test {
 protected:
  Curve read(const std::string& text) {
    std::ofstream(folder.file("shape.dat"), std::ios::binary) << text;
    return read_curve(folder.file("shape.dat"));
  }
  /// The message without the path of the folder.
  std::string error_of(const std::string& text) {
    try {
      read(text);
    } catch (const Error& e) {
      std::string what = e.what();
      const std::string path = folder.path().string() + "/";
      while (what.find(path) != std::string::npos) what.erase(what.find(path), path.size());
      return what;
    }
    return "no error";
  }
  void expect_error(const std::string& text, const std::string& part) {
    const std::string what = error_of(text);
    EXPECT_NE(what.find(part), std::string::npos) << what;
    EXPECT_TRUE(what.starts_with("shape.dat")) << what;
  }

  TemporaryFolder folder;
};

std::string lines(const std::vector<Point>& points) {
  std::string text;
  for (const Point& p : points) text += fmt::format("{:.17g} {:.17g}\n", p.x, p.y);
  return text;
}

void expect_same(const Curve& a, const Curve& b, double tolerance = 0) {
  ASSERT_EQ(a.point.size(), b.point.size());
  for (std::size_t k = 0; k < a.point.size(); ++k) {
    ASSERT_NEAR(a.point[k].x, b.point[k].x, tolerance) << k;
    ASSERT_NEAR(a.point[k].y, b.point[k].y, tolerance) << k;
  }
  EXPECT_EQ(a.corner, b.corner);
  EXPECT_EQ(a.open_edge, b.open_edge);
}

/// A cambered section of few points, from the trailing edge over the upper side; open by `gap`.
std::vector<Point> section(double gap) {
  std::vector<Point> p;
  for (int k = 0; k <= 40; ++k) {
    const double angle = std::numbers::pi * k / 20, x = (1 + std::cos(angle)) / 2, side = k <= 20 ? 1 : -1;
    const double half = 0.178 * std::sqrt(x) * (1 - x) + gap / 2 * x;
    p.push_back({x, (k == 20 ? 0 : side * half) + 0.1 * x * (1 - x)});
  }
  p.front().x = p.back().x = 1;
  p[20] = {0, 0};
  if (gap == 0) p.front().y = p.back().y = 0;
  return p;
}

std::vector<Point> reversed(std::vector<Point> p) {
  std::reverse(p.begin(), p.end());
  return p;
}

TEST_F(ReadCurve, OneSectionInEveryOrderIsOneCurve) {
  for (const double gap : {0.0, 0.004}) {
    const std::vector<Point> selig = section(gap);
    const std::vector<Point> upper(selig.begin(), selig.begin() + 21), lower(selig.begin() + 20, selig.end());
    const Curve curve = read("A section\n" + lines(selig));
    EXPECT_EQ(curve.name, "A section");
    EXPECT_EQ(curve.open_edge, gap > 0);
    const std::size_t n = curve.point.size();
    EXPECT_EQ(n, gap > 0 ? 43u : 41u);
    EXPECT_EQ(curve.corner, gap > 0 ? (std::vector<Index>{1, 41}) : (std::vector<Index>{0}));
    EXPECT_LT(area(curve.point), 0);
    const std::size_t skip = gap > 0 ? 1 : 0;
    for (std::size_t k = 0; k < 41; ++k) {  // the file has them the other way round
      EXPECT_EQ(curve.point[skip + k].x, selig[40 - k].x);
      EXPECT_EQ(curve.point[skip + k].y, selig[40 - k].y);
    }
    for (const Point& end : {curve.point.front(), curve.point.back()}) {
      EXPECT_EQ(end.x, 1);
      EXPECT_NEAR(end.y, 0, 1e-16);
    }
    expect_same(read(lines(selig)), curve);
    expect_same(read("title\n" + lines(reversed(selig))), curve);
    expect_same(read("L\n 21. 21.\n\n" + lines(reversed(upper)) + "\n" + lines(lower)), curve);
    expect_same(read("L\n 21 21\n" + lines(reversed(upper)) + lines(lower)), curve);
    expect_same(read("21 21\n\n" + lines(lower) + "\n" + lines(reversed(upper))), curve);
  }
  // Without the title, the name is the file's.
  EXPECT_EQ(read(lines(section(0))).name, "shape.dat");
}

TEST_F(ReadCurve, ClosedPointsMayBeginAnywhereAndRepeatTheFirstOrNot) {
  std::vector<Point> selig = section(0);
  const Curve curve = read("A section\n" + lines(selig));
  selig.pop_back();
  for (const std::size_t first : {5u, 17u, 20u, 33u}) {
    std::vector<Point> turned = selig;
    std::rotate(turned.begin(), turned.begin() + std::ptrdiff_t(first), turned.end());
    if (first == 33) turned = reversed(turned);
    turned.push_back(turned.front());
    expect_same(read("# points\n" + lines(turned)), curve);
    turned.pop_back();
    expect_same(read(lines(turned)), curve);
  }
}

TEST_F(ReadCurve, LinesMayEndAndNumbersBePartedInOtherWays) {
  const Curve curve = read("0 0\n1 0\n1 1\n0 1\n0 0\n");
  expect_same(read("# a comment\r\nA square\r\n\r\n0 0 # the first\r\n1 0\r\n# another\r\n1 1\r\n0 1\r\n0 0"), curve);
  expect_same(read("\xef\xbb\xbf"
                   "0,0\n1,0\n  1 , 1  \n0\t1\n+0.0 0D0\n"),
              curve);
  EXPECT_EQ(read("4412 with a number first\n0 0\n1 0\n1 1\n0 0\n").name, "4412 with a number first");
}

TEST_F(ReadCurve, AnEdgeOpenByLessThanABillionthIsClosed) {
  std::vector<Point> p = section(0);
  p.back().y -= 5e-10;
  EXPECT_FALSE(read(lines(p)).open_edge);
  EXPECT_EQ(read(lines(p)).corner, (std::vector<Index>{0}));
  p.back().y -= 5e-9;
  EXPECT_TRUE(read(lines(p)).open_edge);
}

TEST_F(ReadCurve, ShapesAreScaledToTheChordAndMovedToTheStart) {
  std::vector<Point> p = section(0.004);
  const Curve curve = read(lines(p));
  for (Point& q : p) q = {-3 + 0.25 * q.x, 7 + 0.25 * q.y};
  expect_same(read(lines(p)), curve, 1e-14);
  double least = 1, largest = 0;
  for (const Point& q : read(lines(p)).point) {
    least = std::min(least, q.x);
    largest = std::max(largest, q.x);
  }
  EXPECT_EQ(least, 0);
  EXPECT_EQ(largest, 1);
}

TEST_F(ReadCurve, ASquareBeginsInTheMiddleOfItsRightSide) {
  const Curve curve = read("square\n2 2\n4 2\n4 4\n2 4\n2 2\n");
  const std::vector<Point> want{{1, 0}, {1, -0.5}, {0, -0.5}, {0, 0.5}, {1, 0.5}, {1, 0}};
  ASSERT_EQ(curve.point.size(), want.size());
  for (std::size_t k = 0; k < want.size(); ++k) {
    EXPECT_EQ(curve.point[k].x, want[k].x);
    EXPECT_EQ(curve.point[k].y, want[k].y);
  }
  EXPECT_EQ(curve.corner, (std::vector<Index>{1, 2, 3, 4}));
  EXPECT_FALSE(curve.open_edge) << "a side of a whole chord is no trailing edge";
  EXPECT_TRUE(mirrors_itself(curve));
}

TEST_F(ReadCurve, ABaseThatTheFileDrawsIsAnOpenEdge) {
  const Curve curve = read("0 0\n0.5 0.1\n1 0.02\n1 0.01\n1 -0.02\n0.5 -0.1\n0 0\n");
  EXPECT_TRUE(curve.open_edge);
  EXPECT_EQ(curve.point.front().x, 1);
  ASSERT_GE(curve.corner.size(), 2u);
  EXPECT_EQ(curve.point[std::size_t(curve.corner.front())].x, 1);
  EXPECT_NEAR(curve.point[std::size_t(curve.corner.front())].y, -0.02, 1e-15);
  EXPECT_NEAR(curve.point[std::size_t(curve.corner.back())].y, 0.02, 1e-15);
}

TEST_F(ReadCurve, ACircleHasNoCornersAlsoWhereItsFirstPointIsNotRepeated) {
  for (const bool repeated : {true, false})
    for (const double first : {0.0, 0.7, 3.0}) {
      std::vector<Point> p;
      for (int k = 0; k < 60 + repeated; ++k) {
        const double angle = first + 2 * std::numbers::pi * (k % 60) / 60;
        p.push_back({std::cos(angle), std::sin(angle)});
      }
      const Curve curve = read(lines(p));
      EXPECT_TRUE(curve.corner.empty()) << first;
      EXPECT_FALSE(curve.open_edge);
      // Where two points share the largest x the start is between them.
      EXPECT_NEAR(double(curve.point.size()), 61, 1.1);
    }
}

TEST_F(ReadCurve, TheBodyWingSectionHasItsFourJunctionsAsCorners) {
  const Curve curve = read_curve(std::string(KRILU_SOURCE_DIR) + "/tests/grid/data/body_wing_section.dat");
  EXPECT_EQ(curve.name, "body and wing section");
  ASSERT_EQ(curve.corner.size(), 4u);
  for (const Index c : curve.corner) {
    const Point p = curve.point[std::size_t(c)];
    EXPECT_NEAR(std::abs(p.x - 0.5), 0.15, 0.02);
    EXPECT_LT(std::abs(p.y), 0.06);
  }
  EXPECT_EQ(curve.point.front().x, 1);
  EXPECT_EQ(curve.point.front().y, 0);
  EXPECT_FALSE(curve.open_edge);
}

TEST_F(ReadCurve, WhatIsNoPointIsRefusedWithItsLine) {
  expect_error("title\n0 0\n1 zero\n1 1\n0 0\n", "shape.dat:3: 'zero' stands where a number must be");
  expect_error("title\n0 0\nmore text\n1 1\n0 0\n", "shape.dat:3: 'more' stands where a number must be");
  expect_error("0 0\n1 0\n1\n0 0\n", "shape.dat:3: the line has one number; give two, x and y");
  expect_error("# c\n0 0\n1 0 0\n1 1 0\n", "shape.dat:3: the line has more than two numbers");
  expect_error("0 0\n1 0\n1 1x\n0 0\n", "shape.dat:3: '1x' stands where a number must be");
  expect_error("1.0 O.0\n1 0\n1 1\n0 0\n", "shape.dat:1: 'O.0' stands where a number must be");
  expect_error("t\n0 0\n1 nan\n1 1\n0 0\n", "shape.dat:3: y is nan, which is no place");
  expect_error("t\n0 0\n1 0\n-inf 1\n0 0\n", "shape.dat:4: x is -inf, which is no place");
  expect_error("t\n0 0\n1 0\n1e999 1\n0 0\n", "shape.dat:4: x is inf, which is no place");
}

TEST_F(ReadCurve, TooFewPointsAreRefused) {
  expect_error("", "shape.dat: the file holds no points");
  expect_error("only a title\n# and a comment\n\n", "shape.dat: the file holds no points");
  expect_error("0 0\n", "shape.dat: the file has 1 point; a closed curve needs three or more");
  expect_error("t\n0 0\n1 0\n", "shape.dat: the file has 2 points; a closed curve needs three or more");
  expect_error("t\n0 0\n1 0\n0 0\n", "shape.dat: the file has 2 points; a closed curve needs three or more");
}

TEST_F(ReadCurve, AMissingFileAndAFolderAreRefused) {
  EXPECT_THROW(read_curve(folder.file("missing.dat")), Error);
  EXPECT_THROW(curve_by_name(folder.file("missing.dat"), "closed"), Error);
  EXPECT_THROW(read_curve(folder.path().string()), Error);
}

TEST_F(ReadCurve, PointsThatAreThereTwiceAreRefused) {
  expect_error("t\n0 0\n1 0\n1 0\n1 1\n0 0\n", "shape.dat:4: the point (1, 0) is that of line 3 again");
  expect_error("t\n0 0\n1 0\n# between\n1 1e-12\n1 1\n0 0\n",
               "shape.dat:5: the point (1, 1e-12) is that of line 3 again");
  expect_error("t\n0 0\n1 0\n1 1\n0 0\n0 0\n", "shape.dat:6: the point (0, 0) is that of line 5 again");
}

TEST_F(ReadCurve, CurvesThatAreOpenAreRefused) {
  std::vector<Point> p = section(0);
  p.resize(30);
  expect_error("t\n" + lines(p), "shape.dat: the curve is open: its first point (1, 0) at line 2 and its last (");
  expect_error("t\n" + lines(p),
               "chords apart; give the first point again as the last, or the points that are missing");
  expect_error("0 0\n1 0\n1 1\n0 1\n", "at line 4 are 1 chords apart");
}

TEST_F(ReadCurve, CurvesThatCrossThemselvesAreRefused) {
  expect_error(
      "t\n0 0\n1 1\n1 0\n0 1\n0 0\n",
      "shape.dat: the curve crosses or touches itself: the piece from line 2 to line 3 meets the piece from line "
      "4 to line 5; put the points in the sequence");
  std::vector<Point> p = section(0);
  std::swap(p[30], p[31]);
  expect_error("t\n" + lines(p), "the curve crosses or touches itself: the piece from line");
  // Figures of eight that touch in one point.
  expect_error("0 0\n1 0\n1 1\n2 1\n2 -1\n1 0\n0 -1\n0 0\n", "crosses or touches itself");
}

TEST_F(ReadCurve, CurvesThatEncloseNoAreaAreRefused) {
  expect_error("0 0\n1 1\n2 2\n0 0\n", "shape.dat: all points lie on one straight line: they enclose no area");
  expect_error("0 0\n1 0\n2 0\n1.5 0\n0.5 0\n0 0\n", "all points lie on one straight line");
  expect_error("1 0\n1 1\n1 2\n1 0\n", "all points have the same x: they enclose no area");
  expect_error("-1e308 0\n1e308 0\n1e308 1e308\n-1e308 0\n",
               "shape.dat:1: (-1e+308, 0) is too far from the first point");
  expect_error("0 0\n1e-9 0\n1e-9 1\n0 0\n",
               "shape.dat:3: (1e-09, 1) is too far from the first point, (0, 0), for a "
               "curve that is 1e-09 long in x");
}

TEST_F(ReadCurve, NumbersOfPointsThatDoNotFitAreRefused) {
  const std::vector<Point> selig = section(0);
  const std::string upper = lines(reversed({selig.begin(), selig.begin() + 21}));
  const std::string lower = lines({selig.begin() + 20, selig.end()});
  expect_error("L\n20. 21.\n\n" + upper + "\n" + lower,
               "shape.dat:2: the line says that 20 and 21 points follow, and 21 and 21 do; correct the two numbers");
  expect_error("L\n20. 22.\n\n" + upper + "\n" + lower, "20 and 22 points follow, and 21 and 21 do");
  expect_error("L\n30 31\n" + upper + lower,
               "shape.dat:2: the line says that 30 and 31 points follow, and 42 do in all");
}

TEST_F(ReadCurve, AHundredThousandPointsTakeLessThanASecond) {
  std::string text;
  for (int k = 0; k <= 100000; ++k) {
    const double angle = 2 * std::numbers::pi * (k % 100000) / 100000;
    text += fmt::format("{:.17g} {:.17g}\n", std::cos(angle), 0.1 * std::sin(angle));
  }
  std::ofstream(folder.file("shape.dat")) << text;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(read_curve(folder.file("shape.dat")).point.size(), 100001u);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 1.0);
}

/// How far real sections are from the formulas that they are of, and what their ends are.
TEST(RealSections, Naca0012IsThatOfTheFormulaWithItsOpenEdge) {
  KRILU_REQUIRE_MATRIX(path, "geometry/naca0012.dat");
  const Curve curve = curve_by_name(path.string(), "closed");
  EXPECT_EQ(curve.name, "Naca 0012 By Naca.exe D. LEDNICER");
  EXPECT_TRUE(curve.open_edge);
  EXPECT_EQ(curve.point.size(), 71u);
  EXPECT_EQ(curve.corner, (std::vector<Index>{1, 69}));
  EXPECT_EQ(curve.point[1].y, -0.00126);
  EXPECT_TRUE(mirrors_itself(curve));
  for (std::size_t k = 1; k + 1 < curve.point.size(); ++k) {
    const double x = curve.point[k].x;
    const double half =
        0.6 * (0.2969 * std::sqrt(x) - 0.126 * x - 0.3516 * x * x + 0.2843 * x * x * x - 0.1015 * x * x * x * x);
    EXPECT_NEAR(std::abs(curve.point[k].y), half, 2e-6) << k;
  }
}

TEST(RealSections, AreReadWithTheirEdges) {
  struct Case {
    std::string file;
    std::size_t points;
    bool open;
    std::vector<Index> corner;
  };
  for (const Case& c :
       {Case{"naca4412", 71, true, {1, 69}}, Case{"rae2822", 129, false, {0}}, Case{"dfvlrr4", 141, true, {1, 139}}}) {
    KRILU_REQUIRE_MATRIX(path, "geometry/" + c.file + ".dat");
    const Curve curve = read_curve(path.string());
    EXPECT_EQ(curve.point.size(), c.points) << c.file;
    EXPECT_EQ(curve.open_edge, c.open) << c.file;
    EXPECT_EQ(curve.corner, c.corner) << c.file;
    EXPECT_LT(area(curve.point), 0);
    EXPECT_NEAR(curve.point.front().y, 0, 1e-15);
  }
}

}  // namespace
