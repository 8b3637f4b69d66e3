// SPDX-License-Identifier: Apache-2.0
// Quality of grids made by hand: rings whose angles, areas and growth are known, sheared and folded ones, squares with
// corners.
#include "grid/quality.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "krilu/error.hpp"

namespace krilu::grid {
namespace {

using std::numbers::pi;

/// Rings of radius 1, `growth`, growth^2, .. round the origin; line i turns by `twist` radians from ring to ring.
Grid rings(Index cells, Index nj, double growth, double twist = 0) {
  Grid grid{Grid::Topology::O, cells + 1, nj, 0, {}};
  for (Index j = 0; j < nj; ++j)
    for (Index i = 0; i <= cells; ++i) {
      const double turn = 2 * pi * (i % cells) / cells + twist * j, r = std::pow(growth, j);
      grid.node.push_back({r * std::cos(turn), -r * std::sin(turn)});
    }
  return grid;
}

TEST(Quality, OfRingsIsWhatGeometrySays) {
  const Index n = 64;
  const double g = 1.2;
  const GridQuality q = quality_of(rings(n, 8, g), 0.25);
  EXPECT_EQ(q.folded_cells, 0);
  EXPECT_NEAR(q.worst_angle, 90, 1e-9);
  EXPECT_NEAR(q.mean_deviation, 0, 1e-9);
  EXPECT_NEAR(q.wall_deviation, 0, 1e-9);
  EXPECT_NEAR(q.wall_deviation_anywhere, 0, 1e-9);
  EXPECT_EQ(q.wall_spacing, 0.25);
  EXPECT_NEAR(q.least_wall_spacing, g - 1, 1e-12);
  EXPECT_NEAR(q.largest_wall_spacing, g - 1, 1e-12);
  EXPECT_NEAR(q.largest_growth, g, 1e-12);
  // At the wall the sides are a chord and the spacing, half a cell's angle off the perpendicular.
  const double chord = 2 * std::sin(pi / n);
  EXPECT_NEAR(q.smallest_jacobian, chord * (g - 1) * std::cos(pi / n), 1e-12);
  EXPECT_NEAR(q.largest_aspect, (g - 1) / (0.5 * chord * (1 + g)), 1e-12);
}

TEST(Quality, SeesAShearAndWhichWayLinesLean) {
  const double g = 1.1, twist = 0.02;
  const Grid grid = rings(64, 6, g, twist);
  // The line from (1, 0) to g (cos, -sin)(twist): towards growing i.
  const double lean = std::atan2(g * std::sin(twist), g * std::cos(twist) - 1) * 180 / pi;
  EXPECT_NEAR(leaving(grid, 5).lean, lean, 1e-9);
  EXPECT_NEAR(leaving(grid, 0).lean, lean, 1e-9);
  EXPECT_NEAR(leaving(grid, 64).lean, lean, 1e-9);
  const GridQuality q = quality_of(grid, 0.1);
  EXPECT_NEAR(q.wall_deviation, lean, 1e-9);
  EXPECT_LT(q.worst_angle, 90 - 5);
  EXPECT_NEAR(q.worst_angle, 90 - q.mean_deviation, 1e-9);
  EXPECT_NEAR(leaving(rings(64, 6, g, -twist), 5).lean, -lean, 1e-9);
}

TEST(Quality, CountsFoldedCellsAndFindsTheFirst) {
  Grid grid = rings(32, 6, 1.3);
  EXPECT_FALSE(first_fold(grid));
  grid.at(10, 3) = grid.at(10, 1);  // pulled back behind the ring between
  const GridQuality q = quality_of(grid, 0.3);
  EXPECT_EQ(q.folded_cells, 2);
  EXPECT_LT(q.smallest_jacobian, 0);
  const auto fold = first_fold(grid);
  ASSERT_TRUE(fold);
  EXPECT_EQ(*fold, std::pair(Index(9), Index(2)));

  Grid turned = rings(32, 6, 1.3);
  for (Point& p : turned.node) p.y = -p.y;  // anticlockwise: all areas negative
  EXPECT_EQ(quality_of(turned, 0.3).folded_cells, 32 * 5);
}

TEST(Quality, OfANodeThatIsNotANumberIsAFold) {
  Grid grid = rings(16, 4, 1.3);
  grid.at(3, 2).x = std::nan("");
  EXPECT_EQ(quality_of(grid, 0.3).folded_cells, 4);
}

/// Squares of half side 1, 1.1, ..: from the middle of the right side, clockwise.
Grid squares(Index cells) {
  Grid grid{Grid::Topology::O, cells + 1, 5, 0, {}};
  for (Index j = 0; j < 5; ++j)
    for (Index i = 0; i <= cells; ++i) {
      const double turn = 2 * pi * (i % cells) / cells, c = std::cos(turn), s = -std::sin(turn);
      const double r = (1 + 0.1 * j) / std::max(std::abs(c), std::abs(s));
      grid.node.push_back({r * c, r * s});
    }
  return grid;
}

TEST(CountedAtWall, LeavesOutCornersAndTwoNodesBesideThem) {
  const Index cells = 48;  // corners at 6, 18, 30, 42
  const std::vector<char> counted = counted_at_wall(squares(cells));
  for (Index i = 0; i <= cells; ++i) {
    const Index from_corner = std::abs((i % cells + 6) % 12 - 0);
    const bool beside = from_corner <= 2 || from_corner >= 10;
    EXPECT_EQ(counted[std::size_t(i)] != 0, !beside) << i;
  }
  const GridQuality q = quality_of(squares(cells), 0.1);
  EXPECT_GT(q.wall_deviation_anywhere, q.wall_deviation);
}

TEST(CountedAtWall, TakesACoarseCircleForRound) {
  const std::vector<char> counted = counted_at_wall(rings(12, 4, 1.2));  // turns by 30 degrees a node
  for (const char c : counted) EXPECT_TRUE(c);
}

TEST(Mirror, MakesGridsMirrorThemselves) {
  Grid grid = rings(16, 5, 1.2);
  ASSERT_TRUE(mirrors_itself(grid));
  grid.at(3, 2).x += 1e-3;
  grid.at(5, 1).y += 1e-3;
  mirror(grid);
  for (Index j = 0; j < 5; ++j)
    for (Index i = 0; i <= 16; ++i) {
      EXPECT_NEAR(grid.at(i, j).x, grid.at(16 - i, j).x, 1e-13);
      EXPECT_NEAR(grid.at(i, j).y, -grid.at(16 - i, j).y, 1e-13);
    }
  EXPECT_NEAR(grid.at(3, 2).x, rings(16, 5, 1.2).at(3, 2).x + 5e-4, 1e-13);
  grid.at(3, 0).x += 1e-3;
  EXPECT_FALSE(mirrors_itself(grid));
}

TEST(Quality, RefusesWhatIsNoGrid) {
  EXPECT_THROW(quality_of(Grid{}, 0.1), Error);
  Grid grid = rings(16, 4, 1.2);
  grid.node.pop_back();
  EXPECT_THROW(quality_of(grid, 0.1), Error);
  grid = rings(16, 4, 1.2);
  grid.wake = 8;
  EXPECT_THROW(quality_of(grid, 0.1), Error);
}

}  // namespace
}  // namespace krilu::grid
