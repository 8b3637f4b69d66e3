// SPDX-License-Identifier: Apache-2.0
// The mapped planes: there and back, on the right sheet; their stretching against differences; walls that become nearly
// straight, sharp edges included.
#include "grid/conformal.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "grid/wall_points.hpp"

namespace krilu::grid {
namespace {

using std::numbers::pi;

std::vector<ConformalMap> maps() {
  return {{ConformalMap::Kind::ellipse, {0.5, 0.02}, {0.49, -0.01}},
          {ConformalMap::Kind::ellipse, {0.5, 0}, 0},
          {ConformalMap::Kind::parabola, {0.01, 0.002}, 0}};
}

TEST(ConformalMap, ComesBackToTheSameImage) {
  for (const ConformalMap& map : maps())
    for (int i = -3; i < 12; ++i)
      for (int j = 0; j < 8; ++j) {
        const Complex zeta(0.1 + 0.7 * i, 0.2 + 0.4 * j), near = zeta + Complex(0.05, -0.05);
        EXPECT_NEAR(std::abs(map.to_zeta(map.to_z(zeta), near) - zeta), 0, 1e-12) << zeta;
      }
}

TEST(ConformalMap, StretchIsTheDerivative) {
  for (const ConformalMap& map : maps())
    for (int i = 0; i < 10; ++i) {
      const Complex zeta(0.3 + 0.5 * i, 0.1 * i), h(1e-6, 0), v(0, 1e-6);
      const double along = std::abs(map.to_z(zeta + h) - map.to_z(zeta - h)) / 2e-6;
      const double across = std::abs(map.to_z(zeta + v) - map.to_z(zeta - v)) / 2e-6;
      EXPECT_NEAR(map.stretch(zeta), along, 1e-7 * along);
      EXPECT_NEAR(map.stretch(zeta), across, 1e-7 * across);
    }
}

std::vector<Complex> image(const ConformalMap& map, const std::vector<Point>& wall) {
  return follow(map, wall, Index(wall.size() / 4), {0.5 * pi, 1});
}

TEST(Ellipse, MakesTheWallOfASectionAlmostLevelAndGoesRoundOnce) {
  for (const char* name : {"naca:0012", "naca:4415"}) {
    const WallPoints wall = wall_points(curve_by_name(name, "closed"), 128);
    const std::vector<Complex> zeta = image(ellipse_of(wall.point, true), wall.point);
    EXPECT_NEAR(zeta.back().real() - zeta.front().real(), 2 * pi, 1e-6) << name;
    for (std::size_t i = 0; i + 1 < zeta.size(); ++i) {
      EXPECT_GT(zeta[i + 1].real(), zeta[i].real()) << name << ' ' << i;
      EXPECT_LT(std::abs(std::arg(zeta[i + 1] - zeta[i])), 0.4) << name << ' ' << i;
    }
  }
}

TEST(Ellipse, OfAnEllipseIsItsOwn) {
  std::vector<Point> wall;
  for (int i = 0; i <= 400; ++i)
    wall.push_back({0.5 + 0.5 * std::cos(2 * pi * i / 400), -0.2 * std::sin(2 * pi * i / 400)});
  const ConformalMap map = ellipse_of(wall, false);
  EXPECT_NEAR(map.centre.real(), 0.5, 1e-12);
  EXPECT_NEAR(std::abs(map.focus), std::sqrt(0.25 - 0.04), 5e-3);
  for (const Complex& zeta : image(map, wall)) EXPECT_NEAR(zeta.imag(), std::log(0.7), 0.01);
}

TEST(Parabola, UnfoldsANose) {
  const WallPoints wall = wall_points(curve_by_name("naca:0012", "closed"), 128);
  const std::vector<Complex> zeta = follow(parabola_of(wall.point), wall.point, nose_of(wall.point), {0, 1});
  for (std::size_t i = 0; i < zeta.size(); ++i) {
    EXPECT_GE(zeta[i].imag(), -1e-12);
    EXPECT_LT(zeta[i].imag(), 0.12);
    if (i > 0) {
      EXPECT_GT(zeta[i].real(), zeta[i - 1].real());
    }
  }
}

}  // namespace
}  // namespace krilu::grid
