// SPDX-License-Identifier: Apache-2.0
// Starts: boundaries where they belong, first spacings as asked, nothing folded; and what is refused.
#include "grid/transfinite.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "grid/quality.hpp"
#include "krilu/error.hpp"

namespace krilu::grid {
namespace {

struct Case {
  const char *shape, *trailing_edge, *topology;
  double wall_spacing;
};

GridOptions options_of(const Case& c) {
  GridOptions o;
  o.shape = c.shape;
  o.trailing_edge = c.trailing_edge;
  o.topology = c.topology;
  o.wall_spacing = c.wall_spacing;
  o.around = 129;
  o.outward = 49;
  o.far_field = 15;
  return o;
}

Index cells_of(const GridOptions& o) { return o.around - 1 - (o.topology == "C" ? 2 * wake_cells(o.around) : 0); }

Start start_of(const GridOptions& o) {
  return start_grid(wall_points(curve_by_name(o.shape, o.trailing_edge), cells_of(o)), o);
}

double distance(const Point& a, const Point& b) { return std::hypot(a.x - b.x, a.y - b.y); }

const Case cases[] = {{"naca:0012", "closed", "O", 1e-3},
                      {"naca:0012", "closed", "C", 1e-3},
                      {"naca:4412", "closed", "O", 1e-5},
                      {"naca:4412", "closed", "C", 1e-5},
                      {"naca:2415", "open", "O", 1e-4}};

TEST(StartGrid, IsNotFolded) {
  for (const Case& c : cases) {
    const Start s = start_of(options_of(c));
    const auto fold = first_fold(s.grid);
    EXPECT_FALSE(fold) << c.shape << c.topology << c.wall_spacing << " at " << fold->first << ", " << fold->second;
  }
}

TEST(StartGrid, HasTheWallAsItIsAndItsSpacing) {
  for (const Case& c : cases) {
    const GridOptions o = options_of(c);
    const WallPoints wall = wall_points(curve_by_name(o.shape, o.trailing_edge), cells_of(o));
    const Start s = start_grid(wall, o);
    EXPECT_EQ(s.grid.wake, c.topology[0] == 'C' ? 24 : 0);
    for (std::size_t i = 0; i + 1 < wall.point.size(); ++i) {
      const Index at = s.grid.wake + Index(i);
      EXPECT_EQ(s.grid.at(at, 0).x, wall.point[i].x);
      EXPECT_EQ(s.grid.at(at, 0).y, wall.point[i].y);
      EXPECT_DOUBLE_EQ(s.spacing[std::size_t(at)], c.wall_spacing);
      EXPECT_NEAR(distance(s.grid.at(at, 1), s.grid.at(at, 0)), c.wall_spacing, 0.02 * c.wall_spacing) << at;
    }
    // The image is the grid's.
    for (std::size_t k = 0; k < s.zeta.size(); ++k)
      EXPECT_NEAR(std::abs(s.map.to_z(s.zeta[k]) - complex_of(s.grid.node[k])), 0, 1e-11) << k;
  }
}

TEST(StartGrid, SpacingsGrowSmoothlyOutwards) {
  for (const Case& c : cases) {
    const Grid grid = start_of(options_of(c)).grid;
    for (Index i = grid.wake; i < grid.ni - grid.wake; ++i)
      for (Index j = 1; j + 1 < grid.nj; ++j) {
        const double growth = distance(grid.at(i, j + 1), grid.at(i, j)) / distance(grid.at(i, j), grid.at(i, j - 1));
        EXPECT_GT(growth, 0.97) << i << ' ' << j;
        EXPECT_LT(growth, 1.5) << i << ' ' << j;
      }
  }
}

TEST(StartGrid, OfAnOGridEndsOnACircleAndClosesExactly) {
  const Grid grid = start_of(options_of(cases[2])).grid;
  for (Index i = 0; i < grid.ni; ++i) EXPECT_NEAR(distance(grid.at(i, grid.nj - 1), {0.5, 0}), 15, 1e-12);
  for (Index j = 0; j < grid.nj; ++j) {
    EXPECT_EQ(grid.at(0, j).x, grid.at(grid.ni - 1, j).x);
    EXPECT_EQ(grid.at(0, j).y, grid.at(grid.ni - 1, j).y);
  }
}

TEST(StartGrid, OfACGridHasACutAndStraightOutflowLines) {
  for (const Case& c : {cases[1], cases[3]}) {
    const Start s = start_of(options_of(c));
    const Grid& grid = s.grid;
    const Index last = grid.ni - 1;
    for (Index i = 0; i <= grid.wake; ++i) {
      EXPECT_EQ(grid.at(i, 0).x, grid.at(last - i, 0).x);
      EXPECT_EQ(grid.at(i, 0).y, grid.at(last - i, 0).y);
      if (i > 0) {
        EXPECT_LT(grid.at(i, 0).x, grid.at(i - 1, 0).x);
        EXPECT_LE(s.spacing[std::size_t(i)], s.spacing[std::size_t(i) - 1]);
      }
    }
    for (Index j = 0; j < grid.nj; ++j) {
      EXPECT_DOUBLE_EQ(grid.at(0, j).x, 16);
      EXPECT_DOUBLE_EQ(grid.at(last, j).x, 16);
    }
    EXPECT_DOUBLE_EQ(grid.at(0, grid.nj - 1).y, -15);
    EXPECT_DOUBLE_EQ(grid.at(last, grid.nj - 1).y, 15);
    for (Index i = 0; i <= last; ++i) {
      const Point p = grid.at(i, grid.nj - 1);
      EXPECT_NEAR(p.x > 0.5 ? std::abs(p.y) : distance(p, {0.5, 0}), 15, 1e-12);
    }
  }
}

TEST(StartGrid, OfASectionWithoutCamberMirrorsItself) {
  for (const Case& c : {cases[0], cases[1]}) {
    const Grid grid = start_of(options_of(c)).grid;
    EXPECT_TRUE(mirrors_itself(grid));
    for (Index j = 0; j < grid.nj; ++j)
      for (Index i = 0; i < grid.ni; ++i) {
        EXPECT_NEAR(grid.at(i, j).x, grid.at(grid.ni - 1 - i, j).x, 1e-11);
        EXPECT_NEAR(grid.at(i, j).y, -grid.at(grid.ni - 1 - i, j).y, 1e-11);
      }
  }
}

std::string sentence(const GridOptions& o, Index cells) {
  try {
    start_grid(wall_points(curve_by_name(o.shape, o.trailing_edge), cells), o);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(StartGrid, RefusesWhatDoesNotFit) {
  GridOptions o = options_of(cases[0]);
  EXPECT_NE(sentence(o, 100).find("does not fit"), std::string::npos);
  o.topology = "C";
  EXPECT_NE(sentence(o, 81).find("does not fit"), std::string::npos);
  EXPECT_NE(sentence(o, 128).find("does not fit"), std::string::npos);
  o = options_of(cases[0]);
  o.far_field = 0.5;
  EXPECT_NE(sentence(o, 128).find("far field"), std::string::npos);
  o.far_field = 2;
  o.wall_spacing = 0.05;
  EXPECT_NE(sentence(o, 128).find("smaller spacing"), std::string::npos);
}

}  // namespace
}  // namespace krilu::grid
